//! The operation behind layer, group and batch norm: forward, derivatives, batches. Not here: what the functions accept (`normalize`).

use super::pointwise as pw;
use super::reduce::{mean, sum};
use super::shape::transpose;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, Vjp, VjpCx, apply, mode, primitives};
use crate::call::{self, NormPass, NormShape, Request};
use crate::error::Result;
use crate::layout::{DType, Dims, Layout, Scalar};
use smallvec::{SmallVec, smallvec};

/// The order of dimensions in memory if the channels (dimension 1) come last.
pub(super) fn channels_behind(rank: usize) -> Dims {
    std::iter::once(0).chain(2..rank).chain(std::iter::once(1)).collect()
}

/// What is normalised together.
#[derive(Debug, Clone)]
pub(super) enum NormKind {
    /// The last dimensions, which have this shape.
    Layer(Dims),
    /// The channels (dimension 1) of each of so many groups, and all later dimensions.
    Group(usize),
    /// Everything but the channels; if not `training`, by statistics that are given.
    Batch { training: bool },
}

/// Of x, perhaps a weight, perhaps a bias, perhaps means and variances: the result, the means and the reciprocals of deviations, and for
/// batch norm in training the (biased) variances. Only the result is differentiable.
#[derive(Debug, Clone)]
pub(super) struct Normalize {
    pub kind: NormKind,
    /// Of x, for the saved attributes.
    pub shape: Dims,
    pub weight: bool,
    pub bias: bool,
    /// Elements are of a 16-bit float and all others float32, in which it is computed.
    pub mixed: bool,
    pub eps: f64,
}

/// The distance from the mean over the deviation, and what it was made from, as (outer, groups, channels, inner).
struct Standardized {
    xhat: Tensor,
    rstd: Tensor,
    shape: [usize; 4],
    /// What a mean is over; None if the statistics were given.
    over: Option<&'static [i64]>,
    /// What the gradient of a weight is summed over.
    summed: &'static [i64],
}

impl Standardized {
    fn see(&self, t: &Tensor) -> Result<Tensor> {
        primitives::reshape(t, &self.shape)
    }

    /// Weights, or what has their shape, where they belong to elements.
    fn param(&self, t: &Tensor) -> Result<Tensor> {
        primitives::reshape(t, &[1, self.shape[1], self.shape[2], 1])
    }

    /// The derivative of `xhat` applied to a direction. It is symmetric.
    fn derivative(&self, v: &Tensor) -> Result<Tensor> {
        let Some(over) = self.over else { return pw::mul(v, &self.rstd) };
        let along = mean(&pw::mul(v, &self.xhat)?, Some(over), true, None)?;
        let rest = pw::sub(&pw::sub(v, &mean(v, Some(over), true, None)?)?, &pw::mul(&self.xhat, &along)?)?;
        pw::mul(&rest, &self.rstd)
    }
}

/// The operands of a node or rule.
struct Operands {
    x: Tensor,
    weight: Option<Tensor>,
    given: Option<[Tensor; 2]>,
}

impl Normalize {
    fn shape(&self, x: &[usize]) -> NormShape {
        match &self.kind {
            NormKind::Layer(normalized) => {
                let n = normalized.iter().product();
                NormShape { outer: x[..x.len() - normalized.len()].iter().product(), groups: 1, channels: n, inner: 1, across: false }
            }
            NormKind::Group(groups) => {
                NormShape { outer: x[0], groups: *groups, channels: x[1] / groups, inner: x[2..].iter().product(), across: false }
            }
            NormKind::Batch { .. } => NormShape { outer: x[0], groups: x[1], channels: 1, inner: x[2..].iter().product(), across: true },
        }
    }

    /// Elements in the dtype that is computed in.
    fn wide(&self, t: &Tensor) -> Result<Tensor> {
        if self.mixed { primitives::cast(t, DType::F32) } else { Ok(t.clone()) }
    }

    fn is_given(&self) -> bool {
        matches!(self.kind, NormKind::Batch { training: false })
    }

    /// Where the means are among the inputs; the variances follow.
    fn given_at(&self) -> usize {
        1 + usize::from(self.weight) + usize::from(self.bias)
    }

    /// The shape of the means that are computed.
    fn stats_shape(&self, x: &[usize]) -> Dims {
        match &self.kind {
            NormKind::Layer(normalized) => {
                let lead = x.len() - normalized.len();
                x.iter().enumerate().map(|(d, n)| if d < lead { *n } else { 1 }).collect()
            }
            NormKind::Group(groups) => Dims::from_slice(&[x[0], *groups]),
            NormKind::Batch { training } => Dims::from_slice(&[if *training { x[1] } else { 0 }]),
        }
    }

