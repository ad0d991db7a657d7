//! Cholesky factors, and what is made of them.

use super::checks::{self, Failure};
use super::common::{adjoint, adjoint_times, compute, eye, half, lower, over, same_batch, sizes, times};
use super::triangular::triangular;
use crate::array::Array;
use crate::array::Device;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply};
use crate::call::FactorKind;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::DType;
use crate::ops::{pointwise as pw, shape};
use smallvec::smallvec;

/// The lower factor `L` of `A = L L^H`, or the upper one, and the order of the first leading minor that is not positive.
#[derive(Debug, Clone, Copy)]
struct Cholesky {
    upper: bool,
    check: bool,
}

impl Cholesky {
    /// The lower factor, or its gradient, from that of the output.
    fn as_lower(self, t: &Tensor) -> Result<Tensor> {
        if self.upper { adjoint(t) } else { Ok(t.clone()) }
    }
}

impl Vjp for Cholesky {
    fn node_name(&self) -> Name {
        "LinalgCholeskyExBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("L", SavedAttribute::Output(0)),
            ("check_errors", SavedAttribute::Bool(self.check)),
            ("upper", SavedAttribute::Bool(self.upper))
        ]
    }
    /// `L^-H sym(half(L^H g)) L^-1` (Murray 2016, "Differentiation of the Cholesky decomposition").
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (l, g) = (self.as_lower(&cx.output(0)?)?, self.as_lower(g)?);
        let middle = adjoint_times(&l, &g)?;
        let middle = pw::mul(&pw::add(&lower(&middle, 0)?, &adjoint(&lower(&middle, -1)?)?)?, 0.5)?;
        let (lh, left) = (adjoint(&l)?, triangular(&adjoint(&l)?, &middle, true, false)?);
        Ok(smallvec![Some(adjoint(&triangular(&lh, &adjoint(&left)?, true, false)?)?)])
    }
}

impl Op for Cholesky {
    fn name(&self) -> &'static str {
        "linalg_cholesky_ex"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, n, _) = sizes(a[0].shape());
        let outs = [(over(batch, &[n, n]), a[0].dtype()), (over(batch, &[]), DType::I32)];
        let made = compute("cholesky", FactorKind::Cholesky { upper: self.upper }, a, &outs)?;
        if self.check {
            checks::all_succeeded(&made[1], Failure::Cholesky)?;
        }
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 24
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0)
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    /// `L half(L^-1 dA L^-H)`.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None]) };
        let l = self.as_lower(cx.output(0))?;
        let inner = triangular(&l, &adjoint(&triangular(&l, t, false, false)?)?, false, false)?;
        Ok(smallvec![Some(self.as_lower(&times(&l, &half(&inner)?)?)?), None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The factors of matrices, of which one triangle is read, and `info`: 0, or the order of the first leading minor that is not positive.
///
/// # Errors
/// A matrix is not positive-definite, if `check`.
pub fn cholesky(a: &Tensor, upper: bool, check: bool) -> Result<(Tensor, Tensor)> {
    let a = checks::matrices("linalg.cholesky", a, "A", true)?;
    let made = apply(&Cholesky { upper, check }, &[&a])?;
    Ok((made[0].clone(), made[1].clone()))
}

fn solved(b: &Tensor, factor: &Tensor, upper: bool) -> Result<Tensor> {
    let l = if upper { adjoint(factor)? } else { factor.clone() };
    triangular(&adjoint(&l)?, &triangular(&l, b, false, false)?, true, false)
}

/// `X` of `A X = B`, from the factor of `A`. The gradient of the triangle that is not read is 0.
pub fn cholesky_solve(b: &Tensor, factor: &Tensor, upper: bool) -> Result<Tensor> {
    const NAME: &str = "cholesky_solve";
    let (factor, b) = (checks::matrices(NAME, factor, "A", true)?, checks::widened(b)?);
    checks::system(NAME, &factor, &b, true)?;
    let (factor, b) = same_batch(&factor, &b)?;
    solved(&b, &factor, upper)
}

/// The inverse of a matrix, from its factor.
///
/// # Errors
/// The diagonal has a zero.
pub fn cholesky_inverse(factor: &Tensor, upper: bool) -> Result<Tensor> {
    let factor = checks::matrices("cholesky_inverse", factor, "A", true)?;
    let s = factor.shape();
    let (batch, n, _) = sizes(&s);
    // Inside of a transform values decide nothing: a zero gives infinities or nan there.
    if factor.device() != Device::META && factor.level() == 0 {
        let zero = pw::eq(&shape::diagonal(&factor.detach(), 0, -2, -1)?, 0.0)?;
        let zero = zero.array()?.to_device(Device::CPU)?.to_vec::<bool>()?;
        if let Some(at) = zero.iter().position(|z| *z) {
            let (b, k) = (at / n.max(1), at % n.max(1) + 1);
            let place = if batch.is_empty() { String::new() } else { format!("(Batch element {b}): ") };
            return Err(Error::new(
                ErrorKind::LinearAlgebra,
                format!(
                    "cholesky_inverse: {place}The diagonal element {k} is zero, the inversion could not be completed because the input matrix is \
                     singular."
                ),
            ));
        }
    }
    solved(&shape::expand_to(&eye(&factor, n, n)?, &s)?, &factor, upper)
}
