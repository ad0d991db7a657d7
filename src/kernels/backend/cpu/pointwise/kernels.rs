//! One compiled loop for each row, element type and instruction set.

use super::special;
#[cfg(target_arch = "x86_64")]
use super::{lanes, roots};
use crate::layout::{DType, Number, Scalar};
use crate::rows::{Eval, Field, MAX_PARAMS, OUTPUT, Row, RowId, Vjp, all_rows, table};
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512, B8, Base, C64, C128, F32, F64, I32, I64, InstructionSet, KernelNumber, U8};

/// Kernels work on whole blocks of so many elements, so that no loop has a remainder.
pub const LANES: usize = 16;

/// The most operands of a row.
pub const MAX_OPERANDS: usize = 3;
/// The cotangent, the operands, the output.
pub const MAX_INPUTS: usize = MAX_OPERANDS + 2;

/// Computes `blocks * LANES` elements. All arrays are dense. Forward, input `k` is operand `k`; in a derivative 0 is the cotangent,
/// `1 + k` operand `k` and `1 + MAX_OPERANDS` the output. Inputs that are not read can be anything.
pub type KernelFn = unsafe fn(blocks: usize, out: *mut u8, ins: &[*const u8; MAX_INPUTS], params: &[Scalar; MAX_PARAMS]);

