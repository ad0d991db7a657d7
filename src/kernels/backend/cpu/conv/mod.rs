//! Convolution of floats as products of matrices with patches (`gather`, `weight`; `images` and `shared` for kernels of one tap, `disjoint` for
//! patches that do not overlap), or tap by tap where there are few channels of the result, or of the image (`direct`; `depthwise` where each channel
//! is a group). The gradient of the input reads weights as they lie, or a copy (`transposed`) where many patches meet them.
//! Kernels of 3x3 taps and many channels take fewer products than that in float32 (`winograd`).
//! What is left (integers, kernels that reach far beyond small images, infinite weights) takes `plain` loops.
//!
//! Work is divided by size alone, and each result is a sum in one order, so the bits are the same for any number of threads.
//!
//! Not here: derivatives (each pass's are the other two, `ops/conv.rs`), and the inner loops of products (`matmul/panels.rs`).

pub(super) mod compute;
mod depthwise;
mod direct;
mod disjoint;
mod gather;
mod geometry;
mod images;
mod layout;
mod pairs;
mod patches;
pub(super) mod plain;
mod shared;
#[cfg(test)]
mod tests;
mod transposed;
mod weight;
mod winograd;

use self::disjoint::DisjointPass;
use self::gather::{Gather, GatherPhase, WeightPlaces};
use self::geometry::Patches;
use self::patches::{reserve, widened};
use self::transposed::transpose_weight;
use super::matmul::panel_vector::CoreNumber;
use super::matmul::panels::any_infinite;
use super::matmul::stored_as::StoredAs;
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::call::{ConvPass, ConvShape};
use crate::simd::InstructionSet;

/// Multiply-adds below which plain loops are faster.
const TINY: usize = 1 << 11;
/// Columns that meet all weights in the gradient of the input, from which on a copy of the weights in the order of the rows pays; the second is of
/// kernels of one tap, where a row has one weight in each stretch of memory: two Zen 3 cores take 0.36 ms for 960 -> 320 channels at 7x7 with the
/// copy, and 0.73 without.
const MANY: [usize; 2] = [512, 32];
/// The most results for each patch with which patches are never packed, whatever their size.
const FEW: usize = 4;

fn numel(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

/// Whether `floats` may compute this.
pub(super) fn is_packed(s: &ConvShape) -> bool {
    let (taps, positions) = (numel(s.kernel), numel(s.output));
    let work = [s.groups, s.in_channels, s.out_channels, taps, positions].iter().fold(s.batch, |n, k| n.saturating_mul(*k));
    work >= TINY && numel(s.input) > 0 && Patches::forward(s).is_compact()
}

/// Computes a pass on operands in the order of the request; the bias is null where there is none. False, and nothing is written, if it has to
/// be done in another way, with the epilogue, too. Results that are images run the epilogue, or leave that to the caller (`ImageEpilogue::has_run`).
///
/// # Safety
/// All have the elements that the shape says, the output overlaps nothing else, and the request's `accepts` has passed. The machine has the
/// instruction set.
pub(super) unsafe fn floats<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    pass: ConvPass,
    s: &ConvShape,
    [a, b, bias]: [*const S; 3],
    to: *mut S,
    epilogue: Option<&ImageEpilogue<'_>>,
) -> bool {
    if !is_packed(s) {
        return false;
    }
    // SAFETY: the caller's.
    let is_done = unsafe {
        match pass {
            ConvPass::Forward { .. } => forward::<T, S>(isa, s, [a, b, bias], to, epilogue),
            ConvPass::Input { .. } => input::<T, S>(isa, s, [a, b, bias], to, epilogue),
            ConvPass::Weight => {
                if s.out_channels <= FEW / 2 {
                    direct::weight::weight::<T, S>(isa, s, a, b, to);
                } else if !winograd::weight::run_if_it_fits::<T, S>(isa, s, a, b, to) {
                    weight::weight::<T, S>(isa, s, a, b, to);
                }
                true
            }
        }
    };
    if let Some(epilogue) = epilogue.filter(|_| !is_done) {
        epilogue.restart();
    }
    is_done
}

