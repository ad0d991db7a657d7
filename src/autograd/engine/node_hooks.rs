//! The hooks that run around a node in backward, and the checks of gradients that they return.

use crate::autograd::dispatch::call_site::Inherit;
use crate::autograd::engine::accumulate;
use crate::autograd::engine::hooks::{Grads, NodeHook, NodeHooks, TensorHook};
use crate::autograd::graph::node::{Node, NodeOp, OutMeta};
use crate::autograd::tensor::Tensor;
use crate::autograd::tensor::grad::dtype_at;
use crate::error::{Error, Result};
use crate::layout::{DType, fmt_shape};
use std::sync::Arc;

/// The tensor hooks of the node's outputs, then `.grad` of those with `retain_grad`. Hooks are also called with None, for outputs without gradient.
pub(in crate::autograd) fn tensor_hooks(node: &Arc<Node>, hooks: Option<&NodeHooks>, grads: &mut Grads) -> Result<()> {
    if let NodeOp::Accumulate(leaf) = node.op() {
        let hooks = leaf.meta(|m| m.map(|m| m.hooks.tensor.clone())).unwrap_or_default();
        if !hooks.is_empty() {
            let _lines = Inherit::suspend();
            for (_, hook) in hooks {
                call(&*hook, node, 0, &mut grads[0])?;
            }
        }
    }
    let Some(hooks) = hooks else { return Ok(()) };
    let _lines = Inherit::suspend();
    for (_, nr, hook) in &hooks.tensor {
        call(&**hook, node, *nr as usize, &mut grads[*nr as usize])?;
    }
    for (nr, weak) in &hooks.retain {
        if let (Some(t), Some(g)) = (weak.upgrade(), &grads[*nr as usize]) {
            accumulate::retain(&t, g)?;
        }
    }
    Ok(())
}

/// Calls one tensor hook of output `nr`.
fn call(hook: &dyn TensorHook, node: &Node, nr: usize, grad: &mut Option<Tensor>) -> Result<()> {
    if let Some(new) = hook.call(grad.as_ref())? {
        if grad.is_none() {
            return Err(replaces_none());
        }
        let OutMeta { shape, .. } = &node.outs()[nr];
        check_alike(&new, shape, dtype_at(node, nr).unwrap_or_else(|| new.dtype()), || hook.name())?;
        *grad = Some(new);
    }
    Ok(())
}

/// The node's pre hooks.
pub(in crate::autograd) fn pre_hooks(node: &Node, hooks: Option<&NodeHooks>, grads: &mut Grads) -> Result<()> {
    for (_, hook) in hooks.into_iter().flat_map(|h| &h.pre) {
        let _lines = Inherit::suspend();
        if let Some(new) = hook.before(grads)? {
            *grads = check_replacement(&**hook, grads, new, |nr| node.outs().get(nr).map(|m| (&m.shape[..], m.dtype)))?;
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
            *outs = check_replacement(&**hook, outs, new, |k| have[k].as_ref().map(|(s, d)| (&s[..], *d)))?;
        }
    }
    Ok(())
}

/// Checks the gradients that a hook returned: the same number, None where there was None, and the same shapes and dtypes.
fn check_replacement<'a>(
    hook: &dyn NodeHook,
    old: &Grads,
    new: Grads,
    meta: impl Fn(usize) -> Option<(&'a [usize], DType)>,
) -> Result<Grads> {
    if new.len() != old.len() {
        return Err(Error::runtime(format!(
            "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
            hook.name(),
            new.len(),
            old.len()
        )));
    }
    for (k, (o, n)) in old.iter().zip(&new).enumerate() {
        match (o, n, meta(k)) {
            (None, Some(_), _) => return Err(replaces_none()),
            (Some(_), Some(n), Some((shape, dtype))) => check_alike(n, shape, dtype, || hook.name())?,
            _ => {}
        }
    }
    Ok(new)
}

fn replaces_none() -> Error {
    Error::runtime("can't replace a None gradient with a non-None value")
}

fn check_alike(new: &Tensor, shape: &[usize], dtype: DType, name: impl Fn() -> String) -> Result<()> {
    if new.dtype() != dtype {
        return Err(Error::runtime(format!(
            "hook '{}' has changed the type of value (was rgrad.{}Tensor got rgrad.{}Tensor): return it .to() the dtype that the hook was given",
            name(),
            dtype.type_name(),
            new.dtype().type_name()
        )));
    }
    if new.shape()[..] != *shape {
        return Err(Error::runtime(format!(
            "hook '{}' has changed the size of value (was {} got {}): return a gradient of the shape that the hook was given",
            name(),
            fmt_shape(shape),
            fmt_shape(&new.shape())
        )));
    }
    Ok(())
}
