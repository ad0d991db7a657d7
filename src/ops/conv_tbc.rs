//! `conv_tbc`: a convolution of sequences whose dimensions are time, batch and channels. Not here: the operation on (batch, channels, time),
//! which does the work (`convolve`).

use super::conv::check_dtypes;
use super::convolve::Convolve;
use super::reduce::sum;
use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangents, Tensor, ViewOp, Vjp, VjpCx, apply1, view};
use crate::call::{ConvPass, ConvShape};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, MemoryFormat};
use smallvec::{SmallVec, smallvec};

/// Of an input (time, batch, channels), a weight (kernel, in_channels, out_channels) and a bias.
#[derive(Debug, Clone)]
struct ConvTbc {
    pad: usize,
}

/// The places of dimensions that make (time, batch, channels) (batch, channels, time), and of those that do the reverse; and the order that turns a
/// weight, in both directions.
const INTO: [usize; 3] = [1, 2, 0];
const BACK: [usize; 3] = [2, 0, 1];
const WEIGHT: [usize; 3] = [2, 1, 0];

fn turned(t: &Tensor, order: [usize; 3]) -> Result<Tensor> {
    view(t, ViewOp::Permute(Dims::from_slice(&order)))
}

/// As `turned`, behind a batch dimension.
fn turned_behind(t: &Tensor, order: [usize; 3]) -> Result<Tensor> {
    view(t, ViewOp::Permute(std::iter::once(0).chain(order.map(|d| d + 1)).collect()))
}

impl ConvTbc {
    /// The convolution of (batch, channels, time), for these shapes of input and weight.
    fn inner(&self, sx: &[usize], sw: &[usize], bias: bool) -> Convolve {
        let time = sx[0].saturating_add(self.pad.saturating_mul(2)).saturating_add(1).saturating_sub(sw[0]);
        let shape = ConvShape {
            batch: sx[1],
            groups: 1,
            in_channels: sw[1],
            out_channels: sw[2],
            input: [1, 1, sx[0]],
            output: [1, 1, time],
            kernel: [1, 1, sw[0]],
            stride: [1; 3],
            dilation: [1; 3],
            padding: [0, 0, self.pad],
        };
        let pass = ConvPass::Forward { bias };
        Convolve {
            pass,
            shape,
            dims: 1,
            transposed: false,
            output_padding: smallvec![0],
            is_gradient: false,
            format: MemoryFormat::Contiguous,
        }
    }

    fn composed(&self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        let op = self.inner(&x.shape(), &w.shape(), false);
        turned(&apply1(&op, &[&turned(x, INTO)?, &turned(w, WEIGHT)?])?, BACK)
    }

    fn batched(&self, batch: &BatchedInputs<'_>) -> Result<Outputs> {
        let [x, w, bias] = batch.inputs else { return Err(Error::internal("conv_tbc", "other than three inputs")) };
        let turn = |input: &BatchedInput, order| -> Result<BatchedInput> {
            let tensor = if input.batched { turned_behind(&input.tensor, order) } else { turned(&input.tensor, order) }?;
            Ok(BatchedInput { tensor, batched: input.batched })
        };
        let op = self.inner(&x.shape(), &w.shape(), true);
        let inputs = [turn(x, INTO)?, turn(w, WEIGHT)?, bias.clone()];
        let mut made = op.batched(&BatchedInputs { size: batch.size, inputs: &inputs })?;
        made[0] = turned_behind(&made[0], BACK)?;
        Ok(made)
    }
}

impl Vjp for ConvTbc {
    fn node_name(&self) -> Name {
        "ConvTbcBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("self", SavedAttribute::Input(0)),
            ("weight", SavedAttribute::Input(1)),
            ("bias", SavedAttribute::Input(2)),
            ("pad", SavedAttribute::at(self.pad)),
        ]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (x, w) = (cx.input(0)?, cx.input(1)?);
        let op = self.inner(&x.shape(), &w.shape(), false);
        let y = turned(g, INTO)?;
        let of_x = if cx.needs(0) { Some(turned(&op.gradient(0, &y, &turned(&w, WEIGHT)?)?, BACK)?) } else { None };
        let of_w = if cx.needs(1) { Some(turned(&op.gradient(1, &y, &turned(&x, INTO)?)?, WEIGHT)?) } else { None };
        let of_bias = if cx.needs(2) { Some(sum(g, Some(&[0, 1]), false, None)?) } else { None };
        Ok(smallvec![of_x, of_w, of_bias])
    }
}

impl Op for ConvTbc {
    fn name(&self) -> &'static str {
        "conv_tbc"
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let turned = |a: &Array, order: &[usize; 3]| a.with_layout(a.layout().permute(order));
        let (x, w) = (turned(ins[0], &INTO)?, turned(ins[1], &WEIGHT)?);
        let made = self.inner(ins[0].shape(), ins[1].shape(), true).forward(&[&x, &w, ins[2]])?;
        Ok(smallvec![turned(&made[0], &BACK)?.contiguous_copy()?])
    }
    fn work(&self, ins: &[&Array]) -> usize {
        self.inner(ins[0].shape(), ins[1].shape(), true).work(ins)
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).input(1).input(2)
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let mut parts: SmallVec<[Tensor; 3]> = SmallVec::new();
        if let Some(t) = cx.tangent(0) {
            parts.push(self.composed(t, cx.primal(1))?);
        }
        if let Some(t) = cx.tangent(1) {
            parts.push(self.composed(cx.primal(0), t)?);
        }
        if let Some(t) = cx.tangent(2) {
            let whole = view(t, ViewOp::Expand(cx.output(0).shape()))?;
            parts.push(crate::autograd::primitives::contiguous_copy(&whole)?);
        }
        let mut sum: Option<Tensor> = None;
        for part in parts {
            sum = Some(match sum {
                Some(s) => super::pointwise::add(&s, &part)?,
                None => part,
            });
        }
        Ok(smallvec![sum])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        Some(self.batched(batch))
    }
}

/// A convolution of an input (time, batch, channels) with a weight (kernel, in_channels, out_channels), with `pad` zeros at both ends, and a bias.
pub fn conv_tbc(x: &Tensor, w: &Tensor, bias: &Tensor, pad: i64) -> Result<Tensor> {
    let (sx, sw, sb) = (x.shape(), w.shape(), bias.shape());
    let refuse = |what: &str| Err(Error::runtime(what));
    if sx.len() != 3 {
        return refuse("Input must have 3 dims: time, batch, in_channel");
    }
    if sw.len() != 3 {
        return refuse("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
    }
    if sb.len() != 1 {
        return refuse("Bias must be 1-D");
    }
    if sx[2] != sw[1] {
        return refuse("Input dim 2 (input channels) is not == dim 1 in the weight tensor");
    }
    if sw[2] != sb[0] {
        return refuse("Bias size must equal dim 2 in the weight tensor (output channels).");
    }
    let Ok(pad) = usize::try_from(pad) else { return refuse("negative padding is not supported") };
    let cast = autocast::lower([x, w, bias])?;
    let [x, w, bias] = cast.of([x, w, bias]);
    check_dtypes(x, w, Some(bias))?;
    if x.dtype() == DType::Bool {
        return Err(Error::not_implemented("\"conv_tbc\" not implemented for 'Bool': convert the tensors to a float type"));
    }
    apply1(&ConvTbc { pad }, &[x, w, bias])
}
