//! The forward pass.

use super::cells::{self, CellForward};
use super::{RecurrentSteps, product, together};
use crate::backend::cpu::blocks::lanes::Lanes;
use crate::backend::cpu::blocks::tile::{PanelWidth, pack_transposed};
use crate::backend::cpu::blocks::{BlockElement, BlockTask, BlockWork, Strided4, scratch};
use crate::backend::cpu::memory::room::filled;
use crate::backend::cpu::threads::{SharedPointer, parallel_for};
use crate::backend::interrupt;
use crate::backend::requests::Recurrent;
use crate::error::Result;

/// Operands and outputs, as `Recurrent` describes them; null where a cell has none.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct RecurrentForward<'a, T> {
    pub r: &'a Recurrent,
    pub x: *const T,
    pub weight: *const T,
    pub first: *const T,
    pub bias: *const T,
    pub first_cell: *const T,
    pub projection: *const T,
    pub states: *mut T,
    pub cells: *mut T,
    pub kept: *mut T,
    pub last: *mut T,
    pub last_cell: *mut T,
}
// SAFETY: tasks write to disjoint rows, and the rest is only read.
unsafe impl<T> Send for RecurrentForward<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for RecurrentForward<'_, T> {}

struct ForwardSequences<'a, T> {
    all: &'a RecurrentForward<'a, T>,
    steps: &'a RecurrentSteps<'a>,
    first: usize,
    count: usize,
    /// Packed weights of the state, and of the projection.
    weights: [(*const T, PanelWidth); 2],
}

impl<T: BlockElement> BlockWork<T> for RecurrentForward<'_, T> {
    unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
        let (r, steps) = (self.r, RecurrentSteps::new(self.r));
        let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
        let widths = [PanelWidth::of(gates, V::N), PanelWidth::of(p, V::N)];
        let weights = scratch::<T>(p.saturating_mul(widths[0].padded))?;
        let projection = scratch::<T>(if r.cell.is_projected() { h.saturating_mul(widths[1].padded) } else { 0 })?;
        let (weights, projection) = (weights.as_ptr().cast::<T>(), projection.as_ptr().cast::<T>());
        // SAFETY: the caller's; the scratch memory has room for the panels.
        unsafe {
            pack_transposed(&Strided4::matrix(self.weight, p), (0, 0), (gates, p), widths[0], weights);
            if r.cell.is_projected() {
                pack_transposed(&Strided4::matrix(self.projection, h), (0, 0), (p, h), widths[1], projection);
            }
        }
        let sequences = steps.sequences();
        let shared = [SharedPointer::new(weights.cast_const()), SharedPointer::new(projection.cast_const())];
        let many = together(sequences);
        parallel_for(sequences.div_ceil(many), |t| {
            let first = t * many;
            let weights = [(shared[0].get(), widths[0]), (shared[1].get(), widths[1])];
            let task = ForwardSequences { all: self, steps: &steps, first, count: many.min(sequences - first), weights };
            // SAFETY: the caller's; each task has sequences of its own.
            unsafe { V::run(&task) };
        });
        Ok(())
    }
}

impl<T: BlockElement> BlockTask<T> for ForwardSequences<'_, T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        let ForwardSequences { all, steps, first, count, weights } = self;
        let (r, first, count) = (all.r, *first, *count);
        let (h, p, gates, kept) = (r.hidden, r.state, r.cell.gates() * r.hidden, r.cell.kept() * r.hidden);
        let mut state = filled(T::ZERO, count * p);
        let mut raw = filled(T::ZERO, count * h);
        let mut products = filled(T::ZERO, count * weights[0].1.padded);
        let mut projected = filled(T::ZERO, if r.cell.is_projected() { count * weights[1].1.padded } else { 0 });
        let at = |of: *const T, row: usize, width: usize| if of.is_null() { of } else { of.wrapping_add(row * width) };
        let at_mut = |of: *mut T, row: usize, width: usize| if of.is_null() { of } else { of.wrapping_add(row * width) };
        // SAFETY: the caller's; rows are those of this task's sequences.
        unsafe {
            std::ptr::copy_nonoverlapping(all.first.add(first * p), state.as_mut_ptr(), count * p);
            if r.cell.is_lstm() {
                std::ptr::copy_nonoverlapping(all.first_cell.add(first * h), all.last_cell.add(first * h), count * h);
            }
            for k in 0..r.batches.len() {
                interrupt::check();
                let step = steps.step(k, false);
                let rows = steps.active(step, first, count);
                if rows == 0 {
                    continue;
                }
                V::product(&product(rows, p, (state.as_ptr(), p), weights[0], products.as_mut_ptr()));
                for i in 0..rows {
                    let row = steps.starts[step] + first + i;
                    let before = if r.cell.is_lstm() { all.last_cell.add((first + i) * h).cast_const() } else { state.as_ptr().add(i * p) };
                    let cell = CellForward {
                        x: at(all.x, row, gates),
                        product: products.as_ptr().add(i * weights[0].1.padded),
                        bias: all.bias,
                        before,
                        kept: at_mut(all.kept, row, kept),
                        cell: at_mut(all.cells, row, h),
                        state: raw.as_mut_ptr().add(i * h),
                    };
                    cells::forward::<V>(r.cell, h, &cell);
                    if r.cell.is_lstm() {
                        std::ptr::copy_nonoverlapping(cell.cell, all.last_cell.add((first + i) * h), h);
                    }
                }
                let (from, width) = if r.cell.is_projected() {
                    V::product(&product(rows, h, (raw.as_ptr(), h), weights[1], projected.as_mut_ptr()));
                    (projected.as_ptr(), weights[1].1.padded)
                } else {
                    (raw.as_ptr(), h)
                };
                for i in 0..rows {
                    let row = steps.starts[step] + first + i;
                    std::ptr::copy_nonoverlapping(from.add(i * width), state.as_mut_ptr().add(i * p), p);
                    std::ptr::copy_nonoverlapping(from.add(i * width), all.states.add(row * p), p);
                }
            }
            std::ptr::copy_nonoverlapping(state.as_ptr(), all.last.add(first * p), count * p);
        }
    }
}
