//! Pooling and windows as columns. Floats are pooled across planes where that is possible (`across`). Otherwise a row of windows is computed from the rows of the input that it touches: these are first combined element
//! by element into one row, which vectorises whatever the windows are, and then along that row. Tasks are rows of windows, or planes where
//! a pass writes the input's elements.
//!
//! Not here: normalised or weighted sums along one axis (`resample`), and the windows of products of matrices.

pub(super) mod algorithms;
pub(super) mod compute;
mod across;
mod average;
mod columns;
mod loops;
mod max;

pub use average::average;
pub use columns::{fold, unfold};
pub use max::{Places, max, max_adjoint};

use super::matmul::panel_vector::CoreNumber;
use crate::call::{Pool, PoolDivisor, WindowAxis};
use crate::error::Result;
use crate::host::memory::reserve::reserved;
use crate::host::threads::parallel_for;
use algorithms::{LONG, MOST, MOST_GIVEN_TO, PoolCall, PoolPlan};
use loops::Pooled;

/// Elements that one task reads or writes at least.
const TASK: usize = 1 << 15;
/// Windows of a row that are computed together.
const TILE: usize = 1024;

/// The windows along one axis: of each, the first position inside, which tap of the window that is, and how many follow at a distance of `step`.
struct Spans {
    first: Vec<usize>,
    tap: Vec<usize>,
    count: Vec<usize>,
    step: usize,
}

impl Spans {
    fn of(axis: &WindowAxis) -> Spans {
        let [mut first, mut tap, mut count] = [(); 3].map(|()| reserved(axis.output));
        for o in 0..axis.output {
            let taps = axis.taps(o);
            first.push(if taps.is_empty() { 0 } else { (axis.start(o) + (taps.start * axis.dilation) as isize) as usize });
            tap.push(taps.start);
            count.push(taps.len());
        }
        Spans { first, tap, count, step: axis.dilation }
    }

    /// The positions of window `o` that lie inside.
    #[inline(always)]
    fn positions(&self, o: usize) -> impl Iterator<Item = usize> + Clone {
        let (first, step) = (self.first[o], self.step);
        (0..self.count[o]).map(move |k| first + k * step)
    }
}

/// A row of windows, or a tile of one.
#[derive(Clone, Copy)]
struct RowTile {
    plane: usize,
    depth: usize,
    height: usize,
    from: usize,
    to: usize,
}

impl RowTile {
    /// The number of its first window, among all.
    fn at(&self, p: &Pool) -> usize {
        let [d, h, w] = p.axes.map(|a| a.output);
        ((self.plane * d + self.depth) * h + self.height) * w + self.from
    }
}

/// Runs `f` for all rows of windows, tile by tile; `make` makes what the tiles of one task share.
fn each_tile<S>(p: &Pool, make: impl Fn() -> S + Sync, f: impl Fn(&mut S, RowTile) + Sync) {
    let [d, h, w] = p.axes.map(|a| a.output);
    let (rows, tiles) = (p.planes * d * h, w.div_ceil(TILE));
    // What a row reads: the elements of its windows, which overlap along the row.
    let touched = p.axes[..2].iter().map(|a| if a.adaptive { a.input.div_ceil(a.output) } else { a.kernel }).fold(1, usize::saturating_mul);
    let cost = touched.saturating_mul(p.axes[2].input.div_ceil(tiles.max(1))).max(w.min(TILE)).max(1);
    let together = (TASK / cost).max(1);
    parallel_for((rows * tiles).div_ceil(together), |t| {
        let mut shared = make();
        for unit in t * together..(rows * tiles).min((t + 1) * together) {
            let (row, tile) = (unit / tiles, unit % tiles);
            let tile =
                RowTile { plane: row / (d * h), depth: row / h % d, height: row % h, from: tile * TILE, to: w.min((tile + 1) * TILE) };
            f(&mut shared, tile);
        }
    });
}

