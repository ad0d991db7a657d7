//! The process around the tensors: allocator, memory, threads and fork, deferred programs, the wgpu device, and call sites from Python frames.
//!
//! Not here: the GIL, which is released and taken in `host`, and operations.

pub(crate) mod allocator;
pub(crate) mod call_site;
mod frames;
mod fusion;
mod memory;
mod process;
mod wgpu;

use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    call_site::register(m)?;
    process::register(m)?;
    memory::register(m)?;
    wgpu::register(m)?;
    fusion::register(m)
}
