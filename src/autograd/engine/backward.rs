//! One backward pass: runs nodes from the roots on, newest first, and delivers gradients to leaves and to the inputs asked for.

use crate::array::fusion;
use crate::autograd::diagnostics::anomaly;
use crate::autograd::diagnostics::missing_gradient;
use crate::autograd::diagnostics::profiler::{self, HandedProfile};
use crate::autograd::diagnostics::{growing_graph, unused_total};
use crate::autograd::dispatch::apply::run_vjp_with;
use crate::autograd::dispatch::call_site::{self, Inherit, Site};
use crate::autograd::dispatch::fast_path::vjp_direct;
use crate::autograd::dispatch::mode::{self, Mode, ModeGuard};
use crate::autograd::engine::accumulate;
use crate::autograd::engine::cut;
use crate::autograd::engine::edge_fit::{fit_at, is_foreign, with_forward_line};
use crate::autograd::engine::foreign_run;
use crate::autograd::engine::fork::{self, RunningPass, WaitingPass};
use crate::autograd::engine::graph_task::{self, MAX_DEPTH, TaskGuard};
use crate::autograd::engine::hooks::{Grads, NodeHooks};
use crate::autograd::engine::input_buffer::{Gradient, InputBuffers, NO_INDEX};
use crate::autograd::engine::node_hooks;
use crate::autograd::engine::node_index::NodeIndex;
use crate::autograd::engine::ready_queue::{ReadyNode, ReadyQueue};
use crate::autograd::engine::task_plan;
use crate::autograd::engine::thread_state::ThreadState;
use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::graph::saved_hooks;
use crate::autograd::graph::vjp::AfterRun;
use crate::autograd::tensor::Tensor;
use crate::autograd::tensor::grad::{fit_edge, is_grad_dtype_used};
use crate::autograd::transforms::level::{self, UnrecordedLevel};
use crate::error::{Error, Result, caught, of_panic, panic_message, within};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// How a backward pass is to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub retain_graph: bool,
    pub create_graph: bool,
    /// The edges whose gradients are returned. If empty, gradients are accumulated in `.grad` of all leaves.
    pub inputs: Vec<Edge>,
    /// Gradients at `inputs` are accumulated (in leaves, and in tensors with `retain_grad`) instead of returned.
    pub accumulate: bool,
    /// Makes it an error if one of `inputs`, or without them a known leaf, gets no gradient.
    pub strict: bool,
    /// The transform level of the roots.
    pub level: u32,
    /// The names of `inputs` in errors.
    pub names: Vec<String>,
    /// The line that called backward; used if the pass records in anomaly mode.
    pub call_site: Site,
}

/// The state of a node during one pass. The roots keep the node alive.
struct TaskNode<'a> {
    node: &'a Arc<Node>,
    /// How many edges to this node start at nodes that have not run yet.
    dependencies: u32,
    /// Whether one of `Options::inputs` is this node or behind it.
    needed: bool,
    /// Whether the gradient of this node is returned.
    captured: bool,
    /// Whether a choice has made its gradient (`cut`).
    is_marked: bool,
    /// For each output of the node, the index of its input buffer; `NO_INDEX` if no gradient has arrived.
    grads: SmallVec<[u32; 4]>,
    /// For each edge of the node, the index of the node it points to; `NO_INDEX` for none.
    targets: SmallVec<[u32; 4]>,
}

const FRESH_STACK: usize = 16 << 20;

thread_local! {
    /// How many nodes this thread's last pass had, within limits: passes resemble each other, and growing copies.
    static LAST_PASS: Cell<usize> = const { Cell::new(16) };
}

/// Runs backward from `roots` with these gradients. Returns the gradients at `options.inputs`.
pub fn run(roots: Vec<(Edge, Tensor)>, options: &Options) -> Result<Vec<Option<Tensor>>> {
    let Some(guard) = TaskGuard::enter() else { return on_fresh_thread(roots, options) };
    growing_graph::report()?;
    let _running = RunningPass::begin();
    let _recorded = options.create_graph.then(unused_total::RecordingPass::begin);
    let found = run_here(roots, options)?;
    if graph_task::has_callbacks() {
        let _mode = ModeGuard::grad(options.create_graph);
        let state = ThreadState::now();
        let done = guard.finish();
        state.restore();
        done?;
    }
    Ok(found)
}

