//! Windows over the last three dimensions: pooling, and windows as columns (`unfold`) with the adjoint of that (`fold`).

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::DType;
use std::ops::Range;

/// The windows along one axis. Sizes, strides and dilations are positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowAxis {
    pub input: usize,
    pub output: usize,
    pub kernel: usize,
    pub stride: usize,
    /// How far the first window begins before the first element.
    pub pad: usize,
    pub dilation: usize,
    /// The windows divide the axis as evenly as possible. They have a size of their own each; kernel, stride, padding and dilation are 1 or 0.
    pub adaptive: bool,
}

impl WindowAxis {
    /// An axis that is not there.
    pub const ONE: WindowAxis = WindowAxis { input: 1, output: 1, kernel: 1, stride: 1, pad: 0, dilation: 1, adaptive: false };

    /// `output` windows that divide `input` elements.
    pub fn adaptive(input: usize, output: usize) -> WindowAxis {
        WindowAxis { input, output, adaptive: true, ..WindowAxis::ONE }
    }

    /// `output * input`, divided by `of`, without overflow.
    fn share(at: usize, of: usize, size: usize) -> usize {
        at / of * size + ((at % of) as u128 * size as u128 / of as u128) as usize
    }

    /// Where window `o` begins; before 0 inside the padding.
    pub fn start(&self, o: usize) -> isize {
        if self.adaptive { Self::share(o, self.output, self.input) as isize } else { (o * self.stride) as isize - self.pad as isize }
    }

    /// Behind which place window `o` ends; inside the padding where it does.
    pub fn end(&self, o: usize) -> isize {
        self.start(o) + if self.adaptive { self.taps(o).len() } else { (self.kernel - 1) * self.dilation + 1 } as isize
    }

    /// Which positions of window `o`, of `kernel`, lie inside the input.
    pub fn taps(&self, o: usize) -> Range<usize> {
        let start = self.start(o);
        if self.adaptive {
            // The end is rounded up.
            let end = self.input - Self::share(self.output - 1 - o, self.output, self.input);
            return 0..end.saturating_sub(start as usize);
        }
        let low = start.min(0).unsigned_abs().div_ceil(self.dilation).min(self.kernel);
        let inside = (self.input as isize - start).max(0) as usize;
        low..inside.div_ceil(self.dilation).clamp(low, self.kernel)
    }

    /// Whether the windows are regular, and each has an element inside.
    fn reach_inside(&self) -> bool {
        // Others than the first ones and the last begin inside.
        let first = self.pad.div_ceil(self.stride.max(1)).min(self.output);
        !self.adaptive && (0..first).chain(self.output.checked_sub(1)).all(|o| !self.taps(o).is_empty())
    }

    /// How many positions of window `o` lie inside the input or its padding.
    pub fn padded(&self, o: usize) -> usize {
        if self.adaptive {
            return self.taps(o).len();
        }
        let end = (self.input + self.pad) as isize - self.start(o);
        (end.max(0) as usize).min(self.kernel)
    }
}

/// What a sum over a window is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolDivisor {
    /// The elements inside the input.
    Inside,
    /// Those inside the input or its padding.
    Padded,
    Fixed(i64),
}

/// Which pass. Positions are those in a plane, int64. On the CPU they may be taps where `Pool::has_taps`: the number of an element in its window,
/// row-major, uint8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolPass {
    /// Of x: the largest elements, and with `indices` their positions: of equal ones the first, of several nan the last. With `given`, where
    /// each window begins is the second operand: int64, for each plane those of the first axis, of the second, of the third.
    Max { indices: bool, given: bool },
    /// Of values and positions, one for each window: sums of the values at their positions.
    MaxAdjoint,
    /// Of x: the sums over windows, divided.
    Average(PoolDivisor),
    /// The adjoint of `Average`.
    AverageAdjoint(PoolDivisor),
    /// Of x: for each position in a window, the elements of all windows there; 0 in the padding.
    Unfold,
    /// The adjoint of `Unfold`.
    Fold,
}

/// Windows over `planes` arrays, row-major, of the sizes of the axes.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Pool {
    pub op: &'static str,
    pub planes: usize,
    pub axes: [WindowAxis; 3],
    pub pass: PoolPass,
}

fn product(of: impl Iterator<Item = usize>) -> Option<usize> {
    of.into_iter().try_fold(1usize, usize::checked_mul)
}

