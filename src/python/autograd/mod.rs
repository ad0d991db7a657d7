//! Autograd in Python: gradients and hooks of tensors, and the modes of a thread.
//!
//! The engine is called in `backward`, nodes are in `node`, transforms and tangents in `transforms`. Not here: the rules themselves (the core's
//! `autograd`), and gradient modes as contexts (`rgrad.autograd`).

mod autocast;
pub(crate) mod backward;
pub(crate) mod collector;
mod context_owner;
mod graph_reports;
pub(crate) mod function;
pub(crate) mod hooks;
pub(crate) mod node;
mod profiler;
mod operation_watcher;
pub(crate) mod saved;
mod transforms;

use crate::autograd::dispatch::mode::{self, Mode, Watch};
use crate::autograd::engine::hooks::{Registration, TensorHook, next_id};
use crate::autograd::{Tensor, level};
use crate::python::args::{as_tensor, tensor};
use crate::python::autograd::hooks::{HookHandle, PyHook};
use crate::python::autograd::node::node_object;
use crate::python::dtype::{PyDType, dtype_object};
use crate::python::errors::{runtime, type_error};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::{wrap, wrap_option};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A tuple or list of tensors, or one tensor.
fn tensors(obj: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<Tensor>> {
    if let Some(t) = as_tensor(obj) {
        return Ok(vec![t.clone()]);
    }
    obj.try_iter()
        .map_err(|_| type_error(format!("{what} must be a Tensor or a sequence of Tensors, not {}", crate::python::args::type_name(obj))))?
        .map(|o| Ok(tensor(&o?, what)?.clone()))
        .collect()
}

/// An error inside a function transform, which has histories of its own.
fn refuse_inside(what: &str, call: &str) -> PyResult<()> {
    if level::depth() == 0 {
        return Ok(());
    }
    Err(runtime(format!(
        "You are attempting to call {what} inside of a function being transformed by a function transform. This is unsupported, please attempt \
         to use the transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call {call} outside of a function being transformed instead."
    )))
}

#[pymethods]
impl PyTensor {
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __init__(slf: &Bound<'_, Self>, _args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, pyo3::types::PyDict>>) {
        crate::python::tensor::identity::link(slf);
    }

    /// The accumulated gradient of this tensor, or None.
    #[getter]
    fn get_grad(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let t = Self::of(slf);
        if let Some(g) = t.grad() {
            return wrap(py, g);
        }
        if !t.is_leaf() && !t.retains_grad() {
            PyErr::warn(
                py,
                &py.get_type::<PyUserWarning>(),
                c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during \
                  autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the \
                  non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.",
                1,
            )?;
        }
        Ok(py.None())
    }

    #[setter]
    fn set_grad(slf: &Bound<'_, Self>, grad: &Bound<'_, PyAny>) -> PyResult<()> {
        let grad = if grad.is_none() {
            None
        } else {
            Some(
                as_tensor(grad)
                    .ok_or_else(|| {
                        type_error(format!(
                            "assigned grad expected to be a Tensor or None but got grad of type {}",
                            crate::python::args::type_name(grad)
                        ))
                    })?
                    .clone(),
            )
        };
        Ok(Self::of(slf).set_grad(grad)?)
    }

    /// `grad` without the warning for tensors that are no leaves.
    #[getter(_grad)]
    fn get_own_grad(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::of(slf).grad().map_or_else(|| Ok(slf.py().None()), |g| wrap(slf.py(), g))
    }

    #[setter(_grad)]
    fn set_own_grad(slf: &Bound<'_, Self>, grad: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::set_grad(slf, grad)
    }

    #[deleter]
    fn delete_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        Ok(Self::of(slf).set_grad(None)?)
    }

    /// The dtype that gradients of this leaf are converted to; None if they keep their own.
    #[getter]
    fn get_grad_dtype(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match Self::of(slf).grad_dtype()? {
            Some(d) => Ok(dtype_object(slf.py(), d)?.into_any()),
            None => Ok(slf.py().None()),
        }
    }

    #[setter]
    fn set_grad_dtype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
        let dtype = match dtype.cast::<PyDType>() {
            Ok(d) => Some(d.get().0),
            Err(_) if dtype.is_none() => None,
            Err(_) => {
                return Err(runtime(format!(
                    "grad_dtype must be a rgrad.dtype or None, but got {}",
                    crate::python::args::type_name(dtype)
                )));
            }
        };
        Ok(Self::of(slf).set_grad_dtype(dtype)?)
    }

    #[deleter]
    fn delete_grad_dtype(slf: &Bound<'_, Self>) -> PyResult<()> {
        Ok(Self::of(slf).set_grad_dtype(Some(Self::of(slf).dtype()))?)
    }

    /// The node that computed this tensor; None for a leaf.
    #[getter]
    fn grad_fn(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        match Self::of(slf).grad_fn()? {
            Some(e) => node_object(py, &e.node),
            None => Ok(py.None()),
        }
    }

    /// The index of this tensor among the outputs of `grad_fn`.
    #[getter]
    fn output_nr(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::of(slf).grad_fn()?.map_or(0, |e| e.nr))
    }

    /// Whether operations on this tensor are recorded.
    #[getter]
    fn get_requires_grad(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).requires_grad()
    }

    #[setter]
    fn set_requires_grad(slf: &Bound<'_, Self>, on: bool) -> PyResult<()> {
        let t = Self::of(slf);
        if on && !(t.is_leaf_now() && t.is_leaf()) {
            return Err(runtime("you can only change requires_grad flags of leaf variables."));
        }
        Ok(t.set_requires_grad(on)?)
    }

    #[deleter]
    fn delete_requires_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        let _ = slf;
        Err(runtime("requires_grad must be a bool"))
    }

    /// Switches the recording of operations on this tensor on or off, in place.
    ///
    /// Raises:
    ///     RuntimeError: The tensor is not a leaf, its dtype is not floating point, or a function transform runs.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: &Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        refuse_inside("Tensor.requires_grad_() (or perhaps using rgrad.autograd.functional.* APIs)", "requires_grad_()")?;
        Self::of(slf).set_requires_grad(requires_grad)?;
        Ok(slf.clone())
    }

    /// Whether no recorded operation computed this tensor.
    #[getter]
    fn is_leaf(slf: &Bound<'_, Self>) -> PyResult<bool> {
        // `grad_fn` is an error for a view whose node cannot be regenerated.
        let t = Self::of(slf);
        Ok(!t.requires_grad() || t.grad_fn()?.is_none())
    }

    /// Makes backward store the gradient of this non-leaf tensor in `.grad`.
    ///
    /// Raises:
    ///     RuntimeError: The tensor does not require grad, or a function transform runs.
    fn retain_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        refuse_inside("Tensor.retain_grad()", "retain_grad()")?;
        Ok(Self::of(slf).retain_grad()?)
    }

    /// Whether this is a non-leaf tensor whose gradient backward stores in `.grad`.
    #[getter]
    fn retains_grad(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).retains_grad()
    }

    /// How often the memory has been written in place.
    #[getter]
    fn _version(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Self::of(slf).version().ok_or_else(|| runtime("Inference tensors do not track version counter."))
    }

    /// The tensor of which this one is a view, or None.
    #[getter]
    fn _base(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        wrap_option(slf.py(), Self::of(slf).base())
    }

    /// Whether this tensor is a view whose history depends on its base.
    fn _is_view(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).base().is_some()
    }

    /// Whether this tensor was made in inference mode.
    fn is_inference(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).is_inference()
    }

    /// Registers `hook(grad)`, which is called with each gradient of this tensor.
    ///
    /// A tensor that the hook returns replaces the gradient.
    ///
    /// Raises:
    ///     RuntimeError: The tensor does not require grad.
    fn register_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyResult<HookHandle> {
        let t = Self::of(slf);
        if !t.requires_grad() {
            return Err(runtime("cannot register a hook on a tensor that doesn't require gradient"));
        }
        collector::watch(slf.py());
        Ok(HookHandle(t.register_hook(Arc::new(PyHook(hook)))?))
    }

    /// Registers `hook(leaf)`, which is called each time after a gradient was added to this leaf's `.grad`.
    ///
    /// Raises:
    ///     RuntimeError: The tensor does not require grad, or it is not a leaf.
    fn register_post_accumulate_grad_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyResult<HookHandle> {
        let t = Self::of(slf);
        if !t.requires_grad() {
            return Err(runtime("cannot register a hook on a tensor that doesn't require gradient"));
        }
        if t.grad_fn()?.is_some() {
            return Err(runtime("post accumulate grad hooks cannot be registered on non-leaf tensors"));
        }
        let id = next_id();
        collector::watch(slf.py());
        t.with_leaf_hooks(|h| h.post_accumulate.push((id, Arc::new(PyHook(hook)))));
        Ok(HookHandle(Registration::Leaf(t.downgrade(), id)))
    }
}

