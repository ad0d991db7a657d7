//! Matrix products over any strides: tiny ones with a plain loop, matrix times vector and times few rows (`gemm_skinny`) with loops of this
//! module, those that are worth it on machines with AVX2 with our own packing (`packed`), all others tile by tile with the crate `gemm`.
//! `algorithms` has them in order. Those of complex numbers are products of their parts (`complex`).
//!
//! Not here: broadcasting of batches and transposes (`array/matmul.rs`).
//!
//! The choice between them and the order of additions depend on sizes and strides alone, so the bits are the same for any number of
//! threads.

pub(super) mod algorithms;
pub(super) mod compute;
mod array_vector;
pub mod choices;
mod complex;
#[cfg(target_arch = "x86_64")]
mod gemm_skinny;
mod integers;
pub(super) mod on_vectors;
pub(super) mod packed;
pub(super) mod panel_vector;
pub(super) mod panels;
#[cfg(target_arch = "x86_64")]
mod shuffles;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) mod six_by_two;
pub(super) mod stored_as;
pub(super) mod transposed;
#[cfg(test)]
mod vector_tests;

use self::algorithms::{DIRECT_COLUMNS, FloatPlan, Product};
use self::packed::{Bias, Factor};
use super::reduce::reducers::Arithmetic;
use crate::host::interrupt;
use crate::host::memory::reserve::{filled, reserved};
use crate::host::threads::{SharedPointer, parallel_for};
use gemm_common::Parallelism;

/// A matrix in memory: rows lie `rs` elements apart, columns `cs`.
#[derive(Debug)]
pub struct Mat<T> {
    pub ptr: *const T,
    pub rs: isize,
    pub cs: isize,
}

impl<T> Clone for Mat<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Mat<T> {}
// SAFETY: a place to read from; callers keep the memory alive and unwritten while kernels run.
unsafe impl<T> Send for Mat<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mat<T> {}

impl<T> Mat<T> {
    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> *const T {
        self.ptr.wrapping_offset(i as isize * self.rs + j as isize * self.cs)
    }
    fn moved(&self, by: isize) -> Self {
        Mat { ptr: self.ptr.wrapping_offset(by), rs: self.rs, cs: self.cs }
    }
    pub(super) fn t(self) -> Self {
        Mat { ptr: self.ptr, rs: self.cs, cs: self.rs }
    }
}

/// Multiply-adds below which a product runs on the calling thread.
const PARALLEL: usize = 96 * 96 * 96;
/// Elements of a matrix that one task of a matrix-vector product reads.
const VECTOR_TASK: usize = 1 << 16;

/// Multiply-adds of the largest tile (about a millisecond), and of the smallest tile that is divided to give work to eight threads.
const TILE: std::ops::Range<usize> = 1 << 20..1 << 26;
/// A tile's side that is not divided: packing its rows and columns would cost too much.
const SIDE: usize = 64;

/// From this many rows of the result on a right operand with dense columns is copied first.
const TRANSPOSED: usize = 128;

/// Multiplications of one tile between two checks for interrupts.
const LONG_SUM: usize = 1 << 32;

/// Rows and columns of the tiles that `gemm` computes one by one, each on one thread: its own division among threads was slower by a fifth.
fn tile(m: usize, n: usize, k: usize) -> (usize, usize) {
    let (mut rows, mut columns) = (m, n);
    while rows.max(columns) > SIDE {
        let (size, tiles) = (rows * columns * k, m.div_ceil(rows) * n.div_ceil(columns));
        if size < TILE.start || size <= TILE.end && tiles >= 8 {
            break;
        }
        let longer = if rows >= columns { &mut rows } else { &mut columns };
        *longer = longer.div_ceil(2).next_multiple_of(16);
    }
    (rows, columns)
}

/// Numbers with products of matrices.
pub(crate) trait MatrixProduct: Arithmetic {
    /// How a product is computed. What is planned once serves all products of a batch.
    type Plan: Copy + Send + Sync;

    /// Of sizes and strides; the elements are not read.
    fn plan(p: &Product<Self>) -> Self::Plan;

    /// `out`, row-major with rows of `n`, is overwritten by the product.
    ///
    /// # Safety
    /// The plan is one of a product with the same sizes and strides. The factors are readable, `out` is writable over the sizes given, and overlaps
    /// neither.
    unsafe fn run(plan: Self::Plan, p: &Product<Self>, out: *mut Self, parallel: bool);

