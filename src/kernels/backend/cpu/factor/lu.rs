//! LU factors with partial pivoting: those of one matrix, by halves of its columns.

use super::number::LinearNumber;
use super::triangular::Triangular;
use super::update::{Destination, Update};
use crate::simd::{Isa, instance_of};

/// Columns of the largest part that is factored without products.
const SMALL: usize = 8;

/// The matrix whose columns are factored, part by part.
pub(super) struct Whole<'a, T> {
    a: Destination<T>,
    rows: usize,
    columns: usize,
    /// The rows that were swapped, counted from 0.
    pivots: &'a mut [i32],
    pivot: bool,
    /// The first pivot that is 0, counted from 1; 0 for none.
    info: usize,
}

/// Columns `first..first + columns` of a matrix, from row `first` on.
pub(super) struct Panel<'w, 'a, T> {
    whole: &'w mut Whole<'a, T>,
    first: usize,
    columns: usize,
}

/// Factors `a` (m, n) where it lies: `L` below the diagonal, whose own are ones, and `U`. The pivots, counted from 1, are as many as the smaller
/// size. Returns 0, or the first pivot that is 0.
///
/// # Safety
/// All elements exist, and nobody else reads or writes them.
pub(super) unsafe fn factor<T: LinearNumber>(
    (m, n): (usize, usize),
    a: Destination<T>,
    pivots: &mut [i32],
    pivot: bool,
    parallel: bool,
) -> usize {
    let least = m.min(n);
    let mut whole = Whole { a, rows: m, columns: n, pivots, pivot, info: 0 };
    // SAFETY: the caller's; the columns behind the square part are disjoint from it.
    unsafe {
        whole.part(0, least, parallel);
        if n > least {
            let b = a.from(0, least);
            Triangular { n: least, columns: n - least, a: a.source(), upper: false, unit: true, b }.solve(parallel);
        }
    }
    whole.pivots.iter_mut().for_each(|p| *p += 1);
    whole.info
}

impl<T: LinearNumber> Whole<'_, T> {
    /// # Safety
    /// As for `factor`; all columns before `first` are factored, and these are updated.
    unsafe fn part(&mut self, first: usize, columns: usize, parallel: bool) {
        if columns <= SMALL {
            return small(&mut Panel { whole: self, first, columns });
        }
        let h = (columns / 2).next_multiple_of(SMALL).min(columns - 1);
        let (middle, rest) = (first + h, columns - h);
        // SAFETY: the caller's; the parts are disjoint.
        unsafe {
            self.part(first, h, parallel);
            let right = self.a.from(first, middle);
            Triangular { n: h, columns: rest, a: self.a.from(first, first).source(), upper: false, unit: true, b: right }.solve(parallel);
            Update {
                sizes: (self.rows - middle, rest, h),
                a: self.a.from(middle, first).source(),
                b: right.source(),
                c: self.a.from(middle, middle),
            }
            .run(parallel);
            self.part(middle, rest, parallel);
        }
    }
}

#[inline(always)]
fn small_in<T: LinearNumber, I: Isa>(p: &mut Panel<'_, '_, T>) {
    let (a, rows) = (p.whole.a, p.whole.rows);
    let end = p.first + p.columns;
    let mut top = [T::ZERO; SMALL];
    for j in p.first..end {
        // SAFETY: inside the matrix, by the promise of `factor`.
        unsafe {
            let mut best = j;
            if p.whole.pivot {
                let mut most = a.get(j, j).size();
                for i in j + 1..rows {
                    let size = a.get(i, j).size();
                    if size > most {
                        (best, most) = (i, size);
                    }
                }
                if best != j {
                    std::ptr::swap_nonoverlapping(a.at(j, 0), a.at(best, 0), p.whole.columns);
                }
            }
            p.whole.pivots[j] = best as i32;
            let d = a.get(j, j);
            if d == T::ZERO {
                if p.whole.info == 0 {
                    p.whole.info = j + 1;
                }
                continue;
            }
            let width = end - j - 1;
            std::ptr::copy_nonoverlapping(a.at(j, j + 1), top.as_mut_ptr(), width);
            for i in j + 1..rows {
                let from = a.at(i, j);
                let l = (*from).over(d);
                *from = l;
                let by = l.negated();
                for (q, v) in top[..width].iter().enumerate() {
                    let old = *from.add(q + 1);
                    *from.add(q + 1) = if I::FMA { by.mul_add::<true>(*v, old) } else { by.mul_add::<false>(*v, old) };
                }
            }
        }
    }
}

instance_of!(fn small<T: LinearNumber> = small_in(p: &mut Panel<'_, '_, T>));

/// The row of the matrix that stands at each of the `m` rows of its factors.
pub(super) fn order(m: usize, pivots: &[i32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..m as u32).collect();
    for (i, p) in pivots.iter().enumerate() {
        let other = (*p as usize).wrapping_sub(1);
        if other < m && i < m {
            order.swap(i, other);
        }
    }
    order
}
