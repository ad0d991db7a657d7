//! Means over windows and their largest elements.

use super::super::Spans;
use super::super::average::Counts;
use super::super::loops::Pooled;
use super::super::max::Places;
use super::loops::{Layers, best_own, best_row, mean_own, mean_row};
use super::{Across, codes, largest};
use crate::backend::cpu::common::in_lanes::{PaddedRows, copy_in, copy_out};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::call::PoolDivisor;
use crate::host::memory::reserve::aligned;
use crate::host::threads::SharedPointer;
use std::ops::Range;

impl Across<'_> {
    /// Calls `f` with blocks of planes, and some rows of a layer of windows.
    fn each_row(&self, f: impl Fn(Range<usize>, usize, Range<usize>) + Sync) {
        let [d, h, _] = &self.p.axes;
        let step = if h.adaptive { h.input.div_ceil(h.output) + 1 } else { h.stride };
        self.each(d.output, h.output, self.together(h.output, &self.rows_of(&(0..1)), largest(d), step), f);
    }

    /// How far the taps in some layers are from where a window begins.
    fn taps_of(&self, layers: &Layers) -> Vec<usize> {
        let taps = self.taps(layers.pitch);
        (0..layers.count).flat_map(|z| taps.iter().map(move |at| z * layers.apart + at)).collect()
    }

    /// Where a row of windows begins among the windows of a plane.
    fn row_at(&self, layer: usize, row: usize) -> usize {
        let [_, h, w] = &self.p.axes;
        (layer * h.output + row) * w.output
    }

    /// Copies the rows that are touched of the layers of a block of planes in which windows are, layer by layer.
    ///
    /// # Safety
    /// `x` has as many elements as the pool says, and `copy` as many as the rows of the layers.
    unsafe fn read<T: CoreNumber>(
        &self,
        block: usize,
        layers: impl Iterator<Item = usize>,
        rows: &PaddedRows,
        x: *const T,
        copy: *mut T,
        padding: T,
    ) {
        let (plane, [_, h, w]) = (self.p.plane(), &self.p.axes);
        for (z, layer) in layers.enumerate() {
            let row = layer * h.input + rows.plane.start;
            let from = x.wrapping_add(block * self.lanes * plane + row * w.input);
            let to = copy.wrapping_add((z * rows.size() + rows.inner()) * self.lanes);
            // SAFETY: the caller's.
            unsafe { copy_in::<T>(self.isa, (self.planes(block), plane), (rows.plane.len(), w.input), from, to, rows.pitch, padding) };
        }
    }

    /// Copies results of `count` windows from `at` on of a block of planes.
    ///
    /// # Safety
    /// `y` has as many elements as the pool says, and `from` as many as the windows.
    unsafe fn write<T: CoreNumber>(&self, block: usize, (at, count): (usize, usize), from: *const T, y: *mut T) {
        let windows = self.p.windows();
        let to = y.wrapping_add(block * self.lanes * windows + at);
        // SAFETY: the caller's.
        unsafe { copy_out::<T>(self.isa, (self.planes(block), windows), count, from, to) };
    }
}

