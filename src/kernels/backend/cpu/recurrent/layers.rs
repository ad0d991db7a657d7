//! How the steps of a layer are divided among threads.
//!
//! A stage is a step, or half of one where states are projected. Its pieces have some sequences and some panels of columns: they multiply
//! the rows that the stage before wrote with the weights of these columns, and compute the cells there while the products are in a cache.
//! Weights are packed once.
//!
//! Where there are enough sequences, each thread has some of its own, goes through all stages alone, and reads whole rows, which the machine
//! foresees. Where there are few, threads share each stage, and wait for each other after it: a thread has the same columns at each step, so
//! that their weights may stay in its second cache, and asks for its stretches of rows before it needs them.

use super::RecurrentSteps;
use crate::backend::cpu::common::blocks::lanes::Lanes;
use crate::backend::cpu::common::blocks::tile::{BlockProduct, PanelWidth, pack, pack_transposed};
use crate::backend::cpu::common::blocks::{BlockElement, BlockTask, Strided4, scratch};
use crate::error::Result;
use crate::host::interrupt;
use crate::host::memory::alloc::Buffer;
use crate::host::memory::reserve::reserved;
use crate::host::threads::{SharedPointer, num_threads, parallel_for, parallel_stages};
use std::ops::Range;

/// Sequences of a piece.
pub(super) const ROWS: usize = 16;
/// The most columns of a piece of a shared stage.
const COLUMNS: usize = 64;
/// The most gates of a cell.
const GATES: usize = 4;
/// Pieces that a thread should have of a stage, so that the faster ones can take more.
const PIECES: usize = 4;
/// Multiply-adds of a step from which on threads share it, if there are too few sequences for all threads: of several sequences, which could
/// be divided among some threads, and of others.
const SHARED: [usize; 2] = [1 << 19, 1 << 17];

/// The stages of some sequences of a layer.
pub(super) trait LayerStages<T>: Sync {
    fn stages(&self) -> usize;
    /// Sequences, and panels of columns, of a stage.
    fn size(&self, stage: usize) -> (usize, usize);

    /// # Safety
    /// Stages before this one have ended, nothing else computes these rows and columns, and the machine has the instructions of `V`.
    unsafe fn run<V: Lanes<T = T>>(&self, piece: &LayerPiece<T>);
}

/// A part of a stage.
#[derive(Debug, Clone)]
pub(super) struct LayerPiece<T> {
    pub stage: usize,
    /// Sequences, of those of the layer's stages.
    pub rows: Range<usize>,
    pub panels: Range<usize>,
    /// Whether these are not all panels.
    pub is_part: bool,
    pub products: Products<T>,
}

impl<T> LayerPiece<T> {
    /// Those of the first `n` sequences that are in this piece.
    pub fn among(&self, n: usize) -> Range<usize> {
        self.rows.start..self.rows.end.min(n).max(self.rows.start)
    }
}

/// Room for the products of a piece: rows of `columns` for each gate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Products<T> {
    room: *mut T,
    pub columns: usize,
}

impl<T> Products<T> {
    /// The products of row `i`: those of one gate, and `columns` behind them those of the next.
    #[inline(always)]
    pub fn row(&self, i: usize) -> *mut T {
        self.room.wrapping_add(i * GATES * self.columns)
    }
}

/// A piece, compiled for each instruction set.
pub(super) struct PieceTask<'a, T, L>(pub &'a L, pub &'a LayerPiece<T>);

impl<T: BlockElement, L: LayerStages<T>> BlockTask<T> for PieceTask<'_, T, L> {
    #[inline(always)]
    unsafe fn task<V: Lanes<T = T>>(&self) {
        // SAFETY: the caller's.
        unsafe { self.0.run::<V>(self.1) }
    }
}

/// Runs the stages that `new` makes for sequences from the first number on, of the second number of them, piece by piece with `run`: each
/// piece after all those of the stages before it. A vector has so many lanes.
pub(super) fn run_layer<T: BlockElement, L: LayerStages<T>>(
    steps: &RecurrentSteps<'_>,
    lanes: usize,
    new: impl Fn(usize, usize) -> L + Sync,
    run: impl Fn(&L, &LayerPiece<T>) + Sync,
) {
    // Asked once: the division of a stage must not change while threads work on it.
    let (r, sequences, threads) = (steps.r, steps.sequences(), num_threads());
    // Panels have at most two vectors of columns.
    let width = 2 * lanes;
    let columns = r.hidden.max(r.state).next_multiple_of(width);
    let run = |layer: &L, stage: usize, rows: Range<usize>, panels: Range<usize>, room: &mut Vec<T>, columns: usize| {
        let is_part = panels.len() < layer.size(stage).1;
        let products = Products { room: room.as_mut_ptr(), columns };
        run(layer, &LayerPiece { stage, rows, panels, is_part, products });
    };
    let together = if sequences < 2 * ROWS { ROWS / 2 } else { ROWS };
    let groups = sequences.div_ceil(together);
    let work = sequences.saturating_mul(r.cell.gates() * r.hidden).saturating_mul(r.state);
    if groups >= threads || work < SHARED[usize::from(groups == 1)] {
        parallel_for(groups, |g| {
            let first = g * together;
            let layer = new(first, together.min(sequences - first));
            let mut room = reserved(ROWS * GATES * columns);
            for stage in 0..layer.stages() {
                interrupt::check();
                let (rows, panels) = layer.size(stage);
                run(&layer, stage, 0..rows, 0..panels, &mut room, columns);
            }
        });
    } else {
        let layer = new(0, sequences);
        let columns = COLUMNS.min(columns);
        // The rows and panels of a stage, and how many blocks of rows and panels are pieces.
        let divided = |stage| {
            let (rows, panels) = layer.size(stage);
            let blocks = rows.div_ceil(ROWS);
            let wanted = (PIECES * threads).div_ceil(blocks.max(1));
            (rows, panels, blocks, (panels / wanted).clamp(1, columns / width))
        };
        let pieces = |stage| {
            let (_, panels, blocks, each) = divided(stage);
            blocks * panels.div_ceil(each)
        };
        parallel_stages(layer.stages(), pieces, |stage, i| {
            // All rows with some panels' weights, before the next panels'.
            let (rows, panels, blocks, each) = divided(stage);
            let (row, panel) = (i % blocks * ROWS, i / blocks * each);
            let mut room = reserved(ROWS * GATES * columns);
            run(&layer, stage, row..(row + ROWS).min(rows), panel..(panel + each).min(panels), &mut room, columns);
        });
    }
}

