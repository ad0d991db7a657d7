//! Finds graphs that grow without end: `total += loss` in a training loop adds a node in each step, which holds the step's graph although
//! backward has freed it.
//!
//! A node that backward has run and freed is marked, and so is a node recorded on top of one, with the number of passes since the first such
//! node behind it. In a loop that only reads old results this number stays small, because nothing links one step's node to the next one's.
//! New nodes are looked at only while the root of an earlier pass is alive when the next pass begins, which it is where a graph grows.

use crate::array::lock_order::TableLock;
use crate::autograd::dispatch::call_site::{self, Site};
use crate::autograd::graph::node::{Edge, Node};
use crate::error::Result;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bits of `Mark::state`: a pass has run the node and freed what it had saved.
const FREED: u32 = 1;
/// The node extends a graph that was freed. The bits from `DEPTH` on count the passes since the first such node, those from `PASS` on number
/// the pass before the node was recorded.
const EXTENDS: u32 = 2;
/// What anomaly mode has seen of the node's outputs.
pub(super) const CHECKED: u32 = 4;
pub(super) const HAS_NAN: u32 = 8;
pub(super) const HAS_INF: u32 = 16;
/// A pass that freed its graph began at the node.
const ROOT: u32 = 32;
const KEPT: u32 = CHECKED | HAS_NAN | HAS_INF | ROOT;
const DEPTH: u32 = 6;
const MOST_DEPTH: u32 = 127;
const PASS: u32 = 13;

/// So many passes must have extended a graph before it is reported.
const PASSES: u32 = 10;
/// New nodes are looked at for so many passes after the last one that began with an earlier root alive.
const PATIENCE: u32 = 8;

/// The number of passes until now.
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// For how many more passes new nodes are looked at.
static LOOKING: AtomicU32 = AtomicU32::new(0);
static HAS_FOUND: AtomicBool = AtomicBool::new(false);
static FOUND: TableLock<Found> = TableLock::new(Found { waiting: Vec::new(), reported: Vec::new() });

struct Found {
    waiting: Vec<(Site, Growth)>,
    reported: Vec<Site>,
}

/// How a graph grows, or has grown.
enum Growth {
    /// Step by step: the name of the node.
    Step(String),
    /// See `unused_total`.
    Unused,
}

impl Growth {
    fn text(&self, site: Site) -> String {
        let line = site.text();
        match self {
            Growth::Step(name) => format!(
                "a graph grows at {line}: in each of {PASSES} backward passes the result of {name} has extended graphs that backward has freed, \
                 so every step leaves nodes and their tensors in memory. To add up values, add `loss.detach()` (or `loss.item()`) instead of \
                 `loss`; to differentiate the sum, call backward once, on the sum. rgrad.autograd.graph.memory_report() shows what a graph \
                 holds."
            ),
            Growth::Unused => format!(
                "a graph grew at {line}: results were added up there with their graphs, and the total is gone without a backward pass, so all of \
                 them were kept in memory for nothing. To evaluate, use rgrad.no_grad() (model.eval() does not switch graphs off), or add \
                 `loss.detach()` (or `loss.item()`) instead of `loss`. rgrad.autograd.graph.memory_report() shows what a graph holds."
            ),
        }
    }
}

thread_local! {
    /// The sequence number of the first root of the last pass of this thread that freed its graph; 0 if that node is gone. A weak reference
    /// would tell the same, at the price of five atomic operations a pass.
    static LAST_ROOT: Cell<u64> = const { Cell::new(0) };
}

/// Whether new nodes are looked at.
#[inline(always)]
pub(in crate::autograd) fn is_looking() -> bool {
    LOOKING.load(Ordering::Relaxed) > 0
}

