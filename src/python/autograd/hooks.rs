//! Python callables as hooks of tensors, leaves and nodes, and the handles that remove them.
//!
//! When hooks run is decided in the core's `autograd::engine`. Hooks of saved tensors are in `saved`.

use crate::autograd::Tensor;
use crate::autograd::engine::hooks::{Grads, LeafHook, NodeHook, Registration, TensorHook};
use crate::error::Result;
use crate::python::args::as_tensor;
use crate::python::errors::{foreign, runtime, type_error};
use crate::python::host::{EndsUnlocked, attach};
use crate::python::tensor::identity::{wrap, wrap_option};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use std::any::Any;

/// A Python callable as a hook.
pub(crate) struct PyHook(pub Py<PyAny>);

/// A Python object that a tensor keeps alive: a hook that does nothing.
pub(crate) struct Keeps(pub Py<PyAny>);

impl Drop for PyHook {
    fn drop(&mut self) {
        drop(EndsUnlocked);
    }
}

impl Drop for Keeps {
    fn drop(&mut self) {
        drop(EndsUnlocked);
    }
}

impl LeafHook for Keeps {
    fn call(&self, _leaf: &Tensor) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Visits the objects that a hook holds, for the garbage collector.
pub(crate) fn traverse(hook: &dyn Any, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
    if let Some(h) = hook.downcast_ref::<PyHook>() {
        return visit.call(&h.0);
    }
    // The metadata of a node.
    if let Some(d) = hook.downcast_ref::<Py<pyo3::types::PyDict>>() {
        return visit.call(d);
    }
    match hook.downcast_ref::<Keeps>() {
        Some(k) => visit.call(&k.0),
        None => crate::python::autograd::saved::traverse(hook, visit),
    }
}

fn returned_tensor(value: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if value.is_none() {
        return Ok(None);
    }
    match as_tensor(value) {
        Some(t) => Ok(Some(t.clone())),
        None => Err(type_error(format!(
            "expected Variable, but hook returned '{}': a gradient hook returns a Tensor or None",
            crate::python::args::type_name(value)
        ))),
    }
}

impl PyHook {
    /// The hook's `__name__`, if it has one.
    fn name(&self) -> String {
        attach(|py| self.0.bind(py).getattr_opt("__name__").ok().flatten().and_then(|name| name.extract().ok()))
            .unwrap_or_else(|| "<unknown>".into())
    }
}

impl TensorHook for PyHook {
    fn call(&self, grad: Option<&Tensor>) -> Result<Option<Tensor>> {
        attach(|py| {
            let value = self.0.bind(py).call1((wrap_option(py, grad.cloned())?,))?;
            returned_tensor(&value)
        })
        .map_err(foreign)
    }
    fn name(&self) -> String {
        PyHook::name(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl LeafHook for PyHook {
    fn call(&self, leaf: &Tensor) -> Result<()> {
        attach(|py| {
            let value = self.0.bind(py).call1((wrap(py, leaf.clone())?,))?;
            if value.is_none() {
                return Ok(());
            }
            Err(match as_tensor(&value) {
                Some(_) => runtime("Tensor post accumulate grad hooks should return None."),
                None => type_error(format!(
                    "expected Variable, but hook returned '{}': Tensor post accumulate grad hooks should return None.",
                    crate::python::args::type_name(&value)
                )),
            })
        })
        .map_err(foreign)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn tuple_of<'py>(py: Python<'py>, grads: &Grads) -> PyResult<Bound<'py, PyTuple>> {
    let items = grads.iter().map(|g| wrap_option(py, g.clone())).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, items)
}

/// The gradients that a hook returned, or None.
fn replaced(value: &Bound<'_, PyAny>) -> PyResult<Option<Grads>> {
    if value.is_none() {
        return Ok(None);
    }
    let Ok(items) = value.cast::<PyTuple>() else {
        return Err(type_error(format!(
            "expected tuple, but hook returned '{}': a hook of a node returns a tuple with a Tensor or None for each gradient, or None",
            crate::python::args::type_name(value)
        )));
    };
    Ok(Some(items.iter().map(|v| returned_tensor(&v)).collect::<PyResult<_>>()?))
}

impl NodeHook for PyHook {
    fn before(&self, grads: &Grads) -> Result<Option<Grads>> {
        attach(|py| {
            let value = self.0.bind(py).call1((tuple_of(py, grads)?,))?;
            replaced(&value)
        })
        .map_err(foreign)
    }
    fn after(&self, outputs: &Grads, grads: &Grads) -> Result<Option<Grads>> {
        attach(|py| {
            let value = self.0.bind(py).call1((tuple_of(py, outputs)?, tuple_of(py, grads)?))?;
            replaced(&value)
        })
        .map_err(foreign)
    }
    fn name(&self) -> String {
        PyHook::name(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The handle of a registered hook: `remove()` removes the hook, and as a context manager it does so at the end of the block.
#[pyclass(module = "rgrad._core", frozen, name = "HookHandle")]
pub(crate) struct HookHandle(pub Registration);

#[pymethods]
impl HookHandle {
    /// Removes the hook. A second call has no effect.
    fn remove(&self) {
        self.0.remove();
    }

    /// The number of the registration.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        self.0.remove();
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<HookHandle>()
}
