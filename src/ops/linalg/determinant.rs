//! Determinants. Their derivatives are made of cofactors, which singular matrices have, too.

use super::checks;
use super::common::{add, adjoint, compute, over, sizes, times, times_transposed, transposed_times};
use super::solve::inverse;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::primitives::conj;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply, apply1};
use crate::call::FactorKind;
use crate::error::Result;
use crate::layout::{DType, Scalar};
use crate::ops::cross::cross;
use crate::ops::shape::{matrix_transpose, select, unsqueeze};
use crate::ops::{complex, create, join, pointwise as pw, reduce};
use smallvec::smallvec;

/// A number for each matrix, beside the matrices.
fn beside(t: &Tensor) -> Result<Tensor> {
    unsqueeze(&unsqueeze(t, -1)?, -1)
}

/// The sum of all products of elements of two batches of matrices.
fn inner(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    reduce::sum(&pw::mul(a, b)?, Some(&[-2, -1]), false, None)
}

/// The cofactors of each matrix, by which its determinant changes. Their own derivative needs the inverse.
#[derive(Debug, Clone, Copy)]
struct Cofactor;

impl Vjp for Cofactor {
    fn node_name(&self) -> Name {
        "CofactorBackward0".into()
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (c, inverse) = (conj(&cx.output(0)?)?, adjoint(&inverse(&cx.input(0)?, false)?.0)?);
        let through = times(&times_transposed(&c, g)?, &inverse)?;
        Ok(smallvec![Some(pw::sub(&pw::mul(&beside(&inner(g, &c)?)?, &inverse)?, &through)?)])
    }
}

impl Op for Cofactor {
    fn name(&self) -> &'static str {
        "cofactor"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        compute("det", FactorKind::Cofactors, a, &[(over(&[], a[0].shape()), a[0].dtype())])
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 4
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None]) };
        let (c, inverse) = (cx.output(0), matrix_transpose(&inverse(cx.primal(0), false)?.0)?);
        let through = times(&inverse, &transposed_times(t, c)?)?;
        Ok(smallvec![Some(pw::sub(&pw::mul(&beside(&inner(&inverse, t)?)?, c)?, &through)?)])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// i times the imaginary part.
fn imaginary(t: &Tensor) -> Result<Tensor> {
    pw::mul(&pw::sub(t, &conj(t)?)?, 0.5)
}

/// The cofactors. Up to three rows they are polynomials here, so singular matrices have every derivative.
fn cofactors(a: &Tensor) -> Result<Tensor> {
    let s = a.shape();
    let at = |i: i64, j: i64| select(&select(a, -2, i)?, -1, j);
    match sizes(&s).1 {
        0 => Ok(a.clone()),
        1 => create::full_like(a, Scalar::Float(1.0), None),
        2 => {
            let row = |x: Tensor, y: Tensor| join::stack(&[x, y], -1);
            join::stack(&[row(at(1, 1)?, pw::neg(&at(1, 0)?)?)?, row(pw::neg(&at(0, 1)?)?, at(0, 0)?)?], -2)
        }
        3 => {
            let row = |i: i64| select(a, -2, i % 3);
            let made = (0..3).map(|i| cross(&row(i + 1)?, &row(i + 2)?, -1)).collect::<Result<Vec<Tensor>>>()?;
            join::stack(&made, -2)
        }
        _ => apply1(&Cofactor, &[a]),
    }
}

/// The determinant, the factors and the pivots.
#[derive(Debug, Clone, Copy)]
struct Determinant;

impl Vjp for Determinant {
    fn node_name(&self) -> Name {
        "LinalgDetBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("A", SavedAttribute::Input(0))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(smallvec![Some(pw::mul(&beside(g)?, &conj(&cofactors(&cx.input(0)?)?)?)?)])
    }
}

