//! When a device ran what a thread recorded: how a profiler asks for these times, and what they are. Which threads are watched is decided above.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What ran on a device from `start` to `end`, on the host's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRun {
    /// The number that the watcher gave it when it was recorded.
    pub event: u32,
    /// The operation, and the family of its shader. Several operations where `by_host` is set.
    pub name: String,
    pub start: Instant,
    pub end: Instant,
    /// The device takes no times: from the submission of a whole batch to when the host saw that it had run.
    pub by_host: bool,
}

/// Receives what ran.
pub trait DeviceTimes: Debug + Send + Sync {
    fn ran(&self, run: DeviceRun);
}

/// A receiver, and the number under which it wants what is recorded now.
pub type Watcher = (Arc<dyn DeviceTimes>, u32);

static WATCHER: OnceLock<fn() -> Option<Watcher>> = OnceLock::new();

/// Registers the function that tells who watches this thread; the first registration stays.
pub fn register(watcher: fn() -> Option<Watcher>) {
    let _ = WATCHER.set(watcher);
}

/// Who watches what this thread records.
pub(crate) fn watcher() -> Option<Watcher> {
    WATCHER.get().and_then(|f| f())
}
