//! Results that gather patches: the forward pass, and the gradient of the input. Weights are multiplied with patches, a block of columns and
//! channels at a time. Weights are read as they lie, in any order. Patches are either shifts of the image with its padding, with columns
//! between the rows that belong to no position, or packed as they are needed.

use super::geometry::{Patches, Places, Strip};
use super::pairs::{are_a_pair, interleave};
use super::patches::{LoadPlan, PackedRows, clear, fill, pack, room};
use crate::backend::cpu::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widest, widths};
use crate::backend::cpu::matmul::panels::{
    ColumnRun, Depth, DepthPlace, PanelProduct, block_bytes, block_depth, has_dense_loops, multiply,
};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::memory::alloc::Buffer;
use crate::backend::cpu::num::InstructionSet;
use crate::backend::cpu::threads::SharedPointer;
use crate::backend::interrupt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most panels of one task; what it packs stays in the second cache.
const PANELS: usize = 9;
/// Tasks that a large product has at least, where its sizes allow for them.
pub(super) const TASKS: usize = 16;
/// Multiply-adds of a task that is worth a thread.
pub(super) const WORTH: usize = 1 << 18;
/// Rows that a task has at least if columns are not enough for all tasks: it packs for them alone.
pub(super) const ROWS: usize = 32;
/// Bytes of weights that stay in the second cache.
const WEIGHTS: usize = 512 << 10;
/// Elements of a strip beyond which a task takes fewer columns.
pub(super) const STRIP: usize = 1 << 17;
/// Elements of the strips of a block.
const STRIPS: usize = 1 << 17;
/// Channels that are asked for before they are packed.
const AHEAD: usize = 4;
/// The fewest taps that pay for shifts: fewer read about as much as packing does.
const SHIFTED: usize = 2;
/// Packing a vector takes as long as its products with so many rows, and so many more for each row of positions that it has lanes of.
const PACKING: [usize; 2] = [4, 4];

/// Where the weights of a phase lie: the first one, strides of groups, rows and channels, and the place of each tap.
#[derive(Debug, Clone)]
pub(super) struct WeightPlaces {
    pub start: usize,
    pub group: usize,
    pub row: usize,
    pub channel: usize,
    pub taps: Vec<usize>,
}

impl WeightPlaces {
    pub fn at(&self, group: usize, row: usize, channel: usize) -> usize {
        self.start + group * self.group + row * self.row + channel * self.channel
    }
}

/// The patches of one phase, where its results go, and which weights it takes.
pub(super) struct GatherPhase {
    pub patches: Patches,
    pub places: Places,
    pub weights: WeightPlaces,
}

/// For each group: `rows` channels of the result from `channels` of the image.
pub(super) struct Gather<'a, T> {
    pub isa: InstructionSet,
    pub groups: usize,
    pub rows: usize,
    pub channels: usize,
    pub phases: &'a [GatherPhase],
    pub weights: *const T,
    /// One for each row of each group; may be null.
    pub bias: *const T,
    /// Of the images of the result.
    pub epilogue: Option<&'a ImageEpilogue<'a>>,
}
// SAFETY: only read.
unsafe impl<T> Sync for Gather<'_, T> {}

/// A part of the result.
struct GatherTask {
    phase: usize,
    /// Whether the next phase is computed, too, for the same columns.
    is_pair: bool,
    group: usize,
    columns: Range<usize>,
    rows: Range<usize>,
}

