//! Softmax and its logarithm.

use super::declared::declare;
use super::pointwise as pw;
use super::reduce::{one, one_dim, sum};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, Vjp, VjpCx, apply1, mode, primitives};
use crate::call::{self, Request, SoftmaxPass};
use crate::error::{Error, Result};
use crate::layout::DType;
use smallvec::smallvec;

#[derive(Debug, Clone)]
struct Softmax {
    dim: usize,
    log: bool,
}

impl Softmax {
    /// The function of x, or backward of the gradient and the function's result.
    fn run(&self, backward: bool, ins: &[&Array]) -> Result<Array> {
        let x = ins[0];
        if !x.dtype().is_float() {
            return Err(Error::dtype(format!("expected a floating point tensor, got {}", x.dtype())));
        }
        let pass = SoftmaxPass { log: self.log, backward };
        Array::request1(Request::Softmax(call::Softmax { pass, dim: self.dim }), ins, x.shape(), x.dtype())
    }
}

impl Vjp for Softmax {
    fn node_name(&self) -> Name {
        if self.log { "LogSoftmaxBackward0" } else { "SoftmaxBackward0" }.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim)), ("result", SavedAttribute::Output(0))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let y = cx.output(0)?;
        if !mode::is_grad_enabled() && g.is_bare() && y.is_bare() {
            // The gradient is not recorded: one fused pass.
            return Ok(one(Tensor::new(self.run(true, &[&g.array()?, &y.array()?])?)));
        }
        let total =
            |t: &Tensor| -> Result<Tensor> { if t.rank() == 0 { Ok(t.clone()) } else { sum(t, Some(&[self.dim as i64]), true, None) } };
        Ok(one(if self.log {
            pw::sub(g, &pw::mul(&pw::exp(&y)?, &total(g)?)?)?
        } else {
            pw::mul(&y, &pw::sub(g, &total(&pw::mul(g, &y)?)?)?)?
        }))
    }
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![self.run(false, &x[..1])?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(0)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        if !self.log {
            return cx.symmetric();
        }
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None]) };
        let weighted = pw::mul(&pw::exp(cx.output(0))?, t)?;
        let mean = if t.rank() == 0 { weighted } else { sum(&weighted, Some(&[self.dim as i64]), true, None)? };
        Ok(one(pw::sub(t, &mean)?))
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs[0].rank() == 0 {
            return Some(batch.rows_of_numbers(&Softmax { dim: 1, log: self.log }));
        }
        Some(batch.shifted(&Softmax { dim: self.dim + 1, log: self.log }))
    }
}

fn general(x: &Tensor, dim: i64, dtype: Option<DType>, log: bool) -> Result<Tensor> {
    let dim = one_dim(x, dim)?;
    let x = match dtype {
        Some(d) => primitives::cast(x, d)?,
        None => x.clone(),
    };
    if !x.dtype().is_float() {
        let name = if log { "log_softmax" } else { "softmax" };
        return Err(Error::not_implemented(format!(
            "\"{name}_lastdim_kernel_impl\" not implemented for '{}': pass dtype=, or convert the input to a float type",
            x.dtype().type_name()
        )));
    }
    apply1(&Softmax { dim, log }, &[&x])
}

/// `exp(x) / sum(exp(x))` along `dim`, without overflow; `dtype` converts the input first.
pub fn softmax(x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    general(x, dim, dtype, false)
}

/// `x - log(sum(exp(x)))` along `dim`, without overflow; `dtype` converts the input first.
pub fn log_softmax(x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    general(x, dim, dtype, true)
}

declare! {
    /// `exp(x) / sum(exp(x))` along `dim`, without overflow.
    fn softmax(input: &Tensor, dim: i64, dtype: Option<DType> = None) -> Tensor = softmax;
    /// `x - log(sum(exp(x)))` along `dim`, without overflow.
    fn log_softmax(input: &Tensor, dim: i64, dtype: Option<DType> = None) -> Tensor = log_softmax;
}
