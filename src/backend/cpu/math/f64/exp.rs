//! Exponentials, hyperbolic functions and the sigmoid.

use super::super::parts::*;
use crate::backend::cpu::num::Isa;
use std::f64::consts::LOG2_E;

pub(super) const LN2_HI: f64 = 6.931_471_803_691_238e-1; // 33 bits: exact times a small whole number
pub(super) const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// `exp(x + xl) - 1` as dd before it is scaled: `(n, hi, lo)` with `exp(x + xl) = 2^n * (1 + hi + lo)`, |hi| < 0.42.
/// For `x` from -746 to 711.
#[inline(always)]
pub(super) fn exp_parts<I: Isa>(x: f64, xl: f64) -> (f64, f64, f64) {
    let n = (x * LOG2_E + MAGIC) - MAGIC;
    let a = fma::<I>(-n, LN2_HI, x);
    let b = n * LN2_LO;
    let r = a - b;
    let c = ((a - r) - b) + xl;
    let q = poly::<I, 11>(
        r,
        [
            0.5,
            0.1666666666666667,
            0.04166666666666667,
            0.008333333333326084,
            0.0013888888888883711,
            0.0001984126987500228,
            2.480158732567746e-05,
            2.755725517000089e-06,
            2.755727347871858e-07,
            2.5105312729622103e-08,
            2.09147553258932e-09,
        ],
    );
    let p = r * r * q;
    let (hi, lo) = fast_two_sum(r, p);
    (n, hi, lo + fma::<I>(c, hi, c))
}

/// Keeps `x` in a range; nan stays.
#[inline(always)]
pub(super) fn limit(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x < lo { lo } else { x };
    if x > hi { hi } else { x }
}

#[inline(always)]
pub fn exp<I: Isa>(x: f64) -> f64 {
    let (n, hi, lo) = exp_parts::<I>(limit(x, -746.0, 711.0), 0.0);
    scale(1.0 + (hi + lo), n)
}

#[inline(always)]
pub fn exp2<I: Isa>(x: f64) -> f64 {
    let x = limit(x, -1076.0, 1025.0);
    let n = (x + MAGIC) - MAGIC;
    // x - n is exact; its product with ln 2 is kept as dd.
    let (h, l) = two_prod(x - n, std::f64::consts::LN_2);
    let l = fma::<I>(x - n, 2.3190468138462996e-17, l);
    let (m, hi, lo) = exp_parts::<I>(h, l);
    scale(1.0 + (hi + lo), n + m)
}

/// `exp(x) - 1` as dd, for |x| up to 700.
#[inline(always)]
pub(super) fn expm1_dd<I: Isa>(x: f64) -> (f64, f64) {
    let (n, hi, lo) = exp_parts::<I>(x, 0.0);
    let t = pow2(n);
    let (a, al) = two_sum(t, -1.0);
    let (s, e) = fast_two_sum(a, t * hi);
    fast_two_sum(s, e + (al + t * lo))
}

#[inline(always)]
pub fn expm1<I: Isa>(x: f64) -> f64 {
    let (h, l) = expm1_dd::<I>(limit(x, -50.0, 700.0));
    let y = if x > 60.0 { exp::<I>(x) } else { h + l };
    if x == 0.0 { x } else { y }
}

/// exp(|x|) / 2 for |x| from 20 on; infinite beyond the range.
#[inline(always)]
fn half_exp<I: Isa>(a: f64) -> f64 {
    let (n, hi, lo) = exp_parts::<I>(limit(a, 0.0, 712.0), 0.0);
    scale(1.0 + (hi + lo), n - 1.0)
}

#[inline(always)]
pub fn sinh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    // With t = exp(a) - 1: sinh = (t + t / (t + 1)) / 2.
    let (t, tl) = expm1_dd::<I>(limit(a, 0.0, 45.0));
    let (d, dl) = fast_two_sum(if t > 1.0 { t } else { 1.0 }, if t > 1.0 { 1.0 } else { t });
    let (q, ql) = div_dd(t, tl, d, dl + tl);
    let (s, e) = fast_two_sum(t, q);
    let y = (s + (e + (tl + ql))) * 0.5;
    let y = if a > 40.0 { half_exp::<I>(a) } else { y };
    let y = if a < 1e-9 { a } else { y };
    (if x.is_nan() { x } else { y }).copysign(x)
}

#[inline(always)]
pub fn cosh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (n, hi, lo) = exp_parts::<I>(limit(a, 0.0, 45.0), 0.0);
    let (m, ml) = fast_two_sum(1.0, hi);
    let p = pow2(n);
    let (e, el) = (m * p, (ml + lo) * p);
    let (q, ql) = div_dd(1.0, 0.0, e, el);
    let (s, t) = fast_two_sum(e, q);
    let y = (s + (t + (el + ql))) * 0.5;
    if a > 40.0 { half_exp::<I>(a) } else { y }
}

#[inline(always)]
pub fn tanh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (t, tl) = expm1_dd::<I>(-2.0 * limit(a, 0.0, 20.0));
    let (d, dl) = fast_two_sum(2.0, t);
    let (q, ql) = div_dd(-t, -tl, d, dl + tl);
    let y = if a < 1e-9 { a } else { q + ql };
    (if x.is_nan() { x } else { y }).copysign(x)
}

#[inline(always)]
pub fn sigmoid<I: Isa>(x: f64) -> f64 {
    let a = limit(-x.abs(), -746.0, 0.0);
    let (n, hi, lo) = exp_parts::<I>(a, 0.0);
    let (m, ml) = fast_two_sum(1.0, hi);
    let ml = ml + lo;
    // exp(-|x|) where it is too small to count against 1 needs no care.
    let p = pow2(if n < -1000.0 { -1000.0 } else { n });
    let (d, dl) = fast_two_sum(1.0, m * p);
    let dl = dl + ml * p;
    let positive = x > 0.0;
    let (q, ql) = div_dd(if positive { 1.0 } else { m }, if positive { 0.0 } else { ml }, d, dl);
    let y = scale(q + ql, if positive { 0.0 } else { n });
    if x.is_nan() { x } else { y }
}
