//! The common call of a custom Function: `forward` has returned one new tensor. It does what `record` does, without its lists.

use super::apply::Call;
use super::kept_outputs;
use super::node::{Backward, context_ref};
use crate::autograd::dispatch::mode;
use crate::autograd::dispatch::record::{self, NodeRecord};
use crate::autograd::{Edge, NodeOp, OutMeta, Saved, Tensor, Value, anomaly, function_output};
use crate::python::args::as_tensor;
use crate::python::autograd::collector;
use crate::python::autograd::context_owner::{self, ContextRef};
use crate::python::autograd::node::PyNode;
use crate::python::host::EndsUnlocked;
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// What the node knows of the output; None if it is more than a new tensor of floats.
fn new_tensor(t: &Tensor) -> Option<OutMeta> {
    let core = t.read();
    let Value::Array(a) = &core.value else { return None };
    let plain = core.grad_fn.is_none() && !core.requires_grad && !core.inference && a.dtype().is_differentiable();
    let bare = core.meta.as_ref().is_none_or(|m| m.view.is_none() && m.tangent.is_none());
    (plain && bare).then(|| OutMeta::of(a))
}

/// Makes the node and gives the output its history. Returns the call, and has done nothing, where that is not what happened.
pub(super) fn finish<'a, 'py>(call: Call<'a, 'py>, output: &Bound<'py, PyAny>) -> PyResult<Result<Py<PyAny>, Call<'a, 'py>>> {
    let history = &call.inputs.history;
    if !history.is_recorded() || history.wrapped || history.dual || !mode::current().allows_fast_path() {
        return Ok(Err(call));
    }
    let Some(t) = as_tensor(output).filter(|t| !call.inputs.tensors.iter().any(|i| i.same(t))) else { return Ok(Err(call)) };
    let Some(meta) = new_tensor(t) else { return Ok(Err(call)) };
    let py = output.py();
    let cell = call.ctx.get();
    let to_save = {
        let mut state = cell.state.lock();
        if state.dirty.is_some() || state.non_differentiable.is_some() {
            drop(state);
            return Ok(Err(call));
        }
        state.differentiable.push(true);
        state.to_save.take()
    };
    let (mut saved, mut places): (SmallVec<[Saved; 2]>, SmallVec<[Option<u32>; 4]>) = (SmallVec::new(), SmallVec::new());
    if let Some(to_save) = &to_save {
        for o in to_save.bind(py).iter_borrowed() {
            let Some(x) = as_tensor(&o) else {
                places.push(None);
                continue;
            };
            places.push(Some(saved.len() as u32));
            saved.push(if x.same(t) { Saved::output(t, 0) } else { Saved::input_of_function(x, t)? });
        }
    }
    let backward = Backward {
        ctx: ContextRef::owning(call.ctx.clone().into_any().unbind()),
        name: call.name,
        args: call.inputs.args,
        edges: call.inputs.edges.len(),
        tensors: smallvec![true],
        _ends: EndsUnlocked,
    };
    let mut entry = NodeRecord::single(NodeOp::Other(Arc::new(backward)), call.inputs.edges, meta);
    entry.saved = saved;
    let node = record::begin(entry, call.site);
    call.ctx.cast::<PyNode>()?.get().tie(&node);
    function_output(t, Edge { node: node.clone(), nr: 0 });
    {
        let mut state = cell.state.lock();
        state.places = places;
        state.node = Some(Arc::downgrade(&node));
    }
    drop(to_save);
    anomaly::look_at(&node, std::slice::from_ref(t))?;
    let ctx = call.ctx.as_any();
    let attributes = context_owner::has_attributes(ctx);
    if attributes {
        collector::watch(py);
    }
    let keeps = attributes && kept_outputs::noticed(call.class, ctx, &node, &[Some(t.clone())])?;
    match context_ref(&node) {
        Some(owner) if keeps => owner.fix(),
        // `forward` may have stored the context. The caller and the node have references of their own.
        Some(owner) => owner.settle(py, &node, 2),
        None => {}
    }
    Ok(Ok(output.clone().unbind()))
}
