//! The gamma function's logarithm, its derivatives and Hurwitz's zeta function. They are computed by the formulas of Abramowitz and Stegun,
//! "Handbook of Mathematical Functions". Where a function has a zero (of digamma, and of lgamma below 0) errors are a few 1e-16 of the terms
//! that are summed.

use super::expansions::LGAMMA;
use super::tables::{BERNOULLI, DIGAMMA, STIRLING};
use super::{polynomial, select};
use crate::simd::Isa;
use crate::simd::math::f64 as m;
use std::f64::consts::PI;

const HALF_LOG_2PI: f64 = 0.918_938_533_204_672_8;
const LOG_PI: f64 = 1.144_729_885_849_400_2;

/// For x > 0. Near the zeros at 1 and 2 the series about 2 keeps the digits; from 4.5 up it is Stirling's series.
#[inline(always)]
pub(super) fn lgamma_positive<I: Isa>(x: f64) -> f64 {
    // Steps up or down to 1.5 <= 2 + z <= 2.5 are factors of `product`.
    let (tiny, low, down1, down2) = (x < 0.5, x < 1.5, x > 2.5, x > 3.5);
    let z = select(tiny, x, select(low, x - 1.0, select(down2, x - 4.0, select(down1, x - 3.0, x - 2.0))));
    let below = select(tiny, x * (1.0 + x), x);
    let above = select(down2, (x - 1.0) * (x - 2.0), select(down1, x - 1.0, 1.0));
    let (near, step) = (x <= 4.5, x < 9.0);
    let up = select(step, x + 5.0, x);
    let product = select(step, x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0), 1.0);
    let log = m::log::<I>(select(near, select(low, below, above), product));
    let inner = z * polynomial::<I, 31>(z, &LGAMMA) + select(low, -log, log);
    let log_up = m::log::<I>(up);
    let inverse = 1.0 / up;
    let far = (up - 0.5) * log_up - up + HALF_LOG_2PI + inverse * polynomial::<I, 9>(inverse * inverse, &STIRLING) - log;
    let far = select(x > 1e300, x * (log_up - 1.0), far);
    select(near, inner, far)
}

#[inline(always)]
pub(super) fn lgamma_mirrored<I: Isa>(x: f64, up: f64) -> f64 {
    let size = x.abs();
    let part = (x - x.round_ties_even()).abs();
    let mirrored = LOG_PI - m::log::<I>(m::sin::<I>(PI * part).abs()) - up;
    let made = select(size < 8.7e-19, -m::log::<I>(size), mirrored);
    let made = select(x < 0.0, made, up);
    select(size == f64::INFINITY || x == 0.0 || (x < 0.0 && part == 0.0), f64::INFINITY, made)
}

#[inline(always)]
pub(super) fn digamma<I: Isa>(x: f64) -> f64 {
    let negative = x < 0.0;
    let y = select(negative, 1.0 - x, x);
    // The sum of 1 / (y + k) as one fraction; y is small where it counts.
    let step = y < 10.0;
    let small = select(step, y, 1.0);
    let (mut above, mut below) = (0.0, 1.0);
    for k in 0..10 {
        let factor = small + f64::from(k);
        above = above * factor + below;
        below *= factor;
    }
    let y = select(step, y + 10.0, y);
    let inverse = 1.0 / (y * y);
    let made = m::log::<I>(y) - 0.5 / y - inverse * polynomial::<I, 9>(inverse, &DIGAMMA) - select(step, above / below, 0.0);
    let part = x - x.round_ties_even();
    let angle = PI * part;
    let made = select(negative, made - PI * m::cos::<I>(angle) / m::sin::<I>(angle), made);
    let made = select(negative && part == 0.0, f64::NAN, made);
    let made = select(x == 0.0, -(1.0 / x), made);
    select(x == f64::INFINITY, x, select(x == f64::NEG_INFINITY, f64::NAN, made))
}

#[inline(always)]
pub(super) fn trigamma<I: Isa>(x: f64) -> f64 {
    let negative = x < 0.0;
    let y = select(negative, 1.0 - x, x);
    let step = y < 10.0;
    let mut sum = 0.0;
    for k in 0..10 {
        let inverse = 1.0 / (y + f64::from(k));
        sum += inverse * inverse;
    }
    let up = select(step, y + 10.0, y);
    let inverse = 1.0 / up;
    let square = inverse * inverse;
    let far = inverse + 0.5 * square + inverse * square * polynomial::<I, 9>(square, &BERNOULLI);
    let made = far + select(step, sum, 0.0);
    let part = x - x.round_ties_even();
    let sine = m::sin::<I>(PI * part);
    let made = select(negative, PI * PI / (sine * sine) - made, made);
    select(x <= 0.0 && x == x.floor(), f64::INFINITY, select(x == f64::INFINITY, 0.0, made))
}

