//! Cumulative sums and products, and cumulative log-sum-exp.

use super::declared::declare;
use super::pointwise as pw;
use super::reduce::{one, one_dim, shifted};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{
    Arrays, Grads, Jvp, Name, OldValue, Op, Outputs, Saves, Tangent, Tangents, Tensor, Vjp, VjpCx, apply_inplace, apply1, primitives,
};
use crate::call::{Request, Scan, ScanKind, summed};
use crate::error::{Error, Result};
use crate::layout::DType;
use smallvec::smallvec;

/// Floats and complex numbers keep their dtype, others give int64.
fn scan(x: &Array, kind: ScanKind, dim: usize) -> Result<Array> {
    if x.dtype().is_wide_unsigned() {
        return scan(&x.cast(DType::I64)?, kind, dim);
    }
    Array::request1(Request::Scan(Scan { kind, dim }), &[x], x.shape(), summed(x.dtype()))
}

/// The cumulative sum along `dim`, from the end if `reverse`, which is its adjoint.
#[derive(Debug, Clone)]
struct CumSum {
    dim: usize,
    reverse: bool,
}

impl Vjp for CumSum {
    fn node_name(&self) -> Name {
        "CumsumBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim))]
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(one(apply1(&CumSum { dim: self.dim, reverse: !self.reverse }, &[g])?))
    }
}

impl Op for CumSum {
    fn name(&self) -> &'static str {
        "cumsum"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        if !self.reverse || x[0].rank() == 0 {
            return Ok(smallvec![scan(x[0], ScanKind::Sum, self.dim)?]);
        }
        Ok(smallvec![scan(&x[0].flip(&[self.dim])?, ScanKind::Sum, self.dim)?.flip(&[self.dim])?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs[0].rank() == 0 {
            return Some(batch.rows_of_numbers(&CumSum { dim: 1, reverse: self.reverse }));
        }
        Some(batch.shifted(&CumSum { dim: self.dim + 1, reverse: self.reverse }))
    }
}

#[derive(Debug, Clone)]
struct CumProd {
    dim: usize,
}

impl Vjp for CumProd {
    fn node_name(&self) -> Name {
        "CumprodBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim)), ("self", SavedAttribute::Input(0)), ("result", SavedAttribute::Output(0))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let x = primitives::conj(&cx.input(0)?)?;
        if x.rank() == 0 || x.numel() == 0 {
            return Ok(one(g.clone()));
        }
        if !has_zero(&x)? {
            let weighted = pw::mul(g, &primitives::conj(&cx.output(0)?)?)?;
            let sums = apply1(&CumSum { dim: self.dim, reverse: true }, &[&weighted])?;
            return Ok(one(pw::div(&sums, &x)?));
        }
        Ok(one(pw::mul(&products_before(&x, self.dim)?, &weighted_tails(g, &x, self.dim)?)?))
    }
}

impl Op for CumProd {
    fn name(&self) -> &'static str {
        "cumprod"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![scan(x[0], ScanKind::Prod, self.dim)?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs[0].rank() == 0 {
            return Some(batch.rows_of_numbers(&CumProd { dim: 1 }));
        }
        Some(batch.shifted(&CumProd { dim: self.dim + 1 }))
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (x, Some(t)) = (cx.primal(0), cx.tangent(0)) else { return Ok(smallvec![None]) };
        if x.rank() == 0 {
            return Ok(one(t.clone()));
        }
        if has_zero(x)? {
            return Ok(one(weighted_heads(&pw::mul(t, &products_before(x, self.dim)?)?, x, self.dim)?));
        }
        let rates = apply1(&CumSum { dim: self.dim, reverse: false }, &[&pw::div(t, x)?])?;
        Ok(one(pw::mul(cx.output(0), &rates)?))
    }
}

/// The cumulative `log(sum(exp(x)))` along `dim`.
#[derive(Debug, Clone)]
struct LogCumSumExp {
    dim: usize,
}

impl LogCumSumExp {
    /// `exp(y[i - 1] - y[i])`: real y never falls, so this is at most 1, and nothing below overflows.
    fn decay(&self, y: &Tensor) -> Result<Tensor> {
        let before = shifted(y, self.dim, 1, true, f64::NEG_INFINITY)?;
        let equal = pw::eq(&before, y)?;
        pw::where_(&equal, 1.0, &pw::exp(&pw::where_(&equal, 0.0, &pw::sub(&before, y)?)?)?)
    }
}

/// `t * exp(x - y)`: 0 where x is minus infinity, which moves nothing, and nan where both are infinite, of which the derivatives of other elements
/// know nothing.
fn times_share(t: &Tensor, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (rest, low) = (pw::sub(x, y)?, pw::eq(&x.detach(), f64::NEG_INFINITY)?);
    let undefined = pw::isnan(&rest)?;
    let unknown = pw::logical_and(&undefined, &pw::logical_not(&low)?)?;
    let known = pw::mul(t, &pw::exp(&pw::where_(&undefined, 0.0, &rest)?)?)?;
    let made = pw::where_(&unknown, &pw::mul(&pw::where_(&unknown, x, 0.0)?, f64::NAN)?, &known)?;
    pw::where_(&low, 0.0, &made)
}

impl Vjp for LogCumSumExp {
    fn node_name(&self) -> Name {
        "LogcumsumexpBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim)), ("self", SavedAttribute::Input(0)), ("result", SavedAttribute::Output(0))]
    }
    /// `sum over k >= i of g[k] * exp(x[i] - y[k])`.
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (x, y) = (primitives::conj(&cx.input(0)?)?, primitives::conj(&cx.output(0)?)?);
        if x.rank() == 0 || x.numel() == 0 {
            return Ok(one(g.clone()));
        }
        let tails = weighted_tails(g, &self.decay(&y)?, self.dim)?;
        Ok(one(times_share(&tails, &x, &y)?))
    }
}

