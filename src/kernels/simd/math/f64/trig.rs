//! Trigonometric functions and their inverses.

use super::super::double_double::*;
use crate::simd::Isa;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

const PI_LO: f64 = 1.224_646_799_147_353_2e-16;

/// `x` minus the nearest multiple of pi/2, as dd, and that multiple's number in the low bits; for |x| up to `TRIG_LIMIT`.
#[inline(always)]
fn reduce(x: f64) -> (f64, f64, u64) {
    let t = x * std::f64::consts::FRAC_2_PI + MAGIC;
    let n = t - MAGIC;
    // Exact: the product is a multiple of the unit of pi/2's last place, and the difference is small.
    let a = (-n).mul_add(FRAC_PI_2, x);
    let (p, e) = two_prod(n, 6.123233995736766e-17);
    let (s, t2) = two_sum(a, -p);
    let (h, l) = fast_two_sum(s, t2 - n.mul_add(-1.4973849048591698e-33, e));
    (h, l, t.to_bits())
}

/// Up to here the vectorised reduction is exact enough; beyond, the platform's scalar functions are called.
pub const TRIG_LIMIT: f64 = 1_000_000.0;

/// sin(h + l) as dd, |h| <= pi/4.
#[inline(always)]
fn sin_dd<I: Isa>(h: f64, l: f64) -> (f64, f64) {
    let z = h * h;
    let p = poly::<I, 7>(
        z,
        [
            -0.16666666666666666,
            0.008333333333333331,
            -0.0001984126984126504,
            2.755731921932058e-06,
            -2.50521062259944e-08,
            1.6058530596645953e-10,
            -7.586636882825159e-13,
        ],
    );
    fast_two_sum(h, fma::<I>(h * z, p, fma::<I>(-0.5 * z, l, l)))
}

/// cos(h + l) as dd, |h| <= pi/4.
#[inline(always)]
fn cos_dd<I: Isa>(h: f64, l: f64) -> (f64, f64) {
    let z = h * h;
    let p = poly::<I, 7>(
        z,
        [
            0.041666666666666664,
            -0.0013888888888888887,
            2.4801587301584632e-05,
            -2.755731922139249e-07,
            2.0876755787492604e-09,
            -1.1470460319209511e-11,
            4.745838412531023e-14,
        ],
    );
    let (a, b) = fast_two_sum(1.0, -0.5 * z);
    // The rounding of z itself matters too.
    let zl = if I::FMA { h.mul_add(h, -z) } else { 0.0 };
    fast_two_sum(a, b + (fma::<I>(z * z, p, -h * l) - 0.5 * zl))
}

