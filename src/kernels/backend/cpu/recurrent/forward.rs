//! The forward pass.

use super::cells::{self, CellForward};
use super::layers::{LayerPiece, LayerStages, PackedWeights, PieceTask, run_layer};
use super::{RecurrentSteps, row, row_mut};
use crate::backend::cpu::common::blocks::lanes::Lanes;
use crate::backend::cpu::common::blocks::{BlockElement, BlockWork};
use crate::call::Recurrent;
use crate::error::Result;
use crate::host::memory::reserve::filled;
use crate::host::threads::SharedPointer;
use std::ptr::{copy_nonoverlapping, null};

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
// SAFETY: tasks write to disjoint rows and columns, and the rest is only read.
unsafe impl<T> Send for RecurrentForward<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for RecurrentForward<'_, T> {}

impl<T: BlockElement> BlockWork<T> for RecurrentForward<'_, T> {
    unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
        // SAFETY: the caller's; `layer` keeps the order of stages.
        unsafe { self.layer(V::N, &|stages, piece| V::run(&PieceTask(stages, piece))) }
    }
}

impl<T: BlockElement> RecurrentForward<'_, T> {
    /// # Safety
    /// The operands and outputs are as `Recurrent` describes them.
    unsafe fn layer(&self, lanes: usize, run: &(dyn Fn(&ForwardStages<'_, T>, &LayerPiece<T>) + Sync)) -> Result<()> {
        let (r, steps) = (self.r, RecurrentSteps::new(self.r));
        let (h, p) = (r.hidden, r.state);
        // SAFETY: the caller's; each group of sequences has rows of its own.
        unsafe {
            let weights = PackedWeights::transposed(lanes, r.cell.gates(), h, p, self.weight)?;
            let projection = if r.cell.is_projected() { Some(PackedWeights::transposed(lanes, 1, p, h, self.projection)?) } else { None };
            let new = |first, count| {
                let mut raw = filled(T::ZERO, if projection.is_some() { count * h } else { 0 });
                let (weights, projection) = (&weights, projection.as_ref());
                let raw_at = SharedPointer::new(raw.as_mut_ptr());
                ForwardStages { all: self, steps: &steps, sequences: (first, count), weights, projection, raw: raw_at, _room: raw }
            };
            run_layer(&steps, lanes, new, |stages, piece| run(stages, piece));
        }
        Ok(())
    }
}

struct ForwardStages<'a, T> {
    all: &'a RecurrentForward<'a, T>,
    steps: &'a RecurrentSteps<'a>,
    /// The first one, and how many.
    sequences: (usize, usize),
    weights: &'a PackedWeights<T>,
    projection: Option<&'a PackedWeights<T>>,
    /// What is projected.
    raw: SharedPointer<*mut T>,
    _room: Vec<T>,
}

impl<T: BlockElement> LayerStages<T> for ForwardStages<'_, T> {
    fn stages(&self) -> usize {
        if self.projection.is_some() { 2 * self.steps.len() } else { self.steps.len() }
    }

    fn size(&self, stage: usize) -> (usize, usize) {
        let (k, is_cells) = self.steps.of_stage(stage);
        let weights = self.projection.filter(|_| !is_cells).unwrap_or(self.weights);
        (self.steps.rows(k, false, self.sequences).1, weights.width.panels())
    }

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(&self, piece: &LayerPiece<T>) {
        let ForwardStages { all, steps, sequences, .. } = self;
        let r = all.r;
        let (h, p) = (r.hidden, r.state);
        let (gates, kept) = (r.cell.gates(), r.cell.kept() * h);
        let (k, is_cells) = steps.of_stage(piece.stage);
        let (step, first) = (steps.step(k, false), sequences.0);
        let start = steps.starts[step] + first;
        let (rows, panels) = (&piece.rows, &piece.panels);
        // Sequences that end with this step.
        let ends = steps.rows(k + 1, false, *sequences).1.max(rows.start)..rows.end;
        let products = piece.products;
        // SAFETY: the caller's; rows and columns are those of this piece.
        unsafe {
            if let (Some(projection), false) = (self.projection, is_cells) {
                let from = (rows.len(), self.raw.at(rows.start * h).cast_const(), h);
                projection.product::<V>(from, 0, panels, (products, 0));
                let columns = projection.columns(panels, p);
                for i in rows.clone() {
                    let to = all.states.add((start + i) * p + columns.start);
                    copy_nonoverlapping(products.row(i - rows.start), to, columns.len());
                }
                for i in ends {
                    let from = all.states.add((start + i) * p + columns.start);
                    copy_nonoverlapping(from, all.last.add((first + i) * p + columns.start), columns.len());
                }
                return;
            }
            let units = self.weights.columns(panels, h);
            let before = |i: usize, states: *const T, firsts: *const T, width: usize| match steps.before(step, first + i) {
                Some(before) => row(states, before, width),
                None => row(firsts, first + i, width),
            };
            let state_before = |i: usize| before(i, all.states, all.first, p);
            let cell = |i: usize, product: *const T| {
                let at = start + i;
                CellForward {
                    x: row(all.x, at, gates * h),
                    product,
                    product_step: products.columns,
                    bias: all.bias,
                    before: if r.cell.is_lstm() { before(i, all.cells, all.first_cell, h) } else { state_before(i) },
                    kept: row_mut(all.kept, at, kept),
                    cell: row_mut(all.cells, at, h),
                    state: if self.projection.is_some() { self.raw.at(i * h) } else { all.states.wrapping_add(at * p) },
                }
            };
            // Sequences that have begun before this step come first.
            let begun = rows.clone().find(|i| steps.before(step, first + i).is_none()).unwrap_or(rows.end);
            for gate in 0..gates {
                if piece.is_part {
                    rows.clone().for_each(|i| cell(i, null()).prefetch(r.cell, gate, h, &units));
                }
                for rows in [rows.start..begun, begun..rows.end] {
                    let (from, to) = ((rows.len(), state_before(rows.start), p), rows.start - piece.rows.start);
                    if !rows.is_empty() {
                        self.weights.product::<V>(from, gate, panels, (products, to));
                    }
                }
            }
            for i in rows.clone() {
                cells::forward::<V>(r.cell, h, units.clone(), &cell(i, products.row(i - rows.start)));
            }
            for i in ends {
                let cell = cell(i, null());
                if r.cell.is_lstm() {
                    copy_nonoverlapping(cell.cell.add(units.start), all.last_cell.add((first + i) * h + units.start), units.len());
                }
                if self.projection.is_none() {
                    copy_nonoverlapping(cell.state.add(units.start), all.last.add((first + i) * p + units.start), units.len());
                }
            }
        }
    }
}
