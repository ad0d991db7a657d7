//! Arguments of functions: Python objects to the core's types, with PyTorch's errors.
//!
//! Data for new tensors (sequences, NumPy arrays) is read in `convert`; dtypes and devices in `dtype`.

use super::convert::to_python::item_of;
use super::errors::type_error;
use super::tensor::PyTensor;
use crate::autograd::Tensor;
use crate::layout::{Complex, Scalar};
use crate::ops::pointwise::Arg;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

/// A Python number as a scalar; None if the object is not a number. As in PyTorch a 0-d tensor is one, unless it requires grad.
#[inline]
pub(super) fn scalar(obj: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if obj.is_exact_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(obj.extract()?)));
    }
    if obj.is_instance_of::<PyBool>() {
        return Ok(Some(Scalar::Bool(obj.extract()?)));
    }
    if obj.is_instance_of::<PyInt>() {
        return match obj.extract::<i64>() {
            Ok(i) => Ok(Some(Scalar::Int(i))),
            Err(_) => large(obj).map(Some),
        };
    }
    if obj.is_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(obj.extract()?)));
    }
    if let Ok(z) = obj.cast::<PyComplex>() {
        return Ok(Some(Scalar::Complex(Complex { re: z.real(), im: z.imag() })));
    }
    if let Some(t) = as_tensor(obj) {
        return if t.rank() == 0 && !t.requires_grad() { Ok(Some(item_of(t)?.first()?)) } else { Ok(None) };
    }
    if is_numpy_scalar(obj) {
        let item = obj.call_method0("item")?;
        if !is_numpy_scalar(&item) {
            return scalar(&item);
        }
    }
    Ok(None)
}

/// A number that int64 does not hold: uint64 may.
#[cold]
fn large(obj: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    obj.extract::<u64>().map(Scalar::Unsigned).map_err(|_| {
        let what = if obj.lt(0).unwrap_or(false) { "can't convert negative int to unsigned" } else { "int too big to convert" };
        PyOverflowError::new_err(format!("{what}: integers are from -2^63 to 2^64 - 1, got {obj}"))
    })
}

/// NumPy's scalars are neither `int` nor `float`, except `float64`, which is a `float`.
pub(super) fn is_numpy_scalar(obj: &Bound<'_, PyAny>) -> bool {
    let ty = obj.get_type();
    ty.module().is_ok_and(|m| m == "numpy") && obj.hasattr("item").unwrap_or(false) && !obj.hasattr("__len__").unwrap_or(true)
}

/// A tensor argument by reference.
#[inline]
pub(super) fn tensor<'a>(obj: &'a Bound<'_, PyAny>, what: &str) -> PyResult<&'a Tensor> {
    match as_tensor(obj) {
        Some(t) => Ok(t),
        None => Err(type_error(format!("{what} must be Tensor, not {}", type_name(obj)))),
    }
}

#[inline]
pub(super) fn as_tensor<'a>(obj: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    obj.cast::<PyTensor>().ok().map(|t| &*t.get().t)
}

pub(super) fn type_name(obj: &Bound<'_, PyAny>) -> String {
    obj.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string())
}

/// An operand of a pointwise operation: a tensor or a number; None for anything else.
#[inline]
pub(super) fn operand<'a>(obj: &'a Bound<'_, PyAny>) -> PyResult<Option<Arg<'a>>> {
    match as_tensor(obj) {
        Some(t) => Ok(Some(Arg::Tensor(t))),
        None => Ok(scalar(obj)?.map(Arg::Scalar)),
    }
}

/// As `operand`, but other objects are PyTorch's TypeError.
#[inline]
pub(super) fn operand_of<'a>(obj: &'a Bound<'_, PyAny>, function: &str, position: usize, name: &str) -> PyResult<Arg<'a>> {
    operand(obj)?.ok_or_else(|| {
        type_error(format!("{function}(): argument '{name}' (position {position}) must be Tensor or Number, not {}", type_name(obj)))
    })
}

/// A truth value; `bool` is not asked what other objects are worth.
pub(super) fn flag(obj: &Bound<'_, PyAny>, function: &str, name: &str) -> PyResult<bool> {
    match obj.cast::<PyBool>() {
        Ok(b) => Ok(b.is_true()),
        Err(_) => Err(type_error(format!("{function}(): argument '{name}' must be bool, not {}", type_name(obj)))),
    }
}

/// As `flag`; None is false.
pub(super) fn optional_flag(obj: &Bound<'_, PyAny>, function: &str, name: &str) -> PyResult<bool> {
    if obj.is_none() { Ok(false) } else { flag(obj, function, name) }
}

