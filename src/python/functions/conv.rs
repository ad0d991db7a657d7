//! Convolutions, with the signatures of PyTorch's top level.

use crate::autograd::Tensor;
use crate::ops::conv::{self, ConvParameters, Padding};
use crate::ops::conv_tbc as tbc;
use crate::python::args::{int, ints, tensor, type_name};
use crate::python::errors::type_error;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};
use smallvec::SmallVec;

type Numbers = SmallVec<[i64; 4]>;

/// How a message about an argument begins. PyTorch looks for a signature that fits, where there are several.
fn refusal(function: &str) -> String {
    let several = matches!(function, "conv1d" | "conv2d" | "conv3d");
    format!("{function}(){}", if several { " received an invalid combination of arguments" } else { "" })
}

fn weight<'a>(obj: &'a PyObj<'_>, function: &str) -> PyResult<&'a Tensor> {
    tensor(obj, &format!("{}: argument 'weight' (position 2)", refusal(function)))
}

fn optional<'a>(obj: Option<&'a PyObj<'_>>, function: &str) -> PyResult<Option<&'a Tensor>> {
    match obj.filter(|o| !o.is_none()) {
        None => Ok(None),
        Some(o) => Ok(Some(tensor(o, &format!("{function}(): argument 'bias' (position 3)"))?)),
    }
}

/// A number for each dimension; one integer stands for all of them.
fn each(obj: Option<&PyObj<'_>>, or: i64, dims: usize, function: &str, name: &str) -> PyResult<Numbers> {
    let Some(obj) = obj else { return Ok(SmallVec::from_elem(or, dims)) };
    let bad = || type_error(format!("{}: argument '{name}' must be tuple of ints, not {}", refusal(function), type_name(obj)));
    if obj.is_instance_of::<PyFloat>() || obj.is_instance_of::<PyString>() || obj.is_none() {
        return Err(bad());
    }
    if let Ok(one) = int(obj) {
        return Ok(SmallVec::from_elem(one, dims));
    }
    ints(obj).map_err(|e| if e.is_instance_of::<pyo3::exceptions::PyTypeError>(obj.py()) { bad() } else { e })
}

