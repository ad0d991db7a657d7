//! Square roots with AVX2. The compiler computes them one by one in the loops of `kernels`, eight times slower; the bits are the same, since every
//! root and quotient is the nearest number.

use super::kernels::{LANES, MAX_INPUTS};
use crate::layout::Scalar;
use crate::rows::MAX_PARAMS;
use std::arch::x86_64::{
    _mm256_div_pd, _mm256_div_ps, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_set1_pd, _mm256_set1_ps, _mm256_sqrt_pd, _mm256_sqrt_ps,
    _mm256_storeu_pd, _mm256_storeu_ps,
};

macro_rules! roots {
    ($name:ident $kind:ident $wide:literal $load:ident $store:ident $f:expr) => {
        /// # Safety
        /// As for `KernelFn`; the machine has AVX2.
        #[target_feature(enable = "avx2,fma")]
        pub(crate) unsafe fn $name(blocks: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS], _: &[Scalar; MAX_PARAMS]) {
            const { assert!(LANES.is_multiple_of($wide)) };
            let (from, to) = (ins[0].cast::<$kind>(), out.cast::<$kind>());
            for at in (0..blocks * LANES).step_by($wide) {
                // SAFETY: the input and the output hold these elements.
                unsafe { $store(to.add(at), $f($load(from.add(at)))) };
            }
        }
    };
}

roots!(sqrt_f32 f32 8 _mm256_loadu_ps _mm256_storeu_ps |x| _mm256_sqrt_ps(x));
roots!(sqrt_f64 f64 4 _mm256_loadu_pd _mm256_storeu_pd |x| _mm256_sqrt_pd(x));
roots!(rsqrt_f32 f32 8 _mm256_loadu_ps _mm256_storeu_ps |x| _mm256_div_ps(_mm256_set1_ps(1.0), _mm256_sqrt_ps(x)));
roots!(rsqrt_f64 f64 4 _mm256_loadu_pd _mm256_storeu_pd |x| _mm256_div_pd(_mm256_set1_pd(1.0), _mm256_sqrt_pd(x)));
