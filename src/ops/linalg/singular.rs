//! Singular values and vectors, and the pseudo-inverse.

use super::checks::{self, Failure};
use super::common::{
    add, adjoint, adjoint_times, check_phases, compute, eye, identities, over, sizes, times, times_adjoint, times_diagonal,
};
use super::symmetric;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::primitives::conj;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply, apply1, mode};
use crate::call::{FactorKind, SvdParts};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::ops::shape::{diagonal, narrow, unsqueeze};
use crate::ops::{complex, diagonal as diagonals, pointwise as pw};
use smallvec::smallvec;

/// The parts of a decomposition, and whether the values were found.
#[derive(Debug, Clone, Copy)]
struct Svd {
    parts: SvdParts,
}

/// `1 / (s_j^2 - s_i^2)`, and 0 on the diagonal; as products, so that close values keep their digits.
fn square_gaps(s: &Tensor) -> Result<Tensor> {
    let n = s.shape().last().copied().unwrap_or(0);
    let (eye, row, column) = (eye(s, n, n)?, unsqueeze(s, -2)?, unsqueeze(s, -1)?);
    let gaps = pw::mul(&pw::sub(&row, &column)?, &pw::add(&row, &column)?)?;
    pw::div(&pw::sub(1.0, &eye)?, &pw::add(&gaps, &eye)?)
}

/// Refuses a gradient that depends on the phases that left and right vectors have in common. Of both the skew part of `Q^H gQ`, if there is one.
fn check_turns(turns: &[Option<Tensor>; 2]) -> Result<()> {
    let phase = |t: &Tensor| complex::imag(&diagonal(&t.detach(), 0, -2, -1)?);
    let phases = [&turns[0], &turns[1]].map(|t| t.as_ref().map(phase).transpose());
    let [left, right] = phases;
    let Some(sum) = add(left?, right?)? else { return Ok(()) };
    check_phases(
        &sum,
        "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function \
         depends on this phase term, making it ill-defined.",
    )
}

/// `x - x^H`.
fn skew(x: &Tensor) -> Result<Tensor> {
    pw::sub(x, &adjoint(x)?)
}

impl Vjp for Svd {
    fn node_name(&self) -> Name {
        "LinalgSvdBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("U", SavedAttribute::Output(0)),
            ("S", SavedAttribute::Output(1)),
            ("Vh", SavedAttribute::Output(2)),
            ("full_matrices", SavedAttribute::Bool(self.parts == SvdParts::Full))
        ]
    }
    /// Giles 2008, "Collected matrix derivative results"; the vectors beyond the values have no gradient.
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        if grads[..3].iter().all(Option::is_none) {
            return Ok(smallvec![None]);
        }
        let (u, s, vh) = (cx.output(0)?, cx.output(1)?, cx.output(2)?);
        let (m, n, k) = (u.shape()[u.rank() - 2], vh.shape()[vh.rank() - 1], s.shape()[s.rank() - 1]);
        let columns = |t: &Tensor| if self.parts == SvdParts::Full { narrow(t, -1, 0, k as i64) } else { Ok(t.clone()) };
        let rows = |t: &Tensor| if self.parts == SvdParts::Full { narrow(t, -2, 0, k as i64) } else { Ok(t.clone()) };
        let (u, v) = (columns(&u)?, adjoint(&rows(&vh)?)?);
        let (row, column) = (unsqueeze(&s, -2)?, unsqueeze(&s, -1)?);
        let of_values = grads[1].as_ref().map(|g| times_diagonal(&u, g)).transpose()?;
        let (mut inner, mut outside, mut turns) = (None, None, [None, None]);
        if grads[0].is_some() || grads[2].is_some() {
            let gaps = square_gaps(&s)?;
            if let Some(g) = &grads[0] {
                let g = columns(g)?;
                let x = adjoint_times(&u, &g)?;
                let turn = skew(&x)?;
                turns[0] = Some(turn.clone());
                inner = Some(pw::mul(&pw::mul(&gaps, &turn)?, &row)?);
                if m > k {
                    outside = Some(times_adjoint(&pw::div(&pw::sub(&g, &times(&u, &x)?)?, &row)?, &v)?);
                }
            }
            if let Some(g) = &grads[2] {
                let g = adjoint(&rows(g)?)?;
                let y = adjoint_times(&v, &g)?;
                let turn = skew(&y)?;
                turns[1] = Some(turn.clone());
                inner = add(inner, Some(pw::mul(&pw::mul(&column, &gaps)?, &turn)?))?;
                if n > k {
                    outside = add(outside, Some(times_adjoint(&u, &pw::div(&pw::sub(&g, &times(&v, &y)?)?, &row)?)?))?;
                }
            }
        }
        if u.dtype().is_complex() {
            check_turns(&turns)?;
            if let [Some(turn), Some(_)] = &turns {
                // Where both vectors turn by the same phase nothing changes; this is the derivative by the difference.
                let by = pw::div(&diagonal(turn, 0, -2, -1)?, &pw::mul(&s, 2.0)?)?;
                inner = add(inner, Some(diagonals::diag_embed(&by, 0, -2, -1)?))?;
            }
        }
        let left = add(inner.map(|i| times(&u, &i)).transpose()?, of_values)?;
        let through = left.map(|l| times_adjoint(&l, &v)).transpose()?;
        Ok(smallvec![add(through, outside)?])
    }
}

