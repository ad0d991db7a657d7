//! Conversions of dense rows between float32 and the floats of 16 bits, with the processor's instructions where it has them.
//!
//! Not here: all other conversions, and what these do with strides (`cast`).

use crate::layout::{BF16, F16};
use std::arch::x86_64::{
    __m256i, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_castps_si256, _mm256_cmp_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_or_si256, _mm256_packus_epi32,
    _mm256_permute4x64_epi64, _mm256_set1_epi32, _mm256_srli_epi32, _mm256_storeu_ps, _mm256_storeu_si256,
};

/// Elements of a vector of float32.
const LANES: usize = 8;

/// `n` elements to float16.
///
/// # Safety
/// They are readable, and writable elsewhere; the machine has the instructions.
#[target_feature(enable = "avx2,f16c")]
pub(in crate::backend::cpu) unsafe fn to_f16(n: usize, from: *const f32, to: *mut F16) {
    let whole = n - n % LANES;
    // SAFETY: the caller's.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.add(i)));
            _mm_storeu_si128(to.add(i).cast(), narrow);
        }
        for i in whole..n {
            *to.add(i) = F16::from_f32(*from.add(i));
        }
    }
}

/// `n` elements of float16.
///
/// # Safety
/// As for `to_f16`.
#[target_feature(enable = "avx2,f16c")]
pub(in crate::backend::cpu) unsafe fn of_f16(n: usize, from: *const F16, to: *mut f32) {
    let whole = n - n % LANES;
    // SAFETY: the caller's.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            _mm256_storeu_ps(to.add(i), _mm256_cvtph_ps(_mm_loadu_si128(from.add(i).cast())));
        }
        for i in whole..n {
            *to.add(i) = (*from.add(i)).to_f32();
        }
    }
}

/// `n` elements to bfloat16.
///
/// # Safety
/// As for `to_f16`.
#[target_feature(enable = "avx2")]
pub(in crate::backend::cpu) unsafe fn to_bf16(n: usize, from: *const f32, to: *mut BF16) {
    let whole = n - n % (2 * LANES);
    // SAFETY: the caller's.
    unsafe {
        for i in (0..whole).step_by(2 * LANES) {
            let [a, b] = [upper(from.add(i)), upper(from.add(i + LANES))];
            // Quarters of both, in turns.
            let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(a, b));
            _mm256_storeu_si256(to.add(i).cast(), both);
        }
        for i in whole..n {
            *to.add(i) = BF16::from_f32(*from.add(i));
        }
    }
}

/// What `BF16::from_f32` computes, in the lower halves.
///
/// # Safety
/// There are so many elements.
#[target_feature(enable = "avx2")]
unsafe fn upper(from: *const f32) -> __m256i {
    // SAFETY: the caller's.
    let x = unsafe { _mm256_loadu_ps(from) };
    let bits = _mm256_castps_si256(x);
    let even = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let near = _mm256_srli_epi32::<16>(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), even));
    let sign = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(0x8000));
    let nan = _mm256_or_si256(sign, _mm256_set1_epi32(0x7fc0));
    let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<{ std::arch::x86_64::_CMP_UNORD_Q }>(x, x));
    _mm256_blendv_epi8(near, nan, is_nan)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes, and those around what rounds.
    fn numbers() -> Vec<f32> {
        let spread = (0..40_000u32).map(|i| f32::from_bits(i.wrapping_mul(107_377)));
        let near = (0..=u16::MAX).step_by(7).flat_map(|h| {
            let bits = F16(h).to_f32().to_bits();
            [bits.wrapping_sub(1), bits, bits + 1, bits + 0xfff, bits + 0x1000, bits + 0x1001].map(f32::from_bits)
        });
        spread.chain(near).chain([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE]).collect()
    }

    #[test]
    fn dense_rows_are_converted_as_single_elements() {
        if !std::arch::is_x86_feature_detected!("avx2") || !std::arch::is_x86_feature_detected!("f16c") {
            return;
        }
        let x = numbers();
        let (mut half, mut brain) = (vec![F16(1); x.len()], vec![BF16(1); x.len()]);
        // SAFETY: there are so many; the machine has the instructions.
        unsafe {
            to_f16(x.len(), x.as_ptr(), half.as_mut_ptr());
            to_bf16(x.len(), x.as_ptr(), brain.as_mut_ptr());
        }
        for (i, x) in x.iter().enumerate() {
            let same = half[i].0 == F16::from_f32(*x).0 || x.is_nan() && half[i].to_f32().is_nan();
            assert!(same && brain[i].0 == BF16::from_f32(*x).0, "{x:e}");
        }
        let all: Vec<F16> = (0..=u16::MAX).map(F16).collect();
        let mut wide = vec![1.0; all.len() - 1];
        // SAFETY: as above.
        unsafe { of_f16(wide.len(), all.as_ptr(), wide.as_mut_ptr()) };
        assert!(all.iter().zip(&wide).all(|(h, w)| h.to_f32() == *w || w.is_nan() && h.to_f32().is_nan()));
    }
}
