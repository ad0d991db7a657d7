//! Orthogonal polynomials, by their recurrences (Abramowitz, Stegun 22.7).

/// Degrees above this would take a second and more: the value is nan.
const HIGHEST: f64 = 1e7;

/// The value of degree n: 1, `first`, and then each from the two before it, by `step(k, last, before)`.
#[inline(always)]
fn recurrence(x: f64, n: f64, first: f64, step: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = n.trunc();
    if n.is_nan() || n > HIGHEST {
        return f64::NAN;
    }
    if n < 0.0 {
        return 0.0;
    }
    if n == 0.0 {
        return 1.0;
    }
    if x.is_nan() {
        return f64::NAN;
    }
    let (mut before, mut last, mut k) = (1.0, first, 1.0);
    while k < n {
        (before, last) = (last, step(k, last, before));
        k += 1.0;
        // What has left the range never comes back.
        if last.is_nan() {
            break;
        }
    }
    last
}

#[inline(always)]
pub(super) fn chebyshev(x: f64, n: f64, first: f64) -> f64 {
    recurrence(x, n, first, |_, last, before| 2.0 * x * last - before)
}

#[inline(always)]
pub(super) fn hermite_h(x: f64, n: f64) -> f64 {
    recurrence(x, n, 2.0 * x, |k, last, before| 2.0 * x * last - 2.0 * k * before)
}

#[inline(always)]
pub(super) fn hermite_he(x: f64, n: f64) -> f64 {
    recurrence(x, n, x, |k, last, before| x * last - k * before)
}

#[inline(always)]
pub(super) fn laguerre(x: f64, n: f64) -> f64 {
    recurrence(x, n, 1.0 - x, |k, last, before| ((2.0 * k + 1.0 - x) * last - k * before) / (k + 1.0))
}

#[inline(always)]
pub(super) fn legendre(x: f64, n: f64) -> f64 {
    recurrence(x, n, x, |k, last, before| ((2.0 * k + 1.0) * x * last - k * before) / (k + 1.0))
}
