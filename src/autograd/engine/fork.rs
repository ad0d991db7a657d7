//! Forks and passes. A pass runs without the host's lock and takes short locks of tensors and leaves; a child forked meanwhile would find
//! them taken by threads that it does not have. So a thread that wants to fork waits until the passes of all others stand between two nodes,
//! where they hold none, and the passes wait there until it has forked.

use crate::backend::host;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A pass may be in a hook that itself waits for the thread that forks: so long and no longer is it waited for.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// Threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// Threads that are inside of passes, but for those that stand still for a fork.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many of these works this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Being at work on a graph without the host's lock.
pub(in crate::autograd) struct Work(());

impl Work {
    #[inline]
    pub fn begin() -> Work {
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            AT_WORK.fetch_add(1, Ordering::SeqCst);
        }
        stand_still_for_forks();
        Work(())
    }
}

impl Drop for Work {
    #[inline]
    fn drop(&mut self) {
        if DEPTH.replace(DEPTH.get() - 1) == 1 {
            AT_WORK.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A thread at work that only waits for another one.
pub(in crate::autograd) struct Aside(());

impl Aside {
    pub fn begin() -> Aside {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
        Aside(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        AT_WORK.fetch_add(1, Ordering::SeqCst);
    }
}

/// Where a thread at work holds no lock: it stays here while another one forks.
#[inline]
pub(in crate::autograd) fn stand_still_for_forks() {
    if FORKING.load(Ordering::SeqCst) > 0 {
        stand_still();
    }
}

#[cold]
fn stand_still() {
    while FORKING.load(Ordering::SeqCst) > 0 {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
        host::unlocked(|| {
            while FORKING.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(LOOK_AGAIN);
            }
        });
        // A fork that begins between the two sees this thread at work, and this thread sees it.
        AT_WORK.fetch_add(1, Ordering::SeqCst);
    }
}

/// To be called before a fork, on the thread that forks, with the host's lock. Comes before the locks of pending results and of memory,
/// which passes on their way to the next node may need.
pub fn before_fork() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let mine = usize::from(DEPTH.get() > 0);
    if AT_WORK.load(Ordering::SeqCst) <= mine {
        return;
    }
    host::unlocked(|| {
        let begun = Instant::now();
        while AT_WORK.load(Ordering::SeqCst) > mine && begun.elapsed() < PATIENCE {
            std::thread::sleep(LOOK_AGAIN);
        }
    });
}

/// The end of `before_fork`, in parent and child.
pub fn after_fork(child: bool) {
    if child {
        AT_WORK.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
        FORKING.store(0, Ordering::SeqCst);
    } else {
        FORKING.fetch_sub(1, Ordering::SeqCst);
    }
}
