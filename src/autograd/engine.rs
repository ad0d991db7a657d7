//! The engine: walks the graph from its roots, newest node first, and brings gradients to leaves and to whoever asked for them.

use super::accumulate;
use super::direct::vjp_direct;
use super::door::run_vjp;
use super::flow::{Flow, NOWHERE, Sums};
use super::hooks::{Grads, NodeHooks};
use super::linear;
use super::mode::{self, Mode, ModeGuard};
use super::node::{Edge, Node, NodeOp};
use super::site::Inherit;
use super::tensor::Tensor;
use crate::error::{Error, Kind, Result};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a backward pass is to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub retain_graph: bool,
    pub create_graph: bool,
    /// Where gradients are wanted: they are returned. Empty: at all leaves, whose `.grad` they are added to.
    pub inputs: Vec<Edge>,
}

/// What the engine knows of a node during one pass. The roots keep it alive.
struct Visit<'a> {
    node: &'a Arc<Node>,
    /// Edges that point here from nodes that have not run yet.
    waiting: u32,
    /// Whether a wanted input lies here or behind it.
    needed: bool,
    /// For each of the node's outputs the place of its gradient; `NOWHERE` where none has arrived.
    grads: SmallVec<[u32; 4]>,
    /// For each of the node's edges the place of the node that it points to; `NOWHERE` where it points to none.
    targets: SmallVec<[u32; 4]>,
}

/// A node that is ready, ordered by its sequence number.
struct Ready(u64, usize);

