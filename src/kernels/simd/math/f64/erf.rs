//! The error function.

use super::super::double_double::*;
use super::exp::{exp_parts, limit};
use crate::simd::Isa;

/// erfc(a) for a from 0 to 28, as dd before it is scaled by 2^n: `(n, hi, lo)`.
///
/// exp(a^2) * erfc(a) * (a + 4) is a polynomial in t = (a - 4) / (a + 4); its last steps and t are dd.
#[inline(always)]
fn erfc_parts<I: Isa>(a: f64) -> (f64, f64, f64) {
    let (d, dl) = two_sum(a, 4.0);
    let (c, cl) = two_sum(a, -4.0);
    let (t, tl) = div_dd(c, cl, d, dl);
    let q = poly::<I, 25>(
        t,
        [
            -0.5408538313132364,
            0.3308515878780057,
            -0.17401093723987482,
            0.07638151490955941,
            -0.026370053341525722,
            0.006112055651265173,
            -0.00028095885250903644,
            -0.0004550526414139015,
            0.00017681273491033545,
            -3.635420026228601e-06,
            -1.8860548368757933e-05,
            4.695354326090545e-06,
            1.4233117247403688e-06,
            -8.485499743065902e-07,
            -7.406447825008009e-08,
            1.2797807262198503e-07,
            -5.893839333871672e-10,
            -1.927974113277093e-08,
            8.648776069502233e-10,
            3.058658640471567e-09,
            -8.738934758033261e-11,
            -4.872692244262494e-10,
            -3.3181526837606524e-11,
            5.6812057132836534e-11,
            1.3320294759600495e-11,
        ],
    );
    // p = c0 + t * (c1 + t * (c2 + t * q))
    let slope = -0.976548729080882 + t * (2.0 * 0.7732087022652372 + t * (3.0 * q));
    let (u, ul) = two_prod(t, q);
    let (u, v) = fast_two_sum(0.7732087022652372, u + ul);
    let (w, wl) = two_prod(t, u);
    let wl = fma::<I>(t, v, wl);
    let (u, v) = fast_two_sum(-0.976548729080882, w);
    let v = v + (wl - 1.4808216816782803e-17);
    let (w, wl) = two_prod(t, u);
    let wl = fma::<I>(t, v, wl);
    let (p, pl) = fast_two_sum(1.095995661000491, w);
    let pl = pl + (wl + 5.75724514913018e-17) + slope * tl;
    let (r, rl) = div_dd(p, pl, d, dl);
    let (z, zl) = two_prod(a, a);
    let (n, hi, lo) = exp_parts::<I>(-z, -zl);
    let (e, el) = fast_two_sum(1.0, hi);
    let (h, l) = two_prod(e, r);
    (n, h, l + (e * rl + (el + lo) * r))
}

/// erf(a) for a from 0 to 0.5, as dd.
#[inline(always)]
fn erf_small<I: Isa>(a: f64) -> (f64, f64) {
    let z = a * a;
    let q = poly::<I, 10>(
        z,
        [
            -0.37612638903183754,
            0.11283791670955126,
            -0.026866170645131037,
            0.005223977625431154,
            -0.0008548327020579143,
            0.00012055332552174238,
            -1.492561118797231e-05,
            1.645989979894931e-06,
            -1.6289898771332958e-07,
            1.335180053531711e-08,
        ],
    );
    let (h, l) = two_prod(a, std::f64::consts::FRAC_2_SQRT_PI);
    fast_two_sum(h, fma::<I>(a * z, q, fma::<I>(a, 1.533545961316588e-17, l)))
}

#[inline(always)]
pub fn erf<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (sh, sl) = erf_small::<I>(if a < 0.5 { a } else { 0.5 });
    let (n, h, l) = erfc_parts::<I>(limit(a, 0.0, 6.0));
    let p = pow2(n);
    let (s, e) = fast_two_sum(1.0, -h * p);
    let far = s + (e - l * p);
    // Where the product with 2 / sqrt(pi) is no longer exact, one multiplication is accurate enough.
    let tiny = a + a * 0.1283791670955126;
    let y = if a < 0.5 { sh + sl } else { far };
    let y = if a < 1e-280 { tiny } else { y };
    (if x.is_nan() { x } else { y }).copysign(x)
}

/// The probability that a normal number is below x.
#[inline(always)]
pub fn normal_cdf<I: Isa>(x: f64) -> f64 {
    // The same product as in shaders: for large arguments its last bit is amplified a hundredfold.
    0.5 * erfc::<I>((-1.0 / std::f64::consts::SQRT_2) * x)
}

#[inline(always)]
pub fn erfc<I: Isa>(x: f64) -> f64 {
    let (n, h, l) = erfc_parts::<I>(limit(x.abs(), 0.0, 28.0));
    let positive = scale(h + l, n);
    let p = pow2(if n < -1000.0 { -1000.0 } else { n });
    let (s, e) = fast_two_sum(2.0, -h * p);
    let negative = s + (e - l * p);
    let y = if x < 0.0 { negative } else { positive };
    let (h, l) = erf_small::<I>(limit(x, -0.5, 0.5));
    let (s, e) = fast_two_sum(1.0, -h);
    let y = if x.abs() < 0.5 { s + (e - l) } else { y };
    if x.is_nan() { x } else { y }
}
