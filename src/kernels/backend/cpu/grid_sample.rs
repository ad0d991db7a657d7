//! Images read at the places of a grid. Places are handled in tiles: the positions and weights of their neighbours are computed once, and
//! used for all channels.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, result, view};
use crate::backend::cpu::elem::float;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{GridBorder, GridMode, GridPass, GridSample};
use crate::error::Result;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::instance;
use smallvec::SmallVec;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Places of a tile.
const TILE: usize = 128;
/// The most neighbours of a place.
const MOST: usize = 16;
/// Elements that one task writes at least.
const TASK: usize = 1 << 15;
/// A neighbour outside of the image.
const OUTSIDE: i32 = -1;

/// float32 and float64.
pub trait GridNumber:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    fn of(v: f64) -> Self;
    fn down(self) -> Self;
    fn nearest(self) -> Self;
    fn size(self) -> Self;
    /// The position, if it is one of `n`.
    fn position(self, n: usize) -> Option<usize>;
}

macro_rules! numbers {
    ($($t:ty),+) => { $(
        impl GridNumber for $t {
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "one macro for both widths")]
            fn of(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn down(self) -> Self {
                self.floor()
            }
            #[inline(always)]
            fn nearest(self) -> Self {
                self.round_ties_even()
            }
            #[inline(always)]
            fn size(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn position(self, n: usize) -> Option<usize> {
                if self >= 0.0 && self <= (n - 1) as $t { Some(self as usize) } else { None }
            }
        }
    )+ };
}
numbers!(f32, f64);

/// The neighbours of a place along one axis: positions, weights, and the weights' derivatives by the grid's number.
#[derive(Clone, Copy)]
struct Along<T> {
    count: usize,
    at: [Option<usize>; 4],
    weight: [T; 4],
    slope: [T; 4],
}

/// A place brought inside, and the derivative of that.
#[inline(always)]
fn bounded<T: GridNumber>(u: T, n: usize, border: GridBorder, align_corners: bool) -> (T, T) {
    let (zero, one, last) = (T::of(0.0), T::of(1.0), T::of(n as f64 - 1.0));
    let (u, turn) = match border {
        GridBorder::Zeros => return (u, one),
        GridBorder::Border => (u, one),
        GridBorder::Reflection => {
            let (low, span) = if align_corners { (zero, last) } else { (T::of(-0.5), T::of(n as f64)) };
            if span == zero {
                return (zero, zero);
            }
            let (from, sign) = if u - low < zero { (low - u, -one) } else { (u - low, one) };
            let extra = from % span;
            if (from / span).down() % T::of(2.0) == zero { (extra + low, sign) } else { (span + low - extra, -sign) }
        }
    };
    // Nan counts as 0.
    if u > zero { if u < last { (u, turn) } else { (last, zero) } } else { (zero, zero) }
}

#[inline(always)]
fn along<T: GridNumber>(s: &GridSample, v: T, n: usize) -> Along<T> {
    let (one, half) = (T::of(1.0), T::of(2.0));
    let size = T::of(n as f64);
    let (u, scale) = if s.align_corners {
        ((v + one) / half * (size - one), (size - one) / half)
    } else {
        (((v + one) * size - one) / half, size / half)
    };
    let mut made = Along { count: 1, at: [None; 4], weight: [one; 4], slope: [T::default(); 4] };
    match s.mode {
        GridMode::Nearest => made.at[0] = bounded(u, n, s.border, s.align_corners).0.nearest().position(n),
        GridMode::Linear => {
            let (u, turn) = bounded(u, n, s.border, s.align_corners);
            let low = u.down();
            let (t, slope) = (u - low, scale * turn);
            made.count = 2;
            (made.at[0], made.at[1]) = (low.position(n), (low + one).position(n));
            (made.weight[0], made.weight[1]) = (one - t, t);
            (made.slope[0], made.slope[1]) = (-slope, slope);
        }
        GridMode::Cubic => {
            let low = u.down();
            let t = u - low;
            made.count = 4;
            let xs = [t + one, t, one - t, T::of(2.0) - t];
            for (k, x) in xs.into_iter().enumerate() {
                let (at, _) = bounded(low + T::of(k as f64 - 1.0), n, s.border, s.align_corners);
                made.at[k] = at.position(n);
                const A: f64 = -0.75;
                let c = if k == 1 || k == 2 { [A + 2.0, -(A + 3.0), 0.0, 1.0] } else { [A, -5.0 * A, 8.0 * A, -4.0 * A] }.map(T::of);
                made.weight[k] = ((c[0] * x + c[1]) * x + c[2]) * x + c[3];
                let slope = (T::of(3.0) * c[0] * x + T::of(2.0) * c[1]) * x + c[2];
                made.slope[k] = if k < 2 { slope * scale } else { -slope * scale };
            }
        }
    }
    made
}

