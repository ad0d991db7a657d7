//! Reads and writes at positions under vmap: the batch becomes one more dimension, or one more index.

use super::create::arange;
use super::index::Refs;
use crate::array::IndexPlan;
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{Tensor, ViewOp, primitives, view};
use crate::error::Result;
use crate::layout::{DType, Dims, Scalar};
use smallvec::{SmallVec, smallvec};

/// The plan with its dimensions shifted by a leading batch dimension.
pub(super) fn behind_batch(plan: &IndexPlan) -> IndexPlan {
    IndexPlan { dims: plan.dims.iter().map(|d| d + 1).collect(), at: plan.at + 1, bounds: plan.bounds }
}

/// Indices of which some have a batch dimension, and their plan.
pub(super) struct BatchedIndex {
    /// The batch is one more indexed dimension, and the index's own dimensions come first.
    pub plan: IndexPlan,
    pub index: SmallVec<[Tensor; 4]>,
    /// The rank of the index without the batch.
    rank: usize,
    /// How many dimensions of the result stand before the index's.
    at: usize,
}

impl BatchedIndex {
    pub fn new(plan: &IndexPlan, batch: &BatchedInputs<'_>, from: usize) -> Result<BatchedIndex> {
        let rank = batch.inputs[from..].iter().map(BatchedInput::rank).max().unwrap_or(0);
        let device = batch.inputs[from].tensor.device();
        let numbers =
            primitives::to_device(&arange(Scalar::Int(0), Scalar::Int(batch.size as i64), Scalar::Int(1), Some(DType::I64))?, device)?;
        let mut shape = Dims::from_elem(1, rank + 1);
        shape[0] = batch.size;
        let mut index: SmallVec<[Tensor; 4]> = smallvec![primitives::reshape(&numbers, &shape)?];
        for input in &batch.inputs[from..] {
            index.push(primitives::cast(&input.aligned(rank)?, DType::I64)?);
        }
        let dims = std::iter::once(0).chain(plan.dims.iter().map(|d| d + 1)).collect();
        Ok(BatchedIndex { plan: IndexPlan { dims, at: 0, bounds: plan.bounds }, index, rank, at: plan.at })
    }

    /// Moves the index's dimensions of a result to where the plan puts them.
    pub fn restore_index_dims(&self, t: &Tensor) -> Result<Tensor> {
        let order = self.order(t.rank());
        view(t, ViewOp::Permute(order))
    }

    /// The inverse of `restore_index_dims`.
    pub fn index_dims_first(&self, t: &Tensor) -> Result<Tensor> {
        let order = self.order(t.rank());
        let mut inverse = order.clone();
        for (i, d) in order.iter().enumerate() {
            inverse[*d] = i;
        }
        view(t, ViewOp::Permute(inverse))
    }

    fn order(&self, rank: usize) -> Dims {
        let (r, at) = (self.rank, self.at);
        let before = 1 + r..1 + r + at;
        std::iter::once(0).chain(before).chain(1..=r).chain(1 + r + at..rank).collect()
    }

    /// An operation's inputs: what is indexed (and what is written), then the indices.
    pub fn with<'a>(&'a self, first: &[&'a Tensor]) -> Refs<'a> {
        let mut inputs: Refs<'a> = first.iter().copied().collect();
        inputs.extend(&self.index);
        inputs
    }
}

/// Whether an index has a batch dimension.
pub(super) fn index_is_batched(batch: &BatchedInputs<'_>, from: usize) -> bool {
    batch.inputs[from..].iter().any(|l| l.batched)
}
