//! Reductions that look at their elements twice: each segment is looked at again while it is near, and what segments give is merged. So
//! memory is read once, and elements that are made on the way are made once.

use super::logsumexp::Exps;
use super::reduce::Reducer;
use super::reducers::{Deviation, Float, Sum, To};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Columns that are reduced together without an allocation.
const COLUMNS: usize = 512;

/// How many elements, their mean, and the sum of their squared distances from it.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

/// The sum of squared distances from the mean. Segments are merged by Chan, Golub and LeVeque's formula (COMPSTAT 1982), in double
/// precision.
#[derive(Debug, Clone, Copy)]
pub struct Squares<T>(PhantomData<fn() -> T>);

impl<T> Squares<T> {
    pub const NEW: Self = Squares(PhantomData);
}

impl<T: Float + To<T>> Reducer for Squares<T> {
    type In = T;
    type Acc = Moments;
    type Out = T;
    #[inline(always)]
    fn init(self) -> Moments {
        Moments { count: 0.0, mean: 0.0, squares: 0.0 }
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> Moments {
        // The distance of infinity from itself is nan.
        Moments { count: 1.0, mean: x.wide(), squares: x.minus(x).wide() }
    }
    #[inline(always)]
    fn merge(self, a: Moments, b: Moments) -> Moments {
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
    #[inline(always)]
    fn finish(self, a: Moments) -> T {
        T::narrow(a.squares)
    }

    #[inline(always)]
    unsafe fn row(self, p: *const T, n: usize, stride: isize, _: T) -> Moments {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            let mean = mean(Sum::<T, T>::NEW.row(p, n, stride, T::ZERO), n);
            let squares = Deviation::<T>::NEW.row(p, n, stride, mean);
            Moments { count: n as f64, mean: mean.wide(), squares: squares.wide() }
        }
    }

    #[inline(always)]
    unsafe fn rows(self, p: *const T, count: (usize, isize), row: (usize, isize), _: *const T, _: isize, out: *mut T, out_step: isize) {
        // SAFETY: the caller's promise is passed on.
        unsafe { each_row(self, p, count, row, out, out_step) }
    }

    unsafe fn down(self, p: *const T, rows: usize, row_stride: isize, stride: isize, _: *const T, _: isize, acc: &mut [Moments]) {
        let mut means: SmallVec<[T; COLUMNS]> = SmallVec::from_elem(T::ZERO, acc.len());
        let mut squares: SmallVec<[T; COLUMNS]> = SmallVec::from_elem(T::ZERO, acc.len());
        // SAFETY: the caller's promise is passed on; a mean is there for each column.
        unsafe {
            Sum::<T, T>::NEW.down(p, rows, row_stride, stride, p, 0, &mut means);
            means.iter_mut().for_each(|m| *m = mean(*m, rows));
            Deviation::<T>::NEW.down(p, rows, row_stride, stride, means.as_ptr(), 1, &mut squares);
        }
        for (a, (m, s)) in acc.iter_mut().zip(means.iter().zip(&squares)) {
            *a = Moments { count: rows as f64, mean: m.wide(), squares: s.wide() };
        }
    }
}

fn mean<T: Float>(sum: T, n: usize) -> T {
    T::narrow(sum.wide() / n as f64)
}

/// # Safety
/// As for `Reducer::rows`.
#[inline(always)]
unsafe fn each_row<R: Reducer>(
    r: R,
    p: *const R::In,
    (count, step): (usize, isize),
    (n, stride): (usize, isize),
    out: *mut R::Out,
    out_step: isize,
) {
    for i in 0..count as isize {
        // SAFETY: the caller's promise covers row i.
        unsafe {
            let first = p.offset(i * step);
            out.offset(i * out_step).write(r.finish(r.row(first, n, stride, *first)));
        }
    }
}

/// `log(sum(exp(x)))`, without overflow: sums of exponentials of distances from the largest element.
#[derive(Debug, Clone, Copy)]
pub struct LogSumExp<T>(PhantomData<fn() -> T>);

impl<T> LogSumExp<T> {
    pub const NEW: Self = LogSumExp(PhantomData);
}

/// The largest element, and the sum of `exp(x - top)`, of `exp(x)` where the largest is infinite.
#[derive(Debug, Clone, Copy)]
pub struct Top<T> {
    pub top: T,
    pub sum: f64,
}

/// What is subtracted: infinities are not, since their differences are nan.
#[inline(always)]
pub fn subtracted<T: Float>(top: T) -> T {
    if top.minus(top) == T::ZERO { top } else { T::ZERO }
}

impl<T: Float + Exps> Reducer for LogSumExp<T> {
    type In = T;
    type Acc = Top<T>;
    type Out = T;
    #[inline(always)]
    fn init(self) -> Top<T> {
        Top { top: T::LOWEST, sum: 0.0 }
    }
    #[inline(always)]
    fn lift(self, x: T, _: T) -> Top<T> {
        Top { top: x, sum: x.minus(subtracted(x)).wide().exp() }
    }
    fn merge(self, a: Top<T>, b: Top<T>) -> Top<T> {
        let top = if a.top > b.top || a.top.is_nan() { a.top } else { b.top };
        let base = subtracted(top).wide();
        // Nothing but -inf amounts to nothing, whatever it would be multiplied by.
        let term = |t: Top<T>| if t.sum == 0.0 { 0.0 } else { t.sum * (subtracted(t.top).wide() - base).exp() };
        Top { top, sum: term(a) + term(b) }
    }
    #[inline(always)]
    fn finish(self, a: Top<T>) -> T {
        T::narrow(subtracted(a.top).wide() + a.sum.ln())
    }

