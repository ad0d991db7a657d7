//! argmax and argmin: the positions of the largest and smallest elements along one dimension of a dense array seen as (outer, n, inner).
//!
//! A group of rows is first reduced to its extreme value, as fast as any reduction. Only where that value is better than the best so far is
//! the group searched for its position. In random data the k-th group is searched with probability 1/k. The traversal is not generic: it
//! calls the loops that depend on the element type through a table. Not here: running extremes (`cumulative_extreme`).

pub(super) mod compute;
mod narrow;

use super::reduce::ReduceInput;
use super::reduce::input::WidenedBlocks;
use super::reduce::loops::LoopsOf;
use super::reduce::reducers::{ExtremeOp, Numeric};
use crate::backend::cpu::common::cast::convert_fn;
use crate::host::interrupt;
use crate::host::memory::reserve::zeros;
use crate::host::threads::{SharedPointer, num_threads, parallel_for};
use crate::layout::{DType, Number};
use crate::simd::instruction_set;

/// The least number of elements of a task: several small rows, or a part of a large one.
const TASK: usize = 1 << 15;
/// The most columns that are processed together.
const COLUMNS: usize = 512;
/// With fewer columns than this, each column is processed by itself.
const NARROW: usize = 16;
/// How many rows of several columns, and how many elements of one column, are reduced before they may be searched.
const ROWS: usize = 16;
const LINE: usize = 512;

/// Results of some columns: the best value so far and its position. Among equal values the first counts, and the first nan counts before
/// all others.
#[derive(Clone, Copy)]
struct BestColumns {
    values: *mut u8,
    positions: *mut i64,
    columns: usize,
}

/// Updates the results with `n` rows of all columns, `stride` apart. `position` is the position of the first row; if it equals `begin`, there
/// are no results yet.
type SearchFn = unsafe fn(found: BestColumns, x: *const u8, rows: (usize, isize), position: usize, begin: usize);
/// Merges the results of later elements into these, where they are better.
type JoinFn = unsafe fn(found: BestColumns, others: BestColumns);

/// What the traversal needs of an element type.
#[derive(Clone, Copy)]
struct ArgLoops {
    size: usize,
    search: SearchFn,
    join: JoinFn,
}

fn loops(max: bool, dtype: DType) -> ArgLoops {
    const fn of<T: Numeric, const MAX: bool>() -> ArgLoops {
        ArgLoops { size: size_of::<T>(), search: search::<T, MAX>, join: join::<T, MAX> }
    }
    macro_rules! by_max {
        ($T:ty) => {
            if max { const { of::<$T, true>() } } else { const { of::<$T, false>() } }
        };
    }
    match dtype.number() {
        Number::Bool | Number::U8 => by_max!(u8),
        Number::I32 => by_max!(i32),
        Number::I64 => by_max!(i64),
        Number::F32 => by_max!(f32),
        Number::F64 => by_max!(f64),
        Number::C64 | Number::C128 => unreachable!("complex numbers have no order"),
    }
}

/// As `BestColumns`, of elements of one type.
struct BestOfType<'a, T, const MAX: bool> {
    values: &'a mut [T],
    positions: &'a mut [i64],
}

