//! The cofactors of a matrix, which singular ones have, too.

use super::lu;
use super::number::LinearNumber;
use super::triangular::Triangular;
use super::update::{Destination, Source};
use crate::host::interrupt;
use crate::host::memory::reserve::filled;

/// The ratio of the largest pivot to the smallest one up to which the inverse serves.
const SAFE: usize = 256;

/// Writes the cofactors of `a` (n, n) to `out`.
///
/// # Safety
/// All elements exist; nobody writes those of `a`, nor reads or writes those of `out`.
pub(super) unsafe fn cofactors<T: LinearNumber>(n: usize, a: Source<T>, out: Destination<T>, parallel: bool) {
    let (mut room, mut pivots) = (filled(T::ZERO, n * n), filled(0, n));
    let factors = Destination { ptr: room.as_mut_ptr(), ld: n };
    // SAFETY: the caller's; the room is this function's own.
    unsafe {
        super::copy((n, n), a, factors, |i| i);
        let info = lu::factor((n, n), factors, &mut pivots, true, parallel);
        let sizes = || (0..n).map(|i| factors.get(i, i).size());
        let largest = sizes().fold(T::ZERO.real(), |m, s| if s > m { s } else { m });
        let scaled = |s: T::Real| (0..SAFE.ilog2()).fold(T::of_real(s), |s, _| s.plus(s)).real();
        if info != 0 || sizes().any(|s| !(scaled(s) > largest)) {
            super::copy((n, n), a, factors, |i| i);
            return singular(n, &mut room, out);
        }
        let swaps = pivots.iter().enumerate().filter(|(i, p)| **p != *i as i32 + 1).count();
        let one = if swaps % 2 == 1 { T::ONE.negated() } else { T::ONE };
        let det = (0..n).fold(one, |d, i| d.times(factors.get(i, i)));
        // The inverse's transpose is the inverse of U^T, then of L^T, whose rows come in the matrix's order.
        let mut made = filled(T::ZERO, n * n);
        let x = Destination { ptr: made.as_mut_ptr(), ld: n };
        for i in 0..n {
            *x.at(i, i) = T::ONE;
        }
        let part = |upper: bool| Triangular { n, columns: n, a: factors.source().t(), upper, unit: upper, b: x };
        part(false).solve(parallel);
        part(true).solve(parallel);
        for (i, row) in lu::order(n, &pivots).into_iter().enumerate() {
            for j in 0..n {
                *out.at(row as usize, j) = x.get(i, j).times(det);
            }
        }
    }
}

/// Of any matrix, whose elements are overwritten: by complete pivoting, which shows the rank. With `P A Q = L U`, the last pivot of `U` is never
/// divided by, and where another one is 0 all cofactors are.
///
/// # Safety
/// The elements of `out` exist, and nobody else reads or writes them.
unsafe fn singular<T: LinearNumber>(n: usize, a: &mut [T], out: Destination<T>) {
    let (mut rows, mut columns): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
    let mut sign = T::ONE;
    for j in 0..n.saturating_sub(1) {
        interrupt::check();
        let (mut best, mut most) = ((j, j), T::ZERO.real());
        for i in j..n {
            for c in j..n {
                let size = a[i * n + c].size();
                if size > most {
                    (best, most) = ((i, c), size);
                }
            }
        }
        if best.0 != j {
            rows.swap(j, best.0);
            (0..n).for_each(|c| a.swap(j * n + c, best.0 * n + c));
            sign = sign.negated();
        }
        if best.1 != j {
            columns.swap(j, best.1);
            (0..n).for_each(|i| a.swap(i * n + j, i * n + best.1));
            sign = sign.negated();
        }
        let (above, below) = a.split_at_mut((j + 1) * n);
        let top = &above[j * n..];
        if top[j] == T::ZERO {
            for i in 0..n {
                for c in 0..n {
                    // SAFETY: the caller's.
                    unsafe { *out.at(i, c) = T::ZERO };
                }
            }
            return;
        }
        for row in below.chunks_exact_mut(n) {
            let l = row[j].over(top[j]);
            row[j] = l;
            for (x, t) in row[j + 1..].iter_mut().zip(&top[j + 1..]) {
                *x = x.minus(l.times(*t));
            }
        }
    }
    let k = n - 1;
    let d = (0..k).fold(sign, |d, i| d.times(a[i * n + i]));
    let last = a[k * n + k];
    // adj(U): its first k columns are d * last * R^-1, its last one -d * R^-1 c and d.
    let mut m = filled(T::ZERO, n * n);
    for c in 0..n {
        interrupt::check();
        if c == k {
            m[k * n + k] = d;
        }
        for i in (0..k).rev() {
            let right = if c == k {
                a[i * n + k].times(d).negated()
            } else if i == c {
                d.times(last)
            } else {
                T::ZERO
            };
            let sum = (i + 1..k).fold(right, |s, q| s.minus(a[i * n + q].times(m[q * n + c])));
            m[i * n + c] = sum.over(a[i * n + i]);
        }
    }
    for (i, row) in m.chunks_exact_mut(n).enumerate() {
        for j in (0..n).rev() {
            row[j] = (j + 1..n).fold(row[j], |s, q| s.minus(row[q].times(a[q * n + j])));
            // SAFETY: the caller's.
            unsafe { *out.at(rows[j], columns[i]) = row[j] };
        }
    }
}
