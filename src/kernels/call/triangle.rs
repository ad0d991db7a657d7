//! Triangles of matrices.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};

/// The upper or lower triangle of each matrix in the last two dimensions of the operand, zero elsewhere. The output has the operand's shape
/// and dtype, and may be the operand.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Triangle {
    pub diagonal: i64,
    pub upper: bool,
}

impl Family for Triangle {
    fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Moved
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some(x)], [Some(o)]) if x == o && o.0.len() >= 2)
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
        vec![Triangle { diagonal: 0, upper: true }]
    }
}
