//! Vectors of each instruction set and products of small blocks, for kernels that do more with a product than to store it (`attention`,
//! `recurrent`). Not here: products of whole matrices (`matmul`).

pub(in crate::backend::cpu) mod lanes;
pub(in crate::backend::cpu) mod tile;

use crate::backend::cpu::matmul::transposed::transpose;
use crate::host::memory::cache_line::{LINE, prefetch_line};
use lanes::{Lanes, PlainLanes};

/// Lanes of the longest vectors, and those of all others divide it.
pub(in crate::backend::cpu) const WHOLE: usize = 16;

/// float32 and float64.
pub trait BlockElement: Copy + Send + Sync + PartialEq + PartialOrd + 'static {
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    fn narrow(v: f64) -> Self;
    fn plus(self, o: Self) -> Self;
    fn times(self, o: Self) -> Self;
    fn over(self, o: Self) -> Self;
    fn ln(self) -> Self;

    /// Writes `rows` stretches of `columns` numbers, which begin `step` apart, as the columns of a matrix with rows `to_step` apart.
    ///
    /// # Safety
    /// They are readable and writable. Rows are a multiple of a vector's lanes, and columns one of `WHOLE`.
    unsafe fn transpose(rows: usize, columns: usize, from: *const Self, step: isize, to: *mut Self, to_step: usize);

    /// Runs a task with the vectors of this machine's instruction set.
    ///
    /// # Errors
    /// Those of the task.
    ///
    /// # Safety
    /// What the task requires.
    unsafe fn run<W: BlockWork<Self>>(work: &W) -> crate::error::Result<()>;
}

/// Work that is the same for all instruction sets.
pub trait BlockWork<T> {
    /// # Safety
    /// What the work requires, and the machine has the instructions of `V`.
    #[allow(private_bounds, reason = "vectors are this module's")]
    unsafe fn work<V: Lanes<T = T>>(&self) -> crate::error::Result<()>;
}

/// A part of the work, on one thread, which is compiled for each instruction set.
pub(in crate::backend::cpu) trait BlockTask<T> {
    /// # Safety
    /// As for `BlockWork::work`.
    unsafe fn task<V: Lanes<T = T>>(&self);
}

macro_rules! element {
    ($t:ty, $avx512:ty, $avx2:ty) => {
        impl BlockElement for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "one macro for both widths")]
            fn narrow(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn plus(self, o: Self) -> Self {
                self + o
            }
            #[inline(always)]
            fn times(self, o: Self) -> Self {
                self * o
            }
            #[inline(always)]
            fn over(self, o: Self) -> Self {
                self / o
            }
            fn ln(self) -> Self {
                <$t>::ln(self)
            }

            unsafe fn transpose(rows: usize, columns: usize, from: *const $t, step: isize, to: *mut $t, to_step: usize) {
                // SAFETY: the caller's; whole vectors are written, and this machine has the instructions.
                unsafe { transpose::<$t>(crate::simd::instruction_set(), rows, columns, from, step, to, to_step) }
            }

            unsafe fn run<W: BlockWork<$t>>(work: &W) -> crate::error::Result<()> {
                #[cfg(target_arch = "x86_64")]
                match crate::simd::instruction_set() {
                    // SAFETY: the caller's; this machine has the instructions.
                    crate::simd::InstructionSet::Avx512 => return unsafe { work.work::<$avx512>() },
                    // SAFETY: as above.
                    crate::simd::InstructionSet::Avx2 => return unsafe { work.work::<$avx2>() },
                    crate::simd::InstructionSet::Base => {}
                }
                // SAFETY: the caller's.
                unsafe { work.work::<PlainLanes<$t>>() }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
element!(f32, crate::simd::F32x16, lanes::F32x8);
#[cfg(target_arch = "x86_64")]
element!(f64, lanes::F64x8, lanes::F64x4);
#[cfg(not(target_arch = "x86_64"))]
element!(f32, (), ());
#[cfg(not(target_arch = "x86_64"))]
element!(f64, (), ());

/// Elements (batch, head, row, column) in memory.
#[derive(Debug, Clone, Copy)]
pub struct Strided4<T> {
    pub ptr: *const T,
    pub strides: [isize; 4],
}

impl<T> Strided4<T> {
    #[inline(always)]
    pub(in crate::backend::cpu) fn row(&self, b: usize, h: usize, i: usize) -> *const T {
        let [sb, sh, si, _] = self.strides;
        self.ptr.wrapping_offset(b as isize * sb + h as isize * sh + i as isize * si)
    }

    /// One matrix of rows that are `step` apart.
    pub(in crate::backend::cpu) fn matrix(ptr: *const T, step: usize) -> Strided4<T> {
        Strided4 { ptr, strides: [0, 0, step as isize, 1] }
    }
}

/// So many rows ahead are asked for where rows are short and far apart.
pub(in crate::backend::cpu) const ROWS_AHEAD: usize = 8;

/// Asks for the cache lines of `n` elements, which may lie anywhere: where many short stretches are read or written, the machine does not
/// foresee the next one.
#[inline(always)]
pub(in crate::backend::cpu) fn prefetch<T>(from: *const T, n: usize) {
    for at in (0..n * size_of::<T>()).step_by(LINE) {
        prefetch_line(from.wrapping_byte_add(at));
    }
    // The last line too, if the stretch begins in the middle of one.
    prefetch_line(from.wrapping_add(n).wrapping_byte_sub(1));
}

/// Temporary elements, not initialised.
pub(in crate::backend::cpu) fn scratch<T>(n: usize) -> crate::error::Result<crate::host::memory::alloc::Buffer> {
    crate::host::memory::alloc::Buffer::new(n.saturating_mul(size_of::<T>()).max(1))
}
