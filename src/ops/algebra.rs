//! Products with an addend, powers of matrices, and copies with a part replaced.

use super::addmm::{addmm, addmm_as_given};
use super::declared::declare;
use super::index::{WriteTarget, index_copy};
use super::matmul::{matmul, outer, squeezed, vdot};
use super::norm::norm;
use super::pointwise as pw;
use super::{create, diagonal, join, shape};
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, primitives};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar, fmt_shape, wrap_dim};
use crate::rows::RowId;

/// `beta * input + alpha * (mat @ vec)`; the input is broadcast to the product's shape.
pub fn addmv(input: &Tensor, mat: &Tensor, vec: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    if mat.rank() != 2 || vec.rank() != 1 || input.rank() > 1 {
        return Err(Error::runtime(format!(
            "vector + matrix @ vector expected, got {}, {}, {}: addmv takes a vector, a matrix and a vector",
            input.rank(),
            mat.rank(),
            vec.rank()
        )));
    }
    if input.dtype() != mat.dtype() || mat.dtype() != vec.dtype() {
        return Err(Error::runtime(format!(
            "addmv input tensors must have the same dtype, but got {}, {}, and {}",
            input.dtype().type_name(),
            mat.dtype().type_name(),
            vec.dtype().type_name()
        )));
    }
    let (sm, n) = (mat.shape(), input.numel());
    if sm[1] != vec.numel() || (n != sm[0] && n != 1) {
        return Err(Error::shape(format!("size mismatch, got input ({n}), mat ({}x{}), vec ({})", sm[0], sm[1], vec.numel())));
    }
    let addend = if input.rank() == 1 { shape::unsqueeze(input, 1)? } else { input.clone() };
    squeezed(&addmm_as_given(&addend, mat, &shape::unsqueeze(vec, 1)?, beta, alpha)?, 1)
}

/// `beta * input + alpha * outer(vec1, vec2)`; the input is broadcast to the product's shape.
pub fn addr(input: &Tensor, vec1: &Tensor, vec2: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    for (t, name) in [(vec1, "vec1"), (vec2, "vec2")] {
        if t.rank() != 1 {
            return Err(Error::runtime(format!("addr: Expected 1-D argument {name}, but got {}-D", t.rank())));
        }
    }
    let product = outer(vec1, vec2)?;
    let scaled = if alpha == Scalar::Int(1) { product } else { pw::mul(&product, alpha)? };
    shape::expand_to(&input.detach(), &scaled.shape())?;
    // With a beta of 0 nothing of the input counts, not even nan.
    let addend = match beta {
        b if !b.to_bool() => create::full_like(input, Scalar::Int(0), None)?,
        Scalar::Int(1) => input.clone(),
        b => pw::mul(input, b)?,
    };
    pw::add(&addend, &scaled)
}

/// `beta * input + alpha * sum(batch1 @ batch2)` over the batch; the input is broadcast to a product's shape.
pub fn addbmm(input: &Tensor, batch1: &Tensor, batch2: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let cast = autocast::lower([input, batch1, batch2])?;
    let [input, batch1, batch2] = cast.of([input, batch1, batch2]);
    let (sa, sb) = (batch1.shape(), batch2.shape());
    for (s, name) in [(&sa, "batch1"), (&sb, "batch2")] {
        if s.len() != 3 {
            return Err(Error::index(format!("{name} must be a 3D tensor: addbmm got a tensor of shape {}", fmt_shape(s))));
        }
    }
    if sb[0] != sa[0] || sb[1] != sa[2] {
        return Err(Error::shape(format!(
            "addbmm: Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            sa[0], sa[2], sb[0], sb[1]
        )));
    }
    // A sum of products is one product of the matrices side by side.
    let wide = primitives::reshape(&shape::permute(batch1, &[1, 0, 2])?, &[sa[1], sa[0] * sa[2]])?;
    let tall = primitives::reshape(batch2, &[sb[0] * sb[1], sb[2]])?;
    addmm(input, &wide, &tall, beta, alpha)
}

/// The input times 2 to the power of `other`. The error is PyTorch's, whose own kernel serves floating inputs only.
pub fn ldexp(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    if input.dtype().is_differentiable() && other.dtype() == DType::Bool {
        return Err(Error::not_implemented("\"ldexp_cpu_exp\" not implemented for 'Bool'"));
    }
    let made = pw::mul(input, &pw::call(RowId::Pow, &[2.0.into(), other.into()], &[])?)?;
    // The power of an integer is a float32, in which the product does not overflow before its time.
    if input.dtype().is_half() && !other.dtype().is_float() { primitives::cast(&made, input.dtype()) } else { Ok(made) }
}

