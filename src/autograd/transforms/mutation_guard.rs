//! What a function under a derivative transform may write in place: tensors of the transform's level, and memory allocated since the level began.
//! Each storage records the age at which it was created. Other memory is captured from outside, where a later call of the function would see the
//! write, so the write is refused.

use crate::autograd::dispatch::mode::{self, Watch, set_watch};
use crate::autograd::graph::view::ViewInfo;
use crate::autograd::tensor::{Core, Meta, Tensor, Value};
use crate::autograd::transforms::level::{self, DerivativeLevel, Level, WrappedTensor};
use crate::error::{Error, Result};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Only levels below this number check writes: a rule runs on behalf of its level at the levels below.
    static TOP: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Lets only levels below `number` check writes from now on. Returns the previous limit.
pub fn check_only_below(number: u32) -> u32 {
    TOP.replace(number)
}

/// Lets a level's rule write tensors of lower levels. Restores the check when dropped.
pub struct TrustedWrites(bool);

impl TrustedWrites {
    pub fn new() -> TrustedWrites {
        let on = mode::current().watches(Watch::Captured);
        if on {
            set_watch(Watch::Captured, false);
        }
        TrustedWrites(on)
    }
}

impl Default for TrustedWrites {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TrustedWrites {
    fn drop(&mut self) {
        if self.0 {
            set_watch(Watch::Captured, true);
        }
    }
}

pub(in crate::autograd) fn refused(label: &str) -> Error {
    Error::runtime(format!(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation ({label}) that would mutate \
         a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as \
         inputs, or write to a clone() that is made inside."
    ))
}

fn is_made_inside(t: &Tensor, derivative: &DerivativeLevel) -> bool {
    t.read().with_storage(|s| s.is_since(derivative.since()))
}

/// Refuses a write to a tensor that a running derivative transform has captured.
#[cold]
pub(in crate::autograd) fn check(t: &Tensor, label: &str) -> Result<()> {
    let top = TOP.get();
    for level in (1..=level::depth()).take_while(|n| *n < top).filter_map(level::open) {
        if let Some(derivative) = level.as_any().downcast_ref::<DerivativeLevel>()
            && !t.is_of(&level)
            && !is_made_inside(t, derivative)
        {
            return Err(refused(label));
        }
    }
    Ok(())
}

/// Turns a tensor that was made inside a derivative from captured tensors only into a tensor of its level, so that values with gradients can be
/// written to it. Returns false, and has done nothing, if it is not such a tensor, or if other views of the same memory would stay behind.
pub(in crate::autograd) fn wrap_target(t: &Tensor, level: &Arc<dyn Level>) -> bool {
    let Some(derivative) = level.as_any().downcast_ref::<DerivativeLevel>() else { return false };
    let may = |t: &Tensor, handles: usize| {
        t.level() < derivative.number() && t.holders() <= handles && is_made_inside(t, derivative) && !t.read().requires_grad
    };
    // A rule that writes on behalf of a higher level holds a handle, and so does the tensor of that level.
    let for_level = !mode::current().watches(Watch::Captured);
    if !derivative.is_alive() || !may(t, 1 + usize::from(for_level)) {
        return false;
    }
    let Some(info) = t.meta(|m| m.and_then(|m| m.view.clone())) else {
        wrap_in_place(t, level, None);
        return true;
    };
    if info.base.level() < derivative.number() {
        let own = for_level || matches!(info.base.object(), Some((_, false)));
        // The view holds one handle of its base, and the copy of `ViewInfo` another; the base's own object may hold a third. More handles belong
        // to other views.
        if !may(&info.base, 2 + usize::from(own)) {
            return false;
        }
        wrap_in_place(&info.base, level, None);
    }
    wrap_in_place(t, level, Some(info));
    true
}

/// Moves a tensor's state into a new tensor, which the old one wraps at `level` from now on.
fn wrap_in_place(t: &Tensor, level: &Arc<dyn Level>, view: Option<ViewInfo>) {
    let below = view.as_ref().map(|v| ViewInfo { base: v.base.wrapped().map_or_else(|| v.base.clone(), |l| l.inner), ..v.clone() });
    let mut core = t.write();
    let mut meta = core.meta.take();
    if let Some(meta) = &mut meta {
        meta.view = below;
    }
    let inner = Tensor::from_core(Core {
        value: core.value.clone(),
        version: core.version.clone(),
        requires_grad: false,
        number: core.number,
        is_special: core.is_special,
        inference: core.inference,
        grad_fn: core.grad_fn.take(),
        path_ends: core.path_ends.take(),
        meta,
    });
    core.value = Value::Wrapped(Box::new(WrappedTensor { level: level.clone(), inner }));
    core.meta = view.map(|v| Box::new(Meta { view: Some(v), ..Meta::default() }));
    core.update_special();
}
