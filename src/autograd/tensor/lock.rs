//! Locks for short critical sections that are rarely contended. Locking and unlocking take one atomic instruction each (unlocking an exclusive
//! lock takes none); a lock that can put a thread to sleep needs twice as many.
//!
//! A thread that waits spins for a bounded number of rounds and then sleeps between attempts. It may hold the host's lock meanwhile: the thread
//! that holds the lock never waits for the host's lock, and runs neither foreign code nor a large kernel ("Note: lock order" in
//! docs/architecture.md).

use crate::array::lock_order::{HeldLock, LockMode, Rank, enter};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Rounds without sleep: first the thread spins, then it yields its processor.
const SPINS: u32 = 64;
const YIELDS: u32 = 16;
const MAX_SLEEP: Duration = Duration::from_micros(500);
/// The longest time that a reader gives precedence to a writer that has used up its rounds. A reader that already holds a read lock on the tensor
/// must not wait for that writer any longer.
const MAX_YIELD_TO_WRITER: Duration = Duration::from_millis(2);

/// The state of a wait for a lock.
struct Backoff {
    rounds: u32,
    sleep: Duration,
}

impl Backoff {
    fn new() -> Backoff {
        Backoff { rounds: 0, sleep: Duration::from_micros(20) }
    }

    /// Whether the rounds without sleep are used up.
    fn is_long(&self) -> bool {
        self.rounds >= SPINS + YIELDS
    }

    /// In a model check each wait lets another thread run, and there are few rounds before a writer insists.
    #[cfg(loom)]
    fn wait(&mut self) {
        self.rounds = SPINS + YIELDS;
        loom::thread::yield_now();
    }

    #[cfg(not(loom))]
    fn wait(&mut self) {
        match self.rounds {
            0..SPINS => std::hint::spin_loop(),
            _ if !self.is_long() => std::thread::yield_now(),
            _ => {
                std::thread::sleep(self.sleep);
                self.sleep = (self.sleep * 2).min(MAX_SLEEP);
                return;
            }
        }
        self.rounds += 1;
    }
}

const WRITER: u32 = 1 << 31;
/// A writer has used up its rounds.
const WAITING: u32 = 1 << 30;

/// A reader-writer lock. A thread may lock it for reading several times. A writer waits until there is no reader.
pub(crate) struct RwSpinLock<T> {
    /// The number of readers, including those that wait for a writer to finish, and the bits `WRITER` and `WAITING`.
    readers: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: a writer enters by changing 0 readers to WRITER, so there is no reader. A reader proceeds only when it is counted and WRITER is clear,
// and while it is counted no writer enters.
unsafe impl<T: Send + Sync> Sync for RwSpinLock<T> {}

/// Must be dropped on the thread that took it. That thread may hold several read locks of the same tensor.
pub(crate) struct ReadGuard<'a, T> {
    lock: &'a RwSpinLock<T>,
    _held: HeldLock,
}
pub(crate) struct WriteGuard<'a, T> {
    lock: &'a RwSpinLock<T>,
    _held: HeldLock,
}

impl<T> RwSpinLock<T> {
    /// Constructs the lock and its value in place.
    ///
    /// # Safety
    /// `place` can be written, and `fill` writes all of the value.
    #[inline(always)]
    pub unsafe fn emplace(place: *mut RwSpinLock<T>, fill: impl FnOnce(*mut T)) {
        // SAFETY: the caller's.
        unsafe {
            (&raw mut (*place).readers).write(AtomicU32::new(0));
            fill(UnsafeCell::raw_get(&raw const (*place).value));
        }
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn read(&self) -> ReadGuard<'_, T> {
        let _held = enter(Rank::Tensor, LockMode::Shared);
        let seen = self.readers.fetch_add(1, Ordering::Acquire);
        if seen & (WRITER | WAITING) != 0 {
            self.wait_to_read(seen);
        }
        ReadGuard { lock: self, _held }
    }

    /// The reader is counted already.
    #[cold]
    fn wait_to_read(&self, mut seen: u32) {
        let mut backoff = Backoff::new();
        if seen & WRITER == 0 {
            // Stop being counted for a while, which the writer waits for.
            self.readers.fetch_sub(1, Ordering::Release);
            let begun = std::time::Instant::now();
            // A model check has no time.
            while cfg!(not(loom)) && self.readers.load(Ordering::Relaxed) & WAITING != 0 && begun.elapsed() < MAX_YIELD_TO_WRITER {
                backoff.wait();
            }
            seen = self.readers.fetch_add(1, Ordering::Acquire);
        }
        while seen & WRITER != 0 {
            backoff.wait();
            seen = self.readers.load(Ordering::Acquire);
        }
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        if self.readers.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
            self.readers.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(ReadGuard { lock: self, _held: enter(Rank::Tensor, LockMode::Tried) })
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn write(&self) -> WriteGuard<'_, T> {
        let _held = enter(Rank::Tensor, LockMode::Exclusive);
        if self.readers.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait_to_write();
        }
        WriteGuard { lock: self, _held }
    }

    #[cold]
    fn wait_to_write(&self) {
        let mut backoff = Backoff::new();
        loop {
            // Entering clears `WAITING`; other writers that have waited long set it again.
            let seen = self.readers.load(Ordering::Relaxed) & WAITING;
            if self.readers.compare_exchange(seen, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
            backoff.wait();
            if backoff.is_long() {
                self.readers.fetch_or(WAITING, Ordering::Relaxed);
            }
        }
    }

    #[cfg(test)]
    fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        let free = self.readers.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok();
        free.then(|| WriteGuard { lock: self, _held: enter(Rank::Tensor, LockMode::Tried) })
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: counted as a reader.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.readers.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the only guard.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Waiting readers are counted already.
        self.lock.readers.fetch_and(!WRITER, Ordering::Release);
    }
}

