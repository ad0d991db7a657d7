//! One value everywhere.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::Scalar;

/// The output is filled with the value, converted to its dtype. No operand.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Fill(pub Scalar);

impl Family for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([], [Some(_)]))
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
        vec![Fill(Scalar::Int(0))]
    }
}
