//! The inner loops of pooling across planes: an element is a vector, with a lane for each plane.

use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::reducers::Numeric;

/// A window that has a size of its own: where its first element lies, and its rows and columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnWindow {
    pub at: usize,
    pub rows: usize,
    pub columns: usize,
}

/// The layers of windows that lie behind each other, how far they are apart, and how far rows are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layers {
    pub count: usize,
    pub apart: usize,
    pub pitch: usize,
}

/// A row of windows of one size: how many, and how far each is from the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowRow {
    pub len: usize,
    pub stride: usize,
}

/// Calls `$f` for so many windows, and for strides of 1 and 2 with these known.
macro_rules! some_windows {
    ($n:expr, $stride:expr, $($N:literal)+ => $f:ident $args:tt) => {
        match ($n, $stride) {
            $(($N, 1) => $f::<V, $N, 1> $args,)+
            $(($N, 2) => $f::<V, $N, 2> $args,)+
            $(($N, _) => $f::<V, $N, 0> $args,)+
            _ => unreachable!("as many windows are never computed at once"),
        }
    };
}

on_vectors! { not base:
    /// The sums of a row of windows over their counts. Taps are so far from where a window begins.
    fn mean_row<T>(row: WindowRow, from: *const T, taps: &[usize], counts: *const T, to: *mut T) = mean_row_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn mean_row_on<V: PanelVector>(
    row: WindowRow,
    from: *const V::Number,
    taps: &[usize],
    counts: *const V::Number,
    to: *mut V::Number,
) {
    // As even as may be; the last ones begin before those before them end.
    let many = row.len.div_ceil(row.len.div_ceil(8));
    for first in (0..row.len).step_by(many) {
        let first = first.min(row.len - many);
        let (from, to) = (from.wrapping_add(first * row.stride * V::LANES), to.wrapping_add(first * V::LANES));
        // SAFETY: the caller's.
        unsafe { some_windows!(many, row.stride, 1 2 3 4 5 6 7 8 => mean_some(row.stride, from, taps, counts.wrapping_add(first), to)) };
    }
}

/// N windows, S apart; 0 stands for `stride`.
///
/// # Safety
/// As for `mean_row`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the sums in registers")]
#[inline(always)]
unsafe fn mean_some<V: PanelVector, const N: usize, const S: usize>(
    stride: usize,
    from: *const V::Number,
    taps: &[usize],
    counts: *const V::Number,
    to: *mut V::Number,
) {
    let step = if S == 0 { stride } else { S } * V::LANES;
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [V::zero(); N];
        for at in taps {
            let from = from.wrapping_add(at * V::LANES);
            for n in 0..N {
                sums[n] = sums[n].plus(V::load(from.wrapping_add(n * step)));
            }
        }
        for n in 0..N {
            sums[n].over(V::splat(*counts.wrapping_add(n))).store(to.wrapping_add(n * V::LANES));
        }
    }
}