/// An integer, or anything with `__index__` (0-d integer tensors, NumPy integers).
#[inline]
pub(super) fn int(obj: &Bound<'_, PyAny>) -> PyResult<i64> {
    if obj.is_exact_instance_of::<PyInt>() {
        return obj.extract();
    }
    // SAFETY: `obj` is a valid object; the result is a new reference or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(obj.py(), ffi::PyNumber_Index(obj.as_ptr())) }?.extract()
}

/// Sizes or dimensions: one integer, or a sequence of integers.
pub(super) fn ints(obj: &Bound<'_, PyAny>) -> PyResult<SmallVec<[i64; 4]>> {
    if obj.is_exact_instance_of::<PyInt>() {
        return Ok(SmallVec::from_elem(int(obj)?, 1));
    }
    let mut out = SmallVec::new();
    if as_tensor(obj).is_some() {
        out.push(int(obj)?);
        return Ok(out);
    }
    // The items that the list has, whatever its class says about its length and its iterator.
    if let Ok(items) = obj.cast::<PyList>() {
        for i in 0..items.len() {
            // The conversion of an item may run any code, also such that makes the list shorter.
            let Ok(item) = items.get_item(i) else { break };
            out.push(int(&item)?);
        }
    } else if let Ok(items) = obj.cast::<PyTuple>() {
        for item in items.iter() {
            out.push(int(&item)?);
        }
    } else {
        let one = int(obj).map_err(|e| {
            if e.is_instance_of::<PyTypeError>(obj.py()) {
                type_error(format!("expected int or tuple of ints, not {}", type_name(obj)))
            } else {
                e
            }
        })?;
        out.push(one);
    }
    Ok(out)
}

/// Sizes or dimensions that are given one by one, `f(2, 3)`, or as one sequence, `f((2, 3))`.
pub(super) fn varargs(args: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<SmallVec<[i64; 4]>> {
    if args.len() == 1 {
        return ints(&args.get_item(0)?);
    }
    let mut out = SmallVec::new();
    for a in args {
        out.push(int(&a)?);
    }
    Ok(out)
}

/// Sizes as one argument: an integer or a sequence of integers. Anything else is PyTorch's TypeError.
pub(super) fn sizes_arg(obj: &Bound<'_, PyAny>, function: &str, name: &str) -> PyResult<SmallVec<[i64; 4]>> {
    let bad = |obj: &Bound<'_, PyAny>| {
        type_error(format!("{function}(): argument '{name}' (position 1) must be tuple of ints, not {}", type_name(obj)))
    };
    let is_number = obj.is_exact_instance_of::<PyFloat>() || obj.is_exact_instance_of::<PyBool>();
    if is_number || obj.is_instance_of::<pyo3::types::PyString>() {
        return Err(bad(obj));
    }
    if let Ok(items) = obj.cast::<PyTuple>()
        && let Some(at) = items.iter().position(|i| i.is_exact_instance_of::<PyBool>())
    {
        return Err(type_error(format!(
            "{function}(): argument '{name}' (position 1) must be tuple of ints, but found element of type bool at pos {at}"
        )));
    }
    ints(obj).map_err(|e| if e.is_instance_of::<PyTypeError>(obj.py()) { bad(obj) } else { e })
}

/// A list or tuple of tensors. Anything else is PyTorch's TypeError.
pub(super) fn tensor_list(obj: &Bound<'_, PyAny>, function: &str, name: &str) -> PyResult<SmallVec<[Tensor; 4]>> {
    let is_list = obj.is_instance_of::<pyo3::types::PyList>() || obj.is_instance_of::<pyo3::types::PyTuple>();
    if as_tensor(obj).is_some() || !is_list {
        return Err(type_error(format!("{function}(): argument '{name}' (position 1) must be tuple of Tensors, not {}", type_name(obj))));
    }
    let mut out = SmallVec::new();
    // The items themselves, not what the iterator of a subclass gives.
    let items: Vec<Bound<'_, PyAny>> = match (obj.cast::<PyList>(), obj.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => Vec::new(),
    };
    for (i, item) in items.into_iter().enumerate() {
        match as_tensor(&item) {
            Some(t) => out.push(t.clone()),
            None => {
                return Err(type_error(format!(
                    "expected Tensor as element {i} in argument 0 of {function}(), but got {}",
                    type_name(&item)
                )));
            }
        }
    }
    Ok(out)
}
