//! Which passes a thread is inside of, and what is to run when the innermost of them has ended.

use crate::error::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// What is to run once a pass has ended well.
pub type Callback = Box<dyn FnOnce() -> Result<()> + Send>;

/// Beyond this many passes inside each other a pass goes on on a fresh thread.
pub(in crate::autograd) const MAX_DEPTH: u32 = 60;

#[derive(Clone, Copy)]
struct ActiveTask {
    depth: u32,
    /// Whether callbacks wait for the end of this pass.
    queued: bool,
    /// The pass's number, 0 until somebody asks.
    id: u64,
}

thread_local! {
    static ACTIVE: Cell<ActiveTask> = const { Cell::new(ActiveTask { depth: 0, queued: false, id: 0 }) };
    /// The callbacks of all passes of this thread, with the depth of theirs.
    static QUEUED: RefCell<Vec<(u32, Callback)>> = const { RefCell::new(Vec::new()) };
    static FRESH_THREADS: Cell<bool> = const { Cell::new(true) };
}

/// Being inside one more pass; what is still queued for it is forgotten when dropped.
pub(in crate::autograd) struct TaskGuard(ActiveTask);

impl TaskGuard {
    /// None where the thread is inside of as many as it may be.
    #[inline]
    pub fn enter() -> Option<TaskGuard> {
        let before = ACTIVE.get();
        if before.depth >= MAX_DEPTH {
            return None;
        }
        ACTIVE.set(ActiveTask { depth: before.depth + 1, queued: false, id: 0 });
        Some(TaskGuard(before))
    }

    /// Runs the callbacks, also those that they queue themselves.
    #[inline]
    pub fn finish(&self) -> Result<()> {
        if ACTIVE.get().queued {
            while let Some(callback) = next() {
                callback()?;
            }
        }
        Ok(())
    }
}

/// The first callback that waits for the innermost pass.
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

/// Has `callback` run on this thread once the pass that it is inside of has ended; an error of it is the pass's.
pub fn queue(callback: Callback) -> Result<()> {
    let active = ACTIVE.get();
    if active.depth == 0 {
        return Err(Error::runtime("Final callbacks can only be installed during backward pass."));
    }
    ACTIVE.set(ActiveTask { queued: true, ..active });
    QUEUED.with_borrow_mut(|q| q.push((active.depth, callback)));
    Ok(())
}

/// A number that names the pass this thread is inside of, never used twice; None outside.
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

/// Whether passes called on this thread may go on on others.
pub fn fresh_threads() -> bool {
    FRESH_THREADS.get()
}

pub fn set_fresh_threads(on: bool) {
    FRESH_THREADS.set(on);
}
