//! The inner loops of a tile of 6 rows x 2 vectors of AVX2, in assembly: twelve sums, two vectors of `b` and one factor of `a` in fifteen of the
//! sixteen registers. Of the same loops in Rust the compiler (LLVM 20) keeps a sum in memory, where each addition waits for the last one's way there
//! and back: they ran at half the speed, 55 instead of 97 GFLOP/s in 3x3 convolutions on two Zen 3 cores.
//!
//! A step takes six clock cycles at two multiply-adds each, and eight loads, of which these machines do two or three in a cycle.

use super::panels::DepthPlace;
use std::arch::x86_64::{__m256, __m256d};

macro_rules! loops {
    ($dense:ident, $places:ident, $V:ty, $t:ty, $broadcast:literal, $load:literal, $fma:literal, $size:literal) => {
        /// Adds `a[r * a_rs + k] * b[k]` to row `r` of the sums for `n` steps `k`; a step of `b` is two vectors.
        ///
        /// # Safety
        /// The machine has AVX2 and FMA; what is named is readable.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(super) unsafe fn $dense(sums: &mut [[$V; 2]; 6], a: *const $t, a_rs: isize, b: *const $t, n: usize) {
            if n == 0 {
                return;
            }
            let rs = a_rs * size_of::<$t>() as isize;
            let [[mut s00, mut s01], [mut s10, mut s11], [mut s20, mut s21], [mut s30, mut s31], [mut s40, mut s41], [mut s50, mut s51]] = *sums;
            // SAFETY: reads what the caller promises, and writes no memory.
            unsafe {
                std::arch::asm!(
                    "2:",
                    concat!($load, " {b0}, [{b}]"),
                    concat!($load, " {b1}, [{b} + 32]"),
                    concat!($broadcast, " {x}, [{a}]"),
                    concat!($fma, " {s00}, {x}, {b0}"),
                    concat!($fma, " {s01}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{a} + {rs}]"),
                    concat!($fma, " {s10}, {x}, {b0}"),
                    concat!($fma, " {s11}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{a} + 2*{rs}]"),
                    concat!($fma, " {s20}, {x}, {b0}"),
                    concat!($fma, " {s21}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{a3}]"),
                    concat!($fma, " {s30}, {x}, {b0}"),
                    concat!($fma, " {s31}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{a3} + {rs}]"),
                    concat!($fma, " {s40}, {x}, {b0}"),
                    concat!($fma, " {s41}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{a3} + 2*{rs}]"),
                    concat!($fma, " {s50}, {x}, {b0}"),
                    concat!($fma, " {s51}, {x}, {b1}"),
                    concat!("add {a}, ", $size),
                    concat!("add {a3}, ", $size),
                    "add {b}, 64",
                    "dec {n}",
                    "jnz 2b",
                    a = inout(reg) a => _,
                    a3 = inout(reg) a.wrapping_byte_offset(3 * rs) => _,
                    rs = in(reg) rs,
                    b = inout(reg) b => _,
                    n = inout(reg) n => _,
                    x = out(ymm_reg) _, b0 = out(ymm_reg) _, b1 = out(ymm_reg) _,
                    s00 = inout(ymm_reg) s00, s01 = inout(ymm_reg) s01, s10 = inout(ymm_reg) s10, s11 = inout(ymm_reg) s11,
                    s20 = inout(ymm_reg) s20, s21 = inout(ymm_reg) s21, s30 = inout(ymm_reg) s30, s31 = inout(ymm_reg) s31,
                    s40 = inout(ymm_reg) s40, s41 = inout(ymm_reg) s41, s50 = inout(ymm_reg) s50, s51 = inout(ymm_reg) s51,
                    options(nostack, readonly),
                );
            }
            *sums = [[s00, s01], [s10, s11], [s20, s21], [s30, s31], [s40, s41], [s50, s51]];
        }

        /// As the dense loop, for steps that lie at these places of both operands.
        ///
        /// # Safety
        /// As there.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(super) unsafe fn $places(sums: &mut [[$V; 2]; 6], a: *const $t, a_rs: isize, b: *const $t, places: &[DepthPlace]) {
            if places.is_empty() {
                return;
            }
            let rs = a_rs * size_of::<$t>() as isize;
            let range = places.as_ptr_range();
            let [[mut s00, mut s01], [mut s10, mut s11], [mut s20, mut s21], [mut s30, mut s31], [mut s40, mut s41], [mut s50, mut s51]] = *sums;
            // SAFETY: as above; a place is `a` and then `b`, of four bytes each.
            unsafe {
                std::arch::asm!(
                    "2:",
                    "movsxd {at}, dword ptr [{p} + 4]",
                    concat!("lea {at}, [{b} + ", $size, "*{at}]"),
                    concat!($load, " {b0}, [{at}]"),
                    concat!($load, " {b1}, [{at} + 32]"),
                    "movsxd {at}, dword ptr [{p}]",
                    concat!("lea {at}, [{a} + ", $size, "*{at}]"),
                    concat!($broadcast, " {x}, [{at}]"),
                    concat!($fma, " {s00}, {x}, {b0}"),
                    concat!($fma, " {s01}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{at} + {rs}]"),
                    concat!($fma, " {s10}, {x}, {b0}"),
                    concat!($fma, " {s11}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{at} + 2*{rs}]"),
                    concat!($fma, " {s20}, {x}, {b0}"),
                    concat!($fma, " {s21}, {x}, {b1}"),
                    "add {at}, {rs3}",
                    concat!($broadcast, " {x}, [{at}]"),
                    concat!($fma, " {s30}, {x}, {b0}"),
                    concat!($fma, " {s31}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{at} + {rs}]"),
                    concat!($fma, " {s40}, {x}, {b0}"),
                    concat!($fma, " {s41}, {x}, {b1}"),
                    concat!($broadcast, " {x}, [{at} + 2*{rs}]"),
                    concat!($fma, " {s50}, {x}, {b0}"),
                    concat!($fma, " {s51}, {x}, {b1}"),
                    "add {p}, 8",
                    "cmp {p}, {end}",
                    "jne 2b",
                    at = out(reg) _,
                    a = in(reg) a,
                    rs = in(reg) rs,
                    rs3 = in(reg) 3 * rs,
                    b = in(reg) b,
                    p = inout(reg) range.start => _,
                    end = in(reg) range.end,
                    x = out(ymm_reg) _, b0 = out(ymm_reg) _, b1 = out(ymm_reg) _,
                    s00 = inout(ymm_reg) s00, s01 = inout(ymm_reg) s01, s10 = inout(ymm_reg) s10, s11 = inout(ymm_reg) s11,
                    s20 = inout(ymm_reg) s20, s21 = inout(ymm_reg) s21, s30 = inout(ymm_reg) s30, s31 = inout(ymm_reg) s31,
                    s40 = inout(ymm_reg) s40, s41 = inout(ymm_reg) s41, s50 = inout(ymm_reg) s50, s51 = inout(ymm_reg) s51,
                    options(nostack, readonly),
                );
            }
            *sums = [[s00, s01], [s10, s11], [s20, s21], [s30, s31], [s40, s41], [s50, s51]];
        }
    };
}
loops!(dense_f32, places_f32, __m256, f32, "vbroadcastss", "vmovups", "vfmadd231ps", "4");
loops!(dense_f64, places_f64, __m256d, f64, "vbroadcastsd", "vmovupd", "vfmadd231pd", "8");

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::transmute;

    macro_rules! same_as_plain {
        ($name:ident, $dense:ident, $places:ident, $V:ty, $t:ty, $lanes:literal) => {
            #[test]
            fn $name() {
                if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
                    return;
                }
                const STEPS: usize = 7;
                let width = 2 * $lanes;
                // Small whole numbers: their sums are exact in any order.
                let number = |i: usize| ((i * 7 + i / 5) % 11) as $t - 5.0;
                let a: Vec<$t> = (0..6 * 20).map(number).collect();
                let b: Vec<$t> = (0..STEPS * width + 40).map(|i| number(i + 3)).collect();
                let shuffled: Vec<DepthPlace> =
                    (0..STEPS).map(|k| DepthPlace { a: ((k * 3) % STEPS) as i32 - 2, b: ((k * 5) % STEPS * width + k) as i32 }).collect();
                let dense: Vec<DepthPlace> = (0..STEPS).map(|k| DepthPlace { a: k as i32, b: (k * width) as i32 }).collect();
                for (places, is_dense) in [(&shuffled, false), (&dense, true), (&Vec::new(), false), (&Vec::new(), true)] {
                    for (first, rs) in [(2usize, 20isize), (112, -20), (6, 1)] {
                        let begin: [[[$t; $lanes]; 2]; 6] =
                            std::array::from_fn(|r| std::array::from_fn(|c| std::array::from_fn(|l| number(r * 31 + c * 17 + l))));
                        let mut want = begin;
                        for p in places {
                            for (r, row) in want.iter_mut().enumerate() {
                                let x = a[(first as isize + r as isize * rs + p.a as isize) as usize];
                                for (i, sum) in row.iter_mut().flatten().enumerate() {
                                    *sum += x * b[p.b as usize + i];
                                }
                            }
                        }
                        // SAFETY: arrays of as many numbers as the registers have; all places lie in `a` and `b`; the machine has been asked.
                        let got = unsafe {
                            let mut sums: [[$V; 2]; 6] = transmute(begin);
                            let (a, b) = (a.as_ptr().add(first), b.as_ptr());
                            if is_dense {
                                $dense(&mut sums, a, rs, b, places.len());
                            } else {
                                $places(&mut sums, a, rs, b, places);
                            }
                            transmute::<[[$V; 2]; 6], [[[$t; $lanes]; 2]; 6]>(sums)
                        };
                        assert_eq!(got, want);
                    }
                }
            }
        };
    }
    same_as_plain!(float32, dense_f32, places_f32, __m256, f32, 8);
    same_as_plain!(float64, dense_f64, places_f64, __m256d, f64, 4);
}
