//! Vectors of each instruction set, and tasks compiled for it. A vector type is only used on a machine that has its
//! instructions.

use super::tile::BlockProduct;
use super::{BlockElement, BlockTask};
use crate::simd::Base;
use crate::simd::math;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, F32x16};

/// A vector of numbers.
pub(in crate::backend::cpu) trait Lanes: Copy + 'static {
    type T: BlockElement;
    const N: usize;
    /// Rows of a tile: as many as leave registers for the operands.
    const ROWS: usize;

    // SAFETY: of all, the machine has the instructions; N numbers are behind a pointer.

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
    /// Whether any number is larger than the other one, or nan.
    unsafe fn is_above(self, o: Self) -> bool;
    unsafe fn exp(self) -> Self;
    /// `exp` of what is at most 0, or little more: below the smallest normal number it may be 0.
    #[inline(always)]
    unsafe fn exp_of_negative(self) -> Self {
        // SAFETY: as for all.
        unsafe { self.exp() }
    }
    unsafe fn sigmoid(self) -> Self;
    unsafe fn tanh(self) -> Self;

    /// Adds `a[r * a_rs + k * a_cs] * b[k]` to row `r` of the sums for `n` steps `k`; a step of `b` is W vectors. False, and nothing is added,
    /// where there is no loop of its own for such a tile.
    #[inline(always)]
    unsafe fn add_steps<const M: usize, const W: usize>(
        _sums: &mut [[Self; W]; M],
        _a: *const Self::T,
        _steps: (isize, isize),
        _b: *const Self::T,
        _n: usize,
    ) -> bool {
        false
    }

    /// The task, compiled for these instructions.
    unsafe fn run<K: BlockTask<Self::T>>(task: &K);

    #[inline(always)]
    unsafe fn product(p: &BlockProduct<Self::T>) {
        // SAFETY: the caller's.
        unsafe { Self::run(p) }
    }

    /// `n` numbers, and zeros if that is fewer than a vector has.
    #[inline(always)]
    unsafe fn load_up_to(p: *const Self::T, n: usize) -> Self {
        // SAFETY: there are `n`.
        unsafe {
            if n >= Self::N {
                return Self::load(p);
            }
            let mut v = [Self::T::ZERO; 16];
            std::ptr::copy_nonoverlapping(p, v.as_mut_ptr(), n);
            Self::load(v.as_ptr())
        }
    }

    /// The first `n` numbers.
    #[inline(always)]
    unsafe fn store_up_to(self, p: *mut Self::T, n: usize) {
        // SAFETY: there is room for `n`.
        unsafe {
            if n >= Self::N {
                return self.store(p);
            }
            let mut v = [Self::T::ZERO; 16];
            self.store(v.as_mut_ptr());
            std::ptr::copy_nonoverlapping(v.as_ptr(), p, n);
        }
    }

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
            pub(super) unsafe fn run<V: Lanes, K: BlockTask<V::T>>(task: &K) {
                // SAFETY: the caller's.
                unsafe { task.task::<V>() }
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
        unsafe fn run<K: BlockTask<Self::T>>(task: &K) {
            // SAFETY: the caller's.
            unsafe { $name::run::<Self, K>(task) }
        }
    };
}

/// Four numbers without instructions of their own.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct PlainLanes<T>([T; 4]);

macro_rules! plain {
    ($t:ty, $exp:path, $sigmoid:path, $tanh:path) => {
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
            unsafe fn is_above(self, o: Self) -> bool {
                self.0.iter().zip(o.0).any(|(a, b)| *a > b || a.is_nan())
            }
            #[inline(always)]
            unsafe fn exp(self) -> Self {
                PlainLanes(self.0.map($exp))
            }
            #[inline(always)]
            unsafe fn sigmoid(self) -> Self {
                PlainLanes(self.0.map($sigmoid))
            }
            #[inline(always)]
            unsafe fn tanh(self) -> Self {
                PlainLanes(self.0.map($tanh))
            }
            compiled!(plain);
        }
    };
}
plain!(f32, math::f32::exp::<Base>, math::f32::sigmoid::<Base>, math::f32::tanh::<Base>);
plain!(f64, math::f64::exp::<Base>, math::f64::sigmoid::<Base>, math::f64::tanh::<Base>);

