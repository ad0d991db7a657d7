//! Tensors as Python's values: numbers, lists, NumPy arrays and text; also iteration, copies and pickles.
//!
//! The texts of `repr` are made in Python, in `rgrad._tensor.text`.

use crate::array::{Array, Device};
use crate::autograd::{Tensor, mode};
use crate::error::Error;
use crate::layout::Scalar;
use crate::ops::pointwise;
use crate::ops::room;
use crate::python::convert::from_python::tensor_from;
use crate::python::convert::numpy_memory;
use crate::python::errors::{runtime, type_error};
use crate::python::functions::shape::MANY;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple};

/// A scalar as a Python number.
pub(crate) fn number(py: Python<'_>, s: Scalar) -> PyObjResult {
    Ok(match s {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any().unbind(),
        Scalar::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Scalar::Unsigned(u) => u.into_pyobject(py)?.into_any().unbind(),
        Scalar::Float(v) => PyFloat::new(py, v).into_any().unbind(),
        Scalar::Complex(z) => PyComplex::from_doubles(py, z.re, z.im).into_any().unbind(),
    })
}

fn the_one(t: &Tensor) -> PyResult<Scalar> {
    let n = t.numel();
    if n != 1 {
        return Err(Error::runtime(format!("a Tensor with {n} elements cannot be converted to Scalar (shape {:?})", &t.shape()[..])).into());
    }
    Ok(item_of(t)?.first()?)
}

/// The array of a tensor whose element becomes a Python number.
pub(crate) fn item_of(t: &Tensor) -> PyResult<Array> {
    if t.device() == Device::META {
        return Err(Error::runtime("Tensor.item() cannot be called on meta tensors: they have no values").into());
    }
    Ok(t.values(".item()")?)
}

/// The one element for `float()`, `int()`.
fn the_one_value(t: &Tensor) -> PyResult<Scalar> {
    if t.numel() != 1 {
        return Err(PyValueError::new_err(format!(
            "only one element tensors can be converted to Python scalars, got shape {:?}",
            &t.shape()[..]
        )));
    }
    Ok(item_of(t)?.first()?)
}

/// What a list, and a number with its places in lists, take at most.
const LIST: usize = 128;
const NUMBER: usize = 64;

fn lists(py: Python<'_>, a: &Array) -> PyObjResult {
    if a.rank() == 0 {
        return number(py, a.first()?);
    }
    let n = a.shape()[0];
    if a.rank() == 1 {
        let items: Vec<Py<PyAny>> = (0..n)
            .map(|i| {
                if i % MANY == MANY - 1 {
                    py.check_signals()?;
                }
                number(py, a.with_layout(a.layout().select(0, i as i64).map_err(crate::error::Error::from)?)?.first()?)
            })
            .collect::<PyResult<_>>()?;
        return Ok(PyList::new(py, items)?.into_any().unbind());
    }
    let out = PyList::empty(py);
    for i in 0..n {
        if i % MANY == MANY - 1 {
            py.check_signals()?;
        }
        out.append(lists(py, &a.with_layout(a.layout().select(0, i as i64).map_err(crate::error::Error::from)?)?)?)?;
    }
    Ok(out.into_any().unbind())
}

/// The tensor's memory as a NumPy array.
/// An error for a tensor of a function transform with a tangent, which the memory alone does not have.
pub(super) fn refuse_tangent(t: &Tensor) -> PyResult<()> {
    if t.level() > 0 && t.tangent().is_some() {
        return Err(Error::runtime(
            "Cannot access data pointer of Tensor that doesn't have storage: it has a tangent of a function transform (jvp, jacfwd), which would \
             be lost; use operations of rgrad, or tensor.numpy(force=True) for the values alone",
        )
        .into());
    }
    Ok(())
}

