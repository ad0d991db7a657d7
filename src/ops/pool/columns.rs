//! `unfold`: the windows of an image as columns, and its adjoint `fold`. Each is the other's derivative.

use super::{Windows, check_size, no_kernel};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Name, Op, Tangent, Tensor, Vjp, VjpCx, apply1_growing, primitives};
use crate::call::{PoolPass, WindowAxis};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::ops::reduce::one;
use crate::ops::{complex, pointwise as pw};
use smallvec::smallvec;

/// (.., C, H, W) to (.., C * positions in a window, windows), or back.
#[derive(Debug, Clone)]
struct Columns {
    windows: Windows,
    back: bool,
}

impl Columns {
    fn kernel(&self) -> usize {
        self.windows.axes.iter().map(|a| a.kernel).product()
    }

    fn sizes(&self, of: impl Fn(&WindowAxis) -> usize) -> SavedAttribute {
        SavedAttribute::sizes(&[of(&self.windows.axes[1]), of(&self.windows.axes[2])])
    }
}

impl Vjp for Columns {
    fn node_name(&self) -> Name {
        if self.back { "Col2ImBackward0" } else { "Im2ColBackward0" }.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut all: SavedAttributes = smallvec![
            ("dilation", self.sizes(|a| a.dilation)),
            ("kernel_size", self.sizes(|a| a.kernel)),
            ("padding", self.sizes(|a| a.pad)),
            ("stride", self.sizes(|a| a.stride)),
        ];
        if !self.back {
            all.push(("self_sym_argsize_minus_1", SavedAttribute::at(self.windows.axes[2].input)));
            all.push(("self_sym_argsize_minus_2", SavedAttribute::at(self.windows.axes[1].input)));
        }
        all
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(one(apply1_growing(&Columns { back: !self.back, ..self.clone() }, &[g])?))
    }
}

impl Op for Columns {
    fn name(&self) -> &'static str {
        if self.back { "col2im" } else { "im2col" }
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let x = ins[0].contiguous()?;
        let [_, h, w] = self.windows.axes;
        let (mut lead, kernel) = (Dims::from_slice(&x.shape()[..x.rank() - 2 - usize::from(!self.back)]), self.kernel());
        let channels = x.shape()[lead.len()];
        if self.back {
            lead.extend([channels / kernel, h.input, w.input]);
        } else {
            lead.extend([channels * kernel, h.output * w.output]);
        }
        // What counts is the number of planes.
        let planes: usize = if self.back { lead[..lead.len() - 2].iter().product() } else { x.shape()[..x.rank() - 2].iter().product() };
        let request = self.windows.request(if self.back { PoolPass::Fold } else { PoolPass::Unfold }, &[planes, 1, 1]);
        Ok(smallvec![Array::request1(request, &[&x], &lead, x.dtype())?])
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        // A plane for each channel of the image.
        let channels = inputs[0].shape()[..inputs[0].rank() - 2].iter().product::<usize>();
        let planes = if self.back { channels.saturating_mul(inputs[0].shape()[inputs[0].rank() - 2]) } else { channels };
        self.windows.work(&[planes, 1, 1])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
}

fn two(name: &str, given: &[i64]) -> Result<[i64; 2]> {
    match given {
        [n] => Ok([*n, *n]),
        [a, b] => Ok([*a, *b]),
        _ => Err(Error::runtime(format!("It is expected {name} equals to 2, but got size {}", given.len()))),
    }
}

/// Kernel, dilation, padding, stride: height and width of each.
struct ColumnArgs {
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
}

impl ColumnArgs {
    fn new([kernel, dilation, padding, stride]: [&[i64]; 4]) -> Result<ColumnArgs> {
        let args = ColumnArgs {
            kernel: two("kernel_size", kernel)?,
            dilation: two("dilation", dilation)?,
            padding: two("padding", padding)?,
            stride: two("stride", stride)?,
        };
        for (what, word, of) in
            [("kernel size", "kernel", args.kernel), ("dilation", "dilation", args.dilation), ("stride", "stride", args.stride)]
        {
            if of.iter().any(|n| *n <= 0) {
                return Err(Error::runtime(format!(
                    "{what} should be greater than zero, but got {word}_height: {} {word}_width: {}",
                    of[0], of[1]
                )));
            }
        }
        if args.padding.iter().any(|n| *n < 0) {
            let [h, w] = args.padding;
            return Err(Error::runtime(format!("padding should be non-negative, but got pad_height: {h} pad_width: {w}")));
        }
        Ok(args)
    }

    /// How many windows there are along an axis.
    fn output(&self, a: usize, input: i64) -> i128 {
        let [kernel, dilation, padding, stride] = [self.kernel, self.dilation, self.padding, self.stride].map(|of| i128::from(of[a]));
        (i128::from(input) + 2 * padding - dilation * (kernel - 1) - 1).div_euclid(stride) + 1
    }

