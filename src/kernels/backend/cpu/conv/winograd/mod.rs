//! Convolutions of float32 with 3x3 kernels and stride 1 in fewer products than the definition has: 16 in place of 36 for each 2x2 results
//! (Winograd's minimal filtering F(2x2, 3x3); Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). Weights and tiles of
//! the image are transformed, multiplied in 16 separate matrix products, and the products transformed back.
//!
//! Rounding errors are about twice those of the definition, and relative to the largest elements that a result depends on. An element reaches
//! the results that depend on it, and no others. Infinite numbers do not pass through differences: where a result is not finite, the caller
//! computes all from the definition.
//!
//! Not here: float64, in which whoever asks for it wants all digits; strides; and the transforms themselves.

#[cfg(test)]
mod tests;
mod transforms;
pub(super) mod weight;

use self::transforms::{PLACES, TilePanels, WeightsToTransform, transform_results, transform_tiles, transform_weights};
use super::gather::{Gather, GatherPhase, TASKS, WORTH};
use super::geometry::{Axis, Patches, Strip};
use super::patches::{LoadPlan, clear, fill, room};
use crate::backend::cpu::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widest, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, Depth, PanelProduct, block_depth, multiply};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::num::InstructionSet;
use crate::backend::cpu::threads::{SharedPointer, parallel_for};
use crate::backend::interrupt;
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
/// What transforms take, in multiply-adds: of one weight, also where all transformed ones are too many for the caches, and of a tile of one
/// channel or row.
const WEIGHT_COST: [usize; 2] = [700, 2500];
/// As the first, of weights that are multiplied at once.
const WEIGHT_COST_NEAR: usize = 100;
const TILE_COST: usize = 150;
/// Transformed weights that the caches hold.
const CACHED: usize = 1 << 21;

/// The tiles of a result, and where its weights lie.
struct Tiled<'a> {
    phase: &'a GatherPhase,
    tiles: Patches,
    /// Where the weight lies that meets row `i` and column `j` of a patch, at `3 i + j`.
    taps: [usize; 9],
    /// Whether there are few tiles for many weights.
    are_few: bool,
}

impl Tiled<'_> {
    /// Tiles of all images.
    fn columns(&self) -> usize {
        self.tiles.batch.saturating_mul(self.tiles.positions())
    }

    /// The vectors of a panel if there are few tiles, and lanes of a vector: one panel of all, if that may be.
    fn few_vectors(&self, isa: InstructionSet) -> (usize, usize) {
        let ((width, lanes), widest) = (widths::<f32>(isa), widest::<f32>(isa));
        let columns = self.columns().next_multiple_of(lanes);
        (if columns <= widest { columns } else { width } / lanes, lanes)
    }
}

/// A part of the result.
struct TileTask {
    group: usize,
    tiles: Range<usize>,
    rows: Range<usize>,
}

/// The tiles, if it may be computed in this way and gains.
fn fits<'a>(g: &Gather<'a, f32>) -> Option<Tiled<'a>> {
    let [phase] = g.phases else { return None };
    let p = &phase.patches;
    let [a, b, c] = &p.axes;
    let is_three = |axis: &Axis| axis.stride == 1 && axis.taps.len() == 3 && axis.most() - axis.least() == 2;
    if a.taps.len() != 1 || a.stride != 1 || !is_three(b) || !is_three(c) || phase.places.step != [1; 3] {
        return None;
    }
    // In either order: the gradient of the image meets the weights from the last one on.
    let mut taps = [0; 9];
    for (i, y) in b.taps.iter().enumerate() {
        for (j, x) in c.taps.iter().enumerate() {
            taps[(3 * (y.0 - b.least()) + x.0 - c.least()) as usize] = phase.weights.taps[3 * i + j];
        }
    }
    let tiles = p.in_tiles();
    let weights = g.channels * g.rows;
    let mut tiled = Tiled { phase, tiles, taps, are_few: false };
    let all = tiled.columns();
    tiled.are_few = all <= FEW[0] && all * PLACES * g.channels <= FEW[1] && PLACES * weights > MANY;
    let plain = p.batch.saturating_mul(p.positions()).saturating_mul(9 * weights);
    let weight_cost = if tiled.are_few { WEIGHT_COST_NEAR } else { WEIGHT_COST[usize::from(PLACES * weights > CACHED)] };
    let ours = all.saturating_mul(PLACES * weights + TILE_COST * (g.channels + g.rows)).saturating_add(weight_cost * weights);
    (ours < plain).then_some(tiled)
}

