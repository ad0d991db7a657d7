//! The switches of autocast. The context is `rgrad.amp.autocast`.

use crate::array::Device;
use crate::autograd::dispatch::autocast::{self, AutocastSetting};
use crate::layout::DType;
use crate::python::args::{as_tensor, type_name};
use crate::python::dtype::{PyDType, dtype_object};
use crate::python::errors::{runtime, type_error};
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The device of a kind that may be missing on this machine: a setting needs none.
fn device(kind: &str) -> PyResult<Option<Device>> {
    match kind {
        "cpu" => Ok(Some(Device::CPU)),
        "wgpu" => Ok(Device::named("wgpu")),
        "cuda" | "xpu" | "mps" | "meta" | "hpu" | "mtia" | "xla" | "ipu" | "maia" => Ok(None),
        other => Err(runtime(format!("Expected one of cpu, wgpu, cuda, xpu, mps, meta device type at start of device string: {other}"))),
    }
}

/// Whether autocast is on for a kind of device; without one, for wgpu.
#[pyfunction]
#[pyo3(signature = (device_type="wgpu"))]
fn is_autocast_enabled(device_type: &str) -> PyResult<bool> {
    Ok(device(device_type)?.is_some_and(|d| autocast::setting(d).enabled))
}

/// Switches autocast on or off for a kind of device, on this thread.
#[pyfunction]
#[pyo3(signature = (device_type, enabled))]
fn set_autocast_enabled(device_type: &str, enabled: bool) -> PyResult<()> {
    if let Some(d) = device(device_type)? {
        autocast::set(d, AutocastSetting { enabled, ..autocast::setting(d) });
    }
    Ok(())
}

/// The smaller float type of a kind of device.
#[pyfunction]
#[pyo3(signature = (device_type))]
fn get_autocast_dtype(py: Python<'_>, device_type: &str) -> PyObjResult {
    let dtype = device(device_type)?.map_or(DType::F16, |d| autocast::setting(d).dtype);
    Ok(dtype_object(py, dtype)?.into_any())
}

/// Sets the smaller float type of a kind of device, on this thread.
#[pyfunction]
#[pyo3(signature = (device_type, dtype))]
fn set_autocast_dtype(device_type: &str, dtype: &PyObj<'_>) -> PyResult<()> {
    let Ok(given) = dtype.cast::<PyDType>() else {
        return Err(type_error(format!("set_autocast_dtype(): argument 'dtype' must be torch.dtype, not {}", type_name(dtype))));
    };
    let dtype = given.get().0;
    if let Some(d) = device(device_type)? {
        autocast::set(d, AutocastSetting { dtype, ..autocast::setting(d) });
    }
    Ok(())
}

/// Whether weights that autocast has converted are kept until the outermost context ends.
#[pyfunction]
fn is_autocast_cache_enabled() -> bool {
    autocast::is_cache_enabled()
}

/// Switches the keeping of converted weights on or off.
#[pyfunction]
#[pyo3(signature = (enabled))]
fn set_autocast_cache_enabled(enabled: bool) {
    autocast::set_cache_enabled(enabled);
}

/// Notes that a context opens. Returns how many are open.
#[pyfunction]
fn autocast_increment_nesting() -> u32 {
    autocast::nest(true)
}

/// Notes that a context closes. Returns how many are open.
#[pyfunction]
fn autocast_decrement_nesting() -> u32 {
    autocast::nest(false)
}

/// Forgets converted weights.
#[pyfunction]
fn clear_autocast_cache() {
    autocast::clear_cache();
}

/// Whether a context is open on this thread, for any device.
#[pyfunction]
fn _autocasts() -> bool {
    autocast::is_on()
}

/// The arguments, with tensors as an operation takes them that autocast runs in float32.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _autocast_widened(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyObjResult {
    let mut made = Vec::with_capacity(args.len());
    for a in args.iter() {
        made.push(match as_tensor(&a) {
            None => a.unbind(),
            Some(t) => {
                let cast = autocast::widen([t])?;
                let [now] = cast.of([t]);
                if now.same(t) { a.unbind() } else { wrap(py, now.clone())? }
            }
        });
    }
    Ok(PyTuple::new(py, made)?.into_any().unbind())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(is_autocast_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(set_autocast_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(get_autocast_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(set_autocast_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(is_autocast_cache_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(set_autocast_cache_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(autocast_increment_nesting, m)?)?;
    m.add_function(wrap_pyfunction!(autocast_decrement_nesting, m)?)?;
    m.add_function(wrap_pyfunction!(clear_autocast_cache, m)?)?;
    m.add_function(wrap_pyfunction!(_autocasts, m)?)?;
    m.add_function(wrap_pyfunction!(_autocast_widened, m)?)
}
