//! Inverses, and systems of linear equations.

use super::checks::{self, Failure};
use super::common::{adjoint, adjoint_times, compute, over, same_batch, sizes, times, times_adjoint};
use super::lu::solved;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply, mode, unrelated};
use crate::call::FactorKind;
use crate::error::Result;
use crate::layout::DType;
use crate::ops::pointwise as pw;
use crate::ops::shape::{squeeze_dim, unsqueeze};
use smallvec::smallvec;

/// The inverse, and the first pivot that is 0.
#[derive(Debug, Clone, Copy)]
struct Inverse {
    check: bool,
}

impl Vjp for Inverse {
    fn node_name(&self) -> Name {
        "LinalgInvExBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("inverse", SavedAttribute::Output(0))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let x = cx.output(0)?;
        Ok(smallvec![Some(pw::neg(&times_adjoint(&adjoint_times(&x, g)?, &x)?)?)])
    }
}

impl Op for Inverse {
    fn name(&self) -> &'static str {
        "linalg_inv_ex"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, n, _) = sizes(a[0].shape());
        let made = compute("inv", FactorKind::Inverse, a, &[(over(batch, &[n, n]), a[0].dtype()), (over(batch, &[]), DType::I32)])?;
        if self.check {
            checks::all_succeeded(&made[1], Failure::Inverse)?;
        }
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 4
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0)
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None]) };
        let x = cx.output(0);
        Ok(smallvec![Some(pw::neg(&times(&times(x, t)?, x)?)?), None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The inverses of matrices, infinite for singular ones, and `info`: 0, or the first pivot that is 0.
///
/// # Errors
/// A matrix is singular, if `check`.
pub fn inv(name: &str, a: &Tensor, check: bool) -> Result<(Tensor, Tensor)> {
    let a = checks::matrices(name, a, "A", true)?;
    inverse(&a, check)
}

/// As `inv`, of matrices that are known to be square.
pub(super) fn inverse(a: &Tensor, check: bool) -> Result<(Tensor, Tensor)> {
    let made = apply(&Inverse { check }, &[a])?;
    Ok((made[0].clone(), made[1].clone()))
}

/// `X` of `A X = B`, the factors and pivots of `A`, and the first pivot that is 0.
#[derive(Debug, Clone, Copy)]
struct Solve {
    check: bool,
}

impl Solve {
    fn run(self, a: &Tensor, b: &Tensor) -> Result<[Tensor; 2]> {
        let made = apply(&self, &[a, b])?;
        Ok([made[0].clone(), made[3].clone()])
    }
}

impl Vjp for Solve {
    fn node_name(&self) -> Name {
        "LinalgSolveExBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("A", SavedAttribute::Input(0)),
            ("result", SavedAttribute::Output(0)),
            ("LU", SavedAttribute::Output(1)),
            ("pivots", SavedAttribute::Output(2))
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let a = cx.input(0)?;
        // The factors have no derivative, so they serve only where nobody asks for one.
        let to_b = if !mode::is_grad_enabled() && a.is_bare() && g.is_bare() {
            solved(&cx.output(1)?, &cx.output(2)?, g, true)?
        } else {
            let [x, _] = Solve { check: false }.run(&adjoint(&a)?, g)?;
            x
        };
        let to_a = if cx.needs(0) { Some(pw::neg(&times_adjoint(&to_b, &cx.output(0)?)?)?) } else { None };
        Ok(smallvec![to_a, Some(to_b)])
    }
}

impl Op for Solve {
    fn name(&self) -> &'static str {
        "linalg_solve_ex"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let (batch, n, _) = sizes(ins[0].shape());
        let dtype = ins[0].dtype();
        let outs = [
            (over(&[], ins[1].shape()), dtype),
            (over(batch, &[n, n]), dtype),
            (over(batch, &[n]), DType::I32),
            (over(batch, &[]), DType::I32),
        ];
        let made = compute("solve", FactorKind::Solve, ins, &outs)?;
        if self.check {
            checks::all_succeeded(&made[3], Failure::Solve)?;
        }
        Ok(made)
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[0].numel().saturating_mul(ins[0].shape().last().copied().unwrap_or(1) + ins[1].shape().last().copied().unwrap_or(1)) / 8
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        let s = Saves::NOTHING.input(0).output(1).output(2);
        if needs[0] { s.output(0) } else { s }
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let mut change = cx.tangent(1).cloned();
        if let Some(t) = cx.tangent(0) {
            let by = times(t, cx.output(0))?;
            change = Some(match change {
                Some(c) => pw::sub(&c, &by)?,
                None => pw::neg(&by)?,
            });
        }
        let made = change.map(|c| Solve { check: false }.run(cx.primal(0), &c)).transpose()?.map(|[x, _]| x);
        Ok(smallvec![made, None, None, None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// `X` of `A X = B`, or of `X A = B` without `left`, infinite where `A` is singular, and `info` of the matrices. `B` is a vector if it has one
/// dimension, or exactly the leading dimensions of `A`.
///
/// # Errors
/// Sizes or dtypes do not fit; a matrix is singular, if `check`.
pub fn solve(name: &str, a: &Tensor, b: &Tensor, left: bool, check: bool) -> Result<(Tensor, Tensor)> {
    let (a, b) = (checks::matrices(name, a, "A", true)?, checks::widened(b)?);
    let (sa, sb) = (a.shape(), b.shape());
    let is_vector = sb.len() == 1 || sa.len() == sb.len() + 1 && sb[..] == sa[..sa.len() - 1];
    let right = if is_vector { unsqueeze(&b, -1)? } else { b };
    checks::system(name, &a, &right, left)?;
    let (a, right) = same_batch(&a, &right)?;
    let [x, info] = if left {
        Solve { check }.run(&a, &right)?
    } else {
        let [x, info] = Solve { check }.run(&adjoint(&a)?, &adjoint(&right)?)?;
        [adjoint(&x)?, info]
    };
    Ok((unrelated(if is_vector { squeeze_dim(&x, -1)? } else { x }), info))
}
