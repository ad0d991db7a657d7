//! The slot of a tensor or node for the object that represents it in the embedding language.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Releases an object that its tensor keeps, when nothing but that object holds the tensor any more.
static RELEASE: OnceLock<fn(*mut ())> = OnceLock::new();

/// Registers the function that releases an owned object; the first registration stays.
pub fn register_release(f: fn(*mut ())) {
    let _ = RELEASE.set(f);
}

/// Releases an object that a tensor has kept.
pub(crate) fn release(object: *mut ()) {
    if let Some(release) = RELEASE.get() {
        release(object);
    }
}

/// A pointer to a foreign object. Whether it is owned says the handle (`Handle::keep`).
#[derive(Default)]
pub struct ObjectSlot(AtomicPtr<()>);

impl ObjectSlot {
    /// The object.
    #[inline]
    pub fn get(&self) -> Option<*mut ()> {
        let p = self.0.load(Ordering::Acquire);
        (!p.is_null()).then_some(p)
    }

    /// Makes the slot refer to the object. Callers are serialised by the embedding language's own lock.
    #[inline]
    pub fn set(&self, object: *mut ()) {
        self.0.store(object, Ordering::Release);
    }

    #[inline]
    pub fn clear(&self) {
        self.0.store(std::ptr::null_mut(), Ordering::Release);
    }
}

impl fmt::Debug for ObjectSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.get().is_some() { "Slot(known)" } else { "Slot(empty)" })
    }
}
