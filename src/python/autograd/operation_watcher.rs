//! Python callables that see every operation of a thread. What they are for is written in `rgrad.utils.checkpoint`.

use crate::autograd::Tensor;
use crate::autograd::dispatch::call_site::Inherit;
use crate::autograd::dispatch::operation_watcher::{self, CallKind, OperationCall, OperationWatcher};
use crate::error::Result;
use crate::python::args::tensor;
use crate::python::errors::{foreign, type_error};
use crate::python::host::{EndsUnlocked, attach};
use crate::python::tensor::identity::wrap;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

struct PyOperationWatcher {
    watcher: Py<PyAny>,
    _ends: EndsUnlocked,
}

impl PyOperationWatcher {
    /// `watcher(name, node_name, kind, inputs, outputs)`.
    fn call<'py>(&self, py: Python<'py>, call: &OperationCall<'_>, outputs: Option<&[Tensor]>) -> PyResult<Bound<'py, PyAny>> {
        let kind = match call.kind {
            CallKind::Computes => "computes",
            CallKind::Writes => "writes",
            CallKind::Views => "views",
        };
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for t in call.inputs {
            let object = wrap(py, (*t).clone())?;
            inputs.push(if t.is_number() { object.bind(py).call_method0("item")?.unbind() } else { object });
        }
        let outputs = match outputs {
            Some(all) => Some(PyList::new(py, all.iter().map(|t| wrap(py, t.clone())).collect::<PyResult<Vec<_>>>()?)?),
            None => None,
        };
        self.watcher.bind(py).call1((call.name, call.node_name, kind, PyTuple::new(py, inputs)?, outputs))
    }
}

impl OperationWatcher for PyOperationWatcher {
    fn before(&self, call: &OperationCall<'_>) -> Result<Option<Vec<Tensor>>> {
        let _lines = Inherit::suspend();
        attach(|py| {
            let answer = self.call(py, call, None)?;
            if answer.is_none() {
                return Ok(None);
            }
            let given = answer.try_iter()?.map(|t| Ok(tensor(&t?, "a result")?.clone())).collect::<PyResult<Vec<_>>>()?;
            if given.is_empty() {
                return Err(type_error(format!("a watcher of operations answered for {} with no results", call.name)));
            }
            Ok(Some(given))
        })
        .map_err(foreign)
    }

    fn after(&self, call: &OperationCall<'_>, outputs: &[Tensor]) -> Result<()> {
        let _lines = Inherit::suspend();
        attach(|py| self.call(py, call, Some(outputs)).map(drop)).map_err(foreign)
    }
}

/// Adds a function that sees every operation of this thread: `f(name, node_name, kind, inputs, outputs)`. Before an operation that makes new
/// values `outputs` is None, and a list of tensors that it returns is taken for the results; after any operation they are a list.
#[pyfunction]
fn _push_operation_watcher(f: Py<PyAny>) {
    operation_watcher::push(Arc::new(PyOperationWatcher { watcher: f, _ends: EndsUnlocked }));
}

/// Takes the innermost watcher of operations away.
#[pyfunction]
fn _pop_operation_watcher() {
    operation_watcher::pop();
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_push_operation_watcher, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_operation_watcher, m)?)
}
