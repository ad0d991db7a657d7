//! Which operations went a slow way under a transform, for the table that the documentation prints.

use std::cell::RefCell;

/// The slow ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// A tangent by transposing the vjp.
    Transposed,
    /// A batch one element after the other.
    Loop,
}

thread_local! {
    static NOTED: RefCell<Vec<(Slow, &'static str)>> = const { RefCell::new(Vec::new()) };
}

/// More than anybody asks for at once; the rest is not kept.
const MOST: usize = 1000;

pub fn note(way: Slow, op: &'static str) {
    NOTED.with(|n| {
        let mut n = n.borrow_mut();
        if n.len() < MOST {
            n.push((way, op));
        }
    });
}

/// What this thread has noted since it was asked last.
pub fn take() -> Vec<(Slow, &'static str)> {
    NOTED.with(RefCell::take)
}
