//! Inverses of trigonometric and hyperbolic functions. The inverse sine and cosine are those of Hull, Fairgrieve and Tang, "Implementing
//! the complex arcsine and arccosine functions using exception handling" (1997).

use super::super::double_double::*;
use super::log::{self, square};
use super::plain::factor;
use super::{Grade, ReIm, select, turned, turned_back};
use crate::simd::Isa;
use std::f64::consts::{FRAC_PI_2, LN_2};

/// With `a` half the sum of the distances of (x, y), both positive, to 1 and -1: (sqrt(a^2 - x^2), log(a + sqrt(a^2 - 1))).
#[inline(always)]
fn distances<I: Isa, G: Grade>(x: f64, y: f64) -> (f64, f64) {
    let far = if G::WIDE { (x > 1e9) | (y > 1e9) } else { (x == f64::INFINITY) | (y == f64::INFINITY) };
    let (x1, y1) = (select(far, 1.0, x), select(far, 1.0, y));
    let yy = y1 * y1;
    let (above, below) = (x1 + 1.0, x1 - 1.0);
    let (r, s) = (fma::<I>(above, above, yy).sqrt(), length::<I, G>(below.abs(), y1));
    let a = (r + s) * 0.5;
    let (more, less) = (r + above, s + below.abs());
    let outside = x1 >= 1.0;
    let inside = x1 <= 1.0;
    let sum = a + x1;
    // a - x, of which y^2 is a factor if x > 1.
    let d_inside = (0.5 * sum * (yy / more + less)).sqrt();
    let safe = select(less == 0.0, 1.0, less);
    let d_outside = y1 * (0.5 * (sum / more + sum / safe)).sqrt();
    let d = select(inside, d_inside, d_outside);
    // a - 1, of which y^2 is a factor if x < 1.
    let half_sum = 0.5 * (a + 1.0);
    let twice = yy / more + less;
    let w_outside = 0.5 * twice + (twice * half_sum).sqrt();
    let share = 1.0 / more + 1.0 / safe;
    let w_inside = y1 * (0.5 * y1 * share + (share * half_sum).sqrt());
    let (u, c) = two_sum(1.0, select(outside, w_outside, w_inside));
    if !G::WIDE {
        let (h, _) = G::log::<I>(u, c, 0.0);
        return (select(far, y, d), select(far, f64::INFINITY, h));
    }
    // Far from 0 it is log |2 z|.
    let endless = (x == f64::INFINITY) | (y == f64::INFINITY);
    let (su, sc, sk) = square::<I, G>(select(far & !endless, x, 2.0), 0.0, select(far & !endless, y, 2.0));
    let (h, l) = G::log::<I>(select(far, su, u), select(far, sc, c), select(far, sk + 2.0, 0.0));
    let h = select(far, 0.5 * (h + l), h + l);
    (select(far, y, d), select(endless, f64::INFINITY, h))
}

/// The length of (x, y), which may be tiny but not huge.
#[inline(always)]
fn length<I: Isa, G: Grade>(x: f64, y: f64) -> f64 {
    let by = factor::<G>(select(x > y, x, y));
    let (p, q) = (x * by, y * by);
    fma::<I>(p, p, q * q).sqrt() / by
}

#[inline(always)]
pub fn asin<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (d, w) = distances::<I, G>(x.abs(), y.abs());
    let (re, rl) = G::angle::<I>(x, d);
    let w = log::edges((x, y), w);
    (select(x == 0.0, x, re + rl), select((y == 0.0) & x.is_nan(), f64::NAN, w).copysign(y))
}

#[inline(always)]
pub fn acos<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (d, w) = distances::<I, G>(x.abs(), y.abs());
    let (re, rl) = G::angle::<I>(d, x);
    let w = log::edges((x, y), w);
    (select(x == 0.0, FRAC_PI_2, re + rl), w.copysign(-y))
}

#[inline(always)]
pub fn asinh<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    turned_back(asin::<I, G>(turned(z)))
}

#[inline(always)]
pub fn acosh<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    let (re, im) = acos::<I, G>(z);
    (im.abs(), re.copysign(z.1))
}

/// log1p(4 x / ((1 - x)^2 + y^2)) / 4 and half the angle of ((1 - x)(1 + x) - y^2, 2 y), for |x|.
#[inline(always)]
pub fn atanh<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    let (x, y) = (z.0.abs(), z.1);
    let b = y.abs();
    // There it is 1 / z, and half a turn.
    let limit = if G::WIDE { 1e75 } else { 1e40 };
    let far = (x > limit) | (b > limit);
    let (x1, y1) = (select(far, 0.5, x), select(far, 0.5, b));
    // (1 - x)^2 + y^2 vanishes there.
    let tiny = (x1 == 1.0) & (y1 < 1e-100);
    // 2^200
    let by_tiny = y1 * 1.6069380442589903e60;
    let less = 1.0 - x1;
    let ratio = 4.0 * x1 / select(tiny, 2.0 * by_tiny, fma::<I>(less, less, y1 * y1));
    let pole = tiny & (y1 == 0.0);
    let (u, c) = two_sum(1.0, select(pole, 1.0, ratio));
    let (h, l) = G::log::<I>(u, c, 0.0);
    let re = select(tiny, fma::<I>(h, 0.5, 100.0 * LN_2), 0.25 * (h + l));
    let re = select(pole, f64::INFINITY, re);
    let (angle, rest) = G::angle::<I>(2.0 * y1, fma::<I>(less, 1.0 + x1, -(y1 * y1)));
    let im = 0.5 * (angle + rest);
    // x / |z|^2, by the larger part.
    let (p, q) = (select(x > b, x, b), select(x > b, b, x));
    let v = q / p;
    let inverse = select(x > b, 1.0, v) / fma::<I>(v, v, 1.0) / p;
    let inverse = select((x == f64::INFINITY) | (b == f64::INFINITY), 0.0, inverse);
    let re = select(far, inverse, re);
    let im = select(far, FRAC_PI_2, im);
    let unknown = x.is_nan() | y.is_nan();
    let re = select(unknown & !far, f64::NAN, re);
    let re = select(x == 0.0, 0.0, re);
    let im = select(y.is_nan() | (x.is_nan() & (b != f64::INFINITY)), f64::NAN, im);
    (re.copysign(z.0), im.copysign(y))
}

#[inline(always)]
pub fn atan<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    turned_back(atanh::<I, G>(turned(z)))
}
