//! Means over windows, and the adjoint.

use super::loops::{Pooled, add_row, mean_along_row, spread_along_row};
use super::{Padded, RowTile, Spans, each_plane, each_tile};
use crate::call::{Pool, PoolDivisor, WindowAxis};
use crate::host::interrupt::Ticks;
use crate::host::memory::reserve::reserved;
use crate::host::threads::SharedPointer;
use std::ops::Range;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The share of each axis in what a sum is divided by.
pub(super) struct Counts([Vec<i64>; 3]);

impl Counts {
    pub fn of(p: &Pool, divisor: PoolDivisor) -> Counts {
        let along = |axis: usize| {
            let a: &WindowAxis = &p.axes[axis];
            let mut all = reserved(a.output);
            all.extend((0..a.output).map(|o| match divisor {
                // A window without an element inside has a sum of 0.
                PoolDivisor::Inside => a.taps(o).len().max(1) as i64,
                PoolDivisor::Padded => a.padded(o).max(1) as i64,
                PoolDivisor::Fixed(n) => {
                    if axis == 2 {
                        n
                    } else {
                        1
                    }
                }
            }));
            all
        };
        Counts([along(0), along(1), along(2)])
    }

    /// Those of some rows of a layer of windows.
    pub fn of_rows<T: Pooled>(&self, layer: usize, rows: Range<usize>) -> Vec<T> {
        let others = rows.map(|r| self.0[0][layer].saturating_mul(self.0[1][r]));
        others.flat_map(|others| self.0[2].iter().map(move |n| T::of_count(n.saturating_mul(others)))).collect()
    }

    /// Those of a tile's windows.
    fn put<T: Pooled>(&self, t: &RowTile, to: &mut Vec<T>) {
        let others = self.0[0][t.depth].saturating_mul(self.0[1][t.height]);
        to.clear();
        to.extend(self.0[2][t.from..t.to].iter().map(|n| T::of_count(n.saturating_mul(others))));
    }
}

struct Scratch<T> {
    v: Vec<T>,
    counts: Vec<T>,
}

impl<T> Scratch<T> {
    fn new() -> Scratch<T> {
        Scratch { v: Vec::new(), counts: Vec::new() }
    }
}

/// The sums of the windows' elements, divided.
///
/// # Safety
/// Both have as many elements as `p` says; they do not overlap.
pub unsafe fn average<T: Pooled>(p: &Pool, divisor: PoolDivisor, x: *const T, y: *mut T) {
    let spans = [Spans::of(&p.axes[0]), Spans::of(&p.axes[1]), Spans::of(&p.axes[2])];
    let (counts, padded) = (Counts::of(p, divisor), Padded::of(&p.axes[2]));
    let [_, h, w] = p.axes.map(|a| a.input);
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    each_tile(p, Scratch::new, |s: &mut Scratch<T>, t| {
        // SAFETY: the caller's; each tile has windows of its own.
        let to = unsafe { from_raw_parts_mut(y.at(t.at(p)), t.to - t.from) };
        let (low, high, before, len) = match &padded {
            Some(padded) => {
                let (low, high, before) = padded.inside(t.from, t.to);
                (low, high, before, padded.len(t.from, t.to))
            }
            None => (0, w, 0, w),
        };
        s.v.clear();
        s.v.resize(len, T::ZERO);
        let mut is_first = true;
        for d in spans[0].positions(t.depth) {
            for row in spans[1].positions(t.height) {
                // SAFETY: the row lies inside the plane.
                let from = unsafe { from_raw_parts(x.get().add(t.plane * p.plane() + (d * h + row) * w + low), high - low) };
                let v = &mut s.v[before..before + (high - low)];
                if is_first {
                    v.copy_from_slice(from)
                } else {
                    add_row(from, v)
                }
                is_first = false;
            }
        }
        counts.put(&t, &mut s.counts);
        let a = &p.axes[2];
        let ticks = Ticks::default();
        match (if padded.is_some() && a.dilation == 1 { (a.kernel, a.stride) } else { (0, 0) }, &padded) {
            ((2, 2), _) => mean_along_row::<T, 2, 2>(&s.v, &s.counts, to),
            ((3, 2), _) => mean_along_row::<T, 3, 2>(&s.v, &s.counts, to),
            ((2, 1), _) => mean_along_row::<T, 2, 1>(&s.v, &s.counts, to),
            ((3, 1), _) => mean_along_row::<T, 3, 1>(&s.v, &s.counts, to),
            _ => {
                for (o, to) in to.iter_mut().enumerate() {
                    ticks.tick();
                    let at = t.from + o;
                    let (first, count, step) = match padded {
                        Some(_) => (o * a.stride, a.kernel, a.dilation),
                        None => (spans[2].first[at], spans[2].count[at], spans[2].step),
                    };
                    let sum = (0..count).fold(T::ZERO, |sum, k| sum.plus(s.v[first + k * step]));
                    *to = sum.over(s.counts[o]);
                }
            }
        }
    });
}