    #[inline(always)]
    unsafe fn row(self, p: *const T, n: usize, stride: isize, _: T) -> Top<T> {
        // SAFETY: the caller's promise is passed on.
        unsafe { T::row(p, n, stride) }
    }

    #[inline(always)]
    unsafe fn rows(self, p: *const T, count: (usize, isize), row: (usize, isize), _: *const T, _: isize, out: *mut T, out_step: isize) {
        // SAFETY: the caller's promise is passed on.
        unsafe { each_row(self, p, count, row, out, out_step) }
    }

    #[inline(always)]
    unsafe fn down(self, p: *const T, rows: usize, row_stride: isize, stride: isize, _: *const T, _: isize, acc: &mut [Top<T>]) {
        // SAFETY: the caller's promise is passed on.
        unsafe { T::down(p, rows, row_stride, stride, acc) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce::run;
    use super::*;

    fn reduced<R: Reducer<In = f64, Out = f64>>(r: R, x: &[f64], shape: &[usize], mask: &[bool]) -> Vec<f64> {
        let n = shape.iter().zip(mask).filter(|(_, m)| !**m).map(|(s, _)| *s).product();
        let mut out = vec![f64::NAN; n];
        let strides: Vec<isize> = (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect();
        // SAFETY: the shape has the elements of x, and `out` one for each result.
        unsafe { run(r, shape, &strides, mask, x.as_ptr(), std::ptr::null(), out.as_mut_ptr()) };
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
            let (squares, logs) = (reduced(Squares::NEW, &x, shape, mask), reduced(LogSumExp::NEW, &x, shape, mask));
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
        let log = |x: &[f64]| reduced(LogSumExp::NEW, x, &[x.len()], &[true])[0];
        assert_eq!((log(&[]), log(&[-inf, -inf]), log(&[inf, 1.0, -inf]), log(&[-inf, 2.5])), (-inf, -inf, inf, 2.5));
        assert!(log(&[f64::NAN, inf]).is_nan() && log(&[-inf, f64::NAN]).is_nan());
        let mut x = vec![-inf; 200_000];
        x[150_000] = -1000.0;
        assert_eq!(log(&x), -1000.0);
        let squares = |x: &[f64]| reduced(Squares::NEW, x, &[x.len()], &[true])[0];
        assert_eq!((squares(&[]), squares(&[3.0]), squares(&[1.0; 9])), (0.0, 0.0, 0.0));
        assert!(squares(&[inf]).is_nan() && squares(&[inf, 1.0]).is_nan());
    }
}
