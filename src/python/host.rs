//! The GIL and signals: what the backends and the core ask of the interpreter.
//!
//! `attach` is the only way in which the bindings take the GIL. Locks of the core have ranks in `backend::lock_order`.

use super::errors::{foreign, runtime};
use crate::array::lock_order::assert_no_guard;
use crate::autograd::{call_site, foreign_run};
use crate::host::language::{Host, register as register_host};
use crate::host::live_memory::AllocatingStep;
use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A closure that runs on the thread that made it.
struct Here<'a>(&'a mut dyn FnMut());

// SAFETY: `Python::detach` requires `Send` to keep Python objects out of the closure. `unlocked` forbids them to its callers, and `detach` runs
// the closure on the calling thread.
unsafe impl Send for Here<'_> {}

impl Here<'_> {
    fn run(self) {
        (self.0)();
    }
}

/// How many operations have released the GIL and refer to the tensors in their arguments.
static COMPUTING: AtomicUsize = AtomicUsize::new(0);

/// Counts an operation without the GIL, until dropped.
struct Computing;

impl Computing {
    fn begin() -> Computing {
        COMPUTING.fetch_add(1, Ordering::Relaxed);
        Computing
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        COMPUTING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until no other thread is inside of an operation, as is necessary before the tensor of an object becomes another one.
pub(super) fn wait_for_operations(py: Python<'_>, name: &str) -> PyResult<()> {
    let end = Instant::now() + Duration::from_secs(10);
    while COMPUTING.load(Ordering::Relaxed) > 0 {
        if Instant::now() > end {
            return Err(runtime(format!(
                "{name}: other threads have been computing for 10 seconds: let them wait while tensors are swapped"
            )));
        }
        py.detach(|| std::thread::sleep(Duration::from_micros(50)));
        py.check_signals()?;
    }
    Ok(())
}

fn unlocked(f: &mut dyn FnMut()) {
    // SAFETY: may be called at any time, by any thread.
    if unsafe { ffi::PyGILState_Check() } == 0 {
        return f();
    }
    // The allocator cannot look for the line without the GIL.
    let _line = AllocatingStep::new(call_site::current().0);
    // PyO3 counts its own attachments, so `attach` keeps the count right even in callbacks that Python made without PyO3. `try_attach` refuses
    // during a traversal of the garbage collector; the caller then runs the work itself.
    let _ = Python::try_attach(|py| {
        let here = Here(&mut *f);
        let _counted = Computing::begin();
        py.detach(move || here.run());
    });
}

/// `Python::attach`. The call may wait for the GIL, and any Python code may run inside. The caller holds no guard: the thread that has the GIL
/// may be waiting for that guard.
#[cfg_attr(debug_assertions, track_caller)]
pub(super) fn attach<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
    assert_no_guard("asking for the GIL");
    Python::attach(f)
}

/// A field of types that hold Python objects. It checks that no guard is held when they are dropped: a finalizer may run any code.
pub(super) struct EndsUnlocked;

impl Drop for EndsUnlocked {
    #[inline]
    fn drop(&mut self) {
        assert_no_guard("dropping a Python object");
    }
}

fn interrupted() -> rgrad_kernels::error::Result<()> {
    Python::try_attach(|py| py.check_signals().map_err(|e| foreign(e).into())).unwrap_or(Ok(()))
}

fn attached(f: &mut dyn FnMut()) {
    attach(|_| f());
}

pub(super) fn register() {
    foreign_run::register(attached);
    register_host(Host { unlocked, interrupted });
}