/// The neighbours of a tile's places: positions in a plane, weights and, for the gradient of the grid, their derivatives along each axis.
struct Tile<T> {
    count: usize,
    at: [[i32; TILE]; MOST],
    weight: [[T; TILE]; MOST],
    slope: Vec<[[T; TILE]; MOST]>,
}

impl<T: GridNumber> Tile<T> {
    fn new(slopes: usize) -> Box<Tile<T>> {
        let none = [[T::default(); TILE]; MOST];
        Box::new(Tile { count: 0, at: [[OUTSIDE; TILE]; MOST], weight: none, slope: vec![none; slopes] })
    }
}

/// The tile for the places whose numbers these are.
#[inline(always)]
fn fill_tile<T: GridNumber>(t: &mut Tile<T>, s: &GridSample, grid: &[T]) {
    let sizes = s.axes();
    let rank = sizes.len();
    for (p, v) in grid.chunks_exact(rank).enumerate() {
        let mut axes = [Along { count: 1, at: [Some(0); 4], weight: [T::of(1.0); 4], slope: [T::default(); 4] }; 3];
        for (a, n) in sizes.iter().enumerate() {
            // The grid's first number is the place along the last axis.
            axes[a] = along(s, v[rank - 1 - a], *n);
        }
        let [a, b, c] = &axes;
        let mut k = 0;
        for i in 0..a.count {
            for j in 0..b.count {
                for l in 0..c.count {
                    let place = match (a.at[i], b.at[j], c.at[l]) {
                        (Some(x), Some(y), Some(z)) if rank == 3 => ((x * sizes[1] + y) * sizes[2] + z) as i32,
                        (Some(x), Some(y), Some(_)) => (x * sizes[1] + y) as i32,
                        _ => OUTSIDE,
                    };
                    t.at[k][p] = place;
                    t.weight[k][p] = a.weight[i] * b.weight[j] * c.weight[l];
                    if !t.slope.is_empty() {
                        t.slope[0][k][p] = a.slope[i] * b.weight[j] * c.weight[l];
                        t.slope[1][k][p] = a.weight[i] * b.slope[j] * c.weight[l];
                        if rank == 3 {
                            t.slope[2][k][p] = a.weight[i] * b.weight[j] * c.slope[l];
                        }
                    }
                    k += 1;
                }
            }
        }
        t.count = k;
    }
}

/// The element at a neighbour's position, 0 outside.
///
/// # Safety
/// A position that is not outside lies inside the plane.
#[inline(always)]
unsafe fn read<T: GridNumber>(plane: &[T], at: i32) -> T {
    // SAFETY: the caller's; there is an element 0.
    let v = unsafe { *plane.get_unchecked(at.max(0) as usize) };
    if at < 0 { T::default() } else { v }
}

