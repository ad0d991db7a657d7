//! Recurrent layers: all steps of one layer in one direction. A task has some sequences and goes through all steps, so tasks need not wait
//! for each other at each step. Weights are packed once.
//!
//! `cells` computes the gates. Not here: products of the inputs, gradients of weights (products over all steps, in `ops`).

mod backward;
mod cells;
mod forward;

use super::blocks::tile::{BlockProduct, PanelWidth};
use crate::backend::requests::Recurrent;

/// Sequences of a task: more of them read the weights, which are hardly in a cache, more rarely.
fn together(sequences: usize) -> usize {
    if sequences < 32 { 8 } else { 16 }
}

/// What both passes know of a layer.
struct RecurrentSteps<'a> {
    r: &'a Recurrent,
    /// The first row of each step.
    starts: Vec<usize>,
}

impl RecurrentSteps<'_> {
    fn new(r: &Recurrent) -> RecurrentSteps<'_> {
        let mut starts = Vec::with_capacity(r.batches.len());
        let mut next = 0;
        for n in &r.batches {
            starts.push(next);
            next += n;
        }
        RecurrentSteps { r, starts }
    }

    fn sequences(&self) -> usize {
        self.r.batches.first().copied().unwrap_or(0)
    }

    /// Step number `k` in the order of the layer, or, `back`, in the opposite one.
    fn step(&self, k: usize, back: bool) -> usize {
        if self.r.reverse == back { k } else { self.r.batches.len() - 1 - k }
    }

    /// How many of the sequences from `first` on, at most `count`, have this step.
    fn active(&self, step: usize, first: usize, count: usize) -> usize {
        self.r.batches[step].saturating_sub(first).min(count)
    }

    /// The row from which the state before this step comes, for one sequence; None: it is the first state.
    fn before(&self, step: usize, sequence: usize) -> Option<usize> {
        let at = if self.r.reverse { step + 1 } else { step.checked_sub(1)? };
        (*self.r.batches.get(at)? > sequence).then(|| self.starts[at] + sequence)
    }
}

/// A product of rows with packed weights.
fn product<T>(rows: usize, k: usize, a: (*const T, usize), weights: (*const T, PanelWidth), c: *mut T) -> BlockProduct<T> {
    let (b, width) = weights;
    BlockProduct {
        m: rows,
        k,
        a: a.0,
        a_step: a.1,
        transposed: false,
        b,
        b_step: k * width.columns,
        panels: width.panels(),
        wide: width.wide,
        c,
        c_step: width.padded,
        add: false,
    }
}

pub(super) use backward::RecurrentBackward;
pub(super) use forward::RecurrentForward;
