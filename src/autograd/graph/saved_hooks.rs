//! Saved tensor hooks: `pack` turns what a node saves into any object, `unpack` turns that into a tensor again during backward.

use crate::array::Version;
use crate::autograd::dispatch::apply::out_meta;
use crate::autograd::dispatch::mode::{ModeGuard, Watch, current as mode, set_watch};
use crate::autograd::graph::node::{Edge, Node, OutMeta, defer_drop};
use crate::autograd::graph::saved::Saved;
use crate::autograd::tensor::{Tensor, Value};
use crate::error::{Error, Result};
use crate::layout::fmt_shape;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What a pack hook returned for a tensor.
pub trait PackedTensor: Send + Sync {
    fn unpack(&self) -> Result<Tensor>;

    /// The foreign object, for the embedding language.
    fn as_any(&self) -> &dyn Any;
}

/// A pair of pack and unpack hooks.
pub trait SavedTensorHooks: Send + Sync {
    /// Called while recording is off.
    fn pack(&self, t: &Tensor) -> Result<Arc<dyn PackedTensor>>;
}

/// The hooks in force on a thread, innermost last.
#[derive(Default, Clone)]
pub struct HookStack {
    hooks: Vec<Arc<dyn SavedTensorHooks>>,
    /// The message with which new hooks are refused.
    refused: Option<String>,
}

thread_local! {
    static STACK: RefCell<HookStack> = RefCell::default();
    static CHANGES: Cell<Changes> = const { Cell::new(Changes { count: 0, empty: true }) };
}

/// How often the thread's stack has changed, and whether it has neither hooks nor a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Changes {
    count: u64,
    empty: bool,
}

fn count_change(now: &HookStack) {
    CHANGES.set(Changes { count: CHANGES.get().count + 1, empty: now.hooks.is_empty() && now.refused.is_none() });
}

/// The stack of a thread at one moment, which can be put back.
pub(in crate::autograd) struct StackAt {
    /// None: empty.
    stack: Option<Box<HookStack>>,
    changes: Cell<Changes>,
}

impl StackAt {
    #[inline]
    pub fn now() -> StackAt {
        let changes = CHANGES.get();
        StackAt { stack: (!changes.empty).then(|| Box::new(stack())), changes: Cell::new(changes) }
    }

    /// Makes this stack that of the thread again, if it has changed since.
    #[inline]
    pub fn restore(&self) {
        if CHANGES.get() != self.changes.get() {
            self.put_back();
        }
    }

    #[cold]
    fn put_back(&self) {
        let stack = self.stack.as_deref().cloned().unwrap_or_default();
        set_watch(Watch::Saving, !stack.hooks.is_empty());
        count_change(&stack);
        let old = STACK.with(|s| s.replace(stack));
        self.changes.set(CHANGES.get());
        // Outside the borrow: hooks may own foreign objects.
        drop(old);
    }
}

/// Adds hooks for everything that this thread saves from now on. The innermost pair packs.
///
/// # Errors
/// The message given to `refuse`, while that is in force.
pub fn push(hooks: Arc<dyn SavedTensorHooks>) -> Result<()> {
    STACK.with(|s| {
        let mut s = s.borrow_mut();
        if let Some(why) = &s.refused {
            return Err(Error::runtime(why.clone()));
        }
        s.hooks.push(hooks);
        count_change(&s);
        set_watch(Watch::Saving, true);
        Ok(())
    })
}

/// Removes the innermost hooks.
pub fn pop() {
    let gone = STACK.with(|s| {
        let mut s = s.borrow_mut();
        let gone = s.hooks.pop();
        count_change(&s);
        set_watch(Watch::Saving, !s.hooks.is_empty());
        gone
    });
    // Outside the borrow: hooks may own foreign objects.
    drop(gone);
}

/// Refuses new hooks with this message (None: allows them again) and returns the previous setting.
///
/// # Errors
/// The message itself, if hooks are in force already.
pub fn refuse(why: Option<String>) -> Result<Option<String>> {
    STACK.with(|s| {
        let mut s = s.borrow_mut();
        match why {
            Some(why) if !s.hooks.is_empty() => Err(Error::runtime(why)),
            why => {
                let before = std::mem::replace(&mut s.refused, why);
                count_change(&s);
                Ok(before)
            }
        }
    })
}

