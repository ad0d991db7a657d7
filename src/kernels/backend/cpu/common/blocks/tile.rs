//! Products of small blocks. The right operand lies in panels: all rows of one or two vectors of columns, then those of the next columns.
//! Columns beyond the last one are zeros.

use super::lanes::Lanes;
use super::{BlockElement, BlockTask, ROWS_AHEAD, Strided4, WHOLE, prefetch};

/// `c += a b`, or `c = a b`. The sum over k is never divided.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct BlockProduct<T> {
    pub m: usize,
    pub k: usize,
    pub a: *const T,
    /// Elements between rows of `a`, or between its columns if it is `transposed`; the others are neighbours.
    pub a_step: usize,
    pub transposed: bool,
    pub b: *const T,
    /// Elements between panels of `b`, and how many panels there are.
    pub b_step: usize,
    pub panels: usize,
    /// Whether a panel has two vectors of columns.
    pub wide: bool,
    pub c: *mut T,
    pub c_step: usize,
    pub add: bool,
}

/// How columns are divided into panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend::cpu) struct PanelWidth {
    pub wide: bool,
    pub columns: usize,
    /// Columns of all panels.
    pub padded: usize,
}

impl PanelWidth {
    pub fn of(columns: usize, lanes: usize) -> PanelWidth {
        let wide = columns > lanes;
        let width = if wide { 2 * lanes } else { lanes };
        PanelWidth { wide, columns: width, padded: columns.next_multiple_of(width) }
    }

    pub fn panels(&self) -> usize {
        self.padded / self.columns
    }
}

/// The blocks are readable and writable; `c` overlaps neither operand.
impl<T: BlockElement> BlockTask<T> for BlockProduct<T> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        // SAFETY: the caller's.
        unsafe {
            match (self.wide, self.transposed) {
                (true, false) => panels::<V, 2, false>(self),
                (true, true) => panels::<V, 2, true>(self),
                (false, false) => panels::<V, 1, false>(self),
                (false, true) => panels::<V, 1, true>(self),
            }
        }
    }
}

#[inline(always)]
unsafe fn panels<V: Lanes, const W: usize, const T: bool>(p: &BlockProduct<V::T>) {
    for panel in 0..p.panels {
        let (b, c) = (p.b.wrapping_add(panel * p.b_step), p.c.wrapping_add(panel * W * V::N));
        let mut i = 0;
        while i < p.m {
            let rows = height(p.m - i, V::ROWS);
            // SAFETY: the caller's; rows stay below m.
            unsafe {
                match rows {
                    14 if V::ROWS == 14 => tile::<V, 14, W, T>(p, i, b, c),
                    8 if V::ROWS >= 8 => tile::<V, 8, W, T>(p, i, b, c),
                    6 if V::ROWS == 6 => tile::<V, 6, W, T>(p, i, b, c),
                    4 => tile::<V, 4, W, T>(p, i, b, c),
                    _ => tile::<V, 1, W, T>(p, i, b, c),
                }
            }
            i += rows;
        }
    }
}

/// The rows of the next tile, if so many are left and a tile has at most `most`. Single rows are slow, so the largest tile is not taken where it
/// would leave some.
#[inline(always)]
fn height(left: usize, most: usize) -> usize {
    if left == most || left >= most + 4 {
        most
    } else if most > 8 && left >= 8 {
        8
    } else if left >= 4 {
        4
    } else {
        1
    }
}

#[inline(always)]
unsafe fn tile<V: Lanes, const M: usize, const W: usize, const T: bool>(p: &BlockProduct<V::T>, row: usize, b: *const V::T, c: *mut V::T) {
    let (row_step, column_step) = if T { (1, p.a_step) } else { (p.a_step, 1) };
    let (mut a, mut b) = (p.a.wrapping_add(row * row_step), b);
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[V::splat(V::T::ZERO); W]; M];
        if !V::add_steps(&mut sums, a, (row_step as isize, column_step as isize), b, p.k) {
            for _ in 0..p.k {
                let mut columns = [V::splat(V::T::ZERO); W];
                for (w, column) in columns.iter_mut().enumerate() {
                    *column = V::load(b.wrapping_add(w * V::N));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = V::broadcast(a.wrapping_add(i * row_step));
                    for (sum, column) in sums.iter_mut().zip(columns) {
                        *sum = x.fma(column, *sum);
                    }
                }
                a = a.wrapping_add(column_step);
                b = b.wrapping_add(W * V::N);
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (w, sum) in sums.iter().enumerate() {
                let to = c.wrapping_add((row + i) * p.c_step + w * V::N);
                let sum = if p.add { V::load(to).plus(*sum) } else { *sum };
                sum.store(to);
            }
        }
    }
}

