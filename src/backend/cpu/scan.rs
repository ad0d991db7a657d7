//! Running sums and products along one dimension of a dense array seen as (outer, n, inner).

use super::reduce_loops::instances;
use super::reducers::{Number, To};
use super::threads::{num_threads, parallel_for};
use smallvec::SmallVec;

/// Elements that one task handles.
const TASK: usize = 1 << 15;

/// A piece of a long row: `CHAINS` chains that are summed side by side. Their distance is no power of 2, so that they share no cache set.
const CHAINS: usize = 8;
const CHAIN: usize = 1024 + 16;
const PIECE: usize = CHAINS * CHAIN;

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

/// `C` chains of `n` elements whose beginnings lie `step` apart, side by side.
///
/// # Safety
/// Both pointers hold all the chains.
#[inline(always)]
unsafe fn chains<T: Number + To<A>, A: Number + Narrow<O>, O: Copy, const C: usize>(
    n: usize,
    step: usize,
    (x, out): (*const T, *mut O),
    start: A,
    merge: impl Fn(A, A) -> A,
) {
    let mut acc = [start; C];
    for i in 0..n {
        for (j, a) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise covers all i and j.
            unsafe {
                *a = merge(*a, (*x.add(j * step + i)).to());
                *out.add(j * step + i) = (*a).narrow();
            }
        }
    }
}

/// Sums along few but long rows. A piece of a row is summed as eight chains, each of which starts from the sum of all before it: which
/// sums are taken depends on the length of the row alone.
fn long_rows<T: Number + To<A>, A: Number + Narrow<O>, O: Copy>(outer: usize, n: usize, p: &Ptrs<T, O>) {
    let pieces = n / PIECE;
    // The sums of all whole chains, then of everything before each of them.
    let mut before = vec![A::ZERO; outer * pieces * CHAINS];
    let sums = Ptrs(p.0, before.as_mut_ptr());
    parallel_for(outer * pieces, |t| {
        let (row, piece) = (t / pieces, t % pieces);
        for c in 0..CHAINS {
            let x = p.at(row * n + piece * PIECE + c * CHAIN).0;
            // SAFETY: the chain lies inside the row, and task t alone writes its sums.
            unsafe { *sums.at(t * CHAINS + c).1 = total(x, CHAIN) };
        }
    });
    let mut ends = vec![A::ZERO; outer];
    for (row, end) in before.chunks_mut(pieces * CHAINS).zip(&mut ends) {
        for s in row {
            let here = *s;
            *s = *end;
            *end = end.plus(here);
        }
    }
    let before = &before;
    parallel_for(outer * pieces, |t| {
        let (row, piece) = (t / pieces, t % pieces);
        let (x, out) = p.at(row * n + piece * PIECE);
        let mut acc: [A; CHAINS] = [A::ZERO; CHAINS];
        acc.copy_from_slice(&before[t * CHAINS..][..CHAINS]);
        for i in 0..CHAIN {
            for (j, a) in acc.iter_mut().enumerate() {
                // SAFETY: inside the piece, which task t alone handles.
                unsafe {
                    *a = a.plus((*x.add(j * CHAIN + i)).to());
                    *out.add(j * CHAIN + i) = (*a).narrow();
                }
            }
        }
    });
    for (row, end) in ends.into_iter().enumerate() {
        let done = pieces * PIECE;
        // SAFETY: what is left of the row.
        unsafe { chains::<T, A, O, 1>(n - done, 0, p.at(row * n + done), end, A::plus) };
    }
}

/// The sum of `n` elements.
///
/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn total<T: Number + To<A>, A: Number>(x: *const T, n: usize) -> A {
    let mut lanes = [A::ZERO; 8];
    for i in 0..n / 8 {
        for (j, l) in lanes.iter_mut().enumerate() {
            // SAFETY: below n.
            *l = l.plus(unsafe { (*x.add(i * 8 + j)).to() });
        }
    }
    let mut sum = A::ZERO;
    lanes.iter().for_each(|l| sum = sum.plus(*l));
    (n / 8 * 8..n).for_each(|i| {
        // SAFETY: below n.
        sum = sum.plus(unsafe { (*x.add(i)).to() });
    });
    sum
}

/// The most columns that one job accumulates side by side: their sums stay in the first-level cache.
const COLUMNS: usize = 1024;

/// What `merge` gives, running down `width` columns of `n` rows, `step` apart.
///
/// # Safety
/// `width` is at most COLUMNS; both pointers hold all the rows, and may be the same if `T` is `O`.
#[inline(always)]
unsafe fn down<T: Number + To<A>, A: Number + Narrow<O>, O: Copy, F: Fn(A, A) -> A>(
    merge: F,
    x: *const T,
    out: *mut O,
    n: usize,
    step: usize,
    width: usize,
    start: A,
) {
    const TOGETHER: usize = 16;
    let mut acc: SmallVec<[A; 64]> = SmallVec::from_elem(start, width);
    let (whole, rest) = acc.as_chunks_mut::<TOGETHER>();
    for i in 0..n {
        let (x, out) = (x.wrapping_add(i * step), out.wrapping_add(i * step));
        for (j, a) in whole.iter_mut().enumerate() {
            // Read before anything is written, so that it is a few instructions also where `x` is `out`.
            // SAFETY: inside row i.
            let v = unsafe { x.add(j * TOGETHER).cast::<[T; TOGETHER]>().read() };
            for (a, v) in a.iter_mut().zip(v) {
                *a = merge(*a, v.to());
            }
            let v = std::array::from_fn(|k| a[k].narrow());
            // SAFETY: as above.
            unsafe { out.add(j * TOGETHER).cast::<[O; TOGETHER]>().write(v) };
        }
        let done = whole.len() * TOGETHER;
        for (j, a) in rest.iter_mut().enumerate() {
            // SAFETY: as above.
            unsafe {
                *a = merge(*a, (*x.add(done + j)).to());
                *out.add(done + j) = (*a).narrow();
            }
        }
    }
}