/// As `super::average_adjoint`, row by row.
///
/// # Safety
/// As for `average`.
pub unsafe fn average_adjoint<T: Pooled>(p: &Pool, divisor: PoolDivisor, g: *const T, x: *mut T) {
    let spans = [Spans::of(&p.axes[0]), Spans::of(&p.axes[1]), Spans::of(&p.axes[2])];
    let (counts, padded) = (Counts::of(p, divisor), Padded::of(&p.axes[2]));
    let ([_, h, w], [od, oh, ow]) = (p.axes.map(|a| a.input), p.axes.map(|a| a.output));
    let (x, g) = (SharedPointer::new(x), SharedPointer::new(g));
    each_plane(p, Scratch::new, |s: &mut Scratch<T>, plane| {
        // SAFETY: the caller's; each plane is written by one task.
        let (g, x) = unsafe {
            (from_raw_parts(g.get().add(plane * p.windows()), p.windows()), from_raw_parts_mut(x.at(plane * p.plane()), p.plane()))
        };
        x.fill(T::ZERO);
        if ow == 0 {
            return;
        }
        let (low, high, before, len) = match &padded {
            Some(padded) => {
                let (low, high, before) = padded.inside(0, ow);
                (low, high, before, padded.len(0, ow))
            }
            None => (0, w, 0, w),
        };
        let a = &p.axes[2];
        let ticks = Ticks::default();
        for depth in 0..od {
            for height in 0..oh {
                let t = RowTile { plane, depth, height, from: 0, to: ow };
                counts.put(&t, &mut s.counts);
                let g = &g[(depth * oh + height) * ow..][..ow];
                s.v.clear();
                s.v.resize(len, T::ZERO);
                match (if padded.is_some() && a.dilation == 1 { (a.kernel, a.stride) } else { (0, 0) }, &padded) {
                    ((2, 2), _) => spread_along_row::<T, 2, 2>(g, &s.counts, &mut s.v),
                    ((3, 2), _) => spread_along_row::<T, 3, 2>(g, &s.counts, &mut s.v),
                    ((2, 1), _) => spread_along_row::<T, 2, 1>(g, &s.counts, &mut s.v),
                    ((3, 1), _) => spread_along_row::<T, 3, 1>(g, &s.counts, &mut s.v),
                    _ => {
                        for (o, g) in g.iter().enumerate() {
                            ticks.tick();
                            let (first, count, step) = match padded {
                                Some(_) => (o * a.stride, a.kernel, a.dilation),
                                None => (spans[2].first[o], spans[2].count[o], spans[2].step),
                            };
                            let share = g.over(s.counts[o]);
                            for k in 0..count {
                                s.v[first + k * step] = s.v[first + k * step].plus(share);
                            }
                        }
                    }
                }
                for d in spans[0].positions(depth) {
                    for row in spans[1].positions(height) {
                        add_row(&s.v[before..before + (high - low)], &mut x[(d * h + row) * w + low..][..high - low]);
                    }
                }
            }
        }
    });
}
