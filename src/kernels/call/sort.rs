//! Sorting.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, has_dim, is_with_size, size};
use crate::layout::DType;

/// The first `keep` elements of each sorted row (nan is larger than everything), stably, and where each came from. Two row-major outputs
/// with `keep` elements along `dim`: values of the operand's dtype, and int64.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Sort {
    pub dim: usize,
    pub descending: bool,
    pub keep: usize,
}

impl Family for Sort {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn elems(&self) -> Elems {
        Elems::ORDERED
    }

    fn provenance(&self) -> Provenance {
        Provenance::Selected
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((x, d))], [Some((v, dv)), Some((p, DType::I64))]) = (ins, outs) else { return false };
        let fits = v.len() == x.len() && (x.is_empty() || is_with_size(v, x, self.dim, self.keep));
        has_dim(x, self.dim) && self.keep <= size(x, self.dim) && d == dv && v == p && fits
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
        vec![Sort { dim: 0, descending: false, keep: 1 }]
    }
}
