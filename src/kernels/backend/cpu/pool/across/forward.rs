//! Means over windows and their largest elements.

use super::super::average::Counts;
use super::super::loops::Pooled;
use super::super::max::Places;
use super::loops::{best_own, best_row, mean_own, mean_row};
use super::{Across, codes, largest};
use crate::backend::cpu::in_lanes::{PaddedRows, copy_in, copy_out};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::backend::cpu::memory::room::aligned;
use crate::backend::cpu::threads::SharedPointer;
use crate::backend::requests::PoolDivisor;
use std::ops::Range;

impl Across<'_> {
    /// Calls `f` with blocks of planes and rows of windows.
    fn each_row(&self, f: impl Fn(Range<usize>, Range<usize>) + Sync) {
        let h = &self.p.axes[1];
        let step = if h.adaptive { h.input.div_ceil(h.output) + 1 } else { h.stride };
        self.each(h.output, self.together(h.output, &self.rows_of(&(0..1)), step), f);
    }

    /// Copies the rows that are touched of a block of planes.
    ///
    /// # Safety
    /// `x` has as many elements as the pool says, and `copy` as many as the rows.
    unsafe fn read<T: CoreNumber>(&self, block: usize, touched: &PaddedRows, x: *const T, copy: *mut T, padding: T) {
        let (plane, width) = (self.p.plane(), self.p.axes[2].input);
        let from = x.wrapping_add(block * self.lanes * plane + touched.plane.start * width);
        let to = copy.wrapping_add(touched.inner() * self.lanes);
        // SAFETY: the caller's.
        unsafe { copy_in::<T>(self.isa, (self.planes(block), plane), (touched.plane.len(), width), from, to, touched.pitch, padding) };
    }

    /// Copies results of rows of windows of a block of planes.
    ///
    /// # Safety
    /// `y` has as many elements as the pool says, and `from` as many as the rows.
    unsafe fn write<T: CoreNumber>(&self, block: usize, rows: &Range<usize>, from: *const T, y: *mut T) {
        let (windows, width) = (self.p.windows(), self.p.axes[2].output);
        let to = y.wrapping_add(block * self.lanes * windows + rows.start * width);
        // SAFETY: the caller's.
        unsafe { copy_out::<T>(self.isa, (self.planes(block), windows), rows.len() * width, from, to) };
    }
}

/// As `average::average`.
///
/// # Safety
/// Both have as many elements as the pool says; they do not overlap.
pub unsafe fn average<T: Pooled + CoreNumber>(of: &Across<'_>, divisor: PoolDivisor, x: *const T, y: *mut T) {
    let (p, isa, lanes) = (of.p, of.isa, of.lanes);
    let [_, h, w] = &p.axes;
    let all = Counts::of(p, divisor);
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    of.each_row(|blocks, rows| {
        let touched = of.rows_of(&rows);
        let taps = of.taps(touched.pitch);
        let counts: Vec<T> = all.of_rows(rows.clone());
        let own: Vec<_> = if of.is_adaptive() { rows.clone().flat_map(|r| of.own(r, &touched)).collect() } else { Vec::new() };
        let mut copy = aligned(T::ZERO, touched.size() * lanes);
        let mut means = aligned(T::ZERO, rows.len() * w.output * lanes);
        for block in blocks {
            // SAFETY: the caller's; each task has windows of its own, and its copies have room for what is touched.
            unsafe {
                of.read(block, &touched, x.get(), copy.as_mut_ptr(), T::ZERO);
                if of.is_adaptive() {
                    mean_own::<T>(isa, &own, touched.pitch, copy.as_ptr(), counts.as_ptr(), means.as_mut_ptr());
                } else {
                    for (i, r) in rows.clone().enumerate() {
                        let from = copy.as_ptr().wrapping_add(touched.place(h.start(r), w.start(0)) * lanes);
                        let (counts, to) =
                            (counts.as_ptr().wrapping_add(i * w.output), means.as_mut_ptr().wrapping_add(i * w.output * lanes));
                        mean_row::<T>(isa, of.row(), from, &taps, counts, to);
                    }
                }
                of.write(block, &rows, means.as_ptr(), y.get());
            }
        }
    });
}

/// As `max::max`, of windows that each have an element inside, with taps only where windows are regular.
///
/// # Safety
/// All have as many elements as the pool says; what is written overlaps nothing else.
pub unsafe fn max<T: Pooled + CoreNumber>(of: &Across<'_>, x: *const T, values: *mut T, places: Places) {
    let (p, isa, lanes) = (of.p, of.isa, of.lanes);
    let [_, h, w] = &p.axes;
    // Of each tap, how far it is from where the window begins: as taps, or as elements of the plane.
    let columns = largest(w);
    let element = |tap: usize| tap / columns * h.dilation * w.input + tap % columns * w.dilation;
    let all: Vec<T> = match places {
        Places::Nowhere => Vec::new(),
        Places::Taps(_) => codes(0..p.kernel()),
        Places::Positions(_) => codes((0..largest(h) * columns).map(element)),
    };
    let (x, values) = (SharedPointer::new(x), SharedPointer::new(values));
    of.each_row(|blocks, rows| {
        let touched = of.rows_of(&rows);
        let taps = of.taps(touched.pitch);
        let windows = || rows.clone().flat_map(|r| (0..w.output).map(move |o| (r, o)));
        // The first taps inside.
        let initial: Vec<T> = match places {
            Places::Nowhere => Vec::new(),
            _ => windows().map(|(r, o)| all[h.taps(r).start * columns + w.taps(o).start]).collect(),
        };
        let starts: Vec<i64> = match places {
            Places::Positions(_) => windows().map(|(r, o)| h.start(r) as i64 * w.input as i64 + w.start(o) as i64).collect(),
            _ => Vec::new(),
        };
        let own: Vec<_> = if of.is_adaptive() { rows.clone().flat_map(|r| of.own(r, &touched)).collect() } else { Vec::new() };
        let count = rows.len() * w.output;
        let with_places = !all.is_empty();
        let mut copy = aligned(T::LOWEST, touched.size() * lanes);
        let mut best = aligned(T::ZERO, count * lanes);
        let mut its = aligned(T::ZERO, if with_places { count * lanes } else { 0 });
        let mut as_planes = aligned(T::ZERO, its.len());
        for block in blocks {
            // SAFETY: the caller's; each task has windows of its own, and its copies have room for what is touched.
            unsafe {
                of.read(block, &touched, x.get(), copy.as_mut_ptr(), T::LOWEST);
                if of.is_adaptive() {
                    best_own::<T>(isa, &own, touched.pitch, copy.as_ptr(), (&all, columns), best.as_mut_ptr(), its.as_mut_ptr());
                } else {
                    for (i, r) in rows.clone().enumerate() {
                        let from = copy.as_ptr().wrapping_add(touched.place(h.start(r), w.start(0)) * lanes);
                        let (first, at) = (initial.as_ptr().wrapping_add(i * w.output), i * w.output * lanes);
                        let to = (best.as_mut_ptr().wrapping_add(at), its.as_mut_ptr().wrapping_add(at));
                        best_row::<T>(isa, of.row(), from, (&taps, &all), first, to);
                    }
                }
                of.write(block, &rows, best.as_ptr(), values.get());
                if !with_places {
                    continue;
                }
                copy_out::<T>(isa, (of.planes(block), count), count, its.as_ptr(), as_planes.as_mut_ptr());
                for (i, from) in as_planes.chunks_exact(count).take(of.planes(block)).enumerate() {
                    places.put((block * lanes + i) * p.windows() + rows.start * w.output, from, &starts);
                }
            }
        }
    });
}