/// lgamma(1 + a) for |a| <= 0.5, accurate near 0.
#[inline(always)]
pub(super) fn lgamma_of_one_plus<I: Isa>(a: f64) -> f64 {
    a * polynomial::<I, 31>(a, &LGAMMA) - m::log1p::<I>(a)
}

/// The part of Stirling's series that vanishes with 1 / a: lgamma(a) without (a - 1/2) log(a) - a + log(2 pi) / 2.
#[inline(always)]
pub(super) fn stirling_rest<I: Isa>(a: f64) -> f64 {
    let inverse = 1.0 / a;
    inverse * polynomial::<I, 9>(inverse * inverse, &STIRLING)
}

/// B(2j) / (2j)!, of the formula of Euler and Maclaurin.
const EULER_MACLAURIN: [f64; 12] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3617.0 / 10_670_622_842_880_000.0,
    43_867.0 / 5_109_094_217_170_944_000.0,
    -174_611.0 / 802_857_662_698_291_200_000.0,
    77_683.0 / 14_101_100_039_391_805_440_000.0,
    -236_364_091.0 / 1_693_824_136_731_743_669_452_800_000.0,
];

/// Hurwitz's zeta function for s > 1 and q > 0 (formula of Euler and Maclaurin, DLMF 25.11.5).
#[inline(always)]
pub(super) fn zeta_positive<I: Isa>(s: f64, q: f64) -> f64 {
    const TERMS: usize = 10;
    if q == f64::INFINITY {
        return 0.0;
    }
    let first = m::pow::<I>(q, -s);
    // The smallest terms first.
    let mut sum = 0.0;
    let mut k = TERMS;
    while k > 1 {
        k -= 1;
        sum += m::pow::<I>(q + k as f64, -s);
    }
    let a = q + TERMS as f64;
    let power = m::pow::<I>(a, -s);
    if power == 0.0 {
        return sum + first;
    }
    let (square, mut factor) = (1.0 / (a * a), s * power / a);
    let mut rest = 0.0;
    for (j, b) in EULER_MACLAURIN.iter().enumerate() {
        rest += factor * b;
        let next = s + 2.0 * j as f64;
        factor *= (next + 1.0) * (next + 2.0) * square;
    }
    let tail = a * power / (s - 1.0) + 0.5 * power + rest;
    (tail + sum) + first
}

/// From here down no terms are added up.
const LOWEST: f64 = -4096.0;

#[inline(always)]
pub(super) fn zeta<I: Isa>(s: f64, q: f64) -> f64 {
    if s.is_nan() || q.is_nan() || s < 1.0 {
        return f64::NAN;
    }
    if s == 1.0 || q <= 0.0 && q == q.floor() {
        return f64::INFINITY;
    }
    if q < 0.0 && (s != s.floor() || q <= LOWEST) {
        return f64::NAN;
    }
    let (mut sum, mut q) = (0.0, q);
    while q < 0.0 {
        sum += m::pow::<I>(q, -s);
        q += 1.0;
    }
    sum + zeta_positive::<I>(s, q)
}

/// The n-th derivative of digamma for n of 2 or more.
#[inline(always)]
pub(super) fn polygamma<I: Isa>(n: f64, x: f64) -> f64 {
    if n.is_nan() || n < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    let odd = n % 2.0 != 0.0;
    let sign = if odd { 1.0 } else { -1.0 };
    if x <= 0.0 && x == x.floor() {
        return sign * f64::INFINITY;
    }
    let y = if x < 0.0 { 1.0 - x } else { x };
    let mut factorial = 1.0;
    let mut k = 2.0;
    while k <= n && factorial < f64::INFINITY {
        factorial *= k;
        k += 1.0;
    }
    let value = sign * factorial * zeta_positive::<I>(n + 1.0, y);
    if x > 0.0 {
        return value;
    }
    // Reflection (DLMF 5.15.6): the n-th derivative of pi cot(pi x), a polynomial in the cotangent.
    const MOST: usize = 172;
    if n >= MOST as f64 - 2.0 {
        return f64::NAN;
    }
    let angle = PI * (x - x.round_ties_even());
    let cotangent = m::cos::<I>(angle) / m::sin::<I>(angle);
    let mut c = [0.0; MOST];
    c[1] = 1.0;
    for step in 0..n as usize {
        // The slope of cot^k is -k (cot^(k - 1) + cot^(k + 1)).
        let mut next = [0.0; MOST];
        for k in 1..=step + 1 {
            next[k - 1] -= k as f64 * c[k];
            next[k + 1] -= k as f64 * c[k];
        }
        c = next;
    }
    let mut made = 0.0;
    for k in (0..=n as usize + 1).rev() {
        made = made * cotangent + c[k];
    }
    -sign * value - m::pow::<I>(PI, n + 1.0) * made
}