/// Computes it in this way if that may be and gains. True means that it has been done, and that all results are finite.
///
/// # Safety
/// As for `Gather::run`.
pub(super) unsafe fn run_if_it_fits<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, x: *const S, y: *mut S) -> bool {
    if TypeId::of::<S>() != TypeId::of::<f32>() {
        return false;
    }
    // SAFETY: numbers are float32, since elements are; the rest is the caller's promise.
    unsafe {
        let g = &*(&raw const *g).cast::<Gather<'_, f32>>();
        fits(g).is_some_and(|tiled| run(g, &tiled, x.cast(), y.cast()))
    }
}

/// # Safety
/// As for `Gather::run`; the tiles are those of `fits`.
unsafe fn run(g: &Gather<'_, f32>, t: &Tiled<'_>, x: *const f32, y: *mut f32) -> bool {
    // SAFETY: the caller's.
    unsafe { if t.are_few { by_rows(g, t, x, y) } else { by_tiles(g, t, x, y) } }
}

/// Transformed weights, or tiles: place `p` lies `p * slab` behind the start.
#[derive(Debug, Clone, Copy)]
struct Slabs {
    start: *const f32,
    slab: usize,
}
// SAFETY: only read.
unsafe impl Sync for Slabs {}

/// All weights are transformed first. Then each task transforms some tiles, and multiplies them.
///
/// # Safety
/// As for `run`.
unsafe fn by_tiles(g: &Gather<'_, f32>, t: &Tiled<'_>, x: *const f32, y: *mut f32) -> bool {
    let slab = g.rows * g.channels + APART;
    let (_weights, weights) = room::<f32>(g.groups * PLACES * slab);
    let blocks = g.rows.div_ceil(WEIGHT_ROWS);
    let to = SharedPointer::new(weights);
    parallel_for(g.groups * blocks, |k| {
        let (group, first) = (k / blocks, k % blocks * WEIGHT_ROWS);
        // SAFETY: each task writes rows of its own; the rest is the caller's promise.
        unsafe { weights_of(g, t, group, first..g.rows.min(first + WEIGHT_ROWS), to.at(group * PLACES * slab + first * g.channels), slab) };
    });
    let tasks = tasks(g, t);
    let (x, y, weights) = (SharedPointer::new(x), SharedPointer::new(y), SharedPointer::new(weights.cast_const()));
    let (width, lanes) = widths::<f32>(g.isa);
    let is_finite = AtomicBool::new(true);
    ImageEpilogue::parallel_for(g.epilogue, tasks.len(), &|k| t.tiles.images(&tasks[k].tiles), &|k| {
        let task = &tasks[k];
        let tile_slab = task.tiles.len().div_ceil(width) * g.channels * width + APART;
        let (_tiles, tiles) = room::<f32>(PLACES * tile_slab);
        let to = TilePanels { to: tiles, slab: tile_slab, vectors: width / lanes, panel: g.channels * width };
        let weights = Slabs { start: weights.get().wrapping_add(task.group * PLACES * slab + task.rows.start * g.channels), slab };
        // SAFETY: each task has results of its own; the rest is the caller's promise.
        unsafe {
            tiles_of(g, t, task.group, &task.tiles, 0..g.channels, x.get(), to);
            if !products(g, t, task, weights, to, y.get()) {
                is_finite.store(false, Ordering::Relaxed);
            }
        }
    });
    is_finite.into_inner()
}

