//! Complex numbers: pairs of the real numbers of an instruction set. Branch-free as these are. Products and quotients are PyTorch's: without the
//! recovery of infinities of C99's annex G. Not here: the functions (`math::complex`).

use super::{F32, F64, FullRange, Isa, KernelNumber};
use crate::layout::{Complex, Scalar};
use crate::rows::{Analytic, Field, Real};
use crate::simd::math::complex::{self as math, Fine, Grade, Light};
use std::ops::{Add, Mul, Neg, Sub};

/// A complex number with parts of the type `R`.
#[derive(Debug, Clone, Copy)]
pub struct Pair<R> {
    pub re: R,
    pub im: R,
}

/// `complex64` computed with the instruction set `I`.
pub type C64<I> = Pair<F32<I>>;
/// `complex128` computed with the instruction set `I`.
pub type C128<I> = Pair<F64<I>>;

/// The real numbers that parts are.
pub(crate) trait RealPart: Real + Field<Re = Self> + KernelNumber {
    type Isa: Isa;
    /// How exact the functions underneath are.
    type Grade: Grade;
    fn widened(self) -> f64;
    fn narrowed(&self, wide: f64) -> Self;
}

macro_rules! part {
    ($R:ident $Grade:ident) => {
        impl<I: Isa> RealPart for $R<I> {
            type Isa = I;
            type Grade = $Grade;
            #[inline(always)]
            fn widened(self) -> f64 {
                self.0.into()
            }
            #[inline(always)]
            fn narrowed(&self, wide: f64) -> Self {
                $R::of(wide as _)
            }
        }
    };
}
part!(F32 Light);
part!(F64 Fine);

impl<R: RealPart> Pair<R> {
    #[inline(always)]
    fn of(re: R, im: R) -> Self {
        Pair { re, im }
    }

    #[inline(always)]
    fn parts(self) -> math::ReIm {
        (self.re.widened(), self.im.widened())
    }

    #[inline(always)]
    fn of_parts(&self, (re, im): math::ReIm) -> Self {
        Pair::of(self.re.narrowed(re), self.re.narrowed(im))
    }
}

macro_rules! kernel_number {
    ($($R:ident)+) => { $(
        impl<I: Isa> KernelNumber for Pair<$R<I>> {
            type Stored = Complex<<$R<I> as KernelNumber>::Stored>;
            type FullRangeNumber = Pair<$R<FullRange<I>>>;
            const SCALAR: bool = I::SCALAR;

            #[inline(always)]
            fn new(raw: Self::Stored) -> Self {
                Pair::of($R::new(raw.re), $R::new(raw.im))
            }
            #[inline(always)]
            fn raw(self) -> Self::Stored {
                Complex { re: self.re.raw(), im: self.im.raw() }
            }
            #[inline(always)]
            fn from_scalar(s: &Scalar) -> Self {
                let z = s.to_complex();
                Pair::of($R::from_scalar(&Scalar::Float(z.re)), $R::from_scalar(&Scalar::Float(z.im)))
            }
            #[inline(always)]
            fn from_bool(byte: u8) -> Self {
                Pair::of($R::from_bool(byte), $R::from_bool(0))
            }
            #[inline(always)]
            fn in_range(self) -> bool {
                self.re.in_range() & self.im.in_range()
            }
        }
    )+ };
}
kernel_number!(F32 F64);

impl<R: RealPart> Add for Pair<R> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        Pair::of(self.re + o.re, self.im + o.im)
    }
}

impl<R: RealPart> Sub for Pair<R> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        Pair::of(self.re - o.re, self.im - o.im)
    }
}

impl<R: RealPart> Mul for Pair<R> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        Pair::of(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)
    }
}

impl<R: RealPart> Neg for Pair<R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Pair::of(-self.re, -self.im)
    }
}

impl<R: RealPart> Field for Pair<R> {
    type Cond = bool;
    type Re = R;

    #[inline(always)]
    fn lit(&self, v: f64) -> Self {
        Pair::of(self.re.lit(v), self.re.lit(0.0))
    }
    #[inline(always)]
    fn eq(&self, o: &Self) -> bool {
        self.re.eq(&o.re) & self.im.eq(&o.im)
    }
    #[inline(always)]
    fn is_nan(&self) -> bool {
        self.re.is_nan() | self.im.is_nan()
    }
    #[inline(always)]
    fn is_inf(&self) -> bool {
        self.re.is_inf() | self.im.is_inf()
    }
    #[inline(always)]
    fn select(c: bool, a: Self, b: Self) -> Self {
        Pair::of(R::select(c, a.re, b.re), R::select(c, a.im, b.im))
    }
    #[inline(always)]
    fn pow(self, e: Self) -> Self {
        self.of_parts(math::pow::<R::Isa, R::Grade>(self.parts(), e.parts()))
    }

    #[inline(always)]
    fn conj(self) -> Self {
        Pair::of(self.re, -self.im)
    }
    #[inline(always)]
    fn re(self) -> R {
        self.re
    }
    #[inline(always)]
    fn of_re(re: R) -> Self {
        Pair::of(re, re.lit(0.0))
    }
    #[inline(always)]
    fn im(self) -> R {
        self.im
    }
    #[inline(always)]
    fn turned(self) -> Self {
        Pair::of(-self.im, self.re)
    }
    #[inline(always)]
    fn modulus(self) -> R {
        self.re.narrowed(math::modulus::<R::Isa, R::Grade>(self.parts()))
    }
    #[inline(always)]
    fn sgn(self) -> Self {
        self.of_parts(math::sgn::<R::Isa, R::Grade>(self.parts()))
    }
    #[inline(always)]
    fn angle(self) -> R {
        self.im.atan2(self.re)
    }
}

macro_rules! functions {
    ($($f:ident)+) => {
        $(
            #[inline(always)]
            fn $f(self) -> Self {
                self.of_parts(math::$f::<R::Isa, R::Grade>(self.parts()))
            }
        )+
    };
}

impl<R: RealPart> Analytic for Pair<R> {
    #[inline(always)]
    fn div(self, o: Self) -> Self {
        self.of_parts(math::div::<R::Isa, R::Grade>(self.parts(), o.parts()))
    }
    functions!(sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid);
}
