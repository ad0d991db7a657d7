//! Softmax and its logarithm.

/// Along `dim`. Forward: one operand, x. Backward: the gradient, and the forward pass's output. All are floats of one shape and dtype; the
/// output is row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Softmax {
    pub pass: SoftmaxPass,
    pub dim: usize,
}

/// Which function, and which pass of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SoftmaxPass {
    pub log: bool,
    pub backward: bool,
}

impl Softmax {
    pub fn name(&self) -> &'static str {
        if self.pass.log { "log_softmax" } else { "softmax" }
    }
}
