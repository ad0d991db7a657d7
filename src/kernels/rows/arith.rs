//! The scalar language in which every pointwise operation is written.
//!
//! A row (see `rows`) is generic over these traits. Instances: numbers of the CPU backend (one newtype for each instruction set),
//! `Tensor` itself (the derivatives of every order), text (the formula of a docstring), WGSL (the GPU backend). So there is no
//! control flow but `select`, and every value is an expression.

use crate::rows::table::RowId;
use std::ops::{Add, Mul, Neg, Sub};

// Every default is inlined: kernels that call one out of line have no vectors.

/// A truth value of the language.
pub trait Cond: Clone {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn not(self) -> Self;
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.clone().and(other.clone().not()).or(self.not().and(other))
    }
}

/// What all numbers share, complex ones too. Integer instances wrap around, as PyTorch's do.
pub trait Field: Clone + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {
    type Cond: Cond;
    /// The numbers that absolute values are: the type itself, but the real type of a complex one.
    type Re: Num<Cond = Self::Cond>;

    /// A constant of the same type as `self`. An instance with shapes may give one that broadcasts (a number).
    fn lit(&self, v: f64) -> Self;
    fn eq(&self, other: &Self) -> Self::Cond;
    /// `a` where `c` holds, else `b`; both are evaluated.
    fn select(c: Self::Cond, a: Self, b: Self) -> Self;
    /// Of a number that can be written in two ways, whether this instance takes the form whose derivatives have all digits, too. The other one costs less;
    /// kernels take it.
    #[inline(always)]
    fn is_exact(&self) -> bool {
        true
    }

    #[inline(always)]
    fn ne(&self, other: &Self) -> Self::Cond {
        self.eq(other).not()
    }
    /// Whether the value counts as true: it is not zero (nan counts).
    #[inline(always)]
    fn truthy(&self) -> Self::Cond {
        self.ne(&self.lit(0.0))
    }
    /// False for integers.
    #[inline(always)]
    fn is_nan(&self) -> Self::Cond {
        self.ne(self)
    }
    /// Plus or minus infinity; false for integers.
    #[inline(always)]
    fn is_inf(&self) -> Self::Cond {
        let size = self.clone().modulus();
        size.eq(&size.lit(f64::INFINITY))
    }
    /// Integers: by repeated multiplication, wrapping; a negative exponent gives the truncated value (0, 1 or -1).
    fn pow(self, e: Self) -> Self;

    /// The complex conjugate. Real numbers are their own.
    #[inline(always)]
    fn conj(self) -> Self {
        self
    }
    /// The real part.
    fn re(self) -> Self::Re;
    /// A number without an imaginary part.
    fn of_re(re: Self::Re) -> Self;
    /// The imaginary part.
    fn im(self) -> Self::Re;
    /// The number times `i`. Of numbers without an imaginary part nothing is left of it: 0.
    fn turned(self) -> Self;
    /// The absolute value.
    fn modulus(self) -> Self::Re;
    /// The number divided by its absolute value; 0 for 0.
    fn sgn(self) -> Self;
    /// The angle in radians between the number and the positive ones; nan for nan.
    fn angle(self) -> Self::Re;
}

/// What `Field` asks of numbers that have no imaginary part, for the instance's `impl Field`.
#[macro_export]
macro_rules! without_imaginary_part {
    () => {
        type Re = Self;
        #[inline(always)]
        fn re(self) -> Self {
            self
        }
        #[inline(always)]
        fn of_re(re: Self) -> Self {
            re
        }
        #[inline(always)]
        fn modulus(self) -> Self {
            $crate::rows::Num::abs(self)
        }
        #[inline(always)]
        fn sgn(self) -> Self {
            $crate::rows::Num::sign(self)
        }
        #[inline(always)]
        fn im(self) -> Self {
            self.lit(0.0)
        }
        #[inline(always)]
        fn turned(self) -> Self {
            self.lit(0.0)
        }
        #[inline(always)]
        fn angle(self) -> Self {
            let turned = $crate::rows::Num::lt(&self, &self.lit(0.0));
            let angle = Self::select(turned, self.lit(::std::f64::consts::PI), self.lit(0.0));
            Self::select(self.is_nan(), self, angle)
        }
    };
}

/// Numbers with an order: integers, booleans and reals.
pub trait Num: Field<Re = Self> {
    fn abs(self) -> Self;
    fn lt(&self, other: &Self) -> Self::Cond;
    fn le(&self, other: &Self) -> Self::Cond;

    #[inline(always)]
    fn gt(&self, other: &Self) -> Self::Cond {
        other.lt(self)
    }
    #[inline(always)]
    fn ge(&self, other: &Self) -> Self::Cond {
        other.le(self)
    }
    /// The larger of both; nan if either is nan.
    fn max(self, other: Self) -> Self;
    /// The smaller of both; nan if either is nan.
    fn min(self, other: Self) -> Self;
    /// -1, 0 or 1.
    #[inline(always)]
    fn sign(self) -> Self {
        let (zero, one, minus) = (self.lit(0.0), self.lit(1.0), self.lit(-1.0));
        let negative = Self::select(self.lt(&zero), minus, zero.clone());
        Self::select(zero.lt(&self), one, negative)
    }
    /// Quotient rounded towards minus infinity. Integers: 0 for a divisor of 0, which the caller refuses beforehand.
    fn div_floor(self, other: Self) -> Self;
    /// Quotient rounded towards zero. Integers: as for `div_floor`.
    fn div_trunc(self, other: Self) -> Self;
    /// Remainder with the sign of the dividend (C's fmod), exact. Integers: 0 for a divisor of 0.
    fn fmod(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor (Python's %), exact. Integers: 0 for a divisor of 0.
    fn remainder(self, other: Self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    /// Half to even, as IEEE 754 and PyTorch do.
    fn round(self) -> Self;
    fn trunc(self) -> Self;
}

/// Integers and booleans.
pub trait Int: Num {
    fn bit_and(self, other: Self) -> Self;
    fn bit_or(self, other: Self) -> Self;
    fn bit_xor(self, other: Self) -> Self;
    fn bit_not(self) -> Self;
    /// 0 when the count is negative or not below the width.
    fn shl(self, count: Self) -> Self;
    /// Keeps the sign; a count that is negative or not below the width shifts everything out.
    fn shr(self, count: Self) -> Self;
}

/// Numbers with division and the functions that have a derivative everywhere but at single points, complex numbers too. Intrinsics of an
/// instance are accurate to 1 ULP over the whole range.
pub trait Analytic: Field {
    fn div(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn expm1(self) -> Self;
    fn log(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn log1p(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn sigmoid(self) -> Self;
}

/// Real numbers: the functions of `Analytic`, an order, and functions that complex numbers have not.
pub trait Real: Num + Analytic {
    fn atan2(self, x: Self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    /// The probability that a normal number is below this one, accurate where it is small.
    #[inline(always)]
    fn normal_cdf(self) -> Self {
        self.lit(0.5) * (self.lit(-1.0 / std::f64::consts::SQRT_2) * self).erfc()
    }
    fn hypot(self, other: Self) -> Self;
    /// The value of a row of the kind `Special`, accurate to a few units in the last place.
    fn special(row: RowId, x: &[Self]) -> Self;
    fn copysign(self, sign: Self) -> Self;
}
