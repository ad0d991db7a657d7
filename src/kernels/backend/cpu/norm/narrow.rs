//! Narrow rows whose elements each have a weight, all rows the same: some of them are transposed to columns, so that no sum is along a row.

use super::loops::{self, TRANSPOSED};
use super::{Affine, Applied, Moments, NormElement, Stats, TASK, gradient_line};
use crate::backend::cpu::common::in_lanes::{WIDTH, transpose_in, transpose_out, transposed_size, transposes};
use crate::backend::cpu::matmul::panel_vector::CoreNumber;
use crate::call::NormShape;
use crate::host::memory::reserve::{AlignedReserve, aligned};
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::InstructionSet;

/// The most elements of a row.
const MOST: usize = 64;
/// The most tasks that keep sums for each weight.
const TASKS: usize = 64;

// SAFETY, of every function here: the caller's promise of `super::forward`. Each task has rows of its own.

/// Whether rows are computed in this way, and for which instruction set.
pub(super) fn fits(s: &NormShape) -> Option<InstructionSet> {
    if s.groups == 1 { transposes(s.outer, s.channels * s.inner, MOST) } else { None }
}

/// Rows of some elements each.
#[derive(Clone, Copy)]
struct NarrowRows {
    isa: InstructionSet,
    rows: usize,
    n: usize,
}

impl NarrowRows {
    fn of(isa: InstructionSet, s: &NormShape) -> NarrowRows {
        NarrowRows { isa, rows: s.outer, n: s.channels * s.inner }
    }

    /// Rows of one task, of at most so many.
    fn per_task(&self, most: usize) -> usize {
        (TASK / self.n).max(self.rows.div_ceil(most)).next_multiple_of(WIDTH)
    }

    fn reserve<T: NormElement + CoreNumber>(&self) -> AlignedReserve<T> {
        aligned(<T as NormElement>::ZERO, transposed_size(self.n, WIDTH))
    }

    /// # Safety
    /// `from` has all rows, and `to` is as `room`.
    unsafe fn read<T: CoreNumber>(&self, first: usize, many: usize, from: *const T, to: &mut [T]) {
        // SAFETY: the caller's.
        unsafe { transpose_in::<T>(self.isa, many, self.n, from.wrapping_add(first * self.n), to.as_mut_ptr(), WIDTH) };
    }

    /// # Safety
    /// `to` has all rows, and `from` is as `room`.
    unsafe fn write<T: CoreNumber>(&self, first: usize, many: usize, from: &[T], to: *mut T) {
        // SAFETY: the caller's.
        unsafe { transpose_out::<T>(self.isa, many, self.n, from.as_ptr(), to.wrapping_add(first * self.n), WIDTH) };
    }
}

/// Mean and deviation of each of `many` transposed rows.
fn moments<T: NormElement>(x: &[T], n: usize, many: usize, found: &mut [Moments; WIDTH]) {
    let x = &x[..(n - 1) * WIDTH + many];
    let mut shifts = [T::ZERO; WIDTH];
    x[..many].iter().zip(&mut shifts).for_each(|(x, shift)| *shift = x.coarse());
    for again in [false, true] {
        let (mut s, mut q) = ([0.0; WIDTH], [0.0; WIDTH]);
        loops::column_sums(x, WIDTH, &shifts[..many], &mut s, &mut q);
        for j in 0..many {
            found[j] = Moments::new(shifts[j], (s[j], q[j]), n);
        }
        if again || !found[..many].iter().any(|m| m.is_poor) {
            return;
        }
        found[..many].iter().zip(&mut shifts).for_each(|(m, shift)| *shift = T::narrow(m.mean));
    }
}

