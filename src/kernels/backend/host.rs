//! What the language that the engine is embedded in lends its kernels: release of its lock during long work, and its interrupts.
//! Without one, `unlocked` just runs the work and nothing ever interrupts.

use super::lock_order::assert_no_guard;
use crate::error::Result;
use std::sync::OnceLock;

/// The hooks of a host language. Each may be called from any thread, whether or not it holds the host's lock.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Runs the work, exactly once, without the host's lock; takes the lock back afterwards if this thread held it.
    pub unlocked: fn(&mut dyn FnMut()),
    /// Runs what the host's signals ask for; an exception that this raises comes back as a foreign error.
    pub interrupted: fn() -> Result<()>,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// From so many elements (or as much arithmetic) on, work is worth giving the host's lock away for.
pub const LARGE: usize = 1 << 16;

/// Registers the host language's hooks; the first registration stays.
pub fn register(host: Host) {
    let _ = HOST.set(host);
}

/// Runs `f` with the host's lock released, if this thread holds it. For long work only: the release costs about 100 ns, and the way
/// back may have to wait for another thread.
///
/// The caller holds no guard (see `lock_order`): a thread of the host could wait for it with the host's lock, and the two would wait for
/// each other. `f` must not touch objects of the host.
#[cfg_attr(debug_assertions, track_caller)]
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
        // A host that did not run the work: nothing is lost.
        (None, Some(f)) => f(),
        (None, None) => unreachable!("work that ran has a result, or has unwound"),
    }
}

/// As `unlocked` if there is much to do (`work` elements or operations), else just `f`.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub fn unlocked_if_large<R>(work: usize, f: impl FnOnce() -> R) -> R {
    if work < LARGE { f() } else { unlocked(f) }
}

/// Whether the host wants the current work to stop (Ctrl-C): then the error carries its exception. For loops that wait; it takes the
/// host's lock for a moment, so that the same rule about locks holds, and calls a few milliseconds apart are often enough.
pub fn interrupted() -> Result<()> {
    assert_no_guard("asking for the host's lock");
    HOST.get().map_or(Ok(()), |host| (host.interrupted)())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
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
        assert_eq!(unlocked_if_large(LARGE - 1, || 1) + unlocked_if_large(LARGE, || 2), 3);
        assert_eq!(RELEASED.get(), 2);
        assert!(interrupted().is_ok());
        STOP.set(true);
        let mut e = interrupted().unwrap_err();
        STOP.set(false);
        assert_eq!(e.kind(), ErrorKind::Foreign);
        assert_eq!(e.take_foreign().and_then(|f| f.downcast::<i32>().ok()).as_deref(), Some(&7));
    }
}
