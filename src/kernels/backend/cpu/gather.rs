//! Reads and writes along one dimension at positions that an index of the result's (or the source's) shape gives: `gather` and `scatter`.
//!
//! Writes to the same element happen in the order of the positions, for any number of threads: the last one wins, and sums are added in that
//! order.
//!
//! Not here: whole rows at positions (`index`).

use super::index::{BoolElement, PIECE, ScatterElement, by_dtype, how};
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, result, view};
use crate::backend::cpu::elem::{Loops, by_width, loops};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{Along, Bounds, ScatterAlong, Write};
use crate::error::{Error, Result};
use crate::host::interrupt;
use crate::host::memory::raw_slice::RawSlice;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::layout::{DType, Strides};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements that are visited between two looks for interrupts.
const PATIENCE: usize = 8 * PIECE;
/// Runs of positions that lie side by side are long enough.
const LONG: usize = 8;

/// An operand of `gather` and `scatter`: its memory, and its strides over the dimensions of the index.
#[derive(Debug, Clone, Copy)]
pub struct AlongOperand<'a, P> {
    pub ptr: P,
    pub strides: &'a [isize],
}

/// The order in which an index is visited: in runs along `dim`, or along the innermost of the other dimensions.
struct VisitOrder<'a> {
    shape: &'a [usize],
    dim: usize,
    /// Of the index, of what has its shape, and of what positions point into. The last one does not move along `dim`.
    strides: [&'a [isize]; 3],
    inner: Option<usize>,
    outer: SmallVec<[usize; 6]>,
    is_lengthwise: bool,
}

impl<'a> VisitOrder<'a> {
    fn of(shape: &'a [usize], dim: usize, strides: [&'a [isize]; 3]) -> VisitOrder<'a> {
        let inner = (0..shape.len()).rev().find(|d| *d != dim && shape[*d] != 1);
        let outer = (0..shape.len()).filter(|d| *d != dim && Some(*d) != inner).collect();
        let mut order = VisitOrder { shape, dim, strides, inner, outer, is_lengthwise: true };
        let (across, along) = order.sizes();
        // Where positions lie side by side, unless there are only a few.
        let [step_across, step_along] = [false, true].map(|lengthwise| order.steps_of(lengthwise)[0].unsigned_abs());
        order.is_lengthwise = if step_along < step_across { along >= LONG.min(across) } else { across < LONG && along >= across };
        order
    }

    /// Elements along the innermost other dimension, and along `dim`.
    fn sizes(&self) -> (usize, usize) {
        (self.inner.map_or(1, |d| self.shape[d]), self.shape.get(self.dim).copied().unwrap_or(1))
    }

    /// The strides along `dim`, or along the innermost other dimension.
    fn steps_of(&self, lengthwise: bool) -> [isize; 3] {
        let along = |d: usize| self.strides.map(|s| s.get(d).copied().unwrap_or(0));
        match (lengthwise, self.inner) {
            (true, _) => {
                let [index, other, _] = along(self.dim);
                [index, other, 0]
            }
            (false, Some(d)) => along(d),
            (false, None) => [0; 3],
        }
    }

    /// The strides between two elements of a run.
    fn steps(&self) -> [isize; 3] {
        self.steps_of(self.is_lengthwise)
    }

    fn start(&self, mut i: usize) -> [isize; 3] {
        let mut at = [0; 3];
        for d in self.outer.iter().rev() {
            let place = (i % self.shape[*d]) as isize;
            i /= self.shape[*d];
            at.iter_mut().zip(self.strides).for_each(|(at, s)| *at += place * s[*d]);
        }
        at
    }

    /// Calls `f` with the start and the length of each run. Positions of one line along `dim` are visited in order, by one task unless they `may_part`.
    #[inline(always)]
    fn each(&self, may_part: bool, f: impl Fn([isize; 3], usize) + Sync) {
        let total: usize = self.shape.iter().product();
        if total == 0 {
            return;
        }
        let (across, along) = self.sizes();
        let outer = total / (across * along);
        let (run, other) = (self.steps(), self.steps_of(!self.is_lengthwise));
        let plus = |at: [isize; 3], n: usize, by: [isize; 3]| std::array::from_fn::<isize, 3, _>(|k| at[k] + n as isize * by[k]);
        let some = |o: usize, across: Range<usize>, along: Range<usize>| {
            let (runs, others) = if self.is_lengthwise { (along, across) } else { (across, along) };
            let start = plus(self.start(o), runs.start, run);
            let mut seen = 0;
            for i in others {
                let start = plus(start, i, other);
                for first in (0..runs.len()).step_by(PATIENCE) {
                    let len = PATIENCE.min(runs.len() - first);
                    f(plus(start, first, run), len);
                    seen += len;
                    if seen >= PATIENCE {
                        interrupt::check();
                        seen = 0;
                    }
                }
            }
        };
        if total < 2 * PIECE {
            (0..outer).for_each(|o| some(o, 0..across, 0..along));
            return;
        }
        // Short runs across `dim` would read few elements of many rows.
        let shortest = if self.is_lengthwise { 1 } else { 16 };
        let wide = PIECE.div_ceil(along).max(shortest).min(across);
        let long = if may_part { (PIECE / wide).clamp(1, along) } else { along };
        let (columns, rows) = (across.div_ceil(wide), along.div_ceil(long));
        let pieces = columns * rows;
        let together = if pieces == 1 { (PIECE / (across * along)).max(1) } else { 1 };
        parallel_for((outer * pieces).div_ceil(together), |t| {
            for p in t * together..(outer * pieces).min((t + 1) * together) {
                let (i, j) = (p % columns * wide, p / columns % rows * long);
                some(p / pieces, i..across.min(i + wide), j..along.min(j + long));
            }
        });
    }
}

