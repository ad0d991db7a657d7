//! Parallel loops in stages, each of which needs what the stages before it wrote.

use super::pool::Helpers;
use super::{StopOnPanic, bound, helpers, num_threads, one_by_one};
use crate::host::interrupt;
use crate::host::interrupt::Helping;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How often a thread looks whether the others have ended a stage before it lets other threads of the machine run meanwhile.
const SPINS: usize = 2000;

/// Runs `f(s, 0..pieces(s))` for the stages `s` from 0 to `stages`, on this thread and the helpers. A stage begins when all pieces of the one
/// before it have ended, and what they wrote can be read.
///
/// Threads wait for each other between stages by spinning, which takes about a microsecond: pieces should take several. In each stage a
/// thread begins with the same range of the pieces, so that it finds in its caches what it read in the stages before, and then takes those
/// that slower threads have left.
pub(crate) fn parallel_stages(stages: usize, pieces: impl Fn(usize) -> usize + Sync, f: impl Fn(usize, usize) + Sync) {
    // Dynamic calls, as for `parallel_for`.
    run(stages, &pieces, &f);
}

fn run(stages: usize, pieces: &(dyn Fn(usize) -> usize + Sync), f: &(dyn Fn(usize, usize) + Sync)) {
    // Asked once: another thread may set another number of threads meanwhile.
    let threads = num_threads();
    let sizes: Vec<usize> = (0..stages).map(pieces).collect();
    let workers = threads.min(sizes.iter().copied().max().unwrap_or(0));
    let is_alone = workers <= 1 || rayon::current_thread_index().is_some();
    match if is_alone { None } else { helpers(threads - 1) } {
        Some(helpers) => together(&helpers, workers, &sizes, f),
        None => sizes.iter().enumerate().for_each(|(s, n)| one_by_one(*n, &|i| f(s, i))),
    }
}

fn together(helpers: &Helpers, workers: usize, sizes: &[usize], f: &(dyn Fn(usize, usize) + Sync)) {
    // Of each stage: how many pieces of each worker's range have been taken, and how many pieces of all have ended.
    let counts: Vec<AtomicUsize> = (0..sizes.len() * (workers + 1)).map(|_| AtomicUsize::new(0)).collect();
    let stopped = AtomicBool::new(false);
    let watched = interrupt::is_watched();
    let work = |home: usize| {
        let _helping = (home > 0).then(|| Helping::new(&stopped));
        let _stop = StopOnPanic(&stopped);
        for (s, counts) in counts.chunks_exact(workers + 1).enumerate() {
            let (n, (ended, taken)) = (sizes[s], counts.split_last().expect("a count of ended pieces"));
            // A helper that comes late.
            if ended.load(Ordering::Acquire) == n {
                continue;
            }
            for w in (home..workers).chain(0..home) {
                loop {
                    let i = bound(n, workers, w) + taken[w].fetch_add(1, Ordering::Relaxed);
                    if i >= bound(n, workers, w + 1) {
                        break;
                    }
                    f(s, i);
                    ended.fetch_add(1, Ordering::Release);
                    if home == 0 && watched {
                        interrupt::check();
                    } else if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
            let mut spins = 0;
            while ended.load(Ordering::Acquire) < n {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                spins += 1;
                if spins < SPINS {
                    std::hint::spin_loop();
                    continue;
                }
                std::thread::yield_now();
                if home == 0 && watched {
                    interrupt::check();
                }
            }
        }
    };
    // The calling thread has seen the last stage end, or has been stopped.
    helpers.run(workers - 1, &work, &|| ());
}

#[cfg(test)]
mod tests {
    use super::super::set_num_threads;
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_stage_sees_all_of_the_stage_before() {
        for threads in [1, 2, 5] {
            set_num_threads(threads);
            for stages in [0, 1, 200] {
                // Some stages have no pieces, or fewer than there are threads.
                let pieces = |s: usize| s * 7 % 11;
                let seen: Vec<AtomicUsize> = (0..stages).map(|_| AtomicUsize::new(0)).collect();
                parallel_stages(stages, pieces, |s, i| {
                    assert!(i < pieces(s));
                    assert!((0..s).all(|s| seen[s].load(Ordering::Relaxed) == (1 << pieces(s)) - 1), "a stage began too early");
                    assert_eq!(seen[s].fetch_or(1 << i, Ordering::Relaxed) >> i & 1, 0, "a piece ran twice");
                });
                assert!(seen.iter().enumerate().all(|(s, n)| n.load(Ordering::Relaxed) == (1 << pieces(s)) - 1));
            }
        }
        set_num_threads(2);
    }

    #[test]
    fn another_thread_may_set_the_number_of_threads_meanwhile() {
        let (ended, ran) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    set_num_threads(1 + n % 5);
                    std::thread::yield_now();
                }
            });
            for _ in 0..200 {
                parallel_stages(
                    20,
                    |_| 3 * num_threads(),
                    |_, _| {
                        ran.fetch_add(1, Ordering::Relaxed);
                    },
                );
            }
            ended.store(true, Ordering::Relaxed);
        });
        // At least for one thread each time.
        assert!(ran.into_inner() >= 200 * 20 * 3);
        set_num_threads(2);
    }

    #[test]
    fn a_panic_of_any_piece_ends_all_stages() {
        set_num_threads(3);
        for guilty in [0, 4, 8] {
            let last = AtomicUsize::new(0);
            let done = catch_unwind(AssertUnwindSafe(|| {
                parallel_stages(
                    20,
                    |_| 9,
                    |s, i| {
                        last.fetch_max(s, Ordering::Relaxed);
                        assert!((s, i) != (10, guilty), "guilty");
                    },
                );
            }));
            assert!(done.is_err());
            assert_eq!(last.into_inner(), 10);
        }
        set_num_threads(2);
    }
}
