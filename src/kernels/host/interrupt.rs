//! Interrupts of long work (Ctrl-C). Work on the host's thread runs inside `watched`; its loops call `check` now and then, about every 100,000
//! elements, and leave by a panic that carries the host's exception, which `watched` returns as an error.
//!
//! Outside of `watched`, and where a lock is held that foreign code must not run under (`paused`), `check` does nothing. So small kernels, which run
//! under guards, never ask the host.

use crate::error::{Error, Result, caught, throw};
use crate::host::language;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two questions to the host.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// When this thread asks the host next; None outside of watched work.
    static NEXT: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The flag of the parallel loop whose pieces this thread runs for another one.
    static STOPPED: Cell<*const AtomicBool> = const { Cell::new(std::ptr::null()) };
}

/// Restores what was there before.
struct Restore(Option<Instant>);

impl Drop for Restore {
    fn drop(&mut self) {
        NEXT.set(self.0);
    }
}

/// Runs long work that checks for interrupts. The caller holds no lock of the core; `f` leaves everything in order when it unwinds.
pub fn watched<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    let _restore = Restore(NEXT.replace(Some(Instant::now() + INTERVAL)));
    caught(f)
}

/// Until it is dropped, this thread does not ask the host.
#[derive(Debug)]
pub struct Paused(Option<Instant>);

pub fn paused() -> Paused {
    Paused(NEXT.replace(None))
}

impl Drop for Paused {
    fn drop(&mut self) {
        NEXT.set(self.0);
    }
}

/// Whether `check` may do anything.
#[inline]
pub(crate) fn is_watched() -> bool {
    NEXT.get().is_some()
}

/// Leaves the work if the host interrupts it, or if this thread helps with a loop that has ended early.
#[inline]
pub fn check() {
    if NEXT.get().is_some() {
        ask_if_due();
    } else if !STOPPED.get().is_null() {
        leave_if_stopped();
    }
}

#[cold]
fn ask_if_due() {
    if let Some(e) = due() {
        throw(e)
    }
}

/// As `check`, for code that cannot leave now: the exception of the host.
#[cold]
pub(crate) fn due() -> Option<Error> {
    if NEXT.get().is_none_or(|t| Instant::now() < t) {
        return None;
    }
    // A handler of the host may run watched work of its own.
    let asked = {
        let _paused = paused();
        language::interrupted()
    };
    NEXT.set(Some(Instant::now() + INTERVAL));
    asked.err()
}

#[cold]
fn leave_if_stopped() {
    // SAFETY: the flag lives until `Helping` is dropped on this thread.
    if unsafe { (*STOPPED.get()).load(Ordering::Relaxed) } {
        throw(Error::runtime("a parallel loop has ended early"))
    }
}

/// This thread runs pieces of another thread's loop, until it is dropped.
pub(crate) struct Helping<'a> {
    before: *const AtomicBool,
    _flag: &'a AtomicBool,
}

impl Helping<'_> {
    pub fn new(flag: &AtomicBool) -> Helping<'_> {
        Helping { before: STOPPED.replace(flag), _flag: flag }
    }
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        STOPPED.set(self.before);
    }
}

/// Calls `check` in every 2^16th call of `tick`.
#[derive(Debug, Default)]
pub struct Ticks(Cell<u32>);

impl Ticks {
    #[inline(always)]
    pub fn tick(&self) {
        let n = self.0.get().wrapping_add(1);
        self.0.set(n);
        if n & 0xffff == 0 {
            check();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_outside_and_under_locks() {
        check();
        assert!(!is_watched());
        let done = watched(|| {
            assert!(is_watched());
            let paused = paused();
            assert!(!is_watched());
            drop(paused);
            assert!(is_watched());
            std::thread::sleep(INTERVAL);
            check();
            Ok(7)
        });
        assert!(done.is_ok_and(|n| n == 7) && !is_watched());
    }

    #[test]
    fn a_helper_leaves_a_loop_that_has_ended() {
        let flag = AtomicBool::new(false);
        let _helping = Helping::new(&flag);
        check();
        flag.store(true, Ordering::Relaxed);
        assert!(
            caught(|| {
                check();
                Ok(())
            })
            .is_err()
        );
    }
}
