//! Views: tensors that share a base's memory, and how they are regenerated from it. Writes through them are in `view_writes`.

use crate::array::Array;
use crate::autograd::diagnostics::missing_gradient::{self, EndReason};
use crate::autograd::diagnostics::profiler;
use crate::autograd::dispatch::apply::out_meta;
use crate::autograd::dispatch::call_site;
use crate::autograd::dispatch::mode::{self, ModeGuard, Watch};
use crate::autograd::dispatch::op::{Arrays, Op, Outputs};
use crate::autograd::dispatch::operation_watcher::{self, CallKind};
use crate::autograd::dispatch::record::{self, History, NodeRecord};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Edge, Edges, NodeOp, OutMeta};
use crate::autograd::graph::saved_attributes::SavedAttributes;
pub use crate::autograd::graph::view_op::{ShownAttributes, ViewName, ViewOp};
pub(crate) use crate::autograd::graph::view_writes::rebase;
use crate::autograd::graph::view_writes::write_refused;
pub use crate::autograd::graph::view_writes::{check_inplace, check_recorded_write, function_output, function_view, function_write};
use crate::autograd::graph::vjp::{Name, Vjp, VjpCx};
use crate::autograd::primitives;
use crate::autograd::tensor::{Core, MathBits, Tensor, Value};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::transforms::forward_mode::Tangent;
use crate::autograd::transforms::level::WrappedTensor;
use crate::autograd::transforms::view_tangents;
use crate::error::{Error, Result};
use crate::host::language;
use crate::layout::{Dims, Strides};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

/// How a view was created (PyTorch's `CreationMeta`). Decides whether a write through it can be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    Normal,
    /// One of several views that one call returned (`unbind`, `split`, `chunk`).
    Several,
    /// Made while grad mode was off.
    NoGrad,
    /// Made in inference mode.
    Inference,
    /// Returned by a custom Function.
    Function,
}

impl Creation {
    /// The mark of a view of a view: the newer one wins, unless the older one is of inference mode, which stays.
    fn then(self, newer: Creation) -> Creation {
        if self == Creation::Inference || newer == Creation::Normal { self } else { newer }
    }
}

/// The relation of a view to its base.
#[derive(Clone, Debug)]
pub struct ViewInfo {
    pub base: Tensor,
    /// From the base to the view.
    pub ops: SmallVec<[ViewOp; 1]>,
    pub creation: Creation,
    /// The version to which the view's `grad_fn` belongs.
    pub(crate) grad_fn_version: Option<u32>,
    /// The base's layout from which `ops` start, as counted by `Meta::layout_changes`.
    pub(crate) layout_changes: u32,
}

impl ViewInfo {
    #[inline]
    pub(crate) fn is_stale(&self, core: &Core) -> bool {
        core.with_storage(|s| core.version.current(s)) != self.grad_fn_version && (core.grad_fn.is_some() || self.base.requires_grad())
    }
}

/// A view operation in a node.
#[derive(Debug, Clone)]
pub struct ViewCall {
    pub op: ViewOp,
    /// Another name than the operation's own (`t`, `unbind`, ...).
    name: Option<ViewName>,
    in_shape: Dims,
    /// Strides and offset of the input, for `as_strided`, which ignores the input's layout.
    in_geometry: Option<(Strides, usize)>,
}

impl Op for ViewCall {
    fn name(&self) -> &'static str {
        "view"
    }
    fn forward(&self, inputs: &[&Array]) -> Result<Arrays> {
        Ok(SmallVec::from_elem(self.op.apply_to(inputs[0])?, 1))
    }
    fn view(&self) -> Option<(&ViewOp, Option<ViewName>)> {
        Some((&self.op, self.name))
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let input = &batch.inputs[0];
        let rank = if let ViewOp::Expand(shape) = &self.op { shape.len() } else { 0 };
        let one = || {
            let t = input.aligned(rank)?;
            let stride = Some(t.with_array(|a| a.strides()[0]));
            let Some(op) = self.op.shifted(batch.size, stride) else { return Err(Error::runtime("vmap: a view by place lost its stride")) };
            Ok(SmallVec::from_elem(view(&t, op)?, 1))
        };
        Some(one())
    }
}

