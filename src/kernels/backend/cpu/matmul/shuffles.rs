//! Movements of numbers between the lanes of registers: transposes, and every other lane.

use std::arch::x86_64::*;

/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn transposed_16(r: [__m512; 16]) -> [__m512; 16] {
    // SAFETY: the caller's.
    unsafe {
        let mut u = r;
        for g in 0..4 {
            u[4 * g..4 * g + 4].copy_from_slice(&quarters_turned([r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]]));
        }
        let mut out = u;
        for j in 0..4 {
            let (low, high) = (_mm512_shuffle_f32x4::<0x88>(u[j], u[4 + j]), _mm512_shuffle_f32x4::<0xdd>(u[j], u[4 + j]));
            let (low2, high2) = (_mm512_shuffle_f32x4::<0x88>(u[8 + j], u[12 + j]), _mm512_shuffle_f32x4::<0xdd>(u[8 + j], u[12 + j]));
            out[j] = _mm512_shuffle_f32x4::<0x88>(low, low2);
            out[8 + j] = _mm512_shuffle_f32x4::<0xdd>(low, low2);
            out[4 + j] = _mm512_shuffle_f32x4::<0x88>(high, high2);
            out[12 + j] = _mm512_shuffle_f32x4::<0xdd>(high, high2);
        }
        out
    }
}

/// Four vectors, of which each quarter is transposed for itself: a square of 4 x 4.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
unsafe fn quarters_turned([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
    // SAFETY: the caller's.
    unsafe {
        let (ab, cd) = (_mm512_castps_pd(_mm512_unpacklo_ps(a, b)), _mm512_castps_pd(_mm512_unpacklo_ps(c, d)));
        let (ab2, cd2) = (_mm512_castps_pd(_mm512_unpackhi_ps(a, b)), _mm512_castps_pd(_mm512_unpackhi_ps(c, d)));
        [
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab2, cd2)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab2, cd2)),
        ]
    }
}

/// As `PanelVector::put_columns`.
///
/// # Safety
/// The machine has AVX-512; besides, as there.
#[inline(always)]
pub(super) unsafe fn columns_16(from: impl Fn(usize) -> *const f32, n: usize, to: *mut f32) {
    for t in (0..n).step_by(4) {
        // The last four overlap those before.
        let t = t.min(n - 4);
        // SAFETY: the caller's.
        unsafe {
            let mut rows = [_mm512_setzero_ps(); 4];
            for (k, row) in rows.iter_mut().enumerate() {
                let x = _mm512_castps128_ps512(_mm_loadu_ps(from(k).add(t)));
                let x = _mm512_insertf32x4::<1>(x, _mm_loadu_ps(from(k + 4).add(t)));
                let x = _mm512_insertf32x4::<2>(x, _mm_loadu_ps(from(k + 8).add(t)));
                *row = _mm512_insertf32x4::<3>(x, _mm_loadu_ps(from(k + 12).add(t)));
            }
            for (k, row) in quarters_turned(rows).into_iter().enumerate() {
                _mm512_storeu_ps(to.add((t + k) * 16), row);
            }
        }
    }
}

/// As `quarters_turned`, of halves.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn halves_turned([a, b, c, d]: [__m256; 4]) -> [__m256; 4] {
    // SAFETY: the caller's.
    unsafe {
        let (ab, cd) = (_mm256_castps_pd(_mm256_unpacklo_ps(a, b)), _mm256_castps_pd(_mm256_unpacklo_ps(c, d)));
        let (ab2, cd2) = (_mm256_castps_pd(_mm256_unpackhi_ps(a, b)), _mm256_castps_pd(_mm256_unpackhi_ps(c, d)));
        [
            _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)),
            _mm256_castpd_ps(_mm256_unpacklo_pd(ab2, cd2)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(ab2, cd2)),
        ]
    }
}

/// As `PanelVector::put_columns`.
///
/// # Safety
/// The machine has AVX2; besides, as there.
#[inline(always)]
pub(super) unsafe fn columns_8(from: impl Fn(usize) -> *const f32, n: usize, to: *mut f32) {
    for t in (0..n).step_by(4) {
        // As above.
        let t = t.min(n - 4);
        // SAFETY: the caller's.
        unsafe {
            let mut rows = [_mm256_setzero_ps(); 4];
            for (k, row) in rows.iter_mut().enumerate() {
                let x = _mm256_castps128_ps256(_mm_loadu_ps(from(k).add(t)));
                *row = _mm256_insertf128_ps::<1>(x, _mm_loadu_ps(from(k + 4).add(t)));
            }
            for (k, row) in halves_turned(rows).into_iter().enumerate() {
                _mm256_storeu_ps(to.add((t + k) * 8), row);
            }
        }
    }
}

/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn transposed_8_wide(r: [__m512d; 8]) -> [__m512d; 8] {
    // SAFETY: the caller's.
    unsafe {
        let mut u = r;
        for g in 0..4 {
            u[2 * g] = _mm512_unpacklo_pd(r[2 * g], r[2 * g + 1]);
            u[2 * g + 1] = _mm512_unpackhi_pd(r[2 * g], r[2 * g + 1]);
        }
        let mut out = u;
        for j in 0..2 {
            let (low, high) = (_mm512_shuffle_f64x2::<0x88>(u[j], u[2 + j]), _mm512_shuffle_f64x2::<0xdd>(u[j], u[2 + j]));
            let (low2, high2) = (_mm512_shuffle_f64x2::<0x88>(u[4 + j], u[6 + j]), _mm512_shuffle_f64x2::<0xdd>(u[4 + j], u[6 + j]));
            out[j] = _mm512_shuffle_f64x2::<0x88>(low, low2);
            out[4 + j] = _mm512_shuffle_f64x2::<0xdd>(low, low2);
            out[2 + j] = _mm512_shuffle_f64x2::<0x88>(high, high2);
            out[6 + j] = _mm512_shuffle_f64x2::<0xdd>(high, high2);
        }
        out
    }
}

