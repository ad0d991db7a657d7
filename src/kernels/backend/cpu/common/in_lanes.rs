//! Rows of several planes as rows of vectors: the elements of as many planes as a vector has lanes are neighbours. No lane is wasted then, however
//! short rows are, and elements that lie anywhere are read as whole vectors. Copies are squares that are transposed in registers. Short rows of one
//! array are transposed to columns likewise.
//!
//! Not here: what is computed of such rows (`conv/depthwise`, `pool/across`), and of columns (`softmax/narrow`, `norm/narrow`, `arg_reduce/narrow`,
//! `reduce/traversal`).

use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::simd::{InstructionSet, instruction_set};
use std::ops::Range;

/// Numbers of a task's copy, which stay in the first caches.
pub(in crate::backend::cpu) const COPY: usize = 1 << 14;
/// The most lanes of a vector. Rows are copied in whole vectors: the last one writes up to so many positions beyond its row.
const MOST_LANES: usize = 16;

/// Some rows of a plane, with the padding that is read. Sizes count elements of one plane.
#[derive(Debug, Clone)]
pub(in crate::backend::cpu) struct PaddedRows {
    /// Elements of a row, and rows.
    pub pitch: usize,
    pub rows: usize,
    /// Padding before each row.
    pub left: usize,
    /// The rows of the plane that are read, and the rows of padding before them.
    pub plane: Range<usize>,
    pub top: usize,
    /// The first row; negative inside the padding.
    first: isize,
}

impl PaddedRows {
    /// `rows` and `columns` are read, of a plane of so many; they may lie in the padding.
    pub fn of(rows: Range<isize>, columns: Range<isize>, (height, width): (usize, usize)) -> PaddedRows {
        let left = (-columns.start).max(0) as usize;
        let pitch = left + columns.end.max(width as isize) as usize;
        let count = (rows.end - rows.start) as usize;
        let inside = |row: isize| row.clamp(0, height as isize) as usize;
        let top = ((-rows.start).max(0) as usize).min(count);
        PaddedRows { pitch, rows: count, left, plane: inside(rows.start)..inside(rows.end), top, first: rows.start }
    }

    /// Elements, with room behind the last row.
    pub fn size(&self) -> usize {
        self.rows * self.pitch + MOST_LANES
    }

    /// Where an element of the plane or of its padding lies.
    pub fn place(&self, row: isize, column: isize) -> usize {
        (row - self.first) as usize * self.pitch + (column + self.left as isize) as usize
    }

    /// Where the first element of the plane lies that is read.
    pub fn inner(&self) -> usize {
        self.top * self.pitch + self.left
    }
}

on_vectors! { not base:
    /// Copies rows of so many planes, so far apart, as rows of vectors, `pitch` apart. `padding` goes behind rows that end amid a vector.
    fn copy_in<T>(planes: (usize, usize), rows: (usize, usize), from: *const T, to: *mut T, pitch: usize, padding: T) = copy_in_on
}

/// # Safety
/// They are readable, and writable with a vector of elements behind the last one.
#[inline(always)]
unsafe fn copy_in_on<V: PanelVector>(
    (planes, apart): (usize, usize),
    (rows, len): (usize, usize),
    from: *const V::Number,
    to: *mut V::Number,
    pitch: usize,
    padding: V::Number,
) {
    for r in 0..rows {
        for j in (0..len).step_by(V::LANES) {
            let (from, to) = (from.wrapping_add(r * len + j), to.wrapping_add((r * pitch + j) * V::LANES));
            // SAFETY: the caller's. What is written behind a row is padding, or where the next row goes later.
            unsafe {
                if len - j >= V::LANES && planes == V::LANES {
                    V::put_transposed(|i| V::load(from.wrapping_add(i * apart)), to, V::LANES);
                } else {
                    let mask = ((1u64 << V::LANES.min(len - j)) - 1) as u32;
                    let around = V::splat(padding);
                    let row = |i: usize| if i < planes { around.merge(from.wrapping_add(i * apart), mask) } else { around };
                    V::put_transposed(row, to, V::LANES);
                }
            }
        }
    }
}

on_vectors! { not base:
    /// Copies `count` vectors as elements of so many planes, so far apart.
    fn copy_out<T>(planes: (usize, usize), count: usize, from: *const T, to: *mut T) = copy_out_on
}

