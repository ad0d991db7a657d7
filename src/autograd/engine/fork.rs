//! Forks during backward passes. A pass runs without the host's lock and takes short locks of tensors and leaves. A child forked meanwhile would
//! inherit locks whose owners do not exist in it. So a thread that forks waits until every other pass is between two nodes, where it holds no
//! lock, and the passes pause there until the fork is done.

use crate::host::language;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest time that a fork waits: a pass may be in a hook that itself waits for the forking thread.
const MAX_WAIT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// Threads that run a pass and do not pause for a fork.
static RUNNING_PASSES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many passes this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// This thread is about to fork: what its other handlers of the fork compute waits for nobody.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

/// A pass that runs without the host's lock.
pub(in crate::autograd) struct RunningPass(());

impl RunningPass {
    #[inline]
    pub fn begin() -> RunningPass {
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            RUNNING_PASSES.fetch_add(1, Ordering::SeqCst);
        }
        pause_for_forks();
        RunningPass(())
    }
}

impl Drop for RunningPass {
    #[inline]
    fn drop(&mut self) {
        if DEPTH.replace(DEPTH.get() - 1) == 1 {
            RUNNING_PASSES.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Whether this thread runs a pass.
pub(in crate::autograd) fn in_pass() -> bool {
    DEPTH.try_with(Cell::get).unwrap_or(0) > 0
}

/// A pass that only waits for another thread.
pub(in crate::autograd) struct WaitingPass(());

impl WaitingPass {
    pub fn begin() -> WaitingPass {
        RUNNING_PASSES.fetch_sub(1, Ordering::SeqCst);
        WaitingPass(())
    }
}

impl Drop for WaitingPass {
    fn drop(&mut self) {
        RUNNING_PASSES.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether another thread is about to fork.
#[inline]
pub(in crate::autograd) fn is_pending() -> bool {
    FORKING.load(Ordering::SeqCst) > 0 && !FORKS.try_with(Cell::get).unwrap_or(false)
}

/// A safe point of a pass, which holds no lock here: pauses while another thread forks.
#[inline]
pub(in crate::autograd) fn pause_for_forks() {
    if is_pending() {
        pause();
    }
}

#[cold]
fn pause() {
    while is_pending() {
        RUNNING_PASSES.fetch_sub(1, Ordering::SeqCst);
        language::unlocked(|| {
            while FORKING.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        // A fork that begins between the two statements sees this thread as running, and this thread sees the fork.
        RUNNING_PASSES.fetch_add(1, Ordering::SeqCst);
    }
}

/// Must be called before a fork, on the forking thread, with the host's lock held. It comes before the locks of pending results and of memory,
/// which passes may need to reach their next node.
pub fn before_fork() {
    FORKS.set(true);
    FORKING.fetch_add(1, Ordering::SeqCst);
    let mine = usize::from(DEPTH.get() > 0);
    if RUNNING_PASSES.load(Ordering::SeqCst) <= mine {
        return;
    }
    language::unlocked(|| {
        let begun = Instant::now();
        while RUNNING_PASSES.load(Ordering::SeqCst) > mine && begun.elapsed() < MAX_WAIT {
            std::thread::sleep(POLL_INTERVAL);
        }
    });
}

/// The end of `before_fork`, in parent and child.
pub fn after_fork(child: bool) {
    FORKS.set(false);
    if child {
        RUNNING_PASSES.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
        FORKING.store(0, Ordering::SeqCst);
    } else {
        FORKING.fetch_sub(1, Ordering::SeqCst);
    }
}
