//! The thread-local switches of dispatch: grad mode, inference mode, watchers.

use std::cell::Cell;

/// The switches that dispatch reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Operations on tensors that require grad are recorded.
    pub grad: bool,
    /// New tensors have neither history nor version counter.
    pub inference: bool,
    /// Which watchers are on (bits of `Watch`). 0 in the common case, where small operations take the fast path.
    pub watch: u16,
    /// Grad mode is off because a node's forward or backward runs: what is read then is kept alive by a graph that outlives it.
    pub inside_node: bool,
}

/// What can make dispatch see every operation that this thread calls; each has a bit of `Mode::watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Watch {
    /// Hooks around saved tensors.
    Saving = 1,
    /// A callback before in-place writes.
    Writing = 2,
    /// Sends every operation through dispatch: for tests that compare it with the fast path.
    Dispatch = 4,
    /// A derivative transform is running: writes to captured tensors are refused.
    Captured = 8,
    /// A derivative transform was entered while recording was off: nothing is recorded below its level.
    QuietBelow = 16,
    /// Autocast is on: listed functions convert their inputs.
    Autocast = 32,
    /// A profiler records: every operation is an event.
    Profile = 64,
    /// Watchers see every operation, and may answer in its place.
    Operations = 128,
    /// Anomaly mode looks at the outputs of every operation.
    Anomaly = 256,
    /// A tensor has got a tangent by a write in place: its views take their parts of it when they are used.
    ViewTangents = 512,
}

impl Mode {
    /// Whether operations on small arrays may take the fast path. `Watch::Captured` concerns in-place writes only, and
    /// `Watch::Autocast` functions that do not take it, so they do not prevent it.
    #[inline]
    pub fn allows_fast_path(self) -> bool {
        self.watch & !(Watch::Captured as u16 | Watch::Autocast as u16) == 0
    }

    /// As `allows_fast_path`, where a profiler sees what runs.
    #[inline]
    pub fn allows_seen_path(self) -> bool {
        self.watch & !(Watch::Captured as u16 | Watch::Autocast as u16 | Watch::Profile as u16) == 0
    }

    /// As `allows_fast_writes`, where a profiler sees what runs.
    #[inline]
    pub fn allows_seen_writes(self) -> bool {
        self.watch & !(Watch::Autocast as u16 | Watch::Profile as u16) == 0
    }

    /// As `allows_fast_path`, for in-place writes.
    #[inline]
    pub fn allows_fast_writes(self) -> bool {
        self.watch & !(Watch::Autocast as u16) == 0
    }

    #[inline]
    pub fn watches(self, watch: Watch) -> bool {
        self.watch & watch as u16 != 0
    }
}

/// Switches a watcher's bit on or off.
pub fn set_watch(watch: Watch, on: bool) {
    let mode = current();
    let bit = watch as u16;
    set(Mode { watch: if on { mode.watch | bit } else { mode.watch & !bit }, ..mode });
}

impl Default for Mode {
    fn default() -> Self {
        Mode { grad: true, inference: false, watch: 0, inside_node: false }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false, watch: 0, inside_node: false }) };
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
    let before = current();
    set(Mode { grad: on, inside_node: before.inside_node && !on, ..before });
}

/// Restores grad and inference mode when dropped, and leaves the watchers as they are.
#[derive(Debug)]
pub struct ModeGuard(Mode);

impl ModeGuard {
    pub fn grad(on: bool) -> ModeGuard {
        let before = current();
        set(Mode { grad: on, inside_node: before.inside_node && !on, ..before });
        ModeGuard(before)
    }

    /// For a node's forward or backward, which is recorded or not.
    #[inline]
    pub fn node(recorded: bool) -> ModeGuard {
        let before = current();
        set(Mode { grad: recorded, inside_node: !recorded, ..before });
        ModeGuard(before)
    }
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        set(Mode { watch: current().watch, ..self.0 });
    }
}
