//! Results whose rows are neighbours: vectors go along the rows of a strip, where each tap is a shift.

use super::super::geometry::{Strip, StripRow};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector, on_vectors};

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
    for StripRow { column, base, len } in d.strip.rows.iter().copied() {
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

/// One row of columns of results `first..first + R`.
///
/// # Safety
/// As for `add_rows`.
#[allow(clippy::reversed_empty_ranges, reason = "one vector has none before the last")]
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
                        let to = to.wrapping_add(r * d.out_rs);
                        for c in 0..$C - 1 {
                            sums[r][c] = V::load(to.add(c * V::LANES));
                        }
                        sums[r][$C - 1] = V::load_first(to.add(($C - 1) * V::LANES), last);
                    }
                }
                for (t, shift) in d.strip.taps.iter().enumerate() {
                    let from = from.wrapping_offset(*shift);
                    let mut x = [V::zero(); $C];
                    for c in 0..$C - 1 {
                        x[c] = V::load(from.wrapping_add(c * V::LANES));
                    }
                    x[$C - 1] = V::load_first(from.wrapping_add(($C - 1) * V::LANES), last);
                    for r in 0..R {
                        let w = V::splat(*weights.wrapping_add(r * d.weights_rs + t));
                        for c in 0..$C {
                            sums[r][c] = w.fma(x[c], sums[r][c]);
                        }
                    }
                }
                for r in 0..R {
                    let to = to.wrapping_add(r * d.out_rs);
                    for c in 0..$C - 1 {
                        sums[r][c].store(to.add(c * V::LANES));
                    }
                    sums[r][$C - 1].store_first(to.add(($C - 1) * V::LANES), last);
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