    fn request(&self, pass: NormPass, shape: NormShape) -> Request {
        Request::Norm(call::Norm { op: self.name(), pass, shape, eps: Scalar::Float(self.eps) })
    }

    /// The batch norm of channels that come last in memory, which is one of rows; else of row-major elements.
    fn rows(&self, x: &Array) -> Result<(Array, NormShape, Option<Layout>)> {
        let shape = self.shape(x.shape());
        let rank = x.rank();
        if matches!(self.kind, NormKind::Batch { .. }) && rank > 3 && !x.is_contiguous() {
            let layout = x.layout().permute(&channels_behind(rank));
            if layout.is_contiguous() {
                let rows = NormShape { outer: shape.outer * shape.inner, inner: 1, ..shape };
                return Ok((x.with_layout(layout)?, rows, Some(x.layout().clone())));
            }
        }
        Ok((x.contiguous()?, shape, None))
    }

    /// The result in the order of x's channels.
    fn ordered(&self, y: Array, x: &Array, back: bool) -> Result<Array> {
        let rank = x.rank();
        if !back {
            // Group norm keeps channels that come last in memory there.
            let last = channels_behind(rank);
            if matches!(self.kind, NormKind::Group(_)) && rank > 3 && !x.is_contiguous() && x.layout().permute(&last).is_contiguous() {
                let copy = y.with_layout(y.layout().permute(&last))?.contiguous_copy()?;
                return self.ordered(copy, x, true);
            }
            return Ok(y);
        }
        let first: Dims = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        let layout = y.layout().permute(&first);
        y.with_layout(layout)
    }

    /// The gradients of x, weight and bias, by the kernel. With `over`, the first may be written over `g`.
    fn gradients(&self, (g, over): (&Array, bool), x: &Array, weight: Option<&Array>, stats: [&Array; 2], params: bool) -> Result<Arrays> {
        let dtype = x.dtype();
        let (rows, shape, channels_last) = self.rows(x)?;
        let count = [shape.params()];
        if x.numel() == 0 {
            let zeros = || x.full_beside(&count, Scalar::Int(0), dtype);
            return Ok(smallvec![x.empty_beside(x.shape(), dtype)?, zeros()?, zeros()?]);
        }
        let g = match &channels_last {
            Some(_) => g.with_layout(g.layout().permute(&channels_behind(x.rank())))?.contiguous()?,
            None => g.contiguous()?,
        };
        let weight = weight.map(Array::contiguous).transpose()?;
        let stats = [stats[0].contiguous()?, stats[1].contiguous()?];
        let mut ins: SmallVec<[&Array; 5]> = smallvec![&g, &rows, &stats[0], &stats[1]];
        ins.extend(weight.as_ref());
        let pass = NormPass::Backward { weight: weight.is_some(), fixed: self.is_given(), params };
        let to = Dims::from_slice(rows.shape());
        let outs = [(&to[..], dtype), (&count[..], dtype), (&count[..], dtype)];
        let (request, outs) = (self.request(pass, shape), if params { &outs[..] } else { &outs[..1] });
        let made = if over { Array::request_over(request, &ins, outs)? } else { Array::request(request, &ins, outs)? };
        let mut made: Arrays = made.into_iter().collect();
        made[0] = self.ordered(made[0].clone(), x, channels_last.is_some())?;
        Ok(made)
    }

    /// By operations that are recorded. `given`: means and variances.
    fn standardized(&self, x: &Tensor, given: Option<&[Tensor; 2]>) -> Result<Standardized> {
        let NormShape { outer, groups, channels, inner, across } = self.shape(&x.shape());
        let shape = [outer, groups, channels, inner];
        let x = primitives::reshape(x, &shape)?;
        let over: &[i64] = if across { &[0, 2, 3] } else { &[2, 3] };
        let (distance, variance) = match given {
            Some([mean, var]) => {
                let see = |t: &Tensor| primitives::reshape(t, &[1, groups, 1, 1]);
                (pw::sub(&x, &see(mean)?)?, see(var)?)
            }
            None => {
                let distance = pw::sub(&x, &mean(&x, Some(over), true, None)?)?;
                let variance = mean(&pw::square(&distance)?, Some(over), true, None)?;
                (distance, variance)
            }
        };
        let rstd = pw::rsqrt(&pw::add(&variance, self.eps)?)?;
        let over = if given.is_some() { None } else { Some(over) };
        Ok(Standardized { xhat: pw::mul(&distance, &rstd)?, rstd, shape, over, summed: &[0, 3] })
    }

