//! QR factorisations, and products of Householder's reflections.

use super::checks;
use super::common::{add, adjoint, adjoint_times, compute, eye, hermitian, identities, lower, over, sizes, times, times_adjoint};
use super::triangular::triangular;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::primitives::conj;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply, apply1};
use crate::call::{FactorKind, QrParts};
use crate::error::{Error, Result};
use crate::layout::Scalar;
use crate::ops::shape::{diagonal, expand_to, narrow, unsqueeze};
use crate::ops::{create, diagonal as diagonals, join, pointwise as pw};
use smallvec::smallvec;

/// `Q` and `R`, or `R` alone.
#[derive(Debug, Clone, Copy)]
struct Qr {
    parts: QrParts,
}

impl Qr {
    fn check_derivative(self, m: usize, n: usize) -> Result<()> {
        if self.parts == QrParts::Upper {
            return Err(Error::runtime("linalg.qr: The derivative of linalg.qr depends on Q, which is not computed for mode='r'."));
        }
        if self.parts == QrParts::Complete && m > n {
            return Err(Error::runtime("linalg.qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols"));
        }
        Ok(())
    }
}

/// The gradient of a matrix with at least as many rows as columns (Walter and Lehmann 2018, "Algorithmic differentiation of linear algebra
/// functions with application in optimum experimental design").
fn tall(q: &Tensor, r: &Tensor, to_q: Option<&Tensor>, to_r: Option<&Tensor>) -> Result<Option<Tensor>> {
    let of_r = to_r.map(|g| times_adjoint(r, g)).transpose()?;
    let of_q = to_q.map(|g| pw::neg(&adjoint_times(g, q)?)).transpose()?;
    let Some(m) = add(of_r, of_q)? else { return Ok(None) };
    let Some(inner) = add(Some(times(q, &hermitian(&m)?)?), to_q.cloned())? else { return Ok(None) };
    Ok(Some(adjoint(&triangular(r, &adjoint(&inner)?, true, false)?)?))
}

impl Vjp for Qr {
    fn node_name(&self) -> Name {
        "LinalgQrBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mode = match self.parts {
            QrParts::Complete => "complete",
            QrParts::Upper => "r",
            _ => "reduced",
        };
        smallvec![("Q", SavedAttribute::Output(0)), ("R", SavedAttribute::Output(1)), ("mode", SavedAttribute::Text(mode))]
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        if grads.iter().all(Option::is_none) {
            return Ok(smallvec![None]);
        }
        let a = cx.input(0)?;
        let s = a.shape();
        let (_, m, n) = sizes(&s);
        self.check_derivative(m, n)?;
        let (q, r) = (cx.output(0)?, cx.output(1)?);
        let (to_q, to_r) = (grads[0].as_ref(), grads[1].as_ref());
        if m >= n {
            return Ok(smallvec![tall(&q, &r, to_q, to_r)?]);
        }
        // The further columns are Q R2, so Q depends on them, and so do the first ones.
        let k = m as i64;
        let (u, last) = (narrow(&r, -1, 0, k)?, narrow(&a, -1, k, n as i64 - k)?);
        let first_r = to_r.map(|g| narrow(g, -1, 0, k)).transpose()?;
        let last_r = to_r.map(|g| narrow(g, -1, k, n as i64 - k)).transpose()?;
        let through = last_r.as_ref().map(|g| times_adjoint(&last, g)).transpose()?;
        let inner = add(to_q.cloned(), through)?;
        let left = tall(&q, &u, inner.as_ref(), first_r.as_ref())?;
        let right = match &last_r {
            Some(g) => times(&q, g)?,
            None => create::full_like(&last, Scalar::Float(0.0), None)?,
        };
        Ok(smallvec![left.map(|l| join::cat(&[l, right], -1)).transpose()?])
    }
}

