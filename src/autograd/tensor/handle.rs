//! A shared handle with weak handles, as `Arc`, but without an atomic write when the only handle ends: both counts are in one word, so one load
//! shows that there is no other. A third part of the word says that the value keeps the object that represents it, which holds a handle itself:
//! when that handle is the only one left, the value lets the object go.

use std::alloc::{Layout, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The increments of the strong and the weak count. All strong handles together hold one weak count, until the value has been dropped.
const STRONG: u64 = 1;
const WEAK: u64 = 1 << 32;
const ONLY: u64 = STRONG | WEAK;
/// The value keeps its object.
const KEEPS: u64 = 1 << 63;
/// More than memory can hold. A leak of handles must abort before one count overflows into the other.
const MOST: u32 = 1 << 30;

/// What a value with an object does.
pub(crate) trait Keeps {
    /// Lets the object go. Called once for each `keep`, on any thread, when only the object's handle is left. That handle, and so the value, may
    /// end in this call.
    fn let_go(&self);
}

struct HandleBox<T> {
    counts: AtomicU64,
    value: T,
}

#[inline]
fn strong(counts: u64) -> u32 {
    counts as u32
}

#[inline]
fn weak(counts: u64) -> u32 {
    ((counts & !KEEPS) >> 32) as u32
}

/// Keeps the value alive. Clones are the same value.
pub(crate) struct Handle<T: Keeps>(NonNull<HandleBox<T>>);

/// Does not keep the value alive.
pub(crate) struct WeakHandle<T: Keeps>(NonNull<HandleBox<T>>);

// SAFETY: as for `Arc`: the value is shared by reference, and dropped by whichever thread holds the last handle.
unsafe impl<T: Keeps + Send + Sync> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: Keeps + Send + Sync> Sync for Handle<T> {}
// SAFETY: as above; a weak handle may become a handle.
unsafe impl<T: Keeps + Send + Sync> Send for WeakHandle<T> {}
// SAFETY: as above.
unsafe impl<T: Keeps + Send + Sync> Sync for WeakHandle<T> {}

impl<T: Keeps> Handle<T> {
    /// Constructs the value in place, field by field: a large value that is passed by value is copied several times.
    ///
    /// # Safety
    /// `fill` writes all of the value.
    #[inline(always)]
    pub unsafe fn emplace(fill: impl FnOnce(*mut T)) -> Handle<T> {
        let place = Box::leak(Box::<HandleBox<T>>::new_uninit()).as_mut_ptr();
        // SAFETY: the place is this function's own until it is filled; the rest is the caller's.
        unsafe {
            (&raw mut (*place).counts).write(AtomicU64::new(ONLY));
            fill(&raw mut (*place).value);
            Handle(NonNull::new_unchecked(place))
        }
    }

    #[inline]
    fn counts(&self) -> &AtomicU64 {
        // SAFETY: this handle is counted, so the memory is there.
        unsafe { &self.0.as_ref().counts }
    }

    /// The current number of strong handles, without that of an object that the value keeps.
    #[inline]
    pub fn strong_count(&self) -> usize {
        let counts = self.counts().load(Ordering::Acquire);
        strong(counts) as usize - usize::from(counts & KEEPS != 0)
    }

    /// Makes the value keep its object, which holds this handle; false if that is the only one.
    pub fn keep(&self) -> bool {
        let keeps = |n: u64| (strong(n) > 1).then_some(n | KEEPS);
        self.counts().fetch_update(Ordering::AcqRel, Ordering::Relaxed, keeps).is_ok()
    }

    /// Ends that the value keeps its object; whether it did.
    pub fn unkeep(&self) -> bool {
        self.counts().fetch_and(!KEEPS, Ordering::AcqRel) & KEEPS != 0
    }

    /// Whether the value keeps its object.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.counts().load(Ordering::Acquire) & KEEPS != 0
    }

    #[inline]
    pub fn downgrade(&self) -> WeakHandle<T> {
        if weak(self.counts().fetch_add(WEAK, Ordering::Relaxed)) >= MOST {
            std::process::abort();
        }
        WeakHandle(self.0)
    }

    #[inline]
    pub fn same(&self, other: &Handle<T>) -> bool {
        self.0 == other.0
    }

    #[inline]
    pub fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// # Safety
    /// No other handle of either kind is left, and this one is not used again.
    #[inline(never)]
    unsafe fn free(&mut self) {
        // SAFETY: made by `Box`; the rest is the caller's.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        let mut before = self.counts().load(Ordering::Relaxed);
        loop {
            // The object's handle is left alone: in the same step this thread takes over the reference to the object, and with it the handle.
            let alone = before & KEEPS != 0 && strong(before) == 2;
            let after = before - STRONG - if alone { KEEPS } else { 0 };
            match self.counts().compare_exchange_weak(before, after, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if alone => {
                    fence(Ordering::Acquire);
                    // SAFETY: the object and its handle live until `let_go` releases the reference that was taken over.
                    unsafe { (*self.0.as_ptr()).value.let_go() };
                    return;
                }
                Ok(_) => break,
                Err(now) => before = now,
            }
        }
        if strong(before) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // The weak count that all strong handles held together now owns the memory.
        let left = WeakHandle(self.0);
        // SAFETY: the last handle is gone and no weak one can be made a handle again; the memory stays while `left` lives.
        unsafe { std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value) };
        drop(left);
    }
}

