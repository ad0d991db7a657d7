//! What the gradients of a node's run are made into for its edges, and what its errors say.

use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::tensor::Tensor;
use crate::autograd::tensor::grad::{fit_complex, fit_edge};
use crate::error::{Error, ErrorKind, Result};

/// Whether the node is that of a custom Function.
pub(super) fn is_foreign(node: &Node) -> bool {
    matches!(node.op(), NodeOp::Other(o) if o.as_any().is_some())
}

/// Fits the gradient for edge `k` of a node.
pub(super) fn fit_at(g: Tensor, e: &Edge, k: usize, node: &Node) -> Result<Tensor> {
    (if g.dtype().is_complex() && is_foreign(node) { fit_complex(g, e) } else { fit_edge(g, e) }).map_err(|err| {
        let text = format!("Function {} returned an invalid gradient at index {k} - {}", node.name(), err.message());
        with_forward_line(Error::new(err.kind(), text), node)
    })
}

/// Adds the forward line to an error that a node's backward raised.
pub(super) fn with_forward_line(e: Error, node: &Node) -> Error {
    if node.is_freed() && e.kind() == ErrorKind::Graph {
        return e;
    }
    match node.site().describe() {
        Some(line) => e.note(format!("{} was recorded by the forward call at {line}", node.name())),
        None => e,
    }
}