    /// `a` (m x k) times `b` (k x n).
    ///
    /// # Safety
    /// As for `run`.
    #[cfg(test)]
    unsafe fn product(m: usize, n: usize, k: usize, a: Mat<Self>, b: Mat<Self>, out: *mut Self, parallel: bool) {
        let p = Product { sizes: (m, n, k), factors: [a, b] };
        // SAFETY: the caller's.
        unsafe { Self::run(Self::plan(&p), &p, out, parallel) };
    }
}

/// Floats.
#[cfg(target_arch = "x86_64")]
pub(crate) trait FloatProduct: MatrixProduct + gemm_skinny::SkinnyGemm + GemmProduct {}
/// Floats.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) trait FloatProduct: MatrixProduct + panel_vector::CoreNumber + GemmProduct {}
impl FloatProduct for f32 {}
impl FloatProduct for f64 {}

/// Products by the crate `gemm`.
pub(crate) trait GemmProduct: Arithmetic {
    /// # Safety
    /// As for `MatrixProduct::run`.
    unsafe fn gemm(m: usize, n: usize, k: usize, a: Mat<Self>, b: Mat<Self>, out: *mut Self, parallel: bool);
}

macro_rules! float_product {
    ($t:ty, $($gemm:ident)::+) => {
        impl MatrixProduct for $t {
            type Plan = FloatPlan;

            #[inline(always)]
            fn plan(p: &Product<$t>) -> FloatPlan {
                FloatPlan::to_run(p).unwrap_or(FloatPlan::Gemm(()))
            }

            #[inline(always)]
            unsafe fn run(plan: FloatPlan, p: &Product<$t>, out: *mut $t, parallel: bool) {
                // SAFETY: the caller's promise is passed on.
                unsafe { plan.run(p, Bias::None, out, parallel) };
            }
        }

        impl GemmProduct for $t {
            unsafe fn gemm(m: usize, n: usize, k: usize, a: Mat<$t>, b: Mat<$t>, out: *mut $t, parallel: bool) {
                // SAFETY: the caller's promise is passed on.
                unsafe {
                    let copy = (b.rs == 1 && b.cs != 1 && m >= TRANSPOSED && n * k > 0).then(|| transposed::transposed_copy(k, n, b, parallel));
                    let b = copy.as_ref().map_or(b, |copy| copy.mat);
                    // The sum over k is never divided, and the tiles are the same however many threads there are.
                    let (rows, columns) = if m * n * k >= PARALLEL { tile(m, n, k) } else { (m, n) };
                    let across = n.div_ceil(columns);
                    let (out, a_rs, a_cs, b_rs, b_cs) = (SharedPointer::new(out), a.rs, a.cs, b.rs, b.cs);
                    let one = |at: usize| {
                        let (i, j) = (at / across * rows, at % across * columns);
                        let (out, a, b) = (out.at(i * n + j), a.at(i, 0), b.at(0, j));
                        let (rows, columns) = (rows.min(m - i), columns.min(n - j));
                        // Only very long sums are divided, so that interrupts are seen in between.
                        let part = (LONG_SUM / (rows * columns)).max(1 << 12);
                        for first in (0..k).step_by(part) {
                            let (a, b) = (a.wrapping_offset(first as isize * a_cs), b.wrapping_offset(first as isize * b_rs));
                            let more = first > 0;
                            // SAFETY: the caller's promise, of a part; with `read_dst` false the output is only written.
                            // Its kernels write columns: the product is transposed, (b^T a^T)^T.
                            $($gemm)::+::get_gemm_fn()(
                                columns,
                                rows,
                                part.min(k - first),
                                out,
                                n as isize,
                                1,
                                more,
                                b,
                                b_rs,
                                b_cs,
                                a,
                                a_rs,
                                a_cs,
                                if more { 1.0 } else { 0.0 },
                                1.0,
                                false,
                                false,
                                false,
                                Parallelism::None,
                            );
                            if first + part < k {
                                interrupt::check();
                            }
                        }
                    };
                    let tiles = m.div_ceil(rows) * across;
                    if k == 0 {
                        // Nothing is added: zeros.
                        std::slice::from_raw_parts_mut(out.get(), m * n).fill(0.0);
                    } else if parallel {
                        parallel_for(tiles, one);
                    } else {
                        (0..tiles).for_each(one);
                    }
                }
            }
        }
    };
}
float_product!(f32, gemm_f32::gemm::f32);
float_product!(f64, gemm_f64::gemm::f64);

