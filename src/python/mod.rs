//! The Python bindings: conversion, errors, the GIL and garbage collection.
//!
//! Folders: the class `Tensor` (`tensor`), values in and out (`convert`), functions and methods by family (`functions`), the graph and custom
//! Functions (`autograd`), `__torch_function__` (`overrides`), the process (`runtime`). Not here: mathematics and shape rules
//! (`ops`).

mod args;
mod autograd;
mod convert;
mod device;
mod dtype;
mod errors;
mod functions;
mod host;
mod macros;
mod module_call;
mod raw_methods;
mod overrides;
mod runtime;
mod signatures;
mod tensor;
mod types;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

#[cfg(not(miri))]
#[global_allocator]
static ALLOCATOR: runtime::allocator::Allocator = runtime::allocator::Allocator;

/// `PYTHON_GIL=0` keeps the GIL off in a free-threaded build, whatever a module declares.
fn refuse_without_gil(py: Python<'_>) -> PyResult<()> {
    match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        Some(enabled) if !enabled.call0()?.is_truthy()? => Err(PyImportError::new_err(
            "rgrad needs Python's global interpreter lock, which PYTHON_GIL=0 or -X gil=0 has switched off: unset it, or use a Python that is \
             not free-threaded",
        )),
        _ => Ok(()),
    }
}

/// The native module `rgrad._core`.
///
/// `tensor::identity`, its pool of free objects and `overrides` rely on the GIL. Without `gil_used` PyO3 would declare that the module does not.
#[pymodule(gil_used = true)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // Classes and tables are there once in a process. A module that is imported again, after its entries left `sys.modules`, has the same ones.
    static FIRST: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    if let Some(first) = FIRST.get(m.py()) {
        for (name, value) in first.bind(m.py()) {
            m.setattr(name.cast::<PyString>()?, value)?;
        }
        return Ok(());
    }
    refuse_without_gil(m.py())?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    // Before anything is computed: later there would be no one to tell.
    crate::simd::choose().map_err(crate::error::Error::from)?;
    crate::host::threads::choose().map_err(crate::error::Error::from)?;
    crate::backend::cpu::algorithms::choose().map_err(crate::error::Error::from)?;
    host::register();
    crate::host::memory::alloc::register_release(runtime::allocator::release_idle);
    runtime::register(m)?;
    tensor::register(m)?;
    dtype::register(m)?;
    device::register(m)?;
    convert::register(m)?;
    functions::register(m)?;
    module_call::register(m)?;
    autograd::saved::register(m)?;
    autograd::function::register(m)?;
    autograd::register(m)?;
    // Last: these wrap everything that is registered above.
    overrides::register(m)?;
    tensor::fast_operators::register(m);
    let names = m.dict().copy()?;
    for name in ["__name__", "__package__", "__loader__", "__spec__", "__file__"] {
        if names.contains(name)? {
            names.del_item(name)?;
        }
    }
    let _ = FIRST.set(m.py(), names.unbind());
    Ok(())
}
