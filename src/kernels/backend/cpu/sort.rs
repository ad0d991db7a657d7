//! Sorting along one dimension of a dense array seen as (outer, n, inner).

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{around, numbers, output, view};
use crate::backend::cpu::common::sort_keys::{SortElement, SortKey};
use crate::backend::cpu::elem::typed;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::Sort;
use crate::error::{Error, Result};
use crate::host::interrupt;
use crate::host::interrupt::Ticks;
use crate::host::memory::reserve::reserved;
use crate::host::threads::parallel_for;

/// Elements that one task handles.
const TASK: usize = 1 << 15;
/// Elements between two checks for interrupts.
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

/// The first `keep` of a row in order, of which the others are left as they come.
#[inline(never)]
pub(super) fn order<P: SortKey>(row: &mut [P], keep: usize) {
    // Rows of so many elements are sorted with checks for interrupts.
    if row.len() < LONG {
        if keep < row.len() && keep > 0 {
            row.select_nth_unstable(keep - 1);
        }
        return row[..keep].sort_unstable();
    }
    let ticks = Ticks::default();
    let compare = |a: &P, b: &P| {
        ticks.tick();
        a.cmp(b)
    };
    if keep < row.len() && keep > 0 {
        row.select_nth_unstable_by(keep - 1, compare);
    }
    row[..keep].sort_unstable_by(compare);
}

/// Puts the elements of a row into `packed`. `element` gives that of a position.
pub(super) fn pack<T: SortElement>(packed: &mut Vec<T::Keyed>, n: usize, descending: bool, element: impl Fn(usize) -> T) {
    packed.clear();
    for from in (0..n).step_by(LONG) {
        packed.extend((from..n.min(from + LONG)).map(|i| element(i).packed(descending, i)));
        interrupt::check();
    }
}

/// Refuses dimensions whose positions have more than 32 bits.
pub(super) fn check_size(op: &str, n: usize) -> Result<()> {
    if n <= u32::MAX as usize {
        return Ok(());
    }
    Err(Error::not_implemented(format!("{op}: dimensions of more than {} elements are not supported", u32::MAX)))
}

/// Sorts along `n`, stably, and writes the first `keep` elements of each row with their original positions.
///
/// # Safety
/// `x` has `outer * n * inner` elements, n of at most 32 bits, the outputs `outer * keep * inner` with `keep` at most n; nothing overlaps.
unsafe fn sort<T: SortElement>(part: Sort, (outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, positions: *mut i64) {
    let p = SortPointers { x, values, positions };
    let jobs = outer * inner;
    let together = (TASK / (8 * n).max(1)).max(1);
    let Sort { descending, keep, .. } = part;
    parallel_for(jobs.div_ceil(together), |t| {
        let mut row: Vec<T::Keyed> = reserved(n);
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, c) = (job / inner, job % inner);
            // SAFETY: indices stay inside x.
            let element = |i: usize| unsafe { *p.x((o * n + i) * inner + c) };
            pack(&mut row, n, descending, element);
            order(&mut row, keep);
            for (i, packed) in row[..keep].iter().enumerate() {
                if i % LONG == LONG - 1 {
                    interrupt::check();
                }
                let (to, position) = ((o * keep + i) * inner + c, packed.position());
                // SAFETY: this job alone writes this row of the outputs.
                unsafe {
                    *p.values(to) = element(position);
                    *p.positions(to) = position as i64;
                }
            }
        }
    });
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Sort {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(s: &Sort, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = view("sort", ins, 0)?;
        let (values, positions) = (output("sort", outs, 0)?, output("sort", outs, 1)?);
        let sizes = around(x.shape, s.dim);
        check_size("sort", sizes.1)?;
        // SAFETY: see above.
        unsafe {
            let from = numbers(&x)?;
            typed!(x.dtype, T => sort::<T>(*s, sizes, from.ptr().cast(), values.ptr().cast(), positions.ptr().cast()));
        }
        Ok(())
    }
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
