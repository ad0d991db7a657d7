//! What an operation is: its forward on arrays, the derivative that a node runs, what it saves, and its rules for batches and tangents.

use crate::array::Array;
use crate::autograd::dispatch::apply::inplace_shape;
use crate::autograd::graph::node::{NodeOp, Vjp};
use crate::autograd::graph::view::{ViewName, ViewOp};
use crate::autograd::tensor::Tensor;
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::transforms::forward_mode::{Jvp, Tangent, Tangents};
use crate::error::Result;
use smallvec::SmallVec;

pub type Arrays = SmallVec<[Array; 1]>;
pub type Outputs = SmallVec<[Tensor; 1]>;

/// What a vjp reads: bit i for input i, bit `FIRST_OUTPUT` + j for output j.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saves(u32);

impl Saves {
    pub const NOTHING: Saves = Saves(0);
    /// The bit of output 0, and how many inputs can be named.
    pub const FIRST_OUTPUT: usize = 28;
    /// How many inputs an operation may save; who takes more refuses them.
    pub const INPUTS: usize = Saves::FIRST_OUTPUT;
    pub const OUTPUTS: usize = u32::BITS as usize - Saves::FIRST_OUTPUT;

    /// # Panics
    /// There is no such input; of a constant that is found when it is compiled.
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

    /// What a row's derivative reads: a bit for each operand, and whether it reads the result.
    #[inline]
    pub const fn of_row(operands: u8, output: bool) -> Saves {
        const { assert!(u8::BITS as usize <= Saves::INPUTS) };
        Saves(operands as u32 | (output as u32) << Saves::FIRST_OUTPUT)
    }

    /// The place in a node's list of saved tensors where the value of `bit` lies.
    #[inline]
    pub const fn place(self, bit: usize) -> usize {
        (self.0 & ((1u32 << bit) - 1)).count_ones() as usize
    }

    #[inline]
    pub const fn has(self, bit: usize) -> bool {
        bit < u32::BITS as usize && self.0 >> bit & 1 == 1
    }
}

/// Where an operation's inputs may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// All on one device; a 0-d input on the CPU is brought there.
    Same,
    /// As `Same`, but the operation takes 0-d inputs from the CPU itself.
    Numbers,
    /// Anywhere.
    Any,
}

/// An operation: its forward on arrays, beside the vjp that a node will run. Where it says nothing, it has the common properties: inputs on
/// one device, values that are there, nothing saved, a tangent by transposing the vjp, no batching rule.
pub trait Op: Vjp + OpForm {
    fn name(&self) -> &'static str;

    fn forward(&self, inputs: &[&Array]) -> Result<Arrays>;

    /// Which inputs may lie on another device than the rest.
    fn devices(&self) -> Devices {
        Devices::Same
    }

    /// Whether the forward knows what to do with inputs (and, in place, with a target) whose values are pending; others get them computed.
    fn accepts_pending(&self) -> bool {
        false
    }

    /// Writes the first result into `out`, which is the first input itself. An operation that can do without a temporary says how.
    fn forward_into(&self, out: &Array, inputs: &[&Array]) -> Result<()> {
        let made = self.forward(inputs)?;
        if made[0].shape() != out.shape() {
            return Err(inplace_shape(out.shape(), made[0].shape()));
        }
        out.copy_from(&made[0])
    }

    /// About how many elements or products the forward goes over. From `host::LARGE` on it runs without the host's lock.
    fn work(&self, inputs: &[&Array]) -> usize {
        inputs.iter().map(|a| a.numel()).sum()
    }

    /// What the vjp reads, given which inputs need a gradient.
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING
    }

    /// Whether an output has a gradient at all (indices have none).
    fn differentiable(&self, _output: usize) -> bool {
        true
    }

    /// Whether it converts to another type: where that has no gradients the path ends.
    fn is_cast(&self) -> bool {
        false
    }

    /// The view that the operation is, with the name its node bears; None where it makes something new.
    fn view(&self) -> Option<(&ViewOp, Option<ViewName>)> {
        None
    }

    /// Whether `forward` runs operations on tensors. No tensor is locked then.
    fn is_composed(&self) -> bool {
        false
    }

    /// Whether each element of the result depends on the elements in the same place of the inputs, broadcast, and on nothing else.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// The operation on inputs that all have a batch dimension of this size in front, which all results then have: mostly the same with its
    /// dimensions shifted by one. None: there is no such operation.
    fn shifted(&self, _batch: usize) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The batching rule: the operation on inputs of which some have a batch dimension in front, which all results then have. None: it has
    /// no rule, and runs on each element of the batch.
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        self.batch_shifted(batch)
    }

    /// How the tangents of the results come from those of the inputs.
    fn tangent(&self) -> Tangent {
        Tangent::General
    }

    /// The tangents of the results (None: zero), of an operation for which `tangent` has no word.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        cx.of_kind(self.tangent())
    }
}

/// What every operation has, in the forms in which `dyn Op` needs it.
pub trait OpForm {
    /// The operation as a node keeps it.
    fn node_op(&self) -> NodeOp;

    /// The batching rule that `Op::shifted` gives: all inputs get a batch dimension.
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
