//! The inner loops of reductions, compiled for each reducer and instruction set: along rows, and down columns. `traversal` is not generic:
//! it calls the loops through a table and handles elements and accumulators as bytes.

use super::reducers::ReduceOp;
use crate::simd::InstructionSet;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Rounds of all lanes before pairwise merging takes over.
const ROUNDS: usize = 64;

/// A function `$table` that gives `$body` compiled for each instruction set, in the order of `InstructionSet`.
macro_rules! instances {
    (
        $table:ident = $body:ident, $base:ident $avx2:ident $avx512:ident,
        [$($generics:tt)*], [$($names:ident),*], ($($arg:ident: $t:ty),* $(,)?) $(-> $ret:ty)?
    ) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,fma")]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $avx512<$($generics)*>($($arg: $t),*) $(-> $ret)? {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body::<$($names),*>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $avx2<$($generics)*>($($arg: $t),*) $(-> $ret)? {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body::<$($names),*>($($arg),*) }
        }
        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $base<$($generics)*>($($arg: $t),*) $(-> $ret)? {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body::<$($names),*>($($arg),*) }
        }
        const fn $table<$($generics)*>() -> [unsafe fn($($t),*) $(-> $ret)?; $crate::simd::InstructionSet::COUNT] {
            [
                $base::<$($names),*>,
                #[cfg(target_arch = "x86_64")]
                $avx2::<$($names),*>,
                #[cfg(target_arch = "x86_64")]
                $avx512::<$($names),*>,
            ]
        }
    };
}
pub(crate) use instances;

/// Computes the accumulators of `count.0` rows, `count.1` apart, of `row.0` elements, `row.1` apart, in `acc`, `acc_step` apart.
pub type RowsFn = unsafe fn(p: *const u8, count: (usize, isize), row: (usize, isize), acc: *mut u8, acc_step: isize);
/// Adds `rows.0` rows, `rows.1` apart, of `columns` elements, `stride` apart, to the accumulators of the columns.
pub type ColumnsFn = unsafe fn(p: *const u8, rows: (usize, isize), stride: isize, acc: *mut u8, columns: usize);
/// Merges `n` accumulators with those of later elements or, if `behind` is false, of earlier ones.
pub type MergeFn = unsafe fn(acc: *mut u8, other: *const u8, n: usize, behind: bool);
/// Sets `n` accumulators to their initial value.
pub type FillFn = unsafe fn(acc: *mut u8, n: usize);

/// What the traversal needs of a reducer. Strides are in elements and accumulators; both are aligned to at most 8 bytes.
#[derive(Debug, Clone, Copy)]
pub struct ReduceLoops {
    /// Bytes of an element.
    pub element: usize,
    /// Bytes of an accumulator.
    pub acc: usize,
    pub rows: [RowsFn; InstructionSet::COUNT],
    pub down: [ColumnsFn; InstructionSet::COUNT],
    pub merge: MergeFn,
    pub fill: FillFn,
}

impl ReduceLoops {
    /// The same with the AVX2 loops along rows instead of the AVX-512 ones, where those are slower.
    pub const fn narrow_rows(self) -> Self {
        let mut rows = self.rows;
        if InstructionSet::COUNT > 2 {
            rows[InstructionSet::COUNT - 1] = rows[InstructionSet::COUNT - 2];
        }
        ReduceLoops { rows, ..self }
    }
}

/// The loops of a reducer.
pub struct LoopsOf<R>(PhantomData<R>);

impl<R: ReduceOp> LoopsOf<R> {
    pub const LOOPS: &'static ReduceLoops = &Self::ALL;
    /// For accumulators of eight bytes, whose lanes the compiler does not keep in AVX-512 registers.
    pub const NARROW: &'static ReduceLoops = &Self::ALL.narrow_rows();
    const ALL: ReduceLoops = ReduceLoops {
        element: size_of::<R::Element>(),
        acc: size_of::<R::Accumulator>(),
        rows: brief_base(rows_table::<R, BRIEF>(), rows_table::<R, false>()),
        down: [
            down_at::<R, 0>,
            #[cfg(target_arch = "x86_64")]
            down_at::<R, 1>,
            #[cfg(target_arch = "x86_64")]
            down_at::<R, 2>,
        ],
        merge: merge::<R>,
        fill: fill::<R>,
    };
}

