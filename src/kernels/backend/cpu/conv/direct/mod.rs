//! Convolutions with few results for each patch, or with small patches, as the first one of a network has: packing would cost more than the product,
//! or a good part of it. Vectors go along the rows of strips, where each tap is a shift: `rows` where the results of a row are neighbours, `interleaved`
//! where those of two phases are, and `weight` for the gradient of the kernel.
//!
//! Not here: strips themselves (`geometry`, `patches`).

mod interleaved;
mod rows;
mod vectors;
pub(super) mod weight;

use super::algorithms::{DIRECT_SMALL, FEW, ImagePass, Results};
use super::gather::{Gather, GatherPhase, TASKS, WORTH, runs};
use super::geometry::{Patches, Strip};
use super::pairs::are_a_pair;
use super::patches::{clear, fill, reserve};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::matmul::panels::{ColumnRun, spread};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::host::interrupt;
use crate::host::memory::alloc::Buffer;
use crate::host::memory::reserve::reserved;
use crate::host::threads::SharedPointer;
use interleaved::{RowInTurn, RowsInTurn, add_interleaved};
use rows::{DirectRows, add_rows, row_blocks};
use std::ops::Range;

/// Results of one task.
const TASK: usize = 1 << 15;
/// Elements of the strips of one task.
const STRIP: usize = 1 << 16;
/// The most taps of all their channels. The weights of some rows of results stay in the first cache.
const TAPS: usize = 512;

/// Few results for each patch, or small patches, where rows of positions are about whole vectors, and enough to be divided among threads.
pub(super) fn plan<T: CoreNumber, S: StoredAs<T>>(call: &ImagePass<'_, T, S>, asked: Asked) -> Result<(), Why> {
    let g = call.sizes(asked)?;
    if g.rows <= FEW {
        let taps = g.phases.iter().map(|f| f.patches.taps()).max().unwrap_or(0);
        if asked == Asked::ByName || taps >= 3 || g.rows * g.channels == 1 {
            return Ok(());
        }
    }
    let [f] = g.phases else { return Err("there are several phases") };
    let (p, (_, lanes)) = (&f.patches, widths::<T>(g.isa));
    let (row, taps) = (p.axes[2].out, p.taps());
    asked.gains(g.channels.min(g.rows) <= DIRECT_SMALL && taps >= 3, "there are many channels, or few taps")?;
    needs(g.channels * taps <= TAPS && f.places.step == [1; 3], "patches are large, or results do not lie next to each other")?;
    asked.gains(row.next_multiple_of(lanes) * 4 <= row * 5, "rows end amid a vector")?;
    asked.gains(p.batch * rows(p) * g.groups >= tasks_of(&g, f), "there are fewer rows than tasks")?;
    let strip = Strip::sized(p, 0, row.min(p.batch * p.positions()), false);
    needs(g.channels * strip.size <= STRIP, "strips of all channels are large")
}

/// Into how many tasks the results should be divided.
fn tasks_of<T>(g: &Gather<'_, T>, f: &GatherPhase) -> usize {
    let sizes = [f.patches.batch, f.patches.positions(), g.groups, g.rows, g.channels, f.patches.taps()];
    (sizes.into_iter().fold(1usize, usize::saturating_mul) / WORTH).clamp(1, TASKS)
}

/// Channels that are added at once: all, or one. With few results, those of a channel that has just been filled are in the first cache, as its
/// strip is.
fn channels_at_once<T>(g: &Gather<'_, T>) -> usize {
    if g.rows > FEW { g.channels.max(1) } else { 1 }
}

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
pub(super) unsafe fn gather<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, x: *const S, y: *mut S) -> Results {
    let mut units: Vec<UnitPhases<'_>> = Vec::new();
    let mut phases = g.phases.iter().filter(|f| f.patches.positions() > 0).peekable();
    while let Some(f) = phases.next() {
        units.push((f, phases.next_if(|next| S::SAME && are_a_pair(f, next))));
    }
    let most = g.phases.iter().map(|f| rows(&f.patches)).max().unwrap_or(0).max(1);
    let positions: usize = g.phases.iter().map(|f| f.patches.positions()).sum();
    // Of one group.
    let results = (positions.div_ceil(most) * g.rows * g.channels.max(1)).max(1);
    let batch = g.phases.first().map_or(0, |f| f.patches.batch);
    let wanted = match g.phases {
        // Rows of strips that two tasks need are filled twice: larger tasks, as long as there are enough of them.
        [f] if g.rows > FEW => (4 * TASK / results).min(batch * most * g.groups / tasks_of(g, f)),
        _ => TASK / results,
    };
    let mut each = wanted.clamp(1, most);
    let is_small = |each: usize| {
        let strip = |p: &Patches| Strip::sized(p, 0, each.min(rows(p)) * p.axes[2].out, false).size;
        let fits = |p: &Patches| channels_at_once(g) * strip(p) <= STRIP;
        units.iter().all(|(f, _)| fits(&f.patches))
    };
    while each > 1 && !is_small(each) {
        each = each.div_ceil(2);
    }
    let each = most.div_ceil(most.div_ceil(each));
    // Small images: several groups together.
    let parts = g.groups.div_ceil(TASK / (each * results).clamp(1, TASK));
    let groups = g.groups.div_ceil(parts);
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
    // SAFETY: the caller's.
    let weights: Vec<[Vec<T>; 2]> =
        units.iter().map(|(f, second)| [Some(*f), *second].map(|f| unsafe { weights_of(g, f, second.is_none()) })).collect();
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    let together = |t: usize| &tasks[t * small..tasks.len().min((t + 1) * small)];
    let images = |t: usize| {
        let of = || together(t).iter().map(|task| task.image);
        of().min().unwrap_or(0)..of().max().map_or(0, |last| last + 1)
    };
    ImageEpilogue::parallel_for(g.epilogue, tasks.len().div_ceil(small), &images, &|t| {
        for task in together(t) {
            // SAFETY: each task has results of its own; the rest is the caller's promise.
            unsafe { run(g, (&units, &weights), task, x.get(), y.get()) };
        }
    });
    Results::Unseen
}

