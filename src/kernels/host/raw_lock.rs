//! The mutex under the locks of `lock_order`: one word, without a table of waiting threads, so that it survives a fork.
//!
//! A forked child has one thread. A lock that another thread held at the fork would stay locked there for ever, and locks that keep lists of
//! waiting threads would wake, or hand themselves over to, threads that do not exist. A lock here therefore remembers in which generation of
//! processes it was taken. A thread of a child that waits for a lock of an earlier generation takes it.

use parking_lot::lock_api;
use std::sync::atomic::{AtomicU32, Ordering};

/// The generation of this process, in the bits above `STATE`.
static GENERATION: AtomicU32 = AtomicU32::new(0);
const STATE: u32 = 0b11;
/// The lowest bit of the generation.
const NEXT: u32 = STATE + 1;
const LOCKED: u32 = 1;
/// Locked, and a thread may sleep until it is free.
const CONTENDED: u32 = 2;
/// Rounds before a thread sleeps.
const SPINS: u32 = 100;

/// Must be called in a forked child before any lock is taken there, except by the forking thread before the fork.
pub fn after_fork_in_child() {
    GENERATION.fetch_add(NEXT, Ordering::Relaxed);
}

/// Has functions called by the system's fork: on the thread that forks before it, and after it in the parent and in the child. Nothing else
/// runs on that thread meanwhile, unlike between the handlers of an interpreter.
///
/// # Errors
/// The system has no memory for it.
#[cfg(unix)]
pub fn at_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) -> crate::error::Result<()> {
    // SAFETY: the functions live as long as the process: this library is not unloaded.
    match unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) } {
        0 => Ok(()),
        code => Err(crate::error::Error::runtime(format!("pthread_atfork: error {code}"))),
    }
}

/// 0 while the lock is free, otherwise `LOCKED` or `CONTENDED` and the generation in which it was taken.
#[derive(Debug)]
pub struct RawLock(AtomicU32);

// SAFETY: the one thread that changes 0 to another value holds the lock until it stores 0. A lock is taken without that only from a thread that
// does not exist in this process.
unsafe impl lock_api::RawMutex for RawLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawLock = RawLock(AtomicU32::new(0));
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        let new = GENERATION.load(Ordering::Relaxed) | LOCKED;
        if self.0.compare_exchange_weak(0, new, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let generation = GENERATION.load(Ordering::Relaxed);
        match self.0.compare_exchange(0, generation | LOCKED, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(seen) => seen & !STATE != generation && self.take_over(seen, generation),
        }
    }

    #[inline]
    unsafe fn unlock(&self) {
        if self.0.swap(0, Ordering::Release) & STATE == CONTENDED {
            wake(&self.0);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl RawLock {
    /// Takes a lock whose holder the fork left behind.
    #[cold]
    fn take_over(&self, seen: u32, generation: u32) -> bool {
        self.0.compare_exchange(seen, generation | CONTENDED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        let generation = GENERATION.load(Ordering::Relaxed);
        let mut new = generation | LOCKED;
        for round in 0u32.. {
            let seen = self.0.load(Ordering::Relaxed);
            if seen == 0 || seen & !STATE != generation {
                if self.0.compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            if round < SPINS {
                std::hint::spin_loop();
                continue;
            }
            // From now on this thread does not know whether others sleep.
            new = generation | CONTENDED;
            if seen == new || self.0.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                sleep(&self.0, new);
            }
        }
    }
}

/// Sleeps until `wake`, if the word still has this value. May return early.
fn sleep(word: &AtomicU32, value: u32) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: the word lives as long as this call, and there is no time limit.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
        );
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    if word.load(Ordering::Relaxed) == value {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// Wakes one thread that sleeps on the word.
#[cold]
fn wake(word: &AtomicU32) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: only the address is used; a word that is gone has no sleeper.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = word;
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_api::RawMutex;
    use std::cell::UnsafeCell;

    struct Counter(RawLock, UnsafeCell<usize>);
    // SAFETY: the number is used under the lock only.
    unsafe impl Sync for Counter {}

    #[test]
    fn one_thread_at_a_time() {
        let counter = Counter(RawLock::INIT, UnsafeCell::new(0));
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    let counter = &counter;
                    for i in 0..20_000 {
                        counter.0.lock();
                        // SAFETY: under the lock, which this thread releases.
                        unsafe {
                            *counter.1.get() += 1;
                            if i % 5000 == 0 {
                                std::thread::sleep(std::time::Duration::from_millis(1));
                            }
                            counter.0.unlock();
                        }
                    }
                });
            }
        });
        assert_eq!(counter.1.into_inner(), 80_000);
        assert!(!counter.0.is_locked());
    }

    #[test]
    fn a_lock_of_an_earlier_generation_is_taken_over() {
        let of_parent = |state: u32| RawLock(AtomicU32::new(GENERATION.load(Ordering::Relaxed).wrapping_sub(NEXT) | state));
        for state in [LOCKED, CONTENDED] {
            let lock = of_parent(state);
            assert!(lock.try_lock() && !lock.try_lock());
            // SAFETY: taken above.
            unsafe { lock.unlock() };
            assert!(lock.try_lock());
            let lock = of_parent(state);
            lock.lock();
            assert!(!lock.try_lock());
        }
    }
}
