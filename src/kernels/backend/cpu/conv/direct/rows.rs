//! Results whose rows are neighbours: vectors go along the rows of a strip, where each tap is a shift.

use super::super::geometry::{Strip, StripRow};
use super::vectors::{load_vectors, store_vectors};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};

/// The rows of some channels' strips, and the results they are added to.
pub(super) struct DirectRows<'a, T> {
    pub strip: &'a Strip,
    pub from: *const T,
    /// Of all channels.
    pub taps: &'a [isize],
    /// For each block of rows of results (`row_blocks`), for each tap, one for each row.
    pub weights: *const T,
    pub rows: usize,
    /// Row `r` of the results begins at `out + r * out_rs`; columns are neighbours.
    pub out: *mut T,
    pub out_rs: usize,
    pub add: bool,
    pub bias: *const T,
}

on_vectors! {
    /// Adds these channels.
    fn add_rows<T>(d: &DirectRows<'_, T>) = add_rows_on
}

/// Processors without AVX2 go row by row: their instances would be a hundredth of the module.
const fn has_blocks<V: PanelVector>() -> bool {
    cfg!(not(target_arch = "x86_64")) || size_of::<V>() > 16
}

/// # Safety
/// The strip is readable, and the results are writable.
#[inline(always)]
unsafe fn add_rows_on<V: PanelVector>(d: &DirectRows<'_, V::Number>) {
    // Results are written plane by plane: those of one row of positions often lie a multiple of a page apart, in a few lines of the first cache.
    for (first, count) in row_blocks(d.rows) {
        let mut next = 0;
        while let Some(StripRow { column, base, len }) = d.strip.rows.get(next).copied() {
            if const { has_blocks::<V>() }
                && let Some((side, stride, pitch)) = block_of(d, next)
            {
                // SAFETY: the caller's.
                unsafe {
                    match (side, stride) {
                        (3, BlockStride::One) => add_block::<V, 3, 1, false>(d, next, pitch),
                        (3, BlockStride::Two) => add_block::<V, 3, 2, false>(d, next, pitch),
                        (3, BlockStride::Back) => add_block::<V, 3, 1, true>(d, next, pitch),
                        (_, BlockStride::One) => add_block::<V, 5, 1, false>(d, next, pitch),
                        (_, BlockStride::Two) => add_block::<V, 5, 2, false>(d, next, pitch),
                        (_, BlockStride::Back) => add_block::<V, 5, 1, true>(d, next, pitch),
                    }
                }
                next += BLOCK;
                continue;
            }
            next += 1;
            // SAFETY: the caller's.
            unsafe {
                match count {
                    1 => add_row::<V, 1>(d, first, column, base, len),
                    2 => add_row::<V, 2>(d, first, column, base, len),
                    3 => add_row::<V, 3>(d, first, column, base, len),
                    4 => add_row::<V, 4>(d, first, column, base, len),
                    _ => add_row::<V, MOST_ROWS>(d, first, column, base, len),
                }
            }
        }
    }
}

/// The most rows of results that are summed up at once: with two vectors each they fit the registers of AVX2.
const MOST_ROWS: usize = 6;

/// The rows of results that are summed up at once: the first one, and how many. Of 8, 4 and 4 take less time than 6 and 2.
pub(super) fn row_blocks(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let count = match rows - first {
            0 => return None,
            left @ 1..=4 => left,
            5 => 3,
            7 | 8 => 4,
            _ => MOST_ROWS,
        };
        first += count;
        Some((first - count, count))
    })
}

/// Rows that share what they read.
const BLOCK: usize = 4;

/// How rows of a block follow each other, in rows of the strip that taps meet.
#[derive(Debug, Clone, Copy)]
enum BlockStride {
    One,
    Two,
    /// One, and taps in order read rows from the last to the first, as gradients do.
    Back,
}

/// If the rows from `at` on are a block, and the kernel is a square of 3 or 5 taps a side: that side, the stride, and how far rows are apart in the
/// strip.
fn block_of<T>(d: &DirectRows<'_, T>, at: usize) -> Option<(usize, BlockStride, isize)> {
    let side = match d.taps.len() {
        9 => 3,
        25 => 5,
        _ => return None,
    };
    let rows = d.strip.rows.get(at..at + BLOCK)?;
    let (taps, apart) = (d.taps, rows[1].base - rows[0].base);
    let step = taps[side] - taps[0];
    let are_rows = rows
        .windows(2)
        .all(|two| two[1].base - two[0].base == apart && two[1].len == two[0].len && two[1].column == two[0].column + two[0].len);
    let are_taps = (side..taps.len()).all(|t| taps[t] - taps[t - side] == step);
    let stride = if apart == step {
        BlockStride::One
    } else if apart == 2 * step {
        BlockStride::Two
    } else if apart == -step {
        BlockStride::Back
    } else {
        return None;
    };
    (d.rows == 1 && are_rows && are_taps).then_some((side, stride, step.abs()))
}