/// # Safety
/// `ptr` holds at least `i + 1` elements, of `A::Stored` or, for a mask, of bytes.
#[inline(always)]
unsafe fn load<A: KernelNumber>(read: bool, mask: bool, ptr: *const u8, i: usize, zero: A) -> A {
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
fn load_params<A: KernelNumber>(params: &[Scalar; MAX_PARAMS]) -> [A; MAX_PARAMS] {
    [A::from_scalar(&params[0]), A::from_scalar(&params[1]), A::from_scalar(&params[2])]
}

const fn is_mask<R: Row>(k: usize) -> bool {
    k < R::INFO.arity() && R::INFO.operands[k].mask
}

/// Keeps the compiler from vectorising across blocks: it would gather the same lane of many blocks, which is ten times slower than
/// vectorising within one block.
#[inline(always)]
fn opaque(b: usize) -> usize {
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
fn one_by_one<A: KernelNumber>(j: usize) -> usize {
    if A::SCALAR { opaque(j) } else { j }
}

/// The loop of every forward kernel; `O` is the element type of the result.
///
/// # Safety
/// As for `KernelFn`.
#[inline(always)]
unsafe fn forward<R: Row, A: KernelNumber, O: Copy>(
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
unsafe fn backward<R: Vjp<A, Y = A>, A: KernelNumber, const I: usize>(
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
unsafe fn by_range<A: KernelNumber>(
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

/// Blocks whose outputs are looked at together.
const TOGETHER: usize = 8;

/// Whether an output of some blocks has lost digits of a derivative.
///
/// # Safety
/// `y` holds these blocks.
#[inline(always)]
unsafe fn is_saturated<A: KernelNumber>(blocks: usize, y: *const u8) -> bool {
    let mut largest = [A::from_bool(0); LANES];
    for b in 0..blocks {
        let b = opaque(b);
        for (j, largest) in largest.iter_mut().enumerate() {
            // SAFETY: the caller's.
            *largest = largest.larger(unsafe { element(y, b * LANES + j) });
        }
    }
    let mut any = false;
    for largest in largest {
        any |= largest.is_saturated();
    }
    any
}

/// The loop of a derivative that reads the operand where the output has lost its digits: the result of an element never depends on its
/// neighbours, and blocks without such an element do not read the operand.
///
/// # Safety
/// As for `KernelFn`.
#[inline(always)]
unsafe fn backward_saturating<R: Vjp<A, Y = A> + Vjp<A::ExactNumber, Y = A::ExactNumber>, A: KernelNumber, const I: usize>(
    blocks: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_INPUTS],
    params: &[Scalar; MAX_PARAMS],
) {
    let mut first = 0;
    while first < blocks {
        let count = TOGETHER.min(blocks - first);
        let step = LANES * size_of::<A::Stored>();
        let (to, from) = (out.wrapping_add(first * step), ins.map(|p| p.wrapping_add(first * step)));
        // SAFETY: the caller's, for these blocks.
        unsafe {
            if !is_saturated::<A>(count, from[1 + MAX_OPERANDS]) {
                backward::<R, A, I>(count, to, &from, params);
            } else {
                for b in 0..count {
                    let (to, from) = (to.wrapping_add(b * step), from.map(|p| p.wrapping_add(b * step)));
                    if !is_saturated::<A>(1, from[1 + MAX_OPERANDS]) {
                        backward::<R, A, I>(1, to, &from, params);
                        continue;
                    }
                    // Before anything is written, which may be over the inputs.
                    let (mut exact, mut short) = ([A::from_bool(0).raw(); LANES], [A::from_bool(0).raw(); LANES]);
                    backward::<R, A::ExactNumber, I>(1, exact.as_mut_ptr().cast(), &from, params);
                    backward::<R, A, I>(1, short.as_mut_ptr().cast(), &from, params);
                    for j in 0..LANES {
                        let lost = element::<A>(from[1 + MAX_OPERANDS], j).is_saturated();
                        short[j] = std::hint::select_unpredictable(lost, exact[j], short[j]);
                    }
                    to.cast::<[A::Stored; LANES]>().write_unaligned(short);
                }
            }
        }
        first += count;
    }
}

/// Element `i` of an input.
///
/// # Safety
/// It is there.
#[inline(always)]
unsafe fn element<A: KernelNumber>(ptr: *const u8, i: usize) -> A {
    // SAFETY: the caller's.
    A::new(unsafe { *(ptr as *const A::Stored).add(i) })
}

/// A complex number, whose real part is stored alone.
trait PairNumber: KernelNumber {
    type StoredPart: Copy;
    fn part(re: <Self as Field>::Re) -> Self::StoredPart;
}

impl<A: KernelNumber> PairNumber for A
where
    <A as Field>::Re: KernelNumber,
{
    type StoredPart = <<A as Field>::Re as KernelNumber>::Stored;
    #[inline(always)]
    fn part(re: <A as Field>::Re) -> Self::StoredPart {
        re.raw()
    }
}

const fn is_periodic<R: Row>() -> bool {
    R::INFO.periodic && R::INFO.arity() == 1
}

/// Instances of a loop for each instruction set: the same body, inlined into functions that may use more instructions.
macro_rules! instances {
    ($base:ident $avx2:ident $avx512:ident <$R:ident: [$($Row:tt)+], $A:ident: $Bound:path $(, const $I:ident: usize)?> $call:expr) => {
        // Derivatives have this instance only on machines without another one.
        #[allow(dead_code)]
        unsafe fn $base<$R: $($Row)+, $A: $Bound $(, const $I: usize)?>(
            blocks: usize,
            out: *mut u8,
            ins: &[*const u8; MAX_INPUTS],
            params: &[Scalar; MAX_PARAMS],
        ) {
            // SAFETY: the caller's.
            unsafe { $call(blocks, out, ins, params) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
        unsafe fn $avx2<$R: $($Row)+, $A: $Bound $(, const $I: usize)?>(
            blocks: usize,
            out: *mut u8,
            ins: &[*const u8; MAX_INPUTS],
            params: &[Scalar; MAX_PARAMS],
        ) {
            // SAFETY: the caller's.
            unsafe { $call(blocks, out, ins, params) }
        }

        // Not every family has this instance.
        #[allow(dead_code)]
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
        unsafe fn $avx512<$R: $($Row)+, $A: $Bound $(, const $I: usize)?>(
            blocks: usize,
            out: *mut u8,
            ins: &[*const u8; MAX_INPUTS],
            params: &[Scalar; MAX_PARAMS],
        ) {
            // SAFETY: the caller's.
            unsafe { $call(blocks, out, ins, params) }
        }
    };
}

instances! { num_base num_avx2 num_avx512 <R: [Eval<A, Out = A>], A: KernelNumber> |n, o, i, p| {
    forward::<R, A, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| R::f(x, p).raw())
} }
instances! { real_base real_avx2 real_avx512 <R: [Eval<A, Out = A> + Eval<A::FullRangeNumber, Out = A::FullRangeNumber>], A: KernelNumber> |n, o, i, p| {
    let narrow = |n, o, i: &_, p: &_| forward::<R, A, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| <R as Eval<A>>::f(x, p).raw());
    if const { is_periodic::<R>() } {
        by_range::<A>(n, o, i, p, |k| element::<A>(i[0], k).in_range(), narrow,
            |n, o, i, p| forward::<R, A::FullRangeNumber, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| <R as Eval<A::FullRangeNumber>>::f(x, p).raw()))
    } else {
        narrow(n, o, i, p)
    }
} }
instances! { div_base div_avx2 div_avx512 <R: [Eval<A, Out = A> + Eval<A::FullRangeNumber, Out = A::FullRangeNumber>], A: KernelNumber> |n, o, i, p| {
    by_range::<A>(n, o, i, p, |k| element::<A>(i[0], k).divides_in_range(element(i[1], k)),
        |n, o, i, p| forward::<R, A, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| <R as Eval<A>>::f(x, p).raw()),
        |n, o, i, p| forward::<R, A::FullRangeNumber, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| <R as Eval<A::FullRangeNumber>>::f(x, p).raw()))
} }
instances! { cmp_base cmp_avx2 cmp_avx512 <R: [Eval<A, Out = bool>], A: KernelNumber> |n, o, i, p| {
    forward::<R, A, u8>(n, o, i, p, 0, |x, p| R::f(x, p) as u8)
} }
instances! { complex_base complex_avx2 complex_avx512 <R: [Eval<A, Out = A> + Eval<A::FullRangeNumber, Out = A::FullRangeNumber>], A: KernelNumber> |n, o, i, p| {
    by_range::<A>(n, o, i, p, |k| element::<A>(i[0], k).in_range(),
        |n, o, i, p| forward::<R, A, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| <R as Eval<A>>::f(x, p).raw()),
        |n, o, i, p| forward::<R, A::FullRangeNumber, A::Stored>(n, o, i, p, A::from_bool(0).raw(), |x, p| <R as Eval<A::FullRangeNumber>>::f(x, p).raw()))
} }
instances! { part_base part_avx2 part_avx512 <R: [Eval<A, Out = <A as Field>::Re>], A: PairNumber> |n, o, i, p| {
    forward::<R, A, A::StoredPart>(n, o, i, p, A::part(A::from_bool(0).re()), |x, p| A::part(R::f(x, p)))
} }
instances! { vjp_base vjp_avx2 vjp_avx512 <R: [
    Vjp<A, Y = A> + Vjp<A::FullRangeNumber, Y = A::FullRangeNumber> + Vjp<A::ExactNumber, Y = A::ExactNumber>
], A: KernelNumber, const I: usize> |n, o, i, p| {
    if const { R::INFO.saturates } {
        backward_saturating::<R, A, I>(n, o, i, p)
    } else if const { is_periodic::<R>() && R::INFO.saves(1) & 1 != 0 } {
        by_range::<A>(n, o, i, p, |k| element::<A>(i[1], k).in_range(),
            |n, o, i, p| backward::<R, A, I>(n, o, i, p), |n, o, i, p| backward::<R, A::FullRangeNumber, I>(n, o, i, p))
    } else {
        backward::<R, A, I>(n, o, i, p)
    }
} }

