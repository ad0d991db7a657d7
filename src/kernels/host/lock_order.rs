//! The order in which locks are taken. The rules and their reasons: "Note: lock order" in docs/architecture.md.
//!
//! Builds with debug assertions keep a list of the locks that each thread holds, and panic with the names and source lines of both locks if
//! one is taken out of order. In other builds the crate `rgrad` contains none of this. The kernels are compiled once for all builds, so
//! their own locks ask at run time: they are watched from the first watched lock of `rgrad` on (`Watch`).

use super::raw_lock::RawLock;
use parking_lot::{RawThreadId, lock_api};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

type Mutex<T> = lock_api::Mutex<RawLock, T>;
type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawLock, T>;
/// A lock that the thread that holds it may take again.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawLock, RawThreadId, T>;
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawLock, RawThreadId, T>;

/// The rank of a lock, by what it protects. A thread takes only locks that come after all those that it holds.
///
/// The first three are long: work, waits and Python may run under them, so no thread waits for one while it holds the GIL. The others are
/// guards: they are held briefly, and nothing under them may wait, or call or drop foreign objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rank {
    /// The turn to add to a leaf's `.grad`.
    Turn,
    /// The lock under which deferred programs run.
    Program,
    /// The command recorder of a device.
    Recorder,
    /// The marks by which a backward pass finds its nodes.
    Marks,
    /// The state of a node.
    Node,
    /// A tensor.
    Tensor,
    /// The step and the last write of a storage.
    Storage,
    /// A table with short lookups and changes: caches, counters, registries.
    Table,
}

impl Rank {
    const ALL: [Rank; 8] = [Rank::Turn, Rank::Program, Rank::Recorder, Rank::Marks, Rank::Node, Rank::Tensor, Rank::Storage, Rank::Table];

    /// Whether locks of this rank are held only briefly.
    pub const fn is_guard(self) -> bool {
        self as u8 >= Rank::Marks as u8
    }
}

/// How a lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// The only one of its rank that the thread holds.
    Exclusive,
    /// Together with others of its rank that were taken in the same mode: readers, and reentrant locks.
    Shared,
    /// Without waiting, so in any order.
    Tried,
}

/// Whether locks are entered in the list. The crate that owns a lock says so, by the type `W` of the lock.
pub trait Watch {
    /// The entry of a lock that is held, or about to be. Ends with the lock, on the same thread.
    type Held;

    /// Must be called before waiting for a lock. Panics if the lock is out of order.
    #[track_caller]
    fn enter(rank: Rank, mode: LockMode) -> Self::Held;
}

/// Every lock is entered: for builds with debug assertions.
#[derive(Debug)]
pub struct Always;

/// No lock is entered: for builds without debug assertions.
#[derive(Debug)]
pub struct Never;

/// The kernels' own locks: entered from the first use of `Always` on.
#[derive(Debug)]
pub struct IfWatched;

/// Whether this is a build that watches. Only ever set.
static WATCHED: AtomicBool = AtomicBool::new(cfg!(test));

#[inline]
fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed)
}

impl Watch for Always {
    type Held = HeldLock;

    fn enter(rank: Rank, mode: LockMode) -> HeldLock {
        WATCHED.store(true, Ordering::Relaxed);
        list::enter(rank, mode)
    }
}

impl Watch for Never {
    type Held = NotHeld;

    #[inline(always)]
    fn enter(_: Rank, _: LockMode) -> NotHeld {
        NotHeld(PhantomData)
    }
}

impl Watch for IfWatched {
    type Held = Option<HeldLock>;

    #[inline]
    fn enter(rank: Rank, mode: LockMode) -> Option<HeldLock> {
        // Not in a closure, which would be the place that asks.
        if is_watched() { Some(list::enter(rank, mode)) } else { None }
    }
}

/// In place of an entry where no lock is entered. Like an entry, it stays on its thread.
#[derive(Debug)]
pub struct NotHeld(PhantomData<*mut ()>);

/// Enters one of the kernels' own locks.
#[inline]
#[track_caller]
pub(crate) fn enter(rank: Rank, mode: LockMode) -> Option<HeldLock> {
    IfWatched::enter(rank, mode)
}

/// Panics if locks are watched and this thread holds a guard. `what` describes what is about to happen.
#[inline]
#[track_caller]
pub fn assert_no_guard(what: &str) {
    if is_watched() {
        list::assert_no_guard(what);
    }
}

