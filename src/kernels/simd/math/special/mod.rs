//! Values of the rows of the kind `Special`. They are computed in float64 and rounded once, a block of elements at a time; what has no loop of
//! its own is written without branches, so that it vectorises.
//!
//! Not here: derivatives, which the rows have.

mod airy;
mod bessel;
mod expansions;
mod gamma;
mod incomplete;
mod normal;
mod parts;
mod polynomials;
mod tables;

use crate::rows::RowId;
use crate::simd::math::f64 as m;
use crate::simd::{Base, Isa};

/// Elements that are computed side by side.
pub const BLOCK: usize = 16;
/// The operands of a block; the first one is overwritten by the values.
pub type ThreeBlocks = [[f64; BLOCK]; 3];

#[inline(always)]
fn select(on: bool, a: f64, b: f64) -> f64 {
    if on { a } else { b }
}

/// Horner's rule; the constant comes first.
#[inline(always)]
fn polynomial<I: Isa, const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let mut made = c[N - 1];
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        made = if I::FMA { made.mul_add(x, c[k]) } else { made * x + c[k] };
    }
    made
}

/// The sum of Chebyshev polynomials at u (Clenshaw).
#[inline(always)]
fn chebyshev<const N: usize>(u: f64, c: &[f64; N]) -> f64 {
    let (mut a, mut b) = (0.0, 0.0);
    let mut k = N - 1;
    while k > 0 {
        (a, b) = (2.0 * u * a - b + c[k], a);
        k -= 1;
    }
    u * a - b + c[0]
}

/// The sine and the cosine of any angle; large ones need a longer reduction.
#[inline(always)]
fn sin_cos<I: Isa>(x: f64) -> (f64, f64) {
    if x.abs() <= m::TRIG_LIMIT { (m::sin::<I>(x), m::cos::<I>(x)) } else { x.sin_cos() }
}

