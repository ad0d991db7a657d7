//! Solutions of triangular systems, by halves: small triangles for some columns at a time, and the rest as products.

use super::number::LinearNumber;
use super::update::{Destination, Source, Update, WIDTH};
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::{Isa, instance_of};

/// Rows of the largest triangle that is solved without products.
const SMALL: usize = 32;
/// Columns of the right side that one task solves.
const TASK: usize = 64;
/// Multiply-adds below which all is done by the calling thread.
const PARALLEL: usize = 1 << 19;

/// `b` becomes the solution `x` of `a x = b`, for triangular `a` of (n, n) and `b` of (n, columns).
#[derive(Debug, Clone, Copy)]
pub(super) struct Triangular<T> {
    pub n: usize,
    pub columns: usize,
    pub a: Source<T>,
    pub upper: bool,
    /// The diagonal counts as ones and is not read.
    pub unit: bool,
    pub b: Destination<T>,
}

impl<T: LinearNumber> Triangular<T> {
    /// Solves it, with several threads if it is large; the bits are the same for any number.
    ///
    /// # Safety
    /// All elements exist; those of `b` are written by nobody else and are not those of `a`, which nobody writes.
    pub unsafe fn solve(&self, parallel: bool) {
        if !parallel || self.n * self.n * self.columns < PARALLEL {
            // SAFETY: the caller's.
            return unsafe { self.halves() };
        }
        let (a, b) = (SharedPointer::new(self.a.mat.ptr), SharedPointer::new(self.b.ptr));
        let (rs, cs, conj, ld) = (self.a.mat.rs, self.a.mat.cs, self.a.conj, self.b.ld);
        let (n, columns, upper, unit) = (self.n, self.columns, self.upper, self.unit);
        parallel_for(columns.div_ceil(TASK), |t| {
            let mat = crate::backend::cpu::matmul::Mat { ptr: a.get(), rs, cs };
            let part = Triangular {
                n,
                columns: TASK.min(columns - t * TASK),
                a: Source { mat, conj },
                upper,
                unit,
                b: Destination { ptr: b.get(), ld }.from(0, t * TASK),
            };
            // SAFETY: the caller's; each task has columns of its own.
            unsafe { part.halves() };
        });
    }

    /// # Safety
    /// As for `solve`.
    unsafe fn halves(&self) {
        if self.n <= SMALL {
            return small(self);
        }
        let h = (self.n / 2).next_multiple_of(SMALL);
        let rest = self.n - h;
        let first = Triangular { n: h, ..*self };
        let last = Triangular { n: rest, a: self.a.from(h, h), b: self.b.from(h, 0), ..*self };
        // SAFETY: the caller's; both halves of `b` are disjoint.
        unsafe {
            if self.upper {
                last.halves();
                Update { sizes: (h, self.columns, rest), a: self.a.from(0, h), b: last.b.source(), c: first.b }.run(false);
                first.halves();
            } else {
                first.halves();
                Update { sizes: (rest, self.columns, h), a: self.a.from(h, 0), b: first.b.source(), c: last.b }.run(false);
                last.halves();
            }
        }
    }
}

#[inline(always)]
fn small_in<T: LinearNumber, I: Isa>(s: &Triangular<T>) {
    let n = s.n;
    for j in (0..s.columns).step_by(WIDTH) {
        let columns = WIDTH.min(s.columns - j);
        let mut x = [[T::ZERO; WIDTH]; SMALL];
        for (i, row) in x[..n].iter_mut().enumerate() {
            for (l, to) in row[..columns].iter_mut().enumerate() {
                // SAFETY: inside `b`, by the promise of `Triangular::solve`.
                *to = unsafe { s.b.get(i, j + l) };
            }
        }
        for step in 0..n {
            let i = if s.upper { n - 1 - step } else { step };
            let mut sum = x[i];
            for q in if s.upper { i + 1..n } else { 0..i } {
                // SAFETY: inside `a`.
                let by = unsafe { s.a.get(i, q) }.negated();
                for l in 0..WIDTH {
                    sum[l] = if I::FMA { by.mul_add::<true>(x[q][l], sum[l]) } else { by.mul_add::<false>(x[q][l], sum[l]) };
                }
            }
            if !s.unit {
                // SAFETY: inside `a`.
                let d = unsafe { s.a.get(i, i) };
                for v in &mut sum {
                    *v = v.over(d);
                }
            }
            x[i] = sum;
            for (l, v) in sum[..columns].iter().enumerate() {
                // SAFETY: inside `b`, which is written here alone.
                unsafe { *s.b.at(i, j + l) = *v };
            }
        }
    }
}

instance_of!(fn small<T: LinearNumber> = small_in(s: &Triangular<T>));
