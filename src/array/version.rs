//! Version counters, which detect writes, and the ages in which storages were made.

use super::storage::Storage;
use crate::array::lock_order::{Ordered, Rank};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where and by what a tensor was last written: an interned call site (0: unknown) and an operation's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub site: u32,
    pub op: &'static str,
}

/// The number of derivative transforms begun in any thread: the clock by which storages remember when they were made.
static AGE: AtomicU32 = AtomicU32::new(0);

/// Begins a new age and returns it. Storages made from now on are of this age or a later one.
pub fn new_age() -> u32 {
    AGE.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// The last write, and the age in which the counter was made.
struct Record {
    op: Option<&'static str>,
    site: u32,
    age: u32,
}

pub(crate) struct Counter {
    count: AtomicU32,
    /// The call site that froze the storage plus one, 0 if none did; of the storage's own counter only.
    frozen: AtomicU32,
    last: Ordered<Record, { Rank::Storage as u8 }>,
}

impl Default for Counter {
    #[inline(always)]
    fn default() -> Counter {
        let last = Record { op: None, site: 0, age: AGE.load(Ordering::Relaxed) };
        Counter { count: AtomicU32::new(0), frozen: AtomicU32::new(0), last: Ordered::new(last) }
    }
}

impl Counter {
    /// The call site that froze the storage, if it is frozen.
    #[inline]
    pub fn frozen(&self) -> Option<u32> {
        self.frozen.load(Ordering::Acquire).checked_sub(1)
    }

    /// Freezes the storage, and stores the call site of the first freeze.
    pub fn freeze(&self, site: u32) {
        let _ = self.frozen.compare_exchange(0, site.wrapping_add(1).max(1), Ordering::AcqRel, Ordering::Acquire);
    }

    pub fn unfreeze(&self) {
        self.frozen.store(0, Ordering::Release);
    }

    /// Whether the counter was made in the given age or later. Ages wrap around: a very old one counts as new.
    pub fn is_since(&self, age: u32) -> bool {
        self.last.lock().age.wrapping_sub(age) as i32 >= 0
    }
}

/// The version counter of a tensor.
#[derive(Clone, Default)]
pub enum Version {
    /// The storage's counter, shared by all views and detached copies.
    #[default]
    Shared,
    /// A counter of its own over shared memory, for `.data`.
    Own(Arc<CounterBox>),
    /// No counter: inference tensors do not track writes.
    Untracked,
}

/// An owned counter; opaque.
#[derive(Default)]
pub struct CounterBox(Counter);

impl Version {
    pub fn fresh() -> Version {
        Version::Own(Arc::default())
    }

    /// The counter of a tensor whose memory is replaced by `new`'s: it continues from this counter's value over `old`, and ignores the counter of
    /// `new`.
    #[must_use]
    pub fn moved(&self, old: &Storage, new: &Storage) -> Version {
        match self {
            Version::Shared if !old.same(new) => {
                let version = Version::fresh();
                if let Some(change) = self.last_change(old) {
                    version.bump(new, change);
                }
                version.set(new, old.0.version.count.load(Ordering::Acquire));
                version
            }
            kept => kept.clone(),
        }
    }

    #[inline]
    fn counter<'a>(&'a self, storage: &'a Storage) -> Option<&'a Counter> {
        match self {
            Version::Shared => Some(&storage.0.version),
            Version::Own(c) => Some(&c.0),
            Version::Untracked => None,
        }
    }

    /// The number of writes; None if they are not tracked.
    #[inline]
    pub fn current(&self, storage: &Storage) -> Option<u32> {
        self.counter(storage).map(|c| c.count.load(Ordering::Acquire))
    }

    /// Records a write.
    #[inline]
    pub fn bump(&self, storage: &Storage, change: Change) {
        if let Some(c) = self.counter(storage) {
            let mut last = c.last.lock();
            (last.op, last.site) = (Some(change.op), change.site);
            drop(last);
            c.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Sets the count, for contexts that guarantee to have restored the memory.
    pub fn set(&self, storage: &Storage, count: u32) {
        if let Some(c) = self.counter(storage) {
            c.count.store(count, Ordering::Release);
        }
    }

    pub fn last_change(&self, storage: &Storage) -> Option<Change> {
        self.counter(storage).and_then(|c| {
            let last = c.last.lock();
            last.op.map(|op| Change { site: last.site, op })
        })
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Shared => "Shared",
            Version::Own(_) => "Own",
            Version::Untracked => "Untracked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shared_or_fresh() {
        let s = Storage::alloc(8).unwrap();
        let (a, b, c) = (Version::Shared, Version::fresh(), Version::Untracked);
        a.bump(&s, Change { site: 7, op: "add_" });
        assert_eq!((a.current(&s), b.current(&s), c.current(&s)), (Some(1), Some(0), None));
        assert_eq!(Version::Shared.last_change(&s), Some(Change { site: 7, op: "add_" }));
    }
}
