//! The gradient of weights in the same way: with tiles `e` of 2x2 elements of the output's gradient it is the sum of `G' (A' e A * B d B') G`
//! over all tiles, so a product over tiles for each item. An item of the image meets its place of the gradient.

use super::filter::{Filter, ITEMS, Item};
use super::transforms::{GradientParts, TilePanels, TransposedTiles, transform_gradients, transform_parts, transform_tiles_transposed};
use super::{APART, WEIGHT_COST};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::conv::algorithms::{Results, WeightPass};
use crate::backend::cpu::conv::gather::{TASKS, WORTH};
use crate::backend::cpu::conv::geometry::{Patches, Strip};
use crate::backend::cpu::conv::patches::{LoadPlan, clear, fill, reserve};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, Depth, PanelProduct, block_depth, multiply};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::call::ConvShape;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;
use std::any::TypeId;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Channels of a task, if there are more: each task transforms all gradients.
const CHANNELS: usize = 64;
/// Elements of transformed tiles and gradients of a task.
const TILES: usize = 1 << 18;
/// The most numbers of all partial sums together.
const PARTIAL: usize = 1 << 20;
/// Rows that a thread transforms back at a time.
const ROWS: usize = 4;

/// Sums of one group and some channels, over some tiles.
struct WeightTask {
    group: usize,
    channels: Range<usize>,
    tiles: Range<usize>,
    part: usize,
}

/// What all tasks share.
pub(in crate::backend::cpu) struct TiledWeights<'a> {
    isa: InstructionSet,
    filter: Filter,
    s: &'a ConvShape,
    image: Patches,
    gradient: Patches,
    /// Elements between the places of the sums.
    slab: usize,
}

/// The tiles of the image and of the gradient.
pub(in crate::backend::cpu::conv) fn plan<'p, T: CoreNumber, S: StoredAs<T>>(
    call: &'p WeightPass<'_, T, S>,
    asked: Asked,
) -> Result<TiledWeights<'p>, Why> {
    call.is_worth(asked)?;
    needs(TypeId::of::<S>() == TypeId::of::<f32>(), "elements are not float32")?;
    let (isa, s) = (call.isa, call.shape);
    needs((s.kernel[0], s.stride[0]) == (1, 1), "the kernel has three dimensions")?;
    let patches = Patches::forward(s);
    let filter = Filter::of([&patches.axes[1], &patches.axes[2]]).ok_or("there is no filter of this kernel and stride")?;
    let image = patches.in_tiles(filter.elements());
    let (all, results) = (s.batch.saturating_mul(image.positions()), s.batch.saturating_mul(s.output.iter().product()));
    let weights = s.in_channels * s.out_channels;
    let plain = results.saturating_mul(patches.taps() * weights);
    let (items, places) = (filter.items(), filter.places());
    let transforms = filter.tile_cost(1) * (items * s.in_channels + places * s.out_channels * s.in_channels.div_ceil(CHANNELS)) / 16;
    // The first cost also where weights are large: both ways were measured to take as long there.
    let ours = all.saturating_mul(items * weights + transforms).saturating_add(filter.weight_cost(2 * WEIGHT_COST[0]) * weights);
    asked.gains(ours < plain, "transforms would cost more than products that are saved")?;
    let gradient = Patches::gradient_tiles(s);
    Ok(TiledWeights { isa, filter, s, image, gradient, slab: s.out_channels * s.in_channels + APART })
}

