//! The algorithms of convolutions, in the order in which they are tried: those of passes that make images, and those of the weights' gradient.
//!
//! What plans share is here, too: the phases of a pass, and its weights in the order in which a phase reads them.

use super::disjoint::{self, DisjointPass};
use super::gather::{self, Gather, GatherPhase, WeightPlaces};
use super::geometry::Patches;
use super::patches::{reserve, widened};
use super::transposed::transpose_weight;
use super::winograd::{self, Tiled};
use super::{depthwise, direct, images, numel, plain, shared, weight};
use crate::backend::cpu::algorithms::{Asked, Why, algorithms, needs, runs};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::backend::cpu::matmul::panels::any_infinite;
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::call::{ConvPass, ConvShape};
use crate::host::memory::alloc::Buffer;
use crate::simd::InstructionSet;
use std::cell::OnceCell;
use std::marker::PhantomData;

// Thresholds between algorithms, with the machine and what was measured beside each where that is known. `./run tune` measures around them.

/// Multiply-adds below which plain loops are faster.
const TINY: usize = 1 << 11;
/// The most results for each patch with which patches are never packed, whatever their size.
pub(super) const FEW: usize = 4;
/// Columns that meet all weights in the gradient of the input, from which on a copy of the weights in the order of the rows pays; the second is of
/// kernels of one tap, where a row has one weight in each stretch of memory: two Zen 3 cores take 0.36 ms for 960 -> 320 channels at 7x7 with the
/// copy, and 0.73 without.
const MANY: [usize; 2] = [512, 32];

/// `conv.disjoint`: the fewest channels of the result; of fewer, products are too small. Two threads took 2.1 ms in place of 39 for the
/// gradient of 2x3x224x224 by patches of 16x16 with 384 results.
pub(super) const DISJOINT_RESULTS: usize = 4;
/// `conv.disjoint`: the fewest taps of a row, and the most channels of the image, with which copying patches pays in the forward pass: 2.0 ms in
/// place of 2.9 on two threads.
pub(super) const DISJOINT_LONG: usize = 4;
pub(super) const DISJOINT_CHANNELS: usize = 8;
/// `conv.disjoint`: kernels of more taps always take this path in the gradient. For those of 2x2 Winograd's form is faster, unless all images
/// together have few positions.
pub(super) const DISJOINT_TAPS: usize = 4;
pub(super) const DISJOINT_FEW: usize = 128;

/// `conv.direct`: the most channels of the image, or of the result, with which this is faster than packing. Two Zen 3 cores took 0.4 to 0.9 of the
/// time with up to 8 channels of the image, and 1.1 to 1.5 with 16, of which there were 64 results; of 8 results 0.6 with 32 channels of the image.
pub(super) const DIRECT_SMALL: usize = 8;

/// `conv.images`: positions from which on an image is a right operand by itself, whatever the weights are. 64x32x14x14 of 32 results takes 280 us
/// rather than 600 on two threads, 4 groups of 8x64x28x28 200 rather than 800.
pub(super) const IMAGE_POSITIONS: usize = 128;
/// `conv.images`: the most weights of a group with which smaller images are, too, of a panel and more: they stay in the second cache while they meet
/// one image after the other. Two Zen 3 cores take 126 us for 64 images of 32 channels at 7x7 and as many results, and 234 if all are packed
/// together.
pub(super) const IMAGE_WEIGHTS: usize = 1 << 16;
/// `conv.images`: the fewest results for each position: fewer have loops of their own (`direct`).
pub(super) const IMAGE_ROWS: usize = 4;

// `conv.winograd` compares costs (`WEIGHT_COST` in `winograd`, `tile_cost` and `weight_cost` of its filters).

