//! The largest elements of windows, their positions, and what the positions give back.

use super::loops::{
    NOWHERE, Pooled, TapCode, along_any_row, along_row, best_of_window, dilated_taps_of_row, larger_row, larger_values, largest_of_window,
    taps_of_row, values_along_row,
};
use super::{Padded, RowTile, Spans, each_plane, each_tile};
use crate::call::Pool;
use crate::error::{Error, Result};
use crate::host::interrupt::Ticks;
use crate::host::memory::reserve::reserved;
use crate::host::threads::SharedPointer;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicI64, Ordering};

/// Where windows begin, and how many elements they have.
enum Windows {
    Spans(Box<[Spans; 3]>),
    /// For each plane the first elements along each axis, and the sizes.
    Given(Vec<usize>),
}

impl Windows {
    /// # Safety
    /// `starts` is null, or has as many numbers as `p` says.
    unsafe fn new(p: &Pool, starts: *const i64) -> Windows {
        if starts.is_null() {
            return Windows::Spans(Box::new(p.axes.each_ref().map(Spans::of)));
        }
        let mut all = reserved(p.planes * p.starts());
        for _ in 0..p.planes {
            for a in &p.axes {
                for _ in 0..a.output {
                    // Each is read once, and stays inside whatever it is.
                    // SAFETY: the caller's.
                    let start = unsafe { *starts.add(all.len()) };
                    all.push(start.clamp(0, (a.input - a.kernel) as i64) as usize);
                }
            }
        }
        Windows::Given(all)
    }

    /// The positions of window `o` along `axis` that lie inside: the first, how many, and their distance.
    #[inline(always)]
    fn span(&self, p: &Pool, plane: usize, axis: usize, o: usize) -> (usize, usize, usize) {
        match self {
            Windows::Spans(spans) => (spans[axis].first[o], spans[axis].count[o], spans[axis].step),
            Windows::Given(all) => {
                let before: usize = p.axes[..axis].iter().map(|a| a.output).sum();
                (all[plane * p.starts() + before + o], p.axes[axis].kernel, 1)
            }
        }
    }
}

/// The combined rows of a tile, and what comes of them.
struct Scratch<T> {
    v: Vec<T>,
    at: Vec<i32>,
    to_at: Vec<i32>,
}

/// Where the places of the largest elements go.
#[derive(Clone, Copy)]
pub enum Places {
    Nowhere,
    /// As positions in the plane.
    Positions(SharedPointer<*mut i64>),
    /// As taps; windows are as `Pool::has_taps` says.
    Taps(SharedPointer<*mut u8>),
}

impl Places {
    pub fn positions(to: *mut i64) -> Places {
        Places::Positions(SharedPointer::new(to))
    }

    pub fn taps(to: *mut u8) -> Places {
        Places::Taps(SharedPointer::new(to))
    }

    /// Writes taps that are numbers of an element's type, or places: such numbers and where windows start.
    ///
    /// # Safety
    /// There is one for each behind `at`, which nobody else writes.
    pub(super) unsafe fn put<T: Pooled>(&self, at: usize, from: &[T], starts: &[i64]) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Places::Nowhere => {}
                Places::Positions(to) => {
                    let to = from_raw_parts_mut(to.at(at), from.len());
                    to.iter_mut().zip(from).zip(starts).for_each(|((to, n), start)| *to = n.as_count() + start);
                }
                Places::Taps(to) => {
                    let to = from_raw_parts_mut(to.at(at), from.len());
                    to.iter_mut().zip(from).for_each(|(to, n)| *to = n.as_count() as u8);
                }
            }
        }
    }

    /// # Safety
    /// There are `n` of them behind `at`, which nobody else writes.
    unsafe fn fill_zero(&self, at: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Places::Nowhere => {}
                Places::Positions(p) => p.at(at).write_bytes(0, n),
                Places::Taps(p) => p.at(at).write_bytes(0, n),
            }
        }
    }
}