/// Runs `f` for every plane, several in one task.
fn each_plane<S>(p: &Pool, make: impl Fn() -> S + Sync, f: impl Fn(&mut S, usize) + Sync) {
    let together = (TASK / p.plane().max(p.windows()).max(1)).max(1);
    parallel_for(p.planes.div_ceil(together), |t| {
        let mut shared = make();
        for plane in t * together..p.planes.min((t + 1) * together) {
            f(&mut shared, plane);
        }
    });
}

/// Windows along a row whose elements are laid out with their padding: window `o` of a tile has the elements `o * stride + k * dilation`.
#[derive(Clone, Copy)]
struct Padded {
    axis: WindowAxis,
}

impl Padded {
    /// None where windows are no regular ones, or where the padding takes more room than the row.
    fn of(axis: &WindowAxis) -> Option<Padded> {
        let reach = axis.kernel.saturating_mul(axis.dilation);
        let room = axis.output.saturating_mul(axis.stride).saturating_add(reach);
        (!axis.adaptive && room <= 4 * axis.input + 64).then_some(Padded { axis: *axis })
    }

    /// The length of the row for windows `from..to`.
    fn len(&self, from: usize, to: usize) -> usize {
        (to - from - 1) * self.axis.stride + (self.axis.kernel - 1) * self.axis.dilation + 1
    }

    /// Which elements of the input the row for windows `from..to` has, and how many of the padding stand before them.
    fn inside(&self, from: usize, to: usize) -> (usize, usize, usize) {
        let start = self.axis.start(from);
        let end = start + self.len(from, to) as isize;
        let first = start.clamp(0, self.axis.input as isize);
        let last = end.clamp(first, self.axis.input as isize);
        (first as usize, last as usize, ((first - start) as usize).min(self.len(from, to)))
    }
}

/// As `average`, of floats.
///
/// # Safety
/// As for `average`.
pub unsafe fn average_of_floats<T: Pooled + CoreNumber>(p: &Pool, divisor: PoolDivisor, x: *const T, y: *mut T) {
    // SAFETY: the caller's.
    unsafe {
        match PoolPlan::to_run(&PoolCall::<T>::new(p, MOST)) {
            Some(PoolPlan::Across(of)) => across::average(&of, divisor, x, y),
            _ => average(p, divisor, x, y),
        }
    }
}

/// The adjoint of `average`: each element gets its share of the windows that it is in.
///
/// # Safety
/// As for `average`.
pub unsafe fn average_adjoint<T: Pooled + CoreNumber>(p: &Pool, divisor: PoolDivisor, g: *const T, x: *mut T) {
    // SAFETY: the caller's.
    unsafe {
        match PoolPlan::to_run(&PoolCall::<T>::new(p, MOST)) {
            Some(PoolPlan::Across(of)) => across::average_adjoint(&of, divisor, g, x),
            _ => average::average_adjoint(p, divisor, g, x),
        }
    }
}

/// Whether each window has an element inside, and a place in the plane is a number that floats can count.
fn has_places(p: &Pool) -> bool {
    let has_inside = p.has_taps() || p.axes.iter().all(|a| a.adaptive || *a == WindowAxis::ONE);
    has_inside && p.plane() < 1 << 24
}

