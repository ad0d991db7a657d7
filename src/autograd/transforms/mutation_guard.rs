//! What a function may write while it is differentiated: tensors of its own level, and memory that was made since the level began. Anything
//! else is captured from outside, where the write would be seen by whoever calls the function again.

use crate::autograd::dispatch::mode::{self, Watch, set_watch};
use crate::autograd::graph::view::ViewInfo;
use crate::autograd::tensor::{Core, Meta, Tensor, Value};
use crate::autograd::transforms::level::{self, Level, Leveled, Track};
use crate::error::{Error, Result};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// The lowest level that is not asked: what runs in the name of a level is of the levels below it.
    static TOP: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Asks only levels below `number` from now on; returns which were asked before.
pub fn ask_below(number: u32) -> u32 {
    TOP.replace(number)
}

/// Lets rules write what belongs to the levels below theirs. Puts the check back when dropped.
pub struct Trusted(bool);

impl Trusted {
    pub fn new() -> Trusted {
        let on = mode::current().watches(Watch::Captured);
        if on {
            set_watch(Watch::Captured, false);
        }
        Trusted(on)
    }
}

impl Default for Trusted {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Trusted {
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

fn is_made_inside(t: &Tensor, track: &Track) -> bool {
    t.read().with_storage(|s| s.is_since(track.since()))
}

/// Refuses a write to what one of the derivatives around has captured.
#[cold]
pub(in crate::autograd) fn check(t: &Tensor, label: &str) -> Result<()> {
    let top = TOP.get();
    for level in (1..=level::depth()).take_while(|n| *n < top).filter_map(level::open) {
        if let Some(track) = level.as_any().downcast_ref::<Track>()
            && !t.is_of(&level)
            && !is_made_inside(t, track)
        {
            return Err(refused(label));
        }
    }
    Ok(())
}

/// Makes a tensor that was made inside a derivative from nothing but captured ones a tensor of its level, so that what has gradients there
/// may be written to it. False, and nothing done, where it is not of this kind or other views of the same memory would stay behind.
pub(in crate::autograd) fn raise(t: &Tensor, level: &Arc<dyn Level>) -> bool {
    let Some(track) = level.as_any().downcast_ref::<Track>() else { return false };
    let may = |t: &Tensor, handles: usize| {
        t.level() < track.number() && t.holders() <= handles && is_made_inside(t, track) && !t.read().requires_grad
    };
    // Whoever writes for a level above has a handle of its own, and the tensor there has one.
    let for_level = !mode::current().watches(Watch::Captured);
    if !track.is_alive() || !may(t, 1 + usize::from(for_level)) {
        return false;
    }
    let Some(info) = t.meta(|m| m.and_then(|m| m.view.clone())) else {
        lift(t, level, None);
        return true;
    };
    if info.base.level() < track.number() {
        let own = for_level || matches!(info.base.slot().get(), Some((_, false)));
        // Besides its own object, the view knows it, and so does the copy of what the view knows. More handles are other views.
        if !may(&info.base, 2 + usize::from(own)) {
            return false;
        }
        lift(&info.base, level, None);
    }
    lift(t, level, Some(info));
    true
}

/// Moves what a tensor is to a new one, which it stands for at `level` from now on.
fn lift(t: &Tensor, level: &Arc<dyn Level>, view: Option<ViewInfo>) {
    let below = view.as_ref().map(|v| ViewInfo { base: v.base.leveled().map_or_else(|| v.base.clone(), |l| l.inner), ..v.clone() });
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
        odd: core.odd,
        inference: core.inference,
        grad_fn: core.grad_fn.take(),
        meta,
    });
    core.value = Value::Leveled(Box::new(Leveled { level: level.clone(), inner }));
    core.meta = view.map(|v| Box::new(Meta { view: Some(v), ..Meta::default() }));
    core.settle();
}
