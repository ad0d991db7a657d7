//! One node alone, outside of a pass.

use crate::autograd::dispatch::apply::run_vjp;
use crate::autograd::dispatch::call_site::Inherit;
use crate::autograd::dispatch::mode;
use crate::autograd::engine::accumulate;
use crate::autograd::engine::edge_fit::with_forward_line;
use crate::autograd::engine::fork::RunningPass;
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::primitives;
use crate::autograd::tensor::grad::fit_edge;
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// Calls one node directly, as `grad_fn(grad)` does. Frees nothing.
pub fn call_node(node: &Arc<Node>, grads: Grads) -> Result<Grads> {
    if grads.len() != node.outs().len() {
        return Err(Error::type_(format!("{}: expected {} gradients, got {}", node.name(), node.outs().len(), grads.len())));
    }
    let _running = RunningPass::begin();
    if let NodeOp::Accumulate(leaf) = node.op() {
        let given = match grads.into_iter().next().flatten() {
            Some(g) => Some(fit_edge(g, &Edge { node: node.clone(), nr: 0 })?),
            None => None,
        };
        accumulate::into_leaf(leaf, given, mode::is_grad_enabled())?;
        return Ok(Grads::new());
    }
    let needs: SmallVec<[bool; 4]> = node.edges().iter().map(Option::is_some).collect();
    let outs = {
        let _site = Inherit::new(node.site());
        run_vjp(node, &needs, &grads).map_err(|e| with_forward_line(e, node))?
    };
    let mut fitted = Grads::new();
    for (k, g) in outs.into_iter().enumerate() {
        fitted.push(match (g, node.edges().get(k).and_then(Option::as_ref)) {
            (Some(g), Some(e)) => {
                // The caller's gradients need not have the output's shape.
                let meta = &e.node.outs()[e.nr as usize];
                let fits = primitives::is_broadcast_of(&g.shape(), &meta.shape);
                Some(if fits { primitives::fit(g, meta)? } else { g })
            }
            (g, _) => g,
        });
    }
    Ok(fitted)
}
