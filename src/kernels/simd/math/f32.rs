//! Functions of `f32`. The functions that dominate the time of models are computed in `f32`; the others in `f64` with polynomials of some
//! 28 to 37 bits, so that they are nearly correctly rounded.

use super::double_double::*;
use super::f64::power_edges;
use crate::simd::Isa;
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_E, PI};

const LN2_HI: f32 = 0.693_145_75; // 16 bits
const LN2_LO: f32 = 1.428_606_8e-6;
const PI_LO: f64 = 1.224_646_799_147_353_2e-16;
/// 1.5 * 2^23: added to a number below 2^22, it leaves that rounded to a whole number in the low bits.
pub const MAGIC32: f32 = 12_582_912.0;
/// What `LN_2` lacks.
pub const LN2_REST: f32 = -1.904_654_2e-9;
/// Of (exp(r) - 1) / r for |r| < 0.35.
pub const EXP_SLOPE: [f32; 6] = [1.0, 0.49999994, 0.16666521, 0.041668266, 0.008368676, 0.0013820742];

#[inline(always)]
fn limit(x: f32, lo: f32, hi: f32) -> f32 {
    let x = if x < lo { lo } else { x };
    if x > hi { hi } else { x }
}

/// x - n ln 2 for a small whole n. The first subtraction is exact: x and the product are near and multiples of the same unit.
#[inline(always)]
fn less_ln2<I: Isa>(x: f32, n: f32) -> f32 {
    fmaf::<I>(-n, LN2_REST, fmaf::<I>(-n, std::f32::consts::LN_2, x))
}

/// (exp(r) - 1) / r for |r| < 0.35.
#[inline(always)]
fn exp_slope<I: Isa>(r: f32) -> f32 {
    polyf::<I, 6>(r, EXP_SLOPE)
}

/// exp(x) = exp(r) 2^n.
#[inline(always)]
pub fn exp<I: Isa>(x: f32) -> f32 {
    let x = limit(x, -104.0, 89.0);
    // The exponent n lies in the low bits, 254 above itself.
    let t = fmaf::<I>(x, std::f32::consts::LOG2_E, MAGIC32 + 254.0);
    let r = less_ln2::<I>(x, t - (MAGIC32 + 254.0));
    // Two powers of 2 of about half the exponent: the last product alone may round, or overflow.
    let half = (t.to_bits() << 22) & 0x7F80_0000;
    let rest = (t.to_bits() << 23).wrapping_sub(half);
    fmaf::<I>(exp_slope::<I>(r), r, 1.0) * f32::from_bits(half) * f32::from_bits(rest)
}

/// With |x| = n ln 2 / 2 + r and r from -0.09 to 0.26: tanh |x| = (s (t + 1) + (t - 1)) / (s (t - 1) + (t + 1)), s = tanh r, t = 2^n.
#[inline(always)]
pub fn tanh<I: Isa>(x: f32) -> f32 {
    // Added to a number below 2^21, it leaves that rounded to halves; without the last bit, which is the half, n is the floor of its
    // multiple and a quarter.
    const HALVES: f32 = 6_291_456.0 + 127.0;
    let a = x.abs();
    // Beyond n = 23 the sums with 1 are not exact; r is larger then than what the polynomial is made for, but a few bits of it suffice.
    let t = fmaf::<I>(if a > 8.1 { 8.1 } else { a }, 2.0 * std::f32::consts::LOG2_E, HALVES).to_bits() & !1;
    let n = f32::from_bits(t) - HALVES;
    let a = if a > 9.02 { 9.02 } else { a };
    let r = fmaf::<I>(-n, 0.5 * -1.904_654_2e-9, fmaf::<I>(-n, 0.5 * std::f32::consts::LN_2, a));
    let t = f32::from_bits(t << 22);
    let z = r * r;
    let s = fmaf::<I>(r * z, polyf::<I, 4>(z, [-0.33333322, 0.13332422, -0.05373374, 0.019472241]), r);
    let (less, more) = (t - 1.0, t + 1.0);
    let num = fmaf::<I>(s, more, less);
    let den = fmaf::<I>(s, less, more);
    let num_l = fmaf::<I>(s, more, less - num);
    let den_l = fmaf::<I>(s, less, more - den);
    // One division is enough: the remainder corrects the rounding of the product.
    let r = 1.0 / den;
    let y = num * r;
    let rest = fmaf::<I>(-y, den, num) + fmaf::<I>(-y, den_l, num_l);
    fmaf::<I>(rest, r, y).copysign(x)
}

