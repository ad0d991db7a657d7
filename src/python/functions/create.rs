//! New tensors from sizes and numbers: `zeros`, `full`, `arange`, and the keywords that all creating functions share.
//!
//! Tensors from data are in `convert::from_python`, random numbers in `random`.

use crate::array::Device;
use crate::autograd::{Tensor, level, primitives};
use crate::error::Error;
use crate::layout::{DType, Dims, MemoryFormat, Scalar};
use crate::ops::create;
use crate::ops::memory_format;
use crate::ops::pointwise::default_dtype;
use crate::python::args::{self, as_tensor, optional_flag, scalar, sizes_arg, type_name, varargs};
use crate::python::convert::from_python::{require_grad, tensor_from};
use crate::python::device::default_device;
use crate::python::dtype::{device_of, dtype_option};
use crate::python::errors::type_error;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::tensor::memory_format::format_of;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// An error for what is no layout, or another one than the strided.
fn check_layout(given: &PyObj<'_>, function: &str) -> PyResult<()> {
    if given.is_none() {
        return Ok(());
    }
    let ty = given.get_type();
    if ty.name()? != "layout" || ty.module()? != "rgrad" {
        return Err(type_error(format!("{function}(): argument 'layout' must be rgrad.layout, not {}", type_name(given))));
    }
    if given.getattr("_name")?.extract::<String>()? == "strided" {
        return Ok(());
    }
    Err(Error::not_implemented(format!(
        "{function}() is not implemented for the layout {given}; leave the argument out: new tensors are strided"
    ))
    .into())
}

/// The keywords that all creating functions share.
pub(crate) struct Options {
    pub dtype: Option<DType>,
    pub device: Option<Device>,
    pub requires_grad: bool,
    format: Option<MemoryFormat>,
    /// The keywords that are not common to all functions.
    pub rest: Vec<(String, Py<PyAny>)>,
    function: &'static str,
}

impl Options {
    /// The keywords of a function that makes a tensor from sizes. The device is the thread's default device if none is given.
    pub(crate) fn parse(function: &'static str, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut out = Options::parse_like(function, kwargs)?;
        out.device = out.device.or_else(default_device);
        Ok(out)
    }

    /// The keywords of a function that makes a tensor like another one, on that tensor's device if none is given.
    pub(crate) fn parse_like(function: &'static str, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut out = Options { dtype: None, device: None, requires_grad: false, format: None, rest: Vec::new(), function };
        let Some(kwargs) = kwargs else { return Ok(out) };
        for (k, v) in kwargs {
            let key: String = k.extract()?;
            match key.as_str() {
                "dtype" => out.dtype = dtype_option(Some(&v), function)?,
                "device" => out.device = device_of(Some(&v))?,
                "requires_grad" => out.requires_grad = optional_flag(&v, function, &key)?,
                "memory_format" if function == "empty" || function.ends_with("_like") => out.format = format_of(Some(&v), function)?,
                "layout" => check_layout(&v, function)?,
                // There is one kind of memory.
                "pin_memory" => {
                    optional_flag(&v, function, &key)?;
                }
                _ => out.rest.push((key, v.unbind())),
            }
        }
        Ok(out)
    }

    /// Removes a keyword that only this function has.
    pub(crate) fn take<'py>(&mut self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
        let at = self.rest.iter().position(|(k, _)| k == name)?;
        Some(self.rest.remove(at).1.into_bound(py)).filter(|o| !o.is_none())
    }

    /// An error if a keyword is left.
    pub(crate) fn done(&self) -> PyResult<()> {
        match self.rest.first() {
            None => Ok(()),
            Some((k, _)) => Err(type_error(format!("{}() got an unexpected keyword argument '{k}'", self.function))),
        }
    }

    pub(crate) fn float(&self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    /// The device of the tensor.
    pub(crate) fn place(&self) -> Device {
        self.device.unwrap_or_default()
    }

    pub(crate) fn wrap(&self, py: Python<'_>, t: Tensor) -> PyObjResult {
        self.done()?;
        let t = match self.device {
            Some(d) => primitives::to_device(&t, d)?,
            None => t,
        };
        if self.format == Some(MemoryFormat::Preserve) && self.function == "empty" {
            return Err(Error::runtime("empty(): unsupported memory format Preserve: there is no tensor whose format could be kept").into());
        }
        let t = match self.format {
            Some(f) if f != MemoryFormat::Preserve => memory_format::contiguous(&t, f)?,
            _ => t,
        };
        let t = if level::depth() > 0 { level::created(t)? } else { t };
        require_grad(&t, self.requires_grad)?;
        wrap(py, t)
    }
}

