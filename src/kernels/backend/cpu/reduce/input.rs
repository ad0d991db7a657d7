//! Where a reduction's elements come from: memory, or a program that makes them as they are read.

use crate::backend::cpu::cast::mover;
use crate::layout::DType;
use std::cell::RefCell;
use std::mem::MaybeUninit;

/// Elements that are made when a reduction wants them, by their place in memory order.
pub trait BlockProducer: Sync {
    /// The elements `start..start + len`, either where they lie anyway or in `buffer`. Each is made once.
    ///
    /// # Safety
    /// There are so many elements, and `buffer` has room for them, aligned.
    unsafe fn make(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8;

    /// Where all elements lie, made there now, for who reads a few here and there; None where nobody keeps them, so that each may be made
    /// alone.
    fn all(&self) -> Option<*const u8>;

    /// To be called now and then, with nothing borrowed: whether to go on. If not, nothing is made any more, and what the reduction gives
    /// does not matter.
    fn goes_on(&self) -> bool;
}

/// What a reduction reads.
#[derive(Clone, Copy)]
pub enum ReduceInput<'a> {
    Memory(*const u8),
    /// Elements of a dense array, from its first in memory order on.
    Made(&'a dyn BlockProducer),
}

// SAFETY: memory is only read; the caller of a reduction keeps it alive.
unsafe impl Sync for ReduceInput<'_> {}
// SAFETY: as above.
unsafe impl Send for ReduceInput<'_> {}

/// Elements of a narrow type, for loops that read the type that they are computed in: they are widened as they are read.
pub(crate) struct WidenedBlocks<'a> {
    pub from: ReduceInput<'a>,
    pub dtype: DType,
}

impl BlockProducer for WidenedBlocks<'_> {
    unsafe fn make(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
        const TILE: usize = 1024;
        let (size, to) = (self.dtype.size(), self.dtype.computed());
        let widen = mover(self.dtype, to);
        let mut tile = [const { MaybeUninit::<u64>::uninit() }; TILE / 4];
        for at in (0..len).step_by(TILE) {
            let now = TILE.min(len - at);
            // SAFETY: the caller's; a tile has room for so many elements of at most two bytes.
            unsafe {
                let from = match self.from {
                    ReduceInput::Memory(p) => p.add((start + at) * size),
                    ReduceInput::Made(blocks) => blocks.make(start + at, now, tile.as_mut_ptr().cast()),
                };
                widen(1, now, from, (0, size as isize), buffer.add(at * to.size()), (0, to.size() as isize));
            }
        }
        buffer
    }

    fn all(&self) -> Option<*const u8> {
        None
    }

    fn goes_on(&self) -> bool {
        match self.from {
            ReduceInput::Memory(_) => true,
            ReduceInput::Made(blocks) => blocks.goes_on(),
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
    /// `n` rows of `columns` dense elements of `size` bytes, the first at `at`: where they begin, and the stride from row to row, in
    /// elements. What is made stays there until this thread asks again.
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
    let goes_on = blocks.goes_on();
    MADE.with(|m| {
        let mut m = m.borrow_mut();
        let buffer = room(&mut m, n * columns * size);
        if !goes_on {
            return (buffer.cast_const(), columns as isize);
        }
        if n == 1 || stride == columns as isize {
            // SAFETY: what the caller of a reduction promised of its source; the buffer was made large enough.
            return (unsafe { blocks.make(at as usize, n * columns, buffer) }, columns as isize);
        }
        for i in 0..n {
            let to = buffer.wrapping_add(i * columns * size);
            // SAFETY: as above.
            let from = unsafe { blocks.make(at as usize + i * stride as usize, columns, to) };
            if !std::ptr::eq(from, to) {
                // SAFETY: both hold a row, and what lies elsewhere is no part of the buffer.
                unsafe { std::ptr::copy_nonoverlapping(from, to, columns * size) };
            }
        }
        (buffer.cast_const(), columns as isize)
    })
}

/// A buffer with room for so many bytes.
pub(crate) fn room(lines: &mut Vec<CacheLine>, bytes: usize) -> *mut u8 {
    let wanted = bytes.div_ceil(64);
    if lines.len() < wanted {
        lines.resize(wanted, CacheLine([0; 64]));
    }
    lines.as_mut_ptr().cast()
}
