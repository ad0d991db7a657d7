//! Convolutions of float32 in fewer products than the definition has (Winograd's minimal filtering; Lavin and Gray, "Fast Algorithms for
//! Convolutional Neural Networks", 2015). Of 3x3 weights and stride 1 it is F(2x2, 3x3): 16 products in place of 36 for each 2x2 results. Of 2x2
//! weights, which the phases of a transposed convolution with 4x4 weights by 2 have, too, it is F(2x2, 2x2): 9 in place of 16. Convolutions by 2
//! are sums of such: 25 in place of 36 with 3x3 weights, 36 in place of 64 with 4x4. Weights and tiles of the image are transformed, multiplied
//! in a matrix product for each place of a transformed tile, and the products transformed back.
//!
//! Rounding errors are about twice those of the definition, and relative to the largest elements that a result depends on. An element reaches
//! the results that depend on it, and no others. Infinite numbers do not pass through differences: where a result is not finite, the caller
//! computes all from the definition.
//!
//! Not here: float64, in which whoever asks for it wants all digits; and the transforms themselves.

mod filter;
#[cfg(test)]
mod tests;
mod transforms;
pub(super) mod weight;

use self::filter::{Filter, SlabPlace, Slabs};
use self::transforms::{PlacesOfRow, TilePanels, WeightsToTransform, transform_results, transform_tiles, transform_weights};
use super::algorithms::{ImagePass, Results};
use super::gather::{Gather, GatherPhase, TASKS, WORTH};
use super::geometry::{Patches, Strip};
use super::pairs::{are_a_pair, interleave};
use super::patches::{LoadPlan, clear, fill, reserve};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widest, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, Depth, PanelProduct, block_depth, multiply};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;
use smallvec::SmallVec;
use std::any::TypeId;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most tiles that are few, and their elements, which each task reads; and the transformed weights that are many beside them.
const FEW: [usize; 2] = [128, 1 << 20];
const MANY: usize = 1 << 19;
/// Elements of the transformed weights of a task where tiles are few.
const BLOCK: usize = 1 << 17;
/// Tiles that one task transforms where they are few, counted for each channel.
const EACH: usize = 1 << 10;
/// Elements of a task's transformed tiles, which stay in the second cache.
const TILES: usize = 1 << 16;
/// Rows of the result that are multiplied before they are transformed back.
const ROWS: usize = 48;
/// Elements between the places of a transformed tile beyond what they take: places a power of two apart would share a line of the first cache.
const APART: usize = 16;
/// Rows of weights that a thread transforms at a time.
const WEIGHT_ROWS: usize = 16;
/// What it takes to transform 16 items of a weight, in multiply-adds, also where all transformed ones are too many for the caches.
const WEIGHT_COST: [usize; 2] = [700, 2500];
/// As the first, of weights that are multiplied at once.
const WEIGHT_COST_NEAR: usize = 100;
/// Transformed weights that the caches hold.
const CACHED: usize = 1 << 21;

/// What a result is made of, and how.
pub(in crate::backend::cpu) struct Tiled<'a> {
    filter: Filter,
    parts: Vec<Part<'a>>,
    /// Whether the parts are pairs of phases, whose results are written together.
    are_pairs: bool,
    /// Whether there are few tiles for many weights.
    are_few: bool,
}

/// The tiles of a phase, and where its weights lie.
struct Part<'a> {
    phase: &'a GatherPhase,
    tiles: Patches,
    /// Where the weight lies that meets row `i` and column `j` of a patch, at `K i + j`.
    taps: Vec<usize>,
}

impl Tiled<'_> {
    /// Tiles of all images; those of all parts are as many.
    fn columns(&self) -> usize {
        let p = &self.parts[0].tiles;
        p.batch.saturating_mul(p.positions())
    }

    /// Parts that are computed together.
    fn together(&self) -> usize {
        if self.are_pairs { 2 } else { 1 }
    }

    /// The vectors of a panel if there are few tiles, and lanes of a vector: one panel of all, if that may be.
    fn few_vectors(&self, isa: InstructionSet) -> (usize, usize) {
        let ((width, lanes), widest) = (widths::<f32>(isa), widest::<f32>(isa));
        let columns = self.columns().next_multiple_of(lanes);
        (if columns <= widest { columns } else { width } / lanes, lanes)
    }
}

/// A part of the result: of part `part`, or of it and the next one.
struct TileTask {
    part: usize,
    group: usize,
    tiles: Range<usize>,
    rows: Range<usize>,
}

