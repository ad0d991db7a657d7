//! The largest or smallest element so far.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, has_dim};
use crate::layout::DType;

/// The largest (or smallest) element so far and where it stands, the last of equals. Two outputs of the operand's shape: values of its
/// dtype, and int64.
#[derive(Debug, Clone, Hash)]
pub struct CumulativeExtreme {
    pub max: bool,
    pub dim: usize,
}

impl Family for CumulativeExtreme {
    fn name(&self) -> &'static str {
        if self.max { "cummax" } else { "cummin" }
    }

    fn elems(&self) -> Elems {
        Elems::ORDERED
    }

    fn provenance(&self) -> Provenance {
        Provenance::Selected
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some((x, d))], [Some((v, dv)), Some((p, DType::I64))]) if has_dim(x, self.dim) && d == dv && x == v && x == p)
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
        vec![CumulativeExtreme { max: true, dim: 0 }]
    }
}
