//! QR factors by Householder's reflections. Matrices are transposed here, so that their columns are dense rows. Reflections are those of LAPACK:
//! the product of `1 - tau v v^H`, where `v` begins with 1.

use super::number::LinearNumber;
use super::update::{Destination, Source, Update, add_scaled, dot};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Reflections that are applied together.
const BLOCK: usize = 32;
/// Columns from which on reflections are applied together.
const LARGE: usize = 64;

/// Room for the reflections of a block: themselves, their triangle, and products with them.
pub(super) struct Workspace<T> {
    v: Vec<T>,
    t: Vec<T>,
    w: Vec<T>,
    x: Vec<T>,
}

impl<T: LinearNumber> Workspace<T> {
    pub fn new(m: usize, n: usize) -> Self {
        use crate::host::memory::reserve::filled;
        let large = if n > LARGE { 1 } else { 0 };
        Workspace {
            v: filled(T::ZERO, large * BLOCK * m),
            t: filled(T::ZERO, large * BLOCK * BLOCK),
            w: filled(T::ZERO, large * BLOCK * n.max(m)),
            x: filled(T::ZERO, large * BLOCK * n.max(m)),
        }
    }
}

/// The rows of a transposed matrix: column `j` of it is the row `j`.
///
/// # Safety
/// The elements exist, and nobody else reads or writes those of this row.
unsafe fn row<'a, T: LinearNumber>(a: Destination<T>, j: usize, from: usize, to: usize) -> &'a mut [T] {
    // SAFETY: the caller's.
    unsafe { from_raw_parts_mut(a.at(j, from), to - from) }
}

/// Makes `x` its reflection's vector, whose first element is the reflected one, and returns the reflection's factor.
pub(super) fn reflection<T: LinearNumber>(x: &mut [T]) -> T {
    let Some((alpha, rest)) = x.split_first_mut() else { return T::ZERO };
    // Scaled, so that squares neither overflow nor vanish.
    let most = rest.iter().fold(T::ZERO.real(), |m, v| if v.magnitude() > m || v.is_nan() { v.magnitude() } else { m });
    let imaginary = alpha.minus(T::of_real(alpha.real()));
    if most == T::ZERO.real() && imaginary == T::ZERO {
        return T::ZERO;
    }
    let own = alpha.magnitude();
    let scale = if own > most { own } else { most };
    let part = |v: T| v.over(T::of_real(scale));
    let sum = rest.iter().map(|v| part(*v)).fold(T::ZERO, |s, v| s.plus(v.conj().times(v)));
    let first = part(*alpha);
    let norm = sum.plus(first.conj().times(first)).real().sqrt();
    let norm = T::of_real(norm).times(T::of_real(scale)).real();
    let beta = if alpha.real() < T::ZERO.real() { norm } else { norm.negated() };
    let beta_t = T::of_real(beta);
    let tau = beta_t.minus(*alpha).over(beta_t);
    let by = alpha.minus(beta_t);
    rest.iter_mut().for_each(|v| *v = v.over(by));
    *alpha = beta_t;
    tau
}

/// `c -= by * (v^H c) v`, where the first element of `v` counts as 1.
fn reflect<T: LinearNumber>(c: &mut [T], v: &[T], by: T) {
    let ([first, rest @ ..], [_, tail @ ..]) = (c, v) else { return };
    let w = by.times(first.plus(dot(tail, rest))).negated();
    *first = first.plus(w);
    add_scaled(rest, w, tail);
}

/// Reflections of the transposed `a` (n, m): afterwards `R` on and above the diagonal, and below it the vectors. `tau`: as many factors as the
/// smaller size.
///
/// # Safety
/// All elements exist, and nobody else reads or writes them.
pub(super) unsafe fn factor<T: LinearNumber>(
    (m, n): (usize, usize),
    a: Destination<T>,
    tau: &mut [T],
    room: &mut Workspace<T>,
    parallel: bool,
) {
    let least = m.min(n);
    let together = if n > LARGE { BLOCK } else { least.max(1) };
    for first in (0..least).step_by(together) {
        let count = together.min(least - first);
        for j in first..first + count {
            // SAFETY: the caller's; a row and those after it are disjoint.
            unsafe {
                tau[j] = reflection(row(a, j, j, m));
                let v = from_raw_parts(a.at(j, j), m - j);
                for c in j + 1..first + count {
                    reflect(row(a, c, j, m), v, tau[j].conj());
                }
            }
        }
        let next = first + count;
        if next < n {
            // SAFETY: the caller's; the rows from `next` on are none of the block's.
            unsafe {
                if together == least {
                    for j in first..next {
                        let v = from_raw_parts(a.at(j, j), m - j);
                        for c in next..n {
                            reflect(row(a, c, j, m), v, tau[j].conj());
                        }
                    }
                } else {
                    let block = Block { a, first, count, m };
                    block.prepare(tau, room);
                    block.apply(a.from(next, first), n - next, true, room, parallel);
                }
            }
        }
    }
}

