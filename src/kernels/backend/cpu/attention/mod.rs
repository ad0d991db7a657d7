//! Scaled dot-product attention, block by block: the scores of a block of queries and a block of keys stay in the cache, and the softmax is
//! kept as a running maximum and sum (FlashAttention, Dao et al. 2022). The backward pass computes the scores again. So memory grows with
//! the length, not with its square.
//!
//! `lanes` has the vectors of each instruction set, `tile` products of blocks, `forward` and `backward` the passes.
//!
//! Not here: derivatives of the second order and dropout, which are composed of operations (`ops/attention.rs`).

mod backward;
mod forward;
mod lanes;
mod tile;

use super::memory::alloc::Buffer;
use crate::backend::requests::AttentionShape;
use crate::error::Result;

/// Queries of a block.
const QUERIES: usize = 64;

/// float32 and float64.
pub trait AttentionElement: Copy + Send + Sync + PartialEq + PartialOrd + 'static {
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    fn narrow(v: f64) -> Self;
    fn plus(self, o: Self) -> Self;
    fn times(self, o: Self) -> Self;
    fn over(self, o: Self) -> Self;
    fn ln(self) -> Self;

    /// # Safety
    /// As for `forward`.
    unsafe fn forward(job: &AttentionJob<Self>, out: *mut Self, lse: *mut Self) -> Result<()>;

    /// # Safety
    /// As for `backward`.
    unsafe fn backward(job: &AttentionJob<Self>, from: &GradientSources<Self>, to: [*mut Self; 3]) -> Result<()>;
}

/// Elements (batch, head, row, column) in memory.
#[derive(Debug, Clone, Copy)]
pub struct Strided4<T> {
    pub ptr: *const T,
    pub strides: [isize; 4],
}

impl<T> Strided4<T> {
    #[inline(always)]
    fn row(&self, b: usize, h: usize, i: usize) -> *const T {
        let [sb, sh, si, _] = self.strides;
        self.ptr.wrapping_offset(b as isize * sb + h as isize * sh + i as isize * si)
    }
}

#[derive(Debug, Clone, Copy)]
pub enum AttentionMask<T> {
    Nothing,
    Bool(Strided4<u8>),
    Number(Strided4<T>),
}

/// What both passes read.
#[derive(Debug, Clone, Copy)]
pub struct AttentionJob<T> {
    pub shape: AttentionShape,
    pub scale: T,
    pub causal: bool,
    pub q: Strided4<T>,
    pub k: Strided4<T>,
    pub v: Strided4<T>,
    pub mask: AttentionMask<T>,
    /// The result is (batch, l, heads, ev).
    pub heads_inside: bool,
}
// SAFETY: operands are only read.
unsafe impl<T> Send for AttentionJob<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for AttentionJob<T> {}

/// What the backward pass reads besides: the gradient and the result, both with dense rows, and the logarithms, whose strides are those of
/// batch, head and row.
#[derive(Debug, Clone, Copy)]
pub struct GradientSources<T> {
    pub g: Strided4<T>,
    pub o: Strided4<T>,
    pub lse: Strided4<T>,
}
// SAFETY: only read.
unsafe impl<T> Send for GradientSources<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for GradientSources<T> {}

impl<T: AttentionElement> AttentionJob<T> {
    /// How many of `n` keys from `j` on query `i` attends to.
    #[inline(always)]
    fn limit(&self, i: usize, j: usize, n: usize) -> usize {
        if self.causal { (i + 1).saturating_sub(j).min(n) } else { n }
    }

    /// How many keys the queries before `end` attend to.
    fn keys(&self, end: usize) -> usize {
        if self.causal { self.shape.s.min(end) } else { self.shape.s }
    }
}

/// Temporary elements, not initialised.
fn scratch<T>(n: usize) -> Result<Buffer> {
    Buffer::new(n.saturating_mul(size_of::<T>()).max(1))
}

/// `softmax(q k^T * scale + mask) v` into `out`, (batch, heads, l, ev) or with heads inside, and the logarithms of the sums into `lse`, (batch, l, heads).
///
/// # Errors
/// There is no room for copies of keys and values.
///
/// # Safety
/// Operands are readable as the shape says; outputs, row-major, overlap nothing else.
pub unsafe fn forward<T: AttentionElement>(job: &AttentionJob<T>, out: *mut T, lse: *mut T) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { T::forward(job, out, lse) }
}

/// The gradients of q (batch, l, heads, e), k (batch, s, kv_heads, e) and v (batch, s, kv_heads, ev).
///
/// # Errors
/// As for `forward`.
///
/// # Safety
/// As for `forward`; rows of q, g and o are dense.
pub unsafe fn backward<T: AttentionElement>(job: &AttentionJob<T>, from: &GradientSources<T>, to: [*mut T; 3]) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { T::backward(job, from, to) }
}

/// Runs a pass with the vectors of this machine's instruction set.
macro_rules! element {
    ($t:ty, $avx512:ty, $avx2:ty) => {
        impl AttentionElement for $t {
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

            unsafe fn forward(job: &AttentionJob<$t>, out: *mut $t, lse: *mut $t) -> Result<()> {
                #[cfg(target_arch = "x86_64")]
                match crate::backend::cpu::num::instruction_set() {
                    // SAFETY: the caller's; this machine has the instructions.
                    crate::backend::cpu::num::InstructionSet::Avx512 => return unsafe { forward::run::<$avx512>(job, out, lse) },
                    // SAFETY: as above.
                    crate::backend::cpu::num::InstructionSet::Avx2 => return unsafe { forward::run::<$avx2>(job, out, lse) },
                    crate::backend::cpu::num::InstructionSet::Base => {}
                }
                // SAFETY: the caller's.
                unsafe { forward::run::<lanes::PlainLanes<$t>>(job, out, lse) }
            }

            unsafe fn backward(job: &AttentionJob<$t>, from: &GradientSources<$t>, to: [*mut $t; 3]) -> Result<()> {
                #[cfg(target_arch = "x86_64")]
                match crate::backend::cpu::num::instruction_set() {
                    // SAFETY: the caller's; this machine has the instructions.
                    crate::backend::cpu::num::InstructionSet::Avx512 => return unsafe { backward::run::<$avx512>(job, from, to) },
                    // SAFETY: as above.
                    crate::backend::cpu::num::InstructionSet::Avx2 => return unsafe { backward::run::<$avx2>(job, from, to) },
                    crate::backend::cpu::num::InstructionSet::Base => {}
                }
                // SAFETY: the caller's.
                unsafe { backward::run::<lanes::PlainLanes<$t>>(job, from, to) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod elements {
    use super::*;
    element!(f32, crate::backend::cpu::num::F32x16, lanes::F32x8);
    element!(f64, lanes::F64x8, lanes::F64x4);
}

#[cfg(not(target_arch = "x86_64"))]
mod elements {
    use super::*;
    element!(f32, (), ());
    element!(f64, (), ());
}