fn on_fresh_thread(roots: Vec<(Edge, Tensor)>, options: &Options) -> Result<Vec<Option<Tensor>>> {
    if !graph_task::fresh_threads() {
        return Err(Error::runtime(format!(
            "backward: {MAX_DEPTH} passes run inside each other on this thread, and set_multithreading_enabled(False) keeps the next one from \
             going on on another"
        )));
    }
    let mode: Mode = mode::current();
    let hooks = saved_hooks::stack();
    let levels = level::current_stack();
    let profile = HandedProfile::of_this_thread();
    let _waiting = WaitingPass::begin();
    std::thread::scope(|s| {
        let thread = std::thread::Builder::new().stack_size(FRESH_STACK).spawn_scoped(s, || {
            mode::set(mode);
            saved_hooks::install(hooks);
            level::install(levels);
            profile.install();
            // A panic is reported to the waiting thread as an error.
            caught(|| run(roots, options))
        });
        match thread {
            Ok(t) => t.join().unwrap_or_else(|payload| Err(of_panic(panic_message(&*payload)))),
            Err(e) => Err(Error::runtime(format!("backward: no thread for a pass nested {MAX_DEPTH} deep: {e}"))),
        }
    })
}

/// One backward pass.
struct GraphTask<'a> {
    options: &'a Options,
    nodes: Vec<TaskNode<'a>>,
    buffers: InputBuffers,
    /// For each of `Options::inputs`: node, output number, and its gradient.
    captures: Vec<(usize, u32, Option<Tensor>)>,
    ready_queue: ReadyQueue,
    retain_graph: bool,
    /// Whether gradients are accumulated in `.grad`.
    accumulates: bool,
    /// Whether nodes may take the fast path, which records nothing at any level.
    direct: bool,
    /// Whether a profiler recorded when the pass began: then each node is an event.
    profiled: bool,
    /// The thread's state as each node finds it.
    state: ThreadState,
    /// In anomaly mode, whether to look for nan.
    anomaly: Option<bool>,
    /// In strict mode: (index of a node, the node that returned None for it); and leaves that got no gradient.
    returned_none: Vec<(usize, &'a Arc<Node>)>,
    leaves_without_gradient: Vec<usize>,
}

fn run_here(roots: Vec<(Edge, Tensor)>, options: &Options) -> Result<Vec<Option<Tensor>>> {
    let (edges, grads): (Vec<Edge>, Vec<Tensor>) = roots.into_iter().unzip();
    let anomaly = anomaly::mode();
    if !options.retain_graph {
        growing_graph::pass_begins(&edges);
    }
    if options.strict
        && let Some(e) = missing_gradient::unreached(&edges, &options.inputs, &options.names)
    {
        return Err(e);
    }
    let mut task = GraphTask {
        options,
        nodes: Vec::with_capacity(LAST_PASS.get()),
        buffers: InputBuffers::default(),
        captures: Vec::new(),
        ready_queue: ReadyQueue::new(),
        retain_graph: options.retain_graph,
        accumulates: options.inputs.is_empty() || options.accumulate,
        direct: !options.create_graph
            && (options.level == 0 || !mode::is_grad_enabled())
            && anomaly.is_none()
            && mode::current().allows_seen_path(),
        profiled: profiler::is_on(),
        state: ThreadState::now(),
        anomaly,
        returned_none: Vec::new(),
        leaves_without_gradient: Vec::new(),
    };
    let starts = {
        // No foreign code runs in here.
        let mut index = NodeIndex::new();
        let starts = task.discover(&mut index, &edges);
        task.mark_needed(&index);
        LAST_PASS.set(task.nodes.len().clamp(16, 4096));
        starts
    };
    let _plan = task_plan::publish(options.inputs.is_empty(), || task.nodes.iter().filter(|v| v.needed).map(|v| v.node));
    // Above level 0 nothing is recorded at this level, while lower levels record as before.
    let quiet = (options.level > 0 && !options.create_graph).then(|| UnrecordedLevel::at(options.level));
    let _mode = ModeGuard::node(options.create_graph || quiet.is_some() && mode::is_grad_enabled());
    task.state.set_mode();
    for ((edge, grad), at) in edges.iter().zip(grads).zip(starts) {
        let grad = fit_edge(grad, edge)?;
        task.add(at, edge.nr as usize, Gradient::Tensor(grad))?;
    }
    for i in 0..task.nodes.len() {
        if task.nodes[i].dependencies == 0 {
            task.ready_queue.push(ReadyNode(task.nodes[i].node.seq(), i));
        }
    }
    while let Some(ReadyNode(_, i)) = task.ready_queue.pop() {
        fork::pause_for_forks();
        if is_foreign(task.nodes[i].node) {
            foreign_run::attached(|| task.run_foreign(i))?;
        } else {
            task.run_reported(i)?;
        }
    }
    if options.strict {
        task.check_all_reached()?;
    }
    Ok(task.captures.into_iter().map(|(_, _, g)| g).collect())
}