/// Lanes of long rows.
const fn lanes(acc: usize) -> usize {
    if acc == 4 { 64 } else { 32 }
}
/// Lanes of strided rows.
const APART: usize = 8;

/// Whether processors without wide vectors have one loop along rows instead of one for each class of lengths.
pub(super) const BRIEF: bool = InstructionSet::COUNT > 1;

/// The table `full` with the first instance of `brief`.
pub(super) const fn brief_base(
    brief: [RowsFn; InstructionSet::COUNT],
    full: [RowsFn; InstructionSet::COUNT],
) -> [RowsFn; InstructionSet::COUNT] {
    let mut all = full;
    all[0] = brief[0];
    all
}

instances!(rows_table = rows, rows_base rows_avx2 rows_avx512, [R: ReduceOp, const IS_BRIEF: bool], [R, IS_BRIEF], (
    p: *const u8, count: (usize, isize), row: (usize, isize), acc: *mut u8, acc_step: isize,
));
instances!(down_table = down, down_base down_avx2 down_avx512, [R: ReduceOp], [R], (
    p: *const u8, rows: (usize, isize), stride: isize, acc: &mut [R::Accumulator],
));

/// `ColumnsFn` of the instance number `ISA`.
///
/// # Safety
/// As `ColumnsFn` says; all elements are readable, the accumulators are there, and the machine has the instructions.
unsafe fn down_at<R: ReduceOp, const ISA: usize>(p: *const u8, rows: (usize, isize), stride: isize, acc: *mut u8, columns: usize) {
    // SAFETY: the caller's. The instance takes a slice and is a function of its own, so the compiler knows that accumulators do not alias
    // elements. Otherwise it does not vectorise.
    unsafe {
        let instance = const { down_table::<R>()[ISA] };
        instance(p, rows, stride, std::slice::from_raw_parts_mut(acc.cast(), columns));
    }
}

/// # Safety
/// As for `merge_with`.
unsafe fn merge<R: ReduceOp>(acc: *mut u8, other: *const u8, n: usize, behind: bool) {
    // SAFETY: the caller's.
    unsafe { merge_with::<R::Accumulator>(acc, other, n, behind, |a, b| R::default().merge(a, b)) }
}

/// # Safety
/// There are `n` accumulators at `acc` and at `other`, which do not overlap.
#[inline(always)]
pub(crate) unsafe fn merge_with<A: Copy>(acc: *mut u8, other: *const u8, n: usize, behind: bool, f: impl Fn(A, A) -> A) {
    // SAFETY: the caller's.
    let (acc, other) = unsafe { (std::slice::from_raw_parts_mut(acc.cast::<A>(), n), std::slice::from_raw_parts(other.cast::<A>(), n)) };
    if behind {
        acc.iter_mut().zip(other).for_each(|(a, b)| *a = f(*a, *b));
    } else {
        acc.iter_mut().zip(other).for_each(|(a, b)| *a = f(*b, *a));
    }
}

/// # Safety
/// There is room for `n` accumulators.
unsafe fn fill<R: ReduceOp>(acc: *mut u8, n: usize) {
    // SAFETY: the caller's.
    unsafe { fill_with(acc, n, R::default().init()) }
}

/// # Safety
/// There is room for `n` accumulators.
#[inline(always)]
pub(crate) unsafe fn fill_with<A: Copy>(acc: *mut u8, n: usize, init: A) {
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe { acc.cast::<A>().add(i).write(init) };
    }
}

/// # Safety
/// There are `n` accumulators, and room for as many results, `step` apart.
#[inline(always)]
pub(crate) unsafe fn finish_with<A: Copy, O>(acc: *const u8, n: usize, out: *mut u8, step: isize, f: impl Fn(A) -> O) {
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe { out.cast::<O>().offset(i as isize * step).write(f(*acc.cast::<A>().add(i))) };
    }
}

