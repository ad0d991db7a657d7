//! Products that are subtracted from a matrix: what factorisations by blocks spend their time with.

use super::number::LinearNumber;
use crate::backend::cpu::matmul::Mat;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::{Isa, instance_of};

/// Columns that are computed together.
pub(super) const WIDTH: usize = 16;
/// Rows that are computed together.
const ROWS: usize = 4;
/// Products between two passes over the result.
const DEPTH: usize = 64;
/// A side of the part of the result that one task computes.
const SIDE: usize = 128;
/// Multiply-adds below which all is done by the calling thread.
const PARALLEL: usize = 1 << 20;

/// A matrix that is read, or its conjugate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<T> {
    pub mat: Mat<T>,
    pub conj: bool,
}

impl<T: LinearNumber> Source<T> {
    pub fn plain(ptr: *const T, rs: usize, cs: usize) -> Self {
        Source { mat: Mat { ptr, rs: rs as isize, cs: cs as isize }, conj: false }
    }

    pub fn conjugated(self) -> Self {
        Source { conj: !self.conj, ..self }
    }

    pub fn t(self) -> Self {
        Source { mat: self.mat.t(), ..self }
    }

    /// The part that begins at a row and a column.
    #[inline(always)]
    pub fn from(self, i: usize, j: usize) -> Self {
        Source { mat: Mat { ptr: self.mat.at(i, j), ..self.mat }, ..self }
    }

    /// # Safety
    /// The element exists and nobody writes it now.
    #[inline(always)]
    pub unsafe fn get(&self, i: usize, j: usize) -> T {
        // SAFETY: the caller's.
        let v = unsafe { *self.mat.at(i, j) };
        if self.conj { v.conj() } else { v }
    }
}

/// A matrix that is written, with dense rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination<T> {
    pub ptr: *mut T,
    /// Elements from one row to the next.
    pub ld: usize,
}

impl<T: LinearNumber> Destination<T> {
    #[inline(always)]
    pub fn at(&self, i: usize, j: usize) -> *mut T {
        self.ptr.wrapping_add(i * self.ld + j)
    }

    #[inline(always)]
    pub fn from(self, i: usize, j: usize) -> Self {
        Destination { ptr: self.at(i, j), ..self }
    }

    pub fn source(self) -> Source<T> {
        Source::plain(self.ptr, self.ld, 1)
    }

    /// # Safety
    /// The element exists and nobody writes it now.
    #[inline(always)]
    pub unsafe fn get(&self, i: usize, j: usize) -> T {
        // SAFETY: the caller's.
        unsafe { *self.at(i, j) }
    }
}

/// `c -= a b` for `a` of (m, k) and `b` of (k, n).
#[derive(Debug, Clone, Copy)]
pub(super) struct Update<T> {
    pub sizes: (usize, usize, usize),
    pub a: Source<T>,
    pub b: Source<T>,
    pub c: Destination<T>,
}

impl<T: LinearNumber> Update<T> {
    /// Computes it, with several threads if it is large; the bits are the same for any number.
    ///
    /// # Safety
    /// All elements exist; those of `c` are written by nobody else and are not those of `a` and `b`, which nobody writes.
    pub unsafe fn run(&self, parallel: bool) {
        let (m, n, k) = self.sizes;
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        if !parallel || m * n * k < PARALLEL {
            return subtract(self);
        }
        let across = n.div_ceil(SIDE);
        let (a, b) = (SharedPointer::new(self.a.mat.ptr), SharedPointer::new(self.b.mat.ptr));
        let c = SharedPointer::new(self.c.ptr);
        let (a_of, b_of, ld) = ((self.a.mat.rs, self.a.mat.cs, self.a.conj), (self.b.mat.rs, self.b.mat.cs, self.b.conj), self.c.ld);
        parallel_for(m.div_ceil(SIDE) * across, |t| {
            let (i, j) = (t / across * SIDE, t % across * SIDE);
            let source = |p: *const T, (rs, cs, conj): (isize, isize, bool)| Source { mat: Mat { ptr: p, rs, cs }, conj };
            subtract(&Update {
                sizes: (SIDE.min(m - i), SIDE.min(n - j), k),
                a: source(a.get(), a_of).from(i, 0),
                b: source(b.get(), b_of).from(0, j),
                c: Destination { ptr: c.get(), ld }.from(i, j),
            });
        });
    }
}

