//! Exponentials of sixteen numbers.

use crate::simd::F32x16;
use crate::simd::math::f32::{EXP_SLOPE, LN2_REST, MAGIC32};
use std::f32::consts::{LN_2, LOG2_E};

/// x - n ln 2 for a small whole n. Of the first product nothing is lost: x and it are multiples of the same unit, and near.
#[inline(always)]
fn less_ln2(x: F32x16, n: F32x16) -> F32x16 {
    n.neg_fma(x.of(LN2_REST), n.neg_fma(x.of(LN_2), x))
}

/// (exp(r) - 1) / r for |r| < 0.35.
#[inline(always)]
fn slope(r: F32x16) -> F32x16 {
    r.poly(EXP_SLOPE)
}

#[inline(always)]
pub fn exp(x: F32x16) -> F32x16 {
    let x = x.at_least(x.of(-104.0)).at_most(x.of(89.0));
    let n = x.fma(x.of(LOG2_E), x.of(MAGIC32)) - x.of(MAGIC32);
    let r = less_ln2(x, n);
    slope(r).fma(r, x.of(1.0)).scale(n)
}

#[inline(always)]
pub fn sigmoid(x: F32x16) -> F32x16 {
    // With exp(x) = 2^n (m + l): 2^n / (2^n + ...) would need exp(-x) = 2^-n (m + l). Above 18 nothing is left of it.
    let x = x.at_least(x.of(-104.0)).at_most(x.of(18.0));
    let one = x.of(1.0);
    let n = x.fma(x.of(LOG2_E), x.of(MAGIC32)) - x.of(MAGIC32);
    let r = n.fma(x.of(LN2_REST), n.fma_less(x.of(LN_2), x));
    let q = slope(r);
    let m = q.fma(r, one);
    let l = q.fma(r, one - m);
    // 1 / (1 + 2^-n (m + l)) = 2^n / (2^n + m + l).
    let p = one.scale(n);
    let d = p + m;
    let (large, small) = (p.at_least(m), p.at_most(m));
    let dl = l + (small - (d - large));
    let y = d.recip_estimate();
    let e = dl.neg_fma(y, d.neg_fma(y, one));
    y.fma(e.fma(e, e), y).scale(n)
}
