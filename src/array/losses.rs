//! Picking the elements of target classes: what nll_loss does with arrays.

use super::pending::{Fold, Folding, From};
use super::reduce::Classes;
use super::{Array, Device};
use crate::backend::cpu::reducers::Float;
use crate::error::{Error, Result};
use crate::layout::DType;
use std::marker::PhantomData;
use std::sync::Arc;

impl Array {
    /// What nll_loss picks from this array, of `shape`; with `adjoint` the way back, which spreads it. `weight` is of this array's dtype, a
    /// float; a target that is neither a class nor ignored is an error.
    pub fn nll(&self, classes: Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<Array> {
        if self.device() == Device::Wgpu {
            let from = self.contiguous()?;
            let out = from.empty_beside(shape, from.dtype())?;
            out.gpu_nll(classes, adjoint, &from, &targets.contiguous()?, weight.map(Array::contiguous).transpose()?.as_ref())?;
            return Ok(out);
        }
        let targets = targets.cast(DType::I64)?.contiguous()?;
        let weight = weight.map(Array::contiguous).transpose()?;
        if let Some(bad) = classes.first_bad(targets.as_slice::<i64>().unwrap_or_default()) {
            return Err(Error::index(format!("Target {bad} is out of bounds. There are {} classes.", classes.classes)));
        }
        match self.dtype() {
            DType::F32 => self.picked::<f32>(classes, adjoint, shape, targets, weight),
            DType::F64 => self.picked::<f64>(classes, adjoint, shape, targets, weight),
            d => Err(Error::dtype(format!("expected a floating point tensor, got {d}"))),
        }
    }

    fn picked<T: Float + super::Element>(
        &self,
        classes: Classes,
        adjoint: bool,
        shape: &[usize],
        targets: Array,
        weight: Option<Array>,
    ) -> Result<Array> {
        let picks = Picks::<T> { classes, numel: shape.iter().product(), of: PhantomData };
        if !adjoint && !self.storage().is_plain() && self.is_contiguous() {
            // Targets may be memory that somebody outside writes: those that are read late are a copy.
            let mut others = vec![if targets.storage().is_own() { targets.clone() } else { targets.clone_dense()? }];
            if let Some(w) = &weight {
                others.push(if w.storage().is_own() { w.clone() } else { w.clone_dense()? });
            }
            if let Some(made) = self.pending_fold(|| Folding::Host(Arc::new(picks)), &others, shape, T::DTYPE)? {
                return Ok(made);
            }
        }
        let from = self.contiguous()?;
        let out = Array::empty(shape, T::DTYPE)?;
        let targets = targets.as_slice::<i64>().unwrap_or_default();
        let x = from.as_slice::<T>().unwrap_or_default();
        let weight = weight.as_ref().and_then(|w| w.as_slice::<T>());
        // SAFETY: `out` is new, so nobody else reads or writes it; it has numel elements of T.
        let to = unsafe { std::slice::from_raw_parts_mut(out.ptr_mut().cast::<T>(), out.numel()) };
        if adjoint {
            classes.spread(x, targets, weight, to)
        } else {
            classes.pick(|i| x[i], targets, weight, to)
        }
        Ok(out)
    }
}

/// Picked elements that wait for somebody to look at them. The other inputs are targets and perhaps weights.
struct Picks<T> {
    classes: Classes,
    numel: usize,
    of: PhantomData<fn(T)>,
}

impl<T: Float> Fold for Picks<T> {
    fn name(&self) -> &'static str {
        "nll_loss"
    }

    fn picks(&self) -> bool {
        true
    }

    unsafe fn run(&self, from: From<'_>, others: &[*const u8], to: *mut u8) {
        let c = &self.classes;
        // SAFETY: there is a target for each place beside the classes, and a weight for each class; `to` is new and holds the result; what
        // is read of the input lies inside it.
        unsafe {
            let targets = std::slice::from_raw_parts(others[0].cast::<i64>(), c.outer * c.inner);
            let weight = others.get(1).map(|w| std::slice::from_raw_parts(w.cast::<T>(), c.classes));
            let out = std::slice::from_raw_parts_mut(to.cast::<T>(), self.numel);
            let all = match &from {
                From::Memory(p) => Some(*p),
                From::Made(blocks) => blocks.all(),
            };
            match (from, all) {
                (From::Made(blocks), Some(_)) if !blocks.goes_on() => {}
                (_, Some(p)) => c.pick(|i| *p.cast::<T>().add(i), targets, weight, out),
                (From::Made(blocks), None) => {
                    let alone = |i: usize| {
                        let mut element = T::ZERO;
                        blocks.make(i, 1, (&raw mut element).cast());
                        element
                    };
                    c.pick(alone, targets, weight, out);
                }
                (From::Memory(_), None) => {}
            }
        }
    }
}