/// The weights of a phase, in order: for each group, for the channels that are added at once, for each block of rows (single rows where results lie
/// in turn), for each channel and tap, one for each row. None without a phase.
///
/// # Safety
/// As for `Gather::run`.
unsafe fn weights_of<T: CoreNumber>(g: &Gather<'_, T>, f: Option<&GatherPhase>, in_blocks: bool) -> Vec<T> {
    let Some(f) = f else { return Vec::new() };
    let blocks: Vec<(usize, usize)> = if in_blocks { row_blocks(g.rows).collect() } else { (0..g.rows).map(|r| (r, 1)).collect() };
    let mut made = reserved(g.groups * g.rows * g.channels * f.weights.taps.len());
    for group in 0..g.groups {
        for start in (0..g.channels).step_by(channels_at_once(g)) {
            for (first, count) in blocks.iter().copied() {
                for c in start..start + channels_at_once(g) {
                    for place in &f.weights.taps {
                        // SAFETY: the caller's.
                        made.extend((first..first + count).map(|r| unsafe { *g.weights.add(f.weights.at(group, r, c) + place) }));
                    }
                }
            }
        }
    }
    made
}

/// Where the results of a unit go.
enum Out<T> {
    /// Rows are neighbours in the result: to this place of it.
    Here(usize),
    /// Those of two phases, in turn.
    InTurn(Vec<RowInTurn>),
    /// They are added up elsewhere first; here columns go.
    Later { _own: Option<Buffer>, sums: *mut T, runs: Vec<ColumnRun> },
}

/// The part of a task in one phase, or in a pair of phases, which share a strip.
struct Unit<'a, T> {
    phases: UnitPhases<'a>,
    /// The taps of all phases.
    patches: Patches,
    columns: usize,
    /// Of one channel. None: there is nothing to be added up.
    strip: Option<Strip>,
    _own: Option<Buffer>,
    /// Strips of the channels that are added at once.
    buffer: *mut T,
    /// Elements between two of them.
    pitch: usize,
    /// The shifts of all their taps, for each phase.
    taps: [Vec<isize>; 2],
    /// As `weights_of` makes them.
    weights: &'a [Vec<T>; 2],
    out: Out<T>,
}

