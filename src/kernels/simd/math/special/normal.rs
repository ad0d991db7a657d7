//! The inverse of the error function, and the normal distribution's functions.

use super::tables::ERFCX_FAR;
use super::{BLOCK, polynomial, select};
use crate::simd::Isa;
use crate::simd::math::f64 as m;
use std::f64::consts::{LN_2, PI, SQRT_2};

const HALF_SQRT_PI: f64 = 0.886_226_925_452_758;

/// The x of 0 or more with `erfc(x) = q` and `erf(x) = p`; q and p add up to 1, and each has its own digits. Winitzki's approximation, and
/// Halley's steps, which triple the digits.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
fn inverse_of_complement<I: Isa>(q: &[f64; BLOCK], p: &[f64; BLOCK], x: &mut [f64; BLOCK], turns: usize) {
    const A: f64 = 0.147;
    for k in 0..BLOCK {
        let log = m::log::<I>(q[k] * (1.0 + p[k]));
        let middle = 2.0 / (PI * A) + 0.5 * log;
        let made = ((middle * middle - log / A).sqrt() - middle).sqrt();
        x[k] = select(p[k] < 1e-3, p[k] * HALF_SQRT_PI, made);
    }
    for _ in 0..turns {
        for k in 0..BLOCK {
            let (q, p, now) = (q[k], p[k], x[k]);
            let error = select(p < 0.5, m::erf::<I>(now) - p, q - m::erfc::<I>(now));
            let square = now * now;
            let u = error * HALF_SQRT_PI * m::exp::<I>(select(square > 709.0, 709.0, square));
            x[k] = now - u / (1.0 + now * u);
        }
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
pub(super) fn erfinv<I: Isa>(x: &mut [f64; BLOCK], turns: usize) {
    let (given, mut q, mut p) = (*x, [1.0; BLOCK], [0.0; BLOCK]);
    for k in 0..BLOCK {
        let size = given[k].abs();
        p[k] = select(size < 1.0, size, 0.0);
        q[k] = 1.0 - p[k];
    }
    inverse_of_complement::<I>(&q, &p, x, turns);
    for k in 0..BLOCK {
        let (y, size) = (given[k], given[k].abs());
        let made = select(size == 1.0, f64::INFINITY, x[k]).copysign(y);
        x[k] = select(size <= 1.0, made, f64::NAN);
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
pub(super) fn ndtri<I: Isa>(x: &mut [f64; BLOCK], turns: usize) {
    let (given, mut q, mut other) = (*x, [1.0; BLOCK], [0.0; BLOCK]);
    for k in 0..BLOCK {
        let tail = select(given[k] < 0.5, given[k], 1.0 - given[k]);
        q[k] = select(tail > 0.0 && tail <= 0.5, 2.0 * tail, 1.0);
        other[k] = 1.0 - q[k];
    }
    inverse_of_complement::<I>(&q, &other, x, turns);
    for k in 0..BLOCK {
        let p = given[k];
        let made = SQRT_2 * x[k];
        let made = select(p < 0.5, -made, made);
        let made = select(p == 0.0, f64::NEG_INFINITY, select(p == 1.0, f64::INFINITY, made));
        x[k] = select((0.0..=1.0).contains(&p), made, f64::NAN);
    }
}

/// exp(x^2) in two factors, the square of the first exactly.
#[inline(always)]
fn exp_of_square<I: Isa>(x: f64) -> f64 {
    let coarse = (x * 256.0).round_ties_even() / 256.0;
    m::exp::<I>(coarse * coarse) * m::exp::<I>((x - coarse) * (x + coarse))
}

#[inline(always)]
pub(super) fn erfcx<I: Isa>(x: f64) -> f64 {
    let size = x.abs();
    let small = size < 10.0;
    let near = select(small, size, 0.0);
    let inverse = 1.0 / select(small, 10.0, size);
    let tail = polynomial::<I, 24>(inverse * inverse, &ERFCX_FAR) * inverse * (0.5 / HALF_SQRT_PI);
    // Where x is far below 0 the square is infinite, and so is the value.
    let square = exp_of_square::<I>(select(size > 30.0, 30.0, size));
    let made = select(small, square * m::erfc::<I>(near), tail);
    let mirrored = select(size > 30.0, f64::INFINITY, 2.0 * square - made);
    let made = select(x < 0.0, mirrored, made);
    select(x.is_nan(), x, made)
}

#[inline(always)]
pub(super) fn log_ndtr<I: Isa>(x: f64) -> f64 {
    let t = x / SQRT_2;
    let low = x < -1.0;
    let below = m::log::<I>(erfcx::<I>(select(low, -t, 0.0))) - LN_2 - t * t;
    let above = m::log1p::<I>(-0.5 * m::erfc::<I>(select(low, 0.0, t)));
    select(low, select(x == f64::NEG_INFINITY, x, below), select(x.is_nan(), x, above))
}
