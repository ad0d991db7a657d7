//! Reductions over strided memory: the walk. What is reduced to what is a `Reducer` (see `reducers`).
//!
//! The order in which elements meet depends on shape and strides alone, never on the number of threads: elements go into a fixed
//! number of lanes, lanes are merged as a tree, blocks are merged pairwise (so rounding errors grow with the logarithm of the size).

use super::reduce_loops::{down_any, row_any, rows_any};
use super::threads::{Shared, parallel_for};
use smallvec::SmallVec;
use std::cell::RefCell;

/// Maps an element to an accumulator and merges accumulators. `merge` must be associative up to rounding.
pub trait Reducer: Copy + Send + Sync {
    type In: Copy + Send + Sync;
    type Acc: Copy + Send + Sync;
    type Out: Copy;

    fn init(self) -> Self::Acc;
    /// `shift` is a value of the output that the element belongs to (a mean, a maximum), where the caller gave one.
    fn lift(self, x: Self::In, shift: Self::In) -> Self::Acc;
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn finish(self, a: Self::Acc) -> Self::Out;

    /// `merge(a, lift(x, shift))`, with the same bits.
    #[inline(always)]
    fn add(self, a: Self::Acc, x: Self::In, shift: Self::In) -> Self::Acc {
        self.merge(a, self.lift(x, shift))
    }

    /// All merged: the eight as a tree, and then `acc` with them.
    #[inline(always)]
    fn merge_eight(self, acc: Self::Acc, [a, b, c, d, e, f, g, h]: [Self::Acc; 8]) -> Self::Acc {
        let left = self.merge(self.merge(a, b), self.merge(c, d));
        self.merge(acc, self.merge(left, self.merge(self.merge(e, f), self.merge(g, h))))
    }

    /// The accumulator of a dense block of `n` elements where there is a quicker way to it.
    ///
    /// # Safety
    /// All of them are readable.
    #[inline(always)]
    unsafe fn block(self, _p: *const Self::In, _n: usize) -> Option<Self::Acc> {
        None
    }

    /// The accumulator of `n` elements that lie `stride` apart. A reducer that looks at them twice does it here, and in `rows` and `down`,
    /// where they are few enough to be near still.
    ///
    /// # Safety
    /// All of them are readable.
    #[inline(always)]
    unsafe fn row(self, p: *const Self::In, n: usize, stride: isize, shift: Self::In) -> Self::Acc {
        // SAFETY: the caller's promise is passed on.
        unsafe { row_any(self, p, n, stride, shift) }
    }

    /// The results of many rows.
    ///
    /// # Safety
    /// `count.0` rows, `count.1` apart, of `row.0` elements, `row.1` apart, are readable; so are `shift`, and writable `out`, at their steps.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn rows(
        self,
        p: *const Self::In,
        count: (usize, isize),
        row: (usize, isize),
        shift: *const Self::In,
        shift_step: isize,
        out: *mut Self::Out,
        out_step: isize,
    ) {
        // SAFETY: the caller's promise is passed on.
        unsafe { rows_any(self, p, count, row, shift, shift_step, out, out_step) }
    }

    /// The accumulators of columns, each of `rows` elements, into `acc`, which is overwritten.
    ///
    /// # Safety
    /// `acc.len()` columns, `stride` apart, of all rows are readable, as is `shift` at `shift_stride` for each column.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn down(
        self,
        p: *const Self::In,
        rows: usize,
        row_stride: isize,
        stride: isize,
        shift: *const Self::In,
        shift_stride: isize,
        acc: &mut [Self::Acc],
    ) {
        // SAFETY: the caller's promise is passed on.
        unsafe { down_any(self, p, rows, row_stride, stride, shift, shift_stride, acc) }
    }
}

