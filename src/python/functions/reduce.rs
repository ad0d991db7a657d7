//! Reductions and cumulative sums and products whose arguments PyTorch reads in several ways (`sum`, `var`, `max`, `norm`).
//!
//! Reductions with one form of each argument, softmax and the other scans are declared in `ops`.

use crate::autograd::Tensor;
use crate::layout::DType;
use crate::ops::{extreme, norm as norms, pointwise as pw, quantile, reduce, scan};
use crate::python::args::{as_tensor, int, ints, operand, scalar, type_name};
use crate::python::dtype::dtype_option;
use crate::python::errors::{runtime, type_error};
use crate::python::functions::pointwise::into_out;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use smallvec::SmallVec;

type Dims = SmallVec<[i64; 4]>;

pub(crate) fn dims(dim: Option<&PyObj<'_>>, function: &str) -> PyResult<Option<Dims>> {
    match dim.filter(|d| !d.is_none()) {
        None => Ok(None),
        Some(d) => ints(d).map(Some).map_err(|_| wrong(function, "dim", d, "int or tuple of ints")),
    }
}

pub(crate) fn one_dim(dim: Option<&PyObj<'_>>, function: &str) -> PyResult<Option<i64>> {
    match dim.filter(|d| !d.is_none()) {
        None => Ok(None),
        Some(d) => int(d).map(Some).map_err(|_| wrong(function, "dim", d, "int")),
    }
}

#[cold]
pub(crate) fn wrong(function: &str, name: &str, got: &PyObj<'_>, expected: &str) -> PyErr {
    type_error(format!(
        "{function}() received an invalid combination of arguments: argument '{name}' must be {expected}, not {}",
        type_name(got)
    ))
}

/// The dtype of the computation: the argument, or the dtype of `out=`.
fn dtype_or(dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>, function: &str) -> PyResult<Option<DType>> {
    let given = dtype_option(dtype, function)?;
    Ok(given.or_else(|| out.and_then(as_tensor).map(Tensor::dtype)))
}

/// A result, or `out=` with its elements.
pub(crate) fn finish(py: Python<'_>, function: &str, t: Tensor, x: &Tensor, out: Option<&PyObj<'_>>) -> PyObjResult {
    match out.filter(|o| !o.is_none()) {
        None => wrap(py, t),
        Some(o) => into_out(py, function, &t, &[x], o),
    }
}

/// A tuple of the class `rgrad.return_types.<name>` with the two results, or with the tensors of `out=`, to which they are written.
pub(crate) fn named(x: &Bound<'_, PyTensor>, name: &'static str, pair: (Tensor, Tensor), out: Option<&PyObj<'_>>) -> PyObjResult {
    named_pair(x.py(), name, pair, &[PyTensor::of(x)], out)
}

/// As `named`, for a function of several inputs.
pub(crate) fn named_pair(
    py: Python<'_>,
    name: &'static str,
    pair: (Tensor, Tensor),
    inputs: &[&Tensor],
    out: Option<&PyObj<'_>>,
) -> PyObjResult {
    static TYPES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let types = TYPES.get_or_try_init(py, || py.import("rgrad.return_types").map(|m| m.into_any().unbind()))?;
    let fields = match out.filter(|o| !o.is_none()) {
        None => [wrap(py, pair.0)?, wrap(py, pair.1)?],
        Some(o) => {
            let (a, b): (PyObj<'_>, PyObj<'_>) = o.extract().map_err(|_| wrong(name, "out", o, "tuple of 2 Tensors"))?;
            [into_out(py, name, &pair.0, inputs, &a)?, into_out(py, name, &pair.1, inputs, &b)?]
        }
    };
    Ok(types.bind(py).getattr(name)?.call1(PyTuple::new(py, fields)?)?.unbind())
}

