//! Weighted sums along one axis of row-major elements seen as (outer, n, inner).
//! Not here: the weights (`ops/resample.rs`).

pub(super) mod compute;
pub mod bytes;

use crate::call::Resample;
use crate::host::interrupt::Ticks;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::instance;
use std::ops::{Add, Mul};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Elements that one task writes at least.
const TASK: usize = 1 << 15;

/// float32 and float64.
pub trait Weighted: Copy + Send + Sync + Add<Output = Self> + Mul<Output = Self> + 'static {
    const NOTHING: Self;
    fn weight(v: f64) -> Self;
}

impl Weighted for f32 {
    const NOTHING: f32 = 0.0;
    #[inline(always)]
    fn weight(v: f64) -> f32 {
        v as f32
    }
}

impl Weighted for f64 {
    const NOTHING: f64 = 0.0;
    #[inline(always)]
    fn weight(v: f64) -> f64 {
        v
    }
}

/// The entries of a table, with weights of the elements' type.
struct Entries<'a, T> {
    input: usize,
    starts: &'a [u32],
    at: &'a [u32],
    weights: Vec<T>,
}

/// Sums of elements of one row: result `o` is from `starts[o]` on.
#[inline(always)]
fn along<T: Weighted>(e: &Entries<'_, T>, from: usize, x: &[T], to: &mut [T]) {
    let n = to.len();
    assert_eq!(x.len(), e.input);
    let starts = &e.starts[from..=from + n];
    if starts[n] as usize - starts[0] as usize == 2 * n && starts.windows(2).all(|w| w[1] - w[0] == 2) {
        let first = starts[0] as usize;
        let (at, w) = (&e.at[first..first + 2 * n], &e.weights[first..first + 2 * n]);
        for (o, to) in to.iter_mut().enumerate() {
            // SAFETY: a table's positions lie inside its axis, which is the row.
            let (a, b) = unsafe { (*x.get_unchecked(at[2 * o] as usize), *x.get_unchecked(at[2 * o + 1] as usize)) };
            *to = a * w[2 * o] + b * w[2 * o + 1];
        }
        return;
    }
    if starts[n] as usize - starts[0] as usize == n && starts.windows(2).all(|w| w[1] - w[0] == 1) {
        let first = starts[0] as usize;
        for ((to, at), w) in to.iter_mut().zip(&e.at[first..]).zip(&e.weights[first..]) {
            // SAFETY: as above.
            *to = unsafe { *x.get_unchecked(*at as usize) } * *w;
        }
        return;
    }
    for (o, to) in to.iter_mut().enumerate() {
        let mut entries = starts[o] as usize..starts[o + 1] as usize;
        *to = match entries.next() {
            None => T::NOTHING,
            Some(k) => entries.fold(x[e.at[k] as usize] * e.weights[k], |sum, k| sum + x[e.at[k] as usize] * e.weights[k]),
        };
    }
}

/// A weighted sum of rows; each row is `x` from one of the places on.
#[inline(always)]
fn across<T: Weighted>(x: &[T], places: &[usize], weights: &[T], to: &mut [T]) {
    let n = to.len();
    match (places, weights) {
        ([], _) => to.fill(T::NOTHING),
        ([a], [w]) => {
            let (a, w) = (&x[*a..][..n], *w);
            to.iter_mut().zip(a).for_each(|(to, a)| *to = *a * w);
        }
        ([a, b], [v, w]) => {
            let (a, b, v, w) = (&x[*a..][..n], &x[*b..][..n], *v, *w);
            to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = *a * v + *b * w);
        }
        ([a, b, c, d], [t, u, v, w]) => {
            let [a, b, c, d] = [a, b, c, d].map(|p| &x[*p..][..n]);
            for i in 0..n {
                to[i] = a[i] * *t + b[i] * *u + c[i] * *v + d[i] * *w;
            }
        }
        ([first, rest @ ..], [w, others @ ..]) => {
            to.iter_mut().zip(&x[*first..][..n]).for_each(|(to, a)| *to = *a * *w);
            for (place, w) in rest.iter().zip(others) {
                to.iter_mut().zip(&x[*place..][..n]).for_each(|(to, a)| *to = *to + *a * *w);
            }
        }
        _ => {}
    }
}