/// # Safety
/// As `RowsFn` says; all elements are readable, and the accumulators writable.
#[inline(always)]
unsafe fn rows<R: ReduceOp, const IS_BRIEF: bool>(
    p: *const u8,
    (count, step): (usize, isize),
    (n, stride): (usize, isize),
    acc: *mut u8,
    acc_step: isize,
) {
    let (p, acc) = (p.cast::<R::Element>(), acc.cast::<R::Accumulator>());
    for i in 0..count as isize {
        // SAFETY: the caller's promise covers row i.
        unsafe { acc.offset(i * acc_step).write(row::<R, IS_BRIEF>(R::default(), p.offset(i * step), n, stride)) };
    }
}

/// The merge of `n` elements that lie `stride` apart.
///
/// # Safety
/// All of them are readable.
#[inline(always)]
pub(crate) unsafe fn row<R: ReduceOp, const IS_BRIEF: bool>(r: R, p: *const R::Element, n: usize, stride: isize) -> R::Accumulator {
    // SAFETY: the caller's promise is passed on.
    unsafe {
        if n < 8 {
            let mut a = r.init();
            for i in 0..n {
                a = r.merge(a, r.lift(*p.offset(i as isize * stride)));
            }
            a
        } else if IS_BRIEF || stride != 1 {
            row_lanes::<R, APART, APART, false>(r, p, n, stride)
        } else if n < 16 {
            row_block::<R, 4, 4, true>(r, p, n, 1)
        } else if const { lanes(size_of::<R::Accumulator>()) == 64 } {
            if n < 64 { row_block::<R, 16, 16, true>(r, p, n, 1) } else { row_lanes::<R, 64, 16, true>(r, p, n, 1) }
        } else if n < const { if size_of::<R::Element>() == 8 { 64 } else { 128 } } {
            row_block::<R, 16, 8, true>(r, p, n, 1)
        } else {
            row_lanes::<R, 32, 8, true>(r, p, n, 1)
        }
    }
}

/// Up to `L * ROUNDS` elements: round after round onto `L` lanes, which are then merged as a tree. What is left of dense rows goes onto `FEW` lanes.
#[inline(always)]
unsafe fn row_block<R: ReduceOp, const L: usize, const FEW: usize, const DENSE: bool>(
    r: R,
    p: *const R::Element,
    n: usize,
    stride: isize,
) -> R::Accumulator {
    let mut lanes = [r.init(); L];
    let rounds = n / L;
    // SAFETY: every index is below n.
    unsafe {
        if DENSE && let Some(quick) = r.block(p, n) {
            return quick;
        }
        if DENSE {
            for i in 0..rounds {
                let q = p.add(i * L);
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = r.add(*lane, *q.add(j));
                }
            }
        } else {
            for i in 0..rounds {
                let q = p.offset((i * L) as isize * stride);
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = r.add(*lane, *q.offset(j as isize * stride));
                }
            }
        }
        let left = n - rounds * L;
        if DENSE && left > 0 {
            // Fewer than that have no lanes yet.
            if n < FEW {
                return interleaved(r, p, n);
            }
            let rest = rest::<R, FEW>(r, p.add(n - left), left);
            merge_lanes(r, &mut lanes);
            return r.merge(lanes[0], rest);
        }
        if left > 0 {
            // In an array of its own, so that the lanes above stay in registers.
            let mut rest = [r.init(); L];
            for (j, x) in rest[..left].iter_mut().enumerate() {
                *x = r.lift(*p.offset((rounds * L + j) as isize * stride));
            }
            lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane = r.merge(*lane, x));
        }
    }
    merge_lanes(r, &mut lanes);
    lanes[0]
}

