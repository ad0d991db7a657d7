//! Kernels that compute sixteen `f32` at once, for rows whose functions gain from AVX-512 instructions that the compiler does not find in
//! scalar code.

use super::kernels::{LANES, MAX_INPUTS, MAX_OPERANDS};
use crate::layout::Scalar;
use crate::rows::MAX_PARAMS;
use crate::rows::{Eval, OUTPUT, Row, Vjp};
use crate::simd::F32x16;

const _: () = assert!(LANES == F32x16::LANES);

const fn no_masks<R: Row>() -> bool {
    let mut k = 0;
    while k < R::INFO.arity() {
        if R::INFO.operands[k].mask {
            return false;
        }
        k += 1;
    }
    true
}

/// # Safety
/// The machine has AVX-512.
#[inline(always)]
unsafe fn splat(params: &[Scalar; MAX_PARAMS]) -> [F32x16; MAX_PARAMS] {
    // SAFETY: the caller's.
    std::array::from_fn(|i| unsafe { F32x16::splat(params[i].to_f64() as f32) })
}

/// The value of a row.
///
/// # Safety
/// As for `KernelFn`; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
pub(crate) unsafe fn forward<R: Eval<F32x16, Out = F32x16>>(
    blocks: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_INPUTS],
    params: &[Scalar; MAX_PARAMS],
) {
    const { assert!(no_masks::<R>()) };
    let arity = const { R::INFO.arity() };
    // SAFETY: the caller's.
    let (p, zero) = unsafe { (splat(params), F32x16::splat(0.0)) };
    for b in 0..blocks {
        let mut x = [zero; MAX_OPERANDS];
        for k in 0..arity {
            // SAFETY: every operand holds this block.
            x[k] = unsafe { F32x16::load((ins[k] as *const f32).add(b * LANES)) };
        }
        // SAFETY: the output holds this block. It may be one of the inputs: these were read before.
        unsafe { R::f(&x[..arity], &p).store((out as *mut f32).add(b * LANES)) };
    }
}

/// The gradient of operand `I`.
///
/// # Safety
/// As for `KernelFn`; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
pub(crate) unsafe fn backward<R: Vjp<F32x16, Y = F32x16>, const I: usize>(
    blocks: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_INPUTS],
    params: &[Scalar; MAX_PARAMS],
) {
    const { assert!(no_masks::<R>()) };
    let arity = const { R::INFO.arity() };
    let reads = const { R::INFO.saves(1 << I) };
    // SAFETY: the caller's.
    let (p, zero) = unsafe { (splat(params), F32x16::splat(0.0)) };
    for b in 0..blocks {
        // SAFETY: every input that the derivative reads holds this block; no other is read.
        let load = |k: usize, read: bool| if read { unsafe { F32x16::load((ins[k] as *const f32).add(b * LANES)) } } else { zero };
        let g = load(0, true);
        let x = [load(1, reads & 1 != 0), load(2, reads & 2 != 0), load(3, reads & 4 != 0)];
        let y = load(1 + MAX_OPERANDS, reads & OUTPUT != 0);
        // SAFETY: as in `forward`.
        unsafe { R::vjp(I, &g, &x[..arity], &y, &p).store((out as *mut f32).add(b * LANES)) };
    }
}
