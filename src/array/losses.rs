//! Picking the elements of target classes: what nll_loss does with arrays.

use super::gpu_reduce::written;
use super::pending::{DeviceFold, DeviceFrom, Fold, Folding, From};
use super::reduce::{Classes, Reduction};
use super::{Array, Device};
use crate::backend::cpu::raw_slice::{Plain, RawSlice};
use crate::backend::cpu::reducers::Float;
use crate::backend::wgpu::nll::{self, Nll};
use crate::backend::wgpu::{Buffer, View};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, checked_numel};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::Arc;

const OP: &str = "nll_loss";

impl Array {
    /// What nll_loss picks from this array, of `shape`; with `adjoint` the way back, which spreads it. `weight` is of this array's dtype, a
    /// float; a target that is neither a class nor ignored is an error.
    pub fn nll(&self, classes: Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<Array> {
        self.check_nll(&classes, adjoint, shape, targets, weight)?;
        if self.device() == Device::Wgpu {
            let (targets, weight) = (targets.contiguous()?, weight.map(Array::contiguous).transpose()?);
            if !adjoint && self.dtype().is_float() && self.storage().is_pending() && self.is_contiguous() {
                return self.picked_on_device(classes, shape, targets, weight);
            }
            let from = self.contiguous()?;
            let out = from.empty_beside(shape, from.dtype())?;
            out.gpu_nll(classes, adjoint, &from, &targets, weight.as_ref())?;
            return Ok(out);
        }
        let targets = targets.cast(DType::I64)?.contiguous()?;
        let weight = weight.map(Array::contiguous).transpose()?;
        if let Some(bad) = classes.first_bad(targets.elements::<i64>()?) {
            return Err(Error::index(format!("Target {bad} is out of bounds. There are {} classes.", classes.classes)));
        }
        match self.dtype() {
            DType::F32 => self.picked::<f32>(classes, adjoint, shape, targets, weight),
            DType::F64 => self.picked::<f64>(classes, adjoint, shape, targets, weight),
            d => Err(Error::dtype(format!("expected a floating point tensor, got {d}"))),
        }
    }

    /// Whether all sizes belong together.
    fn check_nll(&self, c: &Classes, adjoint: bool, shape: &[usize], targets: &Array, weight: Option<&Array>) -> Result<()> {
        let some = checked_numel(&[c.outer, c.inner], 1)?;
        let losses = if c.reduction == Reduction::None { some } else { 1 };
        let (all, of) = (checked_numel(&[c.outer, c.classes, c.inner], 1)?, checked_numel(shape, 1)?);
        let (scores, wanted) = if adjoint { (of, self.numel()) } else { (self.numel(), of) };
        let weighs = weight.is_none_or(|w| w.numel() == c.classes && w.dtype() == self.dtype());
        if scores == all && wanted == losses && targets.numel() == some && weighs {
            return Ok(());
        }
        Err(Error::shape(format!(
            "{OP}: {} targets, {} elements and results of shape {shape:?} do not belong to {c:?}, or the weights do not",
            targets.numel(),
            self.numel()
        )))
    }

    /// What is picked of pending elements of a device.
    fn picked_on_device(&self, classes: Classes, shape: &[usize], targets: Array, weight: Option<Array>) -> Result<Array> {
        let others: SmallVec<[Array; 2]> = std::iter::once(targets).chain(weight).collect();
        let read = others.iter().map(|a| (a.layout().clone(), a.dtype())).collect();
        // A target that is no class is reported under the line that asked for the loss, whoever looks.
        let ticket = self.storage().context().map_or(0, |c| c.ticket(OP));
        let of = self.dtype();
        let picks = DevicePicks {
            classes,
            dim: usize::from(self.rank() > 1),
            of,
            layout: self.layout().clone(),
            shape: shape.into(),
            read,
            ticket,
        };
        if let Some(made) = self.pending_fold(|| Folding::Device(Arc::new(picks)), &others, shape, of)? {
            return Ok(made);
        }
        let out = self.empty_beside(shape, of)?;
        out.gpu_nll(classes, false, &self.contiguous()?, &others[0], others.get(1))?;
        Ok(out)
    }

    fn picked<T: Float + super::Element<Raw = T> + Plain>(
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
        let (targets, x) = (targets.elements::<i64>()?, from.elements::<T>()?);
        let weight = weight.as_ref().map(|w| w.elements::<T>()).transpose()?;
        // SAFETY: made just now.
        let to = unsafe { out.new_elements::<T>() };
        if adjoint {
            classes.spread(x, targets, weight, to)
        } else {
            classes.pick(|i| x.get(i).unwrap_or(T::ZERO), targets, weight, to)
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

impl<T: Float + Plain> Fold for Picks<T> {
    fn name(&self) -> &'static str {
        OP
    }

    fn picks(&self) -> bool {
        true
    }

    unsafe fn run(&self, from: From<'_>, others: &[*const u8], to: *mut u8) {
        let c = &self.classes;
        // SAFETY: there is a target for each place beside the classes, and a weight for each class; `to` is new and holds the result; what
        // is picked lies inside the input, whatever the targets are.
        unsafe {
            let targets = RawSlice::new(others[0].cast::<i64>(), c.outer * c.inner);
            let weight = others.get(1).map(|w| RawSlice::new(w.cast::<T>(), c.classes));
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
                        let made = blocks.make(i, 1, (&raw mut element).cast());
                        if std::ptr::eq(made, (&raw const element).cast()) { element } else { *made.cast::<T>() }
                    };
                    c.pick(alone, targets, weight, out);
                }
                (From::Memory(_), None) => {}
            }
        }
    }
}

/// As `Picks`, on a device.
struct DevicePicks {
    classes: Classes,
    /// The number of the dimension of classes.
    dim: usize,
    of: DType,
    layout: Layout,
    /// The result's.
    shape: Dims,
    /// How targets and weights lie.
    read: SmallVec<[(Layout, DType); 2]>,
    ticket: u32,
}

impl DeviceFold for DevicePicks {
    fn name(&self) -> &'static str {
        OP
    }

    fn run(&self, from: DeviceFrom<'_>, others: &[&Buffer], to: &Buffer) -> Result<()> {
        fn view<'a>(buffer: &'a Buffer, layout: &'a Layout, dtype: DType) -> View<'a> {
            View { buffer, offset: layout.offset(), shape: layout.shape(), strides: layout.strides(), dtype }
        }
        let mut read = others.iter().zip(&self.read).map(|(b, (layout, dtype))| view(b, layout, *dtype));
        let Some(targets) = read.next() else {
            return Err(Error::internal(OP, "a pending loss without targets"));
        };
        let nll = Nll { op: OP, classes: self.classes, dim: self.dim, targets, weight: read.next(), real: self.of, ticket: self.ticket };
        let dense = Layout::contiguous(&self.shape);
        let out = view(to, &dense, self.of);
        let own;
        let buffer = match &from {
            DeviceFrom::Made(p) if p.can_be_read(to.context()) && !others.iter().any(|b| p.reads(b)) => {
                return Ok(nll.pick(out, nll::From::Made(p))?);
            }
            DeviceFrom::Made(p) => {
                own = written(p, self.of, to)?;
                &own
            }
            DeviceFrom::Memory(b) => b,
        };
        Ok(nll.pick(out, nll::From::Memory(view(buffer, &self.layout, self.of)))?)
    }
}
