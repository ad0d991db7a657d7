//! The inner loops of products with packed panels: a block of `rows x depth` numbers, dense along the depth, times `depth x columns` that
//! lie in panels of WIDTH columns.
//!
//! Not here: what packs panels, which is the patches of images in `conv/patches.rs`.
//!
//! Sums go along the depth in order, one chain for each result, so that the bits depend on the sizes of blocks alone.

use super::panel_vector::{CoreNumber, PanelVector, on_vectors};
use crate::backend::cpu::reduce::reducers::Numeric;

/// Neighbouring columns of a block that are neighbours in the output, too.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct ColumnRun {
    pub column: usize,
    pub len: usize,
    /// Where the first one lies in the output, from its start.
    pub at: isize,
}

/// One product of a block.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct PanelProduct<'a, T> {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: *const T,
    /// Elements between rows of `a`.
    pub a_rs: isize,
    pub b: *const T,
    /// Elements between panels of `b`.
    pub panel: usize,
    pub out: *mut T,
    pub out_rs: isize,
    /// All columns in order.
    pub runs: &'a [ColumnRun],
    /// Elements between neighbouring columns in the output.
    pub step: isize,
    /// Whether the product is added to the output, or else overwrites it.
    pub add: bool,
    /// What is added to each row where the output is overwritten; may be null.
    pub bias: *const T,
}

on_vectors! {
    /// The product of a block.
    fn multiply<T>(p: &PanelProduct<'_, T>) = multiply_on
}

/// Room for the sums of a tile, row after row.
type TileCopy<T> = [T; MOST_SUMS];
/// Sums of the largest tile of any instruction set.
const MOST_SUMS: usize = 8 * 48;

/// # Safety
/// Operands are readable and the output is writable as described; nothing else writes there.
#[inline(always)]
unsafe fn multiply_on<V: PanelVector>(p: &PanelProduct<'_, V::Number>) {
    let mut copy: TileCopy<V::Number> = [V::Number::ZERO; MOST_SUMS];
    let mut runs = p.runs;
    for (q, first) in (0..p.columns).step_by(V::WIDTH).enumerate() {
        let width = V::WIDTH.min(p.columns - first);
        while let [run, rest @ ..] = runs
            && run.column + run.len <= first
        {
            runs = rest;
        }
        let [run, ..] = runs else { return };
        // Columns of several runs, or apart, go through a copy of the tile.
        let whole = p.step == 1 && first + width <= run.column + run.len;
        let b = p.b.wrapping_add(q * p.panel);
        let mut i = 0;
        while i < p.rows {
            let left = p.rows - i;
            let out = p.out.wrapping_offset(i as isize * p.out_rs);
            let target = whole.then(|| out.wrapping_offset(run.at + (first - run.column) as isize));
            macro_rules! rows {
                ($R:literal) => {{
                    // SAFETY: the caller's.
                    unsafe {
                        match width.div_ceil(V::LANES) {
                            1 => tile::<V, $R, 1>(p, b, i, width, target, &mut copy),
                            2 => tile::<V, $R, 2>(p, b, i, width, target, &mut copy),
                            _ => tile::<V, $R, 3>(p, b, i, width, target, &mut copy),
                        }
                    }
                    $R
                }};
            }
            let rows = if V::ROWS >= 8 && left >= 8 {
                rows!(8)
            } else if left >= 4 {
                rows!(4)
            } else if left >= 2 {
                rows!(2)
            } else {
                rows!(1)
            };
            if !whole {
                for r in 0..rows {
                    // SAFETY: the caller's.
                    unsafe {
                        let bias = if p.bias.is_null() { V::Number::ZERO } else { *p.bias.add(i + r) };
                        let out = out.wrapping_offset(r as isize * p.out_rs);
                        scatter_row::<V>(p, copy.as_ptr().add(r * V::WIDTH), runs, out, bias, first, width);
                    }
                }
            }
            i += rows;
        }
    }
}

/// Rows `i..i + R` of one panel: to the target, or into the copy if there is none.
///
/// # Safety
/// As for `multiply`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the sums in registers")]
#[inline(always)]
unsafe fn tile<V: PanelVector, const R: usize, const C: usize>(
    p: &PanelProduct<'_, V::Number>,
    b: *const V::Number,
    i: usize,
    width: usize,
    target: Option<*mut V::Number>,
    copy: &mut TileCopy<V::Number>,
) {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[V::zero(); C]; R];
        let a: [*const V::Number; R] = std::array::from_fn(|r| p.a.wrapping_offset((i + r) as isize * p.a_rs));
        for k in 0..p.depth {
            let row: [V; C] = std::array::from_fn(|c| V::load(b.add(k * V::WIDTH + c * V::LANES)));
            for r in 0..R {
                let x = V::splat(*a[r].add(k));
                for c in 0..C {
                    sums[r][c] = x.fma(row[c], sums[r][c]);
                }
            }
        }
        let Some(to) = target else {
            for r in 0..R {
                for c in 0..C {
                    sums[r][c].store(copy.as_mut_ptr().add(r * V::WIDTH + c * V::LANES));
                }
            }
            return;
        };
        // The last vector of a row may be shorter.
        let last = width - (C - 1) * V::LANES;
        if p.add {
            for r in 0..R {
                let to = to.wrapping_offset(r as isize * p.out_rs);
                for c in 0..C - 1 {
                    let to = to.wrapping_add(c * V::LANES);
                    sums[r][c].plus(V::load(to)).store(to);
                }
                let to = to.wrapping_add((C - 1) * V::LANES);
                sums[r][C - 1].plus(V::load_first(to, last)).store_first(to, last);
            }
        } else {
            for r in 0..R {
                let to = to.wrapping_offset(r as isize * p.out_rs);
                let bias = if p.bias.is_null() { V::zero() } else { V::splat(*p.bias.add(i + r)) };
                for c in 0..C - 1 {
                    sums[r][c].plus(bias).store(to.wrapping_add(c * V::LANES));
                }
                sums[r][C - 1].plus(bias).store_first(to.wrapping_add((C - 1) * V::LANES), last);
            }
        }
    }
}

