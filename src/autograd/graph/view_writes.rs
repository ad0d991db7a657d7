//! Writes through views and to their bases: which are refused, and what a recorded one does to the history of both.

use crate::autograd::dispatch::apply::{out_meta, run_vjp};
use crate::autograd::dispatch::mode::{self, Watch};
use crate::autograd::dispatch::record::{self, NodeRecord};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Edge, Edges, Node, NodeOp, OutMeta};
use crate::autograd::graph::view::{Creation, ViewOp, mark, ops_from_base, regenerate, view};
use crate::autograd::graph::vjp::{Name, Vjp, VjpCx};
use crate::autograd::primitives;
use crate::autograd::tensor::Tensor;
use crate::error::{Error, Result};
use crate::layout::Strides;
use smallvec::SmallVec;
use std::sync::Arc;

/// A node's name as PyTorch says it in these errors: `UnbindBackward0` is Unbind, `SqueezeBackward1` Squeeze1, `MyFnBackward` MyFn.
fn function_name(node: &str) -> String {
    match node.rsplit_once("Backward") {
        Some((name, "" | "0")) => name.into(),
        Some((name, number)) if number.bytes().all(|c| c.is_ascii_digit()) => format!("{name}{number}"),
        _ => node.into(),
    }
}

/// The error for a write to a view, by `label`; without one, for the use of a view whose base was written. PyTorch's text comes first.
#[cold]
pub(super) fn write_refused(t: &Tensor, creation: Creation, label: Option<&str>) -> Error {
    let of = t.read().grad_fn.clone().map(|e| (e.nr, e.node.name()));
    let what = if label.is_some() { "is being" } else { "its base or another view of its base has been" };
    let made_in = |mode: &str| match &of {
        Some((nr, node)) => {
            let name = function_name(node);
            format!("Output {nr} of {name} is a view of a view which was created in {mode} mode and {what} modified inplace")
        }
        None => format!("A view was created in {mode} mode and {what} modified inplace"),
    };
    let said = match (&of, creation) {
        (_, Creation::Inference) => format!("{} in normal mode.", made_in("inference")),
        // What has no node was made while nothing was recorded.
        (_, Creation::NoGrad) | (None, _) => format!("{} with grad mode enabled.", made_in("no_grad")),
        (Some((nr, node)), _) => format!("Output {nr} of {} is a view and {what} modified inplace.", function_name(node)),
    };
    let ambiguous = |mode: &str| {
        format!(
            "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and \
             the inplace either both inside the {mode} block (if you don't want the inplace to be tracked) or both outside (if you want the \
             inplace to be tracked)."
        )
    };
    let why = match creation {
        Creation::Several => "This view is the output of a function that returns multiple views. Such functions do not allow the output \
                              views to be modified inplace. You should replace the inplace operation by an out-of-place one."
            .into(),
        Creation::NoGrad => ambiguous("no_grad"),
        Creation::Inference => ambiguous("inference_mode"),
        Creation::Function | Creation::Normal => {
            "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle \
             view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This \
             behavior is forbidden. You can fix this by cloning the output of the custom Function."
                .to_owned()
        }
    };
    Error::runtime(match label {
        Some(label) => format!("{said} {why} (in {label})"),
        None => format!("{said} {why}"),
    })
}

/// Checks whether an in-place operation may write to `t` and be recorded.
pub fn check_inplace(t: &Tensor, records: bool, label: &'static str) -> Result<()> {
    let mode = mode::current();
    if t.is_inference() && !mode.inference && !(records && t.read().requires_grad && t.is_leaf()) {
        return Err(Error::runtime(format!(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before \
             doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details. (in {label})"
        )));
    }
    if mode.watch != 0 {
        if mode.watches(Watch::Captured) {
            crate::autograd::transforms::mutation_guard::check(t, label)?;
        }
        if mode.watches(Watch::Writing) {
            crate::autograd::dispatch::write_callback::announce(t)?;
        }
    }
    if records && mode.grad { check_recorded_write(t, label) } else { Ok(()) }
}

/// Checks whether a write to `t` may be recorded, from its history alone.
pub fn check_recorded_write(t: &Tensor, label: &'static str) -> Result<()> {
    if let Some(v) = t.meta(|m| m.and_then(|m| m.view.clone())) {
        if v.creation != Creation::Normal {
            return Err(write_refused(t, v.creation, Some(label)));
        }
        if v.base.is_leaf() && t.requires_grad() {
            return Err(Error::runtime(format!(
                "a view of a leaf Variable that requires grad is being used in an in-place operation. (in {label}: write under no_grad, or \
                 to a clone())"
            )));
        }
    }
    if t.read().requires_grad && t.is_leaf() {
        return Err(Error::runtime(format!(
            "a leaf Variable that requires grad is being used in an in-place operation. (in {label}: write under no_grad, or to a clone())"
        )));
    }
    Ok(())
}

