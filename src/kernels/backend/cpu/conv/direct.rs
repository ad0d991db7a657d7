//! Convolutions with few results for each patch, as depthwise ones have: packing would cost more than the product. Vectors go along the rows of
//! strips, where each tap is a shift.

use super::gather::{Gather, GatherPhase, runs};
use super::geometry::{Patches, Strip, StripRow};
use super::pairs::{are_a_pair, interleave};
use super::patches::{clear, fill, room, widen};
use crate::backend::cpu::epilogue::ImageEpilogue;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector, on_vectors};
use crate::backend::cpu::matmul::panels::{ColumnRun, spread};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::backend::cpu::memory::alloc::Buffer;
use crate::backend::cpu::num::InstructionSet;
use crate::backend::cpu::reduce::reducers::Numeric;
use crate::backend::cpu::threads::{SharedPointer, parallel_for};
use crate::backend::interrupt;
use crate::backend::requests::ConvShape;
use std::ops::Range;

/// Results of one task.
const TASK: usize = 1 << 15;
/// Elements of the strips of one task.
const STRIP: usize = 1 << 16;
/// Parts of a sum over all images.
const PARTS: usize = 16;

/// The rows of one channel's strip, and the results they are added to.
pub(super) struct DirectRows<'a, T> {
    strip: &'a Strip,
    from: *const T,
    /// For each row of results, one for each tap.
    weights: *const T,
    /// Elements between the weights of two rows.
    weights_rs: usize,
    rows: usize,
    /// Row `r` of the results begins at `out + r * out_rs`; columns are neighbours.
    out: *mut T,
    out_rs: usize,
    add: bool,
    bias: *const T,
}

