//! What a thread has switched on or off for the operations it calls.

use std::cell::Cell;

/// The thread-local switches that the door reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Operations on tensors that require grad are recorded.
    pub grad: bool,
    /// New tensors have neither history nor version counter.
    pub inference: bool,
    /// Who wants to see every operation (see `Watch`); 0, as nearly always, lets small operations take the short way.
    pub watch: u8,
}

/// What can want to see every operation that this thread calls; each has a bit of `Mode::watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Watch {
    /// Hooks around saved tensors.
    Saving = 1,
    /// A callback before in-place writes.
    Writing = 2,
    /// Whoever wants dispatch to see every operation: tests that compare it with the short way.
    Dispatch = 4,
    /// A function that is being differentiated: it may not write what it captured.
    Captured = 8,
}

impl Mode {
    /// The switch of the short way: whether operations on few numbers may go past dispatch. Not while somebody wants to see more than
    /// in-place writes to what was captured.
    #[inline]
    pub fn allows_fast_path(self) -> bool {
        self.watch & !(Watch::Captured as u8) == 0
    }

    /// `allows_fast_path` of writes in place, which whoever watches what was captured wants to see, too.
    #[inline]
    pub fn allows_fast_writes(self) -> bool {
        self.watch == 0
    }

    #[inline]
    pub fn watches(self, watch: Watch) -> bool {
        self.watch & watch as u8 != 0
    }
}

/// Switches a watcher's bit on or off.
pub fn set_watch(watch: Watch, on: bool) {
    let mode = current();
    let bit = watch as u8;
    set(Mode { watch: if on { mode.watch | bit } else { mode.watch & !bit }, ..mode });
}

impl Default for Mode {
    fn default() -> Self {
        Mode { grad: true, inference: false, watch: 0 }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false, watch: 0 }) };
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

/// Puts grad and inference mode back when dropped. Watchers come and go by themselves.
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
        set(Mode { watch: current().watch, ..self.0 });
    }
}
