//! The incomplete gamma functions, and how samples of the gamma and the beta distribution move with their parameters at a constant
//! probability (implicit reparametrisation: Figurnov, Mohamed, Mnih 2018).
//!
//! Below the order P is a series, above it Q a continued fraction (DLMF 8.11.4, 8.9.2), and near a large order both are Temme's uniform
//! expansion (DLMF 8.12). The derivative by the order is taken of the same sums: on either side all of their terms have one sign.

use super::expansions::{GAMMA_SLOPE, TEMME};
use super::gamma::{digamma, lgamma_of_one_plus, lgamma_positive, stirling_rest};
use super::{BLOCK, polynomial};
use crate::simd::Isa;
use crate::simd::math::f64 as m;
use std::f64::consts::TAU;

/// Orders from which the uniform expansions are used, for x / a within this distance of 1.
const LARGE: f64 = 200.0;
const NEAR: f64 = 0.3;
/// More terms than any sum needs for orders below `LARGE`, or far from the order.
const MOST: usize = 100_000;

/// 1 / (2 k + 3).
const ODD: [f64; 14] = {
    let (mut made, mut k) = ([0.0; 14], 0);
    while k < 14 {
        made[k] = 1.0 / (2 * k + 3) as f64;
        k += 1;
    }
    made
};

/// t - log(1 + t), without cancellation.
#[inline(always)]
fn log1p_gap<I: Isa>(t: f64) -> f64 {
    if t.abs() > 0.3 {
        return t - m::log1p::<I>(t);
    }
    // log(1 + t) = 2 artanh(s), s = t / (2 + t), and t - 2 s = s t.
    let s = t / (2.0 + t);
    let z = s * s;
    let sum = polynomial::<I, 14>(z, &ODD);
    s * t - 2.0 * s * z * sum
}

#[inline(always)]
fn whole_power(x: f64, mut n: u32) -> f64 {
    let (mut power, mut made) = (x, 1.0);
    while n > 0 {
        if n % 2 == 1 {
            made *= power;
        }
        power *= power;
        n /= 2;
    }
    made
}

/// x^a exp(-x) / Gamma(a + 1).
#[inline(always)]
fn prefactor<I: Isa>(a: f64, x: f64) -> f64 {
    if a < 10.0 && (x < 1e-20 || x < 1.0 && a < 2.0) {
        return m::exp::<I>(a * m::log::<I>(x) - x - lgamma_positive::<I>(a + 1.0));
    }
    // From 10 up the exponent is that of Stirling's formula, whose terms do not cancel; steps to there are a product.
    let (mut raised, mut above, mut below) = (a, 1.0, 1.0);
    while raised < 10.0 {
        raised += 1.0;
        above *= raised;
        below *= x;
    }
    let t = (x - raised) / raised;
    let rest = stirling_rest::<I>(raised);
    if raised < 64.0 && t.abs() > 0.5 && x < 600.0 {
        // Far away the exponent is large, and its rounding counts. Here it is a power, and two exponents that are not rounded.
        let ratio = x / raised;
        let part = m::exp::<I>((raised - raised.floor()) * m::log::<I>(ratio) - rest);
        return above / below * whole_power(ratio, raised as u32) * part * (m::exp::<I>(raised) * m::exp::<I>(-x)) / (TAU * raised).sqrt();
    }
    // Near -1 the sum t + 1 has no digits left.
    let gap = if t < -0.5 { t - m::log::<I>(x / raised) } else { log1p_gap::<I>(t) };
    above / below * m::exp::<I>(-raised * gap - rest) / (TAU * raised).sqrt()
}

/// The sum of x^n / ((a + 1) ... (a + n)), and its derivative by a.
#[inline(always)]
fn series(a: f64, x: f64) -> (f64, f64) {
    let (mut term, mut sum, mut slope, mut harmonic, mut n) = (1.0, 1.0, 0.0, 0.0, a);
    for _ in 0..MOST {
        n += 1.0;
        let inverse = 1.0 / n;
        term *= x * inverse;
        harmonic += inverse;
        sum += term;
        slope -= term * harmonic;
        if term * harmonic.max(1.0) <= 1e-17 * sum.min(-slope) {
            break;
        }
    }
    (sum, slope)
}

/// The sums of a block, without derivatives, side by side.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
fn series_of_block(a: &[f64; BLOCK], x: &[f64; BLOCK]) -> [f64; BLOCK] {
    let (mut term, mut sum, mut n) = ([1.0; BLOCK], [1.0; BLOCK], *a);
    for _ in 0..MOST / 8 {
        for _ in 0..8 {
            for k in 0..BLOCK {
                n[k] += 1.0;
                term[k] *= x[k] / n[k];
                sum[k] += term[k];
            }
        }
        if term.iter().zip(&sum).all(|(t, s)| *t <= 1e-17 * s) {
            break;
        }
    }
    sum
}

