//! Records operations that fall back to a slow path under a transform, for the table in the documentation.

use std::cell::RefCell;

/// A slow path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowPath {
    /// The tangent is computed by transposing the vjp.
    Transposed,
    /// The operation runs on one element of the batch after the other.
    Loop,
}

thread_local! {
    static RECORDED: RefCell<Vec<(SlowPath, &'static str)>> = const { RefCell::new(Vec::new()) };
}

/// A limit on the memory of the list.
const MAX_RECORDS: usize = 1000;

pub fn record(path: SlowPath, op: &'static str) {
    RECORDED.with(|n| {
        let mut n = n.borrow_mut();
        if n.len() < MAX_RECORDS {
            n.push((path, op));
        }
    });
}

/// What this thread has recorded since the last call.
pub fn take() -> Vec<(SlowPath, &'static str)> {
    RECORDED.with(RefCell::take)
}
