//! What `rgrad.wgpu` calls: the description of wgpu's C interface, the installation of a device, and its statistics.
//!
//! The backend itself is in `backend::wgpu`; adapters and devices are chosen in Python, by wgpu-py.

use crate::autograd::dispatch::call_site;
use crate::backend::wgpu::Context;
use crate::backend::wgpu::device::context::{Features, Identity, Limits};
use crate::backend::wgpu::device::host::{Hooks, register as register_hooks};
use crate::backend::wgpu::native::{self, Api, Functions};
use crate::error::{Error, Result};
use crate::python::errors::foreign;
use crate::python::host::attach;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The C interface for which the core was compiled.
///
/// Returns:
///     {"structs": {name: (size, [(field, offset, type)])}, "constants": {name: value}, "functions": {name: signature},
///     "version": major version of wgpu-native}.
#[pyfunction]
fn _wgpu_description(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let d = native::description();
    let structs = PyDict::new(py);
    for s in d.structs {
        structs.set_item(s.name, (s.size, s.fields))?;
    }
    let constants = PyDict::new(py);
    for (name, value) in d.constants {
        constants.set_item(name, value)?;
    }
    let functions = PyDict::new(py);
    for (name, signature) in d.functions {
        functions.set_item(name, signature)?;
    }
    let out = PyDict::new(py);
    out.set_item("structs", structs)?;
    out.set_item("constants", constants)?;
    out.set_item("functions", functions)?;
    out.set_item("version", native::VERSION)?;
    Ok(out)
}

/// Makes a device the current one.
///
/// Args:
///     owner: The wgpu-py device, which is kept alive.
///     addresses: The address of each described function in the loaded library. The caller has compared the library's layouts with the
///         description.
///     device: The address of the library's device.
///     queue: The address of the library's queue.
///     limits: The limits that the device reports, by wgpu-py's names.
///     features: The features that the device reports, by wgpu-py's names.
///     name: The name of the adapter.
///     opengl: Whether the library drives it by OpenGL.
///
/// Raises:
///     RuntimeError: The library lacks a function, or the device reports no value for a limit.
///     ValueError: The device has been released.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn _wgpu_install(
    owner: Py<PyAny>,
    addresses: &Bound<'_, PyDict>,
    device: usize,
    queue: usize,
    limits: &Bound<'_, PyDict>,
    features: Vec<String>,
    name: String,
    opengl: bool,
) -> PyResult<()> {
    let limit = |name: &str| -> PyResult<u64> {
        let value = limits.get_item(name)?.ok_or_else(|| Error::runtime(format!("wgpu: the device reports no limit {name}")))?;
        value.extract()
    };
    let small = |name: &str| Ok::<u32, PyErr>(u32::try_from(limit(name)?).unwrap_or(u32::MAX));
    let limits = Limits {
        max_buffer_size: limit("max-buffer-size")?,
        max_storage_buffer_binding_size: limit("max-storage-buffer-binding-size")?,
        max_storage_buffers_per_shader_stage: small("max-storage-buffers-per-shader-stage")?,
        max_compute_workgroups_per_dimension: small("max-compute-workgroups-per-dimension")?,
        min_uniform_buffer_offset_alignment: small("min-uniform-buffer-offset-alignment")?,
    };
    let has = |f: &str| features.iter().any(|x| x == f);
    let features = Features {
        int64: has("shader-int64"),
        float64: has("shader-f64"),
        float16: has("shader-f16"),
        subgroups: has("subgroup"),
        timestamps: has("timestamp-query"),
    };
    let address = |name: &str| addresses.get_item(name).ok().flatten().and_then(|a| a.extract().ok());
    // SAFETY: the caller in rgrad.wgpu takes the addresses from the library that wgpu-py has loaded, which stays loaded, and has compared all
    // signatures before.
    let functions =
        unsafe { Functions::load(address) }.map_err(|missing| Error::runtime(format!("wgpu: the library has no function {missing}")))?;
    if device == 0 || queue == 0 {
        return Err(Error::value("wgpu: the device has been released").into());
    }
    // SAFETY: the caller holds wgpu-py's objects, whose handles these are.
    let api = unsafe { Api::new(functions, device, queue) };
    Context::install(api, limits, features, Identity { name, opengl }, Box::new(owner)).map_err(crate::error::Error::from)?;
    Ok(())
}

