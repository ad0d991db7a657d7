//! One dimension: each line along it is transformed. Lines that lie in memory as the algorithm wants them are read and written there. Others are
//! gathered into rows of a block, some neighbours at once, so that whole cache lines are read and written. Which way is taken, and what one
//! task does, follows from sizes and strides alone.

use super::plan::{FftNumber, Plan};
use super::real::{pairs, spectrum};
use crate::backend::cpu::common::strided::StridedDims;
use crate::error::throw;
use crate::host::memory::alloc::Buffer;
use crate::host::threads::{SharedPointer, parallel_for};
use num_complex::Complex;
use rustfft::Fft;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Elements of a block, but at least one line.
const BLOCK: usize = 1 << 15;
/// Lines of a block; of short lines there are more.
const LINES: usize = 16;
const SHORT: usize = 64;
const SHORT_LINES: usize = 64;
/// Elements that one task transforms at least, but for the last one.
const TASK: usize = 1 << 15;

/// What lines are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Complex,
    /// To the first frequencies, or to all.
    FromReal {
        all: bool,
    },
    /// From the first frequencies; or from all, and then the real part is taken.
    ToReal {
        all: bool,
    },
}

/// A transform of all lines along one dimension. Strides are in bytes, those of the output first.
pub(super) struct Pass<'a, T: FftNumber> {
    pub step: Step,
    pub plan: &'a Plan<T>,
    /// The length as real or complex numbers, not of half a spectrum.
    pub n: usize,
    pub along: [isize; 2],
    /// The other dimensions.
    pub others: StridedDims<2>,
    pub scale: T,
    /// Whether complex elements of real lines are conjugated, which gives the exponents the other sign.
    pub conjugates: bool,
    /// See `call::Fft`.
    pub inner: T,
    pub to: SharedPointer<*mut u8>,
    /// The output itself, or memory that does not overlap it.
    pub from: SharedPointer<*const u8>,
}

/// Memory for numbers, all zeros.
fn zeros<T: FftNumber>(n: usize) -> Buffer {
    let made = Buffer::new(n.max(1) * size_of::<Complex<T>>()).unwrap_or_else(|e| throw(e));
    // SAFETY: the buffer has room; zero bytes are the number 0.
    unsafe { std::ptr::write_bytes(made.as_ptr().cast::<Complex<T>>(), 0, n) };
    made
}

/// The elements of a row of a block, in complex numbers, and how far apart rows are: with a little space between, the rows of a length that is a
/// power of 2 lie in different sets of the cache.
fn row_length(n: usize) -> usize {
    if n < SHORT { n } else { n.next_multiple_of(8) + 8 }
}