/// All tiles are transformed first. Then each task transforms the weights of some rows, which stay in the second cache, and multiplies them: all
/// transformed weights together would be read and written where there is little to multiply them with.
///
/// # Safety
/// As for `run`.
unsafe fn by_rows(g: &Gather<'_, f32>, t: &Tiled<'_>, x: *const f32, y: *mut f32) -> bool {
    let (columns, channels) = (t.columns(), g.channels);
    let (vectors, lanes) = t.few_vectors(g.isa);
    let (width, panels) = (vectors * lanes, columns.div_ceil(vectors * lanes));
    let slab = panels * channels * width + APART;
    let (_tiles, tiles) = room::<f32>(g.groups * PLACES * slab);
    let (x, y, to) = (SharedPointer::new(x), SharedPointer::new(y), SharedPointer::new(tiles));
    let panels_of = |group: usize| TilePanels { to: to.at(group * PLACES * slab), slab, vectors, panel: channels * width };
    let each = (EACH / columns).clamp(1, channels);
    let blocks = channels.div_ceil(each);
    parallel_for(g.groups * blocks, |k| {
        let (group, first) = (k / blocks, k % blocks * each);
        let channels = first..channels.min(first + each);
        // SAFETY: each task writes channels of its own; the rest is the caller's promise.
        unsafe { tiles_of(g, t, group, &(0..columns), channels, x.get(), panels_of(group)) };
    });
    // Whole tiles of six rows, and of eight where there is room.
    let rows = match BLOCK / (PLACES * channels) {
        24.. => 24,
        12.. => 12,
        _ => 6,
    };
    let blocks = g.rows.div_ceil(rows);
    let is_finite = AtomicBool::new(true);
    ImageEpilogue::parallel_for(g.epilogue, g.groups * blocks, &|_| 0..t.tiles.batch, &|k| {
        let (group, first) = (k / blocks, k % blocks * rows);
        let task = TileTask { group, tiles: 0..columns, rows: first..g.rows.min(first + rows) };
        let slab = rows * channels + APART;
        let (_weights, weights) = room::<f32>(PLACES * slab);
        // SAFETY: each task has results of its own; the rest is the caller's promise.
        unsafe {
            weights_of(g, t, group, task.rows.clone(), weights, slab);
            if !products(g, t, &task, Slabs { start: weights, slab }, panels_of(group), y.get()) {
                is_finite.store(false, Ordering::Relaxed);
            }
        }
    });
    is_finite.into_inner()
}

/// Transforms the weights of some rows; those of the first row go to `to`.
///
/// # Safety
/// As for `run`; there is room.
unsafe fn weights_of(g: &Gather<'_, f32>, t: &Tiled<'_>, group: usize, rows: Range<usize>, to: *mut f32, slab: usize) {
    let from = &t.phase.weights;
    let w = WeightsToTransform {
        from: g.weights.wrapping_add(from.at(group, rows.start, 0)),
        row: from.row,
        channel: from.channel,
        taps: t.taps,
        channels: g.channels,
        to,
        slab,
    };
    // SAFETY: the caller's.
    unsafe { transform_weights::<f32>(g.isa, &w, 0..rows.len()) };
}

/// Transforms some tiles of some channels.
///
/// # Safety
/// As for `run`; there is room.
unsafe fn tiles_of(
    g: &Gather<'_, f32>,
    t: &Tiled<'_>,
    group: usize,
    tiles: &Range<usize>,
    channels: Range<usize>,
    x: *const f32,
    to: TilePanels<f32>,
) {
    let (p, lanes) = (&t.tiles, widths::<f32>(g.isa).1);
    let strip = Strip::new(p, tiles.start, tiles.end, true);
    let plan = LoadPlan::new(&strip, lanes);
    let (_strip, buffer) = room::<f32>(strip.size);
    let width = to.vectors * lanes;
    // SAFETY: there is room; the rest is the caller's promise.
    unsafe {
        clear(strip.size, buffer);
        for c in channels {
            let x = x.wrapping_add((group * g.channels + c) * p.plane());
            fill::<f32, f32>(g.isa, p, &strip, x, buffer);
            transform_tiles::<f32>(g.isa, &plan, buffer, &strip, TilePanels { to: to.to.wrapping_add(c * width), ..to });
        }
    }
}

