//! Sorting along one dimension of a dense array seen as (outer, n, inner).

use super::reduce::reducers::Numeric;
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{around, numbers, output, view};
use crate::backend::cpu::elem::typed;
use crate::call::Sort;
use crate::error::{Error, Result};
use crate::host::interrupt;
use crate::host::interrupt::Ticks;
use crate::host::memory::reserve::reserved;
use crate::host::threads::parallel_for;
use std::cmp::Ordering;

/// Elements that one task handles.
const TASK: usize = 1 << 15;
/// Rows of so many elements are sorted with checks for interrupts.
const LONG: usize = 1 << 19;

#[derive(Clone, Copy)]
struct SortPointers<T> {
    x: *const T,
    values: *mut T,
    positions: *mut i64,
}
// SAFETY: tasks write to disjoint parts of the outputs, and the input is only read.
unsafe impl<T> Sync for SortPointers<T> {}
// SAFETY: as above.
unsafe impl<T> Send for SortPointers<T> {}
impl<T> SortPointers<T> {
    #[inline(always)]
    fn x(&self, i: usize) -> *const T {
        self.x.wrapping_add(i)
    }
    #[inline(always)]
    fn values(&self, i: usize) -> *mut T {
        self.values.wrapping_add(i)
    }
    #[inline(always)]
    fn positions(&self, i: usize) -> *mut i64 {
        self.positions.wrapping_add(i)
    }
}

/// The order of sorting: nan is larger than everything.
#[inline]
fn compare<T: Numeric>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Sorts along `n`, stably, and writes the first `keep` elements of each row with their original positions.
///
/// # Safety
/// `x` has `outer * n * inner` elements, the outputs `outer * keep * inner` with `keep` at most n; nothing overlaps.
pub unsafe fn sort<T: Numeric>(part: Sort, (outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, positions: *mut i64) {
    let p = SortPointers { x, values, positions };
    let jobs = outer * inner;
    let together = (TASK / (8 * n).max(1)).max(1);
    let Sort { descending, keep, .. } = part;
    let order = move |a: &(T, u32), b: &(T, u32)| {
        let o = if descending { compare(&b.0, &a.0) } else { compare(&a.0, &b.0) };
        o.then(a.1.cmp(&b.1))
    };
    parallel_for(jobs.div_ceil(together), |t| {
        let mut row: Vec<(T, u32)> = reserved(n);
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, c) = (job / inner, job % inner);
            row.clear();
            // SAFETY: indices stay inside x.
            let element = |i: usize| (unsafe { *p.x((o * n + i) * inner + c) }, i as u32);
            for from in (0..n).step_by(LONG) {
                row.extend((from..n.min(from + LONG)).map(element));
                interrupt::check();
            }
            // Equal elements are compared by position, so an unstable sort gives the stable order.
            if n < LONG {
                if keep < n && keep > 0 {
                    row.select_nth_unstable_by(keep - 1, order);
                }
                row[..keep].sort_unstable_by(order);
            } else {
                let ticks = Ticks::default();
                let order = |a: &(T, u32), b: &(T, u32)| {
                    ticks.tick();
                    order(a, b)
                };
                if keep < n && keep > 0 {
                    row.select_nth_unstable_by(keep - 1, order);
                }
                row[..keep].sort_unstable_by(order);
            }
            for (i, (v, position)) in row[..keep].iter().enumerate() {
                if i % LONG == LONG - 1 {
                    interrupt::check();
                }
                let to = (o * keep + i) * inner + c;
                // SAFETY: this job alone writes this row of the outputs.
                unsafe {
                    *p.values(to) = *v;
                    *p.positions(to) = i64::from(*position);
                }
            }
        }
    });
}

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

pub(super) unsafe fn compute(s: &Sort, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let x = view("sort", ins, 0)?;
    let (values, positions) = (output("sort", outs, 0)?, output("sort", outs, 1)?);
    let sizes = around(x.shape, s.dim);
    if sizes.1 > u32::MAX as usize {
        return Err(Error::not_implemented(format!("sort: dimensions of more than {} elements are not supported", u32::MAX)));
    }
    // SAFETY: see above.
    unsafe {
        let from = numbers(&x)?;
        typed!(x.dtype, T => sort::<T>(*s, sizes, from.ptr().cast(), values.ptr().cast(), positions.ptr().cast()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_is_stable_and_puts_nan_last() {
        let x = [2.0f32, f32::NAN, 1.0, 2.0, -1.0];
        let (mut v, mut i) = ([0.0f32; 5], [0i64; 5]);
        // SAFETY: five elements each.
        unsafe { sort(Sort { dim: 0, descending: false, keep: 5 }, (1, 5, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        assert_eq!(i, [4, 2, 0, 3, 1]);
        // SAFETY: as above, two elements are written.
        unsafe { sort(Sort { dim: 0, descending: true, keep: 3 }, (1, 5, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        assert_eq!(i[..3], [1, 0, 3]);
    }
}
