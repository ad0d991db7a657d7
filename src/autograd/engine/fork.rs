//! Forks and passes. A pass runs without the host's lock and takes short locks of tensors and leaves; a child forked meanwhile would find
//! them taken by threads that it does not have. So a thread that wants to fork waits until the passes of all others stand between two nodes,
//! where they hold none, and the passes wait there until it has forked.

use crate::backend::host;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A pass may be in a hook that itself waits for the thread that forks: so long and no longer is it waited for.
const MAX_WAIT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// Threads that are inside of passes, but for those that stand still for a fork.
static RUNNING_PASSES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many of these works this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Being at work on a graph without the host's lock.
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

/// A thread at work that only waits for another one.
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

/// Where a thread at work holds no lock: it stays here while another one forks.
#[inline]
pub(in crate::autograd) fn pause_for_forks() {
    if FORKING.load(Ordering::SeqCst) > 0 {
        pause();
    }
}

#[cold]
fn pause() {
    while FORKING.load(Ordering::SeqCst) > 0 {
        RUNNING_PASSES.fetch_sub(1, Ordering::SeqCst);
        host::unlocked(|| {
            while FORKING.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        // A fork that begins between the two sees this thread at work, and this thread sees it.
        RUNNING_PASSES.fetch_add(1, Ordering::SeqCst);
    }
}

/// To be called before a fork, on the thread that forks, with the host's lock. Comes before the locks of pending results and of memory,
/// which passes on their way to the next node may need.
pub fn before_fork() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let mine = usize::from(DEPTH.get() > 0);
    if RUNNING_PASSES.load(Ordering::SeqCst) <= mine {
        return;
    }
    host::unlocked(|| {
        let begun = Instant::now();
        while RUNNING_PASSES.load(Ordering::SeqCst) > mine && begun.elapsed() < MAX_WAIT {
            std::thread::sleep(POLL_INTERVAL);
        }
    });
}

/// The end of `before_fork`, in parent and child.
pub fn after_fork(child: bool) {
    if child {
        RUNNING_PASSES.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
        FORKING.store(0, Ordering::SeqCst);
    } else {
        FORKING.fetch_sub(1, Ordering::SeqCst);
    }
}
