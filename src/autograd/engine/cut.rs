//! Zeros that stay zeros: where a choice such as `where` or `clamp` did not take an element, its gradient is 0, and so is everything behind it, however
//! steep: 0 times the infinite slope of `log` at 0 would be nan. A pass marks gradients that such a choice has made, as far as nodes keep every
//! element at its place. Gradients without a mark are multiplied as they are: a 0 that a slope of 0 has made says nothing about an infinite one.

use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::primitives::cut;
use crate::autograd::tensor::Tensor;
use crate::error::Result;

/// Whether the gradients that a node makes have the mark, if the one that it was given has (`is_marked`).
#[inline]
pub(super) fn marks(node: &Node, is_marked: bool) -> bool {
    match node.op() {
        NodeOp::Pointwise(op) => is_marked || op.row.info().cuts,
        NodeOp::Other(op) => op.cuts(is_marked),
        NodeOp::Accumulate(_) => false,
    }
}

/// The gradients `made` from a marked one `g`, 0 in place of nan where that is 0. What is a number stays: it may have a derivative, as that of a square
/// has at 0.
pub(super) fn kept(made: Grads, g: &Tensor) -> Result<Grads> {
    let fits = |d: &Tensor| d.dtype() == g.dtype() && d.shape() == g.shape() && d.dtype().is_differentiable();
    let one = |d: Option<Tensor>| match d {
        Some(d) if fits(&d) => cut(&d, g).map(Some),
        d => Ok(d),
    };
    made.into_iter().map(one).collect()
}