/// `batch` products whose operands start where `offsets` says, in elements; the results lie one after the other.
///
/// # Safety
/// As for `MatrixProduct::run`, for each batch.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn batched<T: MatrixProduct>(
    batch: usize,
    (m, n, k): (usize, usize, usize),
    a: Mat<T>,
    b: Mat<T>,
    out: *mut T,
    offsets: impl Fn(usize) -> (isize, isize) + Sync,
) {
    let work = m * n * k;
    let shifted = |i: usize| {
        let (p, q) = offsets(i);
        [a.moved(p), b.moved(q)]
    };
    let out = SharedPointer::new(out);
    let plan = T::plan(&Product { sizes: (m, n, k), factors: [a, b] });
    in_batches(batch, work, |i, parallel| {
        let p = Product { sizes: (m, n, k), factors: shifted(i) };
        // SAFETY: each batch writes its own stretch of `out`; the rest is the caller's promise.
        unsafe { T::run(plan, &p, out.at(i * m * n), parallel) };
    });
}

/// Computes so many products of so many multiply-adds each: `one(i, true)` one after the other, in parallel inside, or several at a time.
pub(super) fn in_batches(count: usize, work: usize, one: impl Fn(usize, bool) + Sync) {
    if count == 1 || work >= 4 * PARALLEL {
        return (0..count).for_each(|i| one(i, true));
    }
    let together = (PARALLEL / work.max(1)).max(1);
    parallel_for(count.div_ceil(together), |t| (t * together..count.min((t + 1) * together)).for_each(|i| one(i, false)));
}

/// # Safety
/// As for `MatrixProduct::run`; n is at most `DIRECT_COLUMNS`.
#[inline(always)]
unsafe fn direct<T: Arithmetic>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, out: *mut T) {
    // SAFETY: indices stay below the sizes.
    unsafe {
        for i in 0..m {
            let mut acc = [T::ZERO; DIRECT_COLUMNS];
            let acc = &mut acc[..n];
            for p in 0..k {
                let x = *a.at(i, p);
                for (j, o) in acc.iter_mut().enumerate() {
                    *o = o.plus(x.times(*b.at(p, j)));
                }
            }
            std::ptr::copy_nonoverlapping(acc.as_ptr(), out.add(i * n), n);
        }
    }
}

/// `n` elements, `step` apart, next to each other.
///
/// # Safety
/// They are readable.
unsafe fn dense<T: Copy>(n: usize, x: *const T, step: isize) -> Vec<T> {
    let mut made = reserved(n);
    // SAFETY: the caller's.
    made.extend((0..n).map(|p| unsafe { *x.wrapping_offset(p as isize * step) }));
    made
}

/// `out = a x` for `a` of m x k.
///
/// # Safety
/// As for `MatrixProduct::run`; `x` has k elements, `step` apart.
unsafe fn vector<T: Arithmetic>(m: usize, k: usize, a: Mat<T>, x: *const T, step: isize, out: *mut T, parallel: bool) {
    // SAFETY: the caller's promise is passed on.
    unsafe {
        let out = SharedPointer::new(out);
        // If rows are neighbours in memory, the loop goes column by column, otherwise row by row.
        let down = a.rs == 1 && a.cs != 1 && m > 1;
        if parallel && m < 4 && k >= 2 * VECTOR_TASK && !down {
            // Long dot products: pieces of a fixed size, whose sums are added in order.
            let pieces = k.div_ceil(VECTOR_TASK);
            let mut partial = filled(T::ZERO, m * pieces);
            let (to, x) = (SharedPointer::new(partial.as_mut_ptr()), SharedPointer::new(x));
            parallel_for(m * pieces, |t| {
                let (i, first) = (t / pieces, t % pieces * VECTOR_TASK);
                let n = VECTOR_TASK.min(k - first);
                // SAFETY: task t alone writes its place, which outlives the tasks.
                let mine = std::slice::from_raw_parts_mut(to.at(t), 1);
                let copy;
                let mut x = x.get().wrapping_offset(first as isize * step);
                if step != 1 {
                    copy = dense(n, x, step);
                    x = copy.as_ptr();
                }
                dots_any(n, a.moved(i as isize * a.rs + first as isize * a.cs), Mat { ptr: x, rs: 1, cs: 1 }, mine);
            });
            for (i, row) in partial.chunks(pieces).enumerate() {
                *out.at(i) = row.iter().fold(T::ZERO, |s, p| s.plus(*p));
            }
            return;
        }
        // The loops below read x once for each row, so it is made dense first.
        let copy;
        let mut x = x;
        if step != 1 {
            copy = dense(k, x, step);
            x = copy.as_ptr();
        }
        let x = Mat { ptr: x, rs: 1, cs: 1 };
        let rows = if !parallel {
            m
        } else if down {
            (VECTOR_TASK / k.max(1)).next_multiple_of(64).clamp(64, 2048)
        } else {
            (VECTOR_TASK / k.max(1)).max(1)
        };
        parallel_for(m.div_ceil(rows.max(1)), |t| {
            let first = t * rows;
            let n = m.min(first + rows) - first;
            // SAFETY: each task writes its own rows.
            let to = std::slice::from_raw_parts_mut(out.at(first), n);
            let a = Mat { ptr: a.at(first, 0), ..a };
            if down { columns_any(k, a, x, to) } else { dots_any(k, a, x, to) }
        });
    }
}