unsafe fn forward<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    s: &ConvShape,
    [x, w, bias]: [*const S; 3],
    y: *mut S,
    epilogue: Option<&ImageEpilogue<'_>>,
) -> bool {
    let patches = Patches::forward(s);
    let depth = s.in_channels * patches.taps();
    let n = s.groups * s.out_channels;
    // SAFETY: the caller's.
    unsafe {
        // Padding contributes nothing to a depthwise convolution in PyTorch, not even with infinite weights.
        let is_depthwise = s.in_channels == 1 && s.out_channels == 1;
        if is_depthwise && !std::slice::from_raw_parts(w, n * depth).iter().all(|w| w.wide().is_finite()) {
            return false;
        }
        let (_weights, weights) = widened::<T, S>(isa, n * depth, w);
        let (_bias, bias) = widened::<T, S>(isa, n, bias);
        if S::SAME && disjoint::fits_forward(isa, s) {
            DisjointPass { isa, shape: s, from: x.cast::<T>(), weights, bias, to: y.cast(), epilogue }.forward();
            return true;
        }
        let places = WeightPlaces {
            start: 0,
            group: s.out_channels * depth,
            row: depth,
            channel: patches.taps(),
            taps: (0..patches.taps()).collect(),
        };
        let phases = [GatherPhase { patches, places: Patches::forward_places(s), weights: places }];
        let gather =
            Gather { isa, groups: s.groups, rows: s.out_channels, channels: s.in_channels, phases: &phases, weights, bias, epilogue };
        run(&gather, x, y);
    }
    true
}

unsafe fn input<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    s: &ConvShape,
    [g, w, bias]: [*const S; 3],
    x: *mut S,
    epilogue: Option<&ImageEpilogue<'_>>,
) -> bool {
    let phases = Patches::input(s);
    if !phases.iter().all(|(p, _)| p.is_compact()) {
        return false;
    }
    if S::SAME && disjoint::fits_input(isa, s) {
        let [from, weights, bias] = [g, w, bias].map(<*const S>::cast::<T>);
        // SAFETY: the caller's; elements are the numbers.
        unsafe { DisjointPass { isa, shape: s, from, weights, bias, to: x.cast(), epilogue }.input() };
        return true;
    }
    let kernel = numel(s.kernel);
    let all = s.groups * s.in_channels * s.out_channels * kernel;
    let has_padding = phases.iter().any(|(p, _)| p.has_padding());
    let mut phases: Vec<GatherPhase> = phases
        .into_iter()
        .map(|(patches, places)| {
            let (row, channel) = (kernel, s.in_channels * kernel);
            let weights = WeightPlaces { start: 0, group: s.out_channels * channel, row, channel, taps: patches.kernel_places(s.kernel) };
            GatherPhase { patches, places, weights }
        })
        .collect();
    // SAFETY: the caller's.
    unsafe {
        let (_weights, mut weights) = widened::<T, S>(isa, all, w);
        let columns = phases.iter().map(|f| f.patches.batch * f.patches.positions()).max();
        let is_transposed = s.in_channels > FEW && columns >= Some(MANY[usize::from(kernel == 1)]);
        let (_transposed, transposed) = reserve::<T>(if is_transposed { all } else { 0 });
        if is_transposed {
            let mut start = 0;
            for f in &mut phases {
                let taps = f.weights.taps.len();
                transpose_weight::<T>(isa, weights, &f.weights, [s.groups, s.in_channels, s.out_channels], transposed.wrapping_add(start));
                let row = s.out_channels * taps;
                f.weights = WeightPlaces { start, group: s.in_channels * row, row, channel: taps, taps: (0..taps).collect() };
                start += s.groups * f.weights.group;
            }
            weights = transposed.cast_const();
        }
        let (_bias, bias) = widened::<T, S>(isa, s.groups * s.in_channels, bias);
        let gather =
            Gather { isa, groups: s.groups, rows: s.in_channels, channels: s.out_channels, phases: &phases, weights, bias, epilogue };
        // What lies outside of the output contributes nothing, not even with infinite weights, which would make results that are not finite.
        run(&gather, g, x) || !has_padding || !any_infinite::<T>(isa, all, weights)
    }
}

/// As `Gather::run`; false where nothing is known.
///
/// # Safety
/// As for `Gather::run`.
unsafe fn run<T: CoreNumber, S: StoredAs<T>>(gather: &Gather<'_, T>, x: *const S, y: *mut S) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if let Some(phase) = depthwise::fits(gather) {
            depthwise::run(gather, phase, x, y);
            return false;
        }
        let taps = gather.phases.iter().map(|f| f.patches.taps()).max().unwrap_or(0);
        if gather.rows <= FEW && (taps >= 3 || gather.rows * gather.channels == 1) || direct::is_faster(gather) {
            direct::gather(gather, x, y);
            return false;
        }
        if winograd::run_if_it_fits(gather, x, y) {
            return true;
        }
        // Results were not finite: all are computed again.
        if let Some(epilogue) = gather.epilogue {
            epilogue.restart();
        }
        if let Some(phase) = images::fits(gather).filter(|_| S::SAME) {
            images::run(gather, phase, x.cast(), y.cast());
            return false;
        }
        match shared::fits(gather).filter(|_| S::SAME) {
            Some(phase) => shared::run(gather, phase, x, y.cast()),
            None => gather.run(x, y),
        }
    }
}
