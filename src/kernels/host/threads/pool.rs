//! The worker threads of parallel loops (helpers). After a loop a helper spins for a moment before it sleeps, since waking a thread costs
//! as much as a short loop. The caller never waits for a helper that has not started.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::error::{Error, taken_error, throw};
use crate::host::lock_order::Table;

/// How long a helper spins for the next loop: as long as waking it may take, and the time of some calls from Python.
const LINGER: Duration = Duration::from_micros(200);
/// How often the caller checks whether helpers have finished before it sleeps; it goes on for as long as helpers spin.
const SPINS: usize = 1000;
/// The longest sleep of a caller that waits for helpers.
const NAP: Duration = Duration::from_millis(50);

/// A pool of helpers.
pub(crate) struct Helpers {
    pool: rayon::ThreadPool,
    threads: Vec<JoinHandle<()>>,
    seats: Arc<Seats>,
}

struct Seats {
    seats: Box<[Seat]>,
    linger: Duration,
}

/// The mailbox of one helper, on cache lines of its own.
#[repr(align(128))]
struct Seat {
    /// The next call for the helper, a strong count of an `Arc`; null if there is none.
    call: AtomicPtr<LoopCall>,
    /// Whether a helper is awake, or has been woken.
    present: AtomicBool,
}

/// One loop.
struct LoopCall {
    /// The number of helpers inside, and the flag CLOSED when no more may enter.
    state: AtomicUsize,
    /// Valid until CLOSED is set and all helpers have left.
    work: *const (dyn Fn(usize) + Sync),
    caller: Thread,
    panic: Table<Option<Box<dyn Any + Send>>>,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

// SAFETY: `work` may be called from any thread, and is read only by helpers that entered.
unsafe impl Send for LoopCall {}
// SAFETY: as above.
unsafe impl Sync for LoopCall {}

impl Helpers {
    /// None where the system refuses threads. Helpers spin only if each has a processor of its own beside the caller.
    pub(crate) fn new(number: usize) -> Option<Helpers> {
        let mut threads = Vec::with_capacity(number);
        let spawn = |thread: rayon::ThreadBuilder| {
            let named = thread::Builder::new().name(format!("rgrad-{}", thread.index()));
            threads.push(named.spawn(|| thread.run())?);
            Ok(())
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(number).spawn_handler(spawn).build().ok()?;
        let processors = thread::available_parallelism().map_or(1, |n| n.get());
        let seats = (0..number).map(|_| Seat { call: AtomicPtr::new(null_mut()), present: AtomicBool::new(false) }).collect();
        let linger = if number < processors { LINGER } else { Duration::ZERO };
        Some(Helpers { pool, threads, seats: Arc::new(Seats { seats, linger }) })
    }

    /// Waits until all helpers have ended. Their threads must exist in this process.
    pub(crate) fn end(self) {
        drop(self.pool);
        for thread in self.threads {
            // Tasks catch their panics.
            let _ = thread.join();
        }
    }

    /// Runs `work(0)` on this thread, and `work(i)` for `i` from 1 to `number` on those helpers that start before it is done. `work(0)`
    /// must do everything that the others leave. While this thread
    /// waits for helpers, it calls `waiting` now and then, unless it panicked.
    ///
    /// # Panics
    /// If one of them panicked, after all have ended.
    pub(crate) fn run(&self, number: usize, work: &(dyn Fn(usize) + Sync), waiting: &dyn Fn()) {
        // SAFETY: only the lifetime changes; no helper is inside `work`, or can enter it, when this function returns.
        let work_for_all = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync)>(work) };
        let call =
            Arc::new(LoopCall { state: AtomicUsize::new(0), work: work_for_all, caller: thread::current(), panic: Table::new(None) });
        for at in 0..number {
            self.invite(at, &call);
        }
        let own = catch_unwind(AssertUnwindSafe(|| work(0)));
        let waiting = if own.is_ok() { waiting } else { &|| () };
        // Nothing may leave this function while a helper is inside.
        let ended = catch_unwind(AssertUnwindSafe(|| call.close(self.seats.linger, waiting)));
        if ended.is_err() {
            call.close(Duration::ZERO, &|| ());
        }
        for seat in &self.seats.seats[..number] {
            seat.clear(&call);
        }
        let others = call.panic.lock().take();
        if let Some(payload) = own.err().or(ended.err()).or(others) {
            match payload.downcast::<Error>() {
                Ok(e) => throw(*e),
                Err(payload) => resume_unwind(payload),
            }
        }
    }

    /// Does nothing if another call waits in the seat: the helper would come too late.
    fn invite(&self, at: usize, call: &Arc<LoopCall>) {
        let seat = &self.seats.seats[at];
        let given = Arc::into_raw(call.clone()).cast_mut();
        if seat.call.compare_exchange(null_mut(), given, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            // SAFETY: the strong count that was just made; nothing else holds it.
            drop(unsafe { Arc::from_raw(given) });
            return;
        }
        // A helper that leaves clears its flag before it checks its seat a last time, so either this thread sees the flag or the helper
        // sees the call.
        if !seat.present.swap(true, Ordering::SeqCst) {
            let seats = self.seats.clone();
            self.pool.spawn(move || seats.attend(at));
        }
    }
}