/// Types of numbers without an imaginary part that have kernels, how many of them are real (the last ones), and complex ones behind them.
const TYPES: usize = Number::C64 as usize;
const REALS: usize = 2;
const COMPLEX: usize = 2;

/// The index of the type of numbers that `dtype` is computed in, in the order of `by_dtype`, and behind these of complex numbers.
const fn place(dtype: DType) -> usize {
    dtype.number() as usize
}

/// All kernels of one row: `[instruction set][type]`, and `[instruction set][operand][real type]`. Derivatives in complex numbers are composed
/// of forward kernels.
struct RowKernels {
    forward: [[Option<KernelFn>; TYPES]; InstructionSet::COUNT],
    complex: [[Option<KernelFn>; COMPLEX]; InstructionSet::COUNT],
    vjp: [[[Option<KernelFn>; REALS]; MAX_OPERANDS]; InstructionSet::COUNT],
}

/// The kernels of one instruction set, for the types of numbers in the order of `place`.
macro_rules! by_dtype {
    ($f:ident $R:ident $I:ty, ints $g:ident) => {
        [
            Some($g::<$R, B8> as KernelFn),
            Some($g::<$R, U8>),
            Some($g::<$R, I32>),
            Some($g::<$R, I64>),
            Some($f::<$R, F32<$I>>),
            Some($f::<$R, F64<$I>>),
        ]
    };
    (floats $f:ident $R:ident $I:ty) => {
        [None, None, None, None, Some($f::<$R, F32<$I>> as KernelFn), Some($f::<$R, F64<$I>>)]
    };
    (ints $g:ident $R:ident) => {
        [Some($g::<$R, B8> as KernelFn), Some($g::<$R, U8>), Some($g::<$R, I32>), Some($g::<$R, I64>), None, None]
    };
}

