//! Softmax of narrow rows: some of them are turned to columns, so that no step is along a row.

use super::{SoftmaxPass, SoftmaxPointers};
use crate::backend::cpu::in_lanes::{turn_in, turn_out, turned_size};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::backend::cpu::memory::room::aligned;
use crate::backend::cpu::num::{InstructionSet, instruction_set};

/// Rows that are turned together.
const WIDTH: usize = 64;
/// The fewest rows, and the most elements of one; of one whose sum's logarithm is taken, which is one number along a row.
const FEW: usize = 8;
const MOST: usize = 32;
const MOST_OF_LOG: usize = 64;

/// Whether rows are computed in this way, and for which instruction set.
pub(super) fn fits(pass: SoftmaxPass, rows: usize, n: usize) -> Option<InstructionSet> {
    let isa = instruction_set();
    let most = if pass.log && !pass.backward { MOST_OF_LOG } else { MOST };
    (isa != InstructionSet::Base && rows >= FEW && (1..=most).contains(&n)).then_some(isa)
}

/// `columns` is the pass of columns.
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
    let mut x = aligned(T::ZERO, turned_size(n, WIDTH));
    let mut g = aligned(T::ZERO, if pass.backward { x.len() } else { 0 });
    for first in (0..rows).step_by(WIDTH) {
        let (many, from) = (WIDTH.min(rows - first), p.moved(first * n));
        // SAFETY: the caller's; there is room.
        unsafe {
            turn_in::<T>(isa, many, n, from.x, x.as_mut_ptr(), WIDTH);
            if pass.backward {
                turn_in::<T>(isa, many, n, from.g, g.as_mut_ptr(), WIDTH);
            }
            let out = x.as_mut_ptr();
            columns(many, SoftmaxPointers { x: out, g: if pass.backward { g.as_ptr() } else { out }, out });
            turn_out::<T>(isa, many, n, out, from.out, WIDTH);
        }
    }
}

/// Elements between those of a row.
pub(super) const STEP: usize = WIDTH;