impl<T: Numeric, const MAX: bool> BestOfType<'_, T, MAX> {
    /// # Safety
    /// The results are initialised, and no other thread uses them.
    unsafe fn of(found: BestColumns) -> Self {
        // SAFETY: the caller's.
        unsafe {
            BestOfType {
                values: std::slice::from_raw_parts_mut(found.values.cast(), found.columns),
                positions: std::slice::from_raw_parts_mut(found.positions, found.columns),
            }
        }
    }

    /// Whether a later value replaces the current best.
    #[inline(always)]
    fn asks_for(&self, column: usize, v: T) -> bool {
        let best = self.values[column];
        (if MAX { v > best } else { v < best } | v.is_nan()) & !best.is_nan()
    }

    #[inline(always)]
    fn set(&mut self, column: usize, v: T, position: usize) {
        self.values[column] = v;
        self.positions[column] = position as i64;
    }

    /// Updates the result with `n` elements of a column, `stride` apart. `position` is the position of the first; if it equals `begin`, there
    /// is no result yet.
    ///
    /// # Safety
    /// All of them are readable; n is at least 1.
    unsafe fn line(&mut self, column: usize, x: *const T, (n, stride): (usize, isize), position: usize, begin: usize) {
        let best_of = (if size_of::<T>() == 8 { LoopsOf::<ExtremeOp<T, MAX>>::NARROW } else { LoopsOf::<ExtremeOp<T, MAX>>::LOOPS }).rows
            [instruction_set() as usize];
        for start in (0..n).step_by(LINE) {
            let len = LINE.min(n - start);
            // SAFETY: below n.
            unsafe {
                let x = x.offset(start as isize * stride);
                let mut v = *x;
                if len >= 8 {
                    best_of(x.cast(), (1, 0), (len, stride), (&raw mut v).cast(), 1);
                }
                let fresh = position + start == begin;
                if len < 8 {
                    if fresh {
                        self.set(column, v, position);
                    }
                    for i in 0..len {
                        let v = *x.offset(i as isize * stride);
                        if self.asks_for(column, v) {
                            self.set(column, v, position + start + i);
                        }
                    }
                } else if fresh || self.asks_for(column, v) {
                    let at = if stride == 1 { first_equal(x, len, v) } else { first_apart(x, len, stride, v) };
                    self.set(column, *x.offset(at as isize * stride), position + start + at);
                }
            }
        }
    }

    /// As `SearchFn` says.
    ///
    /// # Safety
    /// All of them are readable; n is at least 1.
    unsafe fn rows(&mut self, x: *const T, (n, stride): (usize, isize), position: usize, begin: usize) {
        let columns = self.values.len();
        if columns < NARROW {
            // SAFETY: the caller's promise is passed on.
            (0..columns).for_each(|c| unsafe { self.line(c, x.add(c), (n, stride), position, begin) });
            return;
        }
        let loops = LoopsOf::<ExtremeOp<T, MAX>>::LOOPS;
        let best_of = loops.down[instruction_set() as usize];
        let mut found = [T::ZERO; COLUMNS];
        for start in (0..n).step_by(ROWS) {
            let len = ROWS.min(n - start);
            // SAFETY: below n; there is room for so many columns.
            unsafe {
                let x = x.offset(start as isize * stride);
                (loops.fill)(found.as_mut_ptr().cast(), columns);
                best_of(x.cast(), (len, stride), 1, found.as_mut_ptr().cast(), columns);
                let fresh = position + start == begin;
                for (c, v) in found[..columns].iter().enumerate() {
                    if fresh || self.asks_for(c, *v) {
                        let at = first_apart(x.add(c), len, stride, *v);
                        self.set(c, *x.add(c).offset(at as isize * stride), position + start + at);
                    }
                }
            }
        }
    }
}

/// # Safety
/// As `SearchFn` says: the elements are readable, and the results there.
unsafe fn search<T: Numeric, const MAX: bool>(found: BestColumns, x: *const u8, rows: (usize, isize), position: usize, begin: usize) {
    // SAFETY: the caller's.
    unsafe { BestOfType::<T, MAX>::of(found).rows(x.cast(), rows, position, begin) }
}

/// # Safety
/// Both are there and do not overlap.
unsafe fn join<T: Numeric, const MAX: bool>(found: BestColumns, others: BestColumns) {
    // SAFETY: the caller's.
    let (mut best, others) = unsafe { (BestOfType::<T, MAX>::of(found), BestOfType::<T, MAX>::of(others)) };
    for (c, (v, position)) in others.values.iter().zip(others.positions.iter()).enumerate() {
        if best.asks_for(c, *v) {
            best.set(c, *v, *position as usize);
        }
    }
}

#[inline(always)]
fn same<T: Numeric>(a: T, b: T) -> bool {
    (a == b) | (a.is_nan() & b.is_nan())
}

