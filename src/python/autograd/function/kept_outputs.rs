//! Garbage collection of a custom Function whose context has outputs in its attributes, which is a reference cycle.
//!
//! Such outputs are found, warned about and made collectable. Values of `save_for_backward` make no cycle; they are in `record`.

use crate::autograd::engine::hooks::next_id;
use crate::autograd::{Node, Tensor, WeakTensor};
use crate::python::args::as_tensor;
use crate::python::autograd::hooks::Keeps;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::sync::Arc;

/// Whether a tensor is an output of this node.
pub(crate) fn is_of(t: &Tensor, node: &Arc<Node>) -> PyResult<bool> {
    Ok(t.grad_fn()?.is_some_and(|e| Arc::ptr_eq(&e.node, node)))
}

/// Warns of each attribute of the context that has an output, also in lists, tuples and dicts. Such an output keeps the context, its node and
/// thereby itself alive until the garbage collector runs. Returns whether there is one; with several outputs `hold` is needed then.
pub(crate) fn noticed(cls: &Bound<'_, PyType>, ctx: &Bound<'_, PyAny>, node: &Arc<Node>, made: &[Option<Tensor>]) -> PyResult<bool> {
    let py = ctx.py();
    let attributes = ctx.getattr(intern!(py, "__dict__"))?;
    let Ok(attributes) = attributes.cast::<PyDict>() else { return Ok(false) };
    let mut any = false;
    for (name, value) in attributes {
        if holds_output(&value, node, made, 3)? {
            any = true;
            py.import("rgrad.autograd.function")?.getattr("_warn_of_kept_output")?.call1((cls, name))?;
        }
    }
    Ok(any)
}

/// Whether a value is an output of this node, or contains one.
fn holds_output(value: &Bound<'_, PyAny>, node: &Arc<Node>, made: &[Option<Tensor>], depth: usize) -> PyResult<bool> {
    if let Some(t) = as_tensor(value) {
        return Ok(made.iter().flatten().any(|m| m.same(t)) && is_of(t, node)?);
    }
    let items: Vec<Bound<'_, PyAny>> = if depth == 0 {
        return Ok(false);
    } else if let Ok(d) = value.cast::<PyDict>() {
        d.values().iter().collect()
    } else if let Ok(t) = value.cast::<PyTuple>() {
        t.iter().collect()
    } else if let Ok(l) = value.cast::<PyList>() {
        l.iter().collect()
    } else {
        return Ok(false);
    };
    for item in items {
        if holds_output(&item, node, made, depth - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes a context that has several outputs in its attributes collectable. The outputs share a node, which has one reference to the context, and
/// no single output may report that reference to the collector. Therefore each output gets a reference of its own, which it reports, and the
/// context reports the node's reference as long as only these outputs hold the node.
pub(crate) fn hold(ctx: &Bound<'_, PyAny>, node: &Arc<Node>, made: &[Option<Tensor>]) -> PyResult<Vec<WeakTensor>> {
    let mut outputs = Vec::new();
    for t in made.iter().flatten() {
        if is_of(t, node)? {
            t.with_leaf_hooks(|h| h.post_accumulate.push((next_id(), Arc::new(Keeps(ctx.clone().unbind())))));
            outputs.push(t.downgrade());
        }
    }
    Ok(outputs)
}
