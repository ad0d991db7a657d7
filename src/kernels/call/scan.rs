//! Scans: each element is replaced by the accumulation of all elements up to it.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, has_dim};
use super::summed;

/// What a scan accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanKind {
    Sum,
    Prod,
    /// `log(sum(exp(x)))`, without overflow. Floats and complex numbers only.
    LogSumExp,
}

impl ScanKind {
    /// Whether it is defined for floats and complex numbers alone.
    pub fn is_float_only(self) -> bool {
        self == ScanKind::LogSumExp
    }
}

/// The output has the operand's shape; floats and complex numbers keep their dtype, others give int64.
#[derive(Debug, Clone, Hash)]
pub struct Scan {
    pub kind: ScanKind,
    pub dim: usize,
}

impl Family for Scan {
    fn name(&self) -> &'static str {
        match self.kind {
            ScanKind::Sum => "cumsum",
            ScanKind::Prod => "cumprod",
            ScanKind::LogSumExp => "logcumsumexp",
        }
    }

    fn elems(&self) -> Elems {
        Elems::differentiable_if(self.kind.is_float_only())
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        matches!((ins, outs), ([Some((x, d))], [Some((o, to))])
            if has_dim(x, self.dim) && x == o && *to == summed(*d) && self.elems().has(*d))
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, k: usize) -> Reads {
        if k == 0 { Reads::InOrder } else { Reads::InMemory }
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        [ScanKind::Sum, ScanKind::Prod, ScanKind::LogSumExp].map(|kind| Scan { kind, dim: 0 }).into()
    }
}
