//! Picking the element of the target class, weighted: the kernel of nll_loss, and its adjoint.

use super::reducers::Float;

/// How losses are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    None,
    Mean,
    Sum,
}

/// Input of (outer, classes, inner), dense; targets and single losses of (outer, inner).
#[derive(Debug, Clone, Copy)]
pub struct Classes {
    pub outer: usize,
    pub classes: usize,
    pub inner: usize,
    /// A target that counts for nothing.
    pub ignore: i64,
    pub reduction: Reduction,
}

impl Classes {
    /// The first target that is neither a class nor ignored.
    pub fn first_bad(&self, targets: &[i64]) -> Option<i64> {
        targets.iter().copied().find(|t| *t != self.ignore && !(0..self.classes as i64).contains(t))
    }

    /// Calls `f(which loss, place of the picked element, class)` for all that are not ignored.
    #[inline(always)]
    fn each(&self, targets: &[i64], mut f: impl FnMut(usize, usize, usize)) {
        for (i, t) in targets.iter().enumerate() {
            if *t != self.ignore {
                let (o, r) = (i / self.inner, i % self.inner);
                f(i, (o * self.classes + *t as usize) * self.inner + r, *t as usize);
            }
        }
    }

    /// The weights of all targets together.
    fn total<T: Float>(&self, targets: &[i64], weight: Option<&[T]>) -> f64 {
        let mut total = 0.0;
        self.each(targets, |_, _, c| total += weight.map_or(1.0, |w| w[c].wide()));
        total
    }

    /// Losses of log-probabilities, of which `x` gives each, into `out`: one for each target, or one altogether. Targets are valid.
    pub fn pick<T: Float>(&self, x: impl Fn(usize) -> T, targets: &[i64], weight: Option<&[T]>, out: &mut [T]) {
        if self.reduction == Reduction::None {
            out.fill(T::ZERO);
            self.each(targets, |i, at, c| out[i] = T::narrow(-x(at).wide() * weight.map_or(1.0, |w| w[c].wide())));
            return;
        }
        let mut sum = 0.0;
        self.each(targets, |_, at, c| sum -= x(at).wide() * weight.map_or(1.0, |w| w[c].wide()));
        if self.reduction == Reduction::Mean {
            sum /= self.total(targets, weight);
        }
        out[0] = T::narrow(sum);
    }

    /// The adjoint of `pick`: the gradient of x from that of the losses.
    pub fn spread<T: Float>(&self, g: &[T], targets: &[i64], weight: Option<&[T]>, out: &mut [T]) {
        out.fill(T::ZERO);
        let scale = if self.reduction == Reduction::Mean { 1.0 / self.total(targets, weight) } else { 1.0 };
        self.each(targets, |i, at, c| {
            let g = if self.reduction == Reduction::None { g[i] } else { g[0] };
            out[at] = T::narrow(-g.wide() * scale * weight.map_or(1.0, |w| w[c].wide()));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_the_adjoint_of_pick() {
        let targets = [2i64, -100, 0, 1];
        let (x, w) = ((0..12).map(|i| f64::from(i) / 3.0 - 1.5).collect::<Vec<_>>(), [0.5, 2.0, 3.0]);
        for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
            let s = Classes { outer: 2, classes: 3, inner: 2, ignore: -100, reduction };
            let n = if reduction == Reduction::None { 4 } else { 1 };
            let g: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
            let (mut y, mut back) = (vec![0.0; n], vec![0.0; 12]);
            s.pick(|i| x[i], &targets, Some(&w), &mut y);
            s.spread(&g, &targets, Some(&w), &mut back);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(p, q)| p * q).sum::<f64>();
            assert!((dot(&g, &y) - dot(&back, &x)).abs() < 1e-12);
        }
        let s = Classes { outer: 2, classes: 3, inner: 2, ignore: -100, reduction: Reduction::Mean };
        assert_eq!((s.first_bad(&targets), s.first_bad(&[0, 3])), (None, Some(3)));
    }
}
