//! Convolutions whose kernel is as large as their stride, so that patches cover the image, each element once: a product of weights and patches
//! alone. The forward pass copies patches into rows; the gradient of the image multiplies all taps at once, and puts the results where they go.

use super::algorithms::{DISJOINT_CHANNELS, DISJOINT_FEW, DISJOINT_LONG, DISJOINT_RESULTS, DISJOINT_TAPS, ImagePass};
use super::numel;
use super::patches::reserve;
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::common::epilogue::{Epilogue, ImageEpilogue};
use crate::backend::cpu::matmul::packed::{self, Bias, Factor};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::matmul::{Mat, in_batches};
use crate::call::ConvShape;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;
use std::ops::Range;

/// Positions that a task of the gradient has at least, where there are as many.
const POSITIONS: usize = 128;
/// Results of a task of the gradient, which stay in the second cache until they are put where they go.
const TASK: usize = 1 << 16;

/// Operands and results of a pass. The bias is one for each channel of the result; it may be null.
#[derive(Clone, Copy)]
pub(super) struct DisjointPass<'a, T> {
    pub isa: InstructionSet,
    pub shape: &'a ConvShape,
    /// Images in the forward pass, or gradients of the result.
    pub from: *const T,
    pub weights: *const T,
    pub bias: *const T,
    pub to: *mut T,
    pub epilogue: Option<&'a ImageEpilogue<'a>>,
}
// SAFETY: each task writes results of its own; the rest is only read.
unsafe impl<T> Sync for DisjointPass<'_, T> {}

pub(super) fn plan<T: CoreNumber, S: StoredAs<T>>(call: &ImagePass<'_, T, S>, asked: Asked) -> Result<(), Why> {
    let s = call.shape;
    call.is_worth(asked)?;
    needs(S::SAME, "elements are not the numbers")?;
    let is_covered = (0..3).all(|d| {
        (s.stride[d], s.padding[d], s.input[d]) == (s.kernel[d], 0, s.output[d] * s.kernel[d]) && (s.dilation[d] == 1 || s.kernel[d] == 1)
    });
    needs(is_covered && s.kernel[2] > 1, "patches do not cover the image, each element once")?;
    needs(call.isa != InstructionSet::Base, "products are packed with AVX2 and up alone")?;
    asked.gains(s.out_channels >= DISJOINT_RESULTS, "there are few channels of the result")?;
    if call.is_forward() {
        asked.gains(s.kernel[2] >= DISJOINT_LONG && s.in_channels <= DISJOINT_CHANNELS, "copies of patches would cost too much")
    } else {
        asked.gains(numel(s.kernel) > DISJOINT_TAPS || s.batch * numel(s.output) <= DISJOINT_FEW, "there are few taps for many positions")
    }
}

