//! The input of a reduction: elements in memory, or elements that a fused program computes while they are read.

use crate::backend::cpu::common::cast::convert_fn;
use crate::layout::DType;
use std::cell::RefCell;
use std::mem::MaybeUninit;

/// A producer of elements, addressed by their position in memory order.
pub trait BlockProducer: Sync {
    /// Computes the elements `start..start + len`, each once: a pointer to them, in `buffer` or in memory where they are stored anyway.
    ///
    /// # Safety
    /// The range lies inside the elements, and `buffer` has room for it, aligned.
    unsafe fn produce(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8;

    /// Computes all elements where they are stored, for a reader with random access. None if they are not stored; then any element may be
    /// computed alone.
    fn produce_all(&self) -> Option<*const u8>;

    /// Whether to continue. To be called regularly, without locks. After false nothing more is computed, and the results of the reduction
    /// are not used.
    fn should_continue(&self) -> bool;
}

/// The input of a reduction.
#[derive(Clone, Copy)]
pub enum ReduceInput<'a> {
    Memory(*const u8),
    /// Elements of a dense array in memory order.
    Made(&'a dyn BlockProducer),
}

// SAFETY: memory is only read; the caller of a reduction keeps it alive.
unsafe impl Sync for ReduceInput<'_> {}
// SAFETY: as above.
unsafe impl Send for ReduceInput<'_> {}

/// Elements of a narrow dtype, widened while they are read, for loops over the dtype that they are computed in.
pub(crate) struct WidenedBlocks<'a> {
    pub from: ReduceInput<'a>,
    pub dtype: DType,
    /// The wider dtype.
    pub to: DType,
}

impl BlockProducer for WidenedBlocks<'_> {
    unsafe fn produce(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
        const TILE: usize = 1024;
        let (size, to) = (self.dtype.size(), self.to);
        let widen = convert_fn(self.dtype, to);
        let mut tile = [const { MaybeUninit::<u64>::uninit() }; TILE / 4];
        for at in (0..len).step_by(TILE) {
            let now = TILE.min(len - at);
            // SAFETY: the caller's; a tile has room for so many elements of at most two bytes.
            unsafe {
                let from = match self.from {
                    ReduceInput::Memory(p) => p.add((start + at) * size),
                    ReduceInput::Made(blocks) => blocks.produce(start + at, now, tile.as_mut_ptr().cast()),
                };
                widen(1, now, from, (0, size as isize), buffer.add(at * to.size()), (0, to.size() as isize));
            }
        }
        buffer
    }

    fn produce_all(&self) -> Option<*const u8> {
        None
    }

    fn should_continue(&self) -> bool {
        match self.from {
            ReduceInput::Memory(_) => true,
            ReduceInput::Made(blocks) => blocks.should_continue(),
        }
    }
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct CacheLine([u8; 64]);

thread_local! {
    static MADE: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

impl ReduceInput<'_> {
    /// `n` rows of `columns` dense elements of `size` bytes, the first at `at`: a pointer to the first, and the stride between rows in
    /// elements. Computed rows are valid until this thread calls this again.
    #[inline(always)]
    pub(crate) fn rows(&self, at: isize, n: usize, stride: isize, columns: usize, size: usize) -> (*const u8, isize) {
        match self {
            ReduceInput::Memory(p) => (p.wrapping_offset(at * size as isize), stride),
            ReduceInput::Made(blocks) => made(*blocks, at, n, stride, columns, size),
        }
    }
}

#[inline(never)]
fn made(blocks: &dyn BlockProducer, at: isize, n: usize, stride: isize, columns: usize, size: usize) -> (*const u8, isize) {
    let should_continue = blocks.should_continue();
    MADE.with(|m| {
        let mut m = m.borrow_mut();
        let buffer = reserve(&mut m, n * columns * size);
        if !should_continue {
            return (buffer.cast_const(), columns as isize);
        }
        if n == 1 || stride == columns as isize {
            // SAFETY: the promise of the caller of a reduction about its input; the buffer is large enough.
            return (unsafe { blocks.produce(at as usize, n * columns, buffer) }, columns as isize);
        }
        for i in 0..n {
            let to = buffer.wrapping_add(i * columns * size);
            // SAFETY: as above.
            let from = unsafe { blocks.produce(at as usize + i * stride as usize, columns, to) };
            if !std::ptr::eq(from, to) {
                // SAFETY: both hold a row, and a row in memory does not overlap the buffer.
                unsafe { std::ptr::copy_nonoverlapping(from, to, columns * size) };
            }
        }
        (buffer.cast_const(), columns as isize)
    })
}

/// Makes the buffer at least this many bytes long.
pub(crate) fn reserve(lines: &mut Vec<CacheLine>, bytes: usize) -> *mut u8 {
    let wanted = bytes.div_ceil(64);
    if lines.len() < wanted {
        lines.resize(wanted, CacheLine([0; 64]));
    }
    lines.as_mut_ptr().cast()
}
