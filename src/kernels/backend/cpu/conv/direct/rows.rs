//! Results whose rows are neighbours: vectors go along the rows of a strip, where each tap is a shift.

use super::super::geometry::{Strip, StripRow};
use super::vectors::{load_vectors, store_vectors};
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};

/// The rows of one channel's strip, and the results they are added to.
pub(super) struct DirectRows<'a, T> {
    pub strip: &'a Strip,
    pub from: *const T,
    /// For each row of results, one for each tap.
    pub weights: *const T,
    /// Elements between the weights of two rows.
    pub weights_rs: usize,
    pub rows: usize,
    /// Row `r` of the results begins at `out + r * out_rs`; columns are neighbours.
    pub out: *mut T,
    pub out_rs: usize,
    pub add: bool,
    pub bias: *const T,
}

on_vectors! {
    /// Adds one channel.
    fn add_rows<T>(d: &DirectRows<'_, T>) = add_rows_on
}

/// # Safety
/// The strip is readable, and the results are writable.
#[inline(always)]
unsafe fn add_rows_on<V: PanelVector>(d: &DirectRows<'_, V::Number>) {
    let mut next = 0;
    while let Some(StripRow { column, base, len }) = d.strip.rows.get(next).copied() {
        if let Some((side, is_backward, pitch)) = block_of(d, next) {
            // SAFETY: the caller's.
            unsafe {
                match (side, is_backward) {
                    (3, false) => add_block::<V, 3, false>(d, next, pitch),
                    (3, true) => add_block::<V, 3, true>(d, next, pitch),
                    (_, false) => add_block::<V, 5, false>(d, next, pitch),
                    (_, true) => add_block::<V, 5, true>(d, next, pitch),
                }
            }
            next += BLOCK;
            continue;
        }
        next += 1;
        let mut r = 0;
        while r < d.rows {
            macro_rules! rows {
                ($R:literal) => {{
                    // SAFETY: the caller's.
                    unsafe { add_row::<V, $R>(d, r, column, base, len) };
                    $R
                }};
            }
            r += match d.rows - r {
                1 => rows!(1),
                2 => rows!(2),
                3 => rows!(3),
                _ => rows!(4),
            };
        }
    }
}

/// Rows that share what they read.
const BLOCK: usize = 4;

/// If the rows from `at` on are a block, and the kernel is a square of 3 or 5 taps a side: that side, whether taps in order read rows from the last
/// to the first, as gradients do, and how far rows are apart in the strip.
fn block_of<T>(d: &DirectRows<'_, T>, at: usize) -> Option<(usize, bool, isize)> {
    let side = match d.strip.taps.len() {
        9 => 3,
        25 => 5,
        _ => return None,
    };
    let rows = d.strip.rows.get(at..at + BLOCK)?;
    let (taps, pitch) = (&d.strip.taps, rows[1].base - rows[0].base);
    let step = taps[side] - taps[0];
    let are_rows = rows
        .windows(2)
        .all(|two| two[1].base - two[0].base == pitch && two[1].len == two[0].len && two[1].column == two[0].column + two[0].len);
    let are_taps = step.abs() == pitch && (side..taps.len()).all(|t| taps[t] - taps[t - side] == step);
    (d.rows == 1 && are_rows && are_taps).then_some((side, step < 0, pitch))
}

/// The rows of a block: each vector of the strip is loaded once for all rows that it meets. Each sum is added up in the order of the taps, as that
/// of a single row is.
///
/// # Safety
/// As for `add_rows`; it is a block.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep vectors in registers")]
#[inline(always)]
unsafe fn add_block<V: PanelVector, const K: usize, const BACKWARD: bool>(d: &DirectRows<'_, V::Number>, at: usize, pitch: isize) {
    let StripRow { column, base, len } = d.strip.rows[at];
    // Of the least row that is read.
    let shifts: [isize; K] = std::array::from_fn(|x| d.strip.taps[if BACKWARD { K * (K - 1) + x } else { x }]);
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
                for s in 0..BLOCK + K - 1 {
                    let i = if BACKWARD { BLOCK + K - 2 - s } else { s };
                    let from = from.wrapping_offset(i as isize * pitch);
                    for x in 0..K {
                        let v = load_vectors::<V, $C>(from.wrapping_offset(shifts[x]), last);
                        for r in 0..BLOCK {
                            if i >= r && i - r < K {
                                let y = if BACKWARD { K - 1 - (i - r) } else { i - r };
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
    let weights = d.weights.wrapping_add(first * d.weights_rs);
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
                for (t, shift) in d.strip.taps.iter().enumerate() {
                    let x = load_vectors::<V, $C>(from.wrapping_offset(*shift), last);
                    for r in 0..R {
                        let w = V::splat(*weights.wrapping_add(r * d.weights_rs + t));
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
        // Three or four rows of four vectors do not fit the registers of every instruction set.
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
