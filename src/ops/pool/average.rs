//! Means over windows. They are linear: a transposed pass is the gradient, and each is the other's derivative.

use super::shape::{Sizes, WindowArgs, adaptive_axes, check_rank_1d, one_size, window_axes};
use super::{Windows, check_size, no_kernel};
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Name, Op, Saves, Tangent, Tensor, Vjp, VjpCx, apply1_growing};
use crate::call::{PoolDivisor, PoolPass};
use crate::error::{Error, Result};
use crate::layout::DType;
use crate::ops::reduce::{mean, one};
use crate::ops::shape::{squeeze_dim, unsqueeze};
use smallvec::{SmallVec, smallvec};

/// Which function it is.
#[derive(Debug, Clone)]
enum MeanKind {
    Regular { args: WindowArgs, include_pad: bool, divisor: Option<i64> },
    Adaptive,
}

#[derive(Debug, Clone)]
struct MeanPool {
    windows: Windows,
    kind: MeanKind,
    transposed: bool,
}

impl MeanPool {
    fn divisor(&self) -> PoolDivisor {
        match self.kind {
            MeanKind::Regular { divisor: Some(n), .. } => PoolDivisor::Fixed(n),
            MeanKind::Regular { include_pad: true, .. } => PoolDivisor::Padded,
            MeanKind::Regular { .. } | MeanKind::Adaptive => PoolDivisor::Inside,
        }
    }
}

