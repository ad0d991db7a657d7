//! The traversal of a reduction over strided memory. It is not generic: a `ReduceKernel` describes the reduction, its loops are called
//! through a table, and elements and accumulators are bytes.
//!
//! The order in which elements are combined depends on shape and strides alone, never on the number of threads: elements are added to a
//! fixed number of lanes, lanes are merged as a tree, and blocks are merged pairwise, so rounding errors grow with the logarithm of the
//! size.

use super::input::{CacheLine, reserve};
use super::loaders::Load;
use super::loops::{ColumnsFn, ReduceLoops, RowsFn};
use super::segments::{SegmentPlan, drive, pairwise};
use crate::backend::cpu::common::in_lanes::{transpose_in, transposed_size};
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::{InstructionSet, instruction_set};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::MaybeUninit;

use super::input::ReduceInput;

thread_local! {
    /// Elements that were loaded for the loops.
    static LOADED: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

/// Computes `n` results, `step` results apart, from the accumulators at `acc`. The number is that of the reduction.
pub type FinishFn = unsafe fn(acc: *const u8, n: usize, out: *mut u8, step: isize, number: f64);

/// A reduction of one dtype.
#[derive(Clone, Copy)]
pub struct ReduceKernel {
    pub(crate) loops: &'static ReduceLoops,
    /// The conversion of elements to the type that the loops read; None if they have it.
    pub(crate) load: Option<Load>,
    /// None if accumulators are the results.
    pub(crate) finish: Option<FinishFn>,
    /// Bytes of a result.
    pub(crate) out: usize,
    /// A parameter of `load` and `finish`: the order of a norm.
    pub(crate) number: f64,
}

/// Elements that one task reads. Smaller work stays on the calling thread.
pub(super) const TASK: usize = 1 << 16;
/// Rows that are summed up one by one before pairwise merging takes over.
const ROWS: usize = 64;
/// Columns of a block that is reduced downwards: their accumulators fit the first-level cache, and rows are read a page or more at a time.
const COLUMNS: usize = 2048;
/// Elements that are loaded together; they fit the first-level cache.
const BLOCK: usize = 2048;
/// Rows of more elements than loops along rows have fixed numbers of, and of at most so many bytes, are transposed to columns if there are a few.
const WIDEST_FIXED: usize = 8;
const NARROW: usize = 256;
const FEW: usize = 16;
/// How many accumulators are buffered on the stack before results are computed from them.
const FINISHED: usize = 64;
/// Words of eight bytes of the largest accumulator.
const LARGEST: usize = 3;

#[derive(Clone, Copy)]
struct ReduceDim {
    size: usize,
    stride: isize,
    /// Stride in the output; 0 and unused where reduced.
    out: isize,
    reduced: bool,
}

type ReduceDims = SmallVec<[ReduceDim; 6]>;

/// A reduction with the loops of the selected instruction set.
#[derive(Clone, Copy)]
pub(super) struct BoundKernel<'a> {
    r: &'a ReduceKernel,
    rows: RowsFn,
    down: ColumnsFn,
    /// Bytes of an element in memory, of an accumulator, of a result.
    size: usize,
    pub acc: usize,
    out: usize,
}

impl<'a> BoundKernel<'a> {
    fn new(r: &'a ReduceKernel) -> Self {
        let l = r.loops;
        let size = r.load.map_or(l.element, |load| load.size);
        BoundKernel { r, rows: l.rows[instruction_set() as usize], down: l.down[instruction_set() as usize], size, acc: l.acc, out: r.out }
    }

    /// Accumulators of no elements.
    ///
    /// # Safety
    /// There is room for `n`.
    unsafe fn fill(&self, acc: *mut u8, n: usize) {
        // SAFETY: the caller's.
        unsafe { (self.r.loops.fill)(acc, n) }
    }

    /// Merges `n` accumulators with those of later elements or, if `behind` is false, of earlier ones.
    ///
    /// # Safety
    /// Both are initialised and do not overlap.
    #[inline(always)]
    pub unsafe fn merge(&self, acc: *mut u8, other: *const u8, n: usize, behind: bool) {
        // SAFETY: the caller's.
        unsafe { (self.r.loops.merge)(acc, other, n, behind) }
    }