/// Writes, or adds, one row of a tile to columns of several runs.
///
/// # Safety
/// As for `multiply`; `out` is the row's start.
#[inline(always)]
unsafe fn scatter_row<V: PanelVector>(
    p: &PanelProduct<'_, V::Number>,
    row: *const V::Number,
    runs: &[ColumnRun],
    out: *mut V::Number,
    bias: V::Number,
    first: usize,
    width: usize,
) {
    for run in runs.iter().take_while(|run| run.column < first + width) {
        let (from, to) = (run.column.max(first), (run.column + run.len).min(first + width));
        let out = out.wrapping_offset(run.at + (from - run.column) as isize * p.step);
        let (row, n) = (row.wrapping_add(from - first), to - from);
        // SAFETY: the caller's.
        unsafe {
            if p.step == 2 && !p.add {
                let bias = V::splat(bias);
                for j in (0..n).step_by(V::LANES) {
                    let n = (n - j).min(V::LANES);
                    V::load_first(row.add(j), n).plus(bias).store_spread(out.wrapping_add(2 * j), n);
                }
                continue;
            }
            if p.step == 2 {
                for j in (0..n).step_by(V::LANES) {
                    let (to, n) = (out.wrapping_add(2 * j), (n - j).min(V::LANES));
                    let (first, rest) = ((2 * n - 1).min(V::LANES), (2 * n - 1).saturating_sub(V::LANES));
                    let second = if rest > 0 { V::load_first(to.wrapping_add(V::LANES), rest) } else { V::zero() };
                    let old = V::load_first(to, first).parted(second).0;
                    V::load_first(row.add(j), n).plus(old).store_spread(to, n);
                }
                continue;
            }
            if p.step != 1 {
                for j in 0..n {
                    let to = out.wrapping_offset(j as isize * p.step);
                    *to = (*row.add(j)).plus(if p.add { *to } else { bias });
                }
                continue;
            }
            let bias = V::splat(bias);
            for j in (0..n).step_by(V::LANES) {
                let (row, to, n) = (row.add(j), out.wrapping_add(j), (n - j).min(V::LANES));
                V::load_first(row, n).plus(if p.add { V::load_first(to, n) } else { bias }).store_first(to, n);
            }
        }
    }
}

on_vectors! {
    /// Writes `n` numbers to places that are `step` apart.
    fn spread<T>(n: usize, from: *const T, to: *mut T, step: usize) = spread_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn spread_on<V: PanelVector>(n: usize, from: *const V::Number, to: *mut V::Number, step: usize) {
    // SAFETY: the caller's.
    unsafe {
        if step == 2 {
            for j in (0..n).step_by(V::LANES) {
                let n = (n - j).min(V::LANES);
                V::load_first(from.add(j), n).store_spread(to.wrapping_add(2 * j), n);
            }
            return;
        }
        for j in 0..n {
            *to.wrapping_add(j * step) = *from.add(j);
        }
    }
}

/// The depth of a block: its panel of `b` stays in the first cache while it meets all rows.
pub(in crate::backend::cpu) fn block_depth<T: CoreNumber>(width: usize) -> usize {
    const PANEL: usize = 40 << 10;
    PANEL / (width * size_of::<T>())
}