impl Op for Svd {
    fn name(&self) -> &'static str {
        "linalg_svd"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, m, n) = sizes(a[0].shape());
        let (k, dtype) = (m.min(n), a[0].dtype());
        let (values, info) = ((over(batch, &[k]), dtype.row().real), (over(batch, &[]), DType::I32));
        let (p, q) = if self.parts == SvdParts::Full { (m, n) } else { (k, k) };
        let outs = match self.parts {
            SvdParts::Values => vec![values, info],
            _ => vec![(over(batch, &[m, p]), dtype), values, (over(batch, &[q, n]), dtype), info],
        };
        if k == 0 {
            let mut made: Arrays = outs.iter().map(|(s, d)| a[0].full_beside(s, Scalar::Int(0), *d)).collect::<Result<_>>()?;
            if self.parts == SvdParts::Full {
                (made[0], made[2]) = (identities(a[0], batch, m)?, identities(a[0], batch, n)?);
            }
            return Ok(made);
        }
        let made = compute("svd", FactorKind::Svd(self.parts), a, &outs)?;
        checks::all_succeeded(&made[made.len() - 1], Failure::Svd)?;
        Ok(made)
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1))
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0).output(1).output(2)
    }
    fn differentiable(&self, output: usize) -> bool {
        output < 3
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None, None, None]) };
        let shape = t.shape();
        let (_, m, n) = sizes(&shape);
        if self.parts == SvdParts::Full && m != n {
            return Err(Error::runtime("linalg.svd: forward mode needs full_matrices=False, since the other vectors are not unique"));
        }
        let (u, s, v) = (cx.output(0), cx.output(1), adjoint(cx.output(2))?);
        let k = m.min(n);
        let (gaps, row, column) = (square_gaps(s)?, unsqueeze(s, -2)?, unsqueeze(s, -1)?);
        let p = times(&adjoint_times(u, t)?, &v)?;
        let ph = adjoint(&p)?;
        let mut to_u = times(u, &pw::mul(&gaps, &pw::add(&pw::mul(&p, &row)?, &pw::mul(&column, &ph)?)?)?)?;
        let mut to_v = times(&v, &pw::mul(&gaps, &pw::add(&pw::mul(&column, &p)?, &pw::mul(&ph, &row)?)?)?)?;
        if p.dtype().is_complex() {
            // Both vectors turn by half of what there is.
            let d = diagonal(&p, 0, -2, -1)?;
            let by = pw::div(&pw::sub(&d, &conj(&d)?)?, &pw::mul(s, 4.0)?)?;
            to_u = pw::add(&to_u, &times_diagonal(u, &by)?)?;
            to_v = pw::sub(&to_v, &times_diagonal(&v, &by)?)?;
        }
        if m > k {
            to_u = pw::add(&to_u, &pw::div(&pw::sub(&times(t, &v)?, &times(u, &p)?)?, &row)?)?;
        }
        if n > k {
            to_v = pw::add(&to_v, &pw::div(&pw::sub(&adjoint_times(t, u)?, &times(&v, &ph)?)?, &row)?)?;
        }
        Ok(smallvec![Some(to_u), Some(complex::real(&diagonal(&p, 0, -2, -1)?)?), Some(adjoint(&to_v)?), None])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// `U`, the singular values, which fall, and `V^H`; square `U` and `V^H` if `full`.
