//! Medians, quantiles, unique elements and counts.
//!
//! `sort`, `topk`, `kthvalue` and `mode` are declared in `ops::order`.

use crate::ops::pointwise::Arg;
use crate::ops::quantile::{self as quantiles, Interpolation, Q};
use crate::ops::{extreme, order, unique as uniques};
use crate::python::args::{operand, type_name};
use crate::python::errors::type_error;
use crate::python::functions::reduce::{finish, named, one_dim};
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// `quantile` and `nanquantile`, which differ in how they treat NaN.
fn quantile_call(
    x: &Bound<'_, PyTensor>,
    (q, dim, keepdim): (&PyObj<'_>, Option<&PyObj<'_>>, bool),
    interpolation: &str,
    out: Option<&PyObj<'_>>,
    skip_nan: bool,
) -> PyObjResult {
    let (t, name) = (PyTensor::of(x), if skip_nan { "nanquantile" } else { "quantile" });
    let how = Interpolation::parse(name, interpolation)?;
    let q = match operand(q)? {
        Some(Arg::Tensor(t)) => Q::Tensor(t),
        Some(Arg::Scalar(s)) => Q::Number(s.to_f64()),
        None => return Err(type_error(format!("{name}(): argument 'q' must be Tensor or float, not {}", type_name(q)))),
    };
    finish(x.py(), name, quantiles::quantile(t, q, one_dim(dim, name)?, keepdim, how, skip_nan)?, t, out)
}

/// The values, and the inverse and the counts if they are requested.
fn several(x: &Bound<'_, PyTensor>, found: uniques::Unique, inverse: bool, counts: bool) -> PyObjResult {
    let py = x.py();
    let values = wrap(py, found.values)?;
    if !inverse && !counts {
        return Ok(values);
    }
    let mut all = vec![values];
    if inverse {
        all.push(wrap(py, found.inverse)?);
    }
    if counts {
        all.push(wrap(py, found.counts)?);
    }
    Ok(PyTuple::new(py, all)?.into_any().unbind())
}

functions_and_methods! {
    /// The lower median of all elements, or with `dim` (values, indices) along it. NaN if there is one.
    fn median(x, dim: Option<&PyObj<'_>>, keepdim: bool, out: Option<&PyObj<'_>>) sig(dim=None, keepdim=false, *, out=None) {
        match one_dim(dim, "median")? {
            None => finish(x.py(), "median", extreme::median_of_all(PyTensor::of(x), false)?, PyTensor::of(x), out),
            Some(d) => named(x, "median", order::median(PyTensor::of(x), d, keepdim, false)?, out),
        }
    }
    /// The lower median of all elements that are not NaN, or with `dim` (values, indices) along it.
    fn nanmedian(x, dim: Option<&PyObj<'_>>, keepdim: bool, out: Option<&PyObj<'_>>) sig(dim=None, keepdim=false, *, out=None) {
        match one_dim(dim, "nanmedian")? {
            None => finish(x.py(), "nanmedian", extreme::median_of_all(PyTensor::of(x), true)?, PyTensor::of(x), out),
            Some(d) => named(x, "nanmedian", order::median(PyTensor::of(x), d, keepdim, true)?, out),
        }
    }
    /// The `q`-quantiles of all elements, or along `dim`. If there is a NaN, the quantiles are NaN.
    ///
    /// Args:
    ///     q: A number between 0 and 1, or a tensor of them, whose quantiles form a new first dimension.
    ///     dim: The dimension; by default the tensor is flattened.
    ///     keepdim: Whether the result keeps the dimension, with size 1.
    ///     interpolation: How a quantile between two elements is computed: 'linear', 'lower', 'higher', 'midpoint' or 'nearest'.
    fn quantile(x, q: &PyObj<'_>, dim: Option<&PyObj<'_>>, keepdim: bool, interpolation: &str, out: Option<&PyObj<'_>>)
        sig(q, dim=None, keepdim=false, *, interpolation="linear", out=None) {
        quantile_call(x, (q, dim, keepdim), interpolation, out, false)
    }
    /// As `quantile`, but NaN is ignored.
    fn nanquantile(x, q: &PyObj<'_>, dim: Option<&PyObj<'_>>, keepdim: bool, interpolation: &str, out: Option<&PyObj<'_>>)
        sig(q, dim=None, keepdim=false, *, interpolation="linear", out=None) {
        quantile_call(x, (q, dim, keepdim), interpolation, out, true)
    }
    /// The unique elements, or slices along `dim`, in ascending order. The result has no derivative.
    ///
    /// Args:
    ///     sorted: Has no effect; the result is always sorted.
    ///     return_inverse: Whether to return also the index of each input element in the result.
    ///     return_counts: Whether to return also the number of times each element occurs.
    ///     dim: The dimension; by default the tensor is flattened.
    fn unique(x, sorted: bool, return_inverse: bool, return_counts: bool, dim: Option<&PyObj<'_>>)
        sig(sorted=true, return_inverse=false, return_counts=false, dim=None) {
        let _ = sorted;
        let found = match one_dim(dim, "unique")? {
            None => uniques::unique(PyTensor::of(x))?,
            Some(d) => uniques::unique_along(PyTensor::of(x), d)?,
        };
        several(x, found, return_inverse, return_counts)
    }
    /// The elements, or slices along `dim`, that differ from the previous one. The other arguments are as in `unique`.
    fn unique_consecutive(x, return_inverse: bool, return_counts: bool, dim: Option<&PyObj<'_>>)
        sig(return_inverse=false, return_counts=false, dim=None) {
        let found = uniques::unique_consecutive(PyTensor::of(x), one_dim(dim, "unique_consecutive")?)?;
        several(x, found, return_inverse, return_counts)
    }
    /// The number of times that each of 0, 1, 2, ... occurs in a vector of non-negative integers, or the sum of its `weights`.
    fn bincount(x, weights: Option<&PyObj<'_>>, minlength: i64) sig(weights=None, minlength=0) {
        let weights = weights.filter(|w| !w.is_none()).map(|w| crate::python::args::tensor(w, "bincount(): argument 'weights' (position 2)")).transpose()?;
        wrap(x.py(), quantiles::bincount(PyTensor::of(x), weights, minlength)?)
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)
}
