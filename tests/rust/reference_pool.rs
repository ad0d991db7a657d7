//! Windows on the reference backend, from the definition.

use rgrad_kernels::call::{Pool, PoolDivisor, PoolPass, WindowAxis};

/// The place of element `n` of an array of these sizes.
fn split(mut n: usize, sizes: [usize; 3]) -> [usize; 3] {
    let mut at = [0; 3];
    for d in (0..3).rev() {
        at[d] = n % sizes[d];
        n /= sizes[d];
    }
    at
}

/// Each position of the window along an axis that begins at `start`: its number, and the element there if it is inside.
fn along(a: &WindowAxis, o: usize, start: Option<i64>) -> Vec<(usize, Option<usize>)> {
    if a.adaptive {
        let (from, to) = (o * a.input / a.output, ((o + 1) * a.input).div_ceil(a.output));
        return (from..to).map(|i| (i - from, Some(i))).collect();
    }
    let first = start.unwrap_or((o * a.stride) as i64 - a.pad as i64);
    (0..a.kernel)
        .map(|k| {
            let at = first + (k * a.dilation) as i64;
            (k, (0..a.input as i64).contains(&at).then_some(at as usize))
        })
        .collect()
}

/// Calls `f` for each position of each window of a plane: the window, the position's number in it, and the element in the plane.
fn walk(p: &Pool, starts: Option<&[f64]>, mut f: impl FnMut(usize, usize, Option<usize>)) {
    let sizes = p.axes.map(|a| a.output);
    for w in 0..p.windows() {
        let o = split(w, sizes);
        let before = [0, sizes[0], sizes[0] + sizes[1]];
        let lists = [0, 1, 2].map(|d| along(&p.axes[d], o[d], starts.map(|s| s[before[d] + o[d]] as i64)));
        for a in &lists[0] {
            for b in &lists[1] {
                for c in &lists[2] {
                    let number = (a.0 * p.axes[1].kernel + b.0) * p.axes[2].kernel + c.0;
                    let at = a.1.zip(b.1).zip(c.1).map(|((i, j), k)| (i * p.axes[1].input + j) * p.axes[2].input + k);
                    f(w, number, at);
                }
            }
        }
    }
}

/// What the sum over a window is divided by.
fn divisor(p: &Pool, how: PoolDivisor, w: usize) -> f64 {
    let o = split(w, p.axes.map(|a| a.output));
    let count = |d: usize| {
        let a = &p.axes[d];
        let inside = along(a, o[d], None).iter().filter(|(_, at)| at.is_some()).count();
        if how == PoolDivisor::Inside || a.adaptive {
            return inside;
        }
        let first = (o[d] * a.stride) as i64 - a.pad as i64;
        (first..first + a.kernel as i64).filter(|at| *at < (a.input + a.pad) as i64).count()
    };
    match how {
        PoolDivisor::Fixed(n) => n as f64,
        _ => (count(0) * count(1) * count(2)) as f64,
    }
}

/// The outputs of a pass.
pub fn outputs(p: &Pool, ins: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (plane, windows, columns) = (p.plane(), p.windows(), p.kernel() * p.windows());
    let made_of_plane = match p.pass {
        PoolPass::Max { .. } | PoolPass::Average(_) => windows,
        PoolPass::MaxAdjoint | PoolPass::AverageAdjoint(_) | PoolPass::Fold => plane,
        PoolPass::Unfold => columns,
    };
    let mut made = vec![0.0; p.planes * made_of_plane];
    let mut places = vec![0.0; p.planes * windows];
    for n in 0..p.planes {
        let part = |k: usize, size: usize| &ins[k][n * size..(n + 1) * size];
        let to = &mut made[n * made_of_plane..(n + 1) * made_of_plane];
        match p.pass {
            PoolPass::Max { given, .. } => {
                let (x, at) = (part(0, plane), &mut places[n * windows..(n + 1) * windows]);
                to.fill(f64::NEG_INFINITY);
                let mut seen = vec![false; windows];
                walk(p, given.then(|| part(1, p.starts())), |w, _, i| {
                    if let Some(i) = i
                        && (!seen[w] || x[i].is_nan() || x[i] > to[w])
                    {
                        (to[w], at[w], seen[w]) = (x[i], i as f64, true);
                    }
                });
            }
            PoolPass::MaxAdjoint => {
                let (g, at) = (part(0, windows), part(1, windows));
                (0..windows).for_each(|w| to[at[w] as usize] += g[w]);
            }
            PoolPass::Average(how) => {
                let x = part(0, plane);
                walk(p, None, |w, _, i| to[w] += i.map_or(0.0, |i| x[i]));
                (0..windows).for_each(|w| to[w] /= divisor(p, how, w));
            }
            PoolPass::AverageAdjoint(how) => {
                let g = part(0, windows);
                walk(p, None, |w, _, i| i.into_iter().for_each(|i| to[i] += g[w] / divisor(p, how, w)));
            }
            PoolPass::Unfold => {
                let x = part(0, plane);
                walk(p, None, |w, k, i| to[k * windows + w] = i.map_or(0.0, |i| x[i]));
            }
            PoolPass::Fold => {
                let c = part(0, columns);
                walk(p, None, |w, k, i| i.into_iter().for_each(|i| to[i] += c[k * windows + w]));
            }
        }
    }
    vec![made, places]
}