macro_rules! instances {
    ($any:ident = $body:ident, $avx512:ident, $avx2:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,fma")]
        unsafe fn $avx512<T: Arithmetic>(k: usize, a: Mat<T>, x: Mat<T>, out: &mut [T]) {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body(k, a, x, out) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $avx2<T: Arithmetic>(k: usize, a: Mat<T>, x: Mat<T>, out: &mut [T]) {
            // SAFETY: the caller's promise is passed on.
            unsafe { $body(k, a, x, out) }
        }
        unsafe fn $any<T: Arithmetic>(k: usize, a: Mat<T>, x: Mat<T>, out: &mut [T]) {
            // SAFETY: the features were found on this machine; the caller's promise is passed on.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                {
                    use crate::simd::{InstructionSet, instruction_set};
                    match instruction_set() {
                        InstructionSet::Avx512 => return $avx512(k, a, x, out),
                        InstructionSet::Avx2 => return $avx2(k, a, x, out),
                        InstructionSet::Base => {}
                    }
                }
                $body(k, a, x, out)
            }
        }
    };
}
instances!(dots_any = dots, dots_avx512, dots_avx2);
instances!(columns_any = columns, columns_avx512, columns_avx2);

/// One dot product for each row.
#[inline(always)]
unsafe fn dots<T: Arithmetic>(k: usize, a: Mat<T>, x: Mat<T>, out: &mut [T]) {
    for (i, o) in out.iter_mut().enumerate() {
        // SAFETY: row i, and k elements of each.
        *o = unsafe { dot(k, a.at(i, 0), a.cs, x.ptr) };
    }
}

/// Blocks of 64 rounds in 64 lanes, added up in order: rounding errors do not grow with the length of a lane.
///
/// # Safety
/// `k` elements of `a`, `step` apart, and of `x`, dense, are readable.
#[inline(always)]
unsafe fn dot<T: Arithmetic>(k: usize, a: *const T, step: isize, x: *const T) -> T {
    const L: usize = 64;
    const BLOCK: usize = L * 64;
    let mut total = T::ZERO;
    let mut first = 0;
    while first < k {
        let end = k.min(first + BLOCK);
        let mut lanes = [T::ZERO; L];
        let mut p = first;
        // SAFETY: indices stay below k.
        unsafe {
            if step == 1 {
                while p + L <= end {
                    let (a, x) = (a.add(p), x.add(p));
                    for (j, lane) in lanes.iter_mut().enumerate() {
                        *lane = lane.plus((*a.add(j)).times(*x.add(j)));
                    }
                    p += L;
                }
            }
            while p < end {
                let n = L.min(end - p);
                for (j, lane) in lanes[..n].iter_mut().enumerate() {
                    *lane = lane.plus((*a.wrapping_offset((p + j) as isize * step)).times(*x.add(p + j)));
                }
                p += n;
            }
        }
        let mut width = L / 2;
        while width > 0 {
            for j in 0..width {
                lanes[j] = lanes[j].plus(lanes[j + width]);
            }
            width /= 2;
        }
        total = if first == 0 { lanes[0] } else { total.plus(lanes[0]) };
        first = end;
    }
    total
}