on_vectors! { not base:
    /// The sums of windows over their counts.
    fn mean_own<T>(windows: &[OwnWindow], layers: Layers, from: *const T, counts: *const T, to: *mut T) = mean_own_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn mean_own_on<V: PanelVector>(
    windows: &[OwnWindow],
    layers: Layers,
    from: *const V::Number,
    counts: *const V::Number,
    to: *mut V::Number,
) {
    // SAFETY: the caller's.
    unsafe {
        for (i, w) in windows.iter().enumerate() {
            let mut sum = V::zero();
            for z in 0..layers.count {
                for r in 0..w.rows {
                    for c in 0..w.columns {
                        sum = sum.plus(V::load(from.wrapping_add((w.at + z * layers.apart + r * layers.pitch + c) * V::LANES)));
                    }
                }
            }
            sum.over(V::splat(*counts.wrapping_add(i))).store(to.wrapping_add(i * V::LANES));
        }
    }
}

on_vectors! { not base:
    /// The adjoint of `mean_row`: what each window gives to its elements, added. Of windows that share an element, later ones come later if taps
    /// of a row go backwards.
    fn spread_row<T>(row: WindowRow, from: *const T, taps: &[usize], counts: *const T, to: *mut T) = spread_row_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn spread_row_on<V: PanelVector>(
    row: WindowRow,
    from: *const V::Number,
    taps: &[usize],
    counts: *const V::Number,
    to: *mut V::Number,
) {
    for first in (0..row.len).step_by(4) {
        let many = (row.len - first).min(4);
        let (from, to) = (from.wrapping_add(first * V::LANES), to.wrapping_add(first * row.stride * V::LANES));
        // SAFETY: the caller's.
        unsafe { some_windows!(many, row.stride, 1 2 3 4 => spread_some(row.stride, from, taps, counts.wrapping_add(first), to)) };
    }
}

/// # Safety
/// As for `spread_row`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the shares in registers")]
#[inline(always)]
unsafe fn spread_some<V: PanelVector, const N: usize, const S: usize>(
    stride: usize,
    from: *const V::Number,
    taps: &[usize],
    counts: *const V::Number,
    to: *mut V::Number,
) {
    let step = if S == 0 { stride } else { S } * V::LANES;
    // SAFETY: the caller's.
    unsafe {
        let mut shares = [V::zero(); N];
        for n in 0..N {
            shares[n] = V::load(from.wrapping_add(n * V::LANES)).over(V::splat(*counts.wrapping_add(n)));
        }
        for at in taps {
            for n in 0..N {
                let to = to.wrapping_add(at * V::LANES + n * step);
                V::load(to).plus(shares[n]).store(to);
            }
        }
    }
}

on_vectors! { not base:
    /// The adjoint of `mean_own`, of one layer.
    fn spread_own<T>(windows: &[OwnWindow], pitch: usize, from: *const T, counts: *const T, to: *mut T) = spread_own_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn spread_own_on<V: PanelVector>(
    windows: &[OwnWindow],
    pitch: usize,
    from: *const V::Number,
    counts: *const V::Number,
    to: *mut V::Number,
) {
    // SAFETY: the caller's.
    unsafe {
        for (i, w) in windows.iter().enumerate() {
            let share = V::load(from.wrapping_add(i * V::LANES)).over(V::splat(*counts.wrapping_add(i)));
            for r in 0..w.rows {
                for c in 0..w.columns {
                    let to = to.wrapping_add((w.at + r * pitch + c) * V::LANES);
                    V::load(to).plus(share).store(to);
                }
            }
        }
    }
}

on_vectors! { not base:
    /// The largest of each window of a row, and its code unless `codes` is empty: one for each tap. `initial` are codes where all elements are the
    /// lowest there are.
    fn best_row<T>(row: WindowRow, from: *const T, taps: (&[usize], &[T]), initial: *const T, to: (*mut T, *mut T)) = best_row_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn best_row_on<V: PanelVector>(
    row: WindowRow,
    from: *const V::Number,
    (taps, codes): (&[usize], &[V::Number]),
    initial: *const V::Number,
    (to, to_codes): (*mut V::Number, *mut V::Number),
) {
    let many = row.len.div_ceil(row.len.div_ceil(4));
    for first in (0..row.len).step_by(many) {
        let first = first.min(row.len - many);
        let (from, to) = (from.wrapping_add(first * row.stride * V::LANES), to.wrapping_add(first * V::LANES));
        // SAFETY: the caller's.
        unsafe {
            if codes.is_empty() {
                some_windows!(many, row.stride, 1 2 3 4 => best_some(row.stride, from, taps, to));
            } else {
                let (initial, to_codes) = (initial.wrapping_add(first), to_codes.wrapping_add(first * V::LANES));
                some_windows!(many, row.stride, 1 2 3 4 => best_and_code(row.stride, from, (taps, codes), initial, (to, to_codes)));
            }
        }
    }
}

/// # Safety
/// As for `best_row`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the largest in registers")]
#[inline(always)]
unsafe fn best_some<V: PanelVector, const N: usize, const S: usize>(
    stride: usize,
    from: *const V::Number,
    taps: &[usize],
    to: *mut V::Number,
) {
    let step = if S == 0 { stride } else { S } * V::LANES;
    // SAFETY: the caller's.
    unsafe {
        let mut best = [V::splat(V::Number::LOWEST); N];
        for at in taps {
            let from = from.wrapping_add(at * V::LANES);
            for n in 0..N {
                let c = V::load(from.wrapping_add(n * step));
                best[n] = c.or_best(c, best[n], best[n]).0;
            }
        }
        for n in 0..N {
            best[n].store(to.wrapping_add(n * V::LANES));
        }
    }
}

/// # Safety
/// As for `best_row`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the largest in registers")]
#[inline(always)]
unsafe fn best_and_code<V: PanelVector, const N: usize, const S: usize>(
    stride: usize,
    from: *const V::Number,
    (taps, codes): (&[usize], &[V::Number]),
    initial: *const V::Number,
    (to, to_codes): (*mut V::Number, *mut V::Number),
) {
    let step = if S == 0 { stride } else { S } * V::LANES;
    // SAFETY: the caller's.
    unsafe {
        let (mut best, mut its) = ([V::splat(V::Number::LOWEST); N], [V::zero(); N]);
        for n in 0..N {
            its[n] = V::splat(*initial.wrapping_add(n));
        }
        for (at, code) in taps.iter().zip(codes) {
            let (from, code) = (from.wrapping_add(at * V::LANES), V::splat(*code));
            for n in 0..N {
                (best[n], its[n]) = V::load(from.wrapping_add(n * step)).or_best(code, best[n], its[n]);
            }
        }
        for n in 0..N {
            best[n].store(to.wrapping_add(n * V::LANES));
            its[n].store(to_codes.wrapping_add(n * V::LANES));
        }
    }
}

on_vectors! { not base:
    /// The largest of each window, and its code unless there are none: layers of codes of so many rows and columns.
    fn best_own<T>(windows: &[OwnWindow], layers: Layers, from: *const T, codes: (&[T], [usize; 2]), to: *mut T, to_codes: *mut T) = best_own_on
}

/// # Safety
/// They are readable and writable; there are codes for the largest window.
#[inline(always)]
unsafe fn best_own_on<V: PanelVector>(
    windows: &[OwnWindow],
    layers: Layers,
    from: *const V::Number,
    (codes, [rows, columns]): (&[V::Number], [usize; 2]),
    to: *mut V::Number,
    to_codes: *mut V::Number,
) {
    // SAFETY: the caller's.
    unsafe {
        for (i, w) in windows.iter().enumerate() {
            let (mut best, mut its) = (V::splat(V::Number::LOWEST), V::zero());
            for z in 0..layers.count {
                for r in 0..w.rows {
                    for c in 0..w.columns {
                        let x = V::load(from.wrapping_add((w.at + z * layers.apart + r * layers.pitch + c) * V::LANES));
                        let code = if codes.is_empty() { x } else { V::splat(codes[(z * rows + r) * columns + c]) };
                        (best, its) = x.or_best(code, best, its);
                    }
                }
            }
            best.store(to.wrapping_add(i * V::LANES));
            if !codes.is_empty() {
                its.store(to_codes.wrapping_add(i * V::LANES));
            }
        }
    }
}

on_vectors! { not base:
    /// The adjoint of choosing: adds each window's number to the element of the tap whose number is its code. The order is that of `spread_row`.
    fn give_row<T>(row: WindowRow, from: *const T, from_codes: *const T, taps: &[usize], codes: &[T], to: *mut T) = give_row_on
}

/// # Safety
/// They are readable and writable; there is a code for each tap.
#[inline(always)]
unsafe fn give_row_on<V: PanelVector>(
    row: WindowRow,
    from: *const V::Number,
    from_codes: *const V::Number,
    taps: &[usize],
    codes: &[V::Number],
    to: *mut V::Number,
) {
    for first in (0..row.len).step_by(4) {
        let many = (row.len - first).min(4);
        let at = first * V::LANES;
        let (from, from_codes, to) = (from.wrapping_add(at), from_codes.wrapping_add(at), to.wrapping_add(at * row.stride));
        // SAFETY: the caller's.
        unsafe { some_windows!(many, row.stride, 1 2 3 4 => give_some(row.stride, (from, from_codes), (taps, codes), to)) };
    }
}

/// # Safety
/// As for `give_row`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the numbers in registers")]
#[inline(always)]
unsafe fn give_some<V: PanelVector, const N: usize, const S: usize>(
    stride: usize,
    (from, from_codes): (*const V::Number, *const V::Number),
    (taps, codes): (&[usize], &[V::Number]),
    to: *mut V::Number,
) {
    let step = if S == 0 { stride } else { S } * V::LANES;
    // SAFETY: the caller's.
    unsafe {
        let (mut given, mut its) = ([V::zero(); N], [V::zero(); N]);
        for n in 0..N {
            given[n] = V::load(from.wrapping_add(n * V::LANES));
            its[n] = V::load(from_codes.wrapping_add(n * V::LANES));
        }
        for (at, code) in taps.iter().zip(codes) {
            let code = V::splat(*code);
            for n in 0..N {
                let to = to.wrapping_add(at * V::LANES + n * step);
                V::load(to).plus(given[n].where_equal(its[n], code)).store(to);
            }
        }
    }
}