#[inline(always)]
fn subtract_in<T: LinearNumber, I: Isa>(u: &Update<T>) {
    let (m, n, k) = u.sizes;
    let mut strip = [[T::ZERO; WIDTH]; DEPTH];
    for j in (0..n).step_by(WIDTH) {
        let columns = WIDTH.min(n - j);
        for p in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - p);
            for (q, row) in strip[..depth].iter_mut().enumerate() {
                for (l, to) in row[..columns].iter_mut().enumerate() {
                    // SAFETY: inside `b`, by the promise of `Update::run`.
                    *to = unsafe { u.b.get(p + q, j + l) };
                }
            }
            for i in (0..m).step_by(ROWS) {
                let rows = ROWS.min(m - i);
                let mut sums = [[T::ZERO; WIDTH]; ROWS];
                for (q, b) in strip[..depth].iter().enumerate() {
                    for (r, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: inside `a`; rows beyond it repeat its last one, and are dropped.
                        let x = unsafe { u.a.get(i + r.min(rows - 1), p + q) };
                        for l in 0..WIDTH {
                            sum[l] = if I::FMA { x.mul_add::<true>(b[l], sum[l]) } else { x.mul_add::<false>(b[l], sum[l]) };
                        }
                    }
                }
                for (r, sum) in sums[..rows].iter().enumerate() {
                    let to = u.c.at(i + r, j);
                    for (l, s) in sum[..columns].iter().enumerate() {
                        // SAFETY: inside `c`, which is written here alone.
                        unsafe { *to.add(l) = (*to.add(l)).minus(*s) };
                    }
                }
            }
        }
    }
}

instance_of!(fn subtract<T: LinearNumber> = subtract_in(u: &Update<T>));

#[inline(always)]
fn sum_in<T: LinearNumber, I: Isa, const CONJ: bool>(a: &[T], b: &[T], made: &mut T) {
    let mut sums = [T::ZERO; WIDTH];
    let (whole, rest) = (a.chunks_exact(WIDTH), a.chunks_exact(WIDTH).remainder());
    for (x, y) in whole.zip(b.chunks_exact(WIDTH)) {
        for l in 0..WIDTH {
            let x = if CONJ { x[l].conj() } else { x[l] };
            sums[l] = if I::FMA { x.mul_add::<true>(y[l], sums[l]) } else { x.mul_add::<false>(y[l], sums[l]) };
        }
    }
    let mut sum = T::ZERO;
    for (x, y) in rest.iter().zip(&b[a.len() - rest.len()..]) {
        let x = if CONJ { x.conj() } else { *x };
        sum = x.mul_add::<false>(*y, sum);
    }
    *made = sums.iter().fold(sum, |s, v| s.plus(*v));
}

#[inline(always)]
fn dot_in<T: LinearNumber, I: Isa>(a: &[T], b: &[T], made: &mut T) {
    sum_in::<T, I, true>(a, b, made);
}

#[inline(always)]
fn plain_dot_in<T: LinearNumber, I: Isa>(a: &[T], b: &[T], made: &mut T) {
    sum_in::<T, I, false>(a, b, made);
}

instance_of!(fn dot_to<T: LinearNumber> = dot_in(a: &[T], b: &[T], made: &mut T));
instance_of!(fn plain_dot_to<T: LinearNumber> = plain_dot_in(a: &[T], b: &[T], made: &mut T));

/// The sum of `conj(a) * b`.
pub(super) fn dot<T: LinearNumber>(a: &[T], b: &[T]) -> T {
    let mut made = T::ZERO;
    dot_to(a, b, &mut made);
    made
}

/// The sum of `a * b`.
pub(super) fn plain_dot<T: LinearNumber>(a: &[T], b: &[T]) -> T {
    let mut made = T::ZERO;
    plain_dot_to(a, b, &mut made);
    made
}

#[inline(always)]
fn add_in<T: LinearNumber, I: Isa>(y: &mut [T], by: T, x: &[T]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = if I::FMA { by.mul_add::<true>(*x, *y) } else { by.mul_add::<false>(*x, *y) };
    }
}

instance_of!(
    /// `y += by * x`.
    fn add_scaled<T: LinearNumber> = add_in(y: &mut [T], by: T, x: &[T])
);
