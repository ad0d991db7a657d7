//! Scaled dot-product attention, block by block: the scores of a block of queries and a block of keys stay in the cache, and the softmax is
//! kept as a running maximum and sum (FlashAttention, Dao et al. 2022). The backward pass computes the scores again. So memory grows with
//! the length, not with its square.
//!
//! Not here: derivatives of the second order and dropout, which are composed of operations (`ops/attention.rs`).

pub(super) mod compute;
mod backward;
mod forward;
#[cfg(test)]
mod tests;

use crate::backend::cpu::common::blocks::{BlockElement, Strided4};
use crate::call::AttentionShape;
use crate::error::Result;

/// Queries and keys of a block.
const QUERIES: usize = 64;
const KEYS: usize = 128;
/// Elements between the rows of a block of scores. Not a power of two: lines of one column would share few places of the cache.
const SCORES: usize = KEYS + 16;

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
    /// Rows of the result from one element of the batch, one head and one query to the next.
    pub row_steps: [usize; 3],
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

impl<T: BlockElement> AttentionJob<T> {
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

/// `softmax(q k^T * scale + mask) v` into `out`, rows of `ev` elements that lie as the job says, and the logarithms of the sums into `lse`,
/// (batch, l, heads).
///
/// # Errors
/// There is no room for copies of keys and values.
///
/// # Safety
/// Operands are readable as the shape says; outputs, row-major, overlap nothing else.
pub unsafe fn forward<T: BlockElement>(job: &AttentionJob<T>, out: *mut T, lse: *mut T) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { T::run(&forward::Forward { job, out, lse }) }
}

/// The gradients of q (batch, l, heads, e), k (batch, s, kv_heads, e) and v (batch, s, kv_heads, ev).
///
/// # Errors
/// As for `forward`.
///
/// # Safety
/// As for `forward`; rows of q, g and o are dense.
pub unsafe fn backward<T: BlockElement>(job: &AttentionJob<T>, from: &GradientSources<T>, to: [*mut T; 3]) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { T::run(&backward::Backward { job, from, to }) }
}
