//! The general end of a call of a custom Function: any outputs, written inputs, hooks around saved tensors. `short` takes the common case.

use super::apply::Call;
use super::context::FunctionCtx;
use super::kept_outputs::{self, is_of};
use super::node::{Backward, context_ref};
use super::outputs::{self, Roles};
use crate::autograd::dispatch::record::{self, NodeRecord};
use crate::autograd::graph::saved_hooks;
use crate::autograd::{Edge, Node, NodeOp, OutMeta, Saved, Tensor, anomaly, function_view};
use crate::error::Result;
use crate::python::args::as_tensor;
use crate::python::autograd::collector;
use crate::python::autograd::context_owner::ContextRef;
use crate::python::autograd::node::PyNode;
use crate::python::host::EndsUnlocked;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::Arc;

/// The outputs as the caller gets them, with their history if the call is recorded.
pub(super) fn finish<'py>(call: Call<'_, 'py>, output: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
    let Call { class: cls, site, inputs, separate, name, .. } = call;
    let (py, ctx, cell) = (output.py(), call.ctx.as_any(), call.ctx.get());
    let any = inputs.history.is_recorded();
    let (all, is_tuple) = outputs::as_tuple(output)?;
    let (to_save, dirty, non_diff) = {
        let state = cell.state.lock();
        let bind = |t: &Option<Py<PyTuple>>| t.as_ref().map(|t| t.bind(py).clone());
        (bind(&state.to_save), bind(&state.dirty), bind(&state.non_differentiable))
    };
    let raw: Vec<Option<Tensor>> = all.iter().map(|o| as_tensor(&o).cloned()).collect();
    if let Some(d) = &dirty {
        outputs::check_dirty(d, &raw, &cls.name()?.to_string())?;
    }
    if let Some(n) = &non_diff {
        outputs::check_non_differentiable(n, &cls.name()?.to_string())?;
    }
    let roles = Roles { inputs: &inputs.tensors, dirty, non_diff, saved: to_save.clone().filter(|_| separate), count: raw.len() };
    let differentiable = raw.iter().map(|t| t.as_ref().is_some_and(|t| roles.is_differentiable(t))).collect();
    cell.state.lock().differentiable = differentiable;
    if !any {
        let mut out = Vec::with_capacity(raw.len());
        for (o, t) in all.iter().zip(&raw) {
            out.push(match t {
                Some(t) => roles.settle(&o, t, None)?,
                None => o.unbind(),
            });
        }
        return outputs::give(py, output, out, is_tuple);
    }

    let metas: SmallVec<[OutMeta; 1]> = raw
        .iter()
        .map(|t| match t {
            Some(t) => t.with_array(OutMeta::of),
            None => OutMeta { shape: SmallVec::new(), dtype: crate::layout::DType::F32, device: crate::array::Device::CPU },
        })
        .collect();
    let edges = inputs.edges;
    let backward = Backward {
        ctx: ContextRef::owning(ctx.clone().unbind()),
        name,
        args: inputs.args,
        edges: edges.len(),
        tensors: raw.iter().map(Option::is_some).collect(),
        _ends: EndsUnlocked,
    };
    let node = record::begin(NodeRecord::new(NodeOp::Other(Arc::new(backward)), edges, metas), site);
    ctx.cast::<PyNode>()?.get().tie(&node);

    let kept = kept_inputs(to_save.as_ref(), &raw)?;
    let mut results: Vec<Py<PyAny>> = Vec::with_capacity(raw.len());
    let mut made: Vec<Option<Tensor>> = Vec::with_capacity(raw.len());
    let mut rebased: SmallVec<[usize; 1]> = SmallVec::new();
    let mut several = 0;
    for (j, (o, t)) in all.iter().zip(&raw).enumerate() {
        let Some(t) = t else {
            results.push(o.unbind());
            made.push(None);
            continue;
        };
        let differentiable = roles.is_differentiable(t);
        several += usize::from(differentiable);
        if differentiable && roles.is_written_view(t) {
            rebased.push(j);
        }
        let result = roles.settle(&o, t, differentiable.then(|| Edge { node: node.clone(), nr: j as u32 }))?;
        made.push(as_tensor(result.bind(py)).cloned());
        results.push(result);
    }
    if several > 1 {
        made.iter().flatten().for_each(|t| function_view(t, true));
    }
    save(cell, &node, to_save.as_ref(), kept, &raw, &made, &rebased)?;
    if anomaly::is_looking() {
        let outs: Vec<Tensor> = made.iter().flatten().cloned().collect();
        anomaly::look_at(&node, &outs)?;
    }
    collector::watch(py);
    let keeps_outputs = kept_outputs::noticed(cls, ctx, &node, &made)?;
    if keeps_outputs && made.len() > 1 {
        cell.state.lock().outputs = kept_outputs::hold(ctx, &node, &made)?;
    }
    match context_ref(&node) {
        Some(owner) if keeps_outputs => owner.fix(),
        // `forward` may have stored the context. The caller and the node have references of their own.
        Some(owner) => owner.settle(py, &node, 2),
        None => {}
    }
    outputs::give(py, output, results, is_tuple)
}

/// What `save_for_backward` was given beside outputs, with the histories from before the node becomes the outputs'. Nothing for outputs.
fn kept_inputs(to_save: Option<&Bound<'_, PyTuple>>, raw: &[Option<Tensor>]) -> PyResult<SmallVec<[Saved; 2]>> {
    let input = |o: Bound<'_, PyAny>| match as_tensor(&o) {
        Some(t) if !raw.iter().flatten().any(|r| r.same(t)) => Saved::input_beside(t, raw),
        _ => Ok(Saved::Nothing),
    };
    Ok(to_save.into_iter().flatten().map(input).collect::<Result<_>>()?)
}

/// Moves what `save_for_backward` was given to the node: outputs without their own history, everything else as it was.
fn save(
    cell: &FunctionCtx,
    node: &Arc<Node>,
    to_save: Option<&Bound<'_, PyTuple>>,
    inputs: SmallVec<[Saved; 2]>,
    raw: &[Option<Tensor>],
    made: &[Option<Tensor>],
    rebased: &[usize],
) -> PyResult<()> {
    let hooks = saved_hooks::current();
    let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
    let mut places = SmallVec::new();
    for (o, input) in to_save.into_iter().flatten().zip(inputs) {
        let Some(t) = as_tensor(&o) else {
            places.push(None);
            continue;
        };
        places.push(Some(saved.len() as u32));
        let output = raw.iter().position(|r| r.as_ref().is_some_and(|r| r.same(t)));
        let own = output.and_then(|j| made[j].as_ref().map(|m| (j, m)));
        let (kept, tensor) = match own {
            Some((j, m)) if is_of(m, node)? => (Saved::output(m, j as u32), m),
            Some((j, m)) if rebased.contains(&j) => (Saved::output_as_view(m, j as u32), m),
            Some(_) => (Saved::input(t)?, t),
            None => (input, t),
        };
        saved.push(match &hooks {
            Some(hooks) => saved_hooks::packed(&**hooks, kept, tensor)?,
            None => kept,
        });
    }
    node.save(saved);
    let mut state = cell.state.lock();
    state.places = places;
    state.node = Some(Arc::downgrade(node));
    let old = (state.to_save.take(), state.dirty.take(), state.non_differentiable.take());
    drop(state);
    drop(old);
    Ok(())
}
