//! Reductions: all elements along some dimensions are combined into one.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements, numel};
use super::summed;
use crate::layout::DType;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// What a reduction computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reducer {
    Sum,
    Prod,
    /// The largest element, or the smallest; nan wins.
    Extreme {
        max: bool,
    },
    /// Whether all elements, or any, are true.
    Truth {
        all: bool,
    },
    CountNonzero,
    /// The sum of squared distances from the mean. Floats only.
    SquaredDeviations,
    /// `log(sum(exp(x)))` without overflow. Floats only.
    LogSumExp,
    /// The vector norm of this order. Floats only.
    Norm(f64),
}

impl Reducer {
    /// One of each.
    pub const SAMPLES: [Reducer; 10] = [
        Reducer::Sum,
        Reducer::Prod,
        Reducer::Extreme { max: true },
        Reducer::Extreme { max: false },
        Reducer::Truth { all: true },
        Reducer::Truth { all: false },
        Reducer::CountNonzero,
        Reducer::SquaredDeviations,
        Reducer::LogSumExp,
        Reducer::Norm(2.0),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Reducer::Sum => "sum",
            Reducer::Prod => "prod",
            Reducer::Extreme { max: true } => "amax",
            Reducer::Extreme { max: false } => "amin",
            Reducer::Truth { all: true } => "all",
            Reducer::Truth { all: false } => "any",
            Reducer::CountNonzero => "count_nonzero",
            Reducer::SquaredDeviations => "var",
            Reducer::LogSumExp => "logsumexp",
            Reducer::Norm(_) => "norm",
        }
    }

    /// The dtype of the results.
    pub fn out_dtype(self, of: DType) -> DType {
        match self {
            Reducer::Sum | Reducer::Prod => summed(of),
            Reducer::Truth { .. } => DType::Bool,
            Reducer::CountNonzero => DType::I64,
            Reducer::Extreme { .. } | Reducer::SquaredDeviations | Reducer::LogSumExp | Reducer::Norm(_) => of,
        }
    }

    /// Whether it is defined for floats alone.
    pub fn is_float_only(self) -> bool {
        matches!(self, Reducer::SquaredDeviations | Reducer::LogSumExp | Reducer::Norm(_))
    }
}

impl Hash for Reducer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        if let Reducer::Norm(p) = self {
            p.to_bits().hash(state);
        }
    }
}

/// One operand, and one row-major output with an element for each index of the dimensions that are kept.
#[derive(Debug, Clone, Hash)]
pub struct Reduce {
    pub reducer: Reducer,
    /// A flag for each dimension.
    pub reduced: SmallVec<[bool; 6]>,
}

impl Family for Reduce {
    fn name(&self) -> &'static str {
        self.reducer.name()
    }

    fn elems(&self) -> Elems {
        match self.reducer {
            Reducer::Extreme { .. } => Elems::ORDERED,
            reducer => Elems::floats_if(reducer.is_float_only()),
        }
    }

    fn provenance(&self) -> Provenance {
        match self.reducer {
            Reducer::Extreme { .. } => Provenance::Selected,
            Reducer::Sum
            | Reducer::Prod
            | Reducer::Truth { .. }
            | Reducer::CountNonzero
            | Reducer::SquaredDeviations
            | Reducer::LogSumExp
            | Reducer::Norm(_) => Provenance::Computed,
        }
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let ([Some((x, d))], [Some((o, to))]) = (ins, outs) else { return false };
        let left: usize = x.iter().zip(&self.reduced).filter(|(_, r)| !**r).map(|(s, _)| *s).product();
        let own = self.reducer.out_dtype(*d);
        // Of 16-bit floats the result may stay as it was computed.
        let fits = *to == own || own.is_half() && *to == own.computed();
        self.reduced.len() == x.len() && numel(o) == left && self.elems().has(*d) && fits
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
        Flags::ANY_ORDER
    }

    fn samples() -> Vec<Self> {
        Reducer::SAMPLES.iter().map(|r| Reduce { reducer: *r, reduced: SmallVec::from_elem(true, 1) }).collect()
    }
}