/// The shape from `*size` or `size=`.
pub(crate) fn size_of(py: Python<'_>, function: &'static str, given: &Bound<'_, PyTuple>, o: &mut Options) -> PyResult<Dims> {
    let named = o.rest.iter().any(|(k, _)| k == "size");
    if named && !given.is_empty() {
        return Err(type_error(format!("{function}() got multiple values for argument 'size'")));
    }
    let sizes = if let Some(s) = o.take(py, "size") {
        sizes_arg(&s, function, "size")?
    } else if given.is_empty() {
        return Err(type_error(format!("{function}() missing 1 required positional arguments: \"size\"")));
    } else if given.len() == 1 {
        sizes_arg(&given.get_item(0)?, function, "size")?
    } else {
        varargs(given).map_err(|e| {
            if e.is_instance_of::<PyTypeError>(py) {
                type_error(format!(
                    "{function}(): argument 'size' must be tuple of ints, got {}",
                    given.repr().map_or_else(|_| "other objects".into(), |r| r.to_string())
                ))
            } else {
                e
            }
        })?
    };
    if let Some(bad) = sizes.iter().find(|s| **s < 0) {
        return Err(Error::runtime(format!(
            "{function}: Dimension size must be non-negative. Trying to create tensor with negative dimension {bad}: {:?}",
            &sizes[..]
        ))
        .into());
    }
    Ok(create::sizes(&sizes)?)
}

/// The new tensor, or `out=` with its elements.
pub(crate) fn into(py: Python<'_>, o: &mut Options, t: Tensor) -> PyObjResult {
    match o.take(py, "out") {
        Some(out) => {
            o.done()?;
            crate::python::functions::pointwise::into_out(py, o.function, &t, &[], &out)
        }
        None => o.wrap(py, t),
    }
}

macro_rules! filled {
    ($($(#[doc = $doc:literal])+ $name:ident $like:ident = $value:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[pyfunction]
            #[pyo3(signature = (*size, **kwargs))]
            fn $name(py: Python<'_>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
                let mut o = Options::parse(stringify!($name), kwargs)?;
                let shape = size_of(py, stringify!($name), size, &mut o)?;
                let value: Option<i64> = $value;
                let t = match value {
                    Some(v) => create::full_on(o.place(), &shape, Scalar::Int(v), Some(o.float()))?,
                    None => create::empty_on(o.place(), &shape, o.float())?,
                };
                into(py, &mut o, t)
            }

            /// As the function without `_like`, with the shape, dtype and device of `input` as defaults.
            #[pyfunction]
            #[pyo3(signature = (input, **kwargs))]
            fn $like(py: Python<'_>, input: &Bound<'_, PyTensor>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
                let o = Options::parse_like(stringify!($like), kwargs)?;
                let value: Option<i64> = $value;
                let t = match value {
                    Some(v) => create::full_like_on(PyTensor::of(input), Scalar::Int(v), o.dtype, o.device)?,
                    None => create::empty_like_on(PyTensor::of(input), o.dtype, o.device)?,
                };
                o.wrap(py, t)
            }
        )+
        fn register_filled(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(
                m.add_function(wrap_pyfunction!($name, m)?)?;
                m.add_function(wrap_pyfunction!($like, m)?)?;
            )+
            Ok(())
        }
    };
}

filled! {
    /// A tensor filled with zeros.
    zeros zeros_like = Some(0);
    /// A tensor filled with ones.
    ones ones_like = Some(1);
    /// A tensor with uninitialized memory.
    empty empty_like = None;
}

/// A number, as `args::scalar` takes it.
fn value_of(obj: &PyObj<'_>, function: &str, name: &str) -> PyResult<Scalar> {
    scalar(obj)?.ok_or_else(|| type_error(format!("{function}(): argument '{name}' must be Number, not {}", type_name(obj))))
}

/// A tensor filled with `fill_value`. Its dtype is that of the number: bool, int64, the default dtype or its complex dtype.
#[pyfunction]
#[pyo3(signature = (size, fill_value, **kwargs))]
fn full(py: Python<'_>, size: &PyObj<'_>, fill_value: &PyObj<'_>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("full", kwargs)?;
    if size.is_exact_instance_of::<pyo3::types::PyInt>() {
        return Err(type_error("full(): argument 'size' (position 1) must be tuple of ints, not int"));
    }
    let shape = create::sizes(&sizes_arg(size, "full", "size")?)?;
    let value = value_of(fill_value, "full", "fill_value")?;
    let out = kwargs.map(|k| k.get_item("out")).transpose()?.flatten();
    let dtype = o.dtype.or_else(|| out.as_ref().and_then(as_tensor).or_else(|| as_tensor(fill_value)).map(Tensor::dtype));
    let t = create::full_on(o.place(), &shape, value, dtype)?;
    into(py, &mut o, t)
}

/// A tensor filled with `fill_value`, with the shape, dtype and device of `input` as defaults.
#[pyfunction]
#[pyo3(signature = (input, fill_value, **kwargs))]
fn full_like(py: Python<'_>, input: &Bound<'_, PyTensor>, fill_value: &PyObj<'_>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let o = Options::parse_like("full_like", kwargs)?;
    o.wrap(py, create::full_like_on(PyTensor::of(input), value_of(fill_value, "full_like", "fill_value")?, o.dtype, o.device)?)
}

/// An `n` x `m` matrix with ones on the main diagonal and zeros elsewhere; `m` is `n` by default.
#[pyfunction]
#[pyo3(signature = (n, m=None, **kwargs))]
fn eye(py: Python<'_>, n: i64, m: Option<i64>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("eye", kwargs)?;
    let t = create::eye(n, m, o.float())?;
    into(py, &mut o, t)
}

/// The numbers `start`, `start + step`, ... that are less than `end` (greater, for a negative step): `arange(end)` or
/// `arange(start, end, step)`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn arange(py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("arange", kwargs)?;
    let mut given: Vec<Option<Bound<'_, PyAny>>> = args.iter().map(Some).collect();
    if given.len() > 3 {
        return Err(type_error(format!("arange() takes at most 3 positional arguments, got {}", given.len())));
    }
    // One positional argument is the end, unless the end comes by name.
    let (start, end, step) = (o.take(py, "start"), o.take(py, "end"), o.take(py, "step"));
    if given.len() == 1 && end.is_none() && start.is_none() {
        given.insert(0, None);
    }
    given.resize(3, None);
    let mut at = given.into_iter();
    let mut pick = |keyword: Option<Bound<'_, PyAny>>, name: &str| -> PyResult<Option<Scalar>> {
        let positional = at.next().flatten();
        positional.or(keyword).map(|v| value_of(&v, "arange", name)).transpose()
    };
    let (start, end, step) = (pick(start, "start")?, pick(end, "end")?, pick(step, "step")?);
    let Some(end) = end else { return Err(type_error("arange() missing 1 required positional arguments: \"end\"")) };
    let t = create::arange(start.unwrap_or(Scalar::Int(0)), end, step.unwrap_or(Scalar::Int(1)), o.dtype)?;
    into(py, &mut o, t)
}