impl<'a, T: CoreNumber> Unit<'a, T> {
    /// None, if the task has no rows of these phases.
    fn new(g: &Gather<'a, T>, (f, second): UnitPhases<'a>, weights: &'a [Vec<T>; 2], task: &DirectTask, same: bool) -> Option<Unit<'a, T>> {
        let patches = second.map_or_else(|| f.patches.clone(), |s| f.patches.united(&s.patches));
        let (row, most) = (patches.axes[2].out, rows(&patches));
        let [first, end] = [task.rows.start, task.rows.end].map(|r| (task.image * most + r.min(most)) * row);
        if first == end {
            return None;
        }
        let strip = (g.channels * patches.taps() > 0).then(|| Strip::new(&patches, first, end, same));
        let size = strip.as_ref().map_or(0, |s| s.size);
        let (pitch, channels) = (if size == 0 { patches.plane() } else { size }, channels_at_once(g));
        let (_own, buffer) = reserve::<T>(channels * size);
        // SAFETY: there is room.
        unsafe { clear(channels * size, buffer) };
        let taps = [Some(f), second].map(|f| {
            let (Some(f), Some(strip)) = (f, &strip) else { return Vec::new() };
            let of_one: Vec<isize> = f.patches.taps_among(&patches).into_iter().map(|t| strip.taps[t]).collect();
            (0..channels).flat_map(|c| of_one.iter().map(move |shift| shift + (c * pitch) as isize)).collect()
        });
        let places = &f.places;
        let out = if let Some(second) = second {
            let lens = [row, second.patches.axes[2].out];
            let bases = strip.iter().flat_map(|strip| &strip.rows).map(|row| row.base).chain(std::iter::repeat(0));
            let rows = runs(&f.patches, places, &(first..end), |column| column).into_iter().zip(bases).map(|(run, base)| RowInTurn {
                base,
                to: run.at,
                lens,
            });
            Out::InTurn(rows.collect())
        } else if same && places.step == [1; 3] {
            let positions = patches.positions();
            Out::Here(first / positions * places.image + first % positions)
        } else {
            let (_own, sums) = reserve::<T>(g.rows * (end - first));
            Out::Later { _own, sums, runs: runs(&f.patches, places, &(first..end), |column| column) }
        };
        Some(Unit { phases: (f, second), patches, columns: end - first, strip, _own, buffer, pitch, taps, weights, out })
    }

    /// The strips of the channels from `x` on that are added at once, which are filled.
    ///
    /// # Safety
    /// As for `Gather::run`.
    unsafe fn strips_of<S: StoredAs<T>>(&self, g: &Gather<'_, T>, strip: &Strip, x: *const S) -> *const T {
        if strip.size == 0 {
            return x.cast::<T>().wrapping_offset(strip.start);
        }
        for c in 0..channels_at_once(g) {
            let (x, to) = (x.wrapping_add(c * self.patches.plane()), self.buffer.wrapping_add(c * self.pitch));
            // SAFETY: the caller's.
            unsafe { fill::<T, S>(g.isa, &self.patches, strip, x, to) };
        }
        self.buffer.cast_const()
    }

    /// Computes the results of a group.
    ///
    /// # Safety
    /// As for `Gather::run`.
    unsafe fn run<S: StoredAs<T>>(&self, g: &Gather<'_, T>, group: usize, x: *const S, y: *mut S) {
        let places = &self.phases.0.places;
        let to_plane = places.sizes.iter().product::<usize>();
        let y = y.wrapping_add(group * g.rows * to_plane);
        let plane = self.patches.plane();
        // SAFETY: the caller's, here and below.
        let bias = |r: usize| if g.bias.is_null() { T::ZERO } else { unsafe { *g.bias.add(group * g.rows + r) } };
        let (out, out_rs) = match &self.out {
            Out::Here(at) => (y.wrapping_add(*at).cast(), to_plane),
            Out::InTurn(_) => (y.cast(), to_plane),
            Out::Later { sums, .. } => (*sums, self.columns),
        };
        let (taps, at_once) = (self.taps.each_ref().map(|taps| &taps[..]), channels_at_once(g));
        for c in (0..g.channels.max(1)).step_by(at_once) {
            let channel = group * g.channels + c;
            let weights = [0, 1].map(|i| &self.weights[i][channel / at_once * g.rows * taps[i].len()..]);
            let from = match &self.strip {
                // SAFETY: see above.
                Some(strip) => unsafe { self.strips_of(g, strip, x.wrapping_add(channel * plane)) },
                None => std::ptr::null(),
            };
            // SAFETY: see above.
            unsafe {
                match (&self.out, &self.strip) {
                    (Out::InTurn(rows), _) => {
                        for r in 0..g.rows {
                            let weights = [0, 1].map(|i| &weights[i][r * taps[i].len()..]);
                            let bias = (c == 0).then(|| bias(r));
                            add_interleaved::<T>(g.isa, &RowsInTurn { rows, from, taps, weights, out: out.wrapping_add(r * out_rs), bias });
                        }
                    }
                    (_, Some(strip)) => {
                        let (taps, weights) = (taps[0], weights[0].as_ptr());
                        let bias = if g.bias.is_null() { g.bias } else { g.bias.wrapping_add(group * g.rows) };
                        add_rows::<T>(g.isa, &DirectRows { strip, from, taps, weights, rows: g.rows, out, out_rs, add: c > 0, bias });
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

/// Computes the results of a task, of these phases with their weights.
///
/// # Safety
/// As for `Gather::run`.
unsafe fn run<T: CoreNumber, S: StoredAs<T>>(
    g: &Gather<'_, T>,
    (phases, weights): (&[UnitPhases<'_>], &[[Vec<T>; 2]]),
    task: &DirectTask,
    x: *const S,
    y: *mut S,
) {
    let all = phases.iter().zip(weights);
    let units: Vec<Unit<'_, T>> = all.filter_map(|(phases, weights)| Unit::new(g, *phases, weights, task, S::SAME)).collect();
    for group in task.groups.clone() {
        for unit in &units {
            // SAFETY: the caller's.
            unsafe { unit.run(g, group, x, y) };
        }
    }
}
