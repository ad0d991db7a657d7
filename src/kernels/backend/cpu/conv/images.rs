//! As `Gather::run`, for kernels of one tap whose patches are the image as it lies: a product of matrices for each group of each image.

use super::algorithms::{IMAGE_POSITIONS, IMAGE_ROWS, IMAGE_WEIGHTS, ImagePass, Results};
use super::gather::{Gather, GatherPhase};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::Mat;
use crate::backend::cpu::matmul::packed::{self, Bias, Factor};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::host::threads::SharedPointer;
use crate::simd::InstructionSet;

/// The phase.
pub(super) fn plan<'p, T: CoreNumber, S: StoredAs<T>>(call: &'p ImagePass<'_, T, S>, asked: Asked) -> Result<&'p GatherPhase, Why> {
    let g = call.sizes(asked)?;
    needs(S::SAME, "elements are not the numbers")?;
    let [f] = g.phases else { return Err("there are several phases") };
    let is_whole = f.patches.axes.iter().zip(f.places.sizes).all(|(a, size)| (a.out, a.size, a.stride, a.least()) == (size, size, 1, 0));
    needs(is_whole && f.patches.taps() == 1 && f.places.step == [1; 3], "patches are not the image as it lies")?;
    needs(g.isa != InstructionSet::Base, "products are packed with AVX2 and up alone")?;
    let positions = if g.rows * g.channels <= IMAGE_WEIGHTS { widths::<T>(g.isa).0 } else { IMAGE_POSITIONS };
    asked.gains(f.patches.plane() >= positions, "images are small")?;
    asked.gains(g.rows >= IMAGE_ROWS, "there are few results for each position")?;
    Ok(f)
}

/// # Safety
/// As for `Gather::run`; the phase is that of `plan`, and elements are the numbers.
pub(super) unsafe fn run<T: CoreNumber>(g: &Gather<'_, T>, f: &GatherPhase, x: *const T, y: *mut T) -> Results {
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
    Results::Unseen
}
