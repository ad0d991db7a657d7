//! The real functions that complex ones are made of, in two grades.

use super::super::double_double::*;
use super::super::{f32 as single, f64 as double};
use super::select;
use crate::simd::Isa;

/// How exact real functions are, and which range they have.
pub trait Grade: Copy + 'static {
    /// Whether the range is that of `f64`, so that squares may leave it. If not, it is that of `f32`.
    const WIDE: bool;

    /// `(n, t)`: e^(x + xl) is (1 + t) * 2^n; for x from -746 to 1460 or, if not `WIDE`, from -700 to 700.
    fn exp_parts<I: Isa>(x: f64, xl: f64) -> (f64, f64);
    /// (exp(x) - 1, what that lacks), from the result of `exp_parts` for x up to 45.
    fn less_one<I: Isa>(x: f64) -> (f64, f64);
    /// The sine and the cosine of `x + xl`, where `xl` is far below `x`.
    fn sin_cos<I: Isa>(x: f64, xl: f64) -> (f64, f64);
    /// `log(u + c) + k ln 2` as dd, for `u` positive, finite and not subnormal and `c` below half a unit of its last place.
    fn log<I: Isa>(u: f64, c: f64, k: f64) -> (f64, f64);
    /// The angle of (x, y) as dd.
    fn angle<I: Isa>(y: f64, x: f64) -> (f64, f64);
}

/// To a unit in the last place of `f64`.
#[derive(Debug, Clone, Copy)]
pub struct Fine;

/// To some 30 bits.
#[derive(Debug, Clone, Copy)]
pub struct Light;

impl Grade for Fine {
    const WIDE: bool = true;

    #[inline(always)]
    fn exp_parts<I: Isa>(x: f64, xl: f64) -> (f64, f64) {
        let (n, hi, lo) = double::exp_parts::<I>(x, xl);
        (n, hi + lo)
    }
    #[inline(always)]
    fn less_one<I: Isa>(x: f64) -> (f64, f64) {
        let (n, hi, lo) = double::exp_parts::<I>(x, 0.0);
        let t = pow2(n);
        let (a, al) = two_sum(t, -1.0);
        let (s, e) = fast_two_sum(a, t * hi);
        fast_two_sum(s, e + (al + t * lo))
    }
    #[inline(always)]
    fn sin_cos<I: Isa>(x: f64, xl: f64) -> (f64, f64) {
        double::sin_cos::<I>(x, xl)
    }
    #[inline(always)]
    fn log<I: Isa>(u: f64, c: f64, k: f64) -> (f64, f64) {
        let (m, n) = split(u);
        // 2^-n in two steps: n can be 1024.
        let half = (n * -0.5 + MAGIC) - MAGIC;
        let (f, fl) = two_sum(m - 1.0, c * pow2(half) * pow2(-n - half));
        let (h, l) = double::log_dd::<I>(f, fl);
        double::add_ln2::<I>(n + k, h, l)
    }
    #[inline(always)]
    fn angle<I: Isa>(y: f64, x: f64) -> (f64, f64) {
        double::atan2_dd::<I>(y, x)
    }
}

impl Grade for Light {
    const WIDE: bool = false;

    #[inline(always)]
    fn exp_parts<I: Isa>(x: f64, xl: f64) -> (f64, f64) {
        single::expm1_light::<I>(x + xl)
    }
    #[inline(always)]
    fn less_one<I: Isa>(x: f64) -> (f64, f64) {
        let (n, e) = single::expm1_light::<I>(x);
        let t = pow2(n);
        (fma::<I>(t, e, t - 1.0), 0.0)
    }
    #[inline(always)]
    fn sin_cos<I: Isa>(x: f64, xl: f64) -> (f64, f64) {
        let (s, c) = single::sin_cos_light::<I>(x + xl);
        (select(x == 0.0, x, s), c)
    }
    #[inline(always)]
    fn log<I: Isa>(u: f64, c: f64, k: f64) -> (f64, f64) {
        // The rest counts only against a logarithm near 0.
        let c = select((u > 0.5) & (u < 2.0), c, 0.0);
        (fma::<I>(k, std::f64::consts::LN_2, single::log_light::<I>(u) + c), 0.0)
    }
    #[inline(always)]
    fn angle<I: Isa>(y: f64, x: f64) -> (f64, f64) {
        // An infinity only has to be far larger than all else.
        let limited = |v: f64| select(v.abs() == f64::INFINITY, 1e200, v.abs());
        let (a, b) = (limited(y), limited(x));
        let b = select((a == 0.0) & (b == 0.0), 1.0, b);
        let r = single::atan_ratio::<I>(a, b);
        let r = select(x.is_sign_negative(), std::f64::consts::PI - r, r);
        let r = select(x.is_nan() | y.is_nan(), f64::NAN, r);
        // The rest has the sign as well: it must not turn -0.
        (r.copysign(y), 0.0f64.copysign(y))
    }
}
