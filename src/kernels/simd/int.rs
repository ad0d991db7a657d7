//! Integers, which wrap around, and booleans, whose sum is "or" and whose product is "and".

use super::KernelNumber;
use crate::layout::Scalar;
use crate::rows::{Cond, Field, Int, Num};
use std::ops::{Add, Mul, Neg, Sub};

impl Cond for bool {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn not(self) -> Self {
        !self
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

macro_rules! integer {
    ($Name:ident, $raw:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub struct $Name(pub $raw);

        impl KernelNumber for $Name {
            type Stored = $raw;
            type FullRangeNumber = Self;

            #[inline(always)]
            fn new(raw: $raw) -> Self {
                $Name(raw)
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                self.0
            }
            #[inline(always)]
            fn from_scalar(s: &Scalar) -> Self {
                $Name(s.to_i64() as $raw)
            }
            #[inline(always)]
            fn from_bool(byte: u8) -> Self {
                $Name(byte as $raw)
            }
            #[inline(always)]
            fn in_range(self) -> bool {
                true
            }
        }

        impl Add for $Name {
            type Output = Self;
            #[inline(always)]
            fn add(self, o: Self) -> Self {
                $Name(self.0.wrapping_add(o.0))
            }
        }

        impl Sub for $Name {
            type Output = Self;
            #[inline(always)]
            fn sub(self, o: Self) -> Self {
                $Name(self.0.wrapping_sub(o.0))
            }
        }

        impl Mul for $Name {
            type Output = Self;
            #[inline(always)]
            fn mul(self, o: Self) -> Self {
                $Name(self.0.wrapping_mul(o.0))
            }
        }

        impl Neg for $Name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                $Name(self.0.wrapping_neg())
            }
        }

        impl Field for $Name {
            type Cond = bool;
            crate::without_imaginary_part!();

            #[inline(always)]
            fn lit(&self, v: f64) -> Self {
                $Name(v as i64 as $raw)
            }
            #[inline(always)]
            fn eq(&self, o: &Self) -> bool {
                self.0 == o.0
            }
            #[inline(always)]
            fn is_nan(&self) -> bool {
                false
            }
            #[inline(always)]
            fn is_inf(&self) -> bool {
                false
            }
            #[inline(always)]
            fn select(c: bool, a: Self, b: Self) -> Self {
                if c { a } else { b }
            }
            #[inline]
            #[allow(unused_comparisons)]
            fn pow(self, e: Self) -> Self {
                if e.0 < 0 {
                    // The truncated reciprocal is not 0 only for 1 and -1.
                    let odd = e.0 & 1 == 1;
                    return $Name(match self.0 {
                        1 => 1,
                        b if b < 0 && b.wrapping_add(1) == 0 => {
                            if odd {
                                b
                            } else {
                                1
                            }
                        }
                        _ => 0,
                    });
                }
                let (mut base, mut e, mut acc) = (self.0, e.0, 1 as $raw);
                while e > 0 {
                    if e & 1 == 1 {
                        acc = acc.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    e >>= 1;
                }
                $Name(acc)
            }
        }

        impl Num for $Name {
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn abs(self) -> Self {
                $Name(if self.0 < 0 { self.0.wrapping_neg() } else { self.0 })
            }
            #[inline(always)]
            fn lt(&self, o: &Self) -> bool {
                self.0 < o.0
            }
            #[inline(always)]
            fn le(&self, o: &Self) -> bool {
                self.0 <= o.0
            }
            #[inline(always)]
            fn max(self, o: Self) -> Self {
                $Name(self.0.max(o.0))
            }
            #[inline(always)]
            fn min(self, o: Self) -> Self {
                $Name(self.0.min(o.0))
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn sign(self) -> Self {
                $Name(((self.0 > 0) as $raw).wrapping_sub((self.0 < 0) as $raw))
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn div_floor(self, o: Self) -> Self {
                if o.0 == 0 {
                    return $Name(0);
                }
                let (q, r) = (self.0.wrapping_div(o.0), self.0.wrapping_rem(o.0));
                $Name(if r != 0 && (r < 0) != (o.0 < 0) { q.wrapping_sub(1) } else { q })
            }
            #[inline(always)]
            fn div_trunc(self, o: Self) -> Self {
                $Name(if o.0 == 0 { 0 } else { self.0.wrapping_div(o.0) })
            }
            #[inline(always)]
            fn fmod(self, o: Self) -> Self {
                $Name(if o.0 == 0 { 0 } else { self.0.wrapping_rem(o.0) })
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn remainder(self, o: Self) -> Self {
                if o.0 == 0 {
                    return $Name(0);
                }
                let r = self.0.wrapping_rem(o.0);
                $Name(if r != 0 && (r < 0) != (o.0 < 0) { r.wrapping_add(o.0) } else { r })
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                self
            }
            #[inline(always)]
            fn round(self) -> Self {
                self
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                self
            }
        }

        impl Int for $Name {
            #[inline(always)]
            fn bit_and(self, o: Self) -> Self {
                $Name(self.0 & o.0)
            }
            #[inline(always)]
            fn bit_or(self, o: Self) -> Self {
                $Name(self.0 | o.0)
            }
            #[inline(always)]
            fn bit_xor(self, o: Self) -> Self {
                $Name(self.0 ^ o.0)
            }
            #[inline(always)]
            fn bit_not(self) -> Self {
                $Name(!self.0)
            }
            #[inline(always)]
            fn shl(self, count: Self) -> Self {
                let inside = (count.0 as u64) < $raw::BITS as u64;
                $Name(if inside { self.0.wrapping_shl(count.0 as u32) } else { 0 })
            }
            #[inline(always)]
            fn shr(self, count: Self) -> Self {
                let inside = (count.0 as u64) < $raw::BITS as u64;
                let most = $raw::BITS - 1;
                // Two steps shift out the last bit too where there is no sign to keep.
                $Name(if inside { self.0.wrapping_shr(count.0 as u32) } else { self.0.wrapping_shr(most) >> 1 })
            }
        }
    };
}

integer!(U8, u8, "`uint8`.");
integer!(I32, i32, "`int32`.");
integer!(I64, i64, "`int64`.");

/// `bool`: 0 or 1 in a byte.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct B8(pub u8);

impl KernelNumber for B8 {
    type Stored = u8;
    type FullRangeNumber = Self;

