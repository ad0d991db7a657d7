//! The hooks that Python lends the backends: the GIL released during long work, and signals.

use super::errors::foreign;
use crate::backend::host::{Host, register as register_host};
use crate::backend::lock_order::assert_no_guard;
use crate::error::Result;
use pyo3::ffi;
use pyo3::prelude::*;

/// Work that is handed to a closure which runs on this very thread.
struct Here<'a>(&'a mut dyn FnMut());

// SAFETY: `Python::detach` asks for `Send` to keep Python objects out of the closure, which `unlocked` forbids its callers; it runs
// the closure on the calling thread.
unsafe impl Send for Here<'_> {}

impl Here<'_> {
    fn run(self) {
        (self.0)();
    }
}

fn unlocked(f: &mut dyn FnMut()) {
    // SAFETY: may be called at any time, by any thread.
    if unsafe { ffi::PyGILState_Check() } == 0 {
        return f();
    }
    // PyO3 counts what it attaches itself: through `attach` its books are right in callbacks of Python too that it does not know of.
    // It refuses during a traversal of the garbage collector; the caller then runs the work as it is.
    let _ = Python::try_attach(|py| {
        let here = Here(&mut *f);
        py.detach(move || here.run());
    });
}

/// `Python::attach`, for a thread that may have to wait for the GIL, and for calls under which anything may run. No guard is held: the thread
/// that has the GIL may wait for it.
#[cfg_attr(debug_assertions, track_caller)]
pub(super) fn attach<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
    assert_no_guard("asking for the GIL");
    Python::attach(f)
}

/// A part of what holds Python objects: their end may run anything.
pub(super) struct EndsUnlocked;

impl Drop for EndsUnlocked {
    #[inline]
    fn drop(&mut self) {
        assert_no_guard("dropping a Python object");
    }
}

fn interrupted() -> Result<()> {
    Python::try_attach(|py| py.check_signals().map_err(foreign)).unwrap_or(Ok(()))
}

pub(super) fn register() {
    register_host(Host { unlocked, interrupted });
}
