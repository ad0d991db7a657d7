//! How the patches of a task become the right operand of its products: as shifts of strips, with columns between the rows that belong to no
//! position, or packed, for all phases at once or for each alone; a block of channels and taps at a time.

use super::gather::{Gather, GatherPhase};
use super::geometry::{Patches, Strip};
use super::patches::{LoadPlan, PackedRows, fill, pack};
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, widest, widths};
use crate::backend::cpu::matmul::panels::{DepthPlace, block_bytes, block_depth, has_dense_loops};
use crate::backend::cpu::matmul::stored_as::StoredAs;
use crate::simd::InstructionSet;
use std::ops::Range;

/// Elements of the strips of a block.
const STRIPS: usize = 1 << 17;
/// Channels that are asked for before they are packed.
const AHEAD: usize = 4;
/// The fewest taps that pay for shifts: fewer read about as much as packing does.
const SHIFTED: usize = 2;
/// Packing a vector takes as long as its products with so many rows, and so many more for each row of positions that it has lanes of.
const PACKING: [usize; 2] = [4, 4];

/// Where a block is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockMemory<T> {
    pub strips: *mut T,
    pub packed: *mut T,
}

pub(super) struct PatchLayout {
    /// With the taps of all phases.
    pub patches: Patches,
    pub strip: Strip,
    /// Whether patches are shifts of strips, and not packed.
    pub is_shifted: bool,
    /// Columns of the products, and of a panel; lanes of a vector.
    pub columns: usize,
    pub width: usize,
    pub lanes: usize,
    /// Taps of each phase, among all.
    of_phases: Vec<Vec<usize>>,
    /// Taps that are packed together, of all phases or of each, and their shifts.
    pub packed: Vec<Vec<usize>>,
    shifts: Vec<Vec<isize>>,
    /// The most of them.
    pub taps: usize,
    /// Channels of a block, and taps of one that has too many.
    pub channels: usize,
    pub piece: usize,
    plan: Option<LoadPlan>,
}

/// Whether the weights of a channel lie in the order of the taps, and the next channel's follow.
fn is_in_order(f: &GatherPhase) -> bool {
    f.weights.channel == f.weights.taps.len() && f.weights.taps.iter().copied().eq(0..f.weights.taps.len())
}

impl PatchLayout {
    /// None, if phases are better laid out one by one.
    pub fn new<T: CoreNumber>(
        g: &Gather<'_, T>,
        phases: &[GatherPhase],
        positions: &Range<usize>,
        rows: usize,
        same: bool,
    ) -> Option<PatchLayout> {
        let (width, lanes) = widths::<T>(g.isa);
        // A pair's patches overlap, and are laid out once for both.
        let patches = match phases {
            [one, two] => one.patches.united(&two.patches),
            _ => phases[0].patches.clone(),
        };
        let p = &patches;
        let taps = p.taps();
        let mut strip = Strip::new(p, positions.start, positions.end, same);
        let vectors = |columns: usize| columns.div_ceil(lanes);
        // Shifts are a quarter slower than panels: their vectors lie across the borders of cache lines.
        let packing = PACKING[0] + PACKING[1] * (1 + lanes / p.axes[2].out);
        let is_shifted =
            taps >= SHIFTED && p.axes[2].stride == 1 && vectors(strip.span()) * rows * 5 <= vectors(positions.len()) * (rows + packing) * 4;
        if is_shifted && strip.size == 0 {
            // Vectors read beyond the last column.
            strip = Strip::new(p, positions.start, positions.end, false);
        }
        let columns = if is_shifted { strip.span() } else { positions.len() };
        // One panel of all columns rather than two, if the second would have few.
        let width = if columns > width { widest::<T>(g.isa) } else { width };
        let width = if columns <= width { width } else { widths::<T>(g.isa).0 };
        let most = if is_shifted {
            // With the weights of some rows.
            let reach = (width.min(columns) + strip.reach() + 8 * taps) * size_of::<T>();
            (block_bytes(g.isa) / reach).min(STRIPS / strip.size).max(1) * taps
        } else {
            block_depth::<T>(g.isa, width)
        };
        if phases.len() > 1 && taps > most {
            return None;
        }
        let of_phases: Vec<Vec<usize>> = phases.iter().map(|f| f.patches.taps_among(p)).collect();
        // The taps of both phases are packed together, or those of each alone where dense products are faster.
        let alone = !is_shifted && has_dense_loops(g.isa) && phases.iter().all(is_in_order);
        let packed: Vec<Vec<usize>> = if alone { of_phases.clone() } else { vec![(0..taps).collect()] };
        let taps = packed.iter().map(Vec::len).max().unwrap_or(taps);
        let channel_steps = phases.iter().map(|f| f.weights.channel).max().unwrap_or(1);
        let most_channels = (most / taps).min(i32::MAX as usize / channel_steps).max(1);
        let channels = g.channels.div_ceil(g.channels.div_ceil(most_channels));
        let piece = if is_shifted { taps } else { taps.div_ceil(taps.div_ceil(most)) };
        let plan = (!is_shifted).then(|| LoadPlan::new(&strip, lanes));
        let shifts = packed.iter().map(|taps| taps.iter().map(|k| strip.taps[*k]).collect()).collect();
        Some(PatchLayout { patches, strip, is_shifted, columns, width, lanes, of_phases, packed, shifts, taps, channels, piece, plan })
    }