algorithms! {
    /// The passes that make images: forward, and the gradient of the input.
    pub(in crate::backend::cpu) enum ImagePlan['p] for ImagePass<'_, T, S> where [T: CoreNumber, S: StoredAs<T>] {
        /// Patches cover the image, each element once.
        Disjoint(()) = "conv.disjoint", disjoint::plan;
        /// Each channel is a group: vectors go across channels.
        Depthwise(&'p GatherPhase) = "conv.depthwise", depthwise::plan;
        /// Few results for each patch, or small patches: tap by tap.
        Direct(()) = "conv.direct", direct::plan;
        /// Fewer products than the definition has.
        Winograd(Tiled<'p>) = "conv.winograd", winograd::plan;
        /// One tap, and the image as it lies is a right operand.
        Images(&'p GatherPhase) = "conv.images", images::plan;
        /// One tap: the image is packed once for all tasks.
        Shared(&'p GatherPhase) = "conv.shared", shared::plan;
        /// Each task packs its patches.
        Patches(()) = "conv.patches", gather::plan;
        /// Numbers of any type.
        Plain(()) = "conv.plain", plain_images;
    }
}

algorithms! {
    /// The gradient of the weights.
    #[allow(clippy::large_enum_variant, reason = "one plan lives for the time of a call")]
    pub(in crate::backend::cpu) enum WeightPlan['p] for WeightPass<'_, T, S> where [T: CoreNumber, S: StoredAs<T>] {
        /// Few channels of the result: tap by tap.
        Direct(()) = "conv.direct", direct::weight::plan;
        Winograd(winograd::weight::TiledWeights<'p>) = "conv.winograd", winograd::weight::plan;
        /// Patches are packed with positions as rows.
        Patches(()) = "conv.patches", weight::plan;
        Plain(()) = "conv.plain", plain_weight;
    }
}

/// Of integers, for which there are no other loops.
pub(in crate::backend::cpu) const PLAIN: &str = "conv.plain";

/// What a run has seen of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend::cpu) enum Results {
    Finite,
    NotFinite,
    /// It has not looked at them.
    Unseen,
}

impl Results {
    pub fn seen(are_finite: bool) -> Results {
        if are_finite { Results::Finite } else { Results::NotFinite }
    }
}

/// How a run ended.
enum Ran {
    Done,
    /// Results are not finite, of which this algorithm cannot tell what they should be: the next one computes all again.
    NotFinite,
    /// Infinite weights may have met padding, which contributes nothing: plain loops compute all again.
    PaddedInfinity,
}

/// How much there is to multiply, and whether strips of patches are not much larger than what is read from them.
#[derive(Debug, Clone, Copy)]
struct PassSize<'a> {
    work: usize,
    /// Known where there is much to multiply, since every plan asks for it then.
    is_compact: Option<bool>,
    shape: &'a ConvShape,
}

impl PassSize<'_> {
    fn of(s: &ConvShape) -> PassSize<'_> {
        let (taps, positions) = (numel(s.kernel), numel(s.output));
        let work = [s.groups, s.in_channels, s.out_channels, taps, positions].iter().fold(s.batch, |n, k| n.saturating_mul(*k));
        let work = if numel(s.input) > 0 { work } else { 0 };
        PassSize { work, is_compact: (work >= TINY).then(|| Patches::forward(s).is_compact()), shape: s }
    }

    /// What all but the plain loops need.
    fn is_worth(self, asked: Asked) -> Result<(), Why> {
        needs(self.work > 0, "nothing is added up")?;
        asked.gains(self.work >= TINY, "there is little to multiply")?;
        needs(self.is_compact.unwrap_or_else(|| Patches::forward(self.shape).is_compact()), "the kernel reaches far beyond a small image")
    }
}

/// Whether a pass is computed by other than plain loops, which take no epilogue.
pub(super) fn takes_epilogue(s: &ConvShape) -> bool {
    PassSize::of(s).is_worth(Asked::ForSpeed).is_ok()
}

/// A pass that makes images.
pub(in crate::backend::cpu) struct ImagePass<'a, T, S> {
    pub isa: InstructionSet,
    pub pass: ConvPass,
    pub shape: &'a ConvShape,
    /// Images in the forward pass, or gradients of the result; the weights; a bias for each channel of the result, which may be null.
    pub operands: [*const S; 3],
    pub to: *mut S,
    pub epilogue: Option<&'a ImageEpilogue<'a>>,
    size: PassSize<'a>,
    grid: OnceCell<Option<Grid>>,
    weights: OnceCell<OrderedWeights<T>>,
}

/// The phases of a pass.
struct Grid {
    phases: Vec<GatherPhase>,
    /// Whether phases read a copy of the weights in another order.
    is_transposed: bool,
}

/// Weights and bias as numbers, in the order in which phases read them.
struct OrderedWeights<T> {
    _memory: [Option<Buffer>; 3],
    weights: *const T,
    bias: *const T,
}

impl<'a, T: CoreNumber, S: StoredAs<T>> ImagePass<'a, T, S> {
    pub fn new(
        isa: InstructionSet,
        pass: ConvPass,
        shape: &'a ConvShape,
        operands: [*const S; 3],
        to: *mut S,
        epilogue: Option<&'a ImageEpilogue<'a>>,
    ) -> ImagePass<'a, T, S> {
        let size = PassSize::of(shape);
        ImagePass { isa, pass, shape, operands, to, epilogue, size, grid: OnceCell::new(), weights: OnceCell::new() }
    }

    pub fn is_forward(&self) -> bool {
        matches!(self.pass, ConvPass::Forward { .. })
    }

    /// As `PassSize::is_worth`.
    pub fn is_worth(&self, asked: Asked) -> Result<(), Why> {
        self.size.is_worth(asked)
    }

    /// The pass as one that gathers patches, without operands, if it is worth to be one.
    pub fn sizes(&self, asked: Asked) -> Result<Gather<'_, T>, Why> {
        self.is_worth(asked)?;
        let grid = self.grid().ok_or("the kernel reaches far beyond a small image")?;
        let (s, null) = (self.shape, std::ptr::null());
        let (rows, channels) = if self.is_forward() { (s.out_channels, s.in_channels) } else { (s.in_channels, s.out_channels) };
        let (phases, epilogue) = (&grid.phases[..], self.epilogue);
        Ok(Gather { isa: self.isa, groups: s.groups, rows, channels, phases, weights: null, bias: null, epilogue })
    }

    fn grid(&self) -> Option<&Grid> {
        let s = self.shape;
        let make = || if self.is_forward() { Some(Grid::forward(s)) } else { Grid::input(s) };
        self.grid.get_or_init(make).as_ref()
    }

    /// As `sizes`, with operands; None if they have no phases.
    ///
    /// # Safety
    /// The operands have the elements that the shape says, and the machine has the instruction set.
    unsafe fn gather(&self) -> Option<Gather<'_, T>> {
        let (gather, grid) = (self.sizes(Asked::ByName).ok()?, self.grid()?);
        // SAFETY: the caller's.
        let weights = self.weights.get_or_init(|| unsafe { self.ordered_weights(grid) });
        Some(Gather { weights: weights.weights, bias: weights.bias, ..gather })
    }

    /// # Safety
    /// As for `gather`.
    unsafe fn ordered_weights(&self, grid: &Grid) -> OrderedWeights<T> {
        let (s, isa, [_, weights, bias]) = (self.shape, self.isa, self.operands);
        let all = self.weight_count();
        let channels = if self.is_forward() { s.out_channels } else { s.in_channels };
        // SAFETY: the caller's.
        unsafe {
            let (wide, mut weights) = widened::<T, S>(isa, all, weights);
            let (copy, ordered) = reserve::<T>(if grid.is_transposed { all } else { 0 });
            if grid.is_transposed {
                for f in &grid.phases {
                    let to = ordered.wrapping_add(f.weights.start);
                    transpose_weight::<T>(isa, weights, &as_they_lie(s, &f.patches), [s.groups, s.in_channels, s.out_channels], to);
                }
                weights = ordered.cast_const();
            }
            let (wide_bias, bias) = widened::<T, S>(isa, s.groups * channels, bias);
            OrderedWeights { _memory: [wide, copy, wide_bias], weights, bias }
        }
    }

    fn weight_count(&self) -> usize {
        let s = self.shape;
        s.groups * s.in_channels * s.out_channels * numel(s.kernel)
    }

    /// Padding contributes nothing to a depthwise convolution in PyTorch, not even with infinite weights.
    ///
    /// # Safety
    /// As for `gather`.
    unsafe fn is_depthwise_with_infinite_weights(&self) -> bool {
        let is_depthwise = self.is_forward() && (self.shape.in_channels, self.shape.out_channels) == (1, 1);
        // SAFETY: the caller's.
        is_depthwise && !unsafe { std::slice::from_raw_parts(self.operands[1], self.weight_count()) }.iter().all(|w| w.wide().is_finite())
    }

    /// What lies outside of the output contributes nothing to the gradient of the input, not even with infinite weights, which would make results
    /// that are not finite.
    ///
    /// # Safety
    /// As for `gather`.
    unsafe fn has_padded_infinity(&self, g: &Gather<'_, T>) -> bool {
        let has_padding = || g.phases.iter().any(|f| f.patches.has_padding());
        // SAFETY: the caller's.
        !self.is_forward() && has_padding() && unsafe { any_infinite::<T>(self.isa, self.weight_count(), g.weights) }
    }
}