#[inline(always)]
pub fn sigmoid<I: Isa>(x: f32) -> f32 {
    // exp(-x) = 2^n (m + l).
    let v = limit(x, -104.0, 104.0);
    let t = fmaf::<I>(v, -std::f32::consts::LOG2_E, MAGIC32 + 127.0);
    let r = less_ln2::<I>(-v, t - (MAGIC32 + 127.0));
    let q = exp_slope::<I>(r);
    let m = fmaf::<I>(q, r, 1.0);
    let l = fmaf::<I>(q, r, 1.0 - m);
    // Beyond 2^100 the rest of the power is left for the end, where the result may be subnormal; 1 does not count there. A power
    // below 2^-100 does not count against 1.
    let top = if t > MAGIC32 + 227.0 { MAGIC32 + 227.0 } else { t };
    let low = if top < MAGIC32 + 27.0 { MAGIC32 + 27.0 } else { top };
    let p = f32::from_bits(low.to_bits() << 23);
    let e = m * p;
    let (large, small) = (if e > 1.0 { e } else { 1.0 }, if e > 1.0 { 1.0 } else { e });
    let d = 1.0 + e;
    let dl = fmaf::<I>(l, p, small - (d - large));
    let y = 1.0 / d;
    let y = fmaf::<I>(fmaf::<I>(-dl, y, fmaf::<I>(-d, y, 1.0)), y, y);
    y * f32::from_bits((top.to_bits().wrapping_sub(t.to_bits()) << 23).wrapping_add(127 << 23))
}