macro_rules! convolutions {
    ($($(#[doc = $doc:literal])+ $name:ident, $dims:literal;)+) => { $(
        $(#[doc = $doc])+
        ///
        /// Args:
        ///     input: A tensor of shape (N, C, *), or (C, *) without a batch.
        ///     weight: A tensor of shape (out_channels, C / groups, *kernel).
        ///     bias: A number for each output channel.
        ///     stride: How far the patches lie apart; a number for all dimensions or one for each.
        ///     padding: How many zeros there are at both ends of each dimension, or 'valid' (none) or 'same' (the output is as large as the input).
        ///     dilation: How far the elements of a patch lie apart.
        ///     groups: The groups of channels, each of which is convolved with weights of its own.
        ///
        /// Raises:
        ///     RuntimeError: The shapes, dtypes or parameters do not match.
        #[pyfunction]
        #[pyo3(signature = (input, weight, bias=None, stride=None, padding=None, dilation=None, groups=1))]
        #[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
        fn $name(
            input: &Bound<'_, PyTensor>,
            weight: &PyObj<'_>,
            bias: Option<&PyObj<'_>>,
            stride: Option<&PyObj<'_>>,
            padding: Option<&PyObj<'_>>,
            dilation: Option<&PyObj<'_>>,
            groups: i64,
        ) -> PyObjResult {
            let name = stringify!($name);
            let (w, bias) = (self::weight(weight, name)?, optional(bias, name)?);
            let (stride, dilation) = (each(stride, 1, $dims, name, "stride")?, each(dilation, 1, $dims, name, "dilation")?);
            let text = padding.and_then(|p| p.cast::<PyString>().ok()).map(|p| p.to_string());
            let sizes = if text.is_some() { SmallVec::new() } else { each(padding, 0, $dims, name, "padding")? };
            let padding = text.as_deref().map_or(Padding::Sizes(&sizes), Padding::Named);
            let given = ConvParameters { stride: &stride, padding, dilation: &dilation, transposed: false, output_padding: &[0], groups };
            wrap(input.py(), conv::conv(name, $dims, PyTensor::of(input), w, bias, given)?)
        }
    )+ };
}

convolutions! {
    /// The sums of the products of the weight with each stretch of the input.
    conv1d, 1;
    /// The sums of the products of the weight with each patch of the input.
    conv2d, 2;
    /// The sums of the products of the weight with each box of the input.
    conv3d, 3;
}

macro_rules! transposed_convolutions {
    ($($(#[doc = $doc:literal])+ $name:ident, $dims:literal;)+) => { $(
        $(#[doc = $doc])+
        ///
        /// Args:
        ///     input: A tensor of shape (N, C, *), or (C, *) without a batch.
        ///     weight: A tensor of shape (C, out_channels / groups, *kernel).
        ///     bias: A number for each output channel.
        ///     stride: How far the patches lie apart; a number for all dimensions or one for each.
        ///     padding: How many elements at both ends of each dimension are left out.
        ///     output_padding: How many elements more there are at the end of each dimension; less than the stride or the dilation.
        ///     groups: The groups of channels, each of which has weights of its own.
        ///     dilation: How far the elements of a patch lie apart.
        ///
        /// Raises:
        ///     RuntimeError: The shapes, dtypes or parameters do not match.
        #[pyfunction]
        #[pyo3(signature = (input, weight, bias=None, stride=None, padding=None, output_padding=None, groups=1, dilation=None))]
        #[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
        fn $name(
            input: &Bound<'_, PyTensor>,
            weight: &PyObj<'_>,
            bias: Option<&PyObj<'_>>,
            stride: Option<&PyObj<'_>>,
            padding: Option<&PyObj<'_>>,
            output_padding: Option<&PyObj<'_>>,
            groups: i64,
            dilation: Option<&PyObj<'_>>,
        ) -> PyObjResult {
            let name = stringify!($name);
            let (w, bias) = (self::weight(weight, name)?, optional(bias, name)?);
            let (stride, dilation) = (each(stride, 1, $dims, name, "stride")?, each(dilation, 1, $dims, name, "dilation")?);
            let padding = each(padding, 0, $dims, name, "padding")?;
            let more = each(output_padding, 0, $dims, name, "output_padding")?;
            let padding = Padding::Sizes(&padding);
            let given = ConvParameters { stride: &stride, padding, dilation: &dilation, transposed: true, output_padding: &more, groups };
            wrap(input.py(), conv::conv(name, $dims, PyTensor::of(input), w, bias, given)?)
        }
    )+ };
}

transposed_convolutions! {
    /// The gradient of `conv1d` with respect to its input: each element of the input adds a multiple of the weight.
    conv_transpose1d, 1;
    /// The gradient of `conv2d` with respect to its input: each element of the input adds a multiple of the weight.
    conv_transpose2d, 2;
    /// The gradient of `conv3d` with respect to its input: each element of the input adds a multiple of the weight.
    conv_transpose3d, 3;
}

/// A convolution over as many dimensions as the weight has spatial ones, of a batch; or the transposed one.
///
/// Args:
///     input: A tensor of shape (N, C, *).
///     weight: A tensor of shape (out_channels, C / groups, *kernel), or (C, out_channels / groups, *kernel) of the transposed one.
///     bias: A number for each output channel, or None.
///     stride: How far the patches lie apart; a number for each dimension, or one.
///     padding: How many zeros there are at both ends of each dimension.
///     dilation: How far the elements of a patch lie apart.
///     transposed: Whether it is the transposed convolution.
///     output_padding: How many elements more a transposed convolution has at the end of each dimension.
///     groups: The groups of channels.
///
/// Raises:
///     RuntimeError: The shapes, dtypes or parameters do not match.
#[pyfunction]
#[pyo3(signature = (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups))]
#[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
fn convolution(
    input: &Bound<'_, PyTensor>,
    weight: &PyObj<'_>,
    bias: Option<&PyObj<'_>>,
    stride: &PyObj<'_>,
    padding: &PyObj<'_>,
    dilation: &PyObj<'_>,
    transposed: bool,
    output_padding: &PyObj<'_>,
    groups: i64,
) -> PyObjResult {
    let name = "convolution";
    let (w, bias) = (self::weight(weight, name)?, optional(bias, name)?);
    let list = |obj: &PyObj<'_>, what: &str| each(Some(obj), 0, 1, name, what);
    let (stride, padding, dilation) = (list(stride, "stride")?, list(padding, "padding")?, list(dilation, "dilation")?);
    let more = list(output_padding, "output_padding")?;
    let padding = Padding::Sizes(&padding);
    let given = ConvParameters { stride: &stride, padding, dilation: &dilation, transposed, output_padding: &more, groups };
    wrap(input.py(), conv::convolution(PyTensor::of(input), w, bias, given)?)
}

/// A convolution of sequences whose dimensions are time, batch and channels.
///
/// Args:
///     input: A tensor of shape (time, batch, in_channels).
///     weight: A tensor of shape (kernel, in_channels, out_channels).
///     bias: A number for each output channel.
///     pad: How many zeros there are before and after the sequence.
///
/// Raises:
///     RuntimeError: The shapes or dtypes do not match.
#[pyfunction]
#[pyo3(signature = (input, weight, bias, pad=0))]
fn conv_tbc(input: &Bound<'_, PyTensor>, weight: &PyObj<'_>, bias: &PyObj<'_>, pad: i64) -> PyObjResult {
    let w = self::weight(weight, "conv_tbc")?;
    let bias = tensor(bias, "conv_tbc(): argument 'bias' (position 3)")?;
    wrap(input.py(), tbc::conv_tbc(PyTensor::of(input), w, bias, pad)?)
}

/// The gradient of a convolution with respect to its input, of the shape `size`.
#[pyfunction]
#[pyo3(signature = (size, weight, grad_output, stride, padding, dilation, groups))]
fn _convolution_input(
    size: &PyObj<'_>,
    weight: &Bound<'_, PyTensor>,
    grad_output: &Bound<'_, PyTensor>,
    stride: &PyObj<'_>,
    padding: &PyObj<'_>,
    dilation: &PyObj<'_>,
    groups: i64,
) -> PyObjResult {
    let w = PyTensor::of(weight);
    let made = with_parameters(w.rank(), [stride, padding, dilation], groups, |given| {
        conv::input_gradient(&ints(size)?, w, PyTensor::of(grad_output), given).map_err(Into::into)
    })?;
    wrap(weight.py(), made)
}

/// The gradient of a convolution with respect to its weight, of the shape `size`.
#[pyfunction]
#[pyo3(signature = (input, size, grad_output, stride, padding, dilation, groups))]
fn _convolution_weight(
    input: &Bound<'_, PyTensor>,
    size: &PyObj<'_>,
    grad_output: &Bound<'_, PyTensor>,
    stride: &PyObj<'_>,
    padding: &PyObj<'_>,
    dilation: &PyObj<'_>,
    groups: i64,
) -> PyObjResult {
    let x = PyTensor::of(input);
    let made = with_parameters(x.rank(), [stride, padding, dilation], groups, |given| {
        conv::weight_gradient(x, &ints(size)?, PyTensor::of(grad_output), given).map_err(Into::into)
    })?;
    wrap(input.py(), made)
}

/// Runs `f` with the parameters of a plain convolution of tensors of this rank.
fn with_parameters(
    rank: usize,
    [stride, padding, dilation]: [&PyObj<'_>; 3],
    groups: i64,
    f: impl FnOnce(ConvParameters<'_>) -> PyResult<Tensor>,
) -> PyResult<Tensor> {
    let list = |obj: &PyObj<'_>, what: &str| each(Some(obj), 0, rank.saturating_sub(2), "convolution", what);
    let (stride, padding, dilation) = (list(stride, "stride")?, list(padding, "padding")?, list(dilation, "dilation")?);
    let padding = Padding::Sizes(&padding);
    f(ConvParameters { stride: &stride, padding, dilation: &dilation, transposed: false, output_padding: &[0], groups })
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(conv1d, m)?)?;
    m.add_function(wrap_pyfunction!(conv2d, m)?)?;
    m.add_function(wrap_pyfunction!(conv3d, m)?)?;
    m.add_function(wrap_pyfunction!(conv_transpose1d, m)?)?;
    m.add_function(wrap_pyfunction!(conv_transpose2d, m)?)?;
    m.add_function(wrap_pyfunction!(conv_transpose3d, m)?)?;
    m.add_function(wrap_pyfunction!(convolution, m)?)?;
    m.add_function(wrap_pyfunction!(_convolution_input, m)?)?;
    m.add_function(wrap_pyfunction!(_convolution_weight, m)?)?;
    m.add_function(wrap_pyfunction!(conv_tbc, m)?)
}
