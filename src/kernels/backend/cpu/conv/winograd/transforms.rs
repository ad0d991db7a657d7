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

#![allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep vectors in registers")]

use crate::backend::cpu::conv::geometry::Strip;
use crate::backend::cpu::conv::patches::LoadPlan;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector, on_vectors};
use crate::backend::cpu::memory::cache_line::bring_line;
use crate::backend::cpu::reduce::reducers::Numeric;
use std::ops::Range;

/// Places of a transformed tile.
pub(super) const PLACES: usize = 16;
/// Weights of a channel.
const TAPS: usize = 9;
/// Numbers in the largest squares of lanes that hold a vector of each of `TAPS` weights.
const TRANSPOSED: usize = 16 * 16;

/// B times a column of four.
#[inline(always)]
unsafe fn image_side<V: PanelVector>(d: [V; 4]) -> [V; 4] {
    // SAFETY: the machine has the instruction set, here and below.
    unsafe { [d[0].minus(d[2]), d[1].plus(d[2]), d[2].minus(d[1]), d[1].minus(d[3])] }
}

/// B d B'.
#[inline(always)]
unsafe fn both_image_sides<V: PanelVector>(d: [V; PLACES]) -> [V; PLACES] {
    // SAFETY: as above.
    unsafe {
        let mut columns = [[V::zero(); 4]; 4];
        for j in 0..4 {
            columns[j] = image_side([d[j], d[4 + j], d[8 + j], d[12 + j]]);
        }
        let mut made = d;
        for i in 0..4 {
            let row = image_side([columns[0][i], columns[1][i], columns[2][i], columns[3][i]]);
            made[4 * i..4 * i + 4].copy_from_slice(&row);
        }
        made
    }
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

/// A' times a column of two.
#[inline(always)]
unsafe fn gradient_side<V: PanelVector>(e: [V; 2]) -> [V; 4] {
    // SAFETY: as above.
    unsafe { [e[0], e[0].plus(e[1]), e[0].minus(e[1]), V::zero().minus(e[1])] }
}

/// G' times a column of four.
#[inline(always)]
unsafe fn back_side<V: PanelVector>(m: [V; 4], half: V) -> [V; 3] {
    // SAFETY: as above.
    unsafe {
        let both = m[1].plus(m[2]).fma(half, V::zero());
        [m[0].plus(both), m[1].minus(m[2]).fma(half, V::zero()), both.plus(m[3])]
    }
}

/// Where weights lie, and where they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightsToTransform<T> {
    pub from: *const T,
    pub row: usize,
    pub channel: usize,
    /// Where each of the nine weights lies; they are neighbours.
    pub taps: [usize; 9],
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
    let start = w.taps.iter().copied().min().unwrap_or(0);
    let taps = w.taps.map(|t| t - start);
    debug_assert!(taps.iter().all(|t| *t < TAPS), "the nine weights of a channel lie together");
    for near in (0..w.channels).step_by(2 * V::LANES) {
        for r in rows.clone() {
            // Two vectors of a row, so that whole lines are written.
            for first in (near..w.channels.min(near + 2 * V::LANES)).step_by(V::LANES) {
                let n = V::LANES.min(w.channels - first);
                let from = w.from.wrapping_add(r * w.row + first * w.channel + start);
                let to = w.to.wrapping_add(r * w.channels + first);
                // A vector for each weight of a channel, with as many rows more as a square of lanes has.
                let mut lanes = [V::Number::ZERO; TRANSPOSED];
                // What this row has next is asked for: channels may lie far apart.
                for c in 0..n {
                    bring_line(from.wrapping_add((c + 2 * V::LANES) * w.channel));
                }
                // SAFETY: the caller's.
                unsafe {
                    for t in (0..TAPS).step_by(V::LANES) {
                        let here = V::LANES.min(TAPS - t);
                        let (at, to) =
                            (|c: usize| from.wrapping_add(c.min(n - 1) * w.channel + t), lanes.as_mut_ptr().wrapping_add(t * V::LANES));
                        if here == V::LANES {
                            V::put_transposed(|c| V::load(at(c)), to, V::LANES);
                        } else if here > 1 {
                            V::put_transposed(|c| V::load_first(at(c), here), to, V::LANES);
                        } else {
                            for c in 0..n {
                                lanes[t * V::LANES + c] = *from.add(c * w.channel + t);
                            }
                        }
                    }
                    let half = V::splat(V::Number::HALF);
                    let mut columns = [[V::zero(); 4]; 3];
                    for j in 0..3 {
                        let mut g = [V::zero(); 3];
                        for i in 0..3 {
                            g[i] = V::load(lanes.as_ptr().wrapping_add(taps[3 * i + j] * V::LANES));
                        }
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
    let taps: &[isize; PLACES] = strip.taps[..].try_into().expect("tiles have sixteen taps");
    for v in 0..plan.vectors() {
        let at = to.to.wrapping_add(v / to.vectors * to.panel + v % to.vectors * V::LANES);
        // SAFETY: the caller's.
        unsafe {
            let mut d = [V::zero(); PLACES];
            plan.load_taps(v, from, taps, &mut d);
            let made = both_image_sides(d);
            for p in 0..PLACES {
                made[p].store(at.wrapping_add(p * to.slab));
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

/// Where transformed tiles go that are rows of panels: place `p` of tile `t` and channel `c` to `to + p * slab + t * width + c`, for one vector of
/// channels.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransposedTiles<T> {
    pub to: *mut T,
    pub slab: usize,
    /// Elements between panels, and columns of one.
    pub panel: usize,
    pub width: usize,
}

on_vectors! {
    /// Transforms the tiles of a vector of channels, whose strips follow each other from `from`.
    fn transform_tiles_transposed<T>(plan: &LoadPlan, from: *const T, strip: &Strip, to: TransposedTiles<T>) = tiles_transposed_on
}

/// # Safety
/// The strips have sixteen taps and are readable, and there is room.
#[inline(always)]
unsafe fn tiles_transposed_on<V: PanelVector>(plan: &LoadPlan, from: *const V::Number, strip: &Strip, to: TransposedTiles<V::Number>) {
    let taps: &[isize; PLACES] = strip.taps[..].try_into().expect("tiles have sixteen taps");
    let mut square = [[V::Number::ZERO; 16 * 16]; PLACES];
    for v in 0..plan.vectors() {
        // SAFETY: the caller's.
        unsafe {
            for c in 0..V::LANES {
                let mut d = [V::zero(); PLACES];
                plan.load_taps(v, from.wrapping_add(c * strip.size), taps, &mut d);
                let made = both_image_sides(d);
                for p in 0..PLACES {
                    made[p].store(square[p].as_mut_ptr().add(c * V::LANES));
                }
            }
            for p in 0..PLACES {
                let at = to.to.wrapping_add(p * to.slab + v * V::LANES * to.width);
                V::transpose_square(square[p].as_ptr(), at, to.width);
            }
        }
    }
}

on_vectors! {
    /// Transforms tiles of the output's gradient of one channel, whose strip begins at `from`.
    fn transform_gradients<T>(plan: &LoadPlan, from: *const T, strip: &Strip, to: TilePanels<T>) = gradients_on
}

/// # Safety
/// The strip has four taps and is readable, and there is room.
#[inline(always)]
unsafe fn gradients_on<V: PanelVector>(plan: &LoadPlan, from: *const V::Number, strip: &Strip, to: TilePanels<V::Number>) {
    let taps: &[isize; 4] = strip.taps[..].try_into().expect("tiles of the gradient have four taps");
    for v in 0..plan.vectors() {
        let at = to.to.wrapping_add(v / to.vectors * to.panel + v % to.vectors * V::LANES);
        // SAFETY: the caller's.
        unsafe {
            let mut e = [V::zero(); 4];
            plan.load_taps(v, from, taps, &mut e);
            let columns = [gradient_side([e[0], e[2]]), gradient_side([e[1], e[3]])];
            for i in 0..4 {
                let row = gradient_side([columns[0][i], columns[1][i]]);
                for j in 0..4 {
                    row[j].store(at.wrapping_add((4 * i + j) * to.slab));
                }
            }
        }
    }
}

/// Sums over parts of the tiles: place `p` of row `r` and channel `c` at `from + p * slab + r * channels + c`, parts `apart`.
#[derive(Debug, Clone, Copy)]
pub(super) struct GradientParts<T> {
    pub from: *const T,
    pub slab: usize,
    pub parts: usize,
    pub apart: usize,
    pub channels: usize,
    /// Nine for each channel of each row.
    pub to: *mut T,
}

on_vectors! {
    /// Adds parts up, and transforms the sums of some rows to the gradient of the weights. True means that it is finite.
    fn transform_parts<T>(g: &GradientParts<T>, rows: Range<usize>) -> bool = parts_on
}

/// # Safety
/// The sums are readable, and the gradient writable.
#[inline(always)]
unsafe fn parts_on<V: PanelVector>(g: &GradientParts<V::Number>, rows: Range<usize>) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let (half, mut check) = (V::splat(V::Number::HALF), V::zero());
        for r in rows {
            for first in (0..g.channels).step_by(V::LANES) {
                let n = V::LANES.min(g.channels - first);
                let mut m = [V::zero(); PLACES];
                for p in 0..PLACES {
                    let from = g.from.wrapping_add(p * g.slab + r * g.channels + first);
                    m[p] = V::load_first(from, n);
                    for part in 1..g.parts {
                        m[p] = m[p].plus(V::load_first(from.wrapping_add(part * g.apart), n));
                    }
                }
                let mut columns = [[V::zero(); 3]; 4];
                for j in 0..4 {
                    columns[j] = back_side([m[j], m[4 + j], m[8 + j], m[12 + j]], half);
                }
                let mut lanes = [[V::Number::ZERO; 16]; 9];
                for i in 0..3 {
                    let row = back_side([columns[0][i], columns[1][i], columns[2][i], columns[3][i]], half);
                    for j in 0..3 {
                        // Infinity times zero is nan.
                        check = row[j].fma(V::zero(), check);
                        row[j].store(lanes[3 * i + j].as_mut_ptr());
                    }
                }
                let to = g.to.wrapping_add((r * g.channels + first) * 9);
                for c in 0..n {
                    for t in 0..9 {
                        *to.add(9 * c + t) = lanes[t][c];
                    }
                }
            }
        }
        check.total().is_finite()
    }
}