impl Vjp for MeanPool {
    fn node_name(&self) -> Name {
        match (&self.kind, self.windows.spatial == 2, self.transposed) {
            (MeanKind::Regular { .. }, true, false) => "AvgPool2DBackward0",
            (MeanKind::Regular { .. }, true, true) => "AvgPool2DBackwardBackward0",
            (MeanKind::Regular { .. }, false, false) => "AvgPool3DBackward0",
            (MeanKind::Regular { .. }, false, true) => "AvgPool3DBackwardBackward0",
            (MeanKind::Adaptive, true, false) => "AdaptiveAvgPool2DBackward0",
            (MeanKind::Adaptive, true, true) => "AdaptiveAvgPool2DBackwardBackward0",
            (MeanKind::Adaptive, false, false) => "AdaptiveAvgPool3DBackward0",
            (MeanKind::Adaptive, false, true) => "AdaptiveAvgPool3DBackwardBackward0",
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        if self.transposed {
            return SavedAttributes::new();
        }
        let mut all: SavedAttributes = smallvec![("self", SavedAttribute::Input(0))];
        if let MeanKind::Regular { args, include_pad, divisor } = &self.kind {
            all.extend([
                ("kernel_size", SavedAttribute::Ints(args.kernel.clone())),
                ("stride", SavedAttribute::Ints(args.stride.clone())),
                ("padding", SavedAttribute::Ints(args.padding.clone())),
                ("ceil_mode", SavedAttribute::Bool(args.ceil)),
                ("count_include_pad", SavedAttribute::Bool(*include_pad)),
                ("divisor_override", divisor.map_or(SavedAttribute::Nothing, SavedAttribute::Int)),
            ]);
        }
        all
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(one(apply1_growing(&MeanPool { transposed: !self.transposed, ..self.clone() }, &[g])?))
    }
}

impl Op for MeanPool {
    fn name(&self) -> &'static str {
        self.windows.op
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let pass = if self.transposed { PoolPass::AverageAdjoint(self.divisor()) } else { PoolPass::Average(self.divisor()) };
        let made = self.windows.linear(pass, ins[0], self.transposed)?;
        // As in PyTorch, whose means of volumes are row-major.
        Ok(smallvec![if self.windows.spatial == 2 { made.in_format_of(ins[0])? } else { made }])
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        self.windows.work(inputs[0].shape())
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        // As PyTorch, whose backward reads its shape.
        if self.transposed { Saves::NOTHING } else { Saves::NOTHING.input(0) }
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
}

/// The means of windows over the last `n` dimensions (2 or 3). `sizes`: kernel, stride, padding.
pub fn avg_pool(n: usize, x: &Tensor, sizes: [&[i64]; 3], ceil: bool, include_pad: bool, divisor: Option<i64>) -> Result<Tensor> {
    let name = if n == 3 { "avg_pool3d" } else { "avg_pool2d" };
    let args = WindowArgs::new(name, n, sizes, None, ceil)?;
    if divisor == Some(0) {
        return Err(Error::runtime("divisor must be not zero"));
    }
    let cast = (n == 3).then(|| autocast::widen([x])).transpose()?;
    let x = cast.as_ref().map_or(x, |cast| cast.of([x])[0]);
    let axes = window_axes(name, &x.shape(), &args)?;
    if !x.dtype().is_float() && x.dtype() != DType::I64 {
        return Err(no_kernel(if n == 3 { "avg_pool3d_out_frame" } else { name }, x.dtype()));
    }
    let windows = Windows { op: name, axes, spatial: n };
    check_size(&windows.output_shape(&x.shape()))?;
    apply1_growing(&MeanPool { windows, kind: MeanKind::Regular { args, include_pad, divisor }, transposed: false }, &[x])
}

/// As `avg_pool`, over the last dimension.
pub(super) fn avg_pool1d(x: &Tensor, [kernel, stride, padding]: [&[i64]; 3], ceil: bool, include_pad: bool) -> Result<Tensor> {
    check_rank_1d("avg_pool1d", x)?;
    let one = |argument: &str, given: &[i64]| one_size("avg_pool1d", argument, given);
    let (kernel, own) = ([1, one("kernel_size", kernel)?], [1, if stride.is_empty() { 1 } else { one("stride", stride)? }]);
    let stride: &[i64] = if stride.is_empty() { &[] } else { &own };
    let padding = [0, one("padding", padding)?];
    squeeze_dim(&avg_pool(2, &unsqueeze(x, -2)?, [&kernel, stride, &padding], ceil, include_pad, None)?, -2)
}

/// The means of windows that divide the last `n` dimensions.
pub fn adaptive_avg_pool(n: usize, x: &Tensor, output: &[i64]) -> Result<Tensor> {
    let name = if n == 3 { "adaptive_avg_pool3d" } else { "adaptive_avg_pool2d" };
    let cast = (n == 3).then(|| autocast::widen([x])).transpose()?;
    let x = cast.as_ref().map_or(x, |cast| cast.of([x])[0]);
    let output: Sizes = if output.len() == 1 { Sizes::from_elem(output[0], n) } else { Sizes::from_slice(output) };
    if output.len() == n && output.iter().all(|o| *o == 1) && matches!(x.rank().wrapping_sub(n), 1 | 2) {
        // As in PyTorch, the mean of everything is that operation.
        let over: SmallVec<[i64; 3]> = (1..=n as i64).map(|d| -d).collect();
        return mean(x, Some(&over), true, None);
    }
    let axes = adaptive_axes(name, &x.shape(), n, &output)?;
    if !x.dtype().is_float() {
        return Err(no_kernel(if n == 3 { "adaptive_avg_pool3d_cpu" } else { name }, x.dtype()));
    }
    let windows = Windows { op: name, axes, spatial: n };
    check_size(&windows.output_shape(&x.shape()))?;
    apply1_growing(&MeanPool { windows, kind: MeanKind::Adaptive, transposed: false }, &[x])
}

/// As `adaptive_avg_pool`, over the last dimension.
pub(super) fn adaptive_avg_pool1d(x: &Tensor, output: &[i64]) -> Result<Tensor> {
    check_rank_1d("adaptive_avg_pool1d", x)?;
    let size = one_size("adaptive_avg_pool1d", "output_size", output)?;
    squeeze_dim(&adaptive_avg_pool(2, &unsqueeze(x, -2)?, &[1, size])?, -2)
}
