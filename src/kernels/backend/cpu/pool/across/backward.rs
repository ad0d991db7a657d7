//! The adjoints: what windows give to their elements.

use super::super::average::Counts;
use super::super::loops::Pooled;
use super::loops::{give_row, spread_own, spread_row};
use super::{Across, codes};
use crate::backend::cpu::common::in_lanes::{PaddedRows, copy_in, copy_out};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::call::{PoolDivisor, WindowAxis};
use crate::host::memory::reserve::aligned;
use crate::host::threads::SharedPointer;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

/// Elements behind the last one that copies of windows may write.
const BEHIND: usize = 16;

/// The windows along an axis that touch some elements.
fn touching(a: &WindowAxis, elements: &Range<usize>) -> Range<usize> {
    let first = first_where(a.output, |o| a.end(o) > elements.start as isize);
    first..first_where(a.output, |o| a.start(o) >= elements.end as isize).max(first)
}

/// The first of `0..n` that has what all after it have.
fn first_where(n: usize, has: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if has(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

impl Across<'_> {
    /// Calls `f` with blocks of planes, and some rows of a layer of planes.
    fn each_plane_row(&self, f: impl Fn(Range<usize>, usize, Range<usize>) + Sync) {
        let [d, h, _] = &self.p.axes;
        self.each(d.input, h.input, self.together(h.input, &self.rows_given(&(0..1), &touching(h, &(0..1))), 1, 1), f);
    }

    /// The layers of windows that have elements of a layer of the plane, and which tap along the first axis these are.
    fn layers_touching(&self, layer: usize) -> Vec<(usize, usize)> {
        let d = &self.p.axes[0];
        let tap = |o: usize| {
            let from = (layer as isize - d.start(o)) as usize;
            (from.is_multiple_of(d.dilation) && d.taps(o).contains(&(from / d.dilation))).then_some((o, from / d.dilation))
        };
        touching(d, &(layer..layer + 1)).filter_map(tap).collect()
    }

    /// Where rows of windows of a layer begin in a block of planes.
    fn windows_at(&self, block: usize, layer: usize, row: usize) -> usize {
        let [_, h, w] = &self.p.axes;
        block * self.lanes * self.p.windows() + (layer * h.output + row) * w.output
    }

    /// The rows that some windows give to, some rows of the plane among them.
    fn rows_given(&self, rows: &Range<usize>, windows: &Range<usize>) -> PaddedRows {
        let [_, h, w] = &self.p.axes;
        let mut all = rows.start as isize..rows.end as isize;
        if !windows.is_empty() {
            all = all.start.min(h.start(windows.start))..all.end.max(h.end(windows.end - 1));
        }
        PaddedRows::of(all, self.columns(), (h.input, w.input))
    }

    /// Copies numbers of rows of windows, planes of which are `apart`, as vectors.
    ///
    /// # Safety
    /// They are readable; there is room for them and `BEHIND` more.
    unsafe fn read_windows<T: CoreNumber>(&self, block: usize, windows: &Range<usize>, from: *const T, apart: usize, to: *mut T) {
        let count = windows.len() * self.p.axes[2].output;
        // SAFETY: the caller's.
        unsafe { copy_in::<T>(self.isa, (self.planes(block), apart), (1, count), from, to, count, T::ZERO) };
    }

    /// Copies rows of planes out of those that windows gave to, which are lost.
    ///
    /// # Safety
    /// `x` has as many elements as the pool says, and `copy` as many as `given`.
    unsafe fn write_rows<T: CoreNumber>(
        &self,
        block: usize,
        (layer, rows): (usize, &Range<usize>),
        given: &PaddedRows,
        copy: *mut T,
        x: *mut T,
    ) {
        let (plane, height, width, lanes) = (self.p.plane(), self.p.axes[1].input, self.p.axes[2].input, self.lanes);
        let first = copy.wrapping_add(given.place(rows.start as isize, 0) * lanes);
        // SAFETY: the caller's. Rows move towards the first one.
        unsafe {
            if given.pitch != width {
                for r in 1..rows.len() {
                    std::ptr::copy(first.wrapping_add(r * given.pitch * lanes), first.wrapping_add(r * width * lanes), width * lanes);
                }
            }
            let to = x.wrapping_add(block * lanes * plane + (layer * height + rows.start) * width);
            copy_out::<T>(self.isa, (self.planes(block), plane), rows.len() * width, first, to);
        }
    }

    /// As `taps`, each row's backwards.
    fn taps_backwards<V>(&self, mut taps: Vec<V>) -> Vec<V> {
        taps.chunks_mut(self.p.axes[2].kernel).for_each(<[V]>::reverse);
        taps
    }
}

/// As `average::average_adjoint`.
///
/// # Safety
/// Both have as many elements as the pool says; they do not overlap.
pub unsafe fn average_adjoint<T: Pooled + CoreNumber>(of: &Across<'_>, divisor: PoolDivisor, g: *const T, x: *mut T) {
    let (p, isa, lanes) = (of.p, of.isa, of.lanes);
    let [_, h, w] = &p.axes;
    let all = Counts::of(p, divisor);
    let (g, x) = (SharedPointer::new(g), SharedPointer::new(x));
    of.each_plane_row(|blocks, layer, rows| {
        let windows = touching(h, &rows);
        let given = of.rows_given(&rows, &windows);
        let taps = of.taps_backwards(of.taps(given.pitch));
        let layers: Vec<(usize, Vec<T>)> = of.layers_touching(layer).iter().map(|(o, _)| (*o, all.of_rows(*o, windows.clone()))).collect();
        let own: Vec<_> = if of.is_adaptive() { windows.clone().flat_map(|r| of.own(r, &given)).collect() } else { Vec::new() };
        let mut copy = aligned(T::ZERO, given.size() * lanes);
        let mut gradients = aligned(T::ZERO, (windows.len() * w.output + BEHIND) * lanes);
        for block in blocks {
            copy.fill(T::ZERO);
            for (o, counts) in &layers {
                // SAFETY: the caller's; each task has rows of its own, and its copies have room for what is given.
                unsafe {
                    let from = g.get().wrapping_add(of.windows_at(block, *o, windows.start));
                    of.read_windows(block, &windows, from, p.windows(), gradients.as_mut_ptr());
                    if of.is_adaptive() {
                        spread_own::<T>(isa, &own, given.pitch, gradients.as_ptr(), counts.as_ptr(), copy.as_mut_ptr());
                        continue;
                    }
                    for (i, r) in windows.clone().enumerate() {
                        let to = copy.as_mut_ptr().wrapping_add(given.place(h.start(r), w.start(0)) * lanes);
                        let (counts, from) =
                            (counts.as_ptr().wrapping_add(i * w.output), gradients.as_ptr().wrapping_add(i * w.output * lanes));
                        spread_row::<T>(isa, of.row(), from, &taps, counts, to);
                    }
                }
            }
            // SAFETY: as above.
            unsafe { of.write_rows(block, (layer, &rows), &given, copy.as_mut_ptr(), x.get()) };
        }
    });
}

/// As `max::max_adjoint_of_taps`. The result is a byte that is no tap, or -1.
///
/// # Safety
/// All have as many elements as the pool says; what is written overlaps nothing else.
pub unsafe fn max_adjoint_of_taps<T: Pooled + CoreNumber>(of: &Across<'_>, g: *const T, taps: *const u8, x: *mut T) -> i64 {
    let (p, isa, lanes) = (of.p, of.isa, of.lanes);
    let [_, h, w] = &p.axes;
    let codes = of.taps_backwards(codes::<T>(0..p.kernel()));
    let in_layer = h.kernel * w.kernel;
    let bad = AtomicI64::new(-1);
    let (g, chosen, x) = (SharedPointer::new(g), SharedPointer::new(taps), SharedPointer::new(x));
    of.each_plane_row(|blocks, layer, rows| {
        let windows = touching(h, &rows);
        let given = of.rows_given(&rows, &windows);
        let (taps, layers) = (of.taps_backwards(of.taps(given.pitch)), of.layers_touching(layer));
        let count = windows.len() * w.output;
        let mut copy = aligned(T::ZERO, given.size() * lanes);
        let mut gradients = aligned(T::ZERO, (count + BEHIND) * lanes);
        let mut its = aligned(T::ZERO, (count + BEHIND) * lanes);
        let mut wide = aligned(T::ZERO, count * lanes);
        for block in blocks {
            copy.fill(T::ZERO);
            for (o, tap) in &layers {
                let first = of.windows_at(block, *o, windows.start);
                // SAFETY: the caller's; each task has rows of its own, and its copies have room for what is given.
                unsafe {
                    for i in 0..of.planes(block) {
                        let chosen = std::slice::from_raw_parts(chosen.get().wrapping_add(first + i * p.windows()), count);
                        let mut most = 0;
                        for (to, tap) in wide[i * count..][..count].iter_mut().zip(chosen) {
                            *to = T::of_count(i64::from(*tap));
                            most = most.max(*tap);
                        }
                        if usize::from(most) >= p.kernel() {
                            bad.store(most.into(), Ordering::Relaxed);
                        }
                    }
                    of.read_windows(block, &windows, g.get().wrapping_add(first), p.windows(), gradients.as_mut_ptr());
                    of.read_windows(block, &windows, wide.as_ptr(), count, its.as_mut_ptr());
                    let codes = &codes[tap * in_layer..][..in_layer];
                    for (i, r) in windows.clone().enumerate() {
                        let to = copy.as_mut_ptr().wrapping_add(given.place(h.start(r), w.start(0)) * lanes);
                        let at = i * w.output * lanes;
                        give_row::<T>(isa, of.row(), gradients.as_ptr().wrapping_add(at), its.as_ptr().wrapping_add(at), &taps, codes, to);
                    }
                }
            }
            // SAFETY: as above.
            unsafe { of.write_rows(block, (layer, &rows), &given, copy.as_mut_ptr(), x.get()) };
        }
    });
    bad.into_inner()
}
