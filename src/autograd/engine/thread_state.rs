//! What foreign code can switch on a thread during a pass, and must not change for the rest of it.

use crate::autograd::dispatch::mode::{self, Mode};
use crate::autograd::graph::saved_hooks::StackAt;

/// The thread's grad mode, inference mode and saved tensor hooks. A node whose hooks or Function leave them changed, also by an error, changes them
/// neither for the next node nor for the caller.
pub(in crate::autograd) struct ThreadState {
    mode: Mode,
    hooks: StackAt,
}

impl ThreadState {
    #[inline]
    pub fn now() -> ThreadState {
        ThreadState { mode: mode::current(), hooks: StackAt::now() }
    }

    /// Takes the present grad mode and inference mode into the state.
    pub fn set_mode(&mut self) {
        self.mode = mode::current();
    }

    /// Puts the state back. Watchers other than saved tensor hooks stay as they are.
    #[inline]
    pub fn restore(&self) {
        self.hooks.restore();
        self.restore_mode();
    }

    /// Puts grad mode and inference mode back: an operation's node computes in those of the pass, whatever its hooks have switched.
    #[inline]
    pub fn restore_mode(&self) {
        let now = mode::current();
        if now != self.mode {
            mode::set(Mode { watch: now.watch, ..self.mode });
        }
    }
}
