//! What a tensor says of itself, and conversions of dtype.

use crate::array::Device;
use crate::array::Storage;
use crate::autograd::primitives;
use crate::error::Error;
use crate::layout::{DType, wrap_dim};
use crate::ops::{compare, pointwise as pw};
use crate::pointwise::RowId;
use crate::python::args::{as_tensor, tensor, type_name};
use crate::python::dtype::{PyDType, PyDevice, device_object, device_of, dtype_object, dtype_of, is_device, size_object};
use crate::python::errors::{runtime, type_error};
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A tensor's memory as a whole.
#[pyclass(name = "UntypedStorage", module = "rgrad", frozen)]
struct PyStorage(Storage);

#[cold]
fn no_address(d: Device) -> PyErr {
    Error::runtime(format!("data_ptr(): memory on {d} has no address in this process; use .cpu() first")).into()
}

#[pymethods]
impl PyStorage {
    /// The address of the first byte. RuntimeError on a device: its memory has no address here.
    fn data_ptr(&self) -> PyResult<usize> {
        match self.0.device() {
            Device::CPU => {
                self.0.expose()?;
                Ok(self.0.memory(crate::array::Access::Read) as usize)
            }
            d => Err(no_address(d)),
        }
    }

    /// A number that names the memory, on any device, while a tensor holds it.
    #[getter]
    fn _cdata(&self) -> usize {
        self.0.id()
    }

    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    fn size(&self) -> usize {
        self.0.bytes()
    }

    fn __len__(&self) -> usize {
        self.0.bytes()
    }

    fn __repr__(&self) -> String {
        format!("<rgrad.UntypedStorage of {} bytes on {}>", self.0.bytes(), self.0.device())
    }
}

/// A conversion that gives the tensor itself where nothing changes. The dtype changes where its conversion moves fewer bytes.
fn converted(x: &Bound<'_, PyTensor>, dtype: DType, device: Device, copy: bool) -> PyObjResult {
    let t = PyTensor::of(x);
    if t.dtype() == dtype && t.device() == device {
        return if copy { wrap(x.py(), primitives::clone(t)?) } else { Ok(x.clone().into_any().unbind()) };
    }
    // A device may lack a dtype that the CPU has: conversions happen on the CPU.
    let t = if t.device() == Device::CPU {
        primitives::to_device(&primitives::cast(t, dtype)?, device)?
    } else {
        primitives::cast(&primitives::to_device(t, device)?, dtype)?
    };
    wrap(x.py(), t)
}

fn to_dtype(x: &Bound<'_, PyTensor>, dtype: DType, copy: bool) -> PyObjResult {
    converted(x, dtype, PyTensor::of(x).device(), copy)
}

fn missing_dtype(name: &str) -> PyErr {
    Error::not_implemented(format!("{name} tensors are not supported yet: use float32 or float64")).into()
}

#[pymethods]
impl PyTensor {
    /// The sizes of the dimensions.
    #[getter]
    fn shape(slf: &Bound<'_, Self>) -> PyObjResult {
        // Not under the tensor's lock: a new object may run the garbage collector.
        let shape = Self::of(slf).shape();
        size_object(slf.py(), &shape)
    }

    /// The sizes of the dimensions, or that of one.
    #[pyo3(signature = (dim=None))]
    fn size(slf: &Bound<'_, Self>, dim: Option<i64>) -> PyObjResult {
        let (py, t) = (slf.py(), Self::of(slf));
        match dim {
            None => Self::shape(slf),
            Some(d) if t.rank() == 0 => Err(Error::index(format!("Dimension specified as {d} but tensor has no dimensions")).into()),
            Some(d) => {
                let shape = t.shape();
                Ok(shape[wrap_dim(d, shape.len()).map_err(crate::error::Error::from)?].into_pyobject(py)?.into_any().unbind())
            }
        }
    }

    /// The distances between neighbours along each dimension (or one), in elements.
    #[pyo3(signature = (dim=None))]
    fn stride(slf: &Bound<'_, Self>, dim: Option<i64>) -> PyObjResult {
        let py = slf.py();
        let array = Self::of(slf).array();
        match dim {
            None => Ok(PyTuple::new(py, array.strides())?.into_any().unbind()),
            Some(d) if array.rank() == 0 => Err(Error::index(format!("Dimension specified as {d} but tensor has no dimensions")).into()),
            Some(d) => {
                Ok(array.strides()[wrap_dim(d, array.rank()).map_err(crate::error::Error::from)?].into_pyobject(py)?.into_any().unbind())
            }
        }
    }

