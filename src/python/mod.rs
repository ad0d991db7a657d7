//! The Python bindings: conversion, errors, the GIL and garbage collection. No maths and no shape rule.

mod args;
mod autograd;
mod errors;
mod function;
mod hooks;
mod identity;
mod node;
mod rows;
mod site;
mod tensor;

use pyo3::prelude::*;

#[cfg(not(miri))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native module `rgrad._core`.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    site::register(m)?;
    tensor::register(m)?;
    identity::register(m)?;
    rows::register(m)?;
    node::register(m)?;
    hooks::register(m)?;
    autograd::register(m)?;
    function::register(m)?;
    Ok(())
}
