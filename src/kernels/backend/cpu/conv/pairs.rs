//! Pairs of phases: where the stride along rows is 2, the results of one phase lie between those of the next. Written together they are whole
//! vectors; each alone, it would be every other element of each line of the cache.

use super::gather::GatherPhase;
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::matmul::panels::ColumnRun;

/// Whether the second phase has the columns between those of the first one, in the same rows.
pub(super) fn are_a_pair(one: &GatherPhase, two: &GatherPhase) -> bool {
    let (a, b) = (&one.places, &two.places);
    a.step[2] == 2 && a.first[..2] == b.first[..2] && (a.first[2], b.first[2]) == (0, 1)
}

on_vectors! {
    /// Writes columns to every other place, and those of the second operand between them. Each run of the second, which is as long or has one
    /// column less, goes with one of the first.
    fn interleave<T>(runs: [&[ColumnRun]; 2], from: [*const T; 2], to: *mut T) = interleave_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn interleave_on<V: PanelVector>(runs: [&[ColumnRun]; 2], from: [*const V::Number; 2], to: *mut V::Number) {
    for (i, one) in runs[0].iter().enumerate() {
        // A row of one column has none between.
        let two = runs[1].get(i).copied().unwrap_or(ColumnRun { column: 0, len: 0, at: 0 });
        let [a, b] = [from[0].wrapping_add(one.column), from[1].wrapping_add(two.column)];
        let to = to.wrapping_offset(one.at);
        for j in (0..one.len).step_by(V::LANES) {
            let (a, b, to) = (a.wrapping_add(j), b.wrapping_add(j), to.wrapping_add(2 * j));
            let (n, m) = ((one.len - j).min(V::LANES), two.len.saturating_sub(j).min(V::LANES));
            // SAFETY: the caller's.
            unsafe {
                if n == V::LANES && m == V::LANES {
                    let (low, high) = V::load(a).interleaved(V::load(b));
                    low.store(to);
                    high.store(to.add(V::LANES));
                    continue;
                }
                let (low, high) = V::load_first(a, n).interleaved(if m > 0 { V::load_first(b, m) } else { V::zero() });
                low.store_first(to, (n + m).min(V::LANES));
                if n + m > V::LANES {
                    high.store_first(to.add(V::LANES), n + m - V::LANES);
                }
            }
        }
    }
}