/// As `PanelVector::parted`.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn parted_16(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the caller's.
    unsafe {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
        (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b))
    }
}

/// As `PanelVector::parted`.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn parted_8_wide(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller's.
    unsafe {
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_or_si512(even, _mm512_set1_epi64(1));
        (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b))
    }
}

/// Each lane twice, in two vectors.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn spread_16(a: __m512) -> (__m512, __m512) {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        (_mm512_permutexvar_ps(low, a), _mm512_permutexvar_ps(_mm512_or_si512(low, _mm512_set1_epi32(8)), a))
    }
}

/// As `spread_16`.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn spread_8_wide(a: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
        (_mm512_permutexvar_pd(low, a), _mm512_permutexvar_pd(_mm512_or_si512(low, _mm512_set1_epi64(4)), a))
    }
}

/// As `PanelVector::parted`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn parted_8(a: __m256, b: __m256) -> (__m256, __m256) {
    // SAFETY: the caller's.
    unsafe {
        let even = _mm256_castps_pd(_mm256_shuffle_ps::<0x88>(a, b));
        let odd = _mm256_castps_pd(_mm256_shuffle_ps::<0xdd>(a, b));
        (_mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(even)), _mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(odd)))
    }
}

/// As `PanelVector::parted`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn parted_4_wide(a: __m256d, b: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller's.
    unsafe { (_mm256_permute4x64_pd::<0xd8>(_mm256_unpacklo_pd(a, b)), _mm256_permute4x64_pd::<0xd8>(_mm256_unpackhi_pd(a, b))) }
}

/// Writes the first `n` lanes, fewer than all. Masked stores take a dozen cycles and more on AMD's processors.
///
/// # Safety
/// The machine has AVX2; there is room.
#[inline(always)]
pub(super) unsafe fn store_first_8(p: *mut f32, n: usize, v: __m256) {
    // SAFETY: the caller's.
    unsafe {
        let (mut p, mut left) = (p, _mm256_castps256_ps128(v));
        if n & 4 != 0 {
            _mm_storeu_ps(p, left);
            (p, left) = (p.add(4), _mm256_extractf128_ps::<1>(v));
        }
        if n & 2 != 0 {
            _mm_storel_pd(p.cast(), _mm_castps_pd(left));
            (p, left) = (p.add(2), _mm_movehl_ps(left, left));
        }
        if n & 1 != 0 {
            _mm_store_ss(p, left);
        }
    }
}

/// As `store_first_8`.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn store_first_4_wide(p: *mut f64, n: usize, v: __m256d) {
    // SAFETY: the caller's.
    unsafe {
        let (mut p, mut left) = (p, _mm256_castpd256_pd128(v));
        if n & 2 != 0 {
            _mm_storeu_pd(p, left);
            (p, left) = (p.add(2), _mm256_extractf128_pd::<1>(v));
        }
        if n & 1 != 0 {
            _mm_store_sd(p, left);
        }
    }
}

/// The mask of `vmaskmov`: the highest bit of each lane.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn lanes_8(mask: u32) -> __m256i {
    // SAFETY: the caller's.
    unsafe {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
    }
}

/// As `lanes_8`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn lanes_4(mask: u32) -> __m256i {
    // SAFETY: the caller's.
    unsafe {
        let bits = _mm256_setr_epi64x(1, 2, 4, 8);
        _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(i64::from(mask)), bits), bits)
    }
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn transposed_8(r: [__m256; 8]) -> [__m256; 8] {
    // SAFETY: the caller's.
    unsafe {
        let mut u = r;
        for g in 0..2 {
            u[4 * g..4 * g + 4].copy_from_slice(&halves_turned([r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]]));
        }
        let mut out = u;
        for j in 0..4 {
            out[j] = _mm256_permute2f128_ps::<0x20>(u[j], u[4 + j]);
            out[4 + j] = _mm256_permute2f128_ps::<0x31>(u[j], u[4 + j]);
        }
        out
    }
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn transposed_4_wide(r: [__m256d; 4]) -> [__m256d; 4] {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
        let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
        [
            _mm256_permute2f128_pd::<0x20>(a, c),
            _mm256_permute2f128_pd::<0x20>(b, d),
            _mm256_permute2f128_pd::<0x31>(a, c),
            _mm256_permute2f128_pd::<0x31>(b, d),
        ]
    }
}

/// As `PanelVector::interleaved`.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn interleaved_16(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
        (_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b))
    }
}

/// As `PanelVector::interleaved`.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub(super) unsafe fn interleaved_8_wide(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let high = _mm512_add_epi64(low, _mm512_set1_epi64(4));
        (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b))
    }
}

/// As `PanelVector::interleaved`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn interleaved_8(a: __m256, b: __m256) -> (__m256, __m256) {
    // SAFETY: the caller's.
    unsafe {
        let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
    }
}

/// As `PanelVector::interleaved`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn interleaved_4_wide(a: __m256d, b: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller's.
    unsafe {
        let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        (_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high))
    }
}
