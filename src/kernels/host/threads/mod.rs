//! Parallel loops. Work is split by size alone, never by the number of threads, so results are the same bits for any number. `pool` holds
//! the worker threads, `stages` loops in which each stage needs the one before. Not here: what a loop computes, which stands with its kernel.

mod pool;
mod stages;

use self::pool::Helpers;
use crate::error::{Error, Result, throw};
use crate::host::interrupt;
use crate::host::interrupt::Helping;
use crate::host::lock_order::Table;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct ThreadPool {
    /// The process that built the pool: a forked child has none of its threads.
    pid: u32,
    number: usize,
    helpers: Arc<Helpers>,
}

/// The pool has one helper fewer than the number of threads, because the calling thread works too, and a spinning helper beside it would
/// take its processor. Made on first use, again in a forked child, and with another number of threads.
static POOL: Table<Option<ThreadPool>> = Table::new(None);
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How many threads there are at most.
const MOST: usize = 1024;

/// How many threads kernels may use: what was set, else what the environment asks for, else one for each processor.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => choose().unwrap_or_else(|_| processors()),
        n => n,
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Settles what `num_threads` answers until `set_num_threads`: `RGRAD_NUM_THREADS`, else `OMP_NUM_THREADS`, as for other libraries.
///
/// # Errors
/// `RGRAD_NUM_THREADS` is no number from 1 on. A wrong `OMP_NUM_THREADS` is ignored, as OpenMP does.
pub fn choose() -> Result<usize> {
    let of = |variable: &str| std::env::var_os(variable).map(|v| v.to_string_lossy().into_owned()).filter(|v| !v.trim().is_empty());
    let n = asked_for(of("RGRAD_NUM_THREADS").as_deref(), of("OMP_NUM_THREADS").as_deref())?.unwrap_or_else(processors);
    THREADS.store(n, Ordering::Relaxed);
    Ok(n)
}

fn asked_for(own: Option<&str>, open_mp: Option<&str>) -> Result<Option<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0).map(|n| n.min(MOST));
    match own {
        Some(text) => number(text).map(Some).ok_or_else(|| {
            Error::value(format!("RGRAD_NUM_THREADS={text:?} is no number of threads: expected an integer from 1 on, or unset it"))
        }),
        // A list has a number for each level of nested loops.
        None => Ok(open_mp.and_then(|text| number(text.split(',').next().unwrap_or_default()))),
    }
}

/// Sets the number of threads for kernels that start from now on; 0 is taken as 1.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.clamp(1, MOST), Ordering::Relaxed);
}

/// Ends the helpers if none of them works: Python warns of forks of a process with several threads. The next loop starts new ones.
/// Must be called without locks that the end of a thread may need.
pub fn before_fork() {
    if rayon::current_thread_index().is_some() {
        return;
    }
    let Some(ThreadPool { pid, number, helpers }) = POOL.lock().take() else { return };
    match Arc::try_unwrap(helpers) {
        Ok(helpers) if pid == std::process::id() => helpers.end(),
        Ok(helpers) => std::mem::forget(helpers),
        // A loop runs, here or on another thread. If it is no longer the newest pool, it ends with its loop.
        Err(helpers) => {
            let mut newest = POOL.lock();
            if newest.is_none() {
                *newest = Some(ThreadPool { pid, number, helpers });
            }
        }
    }
}

/// Must be called in a forked child: the pool's threads are gone.
pub fn after_fork() {
    if let Some(p) = POOL.lock().take() {
        // Its destructor would wait for threads that do not exist here.
        std::mem::forget(p.helpers);
    }
}

/// A pool with this many helpers; None where the system refuses threads, and the loop then runs on the calling thread.
fn helpers(number: usize) -> Option<Arc<Helpers>> {
    let pid = std::process::id();
    {
        let pool = POOL.lock();
        if let Some(p) = pool.as_ref()
            && p.number == number
            && p.pid == pid
        {
            return Some(p.helpers.clone());
        }
    }
    let helpers = Arc::new(Helpers::new(number)?);
    let old = POOL.lock().replace(ThreadPool { pid, number, helpers: helpers.clone() });
    if let Some(old) = old
        && old.pid != pid
    {
        std::mem::forget(old.helpers);
    }
    Some(helpers)
}

/// A range of the pieces of a loop, on cache lines of its own, so that the thread that starts there rarely contends with others.
#[repr(align(128))]
struct Stretch {
    next: AtomicUsize,
    end: usize,
}