impl Vjp for ViewCall {
    fn cuts(&self, is_cut: bool) -> bool {
        is_cut
    }
    fn node_name(&self) -> Name {
        self.name.map_or(self.op.node_names()[0], |n| n.node).into()
    }

    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = self.op.saved_attributes(&self.in_shape);
        match self.name.map_or(ShownAttributes::All, |n| n.attributes) {
            ShownAttributes::All => {}
            ShownAttributes::AllBut(name) => attributes.retain(|k| k.0 != name),
            ShownAttributes::Nothing => attributes.clear(),
        }
        attributes
    }

    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let out = match &self.op {
            // The engine sums over expanded dimensions when it fits the gradient.
            ViewOp::Expand(_) | ViewOp::Alias => g.clone(),
            ViewOp::View(_) | ViewOp::Unsqueeze(_) | ViewOp::Squeeze(_) => primitives::reshape(g, &self.in_shape)?,
            ViewOp::AsReal => primitives::as_complex(g)?,
            ViewOp::AsComplex => primitives::as_real(g)?,
            ViewOp::Bits(MathBits { conj: true, neg: false }) => view(g, self.op.clone())?,
            ViewOp::Bits(bits) => primitives::with_bits(g, *bits)?,
            ViewOp::Transpose(a, b) => view(g, ViewOp::Transpose(*a, *b))?,
            ViewOp::Permute(dims) => {
                let mut inverse = dims.clone();
                for (i, d) in dims.iter().enumerate() {
                    inverse[*d] = i;
                }
                view(g, ViewOp::Permute(inverse))?
            }
            ViewOp::Select(..) | ViewOp::Slice { .. } | ViewOp::Diagonal { .. } | ViewOp::Unfold { .. } | ViewOp::AsStrided { .. } => {
                primitives::unview(g, &self.op, &self.in_shape, self.in_geometry.as_ref())?
            }
        };
        Ok(Grads::from_elem(Some(out), 1))
    }
}

/// Applies a view operation.
#[inline]
pub fn view(t: &Tensor, op: ViewOp) -> Result<Tensor> {
    view_as(t, op, None, Creation::Normal)
}

/// Applies a view operation under another node name, or as one of several results.
#[inline]
pub fn view_as(t: &Tensor, op: ViewOp, name: Option<ViewName>, creation: Creation) -> Result<Tensor> {
    if profiler::is_on() { view_seen(t, op, name, creation) } else { view_unseen(t, op, name, creation) }
}

/// `view_as` as an event of the profiler.
#[cold]
fn view_seen(t: &Tensor, op: ViewOp, name: Option<ViewName>, creation: Creation) -> Result<Tensor> {
    let _event = profiler::named(name.map_or(op.node_names()[0], |n| n.node), &[t]);
    view_unseen(t, op, name, creation)
}

fn view_unseen(t: &Tensor, op: ViewOp, name: Option<ViewName>, creation: Creation) -> Result<Tensor> {
    let mode = mode::current();
    if t.level() > 0
        && let Some(now) = t.unwrap_ended()
    {
        return view_unseen(&now, op, name, creation);
    }
    if mode.watches(Watch::ViewTangents) {
        view_tangents::inherit(&[t])?;
    }
    // Before the tensor is locked, because a level's rule calls dispatch again.
    let of_level = t.wrapped().map(|l| lower_view(t, &l, &op, name)).transpose()?;
    let (value, version, history, needs, inherited, tangent, mut info) = {
        let core = t.read();
        let value = match (of_level, &core.value) {
            (Some(made), _) => made,
            (None, Value::Array(a)) if !matches!(op, ViewOp::Bits(_)) => Value::Array(op.apply_to(a)?),
            (None, value @ (Value::Array(_) | Value::Lazy(_))) => op.of_value(value)?,
            // Another thread has made it a tensor of a level meanwhile.
            (None, Value::Wrapped(_)) => return Err(Error::runtime("a view of a tensor that another thread takes into a transform")),
        };
        if core.inference {
            let version = core.version.clone();
            drop(core);
            let out = Tensor::with_history(value, version, None);
            out.write().inference = true;
            return Ok(out);
        }
        let how = if mode.inference {
            Creation::Inference
        } else if !mode.grad {
            Creation::NoGrad
        } else {
            creation
        };
        let grad_fn_version = core.with_storage(|s| core.version.current(s));
        let info = match core.meta.as_ref().and_then(|m| m.view.as_ref()) {
            None => {
                let layout_changes = core.meta.as_ref().map_or(0, |m| m.layout_changes);
                ViewInfo { base: t.clone(), ops: SmallVec::from_elem(op.clone(), 1), creation: how, grad_fn_version, layout_changes }
            }
            Some(v) => {
                let mut ops = v.ops.clone();
                ops.push(op.clone());
                let creation = v.creation.then(how);
                ViewInfo { base: v.base.clone(), ops, creation, grad_fn_version, layout_changes: v.layout_changes }
            }
        };
        let mut history = History::new(mode);
        history.input(&core);
        history.at_level(core.value.level());
        let needs = core.needs_grad() && !crate::autograd::transforms::level::is_unrecorded(core.value.level());
        let dual = core.stored_tangent();
        (value, core.version.clone(), history, needs, core.path_ends.clone(), dual, info)
    };
    let tangent = tangent.map(|x| view_tangents::tangent_of_view(&t.with_array(|a| a.layout().clone()), &x, &op)).transpose()?;
    let meta = out_meta(&value);
    // The node's name, if watchers are to be told of the view.
    let told = operation_watcher::sees(mode, history.wrapped).then(|| Name::from(name.map_or(op.node_names()[0], |n| n.node)));
    let grad_fn = if history.is_recorded() && meta.dtype.is_differentiable() {
        let call = t.with_array(|a| ViewCall {
            in_geometry: matches!(op, ViewOp::AsStrided { .. }).then(|| (Strides::from_slice(a.strides()), a.layout().offset())),
            in_shape: Dims::from_slice(a.shape()),
            op,
            name,
        });
        let entry = NodeRecord::single(NodeOp::Other(Arc::new(call)), history.edges([t])?, meta);
        Some(Edge { node: record::begin(entry, call_site::current()), nr: 0 })
    } else {
        None
    };
    if info.ops.len() > 1 && info.ops.iter().all(|o| *o == ViewOp::Alias) {
        info.ops.truncate(1);
    }
    let out = Tensor::with_history(value, version, grad_fn);
    out.meta_mut(|m| m.view = Some(info));
    if tangent.is_some() {
        out.set_tangent(tangent);
    }
    if needs && !history.is_recorded() {
        let path_ends = missing_gradient::path_end(if mode.inference { EndReason::Inference } else { EndReason::NoGrad }, "a view", t);
        out.write().set_path_ends(path_ends);
    } else if inherited.is_some() && !needs {
        out.write().set_path_ends(inherited);
    }
    if let Some(node_name) = told {
        operation_watcher::tell("view", node_name, CallKind::Views, &[t], &out)?;
    }
    Ok(out)
}

