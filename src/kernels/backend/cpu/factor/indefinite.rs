//! Factors `L D L^T` of symmetric matrices and `L D L^H` of Hermitian ones, where `D` has blocks of one or two rows (Bunch and Kaufman 1977, "Some
//! stable methods for calculating inertia and solving symmetric linear systems"). Factors and pivots are LAPACK's, of the lower triangle.

use super::number::LinearNumber;
use super::update::{Destination, Source, add_scaled};
use super::{Job, copy};
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::host::interrupt;

/// A matrix (n, n) of which the lower triangle becomes the factors.
struct Factors<T> {
    n: usize,
    a: Destination<T>,
    hermitian: bool,
}

impl<T: LinearNumber> Factors<T> {
    fn conj(&self, v: T) -> T {
        if self.hermitian { v.conj() } else { v }
    }

    /// A magnitude to choose pivots by; that of a diagonal element.
    fn size(&self, v: T) -> T::Real {
        if self.hermitian { v.real().magnitude() } else { v.size() }
    }

    /// # Safety
    /// As for `factor`, of all functions here.
    unsafe fn get(&self, i: usize, j: usize) -> T {
        // SAFETY: the caller's.
        unsafe { self.a.get(i, j) }
    }

    unsafe fn set(&self, i: usize, j: usize, v: T) {
        // SAFETY: the caller's.
        unsafe { *self.a.at(i, j) = v }
    }

    unsafe fn swap(&self, (i, j): (usize, usize), (p, q): (usize, usize)) {
        // SAFETY: the caller's.
        unsafe {
            let (x, y) = (self.get(i, j), self.get(p, q));
            self.set(i, j, y);
            self.set(p, q, x);
        }
    }

    /// The row to exchange, and the rows of the block, for the block that begins at row `k`. None: the column is 0, or nan.
    unsafe fn pivot(&self, k: usize) -> Option<(usize, usize)> {
        let zero = T::ZERO.real();
        let two = T::ONE.real().plus(T::ONE.real());
        let seventeen = (0..4).fold(T::ONE.real(), |v, _| v.times(two)).plus(T::ONE.real());
        let alpha = T::ONE.real().plus(seventeen.sqrt()).over(two.times(two).times(two));
        // SAFETY: the caller's.
        unsafe {
            let own = self.size(self.get(k, k));
            let (mut row, mut most) = (k, zero);
            for i in k + 1..self.n {
                let size = self.get(i, k).size();
                if size > most {
                    (row, most) = (i, size);
                }
            }
            if own == zero && most == zero || own.is_nan() {
                return None;
            }
            if row == k || own >= alpha.times(most) {
                return Some((k, 1));
            }
            let mut beside = zero;
            for j in (k..row).map(|j| (row, j)).chain((row + 1..self.n).map(|i| (i, row))) {
                let size = self.get(j.0, j.1).size();
                beside = if size > beside { size } else { beside };
            }
            Some(if own >= alpha.times(most).times(most.over(beside)) {
                (k, 1)
            } else if self.size(self.get(row, row)) >= alpha.times(beside) {
                (row, 1)
            } else {
                (row, 2)
            })
        }
    }

    /// Exchanges the rows and columns `k` and `p`, which is below, in what is left of the matrix.
    unsafe fn exchange(&self, k: usize, p: usize) {
        // SAFETY: the caller's.
        unsafe {
            (p + 1..self.n).for_each(|i| self.swap((i, k), (i, p)));
            for j in k + 1..p {
                let (x, y) = (self.get(j, k), self.get(p, j));
                self.set(j, k, self.conj(y));
                self.set(p, j, self.conj(x));
            }
            self.set(p, k, self.conj(self.get(p, k)));
            self.swap((k, k), (p, p));
        }
    }

    /// Fills the pivots in. Returns 0, or the first block that is 0, counted from 1.
    ///
    /// # Safety
    /// All elements exist, and nobody else reads or writes them.
    unsafe fn factor(&self, pivots: &mut [i32]) -> i32 {
        let (n, mut k, mut info) = (self.n, 0, 0);
        while k < n {
            interrupt::check();
            // SAFETY: the caller's.
            unsafe {
                if self.hermitian {
                    self.set(k, k, T::of_real(self.get(k, k).real()));
                }
                let Some((p, rows)) = self.pivot(k) else {
                    info = if info == 0 { k as i32 + 1 } else { info };
                    pivots[k] = k as i32 + 1;
                    k += 1;
                    continue;
                };
                let last = k + rows - 1;
                if p != last {
                    self.exchange(last, p);
                    if rows == 2 {
                        self.swap((k + 1, k), (p, k));
                    }
                }
                self.real_diagonal(last);
                if rows == 1 {
                    self.one(k);
                    pivots[k] = p as i32 + 1;
                } else {
                    self.two(k);
                    (pivots[k], pivots[k + 1]) = (-(p as i32 + 1), -(p as i32 + 1));
                }
                k += rows;
            }
        }
        info
    }

    /// Subtracts the block of one row, and divides its column.
    unsafe fn one(&self, k: usize) {
        // SAFETY: the caller's.
        unsafe {
            let d = self.get(k, k);
            let column: Vec<T> = (k + 1..self.n).map(|i| self.get(i, k)).collect();
            let other: Vec<T> = column.iter().map(|v| self.conj(*v)).collect();
            for (i, x) in column.iter().enumerate() {
                let by = x.over(d);
                let row = std::slice::from_raw_parts_mut(self.a.at(k + 1 + i, k + 1), i + 1);
                add_scaled(row, by.negated(), &other[..=i]);
                self.real_diagonal(k + 1 + i);
                self.set(k + 1 + i, k, by);
            }
        }
    }

