//! The loops over whole blocks that all kernels are instances of: values, derivatives, and loops that compute some elements in another way.

use super::kernels::{LANES, MAX_INPUTS};
use crate::layout::Scalar;
use crate::rows::{MAX_PARAMS, OUTPUT, Row, Vjp};
use crate::simd::KernelNumber;

/// # Safety
/// `ptr` holds at least `i + 1` elements, of `A::Stored` or, for a mask, of bytes.
#[inline(always)]
pub(super) unsafe fn load<A: KernelNumber>(read: bool, mask: bool, ptr: *const u8, i: usize, zero: A) -> A {
    // SAFETY: the caller's. Operands come from tensors of any offset, but always at whole elements.
    unsafe {
        if !read {
            zero
        } else if mask {
            A::from_bool(*ptr.add(i))
        } else {
            A::new(*(ptr as *const A::Stored).add(i))
        }
    }
}

#[inline(always)]
pub(super) fn load_params<A: KernelNumber>(params: &[Scalar; MAX_PARAMS]) -> [A; MAX_PARAMS] {
    [A::from_scalar(&params[0]), A::from_scalar(&params[1]), A::from_scalar(&params[2])]
}

pub(super) const fn is_mask<R: Row>(k: usize) -> bool {
    k < R::INFO.arity() && R::INFO.operands[k].mask
}

/// Keeps the compiler from vectorising across blocks: it would gather the same lane of many blocks, which is ten times slower than
/// vectorising within one block.
#[inline(always)]
pub(super) fn opaque(b: usize) -> usize {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut b = b;
        // SAFETY: no instruction at all.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) b, options(nomem, nostack, preserves_flags)) };
        b
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    b
}

/// Keeps the loop within a block scalar for instances where speed does not matter: sixteen copies of every function cost minutes of
/// compile time.
#[inline(always)]
pub(super) fn one_by_one<A: KernelNumber>(j: usize) -> usize {
    if A::SCALAR { opaque(j) } else { j }
}

/// The loop of every forward kernel; `O` is the element type of the result.
///
/// # Safety
/// As for `KernelFn`.
#[inline(always)]
pub(super) unsafe fn forward<R: Row, A: KernelNumber, O: Copy>(
    blocks: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_INPUTS],
    params: &[Scalar; MAX_PARAMS],
    none: O,
    f: impl Fn(&[A], &[A]) -> O,
) {
    let p = load_params::<A>(params);
    let zero = A::from_scalar(&Scalar::Bool(false));
    let arity = const { R::INFO.arity() };
    let mask = const { [is_mask::<R>(0), is_mask::<R>(1), is_mask::<R>(2)] };
    for b in 0..blocks {
        let b = opaque(b);
        let mut y = [none; LANES];
        for (j, y) in y.iter_mut().enumerate() {
            let i = b * LANES + one_by_one::<A>(j);
            // SAFETY: `i` is below `blocks * LANES`, and operands beyond the arity are not read.
            let x = unsafe {
                [load(true, mask[0], ins[0], i, zero), load(arity > 1, mask[1], ins[1], i, zero), load(arity > 2, mask[2], ins[2], i, zero)]
            };
            *y = f(&x[..arity], &p);
        }
        // SAFETY: the output holds this block. It may be one of the inputs: these were read before.
        unsafe { (out as *mut [O; LANES]).add(b).write_unaligned(y) };
    }
}

/// The loop of every derivative.
///
/// # Safety
/// As for `KernelFn`.
#[inline(always)]
pub(super) unsafe fn backward<R: Vjp<A, Y = A>, A: KernelNumber, const I: usize>(
    blocks: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_INPUTS],
    params: &[Scalar; MAX_PARAMS],
) {
    let p = load_params::<A>(params);
    let zero = A::from_scalar(&Scalar::Bool(false));
    let arity = const { R::INFO.arity() };
    let reads = const { R::INFO.saves(1 << I) };
    let mask = const { [is_mask::<R>(0), is_mask::<R>(1), is_mask::<R>(2)] };
    for b in 0..blocks {
        let b = opaque(b);
        let mut d = [zero.raw(); LANES];
        for (j, d) in d.iter_mut().enumerate() {
            let i = b * LANES + one_by_one::<A>(j);
            // SAFETY: `i` is below `blocks * LANES`, and only what the derivative reads is read.
            let (g, x, y) = unsafe {
                (
                    load(true, false, ins[0], i, zero),
                    [
                        load(reads & 1 != 0, mask[0], ins[1], i, zero),
                        load(reads & 2 != 0, mask[1], ins[2], i, zero),
                        load(reads & 4 != 0, mask[2], ins[3], i, zero),
                    ],
                    load(reads & OUTPUT != 0, false, ins[4], i, zero),
                )
            };
            *d = R::vjp(I, &g, &x[..arity], &y, &p).raw();
        }
        // SAFETY: as in `forward`.
        unsafe { (out as *mut [A::Stored; LANES]).add(b).write_unaligned(d) };
    }
}

/// Runs `narrow`, and `wide` for the elements for which `in_range` does not hold: so the result of an element never depends on its
/// neighbours.
///
/// # Safety
/// As for `KernelFn`.
#[inline(always)]
pub(super) unsafe fn by_range<A: KernelNumber>(
    blocks: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_INPUTS],
    params: &[Scalar; MAX_PARAMS],
    in_range: impl Fn(usize) -> bool,
    narrow: impl Fn(usize, *mut u8, &[*const u8; MAX_INPUTS], &[Scalar; MAX_PARAMS]),
    wide: impl Fn(usize, *mut u8, &[*const u8; MAX_INPUTS], &[Scalar; MAX_PARAMS]),
) {
    let mut off = [0u32; LANES];
    for b in 0..blocks {
        let b = opaque(b);
        off.iter_mut().enumerate().for_each(|(j, off)| *off |= u32::from(!in_range(b * LANES + j)));
    }
    if off == [0; LANES] {
        return narrow(blocks, out, ins, params);
    }
    for b in 0..blocks {
        let step = b * LANES * size_of::<A::Stored>();
        // If this runs in place, the inputs of this block are still unchanged.
        let fits: [bool; LANES] = std::array::from_fn(|j| in_range(b * LANES + j));
        let ins = ins.map(|p| p.wrapping_add(step));
        let out = out.wrapping_add(step);
        if fits == [true; LANES] {
            narrow(1, out, &ins, params);
            continue;
        }
        let mut far = [std::mem::MaybeUninit::<A::Stored>::uninit(); LANES];
        wide(1, far.as_mut_ptr().cast(), &ins, params);
        narrow(1, out, &ins, params);
        for (j, far) in far.iter().enumerate().filter(|(j, _)| !fits[*j]) {
            // SAFETY: both hold a block, and `wide` has written all of its own.
            unsafe { *(out as *mut A::Stored).add(j) = far.assume_init() };
        }
    }
}

/// Element `i` of an input.
///
/// # Safety
/// It is there.
#[inline(always)]
pub(super) unsafe fn element<A: KernelNumber>(ptr: *const u8, i: usize) -> A {
    // SAFETY: the caller's.
    A::new(unsafe { *(ptr as *const A::Stored).add(i) })
}
