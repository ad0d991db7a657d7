//! What a thread has switched on or off for the operations it calls.

use std::cell::Cell;

/// The thread-local switches that the door reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Operations on tensors that require grad are recorded.
    pub grad: bool,
    /// New tensors have neither history nor version counter.
    pub inference: bool,
}

impl Default for Mode {
    fn default() -> Self {
        Mode { grad: true, inference: false }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false }) };
}

#[inline]
pub fn current() -> Mode {
    MODE.with(Cell::get)
}

#[inline]
pub fn set(mode: Mode) {
    MODE.with(|m| m.set(mode));
}

/// Whether operations are being recorded.
#[inline]
pub fn is_grad_enabled() -> bool {
    current().grad
}

pub fn set_grad_enabled(on: bool) {
    set(Mode { grad: on, ..current() });
}

/// Puts the thread's mode back when dropped.
#[derive(Debug)]
pub struct ModeGuard(Mode);

impl ModeGuard {
    pub fn grad(on: bool) -> ModeGuard {
        let before = current();
        set(Mode { grad: on, ..before });
        ModeGuard(before)
    }
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        set(self.0);
    }
}
