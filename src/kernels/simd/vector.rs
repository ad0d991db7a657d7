//! Sixteen `f32` in one AVX-512 register, with operations that the compiler does not find in scalar code: lookup in tables of 32 numbers in
//! registers, scaling by powers of two, estimates of reciprocals.

use std::arch::x86_64::*;
use std::ops::{Add, Mul, Neg, Sub};

/// Sixteen `f32`. A value of this type proves that the machine has AVX-512 (F, DQ, BW, VL): the first one can only come from unsafe
/// functions that require it.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct F32x16(__m512);

/// A truth value for each number.
#[derive(Debug, Clone, Copy)]
pub struct Mask16(pub __mmask16);

/// Sixteen 32-bit integers in one register.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Bits16(__m512i);

/// Thirty-two numbers; one instruction looks up sixteen of them.
#[repr(align(64))]
pub struct LookupTable(pub [f32; 32]);

macro_rules! avx512 {
    ($e:expr) => {
        // SAFETY: an operand exists, so the machine has AVX-512.
        unsafe { $e }
    };
}

impl F32x16 {
    pub const LANES: usize = 16;

    /// # Safety
    /// The machine has AVX-512.
    #[inline(always)]
    pub unsafe fn splat(v: f32) -> Self {
        // SAFETY: the caller's.
        F32x16(unsafe { _mm512_set1_ps(v) })
    }

    /// # Safety
    /// The machine has AVX-512, and `ptr` holds sixteen numbers.
    #[inline(always)]
    pub unsafe fn load(ptr: *const f32) -> Self {
        // SAFETY: the caller's.
        F32x16(unsafe { _mm512_loadu_ps(ptr) })
    }

    /// # Safety
    /// `ptr` has room for sixteen numbers.
    #[inline(always)]
    pub unsafe fn store(self, ptr: *mut f32) {
        // SAFETY: the caller's.
        unsafe { _mm512_storeu_ps(ptr, self.0) }
    }

    /// The `n` numbers at `ptr` (fewer than sixteen), and `fill` behind them.
    ///
    /// # Safety
    /// `ptr` holds `n` numbers.
    #[inline(always)]
    pub unsafe fn load_some(ptr: *const f32, n: usize, fill: Self) -> Self {
        // SAFETY: an operand exists, so the machine has AVX-512; of the others nothing is read.
        F32x16(unsafe { _mm512_mask_loadu_ps(fill.0, ((1u32 << n) - 1) as __mmask16, ptr) })
    }

    /// The first `n`, fewer than sixteen.
    ///
    /// # Safety
    /// `ptr` has room for `n` numbers.
    #[inline(always)]
    pub unsafe fn store_some(self, ptr: *mut f32, n: usize) {
        // SAFETY: the caller's; nothing else is written.
        unsafe { _mm512_mask_storeu_ps(ptr, ((1u32 << n) - 1) as __mmask16, self.0) }
    }

    /// The sum, added up as a tree.
    #[inline(always)]
    pub fn total(self) -> f32 {
        avx512!(_mm512_reduce_add_ps(self.0))
    }

    /// The largest; whether nan is ignored is unspecified.
    #[inline(always)]
    pub fn largest(self) -> f32 {
        avx512!(_mm512_reduce_max_ps(self.0))
    }

    /// `v`, sixteen times.
    #[inline(always)]
    pub fn of(self, v: f32) -> Self {
        avx512!(F32x16(_mm512_set1_ps(v)))
    }

    /// `self * b + c`, rounded once.
    #[inline(always)]
    pub fn fma(self, b: Self, c: Self) -> Self {
        avx512!(F32x16(_mm512_fmadd_ps(self.0, b.0, c.0)))
    }

    /// `c - self * b`, rounded once.
    #[inline(always)]
    pub fn neg_fma(self, b: Self, c: Self) -> Self {
        avx512!(F32x16(_mm512_fnmadd_ps(self.0, b.0, c.0)))
    }

    /// `self * b - c`, rounded once.
    #[inline(always)]
    pub fn fma_less(self, b: Self, c: Self) -> Self {
        avx512!(F32x16(_mm512_fmsub_ps(self.0, b.0, c.0)))
    }

    /// The polynomial with the coefficients `c`, lowest first.
    #[inline(always)]
    pub fn poly<const N: usize>(self, c: [f32; N]) -> Self {
        let mut p = self.of(c[N - 1]);
        for c in c[..N - 1].iter().rev() {
            p = p.fma(self, self.of(*c));
        }
        p
    }

    #[inline(always)]
    pub fn over(self, o: Self) -> Self {
        avx512!(F32x16(_mm512_div_ps(self.0, o.0)))
    }

    #[inline(always)]
    pub fn sqrt(self) -> Self {
        avx512!(F32x16(_mm512_sqrt_ps(self.0)))
    }

