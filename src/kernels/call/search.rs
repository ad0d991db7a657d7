//! Where elements belong in sorted rows.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, numel, size};
use crate::layout::DType;

/// For each element of the second operand how many elements of the same row of the first one, which is sorted, come before it: less ones, and equal
/// ones, too, if `right`. Rows lie along the last dimension; the others are the same in both. What is neither less nor greater, since one of the two
/// is nan, comes before, too.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Search {
    pub right: bool,
}

impl Family for Search {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn elems(&self) -> Elems {
        Elems::ORDERED
    }

    fn provenance(&self) -> Provenance {
        Provenance::Selected
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((rows, d)), Some((x, e))], [Some((out, DType::I64))]) = (ins, outs) else { return false };
        let leading = |s: &[usize]| s.split_last().map(|(_, rest)| rest.to_vec());
        d == e && x == out && rows.len() == x.len() && leading(rows).is_some() && leading(rows) == leading(x)
    }

    /// The steps of bisection.
    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        let [Some((rows, _)), ..] = ins else { return 0 };
        let steps = usize::BITS - size(rows, rows.len().saturating_sub(1)).leading_zeros();
        outs.iter().flatten().map(|(shape, _)| numel(shape) as u64).sum::<u64>().saturating_mul(u64::from(steps) + 1)
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
        vec![Search { right: false }]
    }
}
