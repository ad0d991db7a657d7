//! Reductions that need their elements twice, for the mean or maximum first: each segment is read again while it is in the cache, and the
//! results of segments are merged. So memory is read once, and elements that a program computes are computed once.

use super::logsumexp::ExpSums;
use super::loops::{BRIEF, LoopsOf, ReduceLoops, brief_base, down_columns, fill_with, finish_with, instances, merge_with, row};
use super::reducers::{Deviation, Float, ReduceOp, SumOp, Widen};
use crate::simd::{InstructionSet, instruction_set};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Columns that are reduced together without an allocation.
const COLUMNS: usize = 512;

/// The number of elements, their mean, and the sum of squared distances from the mean.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    const NONE: Moments = Moments { count: 0.0, mean: 0.0, squares: 0.0 };

    /// By Chan, Golub and LeVeque's formula (COMPSTAT 1982).
    #[inline(always)]
    fn merge(self, b: Moments) -> Moments {
        let a = self;
        if a.count == 0.0 || b.count == 0.0 {
            return if a.count == 0.0 { b } else { a };
        }
        let (count, apart) = (a.count + b.count, b.mean - a.mean);
        Moments {
            count,
            mean: a.mean + apart * (b.count / count),
            squares: a.squares + b.squares + apart * apart * (a.count * b.count / count),
        }
    }
}

/// The sum of squared distances from the mean, of segments in their own precision, which are merged in double precision.
#[derive(Debug, Clone, Copy)]
pub struct SquaredDistances<T>(PhantomData<fn() -> T>);

impl<T: Float + Widen<T>> SquaredDistances<T> {
    pub const LOOPS: &'static ReduceLoops = &ReduceLoops {
        element: size_of::<T>(),
        acc: size_of::<Moments>(),
        rows: brief_base(squares_rows::<T, BRIEF>(), squares_rows::<T, false>()),
        down: [Self::down; InstructionSet::COUNT],
        merge: Self::merge,
        fill: Self::fill,
    };

    /// # Safety
    /// As for `merge_with`.
    unsafe fn merge(acc: *mut u8, other: *const u8, n: usize, behind: bool) {
        // SAFETY: the caller's.
        unsafe { merge_with(acc, other, n, behind, Moments::merge) }
    }

    /// # Safety
    /// As for `fill_with`.
    unsafe fn fill(acc: *mut u8, n: usize) {
        // SAFETY: the caller's.
        unsafe { fill_with(acc, n, Moments::NONE) }
    }

    /// # Safety
    /// As for `finish_with`.
    pub(crate) unsafe fn finish(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
        // SAFETY: the caller's.
        unsafe { finish_with(acc, n, out, step, |a: Moments| T::narrow(a.squares)) }
    }

    /// # Safety
    /// As `ColumnsFn` says.
    unsafe fn down(p: *const u8, (rows, row_stride): (usize, isize), stride: isize, acc: *mut u8, columns: usize) {
        let (sum, deviation) =
            (LoopsOf::<SumOp<T, T>>::LOOPS.down[instruction_set() as usize], deviation_down::<T>()[instruction_set() as usize]);
        let mut means: SmallVec<[T; COLUMNS]> = SmallVec::from_elem(T::ZERO, columns);
        let mut squares: SmallVec<[T; COLUMNS]> = SmallVec::from_elem(T::ZERO, columns);
        // SAFETY: the caller's promise is passed on; there is a mean for each column.
        let acc = unsafe {
            sum(p, (rows, row_stride), stride, means.as_mut_ptr().cast(), columns);
            means.iter_mut().for_each(|m| *m = mean(*m, rows));
            deviation(p.cast(), (rows, row_stride), stride, means.as_ptr(), &mut squares);
            std::slice::from_raw_parts_mut(acc.cast::<Moments>(), columns)
        };
        for (a, (m, s)) in acc.iter_mut().zip(means.iter().zip(&squares)) {
            *a = a.merge(Moments { count: rows as f64, mean: m.wide(), squares: s.wide() });
        }
    }
}

#[inline(always)]
fn mean<T: Float>(sum: T, n: usize) -> T {
    T::narrow(sum.wide() / n as f64)
}