/// Legendre's continued fraction for Gamma(a, x) exp(x) x^-a, and its derivative by a. It is evaluated from its end, where rounding errors do
/// not add up; where the end may be is found on the way forward, from the denominators.
#[inline(always)]
fn fraction(a: f64, x: f64, precision: f64) -> (f64, f64) {
    let (first, mut steps) = (x + 1.0 - a, 0.0);
    // Of consecutive denominators q the approximants differ by the product of the numerators over their product.
    let (mut b, mut inverse, mut change) = (first, 1.0 / first, 1.0);
    while steps < MOST as f64 && change > precision {
        steps += 1.0;
        b += 2.0;
        let before = inverse;
        let next = b + steps * (a - steps) * before;
        inverse = 1.0 / if next == 0.0 { 1e-300 } else { next };
        // A numerator that is 0, of an order that is a whole number, ends the fraction but not its derivative.
        change *= (steps * (a - steps).abs().max(0.5) * before * inverse).abs();
    }
    let (mut value, mut slope) = (b, -1.0);
    while steps > 0.0 {
        let c = steps * (a - steps);
        b -= 2.0;
        let inverse = 1.0 / value;
        let part = c * inverse;
        slope = -1.0 + (steps - part * slope) * inverse;
        value = b + part;
        steps -= 1.0;
    }
    let inverse = 1.0 / value;
    (inverse, -slope * inverse * inverse)
}

/// P and Q near a large order.
#[inline(always)]
fn uniform<I: Isa>(a: f64, x: f64) -> (f64, f64) {
    let t = (x - a) / a;
    let half_square = log1p_gap::<I>(t);
    let eta = (2.0 * half_square).sqrt().copysign(t);
    let inverse = 1.0 / a;
    let mut sum = 0.0;
    for c in TEMME.iter().rev() {
        sum = sum * inverse + polynomial::<I, 24>(eta, c);
    }
    let rest = m::exp::<I>(-a * half_square) * sum / (TAU * a).sqrt();
    let root = eta * (0.5 * a).sqrt();
    (0.5 * m::erfc::<I>(-root) - rest, 0.5 * m::erfc::<I>(root) + rest)
}

/// Q for small x, where P is near 1 if the order is small.
#[inline(always)]
fn small_upper<I: Isa>(a: f64, x: f64) -> f64 {
    let log = a * m::log::<I>(x) - if a <= 0.5 { lgamma_of_one_plus::<I>(a) } else { lgamma_positive::<I>(a + 1.0) };
    // x^a / Gamma(a + 1) times the sum of a (-x)^n / ((a + n) n!).
    let (mut term, mut sum, mut n) = (1.0, 0.0, 0.0);
    while n < 40.0 {
        n += 1.0;
        term *= -x / n;
        sum += term / (a + n);
    }
    -m::expm1::<I>(log) - a * sum * m::exp::<I>(log)
}

/// How a value is computed.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// It is known, or nan.
    Known(f64),
    Uniform,
    SmallUpper,
    Series,
    Fraction,
}

#[inline(always)]
fn way(a: f64, x: f64, upper: bool) -> Way {
    let (zero, one) = if upper { (1.0, 0.0) } else { (0.0, 1.0) };
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || a == 0.0 && x == 0.0 || a == f64::INFINITY && x == f64::INFINITY {
        return Way::Known(f64::NAN);
    }
    if x == 0.0 || a == f64::INFINITY {
        return Way::Known(zero);
    }
    if a == 0.0 || x == f64::INFINITY {
        return Way::Known(one);
    }
    if a > LARGE && (x - a).abs() < NEAR * a {
        return Way::Uniform;
    }
    if x <= 1.0 && a <= 1.0 && upper {
        return Way::SmallUpper;
    }
    // P is the sum of positive terms anywhere. Q loses no more than a digit where it is above a tenth.
    let most = if upper { a.max(1.0) } else { 2.0 * a + 10.0 };
    if x <= most { Way::Series } else { Way::Fraction }
}

/// The lower incomplete gamma function over the gamma function, or one minus it, in place of the order.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
pub(super) fn incomplete_gamma<I: Isa>(a: &mut [f64; BLOCK], x: &[f64; BLOCK], upper: bool) {
    let (mut orders, mut ends) = ([1.0; BLOCK], [0.0; BLOCK]);
    for k in 0..BLOCK {
        if way(a[k], x[k], upper) == Way::Series {
            (orders[k], ends[k]) = (a[k], x[k]);
        }
    }
    let sums = if ends == [0.0; BLOCK] { ends } else { series_of_block(&orders, &ends) };
    for k in 0..BLOCK {
        let (order, x) = (a[k], x[k]);
        a[k] = match way(order, x, upper) {
            Way::Known(v) => v,
            Way::Uniform => {
                let (p, q) = uniform::<I>(order, x);
                if upper { q } else { p }
            }
            Way::SmallUpper => small_upper::<I>(order, x),
            Way::Series => {
                let p = prefactor::<I>(order, x) * sums[k];
                if upper { 1.0 - p } else { p }
            }
            Way::Fraction => {
                let q = prefactor::<I>(order, x) * order * fraction(order, x, 1e-17).0;
                if upper { q } else { 1.0 - q }
            }
        };
    }
}

