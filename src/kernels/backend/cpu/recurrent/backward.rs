//! The backward pass, but for the gradients of weights.

use super::cells::{self, CellBackward};
use super::layers::{LayerPiece, LayerStages, PackedWeights, PieceTask, run_layer};
use super::{RecurrentSteps, row, row_mut};
use crate::backend::cpu::common::blocks::lanes::Lanes;
use crate::backend::cpu::common::blocks::{BlockElement, BlockTask, BlockWork, prefetch};
use crate::call::{Recurrent, RecurrentCell};
use crate::error::Result;
use std::ops::Range;
use std::ptr::{copy_nonoverlapping, null, null_mut};

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
    /// The gradient of the state that stages work on, until it is that of the first one.
    pub d_first: *mut T,
    pub d_first_cell: *mut T,
    pub d_projected: *mut T,
    pub raw: *mut T,
}
// SAFETY: tasks write to disjoint rows and columns, and the rest is only read.
unsafe impl<T> Send for RecurrentBackward<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for RecurrentBackward<'_, T> {}

impl<T: BlockElement> BlockWork<T> for RecurrentBackward<'_, T> {
    unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
        // SAFETY: the caller's; `layer` keeps the order of stages.
        unsafe { self.layer(V::N, &|stages, piece| V::run(&PieceTask(stages, piece))) }
    }
}

impl<T: BlockElement> RecurrentBackward<'_, T> {
    /// # Safety
    /// The operands and outputs are as `Recurrent` describes them.
    unsafe fn layer(&self, lanes: usize, run: &(dyn Fn(&BackwardStages<'_, T>, &LayerPiece<T>) + Sync)) -> Result<()> {
        let (r, steps) = (self.r, RecurrentSteps::new(self.r));
        let (h, p) = (r.hidden, r.state);
        // SAFETY: the caller's; each group of sequences has rows of its own.
        unsafe {
            let weights = PackedWeights::plain(lanes, r.cell.gates() * h, p, self.weight)?;
            let projection = if r.cell.is_projected() { Some(PackedWeights::plain(lanes, p, h, self.projection)?) } else { None };
            let new = |first, count| {
                copy_nonoverlapping(self.g_last.add(first * p), self.d_first.add(first * p), count * p);
                if r.cell.is_lstm() {
                    copy_nonoverlapping(self.g_last_cell.add(first * h), self.d_first_cell.add(first * h), count * h);
                }
                let projection = projection.as_ref();
                BackwardStages { all: self, steps: &steps, sequences: (first, count), weights: &weights, projection }
            };
            run_layer(&steps, lanes, new, |stages, piece| run(stages, piece));
        }
        Ok(())
    }
}

/// The stage of a step begins with the product that the step after it (in the order of the layer) left, and after that of the first step
/// there is one with nothing else.
struct BackwardStages<'a, T> {
    all: &'a RecurrentBackward<'a, T>,
    steps: &'a RecurrentSteps<'a>,
    /// The first one, and how many.
    sequences: (usize, usize),
    weights: &'a PackedWeights<T>,
    projection: Option<&'a PackedWeights<T>>,
}

impl<T: BlockElement> BackwardStages<'_, T> {
    /// The first row of step number `k`, and how many sequences have it.
    fn rows(&self, k: usize) -> (usize, usize) {
        self.steps.rows(k, true, self.sequences)
    }

    /// The cell of sequence `i` at step number `k`, which is row `at`; `g` is the gradient of the state before a projection.
    #[inline(always)]
    fn cell(&self, k: usize, i: usize, at: usize, g: *mut T) -> CellBackward<T> {
        let all = self.all;
        let r = all.r;
        let (h, p, gates, kept) = (r.hidden, r.state, r.cell.gates() * r.hidden, r.cell.kept() * r.hidden);
        let sequence = self.sequences.0 + i;
        CellBackward {
            g,
            g_cell: row_mut(all.d_first_cell, sequence, h),
            kept: row(all.kept, at, kept),
            cell: row(all.cells, at, h),
            state: if r.cell.is_lstm() { null() } else { all.states.wrapping_add(at * p) },
            raw: row_mut(all.raw, at, h),
            before: match self.steps.before(self.steps.step(k, true), sequence) {
                _ if r.cell == RecurrentCell::Gru => all.before.wrapping_add(at * p).cast_const(),
                Some(before) => row(all.cells, before, h),
                None => row(all.first_cell, sequence, h),
            },
            dx: all.dx.wrapping_add(at * gates),
            dproduct: row_mut(all.dproduct, at, gates),
        }
    }
}

/// The cell of a sequence, as a task of its own, so that there is one copy of it.
struct BackwardCells<'a, T> {
    kind: RecurrentCell,
    h: usize,
    units: Range<usize>,
    cell: &'a CellBackward<T>,
}

impl<T: BlockElement> BlockTask<T> for BackwardCells<'_, T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        // SAFETY: the caller's.
        unsafe { cells::backward::<V>(self.kind, self.h, self.units.clone(), self.cell) }
    }
}