impl<'a> GraphTask<'a> {
    #[inline]
    fn add_node(&mut self, index: &mut NodeIndex, node: &'a Arc<Node>) -> usize {
        let next = self.nodes.len();
        let at = index.position(node, next as u32) as usize;
        if at == next {
            let (grads, targets) = (SmallVec::from_elem(NO_INDEX, node.outs().len()), SmallVec::new());
            self.nodes.push(TaskNode { node, dependencies: 0, needed: true, captured: false, is_marked: false, grads, targets });
        }
        at
    }

    /// Finds every node behind the roots and counts the edges that point to each. Returns the indices of the roots' nodes.
    fn discover(&mut self, index: &mut NodeIndex, roots: &'a [Edge]) -> Vec<usize> {
        let starts = roots.iter().map(|e| self.add_node(index, &e.node)).collect();
        let mut at = 0;
        while at < self.nodes.len() {
            let node = self.nodes[at].node;
            let mut targets = SmallVec::new();
            for e in node.edges() {
                targets.push(match e {
                    Some(e) => {
                        let i = self.add_node(index, &e.node);
                        self.nodes[i].dependencies += 1;
                        i as u32
                    }
                    None => NO_INDEX,
                });
            }
            self.nodes[at].targets = targets;
            at += 1;
        }
        starts
    }

    /// If inputs are given, only nodes on a path to one of them run.
    fn mark_needed(&mut self, index: &NodeIndex) {
        if self.options.inputs.is_empty() {
            return;
        }
        for v in &mut self.nodes {
            v.needed = false;
        }
        for e in &self.options.inputs {
            let at = index.find(&e.node);
            if !self.options.accumulate {
                // An input that is not reached keeps None.
                self.captures.push((at.unwrap_or(usize::MAX), e.nr, None));
            }
            if let Some(i) = at {
                self.nodes[i].needed = true;
                self.nodes[i].captured = !self.options.accumulate;
            }
        }
        // Depth first: a node is decided when everything behind it is. Each node is opened once.
        let mut opened = vec![false; self.nodes.len()];
        let mut path: Vec<(u32, u32)> = Vec::with_capacity(64);
        for root in 0..self.nodes.len() {
            if opened[root] {
                continue;
            }
            opened[root] = true;
            path.push((root as u32, 0));
            while let Some((i, next)) = path.last_mut() {
                let at = *i as usize;
                match self.nodes[at].targets.get(*next as usize) {
                    Some(&t) => {
                        *next += 1;
                        if t != NO_INDEX && !opened[t as usize] {
                            opened[t as usize] = true;
                            path.push((t, 0));
                        }
                    }
                    None => {
                        path.pop();
                        if self.behind_is_needed(at) {
                            self.nodes[at].needed = true;
                        }
                    }
                }
            }
        }
    }

    /// For each edge of a node, whether its gradient is needed.
    #[inline]
    fn needs(&self, i: usize) -> SmallVec<[bool; 4]> {
        let targets = &self.nodes[i].targets;
        let mut needs = SmallVec::with_capacity(targets.len());
        for &t in targets {
            needs.push(t != NO_INDEX && self.nodes[t as usize].needed);
        }
        needs
    }

    /// Whether a needed node lies behind this node.
    fn behind_is_needed(&self, i: usize) -> bool {
        self.nodes[i].targets.iter().any(|&t| t != NO_INDEX && self.nodes[t as usize].needed)
    }

