//! The classes `dtype`, `device` and `Size`, and arguments of these classes.
//!
//! The table of dtypes and their promotion is in `layout`; the default device in `device`.

use super::errors::{runtime, type_error};
use super::tensor::PyTensor;
use crate::array::Device;
use crate::error::Error;
use crate::layout::DType;
use crate::ops::pointwise;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyType};

// ---- dtype -----------------------------------------------------------------------------------------------------------

/// The type of a tensor's elements.
#[pyclass(name = "dtype", module = "rgrad", frozen, eq, hash)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PyDType(pub(super) DType);

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("rgrad.{}", self.0.name())
    }

    /// Pickles a dtype by its name, so that copies and unpickled dtypes are the same objects.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Whether the elements are floating point numbers.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// Whether the elements are complex numbers.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    #[allow(clippy::wrong_self_convention)]
    /// The dtype of real and imaginary parts; of a dtype without an imaginary part itself.
    fn to_real(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.0.row().real)
    }

    #[allow(clippy::wrong_self_convention)]
    /// The dtype of complex numbers whose parts hold numbers of this one; of a complex dtype itself.
    ///
    /// Raises:
    ///     RuntimeError: The dtype is one of integers, or bool.
    fn to_complex(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        match self.0.row().complex {
            Some(complex) => dtype_object(py, complex),
            None => Err(runtime(format!("Unknown Complex ScalarType for {}", self.0.type_name()))),
        }
    }

    /// Whether the elements can be negative.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }

    /// The bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }
}

static DTYPES: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The Python object of a dtype; there is one for each.
pub(super) fn dtype_object(py: Python<'_>, d: DType) -> PyResult<Py<PyDType>> {
    match DTYPES.get(py) {
        Some(all) => Ok(all[d as usize].clone_ref(py)),
        None => Err(runtime("rgrad._core is not initialised")),
    }
}

/// A dtype argument: a dtype, or one of Python's types `float`, `int`, `bool` and `complex`.
pub(super) fn dtype_of(obj: &Bound<'_, PyAny>, what: &str) -> PyResult<DType> {
    if let Ok(d) = obj.cast::<PyDType>() {
        return Ok(d.get().0);
    }
    let py = obj.py();
    if obj.is(py.get_type::<PyFloat>()) {
        return Ok(DType::F64);
    }
    if obj.is(py.get_type::<PyInt>()) {
        return Ok(DType::I64);
    }
    if obj.is(py.get_type::<PyBool>()) {
        return Ok(DType::Bool);
    }
    if obj.is(py.get_type::<PyComplex>()) {
        return Ok(DType::C128);
    }
    Err(type_error(format!("{what}: argument 'dtype' must be rgrad.dtype, not {}", super::args::type_name(obj))))
}

/// An optional dtype argument; None means that it is missing.
pub(super) fn dtype_option(obj: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<DType>> {
    match obj {
        Some(o) if !o.is_none() => Ok(Some(dtype_of(o, what)?)),
        _ => Ok(None),
    }
}

// ---- device ----------------------------------------------------------------------------------------------------------

const KINDS: [&str; 5] = ["cpu", "wgpu", "cuda", "mps", "meta"];

/// Where a tensor's memory is: `cpu`, `wgpu` or `meta`. Other names of PyTorch make devices that can only be compared.
#[pyclass(name = "device", module = "rgrad", frozen, eq, hash)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PyDevice {
    kind: &'static str,
    index: Option<u32>,
}

fn parse_device(text: &str) -> Result<PyDevice, Error> {
    let (name, number) = match text.split_once(':') {
        Some((n, i)) => (n, Some(i)),
        None => (text, None),
    };
    let Some(kind) = KINDS.iter().find(|k| **k == name) else {
        return Err(Error::runtime(format!("Expected one of {} device type at start of device string: {text}", KINDS.join(", "))));
    };
    let index = match number {
        None => None,
        Some(i) => Some(i.parse().map_err(|_| Error::runtime(format!("Invalid device string: '{text}'")))?),
    };
    Ok(PyDevice { kind, index })
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index=None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<i64>) -> PyResult<PyDevice> {
        if let Ok(d) = r#type.cast::<PyDevice>() {
            return Ok(d.get().clone());
        }
        // As in PyTorch, a number alone is the index of an accelerator.
        if is_number(r#type) {
            let i = r#type.extract::<i64>()?;
            return Ok(PyDevice { kind: "wgpu", index: Some(u32::try_from(i).map_err(|_| runtime("Device index must not be negative"))?) });
        }
        let Ok(text) = r#type.extract::<String>() else {
            return Err(type_error(format!("device(): argument 'type' (position 1) must be str, not {}", super::args::type_name(r#type))));
        };
        let mut d = parse_device(&text)?;
        if let Some(i) = index {
            if d.index.is_some() {
                return Err(runtime(format!("type (string) must not include an index because index was passed explicitly: {text}")));
            }
            d.index = Some(u32::try_from(i).map_err(|_| runtime("Device index must not be negative"))?);
        }
        Ok(d)
    }

    /// The kind of device, without the index.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind
    }

    /// The number of the device among those of its kind, or None.
    #[getter]
    fn index(&self) -> Option<u32> {
        self.index
    }

    fn __repr__(&self) -> String {
        match self.index {
            None => format!("device(type='{}')", self.kind),
            Some(i) => format!("device(type='{}', index={i})", self.kind),
        }
    }

    fn __str__(&self) -> String {
        match self.index {
            None => self.kind.into(),
            Some(i) => format!("{}:{i}", self.kind),
        }
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyType>, (String,))> {
        Ok((slf.get_type().unbind(), (slf.get().__str__(),)))
    }
}