impl<T: BlockElement> BackwardStages<'_, T> {
    /// Computes the gradients of gates of these sequences and units; `g` is the gradient of a sequence's state.
    ///
    /// # Safety
    /// As for `LayerStages::run`.
    #[inline(always)]
    unsafe fn cells<V: Lanes<T = T>>(&self, k: usize, rows: Range<usize>, units: Range<usize>, g: impl Fn(usize) -> *mut T) {
        let (start, r) = (self.rows(k).0, self.all.r);
        for i in rows {
            let cell = self.cell(k, i, start + i, g(i));
            // SAFETY: the caller's.
            unsafe { V::run(&BackwardCells { kind: r.cell, h: r.hidden, units: units.clone(), cell: &cell }) };
        }
    }
}

impl<T: BlockElement> LayerStages<T> for BackwardStages<'_, T> {
    fn stages(&self) -> usize {
        if self.projection.is_some() { 2 * self.steps.len() + 1 } else { self.steps.len() + 1 }
    }

    fn size(&self, stage: usize) -> (usize, usize) {
        match (self.steps.of_stage(stage), self.projection) {
            ((k, false), Some(projection)) => (self.rows(k).1, projection.width.panels()),
            ((k, _), _) => {
                let later = k.checked_sub(1).map_or(0, |k| self.rows(k).1);
                (self.rows(k).1.max(later), self.weights.width.panels())
            }
        }
    }

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(&self, piece: &LayerPiece<T>) {
        let BackwardStages { all, steps, .. } = self;
        let (r, first) = (all.r, self.sequences.0);
        let (h, p, gates) = (r.hidden, r.state, r.cell.gates() * r.hidden);
        let is_gru = r.cell == RecurrentCell::Gru;
        let (k, is_state) = steps.of_stage(piece.stage);
        let (start, active) = self.rows(k);
        let slope = |i: usize| all.d_first.wrapping_add((first + i) * p);
        let products = piece.products;
        // SAFETY: the caller's; rows and columns are those of this piece.
        unsafe {
            let now = piece.among(active);
            if let (Some(projection), false) = (self.projection, is_state) {
                let units = projection.columns(&piece.panels, h);
                if piece.is_part {
                    now.clone().for_each(|i| self.cell(k, i, start + i, null_mut()).prefetch(r.cell, h, &units));
                }
                projection.product::<V>((now.len(), slope(now.start), p), 0, &piece.panels, (products, 0));
                // The products of these columns, as if they were a whole row.
                let g = |i: usize| products.row(i - now.start).wrapping_sub(units.start);
                return self.cells::<V>(k, now.clone(), units.clone(), g);
            }
            let columns = self.weights.columns(&piece.panels, p);
            let state_before = |i: usize| {
                let row = steps.before(steps.step(k, true), first + i);
                row.map_or(all.first.wrapping_add((first + i) * p), |row| all.states.wrapping_add(row * p))
            };
            for panel in piece.panels.clone().filter(|_| piece.is_part) {
                let columns = self.weights.columns(&(panel..panel + 1), p);
                for i in now.clone() {
                    let at = (start + i) * p + columns.start;
                    prefetch(all.g.wrapping_add(at), columns.len());
                    prefetch(all.before.wrapping_add(at).cast_const(), columns.len());
                    prefetch(state_before(i).wrapping_add(columns.start), columns.len());
                    if self.projection.is_none() {
                        self.cell(k, i, start + i, slope(i)).prefetch(r.cell, h, &columns);
                    }
                }
            }
            let later = match k.checked_sub(1) {
                Some(k) => {
                    let (start, active) = self.rows(k);
                    let (from, rows) = (if is_gru { all.dproduct } else { all.dx }, piece.among(active));
                    let from = (rows.len(), from.add((start + rows.start) * gates).cast_const(), gates);
                    self.weights.product::<V>(from, 0, &piece.panels, (products, 0));
                    rows
                }
                None => 0..0,
            };
            for i in piece.rows.clone() {
                let product = products.row(i.saturating_sub(later.start)).cast_const();
                let at = start + i;
                for j in columns.clone().step_by(V::N) {
                    let n = columns.end - j;
                    let to = slope(i).add(j);
                    let mut slope = V::load_up_to(to, n);
                    if later.contains(&i) {
                        let new = V::load_up_to(product.add(j - columns.start), n);
                        // Of a GRU a part of the gradient passes by the product.
                        slope = if is_gru { new.plus(slope) } else { new };
                    }
                    if now.contains(&i) {
                        slope = slope.plus(V::load_up_to(all.g.add(at * p + j), n));
                        V::load_up_to(state_before(i).add(j), n).store_up_to(all.before.add(at * p + j), n);
                        if self.projection.is_some() {
                            slope.store_up_to(all.d_projected.add(at * p + j), n);
                        }
                    }
                    slope.store_up_to(to, n);
                }
            }
            if self.projection.is_none() {
                self.cells::<V>(k, now, columns, slope);
            }
        }
    }
}