/// The tiles of a pass.
pub(super) fn plan<'p, T: CoreNumber, S: StoredAs<T>>(call: &'p ImagePass<'_, T, S>, asked: Asked) -> Result<Tiled<'p>, Why> {
    needs(TypeId::of::<S>() == TypeId::of::<f32>(), "elements are not float32")?;
    tiles(&call.sizes(asked)?, asked)
}

fn tiles<'a, T>(g: &Gather<'a, T>, asked: Asked) -> Result<Tiled<'a>, Why> {
    let [first, ..] = g.phases else { return Err("there are no phases") };
    let step = first.places.step;
    let are_pairs = step == [1, 2, 2];
    needs(are_pairs || step == [1; 3], "results of a phase lie far apart")?;
    let axes_of = |f: &'a GatherPhase| [1, 2].map(|d| &f.patches.axes[d]);
    let filter = Filter::of(axes_of(first)).ok_or("there is no filter of this kernel and stride")?;
    let is_flat = |f: &GatherPhase| f.patches.axes[0].taps.len() == 1 && f.patches.axes[0].stride == 1;
    needs(g.phases.iter().all(|f| is_flat(f) && Filter::of(axes_of(f)) == Some(filter)), "phases have different filters")?;
    let in_pairs = || g.phases.chunks(2).all(|two| two.len() == 2 && are_a_pair(&two[0], &two[1]));
    needs(!are_pairs || in_pairs(), "phases are no pairs")?;
    // Phases may differ by a position, not by a tile: those beyond the end are left out.
    let out = [0, 1, 2].map(|d| g.phases.iter().map(|f| f.patches.axes[d].out).max().unwrap_or(0));
    let k = filter.weights();
    let mut parts = Vec::new();
    for phase in g.phases {
        let [b, c] = axes_of(phase);
        // In either order: the gradient of the image meets the weights from the last one on.
        let mut taps = vec![0; k * k];
        for (i, y) in b.taps.iter().enumerate() {
            for (j, x) in c.taps.iter().enumerate() {
                taps[k * (y.0 - b.least()) as usize + (x.0 - c.least()) as usize] = phase.weights.taps[k * i + j];
            }
        }
        let are_far = taps.iter().max().zip(taps.iter().min()).is_some_and(|(a, b)| a - b >= filter::TAPS);
        needs(!are_far, "weights of a phase lie far apart")?;
        let mut whole = phase.patches.clone();
        whole.axes.iter_mut().zip(out).for_each(|(axis, out)| axis.out = out);
        parts.push(Part { phase, tiles: whole.in_tiles(filter.elements()), taps });
    }
    let weights = g.channels * g.rows;
    let mut tiled = Tiled { filter, parts, are_pairs, are_few: false };
    let (all, items, places) = (tiled.columns(), filter.items(), filter.places());
    tiled.are_few = g.phases.len() == 1 && all <= FEW[0] && all * items * g.channels <= FEW[1] && items * weights > MANY;
    // One panel, or few, are computed in whole vectors.
    let whole = |n: usize| if tiled.are_few { n.next_multiple_of(widths::<f32>(g.isa).1) } else { n };
    let positions = whole(first.patches.batch.saturating_mul(out.iter().product()));
    let plain = positions.saturating_mul(k * k * weights);
    let weight_cost = if tiled.are_few { WEIGHT_COST_NEAR } else { WEIGHT_COST[usize::from(g.phases.len() * items * weights > CACHED)] };
    let transforms = filter.tile_cost(g.phases.len()) * (items * g.channels + places * g.rows) / 16;
    let ours = whole(all).saturating_mul(items * weights + transforms).saturating_add(filter.weight_cost(weight_cost) * weights);
    asked.gains(ours < plain, "transforms would cost more than products that are saved")?;
    Ok(tiled)
}

/// The pass as one of float32.
pub(super) fn of_float32<'a, T: 'static>(g: &Gather<'a, T>) -> Gather<'a, f32> {
    assert!(TypeId::of::<T>() == TypeId::of::<f32>(), "a plan has looked at the type");
    let Gather { isa, groups, rows, channels, phases, weights, bias, epilogue } = *g;
    Gather { isa, groups, rows, channels, phases, weights: weights.cast(), bias: bias.cast(), epilogue }
}

/// # Safety
/// As for `Gather::run`; the tiles are those of `plan`.
pub(super) unsafe fn run(g: &Gather<'_, f32>, t: &Tiled<'_>, x: *const f32, y: *mut f32) -> Results {
    // SAFETY: the caller's.
    Results::seen(unsafe { if t.are_few { by_rows(g, t, x, y) } else { by_tiles(g, t, x, y) } })
}

/// Transformed weights of some rows of a group, or transformed tiles.
#[derive(Debug, Clone, Copy)]
struct Transformed<'a> {
    start: *const f32,
    slabs: &'a Slabs,
}