/// `out[.., j, ..] = x[.., index[.., j, ..], ..]` along `dim`, and whether all positions were inside of x, whose size there is `size`. Each is read
/// once: what is used is what was checked. For those outside the result is 0.
///
/// # Safety
/// `shape` is the index's; `out` and `index` are valid for all of it, `x` for `size` along `dim` and `shape` elsewhere. `out` overlaps
/// neither of the others nor itself.
pub unsafe fn gather(
    out: AlongOperand<'_, *mut u8>,
    x: AlongOperand<'_, *const u8>,
    index: AlongOperand<'_, *const i64>,
    dtype: DType,
    shape: &[usize],
    (dim, size): (usize, usize),
) -> bool {
    // SAFETY: passed on.
    unsafe { by_width!(dtype, T => gather_t::<T>(out, x, index, shape, (dim, size))) }
}

unsafe fn gather_t<T: ScatterElement>(
    out: AlongOperand<'_, *mut u8>,
    x: AlongOperand<'_, *const u8>,
    index: AlongOperand<'_, *const i64>,
    shape: &[usize],
    (dim, size): (usize, usize),
) -> bool {
    let (to, from, at) = (SharedPointer::new(out.ptr.cast::<T>()), SharedPointer::new(x.ptr.cast::<T>()), SharedPointer::new(index.ptr));
    let order = VisitOrder::of(shape, dim, [index.strides, out.strides, x.strides]);
    let (steps, step) = (order.steps(), x.strides.get(dim).copied().unwrap_or(0));
    let is_outside = AtomicBool::new(false);
    order.each(true, |[i, o, s], len| {
        // SAFETY: runs stay inside of what the caller promised.
        let all = unsafe {
            let (at, to, from) = (at.get().offset(i), to.get().offset(o), from.get().offset(s));
            match steps {
                [1, 1, 0] => gather_run(len, [1, 1, 0], at, to, from, (size, step)),
                _ => gather_run(len, steps, at, to, from, (size, step)),
            }
        };
        if !all {
            is_outside.store(true, Ordering::Relaxed);
        }
    });
    !is_outside.into_inner()
}

#[inline(always)]
unsafe fn gather_run<T: ScatterElement>(
    len: usize,
    steps: [isize; 3],
    at: *const i64,
    to: *mut T,
    from: *const T,
    (size, step): (usize, isize),
) -> bool {
    let mut all = true;
    for k in 0..len as isize {
        // SAFETY: the caller's; what is read lies inside.
        unsafe {
            let at = *at.offset(k * steps[0]);
            let is_inside = (at as u64) < size as u64;
            all &= is_inside;
            *to.offset(k * steps[1]) = if is_inside { *from.offset(k * steps[2] + at as isize * step) } else { T::ZERO };
        }
    }
    all
}

/// `x[.., index[.., j, ..], ..] = src[.., j, ..]` along `dim` (or added, or multiplied), for j in order. Nothing is written at positions outside of x,
/// which may be there if other threads write the index.
///
/// # Safety
/// As for `gather`, with `x` writable and not overlapping the others nor itself, and `src` readable.
pub unsafe fn scatter(
    x: AlongOperand<'_, *mut u8>,
    src: AlongOperand<'_, *const u8>,
    index: AlongOperand<'_, *const i64>,
    (dtype, how): (DType, Write),
    shape: &[usize],
    (dim, size): (usize, usize),
) {
    // SAFETY: passed on. The constant makes loops without a test inside.
    unsafe {
        match how {
            Write::Set => by_width!(dtype, T => scatter_t::<T, 0>(x, src, index, shape, (dim, size))),
            Write::Add => by_dtype!(dtype, scatter_t::<_, 1>(x, src, index, shape, (dim, size))),
            Write::Multiply => by_dtype!(dtype, scatter_t::<_, 2>(x, src, index, shape, (dim, size))),
        }
    }
}

