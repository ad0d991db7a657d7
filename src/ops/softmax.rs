//! Softmax and its logarithm.

use super::declared::declare;
use super::extreme::argmax;
use super::gather::gather;
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

    fn total(&self, t: &Tensor) -> Result<Tensor> {
        if t.rank() == 0 { Ok(t.clone()) } else { sum(t, Some(&[self.dim as i64]), true, None) }
    }

    /// `t` without its mean that is weighted by the probabilities, whose logarithms are `y`. It is the same for distances from the `t` of the
    /// likeliest class, whose own weight then does not count: beside it the others would be lost.
    fn without_mean(&self, t: &Tensor, y: &Tensor) -> Result<Tensor> {
        let rest = if t.rank() == 0 || t.numel() == 0 {
            t.clone()
        } else {
            let dim = self.dim as i64;
            let likeliest = argmax(&y.detach(), true, Some(dim), true)?;
            pw::sub(t, &gather(t, dim, &likeliest)?)?
        };
        pw::sub(&rest, &self.total(&pw::mul(&pw::exp(y)?, &rest)?)?)
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
        if self.log {
            return Ok(one(apply1(&LogSoftmaxGrad(self.clone()), &[g, &y])?));
        }
        Ok(one(pw::mul(&y, &pw::sub(g, &self.total(&pw::mul(g, &y)?)?)?)?))
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
        Ok(one(self.without_mean(t, cx.output(0))?))
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs[0].rank() == 0 {
            return Some(batch.rows_of_numbers(&Softmax { dim: 1, log: self.log }));
        }
        Some(batch.shifted(&Softmax { dim: self.dim + 1, log: self.log }))
    }
}

/// The gradient of log-softmax, of its own gradient and its result: a kernel has digits that a composition of operations loses where one class has
/// nearly all of the weight.
#[derive(Debug, Clone)]
struct LogSoftmaxGrad(Softmax);

impl Vjp for LogSoftmaxGrad {
    fn node_name(&self) -> Name {
        "LogSoftmaxBackwardDataBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("grad_output", SavedAttribute::Input(0)), ("output", SavedAttribute::Input(1)), ("dim", SavedAttribute::at(self.0.dim))]
    }
    fn pull(&self, cx: &VjpCx<'_>, h: &Tensor) -> Result<Grads> {
        let y = cx.input(1)?;
        let of_gradient = if cx.needs(0) { Some(self.0.without_mean(h, &y)?) } else { None };
        let of_result =
            if cx.needs(1) { Some(pw::neg(&pw::mul(&pw::mul(h, &pw::exp(&y)?)?, &self.0.total(&cx.input(0)?)?)?)?) } else { None };
        Ok(smallvec![of_gradient, of_result])
    }
}

impl Op for LogSoftmaxGrad {
    fn name(&self) -> &'static str {
        "log_softmax_backward"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![self.0.run(true, &x[..2])?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).input(1)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (g, y) = (cx.primal(0), cx.primal(1));
        let of_gradient = cx.tangent(0).map(|t| apply1(self, &[t, y])).transpose()?;
        let of_result = match cx.tangent(1) {
            Some(t) => Some(pw::neg(&pw::mul(&pw::mul(t, &pw::exp(y)?)?, &self.0.total(g)?)?)?),
            None => None,
        };
        Ok(smallvec![match (of_gradient, of_result) {
            (Some(a), Some(b)) => Some(pw::add(&a, &b)?),
            (a, b) => a.or(b),
        }])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs[0].rank() == 0 {
            return Some(batch.rows_of_numbers(&LogSoftmaxGrad(Softmax { dim: 1, log: true })));
        }
        Some(batch.shifted(&LogSoftmaxGrad(Softmax { dim: self.0.dim + 1, log: true })))
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