/// All weights are transformed first. Then each task transforms some tiles, and multiplies them.
///
/// # Safety
/// As for `run`.
unsafe fn by_tiles(g: &Gather<'_, f32>, t: &Tiled<'_>, x: *const f32, y: *mut f32) -> bool {
    let slabs = Slabs::of_weights(t.filter, g.rows, g.channels);
    let size = slabs.size;
    let (_weights, weights) = reserve::<f32>(t.parts.len() * g.groups * size);
    let blocks = g.rows.div_ceil(WEIGHT_ROWS);
    let to = SharedPointer::new(weights);
    parallel_for(t.parts.len() * g.groups * blocks, |k| {
        let (part, group, first) = (k / blocks / g.groups, k / blocks % g.groups, k % blocks * WEIGHT_ROWS);
        let to = to.at((part * g.groups + group) * size);
        // SAFETY: each task writes rows of its own; the rest is the caller's promise.
        unsafe { weights_of(g, t, (part, group, 0), first..g.rows.min(first + WEIGHT_ROWS), to, &slabs) };
    });
    let tasks = tasks(g, t);
    let (x, y, weights) = (SharedPointer::new(x), SharedPointer::new(y), SharedPointer::new(weights.cast_const()));
    let (width, lanes) = widths::<f32>(g.isa);
    let is_finite = AtomicBool::new(true);
    ImageEpilogue::parallel_for(g.epilogue, tasks.len(), &|k| t.parts[0].tiles.images(&tasks[k].tiles), &|k| {
        let task = &tasks[k];
        let tile_slabs = Slabs::of_tiles(t.filter, task.tiles.len().div_ceil(width), g.channels, width);
        let (_tiles, tiles) = reserve::<f32>(t.together() * tile_slabs.size);
        let operands: SmallVec<[_; 2]> = (0..t.together())
            .map(|i| {
                let (part, tiles) = (task.part + i, tiles.wrapping_add(i * tile_slabs.size));
                let to = TilePanels { to: tiles, items: &tile_slabs.items, vectors: width / lanes };
                // SAFETY: there is room; the rest is the caller's promise.
                unsafe { tiles_of(g, t, (part, task.group), &task.tiles, 0..g.channels, x.get(), to) };
                let weights = weights.get().wrapping_add((part * g.groups + task.group) * size);
                [Transformed { start: weights, slabs: &slabs }, Transformed { start: tiles, slabs: &tile_slabs }]
            })
            .collect();
        // SAFETY: each task has results of its own; the rest is the caller's promise.
        if !unsafe { products(g, t, task, &operands, (task.rows.start, width / lanes), y.get()) } {
            is_finite.store(false, Ordering::Relaxed);
        }
    });
    is_finite.into_inner()
}

/// All tiles are transformed first. Then each task transforms the weights of some rows, which stay in the second cache, and multiplies them: all
/// transformed weights together would be read and written where there is little to multiply them with.
///
/// # Safety
/// As for `run`; there is one part.
unsafe fn by_rows(g: &Gather<'_, f32>, t: &Tiled<'_>, x: *const f32, y: *mut f32) -> bool {
    let (columns, channels) = (t.columns(), g.channels);
    let (vectors, lanes) = t.few_vectors(g.isa);
    let (width, panels) = (vectors * lanes, columns.div_ceil(vectors * lanes));
    let slabs = Slabs::of_tiles(t.filter, panels, channels, width);
    let (_tiles, tiles) = reserve::<f32>(g.groups * slabs.size);
    let (x, y, to) = (SharedPointer::new(x), SharedPointer::new(y), SharedPointer::new(tiles));
    let each = (EACH / columns).clamp(1, channels);
    let blocks = channels.div_ceil(each);
    parallel_for(g.groups * blocks, |k| {
        let (group, first) = (k / blocks, k % blocks * each);
        let channels = first..channels.min(first + each);
        let to = TilePanels { to: to.at(group * slabs.size), items: &slabs.items, vectors };
        // SAFETY: each task writes channels of its own; the rest is the caller's promise.
        unsafe { tiles_of(g, t, (0, group), &(0..columns), channels, x.get(), to) };
    });
    // Whole tiles of six rows, and of eight where there is room.
    let rows = match BLOCK / (t.filter.items() * channels) {
        24.. => 24,
        12.. => 12,
        _ => 6,
    };
    let blocks = g.rows.div_ceil(rows);
    let is_finite = AtomicBool::new(true);
    ImageEpilogue::parallel_for(g.epilogue, g.groups * blocks, &|_| 0..t.parts[0].tiles.batch, &|k| {
        let (group, first) = (k / blocks, k % blocks * rows);
        let task = TileTask { part: 0, group, tiles: 0..columns, rows: first..g.rows.min(first + rows) };
        let weight_slabs = Slabs::of_weights(t.filter, task.rows.len(), channels);
        let (_weights, weights) = reserve::<f32>(weight_slabs.size);
        // SAFETY: each task has results of its own; the rest is the caller's promise.
        unsafe {
            weights_of(g, t, (0, group, first), 0..task.rows.len(), weights, &weight_slabs);
            let tiles = Transformed { start: to.at(group * slabs.size).cast_const(), slabs: &slabs };
            let operands = [[Transformed { start: weights, slabs: &weight_slabs }, tiles]];
            if !products(g, t, &task, &operands, (0, vectors), y.get()) {
                is_finite.store(false, Ordering::Relaxed);
            }
        }
    });
    is_finite.into_inner()
}