on_vectors! {
    /// Adds one channel.
    fn add_rows<T>(d: &DirectRows<'_, T>) = add_rows_on
}

/// # Safety
/// The strip is readable, and the results are writable.
#[inline(always)]
unsafe fn add_rows_on<V: PanelVector>(d: &DirectRows<'_, V::Number>) {
    for StripRow { column, base, len } in d.strip.rows.iter().copied() {
        let mut r = 0;
        while r < d.rows {
            macro_rules! rows {
                ($R:literal) => {{
                    // SAFETY: the caller's.
                    unsafe { add_row::<V, $R>(d, r, column, base, len) };
                    $R
                }};
            }
            r += match d.rows - r {
                1 => rows!(1),
                2 => rows!(2),
                3 => rows!(3),
                _ => rows!(4),
            };
        }
    }
}

/// One row of columns of results `first..first + R`.
///
/// # Safety
/// As for `add_rows`.
#[allow(clippy::reversed_empty_ranges, reason = "one vector has none before the last")]
#[inline(always)]
unsafe fn add_row<V: PanelVector, const R: usize>(d: &DirectRows<'_, V::Number>, first: usize, column: usize, base: isize, len: usize) {
    let mut from = d.from.wrapping_offset(base);
    let mut to = d.out.wrapping_add(first * d.out_rs + column);
    let weights = d.weights.wrapping_add(first * d.weights_rs);
    let mut left = len;
    // SAFETY: the caller's.
    unsafe {
        let bias: [V; R] = std::array::from_fn(|r| if d.bias.is_null() { V::zero() } else { V::splat(*d.bias.add(first + r)) });
        macro_rules! vectors {
            ($C:literal) => {{
                // The last vector may be shorter.
                let last = left.min($C * V::LANES) - ($C - 1) * V::LANES;
                let mut sums: [[V; $C]; R] = bias.map(|b| [b; $C]);
                if d.add {
                    for r in 0..R {
                        let to = to.wrapping_add(r * d.out_rs);
                        for c in 0..$C - 1 {
                            sums[r][c] = V::load(to.add(c * V::LANES));
                        }
                        sums[r][$C - 1] = V::load_first(to.add(($C - 1) * V::LANES), last);
                    }
                }
                for (t, shift) in d.strip.taps.iter().enumerate() {
                    let from = from.wrapping_offset(*shift);
                    let mut x = [V::zero(); $C];
                    for c in 0..$C - 1 {
                        x[c] = V::load(from.wrapping_add(c * V::LANES));
                    }
                    x[$C - 1] = V::load_first(from.wrapping_add(($C - 1) * V::LANES), last);
                    for r in 0..R {
                        let w = V::splat(*weights.wrapping_add(r * d.weights_rs + t));
                        for c in 0..$C {
                            sums[r][c] = w.fma(x[c], sums[r][c]);
                        }
                    }
                }
                for r in 0..R {
                    let to = to.wrapping_add(r * d.out_rs);
                    for c in 0..$C - 1 {
                        sums[r][c].store(to.add(c * V::LANES));
                    }
                    sums[r][$C - 1].store_first(to.add(($C - 1) * V::LANES), last);
                }
            }};
        }
        // Three or four rows of four vectors do not fit the registers of every instruction set.
        let most = if R > 2 && V::ROWS < 8 { 2 } else { 4 };
        while left > 0 {
            let done = left.min(most * V::LANES);
            match done.div_ceil(V::LANES) {
                1 => vectors!(1),
                2 => vectors!(2),
                3 => vectors!(3),
                _ => vectors!(4),
            }
            from = from.wrapping_add(done);
            to = to.wrapping_add(done);
            left -= done;
        }
    }
}

/// A part of one image's results: whole rows of positions, of some groups.
struct DirectTask {
    phase: usize,
    /// Whether the next phase has the columns between those of this one: both are written together, since they share lines of the cache.
    is_pair: bool,
    groups: Range<usize>,
    rows: Range<usize>,
}

/// As `Gather::run`.
///
/// # Safety
/// As for `Gather::run`.
pub(super) unsafe fn gather<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, x: *const S, y: *mut S) {
    let mut tasks = Vec::new();
    let mut phase = 0;
    while let Some(f) = g.phases.get(phase) {
        let is_pair = S::SAME && g.phases.get(phase + 1).is_some_and(|next| are_a_pair(f, next));
        let (row, rows) = (f.patches.axes[2].out, f.patches.axes[0].out * f.patches.axes[1].out);
        if row * rows > 0 {
            let mut each = (TASK / (row * g.rows * g.channels).max(1)).clamp(1, rows);
            while each > 1 && Strip::sized(&f.patches, 0, each * row, false).size > STRIP {
                each = each.div_ceil(2);
            }
            // Small images: several groups together.
            let groups = (TASK / (each * row * g.rows * g.channels.max(1))).clamp(1, g.groups);
            for n in 0..f.patches.batch {
                for r in (0..rows).step_by(each) {
                    let rows = n * rows + r..n * rows + rows.min(r + each);
                    tasks.extend((0..g.groups).step_by(groups).map(|group| {
                        let groups = group..g.groups.min(group + groups);
                        DirectTask { phase, is_pair, groups, rows: rows.clone() }
                    }));
                }
            }
        }
        phase += 1 + usize::from(is_pair);
    }
    // Phases write to the same pages.
    tasks.sort_by_key(|t| (t.groups.start, t.rows.start));
    // Still small: several tasks together.
    let row = g.phases.iter().map(|f| f.patches.axes[2].out).max().unwrap_or(0);
    let small = tasks.first().map_or(1, |t| (TASK / (t.rows.len() * row * t.groups.len() * g.rows * g.channels).max(1)).max(1));
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    let together = |t: usize| &tasks[t * small..tasks.len().min((t + 1) * small)];
    let images = |t: usize| {
        let of = |task: &DirectTask| {
            let axes = &g.phases[task.phase].patches.axes;
            let rows = axes[0].out * axes[1].out;
            task.rows.start / rows..task.rows.end.div_ceil(rows)
        };
        together(t).iter().map(of).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    };
    ImageEpilogue::parallel_for(g.epilogue, tasks.len().div_ceil(small), &images, &|t| {
        for task in together(t) {
            // SAFETY: each task has results of its own; the rest is the caller's promise.
            unsafe { run(g, task, x.get(), y.get()) };
        }
    });
}

/// The part of a task in one phase.
struct DirectPhase<'a, T> {
    f: &'a GatherPhase,
    columns: Range<usize>,
    /// None: there is nothing to be added up.
    strip: Option<Strip>,
    buffer: (Option<Buffer>, *mut T),
    /// Of one channel: rows x taps.
    weights: Vec<T>,
}