impl<T: Keeps> Deref for Handle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this handle is counted, so the value lives.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T: Keeps> Clone for Handle<T> {
    #[inline]
    fn clone(&self) -> Self {
        if strong(self.counts().fetch_add(STRONG, Ordering::Relaxed)) >= MOST {
            std::process::abort();
        }
        Handle(self.0)
    }
}

impl<T: Keeps> Drop for Handle<T> {
    #[inline]
    fn drop(&mut self) {
        // Acquire: what other threads did with the value before they dropped their handles happens before its end.
        if self.counts().load(Ordering::Acquire) == ONLY {
            // SAFETY: the word counts no other handle, and only a holder of a handle can make another one.
            unsafe { self.free() };
        } else {
            self.end();
        }
    }
}

impl<T: Keeps> WeakHandle<T> {
    #[inline]
    fn counts(&self) -> &AtomicU64 {
        // SAFETY: this handle is counted, so the memory is there.
        unsafe { &self.0.as_ref().counts }
    }

    /// A handle, unless the last one is gone already.
    pub fn upgrade(&self) -> Option<Handle<T>> {
        let one_more = |n: u64| match strong(n) {
            0 => None,
            MOST.. => std::process::abort(),
            _ => Some(n + STRONG),
        };
        self.counts().fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).ok().map(|_| Handle(self.0))
    }

    #[inline]
    pub fn same(&self, other: &WeakHandle<T>) -> bool {
        self.0 == other.0
    }

    /// Whether it leads to the value of a handle.
    #[inline]
    pub fn is(&self, handle: &Handle<T>) -> bool {
        self.0 == handle.0
    }
}

impl<T: Keeps> Clone for WeakHandle<T> {
    #[inline]
    fn clone(&self) -> Self {
        if weak(self.counts().fetch_add(WEAK, Ordering::Relaxed)) >= MOST {
            std::process::abort();
        }
        WeakHandle(self.0)
    }
}

