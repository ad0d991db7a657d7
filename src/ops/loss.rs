//! Loss functions.

use super::gather::gather;
use super::pointwise::{self as pw, Arg};
use super::reduce::{mean_as, sum};
use super::softmax::log_softmax;
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, ViewOp, Vjp, VjpCx, apply1, primitives, view};
use crate::call::{self, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::rows::RowId;
use smallvec::{SmallVec, smallvec};

pub use crate::call::{Classes, NllReduction as Reduction};

/// Reads PyTorch's name of a reduction.
pub fn reduction(name: &str) -> Result<Reduction> {
    match name {
        "none" => Ok(Reduction::None),
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        other => Err(Error::value(format!("{other} is not a valid value for reduction: expected 'none', 'mean' or 'sum'"))),
    }
}

/// Combines single losses. The node of a mean or sum has the loss's name, as in PyTorch, where one node does both steps.
fn reduced(losses: Tensor, how: Reduction, node: Option<&'static str>) -> Result<Tensor> {
    match how {
        Reduction::None => Ok(losses),
        Reduction::Mean => mean_as(&losses, true, node),
        Reduction::Sum => mean_as(&losses, false, node),
    }
}

// ---- distances -------------------------------------------------------------------------------------------------------

fn float_loss(x: &Tensor, target: &Tensor, kernel: &str) -> Result<()> {
    let d = pw::promote(&[x.into(), target.into()]);
    if d.is_float() {
        return Ok(());
    }
    Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{}': convert both to a float type", d.type_name())))
}

/// The squared difference.
pub fn mse_loss(x: &Tensor, target: &Tensor, how: Reduction) -> Result<Tensor> {
    let cast = autocast::widen([x, target])?;
    let [x, target] = cast.of([x, target]);
    float_loss(x, target, "mse_cpu")?;
    reduced(pw::call(RowId::MseLoss, &[x.into(), target.into()], &[])?, how, Some("MseLossBackward0"))
}

/// The absolute difference.
pub fn l1_loss(x: &Tensor, target: &Tensor, how: Reduction) -> Result<Tensor> {
    let cast = autocast::widen([x, target])?;
    let [x, target] = cast.of([x, target]);
    if !pw::promote(&[x.into(), target.into()]).is_complex() {
        float_loss(x, target, "l1_cpu")?;
    }
    reduced(pw::abs(&pw::sub(x, target)?)?, how, None)
}

/// Quadratic for differences below `beta`, linear above.
pub fn smooth_l1_loss(x: &Tensor, target: &Tensor, how: Reduction, beta: f64) -> Result<Tensor> {
    let cast = autocast::widen([x, target])?;
    let [x, target] = cast.of([x, target]);
    if beta < 0.0 {
        return Err(Error::runtime(format!("smooth_l1_loss does not support negative values for beta, got {beta}")));
    }
    if beta == 0.0 {
        return l1_loss(x, target, how);
    }
    float_loss(x, target, "smooth_l1_cpu")?;
    reduced(pw::call(RowId::SmoothL1Loss, &[x.into(), target.into()], &[beta.into()])?, how, Some("SmoothL1LossBackward0"))
}

/// As `smooth_l1_loss` times `delta`.
pub fn huber_loss(x: &Tensor, target: &Tensor, how: Reduction, delta: f64) -> Result<Tensor> {
    let cast = autocast::widen([x, target])?;
    let [x, target] = cast.of([x, target]);
    if delta <= 0.0 {
        return Err(Error::runtime(format!("huber_loss does not support non-positive values for delta, got {delta}")));
    }
    float_loss(x, target, "huber_cpu")?;
    reduced(pw::call(RowId::HuberLoss, &[x.into(), target.into()], &[delta.into()])?, how, Some("HuberLossBackward0"))
}

// ---- binary cross entropy --------------------------------------------------------------------------------------------

fn same_size(x: &Tensor, target: &Tensor) -> Result<()> {
    let (a, b) = (x.shape(), target.shape());
    if a == b {
        return Ok(());
    }
    Err(Error::value(format!("Target size (torch.Size({})) must be the same as input size (torch.Size({}))", fmt_shape(&b), fmt_shape(&a))))
}

const BCE: &str = "BinaryCrossEntropyBackward0";
const BCE_LOGITS: &str = "BinaryCrossEntropyWithLogitsBackward0";

/// The cross entropy of `sigmoid(x)` and targets in 0..=1. `weight` and `pos_weight` broadcast; the latter counts the positive part.
pub fn binary_cross_entropy_with_logits(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    how: Reduction,
) -> Result<Tensor> {
    let cast = autocast::widen([x, target])?;
    let [x, target] = cast.of([x, target]);
    same_size(x, target)?;
    if !target.dtype().is_float() {
        return Err(Error::runtime(format!(
            "result type Float can't be cast to the desired output type {}: binary_cross_entropy_with_logits takes a float target",
            target.dtype().type_name()
        )));
    }
    let mut loss = match pos_weight {
        None => pw::call(RowId::BceWithLogits, &[x.into(), target.into()], &[])?,
        Some(p) => {
            // (t - 1) * log(sigmoid(-x)) - p * t * log(sigmoid(x)): neither slope is a difference of numbers near 1.
            let negative = pw::mul(&pw::sub(target, 1.0)?, &pw::logsigmoid(&pw::neg(x)?)?)?;
            let positive = pw::mul(&pw::mul(p, target)?, &pw::logsigmoid(x)?)?;
            pw::call_as(RowId::Sub, BCE_LOGITS, &[(&negative).into(), (&positive).into()], &[])?
        }
    };
    if let Some(w) = weight {
        loss = pw::call_as(RowId::Mul, BCE_LOGITS, &[(&loss).into(), w.into()], &[])?;
    }
    reduced(loss, how, Some(BCE_LOGITS))
}

/// The cross entropy of probabilities and targets in 0..=1; logarithms are not taken below -100.
pub fn binary_cross_entropy(x: &Tensor, target: &Tensor, weight: Option<&Tensor>, how: Reduction) -> Result<Tensor> {
    let cast = autocast::widen([x, target])?;
    let [x, target] = cast.of([x, target]);
    let (a, b) = (x.shape(), target.shape());
    if a != b {
        return Err(Error::value(format!(
            "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})) is deprecated. Please ensure they \
             have the same size.",
            fmt_shape(&b),
            fmt_shape(&a)
        )));
    }
    float_loss(x, target, "binary_cross_entropy")?;
    let values = x.array()?;
    let values = if values.dtype().is_float() { values } else { values.cast(DType::F32)? };
    let all: smallvec::SmallVec<[bool; 8]> = smallvec::SmallVec::from_elem(true, a.len());
    if values.numel() > 0 {
        let (lo, hi) = (values.extreme(false, &all, false)?.first()?.to_f64(), values.extreme(true, &all, false)?.first()?.to_f64());
        if !(lo >= 0.0 && hi <= 1.0) {
            return Err(Error::runtime(format!("all elements of input should be between 0 and 1, got {lo} to {hi}")));
        }
    }
    let mut loss = pw::call(RowId::BinaryCrossEntropy, &[x.into(), target.into()], &[])?;
    if let Some(w) = weight {
        loss = pw::call_as(RowId::Mul, BCE, &[(&loss).into(), w.into()], &[])?;
    }
    reduced(loss, how, Some(BCE))
}

// ---- negative log likelihood -----------------------------------------------------------------------------------------

/// Selects the log-probability of each target; with `adjoint`, the gradient of that. Inputs: x (or the gradient), targets, perhaps weights.
#[derive(Debug, Clone)]
struct Nll {
    shape: Dims,
    target_shape: Dims,
    ignore: i64,
    how: Reduction,
    adjoint: bool,
}

impl Nll {
    fn classes(&self) -> Classes {
        let s = &self.shape;
        let (outer, classes, inner) = if s.len() == 1 { (1, s[0], 1) } else { (s[0], s[1], s[2..].iter().product()) };
        Classes { outer, classes, inner, ignore: self.ignore, reduction: self.how }
    }
}

impl Nll {
    fn apply(&self, x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
        let mut inputs: SmallVec<[&Tensor; 3]> = smallvec![x, target];
        inputs.extend(weight);
        apply1(self, &inputs)
    }

    /// The weight of each target, where every element of the batch has weights (one row each) of its own.
    fn of_targets(&self, weights: &Tensor, target: &Tensor, size: usize) -> Result<Tensor> {
        let each = primitives::cast(&primitives::reshape(target, &[size, target.numel() / size.max(1)])?, DType::I64)?;
        let ignored = pw::eq(&each, Scalar::Int(self.ignore))?;
        let selected = gather(weights, 1, &pw::where_(&ignored, Scalar::Int(0), &each)?)?;
        primitives::reshape(&pw::where_(&ignored, 0.0, &selected)?, &target.shape())
    }

    /// The operation on a whole batch: its samples become samples of one loss that is not reduced, and each element of the batch is reduced
    /// afterwards.
    fn batched(&self, batch: &BatchedInputs<'_>) -> Result<Outputs> {
        let one = self.shape.len() == 1;
        let rest = if one { &[][..] } else { &self.shape[2..] };
        let (n, classes) = if one { (1, self.shape[0]) } else { (self.shape[0], self.shape[1]) };
        let flat = |first: usize, with_classes: bool| -> Dims {
            std::iter::once(first).chain(with_classes.then_some(classes)).chain(rest.iter().copied()).collect()
        };
        let (shape, target_shape) = (flat(batch.size * n, true), flat(batch.size * n, false));
        let target = primitives::reshape(&batch.batched(1)?, &target_shape)?;
        let all = Nll { shape: shape.clone(), target_shape: target_shape.clone(), how: Reduction::None, ..self.clone() };
        let weight = batch.inputs.get(2);
        let own_weights = weight.filter(|w| w.batched).map(|w| self.of_targets(&w.tensor, &target, batch.size)).transpose()?;
        let run = |op: &Nll, x: &Tensor| match (&own_weights, weight) {
            (Some(w), _) if op.adjoint => op.apply(&pw::mul(x, w)?, &target, None),
            (Some(w), _) => pw::mul(&op.apply(x, &target, None)?, w),
            (None, shared) => op.apply(x, &target, shared.map(|w| &w.tensor)),
        };
        let own = batch.with_batch(&self.target_shape);
        let of_each = |t: &Tensor| -> Result<Tensor> {
            let t = primitives::reshape(t, &[batch.size, t.numel() / batch.size.max(1)])?;
            sum(&t, Some(&[1]), false, None)
        };
        // The loss of -1 everywhere is the weight of each target.
        let weights = |like: &Tensor| -> Result<Tensor> {
            let minus = Tensor::new(like.memory().full_beside(&[], Scalar::Float(-1.0), like.dtype())?);
            of_each(&run(&Nll { adjoint: false, ..all.clone() }, &view(&minus, ViewOp::Expand(shape.clone()))?)?)
        };
        let x = batch.batched(0)?;
        if !self.adjoint {
            let losses = run(&all, &primitives::reshape(&x, &shape)?)?;
            return Ok(smallvec![match self.how {
                Reduction::None => primitives::reshape(&losses, &own)?,
                Reduction::Sum => of_each(&losses)?,
                Reduction::Mean => pw::div(&of_each(&losses)?, &weights(&losses)?)?,
            }]);
        }
        let g = match self.how {
            Reduction::None => primitives::reshape(&x, &target_shape)?,
            _ => {
                let g = if self.how == Reduction::Mean { pw::div(&x, &weights(&x)?)? } else { x };
                let per_sample = primitives::reshape(&g, &[batch.size, 1])?;
                let many = target_shape.iter().product::<usize>() / batch.size.max(1);
                primitives::reshape(&view(&per_sample, ViewOp::Expand(Dims::from_slice(&[batch.size, many])))?, &target_shape)?
            }
        };
        Ok(smallvec![primitives::reshape(&run(&all, &g)?, &batch.with_batch(&self.shape))?])
    }
}

impl Vjp for Nll {
    fn node_name(&self) -> Name {
        match (self.shape.len() > 2, self.adjoint) {
            (false, false) => "NllLossBackward0",
            (false, true) => "NllLossBackwardBackward0",
            (true, false) => "NllLoss2DBackward0",
            (true, true) => "NllLoss2DBackwardBackward0",
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("target", SavedAttribute::Input(1)),
            ("weight", SavedAttribute::Input(2)),
            ("ignore_index", SavedAttribute::Int(self.ignore)),
            ("reduction", SavedAttribute::Int(self.how as i64))
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = cx.node.edges().len();
        let mut out = Grads::from_elem(None, n);
        let back = Nll { adjoint: !self.adjoint, ..self.clone() };
        let target = cx.input(1)?;
        let weight = if n == 3 { Some(cx.input(2)?) } else { None };
        out[0] = Some(back.apply(g, &target, weight.as_ref())?);
        Ok(out)
    }
}

impl Op for Nll {
    fn name(&self) -> &'static str {
        "nll_loss"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn grows(&self) -> bool {
        // The adjoint's inputs have no dimension of classes.
        self.adjoint
    }
    fn work(&self, x: &[&Array]) -> usize {
        if self.adjoint { self.shape.iter().product() } else { x.iter().map(|a| a.numel()).sum() }
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let shape: &[usize] = match (self.adjoint, self.how) {
            (true, _) => &self.shape,
            (false, Reduction::None) => &self.target_shape,
            (false, _) => &[],
        };
        let dim = usize::from(if self.adjoint { shape.len() } else { x[0].rank() } > 1);
        let request = Request::Nll(call::Nll { classes: self.classes(), adjoint: self.adjoint, dim, ticket: 0 });
        let (targets, weight) = (x[1].contiguous()?, x.get(2).map(|w| w.contiguous()).transpose()?);
        // Pending inputs stay pending.
        let scores = if x[0].is_contiguous() { x[0].clone() } else { x[0].contiguous()? };
        let mut ins: SmallVec<[&Array; 3]> = smallvec![&scores, &targets];
        ins.extend(weight.as_ref());
        Ok(smallvec![Array::request1(request, &ins, shape, x[0].dtype())?])
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        let target = Saves::NOTHING.input(1);
        // The weights are saved too.
        if needs.len() == 3 { target.input(2) } else { target }
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        // Linear in the log-probabilities; weights and targets have no tangents.
        let Some(t) = cx.tangent(0) else { return Ok(smallvec![None]) };
        let target = cx.primal(1);
        let weight = (cx.inputs() == 3).then(|| cx.primal(2));
        Ok(smallvec![Some(self.apply(t, target, weight)?)])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        Some(self.batched(batch))
    }
}

/// Minus the log-probability of each target's class, times the class's weight. Inputs are (C), (N, C) or (N, C, d1, ...), targets the same
/// without C. A mean is over weights; targets equal to `ignore` count for nothing.
pub fn nll_loss(x: &Tensor, target: &Tensor, weight: Option<&Tensor>, how: Reduction, ignore: i64) -> Result<Tensor> {
    let cast = autocast::widen([x])?;
    let [x] = cast.of([x]);
    let of_weight = weight.map(|w| autocast::widen([w])).transpose()?;
    let weight = weight.map(|w| of_weight.as_ref().map_or(w, |cast| cast.of([w])[0]));
    let (sx, st) = (x.shape(), target.shape());
    if sx.is_empty() {
        return Err(Error::value(format!("Expected 1 or more dimensions (got {})", sx.len())));
    }
    if !matches!(target.dtype(), DType::I64 | DType::U8) {
        return Err(Error::runtime(format!("expected target dtype to be Long or Byte, but got {}", target.dtype().type_name())));
    }
    if !x.dtype().is_float() {
        return Err(Error::not_implemented(format!("\"nll_loss_out_frame\" not implemented for '{}'", x.dtype().type_name())));
    }
    if sx.len() == 1 {
        if st.len() > 1 {
            return Err(Error::runtime("0D or 1D target tensor expected, multi-target not supported"));
        }
        if st.len() == 1 && st[0] != 1 {
            return Err(Error::value(format!("For 1D input, 1D target must have size 1, but got target size: {}", st[0])));
        }
    } else {
        if sx.len() == 2 && st.len() > 1 {
            return Err(Error::runtime(format!(
                "0D or 1D target tensor expected, multi-target not supported: got a target of shape {}",
                fmt_shape(&st)
            )));
        }
        if st.first() != Some(&sx[0]) {
            return Err(Error::value(format!(
                "Expected input batch_size ({}) to match target batch_size ({}).",
                sx[0],
                st.first().copied().unwrap_or(1)
            )));
        }
        if st[1..] != sx[2..] {
            let want: Dims = sx[..1].iter().chain(&sx[2..]).copied().collect();
            return Err(Error::runtime(format!("Expected target size {}, got {}", fmt_shape(&want), fmt_shape(&st))));
        }
    }
    let c = if sx.len() == 1 { sx[0] } else { sx[1] };
    if let Some(w) = weight {
        if w.shape()[..] != [c] {
            return Err(Error::runtime(format!(
                "weight tensor should be defined either for all {c} classes or no classes but got weight tensor of shape: {}",
                fmt_shape(&w.shape())
            )));
        }
        if w.dtype() != x.dtype() {
            return Err(Error::runtime(format!("expected scalar type {} but found {}", x.dtype().type_name(), w.dtype().type_name())));
        }
    }
    let op = Nll { target_shape: st, ignore, how, adjoint: false, shape: sx };
    match weight {
        // Weights have no gradient, as in PyTorch.
        Some(w) => apply1(&op, &[x, target, &w.detach()]),
        None => apply1(&op, &[x, target]),
    }
}

/// The cross entropy of `softmax(x)` along the class dimension (1, or 0 of one dimension) and classes or, in x's shape, probabilities.
pub fn cross_entropy(x: &Tensor, target: &Tensor, weight: Option<&Tensor>, how: Reduction, ignore: i64, smoothing: f64) -> Result<Tensor> {
    let cast = autocast::widen([x])?;
    let [x] = cast.of([x]);
    let of_weight = weight.map(|w| autocast::widen([w])).transpose()?;
    let weight = weight.map(|w| of_weight.as_ref().map_or(w, |cast| cast.of([w])[0]));
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::runtime(format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")));
    }
    let sx = x.shape();
    if sx.is_empty() {
        return Err(Error::value("Expected 1 or more dimensions (got 0)"));
    }
    let dim = usize::from(sx.len() > 1);
    let c = sx[dim];
    let log_p = log_softmax(x, dim as i64, None)?;
    let class_sum = |t: &Tensor| sum(t, Some(&[dim as i64]), false, None);
    if target.shape() == sx {
        check_probabilities(target, weight, c, ignore)?;
        let target = if smoothing > 0.0 { pw::add(&pw::mul(target, 1.0 - smoothing)?, smoothing / c as f64)? } else { target.clone() };
        let weighted = match weight {
            Some(w) => pw::mul(&log_p, &along(w, dim, sx.len())?)?,
            None => log_p,
        };
        let parts = pw::mul(&weighted, &target)?;
        let whole = || pw::neg(&sum(&parts, None, false, None)?);
        return match how {
            Reduction::None => pw::neg(&class_sum(&parts)?),
            Reduction::Sum => whole(),
            // The mean is over samples, whatever their weights; nan if there are none.
            Reduction::Mean => {
                let n = x.numel().checked_div(c).unwrap_or(0);
                pw::call_as(RowId::Div, "DivBackward1", &[(&whole()?).into(), Arg::Scalar((n as f64).into())], &[])
            }
        };
    }
    let nll = nll_loss(&log_p, target, weight, how, ignore)?;
    if smoothing == 0.0 {
        return Ok(nll);
    }
    let weighted = match weight {
        Some(w) => pw::mul(&log_p, &along(w, dim, sx.len())?)?,
        None => log_p,
    };
    let ignored = pw::eq(target, Scalar::Int(ignore))?;
    let smooth = pw::where_(&ignored, 0.0, &pw::neg(&class_sum(&weighted)?)?)?;
    let smooth = match how {
        Reduction::None => smooth,
        Reduction::Sum => sum(&smooth, None, false, None)?,
        Reduction::Mean => {
            // The weights of the targets that count.
            let ones = Tensor::new(x.memory().full_beside(&sx, Scalar::Float(-1.0), x.dtype())?);
            let total = nll_loss(&ones, target, weight, Reduction::Sum, ignore)?;
            pw::div(&sum(&smooth, None, false, None)?, &total)?
        }
    };
    pw::add(&pw::mul(&nll, 1.0 - smoothing)?, &pw::mul(&smooth, smoothing / c as f64)?)
}

/// Refuses targets that are not probabilities of the input's shape, and weights that are not one for each of `c` classes.
fn check_probabilities(target: &Tensor, weight: Option<&Tensor>, c: usize, ignore: i64) -> Result<()> {
    if !target.dtype().is_float() {
        return Err(Error::runtime(format!(
            "Expected floating point type for target with class probabilities, got {}",
            target.dtype().type_name()
        )));
    }
    if ignore >= 0 {
        return Err(Error::runtime(format!("ignore_index is not supported for floating point target, got {ignore}")));
    }
    match weight {
        Some(w) if w.shape()[..] != [c] => Err(Error::runtime(format!(
            "cross_entropy: weight tensor should be defined either for all {c} classes or no classes but got weight tensor of shape: {}",
            fmt_shape(&w.shape())
        ))),
        _ => Ok(()),
    }
}

/// A vector as a tensor of `rank` dimensions that extends along `dim`.
fn along(w: &Tensor, dim: usize, rank: usize) -> Result<Tensor> {
    let mut shape: Dims = smallvec![1; rank];
    shape[dim] = w.numel();
    primitives::reshape(&w.detach(), &shape)
}