mod list {
    use super::{LockMode, Rank};
    use std::cell::RefCell;
    use std::marker::PhantomData;
    use std::panic::Location;

    #[derive(Debug)]
    struct HeldEntry {
        number: u64,
        rank: Rank,
        mode: LockMode,
        at: &'static Location<'static>,
    }

    struct HeldLocks {
        next: u64,
        held: Vec<HeldEntry>,
    }

    thread_local! {
        static LIST: RefCell<HeldLocks> = const { RefCell::new(HeldLocks { next: 1, held: Vec::new() }) };
    }

    /// The entry of a lock that is held, or about to be. Ends with the lock, on the same thread.
    #[derive(Debug)]
    pub struct HeldLock {
        /// 0 if there is no list, while a thread ends.
        number: u64,
        here: PhantomData<*mut ()>,
    }

    impl Drop for HeldLock {
        fn drop(&mut self) {
            // Guards may end in any order, but mostly the last one ends first.
            let _ = LIST.try_with(|list| {
                let held = &mut list.borrow_mut().held;
                if let Some(at) = held.iter().rposition(|e| e.number == self.number) {
                    held.remove(at);
                }
            });
        }
    }

    /// Must be called before waiting for a lock. Panics if the lock is out of order.
    #[track_caller]
    pub(crate) fn enter(rank: Rank, mode: LockMode) -> HeldLock {
        let at = Location::caller();
        let result = LIST.try_with(|list| {
            let list = &mut *list.borrow_mut();
            let wrong = |e: &&HeldEntry| e.rank > rank || e.rank == rank && !(mode == LockMode::Shared && e.mode != LockMode::Exclusive);
            if mode != LockMode::Tried
                && let Some(e) = list.held.iter().find(wrong)
            {
                return Err(format!(
                    "lock order: {rank:?} is asked for at {at} ({mode:?}) while {:?} is held since {} ({:?}). See \"Note: lock order\" in \
                     docs/architecture.md",
                    e.rank, e.at, e.mode
                ));
            }
            let number = list.next;
            list.next += 1;
            list.held.push(HeldEntry { number, rank, mode, at });
            Ok(number)
        });
        let number = match result {
            Ok(Ok(number)) => number,
            // A second panic would end the process before the first is reported.
            Ok(Err(_)) if std::thread::panicking() => 0,
            Ok(Err(text)) => panic!("{text}"),
            Err(_) => 0,
        };
        HeldLock { number, here: PhantomData }
    }

    /// Removes the last entry of a rank from the list, for a lock that is released for a while. The entry returns when the result is
    /// dropped.
    #[derive(Debug)]
    pub struct Suspended(Option<HeldEntry>);

    pub fn suspend(rank: Rank) -> Suspended {
        let taken = LIST.try_with(|list| {
            let held = &mut list.borrow_mut().held;
            held.iter().rposition(|e| e.rank == rank).map(|at| held.remove(at))
        });
        Suspended(taken.ok().flatten())
    }

    impl Drop for Suspended {
        fn drop(&mut self) {
            if let Some(entry) = self.0.take() {
                let _ = LIST.try_with(|list| list.borrow_mut().held.push(entry));
            }
        }
    }

    /// Panics if this thread holds a guard. `what` describes what is about to happen.
    #[track_caller]
    pub(crate) fn assert_no_guard(what: &str) {
        let at = Location::caller();
        let found = LIST.try_with(|list| {
            let list = list.borrow();
            list.held.iter().find(|e| e.rank.is_guard()).map(|e| {
                format!(
                    "lock order: {what} at {at} while {:?} is held since {}. See \"Note: lock order\" in docs/architecture.md",
                    e.rank, e.at
                )
            })
        });
        if let Ok(Some(text)) = found
            && !std::thread::panicking()
        {
            panic!("{text}");
        }
    }
}

pub use list::{HeldLock, Suspended, suspend};

/// A mutex with a place in the order: `R` is a `Rank` as a number.
#[derive(Debug)]
pub struct Ordered<T, const R: u8, W = IfWatched>(Mutex<T>, PhantomData<W>);

/// A lock of a table, the last in the order: no other lock is taken under it.
pub type Table<T, W = IfWatched> = Ordered<T, { Rank::Table as u8 }, W>;

