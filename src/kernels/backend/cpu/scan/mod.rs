//! Cumulative sums and products along one dimension of a dense array seen as (outer, n, inner). The traversal is not generic: it calls the
//! loops of a type and operation through a table. `complex` has the loops of complex numbers. Not here: cumulative maxima
//! (`cumulative_extreme`), shape rules and derivatives (`ops::scan`).

mod complex;

use super::copy::copy;
use super::reduce::BlockProducer;
use super::reduce::loops::instances;
use super::reduce::reducers::{Arithmetic, Numeric, ProdOp, ReduceOp, SumOp};
use crate::backend::contract::{Operand, Support, View};
use crate::backend::cpu::common::operands::{OrderedOperand, around, not_floating, result};
use crate::backend::cpu::elem::is_widened;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::reduce::ReduceInput;
use crate::call::{Family, Scan, ScanKind};
use crate::error::Result;
use crate::host::interrupt;
use crate::host::memory::reserve::{filled, zeros};
use crate::host::threads::{SharedPointer, num_threads, parallel_for};
use crate::layout::{DType, Number};
use crate::simd::{InstructionSet, instruction_set};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Elements that one task handles.
const TASK: usize = 1 << 15;

/// A piece of a long row: `CHAINS` chains that are summed side by side. Their distance is no power of 2, so that they share no cache set.
const CHAINS: usize = 8;
const CHAIN: usize = 1024 + 16;
const PIECE: usize = CHAINS * CHAIN;

/// Scans `count` chains of `n` elements side by side; chains start `step` elements apart, and each has an accumulator.
type ChainsFn = unsafe fn(count: usize, n: usize, step: usize, x: *const u8, out: *mut u8, acc: *mut u64);
/// Scans `width` columns of `n` rows that are `step` elements apart; each column has an accumulator.
type DownFn = unsafe fn(x: *const u8, out: *mut u8, n: usize, step: usize, acc: *mut u64, width: usize);

/// What the traversal needs of a type and an operation. Accumulators have eight bytes. The loops read each element before they write it.
#[derive(Clone, Copy)]
struct ScanLoops {
    /// Bytes of an element of the input, and of the output.
    from: usize,
    to: usize,
    chains: ChainsFn,
    down: [DownFn; InstructionSet::COUNT],
    /// The accumulator of `n` elements.
    total: unsafe fn(x: *const u8, n: usize) -> u64,
    merge: unsafe fn(a: u64, b: u64) -> u64,
    start: unsafe fn() -> u64,
}

impl ScanLoops {
    const fn of<R: ReduceOp<Accumulator: Arithmetic + Narrow<O>>, O: Copy>() -> Self {
        const { assert!(size_of::<R::Accumulator>() == 8) }
        ScanLoops {
            from: size_of::<R::Element>(),
            to: size_of::<O>(),
            chains: chains::<R, O>,
            down: [
                down_at::<R, O, 0>,
                #[cfg(target_arch = "x86_64")]
                down_at::<R, O, 1>,
                #[cfg(target_arch = "x86_64")]
                down_at::<R, O, 2>,
            ],
            total: total::<R>,
            merge: merge::<R>,
            start: start::<R>,
        }
    }
}

impl ScanLoops {
    /// None: the kind is for floats alone.
    fn new(kind: ScanKind, dtype: DType) -> Option<Self> {
        macro_rules! of {
            ($T:ty, $A:ty, $O:ty) => {
                match kind {
                    ScanKind::Sum => const { ScanLoops::of::<SumOp<$T, $A>, $O>() },
                    ScanKind::Prod => const { ScanLoops::of::<ProdOp<$T, $A>, $O>() },
                    ScanKind::LogSumExp => return None,
                }
            };
        }
        if is_widened(dtype) {
            return None;
        }
        Some(match (dtype.number(), kind) {
            (Number::F32, ScanKind::LogSumExp) => const { ScanLoops::of::<LogAddExp<f32>, f32>() },
            (Number::F64, ScanKind::LogSumExp) => const { ScanLoops::of::<LogAddExp<f64>, f64>() },
            (Number::Bool | Number::U8, _) => of!(u8, i64, i64),
            // Narrow integers are converted to int64 before.
            (Number::I32, _) => of!(i32, i64, i64),
            (Number::I64, _) => of!(i64, i64, i64),
            (Number::F32, _) => of!(f32, f64, f32),
            (Number::F64, _) => of!(f64, f64, f64),
            (Number::C64 | Number::C128, _) => return None,
        })
    }

