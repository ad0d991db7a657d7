//! Products of which both operands are packed: our own form of what the crate `gemm` does, for machines with AVX2, where it was measured to be
//! faster. All threads share what is packed. (`gemm`, tile by tile, packs an operand once for each tile: two Zen 3 cores took 106 of the 180
//! GFLOP/s that they have for products of 1024, and its own division among threads was slower yet.)
//!
//! `pack` lays operands out, `tile` multiplies. Not here: which products are computed in this way (`super::MatrixProduct`).
//!
//! The sum over k is cut by sizes alone, and its parts are added in order, so the bits are the same for any number of threads.

mod factor;
mod pack;
mod tile;

pub(in crate::backend::cpu) use self::factor::Factor;
use self::pack::{pack_columns, pack_rows, room_of_rows};
pub(in crate::backend::cpu) use self::tile::Bias;
use self::tile::{LeftLayout, PackedBlock, multiply};
use super::Mat;
use super::panel_vector::{CoreNumber, widths};
use crate::backend::cpu::blocks::scratch;
use crate::backend::cpu::epilogue::Epilogue;
use crate::backend::cpu::num::InstructionSet;
use crate::backend::cpu::threads::{SharedPointer, parallel_for};
use crate::error::throw;

/// Bytes of a panel of the right operand. It stays in the first cache (32 KB) while rows pass by.
const PANEL: usize = 16 << 10;
/// Bytes that are packed at a time of the right operand, and of the left one.
const PACKED: [usize; 2] = [2 << 20, 512 << 10];
/// The most rows of a task: with the depth of a panel they stay in the second cache.
const ROWS: usize = 96;
/// Rows of the left operand, if it has so many, that should be packed together: each time all threads wait for each other.
const TALL: usize = 256;
/// Tasks that are enough for all threads.
const TASKS: usize = 16;
/// Multiply-adds of the smallest task.
const TASK: usize = 1 << 19;
/// The fewest columns of a task with an epilogue, which costs too much over short rows.
const LONG_ROW: usize = 256;
/// Columns of the right operand up to which rows that are dense along k are read where they lie; the first number is of rows that lie a
/// multiple of `PAGE` apart, which compete for a few lines of the first cache.
const FEW: [usize; 2] = [256, 1024];
/// Bytes.
const PAGE: usize = 4 << 10;
/// Elements of the smallest task that packs.
const PACK_TASK: usize = 1 << 14;

/// Multiply-adds, and rows, from which on this is faster than the crate `gemm`, which need not pack where there is so little to do.
const WORTH: (usize, usize) = (1 << 18, 32);
/// As `WORTH`, where the right operand is dense along k, as the weight of `linear` is: `gemm` packs that slowly.
const WORTH_ALONG: (usize, usize) = (1 << 12, 4);

