//! Images of other sizes, and read at the places of a grid, on the reference backend, from the definition.

use rgrad_kernels::call::{GridBorder, GridMode, GridPass, GridSample, Resample};

/// Weighted sums along the middle axis.
pub fn resampled(r: &Resample, x: &[f64]) -> Vec<f64> {
    let (n, m) = (r.table.input(), r.table.output());
    let mut made = vec![0.0; r.outer * m * r.inner];
    for (i, to) in made.iter_mut().enumerate() {
        let (outer, o, inner) = (i / (m * r.inner), i / r.inner % m, i % r.inner);
        let (at, weights) = r.table.row(o);
        *to = at.iter().zip(weights).map(|(a, w)| w * x[(outer * n + *a as usize) * r.inner + inner]).sum();
    }
    made
}

/// A number and its derivative by the grid's number.
type Dual = (f64, f64);

fn clipped(p: Dual, size: f64) -> Dual {
    if p.0 <= 0.0 {
        (0.0, 0.0)
    } else if p.0 >= size - 1.0 {
        (size - 1.0, 0.0)
    } else {
        p
    }
}

/// Brings a position inside of the axis.
fn inside(g: &GridSample, p: Dual, size: f64) -> Dual {
    match g.border {
        GridBorder::Zeros => p,
        GridBorder::Border => clipped(p, size),
        GridBorder::Reflection => {
            let (low, span) = if g.align_corners { (0.0, size - 1.0) } else { (-0.5, size) };
            if span == 0.0 {
                return (0.0, 0.0);
            }
            let (far, sign) = ((p.0 - low).abs(), if p.0 < low { -1.0 } else { 1.0 });
            let (turns, rest) = ((far / span).floor(), far % span);
            let even = turns % 2.0 == 0.0;
            clipped(if even { (rest + low, sign * p.1) } else { (span - rest + low, -sign * p.1) }, size)
        }
    }
}

/// The weight of cubic convolution at a distance, and its derivative.
fn cubic(t: f64) -> Dual {
    let (a, d) = (-0.75, t.abs());
    let (w, slope) = if d <= 1.0 {
        (((a + 2.0) * d - (a + 3.0)) * d * d + 1.0, (3.0 * (a + 2.0) * d - 2.0 * (a + 3.0)) * d)
    } else {
        (((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a, (3.0 * a * d - 10.0 * a) * d + 8.0 * a)
    };
    (w, slope * t.signum())
}

/// The neighbours of a place along one axis: where they are, if inside, and their weights.
fn neighbours(g: &GridSample, v: f64, size: usize) -> Vec<(Option<usize>, Dual)> {
    let n = size as f64;
    let place = |p: f64| (0.0..n).contains(&p).then_some(p as usize);
    let p: Dual = if g.align_corners { ((v + 1.0) / 2.0 * (n - 1.0), (n - 1.0) / 2.0) } else { (((v + 1.0) * n - 1.0) / 2.0, n / 2.0) };
    match g.mode {
        GridMode::Nearest => vec![(place(inside(g, p, n).0.round_ties_even()), (1.0, 0.0))],
        GridMode::Linear => {
            let p = inside(g, p, n);
            let (low, t) = (p.0.floor(), p.0 - p.0.floor());
            vec![(place(low), (1.0 - t, -p.1)), (place(low + 1.0), (t, p.1))]
        }
        GridMode::Cubic => {
            let low = p.0.floor();
            (-1..3)
                .map(|k| {
                    let at = low + f64::from(k);
                    let (w, slope) = cubic(p.0 - at);
                    (place(inside(g, (at, 0.0), n).0), (w, slope * p.1))
                })
                .collect()
        }
    }
}

/// The output of a pass.
pub fn sampled(g: &GridSample, ins: &[Vec<f64>]) -> Vec<f64> {
    let axes = g.axes();
    let (rank, plane) = (axes.len(), g.plane());
    let (cotangent, x, grid) = match g.pass {
        GridPass::Read => (None, &ins[0], &ins[1]),
        GridPass::ImageGradient | GridPass::GridGradient => (Some(&ins[0]), &ins[1], &ins[2]),
    };
    let mut made = match g.pass {
        GridPass::Read => vec![0.0; g.batch * g.channels * g.places],
        GridPass::ImageGradient => vec![0.0; x.len()],
        GridPass::GridGradient => vec![0.0; grid.len()],
    };
    for at in 0..g.batch * g.places {
        let (n, place) = (at / g.places, at % g.places);
        let numbers = &grid[at * rank..(at + 1) * rank];
        // The grid names the last axis first.
        let lists: Vec<_> = (0..rank).map(|d| neighbours(g, numbers[rank - 1 - d], axes[d])).collect();
        let count: usize = lists.iter().map(Vec::len).product();
        for k in 0..count {
            let (mut rest, mut position, mut parts) = (k, Some(0), vec![]);
            for (d, list) in lists.iter().enumerate() {
                let (i, dual) = list[rest % list.len()];
                rest /= list.len();
                position = position.zip(i).map(|(p, i)| p * axes[d] + i);
                parts.push(dual);
            }
            let Some(position) = position else { continue };
            let weight: f64 = parts.iter().map(|p| p.0).product();
            for c in 0..g.channels {
                let (from, to) = ((n * g.channels + c) * plane + position, (n * g.channels + c) * g.places + place);
                match (g.pass, cotangent) {
                    (GridPass::Read, _) | (_, None) => made[to] += weight * x[from],
                    (GridPass::ImageGradient, Some(y)) => made[from] += weight * y[to],
                    (GridPass::GridGradient, Some(y)) => {
                        for d in 0..rank {
                            let slope: f64 = parts.iter().enumerate().map(|(e, p)| if e == d { p.1 } else { p.0 }).product();
                            made[at * rank + rank - 1 - d] += slope * x[from] * y[to];
                        }
                    }
                }
            }
        }
    }
    made
}