fn tasks(g: &Gather<'_, f32>, t: &Tiled<'_>) -> Vec<TileTask> {
    let (width, _) = widths::<f32>(g.isa);
    let all = t.tiles.batch * t.tiles.positions();
    let panels = all.div_ceil(width);
    let work = all.saturating_mul(PLACES * g.rows).saturating_mul(g.groups * g.channels);
    let wanted = (work / WORTH).clamp(1, TASKS);
    let most = (TILES / (PLACES * g.channels * width)).clamp(1, panels);
    let chunks = panels.div_ceil(most).max(panels.min(wanted / 2));
    let each = panels.div_ceil(chunks) * width;
    // Tiles are transformed again for each part of the rows.
    let split = (wanted / (2 * chunks * g.groups)).clamp(1, (g.rows / ROWS).max(1));
    let rows = g.rows.div_ceil(split).next_multiple_of(2);
    let mut tasks = Vec::new();
    for group in 0..g.groups {
        for first in (0..all).step_by(each) {
            for r in (0..g.rows).step_by(rows) {
                tasks.push(TileTask { group, tiles: first..all.min(first + each), rows: r..g.rows.min(r + rows) });
            }
        }
    }
    tasks
}

/// The results of a task, of transformed weights of its rows and transformed tiles. True means that all are finite.
///
/// # Safety
/// As for `run`.
unsafe fn products(g: &Gather<'_, f32>, t: &Tiled<'_>, task: &TileTask, weights: Slabs, tiles: TilePanels<f32>, y: *mut f32) -> bool {
    let lanes = widths::<f32>(g.isa).1;
    let (p, places) = (&t.tiles, &t.phase.places);
    let (channels, columns, width) = (g.channels, task.tiles.len(), tiles.vectors * lanes);
    // Rows that are transformed back in whole vectors.
    let pitch = columns.next_multiple_of(lanes);
    let product_slab = ROWS.min(task.rows.len()) * pitch + APART;
    let (_products, products) = room::<f32>(PLACES * product_slab);
    let (_results, results) = room::<f32>(4 * pitch);
    let runs = [ColumnRun { column: 0, len: pitch, at: 0 }];
    let depth = channels.div_ceil(channels.div_ceil(block_depth::<f32>(g.isa, width)));
    let plane = places.sizes.iter().product::<usize>();
    let mut is_finite = true;
    for first in (0..task.rows.len()).step_by(ROWS) {
        let rows = ROWS.min(task.rows.len() - first);
        for place in 0..PLACES {
            for k in (0..channels).step_by(depth) {
                let product = PanelProduct {
                    rows,
                    columns: pitch,
                    depth: Depth::Dense(depth.min(channels - k)),
                    a: weights.start.wrapping_add(place * weights.slab + first * channels + k),
                    a_rs: channels as isize,
                    next: weights.slab as isize,
                    b: tiles.to.cast_const().wrapping_add(place * tiles.slab + k * width),
                    panel: tiles.panel,
                    vectors: tiles.vectors,
                    out: products.wrapping_add(place * product_slab),
                    out_rs: pitch as isize,
                    runs: &runs,
                    step: 1,
                    add: k > 0,
                    bias: std::ptr::null(),
                };
                // SAFETY: the caller's.
                let _ = unsafe { multiply::<f32>(g.isa, &product) };
            }
        }
        interrupt::check();
        for r in 0..rows {
            let row = task.group * g.rows + task.rows.start + first + r;
            // SAFETY: the caller's.
            unsafe {
                let bias = if g.bias.is_null() { 0.0 } else { *g.bias.add(row) };
                let from = products.cast_const().wrapping_add(r * pitch);
                is_finite &= transform_results::<f32>(g.isa, from, product_slab, columns, bias, results, 2 * pitch);
                let y = y.wrapping_add(row * plane);
                p.each_row(task.tiles.start, task.tiles.end, |tile, n, d, h, w, len| {
                    let [_, height, width] = [0, 1, 2].map(|d| t.phase.patches.axes[d].out);
                    let len = (2 * len).min(width - 2 * w);
                    for i in 0..2.min(height - 2 * h) {
                        let to = y.wrapping_offset(places.row(n, d, 2 * h + i, 2 * w));
                        std::ptr::copy_nonoverlapping(results.cast_const().wrapping_add(2 * (i * pitch + tile)), to, len);
                    }
                });
            }
        }
    }
    is_finite
}