/// The hooks of this thread, for another thread that continues its work.
pub(in crate::autograd) fn stack() -> HookStack {
    STACK.with(|s| s.borrow().clone())
}

/// Installs another thread's hooks on this one, which has none.
pub(in crate::autograd) fn install(stack: HookStack) {
    set_watch(Watch::Saving, !stack.hooks.is_empty());
    count_change(&stack);
    STACK.with(|s| *s.borrow_mut() = stack);
}

/// The hooks in force on this thread.
#[inline]
pub fn current() -> Option<Arc<dyn SavedTensorHooks>> {
    if !mode().watches(Watch::Saving) {
        return None;
    }
    STACK.with(|s| s.borrow().hooks.last().cloned())
}

/// A packed value, with the history that the unpacked tensor gets.
pub struct PackedSavedTensor {
    packed: Arc<dyn PackedTensor>,
    history: PackedHistory,
    meta: OutMeta,
}

enum PackedHistory {
    Plain,
    /// A leaf that requires grad. Holding its accumulate node keeps it reachable for gradients.
    Leaf(Arc<Node>),
    /// The result of another node.
    Computed(Edge),
    /// This output of the node that saves it.
    Output(u32),
    /// It was the result of another node, but `detach_` had taken that history away when the value was packed.
    Detached,
}

impl Drop for PackedSavedTensor {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.history, PackedHistory::Plain) {
            PackedHistory::Leaf(node) | PackedHistory::Computed(Edge { node, .. }) => defer_drop(node),
            PackedHistory::Plain | PackedHistory::Output(_) | PackedHistory::Detached => {}
        }
    }
}

impl PackedSavedTensor {
    pub fn packed(&self) -> &Arc<dyn PackedTensor> {
        &self.packed
    }

    pub(in crate::autograd) fn unpack(&self, node: &Arc<Node>) -> Result<Tensor> {
        let made = self.packed.unpack()?;
        if matches!(self.history, PackedHistory::Plain) && !made.requires_grad() && !made.has_tangent() && self.meta.is_of(&made) {
            // A value without history is the very tensor that the hook gives.
            return Ok(made);
        }
        let (value, version) = {
            let core = made.read();
            (core.value.clone(), core.version.clone())
        };
        let value = self.fitted(value, node)?;
        Ok(match &self.history {
            PackedHistory::Plain | PackedHistory::Detached => Tensor::with_history(value, version, None),
            PackedHistory::Computed(edge) => Tensor::with_history(value, version, Some(edge.clone())),
            PackedHistory::Output(nr) => Tensor::with_history(value, version, Some(Edge { node: node.clone(), nr: *nr })),
            PackedHistory::Leaf(accumulate) => {
                let leaf = Tensor::with_history(value, version, None);
                leaf.meta_mut(|m| m.accumulate = Arc::downgrade(accumulate));
                leaf.write().requires_grad = true;
                leaf
            }
        })
    }

    /// Whether `detach_` had taken the value's history away when it was packed.
    pub(in crate::autograd) fn was_detached(&self) -> bool {
        matches!(self.history, PackedHistory::Detached)
    }

    /// The unpacked value, if it matches what was packed: shape and device, and the dtype or another float dtype.
    fn fitted(&self, value: Value, node: &Node) -> Result<Value> {
        let OutMeta { shape, dtype, device } = &self.meta;
        let got = out_meta(&value);
        let expected = format!("{}: Output of saved tensor unpack_hook expected to be a Tensor like the one that was packed", node.name());
        if got.shape != *shape {
            return Err(Error::shape(format!("{expected}, of shape {}, but got shape {}", fmt_shape(shape), fmt_shape(&got.shape))));
        }
        if got.device != *device {
            return Err(Error::runtime(format!("{expected}, on device {device}, but got one on {}", got.device)));
        }
        match value {
            value if got.dtype == *dtype => Ok(value),
            Value::Array(_) | Value::Lazy(_) if dtype.is_differentiable() && got.dtype.category() == dtype.category() => {
                Ok(Value::Array(value.elements()?.cast(*dtype)?))
            }
            _ => Err(Error::dtype(format!("{expected}, of dtype {dtype}, but got dtype {}", got.dtype))),
        }
    }
}