    /// Adds a gradient to the input buffer of a node's output.
    #[inline]
    fn add(&mut self, at: usize, nr: usize, grad: Gradient) -> Result<()> {
        self.buffers.add(&mut self.nodes[at].grads[nr], grad, false, self.options.create_graph)
    }

    /// Runs the node of a custom Function, and those after it that are such nodes or leaves. A thread that is about to fork needs the host's
    /// lock, which is held here: then the run ends.
    fn run_foreign(&mut self, first: usize) -> Result<()> {
        let mut at = first;
        loop {
            self.run_reported(at)?;
            let Some(ReadyNode(_, next)) = self.ready_queue.peek() else { return Ok(()) };
            let node = self.nodes[*next].node;
            if fork::is_pending() || !(is_foreign(node) || matches!(node.op(), NodeOp::Accumulate(_))) {
                return Ok(());
            }
            at = *next;
            self.ready_queue.pop();
        }
    }

    fn run_reported(&mut self, i: usize) -> Result<()> {
        fusion::run_stale();
        self.run_node(i).map_err(|e| if self.anomaly.is_some() { anomaly::report(e, self.nodes[i].node) } else { e })
    }

    fn run_node(&mut self, i: usize) -> Result<()> {
        let TaskNode { node, needed, captured, .. } = self.nodes[i];
        let _event = if self.profiled { profiler::evaluation(node) } else { None };
        if self.direct && needed && !captured && within(|| node.name(), || self.run_direct(i, node))? {
            return Ok(());
        }
        let _running = self.anomaly.map(|_| call_site::RunningNode::new(node.site(), node.name()));
        let ran = self.run_with_hooks(i);
        self.state.restore();
        ran
    }

    fn run_with_hooks(&mut self, i: usize) -> Result<()> {
        let TaskNode { node, needed, captured, .. } = self.nodes[i];
        let buffers = std::mem::take(&mut self.nodes[i].grads);
        let mut grads: Grads = buffers.iter().map(|p| self.buffers.take(*p).map(Gradient::into_tensor)).collect();
        if !needed {
            // Only a root has gradients then.
            if grads.iter().any(Option::is_some) {
                node_hooks::tensor_hooks(node, node.hooks().as_ref(), &mut grads).map_err(|e| with_forward_line(e, node))?;
            }
            self.skip_node(i);
            return Ok(());
        }
        let hooks = node.hooks();
        node_hooks::tensor_hooks(node, hooks.as_ref(), &mut grads).map_err(|e| with_forward_line(e, node))?;
        if captured {
            for (_, nr, out) in self.captures.iter_mut().filter(|(at, ..)| *at == i) {
                *out = grads.get(*nr as usize).cloned().flatten();
            }
        }
        if let NodeOp::Accumulate(leaf) = node.op() {
            self.state.restore_mode();
            if self.accumulates {
                self.accumulate(i, leaf, hooks.as_ref(), grads).map_err(|e| with_forward_line(e, node))?;
            }
            return Ok(());
        }
        // The node may have been needed only for its own gradient.
        if self.options.inputs.is_empty() || self.behind_is_needed(i) {
            node_hooks::pre_hooks(node, hooks.as_ref(), &mut grads).map_err(|e| with_forward_line(e, node))?;
            if !is_foreign(node) {
                self.state.restore_mode();
            }
            self.run_vjp(i, node, hooks.as_ref(), grads)
        } else if self.options.accumulate {
            // As in PyTorch, the node of an input of `backward` runs, although nobody needs what it computes.
            node_hooks::pre_hooks(node, hooks.as_ref(), &mut grads).map_err(|e| with_forward_line(e, node))?;
            if is_foreign(node) {
                return self.run_vjp(i, node, hooks.as_ref(), grads);
            }
            let given = hooks.as_ref().filter(|h| !h.post.is_empty()).map(|_| grads);
            self.pass_none(i, node, hooks.as_ref(), given)
        } else {
            self.skip_node(i);
            Ok(())
        }
    }

