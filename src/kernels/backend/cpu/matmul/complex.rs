//! Products of matrices of complex numbers: a (m x k) times b (k x n) is one product of real numbers, of m x 2k and 2k x 2n, where the first has
//! the parts of `a` as they lie in memory, and the second has two rows for each row of `b`: its parts, and those of `i` times it. The product
//! then has the parts of the result as they are to lie.

use super::algorithms::{DIRECT_COLUMNS, Product};
use super::{FloatProduct, Mat, MatrixProduct, direct, vector};
use crate::backend::cpu::common::blocks::scratch;
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::error::throw;
use crate::host::memory::alloc::Buffer;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::layout::{Complex, Complex32, Complex64};
use std::ops::Neg;

/// Multiply-adds below which copies cost more than a plain loop.
const DIRECT: usize = 512;
/// Rows of the result below which the second factor is read once for each, as it lies, because a copy of it costs more.
const FEW: usize = 4;
/// Elements of the smallest task.
const TASK: usize = 1 << 14;
/// A side of the blocks in which a matrix is copied across the order of its memory.
const BLOCK: usize = 32;

/// A matrix of real numbers, and the memory that it lies in.
struct Copied<T> {
    _memory: Buffer,
    mat: Mat<T>,
}

/// Calls `rows` for stretches of all rows.
fn in_stretches(rows: usize, columns: usize, parallel: bool, one: impl Fn(std::ops::Range<usize>) + Sync) {
    let per = if parallel { (TASK / columns.max(1)).max(1).next_multiple_of(BLOCK) } else { rows.max(1) };
    parallel_for(rows.div_ceil(per), |t| one(t * per..rows.min((t + 1) * per)));
}

/// The parts of `a`, in a copy with dense rows.
///
/// # Safety
/// `m` x `k` elements are readable.
unsafe fn dense_parts<T: FloatProduct>(m: usize, k: usize, a: Mat<Complex<T>>, parallel: bool) -> Copied<T> {
    let memory = scratch::<Complex<T>>(m * k).unwrap_or_else(|e| throw(e));
    let to = SharedPointer::new(memory.as_ptr().cast::<Complex<T>>());
    in_stretches(m, k, parallel, |rows| {
        for first in (0..k).step_by(BLOCK) {
            for i in rows.clone() {
                for p in first..k.min(first + BLOCK) {
                    // SAFETY: the caller's; each task has rows of its own.
                    unsafe { *to.at(i * k + p) = *a.at(i, p) };
                }
            }
        }
    });
    Copied { mat: Mat { ptr: to.get().cast_const().cast(), rs: 2 * k as isize, cs: 1 }, _memory: memory }
}

/// The second factor: 2k x 2n. It is dense along the dimension along which `b` is.
///
/// # Safety
/// `k` x `n` elements are readable.
unsafe fn turned<T: FloatProduct + Neg<Output = T>>(k: usize, n: usize, b: Mat<Complex<T>>, parallel: bool) -> Copied<T> {
    let memory = scratch::<T>(4 * k * n).unwrap_or_else(|e| throw(e));
    let to = SharedPointer::new(memory.as_ptr().cast::<Complex<T>>());
    let down = b.rs == 1 && b.cs != 1;
    let (rows, columns, b) = if down { (n, k, b.t()) } else { (k, n, b) };
    in_stretches(rows, columns, parallel, |stretch| {
        for i in stretch {
            // SAFETY: there is room for two rows of `columns` pairs for each row, and each task has rows of its own.
            let (one, two) = unsafe { std::slice::from_raw_parts_mut(to.at(2 * i * columns), 2 * columns) }.split_at_mut(columns);
            for (j, (one, two)) in one.iter_mut().zip(two).enumerate() {
                // SAFETY: the caller's.
                let z = unsafe { *b.at(i, j) };
                (*one, *two) = if down {
                    // Columns of the factor: what makes the real parts, and what makes the imaginary ones.
                    (Complex { re: z.re, im: -z.im }, Complex { re: z.im, im: z.re })
                } else {
                    (z, Complex { re: -z.im, im: z.re })
                };
            }
        }
    });
    let step = 2 * columns as isize;
    let mat = Mat { ptr: to.get().cast_const().cast(), rs: step, cs: 1 };
    Copied { mat: if down { mat.t() } else { mat }, _memory: memory }
}