/// Where the weights that meet these patches of the output's gradient lie.
fn as_they_lie(s: &ConvShape, patches: &Patches) -> WeightPlaces {
    let row = numel(s.kernel);
    let channel = s.in_channels * row;
    WeightPlaces { start: 0, group: s.out_channels * channel, row, channel, taps: patches.kernel_places(s.kernel) }
}

impl Grid {
    fn forward(s: &ConvShape) -> Grid {
        let patches = Patches::forward(s);
        let (taps, depth) = (patches.taps(), s.in_channels * patches.taps());
        let weights = WeightPlaces { start: 0, group: s.out_channels * depth, row: depth, channel: taps, taps: (0..taps).collect() };
        Grid { phases: vec![GatherPhase { patches, places: Patches::forward_places(s), weights }], is_transposed: false }
    }

    /// None if strips of a phase would be much larger than what is read from them.
    fn input(s: &ConvShape) -> Option<Grid> {
        let phases = Patches::input(s);
        if !phases.iter().all(|(p, _)| p.is_compact()) {
            return None;
        }
        let columns = phases.iter().map(|(p, _)| p.batch * p.positions()).max();
        let is_transposed = s.in_channels > FEW && columns >= Some(MANY[usize::from(numel(s.kernel) == 1)]);
        let mut start = 0;
        let phase = |(patches, places): (Patches, _)| {
            let weights = if is_transposed {
                let (first, taps) = (start, patches.taps());
                let row = s.out_channels * taps;
                start += s.groups * s.in_channels * row;
                WeightPlaces { start: first, group: s.in_channels * row, row, channel: taps, taps: (0..taps).collect() }
            } else {
                as_they_lie(s, &patches)
            };
            GatherPhase { patches, places, weights }
        };
        Some(Grid { phases: phases.into_iter().map(phase).collect(), is_transposed })
    }
}

