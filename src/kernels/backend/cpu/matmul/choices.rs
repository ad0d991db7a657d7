//! What vectors do beside products: quotients, and choices between lanes.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A register of numbers whose lanes are compared.
///
/// # Safety
/// (of each function) The machine has the instruction set.
#[allow(clippy::missing_safety_doc, reason = "the same for all; see the trait")]
pub trait Choices: Copy {
    /// `self / b`.
    unsafe fn over(self, b: Self) -> Self;
    /// `self` and `mine` in the lanes where `self` is larger than `best`, or nan; `best` and `its` in the others.
    unsafe fn or_best(self, mine: Self, best: Self, its: Self) -> (Self, Self);
    /// As `or_best`, where `self` is not smaller than `best`, or nan.
    unsafe fn or_no_worse(self, mine: Self, best: Self, its: Self) -> (Self, Self);
    /// The lanes where `a` and `b` are equal, and zeros.
    unsafe fn where_equal(self, a: Self, b: Self) -> Self;
}

#[cfg(target_arch = "x86_64")]
macro_rules! avx512 {
    ($V:ty, $div:ident, $compare:ident, $blend:ident, $keep:ident) => {
        impl Choices for $V {
            #[inline(always)]
            unsafe fn over(self, b: Self) -> Self {
                // SAFETY: the caller's, here and below.
                unsafe { $div(self, b) }
            }
            #[inline(always)]
            unsafe fn or_best(self, mine: Self, best: Self, its: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe {
                    let takes = $compare::<_CMP_GT_OQ>(self, best) | $compare::<_CMP_UNORD_Q>(self, self);
                    ($blend(takes, best, self), $blend(takes, its, mine))
                }
            }
            #[inline(always)]
            unsafe fn or_no_worse(self, mine: Self, best: Self, its: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe {
                    let takes = $compare::<_CMP_GE_OQ>(self, best) | $compare::<_CMP_UNORD_Q>(self, self);
                    ($blend(takes, best, self), $blend(takes, its, mine))
                }
            }
            #[inline(always)]
            unsafe fn where_equal(self, a: Self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $keep($compare::<_CMP_EQ_OQ>(a, b), self) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
avx512!(__m512, _mm512_div_ps, _mm512_cmp_ps_mask, _mm512_mask_blend_ps, _mm512_maskz_mov_ps);
#[cfg(target_arch = "x86_64")]
avx512!(__m512d, _mm512_div_pd, _mm512_cmp_pd_mask, _mm512_mask_blend_pd, _mm512_maskz_mov_pd);

#[cfg(target_arch = "x86_64")]
macro_rules! avx2 {
    ($V:ty, $div:ident, $compare:ident, $or:ident, $and:ident, $blend:ident) => {
        impl Choices for $V {
            #[inline(always)]
            unsafe fn over(self, b: Self) -> Self {
                // SAFETY: the caller's, here and below.
                unsafe { $div(self, b) }
            }
            #[inline(always)]
            unsafe fn or_best(self, mine: Self, best: Self, its: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe {
                    let takes = $or($compare::<_CMP_GT_OQ>(self, best), $compare::<_CMP_UNORD_Q>(self, self));
                    ($blend(best, self, takes), $blend(its, mine, takes))
                }
            }
            #[inline(always)]
            unsafe fn or_no_worse(self, mine: Self, best: Self, its: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe {
                    let takes = $or($compare::<_CMP_GE_OQ>(self, best), $compare::<_CMP_UNORD_Q>(self, self));
                    ($blend(best, self, takes), $blend(its, mine, takes))
                }
            }
            #[inline(always)]
            unsafe fn where_equal(self, a: Self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $and($compare::<_CMP_EQ_OQ>(a, b), self) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
avx2!(__m256, _mm256_div_ps, _mm256_cmp_ps, _mm256_or_ps, _mm256_and_ps, _mm256_blendv_ps);
#[cfg(target_arch = "x86_64")]
avx2!(__m256d, _mm256_div_pd, _mm256_cmp_pd, _mm256_or_pd, _mm256_and_pd, _mm256_blendv_pd);

macro_rules! base {
    ($t:ty, $lanes:literal) => {
        impl Choices for [$t; $lanes] {
            #[inline(always)]
            unsafe fn over(self, b: Self) -> Self {
                std::array::from_fn(|i| self[i] / b[i])
            }
            #[inline(always)]
            unsafe fn or_best(self, mine: Self, best: Self, its: Self) -> (Self, Self) {
                let takes = |i: usize| self[i] > best[i] || self[i].is_nan();
                let choose = |a: Self, b: Self| std::array::from_fn(|i| if takes(i) { a[i] } else { b[i] });
                (choose(self, best), choose(mine, its))
            }
            #[inline(always)]
            unsafe fn or_no_worse(self, mine: Self, best: Self, its: Self) -> (Self, Self) {
                let takes = |i: usize| self[i] >= best[i] || self[i].is_nan();
                let choose = |a: Self, b: Self| std::array::from_fn(|i| if takes(i) { a[i] } else { b[i] });
                (choose(self, best), choose(mine, its))
            }
            #[inline(always)]
            unsafe fn where_equal(self, a: Self, b: Self) -> Self {
                std::array::from_fn(|i| if a[i] == b[i] { self[i] } else { 0.0 })
            }
        }
    };
}
base!(f32, 4);
base!(f64, 2);