fn installed() -> Option<Arc<Context>> {
    Context::installed()
}

/// Raises RuntimeError in a child of a process that has used a device.
#[pyfunction]
fn _wgpu_check_process() -> PyResult<()> {
    Ok(Context::check_process().map_err(crate::error::Error::from)?)
}

/// Whether a device is installed.
#[pyfunction]
fn _wgpu_installed() -> bool {
    installed().is_some()
}

/// Submits all recorded commands and waits until the device has run them.
#[pyfunction]
fn _wgpu_synchronize() -> PyResult<()> {
    crate::array::fusion::settle_all(crate::array::Device::WGPU)?;
    let synchronize = || crate::array::Device::WGPU.backend()?.synchronize();
    Ok(synchronize().map_err(crate::error::Error::from)?)
}

/// The bytes that tensors hold, the largest number so far, and the cached bytes; zeros if no device is installed.
#[pyfunction]
fn _wgpu_memory() -> (usize, usize, usize) {
    installed().map_or((0, 0, 0), |c| (c.memory_allocated(), c.max_memory_allocated(), c.memory_idle()))
}

/// Resets the largest number of bytes to the bytes held now.
#[pyfunction]
fn _wgpu_reset_peak() {
    if let Some(c) = installed() {
        c.reset_peak_memory_stats();
    }
}

/// Frees the cached memory of the device.
#[pyfunction]
fn _wgpu_empty_cache() -> PyResult<()> {
    match installed() {
        Some(c) => Ok(c.empty_cache().map_err(crate::error::Error::from)?),
        None => Ok(()),
    }
}

/// Makes the n-th request for device memory from now on fail (0 is the next one). A negative number switches this off. For tests.
#[pyfunction]
fn _wgpu_fail_in(n: i64) -> PyResult<()> {
    Context::current().map_err(crate::error::Error::from)?.fail_in(n);
    Ok(())
}

/// The command buffers submitted, shaders compiled and dispatches on the current device so far, and the compiled shaders in the cache.
#[pyfunction]
fn _wgpu_counts() -> PyResult<(u64, u64, u64, usize)> {
    let c = Context::current().map_err(crate::error::Error::from)?;
    Ok((
        c.submits().map_err(crate::error::Error::from)?,
        c.pipelines_made().map_err(crate::error::Error::from)?,
        c.dispatches().map_err(crate::error::Error::from)?,
        c.pipelines().map_err(crate::error::Error::from)?,
    ))
}

/// Sets after how many new shaders unused ones leave the cache; None restores the default. For tests.
#[pyfunction]
#[pyo3(signature = (many=None))]
fn _wgpu_keep_pipelines(many: Option<usize>) -> PyResult<()> {
    Ok(Context::current().map_err(crate::error::Error::from)?.keep_pipelines(many).map_err(crate::error::Error::from)?)
}

/// Installs the default device.
fn install() -> Result<()> {
    attach(|py| py.import("rgrad.wgpu")?.call_method0("_install_default").map(drop)).map_err(foreign)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::host::device_times::register(crate::array::profile::device_watcher);
    crate::array::profile::register_device_bytes(|| installed().map_or(0, |c| c.memory_allocated()));
    register_hooks(Hooks { site: || call_site::current().0, describe: |s| call_site::Site(s).describe(), install: || Ok(install()?) });
    m.add_function(wrap_pyfunction!(_wgpu_description, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_install, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_check_process, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_installed, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_synchronize, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_memory, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_reset_peak, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_empty_cache, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_fail_in, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_keep_pipelines, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_counts, m)?)
}