    /// Accumulates a gradient in a leaf, between the hooks of its node.
    fn accumulate(&mut self, i: usize, leaf: &Tensor, hooks: Option<&NodeHooks>, mut grads: Grads) -> Result<()> {
        node_hooks::pre_hooks(self.nodes[i].node, hooks, &mut grads)?;
        let given = hooks.filter(|h| !h.post.is_empty()).map(|_| grads.clone());
        if grads[0].is_none() && self.options.strict {
            self.leaves_without_gradient.push(i);
        }
        let event = if self.profiled { profiler::backward(self.nodes[i].node) } else { None };
        accumulate::into_leaf(leaf, grads[0].take(), self.options.create_graph)?;
        drop(event);
        match given {
            Some(given) => node_hooks::post_hooks(hooks, &mut Grads::new(), &given),
            None => Ok(()),
        }
    }

    /// In strict mode: an error that names the inputs that got no gradient.
    fn check_all_reached(&self) -> Result<()> {
        let returned = self.captures.iter().filter(|(at, _, g)| g.is_none() && *at != usize::MAX).map(|(at, ..)| *at);
        let mut lines = Vec::new();
        for at in returned.chain(self.leaves_without_gradient.iter().copied()) {
            let node = self.nodes[at].node;
            let name = self.options.inputs.iter().position(|e| Arc::ptr_eq(&e.node, node)).and_then(|k| self.options.names.get(k));
            let by: Vec<String> = self
                .returned_none
                .iter()
                .filter(|(to, _)| *to == at)
                .map(|(_, by)| format!("{}, recorded at {}", by.name(), by.site().text()))
                .collect();
            lines.push(match &by[..] {
                [] => missing_gradient::label(name, node),
                _ => format!("{}: None was returned by {}", missing_gradient::label(name, node), by.join("; ")),
            });
        }
        if lines.is_empty() {
            return Ok(());
        }
        Err(Error::graph(format!("backward(strict=True): {} reached, but given no gradient\n  {}", lines.len(), lines.join("\n  "))))
    }

    /// Runs a pointwise node through the fast path, on arrays. Returns false, and has done nothing, where that does not apply.
    #[inline]
    fn run_direct(&mut self, i: usize, node: &'a Arc<Node>) -> Result<bool> {
        let NodeOp::Pointwise(op) = node.op() else { return Ok(false) };
        if self.nodes[i].is_marked && op.is_steep() {
            return Ok(false);
        }
        let needs = self.needs(i);
        let place = self.nodes[i].grads[0];
        let from = if self.profiled { profiler::moment() } else { None };
        let Some(made) = self.buffers.get(place).and_then(|g| g.with_array(|g| vjp_direct(node, op, &needs, g, self.retain_graph))) else {
            return Ok(false);
        };
        profiler::ran_backward(node, from);
        self.buffers.take(place);
        if !self.retain_graph {
            growing_graph::freed(node);
        }
        let marks = cut::marks(node, self.nodes[i].is_marked);
        for (k, (made, e)) in made.into_iter().zip(node.edges()).enumerate() {
            let Some(e) = e else { continue };
            let target = self.nodes[i].targets[k] as usize;
            if let Some(made) = made {
                let meta = &e.node.outs()[e.nr as usize];
                let grad = if made.shape() == &meta.shape[..] && made.dtype() == meta.dtype && !is_grad_dtype_used() {
                    Gradient::Array(made)
                } else {
                    Gradient::Tensor(fit_at(Tensor::new(made), e, k, node)?)
                };
                self.add(target, e.nr as usize, grad)?;
                self.nodes[target].is_marked |= marks;
            }
            self.dependency_done(target);
        }
        Ok(true)
    }

    /// Completes a node that does not run: its successors no longer depend on it.
    fn skip_node(&mut self, i: usize) {
        for t in std::mem::take(&mut self.nodes[i].targets) {
            if t != NO_INDEX {
                self.dependency_done(t as usize);
            }
        }
    }

    #[inline]
    fn dependency_done(&mut self, at: usize) {
        let v = &mut self.nodes[at];
        v.dependencies -= 1;
        if v.dependencies == 0 {
            self.ready_queue.push(ReadyNode(v.node.seq(), at));
        }
    }

