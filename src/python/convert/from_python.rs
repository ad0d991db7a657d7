//! Tensors from Python's values: nested sequences, numbers and NumPy arrays (`tensor`, `as_tensor`, `asarray`, `from_numpy`).
//!
//! Tensors from sizes (`zeros`, `arange`) are in `functions::create`.

use crate::array::{Array, Device};
use crate::autograd::{Tensor, primitives};
use crate::error::Error;
use crate::layout::{Category, Complex, DType, Dims, Element, MAX_DIMS, NumberKind, Scalar, by_element};
use crate::ops::create::make_room;
use crate::ops::{pointwise, room};
use crate::python::args::{as_tensor, type_name};
use crate::python::convert::numpy_memory::{self, NdArray};
use crate::python::device::device_or_default;
use crate::python::dtype::dtype_option;
use crate::python::errors::{runtime, type_error};
use crate::python::functions::shape::MANY;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

// ---- from Python -----------------------------------------------------------------------------------------------------

/// A number whose final dtype is not known yet.
#[derive(Clone, Copy)]
enum Leaf {
    Number(Scalar),
    /// An int that does not fit into 64 bits, as a float.
    Huge(f64),
}

#[derive(Default)]
struct Collected {
    leaves: Vec<Leaf>,
    dtype: Option<DType>,
}

impl Collected {
    fn push(&mut self, leaf: Leaf, dtype: DType) {
        self.leaves.push(leaf);
        self.dtype = Some(self.dtype.map_or(dtype, |d| d.promote(dtype)));
    }
}

fn is_text(obj: &PyObj<'_>) -> bool {
    obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyBytes>()
}

/// Whether an object is a nested sequence: it has a length and items by index.
fn is_level(obj: &PyObj<'_>) -> bool {
    if obj.is_exact_instance_of::<PyFloat>() || obj.is_exact_instance_of::<PyInt>() || obj.is_exact_instance_of::<PyBool>() {
        return false;
    }
    if obj.is_exact_instance_of::<PyList>() || obj.is_exact_instance_of::<PyTuple>() {
        return true;
    }
    // SAFETY: a valid object under the GIL.
    let sequence = unsafe { ffi::PySequence_Check(obj.as_ptr()) } == 1;
    sequence && as_tensor(obj).is_none() && !is_text(obj) && !obj.is_instance_of::<PyDict>() && obj.len().is_ok()
}

#[inline]
fn get<'py>(obj: &PyObj<'py>, i: usize) -> PyResult<PyObj<'py>> {
    // SAFETY: a valid object under the GIL. The result is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(obj.py(), ffi::PySequence_GetItem(obj.as_ptr(), i as ffi::Py_ssize_t)) }
}

/// The error of an object whose items have labels in place of numbers, as a table of pandas.
#[cold]
fn labelled(obj: &PyObj<'_>) -> PyErr {
    PyValueError::new_err(format!(
        "could not determine the shape of object type '{}': it has no item 0; convert it first, as with .to_numpy()",
        type_name(obj)
    ))
}

/// The shape that the first elements of all levels of nesting have.
fn shape_of(obj: &PyObj<'_>) -> PyResult<Dims> {
    let mut shape = Dims::new();
    let mut at = obj.clone();
    while is_level(&at) {
        let n = at.len()?;
        shape.push(n);
        if shape.len() > MAX_DIMS {
            return Err(PyValueError::new_err(format!("too many dimensions '{}'", type_name(&at))));
        }
        if n == 0 {
            return Ok(shape);
        }
        at = get(&at, 0).map_err(|e| if e.is_instance_of::<PyKeyError>(obj.py()) { labelled(&at) } else { e })?;
    }
    if !shape.is_empty() && is_text(&at) {
        return Err(PyValueError::new_err(format!("too many dimensions '{}'", type_name(&at))));
    }
    Ok(shape)
}

