//! A tensor's properties (shape, strides, dtype, device, storage), conversions of dtype and device, and comparisons of whole tensors.
//!
//! Properties about gradients are in `autograd`, elements as Python values in `convert::to_python`.

use crate::array::Device;
use crate::array::Storage;
use crate::autograd::primitives;
use crate::error::Error;
use crate::layout::{DType, MemoryFormat, wrap_dim};
use crate::ops::{compare, memory_format, pointwise as pw};
use crate::python::args::{as_tensor, flag, tensor, type_name};
use crate::python::dtype::{PyDType, PyDevice, device_object, device_of, dtype_object, dtype_of, is_device, size_object};
use crate::python::errors::{runtime, type_error};
use crate::python::functions::shape::give;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::complex::warn_of_lost_parts;
use crate::python::tensor::identity::wrap;
use crate::python::tensor::memory_format::format_of;
use crate::python::types::{PyObj, PyObjResult};
use crate::rows::RowId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The memory of a tensor, which views share.
#[pyclass(name = "UntypedStorage", module = "rgrad", frozen)]
struct PyStorage(Storage);

fn address_of(storage: &Storage) -> PyResult<usize> {
    if storage.device() == Device::META {
        return Ok(0);
    }
    if let Some(address) = storage.device_address() {
        return Ok(address);
    }
    storage.expose()?;
    Ok(storage.memory(crate::array::Access::Read) as usize)
}

#[pymethods]
impl PyStorage {
    /// The address of the first byte. For memory of a device, a number that no other memory has, to compare; 0 for meta.
    fn data_ptr(&self) -> PyResult<usize> {
        address_of(&self.0)
    }

    /// An identifier of the memory, on any device, as long as a tensor holds it.
    #[getter]
    fn _cdata(&self) -> usize {
        self.0.id()
    }

    /// The size in bytes.
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// The size in bytes, which are the elements of an untyped storage.
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

/// A conversion, which returns the tensor itself if nothing changes and `copy` is false.
fn converted(x: &Bound<'_, PyTensor>, dtype: DType, device: Device, copy: bool) -> PyObjResult {
    let t = PyTensor::of(x);
    if t.dtype() == dtype && t.device() == device {
        return if copy { wrap(x.py(), primitives::clone(t)?) } else { Ok(x.clone().into_any().unbind()) };
    }
    warn_of_lost_parts(x.py(), t.dtype(), dtype)?;
    // A device may not support a dtype that the CPU has, so conversions run on the CPU.
    let t = if t.device() == Device::CPU {
        primitives::to_device(&primitives::cast(t, dtype)?, device)?
    } else {
        primitives::cast(&primitives::to_device(t, device)?, dtype)?
    };
    wrap(x.py(), t)
}

/// As `converted`, with the elements in the order of a format.
fn arranged(x: &Bound<'_, PyTensor>, dtype: DType, device: Device, format: Option<MemoryFormat>, copy: bool) -> PyObjResult {
    let Some(format) = format else { return converted(x, dtype, device, copy) };
    let t = PyTensor::of(x);
    if t.dtype() == dtype && t.device() == device {
        return give(x, memory_format::to(t, format, copy)?);
    }
    let made = converted(x, dtype, device, false)?;
    let made = made.bind(x.py()).cast::<PyTensor>()?.clone();
    give(&made, memory_format::to(PyTensor::of(&made), format, false)?)
}

fn in_format(x: &Bound<'_, PyTensor>, dtype: DType, function: &str, format: Option<&PyObj<'_>>) -> PyObjResult {
    arranged(x, dtype, PyTensor::of(x).device(), format_of(format, function)?, false)
}

#[pymethods]
impl PyTensor {
    /// The sizes of the dimensions.
    #[getter]
    fn shape(slf: &Bound<'_, Self>) -> PyObjResult {
        // Not under the tensor's lock: making an object may run the garbage collector.
        let shape = Self::of(slf).shape();
        size_object(slf.py(), &shape)
    }

