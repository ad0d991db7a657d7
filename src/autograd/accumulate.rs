//! Where gradients end: `.grad` of leaves, and of other tensors that were asked to keep theirs.

use super::linear;
use super::site::Inherit;
use super::tensor::Tensor;
use crate::error::Result;

/// Adds a gradient to a leaf's `.grad`. The first one is taken over if nobody else holds it, else copied; later ones
/// are added in place, out of place if the sum is to have a history itself.
pub(crate) fn into_leaf(leaf: &Tensor, grad: Tensor, create_graph: bool) -> Result<()> {
    match leaf.grad() {
        None => {
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
            leaf.meta_mut(|m| m.grad = Some(own));
        }
        Some(have) if create_graph => {
            let sum = linear::add(&have, &grad)?;
            let old = leaf.meta_mut(|m| m.grad.replace(sum));
            drop(old);
        }
        Some(have) => {
            // Recorded as a write, so that a graph that saved this `.grad` notices.
            if have.is_bare() && grad.is_bare() && have.with_array(|a| a.storage().is_writable() && !a.layout().has_zero_stride()) {
                linear::add_into(&have, &grad)?;
                have.increment_version("accumulate_grad");
            } else {
                let sum = linear::add(&have, &grad)?;
                let old = leaf.meta_mut(|m| m.grad.replace(sum));
                drop(old);
            }
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
