//! The positions of the largest or smallest elements.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, is_one_of_each};
use crate::layout::DType;

/// The largest elements (or the smallest) along a dimension that is not empty, and where each stands first. Two row-major outputs: values of
/// the operand's dtype, and int64.
#[derive(Debug, Clone, Hash)]
pub struct ArgReduce {
    pub max: bool,
    pub dim: usize,
}

impl Family for ArgReduce {
    fn name(&self) -> &'static str {
        if self.max { "max" } else { "min" }
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

    fn reads(&self, k: usize) -> Reads {
        if k == 0 { Reads::InOrder } else { Reads::InMemory }
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        vec![ArgReduce { max: true, dim: 0 }]
    }
}