    /// The results of `n` accumulators, `step` apart.
    ///
    /// # Safety
    /// The accumulators are initialised, and the results are writable.
    unsafe fn finish(&self, acc: *const u8, n: usize, out: *mut u8, step: isize) {
        // SAFETY: the caller's.
        unsafe {
            match self.r.finish {
                Some(finish) => finish(acc, n, out, step, self.r.number),
                None if n == 1 || step == 1 => std::ptr::copy_nonoverlapping(acc, out, n * self.acc),
                None => {
                    for i in 0..n as isize {
                        let size = self.acc as isize;
                        std::ptr::copy_nonoverlapping(acc.offset(i * size), out.offset(i * step * size), self.acc);
                    }
                }
            }
        }
    }

    /// The accumulators of `count` rows, `step` apart, of `n` elements, `stride` apart.
    ///
    /// # Safety
    /// The elements are readable, and the accumulators writable, `acc_step` apart.
    #[inline(always)]
    unsafe fn rows(&self, p: *const u8, (count, step): (usize, isize), (n, stride): (usize, isize), acc: *mut u8, acc_step: isize) {
        // SAFETY: the caller's.
        unsafe {
            match self.r.load {
                None if self.transposes((count, step), (n, stride), acc_step) => self.transposed_rows(p, count, n, acc),
                None => (self.rows)(p, (count, step), (n, stride), acc, acc_step),
                Some(load) => self.loaded_rows(load, p, (count, step), (n, stride), acc, acc_step),
            }
        }
    }

    /// Whether rows are narrow and follow each other, so that columns of them are faster.
    #[inline(always)]
    fn transposes(&self, (count, step): (usize, isize), (n, stride): (usize, isize), acc_step: isize) -> bool {
        let is_narrow = n > WIDEST_FIXED && n * self.size <= NARROW && matches!(self.size, 4 | 8);
        is_narrow && count >= FEW && (step, stride, acc_step) == (n as isize, 1, 1) && instruction_set() != InstructionSet::Base
    }

    /// As `rows`, which `transposes`.
    ///
    /// # Safety
    /// As for `rows`.
    #[inline(never)]
    unsafe fn transposed_rows(&self, p: *const u8, count: usize, n: usize, acc: *mut u8) {
        let isa = instruction_set();
        LOADED.with(|m| {
            let mut m = m.borrow_mut();
            let buffer = reserve(&mut m, transposed_size(n, FINISHED) * self.size);
            for first in (0..count).step_by(FINISHED) {
                let many = FINISHED.min(count - first);
                let (from, acc) = (p.wrapping_add(first * n * self.size), acc.wrapping_add(first * self.acc));
                // SAFETY: the caller's; there is room. Elements are moved alone, so that only their size matters.
                unsafe {
                    if self.size == 4 {
                        transpose_in::<f32>(isa, many, n, from.cast(), buffer.cast(), FINISHED);
                    } else {
                        transpose_in::<f64>(isa, many, n, from.cast(), buffer.cast(), FINISHED);
                    }
                    self.fill(acc, many);
                    (self.down)(buffer, (n, FINISHED as isize), 1, acc, many);
                }
            }
        });
    }

