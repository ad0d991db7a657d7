//! Handles: the value ends once, after every use, and lets its object go once.

use crate::handle::{Handle, Keeps, WeakHandle};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A value whose end needs that nobody uses it.
struct Value {
    used: UnsafeCell<u32>,
    ended: Arc<AtomicUsize>,
    let_go: Arc<AtomicUsize>,
    /// The handle of the object that represents the value.
    object: Mutex<Option<Handle<Value>>>,
}

// SAFETY: the cell is only read while there are handles.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Keeps for Value {
    fn let_go(&self) {
        self.let_go.fetch_add(1, SeqCst);
        let object = self.object.lock().unwrap().take();
        drop(object);
    }
}

impl Value {
    fn look(&self) {
        // SAFETY: the caller has a handle, so nobody writes; loom checks it.
        self.used.with(|p| assert_eq!(unsafe { *p }, 7));
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the last handle is gone. Loom panics if another thread may still look.
        self.used.with_mut(|p| unsafe { *p = 0 });
        self.ended.fetch_add(1, SeqCst);
    }
}

struct Seen {
    ended: Arc<AtomicUsize>,
    let_go: Arc<AtomicUsize>,
}

impl Seen {
    fn counts(&self) -> (usize, usize) {
        (self.ended.load(SeqCst), self.let_go.load(SeqCst))
    }
}

fn value() -> (Handle<Value>, Seen) {
    let (ended, let_go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let value = Value { used: UnsafeCell::new(7), ended: ended.clone(), let_go: let_go.clone(), object: Mutex::new(None) };
    // SAFETY: all of the value is written.
    let handle = unsafe { Handle::emplace(|place: *mut Value| place.write(value)) };
    (handle, Seen { ended, let_go })
}

#[test]
fn a_value_ends_once_after_every_use() {
    loom::model(|| {
        let (a, seen) = value();
        let b = a.clone();
        let thread = thread::spawn(move || {
            b.look();
            let c = b.clone();
            drop(b);
            c.look();
        });
        a.look();
        drop(a);
        thread.join().unwrap();
        assert_eq!(seen.counts(), (1, 0));
    });
}

#[test]
fn a_weak_handle_looks_or_finds_nothing() {
    loom::model(|| {
        let (a, seen) = value();
        let weak: WeakHandle<Value> = a.downgrade();
        let thread = thread::spawn(move || {
            let found = weak.clone().upgrade();
            if let Some(b) = &found {
                b.look();
            }
            drop(weak);
            drop(found);
        });
        a.look();
        drop(a);
        thread.join().unwrap();
        assert_eq!(seen.counts(), (1, 0));
    });
}

#[test]
fn an_object_is_let_go_once_when_it_is_alone() {
    loom::model(|| {
        let (a, seen) = value();
        *a.object.lock().unwrap() = Some(a.clone());
        assert!(a.keep());
        let b = a.clone();
        let thread = thread::spawn(move || {
            b.look();
            drop(b);
        });
        a.look();
        drop(a);
        thread.join().unwrap();
        assert_eq!(seen.counts(), (1, 1));
    });
}

#[test]
fn an_object_that_is_taken_back_is_not_let_go() {
    loom::model(|| {
        let (a, seen) = value();
        *a.object.lock().unwrap() = Some(a.clone());
        assert!(a.keep());
        let weak = a.downgrade();
        // As `wrap` does: who finds the value ends that it keeps its object, and has the object's reference.
        let thread = thread::spawn(move || {
            let Some(found) = weak.upgrade() else { return };
            if found.unkeep() {
                let object = found.object.lock().unwrap().take();
                drop(found);
                drop(object);
            }
        });
        drop(a);
        thread.join().unwrap();
        let (ended, let_go) = seen.counts();
        assert!(ended == 1 && let_go <= 1);
    });
}

#[test]
fn keeping_fails_where_the_object_is_alone_already() {
    loom::model(|| {
        let (a, seen) = value();
        let b = a.clone();
        let thread = thread::spawn(move || drop(b));
        // The object's own handle is `a`: either somebody else lets it go later, or it is not kept and ends here.
        let object = a.clone();
        *a.object.lock().unwrap() = Some(object);
        let kept = a.keep();
        if !kept {
            let object = a.object.lock().unwrap().take();
            drop(object);
        }
        drop(a);
        thread.join().unwrap();
        assert_eq!(seen.counts(), (1, usize::from(kept)));
    });
}