fn int_leaf(obj: &PyObj<'_>) -> PyResult<Leaf> {
    match (obj.extract::<i64>(), obj.extract::<u64>()) {
        (Ok(i), _) => Ok(Leaf::Number(Scalar::Int(i))),
        (_, Ok(u)) => Ok(Leaf::Number(Scalar::Unsigned(u))),
        _ => Ok(Leaf::Huge(obj.extract::<f64>().unwrap_or(f64::INFINITY))),
    }
}

fn complex_leaf(obj: &PyObj<'_>) -> PyResult<Leaf> {
    let z: &Bound<'_, PyComplex> = obj.cast()?;
    Ok(Leaf::Number(Scalar::Complex(Complex { re: z.real(), im: z.imag() })))
}

/// One number.
fn leaf(obj: &PyObj<'_>, out: &mut Collected) -> PyResult<()> {
    if obj.is_exact_instance_of::<PyFloat>() {
        out.push(Leaf::Number(Scalar::Float(obj.extract()?)), pointwise::default_dtype());
        return Ok(());
    }
    if obj.is_exact_instance_of::<PyInt>() {
        out.push(int_leaf(obj)?, DType::I64);
        return Ok(());
    }
    if obj.is_exact_instance_of::<PyBool>() {
        out.push(Leaf::Number(Scalar::Bool(obj.extract()?)), DType::Bool);
        return Ok(());
    }
    if let Some(t) = as_tensor(obj) {
        if t.numel() != 1 {
            return Err(PyValueError::new_err(format!(
                "only one element tensors can be converted to Python scalars, got shape {:?}",
                &t.shape()[..]
            )));
        }
        out.push(Leaf::Number(crate::python::convert::to_python::item_of(t)?.first()?), t.dtype());
        return Ok(());
    }
    if let Some(d) = numpy_memory::scalar_dtype(obj)? {
        let item = obj.call_method0("item")?;
        let value = match d.category() {
            Category::Bool => Leaf::Number(Scalar::Bool(item.extract()?)),
            Category::Float => Leaf::Number(Scalar::Float(item.extract()?)),
            Category::Complex => complex_leaf(&item)?,
            Category::Integer => int_leaf(&item)?,
        };
        out.push(value, d);
        return Ok(());
    }
    if obj.is_instance_of::<PyFloat>() {
        out.push(Leaf::Number(Scalar::Float(obj.extract()?)), pointwise::default_dtype());
    } else if obj.is_instance_of::<PyInt>() {
        out.push(int_leaf(obj)?, DType::I64);
    } else if obj.is_instance_of::<PyComplex>() {
        let default = pointwise::default_dtype();
        out.push(complex_leaf(obj)?, default.to_complex(default));
    } else if is_text(obj) {
        return Err(type_error(format!("new(): invalid data type '{}'", type_name(obj))));
    } else if is_level(obj) {
        return Err(type_error(format!("'{}' object cannot be interpreted as a number", type_name(obj))));
    } else {
        return Err(runtime(format!("Could not infer dtype of {}", type_name(obj))));
    }
    Ok(())
}

/// Collects all numbers in row-major order. All sequences of a level must have the same length.
fn collect(obj: &PyObj<'_>, shape: &[usize], dim: usize, out: &mut Collected) -> PyResult<()> {
    let Some(&n) = shape.get(dim) else { return leaf(obj, out) };
    if !is_level(obj) {
        return Err(type_error(format!("not a sequence: expected {n} elements at dim {dim}, got {}", type_name(obj))));
    }
    let have = obj.len()?;
    if have != n {
        return Err(PyValueError::new_err(format!("expected sequence of length {n} at dim {dim} (got {have})")));
    }
    for i in 0..n {
        if i % MANY == MANY - 1 {
            obj.py().check_signals()?;
        }
        collect(&get(obj, i)?, shape, dim + 1, out)?;
    }
    Ok(())
}

#[cold]
fn overflow(dtype: DType, value: &dyn std::fmt::Display) -> PyErr {
    Error::runtime(format!("value cannot be converted to type {dtype} without overflow: got {value}")).into()
}