instance!(fn along_row<T: Weighted> = along(e: &Entries<'_, T>, from: usize, x: &[T], to: &mut [T]));
instance!(fn across_rows<T: Weighted> = across(x: &[T], places: &[usize], weights: &[T], to: &mut [T]));

/// Runs a request.
///
/// # Safety
/// Both have as many elements as the request says; they do not overlap.
pub unsafe fn resample<T: Weighted>(r: &Resample, x: *const T, y: *mut T) {
    let (n, m, inner) = (r.table.input(), r.table.output(), r.inner);
    let (starts, at, weights) = r.table.entries();
    let e = Entries { input: n, starts, at, weights: weights.iter().map(|w| T::weight(*w)).collect() };
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    let many = weights.len() / m.max(1) + 1;
    if inner == 1 {
        // Rows of one outer index, several in a task, or a part of one.
        let (together, part) = ((TASK / (m * many).max(1)).max(1), m.min((TASK / many).max(64)));
        let parts = if together > 1 { 1 } else { m.div_ceil(part.max(1)) };
        parallel_for(r.outer.div_ceil(together) * parts, |t| {
            let (first, from) = (t / parts * together, t % parts * part);
            let to = if parts == 1 { m } else { m.min(from + part) };
            for row in first..r.outer.min(first + together) {
                // SAFETY: the caller's; each task writes results of its own.
                unsafe {
                    let to = from_raw_parts_mut(y.at(row * m + from), to - from);
                    along_row(&e, from, from_raw_parts(x.get().add(row * n), n), to);
                }
            }
        });
        return;
    }
    let together = (TASK / (inner * many).max(1)).max(1);
    parallel_for((r.outer * m).div_ceil(together), |t| {
        let (mut places, ticks) = (Vec::new(), Ticks::default());
        for row in t * together..(r.outer * m).min((t + 1) * together) {
            let (outer, o) = (row / m, row % m);
            let range = e.starts[o] as usize..e.starts[o + 1] as usize;
            places.clear();
            places.extend(e.at[range.clone()].iter().map(|i| *i as usize * inner));
            ticks.tick();
            // SAFETY: as above.
            unsafe {
                let from = from_raw_parts(x.get().add(outer * n * inner), n * inner);
                across_rows(from, &places, &e.weights[range], from_raw_parts_mut(y.at(row * inner), inner));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::WeightTable;
    use std::sync::Arc;

    #[test]
    fn sums_go_along_the_middle_axis() {
        let rows = [vec![(0, 0.5), (1, 0.25)], vec![], vec![(1, 1.0), (2, -1.0), (2, 3.0)], vec![(2, 2.0)]];
        let table = Arc::new(WeightTable::new(3, rows.into_iter()).unwrap());
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        for (outer, inner) in [(4, 1), (2, 2), (1, 4)] {
            let r = Resample { op: "resample", outer, inner, table: table.clone() };
            let mut y = vec![7.0; 16];
            // SAFETY: twelve elements, and sixteen results.
            unsafe { resample::<f64>(&r, x.as_ptr(), y.as_mut_ptr()) };
            for o in 0..outer {
                for i in 0..inner {
                    let x = |k: usize| x[(o * 3 + k) * inner + i];
                    let y = |k: usize| y[(o * 4 + k) * inner + i];
                    assert_eq!([y(0), y(1), y(2), y(3)], [0.5 * x(0) + 0.25 * x(1), 0.0, x(1) + 2.0 * x(2), 2.0 * x(2)]);
                }
            }
        }
    }
}
