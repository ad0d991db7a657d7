//! Weighted sums of bytes along one axis, by whole weights of 15 bits and rounded after each axis, as PyTorch has them (and Pillow before).

use crate::backend::contract::View;
use crate::call::{Custom, WeightTable};
use crate::error::{Error, Result};
use crate::host::threads::{SharedPointer, parallel_for};
use crate::layout::DType;
use std::sync::Arc;

/// Results that are computed side by side.
const SIDE: usize = 32;

/// Row-major bytes (outer, n, inner) become (outer, m, inner).
#[derive(Debug)]
pub struct ResampleBytes {
    pub outer: usize,
    pub inner: usize,
    pub table: Arc<WeightTable>,
}

/// The weights of one result, and how they round.
struct WholeWeights<'a> {
    from: &'a [u32],
    weights: &'a [i32],
    bits: u32,
}

impl WholeWeights<'_> {
    /// Results whose elements lie side by side, those of neighbouring positions `step` apart.
    ///
    /// # Safety
    /// From `x` on there are `out.len()` elements at every position.
    #[inline(always)]
    unsafe fn side_by_side(&self, x: *const u8, step: usize, out: &mut [u8]) {
        let mut sums = [if self.bits == 0 { 0 } else { 1 << (self.bits - 1) }; SIDE];
        for (p, w) in self.from.iter().zip(self.weights) {
            // SAFETY: the caller's.
            let row = unsafe { std::slice::from_raw_parts(x.add(*p as usize * step), out.len()) };
            for (sum, v) in sums.iter_mut().zip(row) {
                *sum += i32::from(*v) * w;
            }
        }
        for (to, sum) in out.iter_mut().zip(sums) {
            *to = (sum >> self.bits).clamp(0, 255) as u8;
        }
    }

    /// As `side_by_side`, by the widest instructions.
    ///
    /// # Safety
    /// As for `side_by_side`; there are at most `SIDE` results.
    unsafe fn run(&self, x: *const u8, step: usize, out: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            unsafe fn avx2(w: &WholeWeights<'_>, x: *const u8, step: usize, out: &mut [u8]) {
                // SAFETY: the caller's. Whole rows have a length that the compiler knows.
                unsafe {
                    match <&mut [u8; SIDE]>::try_from(&mut *out) {
                        Ok(whole) => w.side_by_side(x, step, whole),
                        Err(_) => w.side_by_side(x, step, out),
                    }
                }
            }
            use crate::simd::{InstructionSet, instruction_set};
            if matches!(instruction_set(), InstructionSet::Avx2 | InstructionSet::Avx512) {
                // SAFETY: the feature was found on this machine; the rest is the caller's.
                return unsafe { avx2(self, x, step, out) };
            }
        }
        // SAFETY: the caller's.
        unsafe { self.side_by_side(x, step, out) }
    }
}

// SAFETY: every row of the one output is written, from rows of the operand; the pointers end with the call.
unsafe impl Custom for ResampleBytes {
    fn name(&self) -> &'static str {
        "interpolate"
    }

    unsafe fn run(&self, ins: &[View<'_>], outs: &[View<'_>]) -> Result<()> {
        let ([x], [out]) = (ins, outs) else { return Err(Error::internal("interpolate", "one operand and one result")) };
        let (n, m, outer, inner) = (self.table.input(), self.table.output(), self.outer, self.inner);
        if x.numel() != outer * n * inner || out.numel() != outer * m * inner || x.dtype != DType::U8 || out.dtype != DType::U8 {
            return Err(Error::internal("interpolate", "operands of other sizes"));
        }
        if out.numel() == 0 {
            return Ok(());
        }
        let (starts, from, weights) = self.table.entries();
        let most = weights.iter().fold(0.0f64, |a, w| a.max(*w));
        let bits = (0..22).find(|p| (0.5 + most * f64::from(1u32 << (p + 1))) as i64 >= 1 << 15).unwrap_or(22);
        let one = f64::from(1u32 << bits);
        let weights: Vec<i32> = weights.iter().map(|w| (w * one + if *w < 0.0 { -0.5 } else { 0.5 }) as i32).collect();
        let of = |o: usize| {
            let range = starts[o] as usize..starts[o + 1] as usize;
            WholeWeights { from: &from[range.clone()], weights: &weights[range], bits }
        };
        let (x, out) = (SharedPointer::new(x.ptr().cast_const()), SharedPointer::new(out.ptr()));
        if inner >= SIDE {
            parallel_for(outer * m, |task| {
                let (a, o) = (task / m, task % m);
                let w = of(o);
                for i in (0..inner).step_by(SIDE) {
                    let count = SIDE.min(inner - i);
                    // SAFETY: rows of this task alone, inside of the operands, whose sizes were compared.
                    unsafe {
                        let to = std::slice::from_raw_parts_mut(out.at(task * inner + i), count);
                        w.run(x.get().add(a * n * inner + i), inner, to);
                    }
                }
            });
            return Ok(());
        }
        // Rows are too short: as many of them are transposed, so that the same element of all lies side by side.
        parallel_for(outer.div_ceil(SIDE), |task| {
            let first = task * SIDE;
            let count = SIDE.min(outer - first);
            let (row, made) = (n * inner, m * inner);
            let mut transposed = vec![0u8; row * SIDE];
            for r in 0..count {
                for k in 0..row {
                    // SAFETY: inside of the operand.
                    transposed[k * SIDE + r] = unsafe { *x.get().add((first + r) * row + k) };
                }
            }
            let mut results = [0u8; SIDE];
            for o in 0..m {
                let w = of(o);
                for i in 0..inner {
                    // SAFETY: the transposed rows have `SIDE` elements at every position.
                    unsafe { w.run(transposed.as_ptr().add(i * SIDE), inner * SIDE, &mut results) };
                    for (r, v) in results.iter().enumerate().take(count) {
                        // SAFETY: a row of this task alone.
                        unsafe { *out.at((first + r) * made + o * inner + i) = *v };
                    }
                }
            }
        });
        Ok(())
    }
}
