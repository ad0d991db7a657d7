//! Products of packed blocks, tile by tile: the sums of some rows and of a panel's columns are in registers.

use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::host::memory::cache_line::{LINE, prefetch_line};

/// The most panels of the right operand that meet some rows before the next rows do, where they are too large for the first cache: a panel of
/// rows stays there (16 KB), and these in the second one (384 KB).
const TOGETHER: usize = 4;

/// Steps by which lines of the right operand are asked for before they are read, where they come from the second cache.
const AHEAD: usize = 16;

/// Rows that lie together in a packed left operand, of which `here` are rows of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PanelOfRows {
    pub rows: usize,
    pub here: usize,
}

/// Rows are divided into as many full panels as leave those of four a good number of rows.
#[inline(always)]
pub(super) fn panels_of_rows<V: PanelVector>(rows: usize) -> impl Iterator<Item = PanelOfRows> {
    let (whole, rest) = (rows / V::ROWS, rows % V::ROWS);
    let (whole, fours) = match rest {
        0 => (whole, 0),
        5.. => (whole + 1, 0),
        // Two fours in place of a six and one or two.
        _ if V::ROWS + rest <= 8 && whole > 0 => (whole - 1, 2),
        _ => (whole, 1),
    };
    (0..whole + fours).map(move |p| {
        let (first, size) = if p < whole { (p * V::ROWS, V::ROWS) } else { (whole * V::ROWS + (p - whole) * 4, 4) };
        PanelOfRows { rows: size, here: size.min(rows - first) }
    })
}

/// The memory layout of the left operand.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeftLayout {
    /// Panels, one after the other.
    Packed,
    /// Rows that are dense along the depth, with this stride.
    Strided(isize),
}

/// What is added to a product; the pointer is to the number of the first row, or column.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) enum Bias<T> {
    None,
    /// A number for each row.
    Rows(*const T),
    /// A number for each column.
    Columns(*const T),
}
// SAFETY: a pointer that is only read.
unsafe impl<T> Send for Bias<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Bias<T> {}

impl<T> Bias<T> {
    /// That of the transposed product.
    pub fn t(self) -> Bias<T> {
        match self {
            Bias::None => Bias::None,
            Bias::Rows(p) => Bias::Columns(p),
            Bias::Columns(p) => Bias::Rows(p),
        }
    }

    /// That of the rows and columns from these on.
    #[inline(always)]
    pub fn at(self, row: usize, column: usize) -> Bias<T> {
        match self {
            Bias::None => Bias::None,
            Bias::Rows(p) => Bias::Rows(p.wrapping_add(row)),
            Bias::Columns(p) => Bias::Columns(p.wrapping_add(column)),
        }
    }
}

/// A product of rows and packed columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedBlock<T> {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: *const T,
    pub layout: LeftLayout,
    pub b: *const T,
    /// Elements between panels of `b`.
    pub panel: usize,
    pub out: *mut T,
    pub out_rs: usize,
    /// Whether it is added to the output, or else overwrites it.
    pub add: bool,
    pub bias: Bias<T>,
}

on_vectors! { not base:
    /// Computes the product.
    fn multiply<T>(p: &PackedBlock<T>) = multiply_on
}

/// # Safety
/// The operands are readable, and the output is writable; nothing else writes there.
#[inline(always)]
unsafe fn multiply_on<V: PanelVector>(p: &PackedBlock<V::Number>) {
    let panels = p.columns.div_ceil(V::WIDTH);
    // As even as panels allow.
    let together = panels.div_ceil(panels.div_ceil(if V::VECTORS > 2 { TOGETHER } else { 1 })) * V::WIDTH;
    for first in (0..p.columns).step_by(together) {
        let columns = first..p.columns.min(first + together);
        let (mut a, mut bias, mut out) = (p.a, p.bias.at(0, 0), p.out);
        for panel in panels_of_rows::<V>(p.rows) {
            if let (0, LeftLayout::Strided(rs)) = (first, p.layout) {
                // Rows that come next are fetched while these are multiplied.
                for r in 0..panel.rows as isize {
                    let next = a.wrapping_offset((panel.rows as isize + r) * rs);
                    for k in (0..p.depth).step_by(LINE / size_of::<V::Number>()) {
                        prefetch_line(next.wrapping_add(k));
                    }
                }
            }
            for column in columns.clone().step_by(V::WIDTH) {
                let width = V::WIDTH.min(p.columns - column);
                let b = p.b.wrapping_add(column / V::WIDTH * p.panel);
                // SAFETY: the caller's.
                unsafe { rows_by_columns::<V>(p, panel, (a, b), bias.at(0, column), (out.wrapping_add(column), width)) };
            }
            a = match p.layout {
                LeftLayout::Packed => a.wrapping_add(panel.rows * p.depth),
                LeftLayout::Strided(rs) => a.wrapping_offset(panel.rows as isize * rs),
            };
            out = out.wrapping_add(panel.here * p.out_rs);
            bias = bias.at(panel.here, 0);
        }
    }
}

