//! Copies of operands in panels: rows of the left one, or columns of the right one, that meet in a tile lie together for each step of the depth.

use super::tile::panels_of_rows;
use crate::backend::cpu::matmul::Mat;
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::host::memory::cache_line::{LINE, prefetch_line};
use crate::simd::InstructionSet;

/// Panels of dense rows that are written side by side: longer stretches of each row are read.
const TOGETHER: usize = 4;
/// As `TOGETHER`, of a left operand whose columns are dense: panels are narrow, and rows of the matrix often a page apart.
const ALONGSIDE: usize = 16;

/// Numbers that packed rows take.
pub(super) fn room_of_rows<T: CoreNumber>(isa: InstructionSet, rows: usize, depth: usize) -> usize {
    // SAFETY: the instruction set is only asked for its sizes.
    unsafe { rows_room::<T>(isa, rows, depth) }
}

on_vectors! { not base:
    fn rows_room<T>(rows: usize, depth: usize) -> usize = rows_room_on
}

#[inline(always)]
unsafe fn rows_room_on<V: PanelVector>(rows: usize, depth: usize) -> usize {
    panels_of_rows::<V>(rows).map(|p| p.rows * depth).sum::<usize>().next_multiple_of(V::LANES) + V::LANES
}

on_vectors! { not base:
    /// Packs `columns` columns of a right operand, panel after panel; a last one with fewer columns is filled with zeros.
    fn pack_columns<T>(depth: usize, columns: usize, x: Mat<T>, to: *mut T) = pack_columns_on
}

/// # Safety
/// The operand is readable, and there is room for whole panels.
#[inline(always)]
unsafe fn pack_columns_on<V: PanelVector>(depth: usize, columns: usize, x: Mat<V::Number>, to: *mut V::Number) {
    let (mut column, panel) = (0, V::WIDTH * depth);
    // SAFETY: the caller's.
    unsafe {
        if x.cs == 1 {
            while columns - column >= TOGETHER * V::WIDTH {
                let to = to.add(column * depth);
                for k in 0..depth {
                    let from = x.at(k, column);
                    for q in 0..TOGETHER {
                        copy_row::<V>(from.add(q * V::WIDTH), to.add(q * panel + k * V::WIDTH));
                    }
                }
                column += TOGETHER * V::WIDTH;
            }
            while columns - column >= V::WIDTH {
                let to = to.add(column * depth);
                for k in 0..depth {
                    copy_row::<V>(x.at(k, column), to.add(k * V::WIDTH));
                }
                column += V::WIDTH;
            }
        }
        while column < columns {
            let x = Mat { ptr: x.at(0, column), ..x };
            let here = V::WIDTH.min(columns - column);
            pack_any::<V>(depth, (here, V::WIDTH), x, columns - column - here, to.add(column * depth));
            column += V::WIDTH;
        }
    }
}

/// # Safety
/// V::WIDTH numbers are readable, and writable.
#[inline(always)]
unsafe fn copy_row<V: PanelVector>(from: *const V::Number, to: *mut V::Number) {
    for c in 0..V::VECTORS {
        // SAFETY: the caller's.
        unsafe { V::load(from.add(c * V::LANES)).store(to.add(c * V::LANES)) };
    }
}

on_vectors! { not base:
    /// Packs `rows` rows of a left operand, panel after panel.
    fn pack_rows<T>(rows: usize, depth: usize, x: Mat<T>, to: *mut T) = pack_rows_on
}

/// # Safety
/// The operand is readable, and there is the room that `room_of_rows` says.
#[inline(always)]
unsafe fn pack_rows_on<V: PanelVector>(rows: usize, depth: usize, x: Mat<V::Number>, to: *mut V::Number) {
    let x = x.t();
    let (mut row, mut to) = (0, to);
    let full = if x.cs == 1 { panels_of_rows::<V>(rows).take_while(|p| p.rows == V::ROWS && p.here == V::ROWS).count() } else { 0 };
    // SAFETY: the caller's.
    unsafe {
        for first in (0..full).step_by(ALONGSIDE) {
            let many = ALONGSIDE.min(full - first);
            let x = Mat { ptr: x.at(0, row), ..x };
            match V::ROWS {
                8 => copy_panels::<V, 8>(depth, many, x, to),
                _ => copy_panels::<V, 6>(depth, many, x, to),
            }
            to = to.add(many * V::ROWS * depth);
            row += many * V::ROWS;
        }
        for panel in panels_of_rows::<V>(rows).skip(full) {
            let x = Mat { ptr: x.at(0, row), ..x };
            match panel.rows {
                4 if x.cs == 1 && panel.here == 4 => copy_panels::<V, 4>(depth, 1, x, to),
                _ => pack_any::<V>(depth, (panel.here, panel.rows), x, rows.saturating_sub(row + panel.rows), to),
            }
            to = to.add(panel.rows * depth);
            row += panel.rows;
        }
    }
}

/// Packs `many` panels of R dense columns.
///
/// # Safety
/// The matrix of `depth` x `many * R` is readable, and there is room for it.
#[inline(always)]
unsafe fn copy_panels<V: PanelVector, const R: usize>(depth: usize, many: usize, x: Mat<V::Number>, to: *mut V::Number) {
    for k in 0..depth {
        let (from, to) = (x.at(k, 0).cast::<[V::Number; R]>(), to.wrapping_add(k * R));
        for q in 0..many {
            // SAFETY: the caller's.
            unsafe { to.add(q * R * depth).cast::<[V::Number; R]>().write_unaligned(from.add(q).read_unaligned()) };
        }
    }
}

/// Packs one panel of `width` columns, of which there are `here`; the others are zeros. `after` more columns follow it in the matrix.
///
/// # Safety
/// `depth` x `here` elements are readable, and there is room for `depth * width` and V::LANES more.
#[inline(always)]
unsafe fn pack_any<V: PanelVector>(depth: usize, (here, width): (usize, usize), x: Mat<V::Number>, after: usize, to: *mut V::Number) {
    let line = LINE / size_of::<V::Number>();
    // Steps that fill vectors.
    let whole = if x.rs == 1 { depth / V::LANES * V::LANES } else { 0 };
    // SAFETY: the caller's.
    unsafe {
        // As many columns as a vector has, along all of the depth: the machine foresees what so few streams read. A vector may reach into the
        // next step, so the first columns are written last.
        for first in (0..width).step_by(V::LANES).rev() {
            for k in (0..whole).step_by(V::LANES) {
                if k.is_multiple_of(line) {
                    // The same of the next panel: most streams are short.
                    for c in first..(first + V::LANES).min(width).min(after) {
                        prefetch_line(x.at(k, width + c));
                    }
                }
                let column = |c: usize| {
                    if first + c < here { V::load(x.at(k, first + c)) } else { V::zero() }
                };
                V::put_transposed(column, to.add(k * width + first), width);
            }
        }
        for k in whole..depth {
            for c in 0..width {
                *to.add(k * width + c) = if c < here { *x.at(k, c) } else { V::Number::ZERO };
            }
        }
    }
}