/// # Safety
/// As for `MatrixProduct::run`.
unsafe fn product<T: FloatProduct + Neg<Output = T>>(p: &Product<Complex<T>>, out: *mut Complex<T>, parallel: bool)
where
    Complex<T>: Arithmetic,
{
    let ((m, n, k), [a, b]) = (p.sizes, p.factors);
    // SAFETY: the caller's promise is passed on; the copies hold what they are said to hold.
    unsafe {
        if m * n * k <= DIRECT && n <= DIRECT_COLUMNS {
            return direct(m, n, k, a, b, out);
        }
        if k == 0 {
            return std::slice::from_raw_parts_mut(out, m * n).fill(Complex::<T>::ZERO);
        }
        if n == 1 {
            return vector(m, k, a, b.ptr, b.rs, out, parallel);
        }
        if m < FEW {
            return (0..m).for_each(|i| vector(n, k, b.t(), a.at(i, 0), a.cs, out.add(i * n), parallel));
        }
        let copy;
        let left = if a.cs == 1 || k == 1 {
            Mat { ptr: a.ptr.cast::<T>(), rs: 2 * a.rs, cs: 1 }
        } else {
            copy = dense_parts(m, k, a, parallel);
            copy.mat
        };
        let right = turned(k, n, b, parallel);
        let real = Product { sizes: (m, 2 * n, 2 * k), factors: [left, right.mat] };
        T::run(T::plan(&real), &real, out.cast(), parallel);
    }
}

macro_rules! complex_product {
    ($($t:ty)*) => { $(
        impl MatrixProduct for $t {
            type Plan = ();

            fn plan(_p: &Product<$t>) {}

            unsafe fn run(_plan: (), p: &Product<$t>, out: *mut $t, parallel: bool) {
                // SAFETY: the caller's.
                unsafe { product(p, out, parallel) };
            }
        }
    )* };
}
complex_product!(Complex32 Complex64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::threads::set_num_threads;

    fn data(n: usize, seed: usize) -> Vec<Complex64> {
        let part = |i: usize| ((i * 7919 + seed * 104_729) % 1013) as f64 / 1013.0 - 0.5;
        (0..n).map(|i| Complex { re: part(2 * i), im: part(2 * i + 1) }).collect()
    }

    #[test]
    fn products_of_every_layout_agree_with_a_naive_loop_and_are_the_same_for_any_number_of_threads() {
        for (m, n, k) in
            [(1, 1, 1), (3, 17, 5), (0, 3, 2), (20, 30, 0), (1, 300, 70), (300, 1, 70), (2, 3, 4), (3, 65, 129), (33, 65, 129), (70, 64, 1)]
        {
            let (x, y) = (data(2 * m * k + 1, 1), data(2 * k * n + 1, 2));
            for (ra, ca) in [(k as isize, 1), (1, m as isize), (2 * k as isize, 2), (0, 1)] {
                for (rb, cb) in [(n as isize, 1), (1, k as isize), (2 * n as isize, 2), (1, 0)] {
                    let (a, b) = (Mat { ptr: x.as_ptr(), rs: ra, cs: ca }, Mat { ptr: y.as_ptr(), rs: rb, cs: cb });
                    let mut first: Option<Vec<Complex64>> = None;
                    for threads in [1, 3] {
                        set_num_threads(threads);
                        let mut got = vec![Complex { re: f64::NAN, im: 0.0 }; m * n];
                        // SAFETY: the buffers cover the sizes for all strides above.
                        unsafe { Complex64::product(m, n, k, a, b, got.as_mut_ptr(), true) };
                        for (i, g) in got.iter().enumerate() {
                            // SAFETY: as above.
                            let want: Complex64 = (0..k).map(|p| unsafe { *a.at(i / n, p) * *b.at(p, i % n) }).sum();
                            assert!((g - want).norm() < 1e-12 * (1.0 + k as f64), "{m}x{n}x{k}: {g} {want}");
                        }
                        assert_eq!(first.get_or_insert_with(|| got.clone()), &got, "{m}x{n}x{k} on {threads} threads");
                    }
                }
            }
        }
        set_num_threads(2);
    }
}
