//! Reads and writes along one dimension, at positions that an index gives for each element: `out[.., j, ..] = x[.., index[.., j, ..], ..]` and
//! `out[.., index[.., j, ..], ..] = x[.., j, ..]`.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, has_dim, size};
use super::index::Write;
use crate::layout::DType;

/// Whether an index is no larger than what it reads or writes, `dim` apart.
fn covers(shape: &[usize], index: &[usize], dim: Option<usize>) -> bool {
    let ranks = shape.len() == index.len() || shape.is_empty() && index.len() == 1;
    ranks && (0..index.len()).all(|d| Some(d) == dim || index[d] <= size(shape, d)) && dim.is_none_or(|d| has_dim(index, d))
}

/// Along one dimension. The index is no larger than the array that it reads or writes, `dim` apart; 0-d counts as 1-d.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Along {
    pub dim: usize,
}

/// As `Along`, for a write. The values have at least the index's shape, or are 0-d: one value for all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScatterAlong {
    pub dim: usize,
    pub how: Write,
}

impl Family for Along {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Moved
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some((x, d)), Some((i, DType::I64))], [Some((o, to))]) if covers(x, i, Some(self.dim)) && i == o && d == to)
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        vec![Along { dim: 0 }]
    }
}

impl Family for ScatterAlong {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        self.how.provenance()
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some((v, _)), Some((i, DType::I64))], [Some((o, _))])
            if covers(o, i, Some(self.dim)) && (v.is_empty() || covers(v, i, None)))
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        vec![ScatterAlong { dim: 0, how: Write::Set }]
    }
}