    fn shown(&self) -> String {
        let pair = |of: [i64; 2]| format!("({}, {})", of[0], of[1]);
        format!("kernel_size={}, dilation={}, padding={}", pair(self.kernel), pair(self.dilation), pair(self.padding))
    }

    fn windows(&self, op: &'static str, image: [i64; 2]) -> Result<Windows> {
        let mut axes = [WindowAxis::ONE; 3];
        for (a, input) in image.into_iter().enumerate() {
            let (kernel, dilation) = (self.kernel[a] as usize, self.dilation[a] as usize);
            let (output, stride) = (usize::try_from(self.output(a, input)).unwrap_or(usize::MAX), self.stride[a] as usize);
            let reach = output.checked_mul(stride).and_then(|n| n.checked_add(kernel.checked_mul(dilation)?));
            if reach.is_none_or(|n| n >= 1 << 62) {
                return Err(Error::runtime(format!("{op}: the windows are too large")));
            }
            axes[a + 1] =
                WindowAxis { input: input as usize, output, kernel, stride, pad: self.padding[a] as usize, dilation, adaptive: false };
        }
        Ok(Windows { op, axes, spatial: 2 })
    }
}

/// What `of` makes of both parts of complex numbers.
fn of_parts(x: &Tensor, of: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    complex::complex(&of(&primitives::part(x, false)?)?, &of(&primitives::part(x, true)?)?)
}

/// The windows of an image (.., C, H, W) as columns (.., C * positions in a window, windows).
pub fn unfold(x: &Tensor, kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Tensor> {
    let args = ColumnArgs::new([kernel, dilation, padding, stride])?;
    let shape = x.shape();
    if !matches!(shape.len(), 3 | 4) || shape[shape.len() - 3..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
            fmt_shape(&shape)
        )));
    }
    let image = [shape[shape.len() - 2] as i64, shape[shape.len() - 1] as i64];
    let [h, w] = [0, 1].map(|a| args.output(a, image[a]));
    if h < 1 || w < 1 {
        return Err(Error::runtime(format!(
            "Given input with spatial size ({}, {}), {}, calculated shape of the array of sliding blocks as ({h}, {w}), but its components \
             must be at least one.",
            image[0],
            image[1],
            args.shown()
        )));
    }
    if x.dtype().is_complex() {
        return of_parts(x, |part| unfold(part, kernel, dilation, padding, stride));
    }
    if !x.dtype().is_float() && x.dtype() != DType::Bool {
        return Err(no_kernel("im2col_out_cpu", x.dtype()));
    }
    let op = Columns { windows: args.windows("im2col", image)?, back: false };
    let axes = &op.windows.axes;
    check_size(&[x.numel() / (axes[1].input * axes[2].input), axes[1].kernel, axes[2].kernel, axes[1].output, axes[2].output])?;
    apply1_growing(&op, &[x])
}

/// The sum of windows that are columns (.., C * positions in a window, windows), each at its place in an image of this size.
pub fn fold(x: &Tensor, output: &[i64], kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Tensor> {
    let image = two("output_size", output)?;
    let args = ColumnArgs::new([kernel, dilation, padding, stride])?;
    let shape = x.shape();
    let rank = shape.len();
    if !matches!(rank, 2 | 3) || shape[rank - 2..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}",
            fmt_shape(&shape)
        )));
    }
    let (channels, count, positions) = (shape[rank - 2], shape[rank - 1], i128::from(args.kernel[0]) * i128::from(args.kernel[1]));
    if channels as i128 % positions != 0 {
        return Err(Error::runtime(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={channels} and \
             kernel_size=({}, {}).",
            args.kernel[0], args.kernel[1]
        )));
    }
    let [h, w] = [0, 1].map(|a| args.output(a, image[a]));
    if h < 1 || w < 1 || h * w != count as i128 || image.iter().any(|n| *n < 1) {
        return Err(Error::runtime(format!(
            "Given output_size=({}, {}), {}, stride=({}, {}), expected size of input's dimension 2 to match the calculated number of sliding \
             blocks {h} * {w} = {}, but got input.size(2)={count}.",
            image[0],
            image[1],
            args.shown(),
            args.stride[0],
            args.stride[1],
            h.saturating_mul(w)
        )));
    }
    let op = Columns { windows: args.windows("col2im", image)?, back: true };
    check_size(&[x.numel(), image[0] as usize, image[1] as usize])?;
    match x.dtype() {
        // Sums of bool are true where one of the summands is.
        DType::Bool => pw::ne(&apply1_growing(&op, &[&primitives::cast(x, DType::F32)?])?, Scalar::Int(0)),
        d if d.is_float() => apply1_growing(&op, &[x]),
        d if d.is_complex() => of_parts(x, |part| fold(part, output, kernel, dilation, padding, stride)),
        d => Err(no_kernel("col2im_out_cpu", d)),
    }
}
