//! Columns: the elements at one place of all rows. A mean is of the columns of one channel.

use super::loops::{self, COLUMNS};
use super::{Affine, Applied, Moments, NormElement, Stats, TASK, gradient_line};
use crate::call::NormShape;
use crate::host::threads::{SharedPointer, parallel_for};
use std::slice::{from_raw_parts, from_raw_parts_mut};

// SAFETY, of every function here: the caller's promise of `super::forward`. Each task has rows, or columns of some rows, of its own.

/// The sums of two values over the elements of each channel. `f` adds those of some columns (from the element `at` on, `len` elements from
/// the first one to the last) to slices.
fn summed(s: &NormShape, f: impl Fn(usize, usize, std::ops::Range<usize>, &mut [f64], &mut [f64]) + Sync) -> Vec<(f64, f64)> {
    let width = s.groups * s.inner;
    let rows = (TASK / width.max(1)).max(64);
    let (blocks, strips) = (s.outer.div_ceil(rows), width.div_ceil(COLUMNS));
    let mut all = vec![0.0; 2 * blocks * width];
    let to = SharedPointer::new(all.as_mut_ptr());
    parallel_for(blocks * strips, |t| {
        let (block, strip) = (t / strips, t % strips);
        let columns = strip * COLUMNS..width.min((strip + 1) * COLUMNS);
        let (first, many) = (block * rows, rows.min(s.outer - block * rows));
        // SAFETY: each task has its own columns of its block.
        let (a, b) = unsafe {
            let a = to.at(2 * block * width + columns.start);
            (from_raw_parts_mut(a, columns.len()), from_raw_parts_mut(a.add(width), columns.len()))
        };
        f(first * width + columns.start, (many - 1) * width + columns.len(), columns, a, b);
    });
    let mut sums = vec![(0.0, 0.0); s.groups];
    for (which, row) in all.chunks_exact(width.max(1)).enumerate() {
        for (sum, of) in sums.iter_mut().zip(row.chunks_exact(s.inner)) {
            let v: f64 = of.iter().sum();
            if which % 2 == 0 { sum.0 += v } else { sum.1 += v }
        }
    }
    sums
}

/// Calls `f` with the first element of each row, several in one task.
fn each_row(s: &NormShape, f: impl Fn(usize) + Sync) {
    let width = s.groups * s.inner;
    let per = (TASK / width.max(1)).max(1);
    parallel_for(s.outer.div_ceil(per), |t| (t * per..s.outer.min((t + 1) * per)).for_each(|row| f(row * width)));
}

/// A value for each column, from one for each channel.
fn spread<T: Copy, U>(s: &NormShape, of: &[U], f: impl Fn(&U) -> T) -> Vec<T> {
    of.iter().flat_map(|v| std::iter::repeat_n(f(v), s.inner)).collect()
}

unsafe fn put<T: NormElement>(s: &NormShape, applied: &[Applied<T>], x: *const T, affine: Affine<T>, y: *mut T) {
    let width = s.groups * s.inner;
    // SAFETY: see above.
    let lines: Vec<(T, T)> = applied.iter().enumerate().map(|(c, a)| a.line(unsafe { affine.at(c) })).collect();
    let (mean, scale, shift) = (spread(s, applied, |a| a.mean), spread(s, &lines, |l| l.0), spread(s, &lines, |l| l.1));
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    each_row(s, |at| {
        // SAFETY: see above.
        unsafe {
            let (x, y) = (from_raw_parts(x.get().add(at), width), from_raw_parts_mut(y.at(at), width));
            loops::column_scaled(x, y, &mean, &scale, &shift);
        }
    });
}

