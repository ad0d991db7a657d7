//! Sixteen `f32` at once as a number of the scalar language. What has no function of its own in `math::lanes` is computed one by one.

use super::{Avx512, F32, F32x16, Mask16};
use crate::rows::{Analytic, Cond, Field, Num, Real, RowId};
use crate::simd::math;
use std::arch::x86_64::{_CMP_EQ_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _CMP_NEQ_UQ, _CMP_UNORD_Q};

impl Cond for Mask16 {
    #[inline(always)]
    fn and(self, o: Self) -> Self {
        Mask16(self.0 & o.0)
    }
    #[inline(always)]
    fn or(self, o: Self) -> Self {
        Mask16(self.0 | o.0)
    }
    #[inline(always)]
    fn not(self) -> Self {
        Mask16(!self.0)
    }
    #[inline(always)]
    fn xor(self, o: Self) -> Self {
        Mask16(self.0 ^ o.0)
    }
}

macro_rules! one_by_one {
    (numbers $($f:ident)+) => {
        $(
            #[inline(always)]
            fn $f(self, o: Self) -> Self {
                self.each_of(o, |a, b| F32::<Avx512>::of(a).$f(F32::of(b)).0)
            }
        )+
    };
    ($($f:ident)+) => {
        $(
            #[inline(always)]
            fn $f(self) -> Self {
                self.each(math::f32::$f::<Avx512>)
            }
        )+
    };
}

impl Field for F32x16 {
    type Cond = Mask16;
    crate::without_imaginary_part!();

    #[inline(always)]
    fn lit(&self, v: f64) -> Self {
        self.of(v as f32)
    }
    #[inline(always)]
    fn eq(&self, o: &Self) -> Mask16 {
        self.compare::<_CMP_EQ_OQ>(*o)
    }
    #[inline(always)]
    fn ne(&self, o: &Self) -> Mask16 {
        self.compare::<_CMP_NEQ_UQ>(*o)
    }
    #[inline(always)]
    fn is_nan(&self) -> Mask16 {
        self.compare::<_CMP_UNORD_Q>(*self)
    }
    #[inline(always)]
    fn select(c: Mask16, a: Self, b: Self) -> Self {
        c.select(a, b)
    }
    #[inline(always)]
    fn is_exact(&self) -> bool {
        false
    }
    one_by_one!(numbers pow);
}

impl Num for F32x16 {
    #[inline(always)]
    fn abs(self) -> Self {
        F32x16::abs(self)
    }
    #[inline(always)]
    fn lt(&self, o: &Self) -> Mask16 {
        self.compare::<_CMP_LT_OQ>(*o)
    }
    #[inline(always)]
    fn le(&self, o: &Self) -> Mask16 {
        self.compare::<_CMP_LE_OQ>(*o)
    }
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        self.is_nan().select(self, o.at_least(self))
    }
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        self.is_nan().select(self, o.at_most(self))
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self.rounded::<1>()
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        self.rounded::<2>()
    }
    #[inline(always)]
    fn round(self) -> Self {
        self.rounded::<0>()
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        self.rounded::<3>()
    }
    one_by_one!(numbers div_floor div_trunc fmod remainder);
}

impl Analytic for F32x16 {
    #[inline(always)]
    fn div(self, o: Self) -> Self {
        self.over(o)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F32x16::sqrt(self)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        math::lanes::exp(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        math::lanes::tanh(self)
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        math::lanes::sigmoid(self)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        math::lanes::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> Self {
        math::lanes::cos(self)
    }
    one_by_one!(exp2 expm1 log log2 log10 log1p tan asin acos atan sinh cosh asinh acosh atanh);
}

impl Real for F32x16 {
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        F32x16::copysign(self, sign)
    }
    #[inline(always)]
    fn normal_cdf(self) -> Self {
        math::lanes::normal_cdf(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        math::lanes::erf(self)
    }
    fn special(row: RowId, x: &[Self]) -> Self {
        let mut operands: [[f64; math::special::BLOCK]; 3] = [[0.0; math::special::BLOCK]; 3];
        let mut numbers = [0.0; F32x16::LANES];
        for (to, x) in operands.iter_mut().zip(x) {
            // SAFETY: there is room for sixteen numbers.
            unsafe { x.store(numbers.as_mut_ptr()) };
            to.iter_mut().zip(numbers).for_each(|(to, v)| *to = f64::from(v));
        }
        math::special::values(row, true, &mut operands);
        numbers.iter_mut().zip(operands[0]).for_each(|(to, v)| *to = v as f32);
        // SAFETY: an operand exists, so the machine has AVX-512; there are sixteen numbers.
        unsafe { F32x16::load(numbers.as_ptr()) }
    }
    one_by_one!(numbers atan2 hypot);
    one_by_one!(erfc);
}
