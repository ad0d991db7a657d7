//! Which loops, and which loaders before them, make which reduction of which dtype.

use super::loaders::Load;
use super::moments::{LogSumExp, Squares};
use super::reduce::{Finish, ReduceKernel};
use super::reduce_loops::{Loops, Of, finish_with};
use super::reducers::{Absolutes, CountNonzero, Extreme, Float, Prod, SquareSum, Sum, Truth};
use crate::layout::DType;

impl ReduceKernel {
    /// Whose accumulators are the results.
    const fn plain(loops: &'static Loops) -> Self {
        ReduceKernel { loops, load: None, finish: None, out: loops.acc, number: 0.0 }
    }

    const fn loading(self, load: Load) -> Self {
        ReduceKernel { load: Some(load), ..self }
    }

    pub(super) const fn finished(self, out: usize, finish: Finish) -> Self {
        ReduceKernel { out, finish: Some(finish), ..self }
    }
}

/// The sum; of integers and bool in int64.
pub fn sum(dtype: DType) -> ReduceKernel {
    ReduceKernel::plain(match dtype {
        DType::Bool | DType::U8 => Of::<Sum<u8, i64>>::LOOPS,
        DType::I32 => Of::<Sum<i32, i64>>::LOOPS,
        DType::I64 => Of::<Sum<i64, i64>>::LOOPS,
        DType::F32 => Of::<Sum<f32, f32>>::LOOPS,
        DType::F64 => Of::<Sum<f64, f64>>::LOOPS,
    })
}

/// The product, of the types of `sum`.
pub fn prod(dtype: DType) -> ReduceKernel {
    ReduceKernel::plain(match dtype {
        DType::Bool | DType::U8 => Of::<Prod<u8, i64>>::LOOPS,
        DType::I32 => Of::<Prod<i32, i64>>::LOOPS,
        DType::I64 => Of::<Prod<i64, i64>>::LOOPS,
        DType::F32 => Of::<Prod<f32, f32>>::LOOPS,
        DType::F64 => Of::<Prod<f64, f64>>::LOOPS,
    })
}

/// The largest element, or the smallest with `max` false; nan wins.
pub fn extreme(max: bool, dtype: DType) -> ReduceKernel {
    ReduceKernel::plain(extreme_loops(max, dtype))
}

pub(super) fn extreme_loops(max: bool, dtype: DType) -> &'static Loops {
    match (dtype, max) {
        (DType::Bool | DType::U8, true) => Of::<Extreme<u8, true>>::LOOPS,
        (DType::Bool | DType::U8, false) => Of::<Extreme<u8, false>>::LOOPS,
        (DType::I32, true) => Of::<Extreme<i32, true>>::LOOPS,
        (DType::I32, false) => Of::<Extreme<i32, false>>::LOOPS,
        (DType::I64, true) => Of::<Extreme<i64, true>>::LOOPS,
        (DType::I64, false) => Of::<Extreme<i64, false>>::LOOPS,
        (DType::F32, true) => Of::<Extreme<f32, true>>::LOOPS,
        (DType::F32, false) => Of::<Extreme<f32, false>>::LOOPS,
        (DType::F64, true) => Of::<Extreme<f64, true>>::LOOPS,
        (DType::F64, false) => Of::<Extreme<f64, false>>::LOOPS,
    }
}

/// `r`, of bytes, for elements of which each counts as whether it is not 0.
fn of_truth(r: ReduceKernel, dtype: DType) -> ReduceKernel {
    match dtype {
        DType::Bool | DType::U8 => r,
        DType::I32 => r.loading(Load::nonzero::<i32, u8>()),
        DType::I64 => r.loading(Load::nonzero::<i64, u8>()),
        DType::F32 => r.loading(Load::nonzero::<f32, u8>()),
        DType::F64 => r.loading(Load::nonzero::<f64, u8>()),
    }
}

/// Whether all elements (or any, with `all` false) are true, that is not 0; nan is. Gives bool.
pub fn truth(all: bool, dtype: DType) -> ReduceKernel {
    of_truth(ReduceKernel::plain(if all { Of::<Truth<true>>::LOOPS } else { Of::<Truth<false>>::LOOPS }), dtype)
}

/// How many elements are not 0, in int64.
pub fn count_nonzero(dtype: DType) -> ReduceKernel {
    of_truth(ReduceKernel::plain(Of::<CountNonzero>::LOOPS), dtype)
}

/// The sum of squared distances from the mean. None but for floats.
pub fn squares(dtype: DType) -> Option<ReduceKernel> {
    match dtype {
        DType::F32 => Some(ReduceKernel::plain(Squares::<f32>::LOOPS).finished(4, Squares::<f32>::finish)),
        DType::F64 => Some(ReduceKernel::plain(Squares::<f64>::LOOPS).finished(8, Squares::<f64>::finish)),
        _ => None,
    }
}

/// `log(sum(exp(x)))`, without overflow. None but for floats.
pub fn logsumexp(dtype: DType) -> Option<ReduceKernel> {
    match dtype {
        DType::F32 => Some(ReduceKernel::plain(LogSumExp::<f32>::LOOPS).finished(4, LogSumExp::<f32>::finish)),
        DType::F64 => Some(ReduceKernel::plain(LogSumExp::<f64>::LOOPS).finished(8, LogSumExp::<f64>::finish)),
        _ => None,
    }
}

/// The vector norm of order `p`. None but for floats.
pub fn norm(p: f64, dtype: DType) -> Option<ReduceKernel> {
    let own = [sum(dtype), extreme(true, dtype), extreme(false, dtype)];
    match dtype {
        DType::F32 => Some(float_norm::<f32>(p, SQUARES_F32, own)),
        DType::F64 => Some(float_norm::<f64>(p, Of::<SquareSum<f64, false>>::LOOPS, own)),
        _ => None,
    }
}

/// With fused multiplication where the machine has it.
#[cfg(target_arch = "x86_64")]
const SQUARES_F32: &Loops = &{
    let (plain, fused) = (Of::<SquareSum<f32, false>>::LOOPS, Of::<SquareSum<f32, true>>::LOOPS);
    Loops { rows: [plain.rows[0], fused.rows[1], fused.rows[2]], down: [plain.down[0], fused.down[1], fused.down[2]], ..*plain }
};
#[cfg(not(target_arch = "x86_64"))]
const SQUARES_F32: &Loops = Of::<SquareSum<f32, false>>::LOOPS;

/// `own` are the sum and the extremes in this type. Sums of powers are added up in double precision.
fn float_norm<T: Float>(p: f64, squares: &'static Loops, own: [ReduceKernel; 3]) -> ReduceKernel {
    let size = size_of::<T>();
    let [sum, largest, smallest] = own;
    if p == 2.0 {
        ReduceKernel::plain(squares).finished(size, root::<T>)
    } else if p == 1.0 {
        ReduceKernel::plain(Of::<Absolutes<T>>::LOOPS).finished(size, narrowed::<T>)
    } else if p == f64::INFINITY {
        largest.loading(Load::absolute::<T>()).finished(size, at_least_zero::<T>)
    } else if p == f64::NEG_INFINITY {
        smallest.loading(Load::absolute::<T>())
    } else if p == 0.0 {
        sum.loading(Load::nonzero::<T, T>().whole())
    } else {
        let sum = ReduceKernel::plain(Of::<Sum<f64, f64>>::LOOPS).loading(Load::power::<T>().whole());
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
