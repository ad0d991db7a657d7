//! The default device of new tensors: `set_default_device` and `with device:`.
//!
//! The class `device` itself, and how an argument names one, is in `dtype`.

use super::args::type_name;
use super::dtype::{PyDevice, device_object, device_of};
use super::errors::{runtime, type_error};
use super::tensor::PyTensor;
use crate::array::Device;
use crate::backend::contract::Support;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    /// The default device of this thread; None leaves the choice to each function.
    static CURRENT: Cell<Option<Device>> = const { Cell::new(None) };
    /// The default device outside each open `with` block.
    static OUTER: RefCell<Vec<Option<Device>>> = const { RefCell::new(Vec::new()) };
}

/// The default device of this thread, if it has one.
pub(super) fn default_device() -> Option<Device> {
    CURRENT.get()
}

/// A device argument of a function that makes tensors from nothing or from host data; the default device if it is missing.
pub(super) fn device_or_default(obj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Device>> {
    Ok(device_of(obj)?.or_else(default_device))
}

/// Sets the default device of this thread's new tensors; None removes the setting.
///
/// `from_numpy` and the `*_like` functions do not use it.
///
/// Raises:
///     RuntimeError: rgrad has no tensors on this device.
#[pyfunction]
fn set_default_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    CURRENT.set(device_of(device)?);
    Ok(())
}

/// The default device of this thread's new tensors.
#[pyfunction]
fn get_default_device() -> PyDevice {
    device_object(CURRENT.get().unwrap_or_default())
}

/// The number of a tensor's device: 0 on wgpu, -1 on the CPU.
#[pyfunction]
fn get_device(input: &Bound<'_, PyAny>) -> PyResult<i64> {
    match input.cast::<PyTensor>() {
        Ok(t) => Ok(PyTensor::get_device(t)),
        Err(_) => Err(type_error(format!("get_device(): argument 'input' (position 1) must be Tensor, not {}", type_name(input)))),
    }
}

#[pymethods]
impl PyTensor {
    /// The number of the tensor's device: 0 on wgpu, -1 on the CPU.
    fn get_device(slf: &Bound<'_, Self>) -> i64 {
        if Self::of(slf).device() == Device::WGPU { 0 } else { -1 }
    }
}

/// A request, whether it is a pointwise row, the dtype, the device, and the answer: "yes", or how, or "no: " and the reason.
type SupportRow = (&'static str, bool, &'static str, &'static str, String);

/// What each backend supports: a row for each request, dtype and device.
#[pyfunction]
fn _support_table(devices: Vec<String>) -> PyResult<Vec<SupportRow>> {
    let found = devices.iter().map(|d| Device::named(d).ok_or_else(|| runtime(format!("there is no device {d}"))));
    let table = crate::array::support_table(&found.collect::<PyResult<Vec<_>>>()?)?;
    Ok(table
        .into_iter()
        .map(|a| {
            let answer = match a.support {
                Support::Yes => "yes".to_owned(),
                Support::Converted(how) => how.to_owned(),
                Support::No(why) => format!("no: {why}"),
            };
            (a.request, a.is_row, a.dtype.name(), a.device.name(), answer)
        })
        .collect())
}

#[pymethods]
impl PyDevice {
    /// Makes this device the default of new tensors inside the `with` block.
    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let wanted = device_of(Some(slf.as_any()))?;
        OUTER.with_borrow_mut(|outer| outer.push(CURRENT.replace(wanted)));
        Ok(slf)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        // An exit without an enter changes nothing.
        if let Some(before) = OUTER.with_borrow_mut(Vec::pop) {
            CURRENT.set(before);
        }
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(get_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(_support_table, m)?)?;
    m.add_function(wrap_pyfunction!(get_device, m)?)
}