    /// As `rows`, with elements that are loaded block by block.
    ///
    /// # Safety
    /// As for `rows`.
    #[inline(never)]
    unsafe fn loaded_rows(
        &self,
        load: Load,
        p: *const u8,
        (count, step): (usize, isize),
        (n, stride): (usize, isize),
        acc: *mut u8,
        acc_step: isize,
    ) {
        // Where it changes the bits, elements keep their stride: the loops use other lanes for strided rows.
        let apart = if load.whole && stride != 1 { 2 } else { 1 };
        let block = if load.whole { n.max(BLOCK) } else { BLOCK };
        let at = |row: usize, i: usize| p.wrapping_offset((row as isize * step + i as isize * stride) * self.size as isize);
        let to = |row: usize| acc.wrapping_offset(row as isize * acc_step * self.acc as isize);
        LOADED.with(|m| {
            let mut m = m.borrow_mut();
            let buffer = reserve(&mut m, block * apart as usize * self.r.loops.element);
            if n > block {
                let mut levels = Vec::new();
                for row in 0..count {
                    // SAFETY: the caller's promise covers every block of the row; the buffer holds one.
                    pairwise(self, n.div_ceil(block), to(row), 1, &mut levels, |b, acc| unsafe {
                        let len = block.min(n - b * block);
                        load.run((1, len), at(row, b * block), (0, stride), buffer, apart, self.r.number);
                        (self.rows)(buffer, (1, 0), (len, apart), acc, 1);
                    });
                }
                return;
            }
            let together = (block / n.max(1)).max(1);
            for first in (0..count).step_by(together) {
                let some = together.min(count - first);
                // SAFETY: as above, for several rows.
                unsafe {
                    load.run((some, n), at(first, 0), (step, stride), buffer, apart, self.r.number);
                    (self.rows)(buffer, (some, n as isize * apart), (n, apart), to(first), acc_step);
                }
            }
        });
    }

    /// The results of `count` rows, as for `rows`.
    ///
    /// # Safety
    /// As for `rows`; the results are `out_step` apart.
    unsafe fn results(&self, p: *const u8, (count, step): (usize, isize), row: (usize, isize), out: *mut u8, out_step: isize) {
        if self.r.finish.is_none() {
            // SAFETY: the caller's.
            return unsafe { self.rows(p, (count, step), row, out, out_step) };
        }
        let mut acc = [const { MaybeUninit::<u64>::uninit() }; FINISHED * LARGEST];
        let acc = acc.as_mut_ptr().cast::<u8>();
        for first in (0..count).step_by(FINISHED) {
            let some = FINISHED.min(count - first);
            let first = first as isize;
            // SAFETY: the caller's; so many accumulators have room, and are written before they are read.
            unsafe {
                self.rows(p.offset(first * step * self.size as isize), (some, step), row, acc, 1);
                self.finish(acc, some, out.offset(first * out_step * self.out as isize), out_step);
            }
        }
    }

    /// Adds `rows` rows of `columns` elements, `stride` apart, to the columns' accumulators.
    ///
    /// # Safety
    /// The elements are readable, and the accumulators are there.
    unsafe fn down(&self, p: *const u8, (rows, row_stride): (usize, isize), stride: isize, acc: *mut u8, columns: usize) {
        const FULL_RANGE: usize = 256;
        const HIGH: usize = 8;
        let Some(load) = self.r.load else {
            // SAFETY: the caller's.
            return unsafe { (self.down)(p, (rows, row_stride), stride, acc, columns) };
        };
        LOADED.with(|m| {
            let mut m = m.borrow_mut();
            let buffer = reserve(&mut m, FULL_RANGE * HIGH * self.r.loops.element);
            for row in (0..rows).step_by(HIGH) {
                let high = HIGH.min(rows - row);
                for column in (0..columns).step_by(FULL_RANGE) {
                    let wide = FULL_RANGE.min(columns - column);
                    let at = row as isize * row_stride + column as isize * stride;
                    // SAFETY: the caller's; the buffer holds as many elements. Loops take eight rows at once, too.
                    unsafe {
                        load.run((high, wide), p.offset(at * self.size as isize), (row_stride, stride), buffer, 1, self.r.number);
                        (self.down)(buffer, (high, wide as isize), 1, acc.add(column * self.acc), wide);
                    }
                }
            }
        });
    }
}