impl PartialEq for Ready {
    fn eq(&self, o: &Self) -> bool {
        self.0 == o.0
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Ready {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        self.0.cmp(&o.0)
    }
}

thread_local! {
    /// How many passes this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Beyond this many passes inside each other a pass goes on on a fresh thread.
const MAX_DEPTH: u32 = 60;
const FRESH_STACK: usize = 16 << 20;

struct DepthGuard;

impl Drop for DepthGuard {
    fn drop(&mut self) {
        DEPTH.with(|d| d.set(d.get() - 1));
    }
}

/// Runs backward from `roots` with the gradients given for them. Returns the gradients at `options.inputs`.
pub fn run(roots: Vec<(Edge, Tensor)>, options: &Options) -> Result<Vec<Option<Tensor>>> {
    if DEPTH.with(Cell::get) >= MAX_DEPTH {
        return on_fresh_thread(roots, options);
    }
    DEPTH.with(|d| d.set(d.get() + 1));
    let _depth = DepthGuard;
    run_here(roots, options)
}

fn on_fresh_thread(roots: Vec<(Edge, Tensor)>, options: &Options) -> Result<Vec<Option<Tensor>>> {
    let mode: Mode = mode::current();
    std::thread::scope(|s| {
        let thread = std::thread::Builder::new().stack_size(FRESH_STACK).spawn_scoped(s, || {
            mode::set(mode);
            run(roots, options)
        });
        match thread {
            Ok(t) => t.join().unwrap_or_else(|_| Err(Error::runtime("backward: a fresh thread for a nested pass panicked"))),
            Err(e) => Err(Error::runtime(format!("backward: no thread for a pass nested {MAX_DEPTH} deep: {e}"))),
        }
    })
}

/// Finds a node's place in the pass that is looking for nodes: by marks in the nodes themselves while no other thread looks too, else by a
/// table.
enum Index {
    Marks(MutexGuard<'static, u64>),
    Table(FxHashMap<*const Node, u32>),
}

impl Index {
    fn new() -> Index {
        /// Held while nodes are being marked; the number of the last pass that did.
        static MARKING: Mutex<u64> = Mutex::new(0);
        match MARKING.try_lock() {
            Some(mut pass) => {
                *pass += 1;
                Index::Marks(pass)
            }
            None => Index::Table(FxHashMap::default()),
        }
    }

    /// The node's place, which is `next` if it has none yet.
    #[inline]
    fn place(&mut self, node: &Arc<Node>, next: u32) -> u32 {
        match self {
            Index::Marks(pass) => {
                if node.mark.pass.load(Ordering::Relaxed) == **pass {
                    return node.mark.at.load(Ordering::Relaxed);
                }
                node.mark.pass.store(**pass, Ordering::Relaxed);
                node.mark.at.store(next, Ordering::Relaxed);
                next
            }
            Index::Table(table) => *table.entry(Arc::as_ptr(node)).or_insert(next),
        }
    }

    /// The node's place, if it has one.
    fn find(&self, node: &Arc<Node>) -> Option<usize> {
        match self {
            Index::Marks(pass) if node.mark.pass.load(Ordering::Relaxed) == **pass => Some(node.mark.at.load(Ordering::Relaxed) as usize),
            Index::Marks(_) => None,
            Index::Table(table) => table.get(&Arc::as_ptr(node)).map(|at| *at as usize),
        }
    }
}

/// The state of one pass.
struct Pass<'a> {
    options: &'a Options,
    visits: Vec<Visit<'a>>,
    sums: Sums,
    /// (node, output) of each wanted input, and its result.
    captures: Vec<(usize, u32, Option<Tensor>)>,
    ready: BinaryHeap<Ready>,
    keep: bool,
}

fn run_here(roots: Vec<(Edge, Tensor)>, options: &Options) -> Result<Vec<Option<Tensor>>> {
    let (edges, grads): (Vec<Edge>, Vec<Tensor>) = roots.into_iter().unzip();
    let mut pass = Pass {
        options,
        visits: Vec::with_capacity(16),
        sums: Sums::default(),
        captures: Vec::new(),
        ready: BinaryHeap::new(),
        keep: options.retain_graph,
    };
    let starts = {
        // No foreign code runs in here.
        let mut index = Index::new();
        let starts = pass.discover(&mut index, &edges);
        pass.mark_needed(&index);
        starts
    };
    let _mode = ModeGuard::grad(options.create_graph);
    for ((edge, grad), at) in edges.iter().zip(grads).zip(starts) {
        let meta = &edge.node.outs()[edge.nr as usize];
        let grad = linear::fit(grad, meta)?;
        pass.add(at, edge.nr as usize, Flow::Tensor(grad))?;
    }
    for i in 0..pass.visits.len() {
        if pass.visits[i].waiting == 0 {
            pass.ready.push(Ready(pass.visits[i].node.seq(), i));
        }
    }
    while let Some(Ready(_, i)) = pass.ready.pop() {
        pass.run_node(i)?;
    }
    Ok(pass.captures.into_iter().map(|(_, _, g)| g).collect())
}

impl<'a> Pass<'a> {
    #[inline]
    fn visit(&mut self, index: &mut Index, node: &'a Arc<Node>) -> usize {
        let next = self.visits.len();
        let at = index.place(node, next as u32) as usize;
        if at == next {
            let grads = SmallVec::from_elem(NOWHERE, node.outs().len());
            self.visits.push(Visit { node, waiting: 0, needed: true, grads, targets: SmallVec::new() });
        }
        at
    }

    /// Finds every node behind the roots and counts the edges that point to each. Returns the places of the roots.
    fn discover(&mut self, index: &mut Index, roots: &'a [Edge]) -> Vec<usize> {
        let starts = roots.iter().map(|e| self.visit(index, &e.node)).collect();
        let mut at = 0;
        while at < self.visits.len() {
            let node = self.visits[at].node;
            let mut targets = SmallVec::new();
            for e in node.edges() {
                targets.push(match e {
                    Some(e) => {
                        let i = self.visit(index, &e.node);
                        self.visits[i].waiting += 1;
                        i as u32
                    }
                    None => NOWHERE,
                });
            }
            self.visits[at].targets = targets;
            at += 1;
        }
        starts
    }

    /// With wanted inputs only the nodes on the way to one of them run.
    fn mark_needed(&mut self, index: &Index) {
        if self.options.inputs.is_empty() {
            return;
        }
        for v in &mut self.visits {
            v.needed = false;
        }
        for e in &self.options.inputs {
            let at = index.find(&e.node);
            // An input that is not reached keeps its None.
            self.captures.push((at.unwrap_or(usize::MAX), e.nr, None));
            if let Some(i) = at {
                self.visits[i].needed = true;
            }
        }
        // Every edge points to a smaller number (or to an accumulate node, which has no edges).
        let mut order: Vec<usize> = (0..self.visits.len()).collect();
        order.sort_unstable_by_key(|&i| self.visits[i].node.seq());
        for i in order {
            if self.behind_is_needed(i) {
                self.visits[i].needed = true;
            }
        }
    }

    /// Whether a wanted input lies behind a node.
    fn behind_is_needed(&self, i: usize) -> bool {
        self.visits[i].targets.iter().any(|&t| t != NOWHERE && self.visits[t as usize].needed)
    }

    /// Adds a gradient to what has arrived at a node's output.
    #[inline]
    fn add(&mut self, at: usize, nr: usize, grad: Flow) -> Result<()> {
        self.sums.add(&mut self.visits[at].grads[nr], grad, false, self.options.create_graph)
    }

    fn run_node(&mut self, i: usize) -> Result<()> {
        let Visit { node, needed, .. } = self.visits[i];
        if needed && self.captures.is_empty() && !self.options.create_graph && self.run_direct(i, node)? {
            return Ok(());
        }
        let places = std::mem::take(&mut self.visits[i].grads);
        let mut grads: Grads = places.iter().map(|p| self.sums.take(*p).map(Flow::into_tensor)).collect();
        if needed {
            let hooks = node.hooks();
            self.run_hooks_before(node, hooks.as_ref(), &mut grads)?;
            for (at, nr, out) in &mut self.captures {
                if *at == i {
                    *out = grads[*nr as usize].clone();
                }
            }
            if let NodeOp::Accumulate(leaf) = node.op() {
                if self.captures.is_empty()
                    && let Some(g) = grads[0].take()
                {
                    accumulate::into_leaf(leaf, g, self.options.create_graph)?;
                }
                return Ok(());
            }
            // Nothing behind a wanted input may be wanted any more.
            if self.captures.is_empty() || self.behind_is_needed(i) {
                self.run_vjp(i, node, hooks.as_ref(), grads)?;
            } else {
                self.settle(i);
            }
        } else {
            self.settle(i);
        }
        Ok(())
    }

    /// Runs a pointwise node the short way, on bare gradients; false, and nothing done, where it takes the long one.
    #[inline]
    fn run_direct(&mut self, i: usize, node: &'a Arc<Node>) -> Result<bool> {
        let NodeOp::Pointwise(op) = node.op() else { return Ok(false) };
        let needs: SmallVec<[bool; 4]> = self.visits[i].targets.iter().map(|&t| t != NOWHERE).collect();
        let place = self.visits[i].grads[0];
        let Some(made) = self.sums.get(place).and_then(|g| g.with_array(|g| vjp_direct(node, op, &needs, g, self.keep))) else {
            return Ok(false);
        };
        self.sums.take(place);
        for (k, (made, e)) in made.into_iter().zip(node.edges()).enumerate() {
            let (Some(made), Some(e)) = (made, e) else { continue };
            let target = self.visits[i].targets[k] as usize;
            let meta = &e.node.outs()[e.nr as usize];
            let grad = if made.shape() == &meta.shape[..] && made.dtype() == meta.dtype {
                Flow::Bare(made)
            } else {
                Flow::Tensor(linear::fit(Tensor::new(made), meta)?)
            };
            self.add(target, e.nr as usize, grad)?;
            self.arrived(target);
        }
        Ok(true)
    }

    /// A node that does not run still lets the nodes behind it go.
    fn settle(&mut self, i: usize) {
        for t in std::mem::take(&mut self.visits[i].targets) {
            if t != NOWHERE {
                self.arrived(t as usize);
            }
        }
    }

    #[inline]
    fn arrived(&mut self, at: usize) {
        let v = &mut self.visits[at];
        v.waiting -= 1;
        if v.waiting == 0 {
            self.ready.push(Ready(v.node.seq(), at));
        }
    }

    fn run_vjp(&mut self, i: usize, node: &Arc<Node>, hooks: Option<&NodeHooks>, grads: Grads) -> Result<()> {
        let needs: SmallVec<[bool; 4]> = self.visits[i].targets.iter().map(|&t| t != NOWHERE && self.visits[t as usize].needed).collect();
        let given = hooks.filter(|h| !h.post.is_empty()).map(|_| grads.clone());
        if grads.iter().all(Option::is_none) && !matches!(node.op(), NodeOp::Other(o) if o.as_any().is_some()) {
            self.settle(i);
            return Ok(());
        }
        let mut outs = {
            let _site = Inherit::new(node.site());
            run_vjp(node, &needs, &grads).map_err(|e| at_forward(e, node))?
        };
        drop(grads);
        if let (Some(h), Some(given)) = (hooks, &given) {
            for (_, hook) in &h.post {
                let _lines = Inherit::suspend();
                if let Some(replaced) = hook.after(&outs, given).map_err(|e| at_forward(e, node))? {
                    outs = replaced;
                }
            }
        }
        if !self.keep {
            node.release();
        }
        self.deliver(i, node, outs, &needs)
    }

    /// Fits gradients to a node's edges and hands them on.
    fn deliver(&mut self, i: usize, node: &Arc<Node>, outs: Grads, needs: &[bool]) -> Result<()> {
        let _site = Inherit::new(node.site());
        let n = node.edges().len();
        if outs.len() != n {
            return Err(at_forward(
                Error::runtime(format!("{} returned an incorrect number of gradients (expected {n}, got {})", node.name(), outs.len())),
                node,
            ));
        }
        for (k, g) in outs.into_iter().enumerate() {
            let Some(e) = &node.edges()[k] else { continue };
            let target = self.visits[i].targets[k] as usize;
            if let Some(g) = g
                && needs[k]
            {
                let meta = &e.node.outs()[e.nr as usize];
                let g = linear::fit(g, meta).map_err(|err| {
                    at_forward(
                        Error::new(
                            err.kind(),
                            format!("Function {} returned an invalid gradient at index {k} - {}", node.name(), err.message()),
                        ),
                        node,
                    )
                })?;
                self.add(target, e.nr as usize, Flow::Tensor(g))?;
            }
            self.arrived(target);
        }
        Ok(())
    }

    /// Node pre-hooks, then the hooks of the tensors that are the node's outputs, then `.grad` of tensors that keep it.
    fn run_hooks_before(&self, node: &Arc<Node>, hooks: Option<&NodeHooks>, grads: &mut Grads) -> Result<()> {
        if let NodeOp::Accumulate(leaf) = node.op() {
            let hooks = leaf.meta(|m| m.map(|m| m.hooks.tensor.clone())).unwrap_or_default();
            let _lines = Inherit::suspend();
            for (_, hook) in hooks {
                if let Some(g) = &grads[0]
                    && let Some(new) = hook.call(g).map_err(|e| at_forward(e, node))?
                {
                    grads[0] = Some(fits(new, node, 0)?);
                }
            }
        }
        let Some(hooks) = hooks else { return Ok(()) };
        let _lines = Inherit::suspend();
        for (_, nr, hook) in &hooks.tensor {
            if let Some(g) = &grads[*nr as usize]
                && let Some(new) = hook.call(g).map_err(|e| at_forward(e, node))?
            {
                grads[*nr as usize] = Some(fits(new, node, *nr as usize)?);
            }
        }
        for (nr, weak) in &hooks.retain {
            if let (Some(t), Some(g)) = (weak.upgrade(), &grads[*nr as usize]) {
                accumulate::retain(&t, g)?;
            }
        }
        for (_, hook) in &hooks.pre {
            if let Some(new) = hook.before(grads).map_err(|e| at_forward(e, node))? {
                *grads = new;
            }
        }
        Ok(())
    }
}

/// What a hook put in the place of a gradient must have its shape.
fn fits(new: Tensor, node: &Node, nr: usize) -> Result<Tensor> {
    let meta = &node.outs()[nr];
    if new.shape() == meta.shape {
        return Ok(new);
    }
    Err(Error::runtime(format!(
        "hook on an output of {} has changed the size of value: got {:?}, expected {:?}",
        node.name(),
        &new.shape()[..],
        &meta.shape[..]
    )))
}

/// Names the forward line on an error that a node's backward raised.
fn at_forward(e: Error, node: &Node) -> Error {
    if node.is_freed() && e.kind() == Kind::Graph {
        return e;
    }
    match node.site().describe() {
        Some(line) => e.note(format!("{} was recorded by the forward call at {line}", node.name())),
        None => e,
    }
}

/// Calls one node by hand with gradients for its outputs, as `grad_fn(grad)` does. Frees nothing.
pub fn call_node(node: &Arc<Node>, grads: Grads) -> Result<Grads> {
    if grads.len() != node.outs().len() {
        return Err(Error::type_(format!("{}: expected {} gradients, got {}", node.name(), node.outs().len(), grads.len())));
    }
    if let NodeOp::Accumulate(leaf) = node.op() {
        if let Some(g) = grads.into_iter().next().flatten() {
            let meta = &node.outs()[0];
            let g = linear::fit(g, meta)?;
            accumulate::into_leaf(leaf, g, mode::is_grad_enabled())?;
        }
        return Ok(Grads::new());
    }
    let needs: SmallVec<[bool; 4]> = node.edges().iter().map(Option::is_some).collect();
    let outs = {
        let _site = Inherit::new(node.site());
        run_vjp(node, &needs, &grads).map_err(|e| at_forward(e, node))?
    };
    let mut fitted = Grads::new();
    for (k, g) in outs.into_iter().enumerate() {
        fitted.push(match (g, node.edges().get(k).and_then(Option::as_ref)) {
            (Some(g), Some(e)) => {
                // Nobody promises that a gradient given by hand has the output's shape.
                let meta = &e.node.outs()[e.nr as usize];
                let fits = linear::is_broadcast_of(&g.shape(), &meta.shape);
                Some(if fits { linear::fit(g, meta)? } else { g })
            }
            (g, _) => g,
        });
    }
    Ok(fitted)
}
