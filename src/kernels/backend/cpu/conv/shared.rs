//! As `Gather::run`, for kernels of one tap, whose patches are the image itself: they are packed channel by channel, in the order of memory,
//! once for all tasks that multiply them. Packing for each task would read a little of each of many pages.

use super::algorithms::{ImagePass, Results};
use super::gather::{Gather, GatherPhase, ROWS, STRIP, TASKS, WORTH, runs};
use super::geometry::Strip;
use super::patches::{LoadPlan, PackedRows, clear, fill, pack, reserve};
use crate::backend::cpu::algorithms::{Asked, Why, needs};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::matmul::panels::{Depth, PanelProduct, block_depth, multiply};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::host::interrupt;
use crate::host::threads::{SharedPointer, parallel_for};
use std::sync::atomic::{AtomicBool, Ordering};

/// Numbers that are packed at a time; they stay in the second cache.
const PACKED: usize = 1 << 17;
/// Numbers that one task packs.
const EACH: usize = 1 << 14;

/// The phase.
pub(super) fn plan<'p, T: CoreNumber, S: StoredAs<T>>(call: &'p ImagePass<'_, T, S>, asked: Asked) -> Result<&'p GatherPhase, Why> {
    let g = call.sizes(asked)?;
    needs(S::SAME, "elements are not the numbers")?;
    let [f] = g.phases else { return Err("there are several phases") };
    needs(g.groups == 1 && f.patches.taps() == 1, "there are several taps, or groups")?;
    needs(f.weights.channel == 1 && f.weights.taps == [0], "weights of a row are not neighbours")?;
    Ok(f)
}

/// # Safety
/// As for `Gather::run`; the phase is that of `plan`, and elements are the numbers.
pub(super) unsafe fn run<T: CoreNumber, S: StoredAs<T>>(g: &Gather<'_, T>, f: &GatherPhase, x: *const S, y: *mut T) -> Results {
    let (p, depth) = (&f.patches, g.channels);
    let (width, lanes) = widths::<T>(g.isa);
    let (plane, to_plane) = (p.plane(), f.places.sizes.iter().product::<usize>());
    let columns = p.batch * p.positions();
    let mut together = (PACKED / (depth * width)).clamp(1, columns.div_ceil(width)) * width;
    // Strips of strided kernels have what lies between, too.
    while together > width && Strip::sized(p, 0, columns.min(together), S::SAME).size > STRIP {
        together = (together / 2).next_multiple_of(width);
    }
    let piece = depth.div_ceil(depth.div_ceil(block_depth::<T>(g.isa, width)));
    let (_own, packed) = reserve::<T>(together * depth);
    let (packed, x, y) = (SharedPointer::new(packed), SharedPointer::new(x), SharedPointer::new(y));
    let is_finite = AtomicBool::new(true);
    for start in (0..columns).step_by(together) {
        let end = columns.min(start + together);
        let strip = Strip::new(p, start, end, S::SAME);
        let plan = LoadPlan::new(&strip, lanes);
        let channels = (EACH / (end - start)).clamp(1, depth);
        parallel_for(depth.div_ceil(channels), |t| {
            let (_strip, buffer) = reserve::<T>(strip.size);
            // SAFETY: there is room; each task packs rows of its own. The rest is the caller's promise.
            unsafe {
                clear(strip.size, buffer);
                for c in t * channels..depth.min((t + 1) * channels) {
                    let x = x.get().wrapping_add(c * plane);
                    let from = if strip.size == 0 {
                        x.cast::<T>().wrapping_offset(strip.start)
                    } else {
                        fill::<T, S>(g.isa, p, &strip, x, buffer);
                        buffer.cast_const()
                    };
                    let to = packed.at(c * width);
                    pack::<T>(g.isa, &plan, from, &strip.taps, PackedRows { to, vectors: width / lanes, panel: depth * width, ahead: 0 });
                }
            }
        });
        let panels = (end - start).div_ceil(width);
        let wanted = ((end - start).saturating_mul(g.rows * depth) / WORTH).clamp(1, TASKS);
        let split = (wanted / panels).min(g.rows / ROWS).max(1);
        let rows = g.rows.div_ceil(split).next_multiple_of(8);
        let split = g.rows.div_ceil(rows);
        let each = panels.div_ceil((wanted / split).max(1)) * width;
        parallel_for((end - start).div_ceil(each) * split, |t| {
            let (column, row) = (t / split * each, t % split * rows);
            let range = start + column..end.min(start + column + each);
            let runs = runs(p, &f.places, &range, |column| column);
            for first in (0..depth).step_by(piece) {
                let product = PanelProduct {
                    rows: rows.min(g.rows - row),
                    columns: range.len(),
                    depth: Depth::Dense(piece.min(depth - first)),
                    a: g.weights.wrapping_add(f.weights.at(0, row, first)),
                    a_rs: f.weights.row as isize,
                    next: piece as isize,
                    b: packed.at((column / width * depth + first) * width).cast_const(),
                    panel: depth * width,
                    vectors: width / lanes,
                    out: y.at(row * to_plane),
                    out_rs: to_plane as isize,
                    runs: &runs,
                    step: f.places.step[2] as isize,
                    add: first > 0,
                    bias: if g.bias.is_null() { g.bias } else { g.bias.wrapping_add(row) },
                };
                // SAFETY: everything is packed, and each task has results of its own; the rest is the caller's promise.
                if !unsafe { multiply::<T>(g.isa, &product) } {
                    is_finite.store(false, Ordering::Relaxed);
                }
                interrupt::check();
            }
        });
    }
    Results::seen(is_finite.into_inner())
}
