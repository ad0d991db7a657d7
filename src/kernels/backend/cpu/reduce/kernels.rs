//! The table of reductions: for each reduction and dtype the loops, the loader before them, and what computes results from accumulators.

use super::loaders::Load;
use super::loops::{LoopsOf, ReduceLoops, finish_with};
use super::reducers::{Absolutes, ExtremeOp, Float, LargestAbsolute, LogicalOp, ProdOp, ReduceOp, SquareSum, SumOp};
use super::traversal::{FinishFn, ReduceKernel};
use super::variance::{LogSumExpOp, SquaredDistances};
use crate::backend::cpu::elem::{by_narrow_float, by_narrow_integer};
use crate::call::Reducer;
use crate::layout::{Complex32, Complex64, DType, Number};

impl ReduceKernel {
    /// A reduction whose accumulators are the results.
    const fn plain(loops: &'static ReduceLoops) -> Self {
        ReduceKernel { loops, load: None, finish: None, out: loops.acc, number: 0.0 }
    }

    const fn loading(self, load: Load) -> Self {
        ReduceKernel { load: Some(load), ..self }
    }

    /// For elements of `dtype`, by loops over the dtype that it is computed in.
    const fn widened(self, dtype: DType) -> Self {
        by_narrow_integer!(dtype, S => self.loading(Load::widened::<S, i32>()), _ => {
            by_narrow_float!(dtype, S => self.loading(Load::widened::<S, f32>()), _ => self)
        })
    }

    /// Elements of bool as 0 and 1: foreign memory may hold other bytes.
    fn of_bool(self, dtype: DType) -> Self {
        if dtype == DType::Bool { self.loading(Load::nonzero::<u8, u8>()) } else { self }
    }

    /// As `widened`, for sums.
    const fn widened_whole(self, dtype: DType) -> Self {
        let r = self.widened(dtype);
        match r.load {
            Some(load) if dtype.is_float() => r.loading(load.whole()),
            _ => r,
        }
    }

    pub(crate) const fn finished(self, out: usize, finish: FinishFn) -> Self {
        ReduceKernel { out, finish: Some(finish), ..self }
    }
}

/// The kernel of a reduction. None if the reduction is for floats only. Of 16-bit floats its floating results are float32, to be rounded once.
pub fn kernel_of(reducer: Reducer, dtype: DType) -> Option<ReduceKernel> {
    match reducer {
        Reducer::Sum => Some(sum(dtype)),
        Reducer::Prod => Some(prod(dtype)),
        Reducer::Extreme { max } => Some(extreme(max, dtype)),
        Reducer::Truth { all } => Some(truth(all, dtype)),
        Reducer::CountNonzero => Some(count_nonzero(dtype)),
        Reducer::SquaredDeviations => squares(dtype),
        Reducer::LogSumExp => logsumexp(dtype),
        Reducer::Norm(p) => norm(p, dtype),
    }
}

/// The sum; of integers and bool in int64.
pub fn sum(dtype: DType) -> ReduceKernel {
    ReduceKernel::plain(match dtype.number() {
        // Foreign memory may hold other bytes than 0 and 1.
        Number::Bool => LoopsOf::<CountNonzero>::LOOPS,
        Number::U8 => LoopsOf::<SumOp<u8, i64>>::LOOPS,
        Number::I32 => LoopsOf::<SumOp<i32, i64>>::LOOPS,
        Number::I64 => LoopsOf::<SumOp<i64, i64>>::NARROW,
        Number::F32 => LoopsOf::<SumOp<f32, f32>>::LOOPS,
        Number::F64 => LoopsOf::<SumOp<f64, f64>>::LOOPS,
        Number::C64 => LoopsOf::<SumOp<Complex32, Complex32>>::LOOPS,
        Number::C128 => LoopsOf::<SumOp<Complex64, Complex64>>::LOOPS,
    })
    .widened_whole(dtype)
}

