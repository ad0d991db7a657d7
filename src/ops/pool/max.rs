//! Max pooling: over regular windows, and over windows that divide an axis. The gradient goes to the chosen elements.

use super::shape::{WindowArgs, adaptive_axes, check_rank_1d, one_size, window_axes};
use super::{Windows, check_size, is_host, no_kernel};
use crate::array::{Array, Device, Write};
use crate::autograd::dispatch::autocast;
use crate::autograd::dispatch::flat::with_zero_second;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::graph::saved_hooks;
use crate::autograd::{
    Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangent, Tangents, Tensor, Vjp, VjpCx, apply_growing, apply1_growing, mode, primitives,
};
use crate::call::{Pool, PoolPass};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar};
use crate::ops::gather::gather;
use crate::ops::index::first_of;
use crate::ops::pointwise as pw;
use crate::ops::shape::{squeeze_dim, unsqueeze};
use smallvec::smallvec;

/// Which function it is.
#[derive(Debug, Clone)]
pub(super) enum MaxKind {
    Regular(WindowArgs),
    Adaptive,
    /// Kernel and output size.
    Fractional([super::shape::Sizes; 2]),
}

/// Of x, and for fractional pooling where windows begin: the largest elements and, with `indices`, their positions.
#[derive(Debug, Clone)]
pub(super) struct MaxPool {
    pub windows: Windows,
    pub kind: MaxKind,
    pub indices: bool,
    /// The positions are kept for the gradient alone, as taps (`PoolPass`), one byte each.
    pub taps: bool,
}

impl MaxPool {
    fn node(&self, back: bool) -> &'static str {
        let flat = self.windows.spatial == 2;
        match (&self.kind, flat, back) {
            (MaxKind::Regular(_), true, false) => "MaxPool2DWithIndicesBackward0",
            (MaxKind::Regular(_), true, true) => "MaxPool2DWithIndicesBackwardBackward0",
            (MaxKind::Regular(_), false, false) => "MaxPool3DWithIndicesBackward0",
            (MaxKind::Regular(_), false, true) => "MaxPool3DWithIndicesBackwardBackward0",
            (MaxKind::Adaptive, true, false) => "AdaptiveMaxPool2DBackward0",
            (MaxKind::Adaptive, true, true) => "AdaptiveMaxPool2DBackwardBackward0",
            (MaxKind::Adaptive, false, false) => "AdaptiveMaxPool3DBackward0",
            (MaxKind::Adaptive, false, true) => "AdaptiveMaxPool3DBackwardBackward0",
            (MaxKind::Fractional(_), true, false) => "FractionalMaxPool2DBackward0",
            (MaxKind::Fractional(_), true, true) => "FractionalMaxPool2DBackwardBackward0",
            (MaxKind::Fractional(_), false, false) => "FractionalMaxPool3DBackward0",
            (MaxKind::Fractional(_), false, true) => "FractionalMaxPool3DBackwardBackward0",
        }
    }

    fn is_given(&self) -> bool {
        matches!(self.kind, MaxKind::Fractional(_))
    }

    fn has_taps(&self) -> bool {
        let pass = PoolPass::Max { indices: true, given: false };
        matches!(self.kind, MaxKind::Regular(_)) && Pool { op: self.windows.op, planes: 1, axes: self.windows.axes, pass }.has_taps()
    }

    fn inputs(&self) -> usize {
        1 + usize::from(self.is_given())
    }

    fn adjoint(&self) -> MaxPoolAdjoint {
        MaxPoolAdjoint { windows: self.windows, node: self.node(true), given: self.is_given() }
    }
}