/// Squares and products along the bits of `n`.
pub fn matrix_power(input: &Tensor, n: i64) -> Result<Tensor> {
    let s = input.shape();
    let rank = s.len();
    if rank < 2 {
        return Err(Error::runtime("linalg.matrix_power: The input tensor A must have at least 2 dimensions."));
    }
    if s[rank - 1] != s[rank - 2] {
        return Err(Error::runtime(format!(
            "linalg.matrix_power: A must be batches of square matrices, but they are {} by {} matrices",
            s[rank - 2],
            s[rank - 1]
        )));
    }
    if n < 0 {
        return Err(Error::not_implemented(format!("matrix_power: there is no inverse of a matrix yet, for the power {n}")));
    }
    let (mut left, mut square, mut result) = (n, input.clone(), None);
    while left > 0 {
        if left & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(r) => matmul(&r, &square)?,
            });
        }
        left >>= 1;
        if left > 0 {
            square = matmul(&square, &square)?;
        }
    }
    match result {
        // A power of 1 is a copy.
        Some(r) if n == 1 => pw::mul(&r, Scalar::Int(1)),
        Some(r) => Ok(r),
        None => {
            let zero = create::full_like(input, Scalar::Int(0), None)?;
            let diagonal = shape::diagonal(&zero, 0, -2, -1)?;
            let identity = diagonal::diag_embed(&create::full_like(&diagonal, Scalar::Int(1), None)?, 0, -2, -1)?;
            // It depends on the input, with a derivative of zero.
            let out = primitives::clone(input)?;
            primitives::copy_(&out, &identity)?;
            Ok(out)
        }
    }
}

/// Each slice along `dim` scaled to a norm of `maxnorm` where its norm is larger.
pub fn renorm(input: &Tensor, p: f64, dim: i64, maxnorm: f64) -> Result<Tensor> {
    let d = wrap_dim(dim, input.rank())?;
    if p <= 0.0 || p.is_nan() {
        return Err(Error::runtime(format!("renorm: non-positive-norm not supported: got p = {p}")));
    }
    if maxnorm < 0.0 {
        return Err(Error::runtime(format!("renorm: expected maxnorm to be >= 0 but got {maxnorm}")));
    }
    if input.rank() < 2 {
        return Err(Error::runtime(format!("renorm: input needs at least 2 dimensions, got {} dimensions", input.rank())));
    }
    let others: Vec<i64> = (0..input.rank()).filter(|&i| i != d).map(|i| i as i64).collect();
    let large = pw::call(RowId::Gt, &[(&norm(&input.detach(), p, Some(&others), true, None)?).into(), maxnorm.into()], &[])?;
    // What is not scaled, nan for example, must not reach the gradient through the norm, and ones have a derivative for every p.
    let norms = norm(&pw::where_(&large, input, 1.0)?, p, Some(&others), true, None)?;
    let scale = pw::div(maxnorm, &pw::add(&norms, 1e-7)?)?;
    pw::where_(&large, &pw::mul(input, &scale)?, input)
}

/// Refuses a source of another shape than the part that it replaces.
fn same_shape(src: &Tensor, part: &Tensor) -> Result<()> {
    if src.shape() == part.shape() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "expected src to have a size equal to the slice of self. src size = [{}], slice size = [{}]",
        fmt_shape(&src.shape()),
        fmt_shape(&part.shape())
    )))
}

/// The source in the dtype of the copy.
fn as_of(src: &Tensor, input: &Tensor) -> Result<Tensor> {
    if src.dtype() == input.dtype() { Ok(src.clone()) } else { primitives::cast(src, input.dtype()) }
}

/// Positions along a dimension, on the device of `x`.
fn positions(x: &Tensor, start: i64, end: i64, step: i64) -> Result<Tensor> {
    let index = create::arange(Scalar::Int(start), Scalar::Int(end), Scalar::Int(step), Some(DType::I64))?;
    primitives::to_device(&index, x.device())
}

/// A copy with one slice along `dim` replaced.
pub fn select_scatter(input: &Tensor, src: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    let part = shape::select(&input.detach(), dim, index)?;
    same_shape(src, &part)?;
    let d = wrap_dim(dim, input.rank())?;
    let at = if index < 0 { index + input.shape()[d] as i64 } else { index };
    let source = shape::unsqueeze(&as_of(src, input)?, d as i64)?;
    index_copy(WriteTarget::New, input, d as i64, &positions(input, at, at + 1, 1)?, &source)
}

