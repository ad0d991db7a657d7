//! The numbers of factorisations.

use super::schur::SchurNumber;
use crate::backend::cpu::reduce::reducers::Arithmetic;
use num_complex::Complex;

/// A number with division and conjugates. Its magnitude and real part are real numbers.
pub(in crate::backend::cpu) trait LinearNumber: Arithmetic + PartialEq + std::fmt::Debug {
    /// Stands in results that do not exist.
    const INFINITE: Self;
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// A power of two that may be doubled some times.
    const LARGE: Self;
    const IS_REAL: bool;
    type Real: LinearNumber<Real = Self::Real> + PartialOrd;
    /// The type in which eigenvalues of general matrices are computed.
    type Wide: SchurNumber;
    /// Complex numbers of this precision.
    type Complex: Copy + Send + Sync + 'static;

    fn wide(self) -> Self::Wide;
    /// Rounded to this precision.
    fn rounded(z: Complex<f64>) -> Self::Complex;
    fn minus(self, other: Self) -> Self;
    /// Times a real number.
    fn scaled(self, by: Self::Real) -> Self;
    fn over(self, other: Self) -> Self;
    fn negated(self) -> Self;
    fn conj(self) -> Self;
    fn real(self) -> Self::Real;
    fn of_real(r: Self::Real) -> Self;
    /// The magnitude, without overflow.
    fn magnitude(self) -> Self::Real;
    /// A magnitude to choose pivots by: that of real numbers, the sum of both parts' of complex ones.
    fn size(self) -> Self::Real;
    /// `self * a + b`, rounded once if `FMA`.
    fn mul_add<const FMA: bool>(self, a: Self, b: Self) -> Self;
    /// Of a real number.
    fn sqrt(self) -> Self;
    /// The natural logarithm of a real number.
    fn ln(self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! real_numbers {
    ($($t:ty, $large:expr);+) => { $(
        impl LinearNumber for $t {
            const INFINITE: Self = <$t>::INFINITY;
            const EPSILON: Self = <$t>::EPSILON;
            const LARGE: Self = $large;
            const IS_REAL: bool = true;
            type Real = $t;
            type Wide = f64;
            type Complex = Complex<$t>;

            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn rounded(z: Complex<f64>) -> Complex<$t> {
                Complex::new(z.re as $t, z.im as $t)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn scaled(self, by: Self) -> Self {
                self * by
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn real(self) -> Self {
                self
            }
            #[inline(always)]
            fn of_real(r: Self) -> Self {
                r
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn size(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn mul_add<const FMA: bool>(self, a: Self, b: Self) -> Self {
                if FMA { <$t>::mul_add(self, a, b) } else { self * a + b }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                <$t>::ln(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
        }
    )+ };
}
real_numbers!(f32, 1.329_228e36; f64, 1.071_508_607_186_267_3e301);

/// Complex numbers, with divisions and magnitudes that do not overflow.
macro_rules! complex_numbers {
    ($($t:ty),+) => { $(
        impl LinearNumber for Complex<$t> {
            const INFINITE: Self = Complex::new(<$t>::INFINITY, 0.0);
            const EPSILON: Self = Complex::new(<$t>::EPSILON, 0.0);
            const LARGE: Self = Complex::new(<$t as LinearNumber>::LARGE, 0.0);
            const IS_REAL: bool = false;
            type Real = $t;
            type Wide = Complex<f64>;
            type Complex = Self;

            #[inline(always)]
            fn wide(self) -> Complex<f64> {
                Complex::new(f64::from(self.re), f64::from(self.im))
            }
            #[inline(always)]
            fn rounded(z: Complex<f64>) -> Self {
                Complex::new(z.re as $t, z.im as $t)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn scaled(self, by: $t) -> Self {
                Complex::new(self.re * by, self.im * by)
            }
            /// Smith 1962.
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                let (a, b) = (other.re, other.im);
                if b == 0.0 {
                    Complex::new(self.re / a, self.im / a)
                } else if a.abs() >= b.abs() {
                    let (ratio, size) = (b / a, a + b * (b / a));
                    Complex::new((self.re + self.im * ratio) / size, (self.im - self.re * ratio) / size)
                } else {
                    let (ratio, size) = (a / b, a * (a / b) + b);
                    Complex::new((self.re * ratio + self.im) / size, (self.im * ratio - self.re) / size)
                }
            }
            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            #[inline(always)]
            fn real(self) -> $t {
                self.re
            }
            #[inline(always)]
            fn of_real(r: $t) -> Self {
                Complex::new(r, 0.0)
            }
            #[inline(always)]
            fn magnitude(self) -> $t {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn size(self) -> $t {
                self.re.abs() + self.im.abs()
            }
            #[inline(always)]
            fn mul_add<const FMA: bool>(self, a: Self, b: Self) -> Self {
                let re = LinearNumber::mul_add::<FMA>(self.re, a.re, LinearNumber::mul_add::<FMA>(-self.im, a.im, b.re));
                let im = LinearNumber::mul_add::<FMA>(self.re, a.im, LinearNumber::mul_add::<FMA>(self.im, a.re, b.im));
                Complex::new(re, im)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Complex::new(self.re.sqrt(), 0.0)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                Complex::new(self.re.ln(), 0.0)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
        }
    )+ };
}
complex_numbers!(f32, f64);