impl<'a, T: CoreNumber> DirectPhase<'a, T> {
    fn new(g: &Gather<'a, T>, phase: usize, rows: &Range<usize>, same: bool) -> DirectPhase<'a, T> {
        let f = &g.phases[phase];
        let (row, taps) = (f.patches.axes[2].out, f.patches.taps());
        let columns = rows.start * row..rows.end * row;
        let strip = (g.channels * taps * columns.len() > 0).then(|| Strip::new(&f.patches, columns.start, columns.end, same));
        let size = strip.as_ref().map_or(0, |s| s.size);
        let buffer = room::<T>(size);
        // SAFETY: there is room.
        unsafe { clear(size, buffer.1) };
        DirectPhase { f, columns, strip, buffer, weights: vec![T::ZERO; g.rows * taps] }
    }

    /// Computes the results of a group, whose rows lie `out_rs` apart.
    ///
    /// # Safety
    /// As for `Gather::run`; the results are writable.
    unsafe fn results<S: StoredAs<T>>(&mut self, g: &Gather<'_, T>, group: usize, x: *const S, out: *mut T, out_rs: usize) {
        let p = &self.f.patches;
        let (taps, plane) = (p.taps(), p.plane());
        let bias = if g.bias.is_null() { g.bias } else { g.bias.wrapping_add(group * g.rows) };
        // SAFETY: the caller's.
        unsafe {
            let Some(strip) = &self.strip else {
                for r in 0..g.rows {
                    let value = if bias.is_null() { T::ZERO } else { *bias.add(r) };
                    std::slice::from_raw_parts_mut(out.add(r * out_rs), self.columns.len()).fill(value);
                }
                return;
            };
            for c in 0..g.channels {
                let x = x.wrapping_add((group * g.channels + c) * plane);
                let from = if strip.size == 0 {
                    x.cast::<T>().wrapping_offset(strip.start)
                } else {
                    fill::<T, S>(g.isa, p, strip, x, self.buffer.1);
                    self.buffer.1.cast_const()
                };
                for (r, to) in self.weights.chunks_exact_mut(taps).enumerate() {
                    let from = g.weights.wrapping_add(self.f.weights.at(group, r, c));
                    to.iter_mut().zip(&self.f.weights.taps).for_each(|(w, place)| *w = *from.add(*place));
                }
                let weights = self.weights.as_ptr();
                let rows = DirectRows { strip, from, weights, weights_rs: taps, rows: g.rows, out, out_rs, add: c > 0, bias };
                add_rows::<T>(g.isa, &rows);
                interrupt::check();
            }
        }
    }

    /// Where the columns go.
    fn runs(&self) -> Vec<ColumnRun> {
        runs(&self.f.patches, &self.f.places, &self.columns, |column| column)
    }
}

unsafe fn run<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, task: &DirectTask, x: *const S, y: *mut S) {
    let mut first = DirectPhase::new(g, task.phase, &task.rows, S::SAME);
    let mut second = task.is_pair.then(|| DirectPhase::new(g, task.phase + 1, &task.rows, S::SAME));
    let places = &first.f.places;
    let (step, to_plane) = (places.step[2], places.sizes.iter().product::<usize>());
    // Whole rows of a grid without steps are neighbours in the result.
    let direct = S::SAME && places.step == [1; 3];
    let positions = first.f.patches.positions();
    let at = first.columns.start / positions * places.image + first.columns.start % positions;
    let counts = [first.columns.len(), second.as_ref().map_or(0, |s| s.columns.len())];
    let (_own, sums) = room::<T>(if direct { 0 } else { g.rows * (counts[0] + counts[1]) });
    let sums = [sums, sums.wrapping_add(g.rows * counts[0])];
    let runs = if direct { [Vec::new(), Vec::new()] } else { [first.runs(), second.as_ref().map_or_else(Vec::new, DirectPhase::runs)] };
    for group in task.groups.clone() {
        let y = y.wrapping_add(group * g.rows * to_plane);
        // SAFETY: the caller's; there is room for all sums.
        unsafe {
            if direct {
                first.results(g, group, x, y.wrapping_add(at).cast(), to_plane);
                continue;
            }
            first.results(g, group, x, sums[0], counts[0]);
            if let Some(second) = &mut second {
                second.results(g, group, x, sums[1], counts[1]);
            }
            for r in 0..g.rows {
                let from = [0, 1].map(|i| sums[i].cast_const().wrapping_add(r * counts[i]));
                let to = y.wrapping_add(r * to_plane);
                if second.is_some() {
                    interleave::<T>(g.isa, [&runs[0], &runs[1]], from, to.cast());
                } else if S::SAME {
                    spread::<T>(g.isa, &runs[0], from[0], to.cast(), step);
                } else {
                    for run in &runs[0] {
                        for j in 0..run.len {
                            *to.wrapping_offset(run.at).wrapping_add(j * step) = S::narrow(*from[0].wrapping_add(run.column + j));
                        }
                    }
                }
            }
        }
    }
}

on_vectors! {
    /// Adds the products of a channel's gradients with the strip, for each tap; the gradients of the strip's columns lie one after another.
    fn add_products<T>(strip: &Strip, from: *const T, g: *const T, sums: *mut T) = add_products_on
}