#[inline(always)]
pub fn sin<I: Isa>(x: f64) -> f64 {
    if I::FULL_RANGE {
        return x.sin();
    }
    let (h, l, n) = reduce(x);
    let (s, c) = (sin_dd::<I>(h, l), cos_dd::<I>(h, l));
    let y = if n & 1 == 0 { s.0 + s.1 } else { c.0 + c.1 };
    let y = f64::from_bits(y.to_bits() ^ ((n & 2) << 62));
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub fn cos<I: Isa>(x: f64) -> f64 {
    if I::FULL_RANGE {
        return x.cos();
    }
    let (h, l, n) = reduce(x);
    let (s, c) = (sin_dd::<I>(h, l), cos_dd::<I>(h, l));
    let y = if n & 1 == 0 { c.0 + c.1 } else { s.0 + s.1 };
    f64::from_bits(y.to_bits() ^ ((n.wrapping_add(1) & 2) << 62))
}

/// The sine and the cosine of `x + xl`, where `xl` is far below `x`. Beyond 2^50 `FullRange` is needed; others give those of 0 there.
#[inline(always)]
pub(in crate::simd::math) fn sin_cos<I: Isa>(x: f64, xl: f64) -> (f64, f64) {
    if I::FULL_RANGE {
        let (s, c) = x.sin_cos();
        return (if x == 0.0 { x } else { s + c * xl }, c - s * xl);
    }
    // Infinity stays nan.
    let (h, l, n) = reduce(if x.abs() > 1_125_899_906_842_624.0 { x * 0.0 } else { x });
    let (h, l) = fast_two_sum(h, l + xl);
    let (s, c) = (sin_dd::<I>(h, l), cos_dd::<I>(h, l));
    let (s, c) = (s.0 + s.1, c.0 + c.1);
    let even = n & 1 == 0;
    let (sin, cos) = (if even { s } else { c }, if even { c } else { s });
    let sin = f64::from_bits(sin.to_bits() ^ ((n & 2) << 62));
    (if x == 0.0 { x } else { sin }, f64::from_bits(cos.to_bits() ^ ((n.wrapping_add(1) & 2) << 62)))
}

#[inline(always)]
pub fn tan<I: Isa>(x: f64) -> f64 {
    if I::FULL_RANGE {
        return x.tan();
    }
    let (h, l, n) = reduce(x);
    let (s, c) = (sin_dd::<I>(h, l), cos_dd::<I>(h, l));
    let odd = n & 1 == 1;
    let (a, b) = if odd { (c, s) } else { (s, c) };
    let (q, e) = div_dd(a.0, a.1, b.0, b.1);
    let y = if odd { -(q + e) } else { q + e };
    if x.abs() < 1e-9 { x } else { y }
}

/// The arc tangent of (a + al) / (b + bl), all positive or zero, as dd; at most pi/2. Not both 0, nothing infinite.
#[inline(always)]
fn atan_ratio<I: Isa>(a: f64, b: f64) -> (f64, f64) {
    let steep = a > b * 2.414213562373095;
    let middle = a > b * 0.41421356237309503;
    let (sum, diff) = (two_sum(a, b), two_sum(a, -b));
    let num = if middle { diff } else { (a, 0.0) };
    let den = if middle { sum } else { (b, 0.0) };
    let num = if steep { (-b, 0.0) } else { num };
    let den = if steep { (a, 0.0) } else { den };
    let (t, tl) = div_dd(num.0, num.1, den.0, den.1);
    // The remainder of a quotient near the subnormals is noise.
    let tl = if t.abs() < 1e-290 { 0.0 } else { tl };
    let z = t * t;
    let p = t
        * z
        * poly::<I, 13>(
            z,
            [
                -0.3333333333333333,
                0.19999999999999993,
                -0.1428571428571149,
                0.11111111110751482,
                -0.0909090906681608,
                0.07692306729194896,
                -0.06666641869131183,
                0.058819230561140225,
                -0.05258020272656758,
                0.04719259188242093,
                -0.04103887546862687,
                0.030622995553735516,
                -0.013905374533113234,
            ],
        );
    let (off, off_lo) = if middle { (FRAC_PI_4, 3.061616997868383e-17) } else { (0.0, 0.0) };
    let (off, off_lo) = if steep { (FRAC_PI_2, 6.123233995736766e-17) } else { (off, off_lo) };
    let (h, e) = fast_two_sum(off, t);
    // The derivative 1 / (1 + t^2) of what the quotient lost.
    fast_two_sum(h, e + (p + fma::<I>(-z, tl, tl) + off_lo))
}

#[inline(always)]
pub fn atan<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let big = if a > 1e300 { 1e300 } else { a };
    let (h, l) = atan_ratio::<I>(big, 1.0);
    let y = (h + l).copysign(x);
    if a < 1e-9 { x } else { y }
}

#[inline(always)]
pub fn atan2<I: Isa>(y: f64, x: f64) -> f64 {
    let (h, l) = atan2_dd::<I>(y, x);
    h + l
}

