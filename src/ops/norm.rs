//! Norms and log-sum-exp.

use super::extreme::share;
use super::pointwise as pw;
use super::reduce::{Over, node_op, one};
use crate::array::Array;
use crate::autograd::{Arrays, Grads, NodeOp, Op, Saves, Tensor, Vjp, VjpCx, apply1, linear};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::pointwise::RowId;
use crate::pointwise::{Func, Part};
use smallvec::smallvec;
use std::sync::Arc;

#[derive(Debug, Clone)]
struct Norm {
    p: f64,
    over: Over,
    dtype: Option<DType>,
}

impl Vjp for Norm {
    fn node_name(&self) -> String {
        "LinalgVectorNormBackward0".into()
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let Some(g) = &grads[0] else { return Ok(smallvec![None]) };
        let x = linear::cast(&cx.input(0)?, g.dtype())?;
        if self.p == 0.0 {
            return Ok(one(pw::mul(&x.detach(), 0.0)?));
        }
        if self.p == 1.0 {
            return Ok(one(pw::mul(&self.over.restore(g)?, &pw::sign(&x)?)?));
        }
        let norm = self.over.restore(&cx.output(0)?)?;
        let g = self.over.restore(g)?;
        if self.p.is_infinite() {
            // Elements of the extreme size share the gradient; nan shares it with nan.
            let (size, n) = (pw::abs(&x.detach())?, norm.detach());
            let both_nan = pw::logical_and(&pw::isnan(&size)?, &pw::isnan(&n)?)?;
            let mask = pw::logical_or(&pw::eq(&size, &n)?, &both_nan)?;
            let shared = share(&g, &mask, &Over { keepdim: true, ..self.over.clone() })?;
            return Ok(one(pw::mul(&shared, &pw::sign(&x)?)?));
        }
        // Where the norm is 0 so is the gradient; divisors and bases are masked as well, for the next order's sake.
        let zero = pw::eq(&norm.detach(), 0.0)?;
        let safe = pw::where_(&zero, 1.0, &norm)?;
        if self.p == 2.0 {
            let scale = pw::where_(&zero, 0.0, &pw::div(&g, &safe)?)?;
            return Ok(one(pw::mul(&x, &scale)?));
        }
        let scale = pw::where_(&zero, 0.0, &pw::mul(&g, &pw::pow_scalar(&safe, Scalar::Float(1.0 - self.p))?)?)?;
        let none = pw::eq(&x.detach(), 0.0)?;
        let size = pw::where_(&none, 1.0, &pw::abs(&x)?)?;
        let power = pw::mul(&pw::sign(&x)?, &pw::pow_scalar(&size, Scalar::Float(self.p - 1.0))?)?;
        Ok(one(pw::mul(&power, &scale)?))
    }
}

impl Op for Norm {
    fn name(&self) -> &'static str {
        "norm"
    }
    fn takes_pending(&self) -> bool {
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
    node_op!();
}

/// The vector norm of order `p` over `dims` (all without): the p-th root of the sum of p-th powers of sizes; the largest (smallest) size
/// for p = inf (-inf), the number of non-zeros for p = 0.
pub fn norm(x: &Tensor, p: f64, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            x.dtype().type_name()
        )));
    }
    if let Some(d) = dtype
        && !d.is_float()
    {
        return Err(Error::dtype(format!("linalg.vector_norm: dtype must be a floating point type. Got {}", d.type_name())));
    }
    let over = Over::new(x, dims, keepdim)?;
    if (p.is_infinite() || p < 0.0) && over.count() == 0 {
        let sign = if p < 0.0 { "-" } else { "" };
        return Err(Error::runtime(format!(
            "linalg.vector_norm cannot compute the {sign}inf norm on an empty tensor because the operation does not have an identity"
        )));
    }
    apply1(&Norm { p, over, dtype }, &[x])
}

// ---- log-sum-exp -----------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct LogSumExp {
    over: Over,
}

impl Vjp for LogSumExp {
    fn node_name(&self) -> String {
        "LogsumexpBackward0".into()
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let Some(g) = &grads[0] else { return Ok(smallvec![None]) };
        let (x, y) = (cx.input(0)?, self.over.restore(&cx.output(0)?)?);
        Ok(one(pw::mul(&self.over.restore(g)?, &pw::exp(&pw::sub(&x, &y)?)?)?))
    }
}

impl Op for LogSumExp {
    fn name(&self) -> &'static str {
        "logsumexp"
    }
    fn takes_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let (x, over) = (x[0], &self.over);
        let dtype = x.dtype();
        let run = |row: RowId, ins: &[&Array]| Array::pointwise(Func { row, part: Part::Forward }, dtype, dtype, ins, &[]);
        if over.count() == 0 {
            let out = x.sum(&over.mask, over.keepdim)?;
            return Ok(smallvec![run(RowId::Log, &[&out])?]);
        }
        // An infinite maximum must not be subtracted: inf - inf is nan.
        let top = x.extreme(true, &over.mask, true)?;
        let size = run(RowId::Abs, &[&top])?;
        let inf = Array::scalar(Scalar::Float(f64::INFINITY), dtype)?;
        let infinite = Array::pointwise(Func { row: RowId::Eq, part: Part::Forward }, dtype, DType::Bool, &[&size, &inf], &[])?;
        let top = run(RowId::Where, &[&infinite, &Array::scalar(Scalar::Int(0), dtype)?, &top])?;
        let e = run(RowId::Sub, &[x, &top])?;
        e.pointwise_into(Func { row: RowId::Exp, part: Part::Forward }, dtype, &[&e], &[])?;
        let out = e.sum(&over.mask, true)?;
        out.pointwise_into(Func { row: RowId::Log, part: Part::Forward }, dtype, &[&out], &[])?;
        out.pointwise_into(Func { row: RowId::Add, part: Part::Forward }, dtype, &[&out, &top], &[])?;
        if over.keepdim {
            return Ok(smallvec![out]);
        }
        let layout = out.layout().squeeze(|d| over.mask[d]);
        Ok(smallvec![out.with_layout(layout)])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    node_op!();
}

/// `log(sum(exp(x)))` over `dims`, without overflow.
pub fn logsumexp(x: &Tensor, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    let x = if x.dtype().is_float() { x.clone() } else { linear::cast(x, pw::default_dtype())? };
    apply1(&LogSumExp { over: Over::new(&x, Some(dims), keepdim)? }, &[&x])
}