/// Weights in panels of columns, once for each gate. Each panel has the numbers of the rows before it.
pub(super) struct PackedWeights<T> {
    _memory: Buffer,
    panels: SharedPointer<*const T>,
    /// Rows that a panel has, and how columns are divided.
    depth: usize,
    pub width: PanelWidth,
}

impl<T: BlockElement> PackedWeights<T> {
    /// Of a row-major matrix of `gates` x `columns` rows and `depth` columns, whose rows become the columns of panels, for each gate.
    ///
    /// # Safety
    /// The matrix is readable.
    pub unsafe fn transposed(lanes: usize, gates: usize, columns: usize, depth: usize, from: *const T) -> Result<Self> {
        let width = PanelWidth::of(columns, lanes);
        let from = SharedPointer::new(from);
        Self::filled(gates, width, depth, |gate, panel, to| {
            let first = panel * width.columns;
            let here = width.columns.min(columns - first);
            let matrix = Strided4::matrix(from.get().wrapping_add((gate * columns + first) * depth), depth);
            // SAFETY: the caller's; there is room for a panel.
            unsafe { pack_transposed(&matrix, (0, 0), (here, depth), PanelWidth { padded: width.columns, ..width }, to) };
        })
    }

    /// Of a row-major matrix of `depth` rows and `columns` columns, which are those of the panels.
    ///
    /// # Safety
    /// The matrix is readable.
    pub unsafe fn plain(lanes: usize, depth: usize, columns: usize, from: *const T) -> Result<Self> {
        let width = PanelWidth::of(columns, lanes);
        let from = SharedPointer::new(from);
        Self::filled(1, width, depth, |_, panel, to| {
            let first = panel * width.columns;
            let here = width.columns.min(columns - first);
            let matrix = Strided4::matrix(from.get().wrapping_add(first), columns);
            // SAFETY: the caller's; there is room for a panel.
            unsafe { pack(&matrix, (0, 0), (depth, here), PanelWidth { padded: width.columns, ..width }, to) };
        })
    }

    fn filled(gates: usize, width: PanelWidth, depth: usize, fill: impl Fn(usize, usize, *mut T) + Sync) -> Result<Self> {
        let memory = scratch::<T>(gates.saturating_mul(width.padded).saturating_mul(depth))?;
        let to = SharedPointer::new(memory.as_ptr().cast::<T>());
        let panels = width.panels();
        parallel_for(gates * panels, |i| fill(i / panels, i % panels, to.at(i * depth * width.columns)));
        Ok(PackedWeights { panels: SharedPointer::new(to.get().cast_const()), _memory: memory, depth, width })
    }

    /// The columns of panels, of which there are `n` altogether.
    pub fn columns(&self, panels: &Range<usize>, n: usize) -> Range<usize> {
        panels.start * self.width.columns..(panels.end * self.width.columns).min(n)
    }

    /// The product of rows, `a_step` apart, with the columns of panels, for one gate; it is put into rows of `to` from `row` on.
    ///
    /// # Safety
    /// The rows are readable, at most `ROWS` with those before.
    #[inline(always)]
    pub unsafe fn product<V: Lanes<T = T>>(
        &self,
        (rows, a, a_step): (usize, *const T, usize),
        gate: usize,
        panels: &Range<usize>,
        (to, row): (Products<T>, usize),
    ) {
        let one = self.depth * self.width.columns;
        let product = BlockProduct {
            m: rows,
            k: self.depth,
            a,
            a_step,
            transposed: false,
            b: self.panels.get().wrapping_add((gate * self.width.panels() + panels.start) * one),
            b_step: one,
            panels: panels.len(),
            wide: self.width.wide,
            c: to.row(row).wrapping_add(gate * to.columns),
            c_step: GATES * to.columns,
            add: false,
        };
        // SAFETY: the caller's; there is room for all gates of a piece's columns.
        unsafe { V::product(&product) }
    }
}
