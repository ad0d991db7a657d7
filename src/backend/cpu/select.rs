//! Where the largest and smallest elements are, and sorting, along one dimension of a dense array seen as (outer, n, inner).

use super::reducers::Number;
use super::threads::parallel_for;
use std::cmp::Ordering;

/// Elements that one task handles.
const TASK: usize = 1 << 15;

#[derive(Clone, Copy)]
struct Ptrs<T> {
    x: *const T,
    values: *mut T,
    places: *mut i64,
}
// SAFETY: tasks write to disjoint parts of the outputs, and the input is only read.
unsafe impl<T> Sync for Ptrs<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Ptrs<T> {}
impl<T> Ptrs<T> {
    #[inline(always)]
    fn x(&self, i: usize) -> *const T {
        self.x.wrapping_add(i)
    }
    #[inline(always)]
    fn values(&self, i: usize) -> *mut T {
        self.values.wrapping_add(i)
    }
    #[inline(always)]
    fn places(&self, i: usize) -> *mut i64 {
        self.places.wrapping_add(i)
    }
}

/// The largest elements (smallest, with `max` false) along `n` and where each stands first. nan wins.
///
/// # Safety
/// `x` has `outer * n * inner` elements with n at least 1, the outputs `outer * inner`; nothing overlaps.
pub unsafe fn extreme<T: Number>(max: bool, (outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, places: *mut i64) {
    const COLUMNS: usize = 64;
    let p = Ptrs { x, values, places };
    let blocks = inner.div_ceil(COLUMNS);
    let jobs = outer * blocks;
    let together = (TASK / (n * inner.min(COLUMNS)).max(1)).max(1);
    parallel_for(jobs.div_ceil(together), |t| {
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, b) = (job / blocks, job % blocks);
            let width = COLUMNS.min(inner - b * COLUMNS);
            let first = p.x(o * n * inner + b * COLUMNS);
            let to = o * inner + b * COLUMNS;
            // SAFETY: this job alone writes these outputs; indices stay inside.
            unsafe {
                if inner == 1 {
                    let row = std::slice::from_raw_parts(first, n);
                    let at = first_extreme(row, max);
                    *p.values(to) = row[at];
                    *p.places(to) = at as i64;
                } else {
                    let mut best = [*first; COLUMNS];
                    let mut place = [0i64; COLUMNS];
                    best[..width].copy_from_slice(std::slice::from_raw_parts(first, width));
                    for i in 1..n {
                        let row = std::slice::from_raw_parts(first.add(i * inner), width);
                        for (j, v) in row.iter().enumerate() {
                            let better = if max { *v > best[j] } else { *v < best[j] } | v.is_nan();
                            if better & !best[j].is_nan() {
                                best[j] = *v;
                                place[j] = i as i64;
                            }
                        }
                    }
                    std::ptr::copy_nonoverlapping(best.as_ptr(), p.values(to), width);
                    std::ptr::copy_nonoverlapping(place.as_ptr(), p.places(to), width);
                }
            }
        }
    });
}

/// Where the largest (or smallest) element of a row that is not empty stands first.
pub(super) fn first_extreme<T: Number>(row: &[T], max: bool) -> usize {
    // Blocks without a better element, which are nearly all, are passed by a comparison without branches.
    let mut best = row[0];
    let mut at = 0;
    for (b, block) in row.chunks(64).enumerate() {
        if best.is_nan() {
            return at;
        }
        let hit = block.iter().fold(false, |h, v| h | if max { *v > best } else { *v < best } | v.is_nan());
        if hit {
            for (i, v) in block.iter().enumerate() {
                if (if max { *v > best } else { *v < best }) | v.is_nan() {
                    best = *v;
                    at = b * 64 + i;
                    if v.is_nan() {
                        return at;
                    }
                }
            }
        }
    }
    at
}

/// The order of sorting: nan is larger than everything.
#[inline]
fn compare<T: Number>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Which part of the sorted row to write.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub descending: bool,
    /// How many elements of each row are wanted, from the front of the sorted row.
    pub keep: usize,
}

/// Sorts along `n`, stably, and writes the first `keep` of each row with the places they came from.
///
/// # Safety
/// `x` has `outer * n * inner` elements, the outputs `outer * keep * inner` with `keep` at most n; nothing overlaps.
pub unsafe fn sort<T: Number>(part: Part, (outer, n, inner): (usize, usize, usize), x: *const T, values: *mut T, places: *mut i64) {
    let p = Ptrs { x, values, places };
    let jobs = outer * inner;
    let together = (TASK / (8 * n).max(1)).max(1);
    let Part { descending, keep } = part;
    let order = move |a: &(T, u32), b: &(T, u32)| {
        let o = if descending { compare(&b.0, &a.0) } else { compare(&a.0, &b.0) };
        o.then(a.1.cmp(&b.1))
    };
    parallel_for(jobs.div_ceil(together), |t| {
        let mut row: Vec<(T, u32)> = Vec::with_capacity(n);
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, c) = (job / inner, job % inner);
            row.clear();
            // SAFETY: indices stay inside x.
            row.extend((0..n).map(|i| (unsafe { *p.x((o * n + i) * inner + c) }, i as u32)));
            // The place decides between equals, so an unstable sort gives the stable order.
            if keep < n && keep > 0 {
                row.select_nth_unstable_by(keep - 1, order);
            }
            row[..keep].sort_unstable_by(order);
            for (i, (v, place)) in row[..keep].iter().enumerate() {
                let to = (o * keep + i) * inner + c;
                // SAFETY: this job alone writes this row of the outputs.
                unsafe {
                    *p.values(to) = *v;
                    *p.places(to) = i64::from(*place);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extremes(max: bool, shape: (usize, usize, usize), x: &[f32]) -> (Vec<f32>, Vec<i64>) {
        let n = shape.0 * shape.2;
        let (mut v, mut i) = (vec![0.0; n], vec![-1; n]);
        // SAFETY: sizes as the function wants them.
        unsafe { extreme(max, shape, x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        (v, i)
    }

    #[test]
    fn the_first_of_equals_and_the_first_nan_win() {
        let x = [1.0, 3.0, 3.0, 2.0, 0.0, 0.0];
        assert_eq!(extremes(true, (1, 6, 1), &x), (vec![3.0], vec![1]));
        assert_eq!(extremes(false, (1, 6, 1), &x), (vec![0.0], vec![4]));
        assert_eq!(extremes(true, (1, 3, 2), &x), (vec![3.0, 3.0], vec![1, 0]));
        let mut long: Vec<f32> = (0..1000).map(|i| (i % 91) as f32).collect();
        long[700] = f32::NAN;
        long[800] = f32::NAN;
        assert_eq!(extremes(true, (1, 1000, 1), &long).1, [700]);
        assert_eq!(extremes(false, (1, 500, 2), &long).1, [350, 45]);
    }

    #[test]
    fn sorting_is_stable_and_puts_nan_last() {
        let x = [2.0f32, f32::NAN, 1.0, 2.0, -1.0];
        let (mut v, mut i) = ([0.0f32; 5], [0i64; 5]);
        // SAFETY: five elements each.
        unsafe { sort(Part { descending: false, keep: 5 }, (1, 5, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        assert_eq!(i, [4, 2, 0, 3, 1]);
        // SAFETY: as above, two elements are written.
        unsafe { sort(Part { descending: true, keep: 3 }, (1, 5, 1), x.as_ptr(), v.as_mut_ptr(), i.as_mut_ptr()) };
        assert_eq!(i[..3], [1, 0, 3]);
    }
}