impl<T: CoreNumber> Gather<'_, T> {
    /// # Safety
    /// `x` has the images of the patches with `groups * channels` channels each, `y` those of the places with `groups * rows`; nothing else
    /// reads or writes y. True means that all results are finite.
    pub unsafe fn run<S: StoredAs<T>>(&self, x: *const S, y: *mut S) -> bool {
        let tasks = self.tasks(S::SAME);
        let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
        let is_finite = AtomicBool::new(true);
        let images = |t: usize| self.phases[tasks[t].phase].patches.images(&tasks[t].columns);
        ImageEpilogue::parallel_for(self.epilogue, tasks.len(), &images, &|t| {
            // SAFETY: each task has results of its own; the rest is the caller's promise.
            if !unsafe { self.task(&tasks[t], x.get(), y.get()) } {
                is_finite.store(false, Ordering::Relaxed);
            }
        });
        is_finite.into_inner()
    }

    fn tasks(&self, same: bool) -> Vec<GatherTask> {
        let (width, _) = widths::<T>(self.isa);
        let mut tasks = Vec::new();
        let mut next = 0;
        while let Some(f) = self.phases.get(next) {
            let phase = next;
            let pair =
                self.phases.get(phase + 1).filter(|two| same && are_a_pair(f, two) && f.patches.axes[2].out == two.patches.axes[2].out);
            let is_pair = pair.is_some();
            next += 1 + usize::from(is_pair);
            let columns = f.patches.batch * f.patches.positions();
            let panels = columns.div_ceil(width);
            if panels == 0 {
                continue;
            }
            let taps = f.patches.taps() + pair.map_or(0, |two| two.patches.taps());
            let work = columns.saturating_mul(self.rows).saturating_mul(self.groups).saturating_mul((self.channels * taps).max(1));
            let wanted = (work / WORTH).clamp(1, TASKS);
            let (together, split) = self.division(f, columns, panels, wanted);
            let each = self.rows.div_ceil(split).next_multiple_of(8);
            let chunks = panels.div_ceil(together);
            for group in 0..self.groups {
                for c in 0..chunks {
                    // As even as panels allow.
                    let [first, end] = [c, c + 1].map(|c| columns.min(c * panels / chunks * width));
                    for r in (0..self.rows).step_by(each) {
                        let (columns, rows) = (first..end, r..self.rows.min(r + each));
                        tasks.push(GatherTask { phase, is_pair, group, columns, rows });
                    }
                }
            }
        }
        // Tasks that read the same weights follow each other.
        tasks.sort_by_key(|t| (t.group, t.rows.start, t.phase));
        tasks
    }

    /// Panels of a task, and into how many parts rows are divided: what is packed again for each part of the rows, and read again for each
    /// part of the columns, costs least.
    fn division(&self, f: &GatherPhase, columns: usize, panels: usize, wanted: usize) -> (usize, usize) {
        let (width, _) = widths::<T>(self.isa);
        let stays = self.rows * self.channels * f.patches.taps() * size_of::<T>() <= WEIGHTS;
        let cost = |together: usize| {
            let chunks = panels.div_ceil(together);
            let most = wanted.div_ceil(chunks * self.groups).min(self.rows / ROWS).max(1);
            let read = chunks * self.rows * if stays { 1 } else { 4 };
            let cost = |split: usize| {
                // Too few tasks cost as if nothing helped.
                let idle = wanted.div_ceil(2 * chunks * split * self.groups);
                (idle * (read + 3 * split * panels * width), split)
            };
            cost(most).min(cost(most.div_ceil(2)))
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

    unsafe fn task<S: StoredAs<T>>(&self, task: &GatherTask, x: *const S, y: *mut S) -> bool {
        let places = &self.phases[task.phase].places;
        let (plane, step) = (places.sizes.iter().product::<usize>(), places.step[2]);
        let y = y.wrapping_add((task.group * self.rows + task.rows.start) * plane);
        // SAFETY: the caller's, here and below.
        unsafe {
            if S::SAME && !task.is_pair {
                return self.products(task, task.phase..task.phase + 1, x, Some((y.cast(), plane)))[0].is_finite;
            }
            let mut made = self.products(task, task.phase..task.phase + 1 + usize::from(task.is_pair), x, None).into_iter();
            let one = made.next().expect("as many as phases");
            let Some(two) = made.next() else {
                put(&one.runs, task.rows.len(), y, (plane, step), |r, c| S::narrow(*one.sums.add(r * one.columns + c)));
                return one.is_finite;
            };
            for r in 0..task.rows.len() {
                let from = [one.sums.cast_const().add(r * one.columns), two.sums.cast_const().add(r * two.columns)];
                interleave::<T>(self.isa, [&one.runs, &two.runs], from, y.add(r * plane).cast());
            }
            one.is_finite && two.is_finite
        }
    }

    /// The results of a phase, or of a pair of them, in their places of rows so far apart, or else in memory of their own.
    ///
    /// # Safety
    /// As for `run`; only one phase has places.
    unsafe fn products<S: StoredAs<T>>(
        &self,
        task: &GatherTask,
        phases: Range<usize>,
        x: *const S,
        out: Option<(*mut T, usize)>,
    ) -> Vec<PhaseSums<T>> {
        let (width, lanes) = widths::<T>(self.isa);
        // SAFETY: the caller's.
        let one_by_one = || phases.clone().flat_map(|f| unsafe { self.products(task, f..f + 1, x, out) }).collect();
        let phases = &self.phases[phases.clone()];
        let rows = task.rows.len();
        let row = task.group * self.rows + task.rows.start;
        let bias = if self.bias.is_null() { self.bias } else { self.bias.wrapping_add(row) };
        if phases.iter().any(|f| self.channels * f.patches.taps() == 0) {
            let [f] = phases else { return one_by_one() };
            let (runs, columns) = (runs(&f.patches, &f.places, &task.columns, |column| column), task.columns.len());
            let (memory, sums) = room::<T>(if out.is_some() { 0 } else { rows * columns });
            // SAFETY: the caller's, here and below; there is room.
            unsafe {
                let value = |r: usize, _| if bias.is_null() { T::ZERO } else { *bias.add(r) };
                match out {
                    Some((y, plane)) => put(&runs, rows, y, (plane, f.places.step[2]), value),
                    None => put(&[ColumnRun { column: 0, len: columns, at: 0 }], rows, sums, (columns, 1), value),
                }
            }
            return vec![PhaseSums { _memory: memory, sums, columns, runs, is_finite: true }];
        }
        // A pair's patches overlap, and are laid out once for both.
        let united = match phases {
            [one, two] => Some(one.patches.united(&two.patches)),
            _ => None,
        };
        let p = united.as_ref().unwrap_or(&phases[0].patches);
        let taps = p.taps();
        let mut strip = Strip::new(p, task.columns.start, task.columns.end, S::SAME);
        let vectors = |columns: usize| columns.div_ceil(lanes);
        // Shifts are a quarter slower than panels: their vectors lie across the borders of cache lines.
        let packing = PACKING[0] + PACKING[1] * (1 + lanes / p.axes[2].out);
        let is_shifted = taps >= SHIFTED
            && p.axes[2].stride == 1
            && vectors(strip.span()) * rows * 5 <= vectors(task.columns.len()) * (rows + packing) * 4;
        if is_shifted && strip.size == 0 {
            // Vectors read beyond the last column.
            strip = Strip::new(p, task.columns.start, task.columns.end, false);
        }
        let columns = if is_shifted { strip.span() } else { task.columns.len() };
        // One panel of all columns rather than two, if the second would have few.
        let width = if columns > width { widest::<T>(self.isa) } else { width };
        let width = if columns <= width { width } else { widths::<T>(self.isa).0 };
        let most = if is_shifted {
            // With the weights of some rows.
            let reach = (width.min(columns) + strip.reach() + 8 * taps) * size_of::<T>();
            (block_bytes(self.isa) / reach).min(STRIPS / strip.size).max(1) * taps
        } else {
            block_depth::<T>(self.isa, width)
        };
        if united.is_some() && taps > most {
            return one_by_one();
        }
        let of_taps: Vec<Vec<usize>> = phases.iter().map(|f| f.patches.taps_among(p)).collect();
        // The taps of both phases are packed together, or those of each alone where dense products are faster.
        let is_in_order =
            |f: &GatherPhase| f.weights.channel == f.weights.taps.len() && f.weights.taps.iter().copied().eq(0..f.weights.taps.len());
        let alone = !is_shifted && has_dense_loops(self.isa) && phases.iter().all(is_in_order);
        let layouts: Vec<Vec<usize>> = if alone { of_taps.clone() } else { vec![(0..taps).collect()] };
        let shifts: Vec<Vec<isize>> = layouts.iter().map(|taps| taps.iter().map(|k| strip.taps[*k]).collect()).collect();
        let taps = shifts.iter().map(Vec::len).max().unwrap_or(taps);
        // Channels of a block, and taps of one that has too many.
        let channel_steps = phases.iter().map(|f| f.weights.channel).max().unwrap_or(1);
        let most_channels = (most / taps).min(i32::MAX as usize / channel_steps).max(1);
        let channels = self.channels.div_ceil(self.channels.div_ceil(most_channels));
        let piece = if is_shifted { taps } else { taps.div_ceil(taps.div_ceil(most)) };
        let block = channels * piece;
        let panels = columns.div_ceil(width);
        let packed_size = panels * block * width;
        let (_own, packed) = room::<T>(if is_shifted { 0 } else { layouts.len() * packed_size });
        let strips = if is_shifted { channels * strip.size + width } else { strip.size };
        let (_strip, buffer) = room::<T>(strips);
        // SAFETY: there is room.
        unsafe { clear(strips, buffer) };
        let plan = (!is_shifted).then(|| LoadPlan::new(&strip, lanes));
        let whole = [ColumnRun { column: 0, len: columns, at: 0 }];
        let group = x.wrapping_add(task.group * self.channels * p.plane());
        let mut made = Vec::with_capacity(phases.len());
        for f in phases {
            let (mut at, first) = (strip.rows.iter(), strip.rows[0].base);
            let base = |column| if is_shifted { at.next().map_or(0, |row| (row.base - first) as usize) } else { column };
            let (memory, sums) = room::<T>(if out.is_some() { 0 } else { rows * columns });
            made.push(PhaseSums {
                _memory: memory,
                sums,
                columns,
                runs: runs(&f.patches, &f.places, &task.columns, base),
                is_finite: true,
            });
        }
        let mut is_first = true;
        let mut depth = Vec::with_capacity(block);
        for first in (0..self.channels).step_by(channels) {
            let next = channels;
            let channels = channels.min(self.channels - first);
            for t in (0..taps).step_by(piece) {
                for c in 0..channels {
                    let x = group.wrapping_add((first + c) * p.plane());
                    // SAFETY: as above.
                    unsafe {
                        let Some(plan) = &plan else {
                            fill::<T, S>(self.isa, p, &strip, x, buffer.wrapping_add(c * strip.size));
                            continue;
                        };
                        let from = if strip.size == 0 {
                            x.cast::<T>().wrapping_offset(strip.start)
                        } else {
                            if t == 0 {
                                fill::<T, S>(self.isa, p, &strip, x, buffer);
                            }
                            buffer.cast_const()
                        };
                        // Channels of an image lie far apart, those of strips do not.
                        let ahead = if strip.size == 0 { AHEAD * p.plane() } else { 0 } as isize;
                        for (i, shifts) in shifts.iter().enumerate() {
                            let shifts = &shifts[t..shifts.len().min(t + piece)];
                            let to = packed.wrapping_add(i * packed_size + c * shifts.len() * width);
                            let rows = PackedRows { to, vectors: width / lanes, panel: block * width, ahead };
                            pack::<T>(self.isa, plan, from, shifts, rows);
                        }
                    }
                }
                for (i, (f, made)) in phases.iter().zip(&mut made).enumerate() {
                    let weights = &f.weights;
                    let number = if alone { i } else { 0 };
                    let (packed, all) = (packed.wrapping_add(number * packed_size), &layouts[number]);
                    let layout = &all[t..all.len().min(t + piece)];
                    let is_dense = !is_shifted && *all == of_taps[i] && weights.channel == layout.len() && is_in_order(f);
                    // The phase's taps in this piece.
                    let place_of = |at: &usize| of_taps[i].iter().position(|tap| tap == at).map(|k| weights.taps[k]);
                    let places = layout.iter().enumerate().filter_map(|(k, at)| Some((k, *at, place_of(at)?)));
                    let near = places.clone().count();
                    depth.clear();
                    if !is_dense {
                        for c in 0..channels {
                            depth.extend(places.clone().map(|(k, at, place)| {
                                let b = if is_shifted { c * strip.size + strip.taps[at] as usize } else { (c * layout.len() + k) * width };
                                DepthPlace { a: (c * weights.channel + place) as i32, b: b as i32 }
                            }));
                        }
                    }
                    let product = PanelProduct {
                        rows,
                        columns,
                        depth: if is_dense {
                            Depth::Dense(channels * layout.len())
                        } else {
                            Depth::Places { places: &depth, near: near.min(8) }
                        },
                        a: self.weights.wrapping_add(weights.at(task.group, task.rows.start, first)),
                        a_rs: weights.row as isize,
                        next: (next * weights.channel) as isize,
                        b: if is_shifted { buffer.cast_const().wrapping_offset(strip.rows[0].base) } else { packed.cast_const() },
                        panel: if is_shifted { width } else { block * width },
                        vectors: width / lanes,
                        out: out.map_or(made.sums, |(y, _)| y),
                        out_rs: out.map_or(columns, |(_, plane)| plane) as isize,
                        runs: if out.is_some() { &made.runs } else { &whole },
                        step: if out.is_some() { f.places.step[2] as isize } else { 1 },
                        add: !is_first,
                        bias,
                    };
                    // SAFETY: as above.
                    made.is_finite &= unsafe { multiply::<T>(self.isa, &product) };
                }
                is_first = false;
                interrupt::check();
            }
        }
        made
    }
}

/// The products of a task in one phase.
struct PhaseSums<T> {
    _memory: Option<Buffer>,
    /// Rows of so many columns; null where results are in their places.
    sums: *mut T,
    columns: usize,
    /// Where columns go.
    runs: Vec<ColumnRun>,
    is_finite: bool,
}

/// Where columns go; `column` says which column of the product a row of them begins at.
pub(super) fn runs(p: &Patches, places: &Places, columns: &Range<usize>, mut column: impl FnMut(usize) -> usize) -> Vec<ColumnRun> {
    let mut runs: Vec<ColumnRun> = Vec::new();
    p.each_row(columns.start, columns.end, |first, n, d, h, w, len| {
        let (at, column) = (places.row(n, d, h, w), column(first));
        match runs.last_mut() {
            Some(run) if places.step[2] == 1 && run.at + run.len as isize == at && run.column + run.len == column => run.len += len,
            _ => runs.push(ColumnRun { column, len, at }),
        }
    });
    runs
}

/// Writes the results that `from` has for each row and column.
///
/// # Safety
/// They are writable.
unsafe fn put<E>(runs: &[ColumnRun], rows: usize, y: *mut E, (plane, step): (usize, usize), from: impl Fn(usize, usize) -> E) {
    for run in runs {
        for r in 0..rows {
            let to = y.wrapping_offset((r * plane) as isize + run.at);
            for j in 0..run.len {
                // SAFETY: the caller's.
                unsafe { *to.wrapping_add(j * step) = from(r, run.column + j) };
            }
        }
    }
}