    /// The sizes of all dimensions, or of dimension `dim`.
    ///
    /// Raises:
    ///     IndexError: The tensor has no dimension `dim`.
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

    /// The strides of all dimensions, or of dimension `dim`, in elements.
    ///
    /// Raises:
    ///     IndexError: The tensor has no dimension `dim`.
    #[pyo3(signature = (dim=None))]
    fn stride(slf: &Bound<'_, Self>, dim: Option<i64>) -> PyObjResult {
        let py = slf.py();
        let array = Self::of(slf).memory();
        match dim {
            None => Ok(PyTuple::new(py, array.strides())?.into_any().unbind()),
            Some(d) if array.rank() == 0 => Err(Error::index(format!("Dimension specified as {d} but tensor has no dimensions")).into()),
            Some(d) => {
                Ok(array.strides()[wrap_dim(d, array.rank()).map_err(crate::error::Error::from)?].into_pyobject(py)?.into_any().unbind())
            }
        }
    }

    /// The offset of the first element in the storage, in elements.
    fn storage_offset(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).with_array(|a| a.layout().offset())
    }

    /// The address of the first element, 0 if there is none. For memory of a device, a number that no other memory has, to compare.
    ///
    /// Raises:
    ///     RuntimeError: The tensor belongs to a function transform.
    fn data_ptr(slf: &Bound<'_, Self>) -> PyResult<usize> {
        if Self::of(slf).level() > 0 {
            return Err(runtime(
                "Cannot access data pointer of Tensor that doesn't have storage: it stands for one inside a function transform",
            ));
        }
        let a = Self::of(slf).memory();
        let start = address_of(a.storage())?;
        Ok(if a.numel() == 0 { 0 } else { start + a.layout().offset() * a.dtype().size() })
    }

    /// The storage, which all views of the tensor share.
    fn untyped_storage(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let storage = Self::of(slf).memory().storage().clone();
        Ok(Py::new(slf.py(), PyStorage(storage))?.into_any())
    }

