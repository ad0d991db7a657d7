//! Products of which both operands are packed: our own form of what the crate `gemm` does, for machines with AVX2 and up, where it was measured
//! to be faster.
//!
//! Each thread packs what it multiplies, in a workspace of its own (`workspaces`): a group of columns, which it keeps as long as its tasks need it, and
//! each task's rows. Some of it is packed by several threads, which takes less time than reading what another core has packed: two Zen 4 cores
//! computed products of 512 in 1.3 ms with shared packing and in 1.22 ms with their own.
//!
//! `division` makes tasks, `pack` lays operands out, `tile` multiplies. Not here: which products are computed in this way (`super::algorithms`).
//!
//! The sum over k is cut by its length alone, and its parts are added in order, so the bits are the same for any number of threads.

mod division;
mod factor;
mod pack;
mod tile;
mod workspaces;

use self::division::Division;
pub(in crate::backend::cpu) use self::factor::Factor;
use self::pack::{pack_columns, pack_rows, room_of_rows};
pub(in crate::backend::cpu) use self::tile::Bias;
use self::tile::{LeftLayout, PackedBlock, multiply};
use self::workspaces::Workspaces;
use super::in_batches;
use super::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::common::epilogue::Epilogue;
use crate::error::throw;
use crate::host::threads::{SharedPointer, num_threads, parallel_for};
use crate::simd::InstructionSet;

/// Columns of the right operand up to which rows that are dense along k are read where they lie; the first number is of rows that lie a
/// multiple of `PAGE` apart, which compete for a few lines of the first cache.
const FEW: [usize; 2] = [256, 1024];
/// Bytes.
const PAGE: usize = 4 << 10;