impl Op for Qr {
    fn name(&self) -> &'static str {
        "linalg_qr"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, m, n) = sizes(a[0].shape());
        let (k, dtype) = (m.min(n), a[0].dtype());
        let q = if self.parts == QrParts::Complete { m } else { k };
        if m == 0 || n == 0 {
            // R is empty, and a square Q is the identity.
            let q = if self.parts == QrParts::Complete {
                identities(a[0], batch, m)?
            } else {
                a[0].empty_beside(&over(batch, &[m, k]), dtype)?
            };
            return Ok(smallvec![q, a[0].empty_beside(&over(batch, &[if self.parts == QrParts::Complete { m } else { k }, n]), dtype)?]);
        }
        let (q, r) = ((over(batch, &[m, q]), dtype), (over(batch, &[q, n]), dtype));
        if self.parts == QrParts::Upper {
            let mut made = compute("qr", FactorKind::Qr(self.parts), a, &[r])?;
            made.insert(0, a[0].empty_beside(&[0], dtype)?);
            return Ok(made);
        }
        compute("qr", FactorKind::Qr(self.parts), a, &[q, r])
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1)) / 4
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0).output(1)
    }
    /// `dA R^-1 = Q W + dQ` with `W` upper triangular and `Q^H dQ` antisymmetric.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None, None]) };
        let s = t.shape();
        let (_, m, n) = sizes(&s);
        self.check_derivative(m, n)?;
        let k = m.min(n) as i64;
        let (q, r) = (cx.output(0), cx.output(1));
        let part = |t: &Tensor| -> Result<Tensor> { if m < n { narrow(t, -1, 0, k) } else { Ok(t.clone()) } };
        let u = part(r)?;
        let right = adjoint(&triangular(&adjoint(&u)?, &adjoint(&part(t)?)?, false, false)?)?;
        let x = adjoint_times(q, &right)?;
        let below = lower(&x, -1)?;
        let mut w = pw::add(&pw::sub(&x, &below)?, &adjoint(&below)?)?;
        if w.dtype().is_complex() {
            // The diagonal of R is real.
            let d = diagonal(&w, 0, -2, -1)?;
            let imaginary = pw::mul(&pw::sub(&d, &conj(&d)?)?, 0.5)?;
            w = pw::sub(&w, &diagonals::diag_embed(&imaginary, 0, -2, -1)?)?;
        }
        let to_q = pw::sub(&right, &times(q, &w)?)?;
        let mut to_r = times(&w, &u)?;
        if m < n {
            let more = n as i64 - k;
            let change = pw::sub(&narrow(t, -1, k, more)?, &times(&to_q, &narrow(r, -1, k, more)?)?)?;
            to_r = join::cat(&[to_r, adjoint_times(q, &change)?], -1)?;
        }
        Ok(smallvec![Some(to_q), Some(to_r)])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// `Q` and `R` of matrices; `mode` is `reduced`, `complete` (a square `Q`) or `r` (an empty `Q`).
///
/// # Errors
/// There is no such mode.
pub fn qr(a: &Tensor, mode: &str) -> Result<(Tensor, Tensor)> {
    let a = checks::matrices("linalg.qr", a, "A", false)?;
    let parts = match mode {
        "reduced" => QrParts::Reduced,
        "complete" => QrParts::Complete,
        "r" => QrParts::Upper,
        _ => {
            return Err(Error::runtime(format!(
                "qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
            )));
        }
    };
    let made = apply(&Qr { parts }, &[&a])?;
    Ok((made[0].clone(), made[1].clone()))
}

/// The reflections of a QR factorisation, below the diagonal of `R`, and their factors. They have no derivative.
pub fn reflectors(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let a = checks::matrices("geqrf", a, "input", false)?;
    let made = apply(&Reflectors, &[&a])?;
    Ok((made[0].clone(), made[1].clone()))
}

/// See `reflectors`.
#[derive(Debug, Clone, Copy)]
struct Reflectors;

