//! Scaled dot-product attention.

use super::Seen;
use crate::layout::{DType, Scalar};

/// `softmax(q k^T * scale + mask) v`, for each head of each element of the batch, without the matrix of scores. Queries are
/// (batch, heads, l, e), keys (batch, kv_heads, s, e), values (batch, kv_heads, s, ev); consecutive query heads share a head of keys and
/// values. All are floats of one dtype. A mask (batch, heads, l, s) is bool (false: no attention) or a number to add, of the same dtype or
/// float32. A query without any key gives zeros.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Attention {
    pub pass: AttentionPass,
    pub shape: AttentionShape,
    pub scale: Scalar,
    /// Query i attends to keys 0 to i alone.
    pub causal: bool,
    pub mask: bool,
    /// The result of the forward pass is (batch, l, heads, ev).
    pub heads_inside: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttentionShape {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub l: usize,
    pub s: usize,
    pub e: usize,
    pub ev: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttentionPass {
    /// Of q, k, v and perhaps the mask: the result (batch, heads, l, ev), and the logarithm of the sum of exponentials of each query's
    /// scores (batch, l, heads), which is at least float32 (0 for a query without any key).
    Forward,
    /// Of the gradient (batch, heads, l, ev), q, k, v, the result, the logarithms (batch, heads, l) and perhaps the mask: the gradients of
    /// q (batch, l, heads, e), k (batch, s, kv_heads, e) and v (batch, s, kv_heads, ev).
    Backward,
}

impl Attention {
    pub fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    pub fn outputs(&self) -> usize {
        match self.pass {
            AttentionPass::Forward => 2,
            AttentionPass::Backward => 3,
        }
    }

    /// Whether operands and outputs are as described.
    pub(super) fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let AttentionShape { batch, heads, kv_heads, l, s, e, ev } = self.shape;
        let Some((_, dtype)) = outs.first().copied().flatten() else { return false };
        let is = |seen: &Seen<'_>, shape: &[usize], d: DType| seen.is_some_and(|(s, t)| s == shape && t == d);
        let (q, k, v, o) = ([batch, heads, l, e], [batch, kv_heads, s, e], [batch, kv_heads, s, ev], [batch, heads, l, ev]);
        let wide = dtype.computed();
        let groups = kv_heads > 0 && heads.is_multiple_of(kv_heads) || heads == 0;
        let mask = |at: usize| match (self.mask, ins.get(at)) {
            (false, None) => true,
            (true, Some(m)) => [dtype, wide, DType::Bool].iter().any(|d| is(m, &[batch, heads, l, s], *d)) && ins.len() == at + 1,
            _ => false,
        };
        let all = |seen: &[Seen<'_>], wanted: &[(&[usize], DType)]| {
            seen.len() >= wanted.len() && seen.iter().zip(wanted).all(|(seen, (shape, d))| is(seen, shape, *d))
        };
        dtype.is_float()
            && groups
            && outs.len() == self.outputs()
            && match self.pass {
                AttentionPass::Forward => {
                    let made = if self.heads_inside { [batch, l, heads, ev] } else { o };
                    all(ins, &[(&q, dtype), (&k, dtype), (&v, dtype)])
                        && mask(3)
                        && all(outs, &[(&made, dtype), (&[batch, l, heads], wide)])
                }
                AttentionPass::Backward => {
                    let lse = [batch, heads, l];
                    all(ins, &[(&o, dtype), (&q, dtype), (&k, dtype), (&v, dtype), (&o, dtype), (&lse, wide)])
                        && mask(6)
                        && all(
                            outs,
                            &[(&[batch, l, heads, e], dtype), (&[batch, s, kv_heads, e], dtype), (&[batch, s, kv_heads, ev], dtype)],
                        )
                }
            }
    }
}