    /// `1 / self` to 14 bits; of subnormal numbers infinity.
    #[inline(always)]
    pub fn recip_estimate(self) -> Self {
        avx512!(F32x16(_mm512_rcp14_ps(self.0)))
    }

    /// `self * 2^n` for a whole `n`, rounded once.
    #[inline(always)]
    pub fn scale(self, n: Self) -> Self {
        avx512!(F32x16(_mm512_scalef_ps(self.0, n.0)))
    }

    #[inline(always)]
    pub fn abs(self) -> Self {
        avx512!(F32x16(_mm512_abs_ps(self.0)))
    }

    #[inline(always)]
    pub fn copysign(self, sign: Self) -> Self {
        avx512!({
            let (a, b) = (_mm512_castps_si512(self.0), _mm512_castps_si512(sign.0));
            // Where the third has a bit the second's, else the first's.
            F32x16(_mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xD8>(a, b, _mm512_set1_epi32(i32::MIN))))
        })
    }

    /// The minimum of `self` and `bound`; nan stays.
    #[inline(always)]
    pub fn at_most(self, bound: Self) -> Self {
        avx512!(F32x16(_mm512_min_ps(bound.0, self.0)))
    }

    /// The maximum of `self` and `bound`; nan stays.
    #[inline(always)]
    pub fn at_least(self, bound: Self) -> Self {
        avx512!(F32x16(_mm512_max_ps(bound.0, self.0)))
    }

    /// `self`, but `x` where that is zero.
    #[inline(always)]
    pub fn or_zero_of(self, x: Self) -> Self {
        // In the class "zero" (the third) the second operand is taken, in all others the first is left.
        avx512!(F32x16(_mm512_fixupimm_ps::<0>(self.0, x.0, _mm512_set1_epi32(0x100))))
    }

    /// Rounded as `MODE` says: 0 to even, 1 down, 2 up, 3 towards zero.
    #[inline(always)]
    pub fn rounded<const MODE: i32>(self) -> Self {
        avx512!(F32x16(_mm512_roundscale_ps::<MODE>(self.0)))
    }

    #[inline(always)]
    pub fn compare<const OP: i32>(self, o: Self) -> Mask16 {
        avx512!(Mask16(_mm512_cmp_ps_mask::<OP>(self.0, o.0)))
    }

    #[inline(always)]
    pub fn bits(self) -> Bits16 {
        avx512!(Bits16(_mm512_castps_si512(self.0)))
    }

    /// `f` of each number.
    #[inline(always)]
    pub fn each(self, f: impl Fn(f32) -> f32) -> Self {
        let mut v = [0f32; 16];
        // SAFETY: there are sixteen.
        unsafe {
            self.store(v.as_mut_ptr());
            v.iter_mut().for_each(|v| *v = f(*v));
            F32x16::load(v.as_ptr())
        }
    }

    /// `f` of each pair of numbers.
    #[inline(always)]
    pub fn each_of(self, o: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let (mut v, mut w) = ([0f32; 16], [0f32; 16]);
        // SAFETY: there are sixteen.
        unsafe {
            self.store(v.as_mut_ptr());
            o.store(w.as_mut_ptr());
            v.iter_mut().zip(w).for_each(|(v, w)| *v = f(*v, w));
            F32x16::load(v.as_ptr())
        }
    }
}

impl Mask16 {
    /// `a` where it holds, else `b`.
    #[inline(always)]
    pub fn select(self, a: F32x16, b: F32x16) -> F32x16 {
        avx512!(F32x16(_mm512_mask_blend_ps(self.0, b.0, a.0)))
    }

    #[inline(always)]
    pub fn any(self) -> bool {
        self.0 != 0
    }
}

impl Bits16 {
    #[inline(always)]
    pub fn plus(self, n: i32) -> Self {
        avx512!(Bits16(_mm512_add_epi32(self.0, _mm512_set1_epi32(n))))
    }

    #[inline(always)]
    pub fn shift_right<const N: u32>(self) -> Self {
        avx512!(Bits16(_mm512_srli_epi32::<N>(self.0)))
    }

    /// Looks up the numbers of a table by the lowest five bits of each integer.
    #[inline(always)]
    pub fn pick(self, table: &LookupTable) -> F32x16 {
        // SAFETY: a table holds two registers of numbers, and an operand exists, so the machine has AVX-512.
        unsafe {
            let (low, high) = (_mm512_load_ps(table.0.as_ptr()), _mm512_load_ps(table.0.as_ptr().add(16)));
            F32x16(_mm512_permutex2var_ps(low, self.0, high))
        }
    }
}

impl Add for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        avx512!(F32x16(_mm512_add_ps(self.0, o.0)))
    }
}

impl Sub for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        avx512!(F32x16(_mm512_sub_ps(self.0, o.0)))
    }
}

impl Mul for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        avx512!(F32x16(_mm512_mul_ps(self.0, o.0)))
    }
}

impl Neg for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        avx512!(F32x16(_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(self.0), _mm512_set1_epi32(i32::MIN)))))
    }
}
