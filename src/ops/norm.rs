//! Norms and log-sum-exp.

use super::clamp::clamp;
use super::declared::declare;
use super::extreme::{amax, share_gradient};
use super::pointwise as pw;
use super::reduce::{ReducedDims, one, sum};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangent, Tangents, Tensor, Vjp, VjpCx, apply1, primitives};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar, broadcast};
use crate::rows::RowId;
use crate::rows::{Func, Part};
use smallvec::{SmallVec, smallvec};

#[derive(Debug, Clone)]
struct Norm {
    p: f64,
    over: ReducedDims,
    dtype: Option<DType>,
}

impl Vjp for Norm {
    fn node_name(&self) -> Name {
        "LinalgVectorNormBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = self.over.saved_attributes();
        attributes.push(("self", SavedAttribute::Input(0)));
        attributes.push(("result", SavedAttribute::Output(0)));
        attributes.push(("ord", SavedAttribute::Number(Scalar::Float(self.p))));
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let x = cx.input(0)?;
        let x = primitives::cast(&x, if x.dtype().is_complex() { g.dtype().to_complex(g.dtype()) } else { g.dtype() })?;
        Ok(one(self.gradient(&x, || cx.output(0), g)?))
    }
}

/// The number divided by its size; 0 for 0.
fn direction(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { pw::call(RowId::Sgn, &[x.into()], &[]) } else { pw::sign(x) }
}

impl Norm {
    /// The gradient of `x`; `norm` computes the norm where it is needed.
    fn gradient(&self, x: &Tensor, norm: impl FnOnce() -> Result<Tensor>, g: &Tensor) -> Result<Tensor> {
        if self.p == 0.0 {
            return super::create::full_like_on(&x.detach(), Scalar::Int(0), None, None);
        }
        if self.p == 1.0 {
            return pw::mul(&self.over.restore(g)?, &direction(x)?);
        }
        let norm = self.over.restore(&norm()?)?;
        let g = self.over.restore(g)?;
        if self.p.is_infinite() {
            // Elements of the extreme size share the gradient; nan shares it with nan.
            let (size, n) = (pw::abs(&x.detach())?, norm.detach());
            let both_nan = pw::logical_and(&pw::isnan(&size)?, &pw::isnan(&n)?)?;
            let mask = pw::logical_or(&pw::eq(&size, &n)?, &both_nan)?;
            let shared = share_gradient(&g, &mask, &ReducedDims { keepdim: true, ..self.over.clone() })?;
            return pw::mul(&shared, &direction(x)?);
        }
        // Where the norm is 0 the gradient is 0. Divisors and bases are masked as well, so that derivatives of the next order are finite.
        let zero = pw::eq(&norm.detach(), 0.0)?;
        let safe = pw::where_(&zero, 1.0, &norm)?;
        if self.p == 2.0 && g.dtype().is_half() {
            // The quotient of the gradient by a small norm can be too large for 16 bits where that of the element is not.
            return pw::mul(&pw::div(x, &safe)?, &pw::where_(&zero, 0.0, &g)?);
        }
        if self.p == 2.0 {
            let scale = pw::where_(&zero, 0.0, &pw::div(&g, &safe)?)?;
            return pw::mul(x, &scale);
        }
        let none = pw::eq(&x.detach(), 0.0)?;
        let size = pw::where_(&none, 1.0, &pw::abs(x)?)?;
        let (power, scale) = if self.p > 1.0 {
            // Powers of the ratio: those of the sizes themselves may be too large or too small for the dtype.
            (pw::pow_scalar(&pw::div(&size, &safe)?, Scalar::Float(self.p - 1.0))?, g)
        } else {
            (pw::pow_scalar(&size, Scalar::Float(self.p - 1.0))?, pw::mul(&g, &pw::pow_scalar(&safe, Scalar::Float(1.0 - self.p))?)?)
        };
        let (power, scale) = (pw::mul(&direction(x)?, &power)?, pw::where_(&zero, 0.0, &scale)?);
        pw::mul(&power, &scale)
    }
}

