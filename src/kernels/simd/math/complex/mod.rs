//! Elementary functions of complex numbers, given and returned as pairs (real part, imaginary part) of `f64`. Branch cuts and special values
//! are those of C99, annex G. All is generic over a grade of the real functions underneath: `Fine` for parts that are `f64`, `Light`
//! for parts that are widened from `f32`. Not here: the numbers of the kernels (`simd::complex`), and arithmetic that needs no care.

mod exp;
mod grade;
mod inverse;
mod log;
mod plain;

pub use exp::{cos, cosh, exp, exp2, expm1, pow, sigmoid, sin, sinh, tan, tanh};
pub use grade::{Fine, Grade, Light};
pub use inverse::{acos, acosh, asin, asinh, atan, atanh};
pub use log::{log, log1p, log2, log10};
pub use plain::{div, modulus, sgn, sqrt};

/// A complex number.
pub type ReIm = (f64, f64);

#[inline(always)]
fn select(c: bool, a: f64, b: f64) -> f64 {
    std::hint::select_unpredictable(c, a, b)
}

/// The number times `i`.
#[inline(always)]
fn turned((x, y): ReIm) -> ReIm {
    (-y, x)
}

/// The number divided by `i`.
#[inline(always)]
fn turned_back((x, y): ReIm) -> ReIm {
    (y, -x)
}
