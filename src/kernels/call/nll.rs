//! The losses of target classes.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, numel};
use crate::layout::DType;

/// How losses are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NllReduction {
    None,
    Mean,
    Sum,
}

/// Input of (outer, classes, inner), row-major; targets and single losses of (outer, inner).
#[derive(Debug, Clone, Copy, Hash)]
pub struct Classes {
    pub outer: usize,
    pub classes: usize,
    pub inner: usize,
    /// The target that is ignored.
    pub ignore: i64,
    pub reduction: NllReduction,
}

/// The losses of log-probabilities, or, with `adjoint`, the gradient of the log-probabilities from that of the losses. Operands: these, the
/// targets (int64 or uint8), and possibly a weight for each class. Floats only; all are row-major.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Nll {
    pub classes: Classes,
    pub adjoint: bool,
    /// The number of the dimension of classes, for messages.
    pub dim: usize,
    /// The ticket under which a device reports a target that is no class; 0 draws one when the request runs.
    pub ticket: u32,
}

impl Family for Nll {
    fn name(&self) -> &'static str {
        "nll_loss"
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((x, dtype)), rest @ ..], [Some((out, to))]) = (ins, outs) else { return false };
        let Classes { outer, classes, inner, reduction, .. } = self.classes;
        let (Some(some), Some(all)) = (outer.checked_mul(inner), outer.checked_mul(classes).and_then(|n| n.checked_mul(inner))) else {
            return false;
        };
        let losses = if reduction == NllReduction::None { some } else { 1 };
        let (scores, wanted) = if self.adjoint { (out, x) } else { (x, out) };
        let targets = rest.first().copied().flatten().is_some_and(|(t, d)| numel(t) == some && matches!(d, DType::I64 | DType::U8));
        let weights = match rest.get(1) {
            None => true,
            Some(w) => w.is_some_and(|(w, d)| numel(w) == classes && d == *dtype),
        };
        dtype.is_float() && to == dtype && numel(scores) == all && numel(wanted) == losses && targets && weights && rest.len() <= 2
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn reads(&self, k: usize) -> Reads {
        if k == 0 && !self.adjoint { Reads::AtRandom } else { Reads::InMemory }
    }

    fn flags(&self) -> Flags {
        Flags::CHECKS
    }

    fn samples() -> Vec<Self> {
        let classes = Classes { outer: 1, classes: 2, inner: 1, ignore: -100, reduction: NllReduction::Mean };
        vec![Nll { classes, adjoint: false, dim: 1, ticket: 0 }]
    }
}
