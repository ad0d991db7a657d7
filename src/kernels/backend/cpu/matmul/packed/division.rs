//! How a product is divided into tasks: a group of columns and a block of rows each, and a part of the depth at a time.

use super::super::panel_vector::{CoreNumber, tile_rows, widths};
use crate::simd::InstructionSet;

/// Steps of the depth that are packed as one part with AVX2: a panel of the right operand has 16 KB then, and stays in the first cache (32 KB)
/// while rows pass by.
const DEPTH: usize = 256;
/// Bytes of a row in one part with AVX-512, where it is a panel of 8 rows that stays there (`tile::TOGETHER`): the more, the fewer times results
/// are read and written.
const ROW: usize = 2 << 10;
/// Bytes of the right operand that all threads together pack at a time. One thread packs at least and at most what `OF_ONE` says.
const PACKED: usize = 16 << 20;
const OF_ONE: [usize; 2] = [512 << 10, 2 << 20];
/// The most rows of a task: with the depth of a panel they stay in the second cache.
const ROWS: usize = 96;
/// The most tasks into which rows are divided so that all threads have work; with more than half as many threads, two for each thread.
const TASKS: usize = 16;
/// Multiply-adds of the smallest task.
const TASK: usize = 1 << 20;
/// The fewest columns of a group for each thread, where the left operand is read in place: each group reads it anew.
const OWN_COLUMNS: usize = 128;
/// The fewest columns of a task with an epilogue, which costs too much over short rows.
const LONG_ROW: usize = 256;

#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    /// Steps of the depth in one part, and in those that are packed at a time.
    pub depth: usize,
    pub deep: usize,
    /// Columns of a group, and with those that fill its last panel.
    pub wide: usize,
    pub room: usize,
    pub groups: usize,
    pub rows: usize,
    pub blocks: usize,
}

impl Division {
    /// Of a product of m x k and k x n, whose left operand may be read in place. What is in a part of the depth depends on k alone.
    pub fn of<T: CoreNumber>(
        isa: InstructionSet,
        (m, n, k): (usize, usize, usize),
        threads: usize,
        has_epilogue: bool,
        is_in_place: bool,
    ) -> Division {
        let (width, lanes) = widths::<T>(isa);
        let most = if isa == InstructionSet::Avx512 { ROW / size_of::<T>() } else { DEPTH };
        let depth = k.div_ceil(k.div_ceil(most));
        // Columns are divided into groups: with few groups threads pack the same columns, with many the same rows.
        let panels = n.div_ceil(width);
        let right = (PACKED / threads).clamp(OF_ONE[0], OF_ONE[1]) / size_of::<T>() / depth;
        // As many groups as make both repetitions cost the same. Where rows are not packed, no two threads need pack the same columns.
        let own = if is_in_place { threads.min(n / OWN_COLUMNS) } else { 1 };
        let fair = if threads > 1 { (threads * n / m).isqrt().max(own) } else { 1 };
        let most = if has_epilogue { (n / LONG_ROW).max(1) } else { panels };
        let groups = n.div_ceil(right).max(fair.min(most)).clamp(1, panels);
        // As even as vectors allow.
        let wide = n.div_ceil(groups).next_multiple_of(lanes);
        let room = wide.next_multiple_of(width);
        let groups = n.div_ceil(wide);
        let wanted = if threads > 1 { (m.saturating_mul(n).saturating_mul(k) / TASK).clamp(1, TASKS.max(2 * threads)) } else { 1 };
        let rows = m.div_ceil(m.div_ceil(ROWS).max(wanted.div_ceil(groups))).next_multiple_of(tile_rows::<T>(isa)).min(m);
        let parts = (right / room).clamp(1, k.div_ceil(depth));
        Division { depth, deep: (parts * depth).min(k), wide, room, groups, rows, blocks: m.div_ceil(rows) }
    }
}
