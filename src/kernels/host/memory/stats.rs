//! Memory statistics: how many bytes tensors hold, and the peak. Small values are allocated and freed all the time, so each thread counts
//! them in a counter of its own, without an atomic read-modify-write; the total is the sum of all counters. The peak of several threads
//! together is an upper bound, which is off by what the threads have not yet added to the total.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};

/// Bytes that one thread has allocated minus those it has freed since the counter was last added to `HELD`. Written by this thread alone.
#[repr(align(128))]
struct ThreadStats {
    live: AtomicIsize,
    most: AtomicIsize,
    taken: AtomicBool,
}

/// Further threads count in `HELD` itself.
const THREADS: usize = 64;
static TALLIES: [ThreadStats; THREADS] =
    [const { ThreadStats { live: AtomicIsize::new(0), most: AtomicIsize::new(0), taken: AtomicBool::new(false) } }; THREADS];

/// Upper bound of the slots that were ever in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The bytes that are in no thread's counter, and the highest total so far.
static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// A counter beyond this many bytes is added to the total, so that the error of the peak stays small.
const FOLD: isize = 32 << 10;

thread_local! {
    static MINE: Cell<Option<&'static ThreadStats>> = const { Cell::new(None) };
    static KEEPER: FoldAtThreadExit = const { FoldAtThreadExit };
}

/// Returns the thread's counter when the thread ends.
struct FoldAtThreadExit;

impl Drop for FoldAtThreadExit {
    fn drop(&mut self) {
        if let Some(t) = MINE.take() {
            t.fold();
            t.taken.store(false, Ordering::Release);
        }
    }
}

impl ThreadStats {
    #[cold]
    #[inline(never)]
    fn fold(&self) {
        PEAK.fetch_max(highest(), Ordering::Relaxed);
        HELD.fetch_add(self.live.load(Ordering::Relaxed), Ordering::Relaxed);
        self.live.store(0, Ordering::Relaxed);
        self.most.store(0, Ordering::Relaxed);
    }
}

fn used() -> &'static [ThreadStats] {
    &TALLIES[..USED.load(Ordering::Acquire)]
}

fn highest() -> isize {
    used().iter().fold(HELD.load(Ordering::Relaxed), |sum, t| sum + t.most.load(Ordering::Relaxed))
}

/// Takes a free counter for this thread; if there is none, the thread counts in `HELD`.
#[cold]
#[inline(never)]
fn count_first(bytes: isize) {
    // A thread that is ending has no destructor left to run.
    if KEEPER.try_with(|_| ()).is_ok()
        && let Some(at) = TALLIES.iter().position(|t| !t.taken.swap(true, Ordering::Acquire))
    {
        USED.fetch_max(at + 1, Ordering::AcqRel);
        MINE.set(Some(&TALLIES[at]));
        return count(bytes);
    }
    settle_peak();
    HELD.fetch_add(bytes, Ordering::Relaxed);
    PEAK.fetch_max(highest(), Ordering::Relaxed);
}

/// Accounts for a small value (negative: its end).
#[inline]
pub(crate) fn count(bytes: isize) {
    let Some(t) = MINE.get() else { return count_first(bytes) };
    let live = t.live.load(Ordering::Relaxed) + bytes;
    t.live.store(live, Ordering::Relaxed);
    if live > t.most.load(Ordering::Relaxed) {
        t.most.store(live, Ordering::Relaxed);
    }
    if live.unsigned_abs() > FOLD.unsigned_abs() {
        t.fold();
    }
}

/// Updates the peak before the total under the counters changes.
fn settle_peak() {
    match MINE.get() {
        Some(t) => t.fold(),
        None => _ = PEAK.fetch_max(highest(), Ordering::Relaxed),
    }
}

/// Accounts for a large value in the total directly, unless the total would exceed `limit` bytes.
pub(crate) fn reserve(bytes: usize, limit: usize) -> bool {
    if bytes > limit || bytes > isize::MAX as usize / 2 {
        return false;
    }
    settle_peak();
    HELD.fetch_add(bytes as isize, Ordering::Relaxed);
    if held() > limit {
        HELD.fetch_sub(bytes as isize, Ordering::Relaxed);
        return false;
    }
    PEAK.fetch_max(highest(), Ordering::Relaxed);
    true
}

/// The end of a value that was reserved.
pub(crate) fn free(bytes: usize) {
    settle_peak();
    HELD.fetch_sub(bytes as isize, Ordering::Relaxed);
}

/// Bytes that are held now.
pub(crate) fn held() -> usize {
    used().iter().fold(HELD.load(Ordering::Relaxed), |sum, t| sum + t.live.load(Ordering::Relaxed)).max(0).unsigned_abs()
}

/// The most that `held` has been since the last reset.
pub(crate) fn peak() -> usize {
    PEAK.load(Ordering::Relaxed).max(highest()).max(0).unsigned_abs()
}

pub(crate) fn reset_peak() {
    for t in used() {
        t.most.store(t.live.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    PEAK.store(highest(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::super::alloc::set_memory_limit;
    use super::*;

    /// Other tests of this process allocate at the same time; the values here are much larger than theirs.
    #[test]
    fn threads_count_apart_and_together() {
        let big: isize = 1 << 44;
        // More than the machine has: large requests of other tests would be refused meanwhile.
        set_memory_limit(1 << 50);
        let before = held();
        let near = |a: usize, b: usize| a.abs_diff(b) < 1 << 40;
        // One thread takes, another gives back, and both end.
        std::thread::scope(|s| {
            s.spawn(|| (0..1000).for_each(|_| count(64)));
        });
        std::thread::scope(|s| {
            s.spawn(|| (0..1000).for_each(|_| count(-64)));
        });
        assert!(near(held(), before));
        reset_peak();
        count(big);
        assert!(near(held(), before + big.unsigned_abs()));
        count(-big);
        assert!(near(held(), before) && near(peak(), before + big.unsigned_abs()));
        reset_peak();
        assert!(near(peak(), before));
        // Small values and the large one are never allocated at the same time.
        count(big);
        count(-big);
        assert!(reserve(big.unsigned_abs(), usize::MAX) && !reserve(big.unsigned_abs(), before + big.unsigned_abs()));
        free(big.unsigned_abs());
        assert!(near(held(), before) && near(peak(), before + big.unsigned_abs()));
        // More threads than there are counters.
        std::thread::scope(|s| {
            let handles: Vec<_> = (0..100).map(|_| s.spawn(|| (count(big / 100), std::thread::park()))).collect();
            while !near(held(), before + big.unsigned_abs()) {
                std::thread::yield_now();
            }
            handles.iter().for_each(|h| h.thread().unpark());
        });
        count(-(big / 100) * 100);
        assert!(near(held(), before));
        set_memory_limit(0);
    }
}
