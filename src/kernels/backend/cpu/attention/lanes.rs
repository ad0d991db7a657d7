//! Vectors of each instruction set, and the functions that are compiled for it. A vector type is only used on a machine that has its
//! instructions.

use super::backward::BackwardTask;
use super::forward::ForwardTask;
use super::tile::BlockProduct;
use super::{AttentionElement, backward, forward, tile};
use crate::backend::cpu::math;
use crate::backend::cpu::num::Base;
#[cfg(target_arch = "x86_64")]
use crate::backend::cpu::num::{Avx2, F32x16};

/// A vector of numbers.
pub(super) trait Lanes: Copy + 'static {
    type T: AttentionElement;
    const N: usize;
    /// Rows of a tile: as many as leave registers for the operands.
    const ROWS: usize;

    // SAFETY, of all: the machine has the instructions; N numbers are behind a pointer.

    unsafe fn load(p: *const Self::T) -> Self;
    unsafe fn store(self, p: *mut Self::T);
    unsafe fn splat(v: Self::T) -> Self;
    /// The number at `p`, in each place.
    unsafe fn broadcast(p: *const Self::T) -> Self;
    /// `self * b + c`.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    unsafe fn plus(self, o: Self) -> Self;
    unsafe fn minus(self, o: Self) -> Self;
    unsafe fn times(self, o: Self) -> Self;
    /// The larger one; of nan either.
    unsafe fn larger(self, o: Self) -> Self;
    unsafe fn exp(self) -> Self;

    // The functions below, compiled for these instructions.

    unsafe fn product(p: &BlockProduct<Self::T>);
    unsafe fn forward(task: &ForwardTask<'_, Self::T>);
    unsafe fn backward(task: &BackwardTask<'_, Self::T>);

    /// The numbers merged as a tree.
    #[inline(always)]
    unsafe fn merged(self, f: impl Fn(Self::T, Self::T) -> Self::T) -> Self::T {
        let mut v = [Self::T::ZERO; 16];
        // SAFETY: there are at most sixteen.
        unsafe { self.store(v.as_mut_ptr()) };
        let mut width = Self::N / 2;
        while width > 0 {
            for j in 0..width {
                v[j] = f(v[j], v[j + width]);
            }
            width /= 2;
        }
        v[0]
    }

    /// `f` of each number.
    #[inline(always)]
    unsafe fn each(self, f: impl Fn(Self::T) -> Self::T) -> Self {
        let mut v = [Self::T::ZERO; 16];
        // SAFETY: there are at most sixteen.
        unsafe {
            self.store(v.as_mut_ptr());
            for x in v.iter_mut().take(Self::N) {
                *x = f(*x);
            }
            Self::load(v.as_ptr())
        }
    }
}

macro_rules! instance {
    ($name:ident $(, $features:literal)?) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn product<V: Lanes>(p: &BlockProduct<V::T>) {
                // SAFETY: the caller's.
                unsafe { tile::product::<V>(p) }
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn forward<V: Lanes>(task: &ForwardTask<'_, V::T>) {
                // SAFETY: the caller's.
                unsafe { forward::queries::<V>(task) }
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn backward<V: Lanes>(task: &BackwardTask<'_, V::T>) {
                // SAFETY: the caller's.
                unsafe { backward::keys::<V>(task) }
            }
        }
    };
}
instance!(plain);
#[cfg(target_arch = "x86_64")]
instance!(avx512, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2,lzcnt");
#[cfg(target_arch = "x86_64")]
instance!(avx2, "avx2,fma,bmi1,bmi2,lzcnt");

macro_rules! compiled {
    ($name:ident) => {
        #[inline(always)]
        unsafe fn product(p: &BlockProduct<Self::T>) {
            // SAFETY: the caller's.
            unsafe { $name::product::<Self>(p) }
        }
        #[inline(always)]
        unsafe fn forward(task: &ForwardTask<'_, Self::T>) {
            // SAFETY: the caller's.
            unsafe { $name::forward::<Self>(task) }
        }
        #[inline(always)]
        unsafe fn backward(task: &BackwardTask<'_, Self::T>) {
            // SAFETY: the caller's.
            unsafe { $name::backward::<Self>(task) }
        }
    };
}

/// Four numbers without instructions of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainLanes<T>([T; 4]);

macro_rules! plain {
    ($t:ty, $exp:path) => {
        impl Lanes for PlainLanes<$t> {
            type T = $t;
            const N: usize = 4;
            const ROWS: usize = 4;

            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller's.
                PlainLanes(unsafe { p.cast::<[$t; 4]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller's.
                unsafe { p.cast::<[$t; 4]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn splat(v: $t) -> Self {
                PlainLanes([v; 4])
            }
            #[inline(always)]
            unsafe fn broadcast(p: *const $t) -> Self {
                // SAFETY: the caller's.
                PlainLanes([unsafe { *p }; 4])
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                PlainLanes(std::array::from_fn(|j| self.0[j] * b.0[j] + c.0[j]))
            }
            #[inline(always)]
            unsafe fn plus(self, o: Self) -> Self {
                PlainLanes(std::array::from_fn(|j| self.0[j] + o.0[j]))
            }
            #[inline(always)]
            unsafe fn minus(self, o: Self) -> Self {
                PlainLanes(std::array::from_fn(|j| self.0[j] - o.0[j]))
            }
            #[inline(always)]
            unsafe fn times(self, o: Self) -> Self {
                PlainLanes(std::array::from_fn(|j| self.0[j] * o.0[j]))
            }
            #[inline(always)]
            unsafe fn larger(self, o: Self) -> Self {
                PlainLanes(std::array::from_fn(|j| if self.0[j] > o.0[j] { self.0[j] } else { o.0[j] }))
            }
            #[inline(always)]
            unsafe fn exp(self) -> Self {
                PlainLanes(self.0.map($exp))
            }
            compiled!(plain);
        }
    };
}
plain!(f32, math::f32::exp::<Base>);
plain!(f64, math::f64::exp::<Base>);

#[cfg(target_arch = "x86_64")]
mod registers {
    use super::*;
    use std::arch::x86_64::*;

    impl Lanes for F32x16 {
        type T = f32;
        const N: usize = 16;
        const ROWS: usize = 8;

        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: the caller's.
            unsafe { F32x16::load(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: the caller's.
            unsafe { F32x16::store(self, p) }
        }
        #[inline(always)]
        unsafe fn splat(v: f32) -> Self {
            // SAFETY: the caller's.
            unsafe { F32x16::splat(v) }
        }
        #[inline(always)]
        unsafe fn broadcast(p: *const f32) -> Self {
            // SAFETY: the caller's. An intrinsic, since builds with assertions check every read through a pointer.
            unsafe { F32x16::splat(_mm_cvtss_f32(_mm_load_ss(p))) }
        }
        #[inline(always)]
        unsafe fn fma(self, b: Self, c: Self) -> Self {
            F32x16::fma(self, b, c)
        }
        #[inline(always)]
        unsafe fn plus(self, o: Self) -> Self {
            self + o
        }
        #[inline(always)]
        unsafe fn minus(self, o: Self) -> Self {
            self - o
        }
        #[inline(always)]
        unsafe fn times(self, o: Self) -> Self {
            self * o
        }
        #[inline(always)]
        unsafe fn larger(self, o: Self) -> Self {
            self.at_least(o)
        }
        #[inline(always)]
        unsafe fn exp(self) -> Self {
            math::lanes::exp(self)
        }
        compiled!(avx512);
    }

    macro_rules! register {
        ($(#[$doc:meta])* $name:ident = $register:ident of $t:ty, $n:literal x $rows:literal, $instance:ident, $exp:path,
         $load:ident $store:ident $splat:ident $fma:ident $add:ident $sub:ident $mul:ident $max:ident $one:ident $number:ident) => {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub(in super::super) struct $name($register);

            impl Lanes for $name {
                type T = $t;
                const N: usize = $n;
                const ROWS: usize = $rows;

                #[inline(always)]
                unsafe fn load(p: *const $t) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $load(p) })
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    // SAFETY: the caller's.
                    unsafe { $store(p, self.0) }
                }
                #[inline(always)]
                unsafe fn splat(v: $t) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $splat(v) })
                }
                #[inline(always)]
                unsafe fn broadcast(p: *const $t) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $splat($number($one(p))) })
                }
                #[inline(always)]
                unsafe fn fma(self, b: Self, c: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $fma(self.0, b.0, c.0) })
                }
                #[inline(always)]
                unsafe fn plus(self, o: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $add(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn minus(self, o: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $sub(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn times(self, o: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $mul(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn larger(self, o: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $max(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn exp(self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { self.each($exp) }
                }
                compiled!($instance);
            }
        };
    }

    register!(
        /// Eight `f32` of AVX2.
        F32x8 = __m256 of f32, 8 x 4, avx2, math::f32::exp::<Avx2>,
        _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_fmadd_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_max_ps _mm_load_ss _mm_cvtss_f32
    );
    register!(
        /// Four `f64` of AVX2.
        F64x4 = __m256d of f64, 4 x 4, avx2, math::f64::exp::<Avx2>,
        _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_fmadd_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_max_pd _mm_load_sd _mm_cvtsd_f64
    );
    register!(
        /// Eight `f64` of AVX-512.
        F64x8 = __m512d of f64, 8 x 8, avx512, math::f64::exp::<Avx2>,
        _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_fmadd_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_max_pd _mm_load_sd _mm_cvtsd_f64
    );
}
#[cfg(target_arch = "x86_64")]
pub(super) use registers::{F32x8, F64x4, F64x8};
