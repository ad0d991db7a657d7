//! Logarithms, the inverses of hyperbolic functions, powers and lengths.

use super::super::double_double::*;
use super::exp::{LN2_HI, LN2_LO, exp_parts, limit};
use crate::simd::Isa;
use std::f64::consts::{LOG2_E, LOG10_2, LOG10_E};

/// `log(1 + f + fl)` as dd, for f from -0.3 to 0.42.
#[inline(always)]
pub(in crate::simd::math) fn log_dd<I: Isa>(f: f64, fl: f64) -> (f64, f64) {
    let (d, dl) = fast_two_sum(2.0, f);
    let r = 1.0 / d;
    let s = f * r;
    let sl = ((-s).mul_add(d, f) + (fl - s * (dl + fl))) * r;
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
pub(in crate::simd::math) fn add_ln2<I: Isa>(k: f64, h: f64, l: f64) -> (f64, f64) {
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
    // Finite numbers add 0; nan stays, and infinity is set below.
    let y = y + x * 0.0;
    let y = if x > f64::MAX { x } else { y };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < 0.0 { f64::NAN } else { y }
}

#[inline(always)]
pub fn log<I: Isa>(x: f64) -> f64 {
    let (m, k) = split_any(x);
    let f = m - 1.0;
    let d = 2.0 + f;
    let r = 1.0 / d;
    let s = f * r;
    // What s lost: f - s * d with the true d.
    let sl = ((-s).mul_add(d, f) - s * ((2.0 - d) + f)) * r;
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
    let (p, e) = two_prod(h, LOG10_E);
    let e = fma::<I>(h, 1.098319650216765e-17, fma::<I>(l, LOG10_E, e));
    let (a, b) = two_prod(k, LOG10_2);
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
    let outside = p.abs() > 745.5;
    let (n, hi, lo) = exp_parts::<I>(limit(p, -760.0, 720.0), if outside { 0.0 } else { pl });
    let (s, t) = fast_two_sum(1.0, hi);
    power_edges(x, a, e, scale(s + (t + lo), n))
}

/// IEEE 754's table of special cases around the value `y` of |x|^e; `a` is |x|.
#[inline(always)]
pub fn power_edges(x: f64, a: f64, e: f64, y: f64) -> f64 {
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