/// An exclusive lock, for the state of a node.
#[derive(Default)]
pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that changes false to true enters.
unsafe impl<T: Send> Sync for SpinLock<T> {}

/// Must be dropped on the thread that took it.
pub(crate) struct SpinLockGuard<'a, T> {
    lock: &'a SpinLock<T>,
    _held: HeldLock,
}

impl<T> SpinLock<T> {
    #[cfg(not(loom))]
    #[inline]
    pub const fn new(value: T) -> SpinLock<T> {
        SpinLock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[cfg(loom)]
    pub fn new(value: T) -> SpinLock<T> {
        SpinLock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        let _held = enter(Rank::Node, LockMode::Exclusive);
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait_to_lock();
        }
        SpinLockGuard { lock: self, _held }
    }

    #[cold]
    fn wait_to_lock(&self) {
        let mut backoff = Backoff::new();
        while !self.take() {
            backoff.wait();
        }
    }

    #[inline]
    fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire)
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        self.take().then(|| SpinLockGuard { lock: self, _held: enter(Rank::Node, LockMode::Tried) })
    }
}

impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the only guard.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn shared<T>(value: T) -> RwSpinLock<T> {
        RwSpinLock { readers: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    #[test]
    fn writers_are_alone() {
        let (shared, brief) = (shared((0u64, 0u64)), SpinLock::new((0u64, 0u64)));
        std::thread::scope(|s| {
            for t in 0..3 {
                let (shared, brief) = (&shared, &brief);
                s.spawn(move || {
                    for i in 0..2000 {
                        {
                            let again = (shared.read(), shared.read());
                            assert_eq!(again.0.0, again.1.1, "a half-written pair was seen");
                        }
                        if (i + t) % 3 == 0 {
                            let mut pair = shared.write();
                            pair.0 += 1;
                            std::hint::black_box(&mut pair);
                            pair.1 += 1;
                        }
                        let mut pair = brief.lock();
                        pair.0 += 1;
                        std::hint::black_box(&mut pair);
                        pair.1 += 1;
                        assert_eq!(pair.0, pair.1);
                    }
                });
            }
        });
        assert_eq!(brief.lock().0, 6000);
        assert_eq!(shared.read().0, shared.read().1);
        assert!(shared.read().0 >= 1998);
    }

    #[test]
    fn trying_does_not_wait() {
        let (shared, brief) = (shared(1), SpinLock::new(1));
        let reading = shared.read();
        assert!(shared.try_read().is_some() && shared.try_write().is_none());
        drop(reading);
        let writing = shared.write();
        assert!(shared.try_read().is_none() && shared.try_write().is_none());
        drop(writing);
        assert!(shared.try_write().is_some());
        let held = brief.lock();
        assert!(brief.try_lock().is_none());
        drop(held);
        assert!(brief.try_lock().is_some());
    }

    #[test]
    fn a_writer_comes_in_between_readers_that_never_leave_it_free() {
        let lock = shared(0u64);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            for k in 0..3u64 {
                let (lock, done) = (&lock, &done);
                s.spawn(move || {
                    // Each begins to read before another one ends, and now and then reads twice at a time.
                    for i in 0.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        let first = lock.read();
                        std::thread::sleep(Duration::from_micros(300 + 100 * k));
                        let second = (i % 8 == 0).then(|| lock.read());
                        assert!(second.is_none_or(|second| *second == *first));
                    }
                });
            }
            for _ in 0..20 {
                *lock.write() += 1;
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(*lock.read(), 20);
        assert_eq!(lock.readers.load(Ordering::Relaxed), 0);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "lock order: Node is asked for")]
    fn a_node_is_not_locked_while_a_tensor_is() {
        let (tensor, node) = (shared(1), SpinLock::new(1));
        let _reading = tensor.read();
        let _state = node.lock();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "lock order: asking for the host's lock")]
    fn the_hosts_lock_is_not_asked_for_while_a_tensor_is_read() {
        let tensor = shared(1);
        let _reading = tensor.read();
        crate::host::language::unlocked(|| ());
    }
}
