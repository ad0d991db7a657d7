//! The hooks that run around a node in backward, and the checks of gradients that they return.

use crate::autograd::dispatch::call_site::Inherit;
use crate::autograd::engine::accumulate;
use crate::autograd::engine::hooks::{Grads, NodeHooks};
use crate::autograd::graph::node::{Node, NodeOp, OutMeta};
use crate::autograd::tensor::Tensor;
use crate::error::{Error, Result};
use crate::layout::{DType, fmt_shape};
use std::sync::Arc;

/// The tensor hooks of the node's outputs, then `.grad` of those with `retain_grad`.
pub(in crate::autograd) fn tensor_hooks(node: &Arc<Node>, hooks: Option<&NodeHooks>, grads: &mut Grads) -> Result<()> {
    if let NodeOp::Accumulate(leaf) = node.op() {
        let hooks = leaf.meta(|m| m.map(|m| m.hooks.tensor.clone())).unwrap_or_default();
        if !hooks.is_empty() {
            let _lines = Inherit::suspend();
            for (_, hook) in hooks {
                if let Some(g) = &grads[0]
                    && let Some(new) = hook.call(g)?
                {
                    grads[0] = Some(checked(new, node, 0)?);
                }
            }
        }
    }
    let Some(hooks) = hooks else { return Ok(()) };
    let _lines = Inherit::suspend();
    for (_, nr, hook) in &hooks.tensor {
        let nr = *nr as usize;
        if let Some(g) = &grads[nr]
            && let Some(new) = hook.call(g)?
        {
            grads[nr] = Some(checked(new, node, nr)?);
        }
    }
    for (nr, weak) in &hooks.retain {
        if let (Some(t), Some(g)) = (weak.upgrade(), &grads[*nr as usize]) {
            accumulate::retain(&t, g)?;
        }
    }
    Ok(())
}

/// The node's pre hooks.
pub(in crate::autograd) fn pre_hooks(node: &Node, hooks: Option<&NodeHooks>, grads: &mut Grads) -> Result<()> {
    for (_, hook) in hooks.into_iter().flat_map(|h| &h.pre) {
        let _lines = Inherit::suspend();
        if let Some(new) = hook.before(grads)? {
            *grads = check_replacement(grads, new, |nr| node.outs().get(nr).map(|m| (&m.shape[..], m.dtype)))?;
        }
    }
    Ok(())
}

/// The node's post hooks.
pub(in crate::autograd) fn post_hooks(hooks: Option<&NodeHooks>, outs: &mut Grads, given: &Grads) -> Result<()> {
    for (_, hook) in hooks.into_iter().flat_map(|h| &h.post) {
        let _lines = Inherit::suspend();
        if let Some(new) = hook.after(outs, given)? {
            let have: Vec<_> = outs.iter().map(|g| g.as_ref().map(|g| (g.shape(), g.dtype()))).collect();
            *outs = check_replacement(outs, new, |k| have[k].as_ref().map(|(s, d)| (&s[..], *d)))?;
        }
    }
    Ok(())
}

/// Checks the gradients that a hook returned: the same number, None where there was None, and the same shapes and dtypes.
fn check_replacement<'a>(old: &Grads, new: Grads, meta: impl Fn(usize) -> Option<(&'a [usize], DType)>) -> Result<Grads> {
    if new.len() != old.len() {
        return Err(Error::runtime(format!(
            "hook has returned an incorrect number of values (got {}, but expected {})",
            new.len(),
            old.len()
        )));
    }
    for (k, (o, n)) in old.iter().zip(&new).enumerate() {
        match (o, n, meta(k)) {
            (None, Some(_), _) => return Err(Error::runtime("can't replace a None gradient with a non-None value")),
            (Some(_), Some(n), Some((shape, dtype))) => check_alike(n, shape, dtype)?,
            _ => {}
        }
    }
    Ok(new)
}

fn checked(new: Tensor, node: &Node, nr: usize) -> Result<Tensor> {
    let OutMeta { shape, dtype, .. } = &node.outs()[nr];
    check_alike(&new, shape, *dtype)?;
    Ok(new)
}

fn check_alike(new: &Tensor, shape: &[usize], dtype: DType) -> Result<()> {
    if new.shape()[..] != *shape {
        return Err(Error::runtime(format!(
            "hook has changed the size of value (was {} got {}): return a gradient of the shape that the hook was given",
            fmt_shape(shape),
            fmt_shape(&new.shape())
        )));
    }
    if new.dtype() != dtype {
        return Err(Error::runtime(format!(
            "hook has changed the type of value (was rgrad.{}Tensor got rgrad.{}Tensor): return it .to() the dtype that the hook was given",
            dtype.type_name(),
            new.dtype().type_name()
        )));
    }
    Ok(())
}