    /// As `one`, of two rows.
    unsafe fn two(&self, k: usize) {
        // SAFETY: the caller's.
        unsafe {
            let below = self.get(k + 1, k);
            let (first, last) = (self.get(k, k).over(self.conj(below)), self.get(k + 1, k + 1).over(below));
            let t = T::ONE.over(first.times(last).minus(T::ONE));
            let columns: Vec<(T, T)> = (k + 2..self.n).map(|i| (self.get(i, k), self.get(i, k + 1))).collect();
            // Each pair of elements times the inverse of the block.
            let (left, right) = (t.over(self.conj(below)), t.over(below));
            let inverse = |(x, y): &(T, T)| (left.times(last.times(*x).minus(*y)), right.times(first.times(*y).minus(*x)));
            let by: Vec<(T, T)> = columns.iter().map(inverse).collect();
            for (i, (p, q)) in by.iter().enumerate() {
                for (j, (x, y)) in columns[..=i].iter().enumerate() {
                    let to = self.get(k + 2 + i, k + 2 + j);
                    let sum = p.times(self.conj(*x)).plus(q.times(self.conj(*y)));
                    self.set(k + 2 + i, k + 2 + j, to.minus(sum));
                }
                self.real_diagonal(k + 2 + i);
                self.set(k + 2 + i, k, *p);
                self.set(k + 2 + i, k + 1, *q);
            }
        }
    }

    unsafe fn real_diagonal(&self, i: usize) {
        if self.hermitian {
            // SAFETY: the caller's.
            unsafe { self.set(i, i, T::of_real(self.get(i, i).real())) }
        }
    }
}

/// The block that begins at row `k`: the row that was exchanged with its last one, and its rows. Pivots that no factorisation makes are none.
fn block(pivots: &[i32], k: usize) -> (usize, usize) {
    let rows = if pivots[k] < 0 && k + 1 < pivots.len() { 2 } else { 1 };
    let row = pivots[k].unsigned_abs() as usize;
    (if (1..=pivots.len()).contains(&row) { row - 1 } else { k + rows - 1 }, rows)
}

/// `b` (n, columns) becomes the solution of `A x = b`.
///
/// # Safety
/// All elements exist; nobody writes those of `a`, nor reads or writes those of `b`.
unsafe fn solve<T: LinearNumber>((n, columns): (usize, usize), a: Source<T>, pivots: &[i32], b: Destination<T>, hermitian: bool) {
    let conj = |v: T| if hermitian { v.conj() } else { v };
    // SAFETY: the caller's; two rows are disjoint.
    unsafe {
        let row = |i: usize| std::slice::from_raw_parts_mut(b.at(i, 0), columns);
        let exchange = |i: usize, p: usize| {
            if i != p {
                row(i).swap_with_slice(row(p));
            }
        };
        let mut starts = Vec::with_capacity(n);
        let mut k = 0;
        while k < n {
            let (p, rows) = block(pivots, k);
            starts.push(k);
            let (last, next) = (k + rows - 1, k + rows);
            exchange(last, p);
            for i in next..n {
                (k..next).for_each(|j| add_scaled(row(i), a.get(i, j).negated(), row(j)));
            }
            if rows == 1 {
                let d = a.get(k, k);
                row(k).iter_mut().for_each(|v| *v = v.over(d));
            } else {
                let below = a.get(last, k);
                let (p, q) = (a.get(k, k).over(conj(below)), a.get(last, last).over(below));
                let d = p.times(q).minus(T::ONE);
                for (x, y) in row(k).iter_mut().zip(row(last)) {
                    let (u, v) = (x.over(conj(below)), y.over(below));
                    (*x, *y) = (q.times(u).minus(v).over(d), p.times(v).minus(u).over(d));
                }
            }
            k = next;
        }
        for k in starts.into_iter().rev() {
            let (p, rows) = block(pivots, k);
            let next = k + rows;
            for j in k..next {
                (next..n).for_each(|i| add_scaled(row(j), conj(a.get(i, j)).negated(), row(i)));
            }
            exchange(next - 1, p);
        }
    }
}

impl<T: LinearNumber> Job<'_, T> {
    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn ldl(&self, hermitian: bool) {
        let n = self.sizes.1;
        let (a, out, pivots, info) = (&self.ins[0], self.dense::<T>(0, 2), self.dense::<i32>(1, 1), self.dense::<i32>(2, 0));
        self.each(n * n * n / 3, |b, _| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let to = Destination { ptr: out.get(b), ld: n };
                copy((n, n), a.get(b), to, |i| i);
                *info.get(b) = Factors { n, a: to, hermitian }.factor(pivots.slice(b));
                for i in 0..n {
                    (i + 1..n).for_each(|j| *to.at(i, j) = T::ZERO);
                }
            }
        });
    }

    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn ldl_solve(&self, hermitian: bool) {
        let (_, n, columns) = self.sizes;
        let (factors, from, out) = (&self.ins[0], &self.ins[1], self.dense::<T>(0, 2));
        let Some(pivots) = &self.pivots_in else { return };
        self.each(n * n * columns, |b, _| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let to = Destination { ptr: out.get(b), ld: columns };
                copy((n, columns), from.get(b), to, |i| i);
                solve((n, columns), factors.get(b), &pivots.get(b, n), to, hermitian);
            }
        });
    }
}