/// A number in a dtype; an error if it does not fit. Negative numbers wrap around in unsigned dtypes, as in PyTorch.
fn fit(leaf: Leaf, dtype: DType) -> PyResult<Scalar> {
    let value = match leaf {
        Leaf::Huge(v) if dtype.is_differentiable() => return Ok(Scalar::Float(v)),
        Leaf::Number(Scalar::Unsigned(u)) if dtype == DType::U64 => return Ok(Scalar::Unsigned(u)),
        Leaf::Number(Scalar::Unsigned(u)) if dtype.is_differentiable() => return Ok(Scalar::Float(u as f64)),
        Leaf::Number(Scalar::Unsigned(u)) => return Err(PyValueError::new_err(format!("Overflow when unpacking long long: got {u}"))),
        Leaf::Huge(v) => return Err(PyValueError::new_err(format!("Overflow when unpacking long long: got {v:e}"))),
        Leaf::Number(s) => s,
    };
    let (low, high) = match (dtype.kind(), dtype.integers()) {
        (NumberKind::Bool, _) => return Ok(Scalar::Bool(value.to_bool())),
        (NumberKind::Float, _) => {
            return match value {
                Scalar::Complex(_) => Err(type_error("must be real number, not complex")),
                v => Ok(v),
            };
        }
        (NumberKind::Complex, _) | (_, None) => return Ok(value),
        (NumberKind::Unsigned, Some((_, high))) if matches!(value, Scalar::Float(_)) => (0, high),
        (NumberKind::Unsigned, Some((_, high))) => (-high, high),
        (NumberKind::Signed, Some(both)) => both,
    };
    let i = match value {
        // As in PyTorch a fraction beyond the last number does not fit either.
        Scalar::Float(v) if !(v >= low as f64 && v <= high as f64 && v.abs() < 9.223372036854776e18) => {
            return Err(overflow(dtype, &v));
        }
        Scalar::Complex(_) => return Err(type_error("'complex' object cannot be interpreted as an integer")),
        s => s.to_i64(),
    };
    if i < low || i > high {
        return Err(overflow(dtype, &i));
    }
    Ok(Scalar::Int(i))
}

fn store(collected: &Collected, shape: &[usize], dtype: DType) -> PyResult<Array> {
    make_room(collected.leaves.len());
    let a = Array::empty(shape, dtype)?;
    debug_assert_eq!(a.numel(), collected.leaves.len());
    by_element!(dtype, T => {
        let to = a.ptr_mut().cast::<<T as Element>::Raw>();
        for (i, l) in collected.leaves.iter().enumerate() {
            let v = <T as Element>::of_scalar(fit(*l, dtype)?);
            // SAFETY: the array is new and contiguous, with one element for each leaf.
            unsafe { to.add(i).write(v.raw()) };
        }
    });
    Ok(a)
}

/// A new tensor from any data, which never shares memory.
pub(crate) fn tensor_from(data: &PyObj<'_>, dtype: Option<DType>) -> PyResult<Tensor> {
    if let Some(t) = as_tensor(data) {
        let t = t.detach();
        let d = dtype.unwrap_or_else(|| t.dtype());
        let a = t.array()?;
        return Ok(Tensor::new(if d == a.dtype() { a.clone_dense()? } else { a.cast(d)? }));
    }
    if !is_builtin(data)
        && let Some(array) = NdArray::of(data)?
    {
        let a = array.read()?;
        return Ok(Tensor::new(match dtype {
            Some(d) if d != a.dtype() => a.cast(d)?.contiguous()?,
            _ => a.contiguous_copy()?,
        }));
    }
    if is_text(data) {
        return Err(type_error(format!("new(): invalid data type '{}'", type_name(data))));
    }
    if !is_builtin(data) && !is_level(data) && data.hasattr("__array__")? && numpy_memory::scalar_dtype(data)?.is_none() {
        let array = data.call_method0("__array__")?;
        // Not any object: one that returns itself would be asked without end.
        if as_tensor(&array).is_none() && NdArray::of(&array)?.is_none() {
            return Err(PyValueError::new_err(format!(
                "object __array__ method not producing an array: {}.__array__() returned {}",
                type_name(data),
                type_name(&array)
            )));
        }
        return tensor_from(&array, dtype);
    }
    let shape = shape_of(data)?;
    let mut collected = Collected::default();
    if !shape.contains(&0) {
        let leaves = crate::layout::checked_numel(&shape, 1).map_err(crate::error::Error::from)?;
        // A list of numbers holds that many objects already; anything else may claim any length.
        room::check("tensor", leaves, size_of::<Leaf>() + size_of::<f64>())?;
        collected.leaves.reserve(leaves.min(1 << 24));
        collect(data, &shape, 0, &mut collected)?;
    }
    let dtype = dtype.or(collected.dtype).unwrap_or_else(pointwise::default_dtype);
    Ok(Tensor::new(store(&collected, &shape, dtype)?))
}