    /// Where the tensor begins in its storage, in elements.
    fn storage_offset(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).with_array(|a| a.layout().offset())
    }

    /// The address of the first element. RuntimeError on a device: its memory has no address here.
    /// RuntimeError inside a transform too: the memory below is none of its function's business.
    fn data_ptr(slf: &Bound<'_, Self>) -> PyResult<usize> {
        if Self::of(slf).level() > 0 {
            return Err(runtime(
                "Cannot access data pointer of Tensor that doesn't have storage: it stands for one inside a function transform",
            ));
        }
        let a = Self::of(slf).array();
        match a.device() {
            Device::CPU => {
                a.storage().expose()?;
                Ok(if a.numel() == 0 { 0 } else { a.ptr() as usize })
            }
            d => Err(no_address(d)),
        }
    }

    fn untyped_storage(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let storage = Self::of(slf).array().storage().clone();
        Ok(Py::new(slf.py(), PyStorage(storage))?.into_any())
    }

    /// Bytes of one element.
    fn element_size(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).dtype().size()
    }

    #[getter]
    fn itemsize(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(slf: &Bound<'_, Self>) -> usize {
        let t = Self::of(slf);
        t.numel() * t.dtype().size()
    }

    fn nelement(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).numel()
    }

    #[getter]
    fn ndim(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).rank()
    }

    fn dim(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).rank()
    }

    fn ndimension(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).rank()
    }

    #[pyo3(name = "numel")]
    fn m_numel(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).numel()
    }

    #[getter]
    fn dtype(slf: &Bound<'_, Self>) -> PyResult<Py<PyDType>> {
        dtype_object(slf.py(), Self::of(slf).dtype())
    }

    // Not named `device` here: pyo3 would give it the name that it gives to the method `get_device`.
    #[getter(device)]
    fn device_of_tensor(slf: &Bound<'_, Self>) -> PyDevice {
        device_object(Self::of(slf).device())
    }

    #[getter]
    fn is_cuda(slf: &Bound<'_, Self>) -> bool {
        let _ = slf;
        false
    }

    #[getter]
    fn is_sparse(slf: &Bound<'_, Self>) -> bool {
        let _ = slf;
        false
    }

    #[pyo3(name = "is_floating_point")]
    fn m_is_floating_point(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).dtype().is_float()
    }

    #[pyo3(name = "is_complex")]
    fn m_is_complex(slf: &Bound<'_, Self>) -> bool {
        let _ = slf;
        false
    }

    fn is_signed(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).dtype().is_signed()
    }

    /// Whether the elements lie in row-major order without gaps.
    #[pyo3(signature = (memory_format=None))]
    fn is_contiguous(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> bool {
        let _ = memory_format;
        Self::of(slf).with_array(|a| a.is_contiguous())
    }

    fn is_same_size(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> bool {
        Self::of(slf).shape() == Self::of(other).shape()
    }

    // ---- conversion --------------------------------------------------------------------------------------------------

    /// This tensor with another dtype (and on a device); itself where nothing changes.
    #[pyo3(signature = (*args, **kwargs))]
    fn to(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let (mut dtype, mut device) = (None, None);
        let mut copy = false;
        let mut positional = Vec::new();
        for a in args {
            if let Some(t) = as_tensor(&a) {
                (dtype, device) = (Some(t.dtype()), Some(t.device()));
            } else if let Ok(d) = a.cast::<PyDType>() {
                dtype = Some(d.get().0);
            } else if is_device(&a) {
                device = device_of(Some(&a))?;
            } else if a.is_instance_of::<pyo3::types::PyBool>() {
                positional.push(a.extract::<bool>()?);
            } else if !a.is_none() {
                dtype = Some(dtype_of(&a, "to()").map_err(|_| {
                    type_error(format!(
                        "to() received an invalid combination of arguments: expected a dtype, a device or a tensor, got {}",
                        type_name(&a)
                    ))
                })?);
            }
        }
        // After the target come non_blocking and copy.
        if let Some(c) = positional.get(1) {
            copy = *c;
        }
        if let Some(kwargs) = kwargs {
            for (k, v) in kwargs {
                match k.extract::<String>()?.as_str() {
                    "dtype" if v.is_none() => {}
                    "dtype" => dtype = Some(dtype_of(&v, "to()")?),
                    "device" => device = device_of(Some(&v))?.or(device),
                    "other" => {
                        let other = tensor(&v, "to(): argument 'other'")?;
                        (dtype, device) = (Some(other.dtype()), Some(other.device()));
                    }
                    "copy" => copy = v.is_truthy()?,
                    "non_blocking" | "memory_format" => {}
                    other => return Err(type_error(format!("to() got an unexpected keyword argument '{other}'"))),
                }
            }
        }
        let t = Self::of(slf);
        converted(slf, dtype.unwrap_or_else(|| t.dtype()), device.unwrap_or_else(|| t.device()), copy)
    }

    /// The name of the tensor's type, or the tensor in another dtype.
    #[pyo3(signature = (dtype=None, non_blocking=false))]
    fn r#type(slf: &Bound<'_, Self>, dtype: Option<&PyObj<'_>>, non_blocking: bool) -> PyObjResult {
        let _ = non_blocking;
        let Some(d) = dtype.filter(|d| !d.is_none()) else {
            let name = format!("rgrad.{}Tensor", Self::of(slf).dtype().type_name());
            return Ok(name.into_pyobject(slf.py())?.into_any().unbind());
        };
        if let Ok(text) = d.extract::<String>() {
            let short = text.rsplit('.').next().unwrap_or_default();
            let found = DType::ALL.into_iter().find(|d| format!("{}Tensor", d.type_name()) == short);
            return match found {
                Some(d) => to_dtype(slf, d, false),
                None => Err(PyValueError::new_err(format!("invalid type: '{text}'"))),
            };
        }
        to_dtype(slf, dtype_of(d, "type()")?, false)
    }

    fn type_as(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> PyObjResult {
        converted(slf, Self::of(other).dtype(), Self::of(other).device(), false)
    }

    fn float(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::F32, false)
    }

    fn double(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::F64, false)
    }

    fn int(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::I32, false)
    }

    fn long(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::I64, false)
    }

    fn bool(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::Bool, false)
    }

    fn byte(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::U8, false)
    }

    fn char(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::I8, false)
    }

    fn short(slf: &Bound<'_, Self>) -> PyObjResult {
        to_dtype(slf, DType::I16, false)
    }

    fn half(slf: &Bound<'_, Self>) -> PyObjResult {
        let _ = slf;
        Err(missing_dtype("float16"))
    }

    fn bfloat16(slf: &Bound<'_, Self>) -> PyObjResult {
        let _ = slf;
        Err(missing_dtype("bfloat16"))
    }

    /// This tensor on the CPU; itself if it is there already.
    #[pyo3(signature = (memory_format=None))]
    fn cpu(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        let _ = memory_format;
        converted(slf, Self::of(slf).dtype(), Device::CPU, false)
    }

    /// This tensor on the wgpu device; itself if it is there already. `device` may name it; `non_blocking` is accepted and uploads never wait.
    #[pyo3(signature = (device=None, non_blocking=false))]
    fn wgpu(slf: &Bound<'_, Self>, device: Option<&PyObj<'_>>, non_blocking: bool) -> PyObjResult {
        let _ = non_blocking;
        match device_of(device)? {
            None | Some(Device::WGPU) => converted(slf, Self::of(slf).dtype(), Device::WGPU, false),
            Some(d) => Err(Error::runtime(format!("Invalid device, must be wgpu device, got {d}")).into()),
        }
    }

    #[getter]
    fn is_wgpu(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).device() == Device::WGPU
    }

    #[getter]
    fn is_meta(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).device() == Device::META
    }

    #[getter]
    fn is_cpu(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).device() == Device::CPU
    }
}