fn to_numpy(slf: &Bound<'_, PyTensor>, force: bool) -> PyObjResult {
    let t = PyTensor::of(slf);
    if t.requires_grad() && !force && mode::is_grad_enabled() {
        return Err(Error::runtime("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.").into());
    }
    if !force {
        refuse_tangent(t)?;
    }
    let bits = t.math_bits();
    if bits.any() && !force {
        let (what, resolve) = if bits.conj { ("conjugate", "resolve_conj") } else { ("negative", "resolve_neg") };
        return Err(Error::runtime(format!(
            "Can't call numpy() on Tensor that has {what} bit set. Use tensor.{resolve}().numpy() instead."
        ))
        .into());
    }
    if t.device() != Device::CPU {
        if !force {
            return Err(type_error(format!(
                "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
                t.device()
            )));
        }
        return numpy_memory::export(slf.py(), &t.values(".numpy()")?.to_device(Device::CPU)?);
    }
    numpy_memory::export(slf.py(), &t.values(".numpy()")?)
}

#[pymethods]
impl PyTensor {
    /// A NumPy array that shares this tensor's memory.
    ///
    /// Args:
    ///     force: Detaches a tensor that requires grad, and copies a tensor that is not on the CPU or a lazy conjugate or negative.
    ///
    /// Raises:
    ///     RuntimeError: The tensor requires grad or is a lazy conjugate or negative, and `force` is False.
    ///     TypeError: The tensor is not on the CPU, and `force` is False.
    #[pyo3(signature = (*, force=false))]
    fn numpy(slf: &Bound<'_, Self>, force: bool) -> PyObjResult {
        to_numpy(slf, force)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(slf: &Bound<'_, Self>, dtype: Option<&PyObj<'_>>, copy: Option<bool>) -> PyObjResult {
        let py = slf.py();
        let array = to_numpy(slf, false)?;
        let array = array.bind(py);
        let wanted = dtype.filter(|d| !d.is_none());
        let converted = match wanted {
            None => array.clone(),
            Some(d) => {
                let kwargs = PyDict::new(py);
                kwargs.set_item("copy", false)?;
                array.call_method("astype", (d,), Some(&kwargs))?
            }
        };
        if copy == Some(true) && converted.is(array) {
            return Ok(array.call_method0("copy")?.unbind());
        }
        if copy == Some(false) && !converted.is(array) {
            return Err(PyValueError::new_err("Unable to avoid copy while creating an array as requested."));
        }
        Ok(converted.unbind())
    }

    /// Makes NumPy's functions return a tensor when they are called with one.
    #[pyo3(signature = (array, *_context))]
    fn __array_wrap__(slf: &Bound<'_, Self>, array: &PyObj<'_>, _context: &Bound<'_, PyTuple>) -> PyObjResult {
        wrap(slf.py(), tensor_from(array, None)?)
    }

    #[classattr]
    fn __array_priority__() -> i64 {
        1000
    }

    /// The element of a tensor with one element, as a Python number.
    ///
    /// Raises:
    ///     RuntimeError: The tensor has more or less than one element, or it is on the meta device.
    fn item(slf: &Bound<'_, Self>) -> PyObjResult {
        number(slf.py(), the_one(Self::of(slf))?)
    }

    /// The elements as nested lists of Python numbers; a number for a 0-d tensor.
    fn tolist(slf: &Bound<'_, Self>) -> PyObjResult {
        let shape = Self::of(slf).shape();
        // Lists of all levels, and numbers.
        let mut rows = 1usize;
        for n in &shape {
            room::check("tolist", rows, LIST)?;
            rows = rows.saturating_mul(*n);
        }
        room::check("tolist", rows, NUMBER)?;
        lists(slf.py(), &Self::of(slf).values(".tolist()")?.to_device(Device::CPU)?)
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let t = Self::of(slf);
        match t.numel() {
            1 if t.is_batched() => Err(runtime(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet: each \
                 element of the batch might go another way. Use where(condition, a, b) instead of `if`.",
            )),
            1 => Ok(item_of(t)?.first()?.to_bool()),
            0 => Err(runtime("Boolean value of Tensor with no values is ambiguous")),
            _ => Err(runtime("Boolean value of Tensor with more than one value is ambiguous")),
        }
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        match the_one_value(Self::of(slf))? {
            Scalar::Complex(z) if z.im != 0.0 => Err(runtime("value cannot be converted to type double without overflow")),
            v => Ok(v.to_f64()),
        }
    }

    fn __int__(slf: &Bound<'_, Self>) -> PyObjResult {
        let py = slf.py();
        match the_one_value(Self::of(slf))? {
            // Python has the errors for NaN and infinities, and represents large values exactly.
            Scalar::Complex(z) if z.im != 0.0 => Err(runtime("value cannot be converted to type int64_t without overflow")),
            s @ (Scalar::Float(_) | Scalar::Complex(_)) => Ok(py.get_type::<PyInt>().call1((s.to_f64(),))?.unbind()),
            s => number(py, Scalar::Int(s.to_i64())),
        }
    }

    fn __complex__(slf: &Bound<'_, Self>) -> PyResult<Py<PyComplex>> {
        let z = the_one_value(Self::of(slf))?.to_complex();
        Ok(PyComplex::from_doubles(slf.py(), z.re, z.im).unbind())
    }

    fn __index__(slf: &Bound<'_, Self>) -> PyResult<i64> {
        let t = Self::of(slf);
        if t.dtype().is_differentiable() || t.numel() != 1 {
            return Err(type_error(format!(
                "only integer tensors of a single element can be converted to an index, got {} of shape {:?}",
                t.dtype(),
                &t.shape()[..]
            )));
        }
        Ok(item_of(t)?.first()?.to_i64())
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        match Self::of(slf).shape().first() {
            Some(n) => Ok(*n),
            None => Err(type_error("len() of a 0-d tensor")),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if Self::of(slf).rank() == 0 {
            return Err(type_error("iteration over a 0-d tensor"));
        }
        let parts = crate::ops::parts::unbind(Self::of(slf), 0)?;
        Ok(crate::python::functions::shape::tuple(py, parts)?.bind(py).try_iter()?.into_any())
    }

    fn __contains__(slf: &Bound<'_, Self>, element: &PyObj<'_>) -> PyResult<bool> {
        let Some(value) = crate::python::args::operand(element)? else {
            return Err(runtime(format!(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a {}.",
                element.get_type().repr()?
            )));
        };
        let equal = pointwise::eq(Self::of(slf), value)?;
        Ok(equal.values("`in`")?.to_vec::<bool>()?.contains(&true))
    }

    fn __format__(slf: &Bound<'_, Self>, spec: &str) -> PyResult<String> {
        let t = Self::of(slf);
        if t.rank() == 0 {
            return number(slf.py(), t.array()?.first()?)?.bind(slf.py()).call_method1("__format__", (spec,))?.extract();
        }
        if !spec.is_empty() {
            return Err(type_error("unsupported format string passed to Tensor.__format__"));
        }
        slf.str()?.extract()
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rgrad._tensor.text")?.getattr("to_string")?.call1((slf,))
    }

    /// What a notebook shows: shape, dtype, device, a small picture of the values, and the text of `repr`.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rgrad._tensor.html")?.getattr("to_html")?.call1((slf,))
    }

    /// A copy of a leaf with memory of its own, including a copy of `.grad`.
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &PyObj<'py>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rgrad._tensor.construct")?.getattr("deepcopy")?.call1((slf, memo))
    }

    /// A new leaf that shares this tensor's memory and attributes.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rgrad._tensor.construct")?.getattr("shallow")?.call1((slf,))
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> PyObjResult {
        let t = Self::of(slf);
        let dims: &[i64] = if t.rank() == 0 { &[] } else { &[0] };
        wrap(slf.py(), crate::ops::rearrange::flip(t, dims)?)
    }

    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i64) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("rgrad._tensor.construct")?.getattr("reduce")?.call1((slf, protocol))
    }
}

/// Sets the options of `repr`; None leaves an option unchanged, except for `sci_mode`.
#[pyfunction]
#[pyo3(signature = (precision, threshold, edgeitems, linewidth, sci_mode))]
fn _set_printoptions(
    py: Python<'_>,
    precision: Option<i64>,
    threshold: Option<i64>,
    edgeitems: Option<i64>,
    linewidth: Option<i64>,
    sci_mode: Option<bool>,
) -> PyResult<()> {
    py.import("rgrad._tensor.text")?.getattr("set_options")?.call1((precision, threshold, edgeitems, linewidth, sci_mode))?;
    Ok(())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_set_printoptions, m)?)
}