/// The largest element of each window, and its place. `starts`, unless null, says where windows begin.
///
/// # Errors
/// A window reaches over more elements than positions can count.
///
/// # Safety
/// All have as many elements as `p` says; what is written overlaps nothing else.
pub unsafe fn max<T: Pooled>(p: &Pool, x: *const T, starts: *const i64, values: *mut T, places: Places) -> Result<()> {
    // SAFETY: the caller's.
    let windows = unsafe { Windows::new(p, starts) };
    let [_, h, w] = p.axes.map(|a| a.input);
    let reach = |axis: usize| match &windows {
        Windows::Spans(s) => s[axis].count.iter().max().map_or(0, |n| n.saturating_mul(s[axis].step)),
        Windows::Given(_) => p.axes[axis].kernel,
    };
    let with_places = !matches!(places, Places::Nowhere);
    if with_places && (reach(0).saturating_mul(h).saturating_add(reach(1))).saturating_mul(w) >= NOWHERE as usize {
        return Err(Error::not_implemented(format!("{}: windows over more than {NOWHERE} elements are not supported", p.op)));
    }
    let padded = if starts.is_null() { Padded::of(&p.axes[2]) } else { None };
    // Where an element lies is written down as the row of its window and the place along the last axis, if taps are asked for.
    let shift = if let Places::Taps(_) = places { Some(p.tap_shift()) } else { None };
    let (x, values) = (SharedPointer::new(x), SharedPointer::new(values));
    let make = || Scratch { v: Vec::new(), at: Vec::new(), to_at: Vec::new() };
    each_tile(p, make, |s: &mut Scratch<T>, t: RowTile| {
        let n = t.to - t.from;
        // SAFETY: the caller's; each tile has windows of its own.
        let to = unsafe { from_raw_parts_mut(values.at(t.at(p)), n) };
        let (d_span, h_span) = (windows.span(p, t.plane, 0, t.depth), windows.span(p, t.plane, 1, t.height));
        if d_span.1 == 0 || h_span.1 == 0 {
            to.fill(T::LOWEST);
            // SAFETY: as above.
            unsafe { places.fill_zero(t.at(p), n) };
            return;
        }
        // The elements of the row that the tile's windows reach, and how many of the padding stand before them.
        let (low, high, before, len) = match &padded {
            Some(padded) => {
                let (low, high, before) = padded.inside(t.from, t.to);
                (low, high, before, padded.len(t.from, t.to))
            }
            None => (0, w, 0, w),
        };
        let first = (d_span.0 * h + h_span.0) * w;
        // The numbers of the first rows inside, of those of the window.
        let (first_d, first_h) = match &windows {
            Windows::Spans(s) => (s[0].tap[t.depth], s[1].tap[t.height]),
            Windows::Given(_) => (0, 0),
        };
        s.v.clear();
        s.v.resize(len, T::LOWEST);
        if with_places {
            s.at.clear();
            s.at.resize(len, NOWHERE);
        }
        let inner = before..before + (high - low);
        for kd in 0..d_span.1 {
            for kh in 0..h_span.1 {
                let row = ((d_span.0 + kd * d_span.2) * h + h_span.0 + kh * h_span.2) * w + low;
                // SAFETY: the row lies inside the plane.
                let from = unsafe { from_raw_parts(x.get().add(t.plane * p.plane() + row), high - low) };
                let base = match shift {
                    None => (row - first) as i32,
                    Some(shift) => ((((first_d + kd) * p.axes[1].kernel + first_h + kh) << shift) + low) as i32,
                };
                let v = &mut s.v[inner.clone()];
                match (kd + kh == 0, with_places) {
                    (true, true) => {
                        v.copy_from_slice(from);
                        s.at[inner.clone()].iter_mut().zip(base..).for_each(|(at, i)| *at = i);
                    }
                    (true, false) => v.copy_from_slice(from),
                    (false, true) => larger_row(from, base, v, &mut s.at[inner.clone()]),
                    (false, false) => larger_values(from, v),
                }
            }
        }
        let a = &p.axes[2];
        let shape = if padded.is_some() && a.dilation == 1 { (a.kernel, a.stride) } else { (0, 0) };
        let ticks = Ticks::default();
        if !with_places {
            match (shape, &padded) {
                ((2, 2), _) => values_along_row::<T, 2, 2>(&s.v, to),
                ((3, 2), _) => values_along_row::<T, 3, 2>(&s.v, to),
                ((2, 1), _) => values_along_row::<T, 2, 1>(&s.v, to),
                ((3, 1), _) => values_along_row::<T, 3, 1>(&s.v, to),
                (_, Some(_)) => {
                    for (o, to) in to.iter_mut().enumerate() {
                        ticks.tick();
                        *to = largest_of_window((o * a.stride, a.kernel, a.dilation), &s.v);
                    }
                }
                (_, None) => {
                    for (o, to) in to.iter_mut().enumerate() {
                        ticks.tick();
                        *to = largest_of_window(windows.span(p, t.plane, 2, t.from + o), &s.v);
                    }
                }
            }
            return;
        }
        s.to_at.clear();
        s.to_at.resize(n, NOWHERE);
        match (shape, &padded) {
            ((2, 2), _) => along_row::<T, 2, 2>(&s.v, &s.at, to, &mut s.to_at),
            ((3, 2), _) => along_row::<T, 3, 2>(&s.v, &s.at, to, &mut s.to_at),
            ((2, 1), _) => along_row::<T, 2, 1>(&s.v, &s.at, to, &mut s.to_at),
            ((3, 1), _) => along_row::<T, 3, 1>(&s.v, &s.at, to, &mut s.to_at),
            (_, Some(_)) => along_any_row((a.kernel, a.stride, a.dilation), &s.v, &s.at, to, &mut s.to_at),
            (_, None) => {
                for (o, (to, to_at)) in to.iter_mut().zip(&mut s.to_at).enumerate() {
                    ticks.tick();
                    (*to, *to_at) = best_of_window(windows.span(p, t.plane, 2, t.from + o), &s.v, &s.at);
                }
            }
        }
        match &places {
            Places::Nowhere => {}
            Places::Positions(to) => {
                // SAFETY: as for the values.
                let to = unsafe { from_raw_parts_mut(to.at(t.at(p)), n) };
                for (to, at) in to.iter_mut().zip(&s.to_at) {
                    // A window without an element inside has no position; any will do.
                    *to = if *at == NOWHERE { 0 } else { first as i64 + i64::from(*at) };
                }
            }
            Places::Taps(to) => {
                // SAFETY: as for the values.
                let to = unsafe { from_raw_parts_mut(to.at(t.at(p)), n) };
                let code = TapCode {
                    shift: p.tap_shift(),
                    kernel: a.kernel as i32,
                    start: a.start(t.from) as i32,
                    stride: a.stride as i32,
                    per_tap: (1u64 << 32).div_ceil(a.dilation as u64) as u32,
                };
                if a.dilation == 1 { taps_of_row::<T>(&s.to_at, code, to) } else { dilated_taps_of_row::<T>(&s.to_at, code, to) }
            }
        }
    });
    Ok(())
}

