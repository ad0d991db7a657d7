//! Results that gather patches: the forward pass, and the gradient of the input. A matrix of weights is multiplied with patches that are
//! packed as they are needed, a block of columns and channels at a time.

use super::geometry::{Patches, Places, Strip};
use super::patches::{LoadPlan, PackedRows, clear, fill, pack, room};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, StoredAs, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, PanelProduct, block_depth, multiply};
use crate::backend::cpu::num::InstructionSet;
use crate::backend::cpu::threads::{SharedPointer, parallel_for};
use crate::backend::interrupt;

/// The most panels of one task; what it packs stays in the second cache.
const PANELS: usize = 9;
/// Tasks that a large product has at least, where its sizes allow for them.
const TASKS: usize = 16;
/// Multiply-adds of a task that is worth a thread.
const WORTH: usize = 1 << 18;
/// Rows that a task has at least if columns are not enough for all tasks: it packs for them alone.
const ROWS: usize = 32;
/// Bytes of weights that stay in the second cache.
const WEIGHTS: usize = 512 << 10;
/// Elements of a strip beyond which a task takes fewer columns.
const STRIP: usize = 1 << 17;

/// The patches of one phase, where its results go, and its matrix.
pub(super) struct GatherPhase<T> {
    pub patches: Patches,
    pub places: Places,
    /// groups x rows x (channels * taps), row-major.
    pub weights: *const T,
}
// SAFETY: only read.
unsafe impl<T> Sync for GatherPhase<T> {}

/// For each group: `rows` channels of the result from `channels` of the image.
pub(super) struct Gather<'a, T> {
    pub isa: InstructionSet,
    pub groups: usize,
    pub rows: usize,
    pub channels: usize,
    pub phases: &'a [GatherPhase<T>],
    /// One for each row of each group; may be null.
    pub bias: *const T,
}
// SAFETY: only read.
unsafe impl<T> Sync for Gather<'_, T> {}

/// A part of the result.
struct GatherTask {
    phase: usize,
    group: usize,
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
}