pub(super) unsafe fn forward<T: NormElement + CoreNumber>(
    isa: InstructionSet,
    s: &NormShape,
    eps: f64,
    x: *const T,
    affine: Affine<T>,
    y: *mut T,
    to: Stats<T>,
) {
    let all = NarrowRows::of(isa, s);
    let n = all.n;
    // SAFETY: see above.
    let (w, b) = unsafe { affine.expanded(s.params(), s.inner) };
    let (x, y) = (SharedPointer::new(x), SharedPointer::new(y));
    let per = all.per_task(usize::MAX);
    parallel_for(all.rows.div_ceil(per), |t| {
        let mut transposed = all.reserve::<T>();
        let mut found = [Moments { mean: 0.0, squares: 0.0, count: 1.0, is_poor: false }; WIDTH];
        let [mut mean, mut scale, mut shift] = [[<T as NormElement>::ZERO; WIDTH]; 3];
        for first in (t * per..all.rows.min((t + 1) * per)).step_by(WIDTH) {
            let many = WIDTH.min(all.rows - first);
            // SAFETY: see above.
            unsafe {
                all.read(first, many, x.get(), &mut transposed);
                moments(&transposed, n, many, &mut found);
                for j in 0..many {
                    let applied: Applied<T> = found[j].put(&{ to }, first + j, eps);
                    mean[j] = applied.mean;
                    (scale[j], shift[j]) = applied.line((1.0, 0.0));
                }
                loops::transposed_affine(&mut transposed, WIDTH, [&mean[..many], &scale[..many], &shift[..many]], &w, &b);
                all.write(first, many, &transposed, y.get());
            }
        }
    });
}