/// The adjoint of choosing: zeros, to which each value is added at its position.
///
/// # Errors
/// A position is outside its plane.
///
/// # Safety
/// As for `max`.
pub unsafe fn max_adjoint<T: Pooled>(p: &Pool, g: *const T, indices: *const i64, to: *mut T) -> Result<()> {
    let (plane, windows) = (p.plane(), p.windows());
    let bad = AtomicI64::new(-1);
    let (g, indices, to) = (SharedPointer::new(g), SharedPointer::new(indices), SharedPointer::new(to));
    each_plane(
        p,
        || (),
        |(), at| {
            // SAFETY: the caller's; each plane is written by one task.
            let (g, indices, to) = unsafe {
                (
                    from_raw_parts(g.get().add(at * windows), windows),
                    from_raw_parts(indices.get().add(at * windows), windows),
                    from_raw_parts_mut(to.at(at * plane), plane),
                )
            };
            to.fill(T::ZERO);
            let ticks = Ticks::default();
            for (g, i) in g.iter().zip(indices) {
                ticks.tick();
                let i = *i;
                match to.get_mut(i as usize) {
                    Some(to) => *to = to.plus(*g),
                    None => bad.store(i, Ordering::Relaxed),
                }
            }
        },
    );
    checked(bad.into_inner(), plane)
}

/// An error, if a place was found that is outside its plane.
pub(super) fn checked(bad: i64, plane: usize) -> Result<()> {
    match bad {
        -1 => Ok(()),
        i => Err(Error::runtime(format!("Found an invalid max index: {i} (a plane has {plane} elements)"))),
    }
}

