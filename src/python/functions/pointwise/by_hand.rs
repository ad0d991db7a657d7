//! Pointwise operations whose signature is more than operands and parameters: `add` with `alpha`, `div` with `rounding_mode`, `clamp`.
//!
//! All others are bound from their rows in the parent module.

use super::{into_out, pow_inplace};
use crate::autograd::Tensor;
use crate::layout::Scalar;
use crate::ops::clamp as clamping;
use crate::ops::pointwise::{self as pw, Arg};
use crate::python::args::{as_tensor, operand_of, scalar, tensor};
use crate::python::errors::{runtime, type_error};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use crate::rows::RowId;
use pyo3::prelude::*;

fn finish(py: Python<'_>, function: &str, result: Tensor, inputs: &[Arg<'_>], out: Option<&PyObj<'_>>) -> PyObjResult {
    match out {
        Some(out) if !out.is_none() => {
            let tensors: Vec<&Tensor> = inputs.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(*t) } else { None }).collect();
            into_out(py, function, &result, &tensors, out)
        }
        _ => wrap(py, result),
    }
}

fn alpha_of(alpha: Option<&PyObj<'_>>) -> PyResult<Scalar> {
    match alpha {
        None => Ok(Scalar::Int(1)),
        Some(a) => scalar(a)?.ok_or_else(|| type_error("argument 'alpha' must be Number")),
    }
}

/// `input + alpha * other`.
#[pyfunction]
#[pyo3(signature = (input, other, *, alpha=None, out=None))]
fn add(py: Python<'_>, input: &PyObj<'_>, other: &PyObj<'_>, alpha: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) -> PyObjResult {
    let (a, b) = (operand_of(input, "add", 1, "input")?, operand_of(other, "add", 2, "other")?);
    finish(py, "add", pw::add_scaled(a, b, alpha_of(alpha)?)?, &[a, b], out)
}

/// `input - alpha * other`.
#[pyfunction]
#[pyo3(signature = (input, other, *, alpha=None, out=None))]
fn sub(py: Python<'_>, input: &PyObj<'_>, other: &PyObj<'_>, alpha: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) -> PyObjResult {
    let (a, b) = (operand_of(input, "sub", 1, "input")?, operand_of(other, "sub", 2, "other")?);
    finish(py, "sub", pw::sub_scaled(a, b, alpha_of(alpha)?)?, &[a, b], out)
}

/// `other - alpha * input`.
#[pyfunction]
#[pyo3(signature = (input, other, alpha=None))]
fn rsub(py: Python<'_>, input: &PyObj<'_>, other: &PyObj<'_>, alpha: Option<&PyObj<'_>>) -> PyObjResult {
    let (a, b) = (operand_of(input, "rsub", 1, "input")?, operand_of(other, "rsub", 2, "other")?);
    wrap(py, pw::rsub(a, b, alpha_of(alpha)?)?)
}

fn div_row(rounding_mode: Option<&str>) -> PyResult<RowId> {
    match rounding_mode {
        None => Ok(RowId::Div),
        Some("floor") => Ok(RowId::DivFloor),
        Some("trunc") => Ok(RowId::DivTrunc),
        Some(m) => Err(runtime(format!("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{m}'"))),
    }
}

/// `input / other`; `rounding_mode` is None for true division, 'floor' or 'trunc'.
///
/// Raises:
///     RuntimeError: `rounding_mode` is something else.
#[pyfunction]
#[pyo3(signature = (input, other, *, rounding_mode=None, out=None))]
fn div(py: Python<'_>, input: &PyObj<'_>, other: &PyObj<'_>, rounding_mode: Option<&str>, out: Option<&PyObj<'_>>) -> PyObjResult {
    let (a, b) = (operand_of(input, "div", 1, "input")?, operand_of(other, "div", 2, "other")?);
    finish(py, "div", pw::call(div_row(rounding_mode)?, &[a, b], &[])?, &[a, b], out)
}

/// `input` to the power of `exponent`, of which one may be a number.
#[pyfunction]
#[pyo3(signature = (input, exponent, *, out=None))]
fn pow(py: Python<'_>, input: &PyObj<'_>, exponent: &PyObj<'_>, out: Option<&PyObj<'_>>) -> PyObjResult {
    let (a, b) = (operand_of(input, "pow", 1, "input")?, operand_of(exponent, "pow", 2, "exponent")?);
    let r = match (a, b) {
        (Arg::Tensor(t), Arg::Scalar(s)) => pw::pow_scalar(t, s)?,
        _ => pw::call(RowId::Pow, &[a, b], &[])?,
    };
    finish(py, "pow", r, &[a, b], out)
}