/// The product, with the result types of `sum`.
pub fn prod(dtype: DType) -> ReduceKernel {
    ReduceKernel::plain(match dtype.number() {
        Number::Bool | Number::U8 => LoopsOf::<ProdOp<u8, i64>>::LOOPS,
        Number::I32 => LoopsOf::<ProdOp<i32, i64>>::LOOPS,
        Number::I64 => LoopsOf::<ProdOp<i64, i64>>::LOOPS,
        Number::F32 => LoopsOf::<ProdOp<f32, f32>>::LOOPS,
        Number::F64 => LoopsOf::<ProdOp<f64, f64>>::LOOPS,
        Number::C64 => LoopsOf::<ProdOp<Complex32, Complex32>>::LOOPS,
        Number::C128 => LoopsOf::<ProdOp<Complex64, Complex64>>::LOOPS,
    })
    .widened_whole(dtype)
    .of_bool(dtype)
}

/// The largest element, or the smallest with `max` false; nan wins.
pub fn extreme(max: bool, dtype: DType) -> ReduceKernel {
    let r = ReduceKernel::plain(extreme_loops(max, dtype.number())).widened(dtype).of_bool(dtype);
    by_narrow_integer!(dtype, S => r.finished(size_of::<S>(), narrow::<S>), _ => r)
}

/// # Safety
/// As for `finish_with`, of i32 that T holds.
unsafe fn narrow<T: TryFrom<i32> + Default>(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
    // SAFETY: the caller's.
    unsafe { finish_with(acc, n, out, step, |a: i32| T::try_from(a).unwrap_or_default()) }
}

fn extreme_loops(max: bool, number: Number) -> &'static ReduceLoops {
    macro_rules! by_max {
        ($T:ty, $LOOPS:ident) => {
            if max { LoopsOf::<ExtremeOp<$T, true>>::$LOOPS } else { LoopsOf::<ExtremeOp<$T, false>>::$LOOPS }
        };
    }
    match number {
        Number::Bool | Number::U8 => by_max!(u8, LOOPS),
        Number::I32 => by_max!(i32, LOOPS),
        Number::I64 => by_max!(i64, NARROW),
        Number::F32 => by_max!(f32, LOOPS),
        Number::F64 => by_max!(f64, NARROW),
        Number::C64 | Number::C128 => unreachable!("complex numbers have no order"),
    }
}

/// The reduction `r` of bytes, applied to whether each element is not 0. Elements of one width and kind are told from 0 alike.
fn of_truth(r: ReduceKernel, dtype: DType) -> ReduceKernel {
    if dtype.is_complex() {
        return r.loading(if dtype.computed() == DType::C64 { Load::nonzero::<Complex32, u8>() } else { Load::nonzero::<Complex64, u8>() });
    }
    match (dtype.is_float(), dtype.size()) {
        (false, 1) => r,
        (false, 2) => r.loading(Load::nonzero::<i16, u8>()),
        (false, 4) => r.loading(Load::nonzero::<i32, u8>()),
        (false, _) => r.loading(Load::nonzero::<i64, u8>()),
        (true, 1 | 2) => by_narrow_float!(dtype, S => r.loading(Load::nonzero::<S, u8>()), _ => r),
        (true, 4) => r.loading(Load::nonzero::<f32, u8>()),
        (true, _) => r.loading(Load::nonzero::<f64, u8>()),
    }
}

/// Whether all elements (or any, with `all` false) are true, that is not 0; nan is. Gives bool.
pub fn truth(all: bool, dtype: DType) -> ReduceKernel {
    of_truth(ReduceKernel::plain(if all { LoopsOf::<LogicalOp<true>>::LOOPS } else { LoopsOf::<LogicalOp<false>>::LOOPS }), dtype)
}

/// How many elements are not 0.
#[derive(Debug, Clone, Copy, Default)]
struct CountNonzero;

