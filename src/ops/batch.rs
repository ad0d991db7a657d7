//! The level of `vmap`: its tensors have a hidden first dimension, the batch.

use super::join;
use crate::autograd::dispatch::mode;
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::transforms::level::{self, Level, wrap};
use crate::autograd::transforms::mutation_guard::TrustedWrites;
use crate::autograd::transforms::slow_paths::{self, SlowPath};
use crate::autograd::{OldValue, Op, Outputs, Tensor, ViewOp, apply, apply_inplace, primitives, view};
use crate::error::{Error, Result};
use crate::layout::{Dims, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What random operations do inside the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Randomness {
    Refuse,
    /// Refused where nobody could have said how: in a pass over a batch of gradients.
    Unsupported,
    /// The same numbers for every element of the batch.
    Same,
    /// Other numbers for every element.
    Different,
}

#[derive(Debug)]
pub struct BatchLevel {
    number: u32,
    size: usize,
    pub randomness: Randomness,
    alive: AtomicBool,
}

impl BatchLevel {
    pub fn new(number: u32, size: usize, randomness: Randomness) -> BatchLevel {
        BatchLevel { number, size, randomness, alive: AtomicBool::new(true) }
    }

    fn inputs_below(&self, name: &str, inputs: &[&Tensor]) -> Result<SmallVec<[BatchedInput; 3]>> {
        if !self.is_alive() {
            return Err(Error::runtime(format!(
                "{name}: a batched tensor (level {}) may have escaped from inside a function being vmapped. This is a user error: return it from \
                 the function instead.",
                self.number
            )));
        }
        Ok(inputs
            .iter()
            .map(|t| match t.below(self) {
                Some(tensor) => BatchedInput { tensor, batched: true },
                None => BatchedInput { tensor: (*t).clone(), batched: false },
            })
            .collect())
    }
}

/// Applies an operation to inputs of which at least one has a batch dimension. All results have one.
fn on_batch(op: &dyn Op, batch: &BatchedInputs<'_>) -> Result<Outputs> {
    if op.is_elementwise() {
        let aligned = batch.aligned()?;
        let refs: SmallVec<[&Tensor; 3]> = aligned.iter().collect();
        return apply(op, &refs);
    }
    match op.batch(batch) {
        Some(done) => done,
        None => one_by_one(op, batch),
    }
}

/// The slow path without a batching rule: runs the operation on each element of the batch, and stacks the results.
fn one_by_one(op: &dyn Op, batch: &BatchedInputs<'_>) -> Result<Outputs> {
    slow_paths::record(SlowPath::Loop, op.name());
    let mut columns: SmallVec<[Vec<Tensor>; 2]> = SmallVec::new();
    for k in 0..batch.size.max(1) {
        let one = |l: &BatchedInput| match l.batched {
            false => Ok(l.tensor.clone()),
            // For an empty batch, zeros determine the shapes.
            true if batch.size == 0 => Ok(Tensor::new(l.tensor.memory().full_beside(&l.shape(), Scalar::Int(0), l.tensor.dtype())?)),
            true => view(&l.tensor, ViewOp::Select(0, k)),
        };
        let ins: SmallVec<[Tensor; 3]> = batch.inputs.iter().map(one).collect::<Result<_>>()?;
        let refs: SmallVec<[&Tensor; 3]> = ins.iter().collect();
        for (j, out) in apply(op, &refs)?.into_iter().enumerate() {
            if columns.len() == j {
                columns.push(Vec::with_capacity(batch.size));
            }
            columns[j].push(out);
        }
    }
    columns
        .into_iter()
        .map(|column| {
            if let Some(odd) = column.iter().find(|t| t.shape() != column[0].shape()) {
                return Err(Error::runtime(format!(
                    "vmap: {} gave results of different shapes for elements of the batch ({:?} and {:?}): operations whose shapes depend on \
                     values are not supported under vmap",
                    op.name(),
                    &column[0].shape()[..],
                    &odd.shape()[..]
                )));
            }
            let all = join::stack(&column, 0)?;
            if batch.size == 0 { view(&all, ViewOp::Slice { dim: 0, start: 0, end: 0, step: 1 }) } else { Ok(all) }
        })
        .collect()
}

impl Level for BatchLevel {
    fn number(&self) -> u32 {
        self.number
    }

    fn apply(&self, this: &Arc<dyn Level>, op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs> {
        let inputs = self.inputs_below(op.name(), inputs)?;
        let outs = on_batch(op, &BatchedInputs { size: self.size, inputs: &inputs })?;
        Ok(outs.into_iter().map(|t| wrap(this, t)).collect())
    }

    fn apply_inplace(&self, _this: &Arc<dyn Level>, op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue) -> Result<()> {
        let inputs = self.inputs_below(label, inputs)?;
        let _trusted = TrustedWrites::new();
        let batch = BatchedInputs { size: self.size, inputs: &inputs };
        if !inputs[0].batched {
            return Err(Error::runtime(format!(
                "vmap: {label}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements \
                 than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use \
                 out-of-place operators instead of {label}. If said operator is being called inside the function, make `self` batched first: \
                 x.new_zeros(...) instead of zeros(...)."
            )));
        }
        if op.is_elementwise() {
            let aligned = batch.aligned()?;
            let rank = inputs.iter().map(BatchedInput::rank).max().unwrap_or(0);
            if inputs[0].rank() == rank {
                let refs: SmallVec<[&Tensor; 3]> = aligned.iter().collect();
                return apply_inplace(op, label, &refs, old);
            }
        }
        let target = &inputs[0].tensor;
        let made = {
            let reads = |i: usize| op.saves(&SmallVec::<[bool; 4]>::from_elem(true, inputs.len())).has(i);
            let mut before: SmallVec<[BatchedInput; 3]> = SmallVec::new();
            for (i, l) in inputs.iter().enumerate() {
                let tensor = match i {
                    // The target's old value is saved as a copy.
                    0 if reads(0) && mode::is_grad_enabled() && target.requires_grad() => primitives::clone(target)?,
                    _ => l.tensor.before_write_to(target)?,
                };
                before.push(BatchedInput { tensor, batched: l.batched });
            }
            on_batch(op, &BatchedInputs { size: self.size, inputs: &before })?.swap_remove(0)
        };
        if made.shape() != target.shape() {
            return Err(crate::autograd::inplace_shape(&inputs[0].shape(), &made.shape()[1..]));
        }
        primitives::copy_(target, &made)
    }

    fn batch(&self) -> Option<usize> {
        Some(self.size)
    }

    fn beside(&self, this: &Arc<dyn Level>, made: Tensor) -> Result<Tensor> {
        let mut shape = Dims::from_slice(&[self.size]);
        shape.extend(made.shape());
        Ok(wrap(this, primitives::contiguous_copy(&view(&made, ViewOp::Expand(shape))?)?))
    }

    fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The batch levels that this thread is inside of, outermost first.
fn open() -> Vec<(Arc<dyn Level>, Randomness)> {
    (1..=level::depth())
        .filter_map(level::open)
        .filter_map(|l| {
            let how = l.as_any().downcast_ref::<BatchLevel>()?.randomness;
            Some((l, how))
        })
        .collect()
}

/// Refuses random numbers inside a `vmap` without a randomness option.
pub fn check_random() -> Result<()> {
    if level::depth() == 0 {
        return Ok(());
    }
    let open = open();
    if open.iter().any(|(_, how)| *how == Randomness::Unsupported) {
        return Err(Error::runtime(
            "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside of vmap as a \
             workaround",
        ));
    }
    if open.iter().any(|(_, how)| *how == Randomness::Refuse) {
        return Err(Error::runtime(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on \
             vmap or perform the randomness operation out of vmap",
        ));
    }
    Ok(())
}

/// Checks that random numbers for `t` can be drawn under the randomness options of the `vmap` levels.
pub fn check_random_beside(t: &Tensor, in_place: bool) -> Result<()> {
    if level::depth() == 0 {
        return Ok(());
    }
    check_random()?;
    for (level, how) in open() {
        if how == Randomness::Same && !in_place && t.is_of(&level) {
            return Err(Error::runtime(
                "Vmap does not currently support same randomness with a batched tensor input. Use randomness='different', or draw numbers of the \
                 input's shape with rand() and compare",
            ));
        }
        if how == Randomness::Different && in_place && !t.is_of(&level) {
            return Err(Error::runtime(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. Use an \
                 operation that makes a new tensor, or a tensor made beside a batched one (x.new_zeros(...))",
            ));
        }
    }
    Ok(())
}

/// Random numbers of a shape; each element of a batch gets its own if the level's option is `Different`.
pub fn random(shape: &[usize], draw: impl FnOnce(&[usize]) -> Result<Tensor>) -> Result<Tensor> {
    check_random()?;
    let levels: Vec<_> = open().into_iter().filter(|(_, how)| *how == Randomness::Different).map(|(l, _)| l).collect();
    let mut all: Dims = levels.iter().filter_map(|l| l.batch()).collect();
    all.extend_from_slice(shape);
    Ok(levels.iter().fold(draw(&all)?, |t, l| wrap(l, t)))
}
