//! Many small matrices, sixteen at a time: each number of the loops is a row of numbers, one of each matrix.

use super::number::LinearNumber;
use super::update::Source;
use crate::simd::{Isa, instance_of};

/// Matrices that are handled together.
pub(super) const LANES: usize = 16;
/// Rows and columns of the largest matrices that are handled so.
pub(super) const LARGEST: usize = 16;
/// How many matrices are worth it.
pub(super) const FEWEST: usize = 4;

/// A number of each matrix.
pub(super) type Lane<T> = [T; LANES];

/// Matrices with their right sides, and what is found out about them.
pub(super) struct Group<T> {
    pub n: usize,
    /// The matrices, row after row.
    pub a: Vec<Lane<T>>,
    /// Columns of the right sides.
    pub columns: usize,
    /// The right sides, row after row.
    pub b: Vec<Lane<T>>,
    /// The rows that were swapped, counted from 0.
    pub pivots: Vec<Lane<i32>>,
    pub info: Lane<i32>,
}

impl<T: LinearNumber> Group<T> {
    pub fn new(n: usize, columns: usize) -> Self {
        Group {
            n,
            a: vec![[T::ZERO; LANES]; n * n],
            columns,
            b: vec![[T::ZERO; LANES]; n * columns],
            pivots: vec![[0; LANES]; n],
            info: [0; LANES],
        }
    }

    /// Fills the matrices in; those beyond the last one repeat it.
    ///
    /// # Safety
    /// The elements exist, and nobody writes them.
    pub unsafe fn load(&mut self, of: impl Fn(usize) -> Source<T>, count: usize) {
        for l in 0..LANES {
            let m = of(l.min(count - 1));
            for (i, row) in self.a.chunks_exact_mut(self.n).enumerate() {
                for (j, to) in row.iter_mut().enumerate() {
                    // SAFETY: the caller's.
                    to[l] = unsafe { m.get(i, j) };
                }
            }
        }
    }

    /// As `load`, of the right sides, whose rows come in the order of the factors.
    ///
    /// # Safety
    /// As for `load`.
    pub unsafe fn load_right(&mut self, of: impl Fn(usize) -> Source<T>, count: usize) {
        for l in 0..LANES {
            let (m, order) = (of(l.min(count - 1)), self.order(l));
            for (row, from) in self.b.chunks_exact_mut(self.columns).zip(order) {
                for (j, to) in row.iter_mut().enumerate() {
                    // SAFETY: the caller's.
                    to[l] = unsafe { m.get(from, j) };
                }
            }
        }
    }

    /// Makes the right sides those of an inverse.
    pub fn identity(&mut self) {
        for l in 0..LANES {
            let order = self.order(l);
            for (row, from) in self.b.chunks_exact_mut(self.columns).zip(order) {
                for (j, to) in row.iter_mut().enumerate() {
                    to[l] = if j == from { T::ONE } else { T::ZERO };
                }
            }
        }
    }

    /// The row of matrix `l` that stands at each row of its factors.
    fn order(&self, l: usize) -> [usize; LARGEST] {
        let mut order: [usize; LARGEST] = std::array::from_fn(|i| i);
        for (i, p) in self.pivots.iter().enumerate() {
            order.swap(i, p[l] as usize);
        }
        order
    }

    pub fn cholesky(&mut self) {
        cholesky(self);
    }

    pub fn lu(&mut self) {
        lu(self);
    }

    pub fn substitute(&mut self) {
        substitute(self);
    }
}

/// Writes numbers of one matrix to a dense one, row after row.
///
/// # Safety
/// There is room for as many elements as there are lanes.
pub(super) unsafe fn store<T: Copy>(from: &[[T; LANES]], l: usize, to: *mut T) {
    for (i, v) in from.iter().enumerate() {
        // SAFETY: the caller's.
        unsafe { *to.add(i) = v[l] };
    }
}

#[inline(always)]
fn subtracted<T: LinearNumber, I: Isa>(from: &mut Lane<T>, by: &Lane<T>, x: &Lane<T>) {
    for l in 0..LANES {
        let by = by[l].negated();
        from[l] = if I::FMA { by.mul_add::<true>(x[l], from[l]) } else { by.mul_add::<false>(x[l], from[l]) };
    }
}

