//! Where paths of gradients end: `detach`, `no_grad`, casts to integers and operations without derivative leave a light record on their results,
//! so that a missing gradient can be explained.
//!
//! A record keeps no tensor alive. Results of such results inherit it, and a node remembers the records of inputs that need no gradient.

use crate::autograd::dispatch::call_site::{self, Site};
use crate::autograd::dispatch::mode::{self, Mode};
use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::tensor::{Tensor, WeakTensor};
use crate::error::{Error, Result};
use crate::layout::fmt_shape;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// What ended a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    Detach,
    Data,
    NoGrad,
    Inference,
    /// A cast to a type without gradients.
    Cast,
    /// An operation, or an output of one, without derivative.
    NoDerivative,
}

#[derive(Clone)]
struct PathEnd {
    reason: EndReason,
    op: &'static str,
    site: Site,
    origins: SmallVec<[Origin; 2]>,
}

/// Where a path that ended came from.
#[derive(Clone)]
enum Origin {
    /// An input that needed a gradient, or a leaf close behind one, since the input may be gone when an error is raised.
    Tensor(WeakTensor),
    /// The node of such an input, where the graph outlives what is computed (`Mode::inside_node`), so that no leaf has to be looked for.
    Node(Weak<Node>),
}

impl Origin {
    fn same(&self, other: &Origin) -> bool {
        match (self, other) {
            (Origin::Tensor(a), Origin::Tensor(b)) => a.same(b),
            (Origin::Node(a), Origin::Node(b)) => Weak::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The node that it leads to, while that is known.
    fn node(&self) -> Option<Arc<Node>> {
        match self {
            Origin::Tensor(t) => t.upgrade()?.gradient_edge().ok().flatten().map(|e| e.node),
            Origin::Node(n) => n.upgrade(),
        }
    }
}

/// The ends of the paths that lead to one tensor.
pub(crate) struct PathEnds(SmallVec<[PathEnd; 1]>);

/// A record has at most this many ends; a search for leaves visits this many nodes and takes this many leaves.
const ENDS: usize = 8;
const NODES: usize = 24;
const LEAVES: usize = 8;
/// So many cuts are looked behind.
const MOST_CUTS: usize = 64;

/// The origins of the path of one input.
fn add_origins(mode: Mode, source: &Tensor, to: &mut SmallVec<[Origin; 2]>) {
    let mut add = |origin: Origin| {
        if !to.iter().any(|o| o.same(&origin)) {
            to.push(origin);
        }
    };
    let node = {
        let core = source.read();
        match &core.grad_fn {
            Some(e) if mode.inside_node => return add(Origin::Node(Arc::downgrade(&e.node))),
            edge => edge.as_ref().map(|e| e.node.clone()),
        }
    };
    add(Origin::Tensor(source.downgrade()));
    if let Some(node) = node {
        leaves_near(&node, |leaf| to.push(Origin::Tensor(leaf.downgrade())));
    }
}

impl PathEnd {
    fn new(reason: EndReason, op: &'static str, origins: SmallVec<[Origin; 2]>) -> PathEnd {
        PathEnd { reason, op, site: call_site::current(), origins }
    }

    fn same(&self, other: &PathEnd) -> bool {
        self.reason == other.reason && self.site == other.site && self.op == other.op
    }

    fn cut(&self) -> Cut {
        let reason = match self.reason {
            EndReason::Detach => "detach",
            EndReason::Data => "data",
            EndReason::NoGrad => "no_grad",
            EndReason::Inference => "inference_mode",
            EndReason::Cast => "cast",
            EndReason::NoDerivative => "no_derivative",
        };
        Cut { reason, op: self.op, site: self.site, text: self.text() }
    }

    fn text(&self) -> String {
        let (op, line) = (self.op, self.site.text());
        match self.reason {
            EndReason::Detach => format!("{op}() at {line}"),
            EndReason::Data => format!(".data at {line}"),
            EndReason::NoGrad => format!("{op} under no_grad at {line}"),
            EndReason::Inference => format!("{op} in inference mode at {line}"),
            EndReason::Cast => format!("a cast to a type without gradients at {line}"),
            EndReason::NoDerivative => format!("{op}, which has no derivative, at {line}"),
        }
    }
}

fn leaves_near(node: &Node, mut found: impl FnMut(&Tensor)) {
    let mut seen: SmallVec<[&Node; NODES]> = SmallVec::new();
    let mut queue: SmallVec<[&Node; 2 * NODES]> = SmallVec::from_elem(node, 1);
    let mut leaves = 0;
    let mut at = 0;
    while at < queue.len() && seen.len() < NODES && leaves < LEAVES {
        let n = queue[at];
        at += 1;
        if seen.iter().any(|s| std::ptr::eq(*s, n)) {
            continue;
        }
        seen.push(n);
        if let NodeOp::Accumulate(leaf) = n.op() {
            leaves += 1;
            found(leaf);
        }
        // No more of them can be visited.
        queue.extend(n.edges().iter().flatten().map(|e| &*e.node).take(NODES));
    }
}

/// The record for a result of `op` that was made from `source` without history.
#[cold]
pub(crate) fn path_end(reason: EndReason, op: &'static str, source: &Tensor) -> Option<Arc<PathEnds>> {
    // Results computed inside a node's backward are not explained.
    if call_site::is_inherited() {
        return None;
    }
    let mut origins = SmallVec::new();
    add_origins(mode::current(), source, &mut origins);
    let mut ends = SmallVec::new();
    ends.push(PathEnd::new(reason, op, origins));
    Some(Arc::new(PathEnds(ends)))
}

fn add(to: &mut SmallVec<[PathEnd; 1]>, e: PathEnd) {
    if to.len() < ENDS && !to.iter().any(|x| x.same(&e)) {
        to.push(e);
    }
}

/// Why an operation has recorded nothing. The mode comes first, then the dtype of a cast.
pub(crate) fn end_reason(mode: Mode, is_cast: bool) -> EndReason {
    match mode {
        Mode { inference: true, .. } => EndReason::Inference,
        Mode { grad: false, .. } => EndReason::NoGrad,
        _ if is_cast => EndReason::Cast,
        _ => EndReason::NoDerivative,
    }
}

/// The record for the results of an operation that recorded nothing; None if no path ends there or before.
pub(crate) fn ends_of(op: &'static str, reason: EndReason, inputs: &[&Tensor]) -> Option<Arc<PathEnds>> {
    // Results computed inside a node's own backward are not explained.
    let is_explained = !call_site::is_inherited();
    let mut cut: SmallVec<[&Tensor; 4]> = SmallVec::new();
    let mut inherited: SmallVec<[Arc<PathEnds>; 4]> = SmallVec::new();
    let mut only_leaves = true;
    for t in inputs {
        let core = t.read();
        if core.needs_grad() {
            if is_explained && !cut.iter().any(|c| c.same(t)) {
                only_leaves &= core.requires_grad && core.grad_fn.is_none();
                cut.push(t);
            }
        } else if let Some(ends) = &core.path_ends
            && !inherited.iter().any(|known| Arc::ptr_eq(known, ends))
        {
            inherited.push(ends.clone());
        }
    }
    match (&cut[..], &inherited[..]) {
        ([], []) => return None,
        ([], [one]) => return Some(one.clone()),
        _ => {}
    }
    let site = if cut.is_empty() { Site::UNKNOWN } else { call_site::current() };
    let recent = Recent { op, reason, site, inherited, leaves: SmallVec::new(), ends: None };
    if only_leaves && let Some(ends) = recent.known(&cut) {
        return Some(ends);
    }
    let mut ends: SmallVec<[PathEnd; 1]> = SmallVec::new();
    if !cut.is_empty() {
        let mut origins = SmallVec::new();
        cut.iter().for_each(|t| add_origins(mode::current(), t, &mut origins));
        ends.push(PathEnd { reason, op, site, origins });
    }
    for e in recent.inherited.iter().flat_map(|c| c.0.iter()) {
        add(&mut ends, e.clone());
    }
    let ends = Arc::new(PathEnds(ends));
    if only_leaves {
        recent.keep(&cut, &ends);
    }
    Some(ends)
}

/// A record that was made a moment ago. Evaluation runs the same lines on the same parameters, so most records are made already.
struct Recent {
    op: &'static str,
    reason: EndReason,
    site: Site,
    inherited: SmallVec<[Arc<PathEnds>; 4]>,
    /// The inputs whose path was cut: leaves, whose origin is themselves. Their memory is not used again while they are listed.
    leaves: SmallVec<[WeakTensor; 2]>,
    ends: Option<Arc<PathEnds>>,
}

const MOST_RECENT: usize = 64;

thread_local! {
    static RECENT: RefCell<[Option<Recent>; MOST_RECENT]> = const { RefCell::new([const { None }; MOST_RECENT]) };
}

impl Recent {
    /// The place of records of this key.
    fn place(&self) -> usize {
        let first = self.inherited.first().map_or(0, |ends| Arc::as_ptr(ends).addr());
        let key = (self.site.0 as usize).wrapping_mul(31) ^ self.op.as_ptr().addr() ^ first >> 4;
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58 & (MOST_RECENT - 1)
    }

    fn known(&self, cut: &[&Tensor]) -> Option<Arc<PathEnds>> {
        // A thread that ends has no such list.
        RECENT
            .try_with(|recent| {
                let recent = recent.try_borrow().ok()?;
                let r = recent[self.place()].as_ref()?;
                let same = std::ptr::eq(r.op, self.op)
                    && (r.reason, r.site) == (self.reason, self.site)
                    && r.leaves.len() == cut.len()
                    && r.leaves.iter().zip(cut).all(|(leaf, t)| leaf.is(t))
                    && r.inherited.len() == self.inherited.len()
                    && r.inherited.iter().zip(&self.inherited).all(|(a, b)| Arc::ptr_eq(a, b));
                if same { r.ends.clone() } else { None }
            })
            .ok()
            .flatten()
    }

    #[cold]
    fn keep(mut self, cut: &[&Tensor], ends: &Arc<PathEnds>) {
        self.leaves = cut.iter().map(|t| t.downgrade()).collect();
        self.ends = Some(ends.clone());
        let place = self.place();
        let _ = RECENT.try_with(|recent| {
            if let Ok(mut recent) = recent.try_borrow_mut() {
                recent[place] = Some(self);
            }
        });
    }
}

/// Marks the results of an operation that recorded nothing.
pub(crate) fn mark_results(op: &'static str, reason: EndReason, inputs: &[&Tensor], outs: &[Tensor]) {
    if let Some(ends) = ends_of(op, reason, inputs) {
        for t in outs {
            t.write().set_path_ends(Some(ends.clone()));
        }
    }
}

/// Marks the result of an operation without derivative that did not go through dispatch.
pub fn mark_result(op: &'static str, input: &Tensor, out: &Tensor) {
    let marks = {
        let core = input.read();
        core.has_path_ends() || core.needs_grad()
    };
    if marks {
        mark_results(op, end_reason(mode::current(), false), &[input], std::slice::from_ref(out));
    }
}

/// Stores in a node the records of those inputs that it has no edge to.
#[cold]
pub(crate) fn mark_node(node: &Node, inputs: &[&Tensor]) {
    let without_edge = inputs.iter().zip(node.edges()).filter(|(_, e)| e.is_none());
    let path_ends: Vec<Arc<PathEnds>> = without_edge.filter_map(|(t, _)| t.read().path_ends.clone()).collect();
    if !path_ends.is_empty() {
        node.with_hooks(|h| h.path_ends = path_ends);
    }
}

/// All nodes behind some edges, and the ends of paths found on the way.
#[derive(Default)]
struct Walk {
    /// For each node, the end through which it was found; None for those reached from the roots.
    nodes: FxHashMap<*const Node, Option<usize>>,
    ends: Vec<PathEnd>,
    /// The accumulate nodes of leaves that are reached through ends only.
    leaves: Vec<Edge>,
}

impl Walk {
    fn follow(&mut self, start: &Arc<Node>, by: Option<usize>) {
        let mut work = vec![start.clone()];
        while let Some(n) = work.pop() {
            if self.nodes.contains_key(&Arc::as_ptr(&n)) {
                continue;
            }
            self.nodes.insert(Arc::as_ptr(&n), by);
            for path_ends in n.path_ends() {
                self.add_ends(&path_ends);
            }
            if let NodeOp::Accumulate(leaf) = n.op() {
                if by.is_some() {
                    self.leaves.push(Edge { node: n.clone(), nr: 0 });
                }
                let path_ends = leaf.read().path_ends.clone();
                if let Some(path_ends) = path_ends {
                    self.add_ends(&path_ends);
                }
            }
            work.extend(n.edges().iter().flatten().map(|e| e.node.clone()));
        }
    }

    fn add_ends(&mut self, path_ends: &PathEnds) {
        for e in &path_ends.0 {
            if !self
                .ends
                .iter()
                .any(|x| x.same(e) && x.origins.len() == e.origins.len() && x.origins.iter().zip(&e.origins).all(|(a, b)| a.same(b)))
            {
                self.ends.push(e.clone());
            }
        }
    }

    /// Follows the graph from the roots, and on from every end as far as possible.
    fn explore(roots: &[Edge]) -> Walk {
        Self::explore_from(roots, None)
    }

    /// As `explore`, also from the ends of a root without a graph.
    fn explore_from(roots: &[Edge], ends: Option<&PathEnds>) -> Walk {
        let mut walk = Walk::default();
        for r in roots {
            walk.follow(&r.node, None);
        }
        if let Some(ends) = ends {
            walk.add_ends(ends);
        }
        let mut at = 0;
        while at < walk.ends.len() {
            let end = walk.ends[at].clone();
            for node in end.origins.iter().filter_map(Origin::node) {
                walk.follow(&node, Some(at));
            }
            at += 1;
        }
        walk
    }

    /// The end that cut the path to a node.
    fn end_before(&self, node: &Arc<Node>) -> Option<&PathEnd> {
        self.nodes.get(&Arc::as_ptr(node)).copied().flatten().map(|i| &self.ends[i])
    }

    fn is_reached(&self, node: &Arc<Node>) -> bool {
        matches!(self.nodes.get(&Arc::as_ptr(node)), Some(None))
    }

    fn all_ends(&self) -> Option<String> {
        let mut texts: Vec<String> = self.ends.iter().map(PathEnd::text).collect();
        texts.sort();
        texts.dedup();
        texts.truncate(ENDS);
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Why a tensor has no history, if a path ended at it.
pub fn explain_root(t: &Tensor) -> Option<String> {
    let path_ends = t.read().path_ends.clone()?;
    let texts: Vec<String> = path_ends.0.iter().map(PathEnd::text).collect();
    Some(format!("the path to it was cut by {}", texts.join("; ")))
}

/// An operation that ended a path, as data.
#[derive(Debug, Clone)]
pub struct Cut {
    /// "detach", "data", "no_grad", "inference_mode", "cast" or "no_derivative".
    pub reason: &'static str,
    pub op: &'static str,
    pub site: Site,
    /// The operation and its line, as errors say it.
    pub text: String,
}

/// The cuts between two tensors.
#[derive(Debug)]
pub struct Cuts {
    /// Whether one path is whole.
    pub whole: bool,
    /// The cut nearest to the start through which the second tensor would be reached, where no path is whole.
    pub before: Option<Cut>,
    /// Other cuts through which it would be reached.
    pub others: Vec<Cut>,
}

/// What cuts the paths from a tensor to another one. If that one needs no gradient, `others` is what it was made by.
pub fn cuts(from: &Tensor, to: &Tensor) -> Result<Cuts> {
    let Some(input) = to.gradient_edge()? else {
        let ends = to.read().path_ends.clone();
        return Ok(Cuts { whole: false, before: None, others: ends.iter().flat_map(|e| &e.0).map(PathEnd::cut).collect() });
    };
    let root = from.gradient_edge()?;
    let ends = from.read().path_ends.clone();
    let walk = Walk::explore_from(root.as_slice(), ends.as_deref());
    let mut found = Cuts { whole: walk.is_reached(&input.node), before: None, others: Vec::new() };
    let target = Arc::as_ptr(&input.node);
    for end in walk.ends.iter().take(MOST_CUTS) {
        let mut beyond = Walk::default();
        end.origins.iter().filter_map(Origin::node).for_each(|n| beyond.follow(&n, None));
        let cut = end.cut();
        if beyond.nodes.contains_key(&target) && found.before.iter().chain(&found.others).all(|c| c.text != cut.text) {
            match &found.before {
                None if !found.whole => found.before = Some(cut),
                _ => found.others.push(cut),
            }
        }
    }
    if !found.whole && found.before.is_none() {
        found.before = walk.end_before(&input.node).map(PathEnd::cut);
    }
    Ok(found)
}

/// Why the roots do not lead to `input`, as far as that is known.
pub fn explain(roots: &[Edge], input: &Edge) -> Option<String> {
    let walk = Walk::explore(roots);
    match walk.end_before(&input.node) {
        Some(end) => Some(format!("the path to it was cut by {}", end.text())),
        None => walk.all_ends().map(|ends| format!("the graph of the outputs ends at {ends}")),
    }
}

/// How an error describes an input: by the caller's name for it, else by its properties.
pub(in crate::autograd) fn label(name: Option<&String>, node: &Node) -> String {
    let shape = fmt_shape(&node.outs()[0].shape);
    match (name, node.variable(), node.site().describe()) {
        (Some(n), ..) => format!("{n} of shape {shape}"),
        (None, Some(_), Some(line)) => format!("the leaf of shape {shape} that was first used at {line}"),
        (None, Some(_), None) => format!("a leaf of shape {shape}"),
        (None, None, _) => format!("the output of {} at {}", node.name(), node.site().text()),
    }
}

/// The error that lists every input that the roots do not lead to; without inputs, every leaf at the far end of a recorded cut.
pub fn unreached(roots: &[Edge], inputs: &[Edge], names: &[String]) -> Option<Error> {
    let walk = Walk::explore(roots);
    let targets = if inputs.is_empty() { &walk.leaves } else { inputs };
    let mut lines = Vec::new();
    for (i, e) in targets.iter().enumerate() {
        if walk.is_reached(&e.node) {
            continue;
        }
        let who = label(names.get(i), &e.node);
        lines.push(match (walk.end_before(&e.node), walk.all_ends()) {
            (Some(end), _) => format!("{who}: the path was cut by {}", end.text()),
            (None, Some(ends)) => format!("{who}: not reached; the graph of the outputs ends at {ends}"),
            (None, None) => format!("{who}: it took no part in computing the outputs"),
        });
    }
    if lines.is_empty() {
        return None;
    }
    Some(Error::graph(format!(
        "backward(strict=True): {} of {} would get no gradient\n  {}",
        lines.len(),
        if inputs.is_empty() { "the leaves that cut paths come from".into() } else { format!("{} inputs", inputs.len()) },
        lines.join("\n  ")
    )))
}