/// Transforms the weights of some rows, counted from a first one, of a part and group.
///
/// # Safety
/// As for `run`; there is room.
unsafe fn weights_of(
    g: &Gather<'_, f32>,
    t: &Tiled<'_>,
    (part, group, first): (usize, usize, usize),
    rows: Range<usize>,
    to: *mut f32,
    slabs: &Slabs,
) {
    let Part { phase, taps, .. } = &t.parts[part];
    let from = &phase.weights;
    let w = WeightsToTransform {
        from: g.weights.wrapping_add(from.at(group, first, 0)),
        row: from.row,
        channel: from.channel,
        taps,
        channels: g.channels,
        to,
        items: &slabs.items,
    };
    // SAFETY: the caller's.
    unsafe { transform_weights::<f32>(g.isa, t.filter, &w, rows) };
}

/// Transforms some tiles of some channels of a part and group.
///
/// # Safety
/// As for `run`; there is room.
unsafe fn tiles_of(
    g: &Gather<'_, f32>,
    t: &Tiled<'_>,
    (part, group): (usize, usize),
    tiles: &Range<usize>,
    channels: Range<usize>,
    x: *const f32,
    to: TilePanels<'_, f32>,
) {
    let (p, lanes) = (&t.parts[part].tiles, widths::<f32>(g.isa).1);
    let strip = Strip::new(p, tiles.start, tiles.end, true);
    let plan = LoadPlan::new(&strip, lanes);
    let (_strip, buffer) = reserve::<f32>(strip.size);
    let width = to.vectors * lanes;
    // SAFETY: there is room; the rest is the caller's promise.
    unsafe {
        clear(strip.size, buffer);
        for c in channels {
            let x = x.wrapping_add((group * g.channels + c) * p.plane());
            fill::<f32, f32>(g.isa, p, &strip, x, buffer);
            transform_tiles::<f32>(g.isa, t.filter, &plan, buffer, &strip, TilePanels { to: to.to.wrapping_add(c * width), ..to });
        }
    }
}

fn tasks(g: &Gather<'_, f32>, t: &Tiled<'_>) -> Vec<TileTask> {
    let (width, _) = widths::<f32>(g.isa);
    let (all, items, units) = (t.columns(), t.filter.items(), t.parts.len() / t.together());
    let panels = all.div_ceil(width);
    let work = all.saturating_mul(t.parts.len() * items * g.rows).saturating_mul(g.groups * g.channels);
    let wanted = (work / WORTH).clamp(1, TASKS);
    let most = (TILES / (items * g.channels * width)).clamp(1, panels);
    let chunks = panels.div_ceil(most).max(panels.min(wanted.div_ceil(2 * units)));
    let each = panels.div_ceil(chunks) * width;
    // Tiles are transformed again for each part of the rows.
    let split = (wanted / (2 * units * chunks * g.groups)).clamp(1, (g.rows / ROWS).max(1));
    let rows = g.rows.div_ceil(split).next_multiple_of(2);
    let mut tasks = Vec::new();
    for group in 0..g.groups {
        for first in (0..all).step_by(each) {
            for part in (0..t.parts.len()).step_by(t.together()) {
                for r in (0..g.rows).step_by(rows) {
                    tasks.push(TileTask { part, group, tiles: first..all.min(first + each), rows: r..g.rows.min(r + rows) });
                }
            }
        }
    }
    tasks
}