/// As `average::average`.
///
/// # Safety
/// Both have as many elements as the pool says; they do not overlap.
pub unsafe fn average<T: Pooled + CoreNumber>(of: &Across<'_>, divisor: PoolDivisor, x: *const T, y: *mut T) {
    let (p, isa, lanes) = (of.p, of.isa, of.lanes);
    let [_, h, w] = &p.axes;
    let (all, depth) = (Counts::of(p, divisor), Spans::of(&p.axes[0]));
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    of.each_row(|blocks, layer, rows| {
        let touched = of.rows_of(&rows);
        let layers = Layers { count: depth.count[layer], apart: touched.size(), pitch: touched.pitch };
        let taps = of.taps_of(&layers);
        let counts: Vec<T> = all.of_rows(layer, rows.clone());
        let own: Vec<_> = if of.is_adaptive() { rows.clone().flat_map(|r| of.own(r, &touched)).collect() } else { Vec::new() };
        let windows = (of.row_at(layer, rows.start), rows.len() * w.output);
        let mut copy = aligned(T::ZERO, touched.size() * layers.count * lanes);
        let mut means = aligned(T::ZERO, windows.1 * lanes);
        for block in blocks {
            // SAFETY: the caller's; each task has windows of its own, and its copies have room for what is touched.
            unsafe {
                of.read(block, depth.positions(layer), &touched, x.get(), copy.as_mut_ptr(), T::ZERO);
                if of.is_adaptive() {
                    mean_own::<T>(isa, &own, layers, copy.as_ptr(), counts.as_ptr(), means.as_mut_ptr());
                } else {
                    for (i, r) in rows.clone().enumerate() {
                        let from = copy.as_ptr().wrapping_add(touched.place(h.start(r), w.start(0)) * lanes);
                        let (counts, to) =
                            (counts.as_ptr().wrapping_add(i * w.output), means.as_mut_ptr().wrapping_add(i * w.output * lanes));
                        mean_row::<T>(isa, of.row(), from, &taps, counts, to);
                    }
                }
                of.write(block, windows, means.as_ptr(), y.get());
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
    let [d, h, w] = &p.axes;
    // Of each tap, how far it is from where the window begins: as taps, or as elements of the plane.
    let (depth, rows_of_taps, columns) = (Spans::of(d), largest(h), largest(w));
    let tap_at = |z: usize, r: usize, c: usize| (z * rows_of_taps + r) * columns + c;
    let element = |tap: usize| {
        let (row, column) = (tap / columns, tap % columns);
        (row / rows_of_taps * d.dilation * h.input + row % rows_of_taps * h.dilation) * w.input + column * w.dilation
    };
    let all: Vec<T> = match places {
        Places::Nowhere => Vec::new(),
        Places::Taps(_) => codes(0..p.kernel()),
        Places::Positions(_) => codes((0..tap_at(largest(d), 0, 0)).map(element)),
    };
    let (x, values) = (SharedPointer::new(x), SharedPointer::new(values));
    of.each_row(|blocks, layer, rows| {
        let touched = of.rows_of(&rows);
        let layers = Layers { count: depth.count[layer], apart: touched.size(), pitch: touched.pitch };
        let taps = of.taps_of(&layers);
        let windows = || rows.clone().flat_map(|r| (0..w.output).map(move |o| (r, o)));
        let place = |r: usize, o: usize| (d.start(layer) as i64 * h.input as i64 + h.start(r) as i64) * w.input as i64 + w.start(o) as i64;
        // The first taps inside.
        let initial: Vec<T> = match places {
            Places::Nowhere => Vec::new(),
            _ => windows().map(|(r, o)| all[tap_at(depth.tap[layer], h.taps(r).start, w.taps(o).start)]).collect(),
        };
        let starts: Vec<i64> = match places {
            Places::Positions(_) => windows().map(|(r, o)| place(r, o)).collect(),
            _ => Vec::new(),
        };
        let own: Vec<_> = if of.is_adaptive() { rows.clone().flat_map(|r| of.own(r, &touched)).collect() } else { Vec::new() };
        let (at, count) = (of.row_at(layer, rows.start), rows.len() * w.output);
        let with_places = !all.is_empty();
        let its_codes =
            if with_places { &all[tap_at(depth.tap[layer], 0, 0)..tap_at(depth.tap[layer] + layers.count, 0, 0)] } else { &all };
        let mut copy = aligned(T::LOWEST, touched.size() * layers.count * lanes);
        let mut best = aligned(T::ZERO, count * lanes);
        let mut its = aligned(T::ZERO, if with_places { count * lanes } else { 0 });
        let mut as_planes = aligned(T::ZERO, its.len());
        for block in blocks {
            // SAFETY: the caller's; each task has windows of its own, and its copies have room for what is touched.
            unsafe {
                of.read(block, depth.positions(layer), &touched, x.get(), copy.as_mut_ptr(), T::LOWEST);
                if of.is_adaptive() {
                    best_own::<T>(isa, &own, layers, copy.as_ptr(), (&all, [rows_of_taps, columns]), best.as_mut_ptr(), its.as_mut_ptr());
                } else {
                    for (i, r) in rows.clone().enumerate() {
                        let from = copy.as_ptr().wrapping_add(touched.place(h.start(r), w.start(0)) * lanes);
                        let (first, to_at) = (initial.as_ptr().wrapping_add(i * w.output), i * w.output * lanes);
                        let to = (best.as_mut_ptr().wrapping_add(to_at), its.as_mut_ptr().wrapping_add(to_at));
                        best_row::<T>(isa, of.row(), from, (&taps, its_codes), first, to);
                    }
                }
                of.write(block, (at, count), best.as_ptr(), values.get());
                if !with_places {
                    continue;
                }
                copy_out::<T>(isa, (of.planes(block), count), count, its.as_ptr(), as_planes.as_mut_ptr());
                for (i, from) in as_planes.chunks_exact(count).take(of.planes(block)).enumerate() {
                    places.put((block * lanes + i) * p.windows() + at, from, &starts);
                }
            }
        }
    });
}