    fn saved(&self, cx: &VjpCx<'_>) -> Result<Operands> {
        let at = self.given_at();
        Ok(Operands {
            x: self.wide(&cx.input(0)?)?,
            weight: if self.weight { Some(cx.input(1)?) } else { None },
            given: if self.is_given() { Some([cx.input(at)?, cx.input(at + 1)?]) } else { None },
        })
    }

    /// The positions of weight and bias among the inputs.
    fn params(&self) -> [Option<usize>; 2] {
        [self.weight.then_some(1), self.bias.then_some(1 + usize::from(self.weight))]
    }

    /// Without weight and bias, of elements that are as wide as the statistics.
    fn bare(&self, shape: Dims) -> Normalize {
        Normalize { weight: false, bias: false, mixed: false, shape, ..self.clone() }
    }

    fn batched(&self, batch: &BatchedInputs<'_>) -> Result<Outputs> {
        let x = batch.batched(0)?;
        let (b, whole, dtype) = (batch.size, x.shape(), x.dtype());
        let own = Dims::from_slice(&whole[1..]);
        let params = self.params();
        let shared = params.iter().flatten().all(|i| !batch.inputs[*i].batched);
        let is_batch = matches!(self.kind, NormKind::Batch { .. });
        // Batch norm sees the elements of the batch as channels of their own, the others as more of what they have anyway.
        let flat = if is_batch {
            let across = transpose(&x, 0, 1)?;
            let shape: Dims = [own[0], b * own[1]].into_iter().chain(own[2..].iter().copied()).collect();
            primitives::reshape(&across, &shape)?
        } else if let NormKind::Layer(_) = self.kind {
            x
        } else {
            let shape: Dims = std::iter::once(b * own[0]).chain(own[1..].iter().copied()).collect();
            primitives::reshape(&x, &shape)?
        };
        let keeps = shared && !is_batch;
        let op = if keeps { Normalize { shape: flat.shape(), ..self.clone() } } else { self.bare(flat.shape()) };
        let mut ins: SmallVec<[Tensor; 5]> = smallvec![if keeps { flat } else { self.wide(&flat)? }];
        if keeps {
            ins.extend(params.iter().flatten().map(|i| batch.inputs[*i].tensor.clone()));
        }
        if self.is_given() {
            for i in self.given_at()..self.given_at() + 2 {
                ins.push(primitives::reshape(&batch.batched(i)?, &[b * own[1]])?);
            }
        }
        let refs: SmallVec<[&Tensor; 5]> = ins.iter().collect();
        let mut made = apply(&op, &refs)?;
        let stats = batch.with_batch(&self.stats_shape(&own));
        made[0] = if is_batch {
            let apart: Dims = [own[0], b, own[1]].into_iter().chain(own[2..].iter().copied()).collect();
            transpose(&primitives::reshape(&made[0], &apart)?, 0, 1)?
        } else {
            primitives::reshape(&made[0], &whole)?
        };
        for stat in made.iter_mut().skip(1) {
            *stat = if self.is_given() {
                Tensor::new(stat.memory().empty_beside(&stats, stat.dtype())?)
            } else {
                primitives::reshape(stat, &stats)?
            };
        }
        if !keeps {
            for (k, i) in params.iter().enumerate() {
                let Some(i) = i else { continue };
                let p = self.beside(&batch.inputs[*i], own.len())?;
                made[0] = if k == 0 { pw::mul(&made[0], &p)? } else { pw::add(&made[0], &p)? };
            }
            made[0] = primitives::cast(&made[0], dtype)?;
        }
        Ok(made)
    }

    /// A weight or bias as it broadcasts to an x of `rank` dimensions.
    fn beside(&self, p: &BatchedInput, rank: usize) -> Result<Tensor> {
        let mut shape = p.shape();
        if !matches!(self.kind, NormKind::Layer(_)) {
            shape.extend(std::iter::repeat_n(1, rank - 2));
        }
        if p.batched {
            let lead = std::iter::repeat_n(1, rank - shape.len());
            shape = std::iter::once(p.tensor.shape()[0]).chain(lead).chain(shape.iter().copied()).collect();
        }
        primitives::reshape(&p.tensor, &shape)
    }
}

