//! Loss functions and dropout.
//!
//! `rgrad.nn.functional` calls them with PyTorch's signatures; here `reduction` is 'none', 'mean' or 'sum'.

use crate::autograd::Tensor;
use crate::ops::{dropout as drop_, loss};
use crate::python::args::tensor;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;

fn optional<'a>(obj: Option<&'a PyObj<'_>>, what: &str) -> PyResult<Option<&'a Tensor>> {
    match obj.filter(|o| !o.is_none()) {
        None => Ok(None),
        Some(o) => Ok(Some(tensor(o, what)?)),
    }
}

macro_rules! distances {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => { $(
        $(#[doc = $doc])+
        #[pyfunction]
        #[pyo3(signature = (input, target, reduction="mean"))]
        fn $name(input: &Bound<'_, PyTensor>, target: &Bound<'_, PyTensor>, reduction: &str) -> PyObjResult {
            wrap(input.py(), loss::$name(PyTensor::of(input), PyTensor::of(target), loss::reduction(reduction)?)?)
        }
    )+ };
}

distances! {
    /// The squared differences of input and target.
    mse_loss;
    /// The absolute differences of input and target.
    l1_loss;
}

/// A loss that is quadratic for differences below `beta` and linear above.
#[pyfunction]
#[pyo3(signature = (input, target, reduction="mean", beta=1.0))]
fn smooth_l1_loss(input: &Bound<'_, PyTensor>, target: &Bound<'_, PyTensor>, reduction: &str, beta: f64) -> PyObjResult {
    wrap(input.py(), loss::smooth_l1_loss(PyTensor::of(input), PyTensor::of(target), loss::reduction(reduction)?, beta)?)
}

/// A loss that is quadratic for differences below `delta` and linear with slope `delta` above.
#[pyfunction]
#[pyo3(signature = (input, target, reduction="mean", delta=1.0))]
fn huber_loss(input: &Bound<'_, PyTensor>, target: &Bound<'_, PyTensor>, reduction: &str, delta: f64) -> PyObjResult {
    wrap(input.py(), loss::huber_loss(PyTensor::of(input), PyTensor::of(target), loss::reduction(reduction)?, delta)?)
}

/// The negative log-likelihood of the target classes.
///
/// Args:
///     input: The log-probabilities of the classes, in dimension 1 (0 without a batch).
///     target: The index of a class for each element.
///     weight: A weight for each class.
///     reduction: 'none', 'mean' (weighted) or 'sum'.
///     ignore_index: A target that does not count.
///
/// Raises:
///     IndexError: A target is not the index of a class.
///     RuntimeError: The shapes do not match.
#[pyfunction]
#[pyo3(signature = (input, target, weight=None, reduction="mean", ignore_index=-100))]
fn nll_loss(
    input: &Bound<'_, PyTensor>,
    target: &Bound<'_, PyTensor>,
    weight: Option<&PyObj<'_>>,
    reduction: &str,
    ignore_index: i64,
) -> PyObjResult {
    let weight = optional(weight, "nll_loss(): argument 'weight'")?;
    let how = loss::reduction(reduction)?;
    wrap(input.py(), loss::nll_loss(PyTensor::of(input), PyTensor::of(target), weight, how, ignore_index)?)
}

/// The cross entropy of `softmax(input)` and the targets.
///
/// Args:
///     input: The logits of the classes, in dimension 1 (0 without a batch).
///     target: The index of a class for each element, or probabilities of the shape of `input`.
///     weight: A weight for each class.
///     reduction: 'none', 'mean' (weighted) or 'sum'.
///     ignore_index: A target that does not count.
///     label_smoothing: The probability that is distributed over all classes.
///
/// Raises:
///     IndexError: A target is not the index of a class.
///     RuntimeError: The shapes do not match.
#[pyfunction]
#[pyo3(signature = (input, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0))]
fn cross_entropy(
    input: &Bound<'_, PyTensor>,
    target: &Bound<'_, PyTensor>,
    weight: Option<&PyObj<'_>>,
    reduction: &str,
    ignore_index: i64,
    label_smoothing: f64,
) -> PyObjResult {
    let weight = optional(weight, "cross_entropy(): argument 'weight'")?;
    let how = loss::reduction(reduction)?;
    let r = loss::cross_entropy(PyTensor::of(input), PyTensor::of(target), weight, how, ignore_index, label_smoothing)?;
    wrap(input.py(), r)
}

/// The cross entropy of `sigmoid(input)` and targets between 0 and 1.
///
/// Args:
///     input: The logits.
///     target: The targets, of the shape of `input`.
///     weight: A weight for each element; it is broadcast.
///     pos_weight: A weight for the positive part; it is broadcast.
///     reduction: 'none', 'mean' or 'sum'.
#[pyfunction]
#[pyo3(signature = (input, target, weight=None, pos_weight=None, reduction="mean"))]
fn binary_cross_entropy_with_logits(
    input: &Bound<'_, PyTensor>,
    target: &Bound<'_, PyTensor>,
    weight: Option<&PyObj<'_>>,
    pos_weight: Option<&PyObj<'_>>,
    reduction: &str,
) -> PyObjResult {
    let weight = optional(weight, "binary_cross_entropy_with_logits(): argument 'weight'")?;
    let pos_weight = optional(pos_weight, "binary_cross_entropy_with_logits(): argument 'pos_weight'")?;
    let how = loss::reduction(reduction)?;
    let r = loss::binary_cross_entropy_with_logits(PyTensor::of(input), PyTensor::of(target), weight, pos_weight, how)?;
    wrap(input.py(), r)
}

/// The cross entropy of probabilities and targets between 0 and 1.
#[pyfunction]
#[pyo3(signature = (input, target, weight=None, reduction="mean"))]
fn binary_cross_entropy(
    input: &Bound<'_, PyTensor>,
    target: &Bound<'_, PyTensor>,
    weight: Option<&PyObj<'_>>,
    reduction: &str,
) -> PyObjResult {
    let weight = optional(weight, "binary_cross_entropy(): argument 'weight'")?;
    let how = loss::reduction(reduction)?;
    wrap(input.py(), loss::binary_cross_entropy(PyTensor::of(input), PyTensor::of(target), weight, how)?)
}

/// A copy with each element set to 0 with probability `p`, and the others scaled by `1 / (1 - p)`; the input itself if `train` is False.
#[pyfunction]
#[pyo3(signature = (input, p, train))]
fn dropout(input: &Bound<'_, PyTensor>, p: f64, train: bool) -> PyObjResult {
    wrap(input.py(), drop_::dropout(PyTensor::of(input), p, train, None)?)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(mse_loss, m)?)?;
    m.add_function(wrap_pyfunction!(l1_loss, m)?)?;
    m.add_function(wrap_pyfunction!(smooth_l1_loss, m)?)?;
    m.add_function(wrap_pyfunction!(huber_loss, m)?)?;
    m.add_function(wrap_pyfunction!(nll_loss, m)?)?;
    m.add_function(wrap_pyfunction!(cross_entropy, m)?)?;
    m.add_function(wrap_pyfunction!(binary_cross_entropy_with_logits, m)?)?;
    m.add_function(wrap_pyfunction!(binary_cross_entropy, m)?)?;
    m.add_function(wrap_pyfunction!(dropout, m)?)
}