    fn start(&self) -> u64 {
        // SAFETY: it reads nothing.
        unsafe { (self.start)() }
    }

    /// Where element `i` is in the input and in the output.
    #[inline(always)]
    fn at(&self, (x, out): (SharedPointer<*mut u8>, SharedPointer<*mut u8>), i: usize) -> (*const u8, *mut u8) {
        (x.at(i * self.from).cast_const(), out.at(i * self.to))
    }
}

/// Adds numbers given by their logarithms, in double precision.
#[derive(Debug, Clone, Copy, Default)]
struct LogAddExp<T>(PhantomData<T>);

impl<T: Numeric + Logarithm> ReduceOp for LogAddExp<T> {
    type Element = T;
    type Accumulator = f64;

    #[inline(always)]
    fn init(self) -> f64 {
        f64::NEG_INFINITY
    }
    #[inline(always)]
    fn lift(self, x: T) -> f64 {
        x.wide()
    }
    #[inline]
    fn merge(self, a: f64, b: f64) -> f64 {
        if a.is_nan() || b.is_nan() {
            return f64::NAN;
        }
        let (low, top) = if a < b { (a, b) } else { (b, a) };
        // An infinity minus itself would be nan.
        if top.is_infinite() { top } else { top + (low - top).exp().ln_1p() }
    }
}

/// An element as a logarithm.
trait Logarithm: Copy {
    fn wide(self) -> f64;
}

macro_rules! logarithms {
    ($($t:ty)*) => { $(impl Logarithm for $t {
        #[inline(always)]
        fn wide(self) -> f64 { self as f64 }
    })* };
}
logarithms!(f32 f64);

unsafe fn start<R: ReduceOp<Accumulator: Arithmetic>>() -> u64 {
    bits(R::default().init())
}

unsafe fn merge<R: ReduceOp<Accumulator: Arithmetic>>(a: u64, b: u64) -> u64 {
    bits(R::default().merge(of_bits(a), of_bits(b)))
}

/// A number of eight bytes.
#[inline(always)]
fn bits<A: Arithmetic>(a: A) -> u64 {
    const { assert!(size_of::<A>() == 8) }
    // SAFETY: as large, and any number is bits.
    unsafe { std::mem::transmute_copy(&a) }
}

/// The number that `bits` was given.
#[inline(always)]
fn of_bits<A: Arithmetic>(bits: u64) -> A {
    const { assert!(size_of::<A>() == 8) }
    // SAFETY: as large, and any bits are a number.
    unsafe { std::mem::transmute_copy(&bits) }
}

/// # Safety
/// As `ChainsFn` says: both pointers hold all the chains.
unsafe fn chains<R: ReduceOp<Accumulator: Arithmetic + Narrow<O>>, O: Copy>(
    count: usize,
    n: usize,
    step: usize,
    x: *const u8,
    out: *mut u8,
    acc: *mut u64,
) {
    let (x, out, acc) = (x.cast::<R::Element>(), out.cast::<O>(), acc.cast::<R::Accumulator>());
    // SAFETY: the caller's.
    unsafe {
        match count {
            8 => side_by_side::<R, O, 8>(n, step, x, out, acc),
            4 => side_by_side::<R, O, 4>(n, step, x, out, acc),
            _ => (0..count).for_each(|c| side_by_side::<R, O, 1>(n, 0, x.add(c * step), out.add(c * step), acc.add(c))),
        }
    }
}

/// # Safety
/// As for `chains`, of `C` chains.
#[inline(always)]
unsafe fn side_by_side<R: ReduceOp<Accumulator: Arithmetic + Narrow<O>>, O: Copy, const C: usize>(
    n: usize,
    step: usize,
    x: *const R::Element,
    out: *mut O,
    at: *mut R::Accumulator,
) {
    let r = R::default();
    // SAFETY: the caller's promise covers all i and j.
    unsafe {
        let mut acc = at.cast::<[R::Accumulator; C]>().read();
        for i in 0..n {
            for (j, a) in acc.iter_mut().enumerate() {
                *a = r.merge(*a, r.lift(*x.add(j * step + i)));
                *out.add(j * step + i) = (*a).narrow();
            }
        }
        at.cast::<[R::Accumulator; C]>().write(acc);
    }
}

