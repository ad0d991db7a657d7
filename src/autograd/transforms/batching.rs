//! The inputs of a batching rule, of which some have a leading batch dimension.

use crate::autograd::dispatch::apply::apply;
use crate::autograd::dispatch::op::{Op, Outputs};
use crate::autograd::graph::view::{ViewOp, view};
use crate::autograd::primitives;
use crate::autograd::tensor::Tensor;
use crate::error::Result;
use crate::layout::Dims;
use smallvec::SmallVec;

/// An input of a batching rule: a tensor of the level below.
#[derive(Clone)]
pub struct BatchedInput {
    pub tensor: Tensor,
    /// Whether the first dimension is the batch dimension. Otherwise the tensor is the same for every element of the batch.
    pub batched: bool,
}

impl BatchedInput {
    /// The rank without the batch dimension.
    pub fn rank(&self) -> usize {
        self.tensor.rank() - usize::from(self.batched)
    }

    /// The shape without the batch dimension.
    pub fn shape(&self) -> Dims {
        let s = self.tensor.shape();
        Dims::from_slice(&s[usize::from(self.batched)..])
    }

    /// The tensor with sizes of 1 inserted after the batch dimension until it has `rank` other dimensions.
    pub fn aligned(&self, rank: usize) -> Result<Tensor> {
        if !self.batched || self.rank() >= rank {
            return Ok(self.tensor.clone());
        }
        let mut t = self.tensor.clone();
        for _ in self.rank()..rank {
            t = view(&t, ViewOp::Unsqueeze(1))?;
        }
        Ok(t)
    }
}

/// A shape with a leading batch dimension of this size.
pub fn with_batch(batch: usize, shape: &[usize]) -> Dims {
    let mut out = Dims::from_slice(&[batch]);
    out.extend_from_slice(shape);
    out
}

/// The inputs of an operation, as its batching rule gets them.
pub struct BatchedInputs<'a> {
    /// How many elements the batch has.
    pub size: usize,
    pub inputs: &'a [BatchedInput],
}

impl BatchedInputs<'_> {
    /// Input `i` with a leading batch dimension, expanded without a copy if it had none.
    pub fn batched(&self, i: usize) -> Result<Tensor> {
        let input = &self.inputs[i];
        if input.batched {
            return Ok(input.tensor.clone());
        }
        view(&input.tensor, ViewOp::Expand(self.with_batch(&input.tensor.shape())))
    }

    /// All inputs, each with a batch dimension.
    pub fn all_batched(&self) -> Result<SmallVec<[Tensor; 3]>> {
        (0..self.inputs.len()).map(|i| self.batched(i)).collect()
    }

    /// A shape with the leading batch dimension.
    pub fn with_batch(&self, shape: &[usize]) -> Dims {
        with_batch(self.size, shape)
    }

    /// Runs `op`, the operation with its dimensions shifted by one, on all inputs, each with a batch dimension.
    pub fn shifted(&self, op: &dyn Op) -> Result<Outputs> {
        let all = self.all_batched()?;
        let refs: SmallVec<[&Tensor; 3]> = all.iter().collect();
        apply(op, &refs)
    }

    /// Runs `op` on a batch of 0-d inputs, each as a row of one element. The results are 0-d elements again.
    pub fn rows_of_numbers(&self, op: &dyn Op) -> Result<Outputs> {
        let rows: SmallVec<[Tensor; 3]> =
            (0..self.inputs.len()).map(|i| view(&self.batched(i)?, ViewOp::Unsqueeze(1))).collect::<Result<_>>()?;
        let refs: SmallVec<[&Tensor; 3]> = rows.iter().collect();
        apply(op, &refs)?.into_iter().map(|t| primitives::reshape(&t, &[self.size])).collect()
    }

    /// Inputs aligned from the right, for an operation that works element by element and broadcasts.
    pub fn aligned(&self) -> Result<SmallVec<[Tensor; 3]>> {
        let rank = self.inputs.iter().map(BatchedInput::rank).max().unwrap_or(0);
        self.inputs.iter().map(|l| l.aligned(rank)).collect()
    }
}