/// Copies rows `from` to `from + rows` of a matrix (of `columns` columns) into panels, whose columns are those of the matrix.
///
/// # Safety
/// The matrix is readable, and there is room for `rows * width.padded` elements.
pub(in crate::backend::cpu) unsafe fn pack<T: BlockElement>(
    x: &Strided4<T>,
    (b, h): (usize, usize),
    (rows, columns): (usize, usize),
    width: PanelWidth,
    to: *mut T,
) {
    let step = x.strides[3];
    let whole = if step == 1 { columns / width.columns } else { 0 };
    // SAFETY: the caller's.
    unsafe {
        match width.columns * size_of::<T>() {
            16 => copy_panels::<T, 16>(x, (b, h), rows, whole, to),
            32 => copy_panels::<T, 32>(x, (b, h), rows, whole, to),
            64 => copy_panels::<T, 64>(x, (b, h), rows, whole, to),
            _ => copy_panels::<T, 128>(x, (b, h), rows, whole, to),
        }
        for panel in whole..width.panels() {
            let first = panel * width.columns;
            let here = width.columns.min(columns.saturating_sub(first));
            for i in 0..rows {
                let row = x.row(b, h, i);
                let to = std::slice::from_raw_parts_mut(to.add((panel * rows + i) * width.columns), width.columns);
                for (j, to) in to[..here].iter_mut().enumerate() {
                    *to = *row.wrapping_offset((first + j) as isize * step);
                }
                to[here..].fill(T::ZERO);
            }
        }
    }
}

/// Copies rows of whole panels, each of which is so many bytes wide.
///
/// # Safety
/// As for `pack`.
unsafe fn copy_panels<T: BlockElement, const BYTES: usize>(
    x: &Strided4<T>,
    (b, h): (usize, usize),
    rows: usize,
    panels: usize,
    to: *mut T,
) {
    for i in 0..rows {
        let (row, to) = (x.row(b, h, i).cast::<[u8; BYTES]>(), to.cast::<[u8; BYTES]>());
        prefetch(x.row(b, h, i + ROWS_AHEAD).cast::<[u8; BYTES]>(), panels);
        for panel in 0..panels {
            // SAFETY: the caller's.
            unsafe { to.add(panel * rows + i).write_unaligned(row.add(panel).read_unaligned()) };
        }
    }
}

/// As `pack`, with the columns and rows of the matrix exchanged: a panel has some rows of the matrix as its columns.
///
/// # Safety
/// As for `pack`, with room for `columns * width.padded` elements.
pub(in crate::backend::cpu) unsafe fn pack_transposed<T: BlockElement>(
    x: &Strided4<T>,
    (b, h): (usize, usize),
    (rows, columns): (usize, usize),
    width: PanelWidth,
    to: *mut T,
) {
    let step = x.strides[3];
    for panel in 0..width.panels() {
        let first = panel * width.columns;
        let to = to.wrapping_add(panel * columns * width.columns);
        let is_whole = step == 1 && first + width.columns <= rows;
        let whole = if is_whole { columns / WHOLE * WHOLE } else { 0 };
        for j in 0..width.columns {
            prefetch(x.row(b, h, first + width.columns + j), columns);
        }
        // SAFETY: the caller's.
        unsafe { T::transpose(width.columns, whole, x.row(b, h, first), x.strides[2], to, width.columns) };
        for j in 0..width.columns {
            let row = x.row(b, h, first + j);
            for e in whole..columns {
                // SAFETY: the caller's; the row is only read if there is one.
                unsafe {
                    *to.add(e * width.columns + j) = if first + j < rows { *row.wrapping_offset(e as isize * step) } else { T::ZERO }
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{InstructionSet, instruction_set};

    fn check<T: BlockElement + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        let lanes = match instruction_set() {
            InstructionSet::Avx512 => 64 / size_of::<T>(),
            InstructionSet::Avx2 => 32 / size_of::<T>(),
            InstructionSet::Base => 4,
        };
        for (rows, columns) in [(1, 1), (16, 16), (40, 37), (33, 64), (64, 15)] {
            for (between, step) in [(columns + 3, 1), (3 * columns, 3)] {
                let data: Vec<T> = (0..rows * between).map(&number).collect();
                let matrix = Strided4 { ptr: data.as_ptr(), strides: [0, 0, between as isize, step as isize] };
                let width = PanelWidth::of(rows, lanes);
                let mut to = vec![T::ONE; columns * width.padded + 1];
                // SAFETY: the data have the sizes, and there is room for all panels.
                unsafe { pack_transposed(&matrix, (0, 0), (rows, columns), width, to.as_mut_ptr()) };
                for (at, got) in to[..columns * width.padded].iter().enumerate() {
                    let (panel, e, j) = (at / (columns * width.columns), at / width.columns % columns, at % width.columns);
                    let row = panel * width.columns + j;
                    let want = if row < rows { data[row * between + e * step] } else { T::ZERO };
                    assert_eq!(*got, want, "{rows}x{columns}, row {row}, column {e}");
                }
                assert_eq!(to.last(), Some(&T::ONE), "written beyond the end");
            }
        }
    }

    #[test]
    fn panels_hold_columns_in_order_and_zeros_behind_them() {
        check(|i| i as f32);
        check(|i| i as f64);
    }
}
