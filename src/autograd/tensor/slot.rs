//! The slot of a tensor or node for the object that represents it in the embedding language.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Releases the object of a slot that owns it, when the owner of the slot dies.
static RELEASE: OnceLock<fn(*mut ())> = OnceLock::new();

/// Registers the function that releases an owned object; the first registration stays.
pub fn register_release(f: fn(*mut ())) {
    let _ = RELEASE.set(f);
}

/// The lowest bit of the pointer says whether the slot owns the object or only refers to it.
const OWNED: usize = 1;

/// A pointer to a foreign object, owned or not.
#[derive(Default)]
pub struct ObjectSlot(AtomicPtr<()>);

impl ObjectSlot {
    /// The object, and whether the slot owns it.
    #[inline]
    pub fn get(&self) -> Option<(*mut (), bool)> {
        let p = self.0.load(Ordering::Acquire);
        if p.is_null() {
            return None;
        }
        Some((p.map_addr(|a| a & !OWNED), p.addr() & OWNED != 0))
    }

    /// Makes the slot refer to the object. Callers are serialised by the embedding language's own lock.
    #[inline]
    pub fn set(&self, object: *mut ()) {
        self.0.store(object.map_addr(|a| a & !OWNED), Ordering::Release);
    }

    /// As `set`, and the slot owns the object from now on.
    ///
    /// # Safety
    /// The registered release function can release the object, as long as it is in the slot.
    #[inline]
    pub unsafe fn own(&self, object: *mut ()) {
        self.0.store(object.map_addr(|a| a | OWNED), Ordering::Release);
    }

    #[inline]
    pub fn clear(&self) {
        self.0.store(std::ptr::null_mut(), Ordering::Release);
    }
}

impl Drop for ObjectSlot {
    fn drop(&mut self) {
        if let Some((p, true)) = self.get()
            && let Some(release) = RELEASE.get()
        {
            release(p);
        }
    }
}

impl fmt::Debug for ObjectSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.get() {
            None => "Slot(empty)",
            Some((_, true)) => "Slot(owned)",
            Some((_, false)) => "Slot(known)",
        })
    }
}