/// The elements at a tile's places.
#[inline(always)]
fn read_tile<T: GridNumber>(t: &Tile<T>, plane: &[T], to: &mut [T]) {
    if t.count == 4 {
        let n = to.len();
        let ([a, b, c, d], [v, w, x, y]) = ([0, 1, 2, 3].map(|k| &t.at[k][..n]), [0, 1, 2, 3].map(|k| &t.weight[k][..n]));
        for p in 0..n {
            // SAFETY: `fill` makes positions inside the plane.
            let [e, f, g, h] = unsafe { [read(plane, a[p]), read(plane, b[p]), read(plane, c[p]), read(plane, d[p])] };
            to[p] = e * v[p] + f * w[p] + g * x[p] + h * y[p];
        }
        return;
    }
    for k in 0..t.count {
        let (at, weight) = (&t.at[k][..to.len()], &t.weight[k][..to.len()]);
        for p in 0..to.len() {
            // SAFETY: `fill` makes positions inside the plane.
            let v = unsafe { read(plane, at[p]) } * weight[p];
            to[p] = if k == 0 { v } else { to[p] + v };
        }
    }
}

instance!(fn read_places<T: GridNumber> = read_tile(t: &Tile<T>, plane: &[T], to: &mut [T]));
instance!(fn fill<T: GridNumber> = fill_tile(t: &mut Tile<T>, s: &GridSample, grid: &[T]));