instances!(down_any = down, down_avx512, down_avx2, [T: Number + To<A>, A: Number + Narrow<O>, O: Copy, F: Fn(A, A) -> A], (
    merge: F, x: *const T, out: *mut O, n: usize, step: usize, width: usize, start: A
));

/// Accumulates in `A` and writes `O`.
///
/// # Safety
/// Both pointers have `outer * n * inner` elements. They do not overlap, or are the same if `T` is `O`: each element is read before it is
/// written, by the task that writes it.
pub unsafe fn scan<T: Number + To<A>, A: Number + Narrow<O>, O: Copy>(
    kind: Scan,
    (outer, n, inner): (usize, usize, usize),
    x: *const T,
    out: *mut O,
) {
    // Input and output of four rows fit one set of the first-level cache, onto which rows of 2^n elements fall.
    const ROWS: usize = 4;
    let p = Ptrs(x, out);
    // Wide jobs read and write long stretches, but there is one for each thread.
    let wide = inner.div_ceil(num_threads().div_ceil(outer.max(1))).next_multiple_of(64).clamp(64, COLUMNS);
    let blocks = inner.div_ceil(wide);
    let jobs = outer * blocks;
    let together = (TASK / (n * inner.min(wide)).max(1)).max(1);
    let start = if kind == Scan::Sum { A::ZERO } else { A::ONE };
    let merge = |a: A, b: A| if kind == Scan::Sum { a.plus(b) } else { a.times(b) };
    if inner == 1 && outer >= ROWS {
        // Several rows at once: their chains of additions do not wait for each other.
        let groups = outer.div_ceil(ROWS);
        let together = (TASK / (n * ROWS).max(1)).max(1);
        parallel_for(groups.div_ceil(together), |t| {
            for group in t * together..groups.min((t + 1) * together) {
                let first = group * ROWS;
                // SAFETY: this group alone handles these rows; indices stay inside both arrays.
                unsafe {
                    if first + ROWS <= outer {
                        chains::<T, A, O, ROWS>(n, n, p.at(first * n), start, merge);
                    } else {
                        (first..outer).for_each(|row| chains::<T, A, O, 1>(n, n, p.at(row * n), start, merge));
                    }
                };
            }
        });
        return;
    }
    if inner == 1 && kind == Scan::Sum && n >= 2 * PIECE {
        long_rows::<T, A, O>(outer, n, &p);
        return;
    }
    parallel_for(jobs.div_ceil(together), |t| {
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, b) = (job / blocks, job % blocks);
            let width = wide.min(inner - b * wide);
            let (x, out) = p.at(o * n * inner + b * wide);
            // SAFETY: this job alone handles these columns; indices stay inside both arrays.
            unsafe {
                match kind {
                    Scan::Sum => down_any(A::plus, x, out, n, inner, width, start),
                    Scan::Prod => down_any(A::times, x, out, n, inner, width, start),
                }
            };
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
        for (outer, n, inner) in [
            (2, 3, 1),
            (1, 4, 70),
            (3, 0, 2),
            (40, 100, 20),
            (7, 90, 1),
            (4, 5, 1),
            (2, 2 * PIECE, 1),
            (3, 3 * PIECE + 77, 1),
            (2, 5, 2500),
        ] {
            let x: Vec<f64> = (0..outer * n * inner).map(|i| (i % 7) as f64 - 3.0).collect();
            let mut y = vec![f64::NAN; x.len()];
            // SAFETY: both have outer * n * inner elements.
            unsafe { scan::<f64, f64, f64>(Scan::Sum, (outer, n, inner), x.as_ptr(), y.as_mut_ptr()) };
            for (i, v) in y.iter().enumerate() {
                let (row, column) = (i / inner % n, i % inner);
                let before = if row == 0 { 0.0 } else { y[i - inner] };
                assert_eq!(*v, before + x[i], "{outer} {n} {inner} {row} {column}");
            }
            let mut there = x.clone();
            let (from, to) = (there.as_ptr(), there.as_mut_ptr());
            // SAFETY: in place.
            unsafe { scan::<f64, f64, f64>(Scan::Sum, (outer, n, inner), from, to) };
            assert_eq!(there, y, "{outer} {n} {inner} in place");
            let narrow: Vec<f32> = x.iter().map(|v| *v as f32).collect();
            let mut z = vec![f32::NAN; x.len()];
            // SAFETY: as above.
            unsafe { scan::<f32, f64, f32>(Scan::Sum, (outer, n, inner), narrow.as_ptr(), z.as_mut_ptr()) };
            assert!(z.iter().zip(&y).all(|(z, y)| f64::from(*z) == *y), "{outer} {n} {inner} in float32");
        }
    }
}
