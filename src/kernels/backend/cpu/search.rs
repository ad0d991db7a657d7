//! Where elements belong in sorted rows, by bisection.

use super::common::operands::{DenseOperand, output, view};
use super::elem::{is_widened, typed};
use super::family::{CpuFamily, NarrowElements};
use crate::backend::contract::{Operand, View};
use crate::call::{Family, Search};
use crate::error::Result;
use crate::host::threads::parallel_for;
use crate::layout::DType;

/// Elements that one task searches.
const TASK: usize = 1 << 12;
/// Elements that are searched side by side: a step waits for memory, not for the step before it.
const TOGETHER: usize = 8;

struct Pointers<T> {
    rows: *const T,
    x: *const T,
    out: *mut i64,
}
// SAFETY: tasks write to disjoint parts of the output, and the operands are only read.
unsafe impl<T> Sync for Pointers<T> {}

/// How many elements of `row` come before each of `x`.
#[inline(always)]
fn search<T: PartialOrd + Copy, const LANES: usize>(row: &[T], x: &[T; LANES], before: impl Fn(T, T) -> bool) -> [i64; LANES] {
    // The place is in first..=first + left, and the element before `first`, if there is one, comes before.
    let (mut first, mut left) = ([0usize; LANES], row.len());
    while left > 0 {
        // All but one part of `left` are halves, so that all lanes take the same steps.
        let half = left.div_ceil(2);
        for (f, v) in first.iter_mut().zip(x) {
            let further = before(row[*f + half - 1], *v);
            *f += if further { half } else { 0 };
        }
        left -= half;
    }
    first.map(|f| f as i64)
}

/// # Safety
/// `rows` has `outer * n` elements, `x` and `out` have `outer * m`; nothing overlaps.
#[allow(clippy::neg_cmp_op_on_partial_ord, reason = "what cannot be compared comes before")]
unsafe fn search_rows<T: PartialOrd + Copy>(right: bool, (outer, n, m): (usize, usize, usize), p: &Pointers<T>) {
    let parts = m.div_ceil(TASK);
    parallel_for(outer * parts, |t| {
        let (o, part) = (t / parts, t % parts);
        let (start, end) = (part * TASK, m.min((part + 1) * TASK));
        // SAFETY: the ranges stay inside the operands; each part of the output belongs to one task.
        let (row, x, out) = unsafe {
            (
                std::slice::from_raw_parts(p.rows.wrapping_add(o * n), n),
                std::slice::from_raw_parts(p.x.wrapping_add(o * m + start), end - start),
                std::slice::from_raw_parts_mut(p.out.wrapping_add(o * m + start), end - start),
            )
        };
        if right { every(row, x, out, |a, b| !(a > b)) } else { every(row, x, out, |a, b| !(a >= b)) }
    });
}

#[inline(always)]
fn every<T: PartialOrd + Copy>(row: &[T], x: &[T], out: &mut [i64], before: impl Fn(T, T) -> bool + Copy) {
    let ((groups, rest), (places, last)) = (x.as_chunks::<TOGETHER>(), out.as_chunks_mut::<TOGETHER>());
    for (x, out) in groups.iter().zip(places) {
        *out = search(row, x, before);
    }
    for (x, out) in rest.iter().zip(last) {
        [*out] = search(row, &[*x], before);
    }
}

impl CpuFamily for Search {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(s: &Search, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (rows, x, out) = (view(s.name(), ins, 0)?, view(s.name(), ins, 1)?, output(s.name(), outs, 0)?);
        let n = rows.shape.last().copied().unwrap_or(1);
        let m = x.shape.last().copied().unwrap_or(1);
        if m == 0 {
            return Ok(());
        }
        let outer = x.shape.iter().product::<usize>() / m;
        // SAFETY: the caller's; the family's shapes give the sizes.
        unsafe {
            let dtype = match rows.dtype {
                // Foreign memory may hold other bytes than 0 and 1.
                DType::Bool => DType::U8,
                narrow if is_widened(narrow) => narrow.computed(),
                dtype => dtype,
            };
            let (sorted, wanted) = (DenseOperand::cast(&rows, dtype)?, DenseOperand::cast(&x, dtype)?);
            typed!(dtype, T => {
                let p = Pointers::<T> { rows: sorted.ptr().cast(), x: wanted.ptr().cast(), out: out.ptr().cast() };
                search_rows(s.right, (outer, n, m), &p);
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places<T: PartialOrd + Copy>(right: bool, row: &[T], x: &[T]) -> Vec<i64> {
        let mut out = vec![-1; x.len()];
        let p = Pointers { rows: row.as_ptr(), x: x.as_ptr(), out: out.as_mut_ptr() };
        // SAFETY: one row.
        unsafe { search_rows(right, (1, row.len(), x.len()), &p) };
        out
    }

    #[test]
    fn places_are_those_of_the_standard_library_for_all_lengths() {
        for n in 0..40i64 {
            let row: Vec<i64> = (0..n).map(|v| v / 3 * 2).collect();
            let x: Vec<i64> = (-2..30).collect();
            let expected = |right: bool| -> Vec<i64> {
                x.iter().map(|v| row.partition_point(|r| if right { r <= v } else { r < v }) as i64).collect()
            };
            assert_eq!(places(false, &row, &x), expected(false));
            assert_eq!(places(true, &row, &x), expected(true));
        }
    }

    #[test]
    fn what_cannot_be_compared_comes_before() {
        let nan = f32::NAN;
        assert_eq!(places(false, &[1.0, 2.0, nan], &[nan, 0.0, 2.0, 3.0]), [3, 0, 1, 3]);
        assert_eq!(places(true, &[1.0, 2.0], &[nan, 2.0]), [2, 2]);
    }
}