/// # Safety
/// The strip and the gradients are readable; there is a sum for each tap.
#[inline(always)]
unsafe fn add_products_on<V: PanelVector>(strip: &Strip, from: *const V::Number, g: *const V::Number, sums: *mut V::Number) {
    let mut t = 0;
    while t < strip.taps.len() {
        macro_rules! taps {
            ($N:literal) => {{
                // SAFETY: the caller's.
                unsafe {
                    let mut totals = [V::zero(); $N];
                    for StripRow { column, base, len } in strip.rows.iter().copied() {
                        let from: [*const V::Number; $N] = std::array::from_fn(|i| from.wrapping_offset(base + strip.taps[t + i]));
                        let g = g.wrapping_add(column);
                        let mut j = 0;
                        while j + V::LANES <= len {
                            let v = V::load(g.wrapping_add(j));
                            for i in 0..$N {
                                totals[i] = v.fma(V::load(from[i].wrapping_add(j)), totals[i]);
                            }
                            j += V::LANES;
                        }
                        if j < len {
                            let v = V::load_first(g.wrapping_add(j), len - j);
                            for i in 0..$N {
                                totals[i] = v.fma(V::load_first(from[i].wrapping_add(j), len - j), totals[i]);
                            }
                        }
                    }
                    for i in 0..$N {
                        let to = sums.add(t + i);
                        *to = (*to).plus(totals[i].total());
                    }
                }
                t += $N;
            }};
        }
        match strip.taps.len() - t {
            9.. => taps!(9),
            3.. => taps!(3),
            _ => taps!(1),
        }
    }
}

/// As `weight::weight`, with few channels of y in each group.
///
/// # Safety
/// As for `weight::weight`.
pub(super) unsafe fn weight<T: CoreNumber, S: StoredAs<T>>(isa: InstructionSet, s: &ConvShape, g: *const S, x: *const S, w: *mut S) {
    let p = Patches::forward(s);
    let (taps, positions, plane, row) = (p.taps(), p.positions(), p.plane(), p.axes[2].out);
    let (rows, channels) = (s.out_channels, s.in_channels);
    let parts = if s.groups * channels >= PARTS { 1 } else { PARTS.min(s.batch) };
    let images = s.batch.div_ceil(parts);
    let parts = s.batch.div_ceil(images);
    let mut each = positions.min((TASK / row).max(1) * row);
    while each > row && Strip::sized(&p, 0, each, false).size > STRIP {
        each = (each / row).div_ceil(2) * row;
    }
    let numel = s.groups * rows * channels * taps;
    let (_own, sums) = room::<T>(parts * numel);
    // SAFETY: there is room.
    unsafe { clear(parts * numel, sums) };
    let sums = SharedPointer::new(sums);
    let (g, x) = (SharedPointer::new(g), SharedPointer::new(x));
    // Of the first image; those of the others lie as far behind as the images do.
    let strips: Vec<(usize, Strip)> =
        (0..positions).step_by(each).map(|first| (first, Strip::new(&p, first, positions.min(first + each), S::SAME))).collect();
    let most = strips.iter().map(|(_, strip)| strip.size).max().unwrap_or(0);
    parallel_for(parts * s.groups * channels, |t| {
        let (part, group, c) = (t / (s.groups * channels), t / channels % s.groups, t % channels);
        let sums = sums.at(part * numel + (group * rows * channels + c) * taps);
        let x = x.get().wrapping_add((group * channels + c) * plane);
        let (_strip, buffer) = room::<T>(most);
        let (_copied, copied) = room::<T>(if S::SAME { 0 } else { each });
        for n in part * images..s.batch.min((part + 1) * images) {
            let x = x.wrapping_add(n * p.image);
            for (first, strip) in &strips {
                let (first, end) = (*first, positions.min(first + each));
                // SAFETY: each task has sums of its own; the rest is the caller's promise.
                unsafe {
                    // The padding of a strip stays as it is.
                    if n == part * images || strips.len() > 1 {
                        clear(strip.size, buffer);
                    }
                    let from = if strip.size == 0 {
                        x.cast::<T>().wrapping_offset(strip.start)
                    } else {
                        fill::<T, S>(isa, &p, strip, x, buffer);
                        buffer.cast_const()
                    };
                    for r in 0..rows {
                        let g = g.get().wrapping_add(((n * s.groups + group) * rows + r) * positions + first);
                        let g = if S::SAME {
                            g.cast::<T>()
                        } else {
                            widen::<T, S>(isa, end - first, g, copied);
                            copied.cast_const()
                        };
                        add_products::<T>(isa, strip, from, g, sums.wrapping_add(r * channels * taps));
                    }
                }
                interrupt::check();
            }
        }
    });
    for i in 0..numel {
        // SAFETY: all sums have been written.
        unsafe { *w.add(i) = S::narrow((1..parts).fold(*sums.at(i), |sum, k| sum.plus(*sums.at(k * numel + i)))) };
    }
}