/// Column after column, eight at a time, added onto the results.
#[inline(always)]
unsafe fn columns<T: Arithmetic>(k: usize, a: Mat<T>, x: Mat<T>, out: &mut [T]) {
    out.fill(T::ZERO);
    let mut p = 0;
    // SAFETY: columns below k of out.len() rows that lie next to each other.
    unsafe {
        while p + 8 <= k {
            let q = a.at(0, p);
            let w: [T; 8] = std::array::from_fn(|c| *x.ptr.add(p + c));
            for (i, o) in out.iter_mut().enumerate() {
                let at = |c: usize| (*q.wrapping_offset(i as isize + c as isize * a.cs)).times(w[c]);
                let left = at(0).plus(at(1)).plus(at(2).plus(at(3)));
                let right = at(4).plus(at(5)).plus(at(6).plus(at(7)));
                *o = o.plus(left.plus(right));
            }
            p += 8;
        }
        while p < k {
            let (q, w) = (a.at(0, p), *x.ptr.add(p));
            for (i, o) in out.iter_mut().enumerate() {
                *o = o.plus((*q.add(i)).times(w));
            }
            p += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::threads::set_num_threads;

    fn data(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1013) as f32 / 1013.0 - 0.5).collect()
    }

    fn naive(m: usize, n: usize, k: usize, a: Mat<f32>, b: Mat<f32>) -> Vec<f64> {
        let mut out = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                // SAFETY: the tests' matrices cover these indices.
                out[i * n + j] = (0..k).map(|p| unsafe { f64::from(*a.at(i, p)) * f64::from(*b.at(p, j)) }).sum();
            }
        }
        out
    }

    const SIZES: [(usize, usize, usize); 21] = [
        (1, 1, 1),
        (4, 4, 4),
        (3, 17, 5),
        (0, 3, 2),
        (2, 3, 0),
        (1, 300, 70),
        (300, 1, 70),
        (1, 1, 5000),
        (2, 1, 200_000),
        (33, 65, 129),
        (10, 32, 784),
        (200, 300, 40),
        (1000, 1, 300),
        (1, 1000, 300),
        (130, 130, 600),
        (2, 70, 33),
        (5, 129, 2000),
        (16, 1000, 784),
        (31, 7, 1025),
        (1000, 16, 100),
        (100, 101, 17),
    ];

    #[test]
    fn products_of_every_layout_agree_with_a_naive_loop_and_are_the_same_for_any_number_of_threads() {
        for (m, n, k) in SIZES {
            let (x, y) = (data(2 * m * k + 1, 1), data(2 * k * n + 1, 2));
            let lefts = [(k as isize, 1), (1, m as isize), (2 * k as isize, 2), (0, 1)];
            let rights = [(n as isize, 1), (1, k as isize), (2 * n as isize, 2), (1, 0)];
            for (ra, ca) in lefts {
                for (rb, cb) in rights {
                    let a = Mat { ptr: x.as_ptr(), rs: ra, cs: ca };
                    let b = Mat { ptr: y.as_ptr(), rs: rb, cs: cb };
                    let want = naive(m, n, k, a, b);
                    let mut first: Option<Vec<f32>> = None;
                    for threads in [1, 2, 3, 7] {
                        set_num_threads(threads);
                        let mut got = vec![f32::NAN; m * n];
                        // SAFETY: the buffers cover the sizes for all strides above.
                        unsafe { f32::product(m, n, k, a, b, got.as_mut_ptr(), true) };
                        for (g, w) in got.iter().zip(&want) {
                            let allowed = 1e-4 * ((k as f64).sqrt().max(1.0) + w.abs());
                            assert!((f64::from(*g) - w).abs() < allowed, "{m}x{n}x{k}: {g} {w}");
                        }
                        let first = first.get_or_insert_with(|| got.clone());
                        assert!(first.iter().zip(&got).all(|(a, b)| a.to_bits() == b.to_bits()), "{m}x{n}x{k} on {threads} threads");
                    }
                }
            }
        }
        set_num_threads(2);
    }

    #[test]
    fn integers_wrap_around() {
        let (a, b) = ([200u8, 100, 3, 4], [1u8, 2, 3, 4]);
        let mut out = [0u8; 4];
        let m = |p: &[u8; 4]| Mat { ptr: p.as_ptr(), rs: 2, cs: 1 };
        // SAFETY: 2 x 2 each.
        unsafe { u8::product(2, 2, 2, m(&a), m(&b), out.as_mut_ptr(), false) };
        assert_eq!(out, [244, 32, 15, 22]);
    }
}
