//! Sines and cosines of sixteen numbers.

use crate::simd::math::f32 as one;
use crate::simd::{Avx512, Bits16, F32x16, LookupTable};
use std::arch::x86_64::_CMP_NLE_UQ;

/// Up to here three `f32` of pi/16 are exact enough; beyond, `f64` is.
const NEAR: f32 = 1e5;
/// 1.5 * 2^23: added to a number below 2^22, it leaves that rounded to a whole number in the low bits.
const MAGIC: f32 = 12_582_912.0;
/// pi/16 as a sum.
const STEP: [f32; 3] = [0.19634955, -5.4639235e-9, -2.1439056e-16];

/// The number of the nearest multiple of pi/16, and what `x` is above it, as a sum.
#[inline(always)]
fn reduce(x: F32x16) -> (Bits16, F32x16, F32x16) {
    let t = x.fma(x.of(16.0 * std::f32::consts::FRAC_1_PI), x.of(MAGIC));
    let n = t - x.of(MAGIC);
    // Exact: both sides are multiples of the same unit, and near.
    let a = n.neg_fma(x.of(STEP[0]), x);
    let p = n * x.of(STEP[1]);
    let rest = n.fma(x.of(STEP[2]), n.fma_less(x.of(STEP[1]), p));
    let r = a - p;
    // Exact: `a` is a multiple of the unit of `p`.
    let low = ((a - r) - p) - rest;
    (t.bits(), r, low)
}

/// The sine of `at` steps of pi/16 and r + low.
#[inline(always)]
fn sine(at: Bits16, r: F32x16, low: F32x16) -> F32x16 {
    let (s, c) = (at.pick(&SINES), at.pick(&COSINES));
    let z = r * r;
    // sin(r) - r, and cos(r) - 1.
    let odd = (z * r).fma(z.poly([-0.16666666, 0.008331265]), low);
    let even = z * z.poly([-0.49999997, 0.04165219]);
    s + c.fma(r, c.fma(odd, s.fma(even, at.pick(&SINES_LOW))))
}

#[inline(always)]
pub fn sin(x: F32x16) -> F32x16 {
    let (at, r, low) = reduce(x);
    // The zero keeps its sign.
    let y = sine(at, r, low).or_zero_of(x);
    let far = x.abs().compare::<_CMP_NLE_UQ>(x.of(NEAR));
    if far.any() {
        // SAFETY: the machine has AVX-512, or there would be no `x`.
        return far.select(unsafe { sin_far(x) }, y);
    }
    y
}

#[inline(always)]
pub fn cos(x: F32x16) -> F32x16 {
    let (at, r, low) = reduce(x);
    // A quarter of a turn on.
    let y = sine(at.plus(8), r, low);
    let far = x.abs().compare::<_CMP_NLE_UQ>(x.of(NEAR));
    if far.any() {
        // SAFETY: the machine has AVX-512, or there would be no `x`.
        return far.select(unsafe { cos_far(x) }, y);
    }
    y
}

/// # Safety
/// The machine has AVX-512.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
unsafe fn sin_far(x: F32x16) -> F32x16 {
    x.each(|x| if x.abs() <= one::TRIG_LIMIT { one::sin::<Avx512>(x) } else { (x as f64).sin() as f32 })
}

/// # Safety
/// The machine has AVX-512.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
unsafe fn cos_far(x: F32x16) -> F32x16 {
    x.each(|x| if x.abs() <= one::TRIG_LIMIT { one::cos::<Avx512>(x) } else { (x as f64).cos() as f32 })
}

/// The sines of the multiples of pi/16.
#[rustfmt::skip]
static SINES: LookupTable = LookupTable([
    0.0, 0.19509032, 0.38268343, 0.55557024, 0.70710677, 0.8314696, 0.9238795, 0.98078525,
    1.0, 0.98078525, 0.9238795, 0.8314696, 0.70710677, 0.55557024, 0.38268343, 0.19509032,
    0.0, -0.19509032, -0.38268343, -0.55557024, -0.70710677, -0.8314696, -0.9238795, -0.98078525,
    -1.0, -0.98078525, -0.9238795, -0.8314696, -0.70710677, -0.55557024, -0.38268343, -0.19509032,
]);
#[rustfmt::skip]
static SINES_LOW: LookupTable = LookupTable([
    0.0, -1.6704714e-9, 6.2233507e-9, -1.1769521e-8, 1.21016175e-8, 1.6870263e-8, 2.830749e-8, 2.9739473e-8,
    0.0, 2.9739473e-8, 2.830749e-8, 1.6870263e-8, 1.21016175e-8, -1.1769521e-8, 6.2233507e-9, -1.6704714e-9,
    0.0, 1.6704714e-9, -6.2233507e-9, 1.1769521e-8, -1.21016175e-8, -1.6870263e-8, -2.830749e-8, -2.9739473e-8,
    0.0, -2.9739473e-8, -2.830749e-8, -1.6870263e-8, -1.21016175e-8, 1.1769521e-8, -6.2233507e-9, 1.6704714e-9,
]);
#[rustfmt::skip]
static COSINES: LookupTable = LookupTable([
    1.0, 0.98078525, 0.9238795, 0.8314696, 0.70710677, 0.55557024, 0.38268343, 0.19509032,
    0.0, -0.19509032, -0.38268343, -0.55557024, -0.70710677, -0.8314696, -0.9238795, -0.98078525,
    -1.0, -0.98078525, -0.9238795, -0.8314696, -0.70710677, -0.55557024, -0.38268343, -0.19509032,
    0.0, 0.19509032, 0.38268343, 0.55557024, 0.70710677, 0.8314696, 0.9238795, 0.98078525,
]);