/// Runs a request. `ins` are its operands.
///
/// # Safety
/// All have as many elements as the request says; the output overlaps nothing else.
pub unsafe fn grid_sample<T: GridNumber>(s: &GridSample, ins: &[*const T], out: *mut T) {
    let (plane, places, channels, rank) = (s.plane(), s.places, s.channels, s.axes().len());
    let ins: Vec<SharedPointer<*const T>> = ins.iter().map(|p| SharedPointer::new(*p)).collect();
    let out = SharedPointer::new(out);
    let tiles = places.div_ceil(TILE);
    // The grid's numbers, planes of the image, and rows of gradients lie inside the operands, as the caller promises.
    let grid_of = |k: usize, b: usize, from: usize, n: usize| {
        let first = ins[k].get().wrapping_add((b * places + from) * rank);
        // SAFETY: see above.
        unsafe { from_raw_parts(first, n * rank) }
    };
    let plane_of = |k: usize, b: usize, c: usize| {
        // SAFETY: see above.
        unsafe { from_raw_parts(ins[k].get().add((b * channels + c) * plane), plane) }
    };
    let row_of = |b: usize, c: usize, from: usize, n: usize| {
        // SAFETY: see above.
        unsafe { from_raw_parts(ins[0].get().add((b * channels + c) * places + from), n) }
    };
    match s.pass {
        GridPass::Read => {
            let together = (TASK / (TILE * channels).max(1)).max(1);
            parallel_for((s.batch * tiles).div_ceil(together), |task| {
                let mut t = Tile::new(0);
                for unit in task * together..(s.batch * tiles).min((task + 1) * together) {
                    let (b, from) = (unit / tiles, unit % tiles * TILE);
                    let n = TILE.min(places - from);
                    fill(&mut t, s, grid_of(1, b, from, n));
                    for c in 0..channels {
                        // SAFETY: the caller's; each task has places of its own.
                        let to = unsafe { from_raw_parts_mut(out.at((b * channels + c) * places + from), n) };
                        read_places(&t, plane_of(0, b, c), to);
                    }
                }
            });
        }
        GridPass::ImageGradient => {
            // Blocks of channels, for each of which the neighbours are computed again.
            let block = (channels.div_ceil(4)).clamp(1, 16).max(TASK / (16 * (plane + places)).max(1)).min(channels.max(1));
            let blocks = channels.div_ceil(block);
            parallel_for(s.batch * blocks, |task| {
                let (b, first) = (task / blocks, task % blocks * block);
                let last = channels.min(first + block);
                // SAFETY: the caller's; each task has channels of its own.
                let to = unsafe { from_raw_parts_mut(out.at((b * channels + first) * plane), (last - first) * plane) };
                to.fill(T::default());
                let mut t = Tile::new(0);
                for from in (0..places).step_by(TILE) {
                    let n = TILE.min(places - from);
                    fill(&mut t, s, grid_of(2, b, from, n));
                    for c in first..last {
                        let (g, to) = (row_of(b, c, from, n), &mut to[(c - first) * plane..][..plane]);
                        for (p, g) in g.iter().enumerate() {
                            for k in 0..t.count {
                                if let Some(to) = to.get_mut(t.at[k][p] as u32 as usize) {
                                    *to = *to + t.weight[k][p] * *g;
                                }
                            }
                        }
                    }
                }
            });
        }
        GridPass::GridGradient => {
            let together = (TASK / (TILE * channels).max(1)).max(1);
            parallel_for((s.batch * tiles).div_ceil(together), |task| {
                let mut t = Tile::new(rank);
                for unit in task * together..(s.batch * tiles).min((task + 1) * together) {
                    let (b, from) = (unit / tiles, unit % tiles * TILE);
                    let n = TILE.min(places - from);
                    fill(&mut t, s, grid_of(2, b, from, n));
                    let mut sums = [[T::default(); TILE]; 3];
                    for c in 0..channels {
                        let (g, plane) = (row_of(b, c, from, n), plane_of(1, b, c));
                        for k in 0..t.count {
                            for p in 0..n {
                                // SAFETY: `fill` makes positions inside the plane.
                                let v = unsafe { read(plane, t.at[k][p]) } * g[p];
                                for (sum, slope) in sums.iter_mut().zip(&t.slope) {
                                    sum[p] = sum[p] + v * slope[k][p];
                                }
                            }
                        }
                    }
                    // SAFETY: the caller's; each task has places of its own.
                    let to = unsafe { from_raw_parts_mut(out.at((b * places + from) * rank), n * rank) };
                    for (p, to) in to.chunks_exact_mut(rank).enumerate() {
                        for (a, to) in to.iter_mut().enumerate() {
                            *to = sums[rank - 1 - a][p];
                        }
                    }
                }
            });
        }
    }
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for GridSample {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(g: &GridSample, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(g, outs, 0)?;
        let views = (0..ins.len()).map(|k| view(g.op, ins, k)).collect::<Result<SmallVec<[View<'_>; 3]>>>()?;
        // SAFETY: see above.
        let dense = views.iter().map(|v| unsafe { DenseOperand::of(v) }).collect::<Result<SmallVec<[DenseOperand<'_>; 3]>>>()?;
        float!(out.dtype, T => {
            let from: SmallVec<[*const T; 3]> = dense.iter().map(|d| d.ptr().cast()).collect();
            // SAFETY: see above; `GridSample` describes operands and output.
            unsafe { grid_sample::<T>(g, &from, out.ptr().cast()) }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_of_the_image_is_the_adjoint() {
        let number = |i: usize| ((i * 37 + 11) % 101) as f64 / 40.0 - 1.2;
        for (sizes, mode) in
            [([0, 3, 4], GridMode::Linear), ([2, 3, 4], GridMode::Linear), ([0, 4, 3], GridMode::Cubic), ([0, 3, 3], GridMode::Nearest)]
        {
            for border in [GridBorder::Zeros, GridBorder::Border, GridBorder::Reflection] {
                for align_corners in [false, true] {
                    let s = |pass| GridSample { op: "grid", batch: 2, channels: 3, sizes, places: 5, mode, border, align_corners, pass };
                    let (read, back) = (s(GridPass::Read), s(GridPass::ImageGradient));
                    let x: Vec<f64> = (0..6 * read.plane()).map(number).collect();
                    let grid: Vec<f64> = (0..10 * read.axes().len()).map(|i| number(i * 7 + 3)).collect();
                    let g: Vec<f64> = (0..30).map(|i| number(i + 5)).collect();
                    let (mut y, mut to) = (vec![0.0; 30], vec![0.0; x.len()]);
                    // SAFETY: as many elements as the requests say.
                    unsafe {
                        grid_sample::<f64>(&read, &[x.as_ptr(), grid.as_ptr()], y.as_mut_ptr());
                        grid_sample::<f64>(&back, &[g.as_ptr(), x.as_ptr(), grid.as_ptr()], to.as_mut_ptr());
                    }
                    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(p, q)| p * q).sum::<f64>();
                    assert!((dot(&g, &y) - dot(&to, &x)).abs() < 1e-12 * (1.0 + dot(&g, &g)));
                }
            }
        }
    }
}
