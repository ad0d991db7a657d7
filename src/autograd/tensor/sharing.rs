//! Tensors that share memory without sharing history, replacing a tensor's memory, and read-only memory.

use crate::array::{Access, Storage, Version};
use crate::autograd::diagnostics::missing_gradient::{self, EndReason};
use crate::autograd::dispatch::call_site::{self, Site};
use crate::autograd::dispatch::mode;
use crate::autograd::graph::view::{ViewOp, check_inplace};
use crate::autograd::tensor::{Core, Tensor, Value};
use crate::autograd::transforms::level::WrappedTensor;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, check_rank, checked_numel};
use smallvec::SmallVec;
use std::sync::Weak;

impl Tensor {
    /// Shares memory and version counter, and has no history.
    ///
    /// In a transform it has no history at the lower levels either: what is constant inside is constant outside.
    pub fn detach(&self) -> Tensor {
        self.without_history(EndReason::Detach, "detach")
    }

    /// Shares memory and has no history at its own level. Lower levels keep theirs.
    pub fn detach_here(&self) -> Tensor {
        let out = self.without_history(EndReason::Detach, "detach");
        if self.level() > 0 {
            let value = self.read().value.clone();
            let old = std::mem::replace(&mut out.write().value, value);
            drop(old);
        }
        out
    }

    /// Shares memory, and has no history and a version counter of its own (`.data`).
    pub fn data(&self) -> Tensor {
        self.without_history(EndReason::Data, "data")
    }

    /// Shares memory and version, has the bytes as elements of another dtype, and has no history (`view(dtype)`).
    ///
    /// # Errors
    /// As for `Array::with_bytes_as`; or the tensor is a lazy conjugate or negative.
    pub fn with_bytes_as(&self, dtype: DType) -> Result<Tensor> {
        let value = self.read().value.clone();
        let bits = value.bits();
        if bits.any() {
            let what = if bits.conj { "conjugate view tensors" } else { "tensors with negative bit set" };
            return Err(Error::runtime(format!(
                "rgrad.Tensor.view is not supported for {what} when converting to a different dtype. (view: call resolve_conj() or resolve_neg() \
                 first)"
            )));
        }
        let value = match value {
            Value::Array(a) => Value::Array(a.with_bytes_as(dtype)?),
            Value::Lazy(l) => Value::of(l.array.with_bytes_as(dtype)?, l.bits),
            Value::Wrapped(l) => Value::Wrapped(Box::new(WrappedTensor { level: l.level.clone(), inner: l.inner.with_bytes_as(dtype)? })),
        };
        let out = self.without_history(EndReason::Detach, "view");
        let old = std::mem::replace(&mut out.write().value, value);
        drop(old);
        Ok(out)
    }

    /// A tensor with this one's current value, version counter, history and tangent, whose history no write replaces. It is not a view, since the
    /// `grad_fn` of a view must belong to its version. A leaf that requires grad has itself as history and is returned itself.
    pub(in crate::autograd) fn snapshot(&self) -> Tensor {
        let (mut value, version, edge, tangent, inference) = {
            let core = self.read();
            if core.requires_grad && core.grad_fn.is_none() {
                return self.clone();
            }
            let tangent = core.stored_tangent();
            (core.value.clone(), core.version.clone(), core.grad_fn.clone(), tangent, core.inference)
        };
        if let Value::Wrapped(l) = &mut value {
            l.inner = l.inner.snapshot();
        }
        let out = Tensor::with_history(value, version, edge);
        if inference {
            out.write().inference = true;
        }
        if tangent.is_some() {
            out.set_tangent(tangent);
        }
        out
    }

    /// Whether the two share memory.
    pub fn shares_memory_with(&self, other: &Tensor) -> bool {
        let (here, there) = (self.memory(), other.memory());
        here.storage().same(there.storage())
    }

    /// This tensor, or, if it shares memory with `target`, a copy of its state before a write to `target`. For an operation that first computes
    /// its result from this tensor and then writes it to `target`: what the first step saves must not lead to the node of the second.
    pub fn before_write_to(&self, target: &Tensor) -> Result<Tensor> {
        if !self.shares_memory_with(target) {
            return Ok(self.clone());
        }
        self.gradient_edge()?;
        Ok(self.snapshot())
    }