fn clamp_bound<'a>(o: Option<&'a PyObj<'_>>, position: usize, name: &str) -> PyResult<Option<Arg<'a>>> {
    o.filter(|o| !o.is_none()).map(|o| operand_of(o, "clamp", position, name)).transpose()
}

/// A clamp whose bounds are numbers or tensors.
fn clamp_call(x: &Tensor, min: Option<&PyObj<'_>>, max: Option<&PyObj<'_>>) -> PyResult<Tensor> {
    let tensors = min.and_then(as_tensor).is_some() || max.and_then(as_tensor).is_some();
    if tensors {
        return Ok(clamping::clamp_tensor(x, clamp_bound(min, 2, "min")?, clamp_bound(max, 3, "max")?)?);
    }
    Ok(clamping::clamp(x, number_bound(min, "clamp", "min")?, number_bound(max, "clamp", "max")?)?)
}

fn number_bound(o: Option<&PyObj<'_>>, function: &str, name: &str) -> PyResult<Option<Scalar>> {
    match o {
        Some(o) if !o.is_none() => {
            scalar(o)?.map(Some).ok_or_else(|| type_error(format!("{function}(): argument '{name}' must be Number or Tensor")))
        }
        _ => Ok(None),
    }
}

/// Limits every element to `[min, max]`. The bounds are numbers or tensors, and one may be missing.
///
/// Raises:
///     RuntimeError: Both bounds are missing.
#[pyfunction]
#[pyo3(signature = (input, min=None, max=None, *, out=None))]
fn clamp(py: Python<'_>, input: &PyObj<'_>, min: Option<&PyObj<'_>>, max: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) -> PyObjResult {
    let x = tensor(input, "clamp(): argument 'input' (position 1)")?;
    finish(py, "clamp", clamp_call(x, min, max)?, &[Arg::Tensor(x)], out)
}

fn clamp_one(py: Python<'_>, input: &PyObj<'_>, max: bool, bound: &PyObj<'_>) -> PyObjResult {
    let (name, what) = if max { ("clamp_max", "max") } else { ("clamp_min", "min") };
    let x = tensor(input, &format!("{name}(): argument 'input' (position 1)"))?;
    wrap(py, clamping::clamp_one(x, max, operand_of(bound, name, 2, what)?)?)
}

fn clamp_one_inplace<'py>(target: &Bound<'py, PyTensor>, max: bool, bound: &PyObj<'py>) -> PyResult<Bound<'py, PyTensor>> {
    let (name, what) = if max { ("clamp_max_", "max") } else { ("clamp_min_", "min") };
    clamping::clamp_one_inplace(PyTensor::of(target), max, operand_of(bound, name, 1, what)?)?;
    Ok(target.clone())
}

/// Limits every element to at least `min`.
#[pyfunction]
#[pyo3(signature = (input, min))]
fn clamp_min(py: Python<'_>, input: &PyObj<'_>, min: &PyObj<'_>) -> PyObjResult {
    clamp_one(py, input, false, min)
}

/// Limits every element to at most `max`.
#[pyfunction]
#[pyo3(signature = (input, max))]
fn clamp_max(py: Python<'_>, input: &PyObj<'_>, max: &PyObj<'_>) -> PyObjResult {
    clamp_one(py, input, true, max)
}

/// The Gaussian error linear unit; `approximate` is 'none' for the exact function or 'tanh'.
///
/// Raises:
///     RuntimeError: `approximate` is something else.
#[pyfunction]
#[pyo3(signature = (input, *, approximate="none"))]
fn gelu(py: Python<'_>, input: &PyObj<'_>, approximate: &str) -> PyObjResult {
    let row = match approximate {
        "none" => RowId::Gelu,
        "tanh" => RowId::GeluTanh,
        other => return Err(runtime(format!("approximate argument must be either none or tanh, got {other}"))),
    };
    let x = tensor(input, "gelu(): argument 'input' (position 1)")?;
    wrap(py, pw::call(row, &[Arg::Tensor(x)], &[])?)
}

fn round_row(decimals: i32) -> (RowId, Vec<Scalar>) {
    let ten = Scalar::Float(10f64.powi(decimals.saturating_abs()));
    match decimals {
        0 => (RowId::Round, vec![]),
        1.. => (RowId::RoundTo, vec![ten, Scalar::Float(1.0)]),
        _ => (RowId::RoundTo, vec![Scalar::Float(1.0), ten]),
    }
}

