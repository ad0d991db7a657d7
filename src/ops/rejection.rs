//! Random numbers whose distribution has parameters of its own for each element: of the gamma, Dirichlet's, Poisson's and the binomial
//! distribution. Samples of the first two have gradients, that of a sample at a constant probability.

use super::batch;
use super::pointwise as pw;
use super::random::{Generator, default_generator};
use super::reduce::one;
use super::shape::expand_to;
use super::softmax::softmax;
use crate::array::{Array, Device, Rejected, RejectionSampler};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Saves, Tangent, Tangents, Tensor, Vjp, VjpCx, apply1, level, primitives};
use crate::call::Request;
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar, broadcast};
use crate::rows::RowId;
use smallvec::smallvec;
use std::sync::Arc;

/// A number costs as much as so many additions.
const WORK: usize = 16;

/// Draws on the host, in the operands' dtype, or in float32 for smaller ones.
fn draw(kind: Rejected, operands: &[&Array], g: &Generator) -> Result<Array> {
    let like = operands[0];
    if like.device() == Device::META {
        return like.empty_like(like.dtype());
    }
    let dtype = if like.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let plain = |a: &&Array| -> Result<Array> {
        let a = a.to_device(Device::CPU)?.cast(dtype)?;
        if a.is_contiguous() { Ok(a) } else { a.contiguous_copy() }
    };
    let ins = operands.iter().map(plain).collect::<Result<Vec<_>>>()?;
    let n = like.numel();
    let (seed, start) = g.take(n as u64);
    let sampler = RejectionSampler { kind, seed, start };
    // The dispatcher has given the host's lock away if there is much work.
    let drawn = Array::request1(Request::Custom(Arc::new(sampler)), &ins.iter().collect::<Vec<_>>(), like.shape(), dtype)?;
    drawn.cast(like.dtype())?.to_device_of(like)
}

/// The operand, with the batch dimensions of the levels of `vmap` whose elements get numbers of their own.
fn beside_noise(x: &Tensor) -> Result<Tensor> {
    if level::depth() == 0 {
        return Ok(x.clone());
    }
    batch::check_random_beside(x, false)?;
    let noise = batch::random(&[], |shape| Ok(Tensor::new(Array::full(shape, Scalar::Int(0), x.dtype())?)))?;
    pw::add(x, &noise)
}

fn check_float(name: &str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::not_implemented(format!(
        "\"{name}\" not implemented for '{}': convert the tensor first, as with .float()",
        x.dtype().type_name()
    )))
}

#[derive(Debug, Clone)]
struct StandardGamma {
    generator: Generator,
}

impl StandardGamma {
    fn slope(alpha: &Tensor, sample: &Tensor) -> Result<Tensor> {
        pw::call(RowId::StandardGammaGrad, &[alpha.into(), sample.into()], &[])
    }
}

impl Vjp for StandardGamma {
    fn node_name(&self) -> Name {
        "StandardGammaBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self", SavedAttribute::Input(0)), ("result", SavedAttribute::Output(0))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(one(pw::mul(g, &Self::slope(&cx.input(0)?, &cx.output(0)?)?)?))
    }
}

impl Op for StandardGamma {
    fn name(&self) -> &'static str {
        "_standard_gamma"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        // As in PyTorch a number is not 0, whose logarithm nobody could use.
        let dtype = x[0].dtype();
        let least = if dtype == DType::F64 {
            f64::MIN_POSITIVE
        } else if dtype == DType::F16 {
            6.103_515_625e-5
        } else {
            f64::from(f32::MIN_POSITIVE)
        };
        Ok(smallvec![draw(Rejected::Gamma { least }, x, &self.generator)?])
    }
    fn work(&self, x: &[&Array]) -> usize {
        x[0].numel().saturating_mul(WORK)
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    fn is_elementwise(&self) -> bool {
        true
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None]) };
        Ok(one(pw::mul(t, &Self::slope(cx.primal(0), cx.output(0))?)?))
    }
}

/// Numbers of the gamma distribution with scale 1, whose order each element is.
///
/// # Errors
/// The tensor has no floats.
pub fn standard_gamma(alpha: &Tensor, g: Option<&Generator>) -> Result<Tensor> {
    check_float("gamma_cpu", alpha)?;
    apply1(&StandardGamma { generator: g.unwrap_or_else(|| default_generator()).clone() }, &[&beside_noise(alpha)?])
}

