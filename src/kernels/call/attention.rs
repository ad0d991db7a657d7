//! Scaled dot-product attention.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
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
    /// Of the forward pass' result.
    pub order: AttentionOrder,
}

/// How the rows of a result lie in memory, from the dimension with the longest steps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttentionOrder {
    BatchHeadsRows,
    BatchRowsHeads,
    RowsBatchHeads,
}

impl AttentionOrder {
    pub const ALL: [AttentionOrder; 3] = [AttentionOrder::BatchHeadsRows, AttentionOrder::BatchRowsHeads, AttentionOrder::RowsBatchHeads];

    /// Its dimensions: 0 is the batch, 1 the heads, 2 the rows.
    pub fn dims(self) -> [usize; 3] {
        match self {
            AttentionOrder::BatchHeadsRows => [0, 1, 2],
            AttentionOrder::BatchRowsHeads => [0, 2, 1],
            AttentionOrder::RowsBatchHeads => [2, 0, 1],
        }
    }
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
    /// Of q, k, v and perhaps the mask: the result, with the dimensions batch, heads and l in its order and then ev, and the logarithm of the
    /// sum of exponentials of each query's scores (batch, l, heads), which is at least float32 (0 for a query without any key).
    Forward,
    /// Of the gradient (batch, heads, l, ev), q, k, v, the result, the logarithms (batch, heads, l) and perhaps the mask: the gradients of
    /// q (batch, l, heads, e), k (batch, s, kv_heads, e) and v (batch, s, kv_heads, ev).
    Backward,
}

impl Attention {
    /// The shape of the forward pass' result, in its order.
    pub fn result_shape(&self) -> [usize; 4] {
        let sizes = [self.shape.batch, self.shape.heads, self.shape.l];
        let [x, y, z] = self.order.dims().map(|d| sizes[d]);
        [x, y, z, self.shape.ev]
    }

    /// Rows of this result from one element of the batch, one head and one query to the next.
    pub fn row_steps(&self) -> [usize; 3] {
        let ([x, y, z], [_, second, third, _]) = (self.order.dims(), self.result_shape());
        let mut steps = [0; 3];
        (steps[x], steps[y], steps[z]) = (second * third, third, 1);
        steps
    }
}

impl Family for Attention {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
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
                    all(ins, &[(&q, dtype), (&k, dtype), (&v, dtype)])
                        && mask(3)
                        && all(outs, &[(&self.result_shape(), dtype), (&[batch, l, heads], wide)])
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

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        match self.pass {
            AttentionPass::Forward => 2,
            AttentionPass::Backward => 3,
        }
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        let shape = AttentionShape { batch: 1, heads: 1, kv_heads: 1, l: 1, s: 1, e: 1, ev: 1 };
        vec![Attention {
            pass: AttentionPass::Forward,
            shape,
            scale: Scalar::Float(1.0),
            causal: false,
            mask: false,
            order: AttentionOrder::BatchHeadsRows,
        }]
    }
}
