//! Images read at the places of a grid.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::DType;

/// How the neighbours of a place are weighted: linearly, the nearest alone, by cubic convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridMode {
    Linear,
    Nearest,
    Cubic,
}

/// What lies beside the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridBorder {
    Zeros,
    Border,
    Reflection,
}

/// Which pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridPass {
    /// Of the image and the grid: the elements at its places.
    Read,
    /// Of their gradient, the image and the grid: the gradient of the image.
    ImageGradient,
    /// Of the same: the gradient of the grid.
    GridGradient,
}

/// Images of (batch, channels, sizes of the axes), a grid of (batch, places, axes), results of (batch, channels, places), all row-major floats
/// of one dtype. There are two axes if the first one's size is 0, else three; the grid names the last axis first, from -1 to 1.
#[derive(Debug, Clone, Copy, Hash)]
pub struct GridSample {
    pub op: &'static str,
    pub batch: usize,
    pub channels: usize,
    pub sizes: [usize; 3],
    pub places: usize,
    pub mode: GridMode,
    pub border: GridBorder,
    /// -1 and 1 are the centers of the outermost elements, not their edges.
    pub align_corners: bool,
    pub pass: GridPass,
}

impl GridSample {
    /// The sizes of the axes that there are.
    pub fn axes(&self) -> &[usize] {
        if self.sizes[0] == 0 { &self.sizes[1..] } else { &self.sizes }
    }

    /// The elements of a plane.
    pub fn plane(&self) -> usize {
        self.axes().iter().product()
    }
}

impl Family for GridSample {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let axes = self.axes();
        let product = |of: &[usize]| of.iter().try_fold(1usize, |n, k| n.checked_mul(*k));
        let planes = product(&[self.batch, self.channels]);
        let (plane, places) = (product(axes), product(&[self.batch, self.places, axes.len()]));
        let all = |n: Option<usize>| planes.zip(n).and_then(|(a, b)| a.checked_mul(b));
        let (Some(x), Some(y), Some(grid)) = (all(plane), all(Some(self.places)), places) else { return false };
        let Some((_, dtype)) = outs.first().copied().flatten() else { return false };
        let (wanted, made): (&[usize], usize) = match self.pass {
            GridPass::Read => (&[x, grid], y),
            GridPass::ImageGradient => (&[y, x, grid], x),
            GridPass::GridGradient => (&[y, x, grid], grid),
        };
        let fits = |seen: Seen<'_>, n: usize| seen.is_some_and(|(s, d): (&[usize], DType)| d == dtype && s.iter().product::<usize>() == n);
        dtype.is_float()
            && axes.iter().all(|n| *n > 0)
            && (self.mode != GridMode::Cubic || axes.len() == 2)
            && plane.is_some_and(|n| n <= i32::MAX as usize)
            && ins.len() == wanted.len()
            && outs.len() == 1
            && ins.iter().zip(wanted).all(|(i, n)| fits(*i, *n))
            && fits(outs[0], made)
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        vec![GridSample {
            op: "grid_sample",
            batch: 1,
            channels: 1,
            sizes: [0, 1, 1],
            places: 1,
            mode: GridMode::Linear,
            border: GridBorder::Zeros,
            align_corners: false,
            pass: GridPass::Read,
        }]
    }
}