/// The positions that taps stand for; others as they are.
fn positions(windows: &Windows, places: &Tensor) -> Result<Tensor> {
    if places.dtype() != DType::U8 {
        return Ok(places.clone());
    }
    let [d, h, w] = &windows.axes;
    let at = |[i, j, k]: [i64; 3]| (i * h.input as i64 + j) * w.input as i64 + k;
    let sides = [d.kernel, h.kernel, w.kernel];
    let dilation = windows.axes.map(|a| a.dilation as i64);
    let each = |n: usize, inside: usize, of: usize| (n / inside % of) as i64;
    let places_in = |n: usize, [a, b, c]: [usize; 3]| [each(n, b * c, a), each(n, c, b), each(n, 1, c)];
    let distances: Vec<i64> =
        (0..sides.iter().product()).map(|tap| at(std::array::from_fn(|k| places_in(tap, sides)[k] * dilation[k]))).collect();
    let outputs = windows.axes.map(|a| a.output);
    let start = |k: usize, o: i64| windows.axes[k].start(o as usize) as i64;
    let starts: Vec<i64> = (0..outputs.iter().product()).map(|o| at(std::array::from_fn(|k| start(k, places_in(o, outputs)[k])))).collect();
    let table = Tensor::new(Array::from_slice(&distances, &[distances.len()])?);
    let starts = Tensor::new(Array::from_slice(&starts, &outputs[3 - windows.spatial..])?);
    let taps = primitives::reshape(&primitives::cast(places, DType::I64)?, &[places.numel()])?;
    pw::add(&primitives::reshape(&gather(&table, 0, &taps)?, &places.shape())?, &starts)
}

/// The elements of `x` at the positions.
pub(super) fn chosen(x: &Tensor, indices: &Tensor, spatial: usize) -> Result<Tensor> {
    let flat = |t: &Tensor| {
        let shape = t.shape();
        let (lead, plane) = shape.split_at(shape.len() - spatial);
        let flat: Dims = lead.iter().copied().chain([plane.iter().product()]).collect();
        primitives::reshape(t, &flat)
    };
    primitives::reshape(&gather(&flat(x)?, -1, &flat(indices)?)?, &indices.shape())
}

impl Vjp for MaxPool {
    fn node_name(&self) -> Name {
        self.node(false).into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut all: SavedAttributes = smallvec![("self", SavedAttribute::Input(0)), ("result1", SavedAttribute::Output(1))];
        match &self.kind {
            MaxKind::Regular(args) => all.extend([
                ("kernel_size", SavedAttribute::Ints(args.kernel.clone())),
                ("stride", SavedAttribute::Ints(args.stride.clone())),
                ("padding", SavedAttribute::Ints(args.padding.clone())),
                ("dilation", SavedAttribute::Ints(args.dilation.clone())),
                ("ceil_mode", SavedAttribute::Bool(args.ceil)),
            ]),
            MaxKind::Adaptive => {}
            MaxKind::Fractional([kernel, output]) => {
                all.extend([("kernel_size", SavedAttribute::Ints(kernel.clone())), ("output_size", SavedAttribute::Ints(output.clone()))])
            }
        }
        all
    }
    fn shown_output(&self, _j: usize, saved: Tensor) -> Result<Tensor> {
        positions(&self.windows, &saved)
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let adjoint = self.adjoint();
        let made = apply1_growing(&adjoint, &[g, &cx.output(1)?.detach()])?;
        Ok(first_of(Some(with_zero_second(made, || cx.input(0), || adjoint.node_name())?), self.inputs()))
    }
}

impl Op for MaxPool {
    fn name(&self) -> &'static str {
        self.windows.op
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let x = ins[0].contiguous()?;
        let shape = self.windows.output_shape(x.shape());
        let outs = [(&shape[..], x.dtype()), (&shape[..], if self.taps { DType::U8 } else { DType::I64 })];
        let request = self.windows.request(PoolPass::Max { indices: self.indices, given: self.is_given() }, x.shape());
        let outs = if self.indices { &outs[..] } else { &outs[..1] };
        let made = match ins.get(1) {
            Some(starts) => Array::request(request, &[&x, &starts.contiguous()?], outs)?,
            None => Array::request(request, &[&x], outs)?,
        };
        made.into_iter().map(|a| if self.is_given() { Ok(a) } else { a.in_format_of(ins[0]) }).collect()
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        self.windows.work(inputs[0].shape())
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(1)
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let mut made = Tangents::from_elem(None, 2);
        if let Some(t) = cx.tangent(0) {
            made[0] = Some(chosen(t, &positions(&self.windows, cx.output(1))?, self.windows.spatial)?);
        }
        Ok(made)
    }
}

/// The adjoint of choosing: zeros, to which each gradient is added at its position.
#[derive(Debug, Clone)]
pub(super) struct MaxPoolAdjoint {
    windows: Windows,
    node: &'static str,
    given: bool,
}

