//! One compiled loop for each row, element type and instruction set.

use super::loops::{backward, by_range, element, forward};
use super::special;
#[cfg(target_arch = "x86_64")]
use super::{lanes, roots};
use crate::layout::{DType, Number, Scalar};
use crate::rows::{Eval, Field, MAX_PARAMS, Row, RowId, Vjp, all_rows, table};
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
instances! { vjp_base vjp_avx2 vjp_avx512 <R: [Vjp<A, Y = A> + Vjp<A::FullRangeNumber, Y = A::FullRangeNumber>], A: KernelNumber, const I: usize> |n, o, i, p| {
    if const { is_periodic::<R>() && R::INFO.saves(1) & 1 != 0 } {
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
