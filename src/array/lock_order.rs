//! The order of locks, for the locks of this crate: watched in builds with debug assertions, and free of cost in others.
//! See `backend::lock_order`.

use crate::host::lock_order::{self, Watch};
pub use crate::host::lock_order::{LockMode, Rank, ReentrantMutex, ReentrantMutexGuard};

#[cfg(debug_assertions)]
type LockWatch = lock_order::Always;
#[cfg(not(debug_assertions))]
type LockWatch = lock_order::Never;

pub type HeldLock = <LockWatch as Watch>::Held;
pub type Ordered<T, const R: u8> = lock_order::Ordered<T, R, LockWatch>;
pub type OrderedGuard<'a, T> = lock_order::OrderedGuard<'a, T, LockWatch>;
pub type TableLock<T> = lock_order::Table<T, LockWatch>;

/// Must be called before waiting for a lock. Panics if the lock is out of order.
#[inline(always)]
#[track_caller]
pub fn enter(rank: Rank, mode: LockMode) -> HeldLock {
    LockWatch::enter(rank, mode)
}

/// Panics if this thread holds a guard. `what` describes what is about to happen.
#[inline(always)]
#[track_caller]
pub fn assert_no_guard(what: &str) {
    if cfg!(debug_assertions) {
        lock_order::assert_no_guard(what);
    }
}

/// Removes the last entry of a rank from the list, for a lock that is released for a while. The entry returns when the result is dropped.
#[inline(always)]
pub fn suspend(rank: Rank) -> Option<lock_order::Suspended> {
    cfg!(debug_assertions).then(|| lock_order::suspend(rank))
}
