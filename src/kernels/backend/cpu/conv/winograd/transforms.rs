//! The transforms. Of F(2x2, 3x3) they are, with
//!
//! ```text
//!     | 1  0 -1  0 |        | 1    0   0   |
//! B = | 0  1  1  0 |    G = | 1/2  1/2 1/2 |    A = | 1 1  1  0 |
//!     | 0 -1  1  0 |        | 1/2 -1/2 1/2 |        | 0 1 -1 -1 |
//!     | 0  1  0 -1 |        | 0    0   1   |
//! ```
//!
//! a tile of 2x2 results is `A (G g G' * B d B') A'`, where `g` are the 3x3 weights, `d` the 4x4 elements of the image and `*` is elementwise.
//! Of the others see `filter`. K weights, N elements and R places of a side name the filter here. Item `N i + j` of a transformed tile, or place
//! `R i + j`, is row `i`, column `j`.

#![allow(clippy::needless_range_loop, reason = "indices that the compiler knows keep vectors in registers")]

use super::filter::{Filter, ITEMS, Item, TAPS};
use crate::backend::cpu::conv::geometry::Strip;
use crate::backend::cpu::conv::patches::LoadPlan;
use crate::backend::cpu::matmul::on_vectors::on_vectors;
use crate::backend::cpu::matmul::panel_vector::{CoreNumber, PanelVector};
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::host::memory::cache_line::prefetch_line;
use std::ops::Range;

/// Calls a function with K, N and N x N of a filter.
macro_rules! with_sizes {
    ($filter:expr, $call:ident($($a:expr),*)) => {
        match $filter {
            Filter::Three => $call::<V, 3, 4, 16>($($a),*),
            Filter::Two => $call::<V, 2, 3, 9>($($a),*),
            Filter::ThreeByTwo => $call::<V, 3, 5, 25>($($a),*),
            Filter::FourByTwo => $call::<V, 4, 6, 36>($($a),*),
        }
    };
}

/// B times a column of the image.
#[inline(always)]
unsafe fn image_side<V: PanelVector, const K: usize, const N: usize>(d: [V; N]) -> [V; N] {
    let mut made = d;
    // SAFETY: the machine has the instruction set, here and below.
    unsafe {
        if N == 4 {
            made[0] = d[0].minus(d[2]);
            made[1] = d[1].plus(d[2]);
            made[2] = d[2].minus(d[1]);
            made[3] = d[1].minus(d[3]);
        } else if N == 3 {
            made[0] = d[0].minus(d[1]);
            made[2] = d[2].minus(d[1]);
        } else if N == 5 {
            made[0] = d[0].minus(d[2]);
            made[3] = d[4].minus(d[2]);
            made[4] = d[3];
        } else {
            made[0] = d[0].minus(d[2]);
            made[1] = d[1].minus(d[3]);
            made[4] = d[4].minus(d[2]);
            made[5] = d[5].minus(d[3]);
        }
    }
    made
}

/// G times a column of weights.
#[inline(always)]
unsafe fn weight_side<V: PanelVector, const K: usize, const N: usize>(g: [V; K], half: V) -> [V; N] {
    // SAFETY: as above.
    unsafe {
        let mut made = [V::zero(); N];
        if N == 4 {
            let ends = g[0].plus(g[2]);
            made[0] = g[0];
            made[1] = ends.plus(g[1]).fma(half, V::zero());
            made[2] = ends.minus(g[1]).fma(half, V::zero());
            made[3] = g[2];
        } else if N == 3 {
            made[0] = g[0];
            made[1] = g[0].plus(g[1]);
            made[2] = g[1];
        } else if N == 5 {
            made[0] = g[0];
            made[1] = g[1];
            made[2] = g[0].plus(g[2]);
            made[3] = g[2];
            made[4] = g[1];
        } else {
            made[0] = g[0];
            made[1] = g[1];
            made[2] = g[0].plus(g[2]);
            made[3] = g[1].plus(g[3]);
            made[4] = g[2];
            made[5] = g[3];
        }
        made
    }
}

