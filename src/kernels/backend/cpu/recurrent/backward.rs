//! The backward pass, but for the gradients of weights.

use super::cells::{self, CellBackward};
use super::{RecurrentSteps, product, together};
use crate::backend::cpu::blocks::lanes::Lanes;
use crate::backend::cpu::blocks::tile::{PanelWidth, pack};
use crate::backend::cpu::blocks::{BlockElement, BlockTask, BlockWork, Strided4, scratch};
use crate::backend::cpu::memory::room::filled;
use crate::backend::cpu::threads::{SharedPointer, parallel_for};
use crate::backend::interrupt;
use crate::backend::requests::{Recurrent, RecurrentCell};
use crate::error::Result;

/// Operands and outputs, as `Recurrent` describes them; null where a cell has none.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct RecurrentBackward<'a, T> {
    pub r: &'a Recurrent,
    pub g: *const T,
    pub g_last: *const T,
    pub g_last_cell: *const T,
    pub states: *const T,
    pub cells: *const T,
    pub kept: *const T,
    pub weight: *const T,
    pub first: *const T,
    pub first_cell: *const T,
    pub projection: *const T,
    pub dx: *mut T,
    pub dproduct: *mut T,
    pub before: *mut T,
    pub d_first: *mut T,
    pub d_first_cell: *mut T,
    pub d_projected: *mut T,
    pub raw: *mut T,
}
// SAFETY: tasks write to disjoint rows, and the rest is only read.
unsafe impl<T> Send for RecurrentBackward<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for RecurrentBackward<'_, T> {}

struct BackwardSequences<'a, T> {
    all: &'a RecurrentBackward<'a, T>,
    steps: &'a RecurrentSteps<'a>,
    first: usize,
    count: usize,
    /// Packed weights of the state, and of the projection.
    weights: [(*const T, PanelWidth); 2],
}

impl<T: BlockElement> BlockWork<T> for RecurrentBackward<'_, T> {
    unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
        let (r, steps) = (self.r, RecurrentSteps::new(self.r));
        let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
        let widths = [PanelWidth::of(p, V::N), PanelWidth::of(h, V::N)];
        let weights = scratch::<T>(gates.saturating_mul(widths[0].padded))?;
        let projection = scratch::<T>(if r.cell.is_projected() { p.saturating_mul(widths[1].padded) } else { 0 })?;
        let (weights, projection) = (weights.as_ptr().cast::<T>(), projection.as_ptr().cast::<T>());
        // SAFETY: the caller's; the scratch memory has room for the panels.
        unsafe {
            pack(&Strided4::matrix(self.weight, p), (0, 0), (gates, p), widths[0], weights);
            if r.cell.is_projected() {
                pack(&Strided4::matrix(self.projection, h), (0, 0), (p, h), widths[1], projection);
            }
        }
        let sequences = steps.sequences();
        let shared = [SharedPointer::new(weights.cast_const()), SharedPointer::new(projection.cast_const())];
        let many = together(sequences);
        parallel_for(sequences.div_ceil(many), |t| {
            let first = t * many;
            let weights = [(shared[0].get(), widths[0]), (shared[1].get(), widths[1])];
            let task = BackwardSequences { all: self, steps: &steps, first, count: many.min(sequences - first), weights };
            // SAFETY: the caller's; each task has sequences of its own.
            unsafe { V::run(&task) };
        });
        Ok(())
    }
}

impl<T: BlockElement> BlockTask<T> for BackwardSequences<'_, T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        let BackwardSequences { all, steps, first, count, weights } = self;
        let (r, first, count) = (all.r, *first, *count);
        let (h, p, gates, kept) = (r.hidden, r.state, r.cell.gates() * r.hidden, r.cell.kept() * r.hidden);
        let (padded, padded_raw) = (weights[0].1.padded, weights[1].1.padded);
        let is_gru = r.cell == RecurrentCell::Gru;
        let mut slope = filled(T::ZERO, count * p);
        let mut raw = filled(T::ZERO, count * h);
        let mut products = filled(T::ZERO, count * padded);
        let mut unprojected = filled(T::ZERO, if r.cell.is_projected() { count * padded_raw } else { 0 });
        let at = |of: *const T, row: usize, width: usize| if of.is_null() { of } else { of.wrapping_add(row * width) };
        let at_mut = |of: *mut T, row: usize, width: usize| if of.is_null() { of } else { of.wrapping_add(row * width) };
        // SAFETY: the caller's; rows are those of this task's sequences.
        unsafe {
            std::ptr::copy_nonoverlapping(all.g_last.add(first * p), slope.as_mut_ptr(), count * p);
            if r.cell.is_lstm() {
                std::ptr::copy_nonoverlapping(all.g_last_cell.add(first * h), all.d_first_cell.add(first * h), count * h);
            }
            for k in 0..r.batches.len() {
                interrupt::check();
                let step = steps.step(k, true);
                let rows = steps.active(step, first, count);
                if rows == 0 {
                    continue;
                }
                let start = steps.starts[step] + first;
                for i in 0..rows {
                    for c in 0..p {
                        let to = slope.as_mut_ptr().add(i * p + c);
                        *to = (*to).plus(*all.g.add((start + i) * p + c));
                    }
                    let from = steps.before(step, first + i).map_or(all.first.add((first + i) * p), |row| all.states.add(row * p));
                    std::ptr::copy_nonoverlapping(from, all.before.add((start + i) * p), p);
                }
                let (g, g_step) = if r.cell.is_projected() {
                    std::ptr::copy_nonoverlapping(slope.as_ptr(), all.d_projected.add(start * p), rows * p);
                    V::product(&product(rows, p, (slope.as_ptr(), p), weights[1], unprojected.as_mut_ptr()));
                    (unprojected.as_mut_ptr(), padded_raw)
                } else {
                    (slope.as_mut_ptr(), p)
                };
                for i in 0..rows {
                    let row = start + i;
                    let before = match steps.before(step, first + i) {
                        _ if is_gru => all.before.add(row * p).cast_const(),
                        Some(row) => at(all.cells, row, h),
                        None => at(all.first_cell, first + i, h),
                    };
                    let state = if r.cell.is_projected() {
                        all.raw.add(row * h)
                    } else if r.cell.is_lstm() {
                        raw.as_mut_ptr().add(i * h)
                    } else {
                        all.states.add(row * p).cast_mut()
                    };
                    let cell = CellBackward {
                        g: g.add(i * g_step),
                        g_cell: at_mut(all.d_first_cell, first + i, h),
                        kept: at(all.kept, row, kept),
                        cell: at(all.cells, row, h),
                        state,
                        before,
                        dx: all.dx.add(row * gates),
                        dproduct: at_mut(all.dproduct, row, gates),
                    };
                    cells::backward::<V>(r.cell, h, &cell);
                }
                let from = if is_gru { all.dproduct } else { all.dx };
                V::product(&product(rows, gates, (from.add(start * gates).cast_const(), gates), weights[0], products.as_mut_ptr()));
                for i in 0..rows {
                    for c in 0..p {
                        let (to, new) = (slope.as_mut_ptr().add(i * p + c), products[i * padded + c]);
                        // Of a GRU a part of the gradient passes by the product.
                        *to = if is_gru { new.plus(*to) } else { new };
                    }
                }
            }
            std::ptr::copy_nonoverlapping(slope.as_ptr(), all.d_first.add(first * p), count * p);
        }
    }
}
