//! The parts of floats, their neighbours, and sinc.

use super::select;
use crate::simd::Isa;
use crate::simd::math::f64 as m;
use std::f64::consts::PI;

/// sin(pi x) / (pi x).
#[inline(always)]
pub(super) fn sinc<I: Isa>(x: f64) -> f64 {
    // Whole turns are taken off before they are multiplied by pi, so that zeros are zeros.
    let angle = PI * (x - 2.0 * (0.5 * x).round_ties_even());
    let made = m::sin::<I>(angle) / (PI * x);
    select(x == 0.0, 1.0, select(x.abs() == f64::INFINITY, f64::NAN, made))
}

/// The next float64, or float32 if `single`, from `a` towards `b`.
#[inline(always)]
pub(super) fn nextafter(a: f64, b: f64, single: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a == b {
        return b;
    }
    if single {
        let a = a as f32;
        return f64::from(if b > f64::from(a) { a.next_up() } else { a.next_down() });
    }
    if b > a { a.next_up() } else { a.next_down() }
}

/// A magnitude from 0.5 to 1 and an exponent of 2 whose product is x; zeros and what is not finite are their own.
#[inline(always)]
pub(super) fn frexp(x: f64) -> (f64, f64) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0.0);
    }
    // Subnormal numbers are made normal first.
    let tiny = x.abs() < f64::MIN_POSITIVE;
    let x = if tiny { x * 2f64.powi(54) } else { x };
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i64 - 1022;
    let fraction = f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1022 << 52);
    (fraction, (exponent - if tiny { 54 } else { 0 }) as f64)
}