    fn without_history(&self, why: EndReason, op: &'static str) -> Tensor {
        let (value, version, inference, needs, inherited) = {
            let core = self.read();
            (core.value.clone(), core.version.clone(), core.inference, core.needs_grad(), core.path_ends.clone())
        };
        // The history is dropped at every level.
        let value = match value {
            Value::Wrapped(l) => {
                let inner = l.inner.without_history(why, op);
                Value::Wrapped(Box::new(WrappedTensor { level: l.level.clone(), inner }))
            }
            array => array,
        };
        let path_ends = if needs { missing_gradient::path_end(why, op, self) } else { inherited };
        let version = if why == EndReason::Data && !inference { Version::fresh() } else { version };
        Tensor::from_core(Core::without_history(value, version, inference, path_ends))
    }

    // ---- freezing ----------------------------------------------------------------------------------------------------

    /// Makes every later write to this tensor's memory an error, through all tensors that share it.
    pub fn freeze(&self) {
        let site = call_site::current();
        let core = self.read();
        core.with_storage(|s| s.freeze(site.0));
    }

    /// Lets this tensor's memory be written again.
    pub fn unfreeze(&self) {
        let core = self.read();
        core.with_storage(Storage::unfreeze);
    }

    /// The call site that froze this tensor's memory, if it is frozen.
    pub fn frozen(&self) -> Option<crate::autograd::dispatch::call_site::Site> {
        let core = self.read();
        core.with_storage(|s| s.frozen()).map(Site)
    }

    /// The error for a write by `op` to read-only memory; None if the memory is writable.
    pub fn refuses_write(&self, op: &str) -> Option<Error> {
        {
            let core = self.read();
            if core.with_storage(|s| s.is_writable()) {
                return None;
            }
        }
        Some(match self.frozen() {
            Some(site) => Error::runtime(format!(
                "{op}: this tensor was frozen by freeze_() at {}, so nothing may write to its memory in place. Write to a clone(), or call \
                 unfreeze_() first.",
                site.text()
            )),
            None => {
                Error::runtime(format!("{op}: the tensor's memory is read-only (it was made from a read-only buffer); write to a clone()"))
            }
        })
    }

    /// Gives this tensor `new`'s memory and shape, and leaves its history (`x.data = new`).
    pub fn set_data(&self, new: &Tensor) -> Result<()> {
        let (value, inference) = {
            let core = new.read();
            (core.value.clone(), core.inference)
        };
        if new.dtype() != self.dtype() && self.requires_grad() && !new.dtype().is_differentiable() {
            return Err(Error::runtime("data set to a tensor that requires gradients must be floating point or complex dtype"));
        }
        if self.frozen().is_some()
            && let Some(e) = self.refuses_write("data")
        {
            return Err(e);
        }
        // Before the lock: values of lower levels have locks of their own.
        let version = {
            let (version, before) = {
                let core = self.read();
                (core.version.clone(), core.value.clone())
            };
            version.moved(before.bottom().storage(), value.bottom().storage())
        };
        let is_other_kind = new.dtype() != self.dtype() || new.device() != self.device();
        let old = {
            let mut core = self.write();
            let same = matches!((&core.value, &value), (Value::Array(a), Value::Array(b)) if a.layout() == b.layout());
            if !same {
                let meta = core.meta.get_or_insert_default();
                meta.layout_changes = meta.layout_changes.wrapping_add(1);
            }
            // A leaf stays the same leaf: gradients of what was recorded before still arrive, with the hooks of its node. Only gradients of
            // another dtype or device cannot be added to those recorded from now on.
            if is_other_kind && let Some(m) = core.meta.as_mut() {
                m.accumulate = Weak::new();
            }
            core.inference = inference;
            (std::mem::replace(&mut core.version, version), std::mem::replace(&mut core.value, value))
        };
        drop(old);
        Ok(())
    }

    /// A tensor with this one's memory, history and tangent that is no view: its version counter is its own, and writes to either leave the
    /// history of the other as it is.
    pub fn unsafe_part(&self) -> Tensor {
        let (mut value, edge, tangent, inference) = {
            let core = self.read();
            let tangent = core.stored_tangent();
            (core.value.clone(), core.grad_fn.clone(), tangent, core.inference)
        };
        if let Value::Wrapped(l) = &mut value {
            l.inner = l.inner.unsafe_part();
        }
        let version = if inference { Version::Untracked } else { Version::fresh() };
        let out = Tensor::with_history(value, version, edge);
        if inference {
            out.write().inference = true;
        }
        if tangent.is_some() {
            out.set_tangent(tangent);
        }
        let ends = self.read().path_ends.clone();
        out.write().set_path_ends(ends);
        out
    }