/// How many elements a tensor has.
#[pyfunction]
fn numel(input: &Bound<'_, PyTensor>) -> usize {
    PyTensor::of(input).numel()
}

// ---- comparisons of whole tensors ------------------------------------------------------------------------------------

functions_and_methods! {
    /// Where `|input - other| <= atol + rtol * |other|`; nan equals nan with `equal_nan`.
    fn isclose(x, other: &Bound<'_, PyTensor>, rtol: f64, atol: f64, equal_nan: bool) sig(other, rtol=1e-5, atol=1e-8, equal_nan=false) {
        wrap(x.py(), compare::isclose(PyTensor::of(x), PyTensor::of(other), rtol, atol, equal_nan)?)
    }
    /// Whether `isclose` holds everywhere.
    fn allclose(x, other: &Bound<'_, PyTensor>, rtol: f64, atol: f64, equal_nan: bool) sig(other, rtol=1e-5, atol=1e-8, equal_nan=false) {
        let close = compare::isclose(PyTensor::of(x), PyTensor::of(other), rtol, atol, equal_nan)?;
        Ok(pyo3::types::PyBool::new(x.py(), compare::all(&close)?).to_owned().into_any().unbind())
    }
    /// Whether shapes and all elements are equal.
    fn equal(x, other: &Bound<'_, PyTensor>) sig(other) {
        let (a, b) = (PyTensor::of(x), PyTensor::of(other));
        let same = a.shape() == b.shape() && compare::all(&pw::call(RowId::Eq, &[a.into(), b.into()], &[])?)?;
        Ok(pyo3::types::PyBool::new(x.py(), same).to_owned().into_any().unbind())
    }
}

/// How `clone` and its kin lay out memory; only row-major and "as it was" exist.
#[pyclass(name = "memory_format", module = "rgrad", frozen)]
struct MemoryFormat(&'static str);

#[pymethods]
impl MemoryFormat {
    fn __repr__(&self) -> String {
        format!("rgrad.{}", self.0)
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(numel, m)?)?;
    m.add_class::<PyStorage>()?;
    m.add_class::<MemoryFormat>()?;
    for name in ["contiguous_format", "preserve_format"] {
        m.add(name, Py::new(m.py(), MemoryFormat(name))?)?;
    }
    Ok(())
}
