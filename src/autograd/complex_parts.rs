//! Complex numbers as differentiation needs them: conjugates, computed or as views, and the views between numbers and their parts.

use crate::array::Array;
use crate::autograd::dispatch::apply::apply1;
use crate::autograd::dispatch::pointwise::PointwiseOp;
use crate::autograd::graph::view::{ViewOp, view};
use crate::autograd::primitives::{clone, contiguous_copy};
use crate::autograd::tensor::{MathBits, Tensor};
use crate::error::{Error, Result};
use crate::layout::DType;
use crate::rows::{Func, RowId};

/// The real part of a complex tensor, or its imaginary part: a view.
pub fn part(t: &Tensor, imaginary: bool) -> Result<Tensor> {
    // Of a lazy conjugate, the parts of what lies in memory. The imaginary part is the negative.
    let conj = t.is_conj();
    let mut parts = if conj { view(&view(t, CONJ)?, ViewOp::AsReal)? } else { view(t, ViewOp::AsReal)? };
    if conj && imaginary {
        parts = view(&parts, ViewOp::Bits(MathBits::NEG))?;
    }
    let last = parts.rank() - 1;
    view(&parts, ViewOp::Select(last, usize::from(imaginary)))
}

const CONJ: ViewOp = ViewOp::Bits(MathBits::CONJ);

/// The complex conjugate, a view; a tensor without imaginary parts itself.
pub fn conj_view(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { view(t, CONJ) } else { Ok(t.clone()) }
}

/// A tensor whose elements lie in memory as they are read: itself, or a copy of a lazy conjugate or negative.
pub fn resolved(t: &Tensor) -> Result<Tensor> {
    if t.math_bits().any() { clone(t) } else { Ok(t.clone()) }
}

/// The elements of an array conjugated, negated or both.
#[cold]
pub(super) fn computed(array: &Array, bits: MathBits) -> Result<Array> {
    let row = |a: &Array, row| Array::pointwise(Func::forward(row), a.dtype(), a.dtype(), &[a], &[]);
    let conjugated = if bits.conj { Some(row(array, RowId::ConjPhysical)?) } else { None };
    match (conjugated, bits.neg) {
        (Some(conjugated), false) => Ok(conjugated),
        (None, true) if array.dtype() == DType::Bool => Err(Error::not_implemented(
            "\"neg_cpu\" not implemented for 'Bool' (a lazy negative of truth values: convert them to numbers first)",
        )),
        (conjugated, _) => row(conjugated.as_ref().unwrap_or(array), RowId::Neg),
    }
}

/// The tensor's elements conjugated, negated or both.
pub fn with_bits(t: &Tensor, bits: MathBits) -> Result<Tensor> {
    let t = if bits.conj { conj(t)? } else { t.clone() };
    if bits.neg { apply1(&PointwiseOp::of(RowId::Neg, t.dtype()), &[&t]) } else { Ok(t) }
}

/// Complex numbers as pairs of real ones in a last dimension of 2: a view, or of a lazy conjugate a copy.
pub fn as_real(t: &Tensor) -> Result<Tensor> {
    if t.is_conj() { view(&clone(t)?, ViewOp::AsReal) } else { view(t, ViewOp::AsReal) }
}

/// Pairs of real numbers, in a last dimension of 2, as complex ones: a view where the layout allows it.
pub fn as_complex(t: &Tensor) -> Result<Tensor> {
    let possible = t.with_array(|a| a.layout().from_pairs().is_ok());
    view(&if possible { t.clone() } else { contiguous_copy(t)? }, ViewOp::AsComplex)
}

/// The complex conjugate, computed; a tensor without imaginary parts itself.
pub fn conj(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { apply1(&PointwiseOp::of(RowId::ConjPhysical, t.dtype()), &[t]) } else { Ok(t.clone()) }
}
