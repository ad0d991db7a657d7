//! Softmax of narrow rows: some of them are transposed to columns, so that no step is along a row.

use super::{SoftmaxPass, SoftmaxPointers};
use crate::backend::cpu::common::in_lanes::{transpose_in, transpose_out, transposed_size, transposes};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::host::memory::reserve::aligned;
use crate::simd::InstructionSet;

pub(super) use crate::backend::cpu::common::in_lanes::WIDTH;

/// The most elements of a row. Those of log-softmax may be longer: columns take the logarithms of many sums at once.
const MOST: usize = 32;
const MOST_OF_LOG: usize = 64;

/// Whether rows are computed in this way, and for which instruction set.
pub(super) fn fits(pass: SoftmaxPass, rows: usize, n: usize) -> Option<InstructionSet> {
    transposes(rows, n, if pass.log && !pass.backward { MOST_OF_LOG } else { MOST })
}

/// `columns` is the pass of so many columns, whose elements are `WIDTH` apart.
///
/// # Safety
/// As for `super::rows_of`; `fits` said so.
pub(super) unsafe fn rows<T: CoreNumber>(
    isa: InstructionSet,
    pass: SoftmaxPass,
    (rows, n): (usize, usize),
    p: SoftmaxPointers<T>,
    columns: impl Fn(usize, SoftmaxPointers<T>),
) {
    let mut x = aligned(T::ZERO, transposed_size(n, WIDTH));
    let mut g = aligned(T::ZERO, if pass.backward { x.len() } else { 0 });
    for first in (0..rows).step_by(WIDTH) {
        let (many, from) = (WIDTH.min(rows - first), p.moved(first * n));
        // SAFETY: the caller's; there is room.
        unsafe {
            transpose_in::<T>(isa, many, n, from.x, x.as_mut_ptr(), WIDTH);
            if pass.backward {
                transpose_in::<T>(isa, many, n, from.g, g.as_mut_ptr(), WIDTH);
            }
            let out = x.as_mut_ptr();
            columns(many, SoftmaxPointers { x: out, g: if pass.backward { g.as_ptr() } else { out }, out });
            transpose_out::<T>(isa, many, n, out, from.out, WIDTH);
        }
    }
}
