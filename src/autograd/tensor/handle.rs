//! A shared handle with weak handles, as `Arc`, but without an atomic write when the only handle ends: both counts are in one word, so one load
//! shows that there is no other.

use std::alloc::{Layout, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The increments of the strong and the weak count. All strong handles together hold one weak count, until the value has been dropped.
const STRONG: u64 = 1;
const WEAK: u64 = 1 << 32;
const ONLY: u64 = STRONG | WEAK;
/// More than memory can hold. A leak of handles must abort before one count overflows into the other.
const MOST: u32 = 1 << 31;

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
    (counts >> 32) as u32
}

/// Keeps the value alive. Clones are the same value.
pub(crate) struct Handle<T>(NonNull<HandleBox<T>>);

/// Does not keep the value alive.
pub(crate) struct WeakHandle<T>(NonNull<HandleBox<T>>);

// SAFETY: as for `Arc`: the value is shared by reference, and dropped by whichever thread holds the last handle.
unsafe impl<T: Send + Sync> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Handle<T> {}
// SAFETY: as above; a weak handle may become a handle.
unsafe impl<T: Send + Sync> Send for WeakHandle<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for WeakHandle<T> {}

impl<T> Handle<T> {
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

    /// The current number of strong handles.
    #[inline]
    pub fn strong_count(&self) -> usize {
        strong(self.counts().load(Ordering::Acquire)) as usize
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
        if strong(self.counts().fetch_sub(STRONG, Ordering::Release)) != 1 {
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

impl<T> Deref for Handle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this handle is counted, so the value lives.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T> Clone for Handle<T> {
    #[inline]
    fn clone(&self) -> Self {
        if strong(self.counts().fetch_add(STRONG, Ordering::Relaxed)) >= MOST {
            std::process::abort();
        }
        Handle(self.0)
    }
}

impl<T> Drop for Handle<T> {
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

impl<T> WeakHandle<T> {
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
}

impl<T> Clone for WeakHandle<T> {
    #[inline]
    fn clone(&self) -> Self {
        if weak(self.counts().fetch_add(WEAK, Ordering::Relaxed)) >= MOST {
            std::process::abort();
        }
        WeakHandle(self.0)
    }
}

impl<T> Drop for WeakHandle<T> {
    fn drop(&mut self) {
        if weak(self.counts().fetch_sub(WEAK, Ordering::Release)) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: the last weak handle is gone, and with it, since all handles hold one, the value; made by `Box` with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<HandleBox<T>>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    fn handle<T>(value: T) -> Handle<T> {
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
}
