//! Random numbers, from counters through Philox, so that every device draws the same numbers.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::DType;
use std::hash::{Hash, Hasher};

/// Which numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// At least `from`, less than `to`.
    Uniform {
        from: f64,
        to: f64,
    },
    Normal {
        mean: f64,
        std: f64,
    },
    Exponential {
        rate: f64,
    },
    /// 1 with this probability, else 0.
    Bernoulli {
        p: f64,
    },
    /// 1 with the probability that the operand's element says, else 0. The operand has the output's shape.
    BernoulliOf,
    /// `from` plus a number below `range` (0 for 2^64).
    Integers {
        from: i64,
        range: u64,
    },
}

impl Hash for Distribution {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let words = match *self {
            Distribution::Uniform { from, to } => [0, from.to_bits(), to.to_bits()],
            Distribution::Normal { mean, std } => [1, mean.to_bits(), std.to_bits()],
            Distribution::Exponential { rate } => [2, rate.to_bits(), 0],
            Distribution::Bernoulli { p } => [3, p.to_bits(), 0],
            Distribution::BernoulliOf => [4, 0, 0],
            Distribution::Integers { from, range } => [5, from as u64, range],
        };
        words.hash(state);
    }
}

/// Fills the output, which is dense, in its order of memory. Seed and counter are drawn when the request is made.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Random {
    /// The operation, for messages.
    pub op: &'static str,
    pub distribution: Distribution,
    pub seed: u64,
    /// The counter of the first block of four words.
    pub start: u64,
}

impl Distribution {
    pub fn name(&self) -> &'static str {
        match self {
            Distribution::Uniform { .. } => "uniform",
            Distribution::Normal { .. } => "normal",
            Distribution::Exponential { .. } => "exponential",
            Distribution::Bernoulli { .. } | Distribution::BernoulliOf => "bernoulli",
            Distribution::Integers { .. } => "random integers",
        }
    }

    /// Whether it is defined for floats alone.
    pub fn is_float_only(&self) -> bool {
        matches!(self, Distribution::Uniform { .. } | Distribution::Normal { .. } | Distribution::Exponential { .. })
    }

    /// How many numbers of this dtype one block of four words gives.
    pub fn per_block(&self, dtype: DType) -> u64 {
        match self {
            Distribution::Uniform { .. } | Distribution::Normal { .. } if dtype.computed() == DType::F32 => 4,
            _ => 2,
        }
    }

    /// How many blocks `n` numbers take.
    pub fn blocks(&self, n: usize, dtype: DType) -> u64 {
        (n as u64).div_ceil(self.per_block(dtype))
    }
}

/// Maps 64 random bits to 0..range without a division (Lemire's multiplication; range 0 stands for 2^64).
#[inline(always)]
pub fn below(bits: u64, range: u64) -> u64 {
    if range == 0 { bits } else { ((u128::from(bits) * u128::from(range)) >> 64) as u64 }
}

impl Family for Random {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        Elems::floats_if(self.distribution.is_float_only())
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        match (ins, outs) {
            ([], [Some(_)]) => true,
            ([Some((p, _))], [Some((o, _))]) => p == o,
            _ => false,
        }
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
        [
            Distribution::Uniform { from: 0.0, to: 1.0 },
            Distribution::Normal { mean: 0.0, std: 1.0 },
            Distribution::Exponential { rate: 1.0 },
            Distribution::Bernoulli { p: 0.5 },
            Distribution::Integers { from: 0, range: 2 },
        ]
        .map(|distribution| Random { op: distribution.name(), distribution, seed: 0, start: 0 })
        .into()
    }
}