/// The accumulator of `n` elements.
///
/// # Safety
/// They are readable.
unsafe fn total<R: ReduceOp<Accumulator: Arithmetic>>(x: *const u8, n: usize) -> u64 {
    let (x, r) = (x.cast::<R::Element>(), R::default());
    let mut lanes = [r.init(); 8];
    for i in 0..n / 8 {
        for (j, l) in lanes.iter_mut().enumerate() {
            // SAFETY: below n.
            *l = r.merge(*l, unsafe { r.lift(*x.add(i * 8 + j)) });
        }
    }
    let mut sum = r.init();
    lanes.iter().for_each(|l| sum = r.merge(sum, *l));
    (n / 8 * 8..n).for_each(|i| {
        // SAFETY: below n.
        sum = r.merge(sum, unsafe { r.lift(*x.add(i)) });
    });
    bits(sum)
}

/// The most columns that one job accumulates side by side: their sums stay in the first-level cache.
const COLUMNS: usize = 1024;

/// # Safety
/// As `DownFn` says: both pointers hold all the rows, and may be the same if elements and results are of one type.
#[inline(always)]
unsafe fn down<R: ReduceOp<Accumulator: Arithmetic + Narrow<O>>, O: Copy>(
    x: *const u8,
    out: *mut u8,
    n: usize,
    step: usize,
    acc: &mut [R::Accumulator],
) {
    const TOGETHER: usize = 16;
    let r = R::default();
    let (whole, rest) = acc.as_chunks_mut::<TOGETHER>();
    for i in 0..n {
        let (x, out) = (x.cast::<R::Element>().wrapping_add(i * step), out.cast::<O>().wrapping_add(i * step));
        for (j, a) in whole.iter_mut().enumerate() {
            // All elements are read before any is written, so that the loop vectorises also where `x` is `out`. SAFETY: inside row i.
            let v = unsafe { x.add(j * TOGETHER).cast::<[R::Element; TOGETHER]>().read() };
            for (a, v) in a.iter_mut().zip(v) {
                *a = r.merge(*a, r.lift(v));
            }
            let v = std::array::from_fn(|k| a[k].narrow());
            // SAFETY: as above.
            unsafe { out.add(j * TOGETHER).cast::<[O; TOGETHER]>().write(v) };
        }
        let done = whole.len() * TOGETHER;
        for (j, a) in rest.iter_mut().enumerate() {
            // SAFETY: as above.
            unsafe {
                *a = r.merge(*a, r.lift(*x.add(done + j)));
                *out.add(done + j) = (*a).narrow();
            }
        }
    }
}

instances!(down_table = down, down_base down_avx2 down_avx512, [R: ReduceOp<Accumulator: Arithmetic + Narrow<O>>, O: Copy], [R, O], (
    x: *const u8, out: *mut u8, n: usize, step: usize, acc: &mut [R::Accumulator],
));

/// `DownFn` of the instance number `ISA`.
///
/// # Safety
/// As `DownFn` says, and the machine has the instructions.
unsafe fn down_at<R: ReduceOp<Accumulator: Arithmetic + Narrow<O>>, O: Copy, const ISA: usize>(
    x: *const u8,
    out: *mut u8,
    n: usize,
    step: usize,
    acc: *mut u64,
    width: usize,
) {
    // SAFETY: the caller's. The instance takes a slice, so that the compiler knows that the accumulators alias neither input nor output.
    unsafe {
        let instance = const { down_table::<R, O>()[ISA] };
        instance(x, out, n, step, std::slice::from_raw_parts_mut(acc.cast(), width));
    }
}

/// Sums along few but long rows. A piece of a row is summed as eight chains, and each chain starts from the sum of all elements before it.
/// How the sum is divided depends on the length of the row alone.
///
/// # Safety
/// As for `scan`.
unsafe fn long_rows(k: &ScanLoops, outer: usize, n: usize, p: (SharedPointer<*mut u8>, SharedPointer<*mut u8>)) {
    let pieces = n / PIECE;
    // The sums of all whole chains, then of everything before each of them.
    let mut before = zeros(outer * pieces * CHAINS);
    let sums = SharedPointer::new(before.as_mut_ptr());
    parallel_for(outer * pieces, |t| {
        let (row, piece) = (t / pieces, t % pieces);
        for c in 0..CHAINS {
            let x = k.at(p, row * n + piece * PIECE + c * CHAIN).0;
            // SAFETY: the chain lies inside the row, and task t alone writes its sums.
            unsafe { *sums.at(t * CHAINS + c) = (k.total)(x, CHAIN) };
        }
    });
    let mut ends = filled(k.start(), outer);
    for (row, end) in before.chunks_mut(pieces * CHAINS).zip(&mut ends) {
        for s in row {
            let here = *s;
            *s = *end;
            // SAFETY: both are accumulators.
            *end = unsafe { (k.merge)(*end, here) };
        }
    }
    parallel_for(outer * pieces, |t| {
        let (row, piece) = (t / pieces, t % pieces);
        // SAFETY: inside the piece, which task t alone handles with its accumulators.
        unsafe {
            let (x, out) = k.at(p, row * n + piece * PIECE);
            (k.chains)(CHAINS, CHAIN, CHAIN, x, out, sums.at(t * CHAINS));
        }
    });
    for (row, end) in ends.iter_mut().enumerate() {
        let done = pieces * PIECE;
        // SAFETY: what is left of the row.
        unsafe {
            let (x, out) = k.at(p, row * n + done);
            (k.chains)(1, n - done, 0, x, out, end);
        }
    }
}

