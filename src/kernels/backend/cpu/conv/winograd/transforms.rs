//! The transforms of Winograd's F(2x2, 3x3): with
//!
//! ```text
//!     | 1  0 -1  0 |        | 1    0   0   |
//! B = | 0  1  1  0 |    G = | 1/2  1/2 1/2 |    A = | 1 1  1  0 |
//!     | 0 -1  1  0 |        | 1/2 -1/2 1/2 |        | 0 1 -1 -1 |
//!     | 0  1  0 -1 |        | 0    0   1   |
//! ```
//!
//! a tile of 2x2 results is `A (G g G' * B d B') A'`, where `g` are the 3x3 weights, `d` the 4x4 elements of the image and `*` is elementwise.
//! Place `4 i + j` of sixteen is row `i`, column `j`.

use crate::backend::cpu::conv::geometry::Strip;
use crate::backend::cpu::conv::patches::LoadPlan;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector, on_vectors};
use crate::backend::cpu::reduce::reducers::Numeric;
use std::ops::Range;

/// Places of a transformed tile.
pub(super) const PLACES: usize = 16;

/// B times a column of four.
#[inline(always)]
unsafe fn image_side<V: PanelVector>(d: [V; 4]) -> [V; 4] {
    // SAFETY: the machine has the instruction set, here and below.
    unsafe { [d[0].minus(d[2]), d[1].plus(d[2]), d[2].minus(d[1]), d[1].minus(d[3])] }
}

/// G times a column of three.
#[inline(always)]
unsafe fn weight_side<V: PanelVector>(g: [V; 3], half: V) -> [V; 4] {
    // SAFETY: as above.
    unsafe {
        let ends = g[0].plus(g[2]);
        let zero = V::zero();
        [g[0], ends.plus(g[1]).fma(half, zero), ends.minus(g[1]).fma(half, zero), g[2]]
    }
}

/// A times a column of four.
#[inline(always)]
unsafe fn result_side<V: PanelVector>(m: [V; 4]) -> [V; 2] {
    // SAFETY: as above.
    unsafe { [m[0].plus(m[1]).plus(m[2]), m[1].minus(m[2]).minus(m[3])] }
}

/// Where weights lie, and where they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightsToTransform<T> {
    pub from: *const T,
    pub row: usize,
    pub channel: usize,
    /// The place of each of the nine weights.
    pub places: [usize; 9],
    pub channels: usize,
    pub to: *mut T,
    /// Elements between places.
    pub slab: usize,
}

on_vectors! {
    /// Transforms the weights of some rows.
    fn transform_weights<T>(w: &WeightsToTransform<T>, rows: Range<usize>) = weights_on
}

/// # Safety
/// The weights are readable, and there is room.
#[inline(always)]
unsafe fn weights_on<V: PanelVector>(w: &WeightsToTransform<V::Number>, rows: Range<usize>) {
    for near in (0..w.channels).step_by(2 * V::LANES) {
        for r in rows.clone() {
            // Two vectors of a row, so that whole lines are written.
            for first in (near..w.channels.min(near + 2 * V::LANES)).step_by(V::LANES) {
                let n = V::LANES.min(w.channels - first);
                let from = w.from.wrapping_add(r * w.row + first * w.channel);
                let to = w.to.wrapping_add(r * w.channels + first);
                let mut lanes = [[V::Number::ZERO; 16]; 9];
                // SAFETY: the caller's.
                unsafe {
                    for c in 0..n {
                        for t in 0..9 {
                            lanes[t][c] = *from.add(c * w.channel + w.places[t]);
                        }
                    }
                    let half = V::splat(V::Number::HALF);
                    let mut columns = [[V::zero(); 4]; 3];
                    for j in 0..3 {
                        let g = [V::load(lanes[j].as_ptr()), V::load(lanes[3 + j].as_ptr()), V::load(lanes[6 + j].as_ptr())];
                        columns[j] = weight_side(g, half);
                    }
                    for i in 0..4 {
                        let row = weight_side([columns[0][i], columns[1][i], columns[2][i]], half);
                        for j in 0..4 {
                            row[j].store_first(to.wrapping_add((4 * i + j) * w.slab), n);
                        }
                    }
                }
            }
        }
    }
}

/// Where transformed tiles go: place `p` of vector `v` to `to + p * slab + v / vectors * panel + v % vectors * LANES`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TilePanels<T> {
    pub to: *mut T,
    pub slab: usize,
    /// Vectors of a panel, and elements between panels.
    pub vectors: usize,
    pub panel: usize,
}

on_vectors! {
    /// Transforms the tiles of one channel, whose strip begins at `from`.
    fn transform_tiles<T>(plan: &LoadPlan, from: *const T, strip: &Strip, to: TilePanels<T>) = tiles_on
}

/// # Safety
/// The strip has sixteen taps and is readable, and there is room.
#[inline(always)]
unsafe fn tiles_on<V: PanelVector>(plan: &LoadPlan, from: *const V::Number, strip: &Strip, to: TilePanels<V::Number>) {
    let taps: &[isize; PLACES] = strip.taps[..].try_into().unwrap_or(&[0; PLACES]);
    for v in 0..plan.vectors() {
        let at = to.to.wrapping_add(v / to.vectors * to.panel + v % to.vectors * V::LANES);
        // SAFETY: the caller's.
        unsafe {
            let mut d = [V::zero(); PLACES];
            plan.load_taps(v, from, taps, &mut d);
            let mut columns = [[V::zero(); 4]; 4];
            for j in 0..4 {
                columns[j] = image_side([d[j], d[4 + j], d[8 + j], d[12 + j]]);
            }
            for i in 0..4 {
                let row = image_side([columns[0][i], columns[1][i], columns[2][i], columns[3][i]]);
                for j in 0..4 {
                    row[j].store(at.wrapping_add((4 * i + j) * to.slab));
                }
            }
        }
    }
}

on_vectors! {
    /// The results of `tiles` tiles of one row of the product: the upper results of all tiles to `to`, the lower ones `pitch` behind. True means
    /// that all are finite. Whole vectors are read and written.
    fn transform_results<T>(from: *const T, slab: usize, tiles: usize, bias: T, to: *mut T, pitch: usize) -> bool = results_on
}

/// # Safety
/// As said.
#[inline(always)]
unsafe fn results_on<V: PanelVector>(
    from: *const V::Number,
    slab: usize,
    tiles: usize,
    bias: V::Number,
    to: *mut V::Number,
    pitch: usize,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let (bias, mut check) = (V::splat(bias), V::zero());
        for first in (0..tiles).step_by(V::LANES) {
            let from = from.wrapping_add(first);
            let mut columns = [[V::zero(); 2]; 4];
            for j in 0..4 {
                let mut m = [V::zero(); 4];
                for i in 0..4 {
                    m[i] = V::load(from.wrapping_add((4 * i + j) * slab));
                }
                columns[j] = result_side(m);
            }
            for i in 0..2 {
                let [left, right] = result_side([columns[0][i], columns[1][i], columns[2][i], columns[3][i]]);
                // Infinity times zero is nan.
                check = left.fma(V::zero(), right.fma(V::zero(), check));
                let (low, high) = left.plus(bias).interleaved(right.plus(bias));
                let to = to.wrapping_add(i * pitch + 2 * first);
                low.store(to);
                high.store(to.wrapping_add(V::LANES));
            }
        }
        check.total().is_finite()
    }
}
