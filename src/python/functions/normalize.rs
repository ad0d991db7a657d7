//! Layer, group, batch, instance and root-mean-square norm, with the signatures of PyTorch's top level.

use crate::autograd::Tensor;
use crate::ops::normalize::{self, Running};
use crate::python::args::{int, ints, tensor, type_name};
use crate::python::errors::type_error;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use smallvec::SmallVec;

fn optional<'a>(obj: Option<&'a PyObj<'_>>, function: &str, name: &str) -> PyResult<Option<&'a Tensor>> {
    match obj.filter(|o| !o.is_none()) {
        None => Ok(None),
        Some(o) => Ok(Some(tensor(o, &format!("{function}(): argument '{name}'"))?)),
    }
}

/// Sizes, as a sequence.
fn sequence(obj: &PyObj<'_>, function: &str) -> PyResult<SmallVec<[i64; 4]>> {
    let bad =
        || type_error(format!("{function}(): argument 'normalized_shape' (position 2) must be tuple of ints, not {}", type_name(obj)));
    if int(obj).is_ok() {
        return Err(bad());
    }
    ints(obj).map_err(|_| bad())
}

/// Subtract the mean and divide by the deviation over the last dimensions (Ba et al. 2016).
///
/// Args:
///     input: A float tensor whose last sizes are `normalized_shape`.
///     normalized_shape: The sizes of the last dimensions.
///     weight: Factors of this shape.
///     bias: Summands of this shape.
///     eps: Added to the variance.
///     cudnn_enable: Ignored.
///
/// Raises:
///     RuntimeError: The shapes do not match.
#[pyfunction]
#[pyo3(signature = (input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=true))]
fn layer_norm(
    input: &Bound<'_, PyTensor>,
    normalized_shape: &PyObj<'_>,
    weight: Option<&PyObj<'_>>,
    bias: Option<&PyObj<'_>>,
    eps: f64,
    cudnn_enable: bool,
) -> PyObjResult {
    let _ = cudnn_enable;
    let shape = sequence(normalized_shape, "layer_norm")?;
    let (weight, bias) = (optional(weight, "layer_norm", "weight")?, optional(bias, "layer_norm", "bias")?);
    wrap(input.py(), normalize::layer_norm(PyTensor::of(input), &shape, weight, bias, eps)?)
}

/// Subtract the mean and divide by the deviation over each group of channels (Wu and He 2018).
///
/// Args:
///     input: A float tensor of shape (N, C, *).
///     num_groups: How many groups the channels form.
///     weight: A factor for each channel.
///     bias: A summand for each channel.
///     eps: Added to the variance.
///     cudnn_enabled: Ignored.
///
/// Raises:
///     RuntimeError: The channels cannot be divided into so many groups, or the shapes do not match.
#[pyfunction]
#[pyo3(signature = (input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=true))]
fn group_norm(
    input: &Bound<'_, PyTensor>,
    num_groups: i64,
    weight: Option<&PyObj<'_>>,
    bias: Option<&PyObj<'_>>,
    eps: f64,
    cudnn_enabled: bool,
) -> PyObjResult {
    let _ = cudnn_enabled;
    let (weight, bias) = (optional(weight, "group_norm", "weight")?, optional(bias, "group_norm", "bias")?);
    wrap(input.py(), normalize::group_norm(PyTensor::of(input), num_groups, weight, bias, eps)?)
}

macro_rules! by_channel {
    ($($(#[$doc:meta])+ $name:ident, $training:ident;)+) => { $(
        $(#[$doc])+
        #[pyfunction]
        #[pyo3(signature = (input, weight, bias, running_mean, running_var, $training, momentum, eps, cudnn_enabled))]
        #[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
        fn $name(
            input: &Bound<'_, PyTensor>,
            weight: Option<&PyObj<'_>>,
            bias: Option<&PyObj<'_>>,
            running_mean: Option<&PyObj<'_>>,
            running_var: Option<&PyObj<'_>>,
            $training: bool,
            momentum: f64,
            eps: f64,
            cudnn_enabled: bool,
        ) -> PyObjResult {
            let _ = cudnn_enabled;
            let name = stringify!($name);
            let (weight, bias) = (optional(weight, name, "weight")?, optional(bias, name, "bias")?);
            let (mean, var) = (optional(running_mean, name, "running_mean")?, optional(running_var, name, "running_var")?);
            let running = Running { mean, var, momentum };
            wrap(input.py(), normalize::$name(PyTensor::of(input), weight, bias, running, $training, eps)?)
        }
    )+ };
}

by_channel! {
    /// Subtract the mean and divide by the deviation of each channel (Ioffe and Szegedy 2015).
    ///
    /// Args:
    ///     input: A float tensor of shape (N, C, *).
    ///     weight: A factor for each channel, or None.
    ///     bias: A summand for each channel, or None.
    ///     running_mean: The running means, or None. They are written in training.
    ///     running_var: The running variances, or None. They are written in training.
    ///     training: Whether the statistics are those of `input`; else the running ones are used.
    ///     momentum: How much the statistics of `input` count for the running ones.
    ///     eps: Added to the variance.
    ///     cudnn_enabled: Ignored.
    ///
    /// Raises:
    ///     RuntimeError: A tensor does not have an element for each channel, or there are no running statistics outside of training.
    batch_norm, training;
    /// Subtract the mean and divide by the deviation of each channel of each element of the batch (Ulyanov et al. 2016).
    ///
    /// Args:
    ///     input: A float tensor of shape (N, C, *).
    ///     weight: A factor for each channel, or None.
    ///     bias: A summand for each channel, or None.
    ///     running_mean: The running means, or None.
    ///     running_var: The running variances, or None.
    ///     use_input_stats: Whether the statistics are those of `input`; else the running ones are used.
    ///     momentum: How much the statistics of `input` count for the running ones.
    ///     eps: Added to the variance.
    ///     cudnn_enabled: Ignored.
    ///
    /// Raises:
    ///     RuntimeError: A tensor does not have an element for each channel, or there are no statistics to use.
    instance_norm, use_input_stats;
}

/// Divide by the root of the mean of squares over the last dimensions (Zhang and Sennrich 2019).
///
/// Args:
///     input: A float tensor whose last sizes are `normalized_shape`.
///     normalized_shape: The sizes of the last dimensions.
///     weight: Factors of this shape.
///     eps: Added to the mean of squares; None takes the dtype's epsilon.
///
/// Raises:
///     RuntimeError: The shapes do not match.
#[pyfunction]
#[pyo3(signature = (input, normalized_shape, weight=None, eps=None))]
fn rms_norm(input: &Bound<'_, PyTensor>, normalized_shape: &PyObj<'_>, weight: Option<&PyObj<'_>>, eps: Option<f64>) -> PyObjResult {
    let shape = sequence(normalized_shape, "rms_norm")?;
    let weight = optional(weight, "rms_norm", "weight")?;
    wrap(input.py(), normalize::rms_norm(PyTensor::of(input), &shape, weight, eps)?)
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(layer_norm, m)?)?;
    m.add_function(wrap_pyfunction!(group_norm, m)?)?;
    m.add_function(wrap_pyfunction!(batch_norm, m)?)?;
    m.add_function(wrap_pyfunction!(instance_norm, m)?)?;
    m.add_function(wrap_pyfunction!(rms_norm, m)?)
}