/// Computes all elements of the input in the memory of the results.
///
/// # Safety
/// `out` has room for `numel` elements of `size` bytes, and `blocks` computes elements of this number and size.
pub unsafe fn make(blocks: &dyn BlockProducer, to: *mut u8, numel: usize, size: usize) {
    const STRETCH: usize = 1 << 15;
    let to = SharedPointer::new(to);
    parallel_for(numel.div_ceil(STRETCH), |k| {
        if !blocks.should_continue() {
            return;
        }
        let (start, len) = (k * STRETCH, STRETCH.min(numel - k * STRETCH));
        let here = to.at(start * size);
        // SAFETY: the caller's.
        let made = unsafe { blocks.produce(start, len, here) };
        if !std::ptr::eq(made, here) {
            // SAFETY: so many elements were made, and there is room for them.
            unsafe { std::ptr::copy_nonoverlapping(made, here, len * size) };
        }
    });
}

/// Accumulates elements of `dtype`: floats in double precision, of which the results are rounded to it, others in int64.
///
/// # Safety
/// Both pointers have `outer * n * inner` elements, `out` those of the results. They do not overlap, or are the same if the types are: each
/// element is read before it is written, by the task that writes it.
pub unsafe fn scan(kind: ScanKind, dtype: DType, around: (usize, usize, usize), x: *const u8, out: *mut u8) -> Result<()> {
    // Input and output of four rows fit one set of the first-level cache, onto which rows of 2^n elements fall.
    const ROWS: usize = 4;
    /// Elements of a row between two checks for interrupts.
    const LONG: usize = 1 << 18;
    // The bytes of bool may be others than 0 and 1 in foreign memory.
    if dtype.computed() != dtype && !dtype.is_differentiable() || dtype == DType::Bool {
        // SAFETY: the caller's. The elements become int64 where the results will be, and are scanned in place.
        unsafe {
            copy(dtype, DType::I64, &[around.0 * around.1 * around.2], x, &[1], out, &[1]);
            return scan(kind, DType::I64, around, out.cast_const(), out);
        }
    }
    let (outer, n, inner) = around;
    if dtype.is_complex() {
        // SAFETY: the caller's.
        unsafe {
            match kind {
                ScanKind::Sum => complex::sums(dtype, around, (x, out)),
                ScanKind::Prod => complex::products(dtype, around, (x, out)),
                ScanKind::LogSumExp => complex::logarithms_of_sums(dtype, around, (x, out)),
            }
        }
        return Ok(());
    }
    let Some(k) = ScanLoops::new(kind, dtype) else { return Err(not_floating(dtype)) };
    let p = (SharedPointer::new(x.cast_mut()), SharedPointer::new(out));
    if inner == 1 && outer >= ROWS {
        // Several rows at once, because their chains of additions are independent.
        let groups = outer.div_ceil(ROWS);
        let together = (TASK / (n * ROWS).max(1)).max(1);
        parallel_for(groups.div_ceil(together), |t| {
            for group in t * together..groups.min((t + 1) * together) {
                let first = group * ROWS;
                let mut acc = [k.start(); ROWS];
                // SAFETY: this group alone handles these rows; indices stay inside both arrays.
                unsafe {
                    for from in (0..n).step_by(LONG) {
                        let (x, out) = k.at(p, first * n + from);
                        (k.chains)(ROWS.min(outer - first), LONG.min(n - from), n, x, out, acc.as_mut_ptr());
                        interrupt::check();
                    }
                }
            }
        });
        return Ok(());
    }
    if inner == 1 && kind == ScanKind::Sum && n >= 2 * PIECE {
        // SAFETY: the caller's.
        unsafe { long_rows(&k, outer, n, p) };
        return Ok(());
    }
    // Wide jobs read and write long runs of memory, but there should be at least one for each thread.
    let wide = inner.div_ceil(num_threads().div_ceil(outer.max(1))).next_multiple_of(64).clamp(64, COLUMNS);
    let blocks = inner.div_ceil(wide);
    let jobs = outer * blocks;
    let together = (TASK / (n * inner.min(wide)).max(1)).max(1);
    let down = k.down[instruction_set() as usize];
    parallel_for(jobs.div_ceil(together), |t| {
        for job in t * together..jobs.min((t + 1) * together) {
            let (o, b) = (job / blocks, job % blocks);
            let width = wide.min(inner - b * wide);
            let mut acc: SmallVec<[u64; 64]> = SmallVec::from_elem(k.start(), width);
            // SAFETY: this job alone handles these columns; indices stay inside both arrays.
            unsafe {
                let some = (LONG / width).max(1);
                for from in (0..n).step_by(some) {
                    let (x, out) = k.at(p, (o * n + from) * inner + b * wide);
                    down(x, out, some.min(n - from), inner, acc.as_mut_ptr(), width);
                    interrupt::check();
                }
            }
        }
    });
    Ok(())
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

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Scan {
    const NARROW: NarrowElements = NarrowElements::Widened;

    fn support(&self, dtype: DType) -> Support {
        if dtype.computed() != dtype { Support::Converted("converted to int64 first") } else { Support::Yes }
    }

    fn reads_programs(&self, dtype: DType) -> bool {
        // Elements are made where the scan writes, so both are of one type.
        !is_widened(dtype) && (dtype.is_float() || dtype == DType::I64)
    }

    unsafe fn compute(s: &Scan, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(s, outs, 0)?;
        // SAFETY: see above.
        let x = unsafe { OrderedOperand::dense(s.name(), ins)? };
        let sizes = around(x.shape(), s.dim);
        if sizes.0 * sizes.1 * sizes.2 == 0 {
            return Ok(());
        }
        let from = match x.source() {
            ReduceInput::Memory(p) => p,
            ReduceInput::Made(blocks) => {
                // SAFETY: such results are of the elements' type (`reads_programs`), so they are made where the scan writes.
                unsafe { make(blocks, out.ptr(), sizes.0 * sizes.1 * sizes.2, x.dtype().size()) };
                if !blocks.should_continue() {
                    return Ok(());
                }
                out.ptr().cast_const()
            }
        };
        // SAFETY: see above; in place both are of one type.
        unsafe { scan(s.kind, x.dtype(), sizes, from, out.ptr()) }
    }
}

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
            unsafe { scan(ScanKind::Sum, DType::F64, (outer, n, inner), x.as_ptr().cast(), y.as_mut_ptr().cast()).unwrap() };
            for (i, v) in y.iter().enumerate() {
                let (row, column) = (i / inner % n, i % inner);
                let before = if row == 0 { 0.0 } else { y[i - inner] };
                assert_eq!(*v, before + x[i], "{outer} {n} {inner} {row} {column}");
            }
            let mut there = x.clone();
            let to = there.as_mut_ptr().cast::<u8>();
            // SAFETY: in place.
            unsafe { scan(ScanKind::Sum, DType::F64, (outer, n, inner), to.cast_const(), to).unwrap() };
            assert_eq!(there, y, "{outer} {n} {inner} in place");
            let narrow: Vec<f32> = x.iter().map(|v| *v as f32).collect();
            let mut z = vec![f32::NAN; x.len()];
            // SAFETY: as above.
            unsafe { scan(ScanKind::Sum, DType::F32, (outer, n, inner), narrow.as_ptr().cast(), z.as_mut_ptr().cast()).unwrap() };
            assert!(z.iter().zip(&y).all(|(z, y)| f64::from(*z) == *y), "{outer} {n} {inner} in float32");
            let narrow: Vec<i32> = x.iter().map(|v| *v as i32).collect();
            let mut z = vec![i64::MIN; x.len()];
            // SAFETY: as above.
            unsafe { scan(ScanKind::Sum, DType::I32, (outer, n, inner), narrow.as_ptr().cast(), z.as_mut_ptr().cast()).unwrap() };
            assert!(z.iter().zip(&y).all(|(z, y)| *z as f64 == *y), "{outer} {n} {inner} in int32");
        }
    }
}