impl Op for Norm {
    fn name(&self) -> &'static str {
        "norm"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let x = match self.dtype {
            Some(d) => x[0].converted(d)?,
            None => x[0].clone(),
        };
        Ok(smallvec![x.norm(self.p, &self.over.mask, self.over.keepdim)?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        if self.p == 1.0 || self.p == 0.0 { Saves::NOTHING.input(0) } else { Saves::NOTHING.input(0).output(0) }
    }
    fn tangent(&self) -> Tangent {
        Tangent::Reduced(self.over.keepdim_shape())
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(Norm { over: self.over.shifted(batch), ..self.clone() })
    }
}

/// The vector norm of order `p` over `dims` (all without): the p-th root of the sum of p-th powers of sizes; the largest (smallest) size
/// for p = inf (-inf), the number of non-zeros for p = 0.
pub fn norm(x: &Tensor, p: f64, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let over = ReducedDims::new(x, dims, keepdim)?;
    check(p, x.dtype(), &over)?;
    if let Some(d) = dtype {
        let kind = if x.dtype().is_complex() { "complex" } else { "real" };
        let wanted = if d.is_differentiable() { format!("{kind} for {kind} inputs") } else { "floating point or complex".into() };
        if !d.is_differentiable() || d.is_complex() != x.dtype().is_complex() {
            return Err(Error::dtype(format!("linalg.vector_norm: dtype should be {wanted}, but got {}", d.type_name())));
        }
    }
    apply1(&Norm { p, over, dtype }, &[x])
}

/// Refuses what has no norm.
fn check(p: f64, dtype: DType, over: &ReducedDims) -> Result<()> {
    if !dtype.is_differentiable() {
        return Err(Error::dtype(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            dtype.type_name()
        )));
    }
    if (p.is_infinite() || p < 0.0) && over.count() == 0 {
        let sign = if p < 0.0 { "-" } else { "" };
        return Err(Error::runtime(format!(
            "linalg.vector_norm cannot compute the {sign}inf norm on an empty tensor because the operation does not have an identity"
        )));
    }
    Ok(())
}

/// The norm of a difference, in one node.
#[derive(Debug, Clone)]
struct Dist {
    norm: Norm,
}

impl Vjp for Dist {
    fn node_name(&self) -> Name {
        "DistBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("self", SavedAttribute::Input(0)),
            ("other", SavedAttribute::Input(1)),
            ("p", SavedAttribute::Number(Scalar::Float(self.norm.p))),
            ("result", SavedAttribute::Output(0))
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let of_difference = self.norm.gradient(&pw::sub(&cx.input(0)?, &cx.input(1)?)?, || cx.output(0), g)?;
        let of_other = if cx.needs(1) { Some(pw::neg(&of_difference)?) } else { None };
        Ok(smallvec![Some(of_difference), of_other])
    }
}

impl Op for Dist {
    fn name(&self) -> &'static str {
        "dist"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let dtype = x[0].dtype();
        let d = Array::pointwise(Func { row: RowId::Sub, part: Part::Forward }, dtype, dtype, x, &[])?;
        self.norm.forward(&[&d])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).input(1).output(0)
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let rank = self.norm.over.shape.len();
            let wide: SmallVec<[BatchedInput; 2]> =
                batch.inputs.iter().map(|l| Ok(BatchedInput { tensor: l.aligned(rank)?, batched: l.batched })).collect::<Result<_>>()?;
            let wide = BatchedInputs { size: batch.size, inputs: &wide };
            let norm = Norm { over: self.norm.over.shifted(batch.size), ..self.norm.clone() };
            // An input without the batch broadcasts to it.
            let (x, y) = (&wide.inputs[0].tensor, &wide.inputs[1].tensor);
            crate::autograd::apply(&Dist { norm }, &[x, y])
        };
        Some(one())
    }
    fn tangent(&self) -> Tangent {
        Tangent::Reduced(self.norm.over.keepdim_shape())
    }
}

/// The norm of order `p` of the difference of two tensors that broadcast.
pub fn dist(x: &Tensor, other: &Tensor, p: f64) -> Result<Tensor> {
    let common = pw::promote(&[x.into(), other.into()]);
    let (x, other) = (primitives::cast(x, common)?, primitives::cast(other, common)?);
    let shape = broadcast(&x.shape(), &other.shape())?;
    let over = ReducedDims { mask: SmallVec::from_elem(true, shape.len()), shape, keepdim: false };
    check(p, common, &over)?;
    apply1(&Dist { norm: Norm { p, over, dtype: None } }, &[&x, &other])
}

// ---- log-sum-exp -----------------------------------------------------------------------------------------------------

/// The logarithm `y` of a sum, but finite where nothing was summed but zeros: the share of each of them is then 0, not nan.
fn settled(y: &Tensor) -> Result<Tensor> {
    if y.dtype().is_complex() { Ok(y.clone()) } else { clamp(y, Some(Scalar::Float(-y.dtype().largest())), None) }
}

