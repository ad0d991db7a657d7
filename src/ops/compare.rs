//! Comparing tensors as wholes.

use crate::autograd::Tensor;
use crate::autograd::primitives::cast;
use crate::error::{Error, Result};
use crate::host::language;
use crate::layout::{DType, Scalar};
use crate::ops::pointwise as pw;
use smallvec::SmallVec;

/// Whether every element is true.
pub fn all(t: &Tensor) -> Result<bool> {
    let a = t.values(".all()")?;
    let every: SmallVec<[bool; 8]> = SmallVec::from_elem(true, a.rank());
    Ok(language::unlocked_if_large(a.numel(), || a.truth(true, &every, false))?.first()?.to_bool())
}

/// Where `|a - b| <= atol + rtol * |b|`; equal infinities are close, nan is close to nan if `equal_nan`.
pub fn isclose(a: &Tensor, b: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<Tensor> {
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!("{} did not match {}", a.dtype().type_name(), b.dtype().type_name())));
    }
    for (name, v) in [("rtol", rtol), ("atol", atol)] {
        if v.is_nan() || v < 0.0 {
            return Err(Error::runtime(format!("{name} must be greater than or equal to zero, but got {v}")));
        }
    }
    let (a, b) = (a.detach(), b.detach());
    let mut close = pw::eq(&a, &b)?;
    if equal_nan && a.dtype().is_differentiable() {
        close = pw::logical_or(&close, &pw::logical_and(&pw::isnan(&a)?, &pw::isnan(&b)?)?)?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(close);
    }
    let (off, b) = if a.dtype().is_differentiable() {
        (pw::abs(&pw::sub(&a, &b)?)?, b)
    } else if a.device().backend()?.has_dtype(DType::F64).is_ok() {
        let (a, b) = (cast(&a, DType::F64)?, cast(&b, DType::F64)?);
        (pw::abs(&pw::sub(&a, &b)?)?, b)
    } else {
        // The difference is exact, unless it leaves int64; then it is so large that float32 has it but for rounding.
        let exact = pw::abs(&pw::sub(&cast(&a, DType::I64)?, &cast(&b, DType::I64)?)?)?;
        let (a, b) = (cast(&a, DType::F32)?, cast(&b, DType::F32)?);
        let off = pw::abs(&pw::sub(&a, &b)?)?;
        (pw::where_(&pw::lt(&off, Scalar::Float(2f64.powi(62)))?, &cast(&exact, DType::F32)?, &off)?, b)
    };
    let allowed = pw::add(&pw::mul(&pw::abs(&b)?, Scalar::Float(rtol))?, Scalar::Float(atol))?;
    // An infinite difference is close to nothing, whatever the allowance.
    let finite = pw::lt(&off, Scalar::Float(f64::INFINITY))?;
    pw::logical_or(&close, &pw::logical_and(&finite, &pw::le(&off, &allowed)?)?)
}
