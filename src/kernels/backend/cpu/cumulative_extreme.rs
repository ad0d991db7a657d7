//! Cumulative maxima and minima along one dimension of a dense array seen as (outer, n, inner).

use super::reduce::reducers::Numeric;
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{around, numbers, result, view};
use crate::backend::cpu::elem::typed;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{CumulativeExtreme, Family};
use crate::error::Result;
use crate::host::interrupt::Ticks;
use crate::host::threads::parallel_for;

/// Elements that one task handles.
const TASK: usize = 1 << 15;

pub(super) struct RowPointers<T> {
    pub x: *const T,
    pub values: *mut T,
    pub positions: *mut i64,
}
// SAFETY: tasks write to disjoint parts of the outputs, and the input is only read.
unsafe impl<T> Sync for RowPointers<T> {}

impl<T> RowPointers<T> {
    #[inline(always)]
    pub(super) fn x(&self, i: usize) -> *const T {
        self.x.wrapping_add(i)
    }
    #[inline(always)]
    pub(super) fn write(&self, i: usize, value: T, position: usize) {
        // SAFETY: the callers below give each index to one task, and it lies inside both outputs.
        unsafe {
            *self.values.wrapping_add(i) = value;
            *self.positions.wrapping_add(i) = position as i64;
        }
    }
}

/// Runs `f(number of the row)` for every row.
pub(super) fn each_row(rows: usize, n: usize, f: impl Fn(usize) + Sync) {
    let together = (TASK / n.max(1)).max(1);
    parallel_for(rows.div_ceil(together), |t| (t * together..rows.min((t + 1) * together)).for_each(&f));
}

/// The cumulative maximum (minimum, with `max` false) and its position, the last among equal elements. From the first nan on all values are
/// nan.
///
/// # Safety
/// All pointers have `outer * n * inner` elements; nothing overlaps.
pub unsafe fn cummax<T: Numeric>(max: bool, (outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, positions: *mut i64) {
    let p = RowPointers { x, values, positions };
    each_row(outer * inner, n, |row| {
        let first = row / inner * n * inner + row % inner;
        let mut best: Option<(T, usize)> = None;
        let ticks = Ticks::default();
        for i in 0..n {
            ticks.tick();
            let at = first + i * inner;
            // SAFETY: the index stays inside x.
            let v = unsafe { *p.x(at) };
            let now = match best {
                Some(old) if !(v.is_nan() || (!old.0.is_nan() && if max { v >= old.0 } else { v <= old.0 })) => old,
                _ => (v, i),
            };
            best = Some(now);
            p.write(at, now.0, now.1);
        }
    });
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for CumulativeExtreme {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(c: &CumulativeExtreme, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = view(c.name(), ins, 0)?;
        let (values, positions) = (result(c, outs, 0)?, result(c, outs, 1)?);
        // SAFETY: see above.
        unsafe {
            let from = numbers(&x)?;
            typed!(x.dtype, T => {
                cummax::<T>(c.max, around(x.shape, c.dim), from.ptr().cast(), values.ptr().cast(), positions.ptr().cast());
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equals_is_named_and_nan_stays() {
        let x = [2.0f32, 1.0, 2.0, f32::NAN, 5.0, f32::NAN];
        let (mut v, mut i) = ([0.0f32; 6], [0i64; 6]);
        // SAFETY: six elements each.
        unsafe { cummax(true, (1, 6, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        assert_eq!(v[..3], [2.0, 2.0, 2.0]);
        assert!(v[3..].iter().all(|v| v.is_nan()));
        assert_eq!(i, [0, 0, 2, 3, 3, 5]);
        // SAFETY: as above, seen as 3 rows of 2 columns.
        unsafe { cummax(false, (1, 3, 2), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        assert_eq!((v[0], v[1], v[2], v[4]), (2.0, 1.0, 2.0, 2.0));
        assert_eq!(i, [0, 0, 1, 1, 1, 2]);
    }
}
