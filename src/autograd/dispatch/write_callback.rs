//! A thread-local callback that is called before every in-place write.

use crate::autograd::dispatch::mode::{ModeGuard, Watch, set_watch};
use crate::autograd::tensor::Tensor;
use crate::error::Result;
use std::cell::RefCell;
use std::sync::Arc;

/// Called before a write, while the old value is still there.
pub trait WriteCallback: Send + Sync {
    /// Called while recording is off.
    fn before(&self, t: &Tensor) -> Result<()>;
}

thread_local! {
    static WATCHER: RefCell<Option<Arc<dyn WriteCallback>>> = const { RefCell::new(None) };
}

/// Sets or removes this thread's callback.
pub fn set(watcher: Option<Arc<dyn WriteCallback>>) {
    set_watch(Watch::Writing, watcher.is_some());
    let old = WATCHER.with(|w| w.replace(watcher));
    // Outside the borrow: it may own foreign objects.
    drop(old);
}

/// Calls the callback. Its own writes do not call it again.
#[cold]
pub(in crate::autograd) fn announce(t: &Tensor) -> Result<()> {
    let Some(watcher) = WATCHER.with(|w| w.borrow().clone()) else { return Ok(()) };
    set_watch(Watch::Writing, false);
    let result = {
        let _off = ModeGuard::grad(false);
        watcher.before(t)
    };
    set_watch(Watch::Writing, true);
    result
}