    /// Gives this tensor these sizes in row-major order, at its offset in its memory, which grows if it is too small (`resize_`). Elements that
    /// were not there before are not initialised.
    ///
    /// # Errors
    /// The tensor requires grad, has a tangent or belongs to a transform, or its memory is too small and others use it too.
    pub fn resize(&self, sizes: &[i64]) -> Result<()> {
        let label = "resize_";
        if self.requires_grad() && !mode::current().inference {
            return Err(Error::runtime("cannot resize variables that require grad"));
        }
        if self.has_tangent() {
            return Err(Error::runtime("cannot resize variables that has a forward grad"));
        }
        check_inplace(self, false, label)?;
        if let Some(e) = self.refuses_write(label) {
            return Err(e);
        }
        if self.level() > 0 {
            return Err(Error::runtime(
                "resize_: a tensor inside a function transform cannot be resized in place: use reshape(), or resize it outside",
            ));
        }
        let shape: Dims = sizes
            .iter()
            .map(|n| usize::try_from(*n).map_err(|_| Error::runtime(format!("resize_: got the negative size {n} in sizes={sizes:?}"))))
            .collect::<Result<_>>()?;
        // Equal sizes keep their strides, and count as no write.
        if shape != self.shape() {
            self.with_resized(&shape)?;
            self.increment_version(label);
        }
        Ok(())
    }

    fn with_resized(&self, shape: &[usize]) -> Result<()> {
        let (array, bits) = (self.memory(), self.math_bits());
        let overflows = || Error::runtime(format!("Storage size calculation overflowed with sizes={shape:?} (in resize_)"));
        check_rank(shape.len())?;
        checked_numel(shape, array.dtype().size()).map_err(|_| overflows())?;
        array.storage().settle(Access::Write)?;
        let offset = array.layout().offset();
        let strides = Layout::contiguous_strides(shape);
        let layout = Layout::from_parts(Dims::from_slice(shape), strides.clone(), offset)?;
        let end = layout.end().ok_or_else(overflows)?;
        let held = array.storage().bytes() / array.storage().element_size(array.dtype());
        let new = if end <= held {
            array.with_layout(layout)?
        } else {
            let whole = array.with_layout(Layout::contiguous(&[held]))?;
            // Held by this tensor and by the two arrays here.
            if array.storage().handles() > 3 || array.storage().is_external() {
                return Err(Error::runtime(
                    "Trying to resize storage that is not resizable: other tensors or arrays share the memory, and it would have to move. clone() \
                     the tensor first",
                ));
            }
            let grown = array.empty_beside(&[end], array.dtype())?;
            grown.with_layout(Layout::contiguous(&[held]))?.copy_from(&whole)?;
            grown.with_layout(layout)?
        };
        let version = self.read().version.moved(array.storage(), new.storage());
        let place = ViewOp::AsStrided { shape: Dims::from_slice(shape), strides, offset };
        let base_changes = self.base().map(|b| b.meta(|m| m.map_or(0, |m| m.layout_changes)));
        let old = {
            let mut core = self.write();
            let meta = core.meta.get_or_insert_default();
            match (meta.view.as_mut(), base_changes) {
                (Some(view), Some(changes)) => {
                    view.ops = SmallVec::from_elem(place, 1);
                    view.layout_changes = changes;
                }
                _ => meta.layout_changes = meta.layout_changes.wrapping_add(1),
            }
            (std::mem::replace(&mut core.version, version), std::mem::replace(&mut core.value, Value::of(new, bits)))
        };
        drop(old);
        Ok(())
    }

    /// Drops this tensor's history. An error for views.
    pub fn detach_in_place(&self) -> Result<()> {
        // As in PyTorch, where inference mode leaves histories alone.
        if mode::current().inference {
            return Ok(());
        }
        if self.base().is_some() {
            return Err(Error::runtime(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and \
                 gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these \
                 gradients.",
            ));
        }
        let old = {
            let mut core = self.write();
            core.requires_grad = false;
            let old = core.grad_fn.take();
            if old.is_some() {
                core.meta.get_or_insert_default().detached = true;
            }
            old
        };
        drop(old);
        Ok(())
    }
}