impl<T: FftNumber> Pass<'_, T> {
    /// Whether the elements of real lines are taken in pairs.
    fn is_paired(&self) -> bool {
        self.n.is_multiple_of(2) && matches!(self.step, Step::FromReal { .. } | Step::ToReal { all: false })
    }

    fn lines(&self) -> usize {
        self.others.iter().map(|d| d.size).product()
    }

    /// Where line `k` begins: in the output, and in the operand.
    fn start(&self, mut k: usize) -> [isize; 2] {
        let mut at = [0, 0];
        for d in self.others.iter().rev() {
            let i = (k % d.size) as isize;
            k /= d.size;
            at[0] += i * d.strides[0];
            at[1] += i * d.strides[1];
        }
        at
    }

    /// Runs it.
    ///
    /// # Safety
    /// All lines lie inside the memory of the operand and of the output, whose elements no two lines share; nothing else writes them meanwhile.
    pub(super) unsafe fn run(&self) {
        // SAFETY: of all, the caller's.
        match self.plan {
            Plan::Complex(fft) => {
                let size = size_of::<Complex<T>>() as isize;
                // SAFETY: see above.
                unsafe {
                    if self.step == Step::Complex && self.along == [size, size] { self.in_memory(&**fft) } else { self.blocks(&**fft, &[]) }
                }
            }
            // SAFETY: see above.
            Plan::Real(fft, roots) => unsafe { self.blocks(&**fft, roots) },
        }
    }

    /// Complex lines that lie in memory.
    unsafe fn in_memory(&self, fft: &dyn Fft<T>) {
        let (n, lines) = (self.n, self.lines());
        let line = (n * size_of::<Complex<T>>()) as isize;
        let joined = self.others.is_empty() || self.others.len() == 1 && self.others[0].strides == [line, line];
        let per_task = TASK.div_ceil(n);
        let is_in_place = std::ptr::eq(self.to.get(), self.from.get());
        let needed = if is_in_place { fft.get_inplace_scratch_len() } else { fft.get_immutable_scratch_len() };
        parallel_for(lines.div_ceil(per_task), |task| {
            let scratch = zeros::<T>(needed);
            // SAFETY: the buffer has so many numbers, which were written.
            let scratch = unsafe { from_raw_parts_mut(scratch.as_ptr().cast::<Complex<T>>(), needed) };
            let (first, end) = (task * per_task, lines.min((task + 1) * per_task));
            let at_once = if joined { end - first } else { 1 };
            for k in (first..end).step_by(at_once) {
                let [to_at, from_at] = self.start(k);
                // SAFETY: of both, the caller's. The tasks' lines are apart.
                let out = unsafe { from_raw_parts_mut(self.to.offset(to_at).cast::<Complex<T>>(), n * at_once) };
                if is_in_place {
                    fft.process_with_scratch(out, scratch);
                } else {
                    // SAFETY: see above.
                    let x = unsafe { from_raw_parts(self.from.get().wrapping_offset(from_at).cast::<Complex<T>>(), n * at_once) };
                    fft.process_immutable_with_scratch(x, out, scratch);
                }
                if self.scale != T::of(1.0) {
                    out.iter_mut().for_each(|z| *z = *z * self.scale);
                }
            }
        });
    }

    /// All other lines.
    unsafe fn blocks(&self, fft: &dyn Fft<T>, roots: &[Complex<T>]) {
        let (n, lines) = (self.n, self.lines());
        let used = if self.is_paired() { n / 2 + 1 } else { n };
        let row = row_length(used);
        let width = (BLOCK / row).clamp(1, if n < SHORT { SHORT_LINES } else { LINES });
        let blocks = lines.div_ceil(width);
        let per_task = (TASK / (row * width)).max(1);
        let needed = fft.get_inplace_scratch_len();
        parallel_for(blocks.div_ceil(per_task), |task| {
            let (rows, scratch) = (zeros::<T>(row * width), zeros::<T>(needed));
            let rows = rows.as_ptr().cast::<Complex<T>>();
            // SAFETY: the buffer has so many numbers, which were written.
            let scratch = unsafe { from_raw_parts_mut(scratch.as_ptr().cast::<Complex<T>>(), needed) };
            let mut starts = [[0isize; 2]; SHORT_LINES];
            for block in task * per_task..blocks.min((task + 1) * per_task) {
                let first = block * width;
                let starts = &mut starts[..width.min(lines - first)];
                starts.iter_mut().enumerate().for_each(|(k, at)| *at = self.start(first + k));
                // SAFETY: the caller's. The tasks' lines are apart, and the rows hold the block's.
                unsafe {
                    self.gather(starts, rows, row);
                    for k in 0..starts.len() {
                        self.transform(fft, roots, from_raw_parts_mut(rows.add(k * row), used), scratch);
                    }
                    self.scatter(starts, rows, row);
                }
            }
        });
    }

    /// One row of a block.
    fn transform(&self, fft: &dyn Fft<T>, roots: &[Complex<T>], row: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let n = self.n;
        if self.conjugates && matches!(self.step, Step::ToReal { .. }) {
            row.iter_mut().for_each(|z| z.im = -z.im);
        }
        match self.step {
            Step::FromReal { all } if self.is_paired() => {
                fft.process_with_scratch(&mut row[..n / 2], scratch);
                spectrum(row, roots, self.scale, if all { T::of(1.0) } else { self.inner });
            }
            Step::ToReal { .. } if self.is_paired() => {
                pairs(row, roots, self.scale, self.inner);
                fft.process_with_scratch(&mut row[..n / 2], scratch);
            }
            Step::ToReal { all: false } => {
                row[0].im = T::of(0.0);
                for k in 1..=n / 2 {
                    row[k] = row[k] * self.inner;
                    row[n - k] = row[k].conj();
                }
                fft.process_with_scratch(row, scratch);
            }
            Step::Complex | Step::FromReal { .. } | Step::ToReal { all: true } => fft.process_with_scratch(row, scratch),
        }
    }

    /// Reads a block's lines into rows.
    unsafe fn gather(&self, starts: &[[isize; 2]], rows: *mut Complex<T>, row: usize) {
        let (n, along, from) = (self.n, self.along[1], self.from.get());
        // SAFETY: of all, the caller's; a row has room for n numbers, or for n real ones if n is even.
        unsafe {
            match self.step {
                Step::Complex | Step::ToReal { all: true } => move_in(from, starts, along, n, rows, row),
                Step::ToReal { all: false } => move_in(from, starts, along, n / 2 + 1, rows, row),
                Step::FromReal { .. } if n.is_multiple_of(2) => move_in::<T>(from, starts, along, n, rows.cast(), 2 * row),
                Step::FromReal { .. } => {
                    for (k, at) in starts.iter().enumerate() {
                        let (x, to) = (from.wrapping_offset(at[1]), rows.add(k * row));
                        for i in 0..n {
                            *to.add(i) = Complex { re: *x.wrapping_offset(i as isize * along).cast::<T>(), im: T::of(0.0) };
                        }
                    }
                }
            }
        }
    }

    /// Writes a block's rows to the output.
    unsafe fn scatter(&self, starts: &[[isize; 2]], rows: *const Complex<T>, row: usize) {
        let (n, along, scale, to) = (self.n, self.along[0], self.scale, self.to.get());
        let sign = if self.conjugates { T::of(-1.0) } else { T::of(1.0) };
        // Paired lines are multiplied already.
        let [rest, inner] = if self.is_paired() { [T::of(1.0); 2] } else { [scale, scale * self.inner] };
        // SAFETY: of all, the caller's; the rows have what is read.
        unsafe {
            match self.step {
                Step::Complex => move_out(to, starts, along, 0..n, |b, i| *rows.add(b * row + i) * rest),
                Step::FromReal { all } => {
                    let value = |k: usize, i: usize, sign: T, by: T| {
                        let z = *rows.add(k * row + i);
                        Complex { re: z.re * by, im: z.im * (by * sign) }
                    };
                    let inner = if all { rest } else { inner };
                    move_out(to, starts, along, 0..n / 2 + 1, |k, i| value(k, i, sign, if i == 0 { rest } else { inner }));
                    if all {
                        move_out(to, starts, along, n / 2 + 1..n, |k, i| value(k, n - i, -sign, rest));
                    }
                }
                Step::ToReal { .. } if self.is_paired() => {
                    let rows = rows.cast::<T>();
                    move_out(to, starts, along, 0..n, |b, i| *rows.add(b * 2 * row + i));
                }
                Step::ToReal { .. } => move_out(to, starts, along, 0..n, |b, i| (*rows.add(b * row + i)).re * rest),
            }
        }
    }
}

