//! The most frequent element along one dimension of a dense array seen as (outer, n, inner).

use super::reduce::reducers::Numeric;
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{around, numbers, output, view};
use crate::backend::cpu::cumulative_extreme::{RowPointers, each_row};
use crate::backend::cpu::elem::typed;
use crate::call::Mode;
use crate::error::Result;
use crate::host::interrupt;
use crate::host::interrupt::Ticks;
use crate::host::memory::reserve::reserved;
use std::cmp::Ordering;

/// Elements that are copied between two checks for interrupts.
const LONG: usize = 1 << 19;

/// The most frequent element (the smallest of equally frequent ones) and its last position. A nan equals no other.
///
/// # Safety
/// `x` has `outer * n * inner` elements with n at least 1, the outputs `outer * inner`; nothing overlaps.
pub unsafe fn mode<T: Numeric>((outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, positions: *mut i64) {
    let p = RowPointers { x, values, positions };
    each_row(outer * inner, n, |row| {
        let first = row / inner * n * inner + row % inner;
        let mut sorted: Vec<(T, usize)> = reserved(n);
        // SAFETY: indices stay inside x.
        let element = |i: usize| (unsafe { *p.x(first + i * inner) }, i);
        for from in (0..n).step_by(LONG) {
            sorted.extend((from..n.min(from + LONG)).map(element));
            interrupt::check();
        }
        let ticks = Ticks::default();
        sorted.sort_unstable_by(|a, b| {
            ticks.tick();
            let order = a.0.partial_cmp(&b.0).unwrap_or_else(|| a.0.is_nan().cmp(&b.0.is_nan()));
            order.then(a.1.cmp(&b.1))
        });
        let mut best = (0, sorted[0]);
        for run in sorted.chunk_by(|a, b| a.0.partial_cmp(&b.0) == Some(Ordering::Equal)) {
            if run.len() > best.0 {
                best = (run.len(), run[run.len() - 1]);
            }
        }
        p.write(row, best.1.0, best.1.1);
    });
}

// SAFETY, of every function here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

pub(super) unsafe fn compute(m: &Mode, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let x = view("mode", ins, 0)?;
    let (values, positions) = (output("mode", outs, 0)?, output("mode", outs, 1)?);
    // SAFETY: see above.
    unsafe {
        let from = numbers(&x)?;
        typed!(x.dtype, T => mode::<T>(around(x.shape, m.dim), from.ptr().cast(), values.ptr().cast(), positions.ptr().cast()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_equally_frequent_elements_wins() {
        let x = [3i64, 1, 3, 1, 2, 2, 9, 0];
        let (mut v, mut i) = ([0i64; 2], [0i64; 2]);
        // SAFETY: 1 x 8 elements, then 2 x 4.
        unsafe {
            mode((1, 8, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr());
            assert_eq!((v[0], i[0]), (1, 3));
            mode((2, 4, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr());
        }
        assert_eq!((v, i), ([1, 2], [3, 1]));
    }
}