/// `steps` evenly spaced numbers from `start` to `end`, including both. With a complex end the result is complex.
#[pyfunction]
#[pyo3(signature = (start, end, steps, **kwargs))]
fn linspace(py: Python<'_>, start: &PyObj<'_>, end: &PyObj<'_>, steps: i64, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("linspace", kwargs)?;
    let (s, e) = (value_of(start, "linspace", "start")?, value_of(end, "linspace", "end")?);
    let t = match (s, e) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => create::complex_linspace(s.to_complex(), e.to_complex(), steps, o.dtype)?,
        _ => create::linspace(s.to_f64(), e.to_f64(), steps, o.dtype)?,
    };
    into(py, &mut o, t)
}

/// `base` to the powers of `steps` evenly spaced numbers from `start` to `end`, including both.
#[pyfunction]
#[pyo3(signature = (start, end, steps, base=10.0, **kwargs))]
fn logspace(py: Python<'_>, start: &PyObj<'_>, end: &PyObj<'_>, steps: i64, base: f64, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("logspace", kwargs)?;
    let (s, e) = (value_of(start, "logspace", "start")?, value_of(end, "logspace", "end")?);
    let t = match (s, e) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => {
            create::complex_logspace(s.to_complex(), e.to_complex(), steps, base, o.dtype)?
        }
        _ => create::logspace(s.to_f64(), e.to_f64(), steps, base, o.dtype)?,
    };
    into(py, &mut o, t)
}

/// A 0-d tensor with the value of a number.
#[pyfunction]
#[pyo3(signature = (s, **kwargs))]
fn scalar_tensor(py: Python<'_>, s: &PyObj<'_>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let o = Options::parse("scalar_tensor", kwargs)?;
    o.wrap(py, create::full(&[], value_of(s, "scalar_tensor", "s")?, Some(o.float()))?)
}