impl Vjp for MaxPoolAdjoint {
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(first_of(Some(chosen(g, &positions(&self.windows, &cx.input(1)?)?, self.windows.spatial)?), 2))
    }
}

impl Op for MaxPoolAdjoint {
    fn name(&self) -> &'static str {
        self.windows.op
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let (g, indices) = (ins[0].contiguous()?, ins[1].contiguous()?);
        let shape = self.windows.input_shape(g.shape());
        if self.given && !is_host(&g) {
            // The device finds elements by the windows that they are in, which it does not know here.
            let flat = |a: &Array| {
                let (lead, plane) = a.shape().split_at(a.rank() - self.windows.spatial);
                let shape = [lead.iter().product(), plane.iter().product::<usize>()];
                a.with_layout(crate::layout::Layout::contiguous(&shape))
            };
            let to = g.full_beside(&shape, Scalar::Int(0), g.dtype())?;
            flat(&to)?.scatter_into(1, &flat(&indices)?, &flat(&g)?, Write::Add)?;
            return Ok(smallvec![to]);
        }
        let request = self.windows.request(PoolPass::MaxAdjoint, g.shape());
        Ok(smallvec![Array::request1(request, &[&g, &indices], &shape, g.dtype())?.in_format_of(ins[0])?])
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        self.windows.work(inputs[0].shape())
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(1)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
}

/// Values and, if they are asked for or a gradient needs them, positions.
pub(super) fn run(mut op: MaxPool, x: &Tensor, starts: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)> {
    check_size(&op.windows.output_shape(&x.shape()))?;
    let has_history = !x.is_bare() || mode::is_grad_enabled() && x.requires_grad();
    if has_history && !op.indices {
        op.indices = true;
        // Hooks see what PyTorch packs: positions.
        op.taps = op.has_taps() && x.device() == Device::CPU && saved_hooks::current().is_none();
    }
    let mut made: Outputs = match starts {
        Some(s) => apply_growing(&op, &[x, s])?,
        None => apply_growing(&op, &[x])?,
    };
    let indices = if op.indices { made.pop() } else { None };
    let values = made.pop().ok_or_else(|| Error::internal(op.windows.op, "there is no result"))?;
    Ok((values, indices))
}

/// The largest elements of windows over the last `n` dimensions (2 or 3). `sizes`: kernel, stride, padding, dilation.
pub fn max_pool(
    n: usize,
    x: &Tensor,
    [kernel, stride, padding, dilation]: [&[i64]; 4],
    ceil: bool,
    indices: bool,
) -> Result<(Tensor, Option<Tensor>)> {
    let name = if n == 3 { "max_pool3d" } else { "max_pool2d" };
    let args = WindowArgs::new(name, n, [kernel, stride, padding], Some(dilation), ceil)?;
    // As in PyTorch, the function that gives positions is not listed.
    let cast = (n == 3 && !indices).then(|| autocast::widen([x])).transpose()?;
    let x = cast.as_ref().map_or(x, |cast| cast.of([x])[0]);
    let axes = window_axes(name, &x.shape(), &args)?;
    if x.dtype() == DType::Bool {
        return Err(no_kernel(name, x.dtype()));
    }
    run(MaxPool { windows: Windows { op: name, axes, spatial: n }, kind: MaxKind::Regular(args), indices, taps: false }, x, None)
}

/// As `max_pool`, over the last dimension.
pub fn max_pool1d(
    x: &Tensor,
    [kernel, stride, padding, dilation]: [&[i64]; 4],
    ceil: bool,
    indices: bool,
) -> Result<(Tensor, Option<Tensor>)> {
    if indices {
        check_rank_1d("max_pool1d", x)?;
    } else {
        check_1d(x, [kernel, stride, padding, dilation], ceil)?;
    }
    let one = |argument: &str, given: &[i64]| one_size("max_pool1d", argument, given);
    let (kernel, own) = ([1, one("kernel_size", kernel)?], [1, if stride.is_empty() { 1 } else { one("stride", stride)? }]);
    let stride: &[i64] = if stride.is_empty() { &[] } else { &own };
    let (padding, dilation) = ([0, one("padding", padding)?], [1, one("dilation", dilation)?]);
    let (y, at) = max_pool(2, &unsqueeze(x, -2)?, [&kernel, stride, &padding, &dilation], ceil, indices)?;
    Ok((squeeze_dim(&y, -2)?, at.map(|at| squeeze_dim(&at, -2)).transpose()?))
}

