//! The most frequent element along one dimension of a dense array seen as (outer, n, inner).

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{around, numbers, output, view};
use crate::backend::cpu::common::sort_keys::{SortElement, SortKey};
use crate::backend::cpu::cumulative_extreme::{RowPointers, each_row};
use crate::backend::cpu::elem::typed;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::sort::{check_size, order, pack};
use crate::call::Mode;
use crate::error::Result;
use crate::host::memory::reserve::reserved;

/// The most frequent element (the smallest of equally frequent ones) and its last position. A nan equals no other.
///
/// # Safety
/// `x` has `outer * n * inner` elements with n at least 1 and of at most 32 bits, the outputs `outer * inner`; nothing overlaps.
unsafe fn mode<T: SortElement>((outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, positions: *mut i64) {
    let p = RowPointers { x, values, positions };
    each_row(outer * inner, n, |row| {
        let first = row / inner * n * inner + row % inner;
        // SAFETY: indices stay inside x.
        let element = |i: usize| unsafe { *p.x(first + i * inner) };
        let mut sorted: Vec<T::Keyed> = reserved(n);
        pack(&mut sorted, n, false, element);
        order(&mut sorted, n);
        let mut best = (0, sorted[0]);
        for run in sorted.chunk_by(|a, b| a.is_like(*b)) {
            let last = run[run.len() - 1];
            // The run of nan comes last.
            if element(last.position()).is_nan() {
                if best.0 == 0 {
                    best = (1, run[0]);
                }
            } else if run.len() > best.0 {
                best = (run.len(), last);
            }
        }
        let position = best.1.position();
        p.write(row, element(position), position);
    });
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Mode {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(m: &Mode, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = view("mode", ins, 0)?;
        let (values, positions) = (output("mode", outs, 0)?, output("mode", outs, 1)?);
        let sizes = around(x.shape, m.dim);
        check_size("mode", sizes.1)?;
        // SAFETY: see above.
        unsafe {
            let from = numbers(&x)?;
            typed!(x.dtype, T => mode::<T>(sizes, from.ptr().cast(), values.ptr().cast(), positions.ptr().cast()));
        }
        Ok(())
    }
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
