//! Copies of matrices in the other memory order, made in registers.
//!
//! Products copy a right operand whose columns are dense, as those of the weight of `linear` are: the crate `gemm` packs it slowly, and once a
//! tile. It packs a left operand of this kind well enough: copies of that gained nothing.

use super::Mat;
use super::on_vectors::on_vectors;
use super::panel_vector::{CoreNumber, PanelVector, widths};
use crate::backend::cpu::common::blocks::scratch;
use crate::error::throw;
use crate::host::memory::alloc::Buffer;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::instruction_set;

/// Rows of the copy that are written side by side: their beginnings stay in the cache.
const TOGETHER: usize = 64;
/// Elements of the smallest task.
const TASK: usize = 1 << 16;
/// Bytes. Rows of the copy do not lie a multiple of it apart: the beginnings of all rows would compete for a few lines of the cache.
const PAGE: usize = 1 << 12;

/// A copy, and the memory that it lies in.
pub(super) struct TransposedMatrix<T> {
    /// Of the allocator of tensors, whose idle buffers serve: a weight's copy has the weight's size.
    _memory: Buffer,
    pub mat: Mat<T>,
}

/// A copy of `from`, which has dense columns, with dense rows.
///
/// # Panics
/// With a memory error, if there is no room.
///
/// # Safety
/// `rows` x `columns` elements, at least one of each, are readable, and `from.rs` is 1.
pub(super) unsafe fn transposed_copy<T: CoreNumber>(rows: usize, columns: usize, from: Mat<T>, parallel: bool) -> TransposedMatrix<T> {
    let isa = instruction_set();
    let (_, lanes) = widths::<T>(isa);
    let mut step = columns.next_multiple_of(lanes);
    if (step * size_of::<T>()).is_multiple_of(PAGE) {
        step += 64 / size_of::<T>();
    }
    let memory = scratch::<T>(rows.next_multiple_of(lanes).saturating_mul(step)).unwrap_or_else(|e| throw(e));
    let to = SharedPointer::new(memory.as_ptr().cast::<T>());
    let per = if parallel { (TASK / columns).max(1).next_multiple_of(TOGETHER) } else { rows };
    parallel_for(rows.div_ceil(per), |t| {
        for first in (t * per..rows.min((t + 1) * per)).step_by(TOGETHER) {
            let many = TOGETHER.min(rows - first);
            // SAFETY: the caller's; each task has rows of its own, and there is room for all lanes.
            unsafe { transpose::<T>(isa, columns, many, from.at(first, 0), from.cs, to.at(first * step), step) };
        }
    });
    TransposedMatrix { mat: Mat { ptr: to.get().cast_const(), rs: step as isize, cs: 1 }, _memory: memory }
}

on_vectors! {
    /// Writes `rows` stretches of `columns` numbers, `step` apart, as the columns of a matrix whose rows are `to_step` apart. Whole vectors
    /// are written.
    fn transpose<T>(rows: usize, columns: usize, from: *const T, step: isize, to: *mut T, to_step: usize) = transpose_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn transpose_on<V: PanelVector>(
    rows: usize,
    columns: usize,
    from: *const V::Number,
    step: isize,
    to: *mut V::Number,
    to_step: usize,
) {
    for i in (0..rows).step_by(V::LANES) {
        // Rows beyond the last are the last again.
        let from = |q: usize| from.wrapping_offset((i + q).min(rows - 1) as isize * step);
        for j in (0..columns).step_by(V::LANES) {
            let (here, to) = (columns - j, to.wrapping_add(j * to_step + i));
            // SAFETY: the caller's.
            unsafe {
                if here >= V::LANES {
                    V::put_transposed(|q| V::load(from(q).wrapping_add(j)), to, to_step);
                } else {
                    V::put_transposed(|q| V::load_first(from(q).wrapping_add(j), here), to, to_step);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: CoreNumber + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        for (rows, columns, step) in [(1, 1, 1), (3, 70, 3), (16, 16, 20), (65, 17, 65), (130, 33, 131), (40, 1024, 40), (9, 5, 0)] {
            let data: Vec<T> = (0..step * (columns - 1) + rows).map(&number).collect();
            let from = Mat { ptr: data.as_ptr(), rs: 1, cs: step as isize };
            for parallel in [false, true] {
                // SAFETY: the data cover the sizes.
                let made = unsafe { transposed_copy(rows, columns, from, parallel) };
                for i in 0..rows {
                    for j in 0..columns {
                        // SAFETY: as above.
                        assert_eq!(unsafe { *made.mat.at(i, j) }, data[i + j * step], "{rows}x{columns}, {i}, {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn copies_hold_the_same_elements() {
        check(|i| i as f32);
        check(|i| i as f64);
    }
}