impl<T: CoreNumber> Gather<'_, T> {
    /// # Safety
    /// `x` has the images of the patches with `groups * channels` channels each, `y` those of the places with `groups * rows`; nothing else
    /// reads or writes y.
    pub unsafe fn run<S: StoredAs<T>>(&self, x: *const S, y: *mut S) {
        let tasks = self.tasks();
        let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
        // SAFETY: each task has results of its own; the rest is the caller's promise.
        parallel_for(tasks.len(), |t| unsafe { self.task(&tasks[t], x.get(), y.get()) });
    }

    fn tasks(&self) -> Vec<GatherTask> {
        let (width, _) = widths::<T>(self.isa);
        let mut tasks = Vec::new();
        for (phase, f) in self.phases.iter().enumerate() {
            let columns = f.patches.batch * f.patches.positions();
            let panels = columns.div_ceil(width);
            if panels == 0 {
                continue;
            }
            let work =
                columns.saturating_mul(self.rows).saturating_mul(self.groups).saturating_mul((self.channels * f.patches.taps()).max(1));
            let wanted = (work / WORTH).clamp(1, TASKS);
            let (together, split) = self.division(f, columns, panels, wanted);
            let each = self.rows.div_ceil(split).next_multiple_of(8);
            for group in 0..self.groups {
                for c in (0..columns).step_by(together * width) {
                    for r in (0..self.rows).step_by(each) {
                        let (columns, rows) = (c..columns.min(c + together * width), r..self.rows.min(r + each));
                        tasks.push(GatherTask { phase, group, columns, rows });
                    }
                }
            }
        }
        tasks
    }

    /// Panels of a task, and into how many parts rows are divided: what is packed again for each part of the rows, and read again for each
    /// part of the columns, costs least.
    fn division(&self, f: &GatherPhase<T>, columns: usize, panels: usize, wanted: usize) -> (usize, usize) {
        let (width, _) = widths::<T>(self.isa);
        let stays = self.rows * self.channels * f.patches.taps() * size_of::<T>() <= WEIGHTS;
        let cost = |together: usize| {
            let chunks = panels.div_ceil(together);
            let split = wanted.div_ceil(chunks * self.groups).min(self.rows / ROWS).max(1);
            let read = chunks * self.rows * if stays { 1 } else { 4 };
            // Too few tasks cost as if nothing helped.
            let idle = wanted.div_ceil(2 * chunks * split * self.groups);
            (idle * (read + 3 * split * panels * width), split)
        };
        let mut best = (usize::MAX, 1, 1);
        for together in 1..=PANELS.min(panels) {
            if together > 1 && Strip::sized(&f.patches, 0, columns.min(together * width), false).size > STRIP {
                break;
            }
            let (cost, split) = cost(together);
            // As even as panels allow.
            let even = panels.div_ceil(panels.div_ceil(together));
            if cost <= best.0 {
                best = (cost, even, split);
            }
        }
        (best.1, best.2)
    }

    unsafe fn task<S: StoredAs<T>>(&self, task: &GatherTask, x: *const S, y: *mut S) {
        let (width, lanes) = widths::<T>(self.isa);
        let GatherPhase { patches: p, places, weights } = &self.phases[task.phase];
        let plane = places.sizes.iter().product::<usize>();
        let (taps, columns, rows) = (p.taps(), task.columns.len(), task.rows.len());
        let depth = self.channels * taps;
        let row = task.group * self.rows + task.rows.start;
        let bias = if self.bias.is_null() { self.bias } else { self.bias.wrapping_add(row) };
        let y = y.wrapping_add(row * plane);
        let mut runs = Vec::new();
        p.each_row(task.columns.start, task.columns.end, |column, n, d, h, w, len| {
            let at = places.row(n, d, h, w);
            match runs.last_mut() {
                Some(ColumnRun { column: c, len: l, at: a }) if places.step[2] == 1 && *a + *l as isize == at && *c + *l == column => {
                    *l += len
                }
                _ => runs.push(ColumnRun { column, len, at }),
            }
        });
        let step = places.step[2] as isize;
        // SAFETY: the caller's, here and below.
        let put = |from: &dyn Fn(usize, usize) -> T| unsafe {
            for run in &runs {
                for r in 0..rows {
                    let to = y.wrapping_offset((r * plane) as isize + run.at);
                    for j in 0..run.len {
                        *to.wrapping_offset(j as isize * step) = S::narrow(from(r, run.column + j));
                    }
                }
            }
        };
        if depth == 0 {
            // SAFETY: as above.
            put(&|r, _| if bias.is_null() { T::ZERO } else { unsafe { *bias.add(r) } });
            return;
        }
        let strip = Strip::new(p, task.columns.start, task.columns.end, S::SAME);
        let plan = LoadPlan::new(&strip, lanes);
        let most = block_depth::<T>(width);
        // Channels of a block, and taps of one that has too many.
        let channels = self.channels.div_ceil(self.channels.div_ceil((most / taps).max(1)));
        let piece = taps.div_ceil(taps.div_ceil(most));
        let block = channels * piece;
        let panels = columns.div_ceil(width);
        let (_own, packed) = room::<T>(panels * block * width);
        let (_strip, buffer) = room::<T>(strip.size);
        // SAFETY: there is room.
        unsafe { clear(strip.size, buffer) };
        let (_sums, sums) = room::<T>(if S::SAME { 0 } else { rows * columns });
        let whole = [ColumnRun { column: 0, len: columns, at: 0 }];
        let weights = weights.wrapping_add(row * depth);
        let group = x.wrapping_add(task.group * self.channels * p.plane());
        let mut is_first = true;
        for first in (0..self.channels).step_by(channels) {
            let channels = channels.min(self.channels - first);
            for t in (0..taps).step_by(piece) {
                let piece = piece.min(taps - t);
                for c in 0..channels {
                    let x = group.wrapping_add((first + c) * p.plane());
                    // SAFETY: as above.
                    unsafe {
                        let from = if strip.size == 0 {
                            x.cast::<T>().wrapping_offset(strip.start)
                        } else {
                            if t == 0 {
                                fill::<T, S>(self.isa, p, &strip, x, buffer);
                            }
                            buffer.cast_const()
                        };
                        let rows = PackedRows { to: packed.wrapping_add(c * piece * width), panel: block * width };
                        pack::<T>(self.isa, &plan, from, &strip.taps[t..t + piece], rows);
                    }
                }
                let product = PanelProduct {
                    rows,
                    columns,
                    depth: channels * piece,
                    a: weights.wrapping_add(first * taps + t),
                    a_rs: depth as isize,
                    b: packed.cast_const(),
                    panel: block * width,
                    out: if S::SAME { y.cast::<T>() } else { sums },
                    out_rs: if S::SAME { plane } else { columns } as isize,
                    runs: if S::SAME { &runs } else { &whole },
                    step: if S::SAME { step } else { 1 },
                    add: !is_first,
                    bias,
                };
                // SAFETY: as above.
                unsafe { multiply::<T>(self.isa, &product) };
                is_first = false;
                interrupt::check();
            }
        }
        if !S::SAME {
            // SAFETY: all sums have been written.
            put(&|r, c| unsafe { *sums.add(r * columns + c) });
        }
    }
}
