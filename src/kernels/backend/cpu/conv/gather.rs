//! Results that gather patches: the forward pass, and the gradient of the input. Weights are multiplied with patches, a block of columns and
//! channels at a time. Weights are read as they lie, in any order. Patches are either shifts of the image with its padding, with columns
//! between the rows that belong to no position, or packed as they are needed.

use super::algorithms::{ImagePass, Results};
use super::geometry::{Patches, Places, Strip};
use super::layout::{BlockMemory, PatchLayout};
use super::pairs::{are_a_pair, interleave};
use super::patches::{clear, reserve};
use crate::backend::cpu::algorithms::{Asked, Why};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, Depth, PanelProduct, multiply};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::host::interrupt;
use crate::host::memory::alloc::Buffer;
use crate::host::threads::SharedPointer;
use crate::simd::InstructionSet;
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

/// Where the weights of a phase lie: the first one, strides of groups, rows and channels, and the place of each tap.
#[derive(Debug, Clone)]
pub(in crate::backend::cpu) struct WeightPlaces {
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
pub(in crate::backend::cpu) struct GatherPhase {
    pub patches: Patches,
    pub places: Places,
    pub weights: WeightPlaces,
}

/// For each group: `rows` channels of the result from `channels` of the image.
pub(in crate::backend::cpu) struct Gather<'a, T> {
    pub isa: InstructionSet,
    pub groups: usize,
    pub rows: usize,
    pub channels: usize,
    pub phases: &'a [GatherPhase],
    /// Null, as the bias, where an algorithm is planned.
    pub weights: *const T,
    /// One for each row of each group; may be null.
    pub bias: *const T,
    /// Of the images of the result.
    pub epilogue: Option<&'a ImageEpilogue<'a>>,
}
// SAFETY: only read.
unsafe impl<T> Sync for Gather<'_, T> {}

/// Every pass with phases.
pub(super) fn plan<T: CoreNumber, S: StoredAs<T>>(call: &ImagePass<'_, T, S>, asked: Asked) -> Result<(), Why> {
    call.sizes(asked).map(|_| ())
}

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
    /// reads or writes y.
    pub unsafe fn run<S: StoredAs<T>>(&self, x: *const S, y: *mut S) -> Results {
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
        Results::seen(is_finite.into_inner())
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
        let these = &self.phases[phases.clone()];
        let has_taps = these.iter().all(|f| self.channels * f.patches.taps() > 0);
        let layout = has_taps.then(|| PatchLayout::new::<T>(self, these, &task.columns, task.rows.len(), S::SAME));
        match (layout, these) {
            // SAFETY: the caller's, here and below.
            (Some(Some(layout)), _) => unsafe { self.sums_of(task, these, &layout, x, out) },
            // SAFETY: see above.
            (_, [f]) => vec![unsafe { self.without_taps(task, f, out) }],
            // SAFETY: see above.
            _ => phases.flat_map(|f| unsafe { self.products(task, f..f + 1, x, out) }).collect(),
        }
    }

    /// The biases of a task's rows; may be null.
    fn bias_of(&self, task: &GatherTask) -> *const T {
        let row = task.group * self.rows + task.rows.start;
        if self.bias.is_null() { self.bias } else { self.bias.wrapping_add(row) }
    }

    /// The results of a phase to which nothing is added up.
    ///
    /// # Safety
    /// As for `products`.
    unsafe fn without_taps(&self, task: &GatherTask, f: &GatherPhase, out: Option<(*mut T, usize)>) -> PhaseSums<T> {
        let (rows, columns, bias) = (task.rows.len(), task.columns.len(), self.bias_of(task));
        let runs = runs(&f.patches, &f.places, &task.columns, |column| column);
        let (memory, sums) = reserve::<T>(if out.is_some() { 0 } else { rows * columns });
        // SAFETY: the caller's, here and below; there is room.
        unsafe {
            let value = |r: usize, _| if bias.is_null() { T::ZERO } else { *bias.add(r) };
            match out {
                Some((y, plane)) => put(&runs, rows, y, (plane, f.places.step[2]), value),
                None => put(&[ColumnRun { column: 0, len: columns, at: 0 }], rows, sums, (columns, 1), value),
            }
        }
        PhaseSums { _memory: memory, sums, columns, runs, is_finite: true }
    }

    /// As `products`, of patches that are laid out in this way.
    ///
    /// # Safety
    /// As for `products`.
    unsafe fn sums_of<S: StoredAs<T>>(
        &self,
        task: &GatherTask,
        phases: &[GatherPhase],
        layout: &PatchLayout,
        x: *const S,
        out: Option<(*mut T, usize)>,
    ) -> Vec<PhaseSums<T>> {
        let (strip, columns, rows) = (&layout.strip, layout.columns, task.rows.len());
        let (_packed, packed) = reserve::<T>(layout.packed_size() * layout.packed.len());
        let strips = layout.strips_size();
        let (_strips, buffer) = reserve::<T>(strips);
        // SAFETY: there is room.
        unsafe { clear(strips, buffer) };
        let memory = BlockMemory { strips: buffer, packed };
        let mut made = Vec::with_capacity(phases.len());
        for f in phases {
            let (mut at, first) = (strip.rows.iter(), strip.rows[0].base);
            let base = |column| if layout.is_shifted { at.next().map_or(0, |row| (row.base - first) as usize) } else { column };
            let (memory, sums) = reserve::<T>(if out.is_some() { 0 } else { rows * columns });
            let runs = runs(&f.patches, &f.places, &task.columns, base);
            made.push(PhaseSums { _memory: memory, sums, columns, runs, is_finite: true });
        }
        let whole = [ColumnRun { column: 0, len: columns, at: 0 }];
        let group = x.wrapping_add(task.group * self.channels * layout.patches.plane());
        let mut depth = Vec::with_capacity(layout.block());
        for first in (0..self.channels).step_by(layout.channels) {
            let channels = layout.channels.min(self.channels - first);
            for t in (0..layout.taps).step_by(layout.piece) {
                let x = group.wrapping_add(first * layout.patches.plane());
                // SAFETY: the caller's, here and below.
                unsafe { layout.lay_out::<T, S>(self.isa, x, channels, t, memory) };
                for (i, (f, made)) in phases.iter().zip(&mut made).enumerate() {
                    let dense = layout.depth_of(i, f, channels, t, &mut depth);
                    let (b, panel) = layout.operand(i, memory);
                    let product = PanelProduct {
                        rows,
                        columns,
                        depth: dense.map_or_else(|near| Depth::Places { places: &depth, near }, Depth::Dense),
                        a: self.weights.wrapping_add(f.weights.at(task.group, task.rows.start, first)),
                        a_rs: f.weights.row as isize,
                        next: (layout.channels * f.weights.channel) as isize,
                        b,
                        panel,
                        vectors: layout.width / layout.lanes,
                        out: out.map_or(made.sums, |(y, _)| y),
                        out_rs: out.map_or(columns, |(_, plane)| plane) as isize,
                        runs: if out.is_some() { &made.runs } else { &whole },
                        step: if out.is_some() { f.places.step[2] as isize } else { 1 },
                        add: (first, t) != (0, 0),
                        bias: self.bias_of(task),
                    };
                    // SAFETY: see above.
                    made.is_finite &= unsafe { multiply::<T>(self.isa, &product) };
                }
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
