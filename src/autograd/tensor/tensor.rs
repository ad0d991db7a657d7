//! Tensor: a value with its history.

use crate::array::lock_order::assert_no_guard;
use crate::array::{Array, Change, Device, Version};
use crate::autograd::diagnostics::missing_gradient::PathEnds;
use crate::autograd::dispatch::mode::{self, Mode};
use crate::autograd::engine::hooks::{LeafHooks, Registration, TensorHook, next_id};
use crate::autograd::graph::node::{Edge, Node, defer_drop};
use crate::autograd::tensor::core::{Core, Meta, Value};
use crate::autograd::tensor::handle::{Handle, Keeps, WeakHandle};
use crate::autograd::tensor::lock::{ReadGuard, RwSpinLock, WriteGuard};
use crate::autograd::tensor::slot::{self, ObjectSlot};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, PromotionRank};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shared handle of a tensor. Clones are the same tensor.
#[derive(Clone)]
pub struct Tensor(Handle<TensorInner>);

/// Does not keep the tensor alive.
#[derive(Clone)]
pub struct WeakTensor(WeakHandle<TensorInner>);

impl WeakTensor {
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }

    pub(crate) fn same(&self, other: &WeakTensor) -> bool {
        self.0.same(&other.0)
    }

    pub(in crate::autograd) fn is(&self, tensor: &Tensor) -> bool {
        self.0.is(&tensor.0)
    }
}

pub(crate) struct TensorInner {
    core: RwSpinLock<Core>,
    slot: ObjectSlot,
    /// Made of memory of this crate only, and not changed since: dropping it runs no foreign code.
    simple: AtomicBool,
}

impl Keeps for TensorInner {
    fn let_go(&self) {
        if let Some(object) = self.slot.get() {
            slot::release(object);
        }
    }
}

impl Drop for TensorInner {
    fn drop(&mut self) {
        // Graphs are deep: the chain grad_fn -> saved tensor -> grad_fn must not become a chain of destructors.
        let core = self.core.get_mut();
        if let Some(e) = core.grad_fn.take() {
            // A history may own foreign objects.
            assert_no_guard("dropping a tensor with a history");
            defer_drop(e.node);
        }
        if let Some(meta) = &mut core.meta {
            // Chains of gradients may be long as well.
            for t in [meta.grad.take(), meta.tangent.take()].into_iter().flatten() {
                defer_tensor_drop(t);
            }
        }
    }
}

thread_local! {
    /// Tensors to be dropped while such a drop is in progress on this thread; None when none is.
    static DOOMED_TENSORS: RefCell<Option<Vec<Tensor>>> = const { RefCell::new(None) };
}