/// The value of a view of a wrapped tensor, by the level's rule.
#[cold]
fn lower_view(t: &Tensor, l: &WrappedTensor, op: &ViewOp, name: Option<ViewName>) -> Result<Value> {
    let call = ViewCall { op: op.clone(), name, in_shape: Dims::from_slice(l.bottom().shape()), in_geometry: None };
    let made = l.level.apply(&l.level, &call, &[t])?;
    let value = made[0].read().value.clone();
    Ok(value)
}

/// How many views are made between two checks for interrupts.
const MANY: u32 = 1 << 15;

/// Several views of one tensor as the outputs of one node, whose vjp joins their gradients.
pub fn views(t: &Tensor, ops: &[ViewOp], node: impl Fn() -> NodeOp) -> Result<SmallVec<[Tensor; 4]>> {
    let (made, name) = (Cell::new(0u32), Cell::new(None));
    let one = |op: &ViewOp| {
        made.set(made.get().wrapping_add(1));
        if made.get().is_multiple_of(MANY) {
            language::interrupted()?;
        }
        view_as(t, op.clone(), name.get(), Creation::Several)
    };
    let mut history = History::of(mode::current(), [t]);
    history.at_level(t.level());
    if history.wrapped
        && let NodeOp::Other(several) = node()
        && let Cow::Borrowed(node) = several.node_name()
    {
        // At a level each view has a node of its own, which errors call by the operation's name.
        name.set(Some(ViewName { node, attributes: ShownAttributes::All }));
    }
    if ops.is_empty() || !history.is_recorded() || history.wrapped || t.is_inference() || !t.dtype().is_differentiable() {
        return ops.iter().map(one).collect();
    }
    let edges = history.edges([t])?;
    let of_input = t.meta(|m| m.and_then(|m| m.view.as_ref()).map_or(Creation::Normal, |v| v.creation));
    let outs: SmallVec<[Tensor; 4]> = {
        let _off = ModeGuard::grad(false);
        // No path ends here: the views get their history below.
        let _site = call_site::Inherit::new(call_site::Site::UNKNOWN);
        ops.iter().map(one).collect::<Result<_>>()?
    };
    let metas = outs.iter().map(|o| o.with_array(OutMeta::of)).collect();
    let node = record::begin(NodeRecord::new(node(), edges, metas), call_site::current());
    for (i, o) in outs.iter().enumerate() {
        mark(o, of_input.then(Creation::Several));
        record::link(o, Edge { node: node.clone(), nr: i as u32 });
    }
    Ok(outs)
}