/// The rows of a block: each vector of the strip is loaded once for all rows that it meets. Each sum is added up in the order of the taps, as that
/// of a single row is.
///
/// # Safety
/// As for `add_rows`; it is a block.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep vectors in registers")]
#[inline(always)]
unsafe fn add_block<V: PanelVector, const K: usize, const S: usize, const BACKWARD: bool>(
    d: &DirectRows<'_, V::Number>,
    at: usize,
    pitch: isize,
) {
    let StripRow { column, base, len } = d.strip.rows[at];
    // Of the least row that is read.
    let shifts: [isize; K] = std::array::from_fn(|x| d.taps[if BACKWARD { K * (K - 1) + x } else { x }]);
    let mut from = d.from.wrapping_offset(base);
    let mut to = d.out.wrapping_add(column);
    let mut left = len;
    // SAFETY: the caller's.
    unsafe {
        let bias = if d.bias.is_null() { V::zero() } else { V::splat(*d.bias) };
        macro_rules! vectors {
            ($C:literal) => {{
                // The last vector may be shorter.
                let last = left.min($C * V::LANES) - ($C - 1) * V::LANES;
                let mut sums = [[bias; $C]; BLOCK];
                if d.add {
                    for r in 0..BLOCK {
                        sums[r] = load_vectors::<V, $C>(to.wrapping_add(r * len), last);
                    }
                }
                let all = (BLOCK - 1) * S + K;
                for s in 0..all {
                    let i = if BACKWARD { all - 1 - s } else { s };
                    let from = from.wrapping_offset(i as isize * pitch);
                    for x in 0..K {
                        let v = load_vectors::<V, $C>(from.wrapping_offset(shifts[x]), last);
                        for r in 0..BLOCK {
                            if i >= r * S && i - r * S < K {
                                let y = if BACKWARD { K - 1 - (i - r) } else { i - r * S };
                                let w = V::splat(*d.weights.wrapping_add(K * y + x));
                                for c in 0..$C {
                                    sums[r][c] = w.fma(v[c], sums[r][c]);
                                }
                            }
                        }
                    }
                }
                for r in 0..BLOCK {
                    store_vectors(sums[r], to.wrapping_add(r * len), last);
                }
            }};
        }
        while left > 0 {
            let done = left.min(2 * V::LANES);
            if done > V::LANES {
                vectors!(2);
            } else {
                vectors!(1);
            }
            from = from.wrapping_add(done);
            to = to.wrapping_add(done);
            left -= done;
        }
    }
}

/// One row of columns of results `first..first + R`.
///
/// # Safety
/// As for `add_rows`.
#[inline(always)]
unsafe fn add_row<V: PanelVector, const R: usize>(d: &DirectRows<'_, V::Number>, first: usize, column: usize, base: isize, len: usize) {
    let mut from = d.from.wrapping_offset(base);
    let mut to = d.out.wrapping_add(first * d.out_rs + column);
    let weights = d.weights.wrapping_add(first * d.taps.len());
    let mut left = len;
    // SAFETY: the caller's.
    unsafe {
        let bias: [V; R] = std::array::from_fn(|r| if d.bias.is_null() { V::zero() } else { V::splat(*d.bias.add(first + r)) });
        macro_rules! vectors {
            ($C:literal) => {{
                // The last vector may be shorter.
                let last = left.min($C * V::LANES) - ($C - 1) * V::LANES;
                let mut sums: [[V; $C]; R] = bias.map(|b| [b; $C]);
                if d.add {
                    for r in 0..R {
                        sums[r] = load_vectors::<V, $C>(to.wrapping_add(r * d.out_rs), last);
                    }
                }
                for (t, shift) in d.taps.iter().enumerate() {
                    let x = load_vectors::<V, $C>(from.wrapping_offset(*shift), last);
                    for r in 0..R {
                        let w = V::splat(*weights.wrapping_add(t * R + r));
                        for c in 0..$C {
                            sums[r][c] = w.fma(x[c], sums[r][c]);
                        }
                    }
                }
                for r in 0..R {
                    store_vectors(sums[r], to.wrapping_add(r * d.out_rs), last);
                }
            }};
        }
        // More than two rows of four vectors do not fit the registers of every instruction set.
        let most = if R > 2 && V::ROWS < 8 { 2 } else { 4 };
        while left > 0 {
            let done = left.min(most * V::LANES);
            match done.div_ceil(V::LANES) {
                1 => vectors!(1),
                2 => vectors!(2),
                3 => vectors!(3),
                _ => vectors!(4),
            }
            from = from.wrapping_add(done);
            to = to.wrapping_add(done);
            left -= done;
        }
    }
}