/// Packs one saved value. The hook gets the tensor `shown`. None where there is nothing to pack: no value, a number, or a value that is packed
/// already.
fn pack(hooks: &dyn SavedTensorHooks, saved: &Saved, shown: &Tensor) -> Result<Option<Saved>> {
    let of = |edge: Option<Edge>| edge.map_or(PackedHistory::Plain, PackedHistory::Computed);
    let history = match saved {
        Saved::Nothing | Saved::Packed(_) | Saved::Number(_) => return Ok(None),
        Saved::Input { tensor, .. } if tensor.is_number() => return Ok(None),
        Saved::Input { tensor, .. } if tensor.read().is_detached() => PackedHistory::Detached,
        Saved::Input { tensor, .. } => match tensor.grad_fn()? {
            None => tensor.gradient_edge()?.map_or(PackedHistory::Plain, |e| PackedHistory::Leaf(e.node)),
            edge => of(edge),
        },
        Saved::Output(o) => PackedHistory::Output(o.nr()),
        Saved::Alias(a) => of(a.separate().read().grad_fn.clone()),
        Saved::Copy(c) => of(c.1.clone()),
    };
    let before = shown.version();
    let packed = {
        let _off = ModeGuard::grad(false);
        hooks.pack(shown)?
    };
    if shown.version() != before {
        return Err(Error::runtime(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place \
             operations as this can lead to unexpected side-effects. Please write to a clone() of it.",
        ));
    }
    let meta = shown.with_array(OutMeta::of);
    Ok(Some(Saved::Packed(Arc::new(PackedSavedTensor { packed, history, meta }))))
}

/// Packs all saved values of a node that are not packed yet, in PyTorch's order. `outs` are the node's outputs.
///
/// # Errors
/// The hook's own error; then the node is unchanged.
pub(in crate::autograd) fn pack_node(node: &Node, hooks: &dyn SavedTensorHooks, outs: &[Tensor]) -> Result<()> {
    let mut all = node.saved();
    for position in node.saved_order() {
        let shown = match all.get(position) {
            None | Some(Saved::Nothing | Saved::Packed(_) | Saved::Number(_)) => continue,
            Some(Saved::Input { tensor, .. }) => tensor.clone(),
            Some(Saved::Alias(a)) => a.tensor(),
            Some(Saved::Output(o)) => outs[o.nr() as usize].clone(),
            Some(Saved::Copy(c)) => Tensor::with_history(c.0.clone(), Version::fresh(), c.1.clone()),
        };
        if let Some(packed) = pack(hooks, &all[position], &shown)? {
            all[position] = packed;
        }
    }
    node.save(all);
    Ok(())
}

/// Packs a value that a custom Function saves, shown to the hook as `tensor`.
pub fn packed(hooks: &dyn SavedTensorHooks, saved: Saved, tensor: &Tensor) -> Result<Saved> {
    Ok(pack(hooks, &saved, tensor)?.unwrap_or(saved))
}

/// Packs one value that a node has saved already. The hook sees it without its history.
///
/// # Errors
/// The node was freed, nothing was saved there, or it is packed already; or the hook's own error, which leaves the value as it is.
pub fn pack_one(node: &Arc<Node>, position: usize, hooks: &dyn SavedTensorHooks) -> Result<()> {
    if node.is_freed() {
        return Err(Error::graph(
            "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you \
             call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if \
             you need to access saved variables after calling backward.",
        ));
    }
    let mut all = node.saved();
    let shown = match all.get(position) {
        None | Some(Saved::Nothing) => return Err(nothing_there()),
        Some(Saved::Packed(_)) => {
            return Err(Error::runtime(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.",
            ));
        }
        Some(Saved::Input { tensor, .. }) => tensor.detach(),
        Some(Saved::Alias(a)) => a.separate().detach(),
        Some(other) => other.clone().unpack(node)?.detach(),
    };
    match pack(hooks, &all[position], &shown)? {
        Some(packed) => all[position] = packed,
        None => return Err(Error::runtime("Calling register_hooks on a Python number, which no hook is asked for, is forbidden")),
    }
    node.save(all);
    Ok(())
}

#[cold]
pub fn nothing_there() -> Error {
    Error::runtime("Calling register_hooks on a saved tensor with value None is forbidden")
}
