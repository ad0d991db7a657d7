//! The global allocator of the native module: mimalloc, called for aligned memory only where its plain calls do not align enough.
//!
//! The crate `mimalloc` allocates every block by `mi_malloc_aligned`, which looks only at the free list of the block's size class. When that list
//! is empty it does not refill the list but takes a block of a larger class, for this block and all later ones, which is four times slower.
//! The memory of tensors does not come from here: `backend::cpu::memory` allocates it.

use libmimalloc_sys as mi;
use std::alloc::{GlobalAlloc, Layout};

pub(crate) struct Allocator;

/// The alignment that `mi_malloc` gives blocks of at least this size. Smaller blocks are aligned to a word.
const ALIGNED: usize = 16;

/// Whether mimalloc's plain calls give memory of this alignment.
#[inline(always)]
const fn is_plain(size: usize, align: usize) -> bool {
    align <= size_of::<usize>() || align <= ALIGNED && size >= ALIGNED
}

unsafe extern "C" {
    /// Of mimalloc; the crate declares it only together with much else.
    safe fn mi_collect(force: bool);
}

/// Gives pages back that nothing lies in. Those of other threads' heaps stay.
pub(crate) fn release_idle() {
    mi_collect(true);
}

// SAFETY: mimalloc's functions keep the contract: they return memory of the requested size and alignment, or null. Memory of the plain calls
// and of the aligned calls may be freed and resized by either.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the size may be any, and the alignment is a power of two.
        unsafe { if is_plain(size, align) { mi::mi_malloc(size) } else { mi::mi_malloc_aligned(size, align) }.cast() }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as above.
        unsafe { if is_plain(size, align) { mi::mi_zalloc(size) } else { mi::mi_zalloc_aligned(size, align) }.cast() }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, _: Layout) {
        // SAFETY: by the caller's promise, the memory is from this allocator.
        unsafe { mi::mi_free(ptr.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: by the caller's promise, the memory is from this allocator.
        unsafe {
            if is_plain(size, align) { mi::mi_realloc(ptr.cast(), size) } else { mi::mi_realloc_aligned(ptr.cast(), size, align) }.cast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_a_layout_asks_for() {
        for (size, align) in (1..200).flat_map(|size| [1, 2, 4, 8, 16, 32, 64, 128].map(|align| (size, align))) {
            let layout = Layout::from_size_align(size, align).unwrap();
            let held: Vec<*mut u8> = (0..20)
                .map(|i| {
                    // SAFETY: no size is zero; the writes stay inside the block, which is freed below.
                    unsafe {
                        let ptr = if i % 2 == 0 { Allocator.alloc(layout) } else { Allocator.alloc_zeroed(layout) };
                        assert!(!ptr.is_null() && ptr.addr() % align == 0, "{size} {align}");
                        assert!(i % 2 == 0 || (0..size).all(|k| *ptr.add(k) == 0));
                        ptr.write_bytes(i, size);
                        ptr
                    }
                })
                .collect();
            for (i, ptr) in held.into_iter().enumerate() {
                // SAFETY: made above with this layout.
                unsafe {
                    let ptr = Allocator.realloc(ptr, layout, size * 3);
                    assert!(ptr.addr() % align == 0 && (0..size).all(|k| usize::from(*ptr.add(k)) == i));
                    Allocator.dealloc(ptr, Layout::from_size_align(size * 3, align).unwrap());
                }
            }
        }
    }
}
