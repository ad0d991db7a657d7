//! Which elements are not zero.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};

/// The positions of elements that are not zero: a result whose size depends on values (see `Backend::count`).
#[derive(Debug, Clone, Copy, Hash)]
pub struct Nonzero;

impl Family for Nonzero {
    fn name(&self) -> &'static str {
        "nonzero"
    }

    fn elems(&self) -> Elems {
        Elems::ALL
    }

    fn provenance(&self) -> Provenance {
        Provenance::Selected
    }

    fn accepts(&self, _ins: &[Seen<'_>], _outs: &[Seen<'_>]) -> bool {
        // It has no output whose shape is known before.
        false
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
        vec![Nonzero]
    }
}