/// Makes `edge` the history of `t` after a recorded in-place write. A write through a view becomes a write to a part of its base.
/// `written` is the input of the node that `t` was before.
pub(crate) fn rebase(t: &Tensor, edge: Edge, written: usize) -> Result<()> {
    let info = t.meta(|m| m.and_then(|m| m.view.clone()));
    let Some(info) = info else {
        record::link(t, edge);
        return Ok(());
    };
    let node = edge.node;
    let base = &info.base;
    let mut edges: Edges = node.edges().iter().cloned().collect();
    edges[written] = if base.requires_grad() { base.gradient_edge()? } else { None };
    let meta = out_meta(&base.read().value);
    let site = node.site();
    let ops = ops_from_base(t, &info);
    let by_place = ops.iter().any(|o| matches!(o, ViewOp::AsStrided { .. }));
    let geometry = by_place.then(|| base.with_array(|a| (Strides::from_slice(a.strides()), a.layout().offset())));
    let slices = CopySlices { ops, geometry, inner: node, written };
    let node = record::begin(NodeRecord::single(NodeOp::Other(Arc::new(slices)), edges, meta), site);
    record::link(base, Edge { node, nr: 0 });
    regenerate(t)
}

/// Makes `edge` the history of an output of a custom Function. Whatever `forward` wrote to a view, its node is the Function's.
pub fn function_output(t: &Tensor, edge: Edge) {
    if t.base().is_some() {
        let now = t.version();
        t.meta_mut(|m| {
            if let Some(v) = m.view.as_mut() {
                v.grad_fn_version = now;
            }
        });
    }
    record::link(t, edge);
}

/// Makes `edge` the history of what a custom Function has written in place: an input, or a tensor that it returns.
pub fn function_write(t: &Tensor, edge: Edge, input: Option<usize>) -> Result<()> {
    if let Some(input) = input {
        // The tensor is no leaf any more: what belonged to one goes.
        t.set_grad(None)?;
        let old = t.with_leaf_hooks(std::mem::take);
        drop(old);
        return rebase(t, edge, input);
    }
    function_output(t, edge);
    Ok(())
}

/// Marks the outputs of a custom Function that are views: no write through them is recorded.
pub fn function_view(t: &Tensor, several: bool) {
    mark(t, if several { Creation::Several } else { Creation::Function });
}

/// The node of a write to a part of a base. The gradient of that part goes through the node of the operation that wrote it.
struct CopySlices {
    ops: SmallVec<[ViewOp; 1]>,
    /// Strides and offset of the base, if one of `ops` is `as_strided`.
    geometry: Option<(Strides, usize)>,
    inner: Arc<Node>,
    /// The input of `inner` that is the part before the write. Its only output is the part after it.
    written: usize,
}

impl Vjp for CopySlices {
    fn node_name(&self) -> Name {
        "CopySlices".into()
    }

    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let result = match &self.geometry {
            None => primitives::contiguous_copy(g)?,
            Some(geometry) => primitives::in_geometry(g, geometry, &self.ops)?,
        };
        let mut part = result.clone();
        for op in &self.ops {
            part = view(&part, op.clone())?;
        }
        let mut needs: SmallVec<[bool; 4]> = SmallVec::from_slice(cx.needs);
        needs[self.written] &= self.inner.edges()[self.written].is_some();
        let inner = run_vjp(&self.inner, &needs, &Grads::from_elem(Some(primitives::contiguous_copy(&part)?), 1))?;
        let mut out = Grads::new();
        for (i, r) in inner.into_iter().enumerate() {
            if i != self.written {
                out.push(r);
                continue;
            }
            if cx.needs(i) {
                match r {
                    Some(r) => primitives::copy_(&part, &primitives::fit(r, &part.with_array(OutMeta::of))?)?,
                    None => primitives::zero_(&part)?,
                }
                out.push(Some(result.clone()));
            } else {
                out.push(None);
            }
        }
        Ok(out)
    }

    fn inner(&self) -> Option<&Arc<Node>> {
        Some(&self.inner)
    }

    fn release(&self) {
        // A higher-order derivative may reach the inner node itself through an output that it saved. Then it is freed when it has run.
        if Arc::strong_count(&self.inner) == 1 {
            self.inner.release();
        }
    }
}