impl TiledWeights<'_> {
    /// # Safety
    /// As for `weight::weight`, of the pass that was planned.
    pub(in crate::backend::cpu::conv) unsafe fn run(&self, g: *const f32, x: *const f32, w: *mut f32) -> Results {
        let s = self.s;
        let tasks = self.tasks();
        let parts = tasks.iter().map(|t| t.part + 1).max().unwrap_or(1);
        let group = self.filter.items() * self.slab;
        let (_sums, sums) = reserve::<f32>(parts * s.groups * group);
        let (g, x, w, sums) = (SharedPointer::new(g), SharedPointer::new(x), SharedPointer::new(w), SharedPointer::new(sums));
        parallel_for(tasks.len(), |k| {
            let task = &tasks[k];
            // SAFETY: each task has sums of its own; the rest is the caller's promise.
            unsafe { self.task(task, g.get(), x.get(), sums.at((task.part * s.groups + task.group) * group)) };
        });
        let is_finite = AtomicBool::new(true);
        let blocks = s.out_channels.div_ceil(ROWS);
        parallel_for(s.groups * blocks, |k| {
            let (n, first) = (k / blocks, k % blocks * ROWS);
            let from = GradientParts {
                from: sums.at(n * group).cast_const(),
                slab: self.slab,
                parts,
                apart: s.groups * group,
                channels: s.in_channels,
                to: w.at(n * s.out_channels * s.in_channels * self.filter.weights().pow(2)),
            };
            // SAFETY: all sums have been written; each task writes rows of its own.
            if !unsafe { transform_parts::<f32>(self.isa, self.filter, &from, first..s.out_channels.min(first + ROWS)) } {
                is_finite.store(false, Ordering::Relaxed);
            }
        });
        Results::seen(is_finite.into_inner())
    }

    fn tasks(&self) -> Vec<WeightTask> {
        let s = self.s;
        let (_, lanes) = widths::<f32>(self.isa);
        let all = s.batch * self.image.positions();
        let work = all.saturating_mul(self.filter.items() * s.out_channels).saturating_mul(s.groups * s.in_channels);
        let wanted = (work / WORTH).clamp(1, TASKS);
        let chunks = s.in_channels.div_ceil(CHANNELS);
        let each = s.in_channels.div_ceil(chunks).next_multiple_of(lanes);
        let numel = s.groups * self.filter.items() * self.slab;
        let parts = (wanted / (chunks * s.groups)).min(PARTIAL / numel).min(all / (8 * lanes)).max(1);
        // As many for each of two threads.
        let parts = if parts > 2 { parts / 2 * 2 } else { parts };
        let tiles = all.div_ceil(parts).next_multiple_of(lanes);
        let mut tasks = Vec::new();
        for (part, first) in (0..all).step_by(tiles).enumerate() {
            for group in 0..s.groups {
                for c in (0..s.in_channels).step_by(each) {
                    let channels = c..s.in_channels.min(c + each);
                    tasks.push(WeightTask { group, channels, tiles: first..all.min(first + tiles), part });
                }
            }
        }
        tasks
    }

    /// # Safety
    /// As for `run`; nobody else writes these sums.
    unsafe fn task(&self, task: &WeightTask, g: *const f32, x: *const f32, sums: *mut f32) {
        let (s, isa, filter) = (self.s, self.isa, self.filter);
        let (items, places) = (filter.items(), filter.places());
        let (width, lanes) = widths::<f32>(isa);
        let (rows, columns) = (s.out_channels, task.channels.len());
        let panels = columns.div_ceil(width);
        let most = (TILES / (items * panels * width + places * rows)).min(block_depth::<f32>(isa, width)) / lanes * lanes;
        let blocks = task.tiles.len().div_ceil(most.max(lanes));
        let block = task.tiles.len().div_ceil(blocks).next_multiple_of(lanes);
        let tile_slab = panels * block * width + APART;
        let (_tiles, tiles) = reserve::<f32>(items * tile_slab);
        let gradient_slab = rows * block + APART;
        let (_gradients, gradients) = reserve::<f32>(places * gradient_slab);
        let x = x.wrapping_add((task.group * s.in_channels + task.channels.start) * self.image.plane());
        let g = g.wrapping_add(task.group * rows * self.gradient.plane());
        let runs = [ColumnRun { column: 0, len: columns, at: 0 }];
        let slabs: [Item; ITEMS] = std::array::from_fn(|place| Item { at: place * gradient_slab, step: 0 });
        for first in task.tiles.clone().step_by(block) {
            let end = task.tiles.end.min(first + block);
            // SAFETY: there is room; the rest is the caller's promise.
            unsafe {
                self.pack_tiles(first..end, columns, x, TransposedTiles { to: tiles, slab: tile_slab, panel: block * width, width });
                let strip = Strip::new(&self.gradient, first, end, true);
                let plan = LoadPlan::new(&strip, lanes);
                let (_strip, buffer) = reserve::<f32>(strip.size);
                clear(strip.size, buffer);
                for r in 0..rows {
                    fill::<f32, f32>(isa, &self.gradient, &strip, g.wrapping_add(r * self.gradient.plane()), buffer);
                    let to = TilePanels { to: gradients.wrapping_add(r * block), items: &slabs, vectors: plan.vectors() };
                    transform_gradients::<f32>(isa, filter, &plan, buffer, &strip, to);
                }
                for item in 0..items {
                    let place = filter.place(item);
                    let product = PanelProduct {
                        rows,
                        columns,
                        depth: Depth::Dense(end - first),
                        a: gradients.cast_const().wrapping_add(place * gradient_slab),
                        a_rs: block as isize,
                        next: (filter.place((item + 1).min(items - 1)) as isize - place as isize) * gradient_slab as isize,
                        b: tiles.cast_const().wrapping_add(item * tile_slab),
                        panel: block * width,
                        vectors: width / lanes,
                        out: sums.wrapping_add(item * self.slab + task.channels.start),
                        out_rs: s.in_channels as isize,
                        runs: &runs,
                        step: 1,
                        add: first > task.tiles.start,
                        bias: std::ptr::null(),
                    };
                    let _ = multiply::<f32>(isa, &product);
                }
            }
            interrupt::check();
        }
    }

    /// Transforms tiles of some channels of the image, with tiles as rows of panels.
    ///
    /// # Safety
    /// They are readable, and there is room.
    unsafe fn pack_tiles(&self, range: Range<usize>, channels: usize, x: *const f32, to: TransposedTiles<f32>) {
        let (p, isa) = (&self.image, self.isa);
        let (_, lanes) = widths::<f32>(isa);
        let strip = Strip::new(p, range.start, range.end, true);
        let plan = LoadPlan::new(&strip, lanes);
        let (_strips, buffer) = reserve::<f32>(lanes * strip.size);
        // SAFETY: the caller's.
        unsafe {
            clear(lanes * strip.size, buffer);
            for first in (0..channels).step_by(lanes) {
                let n = lanes.min(channels - first);
                for c in 0..n {
                    fill::<f32, f32>(isa, p, &strip, x.wrapping_add((first + c) * p.plane()), buffer.wrapping_add(c * strip.size));
                }
                let column = to.to.wrapping_add(first / to.width * to.panel + first % to.width);
                transform_tiles_transposed::<f32>(isa, self.filter, &plan, buffer, &strip, TransposedTiles { to: column, ..to });
            }
        }
    }
}