pub(super) unsafe fn backward<T: NormElement + CoreNumber>(
    isa: InstructionSet,
    s: &NormShape,
    [g, x, mean, rstd]: [*const T; 4],
    weight: *const T,
    dx: *mut T,
    params: Option<(*mut T, *mut T)>,
) {
    let all = NarrowRows::of(isa, s);
    let n = all.n;
    // SAFETY: see above.
    let (w, _) = unsafe { Affine { weight, bias: std::ptr::null() }.expanded(s.params(), s.inner) };
    let [g, x, mean, rstd] = [g, x, mean, rstd].map(SharedPointer::new);
    let dx = SharedPointer::new(dx);
    let per = all.per_task(if params.is_some() { TASKS } else { usize::MAX });
    let tasks = all.rows.div_ceil(per);
    let is_summed = params.is_some();
    // For each task the sums of each weight and bias.
    let mut sums = vec![0.0; tasks * 2 * n];
    let shared = SharedPointer::new(sums.as_mut_ptr());
    parallel_for(tasks, |t| {
        let (mut transposed_g, mut transposed_x) = (all.reserve::<T>(), all.reserve::<T>());
        let [mut dw, mut db] = [[[<T as NormElement>::ZERO; TRANSPOSED]; MOST]; 2];
        let [mut a, mut b, mut c] = [[<T as NormElement>::ZERO; WIDTH]; 3];
        for first in (t * per..all.rows.min((t + 1) * per)).step_by(WIDTH) {
            let many = WIDTH.min(all.rows - first);
            // SAFETY: see above. All of the gradient's rows are read before they are written.
            unsafe {
                let mean = std::slice::from_raw_parts(mean.get().wrapping_add(first), many);
                let rstd = std::slice::from_raw_parts(rstd.get().wrapping_add(first), many);
                all.read(first, many, g.get(), &mut transposed_g);
                all.read(first, many, x.get(), &mut transposed_x);
                let [mut p, mut q] = [[<T as NormElement>::ZERO; WIDTH]; 2];
                loops::transposed_gradient_sums(&transposed_g, &transposed_x, WIDTH, &w, mean, (&mut p, &mut q));
                for j in 0..many {
                    let line = gradient_line::<T>(rstd[j].wide(), (p[j].wide(), q[j].wide()), n);
                    (a[j], b[j], c[j]) = (T::narrow(line.0), line.1, line.2);
                }
                if is_summed {
                    loops::transposed_add_gradients(&transposed_g, &transposed_x, WIDTH, mean, rstd, (&mut dw[..n], &mut db[..n]));
                }
                loops::transposed_gradient_over(&mut transposed_g, &transposed_x, WIDTH, &w, mean, [&a[..many], &b[..many], &c[..many]]);
                all.write(first, many, &transposed_g, dx.get());
            }
        }
        if is_summed {
            for (which, of) in [dw, db].iter().enumerate() {
                for (i, lanes) in of[..n].iter().enumerate() {
                    // SAFETY: task t alone has these sums.
                    unsafe { *shared.at((2 * t + which) * n + i) = lanes.iter().map(|v| v.wide()).sum() };
                }
            }
        }
    });
    let Some((dw, db)) = params else { return };
    for (which, to) in [dw, db].into_iter().enumerate() {
        for channel in 0..s.channels {
            let elements = channel * s.inner..(channel + 1) * s.inner;
            let total: f64 = (0..tasks).flat_map(|t| &sums[(2 * t + which) * n..][elements.clone()]).sum();
            // SAFETY: see above.
            unsafe { *to.add(channel) = T::narrow(total) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;
    use crate::simd::best;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-10 * (1.0 + a.abs().max(b.abs())))
    }

    #[test]
    fn narrow_rows_are_as_other_rows() {
        let isas = [InstructionSet::Avx2, InstructionSet::Avx512].into_iter().filter(|i| *i <= best());
        for (isa, (outer, channels, inner)) in
            isas.flat_map(|isa| [(8, 1, 1), (65, 16, 1), (200, 7, 1), (3000, 32, 1), (70, 5, 3)].map(|shape| (isa, shape)))
        {
            let s = NormShape { outer, groups: 1, channels, inner, across: false };
            let (n, row) = (outer * channels * inner, channels * inner);
            // A large mean beside the deviation, and a row whose first element is far from the others.
            let x: Vec<f64> = (0..n).map(|i| 1000.0 + ((i * 7919) % 1013) as f64 / 256.0 + if i == row { 9e4 } else { 0.0 }).collect();
            let g: Vec<f64> = (0..n).map(|i| ((i * 104_729) % 1009) as f64 / 1024.0 - 0.5).collect();
            let w: Vec<f64> = (0..channels).map(|i| 0.5 + i as f64).collect();
            let affine = Affine { weight: w.as_ptr(), bias: g.as_ptr() };
            let [mut y, mut dx] = [[vec![0.0; n], vec![0.0; n]], [vec![0.0; n], vec![0.0; n]]];
            let [mut mean, mut rstd, mut var] = [(); 3].map(|()| [vec![0.0; outer], vec![0.0; outer]]);
            let [mut dw, mut db] = [(); 2].map(|()| [vec![0.0; channels], vec![0.0; channels]]);
            let stats = |k: usize, mean: &mut [Vec<f64>; 2], rstd: &mut [Vec<f64>; 2], var: &mut [Vec<f64>; 2]| Stats {
                mean: mean[k].as_mut_ptr(),
                rstd: rstd[k].as_mut_ptr(),
                var: var[k].as_mut_ptr(),
            };
            // SAFETY: all have as many elements as the shape says; the machine has the instruction set.
            unsafe {
                forward(isa, &s, 1e-5, x.as_ptr(), affine, y[0].as_mut_ptr(), stats(0, &mut mean, &mut rstd, &mut var));
                rows::forward(&s, 1e-5, x.as_ptr(), affine, y[1].as_mut_ptr(), stats(1, &mut mean, &mut rstd, &mut var));
                let from = [g.as_ptr(), x.as_ptr(), mean[1].as_ptr(), rstd[1].as_ptr()];
                let params = |k: usize, dw: &mut [Vec<f64>; 2], db: &mut [Vec<f64>; 2]| Some((dw[k].as_mut_ptr(), db[k].as_mut_ptr()));
                backward(isa, &s, from, w.as_ptr(), dx[0].as_mut_ptr(), params(0, &mut dw, &mut db));
                rows::backward(&s, false, from, w.as_ptr(), dx[1].as_mut_ptr(), params(1, &mut dw, &mut db));
                for both in [&y, &mean, &rstd, &var, &dx, &dw, &db] {
                    assert!(close(&both[0], &both[1]), "{s:?}");
                }
                // Over the gradient, without those of parameters.
                let mut over = g.clone();
                backward(isa, &s, [over.as_ptr(), from[1], from[2], from[3]], w.as_ptr(), over.as_mut_ptr(), None);
                assert!(over == dx[0], "{s:?}");
            }
        }
    }
}