#[cfg(target_arch = "x86_64")]
mod registers {
    use super::*;
    #[cfg(not(miri))]
    use crate::backend::cpu::matmul::six_by_two::{dense_f32, dense_f64};
    use crate::simd::math::{f32, f64};
    use std::arch::x86_64::*;

    impl Lanes for F32x16 {
        type T = f32;
        const N: usize = 16;
        const ROWS: usize = 14;

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
        unsafe fn is_above(self, o: Self) -> bool {
            self.compare::<_CMP_NLE_UQ>(o).any()
        }
        #[inline(always)]
        unsafe fn exp(self) -> Self {
            math::lanes::exp(self)
        }
        #[inline(always)]
        unsafe fn sigmoid(self) -> Self {
            math::lanes::sigmoid(self)
        }
        #[inline(always)]
        unsafe fn tanh(self) -> Self {
            math::lanes::tanh(self)
        }
        compiled!(avx512);
    }

    // SAFETY, of these: the machine has the instructions.

    #[inline(always)]
    unsafe fn above_8(a: __m256, b: __m256) -> bool {
        // SAFETY: the caller's.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLE_UQ>(a, b)) != 0 }
    }
    #[inline(always)]
    unsafe fn above_4(a: __m256d, b: __m256d) -> bool {
        // SAFETY: the caller's.
        unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NLE_UQ>(a, b)) != 0 }
    }
    #[inline(always)]
    unsafe fn above_8_wide(a: __m512d, b: __m512d) -> bool {
        // SAFETY: the caller's.
        unsafe { _mm512_cmp_pd_mask::<_CMP_NLE_UQ>(a, b) != 0 }
    }

    /// As `math::f32::exp`, with one power of two, whose exponent may be that of zero.
    #[inline(always)]
    unsafe fn exp_of_negative_8(x: F32x8) -> F32x8 {
        // SAFETY: the caller's.
        unsafe {
            #[inline(always)]
            unsafe fn c(v: f32) -> __m256 {
                // SAFETY: the caller's.
                unsafe { _mm256_set1_ps(v) }
            }
            // Of nan the second operand is left.
            let x = _mm256_min_ps(c(88.0), _mm256_max_ps(c(-88.0), x.0));
            let t = _mm256_fmadd_ps(x, c(std::f32::consts::LOG2_E), c(f32::MAGIC32 + 127.0));
            let n = _mm256_sub_ps(t, c(f32::MAGIC32 + 127.0));
            let r = _mm256_fnmadd_ps(n, c(f32::LN2_REST), _mm256_fnmadd_ps(n, c(std::f32::consts::LN_2), x));
            let mut slope = c(0.0);
            for factor in f32::EXP_SLOPE.iter().rev() {
                slope = _mm256_fmadd_ps(slope, r, c(*factor));
            }
            let power = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(t)));
            F32x8(_mm256_mul_ps(_mm256_fmadd_ps(slope, r, c(1.0)), power))
        }
    }

    macro_rules! register {
        ($(#[$doc:meta])* $name:ident = $register:ident of $t:ty, $n:literal x $rows:literal, $instance:ident, $math:ident,
         $load:ident $store:ident $splat:ident $fma:ident $add:ident $sub:ident $mul:ident $max:ident $above:ident $one:ident $number:ident
         $(exp $negative:ident)? $(, $six_by_two:ident)?) => {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            #[repr(transparent)]
            pub(in crate::backend::cpu) struct $name($register);

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
                unsafe fn is_above(self, o: Self) -> bool {
                    // SAFETY: the caller's.
                    unsafe { $above(self.0, o.0) }
                }
                #[inline(always)]
                unsafe fn exp(self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { self.each($math::exp::<Avx2>) }
                }
                $(
                    #[inline(always)]
                    unsafe fn exp_of_negative(self) -> Self {
                        // SAFETY: the caller's.
                        unsafe { $negative(self) }
                    }
                )?
                #[inline(always)]
                unsafe fn sigmoid(self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { self.each($math::sigmoid::<Avx2>) }
                }
                #[inline(always)]
                unsafe fn tanh(self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { self.each($math::tanh::<Avx2>) }
                }
                $(
                    #[cfg(not(miri))]
                    #[inline(always)]
                    unsafe fn add_steps<const M: usize, const W: usize>(
                        sums: &mut [[Self; W]; M],
                        a: *const $t,
                        steps: (isize, isize),
                        b: *const $t,
                        n: usize,
                    ) -> bool {
                        if M != 6 || W != 2 {
                            return false;
                        }
                        // SAFETY: the caller's; the sums are so many, and each is a register.
                        unsafe { $six_by_two(&mut *(&raw mut *sums).cast(), a, steps, b, n) };
                        true
                    }
                )?
                compiled!($instance);
            }
        };
    }

    register!(
        /// Eight `f32` of AVX2.
        F32x8 = __m256 of f32, 8 x 6, avx2, f32,
        _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_fmadd_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_max_ps above_8 _mm_load_ss _mm_cvtss_f32
        exp exp_of_negative_8, dense_f32
    );
    register!(
        /// Four `f64` of AVX2.
        F64x4 = __m256d of f64, 4 x 6, avx2, f64,
        _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_fmadd_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_max_pd above_4 _mm_load_sd _mm_cvtsd_f64,
        dense_f64
    );
    register!(
        /// Eight `f64` of AVX-512.
        F64x8 = __m512d of f64, 8 x 14, avx512, f64,
        _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_fmadd_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_max_pd above_8_wide _mm_load_sd _mm_cvtsd_f64
    );
}
#[cfg(target_arch = "x86_64")]
pub(in crate::backend::cpu) use registers::{F32x8, F64x4, F64x8};