/// The angle of (x, y) as dd.
#[inline(always)]
pub(in crate::simd::math) fn atan2_dd<I: Isa>(y: f64, x: f64) -> (f64, f64) {
    let (a, b) = (y.abs(), x.abs());
    let both = (a == f64::INFINITY) & (b == f64::INFINITY);
    let top = if a > b { a } else { b };
    // Far from overflow and from the subnormals; a quotient is what counts.
    let factor = if top > 1e290 { 1e-20 } else { 1.0 };
    let factor = if top < 1e-250 { 1.329227995784916e36 * 1.329227995784916e36 } else { factor };
    let (p, q) = (a * factor, b * factor);
    let p = if both { 1.0 } else { p };
    let q = if both { 1.0 } else { q };
    let q = if top == 0.0 { 1.0 } else { q };
    // One infinity: any quotient that is large enough does.
    let (p, q) = if (a == f64::INFINITY) & !both { (1.0, 0.0) } else { (p, q) };
    let (p, q) = if (b == f64::INFINITY) & !both { (0.0, 1.0) } else { (p, q) };
    let (h, l) = atan_ratio::<I>(p, q);
    let (s, e) = fast_two_sum(PI, -h);
    let left = x.is_sign_negative();
    let (r, rl) = (if left { s } else { h }, if left { e + (PI_LO - l) } else { l });
    // Where the angle is the quotient itself, the quotient is rounded only once.
    let quotient = (a < b * 1e-9) & x.is_sign_positive();
    let (r, rl) = (if quotient { a / b } else { r }, if quotient { 0.0 } else { rl });
    let r = if x.is_nan() | y.is_nan() { f64::NAN } else { r };
    (r.copysign(y), if y.is_sign_negative() { -rl } else { rl })
}

/// asin(t) - t - tl for |t| <= 0.5, as t^3 times a polynomial.
#[inline(always)]
fn asin_rest<I: Isa>(t: f64) -> f64 {
    let z = t * t;
    t * z
        * poly::<I, 13>(
            z,
            [
                0.16666666666666669,
                0.07499999999998425,
                0.04464285714637338,
                0.030381944137085216,
                0.022372173002005596,
                0.017352391265909227,
                0.013971235301124539,
                0.011478952690257387,
                0.010324318288744113,
                0.00545087818772055,
                0.017419357964884856,
                -0.014881409392818066,
                0.02877844261259304,
            ],
        )
}

/// sqrt((1 - a) / 2) as dd, for a from 0.5 to 1.
#[inline(always)]
fn half_chord(a: f64) -> (f64, f64) {
    let z = (1.0 - a) * 0.5;
    let s = z.sqrt();
    let e = (-s).mul_add(s, z) / (2.0 * s);
    (s, if z > 0.0 { e } else { 0.0 })
}

#[inline(always)]
pub fn asin<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let outer = a > 0.5;
    let (s, sl) = half_chord(a);
    let t = if outer { s } else { a };
    let rest = asin_rest::<I>(t);
    let (h, e) = fast_two_sum(FRAC_PI_2, -2.0 * s);
    let far = h + (e + (6.123233995736766e-17 - 2.0 * (sl + rest)));
    let y = if outer { far } else { a + rest };
    let y = if a > 1.0 { f64::NAN } else { y };
    y.copysign(x)
}

#[inline(always)]
pub fn acos<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let outer = a > 0.5;
    let (s, sl) = half_chord(a);
    let rest = asin_rest::<I>(if outer { s } else { x });
    let near = 2.0 * s + 2.0 * (sl + rest);
    let (h, e) = fast_two_sum(PI, -2.0 * s);
    let far = h + (e + (PI_LO - 2.0 * (sl + rest)));
    let (h, e) = fast_two_sum(FRAC_PI_2, -x);
    let inner = h + (e + (6.123233995736766e-17 - rest));
    let y = if x < 0.0 { far } else { near };
    let y = if outer { y } else { inner };
    if a > 1.0 { f64::NAN } else { y }
}
