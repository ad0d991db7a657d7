//! Kernels that read and write rows at offsets given by data.
//!
//! Where two positions may name the same element, writes happen in the order of the positions: the last one wins, and sums are added in the
//! same order for any number of threads. Work is only split between threads where their writes cannot overlap. Not here: positions along one dimension (`gather`).

pub(super) mod compute;

use crate::backend::cpu::common::blocks::prefetch;
use crate::backend::cpu::elem::{Loops, by_width, loops};
use crate::call::Write;
use crate::host::interrupt;
use crate::host::memory::raw_slice::RawSlice;
use crate::host::threads::{SharedPointer, num_threads, parallel_for};
use crate::layout::{Complex, Complex32, Complex64, DType};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements of one parallel task.
pub(super) const PIECE: usize = 16 << 10;

/// How many rows ahead memory is asked for, and how many bytes of each at most.
const AHEAD: usize = 4;
const PREFETCHED: usize = 512;

/// As `prefetch`, of the first elements of a row.
#[inline(always)]
fn prefetch_some<T>(from: *const T, n: usize) {
    prefetch(from, n.min(PREFETCHED / size_of::<T>()));
}

/// Sizes and strides of some dimensions; dimensions that are contiguous with each other are merged.
#[derive(Debug, Clone, Default)]
pub struct StridedBlock {
    dims: SmallVec<[(usize, isize); 6]>,
    len: usize,
}

