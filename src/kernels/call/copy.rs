//! Copies, which convert.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};

/// The operand, converted to the output's dtype.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Copying;

impl Family for Copying {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Moved
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some((x, _))], [Some((o, _))]) if x == o)
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
        vec![Copying]
    }
}