impl ReduceOp for CountNonzero {
    type Element = u8;
    type Accumulator = i64;
    #[inline(always)]
    fn init(self) -> i64 {
        0
    }
    #[inline(always)]
    fn lift(self, x: u8) -> i64 {
        i64::from(x != 0)
    }
    #[inline(always)]
    fn merge(self, a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
}

/// How many elements are not 0, in int64.
pub fn count_nonzero(dtype: DType) -> ReduceKernel {
    of_truth(ReduceKernel::plain(LoopsOf::<CountNonzero>::LOOPS), dtype)
}

/// The sum of squared distances from the mean. Floats only.
pub fn squares(dtype: DType) -> Option<ReduceKernel> {
    match dtype.number() {
        Number::F32 => {
            Some(ReduceKernel::plain(SquaredDistances::<f32>::LOOPS).finished(4, SquaredDistances::<f32>::finish).widened_whole(dtype))
        }
        Number::F64 => Some(ReduceKernel::plain(SquaredDistances::<f64>::LOOPS).finished(8, SquaredDistances::<f64>::finish)),
        Number::Bool | Number::U8 | Number::I32 | Number::I64 | Number::C64 | Number::C128 => None,
    }
}

/// `log(sum(exp(x)))`, without overflow. Floats only.
pub fn logsumexp(dtype: DType) -> Option<ReduceKernel> {
    match dtype.number() {
        Number::F32 => Some(ReduceKernel::plain(LogSumExpOp::<f32>::LOOPS).finished(4, LogSumExpOp::<f32>::finish).widened_whole(dtype)),
        Number::F64 => Some(ReduceKernel::plain(LogSumExpOp::<f64>::LOOPS).finished(8, LogSumExpOp::<f64>::finish)),
        Number::Bool | Number::U8 | Number::I32 | Number::I64 | Number::C64 | Number::C128 => None,
    }
}

/// The vector norm of order `p`. Floats only.
pub fn norm(p: f64, dtype: DType) -> Option<ReduceKernel> {
    macro_rules! in_f32 {
        ($S:ty) => {
            float_norm::<$S, f32>(p, SQUARES_F32, extreme(true, dtype).loading(Load::absolute::<$S, f32>()), dtype)
        };
    }
    match dtype.number() {
        Number::F32 => Some(by_narrow_float!(dtype, S => in_f32!(S), _ => in_f32!(f32))),
        Number::F64 => {
            let largest = ReduceKernel::plain(LoopsOf::<LargestAbsolute<f64>>::NARROW);
            Some(float_norm::<f64, f64>(p, LoopsOf::<SquareSum<f64, false>>::LOOPS, largest, dtype))
        }
        Number::Bool | Number::U8 | Number::I32 | Number::I64 | Number::C64 | Number::C128 => None,
    }
}

/// With fused multiplication where the machine has it.
#[cfg(target_arch = "x86_64")]
const SQUARES_F32: &ReduceLoops = &{
    let (plain, fused) = (LoopsOf::<SquareSum<f32, false>>::LOOPS, LoopsOf::<SquareSum<f32, true>>::LOOPS);
    ReduceLoops { rows: [plain.rows[0], fused.rows[1], fused.rows[2]], down: [plain.down[0], fused.down[1], fused.down[2]], ..*plain }
};
#[cfg(not(target_arch = "x86_64"))]
const SQUARES_F32: &ReduceLoops = LoopsOf::<SquareSum<f32, false>>::LOOPS;

/// `largest` reduces to the largest absolute value. Sums of powers are added up in double precision.
fn float_norm<S: Copy + 'static, T: Float + From<S>>(
    p: f64,
    squares: &'static ReduceLoops,
    largest: ReduceKernel,
    dtype: DType,
) -> ReduceKernel {
    let size = size_of::<T>();
    if p == 2.0 {
        ReduceKernel::plain(squares).finished(size, root::<T>).widened_whole(dtype)
    } else if p == 1.0 {
        ReduceKernel::plain(LoopsOf::<Absolutes<T>>::LOOPS).finished(size, narrowed::<T>).widened_whole(dtype)
    } else if p == f64::INFINITY {
        largest.finished(size, at_least_zero::<T>)
    } else if p == f64::NEG_INFINITY {
        extreme(false, dtype).loading(Load::absolute::<S, T>())
    } else if p == 0.0 {
        count_nonzero(dtype).finished(size, counted::<T>)
    } else {
        let sum = ReduceKernel::plain(LoopsOf::<SumOp<f64, f64>>::LOOPS).loading(Load::power::<S, T>().whole());
        ReduceKernel { number: p, ..sum.finished(size, root_of_order::<T>) }
    }
}