pub(super) unsafe fn forward<T: NormElement>(s: &NormShape, eps: f64, x: *const T, affine: Affine<T>, y: *mut T, to: Stats<T>) {
    let from = SharedPointer::new(x);
    let all = |shifts: &[T]| -> Vec<Moments> {
        let columns = spread(s, shifts, |v| *v);
        let sums = summed(s, |at, len, of, a, b| {
            // SAFETY: see above.
            let x = unsafe { from_raw_parts(from.get().add(at), len) };
            loops::column_sums(x, s.groups * s.inner, &columns[of], a, b);
        });
        sums.into_iter().zip(shifts).map(|(sums, shift)| Moments::new(*shift, sums, s.count())).collect()
    };
    // SAFETY: see above; there is an element.
    let mut found = all(&(0..s.groups).map(|c| unsafe { (*x.add(c * s.inner)).coarse() }).collect::<Vec<T>>());
    if found.iter().any(|m| m.is_poor) {
        found = all(&found.iter().map(|m| T::narrow(m.mean)).collect::<Vec<T>>());
    }
    // SAFETY: see above.
    unsafe {
        let applied: Vec<Applied<T>> = found.iter().enumerate().map(|(c, m)| m.put(&to, c, eps)).collect();
        put(s, &applied, x, affine, y);
    }
}

pub(super) unsafe fn apply<T: NormElement>(s: &NormShape, eps: f64, [x, mean, var]: [*const T; 3], affine: Affine<T>, y: *mut T) {
    // SAFETY: see above.
    unsafe {
        let applied: Vec<Applied<T>> = (0..s.groups).map(|c| Applied::given(*mean.add(c), *var.add(c), eps)).collect();
        put(s, &applied, x, affine, y);
    }
}

pub(super) unsafe fn backward<T: NormElement>(
    s: &NormShape,
    fixed: bool,
    [g, x, mean, rstd]: [*const T; 4],
    weight: *const T,
    dx: *mut T,
    params: Option<(*mut T, *mut T)>,
) {
    let width = s.groups * s.inner;
    let affine = Affine { weight, bias: std::ptr::null() };
    // SAFETY: see above.
    let (means, rstd) = unsafe { (from_raw_parts(mean, s.groups), from_raw_parts(rstd, s.groups)) };
    let mean = spread(s, means, |m| *m);
    let (g, x, dx) = (SharedPointer::new(g), SharedPointer::new(x), SharedPointer::new(dx));
    let sums = if fixed && params.is_none() {
        vec![(0.0, 0.0); s.groups]
    } else {
        summed(s, |at, len, of, a, b| {
            // SAFETY: see above.
            let (g, x) = unsafe { (from_raw_parts(g.get().add(at), len), from_raw_parts(x.get().add(at), len)) };
            loops::column_gradient_sums(g, x, width, &mean[of], a, b);
        })
    };
    let lines: Vec<(T, T, T)> = sums
        .iter()
        .zip(rstd)
        .enumerate()
        .map(|(c, (sums, rstd))| {
            // SAFETY: see above.
            let w = unsafe { affine.at(c).0 };
            let (a, b, c) = gradient_line(rstd.wide(), (w * sums.0, w * sums.1), s.count());
            (T::narrow(a * w), b, c)
        })
        .collect();
    let (a, b, c) = (spread(s, &lines, |l| l.0), spread(s, &lines, |l| l.1), spread(s, &lines, |l| l.2));
    let none = vec![T::ZERO; if fixed { width } else { 0 }];
    let over = std::ptr::eq(g.get(), dx.get());
    each_row(s, |at| {
        // SAFETY: see above. Over the gradient, no other slice of it is made.
        unsafe {
            let (x, dx) = (from_raw_parts(x.get().add(at), width), from_raw_parts_mut(dx.at(at), width));
            let g = || from_raw_parts(g.get().add(at), width);
            match (fixed, over) {
                (true, false) => loops::column_scaled(g(), dx, &none, &a, &none),
                (true, true) => loops::column_scaled_over(dx, &none, &a, &none),
                (false, false) => loops::column_gradient(g(), x, dx, &mean, &a, &b, &c),
                (false, true) => loops::column_gradient_over(dx, x, &mean, &a, &b, &c),
            }
        }
    });
    let Some((dw, db)) = params else { return };
    for (i, ((sg, sx), rstd)) in sums.iter().zip(rstd).enumerate() {
        // SAFETY: see above.
        unsafe {
            *dw.add(i) = T::narrow(sx * rstd.wide());
            *db.add(i) = T::narrow(*sg);
        }
    }
}
