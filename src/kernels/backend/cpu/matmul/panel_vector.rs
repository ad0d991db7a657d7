//! Registers of numbers for the products of packed panels, one type for each instruction set.
//!
//! Not here: elementary functions (`math`), and the numbers of pointwise kernels (`num`).

#[cfg(target_arch = "x86_64")]
use super::array_vector::sum_of;
use super::choices::Choices;
use super::panels::DepthPlace;
#[cfg(target_arch = "x86_64")]
use super::shuffles::*;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::six_by_two::*;
use crate::backend::cpu::reduce::reducers::{Arithmetic, Numeric};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A number with packed products: float32 or float64.
pub trait CoreNumber: Numeric {
    #[cfg(target_arch = "x86_64")]
    type Avx512: PanelVector<Number = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: PanelVector<Number = Self>;
    type Base: PanelVector<Number = Self>;
    const HALF: Self;

    fn is_finite(self) -> bool;
}

/// A register of numbers.
///
/// # Safety
/// (of each function) The machine has the instruction set; memory that is named is readable or writable.
#[allow(clippy::missing_safety_doc, reason = "the same for all; see the trait")]
pub trait PanelVector: Choices + 'static {
    type Number: CoreNumber;
    const LANES: usize;
    /// The most rows of a tile. Its sums, vectors and one factor fit the registers.
    const ROWS: usize;
    /// Vectors of a full tile.
    const VECTORS: usize = if Self::ROWS >= 8 { 3 } else { 2 };
    /// Vectors of a panel for fewer rows at a time, where there are registers for it; for as many columns as make one such panel.
    const WIDE: usize = if Self::ROWS >= 8 { 4 } else { 2 };
    /// Columns of a panel.
    const WIDTH: usize = Self::VECTORS * Self::LANES;

    unsafe fn zero() -> Self;
    unsafe fn splat(x: Self::Number) -> Self;
    unsafe fn load(p: *const Self::Number) -> Self;
    unsafe fn store(self, p: *mut Self::Number);
    /// The first `n`, at most LANES, and zeros behind them.
    unsafe fn load_first(p: *const Self::Number, n: usize) -> Self;
    /// The first `n`, at most LANES.
    unsafe fn store_first(self, p: *mut Self::Number, n: usize);
    /// The lanes of the mask from `p + lane`, the others as they are. Only the lanes of the mask are read.
    unsafe fn merge(self, p: *const Self::Number, mask: u32) -> Self;
    /// `self * b + c`.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    unsafe fn plus(self, b: Self) -> Self;
    unsafe fn minus(self, b: Self) -> Self;
    /// Writes lane `p` of vector `i` to `to[p * step + i]`, for LANES vectors.
    unsafe fn put_transposed(from: impl Fn(usize) -> Self, to: *mut Self::Number, step: usize);
    /// As `put_transposed`, of LANES vectors that follow each other from `from`.
    unsafe fn transpose_square(from: *const Self::Number, to: *mut Self::Number, step: usize);
    /// Writes element `t` of what begins at `from(i)` to `to[t * LANES + i]`, for `n` elements, at least four, of LANES.
    #[inline(always)]
    unsafe fn put_columns(from: impl Fn(usize) -> *const Self::Number, n: usize, to: *mut Self::Number) {
        for i in 0..Self::LANES {
            for t in 0..n {
                // SAFETY: the caller's.
                unsafe { *to.add(t * Self::LANES + i) = *from(i).add(t) };
            }
        }
    }
    unsafe fn total(self) -> Self::Number;
    /// The lanes with even numbers of `self` and then `b`, and those with odd ones.
    unsafe fn parted(self, b: Self) -> (Self, Self);
    /// Lanes of `self` and `b` in turn: the inverse of `parted`.
    unsafe fn interleaved(self, b: Self) -> (Self, Self);
    /// Adds `a[r * a_rs + k * a_cs] * b[k]` to row `r` of the sums for `n` steps `k`; a step of `b` is C vectors. False, and nothing is added, where
    /// there is no loop of its own for this.
    #[inline(always)]
    unsafe fn add_dense<const R: usize, const C: usize>(
        _sums: &mut [[Self; C]; R],
        _a: *const Self::Number,
        _steps: (isize, isize),
        _b: *const Self::Number,
        _n: usize,
    ) -> bool {
        false
    }
    /// As `add_dense`, for steps that lie at these places of both operands.
    #[inline(always)]
    unsafe fn add_places<const R: usize, const C: usize>(
        _sums: &mut [[Self; C]; R],
        _a: *const Self::Number,
        _a_rs: isize,
        _b: *const Self::Number,
        _places: &[DepthPlace],
    ) -> bool {
        false
    }
    /// The first `n`, at most LANES, to every other place.
    #[inline(always)]
    unsafe fn store_spread(self, p: *mut Self::Number, n: usize) {
        // SAFETY: the caller's; there is room for all lanes.
        unsafe {
            let mut lanes = [Self::Number::ZERO; 16];
            self.store(lanes.as_mut_ptr());
            for (i, v) in lanes[..n].iter().enumerate() {
                *p.add(2 * i) = *v;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! avx512 {
    ($V:ty, $t:ty, $lanes:literal, $mask:ty, $zero:ident, $set:ident, $load:ident, $store:ident, $zload:ident, $mload:ident, $mstore:ident,
     $fma:ident, $add:ident, $sub:ident, $total:ident, $transposed:ident, $parted:ident, $interleaved:ident, $spread:ident $(, $columns:ident)?) => {
        impl PanelVector for $V {
            type Number = $t;
            const LANES: usize = $lanes;
            const ROWS: usize = 8;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller's, here and below.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                // SAFETY: as above.
                unsafe { $set(x) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: as above.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: as above.
                unsafe { $store(p, self) }
            }
            #[inline(always)]
            unsafe fn load_first(p: *const $t, n: usize) -> Self {
                // SAFETY: as above.
                unsafe { $zload(((1u32 << n) - 1) as $mask, p) }
            }
            #[inline(always)]
            unsafe fn store_first(self, p: *mut $t, n: usize) {
                // SAFETY: as above.
                unsafe { $mstore(p, ((1u32 << n) - 1) as $mask, self) }
            }
            #[inline(always)]
            unsafe fn merge(self, p: *const $t, mask: u32) -> Self {
                // SAFETY: as above.
                unsafe { $mload(self, mask as $mask, p) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fma(self, b, c) }
            }
            #[inline(always)]
            unsafe fn plus(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, b) }
            }
            #[inline(always)]
            unsafe fn minus(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $sub(self, b) }
            }
            #[inline(always)]
            unsafe fn put_transposed(from: impl Fn(usize) -> Self, to: *mut $t, step: usize) {
                // SAFETY: as above.
                unsafe {
                    // A loop: what `from_fn` calls would not get the instruction set.
                    let mut rows = [$zero(); $lanes];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = from(i);
                    }
                    let rows = $transposed(rows);
                    for (p, row) in rows.iter().enumerate() {
                        $store(to.add(p * step), *row);
                    }
                }
            }
            $(
                #[inline(always)]
                unsafe fn put_columns(from: impl Fn(usize) -> *const $t, n: usize, to: *mut $t) {
                    // SAFETY: as above.
                    unsafe { $columns(from, n, to) }
                }
            )?
            #[inline(always)]
            unsafe fn transpose_square(from: *const $t, to: *mut $t, step: usize) {
                // SAFETY: as above.
                unsafe {
                    let mut rows = [$zero(); $lanes];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = $load(from.add(i * $lanes));
                    }
                    rows = $transposed(rows);
                    for (p, row) in rows.iter().enumerate() {
                        $store(to.add(p * step), *row);
                    }
                }
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                // SAFETY: as above.
                unsafe { $total(self) }
            }
            #[inline(always)]
            unsafe fn store_spread(self, p: *mut $t, n: usize) {
                // SAFETY: as above; the masks leave out what lies between and behind.
                unsafe {
                    let (low, high) = $spread(self);
                    let mask = (0x5555_5555u32 & ((1u64 << (2 * n)) - 1) as u32) as u64;
                    $mstore(p, mask as $mask, low);
                    $mstore(p.wrapping_add($lanes), (mask >> $lanes) as $mask, high);
                }
            }
            #[inline(always)]
            unsafe fn parted(self, b: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe { $parted(self, b) }
            }
            #[inline(always)]
            unsafe fn interleaved(self, b: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe { $interleaved(self, b) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
avx512!(
    __m512,
    f32,
    16,
    __mmask16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_mask_loadu_ps,
    _mm512_mask_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_reduce_add_ps,
    transposed_16,
    parted_16,
    interleaved_16,
    spread_16,
    columns_16
);
#[cfg(target_arch = "x86_64")]
avx512!(
    __m512d,
    f64,
    8,
    __mmask8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_mask_loadu_pd,
    _mm512_mask_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_reduce_add_pd,
    transposed_8_wide,
    parted_8_wide,
    interleaved_8_wide,
    spread_8_wide
);

#[cfg(target_arch = "x86_64")]
macro_rules! avx2 {
    ($V:ty, $t:ty, $lanes:literal, $bits:ident, $zero:ident, $set:ident, $load:ident, $store:ident, $mload:ident, $first:ident, $blend:ident,
     $cast:ident, $fma:ident, $add:ident, $sub:ident, $transposed:ident, $parted:ident, $interleaved:ident, $dense:ident,
     $places:ident $(, $columns:ident)?) => {
        impl PanelVector for $V {
            type Number = $t;
            const LANES: usize = $lanes;
            const ROWS: usize = 6;

            #[cfg(not(miri))]
            #[inline(always)]
            unsafe fn add_dense<const R: usize, const C: usize>(
                sums: &mut [[Self; C]; R],
                a: *const $t,
                steps: (isize, isize),
                b: *const $t,
                n: usize,
            ) -> bool {
                let is_six_by_two = R == 6 && C == 2;
                if is_six_by_two {
                    // SAFETY: the caller's; R and C are what the cast says.
                    unsafe { $dense(&mut *(&raw mut *sums).cast(), a, steps, b, n) };
                }
                is_six_by_two
            }
            #[cfg(not(miri))]
            #[inline(always)]
            unsafe fn add_places<const R: usize, const C: usize>(
                sums: &mut [[Self; C]; R],
                a: *const $t,
                a_rs: isize,
                b: *const $t,
                places: &[DepthPlace],
            ) -> bool {
                let is_six_by_two = R == 6 && C == 2;
                if is_six_by_two {
                    // SAFETY: as above.
                    unsafe { $places(&mut *(&raw mut *sums).cast(), a, a_rs, b, places) };
                }
                is_six_by_two
            }

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller's, here and below.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                // SAFETY: as above.
                unsafe { $set(x) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: as above.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: as above.
                unsafe { $store(p, self) }
            }
            #[inline(always)]
            unsafe fn load_first(p: *const $t, n: usize) -> Self {
                // SAFETY: as above.
                unsafe { $mload(p, $bits((1u32 << n) - 1)) }
            }
            #[inline(always)]
            unsafe fn store_first(self, p: *mut $t, n: usize) {
                // SAFETY: as above.
                unsafe {
                    if n == $lanes {
                        $store(p, self);
                    } else {
                        $first(p, n, self);
                    }
                }
            }
            #[inline(always)]
            unsafe fn merge(self, p: *const $t, mask: u32) -> Self {
                // SAFETY: as above.
                unsafe {
                    let bits = $bits(mask);
                    $blend(self, $mload(p, bits), $cast(bits))
                }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fma(self, b, c) }
            }
            #[inline(always)]
            unsafe fn plus(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, b) }
            }
            #[inline(always)]
            unsafe fn minus(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $sub(self, b) }
            }
            #[inline(always)]
            unsafe fn put_transposed(from: impl Fn(usize) -> Self, to: *mut $t, step: usize) {
                // SAFETY: as above.
                unsafe {
                    // A loop: what `from_fn` calls would not get the instruction set.
                    let mut rows = [$zero(); $lanes];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = from(i);
                    }
                    let rows = $transposed(rows);
                    for (p, row) in rows.iter().enumerate() {
                        $store(to.add(p * step), *row);
                    }
                }
            }
            $(
                #[inline(always)]
                unsafe fn put_columns(from: impl Fn(usize) -> *const $t, n: usize, to: *mut $t) {
                    // SAFETY: as above.
                    unsafe { $columns(from, n, to) }
                }
            )?
            #[inline(always)]
            unsafe fn transpose_square(from: *const $t, to: *mut $t, step: usize) {
                // SAFETY: as above.
                unsafe {
                    let mut rows = [$zero(); $lanes];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = $load(from.add(i * $lanes));
                    }
                    rows = $transposed(rows);
                    for (p, row) in rows.iter().enumerate() {
                        $store(to.add(p * step), *row);
                    }
                }
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                let mut lanes = [0.0; $lanes];
                // SAFETY: there is room for all lanes.
                unsafe { $store(lanes.as_mut_ptr(), self) };
                sum_of(lanes)
            }
            #[inline(always)]
            unsafe fn parted(self, b: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe { $parted(self, b) }
            }
            #[inline(always)]
            unsafe fn interleaved(self, b: Self) -> (Self, Self) {
                // SAFETY: as above.
                unsafe { $interleaved(self, b) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
avx2!(
    __m256,
    f32,
    8,
    lanes_8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_maskload_ps,
    store_first_8,
    _mm256_blendv_ps,
    _mm256_castsi256_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    transposed_8,
    parted_8,
    interleaved_8,
    dense_f32,
    places_f32,
    columns_8
);
#[cfg(target_arch = "x86_64")]
avx2!(
    __m256d,
    f64,
    4,
    lanes_4,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_maskload_pd,
    store_first_4_wide,
    _mm256_blendv_pd,
    _mm256_castsi256_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    transposed_4_wide,
    parted_4_wide,
    interleaved_4_wide,
    dense_f64,
    places_f64
);

impl CoreNumber for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = __m512;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = __m256;
    type Base = [f32; 4];
    const HALF: f32 = 0.5;

    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
}

impl CoreNumber for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = __m512d;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = __m256d;
    type Base = [f64; 2];
    const HALF: f64 = 0.5;

    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

/// Columns of a panel, and lanes of a vector, of an instruction set.
pub(in crate::backend::cpu) fn widths<T: CoreNumber>(isa: crate::simd::InstructionSet) -> (usize, usize) {
    let [width, lanes, ..] = sizes::<T>(isa);
    (width, lanes)
}

/// The most rows of a tile.
pub(in crate::backend::cpu) fn tile_rows<T: CoreNumber>(isa: crate::simd::InstructionSet) -> usize {
    sizes::<T>(isa)[3]
}

/// Columns of the widest panel.
pub(in crate::backend::cpu) fn widest<T: CoreNumber>(isa: crate::simd::InstructionSet) -> usize {
    sizes::<T>(isa)[2]
}

fn sizes<T: CoreNumber>(isa: crate::simd::InstructionSet) -> [usize; 4] {
    fn of<V: PanelVector>() -> [usize; 4] {
        [V::WIDTH, V::LANES, V::WIDE * V::LANES, V::ROWS]
    }
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::InstructionSet;
        match isa {
            InstructionSet::Avx512 => return of::<T::Avx512>(),
            InstructionSet::Avx2 => return of::<T::Avx2>(),
            InstructionSet::Base => {}
        }
    }
    let _ = isa;
    of::<T::Base>()
}