/// # Safety
/// As for `finish_with`, of f64.
unsafe fn root<T: Float>(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
    // SAFETY: the caller's.
    unsafe { finish_with(acc, n, out, step, |a: f64| T::narrow(a.sqrt())) }
}

/// # Safety
/// As for `finish_with`, of f64.
unsafe fn root_of_order<T: Float>(acc: *const u8, n: usize, out: *mut u8, step: isize, p: f64) {
    // SAFETY: the caller's.
    unsafe { finish_with(acc, n, out, step, |a: f64| T::narrow(a.powf(1.0 / p))) }
}

/// # Safety
/// As for `finish_with`, of i64.
unsafe fn counted<T: Float>(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
    // SAFETY: the caller's.
    unsafe { finish_with(acc, n, out, step, |a: i64| T::narrow(a as f64)) }
}

/// # Safety
/// As for `finish_with`, of f64.
unsafe fn narrowed<T: Float>(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
    // SAFETY: the caller's.
    unsafe { finish_with(acc, n, out, step, |a: f64| T::narrow(a)) }
}

/// The largest of nothing is minus infinity, but 0 as a norm.
///
/// # Safety
/// As for `finish_with`, of T.
unsafe fn at_least_zero<T: Float>(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
    // SAFETY: the caller's.
    unsafe { finish_with(acc, n, out, step, |a: T| if a < T::ZERO { T::ZERO } else { a }) }
}

#[cfg(test)]
mod tests {
    use super::super::loops::tests::agrees;
    use super::super::{ReduceInput, run};
    use super::*;
    use crate::backend::cpu::common::cast::convert_fn;
    use crate::layout::Scalar;

    /// The elements of this dtype with these values, in memory.
    fn stored(dtype: DType, values: &[i64]) -> Vec<u64> {
        let mut memory = vec![0u64; values.len()];
        let to = memory.as_mut_ptr().cast::<u8>();
        for (i, v) in values.iter().enumerate() {
            let bytes = Scalar::Int(*v).to_bytes(dtype);
            // SAFETY: there are eight bytes for each element.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(i * dtype.size()), dtype.size()) };
        }
        memory
    }

    /// What `r` gives of elements of `dtype`, whose results are of `to`, as f64.
    fn reduced(r: &ReduceKernel, to: DType, x: &[u64], (shape, strides): (&[usize], &[isize]), mask: &[bool]) -> Vec<f64> {
        let n = shape.iter().zip(mask).filter(|(_, m)| !**m).map(|(s, _)| *s).product();
        let (mut out, mut wide) = (vec![u64::MAX; n], vec![f64::NAN; n]);
        // SAFETY: the layout stays inside x, and `out` has eight bytes for each result.
        unsafe {
            run(r, shape, strides, mask, ReduceInput::Memory(x.as_ptr().cast()), out.as_mut_ptr().cast());
            let ss = (0, to.size() as isize);
            convert_fn(to, DType::F64)(1, n, out.as_ptr().cast(), ss, wide.as_mut_ptr().cast(), (0, 8));
        }
        wide
    }

    /// The values that make up each result, in any order.
    fn groups(x: &[i64], (shape, strides): (&[usize], &[isize]), mask: &[bool]) -> Vec<Vec<i64>> {
        let kept: Vec<usize> = (0..shape.len()).filter(|d| !mask[*d]).collect();
        let mut groups = vec![Vec::new(); kept.iter().map(|d| shape[*d]).product()];
        for i in 0..shape.iter().product() {
            let at = |d: usize| i / shape[d + 1..].iter().product::<usize>() % shape[d];
            let from: isize = (0..shape.len()).map(|d| at(d) as isize * strides[d]).sum();
            groups[kept.iter().fold(0, |k, d| k * shape[*d] + at(*d))].push(x[from as usize]);
        }
        groups
    }

