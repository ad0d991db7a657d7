//! Results of a pair of phases, whose columns lie in turn: both are summed up in registers and written as whole vectors.

use super::vectors::load_vectors;
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};

/// A row of results: where their patches begin in the strip, where they go, and how many each phase has: the second as many as the first, or one
/// less.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowInTurn {
    pub base: isize,
    pub to: isize,
    pub lens: [usize; 2],
}

/// Some channels' strips, and the results that they are added to.
pub(super) struct RowsInTurn<'a, T> {
    pub rows: &'a [RowInTurn],
    pub from: *const T,
    /// The shifts of each phase, of all channels, and a weight for each.
    pub taps: [&'a [isize]; 2],
    pub weights: [&'a [T]; 2],
    pub out: *mut T,
    /// What results begin with; none: with what is there.
    pub bias: Option<T>,
}

on_vectors! {
    /// Adds these channels.
    fn add_interleaved<T>(d: &RowsInTurn<'_, T>) = add_interleaved_on
}

/// # Safety
/// The strip is readable, and the results are writable.
#[allow(clippy::reversed_empty_ranges, reason = "one vector has none before the last")]
#[inline(always)]
unsafe fn add_interleaved_on<V: PanelVector>(d: &RowsInTurn<'_, V::Number>) {
    for RowInTurn { base, to, lens: [mut one, mut two] } in d.rows.iter().copied() {
        let (mut from, mut to) = (d.from.wrapping_offset(base), d.out.wrapping_offset(to));
        macro_rules! vectors {
            ($C:literal) => {{
                // The last vectors may be shorter.
                let before = ($C - 1) * V::LANES;
                let last = [one.min($C * V::LANES) - before, two.min($C * V::LANES).saturating_sub(before)];
                let (low, high) = ((last[0] + last[1]).min(V::LANES), (last[0] + last[1]).saturating_sub(V::LANES));
                // SAFETY: the caller's.
                let mut sums = unsafe {
                    match d.bias {
                        Some(bias) => [[V::splat(bias); $C]; 2],
                        None => {
                            let mut sums = [[V::zero(); $C]; 2];
                            for c in 0..$C - 1 {
                                let to = to.wrapping_add(2 * c * V::LANES);
                                (sums[0][c], sums[1][c]) = V::load(to).parted(V::load(to.wrapping_add(V::LANES)));
                            }
                            let to = to.wrapping_add(2 * before);
                            (sums[0][$C - 1], sums[1][$C - 1]) =
                                V::load_first(to, low).parted(V::load_first(to.wrapping_add(V::LANES), high));
                            sums
                        }
                    }
                };
                // SAFETY: see above.
                unsafe {
                    for phase in 0..2 {
                        for (shift, w) in d.taps[phase].iter().zip(d.weights[phase]) {
                            let (from, w) = (from.wrapping_offset(*shift), V::splat(*w));
                            for (sum, x) in sums[phase].iter_mut().zip(load_vectors::<V, $C>(from, last[phase])) {
                                *sum = w.fma(x, *sum);
                            }
                        }
                    }
                    for c in 0..$C - 1 {
                        let to = to.wrapping_add(2 * c * V::LANES);
                        let (low, high) = sums[0][c].interleaved(sums[1][c]);
                        low.store(to);
                        high.store(to.wrapping_add(V::LANES));
                    }
                    let to = to.wrapping_add(2 * before);
                    let (a, b) = sums[0][$C - 1].interleaved(sums[1][$C - 1]);
                    a.store_first(to, low);
                    b.store_first(to.wrapping_add(V::LANES), high);
                }
            }};
        }
        while one > 0 {
            match one.div_ceil(V::LANES) {
                1 => vectors!(1),
                _ => vectors!(2),
            }
            (one, two) = (one.saturating_sub(2 * V::LANES), two.saturating_sub(2 * V::LANES));
            (from, to) = (from.wrapping_add(2 * V::LANES), to.wrapping_add(4 * V::LANES));
        }
    }
}
