//! What a pass is going to run, for hooks that wait for several gradients.
//!
//! Passes make a plan only while somebody wants to see one.

use crate::autograd::graph::node::Node;
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static WANTED: AtomicUsize = AtomicUsize::new(0);

/// While one of these lives, passes that begin make plans.
#[derive(Debug)]
pub struct Wanted(());

impl Default for Wanted {
    fn default() -> Self {
        WANTED.fetch_add(1, Ordering::Relaxed);
        Wanted(())
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        WANTED.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Plan {
    id: u64,
    /// The nodes that run or whose gradient is captured; the pass keeps them alive.
    nodes: FxHashSet<*const Node>,
    /// It goes to all leaves.
    whole: bool,
}

thread_local! {
    /// The plans of the passes that this thread is inside of, the innermost last.
    static PLANS: RefCell<Vec<Plan>> = const { RefCell::new(Vec::new()) };
}

/// Takes the plan away when its pass ends.
pub(in crate::autograd) struct Running(());

impl Drop for Running {
    fn drop(&mut self) {
        PLANS.with(|p| p.borrow_mut().pop());
    }
}

/// Shows the plan of a pass that begins, if anybody wants to see it.
#[inline]
pub(in crate::autograd) fn show<'a, I: Iterator<Item = &'a Arc<Node>>>(whole: bool, nodes: impl FnOnce() -> I) -> Option<Running> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if WANTED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let plan = Plan { id: NEXT.fetch_add(1, Ordering::Relaxed), nodes: nodes().map(Arc::as_ptr).collect(), whole };
    PLANS.with(|p| p.borrow_mut().push(plan));
    Some(Running(()))
}

/// A number that names the innermost pass of this thread, never used twice; None outside of passes that showed a plan.
pub fn pass() -> Option<u64> {
    PLANS.with(|p| p.borrow().last().map(|p| p.id))
}

/// Whether every pass that this thread is inside of goes to all leaves, as far as they have shown plans.
pub fn whole() -> bool {
    PLANS.with(|p| p.borrow().iter().all(|p| p.whole))
}

/// Whether the innermost pass runs a node, or captures the gradient that arrives there.
pub fn runs(node: &Arc<Node>) -> bool {
    PLANS.with(|p| p.borrow().last().is_some_and(|p| p.nodes.contains(&Arc::as_ptr(node))))
}
