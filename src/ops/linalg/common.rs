//! What the operations of linear algebra have in common: products with adjoints, triangles, and requests that the host computes.

use crate::array::Array;
use crate::array::Device;
use crate::autograd::{Arrays, Tensor, primitives};
use crate::call::{Factor, FactorKind, Request, Seen};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar, broadcast};
use crate::ops::index::WriteTarget;
use crate::ops::matmul::product;
use crate::ops::{create, diagonal, pointwise as pw, shape};
use smallvec::SmallVec;

/// Shape and dtype of an output.
pub(super) type Made = (Dims, DType);

/// The leading dimensions and both sizes of matrices.
pub(super) fn sizes(shape: &[usize]) -> (&[usize], usize, usize) {
    match shape {
        [batch @ .., m, n] => (batch, *m, *n),
        _ => (&[], 0, 0),
    }
}

/// A shape with these leading dimensions.
pub(super) fn over(batch: &[usize], last: &[usize]) -> Dims {
    batch.iter().chain(last).copied().collect()
}

/// Runs a request. Of devices without such kernels the host computes it.
pub(super) fn compute(op: &'static str, kind: FactorKind, ins: &[&Array], outs: &[Made]) -> Result<Arrays> {
    let first = ins[0];
    let request = Factor { op, kind };
    if outs.first().is_none_or(|(s, _)| s.contains(&0)) {
        // No element of a factor: whatever else is made says that nothing failed.
        return outs.iter().map(|(s, d)| first.full_beside(s, Scalar::Int(0), *d)).collect();
    }
    let shapes: SmallVec<[(&[usize], DType); 4]> = outs.iter().map(|(s, d)| (&s[..], *d)).collect();
    let seen: SmallVec<[Seen<'_>; 4]> = ins.iter().map(|a| Some((a.shape(), a.dtype()))).collect();
    let by_host = !first.device().backend()?.factors(&request, &seen);
    let request = Request::Factor(request);
    if !by_host {
        return Ok(Array::request(request, ins, &shapes)?.into_iter().collect());
    }
    let here = ins.iter().map(|a| a.to_device(Device::CPU)).collect::<Result<Vec<Array>>>()?;
    let made = Array::request(request, &here.iter().collect::<Vec<_>>(), &shapes)?;
    made.into_iter().map(|a| a.to_device_of(first)).collect()
}

/// `a b`.
pub(super) fn times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product(a, false, b, false)
}

/// `a^H b`.
pub(super) fn adjoint_times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product(&primitives::conj(a)?, true, b, false)
}

/// `a b^H`.
pub(super) fn times_adjoint(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product(a, false, &primitives::conj(b)?, true)
}

/// `a^T b`.
pub(super) fn transposed_times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product(a, true, b, false)
}

/// `a b^T`.
pub(super) fn times_transposed(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product(a, false, b, true)
}

/// The adjoint of each matrix: transposed, and conjugated if it is complex.
pub(super) fn adjoint(a: &Tensor) -> Result<Tensor> {
    primitives::conj(&shape::matrix_transpose(a)?)
}

/// The Hermitian matrix with this lower triangle. Of the diagonal the real part counts.
pub(super) fn hermitian(m: &Tensor) -> Result<Tensor> {
    if !m.dtype().is_complex() {
        return pw::add(&lower(m, 0)?, &adjoint(&lower(m, -1)?)?);
    }
    let m = half(m)?;
    pw::add(&m, &adjoint(&m)?)
}

/// `a` times a diagonal matrix, which may be real.
pub(super) fn times_diagonal(a: &Tensor, d: &Tensor) -> Result<Tensor> {
    pw::mul(a, &shape::unsqueeze(d, -2)?)
}

/// Refuses a gradient of complex vectors that depends on what they are determined up to: `phases`, which are to be 0. Inside of a transform values
/// decide nothing.
pub(super) fn check_phases(phases: &Tensor, message: &str) -> Result<()> {
    let phases = phases.detach();
    if phases.level() > 0 || phases.device() == Device::META || phases.numel() == 0 {
        return Ok(());
    }
    let most = pw::abs(&phases)?.array()?.converted(DType::F64)?.to_device(Device::CPU)?.to_vec::<f64>()?;
    if most.iter().all(|v| *v <= 1e-2) { Ok(()) } else { Err(Error::runtime(message)) }
}

pub(super) fn lower(a: &Tensor, diagonal: i64) -> Result<Tensor> {
    diagonal::triangle(WriteTarget::New, a, diagonal, false)
}

pub(super) fn upper(a: &Tensor, diagonal: i64) -> Result<Tensor> {
    diagonal::triangle(WriteTarget::New, a, diagonal, true)
}

/// The lower triangle with half of the diagonal.
pub(super) fn half(a: &Tensor) -> Result<Tensor> {
    let d = diagonal::diag_embed(&shape::diagonal(a, 0, -2, -1)?, 0, -2, -1)?;
    pw::sub(&lower(a, 0)?, &pw::mul(&d, 0.5)?)
}

/// The sum of what there is.
pub(super) fn add(a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(pw::add(&a, &b)?),
        (a, b) => a.or(b),
    })
}

/// The identity (m, n) with the dtype and device of `like`.
pub(super) fn eye(like: &Tensor, m: usize, n: usize) -> Result<Tensor> {
    primitives::to_device(&create::eye(m as i64, Some(n as i64), like.dtype())?, like.device())
}

/// As `eye`, one for each element of a batch, in memory of their own.
pub(super) fn identities(like: &Array, batch: &[usize], n: usize) -> Result<Array> {
    let one = create::eye(n as i64, None, like.dtype())?.memory().to_device_of(like)?;
    let strides = batch.iter().map(|_| 0).chain([n as isize, 1]).collect();
    one.with_layout(Layout::from_parts(over(batch, &[n, n]), strides, 0)?)?.contiguous_copy()
}

/// Both with the leading dimensions of both.
pub(super) fn same_batch(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let (sa, sb) = (a.shape(), b.shape());
    let ((ba, m, n), (bb, p, q)) = (sizes(&sa), sizes(&sb));
    if ba == bb {
        return Ok((a.clone(), b.clone()));
    }
    let batch = broadcast(ba, bb)?;
    Ok((shape::expand_to(a, &over(&batch, &[m, n]))?, shape::expand_to(b, &over(&batch, &[p, q]))?))
}
