//! The one thread pool. Work is split by size alone, never by the number of threads, so results are the same for any number.

use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

struct Pool {
    /// The process that built the pool: a forked child has none of its threads.
    pid: u32,
    threads: usize,
    pool: Arc<rayon::ThreadPool>,
}

static POOL: RwLock<Option<Pool>> = RwLock::new(None);
static THREADS: AtomicUsize = AtomicUsize::new(0);
static PID: AtomicU32 = AtomicU32::new(0);

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

/// Must be called in a forked child before anything else: its pool's threads are gone and its lock may be held by one of them.
pub fn after_fork() {
    // SAFETY: the child has one thread, so nobody else can hold or wait for the lock now.
    unsafe { POOL.force_unlock_write_if_held() };
    if let Some(p) = POOL.write().take() {
        // Its destructor would wait for threads that do not exist here.
        std::mem::forget(p.pool);
    }
    PID.store(std::process::id(), Ordering::Relaxed);
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

/// The pool for the current number of threads, built on first use and again in a forked child.
/// None with one thread, or where the system refuses threads: the work then runs where it is.
pub fn pool() -> Option<Arc<rayon::ThreadPool>> {
    let n = num_threads();
    if n == 1 {
        return None;
    }
    let pid = std::process::id();
    if let Some(p) = POOL.read().as_ref()
        && p.threads == n
        && p.pid == pid
    {
        return Some(p.pool.clone());
    }
    let built = rayon::ThreadPoolBuilder::new().num_threads(n).thread_name(|i| format!("rgrad-{i}")).build().ok()?;
    let pool = Arc::new(built);
    let old = POOL.write().replace(Pool { pid, threads: n, pool: pool.clone() });
    if let Some(old) = old
        && old.pid != pid
    {
        std::mem::forget(old.pool);
    }
    Some(pool)
}

/// Runs `f(0..n)` on the pool, in any order. Sequential on one thread, for one piece, and inside the pool's own tasks.
pub fn parallel_for(n: usize, f: impl Fn(usize) + Sync) {
    if n <= 1 || num_threads() == 1 || rayon::current_thread_index().is_some() {
        (0..n).for_each(f);
        return;
    }
    match pool() {
        None => (0..n).for_each(f),
        Some(pool) => {
            let next = AtomicUsize::new(0);
            let work = || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        return;
                    }
                    f(i);
                }
            };
            let workers = pool.current_num_threads().min(n);
            // The calling thread works too: a piece that is ready does not wait for a sleeping worker to wake.
            pool.in_place_scope(|s| {
                for _ in 1..workers {
                    s.spawn(|_| work());
                }
                work();
            });
        }
    }
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
