//! Locks for what is held for a moment and hardly ever by two threads: to take and to give back costs one atomic instruction each (giving
//! back the exclusive ones none), where a lock that can put a thread to sleep needs twice as many. Who has to wait turns the processor over.

use parking_lot::lock_api::{
    GuardNoSend, Mutex, MutexGuard, RawMutex, RawRwLock, RawRwLockRecursive, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Read all the time, written now and then. Readers may lock it again; a writer waits until none is left.
pub(crate) type Shared<T> = RwLock<RawShared, T>;
pub(crate) type ReadGuard<'a, T> = RwLockReadGuard<'a, RawShared, T>;
pub(crate) type WriteGuard<'a, T> = RwLockWriteGuard<'a, RawShared, T>;
/// Held by one at a time.
pub(crate) type Brief<T> = Mutex<RawBrief, T>;
pub(crate) type BriefGuard<'a, T> = MutexGuard<'a, RawBrief, T>;

/// Waits until `free`: soon first, then politely, then rarely.
#[cold]
fn wait_until(mut free: impl FnMut() -> bool) {
    for round in 0u32.. {
        if free() {
            return;
        }
        match round {
            0..64 => std::hint::spin_loop(),
            64..1024 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// The number of readers, those who wait for a writer included, and `WRITER`.
pub(crate) struct RawShared(AtomicU32);

const WRITER: u32 = 1 << 31;

// SAFETY: a writer comes in by changing 0 to WRITER, so beside no reader; a reader goes on only when it is counted and WRITER is gone, and
// while it is counted no writer comes in.
unsafe impl RawRwLock for RawShared {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawShared = RawShared(AtomicU32::new(0));
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        if self.0.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
            wait_until(|| self.0.load(Ordering::Acquire) & WRITER == 0);
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        let free = self.0.fetch_add(1, Ordering::Acquire) & WRITER == 0;
        if !free {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
        free
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    #[inline]
    fn lock_exclusive(&self) {
        if !self.try_lock_exclusive() {
            wait_until(|| self.try_lock_exclusive());
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.0.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // Readers that wait are counted already.
        self.0.fetch_and(!WRITER, Ordering::Release);
    }
}

// SAFETY: a reader that comes again is counted again, and nobody waits but for a writer, who is not there while it reads.
unsafe impl RawRwLockRecursive for RawShared {
    #[inline]
    fn lock_shared_recursive(&self) {
        self.lock_shared();
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        self.try_lock_shared()
    }
}

pub(crate) struct RawBrief(AtomicBool);

// SAFETY: only who changes false to true comes in.
unsafe impl RawMutex for RawBrief {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawBrief = RawBrief(AtomicBool::new(false));
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if self.0.swap(true, Ordering::Acquire) {
            wait_until(|| self.try_lock());
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Acquire)
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_alone() {
        let (shared, brief) = (Shared::new((0u64, 0u64)), Brief::new((0u64, 0u64)));
        std::thread::scope(|s| {
            for t in 0..3 {
                let (shared, brief) = (&shared, &brief);
                s.spawn(move || {
                    for i in 0..2000 {
                        {
                            let again = (shared.read_recursive(), shared.read_recursive());
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
        let (shared, brief) = (Shared::new(1), Brief::new(1));
        let reading = shared.read();
        assert!(shared.try_read_recursive().is_some() && shared.try_write().is_none());
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
}
