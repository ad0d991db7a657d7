//! Rows whose elements each have a weight.

use super::loops;
use super::{Affine, Applied, NormElement, Stats, TASK, gradient_line, moments};
use crate::call::NormShape;
use crate::host::threads::{SharedPointer, parallel_for};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Rows of a task that keeps sums for each weight, and how many tasks there are at most.
const SUMMED: usize = 8;
const TASKS: usize = 64;

// SAFETY, of every function here: the caller's promise of `super::forward`. Each task has rows of its own.

/// Calls `f(row)` for all rows, some of them in one task.
fn each_row(s: &NormShape, f: impl Fn(usize) + Sync) {
    let (rows, n) = (s.outer * s.groups, s.channels * s.inner);
    let per = (TASK / n.max(1)).max(1);
    parallel_for(rows.div_ceil(per), |t| (t * per..rows.min((t + 1) * per)).for_each(&f));
}

pub(super) unsafe fn forward<T: NormElement>(s: &NormShape, eps: f64, x: *const T, affine: Affine<T>, y: *mut T, to: Stats<T>) {
    let n = s.channels * s.inner;
    // SAFETY: see above.
    let (w, b) = unsafe { affine.expanded(s.params(), s.inner) };
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    each_row(s, |row| {
        // SAFETY: see above.
        unsafe {
            let x = from_raw_parts(x.get().add(row * n), n);
            let applied = moments(x).put(&{ to }, row, eps);
            put_row(s, &applied, x, (&w, &b), row, from_raw_parts_mut(y.at(row * n), n));
        }
    });
}

fn put_row<T: NormElement>(s: &NormShape, applied: &Applied<T>, x: &[T], (w, b): (&[T], &[T]), row: usize, y: &mut [T]) {
    let (n, at) = (x.len(), row % s.groups * x.len());
    let (scale, shift) = applied.line((1.0, 0.0));
    loops::affine(x, y, (applied.mean, scale, shift), &w[at..at + n], &b[at..at + n]);
}

pub(super) unsafe fn apply<T: NormElement>(s: &NormShape, eps: f64, [x, mean, var]: [*const T; 3], affine: Affine<T>, y: *mut T) {
    let n = s.channels * s.inner;
    // SAFETY: see above.
    let (w, b) = unsafe { affine.expanded(s.params(), s.inner) };
    let ([x, mean, var], y) = ([x, mean, var].map(SharedPointer::new), SharedPointer::new(y));
    each_row(s, |row| {
        // SAFETY: see above.
        unsafe {
            let applied = Applied::given(*mean.get().add(row), *var.get().add(row), eps);
            let (from, to) = (from_raw_parts(x.get().add(row * n), n), from_raw_parts_mut(y.at(row * n), n));
            put_row(s, &applied, from, (&w, &b), row, to);
        }
    });
}

pub(super) unsafe fn backward<T: NormElement>(
    s: &NormShape,
    fixed: bool,
    [g, x, mean, rstd]: [*const T; 4],
    weight: *const T,
    dx: *mut T,
    params: Option<(*mut T, *mut T)>,
) {
    let (rows, n) = (s.outer * s.groups, s.channels * s.inner);
    // SAFETY: see above.
    let (w, _) = unsafe { Affine { weight, bias: std::ptr::null() }.expanded(s.params(), s.inner) };
    let [g, x, mean, rstd] = [g, x, mean, rstd].map(SharedPointer::new);
    let dx = SharedPointer::new(dx);
    let over = std::ptr::eq(g.get(), dx.get());
    let row_of = |row: usize, sums: Option<(&mut [T], &mut [T])>| {
        let at = row % s.groups * n;
        // SAFETY: see above. Over the gradient, no other slice of it is used while `dx` is.
        unsafe {
            let (mean, rstd) = (*mean.get().add(row), *rstd.get().add(row));
            let (w, x) = (&w[at..at + n], from_raw_parts(x.get().add(row * n), n));
            let g = || from_raw_parts(g.get().add(row * n), n);
            // What is summed comes before anything is written.
            let (a, b, c) =
                if fixed { (0.0, T::ZERO, T::ZERO) } else { gradient_line(rstd.wide(), loops::weighted_sums(g(), x, w, mean), n) };
            if let Some((dw, db)) = sums {
                loops::add_gradients(g(), x, &mut dw[at..at + n], &mut db[at..at + n], mean, rstd);
            }
            let (dx, line) = (from_raw_parts_mut(dx.at(row * n), n), (T::narrow(a), b, c));
            match (fixed, over) {
                (true, false) => loops::product(g(), w, dx, rstd),
                (true, true) => loops::product_over(dx, w, rstd),
                (false, false) => loops::weighted_gradient(g(), x, w, dx, mean, line),
                (false, true) => loops::weighted_gradient_over(dx, x, w, mean, line),
            }
        }
    };
    let Some((dw, db)) = params else {
        each_row(s, |row| row_of(row, None));
        return;
    };
    let all = s.groups * n;
    let per = (TASK / n.max(1)).max(rows.div_ceil(TASKS)).max(SUMMED * s.groups).min(rows.max(1));
    let tasks = rows.div_ceil(per);
    let mut sums = vec![T::ZERO; tasks * 2 * all];
    let shared = SharedPointer::new(sums.as_mut_ptr());
    parallel_for(tasks, |t| {
        // SAFETY: task t alone has these sums.
        let (dw, db) = unsafe { (from_raw_parts_mut(shared.at(2 * t * all), all), from_raw_parts_mut(shared.at((2 * t + 1) * all), all)) };
        for row in t * per..rows.min((t + 1) * per) {
            row_of(row, Some((&mut *dw, &mut *db)));
        }
    });
    let to = [SharedPointer::new(dw), SharedPointer::new(db)];
    parallel_for(2, |which| {
        let mut total = vec![0.0; all];
        for t in 0..tasks {
            loops::add_to(&mut total, &sums[(2 * t + which) * all..][..all]);
        }
        for (i, v) in total.chunks_exact(s.inner).enumerate() {
            // SAFETY: see above.
            unsafe { *to[which].at(i) = T::narrow(v.iter().sum()) };
        }
    });
}