/// Whether an object is certainly not an array, so that NumPy is not needed.
fn is_builtin(obj: &PyObj<'_>) -> bool {
    obj.is_exact_instance_of::<PyList>()
        || obj.is_exact_instance_of::<PyTuple>()
        || obj.is_exact_instance_of::<PyFloat>()
        || obj.is_exact_instance_of::<PyInt>()
        || obj.is_exact_instance_of::<PyBool>()
        || obj.is_instance_of::<PyString>()
}

pub(crate) fn require_grad(t: &Tensor, on: bool) -> PyResult<()> {
    if on && !t.dtype().is_differentiable() {
        return Err(Error::runtime("Only Tensors of floating point and complex dtype can require gradients").into());
    }
    if on {
        t.set_requires_grad(true)?;
    }
    Ok(())
}

/// A new tensor with a copy of `data`.
///
/// Args:
///     data: Numbers, nested sequences of them, NumPy arrays or tensors.
///     dtype: The dtype; by default that of `data`: the default dtype for floats, int64 for ints, bool for bools.
///     device: The device; by default that of `data` if it is a tensor, else the default device.
///     requires_grad: Whether operations on the tensor are recorded.
///     pin_memory: Has no effect.
///
/// Raises:
///     RuntimeError: No dtype can be inferred, a number does not fit into `dtype`, or the device is not available.
///     TypeError: An element is not a number.
///     ValueError: Sequences of one level have different lengths, or an int does not fit into 64 bits.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false, pin_memory=false))]
fn tensor(
    py: Python<'_>,
    data: &PyObj<'_>,
    dtype: Option<&PyObj<'_>>,
    device: Option<&PyObj<'_>>,
    requires_grad: bool,
    pin_memory: bool,
) -> PyObjResult {
    let _ = pin_memory;
    let dtype = dtype_option(dtype, "tensor()")?;
    let device = device_or_default(device)?;
    if as_tensor(data).is_some() {
        let message = "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or \
                       sourceTensor.detach().clone().requires_grad_(True), rather than rgrad.tensor(sourceTensor).";
        PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &std::ffi::CString::new(message)?, 1)?;
    }
    let t = tensor_from(data, dtype)?;
    let device = device.unwrap_or_else(|| as_tensor(data).map_or(Device::CPU, Tensor::device));
    let t = primitives::to_device(&t, device)?;
    require_grad(&t, requires_grad)?;
    wrap(py, t)
}

