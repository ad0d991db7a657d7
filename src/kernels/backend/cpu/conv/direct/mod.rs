//! Convolutions with few results for each patch, as depthwise ones have: packing would cost more than the product. Vectors go along the rows of
//! strips, where each tap is a shift: `rows` where the results of a row are neighbours, `in_turn` where those of two phases are, and `weight` for
//! the gradient of the kernel.
//!
//! Not here: strips themselves (`geometry`, `patches`).

mod in_turn;
mod rows;
mod vectors;
pub(super) mod weight;

use super::gather::{Gather, GatherPhase, runs};
use super::geometry::{Patches, Strip};
use super::pairs::are_a_pair;
use super::patches::{clear, fill, room};
use crate::backend::cpu::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::backend::cpu::matmul::panels::{ColumnRun, spread};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::memory::alloc::Buffer;
use crate::backend::cpu::threads::SharedPointer;
use crate::backend::interrupt;
use in_turn::{RowInTurn, RowsInTurn, add_in_turn};
use rows::{DirectRows, add_rows};
use std::ops::Range;

/// Results of one task.
const TASK: usize = 1 << 15;
/// Elements of the strips of one task.
const STRIP: usize = 1 << 16;

/// A part of one image's results: whole rows of positions of each phase, of some groups. All phases of a row are one task, since they share lines
/// of the cache.
struct DirectTask {
    image: usize,
    groups: Range<usize>,
    rows: Range<usize>,
}

/// A phase, or a pair of them, which are computed together.
type UnitPhases<'a> = (&'a GatherPhase, Option<&'a GatherPhase>);

/// Rows of positions of one image.
fn rows(p: &Patches) -> usize {
    p.axes[0].out * p.axes[1].out
}

/// As `Gather::run`.
///
/// # Safety
/// As for `Gather::run`.
pub(super) unsafe fn gather<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, x: *const S, y: *mut S) {
    let mut units: Vec<UnitPhases<'_>> = Vec::new();
    let mut phases = g.phases.iter().filter(|f| f.patches.positions() > 0).peekable();
    while let Some(f) = phases.next() {
        units.push((f, phases.next_if(|next| S::SAME && are_a_pair(f, next))));
    }
    let most = g.phases.iter().map(|f| rows(&f.patches)).max().unwrap_or(0);
    let positions: usize = g.phases.iter().map(|f| f.patches.positions()).sum();
    // Of one group.
    let results = positions.div_ceil(most.max(1)) * g.rows * g.channels.max(1);
    let mut each = (TASK / results.max(1)).clamp(1, most.max(1));
    let is_small = |each: usize| {
        let fits = |p: &Patches| Strip::sized(p, 0, each.min(rows(p)) * p.axes[2].out, false).size <= STRIP;
        units.iter().all(|(f, _)| fits(&f.patches))
    };
    while each > 1 && !is_small(each) {
        each = each.div_ceil(2);
    }
    // Small images: several groups together.
    let parts = g.groups.div_ceil(TASK / (each * results).clamp(1, TASK));
    let groups = g.groups.div_ceil(parts);
    let batch = g.phases.first().map_or(0, |f| f.patches.batch);
    let mut tasks = Vec::new();
    for group in (0..g.groups).step_by(groups) {
        for image in 0..batch {
            for row in (0..most).step_by(each) {
                tasks.push(DirectTask { image, groups: group..g.groups.min(group + groups), rows: row..most.min(row + each) });
            }
        }
    }
    // Still small: several tasks together.
    let small = tasks.first().map_or(1, |t| (TASK / (t.rows.len() * t.groups.len() * results).max(1)).max(1));
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    let together = |t: usize| &tasks[t * small..tasks.len().min((t + 1) * small)];
    let images = |t: usize| {
        let of = || together(t).iter().map(|task| task.image);
        of().min().unwrap_or(0)..of().max().map_or(0, |last| last + 1)
    };
    ImageEpilogue::parallel_for(g.epilogue, tasks.len().div_ceil(small), &images, &|t| {
        for task in together(t) {
            // SAFETY: each task has results of its own; the rest is the caller's promise.
            unsafe { run(g, &units, task, x.get(), y.get()) };
        }
    });
}

