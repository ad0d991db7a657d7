//! Segments of a reduction: which task computes which, and the order in which their accumulators are merged.

use super::traversal::{BoundKernel, TASK};
use crate::host::interrupt;
use crate::host::memory::reserve::zeros;
use crate::host::threads::{SharedPointer, parallel_for};
use smallvec::SmallVec;

/// The bytes of all accumulators of a reduction in parts.
const MOST_PARTS: usize = 256 << 20;

/// Outputs come in `groups` of up to `width`; each group is the merge of `segments` of about `elements` elements.
#[derive(Clone, Copy)]
pub(super) struct SegmentPlan {
    pub groups: usize,
    pub segments: usize,
    pub width: usize,
    pub elements: usize,
}

/// `segment(g, s, acc)` leaves the accumulators of a segment in `acc`, `write(g, acc)` writes a group's results.
#[inline(always)]
pub(super) fn drive(
    w: SegmentPlan,
    k: &BoundKernel<'_>,
    segment: impl Fn(usize, usize, *mut u8) + Sync,
    write: impl Fn(usize, *mut u8) + Sync,
) {
    let bytes = w.width * k.acc;
    let mut per_task = (TASK / w.elements.max(1)).clamp(1, w.segments);
    // The accumulators of all parts together take a bounded amount of memory.
    while per_task > 0 && per_task < w.segments && w.groups * w.segments.div_ceil(per_task) > (MOST_PARTS / bytes.max(1)).max(w.groups) {
        per_task *= 2;
    }
    let parts = w.segments.div_ceil(per_task);
    // Words of eight bytes that accumulators take.
    let words = bytes.div_ceil(8);
    let collect = |g: usize, first: usize, last: usize, acc: *mut u8, levels: &mut Vec<u64>| {
        pairwise(k, last - first, acc, w.width, levels, |i, acc| segment(g, first + i, acc));
    };
    if parts == 1 {
        let groups_per_task = (TASK / (w.segments * w.elements).max(1)).max(1);
        parallel_for(w.groups.div_ceil(groups_per_task), |t| {
            let mut acc: SmallVec<[u64; 64]> = SmallVec::from_elem(0, words);
            let acc = acc.as_mut_ptr().cast::<u8>();
            let mut levels = Vec::new();
            for g in t * groups_per_task..w.groups.min((t + 1) * groups_per_task) {
                collect(g, 0, w.segments, acc, &mut levels);
                write(g, acc);
            }
        });
        return;
    }
    let mut partial = zeros::<u64>(w.groups.saturating_mul(parts).saturating_mul(words));
    let to = SharedPointer::new(partial.as_mut_ptr());
    parallel_for(w.groups * parts, |t| {
        let (g, part) = (t / parts, t % parts);
        // Task t alone writes this stretch of `partial`, which outlives the tasks.
        let acc = to.at(t * words).cast::<u8>();
        collect(g, part * per_task, w.segments.min((part + 1) * per_task), acc, &mut Vec::new());
    });
    for g in 0..w.groups {
        interrupt::check();
        let mine = to.at(g * parts * words);
        let mut step = 1;
        while step < parts {
            for i in (0..parts - step).step_by(2 * step) {
                let (a, b) = (mine.wrapping_add(i * words), mine.wrapping_add((i + step) * words));
                // SAFETY: the accumulators of two parts.
                unsafe { k.merge(a.cast(), b.cast_const().cast(), w.width, true) };
            }
            step *= 2;
        }
        write(g, mine.cast());
    }
}

/// Merges `n` (at least one) vectors of `width` accumulators, of which `make(i, acc)` leaves each in `acc`, as a binary counter does, so
/// that vectors of equal weight are merged.
#[inline(always)]
pub(super) fn pairwise(
    k: &BoundKernel<'_>,
    n: usize,
    acc: *mut u8,
    width: usize,
    levels: &mut Vec<u64>,
    mut make: impl FnMut(usize, *mut u8),
) {
    make(0, acc);
    if n == 1 {
        return;
    }
    let bytes = width * k.acc;
    let words = bytes.div_ceil(8);
    let most = (usize::BITS - n.leading_zeros()) as usize;
    if levels.len() < most * words {
        levels.resize(most * words, 0);
    }
    let at = levels.as_mut_ptr();
    let level_at = |level: usize| at.wrapping_add(level * words).cast::<u8>();
    // SAFETY: a level below `most` has room for `width` accumulators, and both sides of a merge have been written.
    unsafe {
        for i in 0..n {
            if i > 0 {
                interrupt::check();
                make(i, acc);
            }
            let mut level = 0;
            while i >> level & 1 == 1 {
                k.merge(acc, level_at(level), width, false);
                level += 1;
            }
            std::ptr::copy_nonoverlapping(acc.cast_const(), level_at(level), bytes);
        }
        let mut first = true;
        for level in 0..most {
            if n >> level & 1 == 1 {
                if first {
                    std::ptr::copy_nonoverlapping(level_at(level).cast_const(), acc, bytes);
                    first = false;
                } else {
                    k.merge(acc, level_at(level), width, false);
                }
            }
        }
    }
}
