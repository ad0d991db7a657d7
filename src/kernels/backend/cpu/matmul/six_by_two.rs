//! The inner loops of a tile of 6 rows x 2 vectors of AVX2, in assembly: twelve sums, two vectors of `b` and one factor of `a` in fifteen of the
//! sixteen registers. Of the same loops in Rust the compiler (LLVM 20) keeps a sum in memory, where each addition waits for the last one's way there
//! and back: they ran at half the speed, 55 instead of 97 GFLOP/s in 3x3 convolutions on two Zen 3 cores.
//!
//! A step takes six clock cycles at two multiply-adds each, and eight loads, of which these machines do two or three in a cycle. Jumps are
//! not free: with one step between them such a core computes 80 GFLOP/s, with four 93, of 96 that it could.

use super::panels::DepthPlace;
use std::arch::x86_64::{__m256, __m256d};

/// The instructions of one step: `b0` and `b1` are loaded from `$at` and what follows it, and rows of `a` from `a` and `a3`.
macro_rules! step {
    ($broadcast:literal, $load:literal, $fma:literal, $at:literal) => {
        concat!(
            concat!($load, " {b0}, [{b} + ", $at, "]\n", $load, " {b1}, [{b} + ", $at, " + 32]\n"),
            concat!($broadcast, " {x}, [{a}]\n", $fma, " {s00}, {x}, {b0}\n", $fma, " {s01}, {x}, {b1}\n"),
            concat!($broadcast, " {x}, [{a} + {rs}]\n", $fma, " {s10}, {x}, {b0}\n", $fma, " {s11}, {x}, {b1}\n"),
            concat!($broadcast, " {x}, [{a} + 2*{rs}]\n", $fma, " {s20}, {x}, {b0}\n", $fma, " {s21}, {x}, {b1}\n"),
            concat!($broadcast, " {x}, [{a3}]\n", $fma, " {s30}, {x}, {b0}\n", $fma, " {s31}, {x}, {b1}\n"),
            concat!($broadcast, " {x}, [{a3} + {rs}]\n", $fma, " {s40}, {x}, {b0}\n", $fma, " {s41}, {x}, {b1}\n"),
            concat!($broadcast, " {x}, [{a3} + 2*{rs}]\n", $fma, " {s50}, {x}, {b0}\n", $fma, " {s51}, {x}, {b1}\n"),
        )
    };
}

/// A step and the way to the next one in `a`.
macro_rules! dense_step {
    ($broadcast:literal, $load:literal, $fma:literal, $at:literal) => {
        concat!(step!($broadcast, $load, $fma, $at), "add {a}, {cs}\n add {a3}, {cs}\n")
    };
}

/// A step at the place that lies `$place` bytes behind `p`.
macro_rules! placed_step {
    ($broadcast:literal, $load:literal, $fma:literal, $size:literal, $place:literal) => {
        concat!(
            concat!("movsxd {b}, dword ptr [{p} + ", $place, " + 4]\n lea {b}, [{b_start} + ", $size, "*{b}]\n"),
            concat!("movsxd {a}, dword ptr [{p} + ", $place, "]\n lea {a}, [{a_start} + ", $size, "*{a}]\n lea {a3}, [{a} + {rs3}]\n"),
            step!($broadcast, $load, $fma, "0")
        )
    };
}

macro_rules! loops {
    ($dense:ident, $places:ident, $V:ty, $t:ty, $broadcast:literal, $load:literal, $fma:literal, $size:literal) => {
        /// Adds `a[r * a_rs + k * a_cs] * b[k]` to row `r` of the sums for `n` steps `k`; a step of `b` is two vectors.
        ///
        /// # Safety
        /// The machine has AVX2 and FMA; what is named is readable.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(in super::super) unsafe fn $dense(
            sums: &mut [[$V; 2]; 6],
            a: *const $t,
            (a_rs, a_cs): (isize, isize),
            b: *const $t,
            n: usize,
        ) {
            let [rs, cs] = [a_rs, a_cs].map(|step| step * size_of::<$t>() as isize);
            let [[mut s00, mut s01], [mut s10, mut s11], [mut s20, mut s21], [mut s30, mut s31], [mut s40, mut s41], [mut s50, mut s51]] = *sums;
            // SAFETY: reads what the caller promises, and writes no memory.
            unsafe {
                std::arch::asm!(
                    "sub {n}, 4",
                    "jb 3f",
                    "2:",
                    dense_step!($broadcast, $load, $fma, "0"),
                    dense_step!($broadcast, $load, $fma, "64"),
                    dense_step!($broadcast, $load, $fma, "128"),
                    dense_step!($broadcast, $load, $fma, "192"),
                    "add {b}, 256",
                    "sub {n}, 4",
                    "jae 2b",
                    "3:",
                    "add {n}, 4",
                    "jz 5f",
                    "4:",
                    dense_step!($broadcast, $load, $fma, "0"),
                    "add {b}, 64",
                    "dec {n}",
                    "jnz 4b",
                    "5:",
                    a = inout(reg) a => _,
                    a3 = inout(reg) a.wrapping_byte_offset(3 * rs) => _,
                    rs = in(reg) rs,
                    cs = in(reg) cs,
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
            let rs = a_rs * size_of::<$t>() as isize;
            let [[mut s00, mut s01], [mut s10, mut s11], [mut s20, mut s21], [mut s30, mut s31], [mut s40, mut s41], [mut s50, mut s51]] = *sums;
            // SAFETY: as above; a place is `a` and then `b`, of four bytes each.
            unsafe {
                std::arch::asm!(
                    "sub {n}, 2",
                    "jb 3f",
                    "2:",
                    placed_step!($broadcast, $load, $fma, $size, "0"),
                    placed_step!($broadcast, $load, $fma, $size, "8"),
                    "add {p}, 16",
                    "sub {n}, 2",
                    "jae 2b",
                    "3:",
                    "add {n}, 2",
                    "jz 4f",
                    placed_step!($broadcast, $load, $fma, $size, "0"),
                    "4:",
                    a = out(reg) _,
                    a3 = out(reg) _,
                    b = out(reg) _,
                    a_start = in(reg) a,
                    rs = in(reg) rs,
                    rs3 = in(reg) 3 * rs,
                    b_start = in(reg) b,
                    p = inout(reg) places.as_ptr() => _,
                    n = inout(reg) places.len() => _,
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
                const STEPS: usize = 11;
                let width = 2 * $lanes;
                // Small whole numbers: their sums are exact in any order.
                let number = |i: usize| ((i * 7 + i / 5) % 11) as $t - 5.0;
                let a: Vec<$t> = (0..6 * 24).map(number).collect();
                let b: Vec<$t> = (0..STEPS * width + 40).map(|i| number(i + 3)).collect();
                let shuffled: Vec<DepthPlace> =
                    (0..STEPS).map(|k| DepthPlace { a: ((k * 3) % STEPS) as i32 - 2, b: ((k * 5) % STEPS * width + k) as i32 }).collect();
                // All of the loop that is unrolled, the rest after it, and each alone.
                for (n, is_dense) in (0..=STEPS).flat_map(|n| [(n, false), (n, true)]) {
                    for (first, rs, cs) in [(2usize, 20isize, 1isize), (112, -20, 1), (6, 1, 8), (130, 1, -8)] {
                        let dense: Vec<DepthPlace> =
                            (0..n).map(|k| DepthPlace { a: k as i32 * cs as i32, b: (k * width) as i32 }).collect();
                        let places = if is_dense { &dense[..] } else { &shuffled[..n] };
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
                                $dense(&mut sums, a, (rs, cs), b, n);
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
