//! Eigenvalues and eigenvectors of general matrices.

use super::checks::{self, Failure};
use super::common::{add, adjoint, adjoint_times, compute, eye, over, sizes, times, times_diagonal};
use super::solve::solve;
use super::symmetric::check_vectors;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::primitives::{cast, conj};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply, mode};
use crate::call::FactorKind;
use crate::error::{Error, Result};
use crate::layout::DType;
use crate::ops::shape::{diagonal, unsqueeze};
use crate::ops::{complex, diagonal as diagonals, pointwise as pw, reduce};
use smallvec::smallvec;

const NAME: &str = "linalg.eig";

/// The eigenvalues, the eigenvectors if they are wanted, and whether they were found.
#[derive(Debug, Clone, Copy)]
struct Spectrum {
    vectors: bool,
    /// Whether the matrices are complex.
    complex: bool,
}

/// `1 / (value j - value i)` at row i and column j, and 0 on the diagonal.
fn gaps(values: &Tensor) -> Result<Tensor> {
    let n = values.shape().last().copied().unwrap_or(0);
    let eye = eye(values, n, n)?;
    let gaps = pw::sub(&unsqueeze(values, -2)?, &unsqueeze(values, -1)?)?;
    pw::div(&pw::sub(1.0, &eye)?, &pw::add(&gaps, &eye)?)
}

/// `X` of `A X = B`, infinite where `A` is singular: where a matrix has no basis of eigenvectors.
fn solved(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    Ok(solve(NAME, a, b, true, false)?.0)
}

impl Vjp for Spectrum {
    fn node_name(&self) -> Name {
        "LinalgEigBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("eigenvalues", SavedAttribute::Output(0)), ("eigenvectors", SavedAttribute::Output(1))]
    }
    /// With `V = Q D` for vectors of length 1: `V^-H (diag(gL) + (V^H gV - V^H V diag(re(V^H gV))) * conj(gaps)) V^H` (Boeddeker et al. 2017, "On the
    /// computation of complex-valued gradients with application to statistically optimum beamforming").
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let v = cx.output(1)?;
        let vh = adjoint(&v)?;
        let of_vectors = grads[1].as_ref().map(|g| {
            let inner = adjoint_times(&v, g)?;
            check_vectors("linalg_eig", &inner)?;
            let along = complex::real(&diagonal(&inner, 0, -2, -1)?)?;
            let across = pw::sub(&inner, &times(&vh, &times_diagonal(&v, &along)?)?)?;
            pw::mul(&across, &conj(&gaps(&cx.output(0)?)?)?)
        });
        let made = match (of_vectors.transpose()?, grads[0].as_ref()) {
            (None, None) => return Ok(smallvec![None]),
            (None, Some(g)) => pw::mul(&unsqueeze(g, -1)?, &vh)?,
            (Some(x), g) => {
                let g = g.map(|g| diagonals::diag_embed(g, 0, -2, -1)).transpose()?;
                times(&add(Some(x), g)?.ok_or_else(|| Error::internal(NAME, "no gradient"))?, &vh)?
            }
        };
        let made = solved(&vh, &made)?;
        Ok(smallvec![Some(if self.complex { made } else { complex::real(&made)? })])
    }
}

impl Op for Spectrum {
    fn name(&self) -> &'static str {
        "linalg_eig"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, n, _) = sizes(a[0].shape());
        let dtype = a[0].dtype().row().complex.ok_or_else(|| Error::internal(NAME, "no complex dtype"))?;
        let mut outs = vec![(over(batch, &[n]), dtype), (over(batch, &[n, n]), dtype), (over(batch, &[]), DType::I32)];
        if !self.vectors {
            outs.remove(1);
        }
        let made = compute("eig", FactorKind::Spectrum { vectors: self.vectors }, a, &outs)?;
        checks::all_succeeded(&made[made.len() - 1], Failure::Spectrum)?;
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)).saturating_mul(2)
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0).output(1)
    }
    fn differentiable(&self, output: usize) -> bool {
        output < 2
    }
    /// `P = V^-1 dA V`: its diagonal, and `V (P * gaps)` without what it has along the vectors.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None, None]) };
        let (values, v) = (cx.output(0), cx.output(1));
        let inner = solved(v, &times(&cast(t, v.dtype())?, v)?)?;
        let change = times(v, &pw::mul(&inner, &gaps(values)?)?)?;
        let along = complex::real(&reduce::sum(&pw::mul(&conj(v)?, &change)?, Some(&[-2]), false, None)?)?;
        Ok(smallvec![Some(diagonal(&inner, 0, -2, -1)?), Some(pw::sub(&change, &times_diagonal(v, &along)?)?), None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

fn checked(a: &Tensor) -> Result<Tensor> {
    if a.rank() >= 2 && !a.dtype().is_differentiable() {
        return Err(Error::runtime(format!("Unknown Complex ScalarType for {}", a.dtype().type_name())));
    }
    checks::matrices(NAME, a, "A", true)
}

/// The eigenvalues, in no order, and the eigenvectors, as columns of length 1; complex, for real matrices, too.
///
/// # Errors
/// A matrix has an infinity or nan; a value was not found.
pub fn eig(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let a = checked(a)?;
    let made = apply(&Spectrum { vectors: true, complex: a.dtype().is_complex() }, &[&a])?;
    Ok((made[0].clone(), made[1].clone()))
}

/// As `eig`, the values alone.
///
/// # Errors
/// As for `eig`.
pub fn eigvals(a: &Tensor) -> Result<Tensor> {
    let a = checked(a)?;
    // The derivative needs the vectors.
    let vectors = !a.is_bare() || mode::is_grad_enabled() && a.requires_grad();
    Ok(apply(&Spectrum { vectors, complex: a.dtype().is_complex() }, &[&a])?[0].clone())
}