/// The data as a tensor, without a copy where that is possible.
///
/// Args:
///     data: As in `tensor`. Tensors and NumPy arrays of the same dtype and device share their memory with the result.
///     dtype: The dtype; by default that of `data`.
///     device: The device; by default that of `data`.
///
/// Raises:
///     RuntimeError: As in `tensor`.
///     TypeError: As in `tensor`.
///     ValueError: As in `tensor`.
#[pyfunction]
#[pyo3(name = "as_tensor", signature = (data, dtype=None, device=None))]
fn as_tensor_(py: Python<'_>, data: &PyObj<'_>, dtype: Option<&PyObj<'_>>, device: Option<&PyObj<'_>>) -> PyObjResult {
    let dtype = dtype_option(dtype, "as_tensor()")?;
    let device = device_or_default(device)?;
    if let Some(t) = as_tensor(data) {
        let (to, on) = (dtype.unwrap_or_else(|| t.dtype()), device.unwrap_or_else(|| t.device()));
        if (to, on) == (t.dtype(), t.device()) {
            return Ok(data.clone().unbind());
        }
        return wrap(py, primitives::cast(&primitives::to_device(t, on)?, to)?);
    }
    let on = device.unwrap_or_default();
    if !is_builtin(data)
        && let Some(array) = NdArray::of(data)?
        && array.dtype().is_ok_and(|d| dtype.is_none_or(|want| want == d))
        && array.can_share()
    {
        return wrap(py, primitives::to_device(&Tensor::new(array.share()?), on)?);
    }
    wrap(py, primitives::to_device(&tensor_from(data, dtype)?, on)?)
}

/// The data as a tensor, with or without a copy.
///
/// Args:
///     obj: As `data` in `tensor`.
///     dtype: The dtype; by default that of `obj`.
///     device: The device; by default that of `obj`.
///     copy: True always copies, False never does; None copies if it is necessary.
///     requires_grad: Whether operations on the tensor are recorded.
///
/// Raises:
///     ValueError: `copy` is False, but a copy is necessary. Further errors are those of `tensor`.
#[pyfunction]
#[pyo3(signature = (obj, *, dtype=None, device=None, copy=None, requires_grad=false))]
fn asarray(
    py: Python<'_>,
    obj: &PyObj<'_>,
    dtype: Option<&PyObj<'_>>,
    device: Option<&PyObj<'_>>,
    copy: Option<bool>,
    requires_grad: bool,
) -> PyObjResult {
    let out = if copy == Some(true) {
        let on = device_or_default(device)?.unwrap_or_else(|| as_tensor(obj).map_or(Device::CPU, Tensor::device));
        wrap(py, primitives::to_device(&tensor_from(obj, dtype_option(dtype, "asarray()")?)?, on)?)?
    } else {
        as_tensor_(py, obj, dtype, device)?
    };
    let t = crate::python::args::tensor(out.bind(py), "asarray()")?;
    if copy == Some(false) {
        let shares = match as_tensor(obj) {
            Some(given) => given.shares_memory_with(t),
            None => NdArray::of(obj)?.is_some_and(|a| t.device() == Device::CPU && a.pointer() == t.memory().ptr()),
        };
        if !shares {
            return Err(PyValueError::new_err("asarray(): can't alias the data without a copy, but copy=False was given"));
        }
    }
    require_grad(t, requires_grad)?;
    Ok(out)
}

/// A tensor that shares its memory with a NumPy array, so that each sees writes to the other.
///
/// Raises:
///     TypeError: `ndarray` is not an array, or rgrad has no dtype like its own.
///     ValueError: The array has negative strides, foreign byte order, or is not aligned to its elements.
#[pyfunction]
fn from_numpy(py: Python<'_>, ndarray: &PyObj<'_>) -> PyObjResult {
    let Some(array) = NdArray::of(ndarray)? else {
        return Err(type_error(format!("expected np.ndarray (got {})", type_name(ndarray))));
    };
    let shared = array.share()?;
    if !shared.storage().is_writable() {
        let message =
            c"The given NumPy array is not writable: the tensor shares its memory and refuses in-place operations. Copy the array \
                        (array.copy()) to get a tensor that can be written.";
        PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), message, 1)?;
    }
    wrap(py, Tensor::new(shared))
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(tensor, m)?)?;
    m.add_function(wrap_pyfunction!(as_tensor_, m)?)?;
    m.add_function(wrap_pyfunction!(asarray, m)?)?;
    m.add_function(wrap_pyfunction!(from_numpy, m)?)?;
    Ok(())
}