// Arithmetic, comparisons and integers have no instance for AVX-512: they are bound by memory anyway, and every instance costs compile
// time.
macro_rules! by_isa {
    ($base:expr, $avx2:expr, $avx512:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            [$base, $avx2, $avx512]
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            [$base]
        }
    }};
}

// Without AVX2 there are no fused derivatives on x86-64, and on no machine for rows whose derivative reads nothing but the cotangent: these
// derivatives are composed of forward kernels.
macro_rules! vjp_levels {
    (lanes $R:ident) => {{
        #[cfg(target_arch = "x86_64")]
        {
            const READS: u8 = reading::<$R>();
            let mut top = vjp_kernels!(vjp_avx512 $R Avx512);
            if READS & 1 != 0 {
                top[0][0] = Some(lanes::backward::<$R, 0>);
            }
            if READS & 2 != 0 {
                top[1][0] = Some(lanes::backward::<$R, 1>);
            }
            [[[None; 2]; MAX_OPERANDS], vjp_kernels!(vjp_avx2 $R Avx2), top]
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            [vjp_kernels!(vjp_base $R Base)]
        }
    }};
    (Special $R:ident) => { [[[None; 2]; MAX_OPERANDS]; InstructionSet::COUNT] };
    ($kind:ident Erf) => { vjp_levels!(lanes Erf) };
    ($kind:ident Erfc) => { vjp_levels!(lanes Erfc) };
    ($kind:ident Silu) => { vjp_levels!(lanes Silu) };
    ($kind:ident GeluTanh) => { vjp_levels!(lanes GeluTanh) };
    ($kind:ident Gelu) => { vjp_levels!(lanes Gelu) };
    ($kind:ident Sin) => { vjp_levels!(lanes Sin) };
    ($kind:ident Cos) => { vjp_levels!(lanes Cos) };
    ($kind:ident LogSigmoid) => { vjp_levels!(lanes LogSigmoid) };
    ($kind:ident Softplus) => { vjp_levels!(lanes Softplus) };
    ($kind:ident BceWithLogits) => { vjp_levels!(lanes BceWithLogits) };
    (Real $R:ident) => { vjp_levels!(@ $R vjp_avx512 Avx512) };
    (Analytic $R:ident) => { vjp_levels!(@ $R vjp_avx512 Avx512) };
    (Field Pow) => { vjp_levels!(@ Pow vjp_avx512 Avx512) };
    (Field PowScalar) => { vjp_levels!(@ PowScalar vjp_avx512 Avx512) };
    ($kind:ident $R:ident) => { vjp_levels!(@ $R vjp_avx2 Avx2) };
    (@ $R:ident $top:ident $I:ident) => {{
        #[cfg(target_arch = "x86_64")]
        {
            [[[None; 2]; MAX_OPERANDS], vjp_kernels!(vjp_avx2 $R Avx2), vjp_kernels!($top $R $I)]
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            [vjp_kernels!(vjp_base $R Base)]
        }
    }};
}

// Of sixteen `f32` at once with AVX-512.
macro_rules! lanes_kernels {
    ($R:ident) => {
        by_isa!(
            by_dtype!(floats real_base $R Base),
            by_dtype!(floats real_avx2 $R Avx2),
            [None, None, None, None, Some(lanes::forward::<$R> as KernelFn), Some(real_avx512::<$R, F64<Avx512>>)]
        )
    };
}

macro_rules! root_kernels {
    ($R:ident $single:ident $double:ident) => {
        by_isa!(
            by_dtype!(floats real_base $R Base),
            [None, None, None, None, Some(roots::$single as KernelFn), Some(roots::$double)],
            [None, None, None, None, Some(lanes::forward::<$R> as KernelFn), Some(real_avx512::<$R, F64<Avx512>>)]
        )
    };
}

