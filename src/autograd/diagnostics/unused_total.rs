//! Finds totals that keep graphs for nothing: `total += loss` over an evaluation that records graphs, and no backward pass ever uses them.
//!
//! While the total lives, nobody can tell it from losses that are added up to differentiate their sum. So it is looked at when its last node
//! is dropped: from then on no pass can reach it. A total is a chain of additions to one element that one line has recorded, each of a term
//! that is newer than the sum before, is no result of it, and has not been differentiated by itself. States of recurrent networks are results
//! of the states before them; losses over a step have been run. A line whose totals backward has used once is never reported: what a step
//! that was given up leaves behind is no leak. Nor is a line reported for gradients that a pass has added up while it was recorded.

use crate::array::lock_order::TableLock;
use crate::autograd::diagnostics::growing_graph;
use crate::autograd::dispatch::call_site::Site;
use crate::autograd::engine::fork;
use crate::autograd::graph::node::{self, Node, NodeOp};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// A total of fewer terms is not reported.
const TERMS: u32 = 10;
/// A term's graph is followed for so many nodes, to see whether it is a result of the sum before it.
const MOST_NODES: usize = 100_000;

/// Lines whose totals backward has used.
static USED: TableLock<Vec<Site>> = TableLock::new(Vec::new());
/// How many callers evaluate functions many times and differentiate only some of the results.
static EXPECTED: AtomicU32 = AtomicU32::new(0);

/// The numbers of the nodes that were recorded while passes ran, of the latest such passes.
static RECORDED: TableLock<Vec<Range<u64>>> = TableLock::new(Vec::new());
const MOST_PASSES: usize = 1000;

/// A pass that is recorded itself, until it is dropped.
pub(in crate::autograd) struct RecordingPass(u64);

impl RecordingPass {
    pub fn begin() -> RecordingPass {
        RecordingPass(node::seq_to_come())
    }
}

impl Drop for RecordingPass {
    fn drop(&mut self) {
        let mut recorded = RECORDED.lock();
        if recorded.len() == MOST_PASSES {
            recorded.drain(..MOST_PASSES / 2);
        }
        recorded.push(self.0..node::seq_to_come());
    }
}

/// From now on, or no longer, one caller more drops totals on purpose.
pub fn expect(on: bool) {
    if on {
        EXPECTED.fetch_add(1, Ordering::Relaxed);
    } else {
        EXPECTED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The node is dropped.
#[inline]
pub(in crate::autograd) fn dropped(node: &Node) {
    if is_sum(node) {
        look_at(node);
    }
}

/// Looks at a node that is of no more use.
#[cold]
#[inline(never)]
pub fn look_at(node: &Node) {
    if !is_sum(node) || node.site() == Site::UNKNOWN {
        return;
    }
    if was_run(node) {
        if earlier(node).is_some() {
            let mut used = USED.lock();
            if !used.contains(&node.site()) {
                used.push(node.site());
            }
        }
        return;
    }
    let Some((first, term)) = link(node) else { return };
    let mut at = first;
    for _ in 2..TERMS {
        match link(at) {
            Some((sum, _)) => at = sum,
            None => return,
        }
    }
    // A graph that is dropped within a pass was recorded to be dropped, by a checkpoint.
    if EXPECTED.load(Ordering::Relaxed) > 0 || fork::in_pass() || growing_graph::was_reported(node.site()) {
        return;
    }
    if RECORDED.lock().iter().any(|numbers| numbers.contains(&node.seq())) {
        return;
    }
    if USED.lock().contains(&node.site()) || comes_from(term, first) {
        return;
    }
    growing_graph::found_unused(node.site());
}

/// Whether a node adds two tensors of one element.
#[inline]
fn is_sum(node: &Node) -> bool {
    matches!(node.op(), NodeOp::Pointwise(op) if op.is_sum()) && node.outs().first().is_some_and(|out| out.shape.iter().all(|&n| n == 1))
}

/// Whether a pass has reached the node.
fn was_run(node: &Node) -> bool {
    node.mark.pass.load(Ordering::Relaxed) != 0 || growing_graph::is_freed(node)
}

/// The sum that the node adds to: the oldest of its inputs that the same line has made in the same way.
fn earlier(node: &Node) -> Option<&Node> {
    let sums = node.edges().iter().flatten().map(|e| &*e.node).filter(|n| n.site() == node.site() && is_sum(n));
    sums.min_by_key(|n| n.seq())
}

/// The sum that the node adds to, and the term that it adds, if the term is newer and neither has been run.
fn link(node: &Node) -> Option<(&Node, &Node)> {
    let sum = earlier(node)?;
    let term = node.edges().iter().flatten().map(|e| &*e.node).find(|n| !std::ptr::eq(*n, sum))?;
    (term.variable().is_none() && term.seq() > sum.seq() && !was_run(sum) && !was_run(term)).then_some((sum, term))
}

/// Whether `from` lies in the graph of `node`. Every node is newer than those behind it.
fn comes_from(node: &Node, from: &Node) -> bool {
    let mut seen: FxHashSet<*const Node> = FxHashSet::default();
    let mut work = vec![node];
    while let Some(at) = work.pop() {
        for next in at.edges().iter().flatten().map(|e| &*e.node) {
            if std::ptr::eq(next, from) || seen.len() == MOST_NODES {
                return true;
            }
            if next.variable().is_none() && next.seq() > from.seq() && seen.insert(next) {
                work.push(next);
            }
        }
    }
    false
}
