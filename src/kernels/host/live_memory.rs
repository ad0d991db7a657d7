//! The memory that is alive: every buffer of at least `REGISTERED` bytes with the line that allocated it. During a recording every smaller one
//! too, and the allocations and frees in their order.
//!
//! Allocators call `add` and `remove` where they count bytes, so the entries and the smaller rest together are what they count.

use super::lock_order::Table;
use crate::host::device::Device;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Buffers from this size on always have an entry: their contents cost much more to make than the entry does.
pub const REGISTERED: usize = 64 << 10;

/// The smallest size that gets an entry: `REGISTERED`, or 0 during a recording.
static FLOOR: AtomicUsize = AtomicUsize::new(REGISTERED);
/// The number of entries below `REGISTERED`.
static SMALL: AtomicUsize = AtomicUsize::new(0);
static ALIVE: Table<Option<Alive>> = Table::new(None);
static SITE_SOURCE: OnceLock<fn() -> u32> = OnceLock::new();

thread_local! {
    /// The line of the pending result whose memory is being allocated, or 0.
    static STEP: Cell<u32> = const { Cell::new(0) };
}

/// What identifies a buffer while it lives: its device, and an address or a handle there.
pub type BufferKey = (Device, usize);

/// A buffer that is alive.
#[derive(Debug, Clone, Copy)]
pub struct LiveBuffer {
    pub bytes: usize,
    /// The interned call site that allocated it; 0 if that is unknown.
    pub site: u32,
    /// Counts allocations, so a later one has a larger number.
    pub serial: u64,
}

/// An allocation or a free during a recording.
#[derive(Debug, Clone, Copy)]
pub struct MemoryEvent {
    /// Nanoseconds since the recording began.
    pub time: u64,
    pub key: BufferKey,
    pub bytes: usize,
    /// The site of the allocation, also in the entry of the free. 0 if unknown, as for small memory that is older than the recording.
    pub site: u32,
    pub freed: bool,
}

/// The events of a recording.
#[derive(Debug)]
pub struct MemoryRecording {
    /// What was alive when it began, without what is smaller than `REGISTERED`.
    pub before: Vec<(BufferKey, LiveBuffer)>,
    pub events: VecDeque<MemoryEvent>,
    /// How many of the oldest events are left out, because there were more than `most`.
    pub left_out: usize,
    most: usize,
    start: Instant,
}

#[derive(Default)]
struct Alive {
    entries: FxHashMap<BufferKey, LiveBuffer>,
    serial: u64,
    recording: Option<MemoryRecording>,
}

impl Alive {
    fn log(&mut self, key: BufferKey, bytes: usize, site: u32, freed: bool) {
        if let Some(r) = &mut self.recording {
            if r.events.len() == r.most {
                r.events.pop_front();
                r.left_out += 1;
            }
            let time = r.start.elapsed().as_nanos() as u64;
            r.events.push_back(MemoryEvent { time, key, bytes, site, freed });
        }
    }
}

/// Registers what finds the line that runs now; the first registration stays. It is called under guards.
pub fn register_sites(current: fn() -> u32) {
    let _ = SITE_SOURCE.set(current);
}

/// Whether a new buffer of this size gets an entry.
#[inline]
pub fn is_registered(bytes: usize) -> bool {
    bytes >= FLOOR.load(Ordering::Relaxed)
}

/// Whether a buffer of this size may have an entry, or its end has to be recorded.
#[inline]
pub fn may_be_registered(bytes: usize) -> bool {
    is_registered(bytes) || SMALL.load(Ordering::Relaxed) > 0
}

/// Makes the line of a pending result the one that allocates, until dropped.
#[derive(Debug)]
pub struct AllocatingStep(u32);

impl AllocatingStep {
    pub fn new(site: u32) -> AllocatingStep {
        AllocatingStep(STEP.replace(site))
    }
}

impl Drop for AllocatingStep {
    fn drop(&mut self) {
        STEP.set(self.0);
    }
}

/// Makes the entry of a new buffer.
#[cold]
#[inline(never)]
pub fn add(key: BufferKey, bytes: usize) {
    let site = match STEP.get() {
        0 => SITE_SOURCE.get().map_or(0, |current| current()),
        step => step,
    };
    let mut alive = ALIVE.lock();
    let alive = alive.get_or_insert_default();
    alive.serial += 1;
    let entry = LiveBuffer { bytes, site, serial: alive.serial };
    alive.log(key, bytes, site, false);
    alive.entries.insert(key, entry);
    if bytes < REGISTERED {
        SMALL.fetch_add(1, Ordering::Relaxed);
    }
}