/// Elements that one task reads. Smaller work stays on the calling thread.
const TASK: usize = 1 << 16;
/// Rows that are summed up one by one before pairwise merging takes over.
const ROWS: usize = 64;
/// Columns of a block that is reduced downwards: their accumulators fit the first-level cache, and rows are read a page or more at a time.
const COLUMNS: usize = 2048;

#[derive(Clone, Copy)]
struct Dim {
    size: usize,
    stride: isize,
    /// Stride in the output; 0 and unused where reduced.
    out: isize,
    reduced: bool,
}

type DimVec = SmallVec<[Dim; 6]>;

/// Elements that are made when a reduction wants them, by their place in memory order.
pub trait Blocks: Sync {
    /// The elements `start..start + len`, either where they lie anyway or in `buffer`. Each is made once.
    ///
    /// # Safety
    /// There are so many elements, and `buffer` has room for them, aligned.
    unsafe fn make(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8;

    /// Where all elements lie, made there now, for who reads a few here and there; None where nobody keeps them, so that each may be made
    /// alone.
    fn all(&self) -> Option<*const u8>;

    /// To be called now and then, with nothing borrowed: whether to go on. If not, nothing is made any more, and what the reduction gives
    /// does not matter.
    fn goes_on(&self) -> bool;
}

/// What a reduction reads.
#[derive(Clone, Copy)]
pub enum Source<'a, T> {
    Memory(*const T),
    /// Elements of a dense array, from its first in memory order on.
    Made(&'a dyn Blocks),
}

// SAFETY: memory is only read; the caller of a reduction keeps it alive.
unsafe impl<T> Sync for Source<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Send for Source<'_, T> {}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

thread_local! {
    static MADE: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

impl<T: Copy> Source<'_, T> {
    /// `n` rows of `columns` dense elements, the first at `at`: where they begin, and the stride from row to row. What is made stays there
    /// until this thread asks again.
    #[inline(always)]
    pub(super) fn rows(&self, at: isize, n: usize, stride: isize, columns: usize) -> (*const T, isize) {
        match self {
            Source::Memory(p) => (p.wrapping_offset(at), stride),
            Source::Made(blocks) => made(*blocks, at, n, stride, columns),
        }
    }
}

#[inline(never)]
fn made<T>(blocks: &dyn Blocks, at: isize, n: usize, stride: isize, columns: usize) -> (*const T, isize) {
    let size = size_of::<T>();
    let goes_on = blocks.goes_on();
    MADE.with(|m| {
        let mut m = m.borrow_mut();
        let lines = (n * columns * size).div_ceil(64);
        if m.len() < lines {
            m.resize(lines, Line([0; 64]));
        }
        let buffer = m.as_mut_ptr().cast::<u8>();
        if !goes_on {
            return (buffer.cast_const().cast(), columns as isize);
        }
        if n == 1 || stride == columns as isize {
            // SAFETY: what the caller of a reduction promised of its source; the buffer was made large enough.
            return (unsafe { blocks.make(at as usize, n * columns, buffer) }.cast(), columns as isize);
        }
        for i in 0..n {
            let to = buffer.wrapping_add(i * columns * size);
            // SAFETY: as above.
            let from = unsafe { blocks.make(at as usize + i * stride as usize, columns, to) };
            if !std::ptr::eq(from, to) {
                // SAFETY: both hold a row, and what lies elsewhere is no part of the buffer.
                unsafe { std::ptr::copy_nonoverlapping(from, to, columns * size) };
            }
        }
        (buffer.cast_const().cast(), columns as isize)
    })
}

/// Reduces `input` over the dimensions marked in `reduced` into `out`, row-major over the others. `shift`, row-major like `out`, may
/// be null where the reducer does not read it.
///
/// # Safety
/// `input` is readable over `shape` and `strides`; `out` (and `shift` unless null) has an element for each index of the kept dimensions
/// and does not overlap `input`.
pub unsafe fn run<R: Reducer>(
    r: R,
    shape: &[usize],
    strides: &[isize],
    reduced: &[bool],
    input: *const R::In,
    shift: *const R::In,
    out: *mut R::Out,
) {
    // SAFETY: the caller's.
    unsafe { run_from(r, shape, strides, reduced, Source::Memory(input), shift, out) }
}

/// As `run`, for elements that are made on the way as well.
///
/// # Safety
/// As for `run`; what is made is of type `R::In`, and `strides` are those of a dense array.
pub unsafe fn run_from<R: Reducer>(
    r: R,
    shape: &[usize],
    strides: &[isize],
    reduced: &[bool],
    input: Source<'_, R::In>,
    shift: *const R::In,
    out: *mut R::Out,
) {
    // SAFETY: the caller's promise covers every offset made from these dimensions.
    unsafe {
        let mut dims = DimVec::new();
        let mut step = 1isize;
        let mut total = 1usize;
        for i in (0..shape.len()).rev() {
            total *= shape[i];
            let out_stride = if reduced[i] { 0 } else { step };
            if !reduced[i] {
                step *= shape[i] as isize;
            }
            if shape[i] != 1 {
                dims.push(Dim { size: shape[i], stride: strides[i], out: out_stride, reduced: reduced[i] });
            }
        }
        if step == 0 {
            return;
        }
        if total == 0 {
            let empty = r.finish(r.init());
            (0..step).for_each(|i| out.offset(i).write(empty));
            return;
        }
        arrange(&mut dims);
        let shifted = !shift.is_null();
        // Reducers without a shift are handed an element all the same.
        let shift = if shifted { Some(Shared::new(shift.cast_mut())) } else { None };
        let out = Shared::new(out);
        let shift_at = |o: isize, x: *const R::In| shift.as_ref().map_or(x, |s| s.offset(o).cast_const());

        match dims.last().copied() {
            None => {
                let (x, _) = input.rows(0, 1, 1, 1);
                let a = r.merge(r.init(), r.lift(*x, *shift_at(0, x)));
                out.offset(0).write(r.finish(a));
            }
            Some(inner) if inner.reduced => {
                dims.pop();
                let kept: DimVec = dims.iter().filter(|d| !d.reduced).copied().collect();
                let outer: DimVec = dims.iter().filter(|d| d.reduced).copied().collect();
                let pieces = inner.size.div_ceil(TASK);
                let groups: usize = kept.iter().map(|d| d.size).product();
                if outer.is_empty() && pieces == 1 && kept.len() <= 1 {
                    let (step, to) = kept.first().map_or((0, 0), |d| (d.stride, d.out));
                    let shift_step = if shifted { to } else { 0 };
                    let together = (TASK / inner.size).max(1);
                    parallel_for(groups.div_ceil(together), |t| {
                        let first = (t * together) as isize;
                        let n = groups.min((t + 1) * together) - t * together;
                        // Task t alone writes these results.
                        let (x, step) = input.rows(first * step, n, step, inner.size);
                        r.rows(x, (n, step), (inner.size, inner.stride), shift_at(first * to, x), shift_step, out.offset(first * to), to);
                    });
                    return;
                }
                let segments = outer.iter().map(|d| d.size).product::<usize>() * pieces;
                drive(
                    Work { groups, segments, width: 1, elements: inner.size.min(TASK) },
                    r,
                    |g, s, acc: &mut [R::Acc]| {
                        let (i, o) = offsets(&kept, g);
                        let (row, piece) = if pieces == 1 { (s, 0) } else { (s / pieces, s % pieces) };
                        let start = piece * TASK;
                        let at = i + offsets(&outer, row).0 + start as isize * inner.stride;
                        let n = inner.size.min(start + TASK) - start;
                        let (x, _) = input.rows(at, 1, 1, n);
                        acc[0] = r.row(x, n, inner.stride, *shift_at(o, x));
                    },
                    |g, acc| out.offset(offsets(&kept, g).1).write(r.finish(acc[0])),
                );
            }
            Some(inner) => {
                dims.pop();
                let down = match dims.iter().rposition(|d| d.reduced) {
                    Some(i) => dims.remove(i),
                    None => Dim { size: 1, stride: 0, out: 0, reduced: true },
                };
                let kept: DimVec = dims.iter().filter(|d| !d.reduced).copied().collect();
                let outer: DimVec = dims.iter().filter(|d| d.reduced).copied().collect();
                let outer_n: usize = outer.iter().map(|d| d.size).product();
                let kept_n: usize = kept.iter().map(|d| d.size).product();

                // Few dense columns: several rows are read as one, and their copies of the accumulators merged at the end.
                let dense = inner.stride == 1 && down.stride == inner.size as isize && !shifted;
                let fold = if dense && inner.size <= 64 { 128 / inner.size } else { 1 };
                let (fold, rows, tail) = if fold > 1 && down.size >= 2 * fold {
                    (fold, down.size / fold, down.size % fold * inner.size)
                } else {
                    (1, down.size, 0)
                };
                let row_stride = down.stride * fold as isize;
                let all_columns = inner.size * fold;
                let width = if fold > 1 { all_columns } else { all_columns.min(COLUMNS) };
                let blocks = all_columns.div_ceil(width);
                let pieces = rows.div_ceil(ROWS);
                let segments = outer_n * pieces;
                drive(
                    Work { groups: kept_n * blocks, segments, width, elements: rows.min(ROWS) * width },
                    r,
                    |g, s, acc: &mut [R::Acc]| {
                        let (group, block) = (g / blocks, g % blocks);
                        let (i, o) = offsets(&kept, group);
                        let (index, piece) = (s / pieces, s % pieces);
                        let first = block * width;
                        let columns = width.min(all_columns - first);
                        let start = piece * ROWS;
                        let base = i + offsets(&outer, index).0;
                        let at = base + first as isize * inner.stride + start as isize * row_stride;
                        let acc = &mut acc[..columns];
                        let n = rows.min(start + ROWS) - start;
                        let shift_stride = if shifted { inner.out } else { 0 };
                        let (x, down_stride) = input.rows(at, n, row_stride, columns);
                        let sh = shift_at(o + first as isize * inner.out, x);
                        r.down(x, n, down_stride, inner.stride, sh, shift_stride, acc);
                        if tail > 0 && start + n == rows {
                            let (rest, _) = input.rows(base + rows as isize * row_stride, 1, 1, tail);
                            for (j, a) in acc[..tail].iter_mut().enumerate() {
                                *a = r.merge(*a, r.lift(*rest.add(j), *rest));
                            }
                        }
                    },
                    |g, acc| {
                        let (group, block) = (g / blocks, g % blocks);
                        let first = block * width;
                        let to = offsets(&kept, group).1;
                        if fold > 1 {
                            for j in 0..inner.size {
                                let mut a = acc[j];
                                (1..fold).for_each(|f| a = r.merge(a, acc[f * inner.size + j]));
                                out.offset(to + j as isize * inner.out).write(r.finish(a));
                            }
                        } else {
                            for (j, a) in acc[..width.min(all_columns - first)].iter().enumerate() {
                                out.offset(to + (first + j) as isize * inner.out).write(r.finish(*a));
                            }
                        }
                    },
                );
            }
        }
    }
}

/// Largest stride first (repeated elements, of stride 0, outermost); neighbours that can be walked as one are joined.
fn arrange(dims: &mut DimVec) {
    let key = |d: &Dim| if d.stride == 0 { isize::MIN } else { -d.stride };
    dims.reverse();
    if !dims.is_sorted_by_key(key) {
        dims.sort_by_key(key);
    }
    let mut n = 0;
    for i in 0..dims.len() {
        let d = dims[i];
        if n > 0 {
            let p = dims[n - 1];
            let joins = p.reduced == d.reduced && p.stride == d.stride * d.size as isize && (p.reduced || p.out == d.out * d.size as isize);
            if joins {
                dims[n - 1] = Dim { size: p.size * d.size, ..d };
                continue;
            }
        }
        dims[n] = d;
        n += 1;
    }
    dims.truncate(n);
}

/// Input and output offset of the `i`-th index over `dims`, the last of which runs fastest.
#[inline]
fn offsets(dims: &[Dim], mut i: usize) -> (isize, isize) {
    match dims {
        [] => (0, 0),
        [d] => (i as isize * d.stride, i as isize * d.out),
        _ => {
            let (mut a, mut b) = (0, 0);
            for d in dims.iter().rev() {
                let at = (i % d.size) as isize;
                i /= d.size;
                a += at * d.stride;
                b += at * d.out;
            }
            (a, b)
        }
    }
}

/// Outputs come in `groups` of up to `width`; each group is the merge of `segments` of about `elements` elements.
#[derive(Clone, Copy)]
struct Work {
    groups: usize,
    segments: usize,
    width: usize,
    elements: usize,
}

#[inline(always)]
fn drive<R: Reducer>(w: Work, r: R, segment: impl Fn(usize, usize, &mut [R::Acc]) + Sync, write: impl Fn(usize, &[R::Acc]) + Sync) {
    let per_task = (TASK / w.elements.max(1)).clamp(1, w.segments);
    let parts = w.segments.div_ceil(per_task);
    let collect = |g: usize, first: usize, last: usize, acc: &mut [R::Acc], levels: &mut Vec<R::Acc>| {
        segment(g, first, acc);
        if last - first > 1 {
            pairwise(r, last - first, acc, levels, |i, acc| {
                if i > 0 {
                    segment(g, first + i, acc);
                }
            });
        }
    };
    if parts == 1 {
        let groups_per_task = (TASK / (w.segments * w.elements).max(1)).max(1);
        parallel_for(w.groups.div_ceil(groups_per_task), |t| {
            let mut acc: SmallVec<[R::Acc; 64]> = SmallVec::from_elem(r.init(), w.width);
            let mut levels = Vec::new();
            for g in t * groups_per_task..w.groups.min((t + 1) * groups_per_task) {
                collect(g, 0, w.segments, &mut acc, &mut levels);
                write(g, &acc);
            }
        });
        return;
    }
    let mut partial = vec![r.init(); w.groups * parts * w.width];
    let to = Shared::new(partial.as_mut_ptr());
    parallel_for(w.groups * parts, |t| {
        let (g, part) = (t / parts, t % parts);
        // SAFETY: task t alone writes this stretch of `partial`, which outlives the tasks.
        let acc = unsafe { std::slice::from_raw_parts_mut(to.at(t * w.width), w.width) };
        collect(g, part * per_task, w.segments.min((part + 1) * per_task), acc, &mut Vec::new());
    });
    for (g, mine) in partial.chunks_mut(parts * w.width).enumerate() {
        let mut step = 1;
        while step < parts {
            for i in (0..parts - step).step_by(2 * step) {
                let (a, b) = mine.split_at_mut((i + step) * w.width);
                for (x, y) in a[i * w.width..].iter_mut().zip(&b[..w.width]) {
                    *x = r.merge(*x, *y);
                }
            }
            step *= 2;
        }
        write(g, &mine[..w.width]);
    }
}

/// Merges `n` vectors that `make(i, acc)` leaves in `acc`, as a binary counter does: equal numbers of vectors meet.
fn pairwise<R: Reducer>(r: R, n: usize, acc: &mut [R::Acc], levels: &mut Vec<R::Acc>, make: impl Fn(usize, &mut [R::Acc])) {
    let width = acc.len();
    levels.clear();
    for i in 0..n {
        make(i, acc);
        let mut level = 0;
        while i >> level & 1 == 1 {
            for (a, l) in acc.iter_mut().zip(&levels[level * width..]) {
                *a = r.merge(*l, *a);
            }
            level += 1;
        }
        if levels.len() < (level + 1) * width {
            levels.resize((level + 1) * width, r.init());
        }
        levels[level * width..][..width].copy_from_slice(acc);
    }
    let mut first = true;
    for level in 0..usize::BITS as usize {
        if n >> level & 1 == 1 {
            let from = &levels[level * width..][..width];
            if first {
                acc.copy_from_slice(from);
                first = false;
            } else {
                for (a, l) in acc.iter_mut().zip(from) {
                    *a = r.merge(*l, *a);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reducers::Sum;
    use super::*;

    fn naive(shape: &[usize], strides: &[isize], reduced: &[bool], x: &[f64]) -> Vec<f64> {
        let kept: Vec<usize> = (0..shape.len()).filter(|i| !reduced[*i]).collect();
        let mut out = vec![0.0; kept.iter().map(|i| shape[*i]).product()];
        let n: usize = shape.iter().product();
        for flat in 0..n {
            let (mut at, mut to, mut rest, mut step) = (0isize, 0, flat, 1);
            for d in (0..shape.len()).rev() {
                let i = rest % shape[d];
                rest /= shape[d];
                at += i as isize * strides[d];
                if !reduced[d] {
                    to += i * step;
                    step *= shape[d];
                }
            }
            out[to] += x[at as usize];
        }
        out
    }

    #[test]
    fn every_layout_and_set_of_dims_agrees_with_a_naive_loop() {
        let x: Vec<f64> = (0..400_000usize).map(|i| ((i * 7919) % 1013) as f64 - 500.0).collect();
        let cases: [(&[usize], &[isize]); 12] = [
            (&[], &[]),
            (&[5], &[1]),
            (&[100_000], &[3]),
            (&[3, 7], &[7, 1]),
            (&[7, 3], &[1, 7]),
            (&[1000, 130], &[130, 1]),
            (&[4000, 3], &[3, 1]),
            (&[600, 600], &[600, 1]),
            (&[2, 3, 4], &[12, 4, 1]),
            (&[20, 30, 40], &[1, 20, 600]),
            (&[50, 4, 60], &[240, 0, 2]),
            (&[9, 0, 4], &[1, 1, 1]),
        ];
        for (shape, strides) in cases {
            for mask in 0..1u32 << shape.len() {
                let reduced: Vec<bool> = (0..shape.len()).map(|d| mask >> d & 1 == 1).collect();
                let want = naive(shape, strides, &reduced, &x);
                let mut got = vec![f64::NAN; want.len()];
                // SAFETY: the cases stay inside x, and `got` has one place for each kept index.
                unsafe {
                    run(Sum::<f64, f64>::NEW, shape, strides, &reduced, x.as_ptr(), std::ptr::null(), got.as_mut_ptr());
                }
                // Integers of this size add up exactly in any order.
                assert_eq!(got, want, "{shape:?} {strides:?} {reduced:?}");
            }
        }
    }

    #[test]
    fn single_precision_sums_stay_accurate() {
        let n = 1 << 22;
        let x: Vec<f32> = (0..n).map(|i| 0.1 + (i % 7) as f32 * 1e-3).collect();
        let exact: f64 = x.iter().map(|v| f64::from(*v)).sum();
        for (shape, strides) in [(&[n][..], &[1isize][..]), (&[n / 4, 4], &[4, 1]), (&[n / 2048, 2048], &[1, n as isize / 2048])] {
            let mut got = 0f32;
            // SAFETY: the shapes have n elements, laid out densely.
            unsafe { run(Sum::<f32, f32>::NEW, shape, strides, &vec![true; shape.len()], x.as_ptr(), std::ptr::null(), &mut got) };
            assert!((f64::from(got) - exact).abs() / exact < 3e-7, "{got} {exact}");
        }
    }
}