/// The merge of `left` elements at `p`, before which `FEW` lie.
///
/// # Safety
/// All of them are readable.
#[inline(always)]
unsafe fn rest<R: ReduceOp, const FEW: usize>(r: R, p: *const R::Element, left: usize) -> R::Accumulator {
    let mut rest = [r.init(); FEW];
    for i in 0..left / FEW {
        for (j, lane) in rest.iter_mut().enumerate() {
            // SAFETY: the caller's.
            *lane = r.add(*lane, unsafe { *p.add(i * FEW + j) });
        }
    }
    // The last ones, of which the first are there already.
    let (last, new) = (p.wrapping_add(left).wrapping_sub(FEW), left % FEW);
    for (j, lane) in rest.iter_mut().enumerate() {
        // SAFETY: the caller's; `new` is less than `FEW`, and that at most `MOST_FEW`.
        let (x, is_new) = unsafe {
            let at = MOST_FEW - FEW + new + j;
            let is_new =
                if const { size_of::<R::Accumulator>() == 8 } { *LAST_64.get_unchecked(at) != 0 } else { *LAST_32.get_unchecked(at) != 0 };
            (r.lift(*last.add(j)), is_new)
        };
        *lane = r.merge(*lane, select_unpredictable(is_new, x, r.init()));
    }
    merge_lanes(r, &mut rest);
    rest[0]
}

/// The most lanes of a rest.
const MOST_FEW: usize = 16;
/// Whether an element is one of the last ones: behind as many zeros, as wide as accumulators.
macro_rules! last {
    ($t:ty) => {{
        let mut all = [0; 2 * MOST_FEW];
        let mut i = MOST_FEW;
        while i < 2 * MOST_FEW {
            all[i] = <$t>::MAX;
            i += 1;
        }
        all
    }};
}
static LAST_32: [u32; 2 * MOST_FEW] = last!(u32);
static LAST_64: [u64; 2 * MOST_FEW] = last!(u64);

/// The merge of a few elements.
///
/// # Safety
/// All of them are readable.
#[inline(never)]
unsafe fn interleaved<R: ReduceOp>(r: R, p: *const R::Element, n: usize) -> R::Accumulator {
    // SAFETY: the caller's.
    (0..n).fold(r.init(), |a, i| r.merge(a, r.lift(unsafe { *p.add(i) })))
}

