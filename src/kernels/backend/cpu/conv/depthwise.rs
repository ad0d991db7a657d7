//! As `Gather::run`, for depthwise convolutions: vectors go across channels, so that no lane is wasted, however short the rows of an image are.
//! Images are copied with their padding and with channels as neighbours, and so are results on their way back. Both copies are squares that are
//! transposed in registers; they take less time than rows that end amid a vector, or that a stride takes apart.

use super::algorithms::{ImagePass, Results};
use super::gather::{Gather, GatherPhase};
use super::geometry::{Axis, Patches};
use super::patches::{clear, reserve, widen};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::common::epilogue::ImageEpilogue;
use crate::backend::cpu::common::in_lanes::{COPY, PaddedRows, copy_in, copy_out};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector, widths};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::host::interrupt;
use crate::host::threads::SharedPointer;
use crate::simd::InstructionSet;
use std::ops::Range;

/// Multiply-adds of one task.
const TASK: usize = 1 << 18;
/// The most positions that are summed up at once: with a weight they fit the registers of AVX2.
const AT_ONCE: usize = 12;

/// The phase. Two Zen 3 cores took 0.2 to 0.95 of the time of `direct`, for 7x7 to 224x224 positions and 3x3 to 13x13 taps, and about as much for
/// 31x31.
pub(super) fn plan<'p, T: CoreNumber, S: StoredAs<T>>(call: &'p ImagePass<'_, T, S>, asked: Asked) -> Result<&'p GatherPhase, Why> {
    let g = call.sizes(asked)?;
    let [f] = g.phases else { return Err("there are several phases") };
    let (p, (_, lanes)) = (&f.patches, widths::<T>(g.isa));
    let [a, _, c] = &p.axes;
    needs((g.rows, g.channels) == (1, 1) && p.taps() > 0 && p.positions() > 0, "groups have several channels")?;
    asked.gains(g.groups >= lanes, "there are fewer channels than lanes of a vector")?;
    let has_one_plane = (a.out, a.size) == (1, 1) && a.taps[..] == [(0, 0)];
    needs(has_one_plane && f.places.step == [1; 3] && c.stride <= 2, "there are several planes, or steps beyond 2")?;
    needs(g.isa != InstructionSet::Base, "there are no loops without AVX2")?;
    needs(rows_of(p, &(0..1)).size() * lanes <= COPY, "rows are too long for a copy")?;
    Ok(f)
}

/// The part of an image that some rows of positions read.
fn rows_of(p: &Patches, rows: &Range<usize>) -> PaddedRows {
    let [_, b, c] = &p.axes;
    let end = |a: &Axis, positions: usize| ((positions - 1) * a.stride) as isize + a.most() + 1;
    let first = (rows.start * b.stride) as isize + b.least();
    PaddedRows::of(first..end(b, rows.end), c.least()..end(c, c.out), (b.size, c.size))
}

/// Some rows of positions of an image, of some blocks of channels.
struct DepthwiseTask {
    image: usize,
    blocks: Range<usize>,
    rows: Range<usize>,
}

/// # Safety
/// As for `Gather::run`; the phase is that of `plan`.
pub(super) unsafe fn run<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, f: &GatherPhase, x: *const S, y: *mut S) -> Results {
    let p = &f.patches;
    let [_, b, c] = &p.axes;
    let (taps, (_, lanes)) = (p.taps(), widths::<T>(g.isa));
    let blocks = g.groups.div_ceil(lanes);
    // As many rows as may be, as even as they can.
    let one = rows_of(p, &(0..1));
    let most = 1 + (COPY / lanes - one.size()) / (b.stride * one.pitch);
    let rows = b.out.div_ceil(b.out.div_ceil(most));
    let together = (TASK / (rows * c.out * lanes * taps)).clamp(1, blocks);
    let mut tasks = Vec::new();
    for image in 0..p.batch {
        for block in (0..blocks).step_by(together) {
            for row in (0..b.out).step_by(rows) {
                tasks.push(DepthwiseTask { image, blocks: block..blocks.min(block + together), rows: row..b.out.min(row + rows) });
            }
        }
    }
    // For each block, for each tap, and for the bias, one for each channel.
    let mut weights = vec![T::ZERO; blocks * (taps + 1) * lanes];
    for (group, (block, lane)) in (0..g.groups).map(|group| (group, (group / lanes, group % lanes))) {
        let to = &mut weights[block * (taps + 1) * lanes + lane..];
        // SAFETY: the caller's.
        unsafe {
            for (t, place) in f.weights.taps.iter().enumerate() {
                to[t * lanes] = *g.weights.add(f.weights.at(group, 0, 0) + place);
            }
            if !g.bias.is_null() {
                to[taps * lanes] = *g.bias.add(group);
            }
        }
    }
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    ImageEpilogue::parallel_for(g.epilogue, tasks.len(), &|t| tasks[t].image..tasks[t].image + 1, &|t| {
        // SAFETY: each task has results of its own; the rest is the caller's promise.
        unsafe { task(g, f, &tasks[t], &weights, x.get(), y.get()) };
    });
    Results::Unseen
}

