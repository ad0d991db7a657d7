//! Real numbers. The elementary functions are in `math`; all is branch-free so that it vectorises.

use super::{FullRange, Isa, KernelNumber};
use crate::layout::Scalar;
use crate::rows::{Analytic, Field, Num, Real, RowId};
use crate::simd::math;
use std::marker::PhantomData;
use std::ops::{Add, Mul, Neg, Sub};

macro_rules! float {
    ($Name:ident, $raw:ident, $math:path, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub struct $Name<I>(pub $raw, PhantomData<I>);

        impl<I: Isa> $Name<I> {
            #[inline(always)]
            pub fn of(v: $raw) -> Self {
                $Name(v, PhantomData)
            }
        }

        impl<I: Isa> KernelNumber for $Name<I> {
            type Stored = $raw;
            type FullRangeNumber = $Name<FullRange<I>>;
            const SCALAR: bool = I::SCALAR;

            #[inline(always)]
            fn new(raw: $raw) -> Self {
                Self::of(raw)
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                self.0
            }
            #[inline(always)]
            fn from_scalar(s: &Scalar) -> Self {
                Self::of(s.to_f64() as $raw)
            }
            #[inline(always)]
            fn from_bool(byte: u8) -> Self {
                Self::of(byte as $raw)
            }
            #[inline(always)]
            fn in_range(self) -> bool {
                use $math as m;
                (self.0.abs() <= m::TRIG_LIMIT) | self.0.is_nan()
            }
            #[inline(always)]
            fn divides_in_range(self, divisor: Self) -> bool {
                use $math as m;
                let (a, b) = (self.0.abs(), divisor.0.abs());
                // Special cases (division by zero, infinity, nan) need no extra code.
                (a < b * m::QUOTIENT_LIMIT) | a.is_nan() | b.is_nan() | (b == 0.0) | (a == <$raw>::INFINITY)
            }
        }

        impl<I: Isa> Add for $Name<I> {
            type Output = Self;
            #[inline(always)]
            fn add(self, o: Self) -> Self {
                Self::of(self.0 + o.0)
            }
        }

        impl<I: Isa> Sub for $Name<I> {
            type Output = Self;
            #[inline(always)]
            fn sub(self, o: Self) -> Self {
                Self::of(self.0 - o.0)
            }
        }

        impl<I: Isa> Mul for $Name<I> {
            type Output = Self;
            #[inline(always)]
            fn mul(self, o: Self) -> Self {
                Self::of(self.0 * o.0)
            }
        }

        impl<I: Isa> Neg for $Name<I> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self::of(-self.0)
            }
        }

        impl<I: Isa> Field for $Name<I> {
            type Cond = bool;
            crate::without_imaginary_part!();

            #[inline(always)]
            fn lit(&self, v: f64) -> Self {
                Self::of(v as $raw)
            }
            #[inline(always)]
            fn eq(&self, o: &Self) -> bool {
                self.0 == o.0
            }
            #[inline(always)]
            fn ne(&self, o: &Self) -> bool {
                self.0 != o.0
            }
            #[inline(always)]
            fn is_nan(&self) -> bool {
                self.0.is_nan()
            }
            #[inline(always)]
            fn is_inf(&self) -> bool {
                self.0.is_infinite()
            }
            #[inline(always)]
            fn select(c: bool, a: Self, b: Self) -> Self {
                // With a branch, a value that is kept becomes a masked store, which takes twenty cycles on AMD processors.
                std::hint::select_unpredictable(c, a, b)
            }
            #[inline(always)]
            fn is_exact(&self) -> bool {
                false
            }
            #[inline(always)]
            fn pow(self, e: Self) -> Self {
                use $math as m;
                Self::of(m::pow::<I>(self.0, e.0))
            }
        }

        impl<I: Isa> Num for $Name<I> {
            #[inline(always)]
            fn abs(self) -> Self {
                Self::of(self.0.abs())
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
                Self::of(if (self.0 > o.0) | self.0.is_nan() { self.0 } else { o.0 })
            }
            #[inline(always)]
            fn min(self, o: Self) -> Self {
                Self::of(if (self.0 < o.0) | self.0.is_nan() { self.0 } else { o.0 })
            }
            #[inline(always)]
            fn div_floor(self, o: Self) -> Self {
                let (a, b) = (self.0, o.0);
                let r = self.fmod(o).0;
                let q = (a - r) / b;
                let q = if (r != 0.0) & ((b < 0.0) != (r < 0.0)) { q - 1.0 } else { q };
                let f = q.floor();
                // The quotient is an integer up to rounding, so it is rounded to the nearest.
                let f = if q - f > 0.5 { f + 1.0 } else { f };
                let f = if q == 0.0 { (0.0 as $raw).copysign(a / b) } else { f };
                Self::of(if b == 0.0 { a / b } else { f })
            }
            #[inline(always)]
            fn div_trunc(self, o: Self) -> Self {
                Self::of((self.0 / o.0).trunc())
            }
            #[inline(always)]
            fn fmod(self, o: Self) -> Self {
                use $math as m;
                Self::of(m::fmod::<I>(self.0, o.0))
            }
            #[inline(always)]
            fn remainder(self, o: Self) -> Self {
                let r = self.fmod(o).0;
                Self::of(if (r != 0.0) & ((o.0 < 0.0) != (r < 0.0)) { r + o.0 } else { r })
            }
            #[inline(always)]
            fn floor(self) -> Self {
                Self::of(self.0.floor())
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                Self::of(self.0.ceil())
            }
            #[inline(always)]
            fn round(self) -> Self {
                Self::of(self.0.round_ties_even())
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                Self::of(self.0.trunc())
            }
        }

        impl<I: Isa> Analytic for $Name<I> {
            #[inline(always)]
            fn div(self, o: Self) -> Self {
                Self::of(self.0 / o.0)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self::of(self.0.sqrt())
            }
            float!(@ $math: exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid);
        }

        impl<I: Isa> Real for $Name<I> {
            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                use $math as m;
                Self::of(m::atan2::<I>(self.0, x.0))
            }
            #[inline(always)]
            fn hypot(self, o: Self) -> Self {
                use $math as m;
                Self::of(m::hypot::<I>(self.0, o.0))
            }
            #[inline(always)]
            fn special(row: RowId, x: &[Self]) -> Self {
                let mut operands = [0.0; 3];
                operands.iter_mut().zip(x).for_each(|(to, x)| *to = x.0 as f64);
                Self::of(math::special::value(row, &operands) as $raw)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                Self::of(self.0.copysign(sign.0))
            }
            float!(@ $math: erf erfc normal_cdf);
        }
    };
    (@ $math:path: $($f:ident)+) => {
        $(
            #[inline(always)]
            fn $f(self) -> Self {
                use $math as m;
                Self::of(m::$f::<I>(self.0))
            }
        )+
    };
}

float!(F32, f32, math::f32, "`float32` computed with the instruction set `I`.");
float!(F64, f64, math::f64, "`float64` computed with the instruction set `I`.");
