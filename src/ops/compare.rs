//! Comparing tensors as wholes.

use crate::autograd::Tensor;
use crate::backend::host;
use crate::error::{Error, Result};
use crate::layout::Scalar;
use crate::ops::pointwise as pw;
use smallvec::SmallVec;

/// Whether every element is true.
pub fn all(t: &Tensor) -> Result<bool> {
    let a = t.values(".all()")?;
    let every: SmallVec<[bool; 8]> = SmallVec::from_elem(true, a.rank());
    Ok(host::unlocked_if_large(a.numel(), || a.truth(true, &every, false))?.first()?.to_bool())
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
    if equal_nan && a.dtype().is_float() {
        close = pw::logical_or(&close, &pw::logical_and(&pw::isnan(&a)?, &pw::isnan(&b)?)?)?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(close);
    }
    let double =
        |t: &Tensor| if t.dtype().is_float() { Ok(t.clone()) } else { crate::autograd::primitives::cast(t, crate::layout::DType::F64) };
    let (a, b) = (double(&a)?, double(&b)?);
    let allowed = pw::add(&pw::mul(&pw::abs(&b)?, Scalar::Float(rtol))?, Scalar::Float(atol))?;
    let off = pw::abs(&pw::sub(&a, &b)?)?;
    // An infinite difference is close to nothing, whatever the allowance.
    let finite = pw::lt(&off, Scalar::Float(f64::INFINITY))?;
    pw::logical_or(&close, &pw::logical_and(&finite, &pw::le(&off, &allowed)?)?)
}