/// # Safety
/// As for `run`.
unsafe fn task<T: CoreNumber, S: StoredAs<T>>(
    g: &Gather<'_, T>,
    f: &GatherPhase,
    task: &DepthwiseTask,
    weights: &[T],
    x: *const S,
    y: *mut S,
) {
    let p = &f.patches;
    let [_, b, c] = &p.axes;
    let (plane, to_plane, (_, lanes)) = (p.plane(), p.positions(), widths::<T>(g.isa));
    let copied = rows_of(p, &task.rows);
    // Where each tap of the first position lies, and the elements between rows of positions.
    let (first, step) = ((task.rows.start * b.stride) as isize, b.stride * copied.pitch);
    let taps: Vec<usize> = b.taps.iter().flat_map(|y| c.taps.iter().map(|x| copied.place(first + y.0, x.0))).collect();
    let (read, count) = (copied.plane.len() * c.size, task.rows.len() * c.out);
    let (_copy, copy) = reserve::<T>(copied.size() * lanes);
    let (_sums, sums) = reserve::<T>(count * lanes);
    // Numbers of elements of another type.
    let (_wide, wide) = reserve::<T>(if S::SAME { 0 } else { lanes * read.max(count) });
    // SAFETY: there is room.
    unsafe { clear(copied.size() * lanes, copy) };
    let inner = copy.wrapping_add(copied.inner() * lanes);
    for block in task.blocks.clone() {
        let channels = lanes.min(g.groups - block * lanes);
        let x = x.wrapping_add(task.image * p.image + block * lanes * plane + copied.plane.start * c.size);
        let y = y.wrapping_add(task.image * f.places.image + block * lanes * to_plane + task.rows.start * c.out);
        // SAFETY: the caller's; there is room.
        unsafe {
            let (from, from_plane) = if S::SAME {
                (x.cast::<T>(), plane)
            } else {
                (0..channels).for_each(|i| widen::<T, S>(g.isa, read, x.wrapping_add(i * plane), wide.wrapping_add(i * read)));
                (wide.cast_const(), read)
            };
            copy_in::<T>(g.isa, (channels, from_plane), (copied.plane.len(), c.size), from, inner, copied.pitch, T::ZERO);
            let of_block = &weights[block * (p.taps() + 1) * lanes..];
            for r in 0..task.rows.len() {
                let (from, to) = (copy.cast_const().wrapping_add(r * step * lanes), sums.wrapping_add(r * c.out * lanes));
                sum_row::<T>(g.isa, (c.out, c.stride), from, &taps, of_block.as_ptr(), to);
            }
            if S::SAME {
                copy_out::<T>(g.isa, (channels, to_plane), count, sums.cast_const(), y.cast());
            } else {
                copy_out::<T>(g.isa, (channels, count), count, sums.cast_const(), wide);
                for i in 0..channels {
                    let (from, to) = (wide.wrapping_add(i * count), y.wrapping_add(i * to_plane));
                    (0..count).for_each(|j| *to.wrapping_add(j) = S::narrow(*from.wrapping_add(j)));
                }
            }
        }
        interrupt::check();
    }
}

on_vectors! { not base:
    /// The sums of a row of positions, whose taps lie so far from where it begins. Weights of the taps, and the bias, follow each other.
    fn sum_row<T>(row: (usize, usize), from: *const T, taps: &[usize], weights: *const T, to: *mut T) = sum_row_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn sum_row_on<V: PanelVector>(
    (len, stride): (usize, usize),
    from: *const V::Number,
    taps: &[usize],
    weights: *const V::Number,
    to: *mut V::Number,
) {
    // As even as may be; the last ones begin before those before them end.
    let many = len.div_ceil(len.div_ceil(AT_ONCE));
    for first in (0..len).step_by(many) {
        let first = first.min(len - many);
        let (from, to) = (from.wrapping_add(first * stride * V::LANES), to.wrapping_add(first * V::LANES));
        macro_rules! some {
            ($($N:literal)+) => {
                match (many, stride) {
                    // SAFETY: the caller's.
                    $(($N, 1) => unsafe { sum_some::<V, $N, 1>(from, taps, weights, to) },)+
                    // SAFETY: the caller's.
                    $(($N, _) => unsafe { sum_some::<V, $N, 2>(from, taps, weights, to) },)+
                    _ => unreachable!("as many are never summed up at once"),
                }
            };
        }
        some!(1 2 3 4 5 6 7 8 9 10 11 12);
    }
}

/// N positions, `S` apart.
///
/// # Safety
/// As for `sum_row`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the sums in registers")]
#[inline(always)]
unsafe fn sum_some<V: PanelVector, const N: usize, const S: usize>(
    from: *const V::Number,
    taps: &[usize],
    weights: *const V::Number,
    to: *mut V::Number,
) {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [V::load(weights.wrapping_add(taps.len() * V::LANES)); N];
        for (t, at) in taps.iter().enumerate() {
            let (w, from) = (V::load(weights.wrapping_add(t * V::LANES)), from.wrapping_add(at * V::LANES));
            for n in 0..N {
                sums[n] = V::load(from.wrapping_add(n * S * V::LANES)).fma(w, sums[n]);
            }
        }
        for n in 0..N {
            sums[n].store(to.wrapping_add(n * V::LANES));
        }
    }
}
