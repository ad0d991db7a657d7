//! `f64` functions.

use crate::backend::cpu::num::Isa;

#[inline(always)]
pub fn exp<I: Isa>(x: f64) -> f64 {
    x.exp()
}

#[inline(always)]
pub fn exp2<I: Isa>(x: f64) -> f64 {
    x.exp2()
}

#[inline(always)]
pub fn expm1<I: Isa>(x: f64) -> f64 {
    x.exp_m1()
}

#[inline(always)]
pub fn log<I: Isa>(x: f64) -> f64 {
    x.ln()
}

#[inline(always)]
pub fn log2<I: Isa>(x: f64) -> f64 {
    x.log2()
}

#[inline(always)]
pub fn log10<I: Isa>(x: f64) -> f64 {
    x.log10()
}

#[inline(always)]
pub fn log1p<I: Isa>(x: f64) -> f64 {
    x.ln_1p()
}

#[inline(always)]
pub fn sin<I: Isa>(x: f64) -> f64 {
    x.sin()
}

#[inline(always)]
pub fn cos<I: Isa>(x: f64) -> f64 {
    x.cos()
}

#[inline(always)]
pub fn tan<I: Isa>(x: f64) -> f64 {
    x.tan()
}

#[inline(always)]
pub fn asin<I: Isa>(x: f64) -> f64 {
    x.asin()
}

#[inline(always)]
pub fn acos<I: Isa>(x: f64) -> f64 {
    x.acos()
}

#[inline(always)]
pub fn atan<I: Isa>(x: f64) -> f64 {
    x.atan()
}

#[inline(always)]
pub fn sinh<I: Isa>(x: f64) -> f64 {
    x.sinh()
}

#[inline(always)]
pub fn cosh<I: Isa>(x: f64) -> f64 {
    x.cosh()
}

#[inline(always)]
pub fn tanh<I: Isa>(x: f64) -> f64 {
    x.tanh()
}

#[inline(always)]
pub fn asinh<I: Isa>(x: f64) -> f64 {
    x.asinh()
}

#[inline(always)]
pub fn acosh<I: Isa>(x: f64) -> f64 {
    x.acosh()
}

#[inline(always)]
pub fn atanh<I: Isa>(x: f64) -> f64 {
    x.atanh()
}

#[inline(always)]
pub fn sigmoid<I: Isa>(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[inline(always)]
pub fn erf<I: Isa>(x: f64) -> f64 {
    libm::erf(x)
}

#[inline(always)]
pub fn erfc<I: Isa>(x: f64) -> f64 {
    libm::erfc(x)
}

#[inline(always)]
pub fn pow<I: Isa>(x: f64, o: f64) -> f64 {
    x.powf(o)
}

#[inline(always)]
pub fn atan2<I: Isa>(x: f64, o: f64) -> f64 {
    x.atan2(o)
}

#[inline(always)]
pub fn hypot<I: Isa>(x: f64, o: f64) -> f64 {
    x.hypot(o)
}