#[derive(Debug, Clone)]
struct LogSumExp {
    over: ReducedDims,
}

impl Vjp for LogSumExp {
    fn node_name(&self) -> Name {
        "LogsumexpBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = self.over.saved_attributes();
        attributes.push(("self", SavedAttribute::Input(0)));
        attributes.push(("result", SavedAttribute::Output(0)));
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (x, y) = (cx.input(0)?, self.over.restore(&settled(&cx.output(0)?)?)?);
        Ok(one(pw::mul(&self.over.restore(g)?, &primitives::conj(&pw::exp(&pw::sub(&x, &y)?)?)?)?))
    }
}

impl Op for LogSumExp {
    fn name(&self) -> &'static str {
        "logsumexp"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        if x[0].dtype().is_complex() {
            return Ok(smallvec![complex_logsumexp(x[0], &self.over)?]);
        }
        Ok(smallvec![x[0].logsumexp(&self.over.mask, self.over.keepdim)?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    /// The mean of the tangents, weighted by exponentials that are at most 1.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (x, Some(t)) = (cx.primal(0), cx.tangent(0)) else { return Ok(smallvec![None]) };
        if x.numel() == 0 {
            return Ok(one(pw::mul(cx.output(0), 0.0)?));
        }
        let mask = self.over.mask.iter().enumerate();
        let dims: SmallVec<[i64; 8]> = mask.filter(|(_, m)| **m).map(|(d, _)| d as i64).collect();
        let top = amax(&super::complex::real(&x.detach())?, true, Some(&dims), true)?;
        let top = pw::where_(&pw::eq(&pw::abs(&top)?, f64::INFINITY)?, 0.0, &top)?;
        let weights = pw::exp(&pw::sub(x, &top)?)?;
        let total = |t: &Tensor| sum(t, Some(&dims), self.over.keepdim, None);
        let weight = total(&weights)?;
        // Nothing moves a sum of zeros; every other one is at least 1.
        let weight = if weight.dtype().is_complex() { weight } else { clamp(&weight, Some(Scalar::Float(0.5)), None)? };
        Ok(one(pw::div(&total(&pw::mul(&weights, t)?)?, &weight)?))
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(LogSumExp { over: self.over.shifted(batch) })
    }
}

/// That of complex numbers. As in PyTorch the largest real part is taken out of the sum, unless it is infinite.
fn complex_logsumexp(x: &Array, over: &ReducedDims) -> Result<Array> {
    let dtype = x.dtype();
    let run = |row: RowId, ins: &[&Array]| Array::pointwise(Func { row, part: Part::Forward }, dtype, dtype, ins, &[]);
    if x.numel() == 0 {
        return run(RowId::Log, &[&x.sum(&over.mask, over.keepdim)?]);
    }
    let parts = x.parts()?;
    let top = parts.with_layout(parts.layout().select(x.rank(), 0)?)?.extreme(true, &over.mask, true)?;
    let (real, choose) = (top.dtype(), Func { row: RowId::Where, part: Part::Forward });
    let is_infinite = Array::pointwise(Func { row: RowId::IsInf, part: Part::Forward }, real, DType::Bool, &[&top], &[])?;
    let top = Array::pointwise(choose, real, real, &[&is_infinite, &Array::scalar(Scalar::Int(0), real)?, &top], &[])?.cast(dtype)?;
    let sum = run(RowId::Exp, &[&run(RowId::Sub, &[x, &top])?])?.sum(&over.mask, true)?;
    let out = run(RowId::Add, &[&run(RowId::Log, &[&sum])?, &top])?;
    let mask = &over.mask;
    if over.keepdim { Ok(out) } else { out.with_layout(out.layout().squeeze(|d| mask[d])) }
}

/// `log(sum(exp(x)))` over `dims`, without overflow.
pub fn logsumexp(x: &Tensor, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    let x = if x.dtype().is_differentiable() { x.clone() } else { primitives::cast(x, pw::default_dtype())? };
    apply1(&LogSumExp { over: ReducedDims::new(&x, Some(dims), keepdim)? }, &[&x])
}

declare! {
    /// `log(sum(exp(x)))` over `dim`, without overflow.
    fn logsumexp(input: &Tensor, dim: &[i64], keepdim: bool = false) -> Tensor = logsumexp;
    /// The norm of order `p` of the difference.
    fn [no_out] dist(input: &Tensor, other: &Tensor, p: f64 = 2.0) -> Tensor = dist;
}