#[cfg(test)]
mod tests {
    use super::super::{BlockElement, BlockWork};
    use super::*;
    use crate::error::Result;

    struct Exponentials<'a, T>(&'a [T], *mut T);

    impl<T: BlockElement> BlockWork<T> for Exponentials<'_, T> {
        unsafe fn work<V: Lanes<T = T>>(&self) -> Result<()> {
            // SAFETY: there is room for as many results.
            unsafe { V::run(self) };
            Ok(())
        }
    }

    impl<T: BlockElement> BlockTask<T> for Exponentials<'_, T> {
        #[inline(always)]
        unsafe fn task<V: Lanes<T = T>>(&self) {
            for at in (0..self.0.len()).step_by(V::N) {
                let here = self.0.len() - at;
                // SAFETY: the caller's.
                unsafe { V::load_up_to(self.0.as_ptr().add(at), here).exp_of_negative().store_up_to(self.1.add(at), here) };
            }
        }
    }

    #[test]
    fn exponentials_of_negative_numbers_are_near_and_may_be_zero_where_nothing_normal_is_left() {
        let mut x: Vec<f32> = (0..8801).map(|i| i as f32 * -0.01 + 0.5).collect();
        x.extend([0.0, -0.0, 1e-6, -88.5, -100.0, -1e30, f32::NEG_INFINITY]);
        let mut got = vec![0f32; x.len()];
        // SAFETY: there is room for as many results.
        unsafe { f32::run(&Exponentials(&x, got.as_mut_ptr())) }.unwrap();
        for (x, got) in x.iter().zip(&got) {
            let want = f64::from(*x).exp();
            if want < f64::from(f32::MIN_POSITIVE) {
                assert!(*got >= 0.0 && f64::from(*got) <= want + f64::from(f32::from_bits(1)), "{x}: {got}");
            } else {
                assert!((f64::from(*got) - want).abs() <= 2e-7 * want, "{x}: {got}");
            }
        }
        assert_eq!(got.last(), Some(&0.0));
        let (x, mut got) = ([f32::NAN; 16], [0f32; 16]);
        // SAFETY: as above.
        unsafe { f32::run(&Exponentials(&x, got.as_mut_ptr())) }.unwrap();
        assert!(got.iter().all(|v| v.is_nan()));
    }
}