instances!(squares_rows = squares_of_rows, squares_rows_base squares_rows_avx2 squares_rows_avx512, [T: Float + Widen<T>, const IS_BRIEF: bool], [T, IS_BRIEF], (
    p: *const u8, count: (usize, isize), row: (usize, isize), acc: *mut u8, acc_step: isize,
));
instances!(deviation_down = deviation_columns, deviation_columns_base deviation_columns_avx2 deviation_columns_avx512, [T: Float], [T], (
    p: *const T, rows: (usize, isize), stride: isize, means: *const T, acc: &mut [T],
));

/// # Safety
/// As `RowsFn` says.
#[inline(always)]
unsafe fn squares_of_rows<T: Float + Widen<T>, const IS_BRIEF: bool>(
    p: *const u8,
    (count, step): (usize, isize),
    (n, stride): (usize, isize),
    acc: *mut u8,
    acc_step: isize,
) {
    for i in 0..count as isize {
        let p = p.cast::<T>().wrapping_offset(i * step);
        // SAFETY: the caller's promise covers row i.
        unsafe {
            let mean = mean(row::<_, IS_BRIEF>(SumOp::<T, T>::default(), p, n, stride), n);
            let squares = row::<_, IS_BRIEF>(Deviation(mean), p, n, stride);
            let moments = Moments { count: n as f64, mean: mean.wide(), squares: squares.wide() };
            acc.cast::<Moments>().offset(i * acc_step).write(moments);
        }
    }
}

/// # Safety
/// `acc.len()` columns, `stride` apart, of all rows are readable, and so many means.
#[inline(always)]
unsafe fn deviation_columns<T: Float>(p: *const T, (rows, row_stride): (usize, isize), stride: isize, means: *const T, acc: &mut [T]) {
    // SAFETY: the caller's.
    unsafe {
        let lift = |j: usize, x: T| Deviation(*means.add(j)).lift(x);
        if stride == 1 {
            down_columns(Deviation(T::ZERO), p, rows, row_stride, 1, lift, acc);
        } else {
            down_columns(Deviation(T::ZERO), p, rows, row_stride, stride, lift, acc);
        }
    }
}

/// `log(sum(exp(x)))`, without overflow: sums of exponentials of distances from the largest element.
#[derive(Debug, Clone, Copy)]
pub struct LogSumExpOp<T>(PhantomData<fn() -> T>);

/// The largest element, and the sum of `exp(x - top)`, of `exp(x)` where the largest is infinite.
#[derive(Debug, Clone, Copy)]
pub struct MaxAndSum<T> {
    pub top: T,
    pub sum: f64,
}

/// What is subtracted before the exponential: 0 instead of an infinity, whose differences are nan.
#[inline(always)]
pub fn subtracted<T: Float>(top: T) -> T {
    if top.minus(top) == T::ZERO { top } else { T::ZERO }
}

impl<T: Float> MaxAndSum<T> {
    pub(crate) const NONE: MaxAndSum<T> = MaxAndSum { top: T::LOWEST, sum: 0.0 };

    pub(crate) fn merge(self, b: MaxAndSum<T>) -> MaxAndSum<T> {
        let top = if self.top > b.top || self.top.is_nan() { self.top } else { b.top };
        let base = subtracted(top).wide();
        // A sum over nothing but -inf is 0, whatever its factor is.
        let term = |t: MaxAndSum<T>| if t.sum == 0.0 { 0.0 } else { t.sum * (subtracted(t.top).wide() - base).exp() };
        MaxAndSum { top, sum: term(self) + term(b) }
    }
}