/// Where the results of a unit go.
enum Out<T> {
    /// Rows are neighbours in the result: to this place of it.
    Here(usize),
    /// Those of two phases, in turn: the rows, and the taps of each phase.
    InTurn { rows: Vec<RowInTurn>, taps: [Vec<isize>; 2] },
    /// They are added up elsewhere first; here columns go.
    Later { _own: Option<Buffer>, sums: *mut T, runs: Vec<ColumnRun> },
}

/// The part of a task in one phase, or in a pair of phases, which share a strip.
struct Unit<'a, T> {
    phases: UnitPhases<'a>,
    /// The taps of all phases.
    patches: Patches,
    columns: usize,
    /// None: there is nothing to be added up.
    strip: Option<Strip>,
    _own: Option<Buffer>,
    buffer: *mut T,
    /// Of one channel, for each phase: rows x taps.
    weights: [Vec<T>; 2],
    out: Out<T>,
}

impl<'a, T: CoreNumber> Unit<'a, T> {
    /// None, if the task has no rows of these phases.
    fn new(g: &Gather<'a, T>, (f, second): UnitPhases<'a>, task: &DirectTask, same: bool) -> Option<Unit<'a, T>> {
        let patches = second.map_or_else(|| f.patches.clone(), |s| f.patches.united(&s.patches));
        let (row, most) = (patches.axes[2].out, rows(&patches));
        let [first, end] = [task.rows.start, task.rows.end].map(|r| (task.image * most + r.min(most)) * row);
        if first == end {
            return None;
        }
        let strip = (g.channels * patches.taps() > 0).then(|| Strip::new(&patches, first, end, same));
        let size = strip.as_ref().map_or(0, |s| s.size);
        let (_own, buffer) = room::<T>(size);
        // SAFETY: there is room.
        unsafe { clear(size, buffer) };
        let places = &f.places;
        let out = if let Some(second) = second {
            let taps_of = |f: &GatherPhase, strip: &Strip| f.patches.taps_among(&patches).into_iter().map(|t| strip.taps[t]).collect();
            let taps = [f, second].map(|f| strip.as_ref().map_or_else(Vec::new, |strip| taps_of(f, strip)));
            let lens = [row, second.patches.axes[2].out];
            let bases = strip.iter().flat_map(|strip| &strip.rows).map(|row| row.base).chain(std::iter::repeat(0));
            let rows = runs(&f.patches, places, &(first..end), |column| column).into_iter().zip(bases).map(|(run, base)| RowInTurn {
                base,
                to: run.at,
                lens,
            });
            Out::InTurn { rows: rows.collect(), taps }
        } else if same && places.step == [1; 3] {
            let positions = patches.positions();
            Out::Here(first / positions * places.image + first % positions)
        } else {
            let (_own, sums) = room::<T>(g.rows * (end - first));
            Out::Later { _own, sums, runs: runs(&f.patches, places, &(first..end), |column| column) }
        };
        let weights = [Some(f), second].map(|f| vec![T::ZERO; f.map_or(0, |f| g.rows * f.patches.taps())]);
        Some(Unit { phases: (f, second), patches, columns: end - first, strip, _own, buffer, weights, out })
    }

    /// The strip of a channel, which is filled.
    ///
    /// # Safety
    /// As for `Gather::run`.
    unsafe fn strip_of<S: StoredAs<T>>(&self, g: &Gather<'_, T>, strip: &Strip, x: *const S) -> *const T {
        if strip.size == 0 {
            return x.cast::<T>().wrapping_offset(strip.start);
        }
        // SAFETY: the caller's.
        unsafe { fill::<T, S>(g.isa, &self.patches, strip, x, self.buffer) };
        self.buffer.cast_const()
    }

    /// Computes the results of a group.
    ///
    /// # Safety
    /// As for `Gather::run`.
    unsafe fn run<S: StoredAs<T>>(&mut self, g: &Gather<'_, T>, group: usize, x: *const S, y: *mut S) {
        let places = &self.phases.0.places;
        let to_plane = places.sizes.iter().product::<usize>();
        let y = y.wrapping_add(group * g.rows * to_plane);
        let plane = self.patches.plane();
        // SAFETY: the caller's, here and below.
        let bias = |r: usize| if g.bias.is_null() { T::ZERO } else { unsafe { *g.bias.add(group * g.rows + r) } };
        let (out, out_rs) = match &self.out {
            Out::Here(at) => (y.wrapping_add(*at).cast(), to_plane),
            Out::InTurn { .. } => (y.cast(), to_plane),
            Out::Later { sums, .. } => (*sums, self.columns),
        };
        for c in 0..g.channels.max(1) {
            let mut from = std::ptr::null();
            if let Some(strip) = &self.strip {
                // SAFETY: see above.
                unsafe {
                    from = self.strip_of(g, strip, x.wrapping_add((group * g.channels + c) * plane));
                    read_weights(g, &self.phases, &mut self.weights, group, c);
                }
            }
            // SAFETY: see above.
            unsafe {
                match (&self.out, &self.strip) {
                    (Out::InTurn { rows, taps }, _) => {
                        for r in 0..g.rows {
                            let weights = [0, 1].map(|i| &self.weights[i][r * taps[i].len()..]);
                            let (taps, bias) = (taps.each_ref().map(|taps| &taps[..]), (c == 0).then(|| bias(r)));
                            add_in_turn::<T>(g.isa, &RowsInTurn { rows, from, taps, weights, out: out.wrapping_add(r * out_rs), bias });
                        }
                    }
                    (_, Some(strip)) => {
                        let (weights, weights_rs) = (self.weights[0].as_ptr(), strip.taps.len());
                        let bias = if g.bias.is_null() { g.bias } else { g.bias.wrapping_add(group * g.rows) };
                        add_rows::<T>(g.isa, &DirectRows { strip, from, weights, weights_rs, rows: g.rows, out, out_rs, add: c > 0, bias });
                    }
                    (_, None) => {
                        (0..g.rows).for_each(|r| std::slice::from_raw_parts_mut(out.add(r * out_rs), self.columns).fill(bias(r)));
                    }
                }
            }
            interrupt::check();
            if self.strip.is_none() {
                break;
            }
        }
        let Out::Later { sums, runs, .. } = &self.out else { return };
        for r in 0..g.rows {
            let (from, to, step) = (sums.wrapping_add(r * self.columns).cast_const(), y.wrapping_add(r * to_plane), places.step[2]);
            // SAFETY: see above.
            unsafe {
                if S::SAME {
                    spread::<T>(g.isa, runs, from, to.cast(), step);
                    continue;
                }
                for run in runs {
                    for j in 0..run.len {
                        *to.wrapping_offset(run.at).wrapping_add(j * step) = S::narrow(*from.wrapping_add(run.column + j));
                    }
                }
            }
        }
    }
}

/// Reads the weights of a channel of each phase.
///
/// # Safety
/// As for `Gather::run`.
unsafe fn read_weights<T: CoreNumber>(g: &Gather<'_, T>, phases: &UnitPhases<'_>, to: &mut [Vec<T>; 2], group: usize, channel: usize) {
    for (f, to) in [Some(phases.0), phases.1].into_iter().flatten().zip(to) {
        for (r, to) in to.chunks_exact_mut(f.weights.taps.len().max(1)).enumerate() {
            let from = g.weights.wrapping_add(f.weights.at(group, r, channel));
            // SAFETY: the caller's.
            to.iter_mut().zip(&f.weights.taps).for_each(|(w, place)| *w = unsafe { *from.add(*place) });
        }
    }
}

/// # Safety
/// As for `Gather::run`.
unsafe fn run<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, phases: &[UnitPhases<'_>], task: &DirectTask, x: *const S, y: *mut S) {
    let mut units: Vec<Unit<'_, T>> = phases.iter().filter_map(|phases| Unit::new(g, *phases, task, S::SAME)).collect();
    for group in task.groups.clone() {
        for unit in &mut units {
            // SAFETY: the caller's.
            unsafe { unit.run(g, group, x, y) };
        }
    }
}