impl Pool {
    /// The elements of a plane.
    pub fn plane(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    /// The windows of a plane.
    pub fn windows(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// The positions in a window, of windows that are columns.
    pub fn kernel(&self) -> usize {
        self.axes.iter().map(|a| a.kernel).product()
    }

    /// Whether taps can stand for positions: windows are regular, have at most 256 elements, and reach over at least one of the input.
    pub fn has_taps(&self) -> bool {
        let [d, h, w] = &self.axes;
        let shift = self.tap_shift();
        self.axes.iter().all(WindowAxis::reach_inside)
            && product(self.axes.iter().map(|a| a.kernel)).is_some_and(|n| n <= 256)
            && w.input < 1 << 30
            && ((d.kernel * h.kernel) as u64) << shift < 1 << 31
    }

    /// So many bits hold the place of an element along the last axis.
    pub fn tap_shift(&self) -> u32 {
        usize::BITS - self.axes[2].input.leading_zeros()
    }

    /// How many starts of windows there are for each plane.
    pub fn starts(&self) -> usize {
        self.axes.iter().map(|a| a.output).sum()
    }
}

impl Family for Pool {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        match self.pass {
            PoolPass::Max { .. } => Elems::real_numbers("PyTorch has no order of bool here"),
            PoolPass::Average(_) => Elems::floats_and(DType::I64, "defined for floating point and int64"),
            PoolPass::MaxAdjoint | PoolPass::AverageAdjoint(_) | PoolPass::Fold => Elems::FLOATS,
            PoolPass::Unfold => Elems::ALL,
        }
    }

    fn provenance(&self) -> Provenance {
        match self.pass {
            PoolPass::Unfold => Provenance::Moved,
            PoolPass::Max { .. } => Provenance::Selected,
            PoolPass::MaxAdjoint | PoolPass::Average(_) | PoolPass::AverageAdjoint(_) | PoolPass::Fold => Provenance::Computed,
        }
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let is_valid = |a: &WindowAxis| {
            let fits =
                a.output.checked_mul(a.stride).and_then(|n| n.checked_add(a.kernel.checked_mul(a.dilation)?)).is_some_and(|n| n < 1 << 62);
            a.kernel > 0 && a.stride > 0 && a.dilation > 0 && fits && a.input < 1 << 62 && a.pad < 1 << 62 && (!a.adaptive || a.kernel == 1)
        };
        let all = |of: &dyn Fn(&WindowAxis) -> usize| product(self.axes.iter().map(of).chain([self.planes]));
        let (Some(x), Some(y)) = (all(&|a| a.input), all(&|a| a.output)) else { return false };
        let columns = product(self.axes.iter().map(|a| a.kernel)).and_then(|n| n.checked_mul(y));
        let Some((_, dtype)) = outs.first().copied().flatten() else { return false };
        let of = |seen: Option<&Seen<'_>>, n: usize, d: DType| {
            seen.copied().flatten().is_some_and(|(shape, of)| of == d && shape.iter().product::<usize>() == n)
        };
        let counts = |i: usize, o: usize| ins.len() == i && outs.len() == o;
        self.axes.iter().all(is_valid)
            && match self.pass {
                PoolPass::Max { indices, given } => {
                    let regular = self.axes.iter().all(|a| !given || !a.adaptive && a.dilation == 1 && a.kernel <= a.input);
                    let starts = product([self.planes, self.starts()].into_iter());
                    regular
                        && counts(1 + usize::from(given), self.outputs())
                        && of(ins.first(), x, dtype)
                        && of(outs.first(), y, dtype)
                        && (!indices || of(outs.get(1), y, DType::I64) || !given && self.has_taps() && of(outs.get(1), y, DType::U8))
                        && (!given || starts.is_some_and(|n| of(ins.get(1), n, DType::I64)))
                }
                PoolPass::MaxAdjoint => {
                    counts(2, 1)
                        && dtype.is_float()
                        && of(ins.first(), y, dtype)
                        && (of(ins.get(1), y, DType::I64) || self.has_taps() && of(ins.get(1), y, DType::U8))
                        && of(outs.first(), x, dtype)
                }
                PoolPass::Average(_) => {
                    (dtype.is_float() || dtype == DType::I64) && counts(1, 1) && of(ins.first(), x, dtype) && of(outs.first(), y, dtype)
                }
                PoolPass::AverageAdjoint(_) => dtype.is_float() && counts(1, 1) && of(ins.first(), y, dtype) && of(outs.first(), x, dtype),
                PoolPass::Unfold => counts(1, 1) && of(ins.first(), x, dtype) && columns.is_some_and(|n| of(outs.first(), n, dtype)),
                PoolPass::Fold => {
                    dtype.is_float() && counts(1, 1) && columns.is_some_and(|n| of(ins.first(), n, dtype)) && of(outs.first(), x, dtype)
                }
            }
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        if let PoolPass::Max { indices: true, .. } = self.pass { 2 } else { 1 }
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        [
            ("max_pool", PoolPass::Max { indices: true, given: false }),
            ("max_pool_backward", PoolPass::MaxAdjoint),
            ("avg_pool", PoolPass::Average(PoolDivisor::Inside)),
            ("avg_pool_backward", PoolPass::AverageAdjoint(PoolDivisor::Inside)),
            ("unfold", PoolPass::Unfold),
            ("fold", PoolPass::Fold),
        ]
        .map(|(op, pass)| Pool { op, planes: 1, axes: [WindowAxis::ONE; 3], pass })
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_inside_their_axis() {
        for (input, kernel, stride, pad, dilation) in [(7, 3, 2, 1, 1), (5, 2, 3, 1, 2), (1, 5, 1, 2, 1), (4, 2, 1, 2, 3)] {
            let axis = WindowAxis { input, output: 4, kernel, stride, pad, dilation, adaptive: false };
            for o in 0..4 {
                let inside = |k: &usize| (0..input as isize).contains(&(axis.start(o) + (k * dilation) as isize));
                assert_eq!(axis.taps(o).collect::<Vec<_>>(), (0..kernel).filter(inside).collect::<Vec<_>>());
            }
        }
        for (input, output) in [(7, 3), (3, 7), (5, 5), (1, 4)] {
            let axis = WindowAxis::adaptive(input, output);
            for o in 0..output {
                let (start, end) = (o * input / output, ((o + 1) * input).div_ceil(output));
                assert_eq!((axis.start(o), axis.taps(o)), (start as isize, 0..end - start));
            }
        }
    }
}
