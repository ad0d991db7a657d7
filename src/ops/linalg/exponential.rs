//! Exponentials of matrices: a polynomial of the matrix divided by a power of two, squared again and again (Moler and Van Loan 2003, "Nineteen
//! dubious ways to compute the exponential of a matrix", method 3).

use super::checks;
use super::common::{adjoint, eye, sizes, times};
use crate::array::{Array, Device};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangents, Tensor, Vjp, VjpCx, apply1, mode, primitives};
use crate::error::Result;
use crate::layout::{DType, Scalar};
use crate::ops::shape::narrow;
use crate::ops::{create, extreme, join, pointwise as pw, reduce};
use smallvec::smallvec;

/// The norm up to which Taylor's polynomial of degree 16 has all digits.
const LARGEST: f64 = 0.5;

/// How often each matrix is halved.
fn halvings(a: &Tensor) -> Result<Vec<i32>> {
    let sums = reduce::sum(&pw::abs(a)?, Some(&[-2]), false, None)?;
    let norms = extreme::amax(&sums, true, Some(&[-1]), false)?;
    let norms = norms.array()?.converted(DType::F64)?.to_device(Device::CPU)?.to_vec::<f64>()?;
    let count = |norm: f64| if norm > LARGEST && norm.is_finite() { (norm / LARGEST).log2().ceil() as i32 } else { 0 };
    Ok(norms.into_iter().map(count).collect())
}

/// Numbers for each matrix, beside the matrices.
fn beside<T: crate::layout::Element>(a: &Tensor, numbers: &[T], dtype: DType) -> Result<Tensor> {
    let s = a.shape();
    let shape: Vec<usize> = sizes(&s).0.iter().copied().chain([1, 1]).collect();
    let made = Array::from_slice(numbers, &shape)?.converted(dtype)?;
    primitives::to_device(&Tensor::new(made), a.device())
}

fn value(a: &Tensor) -> Result<Tensor> {
    let (s, real) = (a.shape(), a.dtype().row().real);
    let (_, n, _) = sizes(&s);
    if a.numel() == 0 || a.device() == Device::META {
        return create::full_like(a, Scalar::Float(0.0), None);
    }
    if n == 1 {
        return pw::exp(a);
    }
    let turns = halvings(a)?;
    let scales: Vec<f64> = turns.iter().map(|k| (-f64::from(*k)).exp2()).collect();
    let x = pw::mul(a, &beside(a, &scales, real)?)?;
    let x2 = times(&x, &x)?;
    let (x3, x4) = (times(&x2, &x)?, times(&x2, &x2)?);
    let one = eye(a, n, n)?;
    let factor = |k: u32| 1.0 / (1..=k).map(f64::from).product::<f64>();
    // Groups of four powers, by Horner's rule in the fourth power.
    let group = |k: u32| -> Result<Tensor> {
        let first = pw::add(&pw::mul(&one, factor(k))?, &pw::mul(&x, factor(k + 1))?)?;
        let last = pw::add(&pw::mul(&x2, factor(k + 2))?, &pw::mul(&x3, factor(k + 3))?)?;
        pw::add(&first, &last)
    };
    let mut made = pw::add(&group(12)?, &pw::mul(&x4, factor(16))?)?;
    for k in [8, 4, 0] {
        made = pw::add(&group(k)?, &times(&x4, &made)?)?;
    }
    let (least, most) = (turns.iter().min().copied().unwrap_or(0), turns.iter().max().copied().unwrap_or(0));
    for k in 0..most {
        let square = times(&made, &made)?;
        made = if k < least {
            square
        } else {
            let more: Vec<bool> = turns.iter().map(|t| k < *t).collect();
            pw::where_(&beside(a, &more, DType::Bool)?, &square, &made)?
        };
    }
    Ok(made)
}

#[derive(Debug, Clone, Copy)]
struct Exponential;

/// The derivative along `b`, which the exponential of `[a, b; 0, a]` has beside its diagonal (Mathias 1996, "A chain rule for matrix functions").
fn along(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let s = a.shape();
    let n = sizes(&s).1 as i64;
    let zero = create::full_like(&a.detach(), Scalar::Float(0.0), None)?;
    let rows = [join::cat(&[a.clone(), b.clone()], -1)?, join::cat(&[zero, a.clone()], -1)?];
    let made = apply1(&Exponential, &[&join::cat(&rows, -2)?])?;
    narrow(&narrow(&made, -2, 0, n)?, -1, n, n)
}

impl Vjp for Exponential {
    fn node_name(&self) -> Name {
        "LinalgMatrixExpBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self", SavedAttribute::Input(0))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(smallvec![Some(along(&adjoint(&cx.input(0)?)?, g)?)])
    }
}

impl Op for Exponential {
    fn name(&self) -> &'static str {
        "linalg_matrix_exp"
    }
    fn is_composed(&self) -> bool {
        true
    }
    fn forward(&self, a: &[&Array]) -> Result<Arrays> {
        let _off = mode::ModeGuard::grad(false);
        let made = value(&Tensor::new(a[0].clone()))?;
        let made = made.array()?.contiguous()?;
        Ok(smallvec![made])
    }
    fn work(&self, a: &[&Array]) -> usize {
        a[0].numel().saturating_mul(a[0].shape().last().copied().unwrap_or(1))
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        Ok(smallvec![cx.tangent(0).map(|t| along(cx.primal(0), t)).transpose()?])
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The exponentials of square matrices.
///
/// # Errors
/// The matrices are not square, or of another dtype.
pub fn matrix_exp(a: &Tensor) -> Result<Tensor> {
    apply1(&Exponential, &[&checks::matrices("linalg.matrix_exp", a, "A", true)?])
}