/// The values of a block. Of iterations that triple the digits, float32 results need one step less.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "indices into several arrays side by side")]
fn block<I: Isa>(row: RowId, single: bool, operands: &mut ThreeBlocks) {
    let [x, second, third] = operands;
    macro_rules! each {
        ($v:ident => $made:expr) => {
            for v in x.iter_mut() {
                let $v = *v;
                *v = $made;
            }
        };
        ($v:ident, $w:ident => $made:expr) => {
            for k in 0..BLOCK {
                let ($v, $w) = (x[k], second[k]);
                x[k] = $made;
            }
        };
    }
    match row {
        RowId::Lgamma => {
            let given = *x;
            each!(v => gamma::lgamma_positive::<I>(select(v < 0.0, 1.0 - v, v)));
            if given.iter().any(|v| *v <= 0.0 || *v == f64::INFINITY) {
                for k in 0..BLOCK {
                    x[k] = gamma::lgamma_mirrored::<I>(given[k], x[k]);
                }
            }
        }
        RowId::Digamma => each!(v => gamma::digamma::<I>(v)),
        RowId::PolygammaOf => {
            let first = x[0];
            if first == 1.0 && x.iter().all(|n| *n == first) {
                for k in 0..BLOCK {
                    x[k] = gamma::trigamma::<I>(second[k]);
                }
            } else {
                each!(n, v => match n.trunc() {
                    0.0 => gamma::digamma::<I>(v),
                    1.0 => gamma::trigamma::<I>(v),
                    n => gamma::polygamma::<I>(n, v),
                });
            }
        }
        RowId::Zeta => each!(s, q => gamma::zeta::<I>(s, q)),
        RowId::Erfinv => normal::erfinv::<I>(x, if single { 2 } else { 3 }),
        RowId::Ndtri => normal::ndtri::<I>(x, if single { 3 } else { 6 }),
        RowId::Erfcx => each!(v => normal::erfcx::<I>(v)),
        RowId::LogNdtr => each!(v => normal::log_ndtr::<I>(v)),
        RowId::BesselI0 => each!(v => bessel::bessel_i::<I>(v, 0, false)),
        RowId::BesselI0e => each!(v => bessel::bessel_i::<I>(v, 0, true)),
        RowId::BesselI1 => each!(v => bessel::bessel_i::<I>(v, 1, false)),
        RowId::BesselI1e => each!(v => bessel::bessel_i::<I>(v, 1, true)),
        RowId::BesselJ0 => each!(v => bessel::bessel_j::<I>(v, 0)),
        RowId::BesselJ1 => each!(v => bessel::bessel_j::<I>(v, 1)),
        RowId::BesselY0 => each!(v => bessel::bessel_y::<I>(v, 0)),
        RowId::BesselY1 => each!(v => bessel::bessel_y::<I>(v, 1)),
        RowId::BesselK0 => each!(v => bessel::bessel_k::<I>(v, 0, false)),
        RowId::BesselK0e => each!(v => bessel::bessel_k::<I>(v, 0, true)),
        RowId::BesselK1 => each!(v => bessel::bessel_k::<I>(v, 1, false)),
        RowId::BesselK1e => each!(v => bessel::bessel_k::<I>(v, 1, true)),
        RowId::SphericalBesselJ0 => each!(v => bessel::spherical_j::<I>(v, 0)),
        RowId::SphericalBesselJ1 => each!(v => bessel::spherical_j::<I>(v, 1)),
        RowId::AiryAi => each!(v => airy::airy::<I>(v, 0)),
        RowId::AiryAiPrime => each!(v => airy::airy::<I>(v, 1)),
        RowId::Igamma => incomplete::incomplete_gamma::<I>(x, second, false),
        RowId::Igammac => incomplete::incomplete_gamma::<I>(x, second, true),
        RowId::GammaDensity => each!(a, v => incomplete::gamma_density::<I>(a, v)),
        RowId::StandardGammaGrad => each!(a, v => incomplete::gamma_slope::<I>(a, v)),
        RowId::DirichletGrad => {
            for k in 0..BLOCK {
                let (a, total) = (second[k], third[k]);
                x[k] = incomplete::beta_slope::<I>(x[k], a, total - a);
            }
        }
        RowId::ChebyshevT => each!(v, n => polynomials::chebyshev(v, n, v)),
        RowId::ChebyshevU => each!(v, n => polynomials::chebyshev(v, n, 2.0 * v)),
        RowId::ChebyshevV => each!(v, n => polynomials::chebyshev(v, n, 2.0 * v - 1.0)),
        RowId::ChebyshevW => each!(v, n => polynomials::chebyshev(v, n, 2.0 * v + 1.0)),
        RowId::ShiftedChebyshevT => each!(v, n => polynomials::chebyshev(2.0 * v - 1.0, n, 2.0 * v - 1.0)),
        RowId::ShiftedChebyshevU => each!(v, n => polynomials::chebyshev(2.0 * v - 1.0, n, 4.0 * v - 2.0)),
        RowId::ShiftedChebyshevV => each!(v, n => polynomials::chebyshev(2.0 * v - 1.0, n, 4.0 * v - 3.0)),
        RowId::ShiftedChebyshevW => each!(v, n => polynomials::chebyshev(2.0 * v - 1.0, n, 4.0 * v - 1.0)),
        RowId::HermiteH => each!(v, n => polynomials::hermite_h(v, n)),
        RowId::HermiteHe => each!(v, n => polynomials::hermite_he(v, n)),
        RowId::LaguerreL => each!(v, n => polynomials::laguerre(v, n)),
        RowId::LegendreP => each!(v, n => polynomials::legendre(v, n)),
        RowId::Sinc => each!(v => parts::sinc::<I>(v)),
        RowId::Nextafter => each!(a, b => parts::nextafter(a, b, single)),
        RowId::FrexpMantissa => each!(v => parts::frexp(v).0),
        RowId::FrexpExponent => each!(v => parts::frexp(v).1),
        // A row of another kind: its formula is its value.
        _ => each!(_v => f64::NAN),
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! instance {
    ($name:ident, $isa:ident, $features:literal) => {
        #[target_feature(enable = $features)]
        fn $name(row: RowId, single: bool, operands: &mut ThreeBlocks) {
            block::<crate::simd::$isa>(row, single, operands);
        }
    };
}
#[cfg(target_arch = "x86_64")]
instance!(block_avx512, Avx512, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt");
#[cfg(target_arch = "x86_64")]
instance!(block_avx2, Avx2, "avx2,fma,bmi1,bmi2,lzcnt");

/// The values of a row of the kind `Special` in place of its first operand; `single` if they are rounded to float32 or less.
pub fn values(row: RowId, single: bool, operands: &mut ThreeBlocks) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::{InstructionSet, instruction_set};
        match instruction_set() {
            // SAFETY: the features were found on this machine.
            InstructionSet::Avx512 => return unsafe { block_avx512(row, single, operands) },
            // SAFETY: as above.
            InstructionSet::Avx2 => return unsafe { block_avx2(row, single, operands) },
            InstructionSet::Base => {}
        }
    }
    block::<Base>(row, single, operands);
}

/// One value.
pub fn value(row: RowId, x: &[f64]) -> f64 {
    let mut operands = [[0.5; BLOCK]; 3];
    for (to, from) in operands.iter_mut().zip(x) {
        *to = [*from; BLOCK];
    }
    values(row, false, &mut operands);
    operands[0][0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value by each instruction set that there is.
    fn of(row: RowId, x: &[f64]) -> f64 {
        let mut plain = [[0.5; BLOCK]; 3];
        plain.iter_mut().zip(x).for_each(|(to, from)| *to = [*from; BLOCK]);
        block::<Base>(row, false, &mut plain);
        let (a, b) = (value(row, x), plain[0][0]);
        assert!(a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-13 * b.abs(), "{row:?} of {x:?}: {a} {b}");
        a
    }

    #[test]
    fn values_are_the_known_ones() {
        use RowId as R;
        // From tables with 16 digits.
        let known: &[(RowId, &[f64], f64)] = &[
            (R::Lgamma, &[0.5], 0.572_364_942_924_700_1),
            (R::Lgamma, &[100.0], 359.134_205_369_575_4),
            (R::Lgamma, &[-1.5], 0.860_047_015_376_481),
            (R::Digamma, &[1.0], -0.577_215_664_901_532_9),
            (R::Digamma, &[-0.5], 0.036_489_973_978_576_52),
            (R::PolygammaOf, &[1.0, 1.0], 1.644_934_066_848_226_4),
            (R::PolygammaOf, &[1.0, 0.5], 4.934_802_200_544_679),
            (R::Erfinv, &[0.5], 0.476_936_276_204_469_9),
            (R::Ndtri, &[0.975], 1.959_963_984_540_054),
            (R::Erfcx, &[1.0], 0.427_583_576_155_807),
            (R::Erfcx, &[-1.0], 5.008_980_080_762_283),
            (R::LogNdtr, &[-10.0], -53.231_285_150_512_47),
            (R::BesselI0, &[1.0], 1.266_065_877_752_008_4),
            (R::BesselI1, &[-1.0], -0.565_159_103_992_485),
            (R::BesselI0e, &[30.0], 0.073_145_946_482_237_3),
            (R::BesselI1e, &[1.0], 0.207_910_415_349_708_45),
        ];
        for (f, x, y) in known {
            assert!((of(*f, x) - y).abs() < 4e-14 * y.abs(), "{f:?} of {x:?}: {} instead of {y}", of(*f, x));
        }
        assert!(of(R::Lgamma, &[1.0]).abs() < 1e-16 && of(R::Lgamma, &[2.0]) == 0.0);
        for x in [0.0, -3.0, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(of(R::Lgamma, &[x]) == f64::INFINITY);
        }
    }

    #[test]
    fn every_special_row_has_values() {
        for row in RowId::ALL.iter().filter(|r| r.info().kind == crate::rows::Kind::Special) {
            let x: Vec<f64> = row.info().operands.iter().map(|o| 0.75 * o.range.0 + 0.25 * o.range.1).collect();
            assert!(of(*row, &x).is_finite(), "{row:?} of {x:?}");
            let nan: Vec<f64> = x.iter().map(|_| f64::NAN).collect();
            assert!(of(*row, &nan).is_nan() || *row == RowId::FrexpExponent, "{row:?} of nan");
        }
    }
}