impl Vjp for Reflectors {
    fn node_name(&self) -> Name {
        "GeqrfBackward0".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, _grads: &Grads) -> Result<Grads> {
        Err(Error::not_implemented("the derivative for 'geqrf' is not implemented. Use linalg.qr"))
    }
}

impl Op for Reflectors {
    fn name(&self) -> &'static str {
        "geqrf"
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let (batch, m, n) = sizes(a[0].shape());
        let outs = [(over(batch, &[m, n]), a[0].dtype()), (over(batch, &[m.min(n)]), a[0].dtype())];
        compute("geqrf", FactorKind::Qr(QrParts::Reflectors), a, &outs)
    }
    fn jvp(&self, _cx: &Jvp<'_>) -> Result<Tangents> {
        Err(Error::not_implemented("the forward derivative for 'geqrf' is not implemented. Use linalg.qr"))
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The first columns of a product of reflections.
#[derive(Debug, Clone, Copy)]
struct Householder;

impl Householder {
    /// The product, made of operations with derivatives.
    fn composed(a: &Tensor, tau: &Tensor) -> Result<Tensor> {
        let (s, k) = (a.shape(), tau.shape().last().copied().unwrap_or(0));
        let (_, m, n) = sizes(&s);
        let v = pw::add(&lower(a, -1)?, &eye(a, m, n)?)?;
        let mut made = expand_to(&eye(a, m, n)?, &s)?;
        if k == 0 {
            // Nothing of the vectors, but their history.
            return pw::add(&made, &lower(a, -(m as i64))?);
        }
        for i in (0..k as i64).rev() {
            let one = narrow(&v, -1, i, 1)?;
            let through = times(&one, &adjoint_times(&one, &made)?)?;
            made = pw::sub(&made, &pw::mul(&unsqueeze(&narrow(tau, -1, i, 1)?, -1)?, &through)?)?;
        }
        Ok(made)
    }
}

impl Vjp for Householder {
    fn node_name(&self) -> Name {
        "LinalgHouseholderProductBackward0".into()
    }
}

impl Op for Householder {
    fn name(&self) -> &'static str {
        "linalg_householder_product"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        compute("householder_product", FactorKind::Householder, ins, &[(over(&[], ins[0].shape()), ins[0].dtype())])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The first n columns of the product of reflections: below the diagonal of `a` (m, n) their vectors, which begin with 1, `tau` their factors.
///
/// # Errors
/// Sizes or dtypes do not fit.
pub fn householder_product(a: &Tensor, tau: &Tensor) -> Result<Tensor> {
    const NAME: &str = "torch.linalg.householder_product";
    let (a, tau) = (checks::matrices(NAME, a, "A", false)?, checks::widened(tau)?);
    let (s, t) = (a.shape(), tau.shape());
    let (batch, m, n) = sizes(&s);
    if m < n {
        return Err(Error::runtime(format!("{NAME}: input.shape[-2] must be greater than or equal to input.shape[-1]")));
    }
    if tau.dtype() != a.dtype() {
        let (x, y) = (tau.dtype().type_name(), a.dtype().type_name());
        return Err(Error::runtime(format!("{NAME}: tau dtype {x} does not match input dtype {y}")));
    }
    if t.len() + 1 != s.len() {
        return Err(Error::runtime(format!(
            "{NAME}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal to {}",
            t.len(),
            s.len()
        )));
    }
    if t[t.len() - 1] > n {
        return Err(Error::runtime(format!("{NAME}: input.shape[-1] must be greater than or equal to tau.shape[-1]")));
    }
    if t[..t.len() - 1] != *batch {
        return Err(Error::runtime(format!("{NAME}: Expected batch dimensions of tau to be equal to input.shape[:-2]")));
    }
    // Only the composition has derivatives.
    if !a.is_bare() || !tau.is_bare() || a.requires_grad() || tau.requires_grad() {
        return Householder::composed(&a, &tau);
    }
    apply1(&Householder, &[&a, &tau])
}
