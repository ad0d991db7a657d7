//! Remainders.

use crate::simd::Isa;

/// Quotients below this are known to the last bit before the point.
pub const QUOTIENT_LIMIT: f64 = 4_503_599_627_370_496.0; // 2^52

/// The remainder of the division truncated towards zero, exactly; it has the sign of `x`. For quotients below `QUOTIENT_LIMIT` unless
/// `I::WIDE`.
#[inline(always)]
pub fn fmod<I: Isa>(x: f64, y: f64) -> f64 {
    if I::FULL_RANGE || !I::FMA {
        return x % y;
    }
    let (a, b) = (x.abs(), y.abs());
    // Rounding may have lifted the quotient to the next whole number. Either way a - q * b is a whole multiple of the smaller of both
    // units in the last place and no larger than b: exact.
    let r = (-(a / b).trunc()).mul_add(b, a);
    let r = if r < 0.0 { r + b } else { r };
    // The product of 0 and infinity above.
    let r = if (b == f64::INFINITY) & (a < f64::INFINITY) { a } else { r };
    r.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Avx2;

    #[test]
    fn remainders_are_those_of_the_platform() {
        let edges = [0.0, 1.0, 3.0, 0.1, 5e-324, 2.5e-310, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN];
        let mut pairs: Vec<(f64, f64)> = edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).collect();
        let mut bits = 0x9E37_79B9_7F4A_7C15u64;
        for i in 0..20_000u64 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = f64::from_bits(bits >> 1 & 0x7FEF_FFFF_FFFF_FFFF);
            // Divisors whose quotients are of every size, and next to whole numbers.
            let y = if i % 2 == 0 { x / 2f64.powi((i % 50) as i32) * 1.37 } else { x / (i as f64) };
            pairs.extend([(x, y), (x, y.next_up()), (x, y.next_down())]);
        }
        let mut checked = 0;
        for (a, b) in pairs {
            if a >= b * QUOTIENT_LIMIT && b != 0.0 && a != f64::INFINITY {
                continue;
            }
            checked += 1;
            for (x, y) in [(a, b), (-a, b), (a, -b)] {
                let (got, want) = (fmod::<Avx2>(x, y), x % y);
                assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{x:e} % {y:e}: {got:e}, not {want:e}");
            }
        }
        assert!(checked > 30_000, "{checked}");
    }
}