    #[inline(always)]
    fn new(raw: u8) -> Self {
        // Memory from outside (NumPy, DLPack) may hold any byte.
        B8((raw != 0) as u8)
    }
    #[inline(always)]
    fn raw(self) -> u8 {
        self.0
    }
    #[inline(always)]
    fn from_scalar(s: &Scalar) -> Self {
        B8(s.to_bool() as u8)
    }
    #[inline(always)]
    fn from_bool(byte: u8) -> Self {
        B8((byte != 0) as u8)
    }
    #[inline(always)]
    fn in_range(self) -> bool {
        true
    }
}

#[allow(clippy::suspicious_arithmetic_impl)]
impl Add for B8 {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        B8(self.0 | o.0)
    }
}

#[allow(clippy::suspicious_arithmetic_impl)]
impl Sub for B8 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        B8(self.0 ^ o.0)
    }
}

#[allow(clippy::suspicious_arithmetic_impl)]
impl Mul for B8 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        B8(self.0 & o.0)
    }
}

impl Neg for B8 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self
    }
}

impl Field for B8 {
    type Cond = bool;
    crate::without_imaginary_part!();

    #[inline(always)]
    fn lit(&self, v: f64) -> Self {
        B8((v != 0.0) as u8)
    }
    #[inline(always)]
    fn eq(&self, o: &Self) -> bool {
        self.0 == o.0
    }
    #[inline(always)]
    fn is_nan(&self) -> bool {
        false
    }
    #[inline(always)]
    fn is_inf(&self) -> bool {
        false
    }
    #[inline(always)]
    fn select(c: bool, a: Self, b: Self) -> Self {
        if c { a } else { b }
    }
    #[inline(always)]
    fn pow(self, e: Self) -> Self {
        B8(self.0 | (e.0 ^ 1))
    }
}

impl Num for B8 {
    #[inline(always)]
    fn abs(self) -> Self {
        self
    }
    #[inline(always)]
    fn lt(&self, o: &Self) -> bool {
        self.0 < o.0
    }
    #[inline(always)]
    fn le(&self, o: &Self) -> bool {
        self.0 <= o.0
    }
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        B8(self.0 | o.0)
    }
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        B8(self.0 & o.0)
    }
    #[inline(always)]
    fn sign(self) -> Self {
        self
    }
    #[inline(always)]
    fn div_floor(self, o: Self) -> Self {
        B8(self.0 & o.0)
    }
    #[inline(always)]
    fn div_trunc(self, o: Self) -> Self {
        B8(self.0 & o.0)
    }
    #[inline(always)]
    fn fmod(self, _: Self) -> Self {
        B8(0)
    }
    #[inline(always)]
    fn remainder(self, _: Self) -> Self {
        B8(0)
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        self
    }
    #[inline(always)]
    fn round(self) -> Self {
        self
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        self
    }
}

impl Int for B8 {
    #[inline(always)]
    fn bit_and(self, o: Self) -> Self {
        B8(self.0 & o.0)
    }
    #[inline(always)]
    fn bit_or(self, o: Self) -> Self {
        B8(self.0 | o.0)
    }
    #[inline(always)]
    fn bit_xor(self, o: Self) -> Self {
        B8(self.0 ^ o.0)
    }
    #[inline(always)]
    fn bit_not(self) -> Self {
        B8(self.0 ^ 1)
    }
    #[inline(always)]
    fn shl(self, count: Self) -> Self {
        B8(self.0 & (count.0 ^ 1))
    }
    #[inline(always)]
    fn shr(self, count: Self) -> Self {
        B8(self.0 & (count.0 ^ 1))
    }
}