/// Copies lines of `n` elements into rows that are `row` elements apart.
///
/// # Safety
/// The lines begin at the second numbers of `starts` and lie in memory; the rows have room.
#[inline(always)]
unsafe fn move_in<E: Copy>(from: *const u8, starts: &[[isize; 2]], along: isize, n: usize, rows: *mut E, row: usize) {
    // SAFETY: of both, the caller's.
    unsafe {
        if along == size_of::<E>() as isize {
            for (k, at) in starts.iter().enumerate() {
                std::ptr::copy_nonoverlapping(from.wrapping_offset(at[1]).cast::<E>(), rows.add(k * row), n);
            }
            return;
        }
        for i in 0..n {
            let x = from.wrapping_offset(i as isize * along);
            for (k, at) in starts.iter().enumerate() {
                *rows.add(k * row + i) = *x.wrapping_offset(at[1]).cast::<E>();
            }
        }
    }
}

/// Writes elements `range` of lines, each of which `value` gives for the line's number and its place.
///
/// # Safety
/// The lines begin at the first numbers of `starts` and lie in memory that nothing else uses meanwhile.
#[inline(always)]
unsafe fn move_out<E>(to: *mut u8, starts: &[[isize; 2]], along: isize, range: std::ops::Range<usize>, value: impl Fn(usize, usize) -> E) {
    // SAFETY: of both, the caller's.
    unsafe {
        if along == size_of::<E>() as isize {
            for (k, at) in starts.iter().enumerate() {
                let line = to.wrapping_offset(at[0]).cast::<E>();
                for i in range.clone() {
                    line.add(i).write(value(k, i));
                }
            }
            return;
        }
        for i in range {
            let x = to.wrapping_offset(i as isize * along);
            for (k, at) in starts.iter().enumerate() {
                x.wrapping_offset(at[0]).cast::<E>().write(value(k, i));
            }
        }
    }
}
