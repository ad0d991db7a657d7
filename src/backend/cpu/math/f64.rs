//! Functions of `f64`.

use super::parts::*;
use crate::backend::cpu::num::Isa;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LOG2_E, PI};

const LN2_HI: f64 = 6.931_471_803_691_238e-1; // 33 bits: exact times a small whole number
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
const PI_LO: f64 = 1.224_646_799_147_353_2e-16;

/// `exp(x + xl) - 1` as dd before it is scaled: `(n, hi, lo)` with `exp(x + xl) = 2^n * (1 + hi + lo)`, |hi| < 0.42.
/// For `x` from -746 to 711.
#[inline(always)]
fn exp_parts<I: Isa>(x: f64, xl: f64) -> (f64, f64, f64) {
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
fn limit(x: f64, lo: f64, hi: f64) -> f64 {
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
fn expm1_dd<I: Isa>(x: f64) -> (f64, f64) {
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

/// `log(1 + f + fl)` as dd, for f from -0.3 to 0.42.
#[inline(always)]
fn log_dd<I: Isa>(f: f64, fl: f64) -> (f64, f64) {
    let (d, dl) = fast_two_sum(2.0, f);
    let s = f / d;
    let sl = ((-s).mul_add(d, f) + (fl - s * (dl + fl))) / d;
    let (z, zl) = two_prod(s, s);
    let zl = fma::<I>(2.0 * s, sl, zl);
    let u = z * poly::<I, 8>(
        z,
        [
            0.4,
            0.2857142857142937,
            0.22222222221652765,
            0.18181818336099848,
            0.1538459488700718,
            0.1333480879881234,
            0.11706126464563398,
            0.11724327060846747,
        ],
    );
    let (g, gl) = fast_two_sum(0.6666666666666666, u);
    let gl = gl + 3.700743415417188e-17;
    let (w, wl) = two_prod(z, s);
    let wl = fma::<I>(z, sl, fma::<I>(zl, s, wl));
    let (t, tl) = two_prod(w, g);
    let tl = fma::<I>(w, gl, fma::<I>(wl, g, tl));
    let (h, l) = fast_two_sum(2.0 * s, t);
    fast_two_sum(h, l + (tl + 2.0 * sl))
}

/// `k * ln 2 + h + l` as dd.
#[inline(always)]
fn add_ln2<I: Isa>(k: f64, h: f64, l: f64) -> (f64, f64) {
    let (s, e) = fast_two_sum(k * LN2_HI, h);
    fast_two_sum(s, e + fma::<I>(k, LN2_LO, l))
}

/// A positive number as `m * 2^k` with m from sqrt(1/2) to sqrt(2); subnormal ones too.
#[inline(always)]
fn split_any(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let (m, k) = split(if tiny { x * 18_014_398_509_481_984.0 } else { x });
    (m, if tiny { k - 54.0 } else { k })
}

/// Logarithms at the edges: of zero, below zero, of infinity and nan.
#[inline(always)]
fn log_edges(x: f64, y: f64) -> f64 {
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < 0.0 { f64::NAN } else { y }
}

#[inline(always)]
pub fn log<I: Isa>(x: f64) -> f64 {
    let (m, k) = split_any(x);
    let f = m - 1.0;
    let d = 2.0 + f;
    let s = f / d;
    // What s lost: f - s * d with the true d.
    let sl = (fma::<I>(-s, d, f) - s * ((2.0 - d) + f)) / d;
    let z = s * s;
    let t = s
        * z
        * poly::<I, 8>(
            z,
            [
                0.6666666666666666,
                0.40000000000000885,
                0.28571428570799784,
                0.22222222392581045,
                0.18181795547521137,
                0.15386244737621665,
                0.13268638369266825,
                0.13088034850927555,
            ],
        );
    let (h, e) = fast_two_sum(k * LN2_HI, 2.0 * s);
    let sl = if I::FMA { sl } else { 0.0 };
    log_edges(x, h + (e + fma::<I>(k, LN2_LO, t + 2.0 * sl)))
}

#[inline(always)]
pub fn log2<I: Isa>(x: f64) -> f64 {
    let (m, k) = split_any(x);
    let (h, l) = log_dd::<I>(m - 1.0, 0.0);
    let (p, e) = two_prod(h, LOG2_E);
    let e = fma::<I>(h, 2.0355273740931033e-17, fma::<I>(l, LOG2_E, e));
    let (s, t) = fast_two_sum(k, p);
    log_edges(x, s + (t + e))
}

#[inline(always)]
pub fn log10<I: Isa>(x: f64) -> f64 {
    let (m, k) = split_any(x);
    let (h, l) = log_dd::<I>(m - 1.0, 0.0);
    let (p, e) = two_prod(h, 0.4342944819032518);
    let e = fma::<I>(h, 1.098319650216765e-17, fma::<I>(l, 0.4342944819032518, e));
    let (a, b) = two_prod(k, 0.3010299956639812);
    let b = fma::<I>(k, -2.8037281277851704e-18, b);
    let (s, t) = fast_two_sum(a, p);
    log_edges(x, s + (t + (e + b)))
}

/// `log(1 + x + xl)` as dd, for finite x + xl > -1 with |xl| far below |x|.
#[inline(always)]
fn log1p_dd<I: Isa>(x: f64, xl: f64) -> (f64, f64) {
    let (u, c) = two_sum(1.0, x);
    let c = c + xl;
    let (m, k) = split(u);
    // 2^-k in two steps: k can be 1024 here.
    let half = (k * -0.5 + MAGIC) - MAGIC;
    let c = c * pow2(half) * pow2(-k - half);
    let (h, l) = log_dd::<I>(m - 1.0, c);
    add_ln2::<I>(k, h, l)
}

#[inline(always)]
pub fn log1p<I: Isa>(x: f64) -> f64 {
    let safe = if (x > -1.0) & (x < f64::INFINITY) { x } else { 0.0 };
    let (h, l) = log1p_dd::<I>(safe, 0.0);
    let y = if (x > -1.0) & (x < f64::INFINITY) { h + l } else { x };
    let y = if x == -1.0 { f64::NEG_INFINITY } else { y };
    let y = if x < -1.0 { f64::NAN } else { y };
    if x.abs() < 1e-17 { x } else { y }
}

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
    if I::WIDE {
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
    if I::WIDE {
        return x.cos();
    }
    let (h, l, n) = reduce(x);
    let (s, c) = (sin_dd::<I>(h, l), cos_dd::<I>(h, l));
    let y = if n & 1 == 0 { c.0 + c.1 } else { s.0 + s.1 };
    f64::from_bits(y.to_bits() ^ ((n.wrapping_add(1) & 2) << 62))
}

#[inline(always)]
pub fn tan<I: Isa>(x: f64) -> f64 {
    if I::WIDE {
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
    let left = s + (e + (PI_LO - l));
    let r = if x.is_sign_negative() { left } else { h + l };
    // Where the angle is the quotient itself, the quotient is rounded only once.
    let r = if (a < b * 1e-9) & x.is_sign_positive() { a / b } else { r };
    let r = if x.is_nan() | y.is_nan() { f64::NAN } else { r };
    r.copysign(y)
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

#[inline(always)]
pub fn asinh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let huge = a > 1e9;
    let b = if huge { 1.0 } else { a };
    // asinh = log1p(b + b^2 / (1 + sqrt(1 + b^2))), all of it dd.
    let (z, zl) = two_prod(b, b);
    let (u, ul) = two_sum(1.0, z);
    let ul = ul + zl;
    let r = u.sqrt();
    let rl = ((-r).mul_add(r, u) + ul) / (2.0 * r);
    let (d, dl) = fast_two_sum(r, 1.0);
    let (q, ql) = div_dd(z, zl, d, dl + rl);
    let (s, e) = two_sum(b, q);
    let (h, l) = log1p_dd::<I>(s, e + ql);
    let far = log_twice::<I>(a);
    let y = if huge { far } else { h + l };
    let y = if a < 1e-9 { a } else { y };
    y.copysign(x)
}

/// log(2 a) for a > 1.
#[inline(always)]
fn log_twice<I: Isa>(a: f64) -> f64 {
    let (m, k) = split(a);
    let (h, l) = log_dd::<I>(m - 1.0, 0.0);
    let (h, l) = add_ln2::<I>(k + 1.0, h, l);
    if a < f64::INFINITY { h + l } else { a }
}

#[inline(always)]
pub fn acosh<I: Isa>(x: f64) -> f64 {
    let huge = x > 1e9;
    let t = if (x >= 1.0) & !huge { x - 1.0 } else { 1.0 };
    let tl = if (x >= 1.0) & !huge { (x - t) - 1.0 } else { 0.0 };
    // acosh = log1p(t + sqrt(t (t + 2))) with t = x - 1.
    let (d, dl) = two_sum(t, 2.0);
    let (z, zl) = two_prod(t, d);
    let zl = zl + (t * (dl + tl) + tl * d);
    let r = z.sqrt();
    let rl = ((-r).mul_add(r, z) + zl) / (2.0 * r);
    let rl = if r > 0.0 { rl } else { 0.0 };
    let (s, e) = two_sum(t, r);
    let (h, l) = log1p_dd::<I>(s, e + (rl + tl));
    let y = if huge { log_twice::<I>(x) } else { h + l };
    let y = if x < 1.0 { f64::NAN } else { y };
    if x.is_nan() { x } else { y }
}

#[inline(always)]
pub fn atanh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let b = if a < 1.0 { a } else { 0.5 };
    let (d, dl) = fast_two_sum(1.0, -b);
    let (q, ql) = div_dd(2.0 * b, 0.0, d, dl);
    let (h, l) = log1p_dd::<I>(q, ql);
    let y = (h + l) * 0.5;
    let y = if a < 1e-9 { a } else { y };
    let y = if a == 1.0 { f64::INFINITY } else { y };
    let y = if a > 1.0 { f64::NAN } else { y };
    (if x.is_nan() { x } else { y }).copysign(x)
}

/// erfc(a) for a from 0 to 28, as dd before it is scaled by 2^n: `(n, hi, lo)`.
///
/// exp(a^2) * erfc(a) * (a + 4) is a polynomial in t = (a - 4) / (a + 4); its last steps and t are dd.
#[inline(always)]
fn erfc_parts<I: Isa>(a: f64) -> (f64, f64, f64) {
    let (d, dl) = two_sum(a, 4.0);
    let (c, cl) = two_sum(a, -4.0);
    let (t, tl) = div_dd(c, cl, d, dl);
    let q = poly::<I, 25>(
        t,
        [
            -0.5408538313132364,
            0.3308515878780057,
            -0.17401093723987482,
            0.07638151490955941,
            -0.026370053341525722,
            0.006112055651265173,
            -0.00028095885250903644,
            -0.0004550526414139015,
            0.00017681273491033545,
            -3.635420026228601e-06,
            -1.8860548368757933e-05,
            4.695354326090545e-06,
            1.4233117247403688e-06,
            -8.485499743065902e-07,
            -7.406447825008009e-08,
            1.2797807262198503e-07,
            -5.893839333871672e-10,
            -1.927974113277093e-08,
            8.648776069502233e-10,
            3.058658640471567e-09,
            -8.738934758033261e-11,
            -4.872692244262494e-10,
            -3.3181526837606524e-11,
            5.6812057132836534e-11,
            1.3320294759600495e-11,
        ],
    );
    // p = c0 + t * (c1 + t * (c2 + t * q))
    let slope = -0.976548729080882 + t * (2.0 * 0.7732087022652372 + t * (3.0 * q));
    let (u, ul) = two_prod(t, q);
    let (u, v) = fast_two_sum(0.7732087022652372, u + ul);
    let (w, wl) = two_prod(t, u);
    let wl = fma::<I>(t, v, wl);
    let (u, v) = fast_two_sum(-0.976548729080882, w);
    let v = v + (wl - 1.4808216816782803e-17);
    let (w, wl) = two_prod(t, u);
    let wl = fma::<I>(t, v, wl);
    let (p, pl) = fast_two_sum(1.095995661000491, w);
    let pl = pl + (wl + 5.75724514913018e-17) + slope * tl;
    let (r, rl) = div_dd(p, pl, d, dl);
    let (z, zl) = two_prod(a, a);
    let (n, hi, lo) = exp_parts::<I>(-z, -zl);
    let (e, el) = fast_two_sum(1.0, hi);
    let (h, l) = two_prod(e, r);
    (n, h, l + (e * rl + (el + lo) * r))
}

/// erf(a) for a from 0 to 0.5, as dd.
#[inline(always)]
fn erf_small<I: Isa>(a: f64) -> (f64, f64) {
    let z = a * a;
    let q = poly::<I, 10>(
        z,
        [
            -0.37612638903183754,
            0.11283791670955126,
            -0.026866170645131037,
            0.005223977625431154,
            -0.0008548327020579143,
            0.00012055332552174238,
            -1.492561118797231e-05,
            1.645989979894931e-06,
            -1.6289898771332958e-07,
            1.335180053531711e-08,
        ],
    );
    let (h, l) = two_prod(a, std::f64::consts::FRAC_2_SQRT_PI);
    fast_two_sum(h, fma::<I>(a * z, q, fma::<I>(a, 1.533545961316588e-17, l)))
}

#[inline(always)]
pub fn erf<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (sh, sl) = erf_small::<I>(if a < 0.5 { a } else { 0.5 });
    let (n, h, l) = erfc_parts::<I>(limit(a, 0.0, 6.0));
    let p = pow2(n);
    let (s, e) = fast_two_sum(1.0, -h * p);
    let far = s + (e - l * p);
    // Where the product with 2 / sqrt(pi) is exact no longer, one multiplication is all that is needed.
    let tiny = a + a * 0.1283791670955126;
    let y = if a < 0.5 { sh + sl } else { far };
    let y = if a < 1e-280 { tiny } else { y };
    (if x.is_nan() { x } else { y }).copysign(x)
}

#[inline(always)]
pub fn erfc<I: Isa>(x: f64) -> f64 {
    let (n, h, l) = erfc_parts::<I>(limit(x.abs(), 0.0, 28.0));
    let positive = scale(h + l, n);
    let p = pow2(if n < -1000.0 { -1000.0 } else { n });
    let (s, e) = fast_two_sum(2.0, -h * p);
    let negative = s + (e - l * p);
    let y = if x < 0.0 { negative } else { positive };
    let (h, l) = erf_small::<I>(limit(x, -0.5, 0.5));
    let (s, e) = fast_two_sum(1.0, -h);
    let y = if x.abs() < 0.5 { s + (e - l) } else { y };
    if x.is_nan() { x } else { y }
}

#[inline(always)]
pub fn hypot<I: Isa>(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let (a, b) = if x > y { (x, y) } else { (y, x) };
    let factor = if a > 1e150 { 7.458340731200207e-155 } else { 1.0 };
    let factor = if a < 1e-140 { 4.149515568880993e180 } else { factor };
    let (p, q) = (a * factor, b * factor);
    let ((pp, pe), (qq, qe)) = (two_prod(p, p), two_prod(q, q));
    let (s, e) = fast_two_sum(pp, qq);
    let e = e + (pe + qe);
    let r = s.sqrt();
    let rl = ((-r).mul_add(r, s) + e) / (2.0 * r);
    let y0 = (r + if r > 0.0 { rl } else { 0.0 }) / factor;
    let y0 = if x.is_nan() | y.is_nan() { f64::NAN } else { y0 };
    if (x == f64::INFINITY) | (y == f64::INFINITY) { f64::INFINITY } else { y0 }
}

#[inline(always)]
pub fn pow<I: Isa>(x: f64, e: f64) -> f64 {
    let a = x.abs();
    let inside = (a > 0.0) & (a < f64::INFINITY);
    let (m, k) = split_any(if inside { a } else { 1.0 });
    let (h, l) = log_dd::<I>(m - 1.0, 0.0);
    let (h, l) = add_ln2::<I>(k, h, l);
    // Beyond 2^65 every power but that of 1 overflows or vanishes; and there the exact product would overflow.
    let e1 = limit(e, -3.7e19, 3.7e19);
    let (p, pl) = two_prod(h, e1);
    let pl = fma::<I>(l, e1, pl);
    let outside = (p > 720.0) | (p < -760.0);
    let (n, hi, lo) = exp_parts::<I>(limit(p, -760.0, 720.0), if outside { 0.0 } else { pl });
    let (s, t) = fast_two_sum(1.0, hi);
    power_edges(x, a, e, scale(s + (t + lo), n))
}

/// IEEE 754's table of special cases around the value `y` of |x|^e; `a` is |x|.
#[inline(always)]
pub(super) fn power_edges(x: f64, a: f64, e: f64, y: f64) -> f64 {
    // From 2^53 on all numbers are even.
    let whole = e.trunc() == e;
    let half = e * 0.5;
    let odd = whole & (half.trunc() != half) & (e.abs() < 9_007_199_254_740_992.0);
    let grows = (a > 1.0) == (e > 0.0);
    let extreme = if grows { f64::INFINITY } else { 0.0 };
    let y = if (a == 0.0) | (a == f64::INFINITY) { extreme } else { y };
    let y = if e.abs() == f64::INFINITY { extreme } else { y };
    let y = if (a == 1.0) & !e.is_nan() { 1.0 } else { y };
    let y = if x.is_sign_negative() & odd { -y } else { y };
    let y = if (x < 0.0) & !whole & (a < f64::INFINITY) & (e.abs() < f64::INFINITY) { f64::NAN } else { y };
    let y = if x.is_nan() | e.is_nan() { f64::NAN } else { y };
    if (e == 0.0) | (x == 1.0) { 1.0 } else { y }
}