    /// The bytes of one element.
    fn element_size(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).dtype().size()
    }

    /// The bytes of one element.
    #[getter]
    fn itemsize(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).dtype().size()
    }

    /// The bytes of all elements.
    #[getter]
    fn nbytes(slf: &Bound<'_, Self>) -> usize {
        let t = Self::of(slf);
        t.numel() * t.dtype().size()
    }

    /// The number of elements.
    fn nelement(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).numel()
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).rank()
    }

    /// The number of dimensions.
    fn dim(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).rank()
    }

    /// The number of dimensions.
    fn ndimension(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).rank()
    }

    /// The number of elements.
    #[pyo3(name = "numel")]
    fn m_numel(slf: &Bound<'_, Self>) -> usize {
        Self::of(slf).numel()
    }

    /// The dtype of the elements.
    #[getter]
    fn dtype(slf: &Bound<'_, Self>) -> PyResult<Py<PyDType>> {
        dtype_object(slf.py(), Self::of(slf).dtype())
    }

    /// The device on which the memory is.
    // In Rust it is not named `device`: PyO3 would use the same internal name as for the method `get_device`.
    #[getter(device)]
    fn device_of_tensor(slf: &Bound<'_, Self>) -> PyDevice {
        device_object(Self::of(slf).device())
    }

    /// Whether the tensor is on a CUDA device: always False.
    #[getter]
    fn is_cuda(slf: &Bound<'_, Self>) -> bool {
        let _ = slf;
        false
    }

    /// Whether the tensor is sparse: always False.
    #[getter]
    fn is_sparse(slf: &Bound<'_, Self>) -> bool {
        let _ = slf;
        false
    }

    /// Whether the dtype is a floating point dtype.
    #[pyo3(name = "is_floating_point")]
    fn m_is_floating_point(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).dtype().is_float()
    }

    /// Whether the dtype is complex.
    #[pyo3(name = "is_complex")]
    fn m_is_complex(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).dtype().is_complex()
    }

    /// Whether the elements can be negative.
    fn is_signed(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).dtype().is_signed()
    }

    /// Whether `other` has the same shape.
    fn is_same_size(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> bool {
        Self::of(slf).shape() == Self::of(other).shape()
    }

    // ---- conversion --------------------------------------------------------------------------------------------------

    /// This tensor with another dtype, on another device, or both; itself if nothing changes.
    ///
    /// Args:
    ///     *args: A dtype, a device, both, or a tensor that has them; then `non_blocking` and `copy`.
    ///     **kwargs: `dtype`, `device`, `other`, `copy`, `memory_format`; `non_blocking` has no effect.
    ///
    /// Raises:
    ///     RuntimeError: The device is not available.
    ///     TypeError: An argument is none of these.
    #[pyo3(signature = (*args, **kwargs))]
    fn to(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let (mut dtype, mut device, mut format) = (None, None, None);
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
        // The flags after the target are non_blocking and copy.
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
                    "copy" => copy = flag(&v, "to", "copy")?,
                    "memory_format" => format = format_of(Some(&v), "to")?,
                    "non_blocking" => {
                        flag(&v, "to", "non_blocking")?;
                    }
                    other => return Err(type_error(format!("to() got an unexpected keyword argument '{other}'"))),
                }
            }
        }
        let t = Self::of(slf);
        arranged(slf, dtype.unwrap_or_else(|| t.dtype()), device.unwrap_or_else(|| t.device()), format, copy)
    }

    /// The name of the tensor's type; with `dtype` (a dtype or such a name) the tensor converted to it.
    #[pyo3(signature = (dtype=None, non_blocking=false, *, memory_format=None))]
    fn r#type(slf: &Bound<'_, Self>, dtype: Option<&PyObj<'_>>, non_blocking: bool, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        let _ = non_blocking;
        let format = format_of(memory_format, "type")?;
        let Some(d) = dtype.filter(|d| !d.is_none()) else {
            let name = format!("rgrad.{}Tensor", Self::of(slf).dtype().type_name());
            return Ok(name.into_pyobject(slf.py())?.into_any().unbind());
        };
        if let Ok(text) = d.extract::<String>() {
            let mut parts = text.rsplit('.');
            let short = parts.next().unwrap_or_default();
            // `torch.cuda.FloatTensor` is another type, which there is not.
            let plain = parts.count() < 2;
            let found = DType::ALL.into_iter().find(|d| plain && format!("{}Tensor", d.type_name()) == short);
            return match found {
                Some(d) => arranged(slf, d, Self::of(slf).device(), format, false),
                None => Err(PyValueError::new_err(format!("invalid type: '{text}'"))),
            };
        }
        if d.is(slf.py().get_type::<PyTensor>()) {
            // As in PyTorch: tensors of this class are made on the CPU, in the default dtype.
            return wrap(slf.py(), primitives::to_device(&primitives::cast(Self::of(slf), pw::default_dtype())?, Device::CPU)?);
        }
        // The type objects `FloatTensor` ... name their dtype.
        let named = if d.is_instance_of::<pyo3::types::PyType>() { d.getattr_opt("dtype")? } else { None };
        arranged(slf, dtype_of(named.as_ref().unwrap_or(d), "type()")?, Self::of(slf).device(), format, false)
    }

    /// This tensor with the dtype and device of `other`.
    fn type_as(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> PyObjResult {
        converted(slf, Self::of(other).dtype(), Self::of(other).device(), false)
    }

    /// This tensor with dtype float32; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn float(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::F32, "float", memory_format)
    }

    /// This tensor with dtype float64; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn double(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::F64, "double", memory_format)
    }

    /// This tensor with dtype int32; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn int(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::I32, "int", memory_format)
    }

    /// This tensor with dtype int64; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn long(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::I64, "long", memory_format)
    }

    /// This tensor with dtype bool; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn bool(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::Bool, "bool", memory_format)
    }

    /// This tensor with dtype uint8; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn byte(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::U8, "byte", memory_format)
    }

    /// This tensor with dtype int8; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn char(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::I8, "char", memory_format)
    }

    /// This tensor with dtype int16; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn short(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::I16, "short", memory_format)
    }

    /// This tensor with dtype float16; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn half(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::F16, "half", memory_format)
    }

    /// This tensor with dtype bfloat16; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn bfloat16(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::BF16, "bfloat16", memory_format)
    }

    /// This tensor with dtype complex32; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn chalf(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::C32, "chalf", memory_format)
    }

    /// This tensor with dtype complex64; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn cfloat(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::C64, "cfloat", memory_format)
    }

    /// This tensor with dtype complex128; itself if it has this dtype.
    #[pyo3(signature = (*, memory_format=None))]
    fn cdouble(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        in_format(slf, DType::C128, "cdouble", memory_format)
    }

    /// This tensor on the CPU; itself if it is there.
    #[pyo3(signature = (memory_format=None))]
    fn cpu(slf: &Bound<'_, Self>, memory_format: Option<&PyObj<'_>>) -> PyObjResult {
        arranged(slf, Self::of(slf).dtype(), Device::CPU, format_of(memory_format, "cpu")?, false)
    }

    /// This tensor on the wgpu device; itself if it is there.
    ///
    /// Args:
    ///     device: None, or a name of the wgpu device.
    ///     non_blocking: Has no effect; uploads never block.
    ///
    /// Raises:
    ///     RuntimeError: `device` is another device.
    #[pyo3(signature = (device=None, non_blocking=false))]
    fn wgpu(slf: &Bound<'_, Self>, device: Option<&PyObj<'_>>, non_blocking: bool) -> PyObjResult {
        let _ = non_blocking;
        match device_of(device)? {
            None | Some(Device::WGPU) => converted(slf, Self::of(slf).dtype(), Device::WGPU, false),
            Some(d) => Err(Error::runtime(format!("Invalid device, must be wgpu device, got {d}")).into()),
        }
    }

    /// Whether the tensor is on the wgpu device.
    #[getter]
    fn is_wgpu(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).device() == Device::WGPU
    }

    /// Whether the tensor is on the meta device: it has a shape and a dtype, but no elements.
    #[getter]
    fn is_meta(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).device() == Device::META
    }

    /// Whether the tensor is on the CPU.
    #[getter]
    fn is_cpu(slf: &Bound<'_, Self>) -> bool {
        Self::of(slf).device() == Device::CPU
    }
}

