//! The Python bindings: conversion, errors, the GIL and garbage collection. No maths and no shape rule.

mod allocator;
mod args;
mod autograd;
mod backward;
mod blocks;
mod both;
mod complex;
mod convert;
mod create;
mod declared;
mod device;
mod dtype;
mod errors;
mod frames;
mod function;
mod function_args;
mod fusion;
mod hooks;
mod host;
mod identity;
mod indexing;
mod info;
mod join;
mod kept_outputs;
mod levels;
mod loss;
mod matmul;
mod node;
mod numpy_memory;
mod order;
mod overrides;
mod random;
mod reduce;
mod rows;
mod saved;
mod shape;
mod sharing;
mod signatures;
mod site;
mod slots;
mod tensor;
mod types;
mod values;
mod wgpu;

use pyo3::prelude::*;

#[cfg(not(miri))]
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// The native module `rgrad._core`.
///
/// Identity, the pool of dead objects and overrides rely on the GIL; PyO3 would declare the module safe without it.
#[pymodule(gil_used = true)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    host::register();
    site::register(m)?;
    wgpu::register(m)?;
    tensor::register(m)?;
    identity::register(m)?;
    rows::register(m)?;
    dtype::register(m)?;
    device::register(m)?;
    info::register(m)?;
    complex::register(m)?;
    convert::register(m)?;
    values::register(m)?;
    shape::register(m)?;
    indexing::register(m)?;
    join::register(m)?;
    create::register(m)?;
    random::register(m)?;
    declared::register(m)?;
    reduce::register(m)?;
    order::register(m)?;
    blocks::register(m)?;
    matmul::register(m)?;
    loss::register(m)?;
    node::register(m)?;
    saved::register(m)?;
    hooks::register(m)?;
    autograd::register(m)?;
    backward::register(m)?;
    function::register(m)?;
    function_args::register(m)?;
    levels::register(m)?;
    fusion::register(m)?;
    // Last: these stand before all that there is.
    overrides::register(m)?;
    slots::register(m);
    Ok(())
}