/// Where the results of a part go, for tiles whose upper results, all of them, lie before the lower ones.
fn runs_of(part: &Part<'_>, tiles: &Range<usize>, pitch: usize) -> Vec<ColumnRun> {
    let mut runs = Vec::new();
    let [_, height, width] = [0, 1, 2].map(|d| part.phase.patches.axes[d].out);
    part.tiles.each_row(tiles.start, tiles.end, |tile, n, d, h, w, len| {
        for i in 0..2.min(height.saturating_sub(2 * h)) {
            let at = part.phase.places.row(n, d, 2 * h + i, 2 * w);
            runs.push(ColumnRun { column: 2 * (i * pitch + tile), len: (2 * len).min(width.saturating_sub(2 * w)), at });
        }
    });
    runs
}

/// The results of a task. For each of its parts there are the transformed weights of a group, from which the rows of the task are those from
/// `first` on, and transformed tiles in panels of so many vectors. True means that all are finite.
///
/// # Safety
/// As for `run`.
unsafe fn products(
    g: &Gather<'_, f32>,
    t: &Tiled<'_>,
    task: &TileTask,
    operands: &[[Transformed<'_>; 2]],
    (first_row, vectors): (usize, usize),
    y: *mut f32,
) -> bool {
    let lanes = widths::<f32>(g.isa).1;
    let parts = &t.parts[task.part..task.part + operands.len()];
    let (channels, columns, width, places) = (g.channels, task.tiles.len(), vectors * lanes, t.filter.places());
    // Rows that are transformed back in whole vectors.
    let pitch = columns.next_multiple_of(lanes);
    let slab = ROWS.min(task.rows.len()) * pitch + APART;
    let (_products, products) = reserve::<f32>(operands.len() * places * slab);
    let (_results, results) = reserve::<f32>(operands.len() * 4 * pitch);
    let run = [ColumnRun { column: 0, len: pitch, at: 0 }];
    let runs: SmallVec<[_; 2]> = parts.iter().map(|part| runs_of(part, &task.tiles, pitch)).collect();
    let plane = parts[0].phase.places.sizes.iter().product::<usize>();
    let mut is_finite = true;
    for first in (0..task.rows.len()).step_by(ROWS) {
        let rows = ROWS.min(task.rows.len() - first);
        for (i, [weights, tiles]) in operands.iter().enumerate() {
            for place in 0..places {
                let all = weights.slabs.places[place].depth * channels;
                let depth = all.div_ceil(all.div_ceil(block_depth::<f32>(g.isa, width)));
                let at = |place: usize| {
                    let SlabPlace { at, depth } = weights.slabs.places[place];
                    at + (first_row + first) * depth * channels
                };
                for k in (0..all).step_by(depth) {
                    let product = PanelProduct {
                        rows,
                        columns: pitch,
                        depth: Depth::Dense(depth.min(all - k)),
                        a: weights.start.wrapping_add(at(place) + k),
                        a_rs: all as isize,
                        next: at((place + 1).min(places - 1)) as isize - at(place) as isize,
                        b: tiles.start.wrapping_add(tiles.slabs.places[place].at + k * width),
                        panel: all * width,
                        vectors,
                        out: products.wrapping_add((i * places + place) * slab),
                        out_rs: pitch as isize,
                        runs: &run,
                        step: 1,
                        add: k > 0,
                        bias: std::ptr::null(),
                    };
                    // SAFETY: the caller's.
                    let _ = unsafe { multiply::<f32>(g.isa, &product) };
                }
            }
        }
        interrupt::check();
        for r in 0..rows {
            let row = task.group * g.rows + task.rows.start + first + r;
            let y = y.wrapping_add(row * plane);
            // SAFETY: the caller's.
            unsafe {
                let bias = if g.bias.is_null() { 0.0 } else { *g.bias.add(row) };
                let made = [0, 1].map(|i| results.wrapping_add(i * 4 * pitch));
                for (i, made) in made.iter().enumerate().take(operands.len()) {
                    let from = PlacesOfRow { from: products.cast_const().wrapping_add(i * places * slab + r * pitch), slab };
                    is_finite &= transform_results::<f32>(g.isa, t.filter, from, columns, bias, *made, 2 * pitch);
                }
                match &runs[..] {
                    [one, two] => interleave::<f32>(g.isa, [one, two], made.map(<*mut f32>::cast_const), y),
                    runs => {
                        for run in runs.iter().flatten() {
                            std::ptr::copy_nonoverlapping(results.wrapping_add(run.column), y.wrapping_offset(run.at), run.len);
                        }
                    }
                }
            }
        }
    }
    is_finite
}
