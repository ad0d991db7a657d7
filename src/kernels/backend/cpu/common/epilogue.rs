//! Epilogues: what is computed from the elements of a result as soon as they are final, while they are in the caches.

use crate::host::threads::parallel_for;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Takes the index of the first element and the number of elements. It is called once for each element, from several threads.
pub(in crate::backend::cpu) type Epilogue<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The number of images from which on there is enough work for all threads if each image is one task.
const MANY: usize = 4;

/// An epilogue that runs on whole images of a result, which lie one after the other. It runs again on an image that is computed again.
pub(in crate::backend::cpu) struct ImageEpilogue<'a> {
    epilogue: Epilogue<'a>,
    images: usize,
    /// Elements of an image.
    elements: usize,
    has_run: AtomicBool,
}

impl<'a> ImageEpilogue<'a> {
    pub fn new(epilogue: Epilogue<'a>, images: usize, elements: usize) -> ImageEpilogue<'a> {
        ImageEpilogue { epilogue, images, elements, has_run: AtomicBool::new(false) }
    }

    /// Whether it has run on all images; otherwise the caller runs it on all of them.
    pub fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }

    /// Called before all images are computed again in another way.
    pub fn restart(&self) {
        self.has_run.store(false, Ordering::Relaxed);
    }

    /// The epilogue, by indices through all images. Who calls this runs it on all of them.
    pub fn of_all(&self) -> Epilogue<'a> {
        self.has_run.store(true, Ordering::Relaxed);
        self.epilogue
    }

    /// Runs the tasks in parallel. Task `t` writes to the images `images(t)` alone; the last task of an image runs the epilogue on it.
    pub fn parallel_for(
        epilogue: Option<&ImageEpilogue<'_>>,
        tasks: usize,
        images: &(dyn Fn(usize) -> Range<usize> + Sync),
        f: &(dyn Fn(usize) + Sync),
    ) {
        let Some(epilogue) = epilogue.filter(|e| e.images >= MANY) else { return parallel_for(tasks, f) };
        let mut left: Vec<AtomicUsize> = (0..epilogue.images).map(|_| AtomicUsize::new(0)).collect();
        for n in (0..tasks).flat_map(images) {
            *left[n].get_mut() += 1;
        }
        if left.iter_mut().any(|n| *n.get_mut() == 0) {
            return parallel_for(tasks, f);
        }
        epilogue.has_run.store(true, Ordering::Relaxed);
        parallel_for(tasks, |t| {
            f(t);
            for n in images(t) {
                // Acquires what the other tasks of the image have written.
                if left[n].fetch_sub(1, Ordering::AcqRel) == 1 {
                    (epilogue.epilogue)(n * epilogue.elements, epilogue.elements);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_task_of_an_image_runs_the_epilogue() {
        // Tasks of two images, of one, and one that has all.
        let images = [0..2, 1..2, 2..3, 3..5, 0..5, 4..5];
        let (written, done) = (AtomicUsize::new(0), [const { AtomicUsize::new(0) }; 15]);
        let epilogue = |start: usize, len: usize| {
            assert!(written.load(Ordering::Relaxed) & 1 << 4 != 0, "the task of all images comes before");
            done[start..start + len].iter().for_each(|n| n.store(n.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
        };
        let of = ImageEpilogue::new(&epilogue, 5, 3);
        ImageEpilogue::parallel_for(Some(&of), 6, &|t: usize| images[t].clone(), &|t| {
            written.fetch_or(1 << t, Ordering::Relaxed);
        });
        assert!(of.has_run() && written.into_inner() == 63);
        assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        // With an image that no task writes, or with few images, it does not run.
        for (all, to) in [(5, 4), (3, 3)] {
            let nothing = |_: usize, _: usize| panic!("not asked for");
            let of = ImageEpilogue::new(&nothing, all, 3);
            ImageEpilogue::parallel_for(Some(&of), to, &|t| t..t + 1, &|_| {});
            assert!(!of.has_run());
        }
    }
}
