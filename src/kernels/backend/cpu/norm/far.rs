//! Rows whose squares are too large for their type, or whose mean is far above their deviation. What the loops of the other files lose is computed
//! again in double precision, for the elements alone that share such a statistic.

use super::{Affine, NormElement, Stats};
use crate::call::NormShape;
use crate::host::interrupt;

// SAFETY, of every function here: the caller's promise of `super::forward`.

/// How many statistics there are.
fn count(s: &NormShape) -> usize {
    if s.across { s.groups } else { s.outer * s.groups }
}

/// The elements that share statistic `i`, each with the number of its weight.
fn members(s: &NormShape, i: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let (first, last) = if s.across { (0, s.outer) } else { (i / s.groups, i / s.groups + 1) };
    let (group, groups, channels, inner) = (i % s.groups, s.groups, s.channels, s.inner);
    (first..last).flat_map(move |o| {
        (0..channels).flat_map(move |c| (0..inner).map(move |k| (((o * groups + group) * channels + c) * inner + k, group * channels + c)))
    })
}

/// Replaces the results of the elements whose variance has overflowed.
pub(super) unsafe fn forward<T: NormElement>(s: &NormShape, eps: f64, x: *const T, affine: Affine<T>, y: *mut T, to: Stats<T>) {
    // SAFETY: see above.
    unsafe {
        let is_lost = |rstd: f64| rstd <= 0.0 || rstd.is_nan();
        for i in (0..count(s)).filter(|i| is_lost((*to.rstd.add(*i)).wide())) {
            interrupt::check();
            let (at, of) = (members(s, i), |e: usize| (*x.add(e)).wide());
            let n = at.clone().count() as f64;
            if !at.clone().all(|(e, _)| of(e).is_finite()) {
                continue;
            }
            let mean = at.clone().map(|(e, _)| of(e) / n).sum::<f64>();
            let unit = at.clone().map(|(e, _)| (of(e) - mean).abs()).fold(0.0, f64::max);
            if unit == 0.0 {
                continue;
            }
            let variance = at.clone().map(|(e, _)| ((of(e) - mean) / unit).powi(2)).sum::<f64>() / n;
            let rstd = 1.0 / (variance + eps / unit / unit).sqrt() / unit;
            *to.mean.add(i) = T::narrow(mean);
            *to.rstd.add(i) = T::narrow(rstd);
            if !to.var.is_null() {
                *to.var.add(i) = T::narrow(variance * unit * unit);
            }
            for (e, p) in at {
                let (weight, bias) = affine.at(p);
                *y.add(e) = T::narrow((of(e) - mean) * rstd * weight + bias);
            }
        }
    }
}

/// What the loops of the other files do not compute well.
pub(super) struct FarGradients<T> {
    /// The gradients of elements, by position.
    elements: Vec<(usize, T)>,
    /// What the gradients of weights lack. Empty if that is nothing.
    weights: Vec<f64>,
}

/// Gradients behind a deviation so large that its powers are too small for the type, or so small beside the mean that this has lost its digits
/// by rounding. They are made before any gradient is written, which may be over `g`.
pub(super) unsafe fn gradients<T: NormElement>(
    s: &NormShape,
    fixed: bool,
    [g, x, mean, rstd]: [*const T; 4],
    weight: *const T,
) -> FarGradients<T> {
    let mut far = FarGradients { elements: Vec::new(), weights: Vec::new() };
    if fixed {
        return far;
    }
    let affine = Affine { weight, bias: std::ptr::null() };
    // SAFETY: see above.
    unsafe {
        let is_far = |i: &usize| {
            let (mean, rstd) = ((*mean.add(*i)).wide(), (*rstd.add(*i)).wide());
            rstd < T::FAR || (mean * rstd).abs() > T::ROUNDED
        };
        for i in (0..count(s)).filter(is_far) {
            interrupt::check();
            let at = members(s, i);
            let (rounded, rstd, of) = ((*mean.add(i)).wide(), (*rstd.add(i)).wide(), |e: usize| (*x.add(e)).wide());
            let n = at.clone().count() as f64;
            let rest = at.clone().map(|(e, _)| (of(e) - rounded) / n).sum::<f64>();
            let pair = |(e, p): (usize, usize)| ((*g.add(e)).wide() * affine.at(p).0, (of(e) - rounded - rest) * rstd);
            let (mut sum, mut along) = (0.0, 0.0);
            for (v, distance) in at.clone().map(pair) {
                sum += v;
                along += v * distance;
            }
            if far.weights.is_empty() {
                far.weights.resize(s.params(), 0.0);
            }
            at.clone().for_each(|(e, p)| far.weights[p] -= (*g.add(e)).wide() * rest * rstd);
            far.elements.extend(at.map(|place| {
                let (v, distance) = pair(place);
                (place.0, T::narrow((v - (sum + distance * along) / n) * rstd))
            }));
        }
    }
    far
}

impl<T: NormElement> FarGradients<T> {
    /// Replaces gradients, and adds to those of weights.
    pub(super) unsafe fn put(self, dx: *mut T, params: Option<(*mut T, *mut T)>) {
        // SAFETY: see above.
        unsafe {
            self.elements.into_iter().for_each(|(e, v)| *dx.add(e) = v);
            if let Some((dw, _)) = params {
                self.weights.into_iter().enumerate().for_each(|(p, v)| *dw.add(p) = T::narrow((*dw.add(p)).wide() + v));
            }
        }
    }
}
