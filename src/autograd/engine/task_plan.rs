//! The plan of a pass: which nodes it will run. For hooks that wait for several gradients.
//!
//! Passes make a plan only while a `PlanRequest` exists.

use crate::autograd::graph::node::Node;
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// While one exists, passes that begin make plans.
#[derive(Debug)]
pub struct PlanRequest(());

impl Default for PlanRequest {
    fn default() -> Self {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        PlanRequest(())
    }
}

impl Drop for PlanRequest {
    fn drop(&mut self) {
        REQUESTS.fetch_sub(1, Ordering::Relaxed);
    }
}

struct TaskPlan {
    id: u64,
    /// The nodes that run or whose gradient is captured. The pass keeps them alive.
    nodes: FxHashSet<*const Node>,
    /// The pass accumulates in all leaves.
    all_leaves: bool,
}

thread_local! {
    /// The plans of the passes that this thread is inside of, innermost last.
    static PLANS: RefCell<Vec<TaskPlan>> = const { RefCell::new(Vec::new()) };
}

/// Removes the plan when its pass ends.
pub(in crate::autograd) struct PlanGuard(());

impl Drop for PlanGuard {
    fn drop(&mut self) {
        PLANS.with(|p| p.borrow_mut().pop());
    }
}

/// Publishes the plan of a pass that begins, if one is requested.
#[inline]
pub(in crate::autograd) fn publish<'a, I: Iterator<Item = &'a Arc<Node>>>(
    all_leaves: bool,
    nodes: impl FnOnce() -> I,
) -> Option<PlanGuard> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if REQUESTS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let plan = TaskPlan { id: NEXT.fetch_add(1, Ordering::Relaxed), nodes: nodes().map(Arc::as_ptr).collect(), all_leaves };
    PLANS.with(|p| p.borrow_mut().push(plan));
    Some(PlanGuard(()))
}

/// The number of this thread's innermost pass; never reused. None outside of passes with a plan.
pub fn current_task() -> Option<u64> {
    PLANS.with(|p| p.borrow().last().map(|p| p.id))
}

/// Whether every pass with a plan that this thread is inside of accumulates in all leaves.
pub fn covers_all_leaves() -> bool {
    PLANS.with(|p| p.borrow().iter().all(|p| p.all_leaves))
}

/// Whether the innermost pass runs a node, or captures the gradient that arrives there.
pub fn runs(node: &Arc<Node>) -> bool {
    PLANS.with(|p| p.borrow().last().is_some_and(|p| p.nodes.contains(&Arc::as_ptr(node))))
}