/// A copy with the slices `start..end` along `dim`, every `step`, replaced.
pub fn slice_scatter(input: &Tensor, src: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Tensor> {
    let d = wrap_dim(dim, input.rank())?;
    if input.rank() == 0 {
        return Err(Error::index("slice() cannot be applied to a 0-dim tensor."));
    }
    if step <= 0 {
        return Err(Error::runtime(format!("slice step must be positive: slice_scatter got {step}")));
    }
    let n = input.shape()[d] as i64;
    let inside = |i: i64| if i < 0 { (i.saturating_add(n)).max(0) } else { i.min(n) };
    let first = inside(start.unwrap_or(0));
    let last = inside(end.unwrap_or(n)).max(first);
    let index = positions(input, first, last, step)?;
    let mut wanted = input.shape();
    wanted[d] = index.numel();
    if src.shape() != wanted {
        return Err(Error::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = [{}], slice size = [{}]",
            fmt_shape(&src.shape()),
            fmt_shape(&wanted)
        )));
    }
    index_copy(WriteTarget::New, input, d as i64, &index, &as_of(src, input)?)
}

/// A copy with a diagonal of two dimensions replaced.
pub fn diagonal_scatter(input: &Tensor, src: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let part = shape::diagonal(&input.detach(), offset, dim1, dim2)?;
    same_shape(src, &part)?;
    let (d1, d2) = (wrap_dim(dim1, input.rank())? as i64, wrap_dim(dim2, input.rank())? as i64);
    // Square matrices with the source on their diagonal, cut to the size of the input's.
    let cut = |t: &Tensor| -> Result<Tensor> {
        let (s, mut out) = (input.shape(), diagonal::diag_embed(t, offset, d1, d2)?);
        for d in [d1, d2] {
            let (have, need) = (out.shape()[d as usize], s[d as usize]);
            if have < need {
                let mut missing = out.shape();
                missing[d as usize] = need - have;
                let zeros = create::full_on(out.device(), &missing, Scalar::Int(0), Some(out.dtype()))?;
                out = join::cat(&[out, zeros], d)?;
            }
            out = shape::narrow(&out, d, 0, need as i64)?;
        }
        Ok(out)
    };
    let mask = cut(&create::full_like(&part, Scalar::Int(1), Some(DType::Bool))?)?;
    pw::where_(&mask, &cut(&as_of(src, input)?)?, input)
}

declare! {
    /// `beta * input + alpha * (mat @ vec)`, with the input broadcast to the shape of the product.
    fn addmv(input: &Tensor, mat: &Tensor, vec: &Tensor; beta: Scalar = 1, alpha: Scalar = 1) -> Tensor = addmv;
    /// `beta * input + alpha * outer(vec1, vec2)`, with the input broadcast to the shape of the product.
    fn addr(input: &Tensor, vec1: &Tensor, vec2: &Tensor; beta: Scalar = 1, alpha: Scalar = 1) -> Tensor = addr;
    /// `beta * input + alpha * (batch1 @ batch2).sum(0)`, with the input broadcast to the shape of a product.
    fn addbmm(input: &Tensor, batch1: &Tensor, batch2: &Tensor; beta: Scalar = 1, alpha: Scalar = 1) -> Tensor = addbmm;
    /// The dot product of two vectors, the first of which is conjugated if it is complex.
    fn vdot(input: &Tensor, other: &Tensor) -> Tensor = vdot;
    /// The input times 2 to the power of `other`.
    fn ldexp(input: &Tensor, other: &Tensor) -> Tensor = ldexp;
    /// The product of `n` times each square matrix of a batch; the identity for 0.
    fn matrix_power(input: &Tensor, n: i64) -> Tensor = matrix_power;
    /// Each slice along `dim` scaled to a norm of order `p` of `maxnorm`, where its norm is larger.
    fn renorm(input: &Tensor, p: f64, dim: i64, maxnorm: f64) -> Tensor = renorm;
    /// A copy with the slice at `index` along `dim` replaced by `src`.
    fn [no_out] select_scatter(input: &Tensor, src: &Tensor, dim: i64, index: i64) -> Tensor = select_scatter;
    /// A copy with the slices `start` to `end` along `dim`, every `step`, replaced by those of `src`.
    fn slice_scatter(input: &Tensor, src: &Tensor, dim: i64 = 0, start: Option<i64> = None, end: Option<i64> = None, step: i64 = 1) -> Tensor = slice_scatter;
    /// A copy with a diagonal of the dimensions `dim1` and `dim2` replaced by `src`, whose last dimension lies along it.
    fn [no_out] diagonal_scatter(input: &Tensor, src: &Tensor, offset: i64 = 0, dim1: i64 = 0, dim2: i64 = 1) -> Tensor = diagonal_scatter;
}
