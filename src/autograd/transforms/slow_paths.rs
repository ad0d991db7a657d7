//! Which operations went a slow way under a transform, for the table that the documentation prints.

use std::cell::RefCell;

/// The slow ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowPath {
    /// A tangent by transposing the vjp.
    Transposed,
    /// A batch one element after the other.
    Loop,
}

thread_local! {
    static RECORDED: RefCell<Vec<(SlowPath, &'static str)>> = const { RefCell::new(Vec::new()) };
}

/// More than anybody asks for at once; the rest is not kept.
const MAX_RECORDS: usize = 1000;

pub fn record(path: SlowPath, op: &'static str) {
    RECORDED.with(|n| {
        let mut n = n.borrow_mut();
        if n.len() < MAX_RECORDS {
            n.push((path, op));
        }
    });
}

/// What this thread has noted since it was asked last.
pub fn take() -> Vec<(SlowPath, &'static str)> {
    RECORDED.with(RefCell::take)
}
