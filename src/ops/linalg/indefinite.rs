//! Factors `L D L^T` of symmetric matrices and `L D L^H` of Hermitian ones, and solutions by them. As PyTorch's they have no derivative.

use super::checks::{self, Failure};
use super::common::{compute, over, same_batch, sizes};
use crate::array::Array;
use crate::autograd::primitives::cast;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Tangents, Tensor, Vjp, VjpCx, apply, apply1};
use crate::call::FactorKind;
use crate::error::{Error, Result};
use crate::layout::{DType, fmt_shape};
use crate::ops::shape::expand_to;

fn no_derivative(op: &str) -> Error {
    Error::runtime(format!("derivative for aten::{op} is not implemented"))
}

/// The factors in one matrix, the pivots, and the first block that is 0.
#[derive(Debug, Clone, Copy)]
struct Ldl {
    hermitian: bool,
    check: bool,
}

impl Vjp for Ldl {
    fn node_name(&self) -> Name {
        "NotImplemented".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, _grads: &Grads) -> Result<Grads> {
        Err(no_derivative(self.name()))
    }
}

impl Op for Ldl {
    fn name(&self) -> &'static str {
        "linalg_ldl_factor_ex"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, n, _) = sizes(a[0].shape());
        let outs = [(over(batch, &[n, n]), a[0].dtype()), (over(batch, &[n]), DType::I32), (over(batch, &[]), DType::I32)];
        let made = compute("ldl_factor", FactorKind::Ldl { hermitian: self.hermitian }, a, &outs)?;
        if self.check {
            checks::all_succeeded(&made[2], Failure::Ldl)?;
        }
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 8
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn jvp(&self, _cx: &Jvp<'_>) -> Result<Tangents> {
        Err(no_derivative(self.name()))
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The factors in one matrix, the pivots as LAPACK has them, and the first block that is 0, or 0. The lower triangle is read.
///
/// # Errors
/// A block is 0, if `check`.
pub fn ldl_factor(name: &str, a: &Tensor, hermitian: bool, check: bool) -> Result<[Tensor; 3]> {
    let a = checks::matrices(name, a, "A", true)?;
    let made = apply(&Ldl { hermitian, check }, &[&a])?;
    Ok([made[0].clone(), made[1].clone(), made[2].clone()])
}

/// `X` of `A X = B`, from the factors and pivots of `A`.
#[derive(Debug, Clone, Copy)]
struct LdlSolve {
    hermitian: bool,
}

impl Vjp for LdlSolve {
    fn node_name(&self) -> Name {
        "NotImplemented".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, _grads: &Grads) -> Result<Grads> {
        Err(no_derivative(self.name()))
    }
}

impl Op for LdlSolve {
    fn name(&self) -> &'static str {
        "linalg_ldl_solve"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let out = (over(&[], ins[2].shape()), ins[2].dtype());
        compute("ldl_solve", FactorKind::LdlSolve { hermitian: self.hermitian }, ins, &[out])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[0].numel().saturating_mul(ins[2].shape().last().copied().unwrap_or(1)) / 4
    }
    fn jvp(&self, _cx: &Jvp<'_>) -> Result<Tangents> {
        Err(no_derivative(self.name()))
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// `X` of `A X = B` from the factors and pivots of `A`; leading dimensions broadcast.
///
/// # Errors
/// Sizes or dtypes do not fit.
pub fn ldl_solve(ld: &Tensor, pivots: &Tensor, b: &Tensor, hermitian: bool) -> Result<Tensor> {
    const NAME: &str = "torch.linalg.ldl_solve";
    let (ld, b) = (checks::matrices(NAME, ld, "LD", true)?, checks::widened(b)?);
    let (s, sb) = (ld.shape(), b.shape());
    let [.., rows, columns] = sb[..] else {
        let rank = sb.len();
        return Err(Error::runtime(format!("{NAME}: Expected B to have at least 2 dimensions, but it has {rank} dimensions instead")));
    };
    if pivots.shape()[..] != s[..s.len() - 1] {
        let shown = fmt_shape(&pivots.shape());
        return Err(Error::runtime(format!(
            "{NAME}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {shown} instead"
        )));
    }
    if pivots.dtype().is_differentiable() || pivots.dtype() == DType::Bool {
        return Err(Error::runtime(format!("{NAME}: Expected pivots to be integers. Got {}", pivots.dtype().type_name())));
    }
    let (_, n, _) = sizes(&s);
    if rows != n {
        return Err(Error::runtime(format!(
            "Incompatible matrix sizes for {NAME}: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}"
        )));
    }
    if ld.dtype() != b.dtype() {
        let (x, y) = (b.dtype().type_name(), ld.dtype().type_name());
        return Err(Error::runtime(format!("Expected b and A to have the same dtype, but found b of type {x} and A of type {y} instead.")));
    }
    let (ld, b) = same_batch(&ld, &b)?;
    let s = ld.shape();
    let pivots = cast(&expand_to(pivots, &s[..s.len() - 1])?, DType::I32)?;
    apply1(&LdlSolve { hermitian }, &[&ld, &pivots, &b])
}