/// The product of the reflections, or its adjoint, with a matrix (m, columns), which is transposed here and overwritten.
///
/// # Safety
/// All elements exist; nobody else writes them, nor reads those of `c`, which are none of `a`.
pub(super) unsafe fn reflect_all<T: LinearNumber>(
    (m, columns): (usize, usize),
    a: Destination<T>,
    tau: &[T],
    c: Destination<T>,
    adjoint: bool,
) {
    let one = |i: usize| {
        let by = if adjoint { tau[i].conj() } else { tau[i] };
        // SAFETY: the caller's.
        unsafe {
            let v = from_raw_parts(a.at(i, i), m - i);
            (0..columns).for_each(|k| reflect(row(c, k, i, m), v, by));
        }
    };
    // The adjoint of a product has its factors the other way round.
    if adjoint { (0..tau.len()).for_each(one) } else { (0..tau.len()).rev().for_each(one) }
}

/// The first `columns` columns of the product of the reflections, transposed, into `q` (columns, m). At most as many reflections as columns.
///
/// # Safety
/// All elements exist; nobody else writes them, nor reads those of `q`.
pub(super) unsafe fn form<T: LinearNumber>(
    m: usize,
    columns: usize,
    a: Destination<T>,
    tau: &[T],
    q: Destination<T>,
    room: &mut Workspace<T>,
    parallel: bool,
) {
    for c in 0..columns {
        // SAFETY: the caller's.
        let to = unsafe { row(q, c, 0, m) };
        to.fill(T::ZERO);
        to[c] = T::ONE;
    }
    let k = tau.len();
    let together = if columns > LARGE && !room.v.is_empty() { BLOCK } else { k.max(1) };
    for first in (0..k).step_by(together).rev() {
        let count = together.min(k - first);
        // SAFETY: the caller's; `a` and `q` are disjoint.
        unsafe {
            if together == k {
                for j in (first..first + count).rev() {
                    let v = from_raw_parts(a.at(j, j), m - j);
                    for c in j..columns {
                        reflect(row(q, c, j, m), v, tau[j]);
                    }
                }
            } else {
                let block = Block { a, first, count, m };
                block.prepare(tau, room);
                block.apply(q.from(first, first), columns - first, false, room, parallel);
            }
        }
    }
}

/// Reflections `first..first + count` of a transposed matrix with rows of `m`: together `1 - V T V^H` (Schreiber and Van Loan 1989).
struct Block<T> {
    a: Destination<T>,
    first: usize,
    count: usize,
    m: usize,
}

impl<T: LinearNumber> Block<T> {
    /// Fills `V` and `T` in.
    ///
    /// # Safety
    /// As for `factor`.
    unsafe fn prepare(&self, tau: &[T], room: &mut Workspace<T>) {
        let (depth, tau) = (self.m - self.first, &tau[self.first..]);
        for i in 0..self.count {
            let to = &mut room.v[i * depth..(i + 1) * depth];
            to[..i].fill(T::ZERO);
            to[i] = T::ONE;
            // SAFETY: the caller's.
            to[i + 1..].copy_from_slice(unsafe { from_raw_parts(self.a.at(self.first + i, self.first + i + 1), depth - i - 1) });
        }
        for i in 0..self.count {
            let (before, own) = room.v.split_at(i * depth);
            let mut w = [T::ZERO; BLOCK];
            for (j, w) in w[..i].iter_mut().enumerate() {
                *w = dot(&before[j * depth + i..(j + 1) * depth], &own[i..depth]);
            }
            for r in 0..i {
                let sum = (r..i).fold(T::ZERO, |s, j| s.plus(room.t[r * BLOCK + j].times(w[j])));
                room.t[r * BLOCK + i] = sum.times(tau[i]).negated();
            }
            room.t[i * BLOCK + i] = tau[i];
            for r in i + 1..self.count {
                room.t[r * BLOCK + i] = T::ZERO;
            }
        }
    }

    /// Applies them (or their adjoint) to `columns` columns, the rows of `c`, which begin at the block's first row.
    ///
    /// # Safety
    /// The elements exist, and nobody else reads or writes them.
    unsafe fn apply(&self, c: Destination<T>, columns: usize, adjoint: bool, room: &mut Workspace<T>, parallel: bool) {
        let (depth, count) = (self.m - self.first, self.count);
        let v = Source::plain(room.v.as_ptr(), depth, 1);
        let t = Source::plain(room.t.as_ptr(), BLOCK, 1);
        room.w[..columns * count].fill(T::ZERO);
        room.x[..columns * count].fill(T::ZERO);
        let (w, x) = (Destination { ptr: room.w.as_mut_ptr(), ld: count }, Destination { ptr: room.x.as_mut_ptr(), ld: count });
        // SAFETY: the caller's; the workspace has room for `count` numbers of each column, which are no elements of `c`.
        unsafe {
            // Each pass is subtracted, so x is T V^H C with its own sign.
            Update { sizes: (columns, count, depth), a: c.source(), b: v.t().conjugated(), c: w }.run(parallel);
            let t = if adjoint { t.conjugated() } else { t.t() };
            Update { sizes: (columns, count, count), a: w.source(), b: t, c: x }.run(parallel);
            Update { sizes: (columns, depth, count), a: x.source(), b: v, c }.run(parallel);
        }
    }
}