impl<T: CoreNumber> DisjointPass<'_, T> {
    /// # Safety
    /// All have the elements that the shape says, the results overlap nothing else, and the machine has the instruction set.
    pub unsafe fn forward(&self) {
        let s = self.shape;
        let [taps, positions, plane] = [s.kernel, s.output, s.input].map(numel);
        let depth = s.in_channels * taps;
        let sizes = (s.out_channels, positions, depth);
        let epilogue = self.epilogue.map(ImageEpilogue::of_all);
        let one = |i: usize, parallel: bool| {
            let (group, results) = (i % s.groups, i * s.out_channels * positions);
            let (_patches, patches) = reserve::<T>(positions * depth);
            let to = SharedPointer::new(patches);
            let copy = |c: usize| {
                let from = self.from.wrapping_add((i * s.in_channels + c) * plane);
                // SAFETY: the caller's; there is room, and each channel has places of its own.
                unsafe { copy_patches(s, from, to.at(c * taps), depth) };
            };
            if parallel {
                parallel_for(s.in_channels, copy)
            } else {
                (0..s.in_channels).for_each(copy)
            }
            let weights = Mat { ptr: self.weights.wrapping_add(group * s.out_channels * depth), rs: depth as isize, cs: 1 };
            let patches = Mat { ptr: patches.cast_const(), rs: 1, cs: depth as isize };
            let bias = if self.bias.is_null() { Bias::None } else { Bias::Rows(self.bias.wrapping_add(group * s.out_channels)) };
            let epilogue = epilogue.map(|epilogue| move |start: usize, len: usize| epilogue(results + start, len));
            let epilogue = epilogue.as_ref().map(|e| e as Epilogue<'_>);
            let (factors, to) = ([weights, patches].map(Factor::Numbers), self.to.wrapping_add(results));
            // SAFETY: the caller's; groups and images lie one after the other.
            unsafe { packed::product::<T>(self.isa, sizes, factors, (bias, epilogue), to, parallel) };
        };
        in_batches(s.batch * s.groups, s.out_channels * positions * depth, one);
    }

    /// # Safety
    /// As for `forward`.
    pub unsafe fn input(&self) {
        let s = self.shape;
        let (taps, row, rows) = (numel(s.kernel), s.output[2], s.output[0] * s.output[1]);
        // Rows of positions and channels of a task: neither few columns nor few rows of the product.
        let fewest = POSITIONS.div_ceil(row).min(rows);
        let channels = (TASK / (taps * fewest * row)).clamp(1, s.in_channels);
        let together = (TASK / (taps * channels * row)).clamp(1, rows);
        let (blocks, parts) = (s.in_channels.div_ceil(channels), rows.div_ceil(together));
        let of_image = s.groups * blocks * parts;
        let image = |t: usize| t / of_image..t / of_image + 1;
        ImageEpilogue::parallel_for(self.epilogue, s.batch * of_image, &image, &|t| {
            let (i, block, part) = (t / (blocks * parts), t / parts % blocks, t % parts);
            let channels = block * channels..s.in_channels.min((block + 1) * channels);
            let rows = part * together..rows.min((part + 1) * together);
            // SAFETY: the caller's; each task has results of its own.
            unsafe { self.part_of_input(i, &channels, &rows) };
        });
    }

    /// The gradient of some channels of group `i`, counted through all images, at some rows of positions.
    ///
    /// # Safety
    /// As for `forward`.
    unsafe fn part_of_input(&self, i: usize, channels: &Range<usize>, rows: &Range<usize>) {
        let s = self.shape;
        let [taps, positions, plane] = [s.kernel, s.output, s.input].map(numel);
        let (group, row) = (i % s.groups, s.output[2]);
        let (all, columns) = (s.in_channels * taps, rows.len() * row);
        let weights = self.weights.wrapping_add(group * s.out_channels * all + channels.start * taps);
        let from = self.from.wrapping_add(i * s.out_channels * positions + rows.start * row);
        let factors = [Mat { ptr: weights, rs: 1, cs: all as isize }, Mat { ptr: from, rs: positions as isize, cs: 1 }];
        let (_made, made) = reserve::<T>(channels.len() * taps * columns);
        let sizes = (channels.len() * taps, columns, s.out_channels);
        // SAFETY: the caller's, here and below; there is room.
        unsafe { packed::product::<T>(self.isa, sizes, factors.map(Factor::Numbers), (Bias::None, None), made, false) };
        for (n, c) in channels.clone().enumerate() {
            // SAFETY: see above.
            let bias = (!self.bias.is_null()).then(|| unsafe { *self.bias.add(group * s.in_channels + c) });
            let (to, made) = (self.to.wrapping_add((i * s.in_channels + c) * plane), made.wrapping_add(n * taps * columns));
            for (at, r) in rows.clone().enumerate() {
                each_row_of(s, r, |tap, place| {
                    let (from, to) = (made.wrapping_add(tap * columns + at * row), to.wrapping_add(place));
                    for w in 0..row {
                        for k in 0..s.kernel[2] {
                            // SAFETY: see above.
                            unsafe {
                                let sum = *from.wrapping_add(k * columns + w);
                                *to.wrapping_add(w * s.kernel[2] + k) = bias.map_or(sum, |bias| sum.plus(bias));
                            }
                        }
                    }
                });
            }
        }
    }
}

/// The rows of an image's plane that a row of positions covers: their first taps, and where they begin.
fn each_row_of(s: &ConvShape, row: usize, mut f: impl FnMut(usize, usize)) {
    let (d, h) = (row / s.output[1], row % s.output[1]);
    for (a, b) in (0..s.kernel[0]).flat_map(|a| (0..s.kernel[1]).map(move |b| (a, b))) {
        let place = ((d * s.kernel[0] + a) * s.input[1] + h * s.kernel[1] + b) * s.input[2];
        f((a * s.kernel[1] + b) * s.kernel[2], place);
    }
}

/// The patches of a channel: the first one at `to`, others so many elements further on.
///
/// # Safety
/// The channel is readable, and there is room.
unsafe fn copy_patches<T: CoreNumber>(s: &ConvShape, from: *const T, to: *mut T, depth: usize) {
    let (row, width) = (s.output[2], s.kernel[2]);
    for r in 0..s.output[0] * s.output[1] {
        each_row_of(s, r, |tap, place| {
            let (from, to) = (from.wrapping_add(place), to.wrapping_add(r * row * depth + tap));
            for w in 0..row {
                let (from, to) = (from.wrapping_add(w * width), to.wrapping_add(w * depth));
                // SAFETY: the caller's.
                (0..width).for_each(|k| unsafe { *to.wrapping_add(k) = *from.wrapping_add(k) });
            }
        });
    }
}