impl<T: Float + ExpSums> LogSumExpOp<T> {
    pub const LOOPS: &'static ReduceLoops = &ReduceLoops {
        element: size_of::<T>(),
        acc: size_of::<MaxAndSum<T>>(),
        rows: [Self::rows; InstructionSet::COUNT],
        down: [Self::down; InstructionSet::COUNT],
        merge: Self::merge,
        fill: Self::fill,
    };

    /// # Safety
    /// As for `merge_with`.
    unsafe fn merge(acc: *mut u8, other: *const u8, n: usize, behind: bool) {
        // SAFETY: the caller's.
        unsafe { merge_with(acc, other, n, behind, MaxAndSum::<T>::merge) }
    }

    /// # Safety
    /// As for `fill_with`.
    unsafe fn fill(acc: *mut u8, n: usize) {
        // SAFETY: the caller's.
        unsafe { fill_with(acc, n, MaxAndSum::<T>::NONE) }
    }

    /// # Safety
    /// As for `finish_with`.
    pub(crate) unsafe fn finish(acc: *const u8, n: usize, out: *mut u8, step: isize, _: f64) {
        // SAFETY: the caller's.
        unsafe { finish_with(acc, n, out, step, |a: MaxAndSum<T>| T::narrow(subtracted(a.top).wide() + a.sum.ln())) }
    }

    /// # Safety
    /// As `RowsFn` says.
    unsafe fn rows(p: *const u8, (count, step): (usize, isize), (n, stride): (usize, isize), acc: *mut u8, acc_step: isize) {
        for i in 0..count as isize {
            // SAFETY: the caller's promise covers row i.
            unsafe {
                let top = T::row(p.cast::<T>().offset(i * step), n, stride);
                acc.cast::<MaxAndSum<T>>().offset(i * acc_step).write(top);
            }
        }
    }

    /// # Safety
    /// As `ColumnsFn` says.
    unsafe fn down(p: *const u8, (rows, row_stride): (usize, isize), stride: isize, acc: *mut u8, columns: usize) {
        // SAFETY: the caller's.
        unsafe { T::down(p.cast(), rows, row_stride, stride, std::slice::from_raw_parts_mut(acc.cast(), columns)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels;
    use super::super::{ReduceInput, ReduceKernel, run};
    use crate::layout::DType;

    fn reduced(r: fn(DType) -> Option<ReduceKernel>, x: &[f64], shape: &[usize], mask: &[bool]) -> Vec<f64> {
        let r = r(DType::F64).expect("of floats");
        let n = shape.iter().zip(mask).filter(|(_, m)| !**m).map(|(s, _)| *s).product();
        let mut out = vec![f64::NAN; n];
        let strides: Vec<isize> = (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect();
        // SAFETY: the shape has the elements of x, and `out` one for each result.
        unsafe { run(&r, shape, &strides, mask, ReduceInput::Memory(x.as_ptr().cast()), out.as_mut_ptr().cast()) };
        out
    }

    #[test]
    fn segments_give_what_all_give_together() {
        let x: Vec<f64> = (0..300_000usize).map(|i| ((i * 7919) % 1013) as f64 / 100.0 + 1e3).collect();
        for (shape, mask) in [
            (&[300_000][..], &[true][..]),
            (&[300, 1000], &[false, true]),
            (&[300, 1000], &[true, false]),
            (&[100_000, 3], &[true, false]),
            (&[30, 100, 100], &[true, false, true]),
            (&[30, 100, 100], &[false, true, false]),
        ] {
            let (squares, logs) = (reduced(kernels::squares, &x, shape, mask), reduced(kernels::logsumexp, &x, shape, mask));
            let kept: Vec<usize> = (0..shape.len()).filter(|d| !mask[*d]).collect();
            let mut all = vec![Vec::new(); squares.len()];
            for (i, v) in x.iter().enumerate() {
                let at = |d: usize| i / shape[d + 1..].iter().product::<usize>() % shape[d];
                all[kept.iter().fold(0, |k, d| k * shape[*d] + at(*d))].push(*v);
            }
            for (k, v) in all.iter().enumerate() {
                let mean = v.iter().sum::<f64>() / v.len() as f64;
                let want = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
                assert!((squares[k] / want - 1.0).abs() < 1e-11, "{shape:?} {mask:?}");
                let want = 1e3 + v.iter().map(|x| (x - 1e3).exp()).sum::<f64>().ln();
                assert!((logs[k] - want).abs() < 1e-11, "{shape:?} {mask:?}");
            }
        }
    }

    #[test]
    fn infinities_and_nothing() {
        let inf = f64::INFINITY;
        let log = |x: &[f64]| reduced(kernels::logsumexp, x, &[x.len()], &[true])[0];
        assert_eq!((log(&[]), log(&[-inf, -inf]), log(&[inf, 1.0, -inf]), log(&[-inf, 2.5])), (-inf, -inf, inf, 2.5));
        assert!(log(&[f64::NAN, inf]).is_nan() && log(&[-inf, f64::NAN]).is_nan());
        let mut x = vec![-inf; 200_000];
        x[150_000] = -1000.0;
        assert_eq!(log(&x), -1000.0);
        let squares = |x: &[f64]| reduced(kernels::squares, x, &[x.len()], &[true])[0];
        assert_eq!((squares(&[]), squares(&[3.0]), squares(&[1.0; 9])), (0.0, 0.0, 0.0));
        assert!(squares(&[inf]).is_nan() && squares(&[inf, 1.0]).is_nan());
    }
}