// Powers are the only arithmetic that is slower than memory with AVX2. Remainders check the size of their quotients first.
macro_rules! forward_kernels {
    (Field Pow) => { forward_kernels!(@ Pow num_avx512 Avx512) };
    (Field PowScalar) => { forward_kernels!(@ PowScalar num_avx512 Avx512) };
    (Num Fmod) => { forward_kernels!(divide Fmod) };
    (Num Remainder) => { forward_kernels!(divide Remainder) };
    (Num DivFloor) => { forward_kernels!(divide DivFloor) };
    (Num FloorDivide) => { forward_kernels!(divide FloorDivide) };
    (Num $R:ident) => { forward_kernels!(@ $R num_avx2 Avx2) };
    (Field $R:ident) => { forward_kernels!(@ $R num_avx2 Avx2) };
    (Modulus $R:ident) => { forward_kernels!(@ $R num_avx2 Avx2) };
    (Test $R:ident) => { forward_kernels!(Cmp $R) };
    (Analytic $R:ident) => { forward_kernels!(Real $R) };
    (Phase $R:ident) => {
        by_isa!(
            by_dtype!(floats real_base $R Base),
            by_dtype!(floats real_avx2 $R Avx2),
            by_dtype!(floats real_avx2 $R Avx2)
        )
    };
    ($kind:ident Exp) => { lanes_kernels!(Exp) };
    ($kind:ident Tanh) => { lanes_kernels!(Tanh) };
    ($kind:ident Erf) => { lanes_kernels!(Erf) };
    ($kind:ident Sigmoid) => { lanes_kernels!(Sigmoid) };
    ($kind:ident Silu) => { lanes_kernels!(Silu) };
    ($kind:ident GeluTanh) => { lanes_kernels!(GeluTanh) };
    ($kind:ident Gelu) => { lanes_kernels!(Gelu) };
    ($kind:ident Sin) => { lanes_kernels!(Sin) };
    ($kind:ident Cos) => { lanes_kernels!(Cos) };
    ($kind:ident Sqrt) => { root_kernels!(Sqrt sqrt_f32 sqrt_f64) };
    ($kind:ident Rsqrt) => { root_kernels!(Rsqrt rsqrt_f32 rsqrt_f64) };
    (divide $R:ident) => {
        by_isa!(
            by_dtype!(div_base $R Base, ints num_base),
            by_dtype!(div_avx2 $R Avx2, ints num_avx2),
            by_dtype!(div_avx2 $R Avx2, ints num_avx2)
        )
    };
    (@ $R:ident $top:ident $I:ident) => {
        by_isa!(
            by_dtype!(num_base $R Base, ints num_base),
            by_dtype!(num_avx2 $R Avx2, ints num_avx2),
            by_dtype!($top $R $I, ints num_avx2)
        )
    };
    (Cmp $R:ident) => {
        by_isa!(
            by_dtype!(cmp_base $R Base, ints cmp_base),
            by_dtype!(cmp_avx2 $R Avx2, ints cmp_avx2),
            by_dtype!(cmp_avx2 $R Avx2, ints cmp_avx2)
        )
    };
    (Real $R:ident) => {
        by_isa!(
            by_dtype!(floats real_base $R Base),
            by_dtype!(floats real_avx2 $R Avx2),
            by_dtype!(floats real_avx512 $R Avx512)
        )
    };
    // Each chooses the instruction set itself.
    (Special $R:ident) => {
        [[
            None,
            None,
            None,
            None,
            Some(special::single::<{ RowId::$R as u16 }> as KernelFn),
            Some(special::double::<{ RowId::$R as u16 }> as KernelFn),
        ]; InstructionSet::COUNT]
    };
    (Int $R:ident) => {
        by_isa!(by_dtype!(ints num_base $R), by_dtype!(ints num_avx2 $R), by_dtype!(ints num_avx2 $R))
    };
}

