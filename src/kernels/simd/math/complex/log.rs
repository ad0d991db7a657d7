//! Logarithms.

use super::super::double_double::*;
use super::plain::{DOWN, UP, factor};
use super::{Grade, ReIm, select};
use crate::simd::Isa;
use std::f64::consts::{LOG2_E, LOG10_E};

/// What `Grade::log` takes.
pub(super) type Argument = (f64, f64, f64);

/// The square of the length of (x + xl, y) as `Grade::log` takes it, of numbers that are not all 0, infinite or nan. It is exact where the
/// length is near 1.
#[inline(always)]
pub(super) fn square<I: Isa, G: Grade>(x: f64, xl: f64, y: f64) -> Argument {
    let (x, y, xl) = (x.abs(), y.abs(), select(x < 0.0, -xl, xl));
    let larger = x > y;
    if !G::WIDE {
        // Squares of 24 bits are exact.
        let (p, q) = (select(larger, x, y), select(larger, y, x));
        let (pp, qq) = (p * p, q * q);
        let s = pp + qq;
        let near = (s > 0.5) & (s < 2.0);
        let f = (pp - 1.0) + qq;
        let u = select(near, 1.0 + f, s);
        return (u, select(near, f - (u - 1.0), 0.0), 0.0);
    }
    let (p, q) = (select(larger, x, y), select(larger, y, x));
    let by = factor::<G>(p);
    let ((pp, pe), (qq, qe)) = (two_prod(p * by, p * by), two_prod(q * by, q * by));
    let (s, e) = fast_two_sum(pp, qq);
    let e = e + (pe + qe) + 2.0 * (x * by) * (xl * by);
    let k = select(by == UP, -1200.0, select(by == DOWN, 1024.0, 0.0));
    (s, e, k)
}

/// The logarithm of the length, as dd, from that of its square.
#[inline(always)]
pub(super) fn of_square<I: Isa, G: Grade>((u, c, k): Argument) -> (f64, f64) {
    let (h, l) = G::log::<I>(u, c, k);
    (h * 0.5, l * 0.5)
}

/// Infinity if a part is, even if the other one is nan, else nan if a part is, else `v`.
#[inline(always)]
pub(super) fn edges((x, y): ReIm, v: f64) -> f64 {
    let v = select(x.is_nan() | y.is_nan(), f64::NAN, v);
    select((x.abs() == f64::INFINITY) | (y.abs() == f64::INFINITY), f64::INFINITY, v)
}

/// Both parts as dd, of numbers that are not 0.
#[inline(always)]
pub(super) fn log_dd<I: Isa, G: Grade>((x, y): ReIm) -> (ReIm, ReIm) {
    let finite = (x.abs() < f64::INFINITY) & (y.abs() < f64::INFINITY);
    let (x1, y1) = (select(finite, x, 1.0), select(finite, y, 1.0));
    (of_square::<I, G>(square::<I, G>(x1, 0.0, y1)), G::angle::<I>(y, x))
}

#[inline(always)]
pub fn log<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    let zero = (z.0 == 0.0) & (z.1 == 0.0);
    let ((re, rl), (im, il)) = log_dd::<I, G>((select(zero, 1.0, z.0), z.1));
    let im = select(zero, G::angle::<I>(z.1, z.0).0, im + il);
    (select(zero, f64::NEG_INFINITY, edges(z, re + rl)), im)
}

#[inline(always)]
pub fn log2<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    let (x, y) = log::<I, G>(z);
    (x * LOG2_E, y * LOG2_E)
}

#[inline(always)]
pub fn log10<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    let (x, y) = log::<I, G>(z);
    (x * LOG10_E, y * LOG10_E)
}

#[inline(always)]
pub fn log1p<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    let (x, y) = z;
    let finite = (x.abs() < f64::INFINITY) & (y.abs() < f64::INFINITY);
    let (x1, y1) = (select(finite, x, 1.0), select(finite, y, 1.0));
    let (v, vl) = two_sum(1.0, x1);
    let none = (v == 0.0) & (y == 0.0);
    let far = square::<I, G>(select(none, 1.0, v), vl, y1);
    // Near 0 the square of the length is 1 + (2 x + x^2 + y^2).
    let near = (x.abs() < 0.25) & (y.abs() < 0.25);
    let (x2, y2) = (select(near, x, 0.0), select(near, y, 0.0));
    let ((xx, xe), (yy, ye)) = (two_prod(x2, x2), two_prod(y2, y2));
    let (s, e) = two_sum(2.0 * x2, yy);
    let (s, e2) = two_sum(s, xx);
    let f = s + (e + e2 + (xe + ye));
    let fl = (s - f) + (e + e2 + (xe + ye));
    let (u, c) = two_sum(1.0, f);
    let (h, l) = of_square::<I, G>((select(near, u, far.0), select(near, c + fl, far.1), select(near, 0.0, far.2)));
    // The logarithm of the smallest numbers is their own.
    let re = select(near & (f.abs() < 1e-17), f * 0.5, h + l);
    let re = select((x == 0.0) & (y == 0.0), x, re);
    let re = select(none, f64::NEG_INFINITY, edges(z, re));
    let (im, il) = G::angle::<I>(y, 1.0 + x);
    (re, im + il)
}
