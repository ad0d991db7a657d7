//! Arrays as registers: what processors without AVX2 have, and Miri.

use super::panel_vector::{CoreNumber, PanelVector};

/// As a tree: the same order for every instruction set with so many lanes.
#[inline(always)]
pub(super) fn sum_of<T: CoreNumber, const N: usize>(mut lanes: [T; N]) -> T {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = lanes[i].plus(lanes[i + width]);
        }
    }
    lanes[0]
}

/// Lanes in an array, which the compiler keeps in registers where the target has some.
macro_rules! base {
    ($t:ty, $lanes:literal) => {
        impl PanelVector for [$t; $lanes] {
            type Number = $t;
            const LANES: usize = $lanes;
            const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 6 };

            #[inline(always)]
            unsafe fn zero() -> Self {
                [0.0; $lanes]
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                [x; $lanes]
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller's, here and below.
                unsafe { p.cast::<Self>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: as above.
                unsafe { p.cast::<Self>().write_unaligned(self) }
            }
            #[inline(always)]
            unsafe fn load_first(p: *const $t, n: usize) -> Self {
                // SAFETY: as above.
                std::array::from_fn(|i| if i < n { unsafe { *p.add(i) } } else { 0.0 })
            }
            #[inline(always)]
            unsafe fn store_first(self, p: *mut $t, n: usize) {
                for (i, v) in self.iter().enumerate().take(n) {
                    // SAFETY: as above.
                    unsafe { *p.add(i) = *v };
                }
            }
            #[inline(always)]
            unsafe fn merge(self, p: *const $t, mask: u32) -> Self {
                // SAFETY: as above.
                std::array::from_fn(|i| if mask >> i & 1 != 0 { unsafe { *p.wrapping_add(i) } } else { self[i] })
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                if <crate::simd::Base as crate::simd::Isa>::FMA {
                    std::array::from_fn(|i| self[i].mul_add(b[i], c[i]))
                } else {
                    std::array::from_fn(|i| self[i] * b[i] + c[i])
                }
            }
            #[inline(always)]
            unsafe fn plus(self, b: Self) -> Self {
                std::array::from_fn(|i| self[i] + b[i])
            }
            #[inline(always)]
            unsafe fn minus(self, b: Self) -> Self {
                std::array::from_fn(|i| self[i] - b[i])
            }
            #[inline(always)]
            unsafe fn put_transposed(from: impl Fn(usize) -> Self, to: *mut $t, step: usize) {
                let rows: [Self; $lanes] = std::array::from_fn(from);
                for p in 0..$lanes {
                    // SAFETY: as above.
                    unsafe { std::array::from_fn::<$t, $lanes, _>(|i| rows[i][p]).store(to.add(p * step)) };
                }
            }
            #[inline(always)]
            unsafe fn transpose_square(from: *const $t, to: *mut $t, step: usize) {
                for p in 0..$lanes {
                    for i in 0..$lanes {
                        // SAFETY: as above.
                        unsafe { *to.add(p * step + i) = *from.add(i * $lanes + p) };
                    }
                }
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                sum_of(self)
            }
            #[inline(always)]
            unsafe fn parted(self, b: Self) -> (Self, Self) {
                let at = |i: usize| if i < $lanes { self[i] } else { b[i - $lanes] };
                (std::array::from_fn(|i| at(2 * i)), std::array::from_fn(|i| at(2 * i + 1)))
            }
            #[inline(always)]
            unsafe fn interleaved(self, b: Self) -> (Self, Self) {
                let at = |i: usize| if i % 2 == 0 { self[i / 2] } else { b[i / 2] };
                (std::array::from_fn(at), std::array::from_fn(|i| at(i + $lanes)))
            }
        }
    };
}
base!(f32, 4);
base!(f64, 2);
