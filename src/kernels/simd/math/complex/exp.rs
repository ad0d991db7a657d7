//! The exponential, and what is made of it: powers, hyperbolic and trigonometric functions, the sigmoid.

use super::super::double_double::*;
use super::{Grade, ReIm, log, select, turned, turned_back};
use crate::simd::Isa;
use std::f64::consts::LN_2;

/// What `LN_2` lacks.
const LN_2_REST: f64 = 2.3190468138462996e-17;

/// `m * s * 2^n` with one rounding, for `m` around 1, `n` from -1077 to 2110 and `s` up to 1 in size, which may be subnormal.
#[inline(always)]
fn scaled<G: Grade>(m: f64, s: f64, n: f64) -> f64 {
    if !G::WIDE {
        return m * s * pow2(n);
    }
    // 2^1000
    let over = n > 1000.0;
    let s = s * select(over, 1.0715086071862673e301, 1.0);
    let n = select(over, n - 1000.0, n);
    let half = (n * 0.5 + MAGIC) - MAGIC;
    m * pow2(half) * s * pow2(n - half)
}

/// Keeps `x` where `Grade::exp_parts` is defined; nan stays. Beyond, all is infinite or 0, even times the least sine.
#[inline(always)]
fn limited<G: Grade>(x: f64) -> f64 {
    let (lo, hi) = if G::WIDE { (-746.0, 1460.0) } else { (-700.0, 700.0) };
    let x = if x < lo { lo } else { x };
    if x > hi { hi } else { x }
}

/// The exponential of the number with the parts `x + xl` and `y + yl`.
#[inline(always)]
fn exp_dd<I: Isa, G: Grade>((x, xl): ReIm, (y, yl): ReIm) -> ReIm {
    let (n, t) = G::exp_parts::<I>(limited::<G>(x), select(x.abs() < 1460.0, xl, 0.0));
    let (s, c) = G::sin_cos::<I>(y, yl);
    let (re, im) = (scaled::<G>(1.0 + t, c, n), scaled::<G>(1.0 + t, s, n));
    // An infinite or unknown angle: of no length it does not matter, of infinite length all is known but the angle.
    let lost = s.is_nan();
    let (nothing, endless) = (lost & (x == f64::NEG_INFINITY), lost & (x == f64::INFINITY));
    let re = select(nothing, 0.0, select(endless, x, re));
    (re, select(nothing, 0.0, select(y == 0.0, y, im)))
}

#[inline(always)]
pub fn exp<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    exp_dd::<I, G>((x, 0.0), (y, 0.0))
}

#[inline(always)]
pub fn exp2<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let ln2_times = |v: f64| {
        let (h, l) = two_prod(v, LN_2);
        (h, select(v.abs() < 1e300, fma::<I>(v, LN_2_REST, l), 0.0))
    };
    exp_dd::<I, G>(ln2_times(x), ln2_times(y))
}

/// The first number to the power of the second. A power of 0 is 1 for an exponent of 0, else 0 if the exponent's real part is positive, infinite
/// with an unknown angle if it is negative, and nan if it is 0.
#[inline(always)]
pub fn pow<I: Isa, G: Grade>(z: ReIm, (a, b): ReIm) -> ReIm {
    let zero = (z.0 == 0.0) & (z.1 == 0.0);
    let ((h, l), (t, tl)) = log::log_dd::<I, G>((select(zero, 1.0, z.0), z.1));
    let h = log::edges(z, h);
    // (a + bi) (h + l + (t + tl) i). The products of an infinite exponent have no rest.
    let sum_of_products = |a: f64, h: f64, l: f64, b: f64, t: f64, tl: f64| {
        let ((p, pe), (q, qe)) = (two_prod(a, h), two_prod(b, t));
        let (s, e) = two_sum(p, q);
        let rest = e + (pe + qe) + fma::<I>(a, l, b * tl);
        (s, select(s.abs() < 1e100, rest, 0.0))
    };
    let power = exp_dd::<I, G>(sum_of_products(a, h, l, -b, t, tl), sum_of_products(a, t, tl, b, h, l));
    let of_zero = (select(a > 0.0, 0.0, select(a < 0.0, f64::INFINITY, f64::NAN)), select(a > 0.0, 0.0, f64::NAN));
    let none = (a == 0.0) & (b == 0.0);
    let (re, im) = (select(zero, of_zero.0, power.0), select(zero, of_zero.1, power.1));
    (select(none, 1.0, re), select(none, 0.0, im))
}

/// e^x cos y - 1 is (e^x - 1) cos y - 2 sin^2(y / 2), without cancellation near 0.
#[inline(always)]
pub fn expm1<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (re, im) = exp::<I, G>((x, y));
    let (half, _) = G::sin_cos::<I>(y * 0.5, 0.0);
    let (_, c) = G::sin_cos::<I>(y, 0.0);
    let v = if x < -50.0 { -50.0 } else { x };
    let (t, tl) = G::less_one::<I>(if v > 45.0 { 45.0 } else { v });
    let near = select(x == 0.0, x, t + tl) * c - 2.0 * (half * half);
    let re = select((x > 45.0) | (c.is_nan() & (x.abs() == f64::INFINITY)), re - 1.0, near);
    (re, im)
}

