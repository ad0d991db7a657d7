//! The one place that records: every kind of operation ends here.
//!
//! Operations and in-place writes (`apply.rs`), the fast path (`fast_path.rs`), views and writes through them (`graph/view.rs`) and custom
//! Functions of the embedding language proceed in the same way. First `History` determines, from the thread's mode and the inputs, what is
//! recorded. Then the result is computed. Then either a record of why there is no history is left (`diagnostics/missing_gradient.rs`), or `begin`
//! makes the node from a `NodeRecord` and `finish` completes it. No other file makes a node. What concerns all operations is implemented here,
//! once:
//!
//! - *Grad mode and inference mode*: `History`.
//! - *Transform levels*: `History::at_level`. A pass at a level that records nothing there (`level::is_unrecorded`) gives no edges.
//! - *Call site and anomaly mode*: `begin` takes the site from `call_site::current`, which in anomaly mode stands for the whole stack.
//! - *Saved tensor hooks*: `finish` lets the hooks in force pack what the node has saved.
//! - *Subclasses*: `__torch_function__` runs before dispatch (`python/overrides/`). Outputs are new tensors without an object of the embedding
//!   language, so they are of the plain class.
//! - *Autocast*: `autocast.rs` converts the inputs of listed functions, before they check dtypes and come to dispatch.
//! - *Profiler*: dispatch, views and the engine open an event (`diagnostics/profiler.rs`); `begin` gives it the node's number.
//! - *Watchers of operations*: `operation_watcher.rs` stands around the computation, below what is recorded.
//!
//! A watcher that has to see every operation sets a bit of `Mode::watch`. Then `Mode::allows_fast_path` is false, and every operation goes
//! through dispatch.

use crate::autograd::diagnostics::{anomaly, missing_gradient, profiler};
use crate::autograd::dispatch::call_site::Site;
use crate::autograd::dispatch::mode::{Mode, Watch};
use crate::autograd::dispatch::op::Saves;
use crate::autograd::graph::node::{Edge, Edges, Node, NodeOp, OutMeta};
use crate::autograd::graph::saved::Saved;
use crate::autograd::graph::saved_hooks;
use crate::autograd::tensor::{Core, Tensor};
use crate::autograd::transforms::level;
use crate::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

/// What is recorded of an operation, given the thread's mode and the inputs. Determined before the operation runs.
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
    /// Whether an input is no inference tensor. An operation on inference tensors alone is not recorded, even if some require grad.
    pub normal: bool,
}

/// Whether an input that needs a gradient gets an edge under this mode.
#[inline(always)]
pub(crate) fn records(mode: Mode) -> bool {
    mode.grad && !mode.inference
}

impl History {
    #[inline]
    pub(crate) fn new(mode: Mode) -> History {
        History { mode, needs: SmallVec::new(), ends: false, wrapped: false, dual: false, normal: false }
    }

    /// Reads the inputs one by one.
    pub fn of<'a>(mode: Mode, inputs: impl IntoIterator<Item = &'a Tensor>) -> History {
        let mut history = History::new(mode);
        for t in inputs {
            history.input(&t.read());
        }
        history
    }

    /// Adds the next input.
    #[inline]
    pub(crate) fn input(&mut self, core: &Core) {
        let needs = self.target(core);
        self.ends |= core.has_path_ends() || needs && !records(self.mode);
    }

    /// Adds the next input, which will be overwritten, so its path does not end here. Returns whether it needs a gradient.
    #[inline]
    pub(crate) fn target(&mut self, core: &Core) -> bool {
        let needs = core.needs_grad();
        self.needs.push(needs && records(self.mode));
        self.wrapped |= core.value.level() > 0;
        self.dual |= core.has_tangent();
        self.normal |= !core.inference;
        needs
    }

    /// The operation runs at this transform level.
    #[inline]
    pub(crate) fn at_level(&mut self, number: u32) {
        if level::is_unrecorded(number) || self.mode.watches(Watch::QuietBelow) && level::is_quiet(number) {
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

/// The description of a node.
pub struct NodeRecord {
    pub op: NodeOp,
    pub edges: Edges,
    pub outs: SmallVec<[OutMeta; 1]>,
    /// Which inputs and outputs lie in `saved`.
    pub saves: Saves,
    pub saved: SmallVec<[Saved; 2]>,
}

impl NodeRecord {
    /// A node that saves nothing yet.
    pub fn new(op: NodeOp, edges: Edges, outs: SmallVec<[OutMeta; 1]>) -> NodeRecord {
        NodeRecord { op, edges, outs, saves: Saves::NOTHING, saved: SmallVec::new() }
    }

    /// As `new`, with one output.
    pub fn single(op: NodeOp, edges: Edges, out: OutMeta) -> NodeRecord {
        NodeRecord::new(op, edges, SmallVec::from_elem(out, 1))
    }
}

/// Makes the node. A node that is never linked to a tensor belongs to no graph.
#[inline]
pub fn begin(entry: NodeRecord, site: Site) -> Arc<Node> {
    let NodeRecord { op, edges, outs, saves, saved } = entry;
    let made = node(op, edges, outs, saves, saved, site);
    profiler::recorded(&made);
    made
}

/// `begin` without the struct, inlined: where making the node is half of an operation's cost, nothing is moved twice.
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

/// Completes a node after its outputs point to it. `ended` is the inputs, if the paths of some end here.
#[inline]
pub(crate) fn finish(node: &Arc<Node>, ended: Option<&[&Tensor]>, outs: &[Tensor]) -> Result<()> {
    if let Some(inputs) = ended {
        missing_gradient::mark_node(node, inputs);
    }
    anomaly::look_at(node, outs)?;
    match saved_hooks::current() {
        Some(hooks) => saved_hooks::pack_node(node, &*hooks, outs),
        None => Ok(()),
    }
}

/// Makes `edge` the history of an existing tensor.
pub(crate) fn link(t: &Tensor, edge: Edge) {
    move_retained(t, &edge);
    let old = {
        let mut core = t.write();
        core.requires_grad = false;
        let old = core.grad_fn.replace(edge);
        core.set_path_ends(None);
        old
    };
    drop(old);
}

/// `.grad` of a tensor that keeps it follows the tensor to its new node.
pub(crate) fn move_retained(t: &Tensor, edge: &Edge) {
    if t.retains_grad() {
        let weak = t.downgrade();
        let old = t.read().grad_fn.clone();
        if let Some(old) = old {
            old.node.with_hooks(|h| h.retain.retain(|(_, w)| !w.same(&weak)));
        }
        edge.node.with_hooks(|h| h.retain.push((edge.nr, weak)));
    }
}