impl Vjp for Normalize {
    fn node_name(&self) -> Name {
        match self.kind {
            NormKind::Layer(_) => "NativeLayerNormBackward0",
            NormKind::Group(_) => "NativeGroupNormBackward0",
            NormKind::Batch { .. } => "NativeBatchNormBackward0",
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let [weight, bias] = self.params().map(|at| at.map_or(SavedAttribute::Nothing, SavedAttribute::Input));
        let mut all: SavedAttributes = smallvec![
            ("input", SavedAttribute::Input(0)),
            ("weight", weight),
            ("result1", SavedAttribute::Output(1)),
            ("result2", SavedAttribute::Output(2)),
        ];
        match &self.kind {
            NormKind::Layer(normalized) => all.extend([("bias", bias), ("normalized_shape", SavedAttribute::sizes(normalized))]),
            NormKind::Group(groups) => all.extend([
                ("N", SavedAttribute::at(self.shape[0])),
                ("C", SavedAttribute::at(self.shape[1])),
                ("HxW", SavedAttribute::at(self.shape[2..].iter().product())),
                ("group", SavedAttribute::at(*groups)),
                ("eps", SavedAttribute::Number(Scalar::Float(self.eps))),
            ]),
            NormKind::Batch { training } => {
                let at = |i: usize| if *training { SavedAttribute::Nothing } else { SavedAttribute::Input(self.given_at() + i) };
                all.extend([
                    ("running_mean", at(0)),
                    ("running_var", at(1)),
                    ("training", SavedAttribute::Bool(*training)),
                    ("eps", SavedAttribute::Number(Scalar::Float(self.eps))),
                ]);
            }
        }
        all
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let mut grads = Grads::from_elem(None, cx.node.edges().len());
        let Operands { x, weight, given } = self.saved(cx)?;
        let (narrow, converted) = (g.dtype(), if self.mixed { Some(self.wide(g)?) } else { None });
        let g = converted.as_ref().unwrap_or(g);
        let params = self.params();
        let wanted = params.map(|at| at.filter(|i| cx.needs(*i)));
        let stats = match &given {
            Some(given) => given.clone(),
            None => [cx.output(1)?, cx.output(2)?],
        };
        let bare = [Some(g), Some(&x), weight.as_ref(), Some(&stats[0]), Some(&stats[1])].into_iter().flatten().all(Tensor::is_bare);
        if !mode::is_grad_enabled() && bare {
            // The gradient is not recorded: one or two passes over memory.
            let rstd = if given.is_some() { pw::rsqrt(&pw::add(&stats[1], self.eps)?)? } else { stats[1].clone() };
            let needs_params = wanted.iter().any(Option::is_some);
            let weight = weight.map(|w| w.array()).transpose()?;
            // Before another handle of its memory is made. What was converted belongs to nobody else.
            let over = self.mixed && narrow.is_half() || cx.may_write_over(g)?;
            let made =
                self.gradients((&g.array()?, over), &x.array()?, weight.as_ref(), [&stats[0].array()?, &rstd.array()?], needs_params)?;
            for (at, made) in std::iter::once(Some(0)).chain(wanted).zip(made) {
                if let Some(at) = at {
                    let made = if at == 0 { made.cast(narrow)? } else { made.with_layout(Layout::contiguous(&self.param_shape()))? };
                    grads[at] = Some(Tensor::new(made));
                }
            }
            return Ok(grads);
        }
        let parts = self.standardized(&x, given.as_ref())?;
        let g = parts.see(g)?;
        if cx.needs(0) {
            let weighted = match &weight {
                Some(w) => pw::mul(&g, &parts.param(w)?)?,
                None => g.clone(),
            };
            grads[0] = Some(primitives::cast(&primitives::reshape(&parts.derivative(&weighted)?, &x.shape())?, narrow)?);
        }
        let summed = |t: &Tensor| primitives::reshape(&sum(t, Some(parts.summed), false, None)?, &self.param_shape());
        if let Some(i) = wanted[0] {
            grads[i] = Some(summed(&pw::mul(&g, &parts.xhat)?)?);
        }
        if let Some(i) = wanted[1] {
            grads[i] = Some(summed(&g)?);
        }
        Ok(grads)
    }
}

impl Normalize {
    fn param_shape(&self) -> Dims {
        match &self.kind {
            NormKind::Layer(normalized) => normalized.clone(),
            _ => Dims::from_slice(&[self.shape[1]]),
        }
    }
}

impl Normalize {
    /// The outputs, from elements and parameters of one dtype.
    fn computed(&self, x: &Array, rest: &[&Array]) -> Result<Arrays> {
        let dtype = x.dtype();
        let stats = self.stats_shape(x.shape());
        let training = matches!(self.kind, NormKind::Batch { training: true });
        let empty = |shape: &[usize]| x.empty_beside(shape, dtype);
        if x.numel() == 0 {
            let zeros = || x.full_beside(&stats, Scalar::Int(0), dtype);
            let mut made: Arrays = smallvec![empty(x.shape())?, zeros()?, zeros()?];
            if training {
                made.push(zeros()?);
            }
            return Ok(made);
        }
        let (rows, shape, channels_last) = self.rows(x)?;
        let rest = rest.iter().map(|a| a.contiguous()).collect::<Result<SmallVec<[Array; 4]>>>()?;
        let (weight, bias) = (self.weight, self.bias);
        let affine = usize::from(weight) + usize::from(bias);
        let to = Dims::from_slice(rows.shape());
        let mut operands: SmallVec<[&Array; 5]> = smallvec![&rows];
        let mut made: Arrays = if self.is_given() {
            operands.extend(&rest[affine..]);
            operands.extend(&rest[..affine]);
            let y = Array::request1(self.request(NormPass::Apply { weight, bias }, shape), &operands, &to, dtype)?;
            smallvec![y, empty(&stats)?, empty(&stats)?]
        } else {
            operands.extend(&rest);
            let outs = [(&to[..], dtype), (&stats[..], dtype), (&stats[..], dtype), (&stats[..], dtype)];
            let outs = if training { &outs[..] } else { &outs[..3] };
            Array::request(self.request(NormPass::Forward { weight, bias }, shape), &operands, outs)?.into_iter().collect()
        };
        made[0] = self.ordered(made[0].clone(), x, channels_last.is_some())?;
        Ok(made)
    }
}

impl Op for Normalize {
    fn name(&self) -> &'static str {
        match self.kind {
            NormKind::Layer(_) => "layer_norm",
            NormKind::Group(_) => "group_norm",
            NormKind::Batch { .. } => "batch_norm",
        }
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        if self.mixed {
            let mut made = self.computed(&ins[0].cast(DType::F32)?, &ins[1..])?;
            made[0] = made[0].cast(ins[0].dtype())?;
            return Ok(made);
        }
        self.computed(ins[0], &ins[1..])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        let mut saves = Saves::NOTHING.input(0).output(1).output(2);
        if self.weight {
            saves = saves.input(1);
        }
        if let (NormKind::Layer(_), Some(at)) = (&self.kind, self.params()[1]) {
            // The bias, too, as PyTorch does.
            saves = saves.input(at);
        }
        if self.is_given() {
            saves = saves.input(self.given_at()).input(self.given_at() + 1);
        }
        saves
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let at = self.given_at();
        let given = self.is_given().then(|| [cx.primal(at).clone(), cx.primal(at + 1).clone()]);
        let x = &self.wide(cx.primal(0))?;
        let parts = self.standardized(x, given.as_ref())?;
        let [weight, bias] = self.params();
        let mut sum: Option<Tensor> = None;
        let mut add = |t: Tensor| -> Result<()> {
            sum = Some(match &sum {
                Some(s) => pw::add(s, &t)?,
                None => t,
            });
            Ok(())
        };
        if let Some(t) = cx.tangent(0) {
            let t = parts.derivative(&parts.see(&self.wide(t)?)?)?;
            add(match weight {
                Some(w) => pw::mul(&t, &parts.param(cx.primal(w))?)?,
                None => t,
            })?;
        }
        if let Some(t) = weight.and_then(|w| cx.tangent(w)) {
            add(pw::mul(&parts.xhat, &parts.param(t)?)?)?;
        }
        if let Some(t) = bias.and_then(|b| cx.tangent(b)) {
            let zero = pw::mul(&parts.xhat, 0.0)?;
            add(pw::add(&zero, &parts.param(t)?)?)?;
        }
        let mut made = Tangents::from_elem(None, if matches!(self.kind, NormKind::Batch { training: true }) { 4 } else { 3 });
        made[0] = sum.map(|t| primitives::cast(&primitives::reshape(&t, &x.shape())?, cx.primal(0).dtype())).transpose()?;
        Ok(made)
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        Some(self.batched(batch))
    }
}