/// Merges all lanes as a tree to the first one.
#[inline(always)]
fn merge_lanes<R: ReduceOp, const L: usize>(r: R, lanes: &mut [R::Accumulator; L]) {
    let mut width = L / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = r.merge(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
}

/// A row of any length (but below 2^16 blocks): blocks merged pairwise, as a binary counter does.
#[inline(always)]
unsafe fn row_lanes<R: ReduceOp, const L: usize, const FEW: usize, const DENSE: bool>(
    r: R,
    p: *const R::Element,
    n: usize,
    stride: isize,
) -> R::Accumulator {
    let block = L * ROUNDS;
    let blocks = n.div_ceil(block);
    if blocks <= 1 {
        // SAFETY: the caller's promise is passed on.
        return unsafe { row_block::<R, L, FEW, DENSE>(r, p, n, stride) };
    }
    let mut levels = [r.init(); 16];
    for b in 0..blocks {
        let start = b * block;
        let at = if DENSE { start as isize } else { start as isize * stride };
        // SAFETY: every index is below n.
        let mut sum = unsafe { row_block::<R, L, FEW, DENSE>(r, p.offset(at), block.min(n - start), stride) };
        let mut level = 0;
        while b >> level & 1 == 1 {
            sum = r.merge(levels[level], sum);
            level += 1;
        }
        levels[level] = sum;
    }
    let mut out: Option<R::Accumulator> = None;
    for (level, l) in levels.iter().enumerate() {
        if blocks >> level & 1 == 1 {
            out = Some(out.map_or(*l, |o| r.merge(*l, o)));
        }
    }
    out.unwrap_or(r.init())
}

/// # Safety
/// As `ColumnsFn` says; all elements are readable.
#[inline(always)]
unsafe fn down<R: ReduceOp>(p: *const u8, (rows, row_stride): (usize, isize), stride: isize, acc: &mut [R::Accumulator]) {
    let (p, r) = (p.cast::<R::Element>(), R::default());
    // SAFETY: the caller's.
    unsafe {
        if stride == 1 {
            down_columns(r, p, rows, row_stride, 1, |_, x| r.lift(x), acc);
        } else {
            down_columns(r, p, rows, row_stride, stride, |_, x| r.lift(x), acc);
        }
    }
}

/// Column-wise merge of rows into `acc`; `lift(j, x)` is the accumulator of an element of column j.
///
/// # Safety
/// `acc.len()` columns, `stride` apart, of all rows are readable.
#[inline(always)]
pub(crate) unsafe fn down_columns<R: ReduceOp>(
    r: R,
    p: *const R::Element,
    rows: usize,
    row_stride: isize,
    stride: isize,
    lift: impl Fn(usize, R::Element) -> R::Accumulator,
    acc: &mut [R::Accumulator],
) {
    let mut i = 0;
    // SAFETY: the caller's promise covers every row and column.
    unsafe {
        // At most eight rows at once: if their distance is a multiple of the page size, they share the eight ways of one cache set.
        while i + 8 <= rows {
            for (j, a) in acc.iter_mut().enumerate() {
                let q = p.offset(i as isize * row_stride + j as isize * stride);
                *a = r.merge_eight(*a, std::array::from_fn(|k| lift(j, *q.offset(k as isize * row_stride))));
            }
            i += 8;
        }
        while i < rows {
            let q = p.offset(i as isize * row_stride);
            for (j, a) in acc.iter_mut().enumerate() {
                *a = r.merge(*a, lift(j, *q.offset(j as isize * stride)));
            }
            i += 1;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::reducers::{ExtremeOp, SquareSum, SumOp};
    use super::*;
    use crate::simd::best;

    /// Whether rows of every length, dense and not, have the result of merging their elements one by one. Numbers are so small that sums are exact.
    pub fn agrees<R: ReduceOp>(of: impl Fn(usize) -> R::Element)
    where
        R::Accumulator: PartialEq + Default + std::fmt::Debug,
    {
        let r = R::default();
        let x: Vec<R::Element> = (0..2 * 700).map(of).collect();
        for n in (1..300).chain([511, 512, 513, 640, 699]) {
            for stride in [1, 2] {
                let wanted = (0..n).fold(r.init(), |a, i| r.merge(a, r.lift(x[i * stride])));
                for (isa, rows) in LoopsOf::<R>::LOOPS.rows.iter().enumerate().filter(|(isa, _)| *isa <= best() as usize) {
                    let mut acc = R::Accumulator::default();
                    // SAFETY: there is one row, and room for its result; the machine has the instruction set.
                    unsafe { rows(x.as_ptr().cast(), (1, 0), (n, stride as isize), std::ptr::from_mut(&mut acc).cast(), 1) };
                    assert_eq!(acc, wanted, "{n} elements, {stride} apart, instruction set {isa}");
                }
            }
        }
    }

    #[test]
    fn rows_of_every_length_are_merged() {
        let small = |i: usize| (i * 37 % 11) as f32 - 5.0;
        agrees::<SumOp<f32, f32>>(small);
        agrees::<SumOp<f64, f64>>(|i| small(i).into());
        agrees::<SumOp<i32, i64>>(|i| i as i32 * 7 - 300);
        agrees::<SquareSum<f32, false>>(small);
        agrees::<ExtremeOp<f32, true>>(|i| (i * 7919 % 1009) as f32);
        agrees::<ExtremeOp<i32, false>>(|i| (i * 7919 % 1009) as i32);
        agrees::<ExtremeOp<f64, false>>(|i| (i * 7919 % 1009) as f64);
    }

    #[test]
    fn a_nan_anywhere_is_the_extreme() {
        for n in [1, 7, 9, 20, 63, 64, 65, 100, 127, 128, 190, 257] {
            for at in 0..n {
                let mut x = vec![1.0f32; n];
                x[at] = f32::NAN;
                for rows in LoopsOf::<ExtremeOp<f32, true>>::LOOPS.rows.iter().take(best() as usize + 1) {
                    let mut acc = 0.0f32;
                    // SAFETY: as above.
                    unsafe { rows(x.as_ptr().cast(), (1, 0), (n, 1), std::ptr::from_mut(&mut acc).cast(), 1) };
                    assert!(acc.is_nan(), "{n} {at}");
                }
            }
        }
    }
}
