//! Recurrent layers: all steps of one layer in one direction. `layers` divides the work among threads, `forward` and `backward` are its
//! stages, and `cells` computes the gates.
//!
//! Not here: products of the inputs, gradients of weights (products over all steps, in `ops`).

pub(super) mod compute;
mod backward;
mod cells;
mod forward;
mod layers;
#[cfg(test)]
mod tests;

use crate::call::Recurrent;

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

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn sequences(&self) -> usize {
        self.r.batches.first().copied().unwrap_or(0)
    }

    /// Step number `k` in the order of the layer, or, `back`, in the opposite one.
    fn step(&self, k: usize, back: bool) -> usize {
        if self.r.reverse == back { k } else { self.len() - 1 - k }
    }

    /// The number of a stage's step, and whether it is the first stage of that step: of two where states are projected.
    fn of_stage(&self, stage: usize) -> (usize, bool) {
        if self.r.cell.is_projected() { (stage / 2, stage.is_multiple_of(2)) } else { (stage, true) }
    }

    /// The first row of step number `k` that is one of `count` sequences from `first` on, and how many of them have the step: none beyond the
    /// last one.
    fn rows(&self, k: usize, back: bool, (first, count): (usize, usize)) -> (usize, usize) {
        if k >= self.len() {
            return (0, 0);
        }
        let step = self.step(k, back);
        (self.starts[step] + first, self.r.batches[step].saturating_sub(first).min(count))
    }

    /// The row from which the state before this step comes, for one sequence; None: it is the first state.
    fn before(&self, step: usize, sequence: usize) -> Option<usize> {
        let at = if self.r.reverse { step + 1 } else { step.checked_sub(1)? };
        (*self.r.batches.get(at)? > sequence).then(|| self.starts[at] + sequence)
    }
}

/// Row `row` of a matrix that a cell may lack.
fn row<T>(of: *const T, row: usize, width: usize) -> *const T {
    if of.is_null() { of } else { of.wrapping_add(row * width) }
}

fn row_mut<T>(of: *mut T, row: usize, width: usize) -> *mut T {
    if of.is_null() { of } else { of.wrapping_add(row * width) }
}

pub(super) use backward::RecurrentBackward;
pub(super) use forward::RecurrentForward;