/// A times a column of places.
#[inline(always)]
unsafe fn result_side<V: PanelVector, const R: usize>(m: [V; R]) -> [V; 2] {
    // SAFETY: as above.
    unsafe { if R == 4 { [m[0].plus(m[1]).plus(m[2]), m[1].minus(m[2]).minus(m[3])] } else { [m[0].plus(m[1]), m[1].plus(m[2])] } }
}

/// A' times a column of two.
#[inline(always)]
unsafe fn gradient_side<V: PanelVector, const R: usize>(e: [V; 2]) -> [V; R] {
    // SAFETY: as above.
    unsafe {
        let mut made = [V::zero(); R];
        made[0] = e[0];
        made[1] = e[0].plus(e[1]);
        if R == 4 {
            made[2] = e[0].minus(e[1]);
            made[3] = V::zero().minus(e[1]);
        } else {
            made[2] = e[1];
        }
        made
    }
}

/// G' times a column of items.
#[inline(always)]
unsafe fn back_side<V: PanelVector, const K: usize, const N: usize>(m: [V; N], half: V) -> [V; K] {
    // SAFETY: as above.
    unsafe {
        let mut made = [V::zero(); K];
        if N == 4 {
            let both = m[1].plus(m[2]).fma(half, V::zero());
            made[0] = m[0].plus(both);
            made[1] = m[1].minus(m[2]).fma(half, V::zero());
            made[2] = both.plus(m[3]);
        } else if N == 3 {
            made[0] = m[0].plus(m[1]);
            made[1] = m[1].plus(m[2]);
        } else if N == 5 {
            made[0] = m[0].plus(m[2]);
            made[1] = m[1].plus(m[4]);
            made[2] = m[2].plus(m[3]);
        } else {
            for k in 0..4 {
                made[k] = m[k].plus(m[k + 2]);
            }
        }
        made
    }
}

/// B d B'.
#[inline(always)]
unsafe fn both_image_sides<V: PanelVector, const K: usize, const N: usize, const I: usize>(d: [V; I]) -> [V; I] {
    let mut made = d;
    // SAFETY: as above.
    unsafe {
        let mut columns = [[V::zero(); N]; N];
        for j in 0..N {
            let mut column = [V::zero(); N];
            for i in 0..N {
                column[i] = d[N * i + j];
            }
            columns[j] = image_side::<V, K, N>(column);
        }
        for i in 0..N {
            let mut row = [V::zero(); N];
            for j in 0..N {
                row[j] = columns[j][i];
            }
            let row = image_side::<V, K, N>(row);
            for j in 0..N {
                made[N * i + j] = row[j];
            }
        }
    }
    made
}

/// Where weights lie, and where they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightsToTransform<'a, T> {
    pub from: *const T,
    pub row: usize,
    pub channel: usize,
    /// Where the weight lies that meets row `i` and column `j`, at `K i + j`. All lie in `TAPS` neighbours.
    pub taps: &'a [usize],
    pub channels: usize,
    pub to: *mut T,
    pub items: &'a [Item; ITEMS],
}