/// The shapes of the factors and the pivots.
fn factored(a: &Array, first: &[(&[usize], DType)]) -> smallvec::SmallVec<[super::common::Made; 4]> {
    let (batch, n, _) = sizes(a.shape());
    let factors = [(&[n, n][..], a.dtype()), (&[n][..], DType::I32)];
    first.iter().copied().chain(factors).map(|(s, d)| (over(batch, s), d)).collect()
}

impl Op for Determinant {
    fn name(&self) -> &'static str {
        "linalg_det"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        if sizes(a[0].shape()).1 == 0 {
            let (batch, ..) = sizes(a[0].shape());
            return Ok(smallvec![a[0].full_beside(batch, Scalar::Float(1.0), a[0].dtype())?]);
        }
        let mut made = compute("det", FactorKind::Determinant { logarithm: false }, a, &factored(a[0], &[(&[], a[0].dtype())]))?;
        made.truncate(1);
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 8
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        Ok(smallvec![cx.tangent(0).map(|t| inner(&cofactors(cx.primal(0))?, t)).transpose()?])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The sign of the determinant, which has a derivative if it is complex, and the logarithm of its magnitude.
#[derive(Debug, Clone, Copy)]
struct LogDeterminant {
    complex: bool,
}

impl Vjp for LogDeterminant {
    fn node_name(&self) -> Name {
        "LinalgSlogdetBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("A", SavedAttribute::Input(0))]
    }
    /// With `t` the trace of `A^-1 dA`: the logarithm changes by its real part, the sign by `i sign` times its imaginary part.
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let turned = if self.complex { grads[0].as_ref() } else { None };
        // i times the imaginary part of conj(g) sign, negated.
        let turned = turned.map(|g| imaginary(&pw::mul(g, &conj(&cx.output(0)?)?)?)).transpose()?;
        let Some(g) = add(turned, grads[1].clone())? else { return Ok(smallvec![None]) };
        let (inverse, _) = inverse(&cx.input(0)?, false)?;
        Ok(smallvec![Some(pw::mul(&beside(&g)?, &adjoint(&inverse)?)?)])
    }
}

impl Op for LogDeterminant {
    fn name(&self) -> &'static str {
        "linalg_slogdet"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let dtype = a[0].dtype();
        if sizes(a[0].shape()).1 == 0 {
            let (batch, ..) = sizes(a[0].shape());
            return [(1.0, dtype), (0.0, dtype.row().real)].iter().map(|(v, d)| a[0].full_beside(batch, Scalar::Float(*v), *d)).collect();
        }
        let outs = factored(a[0], &[(&[], dtype), (&[], dtype.row().real)]);
        let mut made = compute("slogdet", FactorKind::Determinant { logarithm: true }, a, &outs)?;
        made.truncate(2);
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        Determinant.work(a)
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        let s = Saves::NOTHING.input(0);
        if self.complex { s.output(0) } else { s }
    }
    fn differentiable(&self, output: usize) -> bool {
        self.complex || output == 1
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None]) };
        let (inverse, _) = inverse(cx.primal(0), false)?;
        let trace = inner(&matrix_transpose(&inverse)?, t)?;
        let to_sign = if self.complex { Some(pw::mul(&imaginary(&trace)?, cx.output(0))?) } else { None };
        Ok(smallvec![to_sign, Some(complex::real(&trace)?)])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The determinants of square matrices. Singular ones have a gradient, too; those of up to three rows every derivative.
pub fn det(a: &Tensor) -> Result<Tensor> {
    apply1(&Determinant, &[&checks::matrices("linalg.det", a, "A", true)?])
}

/// The signs of determinants and the logarithms of their magnitudes; of a singular matrix 0 and minus infinity.
pub fn slogdet(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let a = checks::matrices("linalg.slogdet", a, "A", true)?;
    let made = apply(&LogDeterminant { complex: a.dtype().is_complex() }, &[&a])?;
    Ok((made[0].clone(), made[1].clone()))
}