/// Whether such a product is computed here. Of AVX-512 and of other machines it has not been measured.
pub(in crate::backend::cpu) fn is_faster<T>(isa: InstructionSet, (m, n, k): (usize, usize, usize), b: Mat<T>) -> bool {
    let (work, rows) = if b.rs == 1 && b.cs != 1 { WORTH_ALONG } else { WORTH };
    isa == InstructionSet::Avx2 && m >= rows && m.saturating_mul(n).saturating_mul(k) >= work
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
    // A machine with AVX-512 has AVX2, too.
    let isa = if isa == InstructionSet::Avx512 { InstructionSet::Avx2 } else { isa };
    let (width, _) = widths::<T>(isa);
    // Parts of the depth, columns and rows that are packed together.
    let depth = k.div_ceil(k.div_ceil(PANEL / (width * size_of::<T>())));
    let [right, left] = PACKED.map(|bytes| bytes / size_of::<T>() / depth);
    let wide = n.div_ceil(n.div_ceil(right)).next_multiple_of(width).min(n.next_multiple_of(width));
    let parts = (right / wide).min(left / m.min(TALL)).clamp(1, k.div_ceil(depth));
    let deep = (parts * depth).min(k);
    let tall = m.div_ceil(m.div_ceil((left / parts).max(ROWS)));
    // Tasks divide rows first, and columns where there are too few rows: long rows of the result are in one task, also for the epilogue.
    let panels = wide / width;
    let wanted = if parallel { (tall * wide * deep / TASK).clamp(1, TASKS) } else { 1 };
    let most = if epilogue.is_some() { (wide / LONG_ROW).max(1) } else { wanted };
    let across = panels.div_ceil(panels.div_ceil(wanted.div_ceil(tall.div_ceil(ROWS)).min(most)));
    let rows = tall.div_ceil(tall.div_ceil(ROWS).max(wanted.div_ceil(across)));
    // Rows that are read where they lie.
    let in_place = match a {
        Factor::Numbers(a) => Some(a).filter(|a| {
            let is_page = (a.rs.unsigned_abs() * size_of::<T>()).is_multiple_of(PAGE);
            a.cs == 1 && n <= FEW[usize::from(!is_page)]
        }),
        Factor::Halves(..) => None,
    };
    let part_of_rows = if in_place.is_some() { 0 } else { room_of_rows::<T>(isa, rows, depth) };

    let room = |n: usize| scratch::<T>(n).unwrap_or_else(|e| throw(e));
    let (columns_room, rows_room) = (room(deep * wide), room(tall.div_ceil(rows) * parts * part_of_rows));
    let [packed_columns, packed_rows] = [&columns_room, &rows_room].map(|room| SharedPointer::new(room.as_ptr().cast::<T>()));
    let out = SharedPointer::new(out);
    let run = |tasks: usize, f: &(dyn Fn(usize) + Sync)| if parallel { parallel_for(tasks, f) } else { (0..tasks).for_each(f) };

    for j in (0..n).step_by(wide) {
        let columns = wide.min(n - j);
        let panels = columns.div_ceil(width);
        for first in (0..k).step_by(deep) {
            let deep = deep.min(k - first);
            let parts = deep.div_ceil(depth);
            for i in (0..m).step_by(tall) {
                let tall = tall.min(m - i);
                let down = tall.div_ceil(rows);
                // The right operand is packed with the first rows, for all.
                let each = (PACK_TASK / (deep * width)).clamp(1, panels);
                let before = if i == 0 { panels.div_ceil(each) } else { 0 };
                let after = if in_place.is_some() { 0 } else { down * parts };
                run(before + after, &|t| {
                    // SAFETY: the caller's; each task packs panels, or rows, of its own.
                    unsafe {
                        if let Some(t) = t.checked_sub(before) {
                            let (row, at) = (t / parts * rows, t % parts * depth);
                            let (rows, depth) = (rows.min(tall - row), depth.min(deep - at));
                            let (_wide, a) = a.part((i + row, first + at), (rows, depth));
                            pack_rows::<T>(isa, rows, depth, a, packed_rows.at(t * part_of_rows));
                        } else {
                            let column = t * each * width;
                            let columns = (each * width).min(columns - column);
                            let (_wide, b) = b.part((first, j + column), (deep, columns));
                            pack_columns::<T>(isa, deep, columns, b, packed_columns.at(column * deep));
                        }
                    }
                });
                let each = panels.div_ceil(across);
                let across = panels.div_ceil(each);
                run(down * across, &|t| {
                    let (row, column) = (t / across * rows, t % across * each * width);
                    let (tall, wide) = (rows.min(tall - row), (each * width).min(columns - column));
                    for part in 0..parts {
                        let at = part * depth;
                        let (a, layout) = match in_place {
                            Some(a) => (a.at(i + row, first + at), LeftLayout::Strided(a.rs)),
                            None => (packed_rows.at((t / across * parts + part) * part_of_rows).cast_const(), LeftLayout::Packed),
                        };
                        let block = PackedBlock {
                            rows: tall,
                            columns: wide,
                            depth: depth.min(deep - at),
                            a,
                            layout,
                            b: packed_columns.at(column * deep + at * width).cast_const(),
                            panel: width * deep,
                            out: out.at((i + row) * n + j + column),
                            out_rs: n,
                            add: first + at > 0,
                            // As if it were added to the whole product.
                            bias: if first + at + depth < k { Bias::None } else { bias.at(i + row, j + column) },
                        };
                        // SAFETY: the caller's; everything is packed, and each task has results of its own.
                        unsafe { multiply::<T>(isa, &block) };
                    }
                    if let Some(epilogue) = epilogue.filter(|_| first + deep == k) {
                        let start = (i + row) * n + j + column;
                        if wide == n {
                            epilogue(start, tall * n);
                        } else {
                            (0..tall).for_each(|r| epilogue(start + r * n, wide));
                        }
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::threads::set_num_threads;
    use super::*;
    use crate::backend::cpu::cast::convert_fn;
    use crate::backend::cpu::num::best;
    use crate::layout::{DType, F16};

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
        let sets = [InstructionSet::Base, best()];
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
                    let bias = Bias::Columns(x.as_ptr());
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