impl Op for LogCumSumExp {
    fn name(&self) -> &'static str {
        "logcumsumexp"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![scan(x[0], ScanKind::LogSumExp, self.dim)?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs[0].rank() == 0 {
            return Some(batch.rows_of_numbers(&LogCumSumExp { dim: 1 }));
        }
        Some(batch.shifted(&LogCumSumExp { dim: self.dim + 1 }))
    }
    /// `sum over k <= i of t[k] * exp(x[k] - y[i])`.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (x, y, Some(t)) = (cx.primal(0), cx.output(0), cx.tangent(0)) else { return Ok(smallvec![None]) };
        if x.rank() == 0 || x.numel() == 0 {
            return Ok(one(t.clone()));
        }
        Ok(one(weighted_heads(&times_share(t, x, y)?, &self.decay(y)?, self.dim)?))
    }
}

/// The cumulative `log(sum(exp(x)))` along `dim`, without overflow. Floats and complex numbers only.
pub fn logcumsumexp(x: &Tensor, dim: i64) -> Result<Tensor> {
    let dim = one_dim(x, dim)?;
    if !x.dtype().is_differentiable() {
        let dtype = x.dtype().type_name();
        return Err(Error::not_implemented(format!(
            "\"logcumsumexp_out_cpu\" not implemented for '{dtype}': convert the tensor first, as with .float()"
        )));
    }
    apply1(&LogCumSumExp { dim }, &[x])
}

declare! {
    /// The logarithm of the running sum of `exp(x)` along `dim`, without overflow. Floats and complex numbers only.
    fn logcumsumexp(input: &Tensor, dim: i64) -> Tensor = logcumsumexp;
}

fn converted(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    match dtype {
        Some(d) => primitives::cast(x, d),
        None => Ok(x.clone()),
    }
}

/// Cumulative sums along `dim`; integers and bool give int64 unless `dtype` is given.
pub fn cumsum(x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    let dim = one_dim(x, dim)?;
    converted(&apply1(&CumSum { dim, reverse: false }, &[&converted(x, dtype)?])?, dtype)
}

/// Cumulative products along `dim`; integers and bool give int64 unless `dtype` is given.
pub fn cumprod(x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    let dim = one_dim(x, dim)?;
    converted(&apply1(&CumProd { dim }, &[&converted(x, dtype)?])?, dtype)
}

/// Whether some element is 0; then derivatives of products must not divide.
pub(crate) fn has_zero(x: &Tensor) -> Result<bool> {
    if x.is_batched() {
        // The values of a batch cannot be read. The general formula is correct for both cases.
        return Ok(true);
    }
    let a = x.array()?;
    let all: smallvec::SmallVec<[bool; 8]> = smallvec::SmallVec::from_elem(true, a.rank());
    Ok(!a.truth(true, &all, false)?.first()?.to_bool())
}

// The scans below are made of products and sums of shifted tensors (log n of them), so they have derivatives of every order, and
// zeros among the elements do no harm.

/// The product of all elements before each along `dim`; 1 for the first.
pub(crate) fn products_before(x: &Tensor, dim: usize) -> Result<Tensor> {
    cumulative_product(shifted(x, dim, 1, true, 1.0)?, dim, true)
}

/// The product of all elements behind each along `dim`; 1 for the last.
pub(crate) fn products_after(x: &Tensor, dim: usize) -> Result<Tensor> {
    cumulative_product(shifted(x, dim, 1, false, 1.0)?, dim, false)
}

fn cumulative_product(mut y: Tensor, dim: usize, back: bool) -> Result<Tensor> {
    let n = y.shape()[dim];
    let mut by = 1;
    while by < n {
        y = pw::mul(&y, &shifted(&y, dim, by, back, 1.0)?)?;
        by *= 2;
    }
    Ok(y)
}

/// `s[i] = sum over k >= i of g[k] * x[i + 1] * ... * x[k]`: the linear recurrence `s[i] = g[i] + x[i + 1] * s[i + 1]`.
fn weighted_tails(g: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let n = x.shape()[dim];
    let mut factor = shifted(x, dim, 1, false, 0.0)?;
    let mut sum = g.clone();
    let mut by = 1;
    while by < n {
        sum = pw::add(&sum, &pw::mul(&factor, &shifted(&sum, dim, by, false, 0.0)?)?)?;
        factor = pw::mul(&factor, &shifted(&factor, dim, by, false, 0.0)?)?;
        by *= 2;
    }
    Ok(sum)
}

/// `s[i] = g[i] + x[i] * s[i - 1]`: each `g` times the elements that follow it up to here, summed.
fn weighted_heads(g: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let n = x.shape()[dim];
    let (mut factor, mut sum) = (x.clone(), g.clone());
    let mut by = 1;
    while by < n {
        sum = pw::add(&sum, &pw::mul(&factor, &shifted(&sum, dim, by, true, 0.0)?)?)?;
        factor = pw::mul(&factor, &shifted(&factor, dim, by, true, 0.0)?)?;
        by *= 2;
    }
    Ok(sum)
}

/// `cumsum` written over its input.
pub fn cumsum_(x: &Tensor, dim: i64) -> Result<()> {
    let dim = one_dim(x, dim)?;
    apply_inplace(&CumSum { dim, reverse: false }, "cumsum_", &[x], OldValue::Read)
}

/// `cumprod` written over its input.
pub fn cumprod_(x: &Tensor, dim: i64) -> Result<()> {
    let dim = one_dim(x, dim)?;
    apply_inplace(&CumProd { dim }, "cumprod_", &[x], OldValue::Read)
}