/// As `super::max_adjoint_of_taps`, row by row.
///
/// # Errors
/// A tap is outside its plane.
///
/// # Safety
/// As for `max`.
pub unsafe fn max_adjoint_of_taps<T: Pooled>(p: &Pool, g: *const T, taps: *const u8, to: *mut T) -> Result<()> {
    let (plane, windows) = (p.plane(), p.windows());
    let [d, h, w] = &p.axes;
    let (row, depth) = (w.input as isize, (h.input * w.input) as isize);
    // How far each tap is from the start of its window. A byte that is none is outside every plane.
    let mut distance = [isize::MIN / 2; 256];
    for (tap, distance) in distance.iter_mut().enumerate().take(p.kernel()) {
        let (kd, kh, kw) = (tap / (h.kernel * w.kernel), tap / w.kernel % h.kernel, tap % w.kernel);
        *distance = (kd * d.dilation) as isize * depth + (kh * h.dilation) as isize * row + (kw * w.dilation) as isize;
    }
    let bad = AtomicI64::new(-1);
    let (g, taps, to) = (SharedPointer::new(g), SharedPointer::new(taps), SharedPointer::new(to));
    each_plane(
        p,
        || (),
        |(), at| {
            // SAFETY: the caller's; each plane is written by one task.
            let (g, taps, to) = unsafe {
                (
                    from_raw_parts(g.get().add(at * windows), windows),
                    from_raw_parts(taps.get().add(at * windows), windows),
                    from_raw_parts_mut(to.at(at * plane), plane),
                )
            };
            to.fill(T::ZERO);
            let ticks = Ticks::default();
            // Slices of each row in place of this iterator were a quarter slower.
            let mut all = g.iter().zip(taps);
            for od in 0..d.output {
                let first = d.start(od) * depth + h.start(0) * row + w.start(0);
                for oh in 0..h.output {
                    let mut start = first + (oh * h.stride) as isize * row;
                    for (g, tap) in all.by_ref().take(w.output) {
                        ticks.tick();
                        let i = start + distance[*tap as usize];
                        match to.get_mut(i as usize) {
                            Some(to) => *to = to.plus(*g),
                            None => bad.store((*tap).into(), Ordering::Relaxed),
                        }
                        start += w.stride as isize;
                    }
                }
            }
        },
    );
    checked(bad.into_inner(), plane)
}

#[cfg(test)]
mod tests {
    use super::super::loops::best_of;
    use super::*;
    use crate::call::{PoolPass, WindowAxis};

    #[test]
    fn long_windows_have_the_best_of_their_elements() {
        for n in [31, 32, 33, 64, 70, 131] {
            for with_nan in [false, true] {
                // Some are equal.
                let x: Vec<f32> = (0..n + 9).map(|i| if with_nan && i % 29 == 5 { f32::NAN } else { (i * 37 % 23) as f32 }).collect();
                for (axis, outputs) in
                    [(WindowAxis { input: n + 9, output: 10, kernel: n, ..WindowAxis::ONE }, 10), (WindowAxis::adaptive(n + 9, 1), 1)]
                {
                    let p = Pool {
                        op: "max",
                        planes: 1,
                        axes: [WindowAxis::ONE, WindowAxis::ONE, axis],
                        pass: PoolPass::Max { indices: true, given: false },
                    };
                    let (mut y, mut alone, mut at) = (vec![0.0; outputs], vec![0.0; outputs], vec![0i64; outputs]);
                    // SAFETY: so many elements and windows.
                    unsafe {
                        max::<f32>(&p, x.as_ptr(), std::ptr::null(), y.as_mut_ptr(), Places::positions(at.as_mut_ptr())).unwrap();
                        max::<f32>(&p, x.as_ptr(), std::ptr::null(), alone.as_mut_ptr(), Places::Nowhere).unwrap();
                    }
                    for o in 0..outputs {
                        let window = axis.start(o) as usize..axis.end(o) as usize;
                        let places: Vec<i32> = (0..x.len() as i32).collect();
                        let (best, place) = best_of(window, &x, &places);
                        assert!(
                            y[o].to_bits() == best.to_bits()
                                && at[o] == place.into()
                                && (alone[o] == best || best.is_nan() && alone[o].is_nan())
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn given_windows_stay_inside() {
        let axis = WindowAxis { input: 5, output: 2, kernel: 2, ..WindowAxis::ONE };
        let p = Pool {
            op: "max",
            planes: 1,
            axes: [WindowAxis::ONE, WindowAxis::ONE, axis],
            pass: PoolPass::Max { indices: true, given: true },
        };
        let (x, starts) = ([1.0, 5.0, 2.0, 3.0, 4.0], [0, 0, -3, i64::MAX]);
        let (mut y, mut at) = ([0.0; 2], [0i64; 2]);
        // SAFETY: five elements, and two windows.
        unsafe { max::<f64>(&p, x.as_ptr(), starts.as_ptr(), y.as_mut_ptr(), Places::positions(at.as_mut_ptr())).unwrap() };
        assert_eq!((&y[..], &at[..]), (&[5.0, 4.0][..], &[1, 4][..]));
        // SAFETY: as above.
        let back = unsafe { max_adjoint::<f64>(&p, y.as_ptr(), [7, 0].as_ptr(), [0.0; 5].as_mut_ptr()) };
        assert!(back.is_err());
    }
}