/// `count` products of one size. `operands` gives the factors and the bias of each; the results lie one after the other, and the epilogue counts
/// their elements through all of them. Each is computed as one alone is, so its bits are the same.
///
/// # Panics
/// As `product`.
///
/// # Safety
/// As for `product`, for each of them.
pub(in crate::backend::cpu) unsafe fn products<T: CoreNumber>(
    isa: InstructionSet,
    count: usize,
    (m, n, k): (usize, usize, usize),
    operands: impl Fn(usize) -> ([Factor<T>; 2], Bias<T>) + Sync,
    epilogue: Option<Epilogue<'_>>,
    out: *mut T,
) {
    let out = SharedPointer::new(out);
    let one = |i: usize, parallel: bool| {
        let (factors, bias) = operands(i);
        let of_this = epilogue.map(|epilogue| move |start: usize, len: usize| epilogue(i * m * n + start, len));
        let of_this = of_this.as_ref().map(|e| e as Epilogue<'_>);
        // SAFETY: the caller's; each product has results of its own.
        unsafe { product::<T>(isa, (m, n, k), factors, (bias, of_this), out.at(i * m * n), parallel) };
    };
    in_batches(count, m * n * k, one);
}

/// `out` (m x n, row-major) is overwritten by `a` (m x k) times `b` (k x n), plus a bias; then the epilogue runs on it.
///
/// # Panics
/// With a memory error, if there is no room for what is packed.
///
/// # Safety
/// The machine has the instruction set; the operands are readable, `out` is writable and overlaps neither; none of the sizes is 0.
pub(in crate::backend::cpu) unsafe fn product<T: CoreNumber>(
    isa: InstructionSet,
    (m, n, k): (usize, usize, usize),
    [a, b]: [Factor<T>; 2],
    (bias, epilogue): (Bias<T>, Option<Epilogue<'_>>),
    out: *mut T,
    parallel: bool,
) {
    let (width, _) = widths::<T>(isa);
    let threads = if parallel { num_threads() } else { 1 };
    // Rows that are read where they lie.
    let in_place = match a {
        Factor::Numbers(a) => Some(a).filter(|a| {
            let is_page = (a.rs.unsigned_abs() * size_of::<T>()).is_multiple_of(PAGE);
            a.cs == 1 && n <= FEW[usize::from(!is_page)]
        }),
        Factor::Halves(..) => None,
    };
    let Division { depth, deep, wide, room, groups, rows, blocks } =
        Division::of::<T>(isa, (m, n, k), threads, epilogue.is_some(), in_place.is_some());
    let part_of_rows = if in_place.is_some() { 0 } else { room_of_rows::<T>(isa, rows, depth) };
    let workspaces = Workspaces::<T>::new(threads.min(groups * blocks), deep * room, part_of_rows).unwrap_or_else(|e| throw(e));
    let out = SharedPointer::new(out);

    for first in (0..k).step_by(deep) {
        let deep = deep.min(k - first);
        let task = |t: usize| {
            let (group, block) = (t / blocks, t % blocks);
            let (row, column) = (block * rows, group * wide);
            let (tall, wide) = (rows.min(m - row), wide.min(n - column));
            let packed = (group, first);
            let mut workspace = workspaces.take(packed);
            let [packed_columns, packed_rows] = workspaces.room(&workspace);
            // SAFETY: the caller's; the workspace has room, and each task has results of its own.
            unsafe {
                if workspace.holds.replace(packed) != Some(packed) {
                    let (_wide, b) = b.part((first, column), (deep, wide));
                    pack_columns::<T>(isa, deep, wide, b, packed_columns);
                }
                for at in (0..deep).step_by(depth) {
                    let depth = depth.min(deep - at);
                    let (a, layout) = match in_place {
                        Some(a) => (a.at(row, first + at), LeftLayout::Strided(a.rs)),
                        None => {
                            let (_wide, a) = a.part((row, first + at), (tall, depth));
                            pack_rows::<T>(isa, tall, depth, a, packed_rows);
                            (packed_rows.cast_const(), LeftLayout::Packed)
                        }
                    };
                    let block = PackedBlock {
                        rows: tall,
                        columns: wide,
                        depth,
                        a,
                        layout,
                        b: packed_columns.wrapping_add(at * width).cast_const(),
                        panel: width * deep,
                        out: out.at(row * n + column),
                        out_rs: n,
                        add: first + at > 0,
                        // As if it were added to the whole product.
                        bias: if first + at + depth < k { Bias::None } else { bias.at(row, column) },
                    };
                    multiply::<T>(isa, &block);
                }
            }
            workspaces.put_back(workspace);
            if let Some(epilogue) = epilogue.filter(|_| first + deep == k) {
                let start = row * n + column;
                if wide == n {
                    epilogue(start, tall * n);
                } else {
                    (0..tall).for_each(|r| epilogue(start + r * n, wide));
                }
            }
        };
        if parallel { parallel_for(groups * blocks, task) } else { (0..groups * blocks).for_each(task) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::common::cast::convert_fn;
    use crate::backend::cpu::matmul::Mat;
    use crate::host::threads::set_num_threads;
    use crate::layout::{DType, F16};
    use crate::simd::best;

    /// Below every tile; tails of rows and columns; several parts of the depth; more columns, and rows, than are packed together.
    const SIZES: [(usize, usize, usize); 13] = [
        (1, 1, 1),
        (2, 3, 4),
        (5, 9, 7),
        (7, 13, 5),
        (8, 16, 33),
        (33, 65, 300),
        (64, 10, 512),
        (97, 70, 17),
        (98, 31, 40),
        (131, 200, 40),
        (3, 4200, 10),
        (9, 2100, 530),
        (1100, 80, 259),
    ];

    fn check<T: CoreNumber + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        let mut sets = vec![InstructionSet::Base];
        #[cfg(target_arch = "x86_64")]
        sets.extend([InstructionSet::Avx2, InstructionSet::Avx512].into_iter().filter(|isa| *isa <= best()));
        for (m, n, k) in if cfg!(miri) { &SIZES[..6] } else { &SIZES[..] } {
            let (m, n, k) = (*m, *n, *k);
            let (x, y): (Vec<T>, Vec<T>) =
                ((0..3 * m * k).map(|i| number(i * 7 + i / 5)).collect(), (0..3 * n * k + m + n).map(|i| number(i * 3 + i / 7)).collect());
            // Dense along k, along the other dimension, and neither.
            for (ra, ca) in [(k, 1), (1, m), (2 * k + 1, 1), (3 * k, 3)] {
                for (rb, cb) in [(n, 1), (1, k), (3 * n, 3)] {
                    let a = Mat { ptr: x.as_ptr(), rs: ra as isize, cs: ca as isize };
                    let b = Mat { ptr: y.as_ptr(), rs: rb as isize, cs: cb as isize };
                    let mut want = vec![T::ZERO; m * n];
                    for (i, row) in want.chunks_mut(n).enumerate() {
                        for p in 0..k {
                            for (j, sum) in row.iter_mut().enumerate() {
                                *sum = sum.plus(x[i * ra + p * ca].times(y[p * rb + j * cb]));
                            }
                        }
                    }
                    let bias = [Bias::None, Bias::Rows(y.as_ptr()), Bias::Columns(y.as_ptr())][(ra + rb) % 3];
                    for (i, sum) in want.iter_mut().enumerate() {
                        *sum = match bias {
                            Bias::None => *sum,
                            Bias::Rows(_) => sum.plus(y[i / n]),
                            Bias::Columns(_) => sum.plus(y[i % n]),
                        };
                    }
                    for (isa, threads) in sets.iter().flat_map(|isa| [(*isa, 1), (*isa, 3)]) {
                        set_num_threads(threads);
                        let mut got = vec![T::HALF; m * n + 1];
                        // SAFETY: the data and the result have the sizes, and this machine has the instruction set.
                        unsafe { product::<T>(isa, (m, n, k), [a, b].map(Factor::Numbers), (bias, None), got.as_mut_ptr(), threads > 1) };
                        assert_eq!(got.pop(), Some(T::HALF), "written beyond the end: {m}x{n}x{k}");
                        assert!(got == want, "{m}x{n}x{k}, {isa:?}, rows {ra} {ca}, columns {rb} {cb}");
                    }
                }
            }
        }
        set_num_threads(2);
    }

    // Small whole numbers, whose sums are exact in any order.

    #[test]
    fn products_of_float32() {
        check(|i| (i % 11) as f32 - 5.0);
    }

    #[test]
    fn products_of_float64() {
        check(|i| (i % 11) as f64 - 5.0);
    }

    #[test]
    fn halves_are_widened_as_they_lie() {
        for (m, n, k) in SIZES {
            let number = |i: usize| (i % 11) as f32 - 5.0;
            let (x, y): (Vec<f32>, Vec<f32>) =
                ((0..2 * m * k + m).map(number).collect(), (0..2 * n * k + n).map(|i| number(i * 3)).collect());
            let halves = |v: &[f32]| -> Vec<u16> { v.iter().map(|v| F16::from_f32(*v).0).collect() };
            let (p, q) = (halves(&x), halves(&y));
            for (ra, ca) in [(k, 1), (1, m), (2 * k + 1, 1), (2 * k, 2)] {
                for (rb, cb) in [(n, 1), (1, k), (2 * n, 2)] {
                    let a = Mat { ptr: x.as_ptr(), rs: ra as isize, cs: ca as isize };
                    let b = Mat { ptr: y.as_ptr(), rs: rb as isize, cs: cb as isize };
                    let convert = convert_fn(DType::F16, DType::F32);
                    let narrow = [(p.as_ptr(), a.rs, a.cs), (q.as_ptr(), b.rs, b.cs)];
                    let narrow = narrow.map(|(ptr, rs, cs)| Factor::Halves(Mat { ptr, rs, cs }, convert));
                    let (mut want, mut got) = (vec![0f32; m * n], vec![0f32; m * n]);
                    // SAFETY: the data and the results have the sizes.
                    unsafe {
                        product::<f32>(best(), (m, n, k), [a, b].map(Factor::Numbers), (Bias::None, None), want.as_mut_ptr(), true);
                        product::<f32>(best(), (m, n, k), narrow, (Bias::None, None), got.as_mut_ptr(), true);
                    }
                    assert!(want == got, "{m}x{n}x{k}, rows {ra} {ca}, columns {rb} {cb}");
                }
            }
        }
    }

    #[test]
    fn the_epilogue_runs_once_on_each_result_after_its_last_sum() {
        // Several parts of the depth, of columns and of rows.
        for (m, n, k) in [(33, 65, 300), (131, 200, 40), (9, 2100, 530), (1100, 80, 259), (3, 4200, 1300)] {
            let number = |i: usize| (i % 11) as f32 - 5.0;
            let (x, y): (Vec<f32>, Vec<f32>) = ((0..m * k).map(number).collect(), (0..n * k).map(|i| number(i * 3)).collect());
            let bias: Vec<f32> = (0..n).map(|i| number(i + 2)).collect();
            let a = Mat { ptr: x.as_ptr(), rs: k as isize, cs: 1 };
            let b = Mat { ptr: y.as_ptr(), rs: 1, cs: k as isize };
            for threads in [1, 3] {
                set_num_threads(threads);
                let (mut plain, mut got) = (vec![0f32; m * n], vec![0f32; m * n]);
                let to = SharedPointer::new(got.as_mut_ptr());
                let double = |start: usize, len: usize| {
                    // SAFETY: elements of the result; no other thread has them.
                    unsafe { std::slice::from_raw_parts_mut(to.at(start), len) }.iter_mut().for_each(|v| *v = 2.0 * *v + 1.0);
                };
                // SAFETY: the data and the results have the sizes.
                unsafe {
                    let bias = Bias::Columns(bias.as_ptr());
                    product::<f32>(best(), (m, n, k), [a, b].map(Factor::Numbers), (bias, None), plain.as_mut_ptr(), true);
                    product::<f32>(best(), (m, n, k), [a, b].map(Factor::Numbers), (bias, Some(&double)), to.get(), threads > 1);
                }
                assert!(plain.iter().zip(&got).all(|(p, g)| 2.0 * p + 1.0 == *g), "{m}x{n}x{k}");
            }
        }
        set_num_threads(2);
    }

    #[test]
    fn a_row_of_nan_stays_in_its_row() {
        let (m, n, k) = (13, 21, 9);
        for lie in [(k as isize, 1), (1, m as isize)] {
            let (mut x, y) = (vec![1f32; m * k], vec![1f32; n * k]);
            for p in 0..k {
                x[(12 * lie.0 + p as isize * lie.1) as usize] = f32::NAN;
            }
            let a = Mat { ptr: x.as_ptr(), rs: lie.0, cs: lie.1 };
            let b = Mat { ptr: y.as_ptr(), rs: n as isize, cs: 1 };
            let mut got = vec![0f32; m * n];
            // SAFETY: the data and the result have the sizes.
            unsafe { product::<f32>(best(), (m, n, k), [a, b].map(Factor::Numbers), (Bias::None, None), got.as_mut_ptr(), false) };
            assert!(got[..12 * n].iter().all(|v| *v == k as f32) && got[12 * n..].iter().all(|v| v.is_nan()));
        }
    }
}