    #[test]
    fn rows_of_every_length_are_counted() {
        agrees::<CountNonzero>(|i| (i % 3) as u8);
    }

    #[test]
    fn every_reduction_of_every_dtype_agrees_with_a_naive_one() {
        let layouts: [(&[usize], &[isize]); 9] = [
            (&[7], &[1]),
            (&[5000], &[1]),
            (&[5000], &[2]),
            (&[3, 2100], &[2100, 1]),
            (&[2100, 3], &[1, 2100]),
            (&[70, 300], &[301, 1]),
            (&[600, 4], &[4, 1]),
            (&[20, 9, 40], &[360, 40, 1]),
            (&[20, 9, 40], &[2, 800, 40]),
        ];
        let values: Vec<i64> = (0..21_100).map(|i| if i * 7919 % 1013 < 500 { 0 } else { i * 31 % 7 % 3 }).collect();
        // Products that stay exact.
        let signs: Vec<i64> = (0..21_100).map(|i| if i % 400 == 77 { 2 } else { 1 }).collect();
        for dtype in DType::ALL.into_iter().filter(|d| !d.is_complex() && !d.is_wide_unsigned()) {
            let kept = if dtype.is_half() { DType::F32 } else { dtype };
            let summed = if dtype.is_float() { kept } else { DType::I64 };
            let (x, s) = (stored(dtype, &values), stored(dtype, &signs));
            let seen = |v: i64| if dtype == DType::Bool { i64::from(v != 0) } else { v };
            for layout in layouts {
                for bits in 0..1u32 << layout.0.len() {
                    let mask: Vec<bool> = (0..layout.0.len()).map(|d| bits >> d & 1 == 1).collect();
                    let all = groups(&values, layout, &mask);
                    let check =
                        |name: &str, r: &ReduceKernel, to: DType, memory: &[u64], want: &dyn Fn(&[i64]) -> f64, all: &[Vec<i64>]| {
                            let got = reduced(r, to, memory, layout, &mask);
                            for (g, v) in got.iter().zip(all) {
                                let v: Vec<i64> = v.iter().map(|v| seen(*v)).collect();
                                let want = want(&v);
                                assert!((g - want).abs() <= 1e-6 * want.abs(), "{name} {dtype} {layout:?} {mask:?}: {g} {want}");
                            }
                        };
                    let count = |v: &[i64]| v.iter().filter(|v| **v != 0).count() as f64;
                    check("sum", &sum(dtype), summed, &x, &|v| v.iter().sum::<i64>() as f64, &all);
                    check("max", &extreme(true, dtype), kept, &x, &|v| v.iter().max().map_or(0.0, |v| *v as f64), &all);
                    check("min", &extreme(false, dtype), kept, &x, &|v| v.iter().min().map_or(0.0, |v| *v as f64), &all);
                    check("all", &truth(true, dtype), DType::Bool, &x, &|v| f64::from(v.iter().all(|v| *v != 0)), &all);
                    check("any", &truth(false, dtype), DType::Bool, &x, &|v| f64::from(v.iter().any(|v| *v != 0)), &all);
                    check("count", &count_nonzero(dtype), DType::I64, &x, &count, &all);
                    let all_signs = groups(&signs, layout, &mask);
                    check("prod", &prod(dtype), summed, &s, &|v| v.iter().map(|v| *v as f64).product(), &all_signs);
                    for p in [0.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY] {
                        let want = |v: &[i64]| match p {
                            0.0 => count(v),
                            f64::INFINITY => v.iter().max().map_or(0.0, |v| *v as f64),
                            f64::NEG_INFINITY => v.iter().min().map_or(0.0, |v| *v as f64),
                            p => v.iter().map(|v| (*v as f64).powf(p)).sum::<f64>().powf(1.0 / p),
                        };
                        match norm(p, dtype) {
                            Some(r) => check("norm", &r, kept, &x, &want, &all),
                            None => assert!(!dtype.is_float()),
                        }
                    }
                }
            }
        }
    }
}
