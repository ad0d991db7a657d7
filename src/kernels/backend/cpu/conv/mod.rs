//! Convolution of floats as products of matrices with patches (`gather`, `weight`), or tap by tap where there are few channels (`direct`).
//! What is left (integers, kernels that reach far beyond small images, infinite weights) takes `plain` loops.
//!
//! Work is divided by size alone, and each result is a sum in one order, so the bits are the same for any number of threads.
//!
//! Not here: derivatives (each pass's are the other two, `ops/conv.rs`), and the inner loops of products (`matmul/panels.rs`).

mod direct;
mod gather;
mod geometry;
mod patches;
pub(super) mod plain;
#[cfg(test)]
mod tests;
mod weight;

use self::gather::{Gather, GatherPhase};
use self::geometry::Patches;
use self::patches::{room, widened};
use super::matmul::panel_vector::{CoreNumber, StoredAs};
use super::num::InstructionSet;
use super::threads::{SharedPointer, parallel_for};
use crate::backend::requests::{ConvPass, ConvShape};

/// Multiply-adds below which plain loops are faster.
const TINY: usize = 1 << 11;
/// The most results for each patch that are computed without packing.
const FEW: usize = 4;

/// Whether `floats` may compute this.
pub(super) fn is_packed(s: &ConvShape) -> bool {
    let numel = |sizes: [usize; 3]| sizes.iter().product::<usize>();
    let (taps, positions) = (numel(s.kernel), numel(s.output));
    let work = [s.groups, s.in_channels, s.out_channels, taps, positions].iter().fold(s.batch, |n, k| n.saturating_mul(*k));
    work >= TINY && numel(s.input) > 0 && Patches::forward(s).is_compact()
}

/// Computes a pass on operands in the order of the request; the bias is null where there is none. False, and nothing is written, if it has to
/// be done in another way.
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
) -> bool {
    if !is_packed(s) {
        return false;
    }
    // SAFETY: the caller's.
    unsafe {
        match pass {
            ConvPass::Forward { .. } => forward::<T, S>(isa, s, a, b, bias, to),
            ConvPass::Input { .. } => input::<T, S>(isa, s, a, b, bias, to),
            ConvPass::Weight => {
                if s.out_channels <= FEW / 2 {
                    direct::weight::<T, S>(isa, s, a, b, to);
                } else {
                    weight::weight::<T, S>(isa, s, a, b, to);
                }
                true
            }
        }
    }
}

unsafe fn forward<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    s: &ConvShape,
    x: *const S,
    w: *const S,
    bias: *const S,
    y: *mut S,
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
        let phases = [GatherPhase { patches, places: Patches::forward_places(s), weights }];
        let gather = Gather { isa, groups: s.groups, rows: s.out_channels, channels: s.in_channels, phases: &phases, bias };
        run(&gather, x, y);
    }
    true
}

unsafe fn input<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    s: &ConvShape,
    g: *const S,
    w: *const S,
    bias: *const S,
    x: *mut S,
) -> bool {
    let phases = Patches::input(s);
    if !phases.iter().all(|(p, _)| p.is_compact()) {
        return false;
    }
    let kernel = s.kernel.iter().product::<usize>();
    let numel = s.groups * s.in_channels * s.out_channels * kernel;
    let (_own, made) = room::<T>(numel);
    // SAFETY: the caller's.
    unsafe {
        // Of each phase: groups x in_channels x (out_channels * taps).
        let mut places = Vec::with_capacity(phases.len());
        let mut start = 0;
        for (p, _) in &phases {
            let taps = p.kernel_places(s.kernel);
            let n = s.groups * s.in_channels * s.out_channels * taps.len();
            places.push((start, taps));
            start += n;
        }
        let (from, to) = (SharedPointer::new(w), SharedPointer::new(made));
        let is_finite = std::sync::atomic::AtomicBool::new(true);
        // Channels of x that one task has, whose weights lie together in each channel of y.
        const TOGETHER: usize = 16;
        let chunks = s.in_channels.div_ceil(TOGETHER);
        parallel_for(s.groups * chunks, |t| {
            let (group, first) = (t / chunks, t % chunks * TOGETHER);
            let channels = first..s.in_channels.min(first + TOGETHER);
            let mut is_bad = false;
            // Blocks whose weights stay in the cache while both sides are walked in stretches.
            for first in (0..s.out_channels).step_by(TOGETHER) {
                for i in channels.clone() {
                    for o in first..s.out_channels.min(first + TOGETHER) {
                        let from = from.get().wrapping_add(((group * s.out_channels + o) * s.in_channels + i) * kernel);
                        let from = std::slice::from_raw_parts(from, kernel);
                        for (start, taps) in &places {
                            let to = to.at(start + ((group * s.in_channels + i) * s.out_channels + o) * taps.len());
                            for (k, tap) in taps.iter().enumerate() {
                                let v = from[*tap].wide();
                                is_bad |= !v.is_finite();
                                *to.add(k) = v;
                            }
                        }
                    }
                }
            }
            if is_bad {
                is_finite.store(false, std::sync::atomic::Ordering::Relaxed);
            }
        });
        // What lies outside of the output contributes nothing, not even with infinite weights.
        if !is_finite.into_inner() {
            return false;
        }
        let (_bias, bias) = widened::<T, S>(isa, s.groups * s.in_channels, bias);
        let phases: Vec<GatherPhase<T>> = phases
            .into_iter()
            .zip(places)
            .map(|((patches, to), (start, _))| GatherPhase { patches, places: to, weights: made.cast_const().wrapping_add(start) })
            .collect();
        let gather = Gather { isa, groups: s.groups, rows: s.in_channels, channels: s.out_channels, phases: &phases, bias };
        run(&gather, g, x);
    }
    true
}

/// # Safety
/// As for `Gather::run`.
unsafe fn run<T: CoreNumber, S: StoredAs<T>>(gather: &Gather<'_, T>, x: *const S, y: *mut S) {
    // SAFETY: the caller's.
    unsafe {
        let taps = gather.phases.iter().map(|f| f.patches.taps()).max().unwrap_or(0);
        if gather.rows <= FEW && (taps >= 3 || gather.rows * gather.channels == 1) {
            direct::gather(gather, x, y);
        } else {
            gather.run(x, y);
        }
    }
}