///
/// # Errors
/// A value was not found.
pub fn svd(name: &str, a: &Tensor, full: bool) -> Result<[Tensor; 3]> {
    let a = checks::matrices(name, a, "A", false)?;
    let parts = if full { SvdParts::Full } else { SvdParts::Reduced };
    let made = apply(&Svd { parts }, &[&a])?;
    Ok([made[0].clone(), made[1].clone(), made[2].clone()])
}

/// The singular values, which fall.
///
/// # Errors
/// A value was not found.
pub fn svdvals(name: &str, a: &Tensor) -> Result<Tensor> {
    let a = checks::matrices(name, a, "A", false)?;
    // The derivative needs the vectors.
    if !a.is_bare() || mode::is_grad_enabled() && a.requires_grad() {
        return Ok(apply(&Svd { parts: SvdParts::Reduced }, &[&a])?[1].clone());
    }
    Ok(apply(&Svd { parts: SvdParts::Values }, &[&a])?[0].clone())
}

/// The pseudo-inverse, of which singular values up to a limit for each matrix count as 0.
#[derive(Debug, Clone, Copy)]
struct PseudoInverse {
    hermitian: bool,
}

impl PseudoInverse {
    fn made(self, a: &Tensor, limits: &Tensor) -> Result<Tensor> {
        let inverse = |values: &Tensor, sizes: &Tensor| -> Result<Tensor> {
            let keep = pw::gt(sizes, &unsqueeze(limits, -1)?)?;
            let safe = pw::where_(&keep, values, 1.0)?;
            unsqueeze(&pw::where_(&keep, &pw::div(1.0, &safe)?, 0.0)?, -2)
        };
        if self.hermitian {
            let (l, q) = symmetric::eigh(a, "L")?;
            let by = inverse(&l, &pw::abs(&l)?)?;
            return times_adjoint(&pw::mul(&q, &by)?, &q);
        }
        let [u, s, vh] = svd("linalg.pinv", a, false)?;
        times_adjoint(&pw::mul(&adjoint(&vh)?, &inverse(&s, &s)?)?, &u)
    }
}

impl Vjp for PseudoInverse {
    fn node_name(&self) -> Name {
        "LinalgPinvBackward0".into()
    }
    /// Golub and Pereyra 1973, for a rank that stays as it is.
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (a, p) = (cx.input(0)?, cx.output(0)?);
        let s = a.shape();
        let (_, m, n) = sizes(&s);
        let gh = adjoint(g)?;
        let outside = pw::sub(&eye(&a, m, m)?, &times(&a, &p)?)?;
        let left = times(&times(&outside, &gh)?, &times_adjoint(&p, &p)?)?;
        let inside = pw::sub(&eye(&a, n, n)?, &times(&p, &a)?)?;
        let right = times(&times(&adjoint_times(&p, &p)?, &gh)?, &inside)?;
        let through = times_adjoint(&adjoint_times(&p, g)?, &p)?;
        Ok(smallvec![Some(pw::sub(&pw::add(&left, &right)?, &through)?), None])
    }
}

impl Op for PseudoInverse {
    fn name(&self) -> &'static str {
        "linalg_pinv"
    }
    fn is_composed(&self) -> bool {
        true
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let _off = mode::ModeGuard::grad(false);
        let made = self.made(&Tensor::new(ins[0].clone()), &Tensor::new(ins[1].clone()))?;
        let made = made.array()?.contiguous()?;
        Ok(smallvec![made])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[0].numel().saturating_mul(ins[0].shape().last().copied().unwrap_or(1))
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (a, p) = (cx.primal(0), cx.output(0));
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None]) };
        let s = a.shape();
        let (_, m, n) = sizes(&s);
        let th = adjoint(t)?;
        let left = times(&times(&times_adjoint(p, p)?, &th)?, &pw::sub(&eye(a, m, m)?, &times(a, p)?)?)?;
        let right = times(&times(&pw::sub(&eye(a, n, n)?, &times(p, a)?)?, &th)?, &adjoint_times(p, p)?)?;
        Ok(smallvec![Some(pw::sub(&pw::add(&left, &right)?, &times(&times(p, t)?, p)?)?)])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The pseudo-inverses (n, m) of matrices (m, n). `limits`, one for each matrix: up to which singular values count as 0.
///
/// # Errors
/// A value was not found.
pub fn pinv(a: &Tensor, limits: &Tensor, hermitian: bool) -> Result<Tensor> {
    let a = checks::matrices("linalg.pinv", a, "A", hermitian)?;
    apply1(&PseudoInverse { hermitian }, &[&a, limits])
}
