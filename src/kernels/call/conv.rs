//! Convolution, which is linear in each of two operands: the sum of the products of a weight with each patch of the input, and its adjoints.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen};
use crate::layout::DType;

/// x is (batch, groups * in_channels, input), the weight (groups * out_channels, in_channels, kernel), y (batch, groups * out_channels, output).
/// All are row-major and of one dtype: integers, which wrap around, or floats, of which those of 16 bits are added up in float32 and rounded once.
///
/// Position `k` of the kernel meets output `o` at input `o * stride + k * dilation - padding`, along each dimension. An input position outside is
/// a zero. The sizes of input and output need not follow from each other: y may have fewer positions than fit, as the gradient of a transposed
/// convolution with output padding has, and sizes may be 0.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Conv {
    pub op: &'static str,
    pub pass: ConvPass,
    pub shape: ConvShape,
}

/// What is computed of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvPass {
    /// Of x, the weight, perhaps the bias (one for each channel of y): y.
    Forward { bias: bool },
    /// Of the gradient of y, the weight, perhaps a bias (one for each channel of x): the gradient of x. It is the forward pass of a transposed
    /// convolution, too.
    Input { bias: bool },
    /// Of the gradient of y, x: the gradient of the weight.
    Weight,
}

/// The sizes. There are always three spatial dimensions: missing ones lead, with size 1, kernel 1, stride 1, dilation 1 and padding 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvShape {
    pub batch: usize,
    pub groups: usize,
    /// Of each group.
    pub in_channels: usize,
    /// Of each group.
    pub out_channels: usize,
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
    pub padding: [usize; 3],
}

fn product(sizes: &[usize]) -> Option<usize> {
    // Without the zeros: the parts of an empty tensor's size must not overflow either.
    sizes.iter().filter(|n| **n > 0).try_fold(1usize, |n, k| n.checked_mul(*k)).map(|n| if sizes.contains(&0) { 0 } else { n })
}

impl ConvShape {
    /// The elements of x, the weight and y; None if there are too many.
    pub fn numels(&self) -> Option<[usize; 3]> {
        let ConvShape { batch, groups, in_channels, out_channels, input: i, output: o, kernel: k, .. } = *self;
        Some([
            product(&[batch, groups, in_channels, i[0], i[1], i[2]])?,
            product(&[groups, out_channels, in_channels, k[0], k[1], k[2]])?,
            product(&[batch, groups, out_channels, o[0], o[1], o[2]])?,
        ])
    }

    /// The products that are added up, those with padding included.
    pub fn multiply_adds(&self) -> usize {
        let sizes = [self.batch, self.groups, self.in_channels, self.out_channels];
        sizes.iter().chain(&self.kernel).chain(&self.output).fold(1, |n, k| n.saturating_mul(*k))
    }

    /// Whether all positions, inside and outside of the input, are numbers of isize.
    fn has_positions(&self) -> bool {
        (0..3).all(|d| {
            let reach = |n: usize, step: usize| n.saturating_sub(1).checked_mul(step);
            let last = reach(self.output[d], self.stride[d])
                .zip(reach(self.kernel[d], self.dilation[d]))
                .and_then(|(o, k)| o.checked_add(k)?.checked_add(self.padding[d])?.checked_add(self.input[d]));
            self.stride[d] > 0 && self.dilation[d] > 0 && last.is_some_and(|last| isize::try_from(last).is_ok())
        })
    }
}

impl Family for Conv {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        Elems::real_numbers("a convolution of complex numbers is one of their parts, and PyTorch has none of bool")
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some(out)], Some([x, w, y])) = (outs, self.shape.numels()) else { return false };
        let s = &self.shape;
        let (wanted, bias, made) = match self.pass {
            ConvPass::Forward { bias } => ([x, w], bias.then_some(s.out_channels), y),
            ConvPass::Input { bias } => ([y, w], bias.then_some(s.in_channels), x),
            ConvPass::Weight => ([y, x], None, w),
        };
        let dtype = out.1;
        let fits = |seen: &Seen<'_>, n: usize| seen.is_some_and(|(s, d)| d == dtype && product(s) == Some(n));
        dtype != DType::Bool
            && s.has_positions()
            && fits(&Some(*out), made)
            && ins.len() == 2 + usize::from(bias.is_some())
            && ins.iter().zip(wanted).all(|(i, n)| fits(i, n))
            && bias.is_none_or(|channels| channels.checked_mul(s.groups).is_some_and(|n| fits(&ins[2], n)))
    }

    fn work(&self, _ins: &[Seen<'_>], _outs: &[Seen<'_>]) -> u64 {
        self.shape.multiply_adds() as u64
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        if matches!(self.pass, ConvPass::Weight) { Flags::NONE } else { Flags::EPILOGUE }
    }

    fn samples() -> Vec<Self> {
        let one = [1; 3];
        let shape = ConvShape {
            batch: 1,
            groups: 1,
            in_channels: 1,
            out_channels: 1,
            input: one,
            output: one,
            kernel: one,
            stride: one,
            dilation: one,
            padding: [0; 3],
        };
        vec![Conv { op: "convolution", pass: ConvPass::Forward { bias: false }, shape }]
    }
}