/// A panel of rows with one of columns.
///
/// # Safety
/// As for `multiply`.
#[inline(always)]
unsafe fn rows_by_columns<V: PanelVector>(
    p: &PackedBlock<V::Number>,
    panel: PanelOfRows,
    (mut a, b): (*const V::Number, *const V::Number),
    mut bias: Bias<V::Number>,
    (mut out, width): (*mut V::Number, usize),
) {
    let steps = match p.layout {
        LeftLayout::Packed => (1, panel.rows as isize),
        LeftLayout::Strided(rs) => (rs, 1),
    };
    macro_rules! tile {
        ($R:literal, $here:expr) => {
            // SAFETY: the caller's.
            unsafe {
                match width.div_ceil(V::LANES) {
                    1 => tile::<V, $R, 1>(p, (a, steps), b, bias, (out, $here, width)),
                    3 if V::VECTORS == 3 => tile::<V, $R, 3>(p, (a, steps), b, bias, (out, $here, width)),
                    _ => tile::<V, $R, 2>(p, (a, steps), b, bias, (out, $here, width)),
                }
            }
        };
    }
    match (panel.rows, p.layout) {
        (_, LeftLayout::Strided(rs)) if panel.here < panel.rows => {
            // The rows that a panel lacks are not there to be read.
            for _ in 0..panel.here {
                tile!(1, 1);
                a = a.wrapping_offset(rs);
                out = out.wrapping_add(p.out_rs);
                bias = bias.at(1, 0);
            }
        }
        (8, _) if V::ROWS == 8 => tile!(8, panel.here),
        (6, _) if V::ROWS == 6 => tile!(6, panel.here),
        _ => tile!(4, panel.here),
    }
}

/// # Safety
/// As for `multiply`.
#[allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep the sums in registers")]
#[inline(always)]
unsafe fn tile<V: PanelVector, const R: usize, const C: usize>(
    p: &PackedBlock<V::Number>,
    (a, (rs, cs)): (*const V::Number, (isize, isize)),
    b: *const V::Number,
    bias: Bias<V::Number>,
    (out, here, width): (*mut V::Number, usize, usize),
) {
    // SAFETY: the caller's.
    unsafe {
        for r in 0..R {
            // Read, or written, after the product; both ends, since the columns may lie in two lines.
            let out = out.wrapping_add(r.min(here - 1) * p.out_rs);
            prefetch_line(out);
            prefetch_line(out.wrapping_add(width - 1));
        }
        let mut sums = [[V::zero(); C]; R];
        // With fewer columns than a panel has, steps of `b` are further apart than C vectors.
        if C < V::VECTORS || !V::add_dense(&mut sums, a, (rs, cs), b, p.depth) {
            for k in 0..p.depth {
                let mut row = [V::zero(); C];
                for c in 0..C {
                    row[c] = V::load(b.wrapping_add(k * V::WIDTH + c * V::LANES));
                    if V::VECTORS > 2 {
                        prefetch_line(b.wrapping_add((k + AHEAD) * V::WIDTH + c * V::LANES));
                    }
                }
                for r in 0..R {
                    let x = V::splat(*a.wrapping_offset(r as isize * rs + k as isize * cs));
                    for c in 0..C {
                        sums[r][c] = x.fma(row[c], sums[r][c]);
                    }
                }
            }
        }
        let last = width - (C - 1) * V::LANES;
        let is_whole = last == V::LANES;
        if p.add {
            for r in 0..R {
                // The last row again for those that are not written.
                let from = out.wrapping_add(r.min(here - 1) * p.out_rs);
                for c in 0..C {
                    let from = from.wrapping_add(c * V::LANES);
                    sums[r][c] = sums[r][c].plus(if c + 1 < C || is_whole { V::load(from) } else { V::load_first(from, last) });
                }
            }
        }
        match bias {
            Bias::None => {}
            Bias::Rows(bias) => {
                for r in 0..R {
                    let bias = V::splat(*bias.add(r.min(here - 1)));
                    for c in 0..C {
                        sums[r][c] = sums[r][c].plus(bias);
                    }
                }
            }
            Bias::Columns(bias) => {
                for c in 0..C {
                    let from = bias.wrapping_add(c * V::LANES);
                    let bias = if c + 1 < C || is_whole { V::load(from) } else { V::load_first(from, last) };
                    for r in 0..R {
                        sums[r][c] = sums[r][c].plus(bias);
                    }
                }
            }
        }
        for r in 0..R {
            if r >= here {
                break;
            }
            let to = out.wrapping_add(r * p.out_rs);
            for c in 0..C {
                let to = to.wrapping_add(c * V::LANES);
                if c + 1 < C || is_whole { sums[r][c].store(to) } else { sums[r][c].store_first(to, last) }
            }
        }
    }
}
