//! The Python bindings: conversion, errors, the GIL and garbage collection. No maths and no shape rule.

mod args;
mod autograd;
mod convert;
mod device;
mod dtype;
mod errors;
mod function;
mod functions;
mod host;
mod macros;
mod overrides;
mod runtime;
mod saved;
mod signatures;
mod tensor;
mod types;

use pyo3::prelude::*;

#[cfg(not(miri))]
#[global_allocator]
static ALLOCATOR: runtime::allocator::Allocator = runtime::allocator::Allocator;

/// The native module `rgrad._core`.
///
/// Identity, the pool of dead objects and overrides rely on the GIL; PyO3 would declare the module safe without it.
#[pymodule(gil_used = true)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    host::register();
    runtime::register(m)?;
    tensor::register(m)?;
    dtype::register(m)?;
    device::register(m)?;
    convert::register(m)?;
    functions::register(m)?;
    saved::register(m)?;
    function::register(m)?;
    autograd::register(m)?;
    // Last: these stand before all that there is.
    overrides::register(m)?;
    tensor::fast_operators::register(m);
    Ok(())
}