on_vectors! {
    /// Transforms the weights of some rows.
    fn transform_weights<T>(filter: Filter, w: &WeightsToTransform<'_, T>, rows: Range<usize>) = weights_on
}

/// # Safety
/// The weights are readable, and there is room.
#[inline(always)]
unsafe fn weights_on<V: PanelVector>(filter: Filter, w: &WeightsToTransform<'_, V::Number>, rows: Range<usize>) {
    // SAFETY: the caller's.
    unsafe { with_sizes!(filter, weights_of(w, rows)) }
}

/// # Safety
/// As for `transform_weights`.
#[inline(always)]
unsafe fn weights_of<V: PanelVector, const K: usize, const N: usize, const I: usize>(
    w: &WeightsToTransform<'_, V::Number>,
    rows: Range<usize>,
) {
    let start = w.taps.iter().copied().min().unwrap_or(0);
    let span = w.taps.iter().map(|t| t - start + 1).max().unwrap_or(0);
    assert!((4..=TAPS).contains(&span) && w.taps.len() == K * K, "the weights of a channel lie together");
    for near in (0..w.channels).step_by(2 * V::LANES) {
        for r in rows.clone() {
            // Two vectors of a row, so that whole lines are written.
            for first in (near..w.channels.min(near + 2 * V::LANES)).step_by(V::LANES) {
                let n = V::LANES.min(w.channels - first);
                let from = w.from.wrapping_add(r * w.row + first * w.channel + start);
                let to = w.to.wrapping_add(first);
                // A vector for each weight of a channel.
                let mut lanes = [V::Number::ZERO; TAPS * 16];
                // What this row has next is asked for: channels may lie far apart.
                for c in 0..n {
                    prefetch_line(from.wrapping_add((c + 2 * V::LANES) * w.channel));
                }
                // SAFETY: the caller's.
                unsafe {
                    V::put_columns(|c| from.wrapping_add(c.min(n - 1) * w.channel), span, lanes.as_mut_ptr());
                    let half = V::splat(V::Number::HALF);
                    let mut columns = [[V::zero(); N]; K];
                    for j in 0..K {
                        let mut g = [V::zero(); K];
                        for i in 0..K {
                            g[i] = V::load(lanes.as_ptr().wrapping_add((w.taps[K * i + j] - start) * V::LANES));
                        }
                        columns[j] = weight_side::<V, K, N>(g, half);
                    }
                    for i in 0..N {
                        let mut row = [V::zero(); K];
                        for j in 0..K {
                            row[j] = columns[j][i];
                        }
                        let row = weight_side::<V, K, N>(row, half);
                        for j in 0..N {
                            let item = w.items[N * i + j];
                            let to = to.wrapping_add(item.at + r * item.step);
                            if n == V::LANES {
                                row[j].store(to);
                            } else {
                                row[j].store_first(to, n);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where transformed tiles go: item `i` of vector `v` to `to + items[i].at + v / vectors * items[i].step + v % vectors * LANES`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TilePanels<'a, T> {
    pub to: *mut T,
    pub items: &'a [Item; ITEMS],
    /// Vectors of a panel.
    pub vectors: usize,
}

impl<T> TilePanels<'_, T> {
    #[inline(always)]
    fn item(&self, item: usize, panel: usize) -> usize {
        let Item { at, step } = self.items[item];
        at + panel * step
    }
}

on_vectors! {
    /// Transforms the tiles of one channel, whose strip begins at `from`.
    fn transform_tiles<T>(filter: Filter, plan: &LoadPlan, from: *const T, strip: &Strip, to: TilePanels<'_, T>) = tiles_on
}

/// # Safety
/// The strip has the taps of the filter's tiles and is readable, and there is room.
#[inline(always)]
unsafe fn tiles_on<V: PanelVector>(filter: Filter, plan: &LoadPlan, from: *const V::Number, strip: &Strip, to: TilePanels<'_, V::Number>) {
    // SAFETY: the caller's.
    unsafe { with_sizes!(filter, tiles_of(plan, from, strip, to)) }
}

/// # Safety
/// As for `transform_tiles`.
#[inline(always)]
unsafe fn tiles_of<V: PanelVector, const K: usize, const N: usize, const I: usize>(
    plan: &LoadPlan,
    from: *const V::Number,
    strip: &Strip,
    to: TilePanels<'_, V::Number>,
) {
    let taps: &[isize; I] = strip.taps[..].try_into().expect("as many taps as a tile has elements");
    for v in 0..plan.vectors() {
        // SAFETY: the caller's.
        unsafe {
            let mut d = [V::zero(); I];
            plan.load_taps(v, from, taps, &mut d);
            let made = both_image_sides::<V, K, N, I>(d);
            let (panel, at) = (v / to.vectors, to.to.wrapping_add(v % to.vectors * V::LANES));
            for i in 0..I {
                made[i].store(at.wrapping_add(to.item(i, panel)));
            }
        }
    }
}

/// Where the places of one row of the product lie: the first one, and how far they are apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacesOfRow<T> {
    pub from: *const T,
    pub slab: usize,
}

on_vectors! {
    /// The results of `tiles` tiles of one row of the product: the upper results of all tiles to `to`, the lower ones `pitch` behind. True means
    /// that all are finite. Whole vectors are read and written.
    fn transform_results<T>(filter: Filter, from: PlacesOfRow<T>, tiles: usize, bias: T, to: *mut T, pitch: usize) -> bool = results_on
}

/// # Safety
/// As said.
#[inline(always)]
unsafe fn results_on<V: PanelVector>(
    filter: Filter,
    from: PlacesOfRow<V::Number>,
    tiles: usize,
    bias: V::Number,
    to: *mut V::Number,
    pitch: usize,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        match filter.places_of_side() {
            4 => results_of::<V, 4>(from, tiles, bias, to, pitch),
            _ => results_of::<V, 3>(from, tiles, bias, to, pitch),
        }
    }
}

/// # Safety
/// As for `transform_results`.
#[inline(always)]
unsafe fn results_of<V: PanelVector, const R: usize>(
    PlacesOfRow { from, slab }: PlacesOfRow<V::Number>,
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
            let mut columns = [[V::zero(); 2]; R];
            for j in 0..R {
                let mut m = [V::zero(); R];
                for i in 0..R {
                    m[i] = V::load(from.wrapping_add((R * i + j) * slab));
                }
                columns[j] = result_side(m);
            }
            for i in 0..2 {
                let mut row = [V::zero(); R];
                for j in 0..R {
                    row[j] = columns[j][i];
                }
                let [left, right] = result_side(row);
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

/// Where transformed tiles go that are rows of panels: item `i` of tile `t` and channel `c` to `to + i * slab + t * width + c`, for one vector of
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
    fn transform_tiles_transposed<T>(filter: Filter, plan: &LoadPlan, from: *const T, strip: &Strip, to: TransposedTiles<T>) = tiles_transposed_on
}

/// # Safety
/// The strips have the taps of the filter's tiles and are readable, and there is room.
#[inline(always)]
unsafe fn tiles_transposed_on<V: PanelVector>(
    filter: Filter,
    plan: &LoadPlan,
    from: *const V::Number,
    strip: &Strip,
    to: TransposedTiles<V::Number>,
) {
    // SAFETY: the caller's.
    unsafe { with_sizes!(filter, tiles_transposed_of(plan, from, strip, to)) }
}

/// # Safety
/// As for `transform_tiles_transposed`.
#[inline(always)]
unsafe fn tiles_transposed_of<V: PanelVector, const K: usize, const N: usize, const I: usize>(
    plan: &LoadPlan,
    from: *const V::Number,
    strip: &Strip,
    to: TransposedTiles<V::Number>,
) {
    let taps: &[isize; I] = strip.taps[..].try_into().expect("as many taps as a tile has elements");
    let mut square = [[V::Number::ZERO; 16 * 16]; I];
    for v in 0..plan.vectors() {
        // SAFETY: the caller's.
        unsafe {
            for c in 0..V::LANES {
                let mut d = [V::zero(); I];
                plan.load_taps(v, from.wrapping_add(c * strip.size), taps, &mut d);
                let made = both_image_sides::<V, K, N, I>(d);
                for i in 0..I {
                    made[i].store(square[i].as_mut_ptr().add(c * V::LANES));
                }
            }
            for i in 0..I {
                let at = to.to.wrapping_add(i * to.slab + v * V::LANES * to.width);
                V::transpose_square(square[i].as_ptr(), at, to.width);
            }
        }
    }
}

on_vectors! {
    /// Transforms tiles of the output's gradient of one channel, whose strip begins at `from`; of the items there are the places.
    fn transform_gradients<T>(filter: Filter, plan: &LoadPlan, from: *const T, strip: &Strip, to: TilePanels<'_, T>) = gradients_on
}

/// # Safety
/// The strip has four taps and is readable, and there is room.
#[inline(always)]
unsafe fn gradients_on<V: PanelVector>(
    filter: Filter,
    plan: &LoadPlan,
    from: *const V::Number,
    strip: &Strip,
    to: TilePanels<'_, V::Number>,
) {
    // SAFETY: the caller's.
    unsafe {
        match filter.places_of_side() {
            4 => gradients_of::<V, 4>(plan, from, strip, to),
            _ => gradients_of::<V, 3>(plan, from, strip, to),
        }
    }
}

/// # Safety
/// As for `transform_gradients`.
#[inline(always)]
unsafe fn gradients_of<V: PanelVector, const R: usize>(
    plan: &LoadPlan,
    from: *const V::Number,
    strip: &Strip,
    to: TilePanels<'_, V::Number>,
) {
    let taps: &[isize; 4] = strip.taps[..].try_into().expect("tiles of the gradient have four taps");
    for v in 0..plan.vectors() {
        // SAFETY: the caller's.
        unsafe {
            let mut e = [V::zero(); 4];
            plan.load_taps(v, from, taps, &mut e);
            let columns: [[V; R]; 2] = [gradient_side([e[0], e[2]]), gradient_side([e[1], e[3]])];
            let (panel, at) = (v / to.vectors, to.to.wrapping_add(v % to.vectors * V::LANES));
            for i in 0..R {
                let row: [V; R] = gradient_side([columns[0][i], columns[1][i]]);
                for j in 0..R {
                    row[j].store(at.wrapping_add(to.item(R * i + j, panel)));
                }
            }
        }
    }
}

/// Sums over parts of the tiles: item `i` of row `r` and channel `c` at `from + i * slab + r * channels + c`, parts `apart`.
#[derive(Debug, Clone, Copy)]
pub(super) struct GradientParts<T> {
    pub from: *const T,
    pub slab: usize,
    pub parts: usize,
    pub apart: usize,
    pub channels: usize,
    /// K x K for each channel of each row.
    pub to: *mut T,
}

on_vectors! {
    /// Adds parts up, and transforms the sums of some rows to the gradient of the weights. True means that it is finite.
    fn transform_parts<T>(filter: Filter, g: &GradientParts<T>, rows: Range<usize>) -> bool = parts_on
}

/// # Safety
/// The sums are readable, and the gradient writable.
#[inline(always)]
unsafe fn parts_on<V: PanelVector>(filter: Filter, g: &GradientParts<V::Number>, rows: Range<usize>) -> bool {
    // SAFETY: the caller's.
    unsafe { with_sizes!(filter, parts_of(g, rows)) }
}

/// # Safety
/// As for `transform_parts`.
#[inline(always)]
unsafe fn parts_of<V: PanelVector, const K: usize, const N: usize, const I: usize>(
    g: &GradientParts<V::Number>,
    rows: Range<usize>,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let (half, mut check) = (V::splat(V::Number::HALF), V::zero());
        for r in rows {
            for first in (0..g.channels).step_by(V::LANES) {
                let n = V::LANES.min(g.channels - first);
                let mut columns = [[V::zero(); K]; N];
                for j in 0..N {
                    let mut m = [V::zero(); N];
                    for i in 0..N {
                        let from = g.from.wrapping_add((N * i + j) * g.slab + r * g.channels + first);
                        m[i] = V::load_first(from, n);
                        for part in 1..g.parts {
                            m[i] = m[i].plus(V::load_first(from.wrapping_add(part * g.apart), n));
                        }
                    }
                    columns[j] = back_side::<V, K, N>(m, half);
                }
                let mut lanes = [[V::Number::ZERO; 16]; TAPS];
                for i in 0..K {
                    let mut row = [V::zero(); N];
                    for j in 0..N {
                        row[j] = columns[j][i];
                    }
                    let row = back_side::<V, K, N>(row, half);
                    for j in 0..K {
                        // Infinity times zero is nan.
                        check = row[j].fma(V::zero(), check);
                        row[j].store(lanes[K * i + j].as_mut_ptr());
                    }
                }
                let to = g.to.wrapping_add((r * g.channels + first) * K * K);
                for c in 0..n {
                    for t in 0..K * K {
                        *to.add(K * K * c + t) = lanes[t][c];
                    }
                }
            }
        }
        check.total().is_finite()
    }
}
