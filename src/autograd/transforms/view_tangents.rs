//! Tangents of views: a view of a tensor has a view of its tangent, so that what is written to one is written to the other.
//!
//! A view that is made of a tensor with a tangent has its part at once. One that was there before the tensor got its tangent, by a write in
//! place, takes its part when it is used next (`inherit`).

use crate::autograd::dispatch::mode::{self, ModeGuard, Watch};
use crate::autograd::graph::view::{ViewInfo, ViewOp, ops_from_base, view};
use crate::autograd::primitives;
use crate::autograd::tensor::{Core, Tensor};
use crate::autograd::transforms::forward_mode::{fitted, full_like, zeros_like};
use crate::error::Result;
use crate::layout::{Dims, Layout, Strides};

/// The tangent with the primal's strides and memory of its own, so that views of the primal are views of the tangent too.
pub(in crate::autograd) fn in_layout_of(tangent: &Tensor, primal: &Tensor) -> Result<Tensor> {
    let fits = primal.with_array(|p| {
        tangent.with_array(|t| !p.storage().same(t.storage()) && (same_strides(p.layout(), t.layout()) || p.layout().has_zero_stride()))
    });
    if fits {
        return Ok(tangent.clone());
    }
    if tangent.level() > 0 {
        // The tangent may be a batch where the primal is none: its own copy has the primal's order of dimensions.
        let strides = primal.with_array(|p| Strides::from_slice(p.strides()));
        let mut order: Dims = (0..strides.len()).collect();
        order.sort_by_key(|d| std::cmp::Reverse(strides[*d].unsigned_abs()));
        let mut inverse = order.clone();
        for (i, d) in order.iter().enumerate() {
            inverse[*d] = i;
        }
        let copy = primitives::contiguous_copy(&view(tangent, ViewOp::Permute(order))?)?;
        return view(&copy, ViewOp::Permute(inverse));
    }
    let like = primal.memory();
    let out = primal.beside(Tensor::new(like.empty_like(like.dtype())?))?;
    primitives::copy_(&out, tangent)?;
    Ok(out)
}

/// Updates the tangent of `target` after an in-place write to `made` (None: zero): in place if there is one, so that views see it.
pub fn write_tangent(target: &Tensor, made: Option<Tensor>) -> Result<()> {
    let have = target.tangent();
    let Some(t) = made else { return have.map_or(Ok(()), |have| primitives::zero_(&have)) };
    let t = fitted(t, target)?;
    if let Some(have) = &have
        && (have.is_batched() || !t.is_batched())
    {
        return primitives::copy_(have, &t);
    }
    let Some(info) = target.meta(|m| m.and_then(|m| m.view.clone())) else {
        target.set_tangent(Some(in_layout_of(&t, target)?));
        mode::set_watch(Watch::ViewTangents, true);
        return Ok(());
    };
    // From now on the base has a tangent, of which this view's is a part.
    let stored = info.base.read().stored_tangent();
    let mut whole = match stored {
        Some(whole) => whole,
        None => in_layout_of(&zeros_like(&info.base)?, &info.base)?,
    };
    if t.is_batched() && !whole.is_batched() {
        whole = primitives::add(&whole, &t.beside(full_like(&whole, 0)?)?)?;
    }
    info.base.set_tangent(Some(whole));
    mode::set_watch(Watch::ViewTangents, true);
    let part = part_of_base(target, &info)?.unwrap_or_else(|| t.clone());
    primitives::copy_(&part, &t)?;
    target.set_tangent(Some(part));
    Ok(())
}

/// Whether the base of a view has got its tangent after the view was made, so that the view has none yet.
pub(in crate::autograd) fn is_inherited(view: &Core) -> bool {
    let info = view.meta.as_ref().and_then(|m| m.view.as_ref());
    info.is_some_and(|v| v.base.read().has_tangent())
}

/// Gives those of some tensors that are views their parts of tangents that their bases have got since. For a thread that watches for
/// `Watch::ViewTangents`; nothing may be locked.
#[cold]
pub fn inherit(tensors: &[&Tensor]) -> Result<()> {
    for t in tensors {
        let info = {
            let core = t.read();
            if core.has_tangent() || !is_inherited(&core) {
                continue;
            }
            core.meta.as_ref().and_then(|m| m.view.clone())
        };
        if let Some(info) = info {
            let part = part_of_base(t, &info)?;
            t.set_tangent(part);
        }
    }
    Ok(())
}

/// The part of its base's tangent that corresponds to a view.
fn part_of_base(t: &Tensor, info: &ViewInfo) -> Result<Option<Tensor>> {
    let Some(mut tangent) = info.base.read().stored_tangent() else { return Ok(None) };
    let mut primal = info.base.with_array(|a| a.layout().clone());
    // The view was there before: the grad mode of the present says nothing about it.
    let _grad = ModeGuard::grad(true);
    for op in ops_from_base(t, info) {
        tangent = tangent_of_view(&primal, &tangent, &op)?;
        primal = op.layout(&primal, usize::MAX)?;
    }
    Ok(Some(tangent))
}

/// The view of a tangent that corresponds to a view of its primal, which has this layout.
pub(in crate::autograd) fn tangent_of_view(primal: &Layout, tangent: &Tensor, op: &ViewOp) -> Result<Tensor> {
    let ViewOp::AsStrided { shape, strides, offset } = op else { return view(tangent, op.clone()) };
    let last = Layout::from_parts(shape.clone(), strides.clone(), *offset)?.end();
    let batched = tangent.is_batched();
    let shares = tangent.with_array(|t| {
        // What lies behind an element of a batch is the next element.
        let room = if batched { t.layout().end() } else { Some(t.storage().bytes() / t.storage().element_size(t.dtype())) };
        t.layout().offset() == primal.offset() && same_strides(primal, t.layout()) && last.is_some_and(|l| room >= Some(l))
    });
    if shares {
        return view(tangent, op.clone());
    }
    let (mut strides, offset) = (Strides::from_slice(primal.strides()), primal.offset());
    let mut tangent = tangent.clone();
    // Of elements that share a position, the first one counts.
    for d in (0..strides.len()).rev() {
        if strides[d] == 0 && tangent.with_array(|a| a.shape()[d] > 0) {
            strides.remove(d);
            tangent = view(&tangent, ViewOp::Select(d, 0))?;
        }
    }
    view(&primitives::in_geometry(&tangent, &(strides, offset), std::slice::from_ref(op))?, op.clone())
}

/// Whether two layouts of one shape have equal strides, as far as there is more than one place.
fn same_strides(a: &Layout, b: &Layout) -> bool {
    a.strides() == b.strides() || a.shape().iter().zip(a.strides()).zip(b.strides()).all(|((n, s), t)| *n < 2 || s == t)
}