/// dx / da for samples x of the gamma distribution of order a.
#[inline(always)]
pub(super) fn gamma_slope<I: Isa>(a: f64, x: f64) -> f64 {
    if !(a > 0.0 && x >= 0.0) || a == f64::INFINITY || x == f64::INFINITY {
        return f64::NAN;
    }
    if x == 0.0 {
        return 0.0;
    }
    if a > LARGE && (x - a).abs() < NEAR * a {
        let (t, inverse) = ((x - a) / a, 1.0 / a);
        let mut sum = 0.0;
        for h in GAMMA_SLOPE.iter().rev() {
            sum = sum * inverse + polynomial::<I, 32>(t, h);
        }
        return sum;
    }
    let log = m::log::<I>(x);
    if x < a || x <= 1.0 {
        let (sum, slope) = series(a, x);
        // x / a would overflow where the order is tiny; the sum of the terms does not.
        return (x * (sum * (digamma::<I>(a + 1.0) - log) - slope)) / a;
    }
    // Some digits more, for the derivative.
    let (value, slope) = fraction(a, x, 1e-20);
    x * (value * (log - digamma::<I>(a)) + slope)
}

/// dx / da / (1 - x) for samples x of the beta distribution of parameters a and b.
#[inline(always)]
pub(super) fn beta_slope<I: Isa>(x: f64, a: f64, b: f64) -> f64 {
    if !((0.0..=1.0).contains(&x) && a > 0.0 && b > 0.0) || a == f64::INFINITY || b == f64::INFINITY {
        return f64::NAN;
    }
    if x == 0.0 {
        return 0.0;
    }
    let (y, total) = (1.0 - x, a + b);
    let mean = a / total;
    if a.min(b) > 1e5 && (x - mean).abs() < 0.1 * mean.min(1.0 - mean) {
        // The leading term of the slope's expansion in 1 / (a + b): log(x / mean) x (1 - x) / ((a + b) (x - mean)).
        let t = (x - mean) / mean;
        let ratio = if t.abs() < 1e-8 { 1.0 - 0.5 * t } else { m::log1p::<I>(t) / t };
        return ratio * x / a;
    }
    let log = m::log::<I>(x);
    // Over the density x^(a - 1) y^(b - 1) / B(a, b).
    let spread = digamma::<I>(total) - digamma::<I>(a);
    let left = log < -spread;
    if left && b < 1.0 && x < 0.8 {
        // I = x^a / B sum of (1 - b)_n x^n / (n! (a + n)), whose terms are positive.
        let (mut factor, mut sum, mut n) = (1.0, 0.0, 0.0);
        for _ in 0..MOST {
            let inverse = 1.0 / (a + n);
            let term = factor * inverse * (inverse - log - spread);
            sum += term;
            if term <= 1e-17 * sum {
                break;
            }
            factor *= x * (n + 1.0 - b) / (n + 1.0);
            n += 1.0;
        }
        return sum * x * m::exp::<I>(-b * m::log::<I>(y));
    }
    if left || x < 0.25 && x * total < 0.5 * (a + 1.0) {
        // I = x^a y^b / (a B) sum of (a + b)_n / (a + 1)_n x^n.
        let head = 1.0 / a - log - spread;
        let (mut term, mut sum, mut n, mut turns) = (1.0, head, 0.0, 0.0);
        for _ in 0..MOST {
            turns += (1.0 / (a + 1.0 + n)) - (1.0 / (total + n));
            term *= x * (total + n) / (a + 1.0 + n);
            n += 1.0;
            let more = term * (head + turns);
            sum += more;
            if more.abs() <= 1e-17 * sum.abs() && x * (total + n) < a + 1.0 + n {
                break;
            }
        }
        return x * sum / a;
    }
    // 1 - I = x^a y^b / (b B) sum of (a + b)_n / (b + 1)_n y^n.
    let head = log + spread;
    let (mut term, mut sum, mut n, mut turns) = (1.0, head, 0.0, 0.0);
    for _ in 0..MOST {
        turns += 1.0 / (total + n);
        term *= y * (total + n) / (b + 1.0 + n);
        n += 1.0;
        let more = term * (head + turns);
        sum += more;
        if more <= 1e-17 * sum && y * (total + n) < b + 1.0 + n {
            break;
        }
    }
    x * sum / b
}

/// exp(-x) x^(a - 1) / Gamma(a): the derivative of P by x.
#[inline(always)]
pub(super) fn gamma_density<I: Isa>(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return if a < 1.0 {
            f64::INFINITY
        } else if a == 1.0 {
            1.0
        } else {
            0.0
        };
    }
    prefactor::<I>(a, x) * a / x
}