/// As `max`, of floats.
///
/// # Errors
/// As for `max`.
///
/// # Safety
/// As for `max`.
pub unsafe fn max_of_floats<T: Pooled + CoreNumber>(
    p: &Pool,
    x: *const T,
    starts: *const i64,
    values: *mut T,
    places: Places,
) -> Result<()> {
    // One window of the whole plane is one run.
    let is_whole = p.axes.iter().all(|a| a.output == 1 && (a.adaptive || *a == WindowAxis::ONE));
    let whole = Pool { axes: [WindowAxis::ONE, WindowAxis::ONE, WindowAxis::adaptive(p.plane(), 1)], ..*p };
    let p = if is_whole { &whole } else { p };
    // Values alone of long rows that stand alone are vectors as they lie.
    let [d, h, w] = &p.axes;
    let is_row = matches!(places, Places::Nowhere)
        && d.kernel * h.kernel == 1
        && w.kernel <= 3
        && w.output >= LONG
        && !p.axes.iter().any(|a| a.adaptive);
    let has_places = starts.is_null() && has_places(p);
    // SAFETY: the caller's.
    unsafe {
        match PoolPlan::to_run(&PoolCall::<T> { is_row, has_places, ..PoolCall::new(p, MOST) }) {
            Some(PoolPlan::Across(of)) => across::max(&of, x, values, places),
            _ => max(p, x, starts, values, places)?,
        }
    }
    Ok(())
}