    fn run_vjp(&mut self, i: usize, node: &'a Arc<Node>, hooks: Option<&NodeHooks>, grads: Grads) -> Result<()> {
        let needs = self.needs(i);
        let given = hooks.filter(|h| !h.post.is_empty()).map(|_| grads.clone());
        if grads.iter().all(Option::is_none) && !is_foreign(node) {
            return self.pass_none(i, node, hooks, given);
        }
        if needs.contains(&false) && !is_foreign(node) {
            node.check_unread().map_err(|e| with_forward_line(e, node))?;
        }
        let site = match self.anomaly {
            Some(_) if self.options.create_graph => call_site::derive(self.options.call_site, node.site(), node.name()),
            _ => node.site(),
        };
        let _site = Inherit::new(site);
        let event = if self.profiled { profiler::backward(node) } else { None };
        let gate = match node.op() {
            NodeOp::Pointwise(op) if self.nodes[i].is_marked && op.is_steep() => grads[0].clone(),
            _ => None,
        };
        let after = AfterRun::in_pass(given.is_some(), self.retain_graph || self.anomaly.is_some());
        let made = within(|| node.name(), || run_vjp_with(node, &needs, &grads, after));
        let mut outs = made.map_err(|e| with_forward_line(e, node))?;
        if let Some(gate) = gate {
            outs = cut::kept(outs, &gate)?;
        }
        drop(event);
        drop(grads);
        if let Some(given) = &given {
            self.check_count(node, &outs)?;
            for (k, (g, e)) in outs.iter_mut().zip(node.edges()).enumerate() {
                // A post hook sees the gradients fitted to the node's edges.
                *g = match (g.take(), e) {
                    (Some(g), Some(e)) if needs[k] => Some(fit_at(g, e, k, node)?),
                    (g, _) => g,
                };
            }
            node_hooks::post_hooks(hooks, &mut outs, given).map_err(|e| with_forward_line(e, node))?;
        }
        if !self.retain_graph {
            node.release();
            growing_graph::freed(node);
        }
        if self.anomaly == Some(true)
            && let Some(k) = anomaly::first_nan(&outs)?
        {
            let e = with_forward_line(Error::runtime(format!("Function '{}' returned nan values in its {k}th output.", node.name())), node);
            return Err(match anomaly::first_forward(self.nodes.iter().map(|v| &**v.node)) {
                Some(note) => e.note(note),
                None => e,
            });
        }
        self.deliver(i, node, outs, &needs)
    }

    /// Completes a node of an operation that computes no gradient, as if it had run: hooks are called, and saved tensors are unpacked and freed.
    fn pass_none(&mut self, i: usize, node: &'a Arc<Node>, hooks: Option<&NodeHooks>, given: Option<Grads>) -> Result<()> {
        node.check_saved().map_err(|e| with_forward_line(e, node))?;
        if let Some(given) = given {
            let mut outs = Grads::from_elem(None, node.edges().len());
            node_hooks::post_hooks(hooks, &mut outs, &given).map_err(|e| with_forward_line(e, node))?;
        }
        if !self.retain_graph {
            node.release();
            growing_graph::freed(node);
        }
        self.skip_node(i);
        Ok(())
    }

    fn check_count(&self, node: &Node, outs: &Grads) -> Result<()> {
        let n = node.edges().len();
        if outs.len() == n {
            return Ok(());
        }
        let text = format!("{} returned an incorrect number of gradients (expected {n}, got {})", node.name(), outs.len());
        Err(with_forward_line(Error::runtime(text), node))
    }

    /// Fits gradients to a node's edges and adds them to the input buffers there.
    fn deliver(&mut self, i: usize, node: &'a Arc<Node>, outs: Grads, needs: &[bool]) -> Result<()> {
        self.check_count(node, &outs)?;
        let marks = cut::marks(node, self.nodes[i].is_marked);
        for (k, g) in outs.into_iter().enumerate() {
            let Some(e) = &node.edges()[k] else { continue };
            let target = self.nodes[i].targets[k] as usize;
            if needs[k] {
                match g {
                    Some(g) => {
                        let g = fit_at(g, e, k, node)?;
                        self.add(target, e.nr as usize, Gradient::Tensor(g))?;
                        self.nodes[target].is_marked |= marks;
                    }
                    None if self.options.strict => self.returned_none.push((target, node)),
                    None => {}
                }
            }
            self.dependency_done(target);
        }
        Ok(())
    }
}