/// Removes the entry of a buffer that ends, if it has one.
#[cold]
#[inline(never)]
pub fn remove(key: BufferKey, bytes: usize) {
    let mut alive = ALIVE.lock();
    let Some(alive) = alive.as_mut() else { return };
    let old = alive.entries.remove(&key);
    if old.is_some() && bytes < REGISTERED {
        SMALL.fetch_sub(1, Ordering::Relaxed);
    }
    alive.log(key, bytes, old.map_or(0, |b| b.site), true);
}

/// The memory of this buffer is taken over by a result of another line.
#[cold]
#[inline(never)]
pub fn take_over(key: BufferKey, site: u32) {
    let mut alive = ALIVE.lock();
    let Some(alive) = alive.as_mut() else { return };
    let Some(entry) = alive.entries.get_mut(&key) else { return };
    let (bytes, old) = (entry.bytes, std::mem::replace(&mut entry.site, site));
    if old != site {
        alive.log(key, bytes, old, true);
        alive.log(key, bytes, site, false);
    }
}

/// All entries now.
pub fn all() -> Vec<(BufferKey, LiveBuffer)> {
    ALIVE.lock().as_ref().map_or_else(Vec::new, |alive| alive.entries.iter().map(|(k, b)| (*k, *b)).collect())
}

/// Begins a recording that keeps the latest `most` events. Returns false, and does nothing, if one is running.
pub fn start(most: usize) -> bool {
    let mut alive = ALIVE.lock();
    let alive = alive.get_or_insert_default();
    if alive.recording.is_some() {
        return false;
    }
    let before = alive.entries.iter().map(|(k, b)| (*k, *b)).collect();
    alive.recording = Some(MemoryRecording { before, events: VecDeque::new(), left_out: 0, most: most.max(1), start: Instant::now() });
    FLOOR.store(0, Ordering::Relaxed);
    true
}

/// What the recording that runs has seen until now.
pub fn recorded<R>(read: impl FnOnce(&MemoryRecording) -> R) -> Option<R> {
    ALIVE.lock().as_ref().and_then(|alive| alive.recording.as_ref()).map(read)
}

/// Ends the recording. Small buffers that it has seen keep their entries.
pub fn stop() {
    FLOOR.store(REGISTERED, Ordering::Relaxed);
    let ended = ALIVE.lock().as_mut().and_then(|alive| alive.recording.take());
    drop(ended);
}

/// Holds the lock across a fork.
pub(crate) fn before_fork() {
    ALIVE.lock_for_fork();
}

/// The end of `before_fork`, in parent and child.
///
/// # Safety
/// This thread has called `before_fork`, and not this since.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the forking thread took the lock in `before_fork`; in the child it is that thread's copy.
    unsafe { ALIVE.unlock_after_fork() };
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because there is one list and one recording.
    #[test]
    fn buffers_have_entries_and_a_recording_has_events() {
        let key = |n: usize| (Device::META, n);
        let of = |n: usize| all().into_iter().find(|(k, _)| *k == key(n)).map(|(_, b)| b.bytes);
        assert!(is_registered(REGISTERED) && !is_registered(64));
        add(key(1), REGISTERED);
        assert_eq!(of(1), Some(REGISTERED));
        assert!(start(3) && !start(3));
        assert!(is_registered(64));
        for n in 2..6 {
            add(key(n), 64);
        }
        remove(key(2), 64);
        let events = recorded(|r| r.events.iter().filter(|e| e.key.0 == Device::META).map(|e| (e.key.1, e.freed)).collect::<Vec<_>>());
        let left_out = recorded(|r| r.left_out);
        stop();
        assert!(left_out.is_some_and(|n| n >= 2), "{left_out:?}");
        assert!(events.is_some_and(|e| e.len() <= 3));
        assert!(may_be_registered(64), "small entries are left");
        (3..6).for_each(|n| remove(key(n), 64));
        remove(key(1), REGISTERED);
        assert_eq!((of(1), of(3)), (None, None));
    }
}