/// The hooks that `register_hook` has added to a leaf.
#[pyfunction]
fn _leaf_hooks(tensor: &Bound<'_, PyTensor>) -> Vec<Py<PyAny>> {
    let hook = |h: &Arc<dyn TensorHook>| h.as_any().downcast_ref::<PyHook>().map(|h| h.0.clone_ref(tensor.py()));
    PyTensor::of(tensor).with_leaf_hooks(|hooks| hooks.tensor.iter().filter_map(|(_, h)| hook(h)).collect())
}

/// Whether the tensor was made in inference mode.
#[pyfunction]
fn is_inference(input: &Bound<'_, PyTensor>) -> bool {
    PyTensor::of(input).is_inference()
}

/// Sets the version counters of tensors.
#[pyfunction]
fn _unsafe_set_version_counter(tensors: &Bound<'_, PyAny>, versions: &Bound<'_, PyAny>) -> PyResult<()> {
    let all = self::tensors(tensors, "tensors")?;
    let versions = versions.try_iter()?.map(|v| v?.extract::<i64>()).collect::<PyResult<Vec<_>>>()?;
    if versions.len() != all.len() {
        return Err(runtime(format!("_unsafe_set_version_counter: got {} tensors and {} versions", all.len(), versions.len())));
    }
    for (t, v) in all.iter().zip(versions) {
        if t.version().is_none() {
            return Err(runtime("Inference tensors do not track version counter."));
        }
        let count = u32::try_from(v).map_err(|_| runtime(format!("Cannot set a version_counter to a value below 0: {v}")))?;
        t.set_version(count);
    }
    Ok(())
}