/// A tensor with the given strides, in elements, and uninitialized memory.
#[pyfunction]
#[pyo3(signature = (size, stride, **kwargs))]
fn empty_strided(py: Python<'_>, size: &PyObj<'_>, stride: &PyObj<'_>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let o = Options::parse("empty_strided", kwargs)?;
    let shape = create::sizes(&args::ints(size)?)?;
    let strides: Vec<isize> = args::ints(stride)?.iter().map(|s| *s as isize).collect();
    o.wrap(py, create::empty_strided(&shape, &strides, o.float())?)
}

macro_rules! triangles {
    ($($name:ident $upper:literal)+) => {
        $(
            /// The indices of a triangle of a `row` x `col` matrix: a row of row indices above a row of column indices.
            #[pyfunction]
            #[pyo3(signature = (row, col, offset=0, **kwargs))]
            fn $name(py: Python<'_>, row: i64, col: i64, offset: i64, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
                let o = Options::parse(stringify!($name), kwargs)?;
                let t = create::triangle_indices(row, col, offset, $upper)?;
                o.wrap(py, primitives::cast(&t, o.dtype.unwrap_or(DType::I64))?)
            }
        )+
    };
}
triangles! { tril_indices false triu_indices true }

#[pymethods]
impl PyTensor {
    /// A tensor of zeros with this tensor's dtype and device as defaults.
    #[pyo3(signature = (*size, **kwargs))]
    fn new_zeros(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        new_filled(slf, "new_zeros", size, kwargs, Some(0))
    }

    /// A tensor of ones with this tensor's dtype and device as defaults.
    #[pyo3(signature = (*size, **kwargs))]
    fn new_ones(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        new_filled(slf, "new_ones", size, kwargs, Some(1))
    }

    /// A tensor with uninitialized memory, and this tensor's dtype and device as defaults.
    #[pyo3(signature = (*size, **kwargs))]
    fn new_empty(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        new_filled(slf, "new_empty", size, kwargs, None)
    }

    /// A tensor filled with `fill_value`, with this tensor's dtype and device as defaults.
    #[pyo3(signature = (size, fill_value, **kwargs))]
    fn new_full(slf: &Bound<'_, Self>, size: &PyObj<'_>, fill_value: &PyObj<'_>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let o = Options::parse_like("new_full", kwargs)?;
        let shape = create::sizes(&sizes_arg(size, "new_full", "size")?)?;
        let dtype = o.dtype.unwrap_or_else(|| Self::of(slf).dtype());
        let device = o.device.unwrap_or_else(|| Self::of(slf).device());
        let made = create::full_on(device, &shape, value_of(fill_value, "new_full", "fill_value")?, Some(dtype))?;
        o.wrap(slf.py(), Self::of(slf).beside(made)?)
    }

    /// A tensor with a copy of `data`, with this tensor's dtype and device as defaults.
    #[pyo3(signature = (data, **kwargs))]
    fn new_tensor(slf: &Bound<'_, Self>, data: &PyObj<'_>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let mut o = Options::parse_like("new_tensor", kwargs)?;
        o.device.get_or_insert_with(|| Self::of(slf).device());
        let dtype = o.dtype.unwrap_or_else(|| Self::of(slf).dtype());
        o.wrap(slf.py(), tensor_from(data, Some(dtype))?)
    }
}

fn new_filled(
    slf: &Bound<'_, PyTensor>,
    name: &'static str,
    size: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    value: Option<i64>,
) -> PyObjResult {
    let py = slf.py();
    let mut o = Options::parse_like(name, kwargs)?;
    let shape = size_of(py, name, size, &mut o)?;
    let dtype = o.dtype.unwrap_or_else(|| PyTensor::of(slf).dtype());
    let device = o.device.unwrap_or_else(|| PyTensor::of(slf).device());
    let t = match value {
        Some(v) => create::full_on(device, &shape, Scalar::Int(v), Some(dtype))?,
        None => create::empty_on(device, &shape, dtype)?,
    };
    let t = PyTensor::of(slf).beside(t)?;
    o.wrap(py, t)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_filled(m)?;
    m.add_function(wrap_pyfunction!(full, m)?)?;
    m.add_function(wrap_pyfunction!(full_like, m)?)?;
    m.add_function(wrap_pyfunction!(eye, m)?)?;
    m.add_function(wrap_pyfunction!(arange, m)?)?;
    m.add_function(wrap_pyfunction!(linspace, m)?)?;
    m.add_function(wrap_pyfunction!(logspace, m)?)?;
    m.add_function(wrap_pyfunction!(scalar_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(empty_strided, m)?)?;
    m.add_function(wrap_pyfunction!(tril_indices, m)?)?;
    m.add_function(wrap_pyfunction!(triu_indices, m)?)?;
    Ok(())
}