/// A pass begins that will free its graph.
#[inline]
pub(in crate::autograd) fn pass_begins(roots: &[Edge]) {
    let Some(Edge { node: root, .. }) = roots.first() else { return };
    // Passes of several threads may get one number: it tells those of one loop apart.
    NUMBER.store(NUMBER.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    let state = &root.mark.state;
    state.store(state.load(Ordering::Relaxed) | ROOT, Ordering::Relaxed);
    let old = LAST_ROOT.replace(root.seq());
    let left = LOOKING.load(Ordering::Relaxed);
    if old != 0 && old != root.seq() {
        LOOKING.store(PATIENCE, Ordering::Relaxed);
    } else if left > 0 {
        LOOKING.store(left - 1, Ordering::Relaxed);
    }
}

/// The node is dropped.
#[inline]
pub(in crate::autograd) fn dropped(node: &Node) {
    if node.mark.state.load(Ordering::Relaxed) & ROOT != 0 && LAST_ROOT.get() == node.seq() {
        LAST_ROOT.set(0);
    }
}

/// The node has run and is freed.
#[inline]
pub(in crate::autograd) fn freed(node: &Node) {
    let state = &node.mark.state;
    state.store(state.load(Ordering::Relaxed) & KEPT | FREED, Ordering::Relaxed);
}

/// Whether a pass has run the node and freed it.
pub(in crate::autograd) fn is_freed(node: &Node) -> bool {
    node.mark.state.load(Ordering::Relaxed) & FREED != 0
}

/// Adds bits to what anomaly mode has seen of a node.
pub(super) fn see(node: &Node, bits: u32) {
    node.mark.state.fetch_or(bits, Ordering::Relaxed);
}

pub(super) fn seen(node: &Node) -> u32 {
    node.mark.state.load(Ordering::Relaxed) & (CHECKED | HAS_NAN | HAS_INF)
}

/// Looks at a node that is being recorded.
#[cold]
#[inline(never)]
pub(in crate::autograd) fn look_at(node: &Node) {
    let now = NUMBER.load(Ordering::Relaxed) & (u32::MAX >> PASS);
    let (mut extends, mut depth) = (false, 0);
    let inner = |node: &Node| node.edges().iter().flatten().any(|e| is_freed(&e.node));
    let mut live = 0;
    let mut sums = false;
    for e in node.edges().iter().flatten().filter(|e| e.node.variable().is_none()) {
        let state = e.node.mark.state.load(Ordering::Relaxed);
        if state & FREED != 0 {
            extends = true;
            continue;
        }
        live += 1;
        if state & EXTENDS != 0 {
            let (before, is_new) = (state >> DEPTH & MOST_DEPTH, state >> PASS == now);
            depth = depth.max(before + u32::from(!is_new));
            // An intermediate result of the same step, such as `0.1 * loss`.
            extends |= is_new && before == 1;
        }
        sums |= inner(&e.node);
    }
    // A loss that was added before backward freed its graph: the old sum has not run, what was added to it has, and now comes another loss.
    extends |= sums && live > 1;
    if !extends && depth == 0 {
        return;
    }
    let depth = depth.clamp(1, MOST_DEPTH);
    let state = &node.mark.state;
    state.store(state.load(Ordering::Relaxed) & KEPT | EXTENDS | depth << DEPTH | now << PASS, Ordering::Relaxed);
    if depth >= PASSES && node.site() != Site::UNKNOWN && extends {
        add(node.site(), Growth::Step(node.name()));
    }
}

/// Whether a line has been reported, or will be.
pub(super) fn was_reported(site: Site) -> bool {
    FOUND.lock().reported.contains(&site)
}

fn add(site: Site, growth: Growth) {
    let mut found = FOUND.lock();
    if !found.reported.contains(&site) {
        found.reported.push(site);
        found.waiting.push((site, growth));
        HAS_FOUND.store(true, Ordering::Relaxed);
    }
}

/// A total has been dropped that no pass had used. It is reported between two of the user's instructions: there may be no pass any more.
pub(super) fn found_unused(site: Site) {
    add(site, Growth::Unused);
    call_site::soon();
}

/// Warns of what `look_at` has found since. No lock may be held.
///
/// # Errors
/// The user's filters make the warning an exception.
#[inline]
pub fn report() -> Result<()> {
    if HAS_FOUND.load(Ordering::Relaxed) { report_found() } else { Ok(()) }
}

#[cold]
fn report_found() -> Result<()> {
    HAS_FOUND.store(false, Ordering::Relaxed);
    let waiting = std::mem::take(&mut FOUND.lock().waiting);
    for (site, growth) in waiting {
        call_site::warn_at(site, &growth.text(site))?;
    }
    Ok(())
}
