//! Convolution of floats as products of matrices with patches (`gather`, `weight`; `images` and `shared` for kernels of one tap, `disjoint` for
//! patches that do not overlap), or tap by tap where there are few channels of the result, or of the image (`direct`; `depthwise` where each channel
//! is a group). The gradient of the input reads weights as they lie, or a copy (`transposed`) where many patches meet them.
//! Kernels of 3x3 taps and many channels take fewer products than that in float32 (`winograd`).
//! What is left (integers, kernels that reach far beyond small images, infinite weights) takes `plain` loops.
//!
//! `algorithms` has them all in order. Work is divided by size alone, and each result is a sum in one order, so the bits are the same for any number of threads.
//!
//! Not here: derivatives (each pass's are the other two, `ops/conv.rs`), and the inner loops of products (`matmul/panels.rs`).

pub(super) mod algorithms;
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

use self::algorithms::{ImagePass, WeightPass, run_images, run_weight};
use super::matmul::panel_vector::CoreNumber;
use super::matmul::stored_as::StoredAs;
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::call::{ConvPass, ConvShape};
use crate::simd::InstructionSet;

fn numel(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

/// Whether a pass that makes images gains something if it waits for an epilogue.
pub(super) fn takes_epilogue(pass: ConvPass, s: &ConvShape) -> bool {
    !matches!(pass, ConvPass::Weight) && algorithms::takes_epilogue(s)
}

/// Computes a pass on operands in the order of the request, and says by which algorithm; the bias is null where there is none. None, if elements have
/// to be converted first.
///
/// # Safety
/// As for `run_images`.
pub(super) unsafe fn floats<T: CoreNumber, S: StoredAs<T>>(
    isa: InstructionSet,
    pass: ConvPass,
    s: &ConvShape,
    [a, b, bias]: [*const S; 3],
    to: *mut S,
    epilogue: Option<&ImageEpilogue<'_>>,
) -> Option<&'static str> {
    // SAFETY: the caller's.
    unsafe {
        match pass {
            ConvPass::Forward { .. } | ConvPass::Input { .. } => {
                run_images(&ImagePass::<T, S>::new(isa, pass, s, [a, b, bias], to, epilogue))
            }
            ConvPass::Weight => run_weight(&WeightPass::<T, S>::new(isa, s, [a, b], to)),
        }
    }
}
