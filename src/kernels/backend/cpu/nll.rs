//! nll_loss: the weighted element of the target class, and the gradient.

use super::reduce::reducers::Float;
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, OrderedOperand, malformed, result, view};
use crate::backend::cpu::elem::{float, is_widened};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::reduce::ReduceInput;
use crate::backend::cpu::reduce::reducers::Arithmetic;
use crate::call::NllReduction as Reduction;
use crate::call::{Classes, Nll, NllReduction};
use crate::error::{Error, Result};
use crate::host::interrupt::Ticks;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{DType, Plain};

/// The weight of each class.
type ClassWeight<'a, T> = Option<RawSlice<'a, T>>;

#[inline(always)]
fn of<T: Float + Plain>(weight: ClassWeight<'_, T>, class: usize) -> f64 {
    weight.map_or(1.0, |w| w.get(class).map_or(0.0, T::wide))
}

impl Classes {
    /// The first target that is neither a class nor ignored.
    pub fn first_bad(&self, targets: RawSlice<'_, i64>) -> Option<i64> {
        targets.iter().find(|t| *t != self.ignore && self.class(*t).is_none())
    }

    /// The class that a target names, unless it is ignored or there is no such class.
    #[inline(always)]
    fn class(&self, target: i64) -> Option<usize> {
        if target != self.ignore && (target as u64) < self.classes as u64 { Some(target as usize) } else { None }
    }

    /// Calls `f(which loss, place of the picked element, class)` for all that are not ignored. Each target is read once. A target that is
    /// out of range, because another thread has changed it since the check, is ignored.
    #[inline(always)]
    fn each(&self, targets: RawSlice<'_, i64>, mut f: impl FnMut(usize, usize, usize)) {
        let ticks = Ticks::default();
        for (i, t) in targets.part(0, self.outer * self.inner).iter().enumerate() {
            ticks.tick();
            if let Some(c) = self.class(t) {
                let (o, r) = (i / self.inner, i % self.inner);
                f(i, (o * self.classes + c) * self.inner + r, c);
            }
        }
    }

    /// The sum of the weights of all targets.
    fn total<T: Float + Plain>(&self, targets: RawSlice<'_, i64>, weight: ClassWeight<'_, T>) -> f64 {
        let mut total = 0.0;
        self.each(targets, |_, _, c| total += of(weight, c));
        total
    }

    /// Losses of log-probabilities, of which `x` gives each of (outer, classes, inner), into `out`: one for each target, or one altogether.
    pub fn forward<T: Float + Plain>(&self, x: impl Fn(usize) -> T, targets: RawSlice<'_, i64>, weight: ClassWeight<'_, T>, out: &mut [T]) {
        if self.reduction == Reduction::None {
            out.fill(T::ZERO);
            self.each(targets, |i, at, c| out[i] = T::narrow(-x(at).wide() * of(weight, c)));
            return;
        }
        let mut sum = 0.0;
        self.each(targets, |_, at, c| sum -= x(at).wide() * of(weight, c));
        if self.reduction == Reduction::Mean {
            sum /= self.total(targets, weight);
        }
        out[0] = T::narrow(sum);
    }