impl ImagePlan<'_> {
    /// # Safety
    /// As for `run_images`; the plan is that of the pass.
    unsafe fn run<T: CoreNumber, S: StoredAs<T>>(&self, call: &ImagePass<'_, T, S>) -> Ran {
        let (s, [x, w, bias], y) = (call.shape, call.operands, call.to);
        // SAFETY: the caller's, all of them; where a plan needs elements that are the numbers, they are.
        unsafe {
            match self {
                ImagePlan::Disjoint(()) => {
                    let [from, weights, bias] = call.operands.map(<*const S>::cast::<T>);
                    let pass = DisjointPass { isa: call.isa, shape: s, from, weights, bias, to: y.cast(), epilogue: call.epilogue };
                    if call.is_forward() {
                        pass.forward()
                    } else {
                        pass.input()
                    }
                    return Ran::Done;
                }
                ImagePlan::Plain(()) => {
                    let [a, w, bias] = [x, w, bias].map(<*const S>::cast::<T>);
                    if call.is_forward() {
                        plain::forward(s, a, w, bias, y.cast())
                    } else {
                        plain::input(s, a, w, bias, y.cast())
                    }
                    return Ran::Done;
                }
                _ => {}
            }
            let g = call.gather().unwrap_or_else(|| unreachable!("a plan has looked at the phases"));
            let results = match self {
                ImagePlan::Depthwise(f) => depthwise::run(&g, f, x, y),
                ImagePlan::Direct(()) => direct::gather(&g, x, y),
                ImagePlan::Winograd(tiled) => {
                    let results = winograd::run(&winograd::of_float32(&g), tiled, x.cast(), y.cast());
                    if results != Results::Finite {
                        return Ran::NotFinite;
                    }
                    results
                }
                ImagePlan::Images(f) => images::run(&g, f, x.cast(), y.cast()),
                ImagePlan::Shared(f) => shared::run(&g, f, x, y.cast()),
                _ => g.run(x, y),
            };
            if results != Results::Finite && call.has_padded_infinity(&g) { Ran::PaddedInfinity } else { Ran::Done }
        }
    }
}