/// Reduces `input` over the dimensions marked in `reduced` into `out`, row-major over the others.
///
/// # Safety
/// `input` is readable over `shape` and `strides`, those of a dense array if a program computes the elements; `out` has an element for each
/// index of the kept dimensions and does not overlap `input`. Elements and results are of the reduction's types.
pub unsafe fn run(r: &ReduceKernel, shape: &[usize], strides: &[isize], reduced: &[bool], input: ReduceInput<'_>, out: *mut u8) {
    let mut dims = ReduceDims::new();
    let mut step = 1isize;
    let mut total = 1usize;
    for i in (0..shape.len()).rev() {
        total *= shape[i];
        let out_stride = if reduced[i] { 0 } else { step };
        if !reduced[i] {
            step *= shape[i] as isize;
        }
        if shape[i] != 1 {
            dims.push(ReduceDim { size: shape[i], stride: strides[i], out: out_stride, reduced: reduced[i] });
        }
    }
    if step == 0 {
        return;
    }
    let k = BoundKernel::new(r);
    if total == 0 {
        let mut acc = [0u64; LARGEST];
        let acc = acc.as_mut_ptr().cast::<u8>();
        for i in 0..step as usize {
            // SAFETY: there is room for an accumulator, and so many results are expected.
            unsafe {
                k.fill(acc, 1);
                k.finish(acc, 1, out.add(i * k.out), 1);
            }
        }
        return;
    }
    arrange(&mut dims);
    // SAFETY: the caller's promise covers every offset made from these dimensions.
    unsafe {
        match dims.pop() {
            None => {
                let (x, _) = input.rows(0, 1, 1, 1, k.size);
                k.results(x, (1, 0), (1, 1), out, 1);
            }
            Some(inner) if inner.reduced => along(&k, &dims, inner, input, SharedPointer::new(out)),
            Some(inner) => across(&k, dims, inner, input, SharedPointer::new(out)),
        }
    }
}

/// Reduces rows, the innermost dimension.
///
/// # Safety
/// As for `run`.
unsafe fn along(k: &BoundKernel<'_>, dims: &[ReduceDim], inner: ReduceDim, input: ReduceInput<'_>, out: SharedPointer<*mut u8>) {
    let kept: ReduceDims = dims.iter().filter(|d| !d.reduced).copied().collect();
    let outer: ReduceDims = dims.iter().filter(|d| d.reduced).copied().collect();
    let pieces = inner.size.div_ceil(TASK);
    let groups: usize = kept.iter().map(|d| d.size).product();
    let to = |o: isize| out.offset(o * k.out as isize);
    if outer.is_empty() && pieces == 1 && kept.len() <= 1 {
        let (step, out_step) = kept.first().map_or((0, 0), |d| (d.stride, d.out));
        let together = (TASK / inner.size).max(1);
        parallel_for(groups.div_ceil(together), |t| {
            let first = (t * together) as isize;
            let n = groups.min((t + 1) * together) - t * together;
            let (x, step) = input.rows(first * step, n, step, inner.size, k.size);
            // SAFETY: the caller's; task t alone writes these results.
            unsafe { k.results(x, (n, step), (inner.size, inner.stride), to(first * out_step), out_step) };
        });
        return;
    }
    let segments = outer.iter().map(|d| d.size).product::<usize>() * pieces;
    drive(
        SegmentPlan { groups, segments, width: 1, elements: inner.size.min(TASK) },
        k,
        |g, s, acc| {
            let i = offsets(&kept, g).0;
            let (row, piece) = if pieces == 1 { (s, 0) } else { (s / pieces, s % pieces) };
            let start = piece * TASK;
            let at = i + offsets(&outer, row).0 + start as isize * inner.stride;
            let n = inner.size.min(start + TASK) - start;
            let (x, _) = input.rows(at, 1, 1, n, k.size);
            // SAFETY: the caller's.
            unsafe { k.rows(x, (1, 0), (n, inner.stride), acc, 1) };
        },
        // SAFETY: the caller's.
        |g, acc| unsafe { k.finish(acc, 1, to(offsets(&kept, g).1), 1) },
    );
}