/// Rounds to `decimals` digits after the decimal point, or before it if `decimals` is negative. Halves are rounded to even.
#[pyfunction]
#[pyo3(signature = (input, *, decimals=0, out=None))]
fn round(py: Python<'_>, input: &PyObj<'_>, decimals: i32, out: Option<&PyObj<'_>>) -> PyObjResult {
    let x = tensor(input, "round(): argument 'input' (position 1)")?;
    let (row, params) = round_row(decimals);
    finish(py, "round", pw::call(row, &[Arg::Tensor(x)], &params)?, &[Arg::Tensor(x)], out)
}

#[pymethods]
impl PyTensor {
    /// This tensor plus `alpha * other`.
    #[pyo3(name = "add", signature = (other, *, alpha=None))]
    fn m_add(slf: &Bound<'_, Self>, other: &PyObj<'_>, alpha: Option<&PyObj<'_>>) -> PyObjResult {
        wrap(slf.py(), pw::add_scaled(Self::of(slf), operand_of(other, "add", 1, "other")?, alpha_of(alpha)?)?)
    }

    /// This tensor minus `alpha * other`.
    #[pyo3(name = "sub", signature = (other, *, alpha=None))]
    fn m_sub(slf: &Bound<'_, Self>, other: &PyObj<'_>, alpha: Option<&PyObj<'_>>) -> PyObjResult {
        wrap(slf.py(), pw::sub_scaled(Self::of(slf), operand_of(other, "sub", 1, "other")?, alpha_of(alpha)?)?)
    }

