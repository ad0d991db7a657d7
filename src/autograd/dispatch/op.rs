//! What an operation is: its forward on arrays, the derivative that a node runs, what it saves, and its rules for batches and tangents.

use crate::array::Array;
use crate::autograd::dispatch::apply::inplace_shape;
use crate::autograd::graph::node::NodeOp;
use crate::autograd::graph::view::{ViewName, ViewOp};
use crate::autograd::graph::vjp::Vjp;
use crate::autograd::tensor::Tensor;
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::transforms::forward_mode::{Jvp, Tangent, Tangents};
use crate::error::Result;
use smallvec::SmallVec;

pub type Arrays = SmallVec<[Array; 1]>;
pub type Outputs = SmallVec<[Tensor; 1]>;

/// What a vjp reads: bit i stands for input i, bit `FIRST_OUTPUT` + j for output j.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saves(u32);

impl Saves {
    pub const NOTHING: Saves = Saves(0);
    /// The bit of output 0, and how many inputs can be named.
    pub const FIRST_OUTPUT: usize = 28;
    /// How many inputs an operation may save. Operations that take more must refuse them.
    pub const INPUTS: usize = Saves::FIRST_OUTPUT;
    pub const OUTPUTS: usize = u32::BITS as usize - Saves::FIRST_OUTPUT;

    /// # Panics
    /// There is no such input. In a constant this is a compile error.
    #[must_use]
    #[inline]
    pub const fn input(self, i: usize) -> Saves {
        assert!(i < Saves::INPUTS, "an operation saves an input beyond those that a node can name");
        Saves(self.0 | 1 << i)
    }

    /// # Panics
    /// As for `input`.
    #[must_use]
    #[inline]
    pub const fn output(self, j: usize) -> Saves {
        assert!(j < Saves::OUTPUTS, "an operation saves an output beyond those that a node can name");
        Saves(self.0 | 1 << (Saves::FIRST_OUTPUT + j))
    }

    /// The mask of a pointwise row: a bit for each operand that its derivative reads, and whether it reads the result.
    #[inline]
    pub const fn of_row(operands: u8, output: bool) -> Saves {
        const { assert!(u8::BITS as usize <= Saves::INPUTS) };
        Saves(operands as u32 | (output as u32) << Saves::FIRST_OUTPUT)
    }

    /// The position in a node's list of saved tensors that belongs to `bit`.
    #[inline]
    pub const fn position(self, bit: usize) -> usize {
        (self.0 & ((1u32 << bit) - 1)).count_ones() as usize
    }

    #[inline]
    pub const fn has(self, bit: usize) -> bool {
        bit < u32::BITS as usize && self.0 >> bit & 1 == 1
    }
}

/// On which devices an operation's inputs may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// All on one device. A 0-d input on the CPU is copied to it.
    Same,
    /// As `Same`, but the operation itself reads 0-d inputs from the CPU.
    Numbers,
    /// Anywhere.
    Any,
}

/// An operation: its forward on arrays, beside the vjp that its node will run. The defaults describe the common case: all inputs on one device,
/// no pending inputs, nothing saved, the tangent by transposing the vjp, no batching rule.
pub trait Op: Vjp + OpForm {
    fn name(&self) -> &'static str;

    fn forward(&self, inputs: &[&Array]) -> Result<Arrays>;

    /// Which inputs may be on another device than the others.
    fn devices(&self) -> Devices {
        Devices::Same
    }

    /// Whether the forward accepts inputs (and, in place, a target) whose values are pending. Otherwise dispatch computes them first.
    fn accepts_pending(&self) -> bool {
        false
    }

    /// Whether a write in place gives every element the same value, so that a target whose elements share memory is well defined.
    fn writes_one_value(&self) -> bool {
        false
    }

    /// Writes the first result into `out`, which is also the first input. Override it to avoid the temporary.
    fn forward_into(&self, out: &Array, inputs: &[&Array]) -> Result<()> {
        let made = self.forward(inputs)?;
        if made[0].shape() != out.shape() {
            return Err(inplace_shape(out.shape(), made[0].shape()));
        }
        out.copy_from(&made[0])
    }

    /// About how many elements or products the forward processes. From `language::LARGE` on it runs without the host's lock.
    fn work(&self, inputs: &[&Array]) -> usize {
        inputs.iter().map(|a| a.numel()).sum()
    }

    /// Whether results may have more elements than the product of the inputs' sizes. `work` counts them then.
    fn grows(&self) -> bool {
        false
    }

    /// The floating point operations of the forward, where the shapes of inputs and outputs do not tell them; else 0. For the profiler.
    fn flops(&self) -> u64 {
        0
    }

    /// What the vjp reads, if these inputs need a gradient.
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING
    }

    /// Whether an output is differentiable (indices are not).
    fn differentiable(&self, _output: usize) -> bool {
        true
    }

    /// Whether it converts to another dtype. A cast to a dtype without gradients ends the path of the gradient.
    fn is_cast(&self) -> bool {
        false
    }

    /// Whether it is recorded even if all inputs are inference tensors: its result is a copy, which is a normal tensor.
    fn copies(&self) -> bool {
        self.is_cast()
    }

    /// The view operation that this is, with its node's name. None: the result has memory of its own.
    fn view(&self) -> Option<(&ViewOp, Option<ViewName>)> {
        None
    }

    /// Whether `forward` calls operations on tensors. Then no tensor is locked while it runs.
    fn is_composed(&self) -> bool {
        false
    }

    /// Whether each element of the result depends only on the elements at the same position of the (broadcast) inputs.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// The operation on inputs that all have a leading batch dimension of this size, as have all results: usually the same operation with its
    /// dimensions shifted by one. None: there is no such operation.
    fn shifted(&self, _batch: usize) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The batching rule: the operation on inputs of which some have a leading batch dimension. All results have one. None: there is no rule, and
    /// the operation runs on each element of the batch.
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        self.batch_shifted(batch)
    }

    /// How the tangents of the results follow from those of the inputs.
    fn tangent(&self) -> Tangent {
        Tangent::General
    }

    /// The tangents of the results (None: zero), for operations that no variant of `Tangent` describes.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        cx.of_kind(self.tangent())
    }
}

/// What dispatch needs of a `dyn Op`.
pub trait OpForm {
    /// The operation in the form that a node holds.
    fn node_op(&self) -> NodeOp;

    /// The batching rule that follows from `Op::shifted`: every input gets a batch dimension.
    fn batch_shifted(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>>;
}

impl<T: Op + Clone> OpForm for T {
    #[inline]
    fn node_op(&self) -> NodeOp {
        self.clone().into_node()
    }

    fn batch_shifted(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        self.shifted(batch.size).map(|op| batch.shifted(&op))
    }
}