/// The checks of PyTorch's function without positions, in its order.
fn check_1d(x: &Tensor, [kernel, stride, padding, dilation]: [&[i64]; 4], ceil: bool) -> Result<()> {
    let refuse = |what: String| Err(Error::runtime(format!("max_pool1d(){what}")));
    let shape = x.shape();
    let rank = shape.len();
    if !matches!(rank, 2 | 3) || shape[rank - 2..].iter().rev().take(rank - 1).any(|s| *s == 0) {
        return Err(Error::runtime(format!(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{}",
            crate::layout::fmt_shape(&shape)
        )));
    }
    for (name, given, optional) in
        [("kernel_size", kernel, false), ("stride", stride, true), ("padding", padding, false), ("dilation", dilation, false)]
    {
        if given.len() != 1 && !(optional && given.is_empty()) {
            return refuse(format!(" {name} must be an int, list of ints or tuple of ints of size 1 but got size {}", given.len()));
        }
    }
    let (k, p, d) = (kernel[0], padding[0], dilation[0]);
    let s = stride.first().copied().unwrap_or(k);
    for (name, v) in [("kernel_size", k), ("stride", s)] {
        if v <= 0 {
            return refuse(format!(" {name} must be greater than zero, but got {v}"));
        }
    }
    if p < 0 {
        return refuse(format!(" padding must be non-negative, but got {p}"));
    }
    if p > k / 2 {
        return refuse(format!(" padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"));
    }
    if d <= 0 {
        return refuse(format!(" dilation must be greater than zero, but got {d}"));
    }
    let args = WindowArgs::new("max_pool1d", 1, [kernel, stride, padding], Some(dilation), ceil)?;
    let output = args.output(0, shape[rank - 1])?;
    if output <= 0 {
        return refuse(format!(" Invalid computed output size: {output}"));
    }
    if !x.dtype().is_float() {
        return Err(no_kernel("max_pool1d_impl", x.dtype()));
    }
    Ok(())
}

/// The largest elements of windows that divide the last `n` dimensions, and their positions.
pub fn adaptive_max_pool(n: usize, x: &Tensor, output: &[i64]) -> Result<(Tensor, Tensor)> {
    let name = if n == 3 { "adaptive_max_pool3d" } else { "adaptive_max_pool2d" };
    let cast = (n == 3).then(|| autocast::widen([x])).transpose()?;
    let x = cast.as_ref().map_or(x, |cast| cast.of([x])[0]);
    let same: super::shape::Sizes;
    let output = if output.len() == 1 {
        same = super::shape::Sizes::from_elem(output[0], n);
        &same[..]
    } else {
        output
    };
    let axes = adaptive_axes(name, &x.shape(), n, output)?;
    if !x.dtype().is_float() {
        return Err(no_kernel(if n == 3 { "adaptive_max_pool3d_cpu" } else { name }, x.dtype()));
    }
    super::both(run(
        MaxPool { windows: Windows { op: name, axes, spatial: n }, kind: MaxKind::Adaptive, indices: true, taps: false },
        x,
        None,
    )?)
}

/// As `adaptive_max_pool`, over the last dimension.
pub fn adaptive_max_pool1d(x: &Tensor, output: &[i64]) -> Result<(Tensor, Tensor)> {
    check_rank_1d("adaptive_max_pool1d", x)?;
    let size = one_size("adaptive_max_pool1d", "output_size", output)?;
    let shape = x.shape();
    if let Some(at) = (shape.len() - 2..shape.len()).find(|d| shape[*d] == 0) {
        return Err(Error::runtime(format!(
            "adaptive_max_pool1d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension \
             {at} being empty",
            crate::layout::fmt_shape(&shape)
        )));
    }
    let (y, at) = adaptive_max_pool(2, &unsqueeze(x, -2)?, &[1, size])?;
    Ok((squeeze_dim(&y, -2)?, squeeze_dim(&at, -2)?))
}
