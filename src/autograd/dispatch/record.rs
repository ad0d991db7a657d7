//! The one place that records: every way in ends here.
//!
//! Operations and writes in place (`apply.rs`), the short way (`fast_path.rs`), views and writes through them (`graph/view.rs`) and custom Functions of
//! the embedding language first ask `History` what the thread's mode and the inputs say, then compute, and then either leave a record of why
//! nothing was recorded (`diagnostics/missing_gradient.rs`) or give an `Entry` to `begin`, which makes the node, and its outputs to `finish`. No other file makes a
//! node. What concerns all operations stands here, once:
//!
//! - *Grad mode and inference mode*: `History`.
//! - *Transform levels*: `History::at_level`. A pass at a level that records nothing there (`level::is_unrecorded`) gives no edges.
//! - *Call site and anomaly mode*: `begin` is given the site that `call_site::current` finds, which in anomaly mode stands for the whole stack.
//! - *Saved tensor hooks*: `finish` lets those in force pack what the node has saved.
//! - *Subclasses*: `__torch_function__` is asked before dispatch (`python/overrides/`). Outputs are new tensors without an object of the
//!   embedding language, so they are of the plain class.
//! - *Autocast*: not built. It converts inputs, so it belongs in front of `History::of`.
//! - *Profiler*: not built. It opens a range where `History` is asked and closes it at the end of `finish`.
//!
//! Who wants to see every operation sets a bit of `Mode::watch`. `Mode::allows_fast_path` then says no, and nothing goes past dispatch.

use crate::autograd::diagnostics::missing_gradient;
use crate::autograd::dispatch::call_site::Site;
use crate::autograd::dispatch::mode::Mode;
use crate::autograd::dispatch::op::Saves;
use crate::autograd::graph::node::{Edge, Edges, Node, NodeOp, OutMeta};
use crate::autograd::graph::saved::Saved;
use crate::autograd::graph::saved_hooks;
use crate::autograd::tensor::{Core, Tensor};
use crate::autograd::transforms::level;
use crate::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

/// What the thread's mode and an operation's inputs say about its history, asked before it runs.
#[derive(Debug)]
pub struct History {
    pub mode: Mode,
    /// For each input, whether it gets an edge.
    pub needs: SmallVec<[bool; 4]>,
    /// Whether the path of an input ends here, or has ended before.
    pub ends: bool,
    /// Whether an input is of a transform level.
    pub wrapped: bool,
    /// Whether an input has a tangent.
    pub dual: bool,
}

/// Whether an input that needs a gradient gets an edge under this mode.
#[inline(always)]
pub(crate) fn records(mode: Mode) -> bool {
    mode.grad && !mode.inference
}

impl History {
    #[inline]
    pub(crate) fn new(mode: Mode) -> History {
        History { mode, needs: SmallVec::new(), ends: false, wrapped: false, dual: false }
    }

    /// Of inputs that are read one by one.
    pub fn of<'a>(mode: Mode, inputs: impl IntoIterator<Item = &'a Tensor>) -> History {
        let mut history = History::new(mode);
        for t in inputs {
            history.input(&t.read());
        }
        history
    }

    /// Looks at the next input.
    #[inline]
    pub(crate) fn input(&mut self, core: &Core) {
        let needs = self.target(core);
        self.ends |= core.has_path_ends() || needs && !records(self.mode);
    }

    /// Looks at the next input, which is going to be overwritten: its path ends nowhere. Returns whether it needs a gradient.
    #[inline]
    pub(crate) fn target(&mut self, core: &Core) -> bool {
        let needs = core.needs_grad();
        self.needs.push(needs && records(self.mode));
        self.wrapped |= core.value.level() > 0;
        self.dual |= core.has_tangent();
        needs
    }

    /// The operation runs at this transform level.
    #[inline]
    pub(crate) fn at_level(&mut self, number: u32) {
        if level::is_unrecorded(number) {
            self.needs.fill(false);
        }
    }

    /// Whether an input gets an edge.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.needs.contains(&true)
    }

    /// The edges of the inputs, None where no gradient is needed.
    pub fn edges<'a>(&self, inputs: impl IntoIterator<Item = &'a Tensor>) -> Result<Edges> {
        let mut edges = Edges::with_capacity(self.needs.len());
        for (t, n) in inputs.into_iter().zip(&self.needs) {
            edges.push(if *n { t.gradient_edge()? } else { None });
        }
        Ok(edges)
    }
}

/// An operation as the graph keeps it.
pub struct NodeRecord {
    pub op: NodeOp,
    pub edges: Edges,
    pub outs: SmallVec<[OutMeta; 1]>,
    /// Which inputs and outputs lie in `saved`.
    pub saves: Saves,
    pub saved: SmallVec<[Saved; 2]>,
}

impl NodeRecord {
    /// Of an operation that saves nothing, or says later what it saves.
    pub fn new(op: NodeOp, edges: Edges, outs: SmallVec<[OutMeta; 1]>) -> NodeRecord {
        NodeRecord { op, edges, outs, saves: Saves::NOTHING, saved: SmallVec::new() }
    }

    /// Of an operation with one output.
    pub fn single(op: NodeOp, edges: Edges, out: OutMeta) -> NodeRecord {
        NodeRecord::new(op, edges, SmallVec::from_elem(out, 1))
    }
}

/// Makes the node: the one place that does. What is never linked to a tensor belongs to no graph.
#[inline]
pub fn begin(entry: NodeRecord, site: Site) -> Arc<Node> {
    let NodeRecord { op, edges, outs, saves, saved } = entry;
    node(op, edges, outs, saves, saved, site)
}

/// `begin` with what an entry consists of, inlined: where a node is half of what an operation costs, nothing is moved twice.
#[inline(always)]
pub(in crate::autograd) fn node(
    op: NodeOp,
    edges: Edges,
    outs: SmallVec<[OutMeta; 1]>,
    saves: Saves,
    saved: SmallVec<[Saved; 2]>,
    site: Site,
) -> Arc<Node> {
    Node::new(op, edges, outs, saved, saves, site)
}

/// Ends the recording of a node that its outputs point to: `ended` are the inputs, if the paths of some have ended.
#[inline]
pub(crate) fn finish(node: &Arc<Node>, ended: Option<&[&Tensor]>, outs: &[Tensor]) -> Result<()> {
    if let Some(inputs) = ended {
        missing_gradient::mark_node(node, inputs);
    }
    match saved_hooks::current() {
        Some(hooks) => saved_hooks::pack_node(node, &*hooks, outs),
        None => Ok(()),
    }
}

/// Makes `edge` the history of a tensor that exists.
pub(crate) fn link(t: &Tensor, edge: Edge) {
    // `.grad` of a tensor that keeps it follows the tensor to its new node.
    let retains = t.meta(|m| m.is_some_and(|m| m.retains_grad));
    if retains {
        let weak = t.downgrade();
        let old = t.read().grad_fn.clone();
        if let Some(old) = old {
            old.node.with_hooks(|h| h.retain.retain(|(_, w)| !w.same(&weak)));
        }
        edge.node.with_hooks(|h| h.retain.push((edge.nr, weak)));
    }
    let old = {
        let mut core = t.write();
        core.requires_grad = false;
        let old = core.grad_fn.replace(edge);
        core.set_path_ends(None);
        old
    };
    drop(old);
}