#[derive(Debug)]
pub struct OrderedGuard<'a, T, W: Watch = IfWatched> {
    // Declared first, so that the lock is released before its entry ends.
    guard: MutexGuard<'a, T>,
    _held: W::Held,
}

impl<T: Default, const R: u8, W> Default for Ordered<T, R, W> {
    fn default() -> Self {
        Ordered(Mutex::default(), PhantomData)
    }
}

impl<T, const R: u8, W: Watch> Ordered<T, R, W> {
    pub const fn new(value: T) -> Self {
        Ordered(Mutex::new(value), PhantomData)
    }

    #[inline]
    #[track_caller]
    pub fn lock(&self) -> OrderedGuard<'_, T, W> {
        let _held = W::enter(Rank::ALL[R as usize], LockMode::Exclusive);
        OrderedGuard { guard: self.0.lock(), _held }
    }

    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<OrderedGuard<'_, T, W>> {
        let guard = self.0.try_lock()?;
        Some(OrderedGuard { guard, _held: W::enter(Rank::ALL[R as usize], LockMode::Tried) })
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Takes the lock on the thread that forks. It is not part of the order, because any code may run until the fork.
    pub fn lock_for_fork(&self) {
        std::mem::forget(self.0.lock());
    }

    /// # Safety
    /// The end of `lock_for_fork`, in the parent or the child.
    pub unsafe fn unlock_after_fork(&self) {
        // SAFETY: the forking thread took the lock; in the child it is that thread's copy.
        unsafe { self.0.force_unlock() };
    }
}

impl<T, W: Watch> Deref for OrderedGuard<'_, T, W> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T, W: Watch> DerefMut for OrderedGuard<'_, T, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type StorageLock<T> = Ordered<T, { Rank::Storage as u8 }, Always>;
    type Watched<T> = Table<T, Always>;

    #[test]
    fn ranks_are_their_places() {
        assert!(Rank::ALL.iter().enumerate().all(|(i, r)| *r as usize == i));
        let long: Vec<Rank> = Rank::ALL.into_iter().filter(|r| !r.is_guard()).collect();
        assert_eq!(long, [Rank::Turn, Rank::Program, Rank::Recorder]);
    }

    #[test]
    fn locks_in_order_are_taken_and_given_back_in_any() {
        let (outer, inner) = (StorageLock::new(1), Watched::new(2));
        for _ in 0..3 {
            let a = outer.lock();
            let b = inner.lock();
            assert!(inner.try_lock().is_none());
            drop(a);
            assert_eq!(*b, 2);
            drop(b);
            // Without waiting, any order is allowed.
            let b = inner.lock();
            assert!(outer.try_lock().is_some_and(|a| *a == 1));
            drop(b);
            assert_no_guard("a test");
        }
        let _program = enter(Rank::Program, LockMode::Shared);
        let _again = enter(Rank::Program, LockMode::Shared);
        assert_no_guard("work under a long lock");
    }

    #[test]
    fn each_thread_has_a_list_of_its_own() {
        let (first, second) = (Watched::new(()), Watched::new(()));
        let _held = first.lock();
        std::thread::scope(|s| {
            s.spawn(|| drop(second.lock()));
        });
    }

    #[test]
    #[should_panic(expected = "lock order: Storage is asked for at src/kernels/host/lock_order.rs")]
    fn a_lock_out_of_order_is_named() {
        let (outer, inner) = (StorageLock::new(()), Watched::new(()));
        let _inner = inner.lock();
        let _outer = outer.lock();
    }

    #[test]
    #[should_panic(expected = "while Table is held since src/kernels/host/lock_order.rs")]
    fn two_of_one_rank_are_named() {
        let (first, second) = (Watched::new(()), Watched::new(()));
        let _first = first.lock();
        let _second = second.lock();
    }

    #[test]
    #[should_panic(expected = "lock order: waiting for a device at")]
    fn what_may_not_happen_under_a_guard_is_named() {
        let table = Watched::new(());
        let _held = table.lock();
        assert_no_guard("waiting for a device");
    }

    #[test]
    #[should_panic(expected = "Tensor is asked for")]
    fn a_writer_beside_a_reader_is_named() {
        let _reader = enter(Rank::Tensor, LockMode::Shared);
        let _writer = enter(Rank::Tensor, LockMode::Exclusive);
    }
}