/// Drops a tensor that another one held; inside the drop of such a tensor it is queued until that is done.
fn defer_tensor_drop(t: Tensor) {
    let mut t = Some(t);
    // Thread-local storage is gone while a thread ends. Then the plain drop has to do.
    let outermost = DOOMED_TENSORS.try_with(|d| match &mut *d.borrow_mut() {
        Some(queue) => {
            queue.extend(t.take());
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    drop(t);
    if outermost == Ok(true) {
        while let Ok(Some(next)) = DOOMED_TENSORS.try_with(|d| d.borrow_mut().as_mut().and_then(Vec::pop)) {
            drop(next);
        }
        let _ = DOOMED_TENSORS.try_with(|d| *d.borrow_mut() = None);
    }
}

impl Tensor {
    #[inline(always)]
    pub(in crate::autograd) fn from_core(core: Core) -> Tensor {
        let own = matches!(&core.value, Value::Array(a) if a.storage().is_own());
        let simple = own && core.grad_fn.is_none() && core.meta.is_none();
        // Written field by field: passed as a whole it would be copied several times.
        let Core { value, version, requires_grad, number, is_special, inference, grad_fn, path_ends, meta } = core;
        // SAFETY: all fields are written.
        unsafe {
            Tensor(Handle::emplace(|place: *mut TensorInner| {
                RwSpinLock::emplace(&raw mut (*place).core, |at: *mut Core| {
                    (&raw mut (*at).value).write(value);
                    (&raw mut (*at).version).write(version);
                    (&raw mut (*at).requires_grad).write(requires_grad);
                    (&raw mut (*at).number).write(number);
                    (&raw mut (*at).is_special).write(is_special);
                    (&raw mut (*at).inference).write(inference);
                    (&raw mut (*at).grad_fn).write(grad_fn);
                    (&raw mut (*at).path_ends).write(path_ends);
                    (&raw mut (*at).meta).write(meta);
                });
                (&raw mut (*place).slot).write(ObjectSlot::default());
                (&raw mut (*place).simple).write(AtomicBool::new(simple));
            }))
        }
    }

    /// A leaf without gradient, made under the thread's mode.
    #[inline]
    pub fn new(array: Array) -> Tensor {
        Self::from_value(Value::Array(array))
    }

    #[inline]
    pub fn from_value(value: Value) -> Tensor {
        Self::in_mode(mode::current(), value)
    }

    /// As `from_value`, with the mode given.
    #[inline]
    pub(crate) fn in_mode(mode: Mode, value: Value) -> Tensor {
        Self::ended_in_mode(mode, value, None)
    }

    /// As `in_mode`, with the record of why there is no history.
    #[inline]
    pub(in crate::autograd) fn ended_in_mode(mode: Mode, value: Value, path_ends: Option<Arc<PathEnds>>) -> Tensor {
        let inference = mode.inference;
        let version = if inference { Version::Untracked } else { Version::Shared };
        Tensor::from_core(Core::without_history(value, version, inference, path_ends))
    }

    #[inline]
    pub(crate) fn with_history(value: Value, version: Version, grad_fn: Option<Edge>) -> Tensor {
        Tensor::from_core(Core {
            value,
            version,
            requires_grad: false,
            number: false,
            is_special: false,
            inference: false,
            grad_fn,
            path_ends: None,
            meta: None,
        })
    }

    /// A 0-d tensor that stands for a Python number in promotion.
    pub fn number(array: Array) -> Tensor {
        let t = Tensor::new(array);
        t.mark_number();
        t
    }

    #[inline]
    pub(crate) fn read(&self) -> ReadGuard<'_, Core> {
        // Recursive: an operation may hold the same tensor twice.
        self.0.core.read()
    }

    pub(crate) fn try_read(&self) -> Option<ReadGuard<'_, Core>> {
        self.0.core.try_read()
    }

    #[inline]
    pub(crate) fn write(&self) -> WriteGuard<'_, Core> {
        self.0.simple.store(false, Ordering::Relaxed);
        self.0.core.write()
    }

    #[inline]
    pub fn slot(&self) -> &ObjectSlot {
        &self.0.slot
    }

    /// The object that represents this tensor, and whether the tensor keeps it.
    #[inline]
    pub fn object(&self) -> Option<(*mut (), bool)> {
        self.0.slot.get().map(|p| (p, self.0.keeps()))
    }

    /// Makes the tensor keep the object in its slot, to which it has one reference from then on; that object holds this handle. False if nothing
    /// else holds the tensor. The reference is released when that is so later.
    ///
    /// # Safety
    /// The registered release function can release the object, as long as it is kept.
    pub unsafe fn keep_object(&self) -> bool {
        self.0.keep()
    }

    /// Ends that. If true is returned, the reference to the object is the caller's.
    pub fn give_object(&self) -> bool {
        self.0.keeps() && self.0.unkeep()
    }

    /// Whether the tensor keeps its object.
    #[inline]
    pub fn keeps_object(&self) -> bool {
        self.0.keeps()
    }

    /// The number of handles (variables, saved tensors, objects) of this tensor. The handle of an object that the tensor keeps does not count.
    #[inline]
    pub fn holders(&self) -> usize {
        self.0.strong_count()
    }

    /// Whether dropping this handle frees memory of this crate at most. May return false although it does.
    #[inline]
    pub fn drops_only_memory(&self) -> bool {
        self.0.simple.load(Ordering::Relaxed) || self.holders() > 1
    }

    /// Whether nothing was changed since the tensor was made of memory of this crate only.
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.0.simple.load(Ordering::Relaxed)
    }

    pub fn downgrade(&self) -> WeakTensor {
        WeakTensor(self.0.downgrade())
    }

    #[inline]
    pub fn same(&self, other: &Tensor) -> bool {
        self.0.same(&other.0)
    }

    /// A number that names this tensor while it lives.
    pub fn id(&self) -> usize {
        self.0.address()
    }

    // ---- value -------------------------------------------------------------------------------------------------------

    /// The elements below all levels of the tensor, to be read. Those of a lazy conjugate or negative are computed.
    ///
    /// # Errors
    /// Memory for computed elements cannot be allocated.
    #[inline]
    pub fn array(&self) -> Result<Array> {
        let core = self.read();
        if let Value::Array(a) = &core.value {
            return Ok(a.clone());
        }
        let value = core.value.clone();
        drop(core);
        value.elements()
    }

    /// The array below all levels as it lies in memory: for sizes, strides, storage and device. Its elements are those of the tensor only where
    /// `math_bits` has none set.
    #[inline]
    pub fn memory(&self) -> Array {
        let core = self.read();
        if let Value::Array(a) = &core.value {
            return a.clone();
        }
        let value = core.value.clone();
        drop(core);
        value.beneath()
    }

    #[inline]
    pub fn level(&self) -> u32 {
        self.read().value.level()
    }

    /// Runs `f` on the array, as it lies in memory (see `memory`), without cloning it. `f` must only look at it: the tensor is locked meanwhile, and even an allocation on a device may
    /// wait for the host's lock, whose holder may wait for this tensor.
    #[inline]
    pub fn with_array<R>(&self, f: impl FnOnce(&Array) -> R) -> R {
        let core = self.read();
        // One test where it is a plain array, as nearly always.
        if let Value::Array(a) = &core.value {
            return f(a);
        }
        if let Value::Lazy(l) = &core.value {
            return f(&l.array);
        }
        let value = core.value.clone();
        drop(core);
        f(&value.beneath())
    }

    pub fn shape(&self) -> Dims {
        self.with_array(|a| Dims::from_slice(a.shape()))
    }

    #[inline]
    pub fn dtype(&self) -> DType {
        self.with_array(Array::dtype)
    }

    #[inline]
    pub fn rank(&self) -> usize {
        self.with_array(Array::rank)
    }

    #[inline]
    pub fn numel(&self) -> usize {
        self.with_array(Array::numel)
    }

    pub fn device(&self) -> Device {
        self.with_array(Array::device)
    }

    /// The tensor's rank in type promotion.
    #[inline]
    pub fn promotion_rank(&self) -> PromotionRank {
        let core = self.read();
        if core.number {
            PromotionRank::Number
        } else if core.value_rank() == 0 {
            PromotionRank::ZeroDim
        } else {
            PromotionRank::Dims
        }
    }

    /// The dtype, and whether the tensor stands for a Python number, with one lock.
    #[inline]
    pub fn dtype_and_number(&self) -> (DType, bool) {
        let core = self.read();
        let dtype = if let Value::Array(a) = &core.value { a.dtype() } else { core.value.dtype_beneath() };
        (dtype, core.number)
    }

    /// Makes the tensor stand for a Python number in promotion.
    pub fn mark_number(&self) {
        let mut core = self.write();
        core.number = true;
        core.is_special = true;
    }

    pub fn is_number(&self) -> bool {
        self.read().number
    }

    pub fn is_inference(&self) -> bool {
        self.read().inference
    }

    // ---- version -----------------------------------------------------------------------------------------------------

    pub fn version(&self) -> Option<u32> {
        let core = self.read();
        core.with_storage(|s| core.version.current(s))
    }

    pub(crate) fn bump_version(&self, change: Change) {
        let core = self.read();
        core.with_storage(|s| core.version.bump(s, change));
    }

    /// Adds one to the version counter, as a write by `op` would.
    pub fn increment_version(&self, op: &'static str) {
        self.bump_version(Change { site: crate::autograd::dispatch::call_site::current().0, op });
    }

    /// Sets the version counter (torch's `_unsafe_set_version_counter`).
    pub fn set_version(&self, count: u32) {
        let core = self.read();
        core.with_storage(|s| core.version.set(s, count));
    }

    // ---- history -----------------------------------------------------------------------------------------------------

    /// Whether backward reaches this tensor. A view requires grad if its base does.
    pub fn requires_grad(&self) -> bool {
        let core = self.read();
        core.requires_grad
            || core.grad_fn.is_some()
            || core.meta.as_ref().and_then(|m| m.view.as_ref()).is_some_and(|v| v.base.requires_grad())
    }

    pub fn is_leaf(&self) -> bool {
        !self.requires_grad() || self.grad_fn().ok().flatten().is_none()
    }

    /// Whether it has no node at this moment; a view's is not made anew.
    pub fn is_leaf_now(&self) -> bool {
        self.read().grad_fn.is_none()
    }

    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        // A view whose node cannot be made anew is no leaf either.
        if !self.is_leaf_now() || !self.is_leaf() {
            return if on {
                Ok(())
            } else {
                Err(Error::runtime(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph \
                     that doesn't require differentiation use var_no_grad = var.detach().",
                ))
            };
        }
        if on && !self.dtype().is_differentiable() {
            return Err(Error::runtime("only Tensors of floating point dtype can require gradients"));
        }
        if on && self.is_inference() && !mode::current().inference {
            return Err(Error::runtime("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."));
        }
        let mut core = self.write();
        core.requires_grad = on;
        core.update_special();
        Ok(())
    }

    /// The node that made this tensor; None for a leaf. For a view whose base was written since, the node is regenerated.
    pub fn grad_fn(&self) -> Result<Option<Edge>> {
        let stale = {
            let core = self.read();
            match core.meta.as_ref().and_then(|m| m.view.as_ref()) {
                None => return Ok(core.grad_fn.clone()),
                Some(v) => v.is_stale(&core),
            }
        };
        if stale {
            crate::autograd::graph::view::regenerate(self)?;
        }
        Ok(self.read().grad_fn.clone())
    }

    /// The edge for gradients of this tensor: to its node, or to the accumulate node of a leaf. None if it needs no gradient.
    pub fn gradient_edge(&self) -> Result<Option<Edge>> {
        {
            let core = self.read();
            if core.meta.is_none() {
                if core.grad_fn.is_some() {
                    return Ok(core.grad_fn.clone());
                }
                if !core.requires_grad {
                    return Ok(None);
                }
            }
        }
        if let Some(e) = self.grad_fn()? {
            return Ok(Some(e));
        }
        let known = {
            let core = self.read();
            if !core.requires_grad {
                return Ok(None);
            }
            core.meta.as_ref().and_then(|m| m.accumulate.upgrade())
        };
        if let Some(node) = known {
            return Ok(Some(Edge { node, nr: 0 }));
        }
        // Not under the lock: finding the site may run foreign code.
        let site = crate::autograd::dispatch::call_site::current();
        // Nor this, which may lock tensors of lower levels.
        let out = { crate::autograd::dispatch::apply::out_meta(&self.read().value) };
        let mut core = self.write();
        if !core.requires_grad {
            return Ok(None);
        }
        let meta = core.meta.get_or_insert_default();
        if let Some(node) = meta.accumulate.upgrade() {
            return Ok(Some(Edge { node, nr: 0 }));
        }
        let node = Node::accumulate(self.clone(), out, site);
        if let Some(meta) = core.meta.as_mut() {
            meta.accumulate = Arc::downgrade(&node);
        }
        Ok(Some(Edge { node, nr: 0 }))
    }

    pub(crate) fn meta<R>(&self, f: impl FnOnce(Option<&Meta>) -> R) -> R {
        f(self.read().meta.as_deref())
    }

    pub(crate) fn meta_mut<R>(&self, f: impl FnOnce(&mut Meta) -> R) -> R {
        f(self.write().meta.get_or_insert_default())
    }

    /// The tensor that this one is a view of.
    pub fn base(&self) -> Option<Tensor> {
        self.meta(|m| m.and_then(|m| m.view.as_ref()).map(|v| v.base.clone()))
    }

    pub fn retains_grad(&self) -> bool {
        self.meta(|m| m.is_some_and(|m| m.retains_grad))
    }

    /// Makes backward store this tensor's gradient in `.grad`. A leaf does so anyway.
    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            return Err(Error::runtime("can't retain_grad on Tensor that has requires_grad=False"));
        }
        let Some(e) = (if self.is_leaf() { None } else { self.grad_fn()? }) else { return Ok(()) };
        if self.retains_grad() {
            return Ok(());
        }
        self.meta_mut(|m| m.retains_grad = true);
        let weak = self.downgrade();
        e.node.with_hooks(|h| h.retain.push((e.nr, weak)));
        Ok(())
    }

    // ---- hooks -------------------------------------------------------------------------------------------------------

    /// Registers a hook on this tensor's gradient: on the leaf, or on the node that made it.
    pub fn register_hook(&self, hook: Arc<dyn TensorHook>) -> Result<Registration> {
        let id = next_id();
        Ok(match self.grad_fn()? {
            Some(e) => {
                e.node.with_hooks(|h| h.tensor.push((id, e.nr, hook)));
                Registration::Node(Arc::downgrade(&e.node), id)
            }
            None => {
                self.with_leaf_hooks(|h| h.tensor.push((id, hook)));
                Registration::Leaf(self.downgrade(), id)
            }
        })
    }

    pub fn with_leaf_hooks<R>(&self, f: impl FnOnce(&mut LeafHooks) -> R) -> R {
        self.meta_mut(|m| f(&mut m.hooks))
    }

    pub(crate) fn remove_leaf_hook(&self, id: u64) {
        let mut removed = LeafHooks::default();
        self.meta_mut(|m| {
            removed = m.hooks.clone();
            m.hooks.remove(id);
        });
        drop(removed);
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}, {})", &self.shape()[..], self.dtype())
    }
}
