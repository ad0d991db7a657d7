//! Products of Householder's reflections with matrices.

use super::checks;
use super::common::{adjoint, adjoint_times, compute, eye, lower, over, sizes, times};
use crate::array::Array;
use crate::autograd::primitives::conj;
use crate::autograd::{Arrays, Name, Op, Tensor, Vjp, apply1};
use crate::call::FactorKind;
use crate::error::{Error, Result};
use crate::layout::fmt_shape;
use crate::ops::pointwise as pw;
use crate::ops::shape::{narrow, unsqueeze};
use smallvec::smallvec;

/// The product of reflections, or its adjoint, with a matrix.
#[derive(Debug, Clone, Copy)]
struct Reflect {
    adjoint: bool,
}

impl Reflect {
    /// The product, made of operations with derivatives.
    fn composed(self, a: &Tensor, tau: &Tensor, c: &Tensor) -> Result<Tensor> {
        let s = a.shape();
        let (_, m, k) = sizes(&s);
        let v = pw::add(&lower(a, -1)?, &eye(a, m, k)?)?;
        let tau = if self.adjoint { conj(tau)? } else { tau.clone() };
        let mut made = c.clone();
        for step in 0..k {
            let i = if self.adjoint { step } else { k - 1 - step } as i64;
            let one = narrow(&v, -1, i, 1)?;
            let through = times(&one, &adjoint_times(&one, &made)?)?;
            made = pw::sub(&made, &pw::mul(&unsqueeze(&narrow(&tau, -1, i, 1)?, -1)?, &through)?)?;
        }
        Ok(made)
    }
}

impl Vjp for Reflect {
    fn node_name(&self) -> Name {
        "OrmqrBackward0".into()
    }
}

impl Op for Reflect {
    fn name(&self) -> &'static str {
        "ormqr"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let out = (over(&[], ins[2].shape()), ins[2].dtype());
        if ins[1].shape().last() == Some(&0) {
            return Ok(smallvec![ins[2].contiguous_copy()?]);
        }
        compute("ormqr", FactorKind::Reflect { adjoint: self.adjoint }, ins, &[out])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        ins[2].numel().saturating_mul(ins[1].shape().last().copied().unwrap_or(1)) / 4
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// `Q C` for the product `Q` of reflections: below the diagonal of `a` their vectors, which begin with 1, `tau` their factors. `C Q` without `left`,
/// and with the adjoint of `Q` if `adjoint_of`.
///
/// # Errors
/// Sizes or dtypes do not fit.
pub fn ormqr(a: &Tensor, tau: &Tensor, c: &Tensor, left: bool, adjoint_of: bool) -> Result<Tensor> {
    const NAME: &str = "torch.ormqr";
    let refuse = |text: String| Error::runtime(format!("{NAME}: {text}"));
    let (s, t, sc) = (a.shape(), tau.shape(), c.shape());
    let [batch @ .., m, n] = &s[..] else { return Err(refuse("input must have at least 2 dimensions.".into())) };
    let [before @ .., rows, columns] = &sc[..] else { return Err(refuse("other must have at least 2 dimensions.".into())) };
    let (size, at) = if left { (*rows, -2) } else { (*columns, -1) };
    let k = t.last().copied().unwrap_or(1);
    if size < k {
        return Err(refuse(format!("other.shape[{at}] must be greater than or equal to tau.shape[-1]")));
    }
    if size != *m {
        return Err(refuse(format!("other.shape[{at}] must be equal to input.shape[-2]")));
    }
    if k != size.min(*n) {
        return Err(refuse(format!("tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])")));
    }
    if t.len() + 1 != s.len() {
        let (x, y) = (t.len(), s.len());
        return Err(refuse(format!(
            "Expected tau to have one dimension less than input, but got tau.ndim equal to {x} and input.ndim is equal to {y}"
        )));
    }
    if sc.len() != s.len() {
        let (x, y) = (sc.len(), s.len());
        return Err(refuse(format!(
            "Expected other to have the same number of dimensions as input, but got other.ndim equal to {x} and input.ndim is equal to {y}"
        )));
    }
    for (which, of) in [("tau", &t[..t.len() - 1]), ("other", before)] {
        if of != batch {
            let shown = fmt_shape(of);
            return Err(refuse(format!("Expected batch dimensions of {which} to be equal to input.shape[:-2], but got {shown}")));
        }
    }
    for (which, other) in [("tau", tau), ("other", c)] {
        if other.dtype() != a.dtype() {
            let (x, y) = (a.dtype().type_name(), other.dtype().type_name());
            return Err(refuse(format!(
                "Expected input and {which} to have the same dtype, but input has dtype {x} and {which} has dtype {y}"
            )));
        }
    }
    let (a, tau, c) = (checks::floats(NAME, a)?, checks::widened(tau)?, checks::widened(c)?);
    let a = if k < *n { narrow(&a, -1, 0, k as i64)? } else { a };
    // C Q is the adjoint of Q^H C^H.
    let op = Reflect { adjoint: adjoint_of == left };
    let c = if left { c } else { adjoint(&c)? };
    // Only the composition has derivatives.
    let made = if [&a, &tau, &c].iter().any(|t| !t.is_bare() || t.requires_grad()) {
        op.composed(&a, &tau, &c)?
    } else {
        apply1(&op, &[&a, &tau, &c])?
    };
    if left { Ok(made) } else { adjoint(&made) }
}