impl<T: Keeps> Drop for WeakHandle<T> {
    fn drop(&mut self) {
        if weak(self.counts().fetch_sub(WEAK, Ordering::Release)) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: the last weak handle is gone, and with it, since all handles hold one, the value; made by `Box` with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<HandleBox<T>>()) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, Mutex};

    impl Keeps for Arc<()> {
        fn let_go(&self) {}
    }

    fn handle<T: Keeps>(value: T) -> Handle<T> {
        // SAFETY: all of the value is written.
        unsafe { Handle::emplace(|place: *mut T| place.write(value)) }
    }

    #[test]
    fn the_last_handle_drops_the_value_and_weak_ones_only_look() {
        let alive = Arc::new(());
        let a = handle(alive.clone());
        let b = a.clone();
        assert!(a.same(&b) && a.address() == b.address() && a.strong_count() == 2);
        drop(a);
        assert_eq!((b.strong_count(), Arc::strong_count(&alive)), (1, 2));
        let weak = b.downgrade();
        assert!(weak.same(&weak.clone()) && weak.upgrade().is_some_and(|c| c.same(&b)));
        drop(b);
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(weak.upgrade().is_none());
        drop(weak);
        drop(handle(alive.clone()));
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn handles_end_and_are_made_again_on_any_thread() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        struct Loud {
            number: u64,
        }
        impl Keeps for Loud {
            fn let_go(&self) {}
        }
        impl Drop for Loud {
            fn drop(&mut self) {
                assert_eq!(std::mem::replace(&mut self.number, 0), 7);
                DROPS.fetch_add(1, Ordering::Relaxed);
            }
        }
        for round in 1..=300 {
            let a = handle(Loud { number: 7 });
            std::thread::scope(|s| {
                for _ in 0..3 {
                    let (b, weak) = (a.clone(), a.downgrade());
                    s.spawn(move || {
                        for _ in 0..20 {
                            let again = weak.clone().upgrade();
                            assert!(again.is_some_and(|c| c.number == 7 && c.downgrade().upgrade().is_some()));
                        }
                        drop(b);
                        // From here on the others decide whether the value is still there.
                        for _ in 0..50 {
                            assert!(weak.upgrade().is_none_or(|c| c.number == 7));
                        }
                    });
                }
                drop(a);
            });
            assert_eq!(DROPS.load(Ordering::Relaxed), round);
        }
    }

    /// A value that keeps an object, which is its own handle here.
    struct Kept {
        object: Mutex<Option<Handle<Kept>>>,
        let_go: Arc<AtomicUsize>,
        alive: Arc<()>,
    }
    impl Keeps for Kept {
        fn let_go(&self) {
            self.let_go.fetch_add(1, Ordering::Relaxed);
            let object = self.object.lock().map_or(None, |mut held| held.take());
            drop(object);
        }
    }

    fn kept(let_go: &Arc<AtomicUsize>, alive: &Arc<()>) -> Handle<Kept> {
        let a = handle(Kept { object: Mutex::new(None), let_go: let_go.clone(), alive: alive.clone() });
        if let Ok(mut object) = a.object.lock() {
            *object = Some(a.clone());
        }
        a
    }

    #[test]
    fn an_object_that_is_kept_ends_with_the_last_other_handle() {
        let (let_go, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let lone = handle(Kept { object: Mutex::new(None), let_go: let_go.clone(), alive: alive.clone() });
        assert!(!lone.keep() && !lone.keeps());
        drop(lone);
        let a = kept(&let_go, &alive);
        assert!(a.keep() && a.keeps() && a.strong_count() == 1 && Arc::strong_count(&a.alive) == 2);
        let b = a.clone();
        drop(a);
        assert_eq!((b.strong_count(), let_go.load(Ordering::Relaxed)), (1, 0));
        // Given back: two handles, and nothing that waits for their end.
        assert!(b.unkeep() && !b.unkeep() && b.strong_count() == 2);
        assert!(b.keep());
        let weak = b.downgrade();
        drop(b);
        assert_eq!((let_go.load(Ordering::Relaxed), Arc::strong_count(&alive)), (1, 1));
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn a_kept_object_is_let_go_once_by_many_threads() {
        let (let_go, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        for round in 1..=300 {
            let a = kept(&let_go, &alive);
            assert!(a.keep());
            std::thread::scope(|s| {
                for _ in 0..3 {
                    let b = a.clone();
                    s.spawn(move || drop((b.clone(), b)));
                }
                drop(a);
            });
            assert_eq!((let_go.load(Ordering::Relaxed), Arc::strong_count(&alive)), (round, 1));
        }
    }
}
