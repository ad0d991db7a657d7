//! Exponentials, hyperbolic functions and the sigmoid.

use super::super::double_double::*;
use crate::simd::Isa;
use std::f64::consts::LOG2_E;

pub(super) const LN2_HI: f64 = 6.931_471_803_691_238e-1; // 33 bits: exact times a small whole number
pub(super) const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// (exp(r) - 1 - r) / r^2 for |r| < 0.35.
#[inline(always)]
fn exp_curve<I: Isa>(r: f64) -> f64 {
    poly::<I, 11>(
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
    )
}

/// `exp(x + xl) - 1` as dd before it is scaled: `(n, hi, lo)` with `exp(x + xl) = 2^n * (1 + hi + lo)`, |hi| < 0.42.
/// For `x` from -746 to 711.
#[inline(always)]
pub(in crate::simd::math) fn exp_parts<I: Isa>(x: f64, xl: f64) -> (f64, f64, f64) {
    let n = (x * LOG2_E + MAGIC) - MAGIC;
    let a = fma::<I>(-n, LN2_HI, x);
    let b = n * LN2_LO;
    let r = a - b;
    let c = ((a - r) - b) + xl;
    let p = r * r * exp_curve::<I>(r);
    let (hi, lo) = fast_two_sum(r, p);
    (n, hi, lo + fma::<I>(c, hi, c))
}

/// Keeps `x` in a range; nan stays.
#[inline(always)]
pub(super) fn limit(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x < lo { lo } else { x };
    if x > hi { hi } else { x }
}

/// exp(x) = exp(r) 2^n.
#[inline(always)]
pub fn exp<I: Isa>(x: f64) -> f64 {
    let x = limit(x, -746.0, 711.0);
    // The exponent n lies in the low bits, 2046 above itself.
    let t = fma::<I>(x, LOG2_E, MAGIC + 2046.0);
    let n = t - (MAGIC + 2046.0);
    let r = fma::<I>(-n, LN2_LO, fma::<I>(-n, LN2_HI, x));
    let curve = exp_curve::<I>(r);
    let y = if I::FMA {
        fma::<I>(fma::<I>(curve, r, 1.0), r, 1.0)
    } else {
        // The products round, which is 1.2 units in all if r itself is multiplied; the sum with 1 is kept whole instead.
        let (y, rest) = fast_two_sum(1.0, r);
        y + (rest + r * r * curve)
    };
    // Two powers of 2 of about half the exponent: the last product alone may round, or overflow.
    let half = (t.to_bits() << 51) & 0x7FF0_0000_0000_0000;
    let rest = (t.to_bits() << 52).wrapping_sub(half);
    y * f64::from_bits(half) * f64::from_bits(rest)
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

/// As for `f32`: with |x| = n ln 2 / 2 + r and r from -0.09 to 0.26, tanh |x| = (s (t + 1) + (t - 1)) / (s (t - 1) + (t + 1)), s = tanh r,
/// t = 2^n.
#[inline(always)]
pub fn tanh<I: Isa>(x: f64) -> f64 {
    // Added to a number below 2^50, it leaves that rounded to halves; without the last bit, which is the half, n is the floor of its
    // multiple and a quarter.
    const HALVES: f64 = 3_377_699_720_527_872.0 + 1023.0;
    let a = x.abs();
    // Beyond n = 52 the sums with 1 are not exact; r is larger then than what the polynomial is made for, but a few bits of it suffice.
    let t = fma::<I>(if a > 18.15 { 18.15 } else { a }, 2.0 * LOG2_E, HALVES).to_bits() & !1;
    let n = f64::from_bits(t) - HALVES;
    let a = if a > 19.1 { 19.1 } else { a };
    let r = fma::<I>(-n, 0.5 * LN2_LO, fma::<I>(-n, 0.5 * LN2_HI, a));
    let t = f64::from_bits(t << 51);
    let z = r * r;
    let q = poly::<I, 8>(
        z,
        [
            -0.3333333333333333,
            0.13333333333332759,
            -0.05396825396648238,
            0.02186948832789926,
            -0.008863223490548567,
            0.0035917491998048775,
            -0.0014492006500556314,
            0.0005288665201276495,
        ],
    );
    let s = fma::<I>(r * z, q, r);
    let (less, more) = (t - 1.0, t + 1.0);
    let num = s.mul_add(more, less);
    let den = s.mul_add(less, more);
    let num_l = s.mul_add(more, less - num);
    let den_l = s.mul_add(less, more - den);
    // One division is enough: the remainder corrects the rounding of the product.
    let r = 1.0 / den;
    let y = num * r;
    let rest = (-y).mul_add(den, num) + fma::<I>(-y, den_l, num_l);
    fma::<I>(rest, r, y).copysign(x)
}

#[inline(always)]
pub fn sigmoid<I: Isa>(x: f64) -> f64 {
    // exp(-x) = 2^n (m + l).
    let v = limit(x, -746.0, 746.0);
    let t = fma::<I>(v, -LOG2_E, MAGIC + 1023.0);
    let n = t - (MAGIC + 1023.0);
    let r = fma::<I>(-n, LN2_LO, fma::<I>(-n, LN2_HI, -v));
    let q = fma::<I>(exp_curve::<I>(r), r, 1.0);
    let m = q.mul_add(r, 1.0);
    let l = q.mul_add(r, 1.0 - m);
    // Beyond 2^1000 the rest of the power is left for the end, where the result may be subnormal; 1 does not count there. A power
    // below 2^-1000 does not count against 1.
    let top = if t > MAGIC + 2023.0 { MAGIC + 2023.0 } else { t };
    let low = if top < MAGIC + 23.0 { MAGIC + 23.0 } else { top };
    let p = f64::from_bits(low.to_bits() << 52);
    let e = m * p;
    let (large, small) = (if e > 1.0 { e } else { 1.0 }, if e > 1.0 { 1.0 } else { e });
    let d = 1.0 + e;
    let dl = fma::<I>(l, p, small - (d - large));
    let y = 1.0 / d;
    let y = fma::<I>(fma::<I>(-dl, y, (-d).mul_add(y, 1.0)), y, y);
    y * f64::from_bits((top.to_bits().wrapping_sub(t.to_bits()) << 52).wrapping_add(1023 << 52))
}
