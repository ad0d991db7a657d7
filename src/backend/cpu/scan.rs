//! Running sums and products along one dimension of a dense array seen as (outer, n, inner).

use super::reducers::{Number, To};
use super::threads::parallel_for;

/// Elements that one task handles.
const TASK: usize = 1 << 15;

/// What a scan accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    Sum,
    Prod,
}

struct Ptrs<T, O>(*const T, *mut O);
// SAFETY: tasks write to disjoint parts of the output, and the input is only read.
unsafe impl<T, O> Sync for Ptrs<T, O> {}
impl<T, O> Ptrs<T, O> {
    #[inline(always)]
    fn at(&self, i: usize) -> (*const T, *mut O) {
        (self.0.wrapping_add(i), self.1.wrapping_add(i))
    }
}

/// Accumulates in `A` and writes `O`.
///
/// # Safety
/// Both pointers have `outer * n * inner` elements and do not overlap.
pub unsafe fn scan<T: Number + To<A>, A: Number + Narrow<O>, O: Copy>(
    kind: Scan,
    (outer, n, inner): (usize, usize, usize),
    x: *const T,
    out: *mut O,
) {
    const COLUMNS: usize = 64;
    const ROWS: usize = 8;
    let p = Ptrs(x, out);
    let blocks = inner.div_ceil(COLUMNS);
    let jobs = outer * blocks;
    let together = (TASK / (n * inner.min(COLUMNS)).max(1)).max(1);
    let start = if kind == Scan::Sum { A::ZERO } else { A::ONE };
    let merge = |a: A, b: A| if kind == Scan::Sum { a.plus(b) } else { a.times(b) };
    if inner == 1 && outer >= ROWS {
        // Several rows at once: their chains of additions do not wait for each other.
        let groups = outer.div_ceil(ROWS);
        let together = (TASK / (n * ROWS).max(1)).max(1);
        parallel_for(groups.div_ceil(together), |t| {
            for group in t * together..groups.min((t + 1) * together) {
                let first = group * ROWS;
                let rows = ROWS.min(outer - first);
                let mut acc = [start; ROWS];
                for i in 0..n {
                    for (j, a) in acc[..rows].iter_mut().enumerate() {
                        let (x, out) = p.at((first + j) * n + i);
                        // SAFETY: this group alone handles these rows; indices stay inside both arrays.
                        unsafe {
                            *a = merge(*a, (*x).to());
                            *out = (*a).narrow();
                        }
                    }
                }
            }
        });
        return;
    }
    parallel_for(jobs.div_ceil(together), |t| {
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, b) = (job / blocks, job % blocks);
            let width = COLUMNS.min(inner - b * COLUMNS);
            let mut acc = [start; COLUMNS];
            for i in 0..n {
                let (x, out) = p.at((o * n + i) * inner + b * COLUMNS);
                for (j, a) in acc[..width].iter_mut().enumerate() {
                    // SAFETY: this job alone handles these columns; indices stay inside both arrays.
                    unsafe {
                        *a = merge(*a, (*x.add(j)).to());
                        *out.add(j) = (*a).narrow();
                    }
                }
            }
        }
    });
}

/// Conversion of an accumulator to what is written.
pub trait Narrow<O> {
    fn narrow(self) -> O;
}
macro_rules! narrow {
    ($($a:ty => $o:ty),*) => { $(impl Narrow<$o> for $a {
        #[inline(always)]
        fn narrow(self) -> $o { self as $o }
    })* };
}
narrow!(i64 => i64, f64 => f64, f64 => f32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_accumulated() {
        for (outer, n, inner) in [(2, 3, 1), (1, 4, 70), (3, 0, 2), (40, 100, 20)] {
            let x: Vec<f64> = (0..outer * n * inner).map(|i| (i % 7) as f64 - 3.0).collect();
            let mut y = vec![f64::NAN; x.len()];
            // SAFETY: both have outer * n * inner elements.
            unsafe { scan::<f64, f64, f64>(Scan::Sum, (outer, n, inner), x.as_ptr(), y.as_mut_ptr()) };
            for (i, v) in y.iter().enumerate() {
                let (row, column) = (i / inner % n, i % inner);
                let before = if row == 0 { 0.0 } else { y[i - inner] };
                assert_eq!(*v, before + x[i], "{outer} {n} {inner} {row} {column}");
            }
        }
    }
}
