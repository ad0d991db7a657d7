//! Softmax and its logarithm.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, has_dim};

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

impl Family for Softmax {
    fn name(&self) -> &'static str {
        if self.pass.log { "log_softmax" } else { "softmax" }
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let [Some((o, d))] = outs else { return false };
        let alike = ins.iter().all(|x| *x == Some((*o, *d)));
        d.is_float() && has_dim(o, self.dim) && ins.len() == 1 + usize::from(self.pass.backward) && alike
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, k: usize) -> Reads {
        if k == 0 { Reads::InOrder } else { Reads::InMemory }
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        [false, true].map(|log| Softmax { pass: SoftmaxPass { log, backward: false }, dim: 0 }).into()
    }
}