unsafe fn scatter_t<T: ScatterElement, const HOW: u8>(
    x: AlongOperand<'_, *mut u8>,
    src: AlongOperand<'_, *const u8>,
    index: AlongOperand<'_, *const i64>,
    shape: &[usize],
    (dim, size): (usize, usize),
) {
    let (to, from, at) = (SharedPointer::new(x.ptr.cast::<T>()), SharedPointer::new(src.ptr.cast::<T>()), SharedPointer::new(index.ptr));
    let order = VisitOrder::of(shape, dim, [index.strides, src.strides, x.strides]);
    let (steps, step) = (order.steps(), x.strides.get(dim).copied().unwrap_or(0));
    order.each(false, |[i, s, o], len| {
        // SAFETY: runs stay inside of what the caller promised.
        unsafe {
            let (at, from, to) = (at.get().offset(i), from.get().offset(s), to.get().offset(o));
            match steps {
                [1, 1, 0] => scatter_run::<T, HOW>(len, [1, 1, 0], at, from, to, (size, step)),
                _ => scatter_run::<T, HOW>(len, steps, at, from, to, (size, step)),
            }
        }
    });
}

#[inline(always)]
unsafe fn scatter_run<T: ScatterElement, const HOW: u8>(
    len: usize,
    steps: [isize; 3],
    at: *const i64,
    from: *const T,
    to: *mut T,
    (size, step): (usize, isize),
) {
    for k in 0..len as isize {
        // SAFETY: the caller's; what is written lies inside.
        unsafe {
            let at = *at.offset(k * steps[0]);
            if (at as u64) < size as u64 {
                let place = to.offset(k * steps[2] + at as isize * step);
                *place = (*from.offset(k * steps[1])).write(*place, how::<HOW>());
            }
        }
    }
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

/// Positions that one task checks.
const CHECKED: usize = 1 << 16;

/// Whether all positions are inside. Without a branch for each, so that it is vectorised.
fn are_inside(index: RawSlice<'_, i64>, size: usize) -> bool {
    let last = size as i64 - 1;
    let is_outside = AtomicBool::new(false);
    parallel_for(index.len().div_ceil(CHECKED), |i| {
        let some = index.part(i * CHECKED, index.len().min((i + 1) * CHECKED));
        if some.iter().fold(0, |sign, i| sign | i | last.wrapping_sub(i)) < 0 {
            is_outside.store(true, Ordering::Relaxed);
        }
    });
    !is_outside.into_inner()
}

/// The error for the first position that is outside. Another thread may have corrected it in the meantime.
fn outside(index: RawSlice<'_, i64>, dim: usize, size: usize) -> Error {
    Bounds::Exact.error(index.iter().find(|i| *i as u64 >= size as u64).unwrap_or(size as i64), dim, size)
}

/// Strides over the dimensions of an index; 0-d counts as 1-d.
fn over(x: &View<'_>, rank: usize) -> Strides {
    if x.shape.len() == rank { Strides::from_slice(x.strides) } else { Strides::from_elem(1, rank) }
}

fn row_major(shape: &[usize]) -> Strides {
    crate::layout::Layout::contiguous_strides(shape)
}

impl CpuFamily for Along {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(a: &Along, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(a, outs, 0)?;
        let (x, at) = (view("gather", ins, 0)?, view("gather", ins, 1)?);
        let size = x.shape.get(a.dim).copied().unwrap_or(1);
        // SAFETY: see above; the index is no larger than the array apart from `dim`, where each position is checked as it is used.
        unsafe {
            let flat = DenseOperand::cast(&at, DType::I64)?;
            let all_inside = gather(
                AlongOperand { ptr: out.ptr(), strides: out.strides },
                AlongOperand { ptr: x.ptr(), strides: &over(&x, at.shape.len()) },
                AlongOperand { ptr: flat.ptr().cast(), strides: &row_major(at.shape) },
                x.dtype,
                at.shape,
                (a.dim, size),
            );
            if all_inside { Ok(()) } else { Err(outside(RawSlice::new(flat.ptr().cast(), at.numel()), a.dim, size)) }
        }
    }
}

impl CpuFamily for ScatterAlong {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(s: &ScatterAlong, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (values, at) = (view("scatter", ins, 0)?, view("scatter", ins, 1)?);
        let x = result(s, outs, 0)?;
        let size = x.shape.get(s.dim).copied().unwrap_or(1);
        let rank = at.shape.len();
        let strides = if values.shape.is_empty() && rank > 0 { Strides::from_elem(0, rank) } else { over(&values, rank) };
        // SAFETY: as for `gather`; the values reach over the index, or are one value.
        unsafe {
            let flat = DenseOperand::cast(&at, DType::I64)?;
            // Before anything is written.
            let index = RawSlice::new(flat.ptr().cast(), at.numel());
            if !are_inside(index, size) {
                return Err(outside(index, s.dim, size));
            }
            scatter(
                AlongOperand { ptr: x.ptr(), strides: &over(&x, rank) },
                AlongOperand { ptr: values.ptr(), strides: &strides },
                AlongOperand { ptr: flat.ptr().cast(), strides: &row_major(at.shape) },
                (x.dtype, s.how),
                at.shape,
                (s.dim, size),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_major(shape: &[usize]) -> Vec<isize> {
        (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect()
    }

    /// The element of each operand for each element of the index, as the definition says it.
    fn wanted(shape: &[usize], dim: usize, index: &[i64], [at, other, of]: [&[isize]; 3]) -> Vec<(isize, isize)> {
        let mut places = Vec::new();
        for k in 0..shape.iter().product::<usize>() {
            let place: Vec<isize> = row_major(shape).iter().zip(shape).map(|(s, n)| (k / *s as usize % n) as isize).collect();
            let sum = |s: &[isize]| place.iter().zip(s).map(|(p, s)| p * s).sum::<isize>();
            let position = index[sum(at) as usize] as isize;
            places.push((sum(other), sum(of) + (position - place[dim]) * of[dim]));
        }
        places
    }

    #[test]
    fn every_dimension_is_read_and_written_as_defined() {
        let shapes: [&[usize]; 9] =
            [&[7], &[3, 20], &[20, 3], &[4, 5, 6], &[5, 1, 9], &[2, 3, 4, 5], &[40_000], &[300, 150], &[2000, 5, 9]];
        for shape in shapes {
            let n: usize = shape.iter().product();
            for dim in 0..shape.len() {
                let size = 11;
                let mut full = shape.to_vec();
                full[dim] = size;
                let all: usize = full.iter().product();
                let index: Vec<i64> = (0..n).map(|i| ((i * 7919 + i / 3) % size) as i64).collect();
                let x: Vec<f64> = (0..all).map(|i| i as f64).collect();
                let own = row_major(shape);
                // The array also as one whose dimensions are in reverse.
                let mut reversed: Vec<isize> = row_major(&full.iter().rev().copied().collect::<Vec<_>>());
                reversed.reverse();
                for of in [row_major(&full), reversed] {
                    let places = wanted(shape, dim, &index, [&own, &own, &of]);
                    let mut out = vec![-1.0; n];
                    // SAFETY: shapes and strides fit the arrays.
                    let all_inside = unsafe {
                        gather(
                            AlongOperand { ptr: out.as_mut_ptr().cast(), strides: &own },
                            AlongOperand { ptr: x.as_ptr().cast(), strides: &of },
                            AlongOperand { ptr: index.as_ptr(), strides: &own },
                            DType::F64,
                            shape,
                            (dim, size),
                        )
                    };
                    assert!(all_inside && places.iter().all(|(o, s)| out[*o as usize] == x[*s as usize]), "{shape:?} {dim}");
                    for how in [Write::Set, Write::Add, Write::Multiply] {
                        let (mut to, mut by_hand) = (x.clone(), x.clone());
                        // SAFETY: as above.
                        unsafe {
                            scatter(
                                AlongOperand { ptr: to.as_mut_ptr().cast(), strides: &of },
                                AlongOperand { ptr: out.as_ptr().cast(), strides: &own },
                                AlongOperand { ptr: index.as_ptr(), strides: &own },
                                (DType::F64, how),
                                shape,
                                (dim, size),
                            );
                        }
                        // Row-major order is in order along every dimension.
                        for (s, o) in &places {
                            let (old, new) = (by_hand[*o as usize], out[*s as usize]);
                            by_hand[*o as usize] = match how {
                                Write::Set => new,
                                Write::Add => old + new,
                                Write::Multiply => old * new,
                            };
                        }
                        assert!(to.iter().zip(&by_hand).all(|(a, b)| a.to_bits() == b.to_bits()), "{shape:?} {dim} {how:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn positions_out_of_range_give_zero_and_are_told() {
        let (x, index) = ([1i32, 2, 3], [2i64, 7, 0, -1]);
        let mut out = [7i32; 4];
        // SAFETY: shapes and strides fit the arrays.
        let all_inside = unsafe {
            gather(
                AlongOperand { ptr: out.as_mut_ptr().cast(), strides: &[1] },
                AlongOperand { ptr: x.as_ptr().cast(), strides: &[1] },
                AlongOperand { ptr: index.as_ptr(), strides: &[1] },
                DType::I32,
                &[4],
                (0, 3),
            )
        };
        assert!(!all_inside && out == [3, 0, 1, 0]);
    }
}
