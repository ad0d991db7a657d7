//! The nodes of a pass that can run, newest first.

use std::collections::BinaryHeap;

pub(super) type ReadyQueue = BinaryHeap<ReadyNode>;

/// A node without open dependencies, ordered by its sequence number.
pub(super) struct ReadyNode(pub u64, pub usize);

impl PartialEq for ReadyNode {
    fn eq(&self, o: &Self) -> bool {
        self.0 == o.0
    }
}
impl Eq for ReadyNode {}
impl PartialOrd for ReadyNode {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for ReadyNode {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        self.0.cmp(&o.0)
    }
}