    /// Adds `alpha * other` to this tensor in place.
    #[pyo3(signature = (other, *, alpha=None))]
    fn add_<'py>(slf: &Bound<'py, Self>, other: &PyObj<'py>, alpha: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        let (t, other, alpha) = (Self::of(slf), operand_of(other, "add_", 1, "other")?, alpha_of(alpha)?);
        pw::check_alpha(alpha, pw::promote(&[Arg::Tensor(t), other]))?;
        if alpha == Scalar::Int(1) {
            pw::call_inplace(RowId::Add, "add_", t, &[other], &[])?;
        } else {
            pw::call_inplace(RowId::AddScaled, "add_", t, &[other], &[alpha])?;
        }
        Ok(slf.clone())
    }

    /// Subtracts `alpha * other` from this tensor in place.
    #[pyo3(signature = (other, *, alpha=None))]
    fn sub_<'py>(slf: &Bound<'py, Self>, other: &PyObj<'py>, alpha: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        let (t, other) = (Self::of(slf), operand_of(other, "sub_", 1, "other")?);
        let alpha = pw::subtracted(alpha_of(alpha)?, pw::promote(&[Arg::Tensor(t), other]))?;
        if alpha == Scalar::Int(1) {
            pw::call_inplace(RowId::Sub, "sub_", t, &[other], &[])?;
        } else {
            pw::call_inplace(RowId::SubScaled, "sub_", t, &[other], &[alpha])?;
        }
        Ok(slf.clone())
    }

    /// This tensor divided by `other`; `rounding_mode` is None for true division, 'floor' or 'trunc'.
    #[pyo3(name = "div", signature = (other, *, rounding_mode=None))]
    fn m_div(slf: &Bound<'_, Self>, other: &PyObj<'_>, rounding_mode: Option<&str>) -> PyObjResult {
        let other = operand_of(other, "div", 1, "other")?;
        wrap(slf.py(), pw::call(div_row(rounding_mode)?, &[Arg::Tensor(Self::of(slf)), other], &[])?)
    }

    /// Divides this tensor by `other` in place; `rounding_mode` is None for true division, 'floor' or 'trunc'.
    #[pyo3(signature = (other, *, rounding_mode=None))]
    fn div_<'py>(slf: &Bound<'py, Self>, other: &PyObj<'py>, rounding_mode: Option<&str>) -> PyResult<Bound<'py, Self>> {
        let other = operand_of(other, "div_", 1, "other")?;
        pw::call_inplace(div_row(rounding_mode)?, "div_", Self::of(slf), &[other], &[])?;
        Ok(slf.clone())
    }

    /// This tensor to the power of `exponent`.
    #[pyo3(name = "pow")]
    fn m_pow(slf: &Bound<'_, Self>, exponent: &PyObj<'_>) -> PyObjResult {
        pow(slf.py(), slf.as_any(), exponent, None)
    }

    /// Raises this tensor to a power in place.
    fn pow_<'py>(slf: &Bound<'py, Self>, exponent: &PyObj<'py>) -> PyResult<Bound<'py, Self>> {
        pow_inplace(Self::of(slf), exponent)?;
        Ok(slf.clone())
    }

    /// This tensor with every element limited to `[min, max]`. The bounds are numbers or tensors, and one may be missing.
    #[pyo3(name = "clamp", signature = (min=None, max=None))]
    fn m_clamp(slf: &Bound<'_, Self>, min: Option<&PyObj<'_>>, max: Option<&PyObj<'_>>) -> PyObjResult {
        wrap(slf.py(), clamp_call(Self::of(slf), min, max)?)
    }

    /// The same as `clamp`.
    #[pyo3(name = "clip", signature = (min=None, max=None))]
    fn m_clip(slf: &Bound<'_, Self>, min: Option<&PyObj<'_>>, max: Option<&PyObj<'_>>) -> PyObjResult {
        wrap(slf.py(), clamp_call(Self::of(slf), min, max)?)
    }

    /// This tensor with every element limited to at least `min`.
    #[pyo3(name = "clamp_min")]
    fn m_clamp_min(slf: &Bound<'_, Self>, min: &PyObj<'_>) -> PyObjResult {
        clamp_one(slf.py(), slf.as_any(), false, min)
    }

    /// This tensor with every element limited to at most `max`.
    #[pyo3(name = "clamp_max")]
    fn m_clamp_max(slf: &Bound<'_, Self>, max: &PyObj<'_>) -> PyObjResult {
        clamp_one(slf.py(), slf.as_any(), true, max)
    }

    /// Limits every element to `[min, max]` in place. The bounds are numbers or tensors, and one may be missing.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp_<'py>(slf: &Bound<'py, Self>, min: Option<&PyObj<'py>>, max: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        let t = Self::of(slf);
        if min.and_then(as_tensor).is_some() || max.and_then(as_tensor).is_some() {
            clamping::clamp_tensor_inplace(t, clamp_bound(min, 2, "min")?, clamp_bound(max, 3, "max")?)?;
            return Ok(slf.clone());
        }
        let name = "clamp_";
        clamping::clamp_inplace(t, number_bound(min, name, "min")?, number_bound(max, name, "max")?)?;
        Ok(slf.clone())
    }

    /// Limits every element to at least `min`, in place.
    fn clamp_min_<'py>(slf: &Bound<'py, Self>, min: &PyObj<'py>) -> PyResult<Bound<'py, Self>> {
        clamp_one_inplace(slf, false, min)
    }

    /// Limits every element to at most `max`, in place.
    fn clamp_max_<'py>(slf: &Bound<'py, Self>, max: &PyObj<'py>) -> PyResult<Bound<'py, Self>> {
        clamp_one_inplace(slf, true, max)
    }

    /// This tensor rounded to `decimals` digits after the decimal point, or before it if `decimals` is negative.
    #[pyo3(name = "round", signature = (*, decimals=0))]
    fn m_round(slf: &Bound<'_, Self>, decimals: i32) -> PyObjResult {
        round(slf.py(), slf.as_any(), decimals, None)
    }

    /// Rounds every element to `decimals` digits after the decimal point, in place.
    #[pyo3(signature = (*, decimals=0))]
    fn round_<'py>(slf: &Bound<'py, Self>, decimals: i32) -> PyResult<Bound<'py, Self>> {
        let (row, params) = round_row(decimals);
        pw::call_inplace(row, "round_", Self::of(slf), &[], &params)?;
        Ok(slf.clone())
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(add, m)?)?;
    m.add_function(wrap_pyfunction!(sub, m)?)?;
    m.add_function(wrap_pyfunction!(rsub, m)?)?;
    m.add_function(wrap_pyfunction!(div, m)?)?;
    m.add_function(wrap_pyfunction!(pow, m)?)?;
    m.add_function(wrap_pyfunction!(clamp, m)?)?;
    m.add_function(wrap_pyfunction!(clamp_min, m)?)?;
    m.add_function(wrap_pyfunction!(clamp_max, m)?)?;
    m.add_function(wrap_pyfunction!(gelu, m)?)?;
    m.add_function(wrap_pyfunction!(round, m)?)?;
    Ok(())
}