/// Numbers whose gradient is 0, as that of Poisson's distribution is in PyTorch, or that have no history.
#[derive(Debug, Clone)]
struct Counts {
    kind: Rejected,
    generator: Generator,
}

impl Vjp for Counts {
    fn node_name(&self) -> Name {
        "PoissonBackward0".into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![primitives::zeros_like(grads[0].as_ref())?])
    }
}

impl Op for Counts {
    fn name(&self) -> &'static str {
        match self.kind {
            Rejected::Poisson => "poisson",
            Rejected::Binomial => "binomial",
            Rejected::Gamma { .. } | Rejected::LogGamma => "_sample_dirichlet",
        }
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![draw(self.kind, x, &self.generator)?])
    }
    fn work(&self, x: &[&Array]) -> usize {
        x[0].numel().saturating_mul(WORK)
    }
    fn differentiable(&self, _output: usize) -> bool {
        self.kind == Rejected::Poisson
    }
    fn is_elementwise(&self) -> bool {
        true
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
}

fn counts(kind: Rejected, operands: &[&Tensor], g: Option<&Generator>) -> Result<Tensor> {
    apply1(&Counts { kind, generator: g.unwrap_or_else(|| default_generator()).clone() }, operands)
}

/// Refuses operands with an element that is out of range, unless they have no values that can be read.
fn check_range(x: &Tensor, from: f64, to: f64, message: &str) -> Result<()> {
    if x.numel() == 0 || level::depth() > 0 || x.device() == Device::META {
        return Ok(());
    }
    let a = x.array()?;
    let all: smallvec::SmallVec<[bool; 8]> = smallvec::SmallVec::from_elem(true, a.rank());
    if a.extreme(false, &all, false)?.first()?.to_f64() < from || a.extreme(true, &all, false)?.first()?.to_f64() > to {
        return Err(Error::runtime(message.to_owned()));
    }
    Ok(())
}

/// Numbers of Poisson's distribution, whose rate each element is.
///
/// # Errors
/// The tensor has no floats, or a negative element.
pub fn poisson(rate: &Tensor, g: Option<&Generator>) -> Result<Tensor> {
    check_float("poisson_cpu", rate)?;
    check_range(rate, 0.0, f64::INFINITY, "invalid Poisson rate, expected rate to be non-negative")?;
    counts(Rejected::Poisson, &[&beside_noise(rate)?], g)
}

/// Numbers of successes among `count` trials.
///
/// # Errors
/// The dtypes differ or are no floats, the shapes do not broadcast, or an element is out of range.
pub fn binomial(count: &Tensor, prob: &Tensor, g: Option<&Generator>) -> Result<Tensor> {
    if count.dtype() != prob.dtype() {
        return Err(Error::runtime(format!("Found dtype {} but expected {}", prob.dtype(), count.dtype())));
    }
    check_float("binomial_cpu", count)?;
    const RANGE: &str = "binomial: expected counts of 0 or more and probabilities from 0 to 1";
    check_range(count, 0.0, f64::INFINITY, RANGE)?;
    check_range(prob, 0.0, 1.0, RANGE)?;
    let shape = broadcast(&count.shape(), &prob.shape())?;
    let (count, prob) = (expand_to(&beside_noise(count)?, &shape)?, expand_to(prob, &shape)?);
    counts(Rejected::Binomial, &[&count, &prob], g)
}

/// Points of Dirichlet's distribution, whose parameters lie along the last dimension. They are computed from logarithms, so that small
/// parameters do not make all components equal.
///
/// # Errors
/// The tensor has no floats.
pub fn sample_dirichlet(alpha: &Tensor, g: Option<&Generator>) -> Result<Tensor> {
    check_float("dirichlet", alpha)?;
    let wide = primitives::cast(&beside_noise(&alpha.detach())?, DType::F64)?;
    let drawn = softmax(&counts(Rejected::LogGamma, &[&wide], g)?, -1, None)?;
    primitives::cast(&drawn, alpha.dtype())
}