/// The index of the first of `n` elements that equals `v`; 0 if none does, because another thread has written in the meantime.
///
/// # Safety
/// All of them are readable.
unsafe fn first_equal<T: Numeric>(x: *const T, n: usize, v: T) -> usize {
    const TOGETHER: usize = 32;
    // SAFETY: asked below for positions below n.
    let at = |i: usize| same(unsafe { *x.add(i) }, v);
    let mut start = 0;
    while start + TOGETHER <= n {
        if (0..TOGETHER).fold(false, |any, i| any | at(start + i)) {
            return (start..start + TOGETHER).find(|i| at(*i)).unwrap_or(0);
        }
        start += TOGETHER;
    }
    (start..n).find(|i| at(*i)).unwrap_or(0)
}

/// As `first_equal`, of elements that lie `stride` apart.
///
/// # Safety
/// All of them are readable.
unsafe fn first_apart<T: Numeric>(x: *const T, n: usize, stride: isize, v: T) -> usize {
    // SAFETY: the caller's.
    (0..n).find(|i| same(unsafe { *x.offset(*i as isize * stride) }, v)).unwrap_or(0)
}

/// The dtype in which elements are compared. Those of bool become 0 and 1: foreign memory may hold other bytes.
fn computed_in(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::I32 } else { dtype.computed() }
}

