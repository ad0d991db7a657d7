//! Work on several threads. It is split by size alone, never by the number of threads, so results are the same for any number.

use parking_lot::RwLock;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pool, made on first use and again in a forked child, and with another number of threads.
struct Place(RwLock<Option<Pool>>);

struct Pool {
    /// The process that built the pool: a forked child has none of its threads.
    pid: u32,
    threads: usize,
    pool: Arc<rayon::ThreadPool>,
}

/// Helpers of loops, one fewer than there may be threads: the thread that calls works too, and one more that looks for work would take its
/// processor.
static HELPERS: Place = Place(RwLock::new(None));
/// For `gemm`, which divides its work among the threads of a pool while the caller waits.
static PRODUCTS: Place = Place(RwLock::new(None));
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How many threads kernels may use.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let n = std::thread::available_parallelism().map_or(1, |n| n.get());
            THREADS.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// Sets the number of threads for kernels that start from now on; 0 is taken as 1.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.clamp(1, 1024), Ordering::Relaxed);
}

/// Must be called in a forked child before anything else: the pools' threads are gone and their locks may be held by one of them.
pub fn after_fork() {
    for place in [&HELPERS, &PRODUCTS] {
        // SAFETY: the child has one thread, so nobody else can hold or wait for the lock now.
        unsafe { place.0.force_unlock_write_if_held() };
        if let Some(p) = place.0.write().take() {
            // Its destructor would wait for threads that do not exist here.
            std::mem::forget(p.pool);
        }
    }
}

trait ForceUnlock {
    /// # Safety
    /// No other thread exists.
    unsafe fn force_unlock_write_if_held(&self);
}

impl<T> ForceUnlock for RwLock<T> {
    unsafe fn force_unlock_write_if_held(&self) {
        if self.try_write().is_none() {
            // SAFETY: by the caller's promise the holder is a thread that the fork left behind.
            unsafe {
                if self.is_locked_exclusive() {
                    self.force_unlock_write();
                } else {
                    while self.is_locked() {
                        self.force_unlock_read();
                    }
                }
            }
        }
    }
}

impl Place {
    /// The pool with so many threads; None where the system refuses them: the work then runs where it is.
    fn pool(&self, threads: usize) -> Option<Arc<rayon::ThreadPool>> {
        let pid = std::process::id();
        if let Some(p) = self.0.read().as_ref()
            && p.threads == threads
            && p.pid == pid
        {
            return Some(p.pool.clone());
        }
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("rgrad-{i}")).build().ok()?;
        let pool = Arc::new(built);
        let old = self.0.write().replace(Pool { pid, threads, pool: pool.clone() });
        if let Some(old) = old
            && old.pid != pid
        {
            std::mem::forget(old.pool);
        }
        Some(pool)
    }
}

/// The pool that matrix products run in. None with one thread, or where the system refuses threads.
pub fn pool() -> Option<Arc<rayon::ThreadPool>> {
    match num_threads() {
        1 => None,
        n => PRODUCTS.pool(n),
    }
}

/// A stretch of the pieces of a loop, on cache lines of its own: who begins there seldom meets others.
#[repr(align(128))]
struct Stretch {
    next: AtomicUsize,
    end: usize,
}

/// Runs `f(0..n)` on this thread and the helpers, in any order. Sequential on one thread, for one piece, and inside a pool's own tasks.
///
/// Each thread begins with a stretch of its own, the calling one with the first, and helps with the others' afterwards: what one loop left
/// in a processor's cache is what the next one wants there.
pub fn parallel_for(n: usize, f: impl Fn(usize) + Sync) {
    let threads = num_threads();
    if n <= 1 || threads == 1 || rayon::current_thread_index().is_some() {
        (0..n).for_each(f);
        return;
    }
    let Some(helpers) = HELPERS.pool(threads - 1) else {
        (0..n).for_each(f);
        return;
    };
    let workers = threads.min(n);
    let bound = |w: usize| n / workers * w + (n % workers).min(w);
    let stretches: SmallVec<[Stretch; 8]> = (0..workers).map(|w| Stretch { next: AtomicUsize::new(bound(w)), end: bound(w + 1) }).collect();
    let work = |home: usize| {
        for s in stretches[home..].iter().chain(&stretches[..home]) {
            loop {
                let i = s.next.fetch_add(1, Ordering::Relaxed);
                if i >= s.end {
                    break;
                }
                f(i);
            }
        }
    };
    // The calling thread works too: a piece that is ready does not wait for a sleeping worker to wake.
    helpers.in_place_scope(|s| {
        for home in 1..workers {
            let work = &work;
            s.spawn(move |_| work(home));
        }
        work(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_runs_once() {
        let seen: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
        parallel_for(100, |i| {
            seen[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(seen.iter().all(|s| s.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn nested_calls_do_not_deadlock() {
        let total = AtomicUsize::new(0);
        parallel_for(8, |_| {
            parallel_for(8, |_| {
                total.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(total.load(Ordering::Relaxed), 64);
    }
}