/// As `max_adjoint`, of taps.
///
/// # Errors
/// A tap is outside its plane.
///
/// # Safety
/// As for `max`.
pub unsafe fn max_adjoint_of_taps<T: Pooled + CoreNumber>(p: &Pool, g: *const T, taps: *const u8, to: *mut T) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        match PoolPlan::to_run(&PoolCall::<T>::new(p, MOST_GIVEN_TO)) {
            Some(PoolPlan::Across(of)) => max::checked(across::max_adjoint_of_taps(&of, g, taps, to), p.plane()),
            _ => max::max_adjoint_of_taps(p, g, taps, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{PoolDivisor, PoolPass};

    fn axis(input: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> WindowAxis {
        let output = (input + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
        WindowAxis { input, output, kernel, stride, pad, dilation, adaptive: false }
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn backward_passes_are_adjoints() {
        let regular = [axis(3, 2, 1, 1, 1), axis(5, 3, 2, 1, 1), axis(7, 2, 3, 1, 2)];
        let average = [axis(3, 2, 1, 1, 1), axis(5, 3, 2, 1, 1), axis(7, 3, 2, 1, 1)];
        let adaptive = [WindowAxis::adaptive(3, 2), WindowAxis::adaptive(5, 7), WindowAxis::adaptive(7, 3)];
        let number = |i: usize| ((i * 37 + 11) % 101) as f64 / 7.0;
        for (axes, columns) in [(regular, true), (average, false), (adaptive, false)] {
            let p = Pool { op: "pool", planes: 2, axes, pass: PoolPass::Unfold };
            let (n, m) = (2 * p.plane(), 2 * p.windows());
            let x: Vec<f64> = (0..n).map(number).collect();
            // SAFETY: all have as many elements as the windows say.
            unsafe {
                if columns {
                    let g: Vec<f64> = (0..m * p.kernel()).map(number).collect();
                    let (mut y, mut back) = (vec![0.0; g.len()], vec![0.0; n]);
                    unfold::<f64>(&p, x.as_ptr(), y.as_mut_ptr(), 0.0);
                    fold::<f64>(&p, g.as_ptr(), back.as_mut_ptr());
                    assert!((dot(&g, &y) - dot(&back, &x)).abs() < 1e-9 * dot(&g, &y).abs());
                } else {
                    let g: Vec<f64> = (0..m).map(number).collect();
                    for divisor in [PoolDivisor::Inside, PoolDivisor::Padded, PoolDivisor::Fixed(3)] {
                        let (mut y, mut back) = (vec![0.0; m], vec![0.0; n]);
                        average::average::<f64>(&p, divisor, x.as_ptr(), y.as_mut_ptr());
                        average_adjoint::<f64>(&p, divisor, g.as_ptr(), back.as_mut_ptr());
                        assert!((dot(&g, &y) - dot(&back, &x)).abs() < 1e-9 * dot(&g, &y).abs());
                    }
                }
                let (mut y, mut at) = (vec![0.0; m], vec![0i64; m]);
                max::<f64>(&p, x.as_ptr(), std::ptr::null(), y.as_mut_ptr(), Places::positions(at.as_mut_ptr())).unwrap();
                assert!(y.iter().zip(&at).enumerate().all(|(i, (y, at))| x[i / p.windows() * p.plane() + *at as usize] == *y));
                let mut back = vec![0.0; n];
                max_adjoint::<f64>(&p, y.as_ptr(), at.as_ptr(), back.as_mut_ptr()).unwrap();
                assert!((dot(&back, &x) - dot(&y, &y)).abs() < 1e-9 * dot(&y, &y));
                assert_eq!(p.has_taps(), columns || !axes[0].adaptive);
                if p.has_taps() {
                    let (mut same, mut taps, mut same_back) = (vec![0.0; m], vec![255u8; m], vec![0.0; n]);
                    max::<f64>(&p, x.as_ptr(), std::ptr::null(), same.as_mut_ptr(), Places::taps(taps.as_mut_ptr())).unwrap();
                    max_adjoint_of_taps::<f64>(&p, y.as_ptr(), taps.as_ptr(), same_back.as_mut_ptr()).unwrap();
                    assert!(same == y && same_back == back && taps.iter().all(|t| usize::from(*t) < p.kernel()));
                    taps[0] = 255;
                    assert!(max_adjoint_of_taps::<f64>(&p, y.as_ptr(), taps.as_ptr(), same_back.as_mut_ptr()).is_err());
                }
            }
        }
    }

    #[test]
    fn windows_of_whole_planes_are_as_others() {
        let axes = [WindowAxis::adaptive(3, 1), WindowAxis::adaptive(7, 1), WindowAxis::adaptive(20, 1)];
        let p = Pool { op: "max", planes: 9, axes, pass: PoolPass::Max { indices: true, given: false } };
        let x: Vec<f32> = (0..9 * p.plane()).map(|i| (i * 7919 % 211) as f32).collect();
        let (mut y, mut at) = ([[0.0; 9]; 2], [[0i64; 9]; 2]);
        // SAFETY: nine planes, with a window each.
        unsafe {
            max_of_floats::<f32>(&p, x.as_ptr(), std::ptr::null(), y[0].as_mut_ptr(), Places::positions(at[0].as_mut_ptr())).unwrap();
            max::<f32>(&p, x.as_ptr(), std::ptr::null(), y[1].as_mut_ptr(), Places::positions(at[1].as_mut_ptr())).unwrap();
        }
        assert!(y[0] == y[1] && at[0] == at[1]);
    }

    #[test]
    fn windows_with_places_have_an_element() {
        let of = |w: WindowAxis| has_places(&Pool { op: "max", planes: 1, axes: [WindowAxis::ONE, w, w], pass: PoolPass::Fold });
        assert!(of(WindowAxis::adaptive(5, 7)) && of(axis(7, 3, 2, 1, 1)));
        assert!(!of(axis(5, 2, 1, 2, 1)) && !of(WindowAxis::adaptive(5000, 3)));
    }

    #[test]
    fn the_first_of_equals_and_the_last_nan_win() {
        let p = |kernel| Pool {
            op: "max",
            planes: 1,
            axes: [WindowAxis::ONE, axis(2, kernel, 1, 0, 1), axis(3, 3, 1, 0, 1)],
            pass: PoolPass::Fold,
        };
        for (x, wanted) in [([1.0, 5.0, 5.0, 5.0, 2.0, 1.0], 1), ([1.0, f32::NAN, 5.0, f32::NAN, 2.0, 1.0], 3), ([f32::NEG_INFINITY; 6], 0)]
        {
            let (mut y, mut at) = ([0.0f32], [0i64]);
            // SAFETY: one window of six elements.
            unsafe { max::<f32>(&p(2), x.as_ptr(), std::ptr::null(), y.as_mut_ptr(), Places::positions(at.as_mut_ptr())).unwrap() };
            assert!(at[0] == wanted && y[0].to_bits() == x[wanted as usize].to_bits());
        }
    }
}