/// The largest elements (smallest, with `max` false) along `n`, and the first position of each. A nan takes precedence over all numbers.
///
/// # Safety
/// `x` has `outer * n * inner` elements of this dtype with n at least 1, the outputs `outer * inner`; nothing overlaps.
pub unsafe fn extreme(
    max: bool,
    dtype: DType,
    (outer, n, inner): (usize, usize, usize),
    x: ReduceInput<'_>,
    values: *mut u8,
    positions: *mut i64,
) {
    let k = loops(max, dtype);
    let all = outer * inner;
    if all == 0 {
        return;
    }
    let computed = computed_in(dtype);
    if computed != dtype {
        let wide = WidenedBlocks { from: x, dtype, to: computed };
        let mut best = zeros::<u64>((all * computed.size()).div_ceil(8));
        let best = best.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller's; there is room for as many values of the wider type.
        unsafe {
            extreme(max, computed, (outer, n, inner), ReduceInput::Made(&wide), best, positions);
            convert_fn(computed, dtype)(1, all, best, (0, computed.size() as isize), values, (0, dtype.size() as isize));
        }
        return;
    }
    if let ReduceInput::Made(_) = x {
        // After a request to stop, tasks leave their part unwritten. SAFETY: the outputs hold so many.
        unsafe {
            std::ptr::write_bytes(values, 0, all * k.size);
            std::ptr::write_bytes(positions, 0, all);
        }
    }
    if inner == 1
        && let Some(isa) = narrow::fits(outer, n)
    {
        // SAFETY: the caller's.
        unsafe {
            match dtype.number() {
                Number::F32 => return narrow::extreme::<f32>(isa, max, (outer, n), x, values.cast(), positions),
                Number::F64 => return narrow::extreme::<f64>(isa, max, (outer, n), x, values.cast(), positions),
                _ => {}
            }
        }
    }
    let width = inner.min(COLUMNS);
    let strips = inner.div_ceil(COLUMNS);
    // Few long columns are cut into pieces; the result does not depend on the cuts.
    let wanted = (4 * num_threads()).div_ceil(outer * strips);
    let rows = n.div_ceil(wanted).max(TASK.div_ceil(width)).min(n);
    let pieces = n.div_ceil(rows);
    // Results of each piece; those of the first piece go to the outputs.
    let others = (pieces - 1) * all;
    let (mut found, mut at) = (zeros::<u64>((others * k.size).div_ceil(8)), zeros::<i64>(others));
    let results = [
        (SharedPointer::new(values), SharedPointer::new(positions)),
        (SharedPointer::new(found.as_mut_ptr().cast()), SharedPointer::new(at.as_mut_ptr())),
    ];
    let jobs = outer * strips * pieces;
    let together = (TASK / (rows * width)).max(1);
    // Rows that are computed at a time.
    let most = if matches!(x, ReduceInput::Made(_)) { (TASK / width).max(1) } else { (8 * TASK / width).max(1) };
    parallel_for(jobs.div_ceil(together), |task| {
        for job in task * together..jobs.min((task + 1) * together) {
            let (piece, o, strip) = (job / (outer * strips), job / strips % outer, job % strips);
            let (begin, column) = (piece * rows, strip * COLUMNS);
            let columns = COLUMNS.min(inner - column);
            let (to, start) = if piece == 0 { (&results[0], 0) } else { (&results[1], (piece - 1) * all) };
            let first = start + o * inner + column;
            // No other job writes these columns of this piece, and they lie inside the results.
            let found = BestColumns { values: to.0.at(first * k.size), positions: to.1.at(first), columns };
            let end = n.min(begin + rows);
            for row in (begin..end).step_by(most) {
                interrupt::check();
                if let ReduceInput::Made(blocks) = x
                    && !blocks.should_continue()
                {
                    return;
                }
                let count = most.min(end - row);
                let at = ((o * n + row) * inner + column) as isize;
                // A single column is one row of elements, computed at once.
                let (p, stride) =
                    if inner == 1 { (x.rows(at, 1, 1, count, k.size).0, 1) } else { x.rows(at, count, inner as isize, columns, k.size) };
                // SAFETY: these elements lie inside x, or are computed here and valid until the next call on this thread.
                unsafe { (k.search)(found, p, (count, stride), row, begin) };
            }
        }
    });
    for piece in 0..pieces - 1 {
        let (others, at) = (results[1].0.at(piece * all * k.size), results[1].1.at(piece * all));
        // SAFETY: the outputs hold so many, and so does what each piece found.
        unsafe { (k.join)(BestColumns { values, positions, columns: all }, BestColumns { values: others, positions: at, columns: all }) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce::BlockProducer;
    use super::*;

    struct Lying(Vec<f32>);

    impl BlockProducer for Lying {
        unsafe fn produce(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
            // SAFETY: the buffer has room for them.
            unsafe { std::ptr::copy_nonoverlapping(self.0[start..start + len].as_ptr(), buffer.cast(), len) };
            buffer
        }
        fn produce_all(&self) -> Option<*const u8> {
            None
        }
        fn should_continue(&self) -> bool {
            true
        }
    }

    fn extremes(max: bool, shape: (usize, usize, usize), x: ReduceInput<'_>) -> (Vec<u32>, Vec<i64>) {
        let n = shape.0 * shape.2;
        let (mut v, mut i) = (vec![0.0; n], vec![-1; n]);
        // SAFETY: the sizes are those that the function requires.
        unsafe { extreme(max, DType::F32, shape, x, v.as_mut_ptr().cast(), i.as_mut_ptr()) };
        (v.iter().map(|v: &f32| v.to_bits()).collect(), i)
    }

    /// One element after the other.
    fn naive(max: bool, (outer, n, inner): (usize, usize, usize), x: &[f32]) -> (Vec<u32>, Vec<i64>) {
        let of = |o: usize, c: usize| {
            let at = |i: usize| x[(o * n + i) * inner + c];
            let better = |v: f32, best: f32| !best.is_nan() && (v.is_nan() || if max { v > best } else { v < best });
            let best = (1..n).fold(0, |best, i| if better(at(i), at(best)) { i } else { best });
            (at(best).to_bits(), best as i64)
        };
        (0..outer * inner).map(|k| of(k / inner, k % inner)).unzip()
    }

    #[test]
    fn the_first_of_equals_and_the_first_nan_win() {
        let x = [1.0f32, 3.0, 3.0, 2.0, 0.0, 0.0];
        let positions = |max, shape| extremes(max, shape, ReduceInput::Memory(x.as_ptr().cast())).1;
        assert_eq!(positions(true, (1, 6, 1)), [1]);
        assert_eq!(positions(false, (1, 6, 1)), [4]);
        assert_eq!(positions(true, (1, 3, 2)), [1, 0]);
        let mut long: Vec<f32> = (0..1000).map(|i| (i % 91) as f32).collect();
        (long[700], long[800]) = (f32::NAN, -f32::NAN);
        assert_eq!(extremes(true, (1, 1000, 1), ReduceInput::Memory(long.as_ptr().cast())), (vec![f32::NAN.to_bits()], vec![700]));
        assert_eq!(extremes(false, (1, 500, 2), ReduceInput::Memory(long.as_ptr().cast())).1, [350, 45]);
    }

    #[test]
    fn everything_is_found_wherever_it_lies() {
        let shapes = [
            (1, 300_000, 1),
            (5, 70, 1),
            (3, 9000, 1),
            (1, 700, 900),
            (2, 3, 2500),
            (4, 1, 6),
            (1, 2, 1),
            (2, 5000, 3),
            (1, 40_000, 20),
            (300, 3, 2),
            (8, 1, 1),
            (77, 10, 1),
            (3000, 64, 1),
            (400, 65, 1),
        ];
        for shape in shapes {
            let numel = shape.0 * shape.1 * shape.2;
            for (step, nan) in [(7919, false), (1, false), (104_729, true)] {
                let mut x: Vec<f32> = (0..numel).map(|i| (i * step % 1013) as f32 - 500.0).collect();
                x.iter_mut().filter(|v| **v == 3.0).for_each(|v| *v = -0.0);
                if nan {
                    (0..numel).skip(numel / 3).step_by(977).for_each(|i| x[i] = if i % 2 == 0 { f32::NAN } else { -f32::NAN });
                }
                for max in [true, false] {
                    let want = naive(max, shape, &x);
                    assert_eq!(extremes(max, shape, ReduceInput::Memory(x.as_ptr().cast())), want, "{shape:?} {step} {max}");
                    assert_eq!(extremes(max, shape, ReduceInput::Made(&Lying(x.clone()))), want, "{shape:?} {step} {max}, made");
                }
            }
        }
    }

    #[test]
    fn integers_and_doubles_go_the_same_way() {
        let x: Vec<i64> = (0..70_000).map(|i| i * 7919 % 1013 - 500).collect();
        let y: Vec<f64> = x.iter().map(|v| *v as f64).collect();
        let z: Vec<u8> = x.iter().map(|v| (v + 500) as u8).collect();
        for shape in [(1, 70_000, 1), (7, 100, 100), (100, 70, 10), (7000, 10, 1)] {
            let n = shape.0 * shape.2;
            let (mut v, mut w, mut u) = (vec![0i64; n], vec![0f64; n], vec![0u8; n]);
            let mut positions = [vec![0i64; n], vec![0i64; n], vec![0i64; n]];
            // SAFETY: the sizes are those that the function requires.
            unsafe {
                extreme(true, DType::I64, shape, ReduceInput::Memory(x.as_ptr().cast()), v.as_mut_ptr().cast(), positions[0].as_mut_ptr());
                extreme(true, DType::F64, shape, ReduceInput::Memory(y.as_ptr().cast()), w.as_mut_ptr().cast(), positions[1].as_mut_ptr());
                extreme(true, DType::U8, shape, ReduceInput::Memory(z.as_ptr().cast()), u.as_mut_ptr().cast(), positions[2].as_mut_ptr());
            }
            assert_eq!(positions[0], positions[1], "{shape:?}");
            assert!(v.iter().zip(&w).all(|(a, b)| *a as f64 == *b));
            let best = |o: usize, c: usize| (0..shape.1).map(|i| z[(o * shape.1 + i) * shape.2 + c]).max();
            assert!((0..n).all(|k| Some(u[k]) == best(k / shape.2, k % shape.2)), "{shape:?}");
        }
    }
}