/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn copy_out_on<V: PanelVector>((planes, apart): (usize, usize), count: usize, from: *const V::Number, to: *mut V::Number) {
    // SAFETY: the caller's.
    unsafe {
        if planes == V::LANES && count >= V::LANES {
            for j in (0..count).step_by(V::LANES) {
                // The last square begins before those before it end.
                let j = j.min(count - V::LANES);
                V::put_transposed(|i| V::load(from.add((j + i) * V::LANES)), to.add(j), apart);
            }
            return;
        }
        for i in 0..planes {
            for j in 0..count {
                *to.add(i * apart + j) = *from.add(j * V::LANES + i);
            }
        }
    }
}

on_vectors! { not base:
    /// Rows of `n` elements as columns: element `j` of row `i` goes to `j * step + i`.
    fn transpose_in<T>(rows: usize, n: usize, from: *const T, to: *mut T, step: usize) = turn_in_on
}

/// # Safety
/// They are readable, and writable for whole vectors of rows and of elements; a step is at least so many rows.
#[inline(always)]
unsafe fn turn_in_on<V: PanelVector>(rows: usize, n: usize, from: *const V::Number, to: *mut V::Number, step: usize) {
    for i in (0..rows).step_by(V::LANES) {
        let many = V::LANES.min(rows - i);
        for j in (0..n).step_by(V::LANES) {
            let (from, to) = (from.wrapping_add(i * n + j), to.wrapping_add(j * step + i));
            // SAFETY: the caller's.
            unsafe {
                if many == V::LANES && n - j >= V::LANES {
                    V::put_transposed(|r| V::load(from.wrapping_add(r * n)), to, step);
                } else {
                    let inside = V::LANES.min(n - j);
                    let row = |r: usize| if r < many { V::load_first(from.wrapping_add(r * n), inside) } else { V::zero() };
                    V::put_transposed(row, to, step);
                }
            }
        }
    }
}

on_vectors! { not base:
    /// The inverse of `transpose_in`.
    fn transpose_out<T>(rows: usize, n: usize, from: *const T, to: *mut T, step: usize) = turn_out_on
}

/// # Safety
/// They are writable, and readable for whole vectors of rows and of elements; a step is at least so many rows.
#[inline(always)]
unsafe fn turn_out_on<V: PanelVector>(rows: usize, n: usize, from: *const V::Number, to: *mut V::Number, step: usize) {
    let mut square = [V::Number::ZERO; MOST_LANES * MOST_LANES];
    for i in (0..rows).step_by(V::LANES) {
        let many = V::LANES.min(rows - i);
        for j in (0..n).step_by(V::LANES) {
            // SAFETY: the caller's.
            unsafe {
                if many == V::LANES && n >= V::LANES {
                    // The last square begins before those before it end.
                    let j = j.min(n - V::LANES);
                    let from = from.wrapping_add(j * step + i);
                    V::put_transposed(|c| V::load(from.wrapping_add(c * step)), to.wrapping_add(i * n + j), n);
                } else {
                    let from = from.wrapping_add(j * step + i);
                    V::put_transposed(|c| V::load(from.wrapping_add(c * step)), square.as_mut_ptr(), V::LANES);
                    for r in 0..many {
                        let to = to.wrapping_add((i + r) * n + j);
                        V::load(square.as_ptr().add(r * V::LANES)).store_first(to, V::LANES.min(n - j));
                    }
                }
            }
        }
    }
}

/// Rows that are transposed together, and the fewest that are.
pub(in crate::backend::cpu) const WIDTH: usize = 64;
const FEW: usize = 8;

/// The instruction set for which rows of `n` elements are transposed: if there are a few rows, and at most `most` elements in each.
pub(in crate::backend::cpu) fn transposes(rows: usize, n: usize, most: usize) -> Option<InstructionSet> {
    let isa = instruction_set();
    (isa != InstructionSet::Base && rows >= FEW && (1..=most).contains(&n)).then_some(isa)
}

/// Elements of transposed rows, with room for whole vectors.
pub(in crate::backend::cpu) fn transposed_size(n: usize, step: usize) -> usize {
    n.next_multiple_of(MOST_LANES) * step
}
