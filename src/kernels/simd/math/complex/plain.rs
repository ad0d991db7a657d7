//! Quotients, lengths and square roots.

use super::super::double_double::*;
use super::{Grade, ReIm, select};
use crate::simd::Isa;

/// 2^-512 and 2^600: they keep squares in range. Their square roots, and the inverses of these, are powers of 2 too.
pub(super) const DOWN: f64 = 7.458340731200207e-155;
pub(super) const UP: f64 = 4.149515568880993e180;

/// A power of 2 by which the numbers of which `a` is the larger one are multiplied before they are squared.
#[inline(always)]
pub(super) fn factor<G: Grade>(a: f64) -> f64 {
    if !G::WIDE {
        return 1.0;
    }
    select(a < 1e-140, UP, select(a > 1e150, DOWN, 1.0))
}

/// The length of (x, y), of which neither is negative, and the factor that it was multiplied by. nan, if either is.
#[inline(always)]
fn length<I: Isa, G: Grade>(x: f64, y: f64) -> (f64, f64) {
    let by = factor::<G>(select(x > y, x, y));
    let (p, q) = (x * by, y * by);
    (fma::<I>(p, p, q * q).sqrt(), by)
}

/// The length; infinite if a part is, even if the other one is nan.
#[inline(always)]
pub fn modulus<I: Isa, G: Grade>((x, y): ReIm) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let (r, by) = length::<I, G>(x, y);
    let r = if G::WIDE { r * select(by == UP, 1.0 / UP, select(by == DOWN, 1.0 / DOWN, 1.0)) } else { r };
    select((x == f64::INFINITY) | (y == f64::INFINITY), f64::INFINITY, r)
}

/// The number divided by its length; 0 for 0.
#[inline(always)]
pub fn sgn<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (r, by) = length::<I, G>(x.abs(), y.abs());
    let zero = r == 0.0;
    let r = select(zero, 1.0, r);
    (select(zero, 0.0, x * by / r), select(zero, 0.0, y * by / r))
}

/// The square root whose real part is not negative.
#[inline(always)]
pub fn sqrt<I: Isa, G: Grade>((x, y): ReIm) -> ReIm {
    let (a, b) = (x.abs(), y.abs());
    let (r, by) = length::<I, G>(a, b);
    let t = (fma::<I>(a, by, r) * 0.5).sqrt();
    // 2^256 and 2^-300.
    let t = if G::WIDE { t * select(by == UP, 4.909093465297727e-91, select(by == DOWN, 1.157920892373162e77, 1.0)) } else { t };
    let t = select(a == f64::INFINITY, a, t);
    let zero = t == 0.0;
    let other = select(zero, y, y / (2.0 * select(zero, 1.0, t)));
    let right = (x >= 0.0) | x.is_nan();
    let root = (select(right, t, other.abs()), select(right, other, t.copysign(y)));
    let endless = b == f64::INFINITY;
    (select(endless, b, root.0), select(endless, y, root.1))
}

/// A power of 2 that brings `v`, which is not negative, to 1 up to 2 (or, if it is subnormal, to at least 2^-51), and its exponent.
#[inline(always)]
fn normalising(v: f64) -> (f64, f64) {
    // The exponent, shifted by 1023, is a small whole number in the low bits; infinity and nan count as large numbers.
    let e = v.to_bits() >> 52;
    let e = if e > 2045 { 2045 } else { e };
    let by = f64::from_bits((2046 - e) << 52);
    (by, 1023.0 - (f64::from_bits(e | 0x4330_0000_0000_0000) - 4_503_599_627_370_496.0))
}

/// The quotient. A divisor of 0 divides each part; infinite parts are treated as by Smith's division (CACM 5(8), 1962), which PyTorch uses:
/// only a divisor with one infinite part gives 0.
#[inline(always)]
pub fn div<I: Isa, G: Grade>((a, b): ReIm, (c, d): ReIm) -> ReIm {
    let (cc, dd) = (c.abs(), d.abs());
    let zero = (cc == 0.0) & (dd == 0.0);
    let of_zero = (a / cc, b / dd);
    let (c_endless, d_endless) = (cc == f64::INFINITY, dd == f64::INFINITY);
    let endless = (c_endless ^ d_endless) & !(c.is_nan() | d.is_nan());
    let (c1, d1) =
        (select(endless, select(c_endless, 1.0, 0.0).copysign(c), c), select(endless, select(d_endless, 1.0, 0.0).copysign(d), d));
    let (a1, b1, c1, d1, n) = if G::WIDE {
        let (s, n) = normalising(select(c1.abs() > d1.abs(), c1.abs(), d1.abs()));
        let (t, m) = normalising(select(a.abs() > b.abs(), a.abs(), b.abs()));
        (a * t, b * t, c1 * s, d1 * s, n - m)
    } else {
        (a, b, c1, d1, 0.0)
    };
    let by = 1.0 / fma::<I>(c1, c1, d1 * d1);
    // Not fused: of equal products nothing is to be left.
    let q = ((a1 * c1 + b1 * d1) * by, (b1 * c1 - a1 * d1) * by);
    let q = if G::WIDE {
        let half = (n * 0.5 + MAGIC) - MAGIC;
        let (first, second) = (pow2(half), pow2(n - half));
        (q.0 * first * second, q.1 * first * second)
    } else {
        q
    };
    let nothing = select(endless, 0.0, 1.0);
    let q = (q.0 * nothing, q.1 * nothing);
    (select(zero, of_zero.0, q.0), select(zero, of_zero.1, q.1))
}
