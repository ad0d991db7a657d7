//! Softmax along rows of `f32`, sixteen at once with AVX-512.

use super::{SURE, SURE_SUM};
use crate::call::SoftmaxPass;
use crate::host::interrupt;
use crate::rows::{Analytic, Field, Num};
use crate::simd::math::{f32 as scalar, lanes};
use crate::simd::{Avx512, F32x16, Mask16};

const LANES: usize = F32x16::LANES;
/// Independent chains of vectors, so that instructions overlap.
const SIDE: usize = 4;
/// Vectors of each chain whose sum is complete before it is added to the others: rounding errors grow with this number and the number of
/// sums.
const ROUNDS: usize = 64;
/// Elements between two checks for interrupts: a multiple of what is folded at once.
const STRETCH: usize = 16 * ROUNDS * SIDE * LANES;

/// A row's operands, read in blocks; what is beyond its end counts as `fill`.
#[derive(Clone, Copy)]
struct VectorRow {
    x: *const f32,
    n: usize,
}

impl VectorRow {
    /// # Safety
    /// The machine has AVX-512; the block begins inside the row.
    #[inline(always)]
    unsafe fn block(self, i: usize, fill: F32x16) -> F32x16 {
        // SAFETY: the caller's.
        unsafe { if i + LANES <= self.n { F32x16::load(self.x.add(i)) } else { F32x16::load_some(self.x.add(i), self.n - i, fill) } }
    }
}

/// Folds `f(i)` of the blocks that begin at `i`, of a row of `n`.
#[inline(always)]
fn fold(n: usize, start: F32x16, f: impl Fn(usize) -> F32x16, merge: impl Fn(F32x16, F32x16) -> F32x16) -> F32x16 {
    let mut total = start;
    let mut first = 0;
    while first < n {
        let end = n.min(first + ROUNDS * SIDE * LANES);
        let mut sides = [start; SIDE];
        let mut i = first;
        while i + SIDE * LANES <= end {
            for (k, side) in sides.iter_mut().enumerate() {
                *side = merge(*side, f(i + k * LANES));
            }
            i += SIDE * LANES;
        }
        for side in &mut sides {
            if i < end {
                *side = merge(*side, f(i));
                i += LANES;
            }
        }
        total = merge(total, merge(merge(sides[0], sides[1]), merge(sides[2], sides[3])));
        first = end;
        if first.is_multiple_of(STRETCH) {
            interrupt::check();
        }
    }
    total
}

/// Calls `f(i)` for the blocks that begin at `i`, of a row of `n`.
#[inline(always)]
fn each(n: usize, f: impl Fn(usize)) {
    for first in (0..n).step_by(STRETCH) {
        for i in (first..n.min(first + STRETCH)).step_by(LANES) {
            f(i);
        }
        if n > STRETCH {
            interrupt::check();
        }
    }
}

/// The gradients `d`, but of log-probabilities `y` that are `sure` from the probabilities' distance from 1; `g` are the incoming gradients, `s` is
/// their sum.
///
/// # Safety
/// The machine has AVX-512.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn sure_gradients(sure: Mask16, [g, y, p, s, d]: [F32x16; 5]) -> F32x16 {
    F32x16::select(sure, -(g * y.expm1() + p * (s - g)), d)
}

/// The sum of the exponentials of a row without that of its largest element `top`.
///
/// # Safety
/// As for `rows`.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
unsafe fn sum_below(x: VectorRow, top: F32x16) -> f32 {
    // SAFETY: the caller's.
    let (zero, low) = unsafe { (F32x16::splat(0.0), F32x16::splat(f32::NEG_INFINITY)) };
    let below = |i: usize| {
        // SAFETY: blocks begin below n.
        let v = unsafe { x.block(i, low) };
        F32x16::select(v.lt(&top), lanes::exp(v - top), zero)
    };
    fold(x.n, zero, below, |a, b| a + b).total()
}

/// `count` rows of `n`, one after the other, of the passes of `softmax`: `x` is the input, backward the output; `g` is read backward only.
///
/// # Safety
/// The machine has AVX-512; all rows are readable and writable. An operand may be the output's memory element for element.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
pub(crate) unsafe fn rows(pass: SoftmaxPass, count: usize, n: usize, x: *const f32, g: *const f32, out: *mut f32) {
    for r in 0..count {
        let (x, g, out) = (VectorRow { x: x.wrapping_add(r * n), n }, VectorRow { x: g.wrapping_add(r * n), n }, out.wrapping_add(r * n));
        // SAFETY: the caller's; blocks begin below n.
        unsafe {
            let (zero, low) = (F32x16::splat(0.0), F32x16::splat(f32::NEG_INFINITY));
            let put = |i: usize, v: F32x16| if i + LANES <= n { v.store(out.add(i)) } else { v.store_some(out.add(i), n - i) };
            match pass {
                SoftmaxPass { log: false, backward: false } => {
                    let top = F32x16::splat(fold(n, low, |i| x.block(i, low), |m, v| v.at_least(m)).largest());
                    let s = fold(
                        n,
                        zero,
                        |i| {
                            let e = lanes::exp(x.block(i, low) - top);
                            put(i, e);
                            // Beyond the end there is exp(-inf), or nan of a row that is nan.
                            e
                        },
                        |a, b| a + b,
                    )
                    .total();
                    let (s, share) = (F32x16::splat(s), F32x16::splat(1.0 / s));
                    let made = VectorRow { x: out, n };
                    each(n, |i| {
                        let e = made.block(i, zero);
                        // The quotient but for its last bit, and its remainder.
                        let q = e * share;
                        put(i, q.neg_fma(s, e).fma(share, q));
                    });
                }
                SoftmaxPass { log: true, backward: false } => {
                    let top = F32x16::splat(fold(n, low, |i| x.block(i, low), |m, v| v.at_least(m)).largest());
                    let s = fold(n, zero, |i| lanes::exp(x.block(i, low) - top), |a, b| a + b).total();
                    let s = if s < SURE_SUM as f32 { scalar::log1p::<Avx512>(sum_below(x, top)) } else { scalar::log::<Avx512>(s) };
                    let s = F32x16::splat(s);
                    each(n, |i| {
                        put(i, x.block(i, zero) - top - s);
                    });
                }
                SoftmaxPass { log: false, backward: true } => {
                    let s = F32x16::splat(fold(n, zero, |i| g.block(i, zero) * x.block(i, zero), |a, b| a + b).total());
                    each(n, |i| {
                        put(i, x.block(i, zero) * (g.block(i, zero) - s));
                    });
                }
                SoftmaxPass { log: true, backward: true } => {
                    let s = F32x16::splat(fold(n, zero, |i| g.block(i, zero), |a, b| a + b).total());
                    each(n, |i| {
                        let (y, g) = (x.block(i, low), g.block(i, zero));
                        let p = lanes::exp(y);
                        let d = p.neg_fma(s, g);
                        let sure = y.gt(&F32x16::splat(SURE as f32));
                        put(i, if sure.0 == 0 { d } else { sure_gradients(sure, [g, y, p, s, d]) });
                    });
                }
            }
        }
    }
}
