//! Systems of linear equations with triangular matrices.

use super::checks;
use super::common::{adjoint, compute, lower, same_batch, times, times_adjoint, upper};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply1};
use crate::call::FactorKind;
use crate::error::Result;
use crate::layout::Dims;
use crate::ops::{pointwise as pw, shape::matrix_transpose};
use smallvec::smallvec;

/// `X` of `A X = B`, for triangular `A`.
#[derive(Debug, Clone, Copy)]
struct Triangular {
    upper: bool,
    unit: bool,
}

impl Triangular {
    /// The part of a matrix that is read.
    fn part(self, a: &Tensor) -> Result<Tensor> {
        let diagonal = i64::from(self.unit);
        if self.upper { upper(a, diagonal) } else { lower(a, -diagonal) }
    }
}

impl Vjp for Triangular {
    fn node_name(&self) -> Name {
        "LinalgSolveTriangularBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("self", SavedAttribute::Input(0)),
            ("result", SavedAttribute::Output(0)),
            ("upper", SavedAttribute::Bool(self.upper)),
            ("unitriangular", SavedAttribute::Bool(self.unit))
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let to_b = triangular(&adjoint(&cx.input(0)?)?, g, !self.upper, self.unit)?;
        let to_a = if cx.needs(0) { Some(self.part(&pw::neg(&times_adjoint(&to_b, &cx.output(0)?)?)?)?) } else { None };
        Ok(smallvec![to_a, Some(to_b)])
    }
}

impl Op for Triangular {
    fn name(&self) -> &'static str {
        "solve_triangular"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let kind = FactorKind::Triangular { upper: self.upper, unit: self.unit };
        compute("solve_triangular", kind, ins, &[(Dims::from_slice(ins[1].shape()), ins[1].dtype())])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[0].numel().saturating_mul(ins[1].shape().last().copied().unwrap_or(1)) / 8
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        let s = Saves::NOTHING.input(0);
        if needs[0] { s.output(0) } else { s }
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let mut change = cx.tangent(1).cloned();
        if let Some(t) = cx.tangent(0) {
            let by = times(&self.part(t)?, cx.output(0))?;
            change = Some(match change {
                Some(c) => pw::sub(&c, &by)?,
                None => pw::neg(&by)?,
            });
        }
        Ok(smallvec![change.map(|c| triangular(cx.primal(0), &c, self.upper, self.unit)).transpose()?])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// `X` of `A X = B`. Both have the same leading dimensions.
pub(super) fn triangular(a: &Tensor, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
    apply1(&Triangular { upper, unit }, &[a, b])
}

/// `X` of `A X = B`, or of `X A = B` without `left`, for triangular `A`; leading dimensions broadcast.
pub fn solve_triangular(a: &Tensor, b: &Tensor, upper: bool, left: bool, unit: bool) -> Result<Tensor> {
    const NAME: &str = "linalg.solve_triangular";
    let (a, b) = (checks::matrices(NAME, a, "A", true)?, checks::widened(b)?);
    checks::system(NAME, &a, &b, left)?;
    let (a, b) = same_batch(&a, &b)?;
    if left {
        return triangular(&a, &b, upper, unit);
    }
    matrix_transpose(&triangular(&matrix_transpose(&a)?, &matrix_transpose(&b)?, !upper, unit)?)
}
