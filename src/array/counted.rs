//! A shared handle without weak ones: whoever holds the only one can let go of it without an atomic write.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

struct Inner<T> {
    count: AtomicUsize,
    value: T,
}

/// Like `Arc`. Clones are the same value.
pub(super) struct Counted<T>(NonNull<Inner<T>>);

// SAFETY: the value is shared by reference, and dropped by whichever thread holds the last handle.
unsafe impl<T: Send + Sync> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Counted<T> {}

/// More handles than memory can hold; a leak of handles must end before the count wraps.
const MOST: usize = isize::MAX as usize;

impl<T> Counted<T> {
    /// Makes the value where it will lie.
    #[inline(always)]
    pub fn with(make: impl FnOnce() -> T) -> Counted<T> {
        let place = Box::leak(Box::<Inner<T>>::new_uninit());
        let ptr = NonNull::from(place.write(Inner { count: AtomicUsize::new(1), value: make() }));
        Counted(ptr)
    }

    #[inline]
    fn inner(&self) -> &Inner<T> {
        // SAFETY: this handle is counted, so the value lives.
        unsafe { self.0.as_ref() }
    }

    /// Whether this is the only handle: then nobody can make another meanwhile.
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

impl<T> Deref for Counted<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T> Clone for Counted<T> {
    #[inline]
    fn clone(&self) -> Self {
        if self.inner().count.fetch_add(1, Ordering::Relaxed) > MOST {
            std::process::abort();
        }
        Counted(self.0)
    }
}

impl<T> Drop for Counted<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_only() {
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
    use std::sync::Arc;

    #[test]
    fn the_last_handle_drops_the_value() {
        let alive = Arc::new(());
        let a = Counted::with(|| alive.clone());
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
            let a = Counted::with(|| alive.clone());
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