/// Runs `f(0..n)` on this thread and the helpers, in any order. Sequential on one thread, for one piece, and inside a pool's own tasks.
///
/// Each thread begins with a range of its own, the calling thread with the first, and then takes pieces of the others' ranges. So
/// consecutive loops over the same memory find it in the same processors' caches.
#[inline]
pub fn parallel_for(n: usize, f: impl Fn(usize) + Sync) {
    // A dynamic call, so that there is one copy of each loop body and of this function; a piece takes much longer than a call.
    pieces(n, &f);
}

/// Where the range of worker `w` begins among `n` pieces.
fn bound(n: usize, workers: usize, w: usize) -> usize {
    n / workers * w + (n % workers).min(w)
}

fn pieces(n: usize, f: &(dyn Fn(usize) + Sync)) {
    let threads = num_threads();
    if n <= 1 || threads == 1 || rayon::current_thread_index().is_some() {
        return one_by_one(n, f);
    }
    let Some(helpers) = helpers(threads - 1) else { return one_by_one(n, f) };
    let workers = threads.min(n);
    let stretch = |w| Stretch { next: AtomicUsize::new(bound(n, workers, w)), end: bound(n, workers, w + 1) };
    let stretches: SmallVec<[Stretch; 8]> = (0..workers).map(stretch).collect();
    // Set when the calling thread leaves early; helpers then take no further pieces.
    let stopped = AtomicBool::new(false);
    let (watched, interruption) = (interrupt::is_watched(), RefCell::new(None));
    let work = |home: usize| {
        let _helping = (home > 0).then(|| Helping::new(&stopped));
        let _stop = StopOnPanic(&stopped);
        for s in stretches[home..].iter().chain(&stretches[..home]) {
            loop {
                let i = s.next.fetch_add(1, Ordering::Relaxed);
                if i >= s.end {
                    break;
                }
                f(i);
                if home == 0 && watched {
                    interrupt::check();
                } else if stopped.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    };
    // The calling thread has no pieces left, and waits for the last ones of the others.
    let waiting = || {
        if watched && let Some(e) = interrupt::due() {
            stopped.store(true, Ordering::Relaxed);
            interruption.borrow_mut().get_or_insert(e);
        }
    };
    helpers.run(workers - 1, &work, &waiting);
    if let Some(e) = interruption.take() {
        throw(e)
    }
}

fn one_by_one(n: usize, f: &(dyn Fn(usize) + Sync)) {
    for i in 0..n {
        if i > 0 {
            interrupt::check();
        }
        f(i);
    }
}

/// Ends a loop early for all threads when one of them unwinds.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

pub(crate) use stages::parallel_stages;

/// A pointer that the tasks of a loop share. Reads and writes through it are unsafe code, which must ensure that no task writes what
/// another one reads or writes.
#[derive(Debug, Clone, Copy)]
pub struct SharedPointer<P>(P);
// SAFETY: a pointer alone can do no harm, wherever it is.
unsafe impl<T> Send for SharedPointer<*mut T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedPointer<*mut T> {}
// SAFETY: as above.
unsafe impl<T> Send for SharedPointer<*const T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedPointer<*const T> {}

impl<P: Copy> SharedPointer<P> {
    #[inline(always)]
    pub fn new(pointer: P) -> Self {
        SharedPointer(pointer)
    }

    /// Through a method, so that closures capture the whole wrapper.
    #[inline(always)]
    pub fn get(&self) -> P {
        self.0
    }
}

impl<T> SharedPointer<*mut T> {
    #[inline(always)]
    pub fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }

    #[inline(always)]
    pub fn offset(&self, i: isize) -> *mut T {
        self.0.wrapping_offset(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_asks_for_threads() {
        let of = |own, open_mp| asked_for(own, open_mp).ok();
        assert_eq!(of(None, None), Some(None));
        assert_eq!((of(None, Some("3")), of(None, Some(" 4,2 ")), of(Some("2"), Some("3"))), (Some(Some(3)), Some(Some(4)), Some(Some(2))));
        assert_eq!((of(None, Some("0")), of(None, Some("many")), of(None, Some("-1"))), (Some(None), Some(None), Some(None)));
        assert_eq!((of(Some("100000"), None), of(Some("0"), None), of(Some("many"), None)), (Some(Some(MOST)), None, None));
    }

    #[test]
    fn every_piece_runs_once() {
        let seen: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
        parallel_for(100, |i| {
            seen[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(seen.iter().all(|s| s.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn loops_get_helpers_again_after_a_fork_has_ended_them() {
        for _ in 0..3 {
            before_fork();
            let total = AtomicUsize::new(0);
            parallel_for(100, |i| {
                // Inside a loop there are helpers that must stay.
                if i == 50 {
                    before_fork();
                }
                total.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(total.into_inner(), 4950);
        }
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