/// The Python object of a tensor's device.
pub(super) fn device_object(d: Device) -> PyDevice {
    // The CPU and the meta device have no index.
    PyDevice { kind: d.name(), index: if d == Device::WGPU { Some(0) } else { None } }
}

/// An optional device argument; None means that it is missing. A device on which rgrad has no tensors is an error.
pub(super) fn device_of(obj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Device>> {
    let Some(obj) = obj.filter(|o| !o.is_none()) else { return Ok(None) };
    let d = match obj.cast::<PyDevice>() {
        Ok(d) => d.get().clone(),
        Err(_) => PyDevice::new(obj, None)?,
    };
    match (d.kind, d.index) {
        ("cpu", _) => Ok(Some(Device::CPU)),
        ("wgpu", None | Some(0)) => Ok(Some(Device::WGPU)),
        ("meta", _) => Ok(Some(Device::META)),
        ("wgpu", Some(i)) => Err(runtime(format!(
            "device wgpu:{i} is not available: rgrad uses one wgpu device at a time; choose it with rgrad.wgpu.set_device(...)"
        ))),
        _ => Err(runtime(format!("device {} is not available: rgrad has tensors on cpu, wgpu and meta", d.__str__()))),
    }
}

/// Whether an object names a device.
pub(super) fn is_device(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyDevice>() || obj.is_instance_of::<pyo3::types::PyString>() || is_number(obj)
}

fn is_number(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyInt>() && !obj.is_instance_of::<PyBool>()
}

// ---- Size ------------------------------------------------------------------------------------------------------------

static SIZE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A `Size` object.
pub(super) fn size_object(py: Python<'_>, sizes: &[usize]) -> PyResult<Py<PyAny>> {
    let Some(class) = SIZE.get(py) else { return Err(runtime("rgrad._core is not initialised")) };
    let ty: *mut ffi::PyTypeObject = class.bind(py).as_type_ptr();
    // SAFETY: `ty` is a subclass of tuple without fields of its own. Its allocator returns a tuple of null items, which are filled before other
    // code sees it. On failure the half-filled tuple is dropped, which tuples allow.
    unsafe {
        let Some(alloc) = (*ty).tp_alloc else { return Err(runtime("rgrad.Size cannot be made")) };
        let t = Bound::from_owned_ptr_or_err(py, alloc(ty, sizes.len() as ffi::Py_ssize_t))?;
        for (i, s) in sizes.iter().enumerate() {
            let item = ffi::PyLong_FromSize_t(*s);
            if item.is_null() {
                return Err(PyErr::fetch(py));
            }
            ffi::PyTuple_SET_ITEM(t.as_ptr(), i as ffi::Py_ssize_t, item);
        }
        Ok(t.unbind())
    }
}

// ---- functions of dtypes ---------------------------------------------------------------------------------------------

/// The default dtype of new floating point tensors.
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Py<PyDType>> {
    dtype_object(py, pointwise::default_dtype())
}

/// Sets the default dtype of new floating point tensors: float32 or float64.
///
/// Raises:
///     TypeError: `d` is not a dtype, or not one of these two.
#[pyfunction]
fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    if !d.is_instance_of::<PyDType>() {
        return Err(type_error(format!("invalid dtype object: {}", d.repr()?)));
    }
    Ok(pointwise::set_default_dtype(dtype_of(d, "set_default_dtype()")?)?)
}

/// The smallest dtype to which both types can be converted.
#[pyfunction]
fn promote_types(py: Python<'_>, type1: &Bound<'_, PyAny>, type2: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
    let (a, b) = (dtype_of(type1, "promote_types()")?, dtype_of(type2, "promote_types()")?);
    pointwise::no_common(a, b)?;
    dtype_object(py, a.promote(b))
}

/// Whether a result of dtype `from_` may be written to a tensor of dtype `to`: not a float to an integer, for example.
#[pyfunction]
#[pyo3(signature = (from_, to))]
fn can_cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(dtype_of(from_, "can_cast()")?.can_cast(dtype_of(to, "can_cast()")?))
}

/// The dtype of the result of a pointwise operation on two tensors or numbers.
#[pyfunction]
fn result_type(py: Python<'_>, tensor: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
    let a = super::args::operand_of(tensor, "result_type", 1, "tensor")?;
    let b = super::args::operand_of(other, "result_type", 2, "other")?;
    dtype_object(py, pointwise::result_type_of(&[a, b])?)
}

/// Whether a tensor's dtype is a floating point dtype.
#[pyfunction]
fn is_floating_point(input: &Bound<'_, PyTensor>) -> bool {
    PyTensor::of(input).dtype().is_float()
}

/// Whether a tensor's dtype is complex.
#[pyfunction]
fn is_complex(input: &Bound<'_, PyTensor>) -> bool {
    PyTensor::of(input).dtype().is_complex()
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add_class::<PyDType>()?;
    m.add_class::<PyDevice>()?;
    let mut all = Vec::new();
    for d in DType::ALL {
        let obj = Py::new(py, PyDType(d))?;
        for name in std::iter::once(&d.name()).chain(d.row().aliases) {
            m.add(*name, obj.clone_ref(py))?;
        }
        all.push(obj);
    }
    let _ = DTYPES.set(py, all);
    let class = py.import("rgrad._tensor.size")?.getattr("Size")?.cast_into::<PyType>()?;
    m.add("Size", &class)?;
    let _ = SIZE.set(py, class.unbind());
    m.add_function(wrap_pyfunction!(get_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(promote_types, m)?)?;
    m.add_function(wrap_pyfunction!(can_cast, m)?)?;
    m.add_function(wrap_pyfunction!(result_type, m)?)?;
    m.add_function(wrap_pyfunction!(is_floating_point, m)?)?;
    m.add_function(wrap_pyfunction!(is_complex, m)?)?;
    Ok(())
}