/// The hyperbolic sine and cosine of `x` as `(s, c, n)`: they are s 2^n and c 2^n; n is 0 unless |x| is larger than 40.
#[inline(always)]
fn sinh_cosh<I: Isa, G: Grade>(x: f64) -> (f64, f64, f64) {
    let a = x.abs();
    let (n, m) = G::exp_parts::<I>(limited::<G>(a), 0.0);
    let (t, tl) = G::less_one::<I>(if a > 45.0 { 45.0 } else { a });
    // With e = t + 1: t (1 + 1 / e) / 2 and (e + 1 / e) / 2.
    let (e, el) = two_sum(t, 1.0);
    let q = 1.0 / e;
    let s = 0.5 * (t + (t * q + tl * (1.0 + q * q)));
    let c = 0.5 * (e + (q + (el + tl)));
    let far = a > 40.0;
    let s = select(far, 1.0 + m, select(a < 1e-9, a, s));
    (s.copysign(x), select(far, 1.0 + m, c), select(far, n - 1.0, 0.0))
}

/// A product in which 0 is stronger than infinity and nan.
#[inline(always)]
fn or_zero(a: f64, b: f64, product: f64) -> f64 {
    let sign = select(a.is_sign_negative() ^ b.is_sign_negative(), -0.0, 0.0);
    select((a == 0.0) | (b == 0.0), sign, product)
}

#[inline(always)]
pub fn sinh<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (sh, ch, n) = sinh_cosh::<I, G>(x);
    let (s, c) = G::sin_cos::<I>(y, 0.0);
    let re = or_zero(x, 1.0, scaled::<G>(sh, c, n));
    let re = select((x.abs() == f64::INFINITY) & c.is_nan(), x, re);
    // The sign of 0 is that of the product.
    let re = select((x == 0.0) & (c < 0.0), -x, re);
    (re, select(y == 0.0, y, scaled::<G>(ch, s, n)))
}

#[inline(always)]
pub fn cosh<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (sh, ch, n) = sinh_cosh::<I, G>(x);
    let (s, c) = G::sin_cos::<I>(y, 0.0);
    let re = select((x.abs() == f64::INFINITY) & c.is_nan(), x.abs(), scaled::<G>(ch, c, n));
    (re, or_zero(x, select(s.is_nan(), y, s), scaled::<G>(sh, s, n)))
}

#[inline(always)]
pub fn sin<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    turned_back(sinh::<I, G>(turned(z)))
}

#[inline(always)]
pub fn cos<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    cosh::<I, G>(turned(z))
}

/// (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y): nothing cancels.
#[inline(always)]
pub fn tanh<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    // From here on the real part is 1.
    const FAR: f64 = 20.0;
    let a = x.abs();
    let far = a > FAR;
    let (sh, ch, _) = sinh_cosh::<I, G>(select(far, FAR, a));
    let (n, m) = G::exp_parts::<I>(limited::<G>(-a), 0.0);
    let (s, c) = G::sin_cos::<I>(y, 0.0);
    let below = fma::<I>(sh, sh, c * c);
    let e = (1.0 + m) * pow2(if n < -1020.0 { -1020.0 } else { n });
    let im = select(far, 4.0 * (s * c) * e * e, s * c / below);
    let im = select(y == 0.0, y, im);
    // The double angle of an infinite one is unknown; it counts as positive, as in C's libraries.
    let im = select((a == f64::INFINITY) & s.is_nan(), 0.0f64.copysign(y), im);
    let re = select(far, 1.0, sh * ch / below).copysign(x);
    let re = select(a.is_nan() | (s.is_nan() & (a < f64::INFINITY)), f64::NAN, re);
    // 0 stays 0 with any angle.
    (select(a == 0.0, x, re), im)
}

#[inline(always)]
pub fn tan<I: Isa, G: Grade>(z: ReIm) -> ReIm {
    turned_back(tanh::<I, G>(turned(z)))
}

/// 1 / (1 + e^-z), and e^z / (1 + e^z) where the real part is negative. 1 + e^x cos y is (e^x - 1) cos y + 2 cos^2(y / 2): it does not cancel
/// near the poles.
#[inline(always)]
pub fn sigmoid<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let a = -x.abs();
    let (n, m) = G::exp_parts::<I>(limited::<G>(a), 0.0);
    let (s, c) = G::sin_cos::<I>(y, 0.0);
    let (_, half) = G::sin_cos::<I>(y * 0.5, 0.0);
    let (t, tl) = G::less_one::<I>(if a < -50.0 { -50.0 } else { a });
    // Against 1 an angle of nothing does not matter.
    let nothing = a == f64::NEG_INFINITY;
    let (s, c) = (select(nothing, 0.0f64.copysign(y), s), select(nothing, 1.0, c));
    let left = x < 0.0;
    let (ec, es) = (scaled::<G>(1.0 + m, c, n), scaled::<G>(1.0 + m, s, n));
    let (p, q) = (select(nothing, 1.0, fma::<I>(t + tl, c, 2.0 * (half * half))), select(left, es, -es));
    let by = 1.0 / fma::<I>(p, p, q * q);
    let (u, v) = (select(left, ec, 1.0), select(left, es, 0.0));
    let re = fma::<I>(u, p, v * q) * by;
    // 0 minus a product has the product's sign when that is 0.
    let im = select(left, fma::<I>(v, p, -(u * q)), -q) * by;
    (re, select(y == 0.0, y, im))
}
