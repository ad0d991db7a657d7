//! Hooks of the language that the engine is embedded in: release of its lock (the GIL) during long work, and its interrupts. Without such a
//! language `unlocked` just runs the work, and there are no interrupts.

use super::interrupt;
use super::lock_order::assert_no_guard;
use crate::error::{Error, Result};
use std::sync::OnceLock;

/// The hooks of a host language. Each may be called on any thread, with or without the lock of the host.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Runs the work, exactly once, without the host's lock; takes the lock back afterwards if this thread held it.
    pub unlocked: fn(&mut dyn FnMut()),
    /// Runs the handlers of pending signals; an exception in them is returned as a foreign error.
    pub interrupted: fn() -> Result<()>,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// From this many elements (or operations) on, it pays to release the lock of the host.
pub const LARGE: usize = 1 << 16;

/// Registers the host language's hooks; the first registration stays.
pub fn register(host: Host) {
    let _ = HOST.set(host);
}

/// Runs `f` with the host's lock released, if this thread holds it. For long work only: the release costs about 100 ns, and taking the lock
/// again may have to wait for another thread.
///
/// The caller must hold no guard (see `lock_order`): a thread with the lock of the host could wait for the guard, which would be a
/// deadlock. `f` must not touch objects of the host.
#[track_caller]
pub fn unlocked<R>(f: impl FnOnce() -> R) -> R {
    assert_no_guard("asking for the host's lock");
    let Some(host) = HOST.get() else { return f() };
    let (mut work, mut result) = (Some(f), None);
    (host.unlocked)(&mut || {
        if let Some(f) = work.take() {
            result = Some(f());
        }
    });
    match (result, work) {
        (Some(r), _) => r,
        // A host that has not run the work: it runs here.
        (None, Some(f)) => f(),
        (None, None) => unreachable!("work that ran has a result, or has unwound"),
    }
}

/// As `unlocked`, for long work that the host may interrupt (see `interrupt`). A panic in it is returned as an error.
#[track_caller]
pub fn long_work<R, E: Into<Error> + From<Error>>(f: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    Ok(unlocked(|| interrupt::watched(|| f().map_err(E::into)))?)
}

/// As `long_work` if there is enough to do (`work` elements or operations); otherwise runs `f` with the lock.
#[inline]
#[track_caller]
pub fn unlocked_if_large<R, E: Into<Error> + From<Error>>(work: usize, f: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    if work < LARGE { f() } else { long_work(f) }
}

/// An error if the host interrupts the current work (Ctrl-C); it carries the exception of the host. For loops that wait. It takes the lock
/// of the host for a moment, so the same rule about guards holds; one call every few milliseconds is enough.
pub fn interrupted() -> Result<()> {
    assert_no_guard("asking for the host's lock");
    HOST.get().map_or(Ok(()), |host| (host.interrupted)())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::cell::Cell;

    // The registration is for the whole process: only the thread of this test sees anything of it.
    thread_local! {
        static RELEASED: Cell<usize> = const { Cell::new(0) };
        static STOP: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn work_runs_once_with_and_without_a_host() {
        let s = String::from("moved in and out");
        assert_eq!(unlocked(|| s).len(), 16);
        register(Host {
            unlocked: |f| {
                RELEASED.set(RELEASED.get() + 1);
                f();
                f();
            },
            interrupted: || if STOP.get() { Err(Error::foreign(Box::new(7i32), "stop")) } else { Ok(()) },
        });
        let mut runs = 0;
        let v = unlocked(|| {
            runs += 1;
            vec![runs]
        });
        assert_eq!((v, runs, RELEASED.get()), (vec![1], 1, 1));
        assert_eq!(
            unlocked_if_large(LARGE - 1, || Ok::<_, Error>(1)).unwrap() + unlocked_if_large(LARGE, || Ok::<_, Error>(2)).unwrap(),
            3
        );
        assert_eq!(RELEASED.get(), 2);
        assert!(interrupted().is_ok());
        STOP.set(true);
        let mut e = interrupted().unwrap_err();
        STOP.set(false);
        assert_eq!(e.kind(), ErrorKind::Foreign);
        assert_eq!(e.take_foreign().and_then(|f| f.downcast::<i32>().ok()).as_deref(), Some(&7));
    }
}