/// Computes a pass that makes images, and says by which algorithm in the end. None, if it has to be converted to another type: then no epilogue has
/// run. Algorithms run the epilogue, or leave that to the caller (`ImageEpilogue::has_run`).
///
/// # Safety
/// All have the elements that the shape says, the output overlaps nothing else, and the request's `accepts` has passed. The machine has the
/// instruction set.
pub(super) unsafe fn run_images<T: CoreNumber, S: StoredAs<T>>(call: &ImagePass<'_, T, S>) -> Option<&'static str> {
    let plain = || ImagePlan::named(call, PLAIN).ok();
    // SAFETY: the caller's, both.
    let mut plan = if unsafe { call.is_depthwise_with_infinite_weights() } { plain() } else { ImagePlan::of(call) };
    while let Some(now) = plan {
        runs(now.name());
        // SAFETY: see above.
        plan = match unsafe { now.run(call) } {
            Ran::Done => return Some(now.name()),
            Ran::NotFinite => now.after(call),
            Ran::PaddedInfinity => plain(),
        };
        if let Some(epilogue) = call.epilogue {
            epilogue.restart();
        }
    }
    None
}

/// A pass that makes the gradient of the weights.
pub(in crate::backend::cpu) struct WeightPass<'a, T, S> {
    pub isa: InstructionSet,
    pub shape: &'a ConvShape,
    /// The gradient of the output, and the images.
    pub operands: [*const S; 2],
    pub to: *mut S,
    size: PassSize<'a>,
    numbers: PhantomData<T>,
}

impl<'a, T: CoreNumber, S: StoredAs<T>> WeightPass<'a, T, S> {
    pub fn new(isa: InstructionSet, shape: &'a ConvShape, operands: [*const S; 2], to: *mut S) -> WeightPass<'a, T, S> {
        WeightPass { isa, shape, operands, to, size: PassSize::of(shape), numbers: PhantomData }
    }

    /// As `PassSize::is_worth`.
    pub fn is_worth(&self, asked: Asked) -> Result<(), Why> {
        self.size.is_worth(asked)
    }
}

impl WeightPlan<'_> {
    /// # Safety
    /// As for `run_images`; the plan is that of the pass.
    unsafe fn run<T: CoreNumber, S: StoredAs<T>>(&self, call: &WeightPass<'_, T, S>) -> Ran {
        let (isa, s, [g, x], w) = (call.isa, call.shape, call.operands, call.to);
        // SAFETY: the caller's, all of them; where a plan needs elements that are the numbers, they are.
        unsafe {
            match self {
                WeightPlan::Direct(()) => direct::weight::weight::<T, S>(isa, s, g, x, w),
                WeightPlan::Winograd(tiled) if tiled.run(g.cast(), x.cast(), w.cast()) != Results::Finite => return Ran::NotFinite,
                WeightPlan::Winograd(_) => {}
                WeightPlan::Patches(()) => weight::weight::<T, S>(isa, s, g, x, w),
                WeightPlan::Plain(()) => plain::weight::<T>(s, g.cast(), x.cast(), w.cast()),
            }
        }
        Ran::Done
    }
}

/// As `run_images`, for the gradient of the weights.
///
/// # Safety
/// As for `run_images`.
pub(super) unsafe fn run_weight<T: CoreNumber, S: StoredAs<T>>(call: &WeightPass<'_, T, S>) -> Option<&'static str> {
    let mut plan = WeightPlan::of(call);
    while let Some(now) = plan {
        runs(now.name());
        // SAFETY: the caller's.
        match unsafe { now.run(call) } {
            Ran::Done => return Some(now.name()),
            Ran::NotFinite | Ran::PaddedInfinity => plan = now.after(call),
        }
    }
    None
}

/// Plain loops have no numbers beside the elements.
const WITHOUT_NUMBERS: Why = "elements of 16 bits are converted to float32 first";

fn plain_images<T: CoreNumber, S: StoredAs<T>>(_call: &ImagePass<'_, T, S>, _asked: Asked) -> Result<(), Why> {
    needs(S::SAME, WITHOUT_NUMBERS)
}

fn plain_weight<T: CoreNumber, S: StoredAs<T>>(_call: &WeightPass<'_, T, S>, _asked: Asked) -> Result<(), Why> {
    needs(S::SAME, WITHOUT_NUMBERS)
}