// Complex numbers have no instance for AVX-512. The exponential and what is made of it has one for angles of any size (`complex_base`,
// `complex_avx2`); these rows take no sine of a part. Of powers the angle is a product, and reduced as well as its rounding deserves.
macro_rules! complex_kernels {
    (Analytic Div) => { complex_kernels!(Field Div) };
    (Analytic Reciprocal) => { complex_kernels!(Field Reciprocal) };
    (Analytic Addcdiv) => { complex_kernels!(Field Addcdiv) };
    (Analytic Lerp) => { complex_kernels!(Field Lerp) };
    (Analytic Sqrt) => { complex_kernels!(Field Sqrt) };
    (Analytic Rsqrt) => { complex_kernels!(Field Rsqrt) };
    (Analytic Log) => { complex_kernels!(Field Log) };
    (Analytic Log2) => { complex_kernels!(Field Log2) };
    (Analytic Log10) => { complex_kernels!(Field Log10) };
    (Analytic Log1p) => { complex_kernels!(Field Log1p) };
    (Analytic Asin) => { complex_kernels!(Field Asin) };
    (Analytic Acos) => { complex_kernels!(Field Acos) };
    (Analytic Atan) => { complex_kernels!(Field Atan) };
    (Analytic Asinh) => { complex_kernels!(Field Asinh) };
    (Analytic Acosh) => { complex_kernels!(Field Acosh) };
    (Analytic Atanh) => { complex_kernels!(Field Atanh) };
    (Field $R:ident) => { complex_kernels!(@ $R num_base num_avx2) };
    (Analytic $R:ident) => { complex_kernels!(@ $R complex_base complex_avx2) };
    (Modulus $R:ident) => { complex_kernels!(@ $R part_base part_avx2) };
    (Phase $R:ident) => { complex_kernels!(@ $R part_base part_avx2) };
    (Test $R:ident) => { complex_kernels!(@ $R cmp_base cmp_avx2) };
    ($kind:ident $R:ident) => { [[None; COMPLEX]; InstructionSet::COUNT] };
    (@ $R:ident $base:ident $avx2:ident) => {
        by_isa!(
            [Some($base::<$R, C64<Base>> as KernelFn), Some($base::<$R, C128<Base>>)],
            [Some($avx2::<$R, C64<Avx2>> as KernelFn), Some($avx2::<$R, C128<Avx2>>)],
            [Some($avx2::<$R, C64<Avx2>> as KernelFn), Some($avx2::<$R, C128<Avx2>>)]
        )
    };
}

/// The operands whose derivative reads a saved value.
const fn reading<R: Row>() -> u8 {
    let mut mask = 0;
    let mut i = 0;
    while i < R::INFO.arity() {
        if R::INFO.saves(1 << i) != 0 {
            mask |= 1 << i;
        }
        i += 1;
    }
    mask
}

macro_rules! vjp_kernels {
    ($vjp:ident $R:ident $I:ty) => {{
        const NEEDED: u8 = reading::<$R>();
        [
            if NEEDED & 1 != 0 { [Some($vjp::<$R, F32<$I>, 0> as KernelFn), Some($vjp::<$R, F64<$I>, 0>)] } else { [None; 2] },
            if NEEDED & 2 != 0 { [Some($vjp::<$R, F32<$I>, 1> as KernelFn), Some($vjp::<$R, F64<$I>, 1>)] } else { [None; 2] },
            if NEEDED & 4 != 0 { [Some($vjp::<$R, F32<$I>, 2> as KernelFn), Some($vjp::<$R, F64<$I>, 2>)] } else { [None; 2] },
        ]
    }};
}

macro_rules! table {
    ($([$kind:ident $Row:ident])+) => {
        static TABLE: &[RowKernels] = &[$({
            #[allow(unused_imports)]
            use table::$Row;
            RowKernels {
                forward: forward_kernels!($kind $Row),
                complex: complex_kernels!($kind $Row),
                vjp: vjp_levels!($kind $Row),
            }
        }),+];
    };
}

all_rows!(table);

/// The kernel that computes `row`'s value in `dtype`; None if the row does not take that type.
#[inline]
pub fn forward_kernel(row: RowId, dtype: DType, isa: InstructionSet) -> Option<KernelFn> {
    let (row, isa) = (&TABLE[row as usize], isa as usize % InstructionSet::COUNT);
    let place = place(dtype);
    if place < TYPES { row.forward[isa][place] } else { row.complex[isa][place - TYPES] }
}

/// The kernel that computes the gradient of operand `i` of `row`; None for integers and complex numbers, and where it is not fused (no derivative, one that
/// reads only the cotangent, or an x86-64 without AVX2).
#[inline]
pub fn vjp_kernel(row: RowId, i: usize, dtype: DType, isa: InstructionSet) -> Option<KernelFn> {
    let which = place(dtype).checked_sub(TYPES - REALS)?;
    *TABLE[row as usize].vjp[isa as usize % InstructionSet::COUNT].get(i)?.get(which)?
}