/// Reduces across the innermost dimension, which is kept.
///
/// # Safety
/// As for `run`.
unsafe fn across(k: &BoundKernel<'_>, mut dims: ReduceDims, inner: ReduceDim, input: ReduceInput<'_>, out: SharedPointer<*mut u8>) {
    let down = match dims.iter().rposition(|d| d.reduced) {
        Some(i) => dims.remove(i),
        None => ReduceDim { size: 1, stride: 0, out: 0, reduced: true },
    };
    let kept: ReduceDims = dims.iter().filter(|d| !d.reduced).copied().collect();
    let outer: ReduceDims = dims.iter().filter(|d| d.reduced).copied().collect();
    let outer_n: usize = outer.iter().map(|d| d.size).product();
    let kept_n: usize = kept.iter().map(|d| d.size).product();

    // Few dense columns: several rows are read as one long row, and the copies of the accumulators are merged at the end.
    let dense = inner.stride == 1 && down.stride == inner.size as isize;
    let fold = if dense && inner.size <= 64 { 128 / inner.size } else { 1 };
    let (fold, rows, tail) =
        if fold > 1 && down.size >= 2 * fold { (fold, down.size / fold, down.size % fold * inner.size) } else { (1, down.size, 0) };
    let row_stride = down.stride * fold as isize;
    let all_columns = inner.size * fold;
    let width = if fold > 1 { all_columns } else { all_columns.min(COLUMNS) };
    let blocks = all_columns.div_ceil(width);
    let pieces = rows.div_ceil(ROWS);
    let segments = outer_n * pieces;
    drive(
        SegmentPlan { groups: kept_n * blocks, segments, width, elements: rows.min(ROWS) * width },
        k,
        |g, s, acc| {
            let (group, block) = (g / blocks, g % blocks);
            let i = offsets(&kept, group).0;
            let (index, piece) = (s / pieces, s % pieces);
            let first = block * width;
            let columns = width.min(all_columns - first);
            let start = piece * ROWS;
            let base = i + offsets(&outer, index).0;
            let at = base + first as isize * inner.stride + start as isize * row_stride;
            let n = rows.min(start + ROWS) - start;
            let (x, down_stride) = input.rows(at, n, row_stride, columns, k.size);
            // SAFETY: the caller's.
            unsafe {
                k.fill(acc, columns);
                k.down(x, (n, down_stride), inner.stride, acc, columns);
                if tail > 0 && start + n == rows {
                    let (rest, _) = input.rows(base + rows as isize * row_stride, 1, 1, tail, k.size);
                    k.down(rest, (1, 0), 1, acc, tail);
                }
            }
        },
        |g, acc| {
            let (group, block) = (g / blocks, g % blocks);
            let first = block * width;
            let to = offsets(&kept, group).1 + first as isize * inner.out;
            let columns = if fold > 1 { inner.size } else { width.min(all_columns - first) };
            // SAFETY: the caller's; the accumulators are `fold` times those of the columns.
            unsafe {
                (1..fold).for_each(|f| k.merge(acc, acc.add(f * columns * k.acc), columns, true));
                k.finish(acc, columns, out.offset(to * k.out as isize), inner.out);
            }
        },
    );
}

/// Largest stride first (repeated elements, of stride 0, outermost); neighbours that are contiguous with each other are merged.
fn arrange(dims: &mut ReduceDims) {
    let key = |d: &ReduceDim| if d.stride == 0 { isize::MIN } else { -d.stride };
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
                dims[n - 1] = ReduceDim { size: p.size * d.size, ..d };
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
fn offsets(dims: &[ReduceDim], mut i: usize) -> (isize, isize) {
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

#[cfg(test)]
mod tests {
    use super::super::kernels;
    use super::*;
    use crate::layout::DType;

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
                    let r = kernels::sum(DType::F64);
                    run(&r, shape, strides, &reduced, ReduceInput::Memory(x.as_ptr().cast()), got.as_mut_ptr().cast());
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
            unsafe {
                let (r, from) = (kernels::sum(DType::F32), ReduceInput::Memory(x.as_ptr().cast()));
                run(&r, shape, strides, &vec![true; shape.len()], from, (&raw mut got).cast());
            }
            assert!((f64::from(got) - exact).abs() / exact < 3e-7, "{got} {exact}");
        }
    }
}
