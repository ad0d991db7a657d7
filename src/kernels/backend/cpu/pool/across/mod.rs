//! Pools whose vectors go across planes, so that no lane is wasted, however small images are: as many planes as a vector has lanes are copied
//! with their padding (`in_lanes`), each tap of a window is one step of a whole vector, and results are copied back.
//!
//! Planes of three dimensions are layers, which are copied one behind the other.
//!
//! Not here: windows of many elements, of integers and of given places, which go along rows (`average`, `max`).

mod backward;
mod forward;
mod loops;
#[cfg(test)]
mod tests;

pub(super) use backward::{average_adjoint, max_adjoint_of_taps};
pub(super) use forward::{average, max};

use super::loops::Pooled;
use crate::backend::cpu::common::in_lanes::{COPY, PaddedRows};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widths};
use crate::call::{Pool, WindowAxis};
use crate::host::interrupt;
use crate::host::threads::parallel_for;
use crate::simd::InstructionSet;
use loops::{OwnWindow, WindowRow};
use std::ops::Range;

/// Elements that the windows of one task have.
const TASK: usize = 1 << 17;

/// A pool, and the vectors it is computed in.
pub(in crate::backend::cpu) struct Across<'a> {
    p: &'a Pool,
    isa: InstructionSet,
    lanes: usize,
}

impl<'a> Across<'a> {
    /// The pool, if it may be computed in this way, and windows have at most so many elements.
    pub fn on<T: CoreNumber>(isa: InstructionSet, p: &'a Pool, most: usize) -> Option<Across<'a>> {
        let (_, lanes) = widths::<T>(isa);
        let [d, h, w] = &p.axes;
        let is_any = p.planes >= lanes && p.windows() > 0 && p.plane() > 0;
        // Each axis, or none.
        let is_even = !p.axes.iter().any(|a| a.adaptive) || p.axes.iter().all(|a| a.adaptive || *a == WindowAxis::ONE);
        let elements = largest(d).saturating_mul(largest(h)).saturating_mul(largest(w));
        if isa == InstructionSet::Base || !is_any || !is_even || elements > most {
            return None;
        }
        let reach = |a: &WindowAxis, windows: Range<usize>| (a.end(windows.end - 1) - a.start(windows.start)) as usize;
        let is_small = reach(h, 0..1) <= COPY && reach(w, 0..w.output) <= COPY && w.input <= COPY;
        let made = Across { p, isa, lanes };
        (is_small && made.rows_of(&(0..1)).size() * lanes * largest(d) <= COPY).then_some(made)
    }

    /// The rows that some rows of windows touch.
    fn rows_of(&self, windows: &Range<usize>) -> PaddedRows {
        let [_, h, w] = &self.p.axes;
        let rows = h.start(windows.start)..h.end(windows.end - 1);
        PaddedRows::of(rows, self.columns(), (h.input, w.input))
    }

    fn columns(&self) -> Range<isize> {
        let w = &self.p.axes[2];
        w.start(0)..w.end(w.output - 1)
    }

    /// How many rows, each so many elements from the one before it, are copied together if one of each of some layers takes `of_one`.
    fn together(&self, rows: usize, of_one: &PaddedRows, layers: usize, step: usize) -> usize {
        let most = 1 + (COPY / (self.lanes * layers)).saturating_sub(of_one.size()) / (step * of_one.pitch);
        rows.div_ceil(rows.div_ceil(most))
    }

    /// Calls `f` with blocks of planes, a layer of `0..layers`, and rows of `0..rows`, `together` at a time.
    fn each(&self, layers: usize, rows: usize, together: usize, f: impl Fn(Range<usize>, usize, Range<usize>) + Sync) {
        let blocks = self.p.planes.div_ceil(self.lanes);
        let in_layer = rows.div_ceil(together);
        let parts = layers * in_layer;
        let elements: usize = self.p.axes.iter().map(largest).product();
        let windows = self.p.windows() * elements / parts + self.p.plane() / parts;
        let at_once = (TASK / (self.lanes * windows).max(1)).clamp(1, blocks);
        parallel_for(blocks.div_ceil(at_once) * parts, |t| {
            let (block, part) = (t / parts * at_once, t % in_layer);
            let rows = part * together..rows.min((part + 1) * together);
            f(block..blocks.min(block + at_once), t % parts / in_layer, rows);
            interrupt::check();
        });
    }

    /// How many planes a block has.
    fn planes(&self, block: usize) -> usize {
        self.lanes.min(self.p.planes - block * self.lanes)
    }

    fn is_adaptive(&self) -> bool {
        self.p.axes.iter().any(|a| a.adaptive)
    }

    fn row(&self) -> WindowRow {
        let w = &self.p.axes[2];
        WindowRow { len: w.output, stride: w.stride }
    }

    /// How far the taps of windows of one size are from where a window begins.
    fn taps(&self, pitch: usize) -> Vec<usize> {
        let [_, h, w] = &self.p.axes;
        (0..h.kernel).flat_map(|y| (0..w.kernel).map(move |x| y * h.dilation * pitch + x * w.dilation)).collect()
    }

    /// A row of windows that have sizes of their own.
    fn own(&self, row: usize, touched: &PaddedRows) -> Vec<OwnWindow> {
        let [_, h, w] = &self.p.axes;
        let len = |a: &WindowAxis, o: usize| (a.end(o) - a.start(o)) as usize;
        let of = |o: usize| OwnWindow { at: touched.place(h.start(row), w.start(o)), rows: len(h, row), columns: len(w, o) };
        (0..w.output).map(of).collect()
    }
}

/// No window has more elements along an axis.
fn largest(a: &WindowAxis) -> usize {
    if a.adaptive { (a.input.div_ceil(a.output.max(1)) + 1).min(a.input) } else { a.kernel }
}

/// Whole numbers as elements, which hold them exactly.
fn codes<T: Pooled>(of: impl Iterator<Item = usize>) -> Vec<T> {
    of.map(|n| T::of_count(n as i64)).collect()
}