    /// The adjoint of `forward`: the gradient of x from that of the losses.
    pub fn backward<T: Float + Plain>(&self, g: RawSlice<'_, T>, targets: RawSlice<'_, i64>, weight: ClassWeight<'_, T>, out: &mut [T]) {
        out.fill(T::ZERO);
        let scale = if self.reduction == Reduction::Mean { 1.0 / self.total(targets, weight) } else { 1.0 };
        self.each(targets, |i, at, c| {
            let g = g.get(if self.reduction == Reduction::None { i } else { 0 }).map_or(0.0, T::wide);
            out[at] = T::narrow(-g * scale * of(weight, c));
        });
    }
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Nll {
    const NARROW: NarrowElements = NarrowElements::Widened;

    fn reads_programs(&self, dtype: DType) -> bool {
        dtype.is_float() && !is_widened(dtype)
    }

    /// Refuses a target that is no class.
    unsafe fn check(n: &Nll, ins: &[Operand<'_>]) -> Result<()> {
        let targets = view("nll_loss", ins, 1)?;
        // SAFETY: see above.
        unsafe {
            let dense = DenseOperand::cast(&targets, DType::I64)?;
            let targets = RawSlice::new(dense.ptr().cast::<i64>(), n.classes.outer * n.classes.inner);
            match n.classes.first_bad(targets) {
                None => Ok(()),
                Some(bad) => Err(Error::index(format!("Target {bad} is out of bounds. There are {} classes.", n.classes.classes))),
            }
        }
    }

    unsafe fn compute(n: &Nll, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(n, outs, 0)?;
        let c = &n.classes;
        let targets = view("nll_loss", ins, 1)?;
        let weight = if ins.len() > 2 { Some(view("nll_loss", ins, 2)?) } else { None };
        let losses = if n.adjoint { c.outer * c.classes * c.inner } else { out.numel() };
        // SAFETY: see above. There is a target for each place beside the classes, and a weight for each class; what is picked lies inside the
        // input, whatever the targets are.
        unsafe {
            let x = OrderedOperand::dense("nll_loss", ins)?;
            let (dense, weight) = (DenseOperand::cast(&targets, DType::I64)?, weight.as_ref().map(|w| DenseOperand::of(w)).transpose()?);
            let targets = RawSlice::new(dense.ptr().cast::<i64>(), c.outer * c.inner);
            float!(x.dtype(), T => {
                let weight = weight.as_ref().map(|w| RawSlice::new(w.ptr().cast::<T>(), c.classes));
                let to = std::slice::from_raw_parts_mut(out.ptr().cast::<T>(), losses);
                match (x.source(), n.adjoint) {
                    (ReduceInput::Memory(g), true) => {
                        let singles = if c.reduction == NllReduction::None { c.outer * c.inner } else { 1 };
                        c.backward(RawSlice::new(g.cast::<T>(), singles), targets, weight, to);
                    }
                    (ReduceInput::Memory(p), false) => c.forward(|i| *p.cast::<T>().add(i), targets, weight, to),
                    (ReduceInput::Made(_), true) => return Err(malformed("nll_loss")),
                    (ReduceInput::Made(blocks), false) => match blocks.produce_all() {
                        Some(_) if !blocks.should_continue() => {}
                        Some(p) => c.forward(|i| *p.cast::<T>().add(i), targets, weight, to),
                        None => {
                            let alone = |i: usize| {
                            let mut element = <T as Arithmetic>::ZERO;
                                let made = blocks.produce(i, 1, (&raw mut element).cast());
                                if std::ptr::eq(made, (&raw const element).cast()) { element } else { *made.cast::<T>() }
                            };
                            c.forward(alone, targets, weight, to);
                        }
                    },
                }
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x_at(i: usize) -> f64 {
        assert!(i < 12);
        1.0 + i as f64
    }

    #[test]
    fn backward_is_the_adjoint_of_forward() {
        let targets = RawSlice::from(&[2i64, -100, 0, 1][..]);
        let (x, w) = ((0..12).map(|i| f64::from(i) / 3.0 - 1.5).collect::<Vec<_>>(), [0.5, 2.0, 3.0]);
        for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
            let s = Classes { outer: 2, classes: 3, inner: 2, ignore: -100, reduction };
            let n = if reduction == Reduction::None { 4 } else { 1 };
            let g: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
            let (mut y, mut back) = (vec![0.0; n], vec![0.0; 12]);
            let weight = Some(RawSlice::from(&w[..]));
            s.forward(|i| x[i], targets, weight, &mut y);
            s.backward(RawSlice::from(&g[..]), targets, weight, &mut back);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(p, q)| p * q).sum::<f64>();
            assert!((dot(&g, &y) - dot(&back, &x)).abs() < 1e-12);
        }
        let s = Classes { outer: 2, classes: 3, inner: 2, ignore: -100, reduction: Reduction::Mean };
        let bad = RawSlice::from(&[0i64, 3, i64::MAX, i64::MIN][..]);
        assert_eq!((s.first_bad(targets), s.first_bad(bad)), (None, Some(3)));
        // A target that another thread has changed after the check to an invalid class counts as ignored.
        let mut y = [0.0];
        s.forward(x_at, bad, None, &mut y);
        assert_eq!(y, [-x_at(0)]);
    }
}
