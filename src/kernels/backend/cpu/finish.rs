//! What is done with elements of a result as soon as they are final, while they are in the caches: the steps of a program that joins a request.

use super::threads::parallel_for;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Called once for each element: for those from the first number on, as many as the second one says. Calls may come from several threads.
pub(super) type Then<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Images from which on they are enough work for all threads, one by one.
const MANY: usize = 4;

/// What is done with each image of a result: so many elements, one image after the other. It may be done several times, each time after the image has
/// been computed again.
pub(super) struct ImagesThen<'a> {
    then: Then<'a>,
    images: usize,
    elements: usize,
    has_run: AtomicBool,
}

impl<'a> ImagesThen<'a> {
    pub fn new(then: Then<'a>, images: usize, elements: usize) -> ImagesThen<'a> {
        ImagesThen { then, images, elements, has_run: AtomicBool::new(false) }
    }

    /// All images are computed again, and what is to be done with them is done again.
    pub fn forget(&self) {
        self.has_run.store(false, Ordering::Relaxed);
    }

    /// Whether it has been done with all images; otherwise it has been done with none.
    pub fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }

    /// What is done with elements of one image. The caller does it with all images.
    pub fn in_image(&self, image: usize) -> impl Fn(usize, usize) + Sync {
        self.has_run.store(true, Ordering::Relaxed);
        move |start, len| (self.then)(image * self.elements + start, len)
    }

    /// As `parallel_for`. Task `t` writes to the images `images(t)` alone, and the last task of an image does with it what is to be done.
    pub fn tasks(of: Option<&ImagesThen<'_>>, tasks: usize, images: &(dyn Fn(usize) -> Range<usize> + Sync), f: &(dyn Fn(usize) + Sync)) {
        let Some(of) = of.filter(|of| of.images >= MANY) else { return parallel_for(tasks, f) };
        let mut left: Vec<AtomicUsize> = (0..of.images).map(|_| AtomicUsize::new(0)).collect();
        for n in (0..tasks).flat_map(images) {
            *left[n].get_mut() += 1;
        }
        if left.iter_mut().any(|n| *n.get_mut() == 0) {
            return parallel_for(tasks, f);
        }
        of.has_run.store(true, Ordering::Relaxed);
        parallel_for(tasks, |t| {
            f(t);
            for n in images(t) {
                // What the other tasks have written is seen.
                if left[n].fetch_sub(1, Ordering::AcqRel) == 1 {
                    (of.then)(n * of.elements, of.elements);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_task_of_an_image_is_followed_by_what_is_to_be_done() {
        // Tasks of two images, of one, and one that has all.
        let images = [0..2, 1..2, 2..3, 3..5, 0..5, 4..5];
        let (written, done) = (AtomicUsize::new(0), [const { AtomicUsize::new(0) }; 15]);
        let then = |start: usize, len: usize| {
            assert!(written.load(Ordering::Relaxed) & 1 << 4 != 0, "the task of all images comes before");
            done[start..start + len].iter().for_each(|n| n.store(n.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
        };
        let of = ImagesThen::new(&then, 5, 3);
        ImagesThen::tasks(Some(&of), 6, &|t: usize| images[t].clone(), &|t| {
            written.fetch_or(1 << t, Ordering::Relaxed);
        });
        assert!(of.has_run() && written.into_inner() == 63);
        assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        // An image without a task, and few images: nothing is done.
        for (all, to) in [(5, 4), (3, 3)] {
            let nothing = |_: usize, _: usize| panic!("not asked for");
            let of = ImagesThen::new(&nothing, all, 3);
            ImagesThen::tasks(Some(&of), to, &|t| t..t + 1, &|_| {});
            assert!(!of.has_run());
        }
    }
}
