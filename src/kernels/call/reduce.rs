//! Reductions: all elements along some dimensions are combined into one.

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

/// The largest elements (or the smallest) along a dimension that is not empty, and where each stands first. Two row-major outputs: values of
/// the operand's dtype, and int64.
#[derive(Debug, Clone, Hash)]
pub struct ArgReduce {
    pub max: bool,
    pub dim: usize,
}

impl ArgReduce {
    pub fn name(&self) -> &'static str {
        if self.max { "max" } else { "min" }
    }
}
