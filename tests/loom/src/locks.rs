//! Locks: who writes is alone, readers see whole writes, and nobody waits for ever.
//!
//! Not `SpinLock`: loom lets its plain store of "free" come before a swap that has already read "taken", which no memory model allows.

use crate::lock::RwSpinLock;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::mem::MaybeUninit;

/// Two numbers that are equal between writes.
struct Pair(UnsafeCell<(u32, u32)>);

// SAFETY: what is being checked.
unsafe impl Send for Pair {}
// SAFETY: as above.
unsafe impl Sync for Pair {}

impl Pair {
    fn new() -> Pair {
        Pair(UnsafeCell::new((0, 0)))
    }

    fn read(&self) -> u32 {
        self.0.with(|p| {
            // SAFETY: the caller has a guard; loom checks that nobody writes.
            let (a, b) = unsafe { *p };
            assert_eq!(a, b);
            a
        })
    }

    fn add(&self) {
        // SAFETY: the caller has the only guard, as loom checks.
        self.0.with_mut(|p| unsafe {
            (*p).0 += 1;
            (*p).1 += 1;
        });
    }
}

fn lock() -> Arc<RwSpinLock<Pair>> {
    let mut place = MaybeUninit::<RwSpinLock<Pair>>::uninit();
    // SAFETY: all of the value is written.
    Arc::new(unsafe {
        RwSpinLock::emplace(place.as_mut_ptr(), |at: *mut Pair| at.write(Pair::new()));
        place.assume_init()
    })
}

/// Threads are changed against their will at most so often: loom follows spinning locks no further.
fn bounded(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

#[test]
fn writers_are_alone() {
    bounded(3, || {
        let lock = lock();
        let other = lock.clone();
        let thread = thread::spawn(move || other.write().add());
        lock.write().add();
        thread.join().unwrap();
        assert_eq!(lock.read().read(), 2);
    });
}

#[test]
fn readers_see_whole_writes() {
    bounded(3, || {
        let lock = lock();
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || lock.write().add())
        };
        let first = lock.read().read();
        assert!(first <= lock.read().read());
        writer.join().unwrap();
        assert_eq!(lock.read().read(), 1);
    });
}

#[test]
fn a_reader_may_read_again_while_a_writer_waits() {
    bounded(3, || {
        let lock = lock();
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || lock.write().add())
        };
        let outer = lock.read();
        let inner = lock.read();
        assert_eq!(outer.read(), inner.read());
        drop(outer);
        drop(inner);
        writer.join().unwrap();
    });
}

#[test]
fn a_try_never_waits_and_never_sees_half() {
    bounded(3, || {
        let lock = lock();
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || lock.write().add())
        };
        if let Some(seen) = lock.try_read() {
            assert!(seen.read() <= 1);
        }
        writer.join().unwrap();
        assert_eq!(lock.try_read().map(|seen| seen.read()), Some(1));
    });
}
