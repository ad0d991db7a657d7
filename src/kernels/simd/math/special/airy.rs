//! Airy's function Ai and its derivative. From -10 to 2 they are sums of Chebyshev polynomials; above, such a sum times the leading term
//! (DLMF 9.7.5, 9.7.6); below, the expansion in waves (DLMF 9.7.9, 9.7.10), off by a few 1e-16 of the height of the wave.

use super::expansions::{AIRY_EVEN, AIRY_FAR, AIRY_NEAR, AIRY_ODD, AIRY_WAVE};
use super::{chebyshev, polynomial, sin_cos};
use crate::simd::Isa;
use crate::simd::math::f64 as m;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

const LOW: f64 = -10.0;
const HIGH: f64 = 2.0;

/// 2/3 x sqrt(x) for x > 0, and what rounding took from it: the exponential and the waves multiply the error by their argument.
#[inline(always)]
fn angle(x: f64) -> (f64, f64) {
    let root = x.sqrt();
    let root_rest = root.mul_add(-root, x) / (2.0 * root);
    let product = x * root;
    let product_rest = x.mul_add(root, -product) + x * root_rest;
    let made = 2.0 * product / 3.0;
    (made, ((-3.0f64).mul_add(made, 2.0 * product) + 2.0 * product_rest) / 3.0)
}

/// Ai of order 0, its derivative of order 1. What vanishes at infinity is 0 there; the derivative at minus infinity is nan.
#[inline(always)]
pub(super) fn airy<I: Isa>(x: f64, order: usize) -> f64 {
    if x.is_nan() {
        return x;
    }
    if (LOW..=0.0).contains(&x) {
        return chebyshev(0.2 * x + 1.0, &AIRY_WAVE[order]);
    }
    if x < HIGH && x > 0.0 {
        return chebyshev(x - 1.0, &AIRY_NEAR[order]);
    }
    let size = x.abs();
    let (angle, rest) = angle(size);
    let quarter = size.sqrt().sqrt();
    if x > 0.0 {
        // Beyond this the exponential is 0; so is it where the angle overflows.
        if angle >= 800.0 {
            return 0.0;
        }
        let nearest = 4.0 * std::f64::consts::SQRT_2 / 3.0;
        let leading = if order == 0 { 0.5 / quarter } else { -0.5 * quarter };
        // In two steps, since the exponential vanishes before the product does.
        let half = m::exp::<I>(-0.5 * angle);
        let made = leading * chebyshev(2.0 * nearest / angle - 1.0, &AIRY_FAR[order]) / PI.sqrt();
        return half * (made * (1.0 - rest)) * half;
    }
    if angle.is_infinite() {
        return if order == 0 { 0.0 } else { f64::NAN };
    }
    let inverse = 1.0 / angle;
    let square = inverse * inverse;
    let (even, odd) = (polynomial::<I, 10>(square, &AIRY_EVEN[order]), polynomial::<I, 10>(square, &AIRY_ODD[order]) * inverse);
    let (sine, cosine) = sin_cos::<I>(angle);
    let (sine, cosine) = (sine + rest * cosine, cosine - rest * sine);
    // Of the angle less pi / 4.
    let (sine, cosine) = (FRAC_1_SQRT_2 * (sine - cosine), FRAC_1_SQRT_2 * (sine + cosine));
    let wave = if order == 0 { (cosine * even + sine * odd) / quarter } else { (sine * even - cosine * odd) * quarter };
    wave / PI.sqrt()
}
