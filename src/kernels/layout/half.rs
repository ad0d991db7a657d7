//! The two floating formats of 16 bits, as they lie in memory. Arithmetic is done in float32; here are the conversions, without branches, so
//! that loops over them vectorise.

use std::cmp::Ordering;

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The upper half of a float32: 8 bits of exponent, 7 of fraction.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct BF16(pub u16);

impl F16 {
    pub const ONE: F16 = F16(0x3c00);

    /// The nearest number, of two equally near ones the even one; what is beyond the largest becomes infinite, nan stays nan.
    #[inline(always)]
    pub fn from_f32(x: f32) -> F16 {
        let bits = x.to_bits();
        let sign = (bits >> 16) & 0x8000;
        let a = bits & 0x7fff_ffff;
        // A subnormal's fraction is what adding 1/2 leaves in the low bits, rounded by the addition.
        let small = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        // Rounded where the fraction is cut, with the exponent counted from -15; a carry goes into the exponent, up to infinity.
        let usual = a.wrapping_add(0xc800_0fff).wrapping_add((a >> 13) & 1) >> 13;
        let large = if a > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        let finite = if a < 0x3880_0000 { small } else { usual };
        F16((sign | if a >= 0x4780_0000 { large } else { finite }) as u16)
    }

    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let h = u32::from(self.0);
        let shifted = (h & 0x7fff) << 13;
        // Both would do for a normal number; only the difference is exact for a subnormal one, and needs no subnormal float32.
        let usual = shifted.wrapping_add(112 << 23);
        let small = (f32::from_bits(shifted | 113 << 23) - f32::from_bits(113 << 23)).to_bits();
        let special = shifted | 0x7f80_0000;
        let exponent = h & 0x7c00;
        let a = if exponent == 0 { small } else { usual };
        let a = if exponent == 0x7c00 { special } else { a };
        f32::from_bits(a | (h & 0x8000) << 16)
    }
}

impl BF16 {
    pub const ONE: BF16 = BF16(0x3f80);

    /// As for `F16`.
    #[inline(always)]
    pub fn from_f32(x: f32) -> BF16 {
        let bits = x.to_bits();
        let near = bits.wrapping_add(0x7fff).wrapping_add((bits >> 16) & 1) >> 16;
        BF16(if bits & 0x7fff_ffff > 0x7f80_0000 { (bits >> 16 & 0x8000 | 0x7fc0) as u16 } else { near as u16 })
    }

    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

macro_rules! halves {
    ($($T:ident)*) => { $(
        impl From<$T> for f32 {
            #[inline(always)]
            fn from(x: $T) -> f32 {
                x.to_f32()
            }
        }

        impl $T {
            /// The next number below, but none below `least`.
            pub fn below(self, least: $T) -> $T {
                let x = self.to_f32();
                let next = $T(if x == 0.0 { 0x8001 } else if x > 0.0 { self.0 - 1 } else { self.0 + 1 });
                if next.to_f32() < least.to_f32() { least } else { next }
            }
        }

        impl PartialEq for $T {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $T {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl std::fmt::Debug for $T {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.to_f32().fmt(f)
            }
        }
    )* };
}
halves!(F16 BF16);

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a number by its definition.
    fn value(bits: u16, exponent_bits: u32, fraction_bits: u32) -> f64 {
        let (bias, all) = ((1 << (exponent_bits - 1)) - 1, (1u32 << exponent_bits) - 1);
        let (e, m) = (u32::from(bits) >> fraction_bits & all, u32::from(bits) & ((1 << fraction_bits) - 1));
        let one = f64::from(1u32 << fraction_bits);
        let v = match e {
            0 => f64::from(m) / one * 2f64.powi(1 - bias),
            e if e == all => {
                if m == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            e => (1.0 + f64::from(m) / one) * 2f64.powi(e as i32 - bias),
        };
        if bits >> 15 == 1 { -v } else { v }
    }

    #[test]
    fn every_half_is_what_its_format_says_and_comes_back() {
        for bits in 0..=u16::MAX {
            for (wide, back, want) in [
                (F16(bits).to_f32(), F16::from_f32(F16(bits).to_f32()).0, value(bits, 5, 10)),
                (BF16(bits).to_f32(), BF16::from_f32(BF16(bits).to_f32()).0, value(bits, 8, 7)),
            ] {
                assert!(
                    f64::from(wide) == want && wide.is_sign_negative() == want.is_sign_negative() || want.is_nan() && wide.is_nan(),
                    "{bits:#x}"
                );
                assert!(want.is_nan() || back == bits, "{bits:#x} {back:#x}");
            }
        }
    }

    #[test]
    fn conversions_round_to_the_nearest_and_ties_to_even() {
        // Each pair of neighbours: just below, at, and just above the middle between them.
        let near = |low: f32, high: f32, low_bits: u16, of: &dyn Fn(f32) -> u16| {
            let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
            let even = if low_bits & 1 == 0 { low_bits } else { low_bits + 1 };
            assert_eq!(of(middle), even, "{low} {high}");
            assert_eq!((of(middle.next_down()), of(middle.next_up())), (low_bits, low_bits + 1), "{low} {high}");
            assert_eq!((of(-middle), of(-middle.next_up())), (even | 0x8000, (low_bits + 1) | 0x8000));
        };
        for bits in 0..0x7bff {
            near(F16(bits).to_f32(), F16(bits + 1).to_f32(), bits, &|x| F16::from_f32(x).0);
        }
        for bits in 1..0x7f7f {
            near(BF16(bits).to_f32(), BF16(bits + 1).to_f32(), bits, &|x| BF16::from_f32(x).0);
        }
        assert_eq!([65519.996, 65520.0, 1e30, f32::INFINITY].map(|x| F16::from_f32(x).0), [0x7bff, 0x7c00, 0x7c00, 0x7c00]);
        assert_eq!([f32::MAX, -f32::MAX, f32::INFINITY].map(|x| BF16::from_f32(x).0), [0x7f80, 0xff80, 0x7f80]);
        let below = |x: f32| F16::from_f32(x).below(F16::from_f32(-100.0)).to_f32();
        assert_eq!([below(1.0), below(-1.0), below(-100.0)], [1.0 - 1.0 / 2048.0, -1.0 - 1.0 / 1024.0, -100.0]);
        assert!(F16::from_f32(f32::NAN).to_f32().is_nan() && BF16::from_f32(f32::from_bits(0x7f80_0001)).to_f32().is_nan());
    }
}