#[inline(always)]
pub fn log<I: Isa>(x: f32) -> f32 {
    const MIN_ELEMENTS: u32 = 0x3F35_04F3; // sqrt(1/2)
    let tiny = x < f32::MIN_POSITIVE;
    let v = if tiny { x * 33_554_432.0 } else { x };
    let t = v.to_bits().wrapping_sub(MIN_ELEMENTS).wrapping_add(127 << 23);
    let k = (t >> 23) as i32 as f32 - if tiny { 152.0 } else { 127.0 };
    let f = f32::from_bits((t & 0x007F_FFFF) + MIN_ELEMENTS) - 1.0;
    let p =
        polyf::<I, 9>(f, [0.3333333, -0.24999997, 0.20000717, -0.16667807, 0.14249007, -0.12425523, 0.11685785, -0.11481212, 0.069725186]);
    let z = f * f;
    // log(1 + f) is f + z * (f * p - 1/2); the largest parts, k ln 2 and f, are added without loss.
    let t = fmaf::<I>(z, fmaf::<I>(f, p, -0.5), k * LN2_LO);
    let a = k * LN2_HI;
    let s = a + f;
    let y = s + (((a - s) + f) + t);
    // Finite numbers add 0; nan stays, and infinity is set below.
    let y = fmaf::<I>(x, 0.0, y);
    let y = if x > f32::MAX { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < 0.0 { f32::NAN } else { y }
}

/// For quotients below this the integer part is exact.
pub const QUOTIENT_LIMIT: f32 = super::f64::QUOTIENT_LIMIT as f32;

/// Up to here the vectorised reduction is exact enough; beyond, the platform's scalar functions are called.
pub const TRIG_LIMIT: f32 = 1e9;

/// 1 / d to some 46 bits, and 0 where d is beyond `f32`: half as wide a division, and a step of Newton's. For d from 2^-126 on.
#[inline(always)]
fn recip_light<I: Isa>(d: f64) -> f64 {
    let r = (1.0 / d as f32) as f64;
    r * fma::<I>(-d, r, 2.0)
}

/// sin(r) for |r| <= pi/2.
#[inline(always)]
fn sin_half<I: Isa>(r: f64) -> f64 {
    let z = r * r;
    let p = poly::<I, 4>(z, [-0.16666659550052654, 0.008333066238204335, -0.00019809602399753696, 2.6057796378005662e-06]);
    r * fma::<I>(z, p, 1.0)
}

#[inline(always)]
pub fn sin<I: Isa>(x: f32) -> f32 {
    let x = x as f64;
    if I::FULL_RANGE {
        return x.sin() as f32;
    }
    let t = fma::<I>(x, FRAC_1_PI, MAGIC);
    let n = t - MAGIC;
    let r = (-n).mul_add(PI_LO, (-n).mul_add(PI, x));
    f64::from_bits(sin_half::<I>(r).to_bits() ^ (t.to_bits() << 63)) as f32
}

#[inline(always)]
pub fn cos<I: Isa>(x: f32) -> f32 {
    let x = x as f64;
    if I::FULL_RANGE {
        return x.cos() as f32;
    }
    let t = fma::<I>(x, FRAC_1_PI, -0.5) + MAGIC;
    let n = (t - MAGIC) + 0.5;
    let r = (-n).mul_add(PI_LO, (-n).mul_add(PI, x));
    f64::from_bits(sin_half::<I>(-r).to_bits() ^ (t.to_bits() << 63)) as f32
}

/// Of `x` minus the nearest multiple of pi/2 the sine and the cosine, and that multiple's number in the low bits.
#[inline(always)]
fn sin_cos_parts<I: Isa>(x: f64) -> (f64, f64, u64) {
    let t = fma::<I>(x, FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    let r = (-n).mul_add(6.123233995736766e-17, (-n).mul_add(FRAC_PI_2, x));
    let z = r * r;
    let s = poly::<I, 3>(z, [-0.1666665460849655, 0.008332160702571744, -0.0001951527565442513]);
    let s = r * fma::<I>(z, s, 1.0);
    let c = poly::<I, 3>(z, [0.041666645680921655, -0.0013887316161577158, 2.4433146997063472e-05]);
    let c = fma::<I>(z * z, c, fma::<I>(-0.5, z, 1.0));
    (s, c, t.to_bits())
}

/// The sine and the cosine of a double, to some 32 bits. Beyond 2^50 `FullRange` is needed; others give those of 0 there.
#[inline(always)]
pub(super) fn sin_cos_light<I: Isa>(x: f64) -> (f64, f64) {
    if I::FULL_RANGE {
        return x.sin_cos();
    }
    // Infinity stays nan.
    let (s, c, n) = sin_cos_parts::<I>(if x.abs() > 1_125_899_906_842_624.0 { x * 0.0 } else { x });
    let even = n & 1 == 0;
    let (sin, cos) = (if even { s } else { c }, if even { c } else { s });
    (f64::from_bits(sin.to_bits() ^ ((n & 2) << 62)), f64::from_bits(cos.to_bits() ^ ((n.wrapping_add(1) & 2) << 62)))
}

#[inline(always)]
pub fn tan<I: Isa>(x: f32) -> f32 {
    let x = x as f64;
    if I::FULL_RANGE {
        return x.tan() as f32;
    }
    let (s, c, t) = sin_cos_parts::<I>(x);
    let odd = t & 1 == 1;
    (if odd { -c } else { s } * recip_light::<I>(if odd { s } else { c })) as f32
}

/// exp(x) in double, to some 32 bits; for x from -700 to 700.
#[inline(always)]
pub(super) fn exp_light<I: Isa>(x: f64) -> f64 {
    let (n, e) = expm1_light::<I>(x);
    pow2(n) * (1.0 + e)
}

/// `(n, e)` with exp(x) = 2^n * (1 + e).
#[inline(always)]
pub(super) fn expm1_light<I: Isa>(x: f64) -> (f64, f64) {
    let n = fma::<I>(x, LOG2_E, MAGIC) - MAGIC;
    let r = fma::<I>(-n, LN_2, x);
    let q = poly::<I, 6>(
        r,
        [0.5000000044224406, 0.16666666370251118, 0.04166636064510839, 0.008333389377593436, 0.0013940649650172894, 0.00019845900978214727],
    );
    (n, fma::<I>(r * r, q, r))
}

/// log(x) of a positive, normal double, to some 37 bits.
#[inline(always)]
pub(super) fn log_light<I: Isa>(x: f64) -> f64 {
    let (m, k) = split(x);
    let f = m - 1.0;
    let s = f * recip_light::<I>(2.0 + f);
    let z = s * s;
    let g = poly::<I, 4>(z, [0.6666666564361174, 0.40000335643454693, 0.2853727775020411, 0.2358277160880651]);
    fma::<I>(k, LN_2, fma::<I>(s * z, g, 2.0 * s))
}

/// log(1 + x) for x > -1, to some 37 bits of the result.
#[inline(always)]
fn log1p_light<I: Isa>(x: f64) -> f64 {
    let u = 1.0 + x;
    // The rounding error of the sum, to first order; a few bits are enough.
    fma::<I>(x - (u - 1.0), (1.0 / u as f32) as f64, log_light::<I>(u))
}

/// Logarithms at the edges: of zero, below zero, of infinity and nan.
#[inline(always)]
fn log_edges(x: f32, y: f64) -> f32 {
    // Finite numbers add 0; nan stays, and infinity is set below.
    let y = y as f32 + x * 0.0;
    let y = if x > f32::MAX { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < 0.0 { f32::NAN } else { y }
}

#[inline(always)]
pub fn exp2<I: Isa>(x: f32) -> f32 {
    exp_light::<I>(limit(x, -160.0, 130.0) as f64 * LN_2) as f32
}

#[inline(always)]
pub fn expm1<I: Isa>(x: f32) -> f32 {
    let (n, e) = expm1_light::<I>(limit(x, -100.0, 100.0) as f64);
    let t = pow2(n);
    let y = fma::<I>(t, e, t - 1.0) as f32;
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub fn log2<I: Isa>(x: f32) -> f32 {
    // The exponent is added exactly: log2 of a power of 2 is whole.
    let (m, k) = split(x as f64);
    log_edges(x, fma::<I>(log_light::<I>(m), LOG2_E, k))
}

#[inline(always)]
pub fn log10<I: Isa>(x: f32) -> f32 {
    log_edges(x, log_light::<I>(x as f64) * LOG10_E)
}

#[inline(always)]
pub fn log1p<I: Isa>(x: f32) -> f32 {
    const MIN_ELEMENTS: u32 = 0x3F35_04F3; // sqrt(1/2)
    // 1 + x = 2^k (1 + g / 4); the factor 4 keeps 4 * 2^-k a normal number.
    let k = (1.0 + x).to_bits().wrapping_sub(MIN_ELEMENTS) & 0xFF80_0000;
    let s = f32::from_bits((129u32 << 23).wrapping_sub(k));
    let k = k as i32 as f32; // 2^23 k
    let g = fmaf::<I>(x, s, s - 4.0);
    let gl = fmaf::<I>(x, s, (s - 4.0) - g);
    let p = polyf::<I, 8>(
        g,
        [
            0.333_333_3 / 16.0,
            -0.2500082 / 64.0,
            0.20001243 / 256.0,
            -0.16623412 / 1024.0,
            0.14201544 / 4096.0,
            -0.13159537 / 16384.0,
            0.12762429 / 65536.0,
            -0.07636894 / 262144.0,
        ],
    );
    // 4 log(1 + g / 4) is g + g^2 (g p - 1/8); the largest parts, 4 k ln 2 and g, are added without loss.
    let t = fmaf::<I>(g * g, fmaf::<I>(g, p, -0.125), fmaf::<I>(k, LN2_LO / 2_097_152.0, gl));
    let a = k * (LN2_HI / 2_097_152.0);
    let s = a + g;
    let y = ((s + (((a - s) + g) + t)) * 0.25).copysign(x);
    let edge = if x < -1.0 { f32::NAN } else { x };
    let edge = if x == -1.0 { f32::NEG_INFINITY } else { edge };
    if (x > -1.0) & (x < f32::INFINITY) { y } else { edge }
}

/// atan(a / b) for a, b >= 0, not both 0, nothing infinite.
#[inline(always)]
pub(super) fn atan_ratio<I: Isa>(a: f64, b: f64) -> f64 {
    let steep = a > b * 2.414213562373095;
    let middle = a > b * 0.41421356237309503;
    let num = if middle { a - b } else { a };
    let den = if middle { a + b } else { b };
    let num = if steep { -b } else { num };
    let den = if steep { a } else { den };
    let off = if middle { FRAC_PI_4 } else { 0.0 };
    let off = if steep { FRAC_PI_2 } else { off };
    let t = num / den;
    let z = t * t;
    let p = poly::<I, 6>(
        z,
        [-0.3333333249885427, 0.19999903884005377, -0.1428200706895893, 0.11044683002688835, -0.08476220477993383, 0.04743946150749623],
    );
    off + fma::<I>(t * z, p, t)
}

#[inline(always)]
pub fn atan<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let y = atan_ratio::<I>(if a > 1e30 { 1e30 } else { a } as f64, 1.0) as f32;
    let y = if a < 1e-5 { a } else { y };
    y.copysign(x)
}

#[inline(always)]
pub fn atan2<I: Isa>(y: f32, x: f32) -> f32 {
    // f64 has room for every quotient of f32; an infinity only has to be far larger than all else.
    let (a, b) = (y.abs(), x.abs());
    let a = if a == f32::INFINITY { 1e120 } else { a as f64 };
    let b = if b == f32::INFINITY { 1e120 } else { b as f64 };
    let b = if (a == 0.0) & (b == 0.0) { 1.0 } else { b };
    let r = atan_ratio::<I>(a, b);
    let r = if x.is_sign_negative() { PI - r } else { r } as f32;
    let r = if x.is_nan() | y.is_nan() { f32::NAN } else { r };
    r.copysign(y)
}

/// asin(t) for 0 <= t <= 0.5.
#[inline(always)]
fn asin_light<I: Isa>(t: f64) -> f64 {
    let z = t * t;
    let p = poly::<I, 8>(
        z,
        [
            0.1666666666549084,
            0.07500000600759216,
            0.04464235707939134,
            0.030397671953511674,
            0.022131964555376638,
            0.0193093461897726,
            0.005433409887231671,
            0.02931732560480542,
        ],
    );
    fma::<I>(t * z, p, t)
}

#[inline(always)]
pub fn asin<I: Isa>(x: f32) -> f32 {
    let a = x.abs() as f64;
    let outer = a > 0.5;
    let s = asin_light::<I>(if outer { ((1.0 - a) * 0.5).sqrt() } else { a });
    let y = if outer { FRAC_PI_2 - 2.0 * s } else { s } as f32;
    let y = if a > 1.0 { f32::NAN } else { y };
    y.copysign(x)
}

#[inline(always)]
pub fn acos<I: Isa>(x: f32) -> f32 {
    let v = x as f64;
    let a = v.abs();
    let outer = a > 0.5;
    let s = asin_light::<I>(if outer { ((1.0 - a) * 0.5).sqrt() } else { a });
    let far = if v < 0.0 { PI - 2.0 * s } else { 2.0 * s };
    let y = if outer { far } else { FRAC_PI_2 - s.copysign(v) } as f32;
    if a > 1.0 { f32::NAN } else { y }
}

#[inline(always)]
pub fn sinh<I: Isa>(x: f32) -> f32 {
    let (n, e) = expm1_light::<I>(limit(x.abs(), 0.0, 100.0) as f64);
    let p = pow2(n);
    let t = fma::<I>(p, e, p - 1.0);
    let y = (fma::<I>(t, recip_light::<I>(t + 1.0), t) * 0.5) as f32;
    (if x.is_nan() { x } else { y }).copysign(x)
}

#[inline(always)]
pub fn cosh<I: Isa>(x: f32) -> f32 {
    let e = exp_light::<I>(limit(x.abs(), 0.0, 100.0) as f64);
    ((e + recip_light::<I>(e)) * 0.5) as f32
}

#[inline(always)]
pub fn asinh<I: Isa>(x: f32) -> f32 {
    let a = x.abs() as f64;
    let z = a * a;
    let y = log1p_light::<I>(a + z / (1.0 + (1.0 + z).sqrt())) as f32;
    let y = if a < 1e-5 { x.abs() } else { y };
    let y = if a < f64::INFINITY { y } else { x };
    y.copysign(x)
}

#[inline(always)]
pub fn acosh<I: Isa>(x: f32) -> f32 {
    let t = x as f64 - 1.0;
    let y = log1p_light::<I>(t + (t * (t + 2.0)).sqrt()) as f32;
    let y = if x < f32::INFINITY { y } else { x };
    if x < 1.0 { f32::NAN } else { y }
}

#[inline(always)]
pub fn atanh<I: Isa>(x: f32) -> f32 {
    let a = x.abs() as f64;
    let y = (log1p_light::<I>(2.0 * a * recip_light::<I>(1.0 - a)) * 0.5) as f32;
    let y = if a < 1e-5 { x.abs() } else { y };
    let y = if a == 1.0 { f32::INFINITY } else { y };
    let y = if a > 1.0 { f32::NAN } else { y };
    (if x.is_nan() { x } else { y }).copysign(x)
}

/// erfc(a) for a from 0 to 10.2: exp(a^2) * erfc(a) * (a + 3) is a polynomial in (a - 3) / (a + 3), to some 28 bits.
#[inline(always)]
fn erfc_positive<I: Isa>(a: f32) -> f64 {
    let r = (1.0 / (a + 3.0)) as f64;
    let a = a as f64;
    let r = r * fma::<I>(-(a + 3.0), r, 2.0);
    let t = fma::<I>(-6.0, r, 1.0);
    let p = poly::<I, 10>(
        t,
        [
            1.0740069077666285,
            -0.8833944864528104,
            0.590228298564023,
            -0.3104660083786639,
            0.11952906761317043,
            -0.026839826864577,
            -0.0012264276392989829,
            0.00308032982321642,
            -0.0004831809364957934,
            -0.0003253364585824017,
        ],
    );
    exp_light::<I>(-(a * a)) * (p * r)
}

#[inline(always)]
pub fn erf<I: Isa>(x: f32) -> f32 {
    // From 3.92 on erf is 1.
    let a = limit(x.abs(), 0.0, 3.94);
    // erf(a) / a - 1 around a^2 = 0.53.
    let p =
        polyf::<I, 7>(fmaf::<I>(a, a, -0.53), [-0.04289245, -0.2763566, 0.07778305, -0.017870545, 0.003397453, -0.0005521146, 7.579072e-5]);
    let small = fmaf::<I>(a, p, a);
    // Further on erfc is a polynomial around 2.4375: it needs to be as exact as 1 is, not as itself.
    let far = polyf::<I, 16>(
        a - 2.4375,
        [
            0.0005665435,
            -0.0029657518,
            0.007229014,
            -0.010758638,
            0.0107024405,
            -0.0072067776,
            0.003001584,
            -0.00037605816,
            -0.00041440214,
            0.0003001601,
            -7.203872e-5,
            -1.959181e-5,
            1.8390634e-5,
            -2.848929e-6,
            -1.2517871e-6,
            3.9285254e-7,
        ],
    );
    let y = if a < 1.045 { small } else { 1.0 - far };
    (if x.is_nan() { x } else { y }).copysign(x)
}

#[inline(always)]
pub fn erfc<I: Isa>(x: f32) -> f32 {
    let y = erfc_positive::<I>(limit(x.abs(), 0.0, 10.2));
    (if x < 0.0 { 2.0 - y } else { y }) as f32
}

/// The probability that a normal number is below x, within 3 + x^2 ULP: exp(-a^2 / 2) times a polynomial over a + 4, for a = |x|, which is
/// the answer below 0 and 1 minus it above. The polynomial's argument, a / (a + 4), is where such ratios are flat.
#[inline(always)]
pub fn normal_cdf<I: Isa>(x: f32) -> f32 {
    // The polynomial is scaled by 2^-64 (and by a quarter) and the exponential by 2^64, so that neither is subnormal and their product
    // alone rounds.
    const SCALE: f32 = f32::from_bits((127 - 66) << 23);
    // Above 14.5 nothing is left, or all.
    let a = limit(x.abs(), 0.0, 14.5);
    let u = a / (a + 4.0);
    // In pairs and pairs of pairs, which shortens the chain of dependent steps. The first term is added last, because only the rounding of
    // that addition counts in full. The same holds for the exponential.
    let (z, pair) = (u * u, |c0: f32, c1: f32| fmaf::<I>(u, c1 * SCALE, c0 * SCALE));
    let low = fmaf::<I>(z, pair(-3.1924477, 0.2967007), pair(-4.3830767, 5.233855));
    let mid = fmaf::<I>(z, pair(-0.23519404, -0.022554351), pair(0.70962715, -0.10352323));
    let high = pair(0.14941938, -0.053909145);
    let zz = z * z;
    let near = fmaf::<I>(u, fmaf::<I>(zz, fmaf::<I>(zz, high, mid), low), 2.0 * SCALE);
    // Divided by a + 4, which is 4 / (1 - u): this way the rounding of a + 4 hardly counts near 0.
    let tail = fmaf::<I>(-u, near, near);
    // -a^2 / 2 is n ln 2 - v / 2, and its exponential 2^n exp(-v / 2); n + 64 lies in the low bits of t.
    let aa = a * a;
    let t = fmaf::<I>(aa, -0.5 * std::f32::consts::LOG2_E, MAGIC32 + 64.0);
    let v = fmaf::<I>(t - (MAGIC32 + 64.0), 2.0 * std::f32::consts::LN_2, aa);
    let vv = v * v;
    let q = fmaf::<I>(vv, fmaf::<I>(vv, 2.176081e-5, fmaf::<I>(v, -0.0002613677, 0.0026041593)), fmaf::<I>(v, -0.020833217, 0.125));
    let e = fmaf::<I>(v, fmaf::<I>(v, q, -0.5), 1.0);
    let e = f32::from_bits(e.to_bits().wrapping_add(t.to_bits() << 23));
    let y = if x > 0.0 { fmaf::<I>(-tail, e, 1.0) } else { tail * e };
    // The product of two nans depends on their order, so there is only one nan here.
    if x.is_nan() { x } else { y }
}

/// Two independent normal numbers from two in [0, 1), in double until the last (Box and Muller).
#[inline(always)]
pub fn normal_pair<I: Isa>(u: f64, v: f64) -> [f32; 2] {
    // 1 - u is in (0, 1], where the logarithm is finite.
    let r = (-2.0 * log_light::<I>(1.0 - u)).sqrt();
    // The sine and cosine of 2 pi v from the distance of 2 v to the nearest whole number: in half turns, exact.
    let t = v + v;
    let n = (t + MAGIC) - MAGIC;
    let odd = (t + MAGIC).to_bits() << 63;
    let a = (t - n) * PI;
    let b = (0.5 - (t - n).abs()) * PI;
    let s = f64::from_bits(sin_half::<I>(a).to_bits() ^ odd);
    let c = f64::from_bits(sin_half::<I>(b).to_bits() ^ odd);
    [(r * c) as f32, (r * s) as f32]
}

/// The remainder of the division truncated towards zero; it has the sign of `x`. For quotients below `QUOTIENT_LIMIT` unless `I::WIDE`.
#[inline(always)]
pub fn fmod<I: Isa>(x: f32, y: f32) -> f32 {
    if I::FULL_RANGE || !I::FMA { x % y } else { super::f64::fmod::<I>(x as f64, y as f64) as f32 }
}

#[inline(always)]
pub fn hypot<I: Isa>(x: f32, y: f32) -> f32 {
    let (a, b) = (x as f64, y as f64);
    let r = (a * a + b * b).sqrt() as f32;
    if x.is_infinite() | y.is_infinite() { f32::INFINITY } else { r }
}

#[inline(always)]
pub fn pow<I: Isa>(x: f32, e: f32) -> f32 {
    let (v, w) = (x as f64, e as f64);
    let a = v.abs();
    let inside = (a > 0.0) & (a < f64::INFINITY);
    let l = log_light::<I>(if inside { a } else { 1.0 });
    // |log| is below 104, or 0, so 1e12 is as good as infinity; 1 must stay 1.
    let w1 = if w.abs() < 1e12 { w } else { 1e12f64.copysign(w) };
    let t = l * w1;
    let t = if t > 200.0 { 200.0 } else { t };
    let t = if t < -200.0 { -200.0 } else { t };
    power_edges(v, a, w, exp_light::<I>(t)) as f32
}
