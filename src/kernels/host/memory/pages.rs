//! Memory from the system for buffers of tensors, and back. Large buffers are mappings of their own: an allocator's header in front of an aligned
//! buffer would take a huge page to itself.
//!
//! Not here: what is counted, and what is kept for reuse (`alloc`).

use std::alloc::Layout;

/// All memory is aligned for the widest vectors and cache lines.
pub(super) const ALIGN: usize = 64;
/// Memory from this size on starts at a huge page's border and asks for huge pages: access to large memory is 5 to 9 percent faster, and the
/// first touch costs one fault for 2 MiB rather than for 4 KiB.
pub(super) const HUGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// Uninitialised memory; null where the system has none. Sizes from `HUGE` on are multiples of 64 KiB. Of these bytes so many are needed now.
pub(super) fn fresh(bytes: usize, needed: usize) -> *mut u8 {
    let ptr = if bytes >= HUGE { mapped::fresh(bytes, needed) } else { allocated(bytes) };
    // New memory has unspecified contents, like reused memory. The compiler must not assume that reading it is undefined behaviour.
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) ptr, options(nostack, preserves_flags))
    };
    ptr
}

/// # Safety
/// The memory is of `fresh`, of exactly this size, and not used any more.
pub(super) unsafe fn free(ptr: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        if bytes >= HUGE {
            mapped::free(ptr, bytes);
        } else {
            std::alloc::dealloc(ptr, layout(bytes));
        }
    }
}

fn layout(bytes: usize) -> Layout {
    let align = if bytes >= HUGE { HUGE_PAGE } else { ALIGN };
    Layout::from_size_align(bytes, align).expect("sizes are checked against isize::MAX before")
}

fn allocated(bytes: usize) -> *mut u8 {
    // SAFETY: the size is at least ALIGN.
    unsafe { std::alloc::alloc(layout(bytes)) }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod mapped {
    use super::HUGE_PAGE;
    use libc::{MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
    use std::ptr::null_mut;

    fn map(bytes: usize) -> *mut u8 {
        // SAFETY: a new mapping of no file, at a place that the system chooses.
        let at = unsafe { libc::mmap(null_mut(), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
        if at == MAP_FAILED { null_mut() } else { at.cast() }
    }

    /// How many of these bytes are to be huge pages. A part of a huge page at the end that is a small part of all is left to small pages, or else it
    /// would be touched as a whole.
    fn huge(bytes: usize) -> usize {
        let rest = bytes % HUGE_PAGE;
        if rest > bytes / 8 { bytes - rest + HUGE_PAGE } else { bytes - rest }
    }

    /// The length of the mapping.
    fn length(bytes: usize) -> usize {
        bytes.max(huge(bytes))
    }

    pub(super) fn fresh(bytes: usize, needed: usize) -> *mut u8 {
        let bytes = length(bytes);
        let mut at = map(bytes);
        if !at.is_null() && !at.addr().is_multiple_of(HUGE_PAGE) {
            // Not at a border: a longer mapping has one, and what lies around it goes back.
            // SAFETY: the mapping was made just now.
            unsafe { unmap(at, bytes) };
            let whole = map(bytes + HUGE_PAGE);
            if whole.is_null() {
                return whole;
            }
            let before = whole.addr().next_multiple_of(HUGE_PAGE) - whole.addr();
            // SAFETY: both parts are of the new mapping, which nobody uses, and their borders are those of pages.
            unsafe {
                at = whole.add(before);
                unmap(whole, before);
                unmap(at.add(bytes), HUGE_PAGE - before);
            }
        }
        if !at.is_null() {
            // SAFETY: this part of the mapping. It is advice: a refusal changes nothing.
            unsafe { libc::madvise(at.cast(), huge(needed).min(bytes), MADV_HUGEPAGE) };
        }
        at
    }

    pub(super) unsafe fn free(at: *mut u8, bytes: usize) {
        // SAFETY: the caller's.
        unsafe { unmap(at, length(bytes)) };
    }

    /// # Safety
    /// A part of a mapping that nobody uses.
    unsafe fn unmap(at: *mut u8, bytes: usize) {
        if bytes > 0 {
            // SAFETY: the caller's.
            unsafe { libc::munmap(at.cast(), bytes) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod mapped {
    pub(super) fn fresh(bytes: usize, _needed: usize) -> *mut u8 {
        super::allocated(bytes)
    }

    pub(super) unsafe fn free(at: *mut u8, bytes: usize) {
        // SAFETY: the caller's.
        unsafe { std::alloc::dealloc(at, super::layout(bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_begins_at_a_huge_page_and_is_all_there() {
        for bytes in [ALIGN, 1 << 20, HUGE, HUGE + (256 << 10), HUGE + (1 << 20), HUGE + (7 << 18), 37 << 20] {
            let all = [fresh(bytes, bytes), fresh(bytes, bytes - ALIGN)];
            for (i, ptr) in all.into_iter().enumerate() {
                assert!(!ptr.is_null() && (bytes < HUGE || ptr.addr().is_multiple_of(HUGE_PAGE)));
                // SAFETY: so many bytes are there.
                unsafe { ptr.write_bytes(i as u8 + 1, bytes) };
            }
            for (i, ptr) in all.into_iter().enumerate() {
                // SAFETY: as above; then nobody uses it.
                unsafe {
                    assert_eq!((*ptr, *ptr.add(bytes - 1)), (i as u8 + 1, i as u8 + 1));
                    free(ptr, bytes);
                }
            }
        }
    }
}