/// Changes a tensor's own layout through a view operation (`transpose_` and similar).
pub fn view_inplace(t: &Tensor, op: ViewOp, label: &'static str, name: impl Into<ViewName>) -> Result<()> {
    let _event = profiler::named(label, &[t]);
    let mode = mode::current();
    let mut history = History::of(mode, [t]);
    history.at_level(t.level());
    let records = history.is_recorded() && t.dtype().is_differentiable();
    if mode.watches(Watch::ViewTangents) {
        view_tangents::inherit(&[t])?;
    }
    check_inplace(t, records, label)?;
    if let Some(e) = t.refuses_write(label) {
        return Err(e);
    }
    let call = ViewCall { op: op.clone(), name: Some(name.into()), in_shape: t.shape(), in_geometry: None };
    let new = match t.wrapped() {
        None => op.of_value(&t.read().value)?,
        Some(l) => l.level.apply(&l.level, &call, &[t])?[0].read().value.clone(),
    };
    let tangent = t.read().stored_tangent();
    let tangent = tangent.map(|x| view_tangents::tangent_of_view(&t.with_array(|a| a.layout().clone()), &x, &op)).transpose()?;
    let grad_fn = if records {
        let entry = NodeRecord::single(NodeOp::Other(Arc::new(call)), history.edges([t])?, out_meta(&new));
        Some(Edge { node: record::begin(entry, call_site::current()), nr: 0 })
    } else {
        None
    };
    t.increment_version(label);
    let now = t.version();
    let old;
    {
        let mut core = t.write();
        old = std::mem::replace(&mut core.value, new);
        let meta = core.meta.get_or_insert_default();
        match meta.view.as_mut() {
            Some(v) => {
                v.ops.push(op);
                // Without a node of this write, the view's node is made anew from its base.
                if records {
                    v.grad_fn_version = now;
                }
            }
            None => meta.layout_changes = meta.layout_changes.wrapping_add(1),
        }
    }
    drop(old);
    if tangent.is_some() {
        t.set_tangent(tangent);
    }
    if let Some(edge) = grad_fn {
        record::link(t, edge);
    }
    Ok(())
}

/// The operations that regenerate `t` from its base with the base's current layout. After an in-place view of the base (`transpose_`) the
/// recorded ones do not apply, so the view is described by its strides and offset.
pub(in crate::autograd) fn ops_from_base(t: &Tensor, info: &ViewInfo) -> SmallVec<[ViewOp; 1]> {
    if info.base.meta(|m| m.map_or(0, |m| m.layout_changes)) == info.layout_changes {
        return info.ops.clone();
    }
    let bits = t.math_bits().toggled(info.base.math_bits());
    let mut ops = t.with_array(|a| {
        let (shape, strides) = (Dims::from_slice(a.shape()), Strides::from_slice(a.strides()));
        SmallVec::from_elem(ViewOp::AsStrided { shape, strides, offset: a.layout().offset() }, 1)
    });
    if bits.any() {
        ops.push(ViewOp::Bits(bits));
    }
    ops
}

/// Regenerates the `grad_fn` of a view after a write to its base.
pub(crate) fn regenerate(t: &Tensor) -> Result<()> {
    let Some(info) = t.meta(|m| m.and_then(|m| m.view.clone())) else { return Ok(()) };
    if info.creation != Creation::Normal {
        return Err(write_refused(t, info.creation, None));
    }
    let _grad = ModeGuard::grad(true);
    let mut made = info.base.clone();
    for op in ops_from_base(t, &info) {
        made = view(&made, op)?;
    }
    let mut grad_fn = made.read().grad_fn.clone();
    if grad_fn.is_none() && t.read().grad_fn.is_some() {
        // The base has no history any more, and the view's current value comes from it, so the view's gradients go nowhere.
        let op = info.ops.last().cloned().unwrap_or(ViewOp::Alias);
        let call = ViewCall { op, name: None, in_shape: info.base.shape(), in_geometry: None };
        let entry = NodeRecord::single(NodeOp::Other(Arc::new(call)), Edges::from_elem(None, 1), t.with_array(OutMeta::of));
        grad_fn = Some(Edge { node: record::begin(entry, call_site::current()), nr: 0 });
    }
    if let Some(edge) = &grad_fn {
        record::move_retained(t, edge);
    }
    let now = t.version();
    let old = {
        let mut core = t.write();
        if let Some(v) = core.meta.as_mut().and_then(|m| m.view.as_mut()) {
            v.grad_fn_version = now;
        }
        std::mem::replace(&mut core.grad_fn, grad_fn)
    };
    drop(old);
    Ok(())
}

/// Says how a view came to be; nothing for a tensor that is no view.
pub(crate) fn mark(t: &Tensor, creation: Creation) {
    if let Some(v) = t.write().meta.as_mut().and_then(|m| m.view.as_mut()) {
        v.creation = creation;
    }
}

/// A view of a result that nobody else has: it is no view to its user.
pub fn unrelated(t: Tensor) -> Tensor {
    // The tensor of which it is a view may end here: not while this one is locked.
    let old = t.write().meta.as_mut().and_then(|m| m.view.take());
    drop(old);
    t
}
