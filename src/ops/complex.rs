//! Complex numbers and their parts: views between both, and complex tensors made of real ones.

use super::{join, pointwise as pw};
use crate::autograd::{MathBits, Tensor, ViewOp, primitives, view};
use crate::error::{Error, Result};
use crate::layout::DType;

/// The real part of a complex tensor, a view; a real tensor itself.
pub fn real(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { primitives::part(x, false) } else { Ok(x.clone()) }
}

/// The imaginary part, a view.
///
/// # Errors
/// The tensor is real.
pub fn imag(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() {
        primitives::part(x, true)
    } else {
        Err(Error::runtime("imag is not implemented for tensors with non-complex dtypes."))
    }
}

/// The complex conjugate: a view that conjugates when it is read. A real tensor itself.
pub fn conj(x: &Tensor) -> Result<Tensor> {
    primitives::conj_view(x)
}

/// The tensor itself, or a copy of a lazy conjugate whose elements are computed.
pub fn resolve_conj(x: &Tensor) -> Result<Tensor> {
    if x.is_conj() { primitives::resolved(x) } else { Ok(x.clone()) }
}

/// The tensor itself, or a copy of a lazy negative whose elements are computed.
pub fn resolve_neg(x: &Tensor) -> Result<Tensor> {
    if x.is_neg() { primitives::resolved(x) } else { Ok(x.clone()) }
}

/// The negative: a view that negates when it is read.
pub fn neg_view(x: &Tensor) -> Result<Tensor> {
    view(x, ViewOp::Bits(MathBits::NEG))
}

/// Complex numbers as pairs of real ones in a last dimension of 2, a view.
///
/// # Errors
/// The tensor is real, or a lazy conjugate.
pub fn view_as_real(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { view(x, ViewOp::AsReal) } else { Err(Error::runtime("view_as_real is only supported for complex tensors")) }
}

/// Pairs of real numbers in a last dimension of 2 as complex ones, a view.
///
/// # Errors
/// The tensor is none of float16, float32 and float64, or its layout allows no view.
pub fn view_as_complex(x: &Tensor) -> Result<Tensor> {
    if !matches!(x.dtype(), DType::F16 | DType::F32 | DType::F64) {
        return Err(Error::runtime(format!(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
            x.dtype().type_name()
        )));
    }
    if x.rank() == 0 {
        return Err(Error::runtime("Input tensor must have one or more dimensions"));
    }
    view(x, ViewOp::AsComplex)
}

/// Complex numbers of these parts, which broadcast.
///
/// # Errors
/// The parts are of two dtypes, or of none of float16, float32 and float64.
pub fn complex(re: &Tensor, im: &Tensor) -> Result<Tensor> {
    check_parts(re, im)?;
    let shape = crate::layout::broadcast(&re.shape(), &im.shape())?;
    let [re, im] = [re, im].map(|t| view(t, ViewOp::Expand(shape.clone())));
    primitives::as_complex(&join::stack(&[re?, im?], -1)?)
}

/// Complex numbers of these absolute values and angles in radians, which broadcast.
///
/// # Errors
/// As for `complex`.
pub fn polar(abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
    check_parts(abs, angle)?;
    complex(&pw::mul(abs, &pw::cos(angle)?)?, &pw::mul(abs, &pw::sin(angle)?)?)
}

fn check_parts(a: &Tensor, b: &Tensor) -> Result<()> {
    let (x, y) = (a.dtype(), b.dtype());
    if ![x, y].iter().all(|d| matches!(d, DType::F16 | DType::F32 | DType::F64)) {
        return Err(Error::runtime(format!(
            "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
            x.type_name(),
            y.type_name()
        )));
    }
    if x != y {
        return Err(Error::runtime(format!(
            "Expected object of scalar type {} but got scalar type {} for second argument",
            x.type_name(),
            y.type_name()
        )));
    }
    Ok(())
}