/// Dimensions and `correction` of a variance. PyTorch has three ways to give the correction, and the first positional argument may be `unbiased`.
fn spread(
    x: &Bound<'_, PyTensor>,
    function: &'static str,
    given: (Option<&PyObj<'_>>, Option<&PyObj<'_>>),
    correction: Option<&PyObj<'_>>,
    keepdim: bool,
) -> PyResult<(Option<Dims>, f64, bool)> {
    let (mut dim, mut unbiased) = given;
    if let Some(d) = dim
        && d.is_instance_of::<PyBool>()
    {
        (dim, unbiased) = (None, Some(d));
    }
    let correction = match (correction.filter(|c| !c.is_none()), unbiased.filter(|u| !u.is_none())) {
        (Some(c), _) => match scalar(c)? {
            Some(s) => s.to_f64(),
            None => return Err(wrong(function, "correction", c, "Number")),
        },
        (None, Some(u)) => f64::from(u8::from(u.is_truthy()?)),
        (None, None) => 1.0,
    };
    let dims = dims(dim, function)?;
    let over = reduce::ReducedDims::new(PyTensor::of(x), dims.as_deref(), keepdim)?;
    if over.count() as f64 - correction <= 0.0 && over.results() > 0 {
        PyErr::warn(
            x.py(),
            &x.py().get_type::<PyUserWarning>(),
            &std::ffi::CString::new(format!(
                "{function}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided \
                 by output numel)."
            ))?,
            1,
        )?;
    }
    Ok((dims, correction, keepdim))
}

/// `max` and `min`: of all elements, along a dimension, or of two tensors.
fn extremes(
    x: &Bound<'_, PyTensor>,
    max: bool,
    dim: Option<&PyObj<'_>>,
    keepdim: bool,
    other: Option<&PyObj<'_>>,
    out: Option<&PyObj<'_>>,
) -> PyObjResult {
    let (py, t, name) = (x.py(), PyTensor::of(x), if max { "max" } else { "min" });
    let other = other.filter(|o| !o.is_none()).or_else(|| dim.filter(|d| as_tensor(d).is_some()));
    if let Some(o) = other {
        let Some(pw::Arg::Tensor(o)) = operand(o)? else { return Err(wrong(name, "other", o, "Tensor")) };
        return finish(py, name, if max { pw::maximum(t, o)? } else { pw::minimum(t, o)? }, t, out);
    }
    match one_dim(dim, name)? {
        None => finish(py, name, extreme::max_of_all(t, max)?, t, out),
        Some(d) => named(x, name, extreme::max_along(t, max, d, keepdim)?, out),
    }
}

/// The sums of singular values, which the package has.
fn nuclear_norm(
    x: &Bound<'_, PyTensor>,
    dim: Option<&PyObj<'_>>,
    keepdim: bool,
    out: Option<&PyObj<'_>>,
    dtype: Option<&PyObj<'_>>,
) -> PyObjResult {
    if dtype.is_some_and(|d| !d.is_none()) {
        return Err(PyValueError::new_err("norm: the argument dtype is not supported with p='nuc': convert the tensor first"));
    }
    let options = PyDict::new(x.py());
    options.set_item("keepdim", keepdim)?;
    options.set_item("out", out)?;
    if let Some(d) = dim.filter(|d| !d.is_none()) {
        options.set_item("dim", d)?;
    } else if PyTensor::of(x).rank() != 2 {
        let rank = PyTensor::of(x).rank();
        return Err(runtime(format!(
            "Expected a tensor with 2 dimensions, but got a tensor with {rank} dimension{} instead.",
            if rank == 1 { "" } else { "s" }
        )));
    }
    Ok(x.py().import("rgrad")?.getattr("nuclear_norm")?.call((x,), Some(&options))?.unbind())
}

