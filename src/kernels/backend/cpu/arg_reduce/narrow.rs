//! argmax and argmin of narrow rows: some of them are transposed to columns, so that no step is along a row.
//!
//! Not here: all others (`arg_reduce`).

use crate::backend::cpu::common::in_lanes::{WIDTH, transpose_in, transposed_size, transposes};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::ReduceInput;
use crate::backend::cpu::reduce::reducers::{Float, Numeric};
use crate::host::interrupt;
use crate::host::memory::reserve::aligned;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;

/// Elements that one task handles.
const TASK: usize = 1 << 15;
/// The most elements of a row.
const MOST: usize = 64;

/// Whether rows are searched in this way, and for which instruction set.
pub(super) fn fits(rows: usize, n: usize) -> Option<InstructionSet> {
    transposes(rows, n, MOST)
}

/// As `arg_reduce::extreme`, of rows.
///
/// # Safety
/// As for `extreme`; `fits` said so.
pub(super) unsafe fn extreme<T: CoreNumber + Float>(
    isa: InstructionSet,
    max: bool,
    (rows, n): (usize, usize),
    x: ReduceInput<'_>,
    values: *mut T,
    positions: *mut i64,
) {
    let codes: Vec<T> = (0..n).map(|i| T::narrow(i as f64)).collect();
    let (values, positions) = (SharedPointer::new(values), SharedPointer::new(positions));
    let per = (TASK / n).next_multiple_of(WIDTH);
    parallel_for(rows.div_ceil(per), |t| {
        interrupt::check();
        let mut transposed = aligned(T::ZERO, transposed_size(n, WIDTH));
        let mut found = [T::ZERO; WIDTH];
        for first in (t * per..rows.min((t + 1) * per)).step_by(WIDTH) {
            if let ReduceInput::Made(blocks) = x
                && !blocks.should_continue()
            {
                return;
            }
            let many = WIDTH.min(rows - first);
            let from = x.rows((first * n) as isize, 1, 1, many * n, size_of::<T>()).0.cast::<T>();
            // SAFETY: the elements lie inside x, or are computed here and valid until the next call on this thread; each task has rows of its own.
            unsafe {
                transpose_in::<T>(isa, many, n, from, transposed.as_mut_ptr(), WIDTH);
                first_best::<T>(isa, max, transposed.as_ptr(), &codes, &mut found);
                for (j, at) in found[..many].iter().enumerate() {
                    let at = at.wide() as usize;
                    *values.at(first + j) = transposed[at * WIDTH + j];
                    *positions.at(first + j) = at as i64;
                }
            }
        }
    });
}

on_vectors! { not base:
    /// The codes of the best of transposed rows: there is one for each element.
    fn first_best<T>(max: bool, from: *const T, codes: &[T], to: &mut [T; WIDTH]) = first_best_on
}

/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn first_best_on<V: PanelVector>(max: bool, from: *const V::Number, codes: &[V::Number], to: &mut [V::Number; WIDTH]) {
    for j in (0..WIDTH).step_by(V::LANES) {
        // SAFETY: the caller's.
        unsafe {
            let lowest = V::splat(V::Number::LOWEST);
            let (mut best, mut its) = (lowest, V::zero());
            // Backwards: of equal ones the first comes last, and so does the first nan.
            for (i, code) in codes.iter().enumerate().rev() {
                let x = V::load(from.wrapping_add(i * WIDTH + j));
                let x = if max { x } else { V::zero().minus(x) };
                (best, its) = x.or_no_worse(V::splat(*code), best, its);
            }
            its.store(to.as_mut_ptr().add(j));
        }
    }
}
