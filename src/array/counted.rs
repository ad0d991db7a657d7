//! A shared handle without weak handles: dropping the only handle takes no atomic write.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

struct CountedBox<T> {
    count: AtomicUsize,
    value: T,
}

/// A value that can be found again by its address alone.
pub(super) trait Findable {
    /// Whether another thread may `revive` it. Then dropping the last handle has to decrement the count.
    fn is_findable(&self) -> bool;
}

/// Like `Arc`. Clones are the same value.
pub(super) struct Counted<T: Findable>(NonNull<CountedBox<T>>);

// SAFETY: the value is shared by reference, and dropped by whichever thread holds the last handle.
unsafe impl<T: Send + Sync + Findable> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync + Findable> Sync for Counted<T> {}

/// More handles than memory can hold; a leak of handles must end before the count wraps.
const MOST: usize = isize::MAX as usize;

impl<T: Findable> Counted<T> {
    /// Constructs the value in place.
    #[inline(always)]
    pub fn with(make: impl FnOnce() -> T) -> Counted<T> {
        let place = Box::leak(Box::<CountedBox<T>>::new_uninit());
        let ptr = NonNull::from(place.write(CountedBox { count: AtomicUsize::new(1), value: make() }));
        Counted(ptr)
    }

    #[inline]
    fn inner(&self) -> &CountedBox<T> {
        // SAFETY: this handle is counted, so the value lives.
        unsafe { self.0.as_ref() }
    }

    /// The current number of handles.
    #[inline]
    pub fn count(&self) -> usize {
        self.inner().count.load(Ordering::Acquire)
    }

    /// The value's address, for `revive`.
    pub fn place(&self) -> CountedPlace<T> {
        CountedPlace(self.0)
    }

    /// Whether this is the only handle. Then no other thread can make another one.
    #[inline]
    pub fn is_only(&self) -> bool {
        self.inner().count.load(Ordering::Acquire) == 1
    }

    /// # Safety
    /// No other handle is left, and this one is not used again.
    #[inline(never)]
    unsafe fn free(&mut self) {
        // SAFETY: made by `Box`; the rest is the caller's.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }

    #[inline]
    pub fn same(&self, other: &Counted<T>) -> bool {
        self.0 == other.0
    }

    #[inline]
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

/// The address of a counted value: not a handle, and the value may be gone.
pub(super) struct CountedPlace<T>(NonNull<CountedBox<T>>);

// SAFETY: an address; the caller of `revive` guarantees the rest.
unsafe impl<T: Send + Sync> Send for CountedPlace<T> {}

impl<T: Findable> CountedPlace<T> {
    /// A handle, unless the last one is gone already.
    ///
    /// # Safety
    /// The value's memory has not been freed: a thread that drops the last handle must first take a lock that the caller holds.
    pub unsafe fn revive(&self) -> Option<Counted<T>> {
        // SAFETY: the caller's.
        let count = unsafe { &self.0.as_ref().count };
        count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n > 0).then_some(n + 1)).ok().map(|_| Counted(self.0))
    }
}

impl<T: Findable> Deref for Counted<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T: Findable> Clone for Counted<T> {
    #[inline]
    fn clone(&self) -> Self {
        if self.inner().count.fetch_add(1, Ordering::Relaxed) > MOST {
            std::process::abort();
        }
        Counted(self.0)
    }
}

impl<T: Findable> Drop for Counted<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_only() || self.is_findable() {
            if self.inner().count.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        // SAFETY: this was the last handle.
        unsafe { self.free() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Held(Arc<()>, bool);

    impl Findable for Held {
        fn is_findable(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn a_value_is_found_while_it_lives() {
        let alive = Arc::new(());
        for _ in 0..200 {
            let a = Counted::with(|| Held(alive.clone(), true));
            let place = Mutex::new(Some(a.place()));
            std::thread::scope(|s| {
                s.spawn(|| {
                    for _ in 0..50 {
                        let known = place.lock().unwrap();
                        // SAFETY: the place is forgotten, under this lock, before the memory goes.
                        let found = known.as_ref().and_then(|p| unsafe { p.revive() });
                        drop(known);
                        if let Some(found) = found {
                            assert_eq!(Arc::strong_count(&(*found).0), 2);
                            assert!(found.count() >= 1);
                            // Never the last: the other thread waits.
                            drop(found);
                        }
                    }
                });
                while a.count() > 1 {
                    std::hint::spin_loop();
                }
                *place.lock().unwrap() = None;
                drop(a);
            });
        }
    }

    #[test]
    fn the_last_handle_drops_the_value() {
        let alive = Arc::new(());
        let a = Counted::with(|| Held(alive.clone(), false));
        let b = a.clone();
        assert!(a.same(&b) && !a.is_only() && a.address() == b.address());
        drop(a);
        assert!(b.is_only() && Arc::strong_count(&alive) == 2);
        drop(b);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn handles_may_end_on_any_thread() {
        let alive = Arc::new(());
        for _ in 0..200 {
            let a = Counted::with(|| Held(alive.clone(), false));
            std::thread::scope(|s| {
                for _ in 0..3 {
                    let b = a.clone();
                    s.spawn(move || drop(b.clone()));
                }
                drop(a);
            });
            assert_eq!(Arc::strong_count(&alive), 1);
        }
    }
}
