//! The passes that a thread is inside of, and the callbacks that run when the innermost one ends.

use crate::error::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs when a pass has ended without an error.
pub type Callback = Box<dyn FnOnce() -> Result<()> + Send>;

/// Nested passes beyond this depth run on a new thread.
pub(in crate::autograd) const MAX_DEPTH: u32 = 60;

#[derive(Clone, Copy)]
struct ActiveTask {
    depth: u32,
    /// Whether callbacks are queued for this pass.
    queued: bool,
    /// The pass's number, 0 until it is asked for.
    id: u64,
}

thread_local! {
    static ACTIVE: Cell<ActiveTask> = const { Cell::new(ActiveTask { depth: 0, queued: false, id: 0 }) };
    /// The callbacks of all passes of this thread, with the depth of their pass.
    static QUEUED: RefCell<Vec<(u32, Callback)>> = const { RefCell::new(Vec::new()) };
    static FRESH_THREADS: Cell<bool> = const { Cell::new(true) };
}

/// A pass that this thread is inside of. Callbacks that are still queued are dropped with it.
pub(in crate::autograd) struct TaskGuard(ActiveTask);

impl TaskGuard {
    /// None if the thread is inside of `MAX_DEPTH` passes.
    #[inline]
    pub fn enter() -> Option<TaskGuard> {
        let before = ACTIVE.get();
        if before.depth >= MAX_DEPTH {
            return None;
        }
        ACTIVE.set(ActiveTask { depth: before.depth + 1, queued: false, id: 0 });
        Some(TaskGuard(before))
    }

    /// Runs the callbacks, and those that they queue themselves.
    #[cold]
    pub fn finish(&self) -> Result<()> {
        while let Some(callback) = next() {
            callback()?;
        }
        Ok(())
    }
}

/// Whether callbacks are queued for the innermost pass.
#[inline]
pub(in crate::autograd) fn has_callbacks() -> bool {
    ACTIVE.get().queued
}

/// The next callback of the innermost pass.
#[cold]
fn next() -> Option<Callback> {
    let depth = ACTIVE.get().depth;
    QUEUED.with_borrow_mut(|q| {
        let at = q.iter().position(|(d, _)| *d == depth)?;
        Some(q.remove(at).1)
    })
}

impl Drop for TaskGuard {
    #[inline]
    fn drop(&mut self) {
        if ACTIVE.get().queued {
            while let Some(dropped) = next() {
                drop(dropped);
            }
        }
        ACTIVE.set(self.0);
    }
}

/// Queues `callback` to run on this thread when the innermost pass has ended. Its error becomes the pass's error.
pub fn queue(callback: Callback) -> Result<()> {
    let active = ACTIVE.get();
    if active.depth == 0 {
        return Err(Error::runtime("Final callbacks can only be installed during backward pass."));
    }
    ACTIVE.set(ActiveTask { queued: true, ..active });
    QUEUED.with_borrow_mut(|q| q.push((active.depth, callback)));
    Ok(())
}

/// The number of the pass that this thread is inside of; never reused. None outside of passes.
pub fn current_pass() -> Option<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let active = ACTIVE.get();
    if active.depth == 0 {
        return None;
    }
    if active.id != 0 {
        return Some(active.id);
    }
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    ACTIVE.set(ActiveTask { id, ..active });
    Some(id)
}

/// Whether nested passes may continue on new threads.
pub fn fresh_threads() -> bool {
    FRESH_THREADS.get()
}

pub fn set_fresh_threads(on: bool) {
    FRESH_THREADS.set(on);
}
