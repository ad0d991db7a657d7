//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

use super::checks::{self, Failure};
use super::common::{add, adjoint, adjoint_times, check_phases, compute, eye, over, sizes, times, times_adjoint, times_diagonal};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply, mode};
use crate::call::FactorKind;
use crate::error::{Error, Result};
use crate::layout::DType;
use crate::ops::shape::{diagonal, unsqueeze};
use crate::ops::{complex, pointwise as pw};
use smallvec::smallvec;

/// The eigenvalues, the eigenvectors if they are wanted, and whether they were found.
#[derive(Debug, Clone, Copy)]
struct Eigen {
    upper: bool,
    vectors: bool,
}

/// `1 / (value j - value i)` at row i and column j, and 0 on the diagonal.
fn gaps(values: &Tensor) -> Result<Tensor> {
    let n = values.shape().last().copied().unwrap_or(0);
    let eye = eye(values, n, n)?;
    let gaps = pw::sub(&unsqueeze(values, -2)?, &unsqueeze(values, -1)?)?;
    pw::div(&pw::sub(1.0, &eye)?, &pw::add(&gaps, &eye)?)
}

/// Refuses a gradient of complex eigenvectors that depends on their phases. `inner` is `Q^H gQ`.
pub(super) fn check_vectors(name: &str, inner: &Tensor) -> Result<()> {
    if !inner.dtype().is_complex() {
        return Ok(());
    }
    let phases = complex::imag(&diagonal(&inner.detach(), 0, -2, -1)?)?;
    let message = format!(
        "{name}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function \
         depends on this quantity, so it is ill-defined."
    );
    check_phases(&phases, &message)
}

impl Vjp for Eigen {
    fn node_name(&self) -> Name {
        "LinalgEighBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("eigenvalues", SavedAttribute::Output(0)), ("eigenvectors", SavedAttribute::Output(1))]
    }
    /// `Q (diag(gL) + (Q^H gQ - gQ^H Q) / 2 * gaps) Q^H`, which is Hermitian (Giles 2008, "Collected matrix derivative results").
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let q = cx.output(1)?;
        let of_vectors = grads[1].as_ref().map(|g| {
            let inner = adjoint_times(&q, g)?;
            check_vectors("linalg_eigh", &inner)?;
            let inner = pw::mul(&pw::sub(&inner, &adjoint(&inner)?)?, 0.5)?;
            times(&q, &pw::mul(&inner, &gaps(&cx.output(0)?)?)?)
        });
        let of_values = grads[0].as_ref().map(|g| times_diagonal(&q, g)).transpose()?;
        let Some(left) = add(of_vectors.transpose()?, of_values)? else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(times_adjoint(&left, &q)?)])
    }
}

impl Op for Eigen {
    fn name(&self) -> &'static str {
        "linalg_eigh"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, n, _) = sizes(a[0].shape());
        let mut outs =
            vec![(over(batch, &[n]), a[0].dtype().row().real), (over(batch, &[n, n]), a[0].dtype()), (over(batch, &[]), DType::I32)];
        if !self.vectors {
            outs.remove(1);
        }
        let made = compute("eigh", FactorKind::Eigen { upper: self.upper, vectors: self.vectors }, a, &outs)?;
        checks::all_succeeded(&made[made.len() - 1], Failure::Eigen)?;
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1))
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0).output(1)
    }
    fn differentiable(&self, output: usize) -> bool {
        output < 2
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None, None]) };
        let q = cx.output(1);
        let inner = times(&adjoint_times(q, t)?, q)?;
        let to_q = times(q, &pw::mul(&inner, &gaps(cx.output(0))?)?)?;
        Ok(smallvec![Some(complex::real(&diagonal(&inner, 0, -2, -1)?)?), Some(to_q), None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

fn is_upper(side: &str) -> Result<bool> {
    match side {
        "L" | "l" => Ok(false),
        "U" | "u" => Ok(true),
        _ => Err(Error::runtime(format!("Expected UPLO argument to be 'L' or 'U', but got {side}"))),
    }
}

/// The eigenvalues, which rise, and the eigenvectors, as columns, of matrices of which one triangle is read.
///
/// # Errors
/// There is no such triangle; a value was not found.
pub fn eigh(a: &Tensor, side: &str) -> Result<(Tensor, Tensor)> {
    let a = checks::matrices("linalg.eigh", a, "A", true)?;
    let made = apply(&Eigen { upper: is_upper(side)?, vectors: true }, &[&a])?;
    Ok((made[0].clone(), made[1].clone()))
}

/// As `eigh`, the values alone.
///
/// # Errors
/// As for `eigh`.
pub fn eigvalsh(a: &Tensor, side: &str) -> Result<Tensor> {
    let a = checks::matrices("linalg.eigvalsh", a, "A", true)?;
    // The derivative needs the vectors.
    let vectors = !a.is_bare() || mode::is_grad_enabled() && a.requires_grad();
    Ok(apply(&Eigen { upper: is_upper(side)?, vectors }, &[&a])?[0].clone())
}
