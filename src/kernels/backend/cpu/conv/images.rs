//! As `Gather::run`, for kernels of one tap whose patches are the image as it lies: a product of matrices for each group of each image.

use super::gather::{Gather, GatherPhase};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::Mat;
use crate::backend::cpu::matmul::packed::{self, Bias, Factor};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::host::threads::SharedPointer;
use crate::simd::InstructionSet;

/// Positions from which on an image is a right operand by itself, whatever the weights are.
const POSITIONS: usize = 128;
/// The most weights of a group with which smaller images are, too, of a panel and more: they stay in the second cache while they meet one image
/// after the other. Two Zen 3 cores take 126 us for 64 images of 32 channels at 7x7 and as many results, and 234 if all are packed together.
const WEIGHTS: usize = 1 << 16;
/// The fewest results for each position: fewer have loops of their own (`direct`).
const ROWS: usize = 4;

/// The phase, if it is computed in this way.
pub(super) fn fits<'a, T: CoreNumber>(g: &Gather<'a, T>) -> Option<&'a GatherPhase> {
    let [f] = g.phases else { return None };
    let is_whole = f.patches.axes.iter().zip(f.places.sizes).all(|(a, size)| (a.out, a.size, a.stride, a.least()) == (size, size, 1, 0));
    let is_image = is_whole && f.patches.taps() == 1 && f.places.step == [1; 3];
    let positions = if g.rows * g.channels <= WEIGHTS { widths::<T>(g.isa).0 } else { POSITIONS };
    let is_large = f.patches.plane() >= positions && g.rows >= ROWS && g.channels > 0;
    (is_image && is_large && g.isa != InstructionSet::Base).then_some(f)
}

/// # Safety
/// As for `Gather::run`; the phase is that of `fits`, and elements are the numbers.
pub(super) unsafe fn run<T: CoreNumber>(g: &Gather<'_, T>, f: &GatherPhase, x: *const T, y: *mut T) {
    let plane = f.patches.plane();
    let x = SharedPointer::new(x);
    let operands = |i: usize| {
        let group = i % g.groups;
        let weights = g.weights.wrapping_add(f.weights.at(group, 0, 0) + f.weights.taps[0]);
        let weights = Mat { ptr: weights, rs: f.weights.row as isize, cs: f.weights.channel as isize };
        let image = Mat { ptr: x.get().wrapping_add(i * g.channels * plane), rs: plane as isize, cs: 1 };
        let bias = if g.bias.is_null() { Bias::None } else { Bias::Rows(g.bias.wrapping_add(group * g.rows)) };
        ([weights, image].map(Factor::Numbers), bias)
    };
    let (count, epilogue) = (f.patches.batch * g.groups, g.epilogue.map(ImageEpilogue::of_all));
    // SAFETY: the caller's; the groups of an image lie one after the other, and so do images.
    unsafe { packed::products::<T>(g.isa, count, (g.rows, plane, g.channels), operands, epilogue, y) };
}