impl Seats {
    /// The life of a helper between waking and sleeping.
    fn attend(&self, at: usize) {
        let seat = &self.seats[at];
        loop {
            if let Some(call) = seat.next(self.linger) {
                call.help(at + 1);
                continue;
            }
            seat.present.store(false, Ordering::SeqCst);
            if seat.call.load(Ordering::SeqCst).is_null() || seat.present.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }
}

impl Seat {
    /// The next call; None if there is none for `linger`.
    fn next(&self, linger: Duration) -> Option<Arc<LoopCall>> {
        let begun = Instant::now();
        loop {
            if !self.call.load(Ordering::Relaxed).is_null() {
                let taken = self.call.swap(null_mut(), Ordering::AcqRel);
                if !taken.is_null() {
                    // SAFETY: a seat holds a count, and the thread that takes the pointer owns it.
                    return Some(unsafe { Arc::from_raw(taken) });
                }
            }
            if begun.elapsed() >= linger {
                return None;
            }
            (0..16).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Takes `call` back if no helper has taken it.
    fn clear(&self, call: &Arc<LoopCall>) {
        let given = Arc::as_ptr(call).cast_mut();
        if self.call.compare_exchange(given, null_mut(), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: the seat's count; `call` itself holds another, so no other call can have this address.
            drop(unsafe { Arc::from_raw(given) });
        }
    }
}

impl LoopCall {
    fn help(&self, home: usize) {
        let enter = |s| (s & CLOSED == 0).then_some(s + 1);
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, enter).is_err() {
            return;
        }
        // SAFETY: this helper is inside, so the caller waits in `close`.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)(home) }));
        if let Err(payload) = done {
            // The error of this thread's panic becomes one of the caller's.
            let payload = taken_error().map_or(payload, |e| Box::new(e));
            self.panic.lock().get_or_insert(payload);
        }
        if self.state.fetch_sub(1, Ordering::AcqRel) == CLOSED + 1 {
            self.caller.unpark();
        }
    }

    /// Lets no helper enter any more, and waits until all have left.
    fn close(&self, linger: Duration, waiting: &dyn Fn()) {
        let mut state = self.state.fetch_or(CLOSED, Ordering::AcqRel) | CLOSED;
        let begun = Instant::now();
        for spins in 0.. {
            if state == CLOSED {
                return;
            }
            if spins < SPINS || begun.elapsed() < linger {
                std::hint::spin_loop();
            } else {
                thread::park_timeout(NAP);
                waiting();
            }
            state = self.state.load(Ordering::Acquire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(helpers: &Helpers, number: usize, pieces: usize) -> usize {
        let (next, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
        helpers.run(
            number,
            &|_| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= pieces {
                        break;
                    }
                    total.fetch_add(i, Ordering::Relaxed);
                }
            },
            &|| (),
        );
        total.into_inner()
    }

    #[test]
    fn loops_of_several_callers_end_with_everything_done() {
        let helpers = Helpers::new(3).unwrap();
        thread::scope(|s| {
            for caller in 0..4 {
                let helpers = &helpers;
                s.spawn(move || {
                    for i in 0..500 {
                        let pieces = (i * 7 + caller) % 50;
                        assert_eq!(sum(helpers, 1 + i % 3, pieces), pieces * pieces.saturating_sub(1) / 2);
                        if i % 100 == 99 {
                            thread::sleep(2 * LINGER);
                        }
                    }
                });
            }
        });
        assert!(helpers.seats.seats.iter().all(|s| s.call.load(Ordering::SeqCst).is_null()));
    }

    #[test]
    fn helpers_come_while_the_caller_works_and_again_after_they_left() {
        let helpers = Helpers::new(1).unwrap();
        for _ in 0..3 {
            let came = AtomicBool::new(false);
            helpers.run(
                1,
                &|home| {
                    if home == 1 {
                        came.store(true, Ordering::Relaxed);
                    } else {
                        while !came.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                    }
                },
                &|| (),
            );
            while helpers.seats.seats[0].present.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn a_panic_of_anybody_reaches_the_caller_when_all_have_ended() {
        let helpers = Helpers::new(1).unwrap();
        for guilty in 0..2 {
            let (came, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
            let done = catch_unwind(AssertUnwindSafe(|| {
                helpers.run(
                    1,
                    &|home| {
                        if home == 1 {
                            came.store(true, Ordering::Relaxed);
                        }
                        while !came.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                        ended.fetch_add(1, Ordering::Relaxed);
                        assert!(home != guilty, "guilty");
                    },
                    &|| (),
                );
            }));
            assert!(done.is_err());
            assert_eq!(ended.load(Ordering::Relaxed), 2);
            assert_eq!(sum(&helpers, 1, 10), 45);
        }
    }
}