/// Whether operations are recorded on this thread.
#[pyfunction]
fn is_grad_enabled() -> bool {
    mode::is_grad_enabled()
}

/// Switches the recording of operations on this thread on or off.
#[pyfunction]
fn _set_grad_enabled(on: bool) {
    mode::set_grad_enabled(on);
}

/// Whether this thread is in inference mode.
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    mode::current().inference
}

/// Switches the fast path of operations on few elements on or off for this thread, and returns the previous setting. For tests.
#[pyfunction]
fn _set_fast_path(on: bool) -> bool {
    let before = !mode::current().watches(Watch::Dispatch);
    mode::set_watch(Watch::Dispatch, !on);
    before
}

/// Switches inference mode on or off for this thread.
#[pyfunction]
fn _set_inference_mode(on: bool) {
    mode::set(Mode { inference: on, ..mode::current() });
}

/// Adds one to the version counters of one or several tensors, as an in-place write does.
#[pyfunction]
fn _increment_version(tensor_or_list: &Bound<'_, PyAny>) -> PyResult<()> {
    for t in tensors(tensor_or_list, "tensor")? {
        t.increment_version("increment_version");
    }
    Ok(())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_leaf_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(is_inference, m)?)?;
    m.add_function(wrap_pyfunction!(is_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_inference_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_set_fast_path, m)?)?;
    m.add_function(wrap_pyfunction!(_increment_version, m)?)?;
    // PyTorch's name of the part of the native module that is about autograd.
    let part = PyModule::new(m.py(), "_autograd")?;
    part.add_class::<saved::SavedTensor>()?;
    part.add_function(wrap_pyfunction!(_unsafe_set_version_counter, &part)?)?;
    m.add_submodule(&part)?;
    collector::register(m)?;
    autocast::register(m)?;
    node::register(m)?;
    graph_reports::register(m)?;
    hooks::register(m)?;
    profiler::register(m)?;
    operation_watcher::register(m)?;
    backward::register(m)?;
    function::args::register(m)?;
    transforms::register(m)
}