impl StridedBlock {
    pub fn new(shape: &[usize], strides: &[isize]) -> StridedBlock {
        let mut dims: SmallVec<[(usize, isize); 6]> = SmallVec::new();
        for (&n, &s) in shape.iter().zip(strides) {
            match dims.last_mut() {
                _ if n == 1 => {}
                Some(d) if d.1 == s * n as isize => *d = (d.0 * n, s),
                _ => dims.push((n, s)),
            }
        }
        StridedBlock { dims, len: shape.iter().product() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The offset of the `i`-th element in row-major order.
    #[inline]
    pub fn offset(&self, mut i: usize) -> isize {
        let mut off = 0;
        for &(n, s) in self.dims.iter().rev() {
            off += (i % n) as isize * s;
            i /= n;
        }
        off
    }

    /// The stride, if all elements lie in one run.
    fn run(&self) -> Option<isize> {
        match self.dims[..] {
            [] => Some(1),
            [(_, stride)] => Some(stride),
            _ => None,
        }
    }

    /// Calls `f(offset, length, stride)` for each innermost run of the elements `from..to`.
    #[inline]
    fn runs(&self, from: usize, to: usize, mut f: impl FnMut(isize, usize, isize)) {
        let Some(&(n, s)) = self.dims.last() else {
            if from < to {
                f(0, 1, 1);
            }
            return;
        };
        if self.dims.len() == 1 {
            f(from as isize * s, to - from, s);
            return;
        }
        let mut i = from;
        while i < to {
            let len = (n - i % n).min(to - i);
            f(self.offset(i), len, s);
            i += len;
        }
    }
}

/// Elements that can be added up and multiplied in place.
pub(super) trait ScatterElement: Copy + Send + Sync {
    const ZERO: Self;
    fn write(self, old: Self, how: Write) -> Self;
}

macro_rules! element {
    ($($t:ty: $zero:expr, $add:expr, $mul:expr;)*) => {$(
        impl ScatterElement for $t {
            const ZERO: Self = $zero;
            #[inline(always)]
            fn write(self, old: Self, how: Write) -> Self {
                match how {
                    Write::Set => self,
                    Write::Add => $add(old, self),
                    Write::Multiply => $mul(old, self),
                }
            }
        }
    )*};
}
/// A bool byte, true if it is not 0: sums are "or", products are "and".
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct BoolElement(u8);
element! {
    u8: 0, u8::wrapping_add, u8::wrapping_mul;
    i16: 0, i16::wrapping_add, i16::wrapping_mul;
    i32: 0, i32::wrapping_add, i32::wrapping_mul;
    i64: 0, i64::wrapping_add, i64::wrapping_mul;
    f32: 0.0, |a, b| a + b, |a, b| a * b;
    f64: 0.0, |a, b| a + b, |a, b| a * b;
    Complex32: Complex::new(0.0, 0.0), |a, b| a + b, |a, b| a * b;
    Complex64: Complex::new(0.0, 0.0), |a, b| a + b, |a, b| a * b;
    // Only ever moved.
    Complex<i64>: Complex::new(0, 0), |_, b| b, |_, b| b;
    BoolElement: BoolElement(0), |a: BoolElement, b: BoolElement| BoolElement(u8::from(a.0 | b.0 != 0)), |a: BoolElement, b: BoolElement| BoolElement(u8::from(a.0 != 0) & u8::from(b.0 != 0));
}

/// Calls `$f` with the element type of `$dtype`, whose elements are added or multiplied.
macro_rules! by_dtype {
    ($dtype:expr, $f:ident$(::<_, $how:literal>)?($($a:expr),*)) => {
        match ($dtype, loops($dtype)) {
            (DType::Bool, _) => $f::<BoolElement$(, $how)?>($($a),*),
            // Bytes wrap around in the same way, signed or not.
            (_, Some(Loops::U8 | Loops::I8)) => $f::<u8$(, $how)?>($($a),*),
            (_, Some(Loops::I16)) => $f::<i16$(, $how)?>($($a),*),
            (_, Some(Loops::I32)) => $f::<i32$(, $how)?>($($a),*),
            (_, Some(Loops::I64)) => $f::<i64$(, $how)?>($($a),*),
            (_, Some(Loops::F32)) => $f::<f32$(, $how)?>($($a),*),
            (_, Some(Loops::C64)) => $f::<$crate::layout::Complex32$(, $how)?>($($a),*),
            (_, Some(Loops::C128)) => $f::<$crate::layout::Complex64$(, $how)?>($($a),*),
            (_, Some(Loops::F64)) => $f::<f64$(, $how)?>($($a),*),
            // Not reached: `widened` has converted them.
            (_, None) => by_width!($dtype, T => $f::<T$(, $how)?>($($a),*)),
        }
    };
}
pub(super) use by_dtype;

/// Rows of an array: `x[outer, offsets[k], inner]`.
#[derive(Debug)]
pub struct IndexedRows<'a> {
    pub outer: StridedBlock,
    /// For each position, its distance from the first element. Checked by the caller.
    pub offsets: &'a [i64],
    pub inner: StridedBlock,
}

/// `out[o, k, i] = x[o, offsets[k], i]`, `out` row-major.
///
/// # Safety
/// `x` is readable at every combination of an outer, a position's and an inner offset; `out` is writable for all elements and does not
/// overlap `x`. Both hold elements of `dtype`.
pub unsafe fn take(out: *mut u8, x: *const u8, dtype: DType, rows: &IndexedRows<'_>) {
    // SAFETY: passed on.
    unsafe { by_width!(dtype, T => take_t::<T>(out.cast(), x.cast(), rows)) }
}

unsafe fn take_t<T: ScatterElement>(out: *mut T, x: *const T, r: &IndexedRows<'_>) {
    let (k, n) = (r.offsets.len(), r.inner.len());
    let rows = r.outer.len() * k;
    if rows * n == 0 {
        return;
    }
    let (out, x) = (SharedPointer::new(out), SharedPointer::new(x));
    let run = r.inner.run();
    let some = |from: usize, to: usize| {
        let mut row = from;
        while row < to {
            let (o, first) = (row / k, row % k);
            let offsets = &r.offsets[first..k.min(first + to - row)];
            // SAFETY: the caller's promise; each row of `out` is written by one piece.
            unsafe {
                let (to, from) = (out.get().add(row * n), x.get().offset(r.outer.offset(o)));
                if n == 1 {
                    for (j, off) in offsets.iter().enumerate() {
                        *to.add(j) = *from.offset(*off as isize);
                    }
                } else {
                    for (j, off) in offsets.iter().enumerate() {
                        if let Some(next) = offsets.get(j + AHEAD) {
                            prefetch_some(from.wrapping_offset(*next as isize), n);
                        }
                        let (mut to, from) = (to.add(j * n), from.offset(*off as isize));
                        if run == Some(1) {
                            std::ptr::copy_nonoverlapping(from, to, n);
                            continue;
                        }
                        r.inner.runs(0, n, |off, len, stride| {
                            for j in 0..len as isize {
                                *to.offset(j) = *from.offset(off + j * stride);
                            }
                            to = to.add(len);
                        });
                    }
                }
            }
            row += offsets.len();
        }
    };
    let per = PIECE.div_ceil(n);
    if rows * n < 2 * PIECE {
        some(0, rows);
    } else {
        parallel_for(rows.div_ceil(per), |p| some(p * per, ((p + 1) * per).min(rows)));
    }
}

/// `offsets[i] += place * stride` (or `=`, if these are the `first`), where `place` is the position that `index[i]` names along a dimension
/// of `size`; negative positions count from the end. Each index is read once, so the value that is used is the value that was checked.
///
/// # Errors
/// The first index below `low` or not below `size`; `low` is 0 or `-size`.
pub fn add_offsets(offsets: &mut [i64], first: bool, index: RawSlice<'_, i64>, (low, size): (i64, i64), stride: i64) -> Result<(), i64> {
    let n = offsets.len().min(index.len());
    let to = SharedPointer::new(offsets.as_mut_ptr());
    let wrong = AtomicBool::new(false);
    let some = |from: usize, len: usize| {
        let index = index.part(from, from + len);
        // SAFETY: pieces are disjoint parts of the slice.
        let to = unsafe { std::slice::from_raw_parts_mut(to.get().add(from), len) };
        let mut out = false;
        for (to, i) in to.iter_mut().zip(index.iter()) {
            out |= (i < low) | (i >= size);
            let off = (if i < 0 { i.wrapping_add(size) } else { i }).wrapping_mul(stride);
            *to = if first { off } else { to.wrapping_add(off) };
        }
        if out {
            wrong.store(true, Ordering::Relaxed);
        }
    };
    if n < 2 * PIECE {
        some(0, n);
    } else {
        parallel_for(n.div_ceil(PIECE), |p| some(p * PIECE, PIECE.min(n - p * PIECE)));
    }
    match wrong.into_inner() {
        // Another thread may have corrected it in the meantime.
        true => Err(index.iter().take(n).find(|i| *i < low || *i >= size).unwrap_or(size)),
        false => Ok(()),
    }
}

/// `x[o, offsets[k], i] = src[o, k, i]` (or added, or multiplied), for k in order; `src` is row-major, or one value if `single`.
///
/// # Safety
/// As for `take`, with `x` writable and `src` readable; outer and inner dimensions of `x` do not overlap.
pub unsafe fn put(x: *mut u8, src: *const u8, single: bool, dtype: DType, how: Write, rows: &IndexedRows<'_>) {
    // SAFETY: passed on. The constant makes loops without a test inside.
    unsafe {
        match how {
            Write::Set => by_width!(dtype, T => put_how::<T, 0>(x.cast(), src.cast(), single, rows)),
            Write::Add => by_dtype!(dtype, put_how::<_, 1>(x.cast(), src.cast(), single, rows)),
            Write::Multiply => by_dtype!(dtype, put_how::<_, 2>(x.cast(), src.cast(), single, rows)),
        }
    }
}

pub(super) const fn how<const HOW: u8>() -> Write {
    match HOW {
        0 => Write::Set,
        1 => Write::Add,
        _ => Write::Multiply,
    }
}

unsafe fn put_how<T: ScatterElement, const HOW: u8>(x: *mut T, src: *const T, single: bool, r: &IndexedRows<'_>) {
    let (k, n, outer) = (r.offsets.len(), r.inner.len(), r.outer.len());
    if outer * k * n == 0 {
        return;
    }
    let (x, src) = (SharedPointer::new(x), SharedPointer::new(src));
    let run = r.inner.run();
    let some = |o: usize, from: usize, to: usize| {
        let start = r.outer.offset(o);
        let every = (PIECE * 8 / (to - from).max(1)).max(1);
        for (c, offsets) in r.offsets.chunks(every).enumerate() {
            if c > 0 {
                interrupt::check();
            }
            // SAFETY: the caller's promise; pieces differ in the outer or the inner part, which do not overlap.
            unsafe {
                let (x, src) = (x.get().offset(start), src.get().add(if single { 0 } else { (o * k + c * every) * n + from }));
                match (run, single) {
                    (_, false) if n == 1 => {
                        for (j, off) in offsets.iter().enumerate() {
                            let to = x.offset(*off as isize);
                            *to = (*src.add(j)).write(*to, how::<HOW>());
                        }
                    }
                    (Some(1), false) => {
                        for (j, off) in offsets.iter().enumerate() {
                            if let Some(next) = offsets.get(j + AHEAD) {
                                prefetch_some(x.wrapping_offset(*next as isize + from as isize), to - from);
                            }
                            let (x, src) = (x.offset(*off as isize + from as isize), src.add(j * n));
                            for i in 0..to - from {
                                *x.add(i) = (*src.add(i)).write(*x.add(i), how::<HOW>());
                            }
                        }
                    }
                    _ => {
                        let step = !single as usize;
                        for (j, off) in offsets.iter().enumerate() {
                            let mut src = src.add(j * n * step);
                            r.inner.runs(from, to, |at, len, stride| {
                                let to = x.offset(*off as isize + at);
                                for i in 0..len {
                                    let to = to.offset(i as isize * stride);
                                    *to = (*src.add(i * step)).write(*to, how::<HOW>());
                                }
                                src = src.add(len * step);
                            });
                        }
                    }
                }
            }
        }
    };
    if outer * k * n < 2 * PIECE {
        (0..outer).for_each(|o| some(o, 0, n));
        return;
    }
    // Positions may repeat, so one task handles all of them. Parts of rows are as long as the number of threads allows.
    let tasks = (2 * num_threads()).div_ceil(outer);
    let width = PIECE.div_ceil(k).max(n.div_ceil(tasks)).clamp(64, n.max(64));
    let pieces = n.div_ceil(width);
    parallel_for(outer * pieces, |p| {
        let i = p % pieces;
        some(p / pieces, i * width, ((i + 1) * width).min(n));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_join_dimensions_and_give_their_runs() {
        let b = StridedBlock::new(&[2, 3, 4], &[12, 4, 1]);
        assert_eq!(b.dims[..], [(24, 1)]);
        let b = StridedBlock::new(&[2, 3, 4], &[1, 8, 2]);
        assert_eq!((0..24).map(|i| b.offset(i)).max(), Some(1 + 16 + 6));
        let mut seen = Vec::new();
        b.runs(3, 11, |off, len, s| seen.extend((0..len as isize).map(|j| off + j * s)));
        assert_eq!(seen, (3..11).map(|i| b.offset(i)).collect::<Vec<_>>());
    }

    #[test]
    fn rows_are_taken_and_put_in_order() {
        let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let rows = IndexedRows { outer: StridedBlock::new(&[], &[]), offsets: &[8, 0, 8], inner: StridedBlock::new(&[4], &[1]) };
        let mut out = vec![0f32; 12];
        // SAFETY: offsets stay inside of x.
        unsafe { take(out.as_mut_ptr().cast(), x.as_ptr().cast(), DType::F32, &rows) };
        assert_eq!(out, [8., 9., 10., 11., 0., 1., 2., 3., 8., 9., 10., 11.]);
        let mut sum = vec![0f32; 12];
        // SAFETY: as above.
        unsafe { put(sum.as_mut_ptr().cast(), out.as_ptr().cast(), false, DType::F32, Write::Add, &rows) };
        assert_eq!(sum[..4], [0., 1., 2., 3.]);
        assert_eq!(sum[8..], [16., 18., 20., 22.]);
    }
}
