//! Bessel functions of orders 0 and 1. J and Y are, up to 25, sums of Chebyshev polynomials, and from there on Hankel's expansion (DLMF
//! 10.17.3). K is, up to 2, its power series (DLMF 10.31.1), and from there on a sum of Chebyshev polynomials in 1 / x. J and Y are off by a
//! few 1e-16 of the height of the wave, I and K by as much of their values.

use super::expansions::{BESSEL_J, BESSEL_Y, HANKEL_P, HANKEL_Q, K_FAR, K_FIRST, K_REST};
use super::tables::{BESSEL_FAR, BESSEL_NEAR};
use super::{chebyshev, polynomial, select, sin_cos};
use crate::simd::Isa;
use crate::simd::math::f64 as m;
use std::f64::consts::{FRAC_2_PI, PI};

/// The modified Bessel function of the first kind of order 0 or 1, or that times exp(-|x|).
#[inline(always)]
pub(super) fn bessel_i<I: Isa>(x: f64, order: usize, scaled: bool) -> f64 {
    const MEETING: f64 = 20.0;
    let size = x.abs();
    let small = size < MEETING;
    let (inside, outside) = (select(small, size, 0.0), select(small, MEETING, size));
    let low = polynomial::<I, 38>(inside * inside * 0.25, &BESSEL_NEAR[order]);
    let low = if order == 1 { low * (inside * 0.5) } else { low };
    let high = polynomial::<I, 29>(1.0 / outside, &BESSEL_FAR[order]) / (2.0 * PI * outside).sqrt();
    let (low, high) = if scaled {
        (low * m::exp::<I>(-inside), high)
    } else {
        // In two steps, since the exponential overflows before the function does.
        let half = m::exp::<I>(0.5 * outside);
        (low, half * high * half)
    };
    let made = select(small, low, high);
    let made = select(size == f64::INFINITY, if scaled { 0.0 } else { size }, made);
    let made = select(x.is_nan(), x, made);
    if order == 1 { select(x < 0.0, -made, made) } else { made }
}

/// Up to here J and Y are sums of Chebyshev polynomials.
const FAR: f64 = 25.0;

/// J, or Y, for x > 0.
#[inline(always)]
fn cylinder<I: Isa>(x: f64, order: usize, second: bool) -> f64 {
    if x < FAR {
        let u = 2.0 * (x / FAR) * (x / FAR) - 1.0;
        let first = chebyshev(u, &BESSEL_J[order]);
        let made = if second { FRAC_2_PI * m::log::<I>(x) * first + chebyshev(u, &BESSEL_Y[order]) } else { first };
        return match (order, second) {
            (0, _) => made,
            (_, false) => made * x,
            (_, true) => made * x - FRAC_2_PI / x,
        };
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let (p, q) = (polynomial::<I, 12>(square, &HANKEL_P[order]), polynomial::<I, 12>(square, &HANKEL_Q[order]) * inverse);
    // The cosine and the sine of x - pi / 4, or of x - 3 pi / 4, from those of x, of which no digit is lost.
    let (sine, cosine) = sin_cos::<I>(x);
    let (plus, minus) = (cosine + sine, sine - cosine);
    let (cosine, sine) = if order == 0 { (plus, minus) } else { (minus, -plus) };
    let wave = if second { p * sine + q * cosine } else { p * cosine - q * sine };
    wave * (inverse / PI).sqrt()
}

#[inline(always)]
pub(super) fn bessel_j<I: Isa>(x: f64, order: usize) -> f64 {
    if x.is_nan() || x == 0.0 {
        return if order == 0 && x == 0.0 { 1.0 } else { x };
    }
    let size = x.abs();
    let made = if size == f64::INFINITY { 0.0 } else { cylinder::<I>(size, order, false) };
    if order == 1 && x < 0.0 { -made } else { made }
}

/// The value of a function that is defined for x > 0 alone, at other places; None for those.
#[inline(always)]
fn edge(x: f64, at_zero: f64) -> Option<f64> {
    if x > 0.0 { (x == f64::INFINITY).then_some(0.0) } else { Some(if x == 0.0 { at_zero } else { f64::NAN }) }
}

#[inline(always)]
pub(super) fn bessel_y<I: Isa>(x: f64, order: usize) -> f64 {
    if let Some(edge) = edge(x, f64::NEG_INFINITY) { edge } else { cylinder::<I>(x, order, true) }
}

/// The modified Bessel function of the second kind, or that times exp(x).
#[inline(always)]
pub(super) fn bessel_k<I: Isa>(x: f64, order: usize, scaled: bool) -> f64 {
    if let Some(edge) = edge(x, f64::INFINITY) {
        return edge;
    }
    if x <= 2.0 {
        let (q, log) = (0.25 * x * x, m::log::<I>(0.5 * x));
        let (first, rest) = (polynomial::<I, 20>(q, &K_FIRST[order]), polynomial::<I, 20>(q, &K_REST[order]));
        let low = if order == 0 { rest - log * first } else { 1.0 / x + 0.5 * x * (log * first - rest) };
        return if scaled { low * m::exp::<I>(x) } else { low };
    }
    let high = chebyshev(4.0 / x - 1.0, &K_FAR[order]) / x.sqrt();
    if scaled {
        return high;
    }
    // In two steps, since the exponential vanishes before the function does.
    let half = m::exp::<I>(-0.5 * x);
    half * high * half
}

/// The spherical Bessel function of the first kind of order 0 or 1 (DLMF 10.49.3).
#[inline(always)]
pub(super) fn spherical_j<I: Isa>(x: f64, order: usize) -> f64 {
    // The two terms of order 1 cancel near 0; there it is its power series (DLMF 10.53.1).
    const SERIES: [f64; 10] = {
        let mut made = [1.0 / 3.0; 10];
        let mut k = 1;
        while k < 10 {
            made[k] = -made[k - 1] / ((2 * k * (2 * k + 3)) as f64);
            k += 1;
        }
        made
    };
    if x == 0.0 || x.is_infinite() {
        return if order == 0 && x == 0.0 { 1.0 } else { select(x == 0.0, x, 0.0) };
    }
    if order == 1 && x.abs() < 1.5 {
        return x * polynomial::<I, 10>(x * x, &SERIES);
    }
    let (sine, cosine) = sin_cos::<I>(x);
    if order == 0 { sine / x } else { (sine / x - cosine) / x }
}