#[inline(always)]
fn divided<T: LinearNumber>(x: &mut Lane<T>, by: &Lane<T>) {
    for l in 0..LANES {
        x[l] = x[l].over(by[l]);
    }
}

/// The upper factors; below the diagonal is no result.
#[inline(always)]
fn cholesky_in<T: LinearNumber, I: Isa>(g: &mut Group<T>) {
    let n = g.n;
    g.info = [0; LANES];
    for j in 0..n {
        let mut d = g.a[j * n + j];
        for l in 0..LANES {
            let v = d[l].real();
            if !(v > T::ZERO.real()) && g.info[l] == 0 {
                g.info[l] = j as i32 + 1;
            }
            d[l] = T::of_real(v.sqrt());
        }
        g.a[j * n + j] = d;
        for c in j + 1..n {
            divided(&mut g.a[j * n + c], &d);
        }
        let (above, below) = g.a.split_at_mut((j + 1) * n);
        let top = &above[j * n..];
        for i in j + 1..n {
            let by = top[i].map(T::conj);
            let row = &mut below[(i - j - 1) * n..(i - j) * n];
            for c in i..n {
                subtracted::<T, I>(&mut row[c], &by, &top[c]);
            }
        }
    }
}

instance_of!(fn cholesky<T: LinearNumber> = cholesky_in(g: &mut Group<T>));

/// Both factors with partial pivoting, and the pivots.
#[inline(always)]
fn lu_in<T: LinearNumber, I: Isa>(g: &mut Group<T>) {
    let n = g.n;
    g.info = [0; LANES];
    for j in 0..n {
        let mut most = g.a[j * n + j].map(T::size);
        let mut best = [j as i32; LANES];
        for i in j + 1..n {
            let x = &g.a[i * n + j];
            for l in 0..LANES {
                let size = x[l].size();
                let more = size > most[l];
                most[l] = if more { size } else { most[l] };
                best[l] = if more { i as i32 } else { best[l] };
            }
        }
        g.pivots[j] = best;
        let (above, below) = g.a.split_at_mut((j + 1) * n);
        let top = &mut above[j * n..];
        for (i, row) in below.chunks_exact_mut(n).enumerate() {
            let this = (j + 1 + i) as i32;
            if best.iter().all(|b| *b != this) {
                continue;
            }
            for (t, r) in top.iter_mut().zip(row) {
                for l in 0..LANES {
                    let (up, down) = (t[l], r[l]);
                    let swap = best[l] == this;
                    t[l] = if swap { down } else { up };
                    r[l] = if swap { up } else { down };
                }
            }
        }
        // A pivot that is 0 divides nothing: then all below it is 0.
        let mut d = top[j];
        for l in 0..LANES {
            if d[l] == T::ZERO {
                g.info[l] = if g.info[l] == 0 { j as i32 + 1 } else { g.info[l] };
                d[l] = T::ONE;
            }
        }
        for row in below.chunks_exact_mut(n) {
            divided(&mut row[j], &d);
            let by = row[j];
            for c in j + 1..n {
                subtracted::<T, I>(&mut row[c], &by, &top[c]);
            }
        }
    }
}

instance_of!(fn lu<T: LinearNumber> = lu_in(g: &mut Group<T>));

/// The right sides become the solutions.
#[inline(always)]
fn substitute_in<T: LinearNumber, I: Isa>(g: &mut Group<T>) {
    let (n, k) = (g.n, g.columns);
    for i in 0..n {
        let (before, own) = g.b.split_at_mut(i * k);
        for q in 0..i {
            let by = g.a[i * n + q];
            for c in 0..k {
                subtracted::<T, I>(&mut own[c], &by, &before[q * k + c]);
            }
        }
    }
    for i in (0..n).rev() {
        let (before, after) = g.b.split_at_mut((i + 1) * k);
        let own = &mut before[i * k..];
        for q in i + 1..n {
            let by = g.a[i * n + q];
            for c in 0..k {
                subtracted::<T, I>(&mut own[c], &by, &after[(q - i - 1) * k + c]);
            }
        }
        let d = g.a[i * n + i];
        for x in own.iter_mut() {
            divided(x, &d);
        }
    }
}

instance_of!(fn substitute<T: LinearNumber> = substitute_in(g: &mut Group<T>));
