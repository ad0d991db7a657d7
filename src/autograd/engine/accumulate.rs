//! Accumulates gradients in `.grad` of leaves, and of other tensors with `retain_grad`.

use crate::array::fusion;
use crate::array::lock_order::{HeldLock, LockMode, Rank, ReentrantMutex, ReentrantMutexGuard, enter};
use crate::autograd::dispatch::apply::inplace_shape;
use crate::autograd::dispatch::call_site::Inherit;
use crate::autograd::graph::view::{ViewOp, view};
use crate::autograd::primitives;
use crate::autograd::tensor::{Tensor, Value};
use crate::error::{Error, Result};
use crate::host::interrupt::{Paused, paused};
use crate::host::language;
use crate::layout::broadcast;

/// Passes of several threads may reach one leaf; their additions are serialised. Leaves share these locks by address. The locks are reentrant,
/// because the addition may run foreign code (a signal handler, a write callback).
static LEAF_LOCKS: [ReentrantMutex<()>; 64] = [const { ReentrantMutex::new(()) }; 64];

/// The lock of a leaf, held.
struct LeafLock {
    _lock: ReentrantMutexGuard<'static, ()>,
    _held: HeldLock,
    _paused: Paused,
}

/// Locks a leaf. The thread that holds the lock may need the host's lock, so a wait releases that.
fn lock_leaf(leaf: &Tensor) -> LeafLock {
    let _held = enter(Rank::Turn, LockMode::Shared);
    let lock = &LEAF_LOCKS[leaf.id() / 64 % LEAF_LOCKS.len()];
    LeafLock { _lock: lock.try_lock().unwrap_or_else(|| language::unlocked(|| lock.lock())), _held, _paused: paused() }
}

/// Adds a gradient to a leaf's `.grad`, if there is one and the leaf still requires grad. The first one is moved there if nothing else holds it, else
/// copied. Later ones are added in place, or out of place if the sum has a history. Then the leaf's hooks run.
///
/// # Errors
/// The tensor has become the result of a node since the graph was recorded.
pub(crate) fn into_leaf(leaf: &Tensor, grad: Option<Tensor>, create_graph: bool) -> Result<()> {
    if let Some(grad) = grad {
        let is_large = grad.numel() >= fusion::large();
        let grad = if create_graph { grad } else { without_base(grad) };
        let old = {
            let _lock = lock_leaf(leaf);
            add(leaf, grad, create_graph)?
        };
        // After the lock is released: it may own foreign objects.
        drop(old);
        if is_large && let Some(grad) = leaf.grad() {
            // A product that waited here would keep its factors, and read them when they have left the caches.
            grad.array()?.settle_source()?;
        }
    }
    let hooks = leaf.meta(|m| m.map(|m| m.hooks.post_accumulate.clone())).unwrap_or_default();
    if !hooks.is_empty() {
        let _lines = Inherit::suspend();
        for (_, hook) in hooks {
            hook.call(leaf)?;
        }
    }
    Ok(())
}

/// The gradient itself, or, of a view of a whole base that only the view holds, a tensor without that base: the gradient of what begins with a view
/// can then be moved. No leaf is locked here, since the base may own foreign objects.
fn without_base(grad: Tensor) -> Tensor {
    // The view has one handle of its base, and here is another.
    let is_alone = |grad: &Tensor| grad.holders() == 1 && is_own_value(grad) && grad.base().is_some_and(|base| base.holders() == 2);
    if !is_alone(&grad) {
        return grad;
    }
    let (array, bits) = (grad.memory(), grad.math_bits());
    if array.numel() * array.dtype().size() != array.storage().bytes() {
        return grad;
    }
    drop(grad);
    Tensor::from_value(Value::of(array, bits))
}

/// Whether the value is one of level 0 without a tangent. It may be a lazy conjugate, and becomes `.grad` as such.
fn is_own_value(grad: &Tensor) -> bool {
    grad.level() == 0 && !grad.has_tangent()
}

/// Adds to `.grad` and returns the old tensor. A leaf that no longer requires grad is left alone.
fn add(leaf: &Tensor, grad: Tensor, create_graph: bool) -> Result<Option<Tensor>> {
    let have = {
        let core = leaf.read();
        if core.grad_fn.is_some() {
            return Err(Error::runtime("leaf variable has been moved into the graph interior"));
        }
        if !core.requires_grad {
            return Ok(None);
        }
        core.meta.as_ref().and_then(|m| m.grad.clone())
    };
    let Some(have) = have else {
        // `.grad` has the leaf's strides.
        let same = leaf.with_array(|l| grad.with_array(|g| l.strides() == g.strides() && g.storage().is_sole_owner()));
        let own = if grad.shape() != leaf.shape() {
            of_other_shape(leaf, grad, create_graph)?
        } else if create_graph || !is_own_value(&grad) {
            primitives::clone(&grad)?
        } else if same && grad.holders() == 1 {
            grad
        } else {
            let like = leaf.memory();
            let copy = like.empty_like(grad.dtype())?;
            copy.copy_from(&grad.array()?)?;
            Tensor::new(copy)
        };
        return Ok(leaf.meta_mut(|m| m.grad.replace(own)));
    };
    let in_place = !create_graph
        && have.is_bare()
        && grad.is_bare()
        && have.with_array(|a| a.storage().is_writable() && !a.layout().has_zero_stride());
    // Only a leaf whose `grad_dtype` is None has gradients of several dtypes.
    let grad = if in_place && grad.dtype() != have.dtype() { primitives::cast(&grad, have.dtype())? } else { grad };
    if in_place {
        // The version changes, so that a graph that saved this `.grad` notices the write.
        primitives::add_into(&have, &grad)?;
        have.increment_version("accumulate_grad");
    } else {
        let sum = primitives::add(&have, &grad)?;
        leaf.meta_mut(|m| m.grad = Some(sum));
    }
    Ok(Some(have))
}

/// The first gradient of a leaf that was given memory of another shape after its gradient was recorded. As in PyTorch it stays as it is if nothing
/// else holds it and its strides are the leaf's. Otherwise it is broadcast to the leaf's shape.
#[cold]
fn of_other_shape(leaf: &Tensor, grad: Tensor, create_graph: bool) -> Result<Tensor> {
    let shape = leaf.shape();
    let dense = leaf.with_array(|l| l.layout().is_dense());
    let has_strides_of_leaf = leaf.with_array(|l| {
        grad.with_array(|g| {
            let mut dims = g.shape().iter().zip(g.strides()).enumerate();
            g.storage().is_sole_owner() && dims.all(|(i, (n, stride))| *n == 1 || l.strides().get(i) == Some(stride))
        })
    });
    if !create_graph && grad.is_bare() && grad.holders() == 1 && dense && has_strides_of_leaf {
        return Ok(grad);
    }
    if !dense {
        return primitives::clone(&grad);
    }
    let all = broadcast(&shape, &grad.shape())?;
    if all != shape {
        return Err(inplace_shape(&shape, &all));
    }
    primitives::clone(&view(&grad, ViewOp::Expand(shape))?)
}

/// `.grad` of a non-leaf with `retain_grad`. The pass may go on to use the gradient in place, so it is copied.
pub(crate) fn retain(t: &Tensor, grad: &Tensor) -> Result<()> {
    match t.grad() {
        None => {
            let own = primitives::clone(grad)?;
            t.meta_mut(|m| m.grad = Some(own));
        }
        Some(have) => {
            let sum = primitives::add(&have, grad)?;
            let old = t.meta_mut(|m| m.grad.replace(sum));
            drop(old);
        }
    }
    Ok(())
}