functions_and_methods! {
    /// The sum over `dim`, or of all elements. Integers and bool give int64 unless `dtype` is given.
    fn sum(x, dim: Option<&PyObj<'_>>, keepdim: bool, dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>)
        sig(dim=None, keepdim=false, *, dtype=None, out=None) {
        let t = PyTensor::of(x);
        let d = dims(dim, "sum")?;
        let r = reduce::sum(t, d.as_deref(), keepdim, dtype_or(dtype, out, "sum")?)?;
        finish(x.py(), "sum", r, t, out)
    }
    /// The mean over `dim`, or of all elements. The tensor, or `dtype`, is floating point.
    fn mean(x, dim: Option<&PyObj<'_>>, keepdim: bool, dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>)
        sig(dim=None, keepdim=false, *, dtype=None, out=None) {
        let t = PyTensor::of(x);
        let d = dims(dim, "mean")?;
        let r = reduce::mean(t, d.as_deref(), keepdim, dtype_or(dtype, out, "mean")?)?;
        finish(x.py(), "mean", r, t, out)
    }
    /// The mean over `dim`, or of all elements, of those that are not NaN.
    fn nanmean(x, dim: Option<&PyObj<'_>>, keepdim: bool, dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>)
        sig(dim=None, keepdim=false, *, dtype=None, out=None) {
        let (t, d) = (PyTensor::of(x), dims(dim, "nanmean")?);
        finish(x.py(), "nanmean", quantile::nanmean(t, d.as_deref(), keepdim, dtype_or(dtype, out, "nanmean")?)?, t, out)
    }
    /// The product over one dimension, or of all elements. Integers and bool give int64 unless `dtype` is given.
    fn prod(x, dim: Option<&PyObj<'_>>, keepdim: bool, dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>)
        sig(dim=None, keepdim=false, *, dtype=None, out=None) {
        let t = PyTensor::of(x);
        let r = reduce::prod(t, one_dim(dim, "prod")?, keepdim, dtype_or(dtype, out, "prod")?)?;
        finish(x.py(), "prod", r, t, out)
    }
    /// The variance over `dim`, or of all elements, with divisor `n - correction`. `unbiased=False` is a correction of 0, the default is 1.
    fn var(x, dim: Option<&PyObj<'_>>, unbiased: Option<&PyObj<'_>>, keepdim: bool, correction: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) sig(dim=None, unbiased=None, keepdim=false, *, correction=None, out=None) {
        let (d, c, k) = spread(x, "var", (dim, unbiased), correction, keepdim)?;
        finish(x.py(), "var", reduce::var(PyTensor::of(x), d.as_deref(), c, k)?, PyTensor::of(x), out)
    }
    /// The smallest and the largest elements along `dim`, or of all, as (min, max).
    fn aminmax(x, dim: Option<&PyObj<'_>>, keepdim: bool, out: Option<&PyObj<'_>>) sig(*, dim=None, keepdim=false, out=None) {
        let d = one_dim(dim, "aminmax")?.map(|d| [d]);
        named(x, "aminmax", extreme::aminmax(PyTensor::of(x), d.as_ref().map(|d| &d[..]), keepdim)?, out)
    }
    /// The largest of all elements; with `dim`, (values, indices) along it; with a tensor, the maximum of both.
    fn max(x, dim: Option<&PyObj<'_>>, keepdim: bool, other: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>)
        sig(dim=None, keepdim=false, *, other=None, out=None) {
        extremes(x, true, dim, keepdim, other, out)
    }
    /// The smallest of all elements; with `dim`, (values, indices) along it; with a tensor, the minimum of both.
    fn min(x, dim: Option<&PyObj<'_>>, keepdim: bool, other: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>)
        sig(dim=None, keepdim=false, *, other=None, out=None) {
        extremes(x, false, dim, keepdim, other, out)
    }
    /// The vector norm of order `p` over `dim`, or of all elements; 'fro' is order 2, 'nuc' the nuclear norm of matrices.
    fn norm(x, p: Option<&PyObj<'_>>, dim: Option<&PyObj<'_>>, keepdim: bool, out: Option<&PyObj<'_>>, dtype: Option<&PyObj<'_>>)
        sig(p=None, dim=None, keepdim=false, out=None, dtype=None) {
        let order = match p.filter(|p| !p.is_none()) {
            None => 2.0,
            Some(p) if p.is_instance_of::<PyString>() => match p.extract::<String>()?.as_str() {
                "fro" => 2.0,
                "nuc" => return nuclear_norm(x, dim, keepdim, out, dtype),
                other => {
                    return Err(crate::error::Error::runtime(format!("norm: unknown order '{other}', expected 'fro', 'nuc' or a number")).into());
                }
            },
            Some(p) => match scalar(p)? {
                Some(s) => s.to_f64(),
                None => return Err(wrong("norm", "p", p, "Number or str")),
            },
        };
        let d = dims(dim, "norm")?;
        finish(x.py(), "norm", norms::norm(PyTensor::of(x), order, d.as_deref(), keepdim, dtype_option(dtype, "norm")?)?, PyTensor::of(x), out)
    }
    /// The cumulative sums along `dim`. Integers and bool give int64 unless `dtype` is given.
    fn cumsum(x, dim: i64, dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) sig(dim, *, dtype=None, out=None) {
        let t = PyTensor::of(x);
        finish(x.py(), "cumsum", scan::cumsum(t, dim, dtype_or(dtype, out, "cumsum")?)?, t, out)
    }
    /// The cumulative products along `dim`. Integers and bool give int64 unless `dtype` is given.
    fn cumprod(x, dim: i64, dtype: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) sig(dim, *, dtype=None, out=None) {
        let t = PyTensor::of(x);
        finish(x.py(), "cumprod", scan::cumprod(t, dim, dtype_or(dtype, out, "cumprod")?)?, t, out)
    }
}

/// The standard deviation, which is the square root of `var`.
#[pyfunction]
#[pyo3(name = "std", signature = (input, dim=None, unbiased=None, keepdim=false, *, correction=None, out=None))]
fn standard_deviation(
    input: &Bound<'_, PyTensor>,
    dim: Option<&PyObj<'_>>,
    unbiased: Option<&PyObj<'_>>,
    keepdim: bool,
    correction: Option<&PyObj<'_>>,
    out: Option<&PyObj<'_>>,
) -> PyObjResult {
    let (d, c, k) = spread(input, "std", (dim, unbiased), correction, keepdim)?;
    finish(input.py(), "std", reduce::std(PyTensor::of(input), d.as_deref(), c, k)?, PyTensor::of(input), out)
}

macro_rules! with_mean {
    ($(#[doc = $doc:literal] $name:ident)+) => {$(
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (input, dim=None, unbiased=None, keepdim=false, *, correction=None))]
        fn $name(
            input: &Bound<'_, PyTensor>,
            dim: Option<&PyObj<'_>>,
            unbiased: Option<&PyObj<'_>>,
            keepdim: bool,
            correction: Option<&PyObj<'_>>,
        ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
            let (py, t) = (input.py(), PyTensor::of(input));
            let (d, c, k) = spread(input, stringify!($name), (dim, unbiased), correction, keepdim)?;
            let (spread, mean) = reduce::$name(t, d.as_deref(), c, k)?;
            Ok((wrap(py, spread)?, wrap(py, mean)?))
        }
    )+};
}
with_mean! {
    /// The variance and the mean over `dim`, or of all elements, as a tuple.
    var_mean
    /// The standard deviation and the mean over `dim`, or of all elements, as a tuple.
    std_mean
}

#[pymethods]
impl PyTensor {
    /// The standard deviation, which is the square root of `var`.
    #[pyo3(name = "std", signature = (dim=None, unbiased=None, keepdim=false, *, correction=None))]
    fn standard_deviation(
        slf: &Bound<'_, Self>,
        dim: Option<&PyObj<'_>>,
        unbiased: Option<&PyObj<'_>>,
        keepdim: bool,
        correction: Option<&PyObj<'_>>,
    ) -> PyObjResult {
        standard_deviation(slf, dim, unbiased, keepdim, correction, None)
    }

    /// Replaces this tensor by its cumulative sums along `dim`.
    #[pyo3(signature = (dim, *, dtype=None))]
    fn cumsum_<'py>(slf: &Bound<'py, Self>, dim: i64, dtype: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        let t = PyTensor::of(slf);
        match dtype_option(dtype, "cumsum_")?.filter(|d| *d != t.dtype()) {
            Some(d) => crate::autograd::primitives::copy_(t, &scan::cumsum(t, dim, Some(d))?)?,
            None => scan::cumsum_(t, dim)?,
        }
        Ok(slf.clone())
    }

    /// Replaces this tensor by its cumulative products along `dim`.
    #[pyo3(signature = (dim, *, dtype=None))]
    fn cumprod_<'py>(slf: &Bound<'py, Self>, dim: i64, dtype: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        let t = PyTensor::of(slf);
        match dtype_option(dtype, "cumprod_")?.filter(|d| *d != t.dtype()) {
            Some(d) => crate::autograd::primitives::copy_(t, &scan::cumprod(t, dim, Some(d))?)?,
            None => scan::cumprod_(t, dim)?,
        }
        Ok(slf.clone())
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(standard_deviation, m)?)?;
    m.add_function(wrap_pyfunction!(var_mean, m)?)?;
    m.add_function(wrap_pyfunction!(std_mean, m)?)
}