    /// The depth of a block.
    pub fn block(&self) -> usize {
        self.channels * self.piece
    }

    /// Elements of a block that is packed.
    pub fn packed_size(&self) -> usize {
        if self.is_shifted { 0 } else { self.columns.div_ceil(self.width) * self.block() * self.width }
    }

    /// Elements of the strips of a block; vectors read beyond the last column.
    pub fn strips_size(&self) -> usize {
        if self.is_shifted { self.channels * self.strip.size + self.width } else { self.strip.size }
    }

    /// Lays out the taps from `t` on of channels from the one at `x`.
    ///
    /// # Safety
    /// The channels are readable; the memory has room, and its strips were cleared at first.
    pub unsafe fn lay_out<T: CoreNumber, S: StoredAs<T>>(
        &self,
        isa: InstructionSet,
        x: *const S,
        channels: usize,
        t: usize,
        memory: BlockMemory<T>,
    ) {
        let (p, strip) = (&self.patches, &self.strip);
        for c in 0..channels {
            let x = x.wrapping_add(c * p.plane());
            // SAFETY: the caller's.
            unsafe {
                let Some(plan) = &self.plan else {
                    fill::<T, S>(isa, p, strip, x, memory.strips.wrapping_add(c * strip.size));
                    continue;
                };
                let from = if strip.size == 0 {
                    x.cast::<T>().wrapping_offset(strip.start)
                } else {
                    // A block of some of the taps has one channel, whose strip is here.
                    if t == 0 {
                        fill::<T, S>(isa, p, strip, x, memory.strips);
                    }
                    memory.strips.cast_const()
                };
                // Channels of an image lie far apart, those of strips do not.
                let ahead = if strip.size == 0 { AHEAD * p.plane() } else { 0 } as isize;
                for (i, shifts) in self.shifts.iter().enumerate() {
                    let shifts = &shifts[self.piece_from(t, shifts.len())];
                    let to = memory.packed.wrapping_add(i * self.packed_size() + c * shifts.len() * self.width);
                    let rows = PackedRows { to, vectors: self.width / self.lanes, panel: self.block() * self.width, ahead };
                    pack::<T>(isa, plan, from, shifts, rows);
                }
            }
        }
    }

    /// Those of so many taps that are in the piece from `t` on.
    fn piece_from(&self, t: usize, taps: usize) -> Range<usize> {
        t.min(taps)..taps.min(t + self.piece)
    }

    /// Which of those that are packed phase `i` is in.
    fn number(&self, i: usize) -> usize {
        if self.packed.len() > 1 { i } else { 0 }
    }

    /// The depth of the product of phase `i` with the taps from `t` on of so many channels, if it is dense. Or else its places are written, and it
    /// is said how many lie near each other.
    pub fn depth_of(&self, i: usize, f: &GatherPhase, channels: usize, t: usize, places: &mut Vec<DepthPlace>) -> Result<usize, usize> {
        let (weights, all) = (&f.weights, &self.packed[self.number(i)]);
        let taps = &all[self.piece_from(t, all.len())];
        if !self.is_shifted && *all == self.of_phases[i] && weights.channel == taps.len() && is_in_order(f) {
            return Ok(channels * taps.len());
        }
        // The phase's taps in this piece.
        let place_of = |at: &usize| self.of_phases[i].iter().position(|tap| tap == at).map(|k| weights.taps[k]);
        let here: Vec<(usize, usize, usize)> = taps.iter().enumerate().filter_map(|(k, at)| Some((k, *at, place_of(at)?))).collect();
        places.clear();
        for c in 0..channels {
            places.extend(here.iter().map(|(k, at, place)| {
                let packed = (c * taps.len() + k) * self.width;
                let b = if self.is_shifted { c * self.strip.size + self.strip.taps[*at] as usize } else { packed };
                DepthPlace { a: (c * weights.channel + place) as i32, b: b as i32 }
            }));
        }
        Err(here.len().min(8))
    }

    /// The right operand of the product of phase `i`, and the elements between its panels.
    pub fn operand<T>(&self, i: usize, memory: BlockMemory<T>) -> (*const T, usize) {
        if self.is_shifted {
            (memory.strips.cast_const().wrapping_offset(self.strip.rows[0].base), self.width)
        } else {
            (memory.packed.cast_const().wrapping_add(self.number(i) * self.packed_size()), self.block() * self.width)
        }
    }
}
