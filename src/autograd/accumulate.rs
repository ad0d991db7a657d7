//! Where gradients end: `.grad` of leaves, and of other tensors that were asked to keep theirs.

use super::linear;
use super::site::Inherit;
use super::tensor::Tensor;
use crate::backend::host;
use crate::error::Result;
use parking_lot::{Mutex, MutexGuard};

/// Passes of several threads may come to one leaf: what they add is added one after the other. Leaves share these by their number.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Waits for this thread's turn at a leaf. Whoever has it may want the host's lock, which is therefore given away meanwhile.
fn turn(leaf: &Tensor) -> MutexGuard<'static, ()> {
    let place = &TURNS[leaf.id() / 64 % TURNS.len()];
    place.try_lock().unwrap_or_else(|| host::unlocked(|| place.lock()))
}

/// Adds a gradient to a leaf's `.grad`. The first one is taken over if nobody else holds it, else copied; later ones
/// are added in place, out of place if the sum is to have a history itself.
pub(crate) fn into_leaf(leaf: &Tensor, grad: Tensor, create_graph: bool) -> Result<()> {
    let old = {
        let _turn = turn(leaf);
        add(leaf, grad, create_graph)?
    };
    // Not in its turn: it may own foreign objects.
    drop(old);
    let hooks = leaf.meta(|m| m.map(|m| m.hooks.post_accumulate.clone())).unwrap_or_default();
    if !hooks.is_empty() {
        let _lines = Inherit::suspend();
        for (_, hook) in hooks {
            hook.call(leaf)?;
        }
    }
    Ok(())
}

/// Adds to `.grad`, and gives back what stood there.
fn add(leaf: &Tensor, grad: Tensor, create_graph: bool) -> Result<Option<Tensor>> {
    let Some(have) = leaf.grad() else {
        // `.grad` lies in memory as the leaf does.
        let same = leaf.with_array(|l| grad.with_array(|g| l.strides() == g.strides() && g.storage().is_sole_owner()));
        let own = if create_graph || !grad.is_bare() {
            linear::clone(&grad)?
        } else if same && grad.holders() == 1 {
            grad
        } else {
            let copy = leaf.with_array(|l| l.empty_like(l.dtype()))?;
            copy.copy_from(&grad.array())?;
            Tensor::new(copy)
        };
        return Ok(leaf.meta_mut(|m| m.grad.replace(own)));
    };
    let in_place = !create_graph
        && have.is_bare()
        && grad.is_bare()
        && have.with_array(|a| a.storage().is_writable() && !a.layout().has_zero_stride());
    if in_place {
        // Recorded as a write, so that a graph that saved this `.grad` notices.
        linear::add_into(&have, &grad)?;
        have.increment_version("accumulate_grad");
    } else {
        let sum = linear::add(&have, &grad)?;
        leaf.meta_mut(|m| m.grad = Some(sum));
    }
    Ok(Some(have))
}

/// `.grad` of a tensor that is no leaf but keeps its gradient: the same pass may not change it later, so it is copied.
pub(crate) fn retain(t: &Tensor, grad: &Tensor) -> Result<()> {
    match t.grad() {
        None => {
            let own = linear::clone(grad)?;
            t.meta_mut(|m| m.grad = Some(own));
        }
        Some(have) => {
            let sum = linear::add(&have, grad)?;
            let old = t.meta_mut(|m| m.grad.replace(sum));
            drop(old);
        }
    }
    Ok(())
}