/// The number of elements of a tensor.
#[pyfunction]
fn numel(input: &Bound<'_, PyTensor>) -> usize {
    PyTensor::of(input).numel()
}

// ---- comparisons of whole tensors ------------------------------------------------------------------------------------

functions_and_methods! {
    /// Where `|input - other| <= atol + rtol * |other|`. With `equal_nan`, NaN equals NaN.
    fn isclose(x, other: &Bound<'_, PyTensor>, rtol: f64, atol: f64, equal_nan: bool) sig(other, rtol=1e-5, atol=1e-8, equal_nan=false) {
        wrap(x.py(), compare::isclose(PyTensor::of(x), PyTensor::of(other), rtol, atol, equal_nan)?)
    }
    /// Whether `isclose` is true for all elements.
    fn allclose(x, other: &Bound<'_, PyTensor>, rtol: f64, atol: f64, equal_nan: bool) sig(other, rtol=1e-5, atol=1e-8, equal_nan=false) {
        let close = compare::isclose(PyTensor::of(x), PyTensor::of(other), rtol, atol, equal_nan)?;
        Ok(pyo3::types::PyBool::new(x.py(), compare::all(&close)?).to_owned().into_any().unbind())
    }
    /// Whether the shapes and all elements are equal.
    fn equal(x, other: &Bound<'_, PyTensor>) sig(other) {
        let (a, b) = (PyTensor::of(x), PyTensor::of(other));
        let same = a.shape() == b.shape() && compare::all(&pw::call(RowId::Eq, &[a.into(), b.into()], &[])?)?;
        Ok(pyo3::types::PyBool::new(x.py(), same).to_owned().into_any().unbind())
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(numel, m)?)?;
    m.add_class::<PyStorage>()?;
    super::memory_format::register(m)
}
