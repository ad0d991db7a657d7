//! Building blocks of the functions: exact sums and products (double-double arithmetic), powers of two, and polynomials.
//!
//! Coefficients are near-minimax (Chebyshev interpolation in 60 digits) for the interval that the argument is reduced to. "dd"
//! (double-double) is a number represented as an unevaluated sum of two doubles, the second below half a unit in the last place of the
//! first.

use crate::simd::Isa;

/// 1.5 * 2^52: added to a double below 2^51, it leaves that rounded to a whole number in the low bits.
pub const MAGIC: f64 = 6_755_399_441_055_744.0;

/// `a * b + c`, fused where that is fast.
#[inline(always)]
pub fn fma<I: Isa>(a: f64, b: f64, c: f64) -> f64 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `a * b + c`, fused where that is fast.
#[inline(always)]
pub fn fmaf<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { a.mul_add(b, c) } else { (a as f64 * b as f64 + c as f64) as f32 }
}

/// `a + b` as dd; needs `|a| >= |b|` or `a == 0`.
#[inline(always)]
pub fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, (a - s) + b)
}

/// `a + b` as dd.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// `a * b` as dd.
#[inline(always)]
pub fn two_prod(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, a.mul_add(b, -p))
}

/// `(ah + al) / (bh + bl)` as dd, for values whose products neither overflow nor vanish.
#[inline(always)]
pub fn div_dd(ah: f64, al: f64, bh: f64, bl: f64) -> (f64, f64) {
    // One division is enough: the remainder corrects the rounding of the product.
    let r = 1.0 / bh;
    let q = ah * r;
    let rest = (-q).mul_add(bh, ah) + (al - q * bl);
    (q, rest * r)
}

/// 2^k for a whole `k` from -1022 to 1023.
#[inline(always)]
pub fn pow2(k: f64) -> f64 {
    f64::from_bits((k + (4_503_599_627_370_496.0 + 1023.0)).to_bits() << 52)
}

/// `v * 2^n` with one rounding, for `n` from -2044 to 2046 and `v` from 0.5 to 2.
#[inline(always)]
pub fn scale(v: f64, n: f64) -> f64 {
    let half = (n * 0.5 + MAGIC) - MAGIC;
    v * pow2(half) * pow2(n - half)
}

/// Splits a positive normal number into a mantissa from sqrt(1/2) to sqrt(2) and the exponent of 2.
#[inline(always)]
pub fn split(x: f64) -> (f64, f64) {
    const MIN_ELEMENTS: u64 = 0x3FE6_A09E_667F_3BCD;
    let t = x.to_bits().wrapping_sub(MIN_ELEMENTS).wrapping_add(1023 << 52);
    let k = f64::from_bits((t >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    (f64::from_bits((t & 0x000F_FFFF_FFFF_FFFF) + MIN_ELEMENTS), k)
}

/// The polynomial with the coefficients `c`, lowest first.
#[inline(always)]
pub fn poly<I: Isa, const N: usize>(x: f64, c: [f64; N]) -> f64 {
    if N < 8 {
        return horner::<I, N>(x, c, N - 1, 1);
    }
    // Even and odd powers separately, which halves the chain of dependent steps.
    let z = x * x;
    let (even, odd) = (horner::<I, N>(z, c, (N - 1) & !1, 2), horner::<I, N>(z, c, (N - 2) | 1, 2));
    fma::<I>(odd, x, even)
}

/// `c[top % step] + x * (c[top % step + step] + ... x * c[top])`.
#[inline(always)]
fn horner<I: Isa, const N: usize>(x: f64, c: [f64; N], top: usize, step: usize) -> f64 {
    let (mut p, mut i) = (c[top], top);
    while i >= step {
        i -= step;
        p = fma::<I>(p, x, c[i]);
    }
    p
}

/// The polynomial with the coefficients `c`, lowest first.
#[inline(always)]
pub fn polyf<I: Isa, const N: usize>(x: f32, c: [f32; N]) -> f32 {
    if N < 8 {
        return hornerf::<I, N>(x, c, N - 1, 1);
    }
    let z = x * x;
    let (even, odd) = (hornerf::<I, N>(z, c, (N - 1) & !1, 2), hornerf::<I, N>(z, c, (N - 2) | 1, 2));
    fmaf::<I>(odd, x, even)
}

#[inline(always)]
fn hornerf<I: Isa, const N: usize>(x: f32, c: [f32; N], top: usize, step: usize) -> f32 {
    let (mut p, mut i) = (c[top], top);
    while i >= step {
        i -= step;
        p = fmaf::<I>(p, x, c[i]);
    }
    p
}
