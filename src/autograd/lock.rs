//! Locks for what is held for a moment and hardly ever by two threads: to take and to give back costs one atomic instruction each (giving
//! back the exclusive ones none), where a lock that can put a thread to sleep needs twice as many. Who has to wait turns the processor over.

use parking_lot::lock_api::{GuardNoSend, Mutex, MutexGuard, RawMutex};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

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

const WRITER: u32 = 1 << 31;

/// Read all the time, written now and then. Readers may lock it again; a writer waits until none is left.
pub(crate) struct Shared<T> {
    /// The number of readers, those who wait for a writer included, and `WRITER`.
    readers: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: a writer comes in by changing 0 to WRITER, so beside no reader; a reader goes on only when it is counted and WRITER is gone, and
// while it is counted no writer comes in.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// Must end on the thread that began it, which may hold others of the same lock.
pub(crate) struct ReadGuard<'a, T> {
    lock: &'a Shared<T>,
    here: PhantomData<*mut ()>,
}
pub(crate) struct WriteGuard<'a, T> {
    lock: &'a Shared<T>,
    here: PhantomData<*mut ()>,
}

impl<T> Shared<T> {
    /// Makes the lock and its value where they will lie.
    ///
    /// # Safety
    /// `place` can be written, and `fill` writes all of the value.
    #[inline(always)]
    pub unsafe fn emplace(place: *mut Shared<T>, fill: impl FnOnce(*mut T)) {
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
    pub fn read(&self) -> ReadGuard<'_, T> {
        if self.readers.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
            wait_until(|| self.readers.load(Ordering::Acquire) & WRITER == 0);
        }
        ReadGuard { lock: self, here: PhantomData }
    }

    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        if self.readers.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
            self.readers.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(ReadGuard { lock: self, here: PhantomData })
    }

    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T> {
        let come_in = || self.readers.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !come_in() {
            wait_until(come_in);
        }
        WriteGuard { lock: self, here: PhantomData }
    }

    #[cfg(test)]
    fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        let free = self.readers.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok();
        free.then_some(WriteGuard { lock: self, here: PhantomData })
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
        // Readers that wait are counted already.
        self.lock.readers.fetch_and(!WRITER, Ordering::Release);
    }
}

/// Held by one at a time.
pub(crate) type Brief<T> = Mutex<RawBrief, T>;
pub(crate) type BriefGuard<'a, T> = MutexGuard<'a, RawBrief, T>;

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

    fn shared<T>(value: T) -> Shared<T> {
        Shared { readers: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    #[test]
    fn writers_are_alone() {
        let (shared, brief) = (shared((0u64, 0u64)), Brief::new((0u64, 0u64)));
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
        let (shared, brief) = (shared(1), Brief::new(1));
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
}
