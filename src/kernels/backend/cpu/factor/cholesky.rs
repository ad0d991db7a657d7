//! Cholesky factors: the upper one of one matrix, by halves.

use super::number::LinearNumber;
use super::triangular::Triangular;
use super::update::{Destination, Update};
use crate::simd::{Isa, instance_of};

/// Rows of the largest matrix that is factored without products.
const SMALL: usize = 24;
/// Rows of the result that are updated together, so that little of the lower triangle is computed.
const BLOCK: usize = 64;

/// A matrix (n, n) of which the upper triangle becomes the upper factor. The lower one holds no result.
pub(super) struct Small<T> {
    n: usize,
    a: Destination<T>,
    /// The order of the first leading minor that is not positive; 0 for none.
    info: usize,
}

/// Factors the upper triangle of `a` (n, n) where it lies. Returns 0, or the order of the first leading minor that is not positive; then nothing
/// behind it is done. The lower triangle is left undefined.
///
/// # Safety
/// All elements exist, and nobody else reads or writes them.
pub(super) unsafe fn factor<T: LinearNumber>(n: usize, a: Destination<T>, parallel: bool) -> usize {
    if n <= SMALL {
        let mut small = Small { n, a, info: 0 };
        factor_small(&mut small);
        return small.info;
    }
    let h = (n / 2).next_multiple_of(8);
    let rest = n - h;
    let (right, last) = (a.from(0, h), a.from(h, h));
    // SAFETY: the caller's; the three parts are disjoint.
    unsafe {
        let info = factor(h, a, parallel);
        if info != 0 {
            return info;
        }
        // U12 = U11^-H A12.
        Triangular { n: h, columns: rest, a: a.source().t().conjugated(), upper: false, unit: false, b: right }.solve(parallel);
        for i in (0..rest).step_by(BLOCK) {
            let rows = BLOCK.min(rest - i);
            let left = right.from(0, i).source();
            Update { sizes: (rows, rest - i, h), a: left.t().conjugated(), b: left, c: last.from(i, i) }.run(parallel);
        }
        match factor(rest, last, parallel) {
            0 => 0,
            k => h + k,
        }
    }
}

#[inline(always)]
fn factor_small_in<T: LinearNumber, I: Isa>(s: &mut Small<T>) {
    let mut row = [T::ZERO; SMALL];
    for j in 0..s.n {
        let width = s.n - j;
        // SAFETY: inside the matrix, by the promise of `factor`.
        unsafe {
            let d = s.a.get(j, j).real();
            if !(d > T::ZERO.real()) {
                s.info = j + 1;
                return;
            }
            let d = T::of_real(d.sqrt());
            for (l, v) in row[..width].iter_mut().enumerate() {
                *v = s.a.get(j, j + l).over(d);
            }
            row[0] = d;
            std::ptr::copy_nonoverlapping(row.as_ptr(), s.a.at(j, j), width);
            for i in 1..width {
                let by = row[i].conj().negated();
                let to = s.a.at(j + i, j);
                for (l, v) in row[..width].iter().enumerate().skip(i) {
                    let old = *to.add(l);
                    *to.add(l) = if I::FMA { by.mul_add::<true>(*v, old) } else { by.mul_add::<false>(*v, old) };
                }
            }
        }
    }
}

instance_of!(fn factor_small<T: LinearNumber> = factor_small_in(s: &mut Small<T>));
