//! Normalisation by mean and variance: layer, group and batch norm.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen, elements};
use crate::layout::{DType, Scalar};

/// The input, row-major, is seen as (outer, groups, channels, inner). Each channel of each group has a weight and a bias. All operands and
/// outputs are floats of one dtype.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Norm {
    pub op: &'static str,
    pub pass: NormPass,
    pub shape: NormShape,
    /// Added to the variance.
    pub eps: Scalar,
}

/// The sizes, and over which of them mean and variance go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NormShape {
    pub outer: usize,
    pub groups: usize,
    pub channels: usize,
    pub inner: usize,
    /// Statistics are those of a group, over everything else (there is one channel in a group). Otherwise each group of each outer index has
    /// statistics of its own.
    pub across: bool,
}

/// Which pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormPass {
    /// Of x, perhaps the weight, perhaps the bias: the result, the means and the reciprocals of standard deviations; if `across`, the
    /// (biased) variances too.
    Forward { weight: bool, bias: bool },
    /// As `Forward`, with means and variances that are given behind x; the result alone.
    Apply { weight: bool, bias: bool },
    /// Of the gradient, x, the means, the reciprocals of standard deviations, perhaps the weight: the gradient of x and, if `params`, those of
    /// weight and bias. `fixed`: the statistics do not depend on x. Where `Backend::may_write_over` says so, the gradient of x may be written over
    /// the gradient.
    Backward { weight: bool, fixed: bool, params: bool },
}

impl NormShape {
    /// How many means there are.
    pub fn stats(&self) -> usize {
        if self.across { self.groups } else { self.outer * self.groups }
    }

    /// The elements that a mean is of.
    pub fn count(&self) -> usize {
        self.channels * self.inner * if self.across { self.outer } else { 1 }
    }

    /// How many weights there are.
    pub fn params(&self) -> usize {
        self.groups * self.channels
    }

    pub fn numel(&self) -> Option<usize> {
        [self.groups, self.channels, self.inner].iter().try_fold(self.outer, |n, k| n.checked_mul(*k))
    }
}

impl Family for Norm {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        Elems::FLOATS
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        let s = &self.shape;
        let Some(all) = s.numel() else { return false };
        let Some((_, dtype)) = outs.first().copied().flatten() else { return false };
        let (stats, params) = (s.stats(), s.params());
        let (wanted, made): (&[(usize, bool)], &[usize]) = match self.pass {
            NormPass::Forward { weight, bias } => (
                &[(all, true), (params, weight), (params, bias)],
                if s.across { &[all, stats, stats, stats] } else { &[all, stats, stats] },
            ),
            NormPass::Apply { weight, bias } => (&[(all, true), (stats, true), (stats, true), (params, weight), (params, bias)], &[all]),
            NormPass::Backward { weight, params: p, .. } => (
                &[(all, true), (all, true), (stats, true), (stats, true), (params, weight)],
                if p { &[all, params, params] } else { &[all] },
            ),
        };
        let fits = |seen: Seen<'_>, n: usize| seen.is_some_and(|(s, d): (&[usize], DType)| d == dtype && s.iter().product::<usize>() == n);
        let wanted = wanted.iter().filter(|(_, there)| *there).map(|(n, _)| *n);
        dtype.is_float()
            && (!s.across || s.channels == 1)
            && ins.len() == wanted.clone().count()
            && outs.len() == made.len()
            && ins.iter().zip(wanted).all(|(i, n)| fits(*i, n))
            && outs.iter().zip(made).all(|(o, n)| fits(*o, *n))
    }

    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        elements(ins, outs)
    }

    fn outputs(&self) -> usize {
        match self.pass {
            NormPass::Forward { .. } => 3 + usize::from(self.shape.across),
            NormPass::Apply { .. } => 1,
            NormPass::Backward { params, .. } => 1 + 2 * usize::from(params),
        }
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        let norm = |op, across| {
            let shape = NormShape { outer: 1, groups: 1, channels: 1, inner: 1, across };
            Norm { op, pass: NormPass::Forward { weight: true, bias: true }, shape, eps: Scalar::Float(1e-5) }
        };
        vec![norm("layer_norm", false), norm("group_norm", false), norm("batch_norm", true)]
    }
}
