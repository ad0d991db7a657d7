//! The most frequent element.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, is_one_of_each};
use crate::layout::DType;

/// The most frequent element along a dimension that is not empty, and where it stands last. Outputs as for `ArgReduce`.
#[derive(Debug, Clone, Hash)]
pub struct Mode {
    pub dim: usize,
}

impl Family for Mode {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn elems(&self) -> Elems {
        Elems::ORDERED
    }

    fn provenance(&self) -> Provenance {
        Provenance::Selected
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some(x)], [Some(v), Some((p, DType::I64))]) if is_one_of_each(*x, self.dim, *v, p))
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        2
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        vec![Mode { dim: 0 }]
    }
}
