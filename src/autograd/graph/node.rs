//! Node and Edge: the graph that backward walks. What a node runs is in `vjp`.

use crate::array::{Array, Device};
use crate::autograd::diagnostics::missing_gradient::PathEnds;
use crate::autograd::diagnostics::{growing_graph, unused_total};
use crate::autograd::dispatch::call_site::Site;
use crate::autograd::dispatch::op::Saves;
use crate::autograd::engine::hooks::NodeHooks;
use crate::autograd::graph::saved::Saved;
use crate::autograd::graph::vjp::{Unpacked, Vjp};
use crate::autograd::tensor::Tensor;
use crate::autograd::tensor::lock::{SpinLock, SpinLockGuard};
use crate::autograd::tensor::slot::ObjectSlot;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Points from a node to the node that produced one of its inputs, and says which output of that node the input was.
#[derive(Clone, Debug)]
pub struct Edge {
    pub node: Arc<Node>,
    pub nr: u32,
}

pub type Edges = SmallVec<[Option<Edge>; 2]>;

/// Shape, dtype and device of a node's output. Its gradient must match them.
#[derive(Clone, Debug)]
pub struct OutMeta {
    pub shape: Dims,
    pub dtype: DType,
    pub device: Device,
}

impl OutMeta {
    /// Whether a tensor has this shape, dtype and device.
    pub(in crate::autograd) fn is_of(&self, t: &Tensor) -> bool {
        t.with_array(|a| a.shape() == &self.shape[..] && a.dtype() == self.dtype && a.device() == self.device)
    }

    #[inline]
    pub fn of(array: &Array) -> OutMeta {
        OutMeta { shape: array.layout().dims(), dtype: array.dtype(), device: array.device() }
    }
}

/// The operation inside a node. Pointwise rows are the common case and need no allocation.
pub enum NodeOp {
    Pointwise(crate::autograd::dispatch::pointwise::PointwiseOp),
    Other(Arc<dyn Vjp>),
    /// A leaf: gradients end in its `.grad`.
    Accumulate(Tensor),
}

pub struct Node {
    seq: u64,
    op: NodeOp,
    edges: Edges,
    outs: SmallVec<[OutMeta; 1]>,
    /// Which inputs and outputs lie in `NodeState::saved`.
    pub(in crate::autograd) saves: Saves,
    site: Site,
    state: SpinLock<NodeState>,
    slot: ObjectSlot,
    pub(in crate::autograd) mark: Mark,
}

/// The pass that discovered this node last, and its index there (see `engine::node_index`).
#[derive(Default)]
pub(in crate::autograd) struct Mark {
    pub pass: AtomicU64,
    pub at: AtomicU32,
    /// What diagnostics know of the node (see `diagnostics::growing_graph`).
    pub state: AtomicU32,
}

#[derive(Default)]
pub(in crate::autograd) struct NodeState {
    pub saved: SmallVec<[Saved; 2]>,
    pub freed: bool,
    pub hooks: Option<Box<NodeHooks>>,
    /// Data that the embedding language attaches to the node.
    metadata: Option<Arc<dyn Any + Send + Sync>>,
}

/// Taken after a node's edges are known, so every edge points to a smaller number. Accumulate nodes have the largest number, so they run first
/// whenever they are ready.
fn next_seq() -> u64 {
    NEXT_SEQ.fetch_add(1, Ordering::Relaxed)
}

static NEXT_SEQ: AtomicU64 = AtomicU64::new(1);

/// The number of the node that is recorded next.
pub(in crate::autograd) fn seq_to_come() -> u64 {
    NEXT_SEQ.load(Ordering::Relaxed)
}

impl Node {
    /// For `record::begin` alone.
    #[inline(always)]
    pub(in crate::autograd) fn new(
        op: NodeOp,
        edges: Edges,
        outs: SmallVec<[OutMeta; 1]>,
        saved: SmallVec<[Saved; 2]>,
        saves: Saves,
        site: Site,
    ) -> Arc<Node> {
        // Written in place: `Arc::new` would copy it.
        let memory = Arc::into_raw(Arc::<Node>::new_uninit()).cast_mut();
        // SAFETY: a new Arc has one owner, which writes it before it is used as what it was made for.
        unsafe {
            (*memory).write(Node {
                seq: next_seq(),
                op,
                edges,
                outs,
                saves,
                site,
                state: SpinLock::new(NodeState { saved, ..NodeState::default() }),
                slot: ObjectSlot::default(),
                mark: Mark::default(),
            });
            let node = Arc::from_raw(memory.cast::<Node>());
            if growing_graph::is_looking() {
                growing_graph::look_at(&node);
            }
            node
        }
    }

    pub(crate) fn accumulate(variable: Tensor, meta: OutMeta, site: Site) -> Arc<Node> {
        Arc::new(Node {
            seq: u64::MAX,
            op: NodeOp::Accumulate(variable),
            edges: Edges::new(),
            outs: SmallVec::from_elem(meta, 1),
            saves: Saves::NOTHING,
            site,
            state: SpinLock::default(),
            slot: ObjectSlot::default(),
            mark: Mark::default(),
        })
    }

    #[inline]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    #[inline]
    pub fn op(&self) -> &NodeOp {
        &self.op
    }

    #[inline]
    pub fn edges(&self) -> &[Option<Edge>] {
        &self.edges
    }

    #[inline]
    pub fn outs(&self) -> &[OutMeta] {
        &self.outs
    }

    #[inline]
    pub fn site(&self) -> Site {
        self.site
    }

    #[inline]
    pub fn slot(&self) -> &ObjectSlot {
        &self.slot
    }

    pub fn name(&self) -> String {
        match &self.op {
            NodeOp::Pointwise(p) => p.node_name().into(),
            NodeOp::Other(o) => o.node_name().into_owned(),
            NodeOp::Accumulate(_) => "AccumulateGrad".into(),
        }
    }

    /// The leaf of an accumulate node.
    pub fn variable(&self) -> Option<&Tensor> {
        match &self.op {
            NodeOp::Accumulate(t) => Some(t),
            _ => None,
        }
    }

    /// The foreign backward of a custom Function.
    pub fn foreign(&self) -> Option<&dyn Any> {
        match &self.op {
            NodeOp::Other(o) => o.as_any(),
            _ => None,
        }
    }

    /// The mutable part of a node. No foreign code may run while it is locked.
    #[inline]
    pub(in crate::autograd) fn state(&self) -> SpinLockGuard<'_, NodeState> {
        self.state.lock()
    }

    // ---- saved tensors -----------------------------------------------------------------------------------------------

    pub fn saved_len(&self) -> usize {
        self.state.lock().saved.len()
    }

    /// Sets the saved tensors after the node was made (custom Functions save when their forward has run).
    pub fn save(&self, saved: SmallVec<[Saved; 2]>) {
        let old = std::mem::replace(&mut self.state.lock().saved, saved);
        drop(old);
    }

    /// Saves one more value.
    pub(in crate::autograd) fn save_more(&self, saved: Saved) {
        self.state.lock().saved.push(saved);
    }

    /// Stores the tangent of output `j` with it, if the output is saved.
    pub(in crate::autograd) fn store_tangent(&self, j: usize, tangent: &Tensor) -> bool {
        let mut old = None;
        self.each_output(|nr, tangent_slot| {
            let here = nr as usize == j;
            if here {
                old = tangent_slot.replace(tangent.clone());
            }
            here
        })
    }

    /// Drops the tangents of saved outputs.
    pub(in crate::autograd) fn drop_tangents(&self) {
        let mut old = Vec::new();
        self.each_output(|_, tangent_slot| {
            old.extend(tangent_slot.take());
            false
        });
    }

    /// Whether `f`, called with each saved output's number and tangent, returns true for one.
    fn each_output(&self, mut f: impl FnMut(u32, &mut Option<Tensor>) -> bool) -> bool {
        let mut state = self.state.lock();
        state.saved.iter_mut().any(|s| match s {
            Saved::Output(o) => {
                let nr = o.nr();
                f(nr, o.tangent_mut())
            }
            _ => false,
        })
    }

    pub fn is_freed(&self) -> bool {
        self.state.lock().freed
    }

    /// Whether a backward pass has run the node and freed its graph; unlike `is_freed` also where nothing was saved.
    pub fn was_run(&self) -> bool {
        growing_graph::is_freed(self)
    }

    /// A copy of all saved values.
    pub(in crate::autograd) fn saved(&self) -> SmallVec<[Saved; 2]> {
        self.state.lock().saved.clone()
    }

    /// The saved value at a position.
    pub fn saved_at(&self, position: usize) -> Result<Saved> {
        {
            let state = self.state.lock();
            if !state.freed {
                return Ok(state.saved.get(position).cloned().unwrap_or(Saved::Nothing));
            }
        }
        // Not under the lock: the error describes lines, which needs the host.
        Err(self.freed_error())
    }

    pub fn unpack(self: &Arc<Node>, position: usize) -> Result<Tensor> {
        self.saved_at(position)?.unpack(self)
    }

    /// Unpacks everything that hooks have packed, in order; None at other positions.
    pub(super) fn unpack_packed(self: &Arc<Node>) -> Result<Unpacked> {
        let all = self.saved();
        let mut out = Unpacked::from_elem(None, all.len());
        for position in self.saved_order() {
            if let Some(Saved::Packed(p)) = all.get(position) {
                out[position] = Some(p.unpack(self)?);
            }
        }
        Ok(out)
    }

    /// Drops the saved input at a position. What hooks have packed stays until `release`.
    pub(super) fn forget(&self, position: usize) {
        let saved = match self.state.lock().saved.get_mut(position) {
            Some(s @ Saved::Input { .. }) => std::mem::replace(s, Saved::Nothing),
            _ => return,
        };
        // Outside the lock, as below.
        drop(saved);
    }

    /// Frees the saved tensors. Using them again is an error.
    pub(crate) fn release(&self) {
        let saved = {
            let mut state = self.state.lock();
            let nothing = match &self.op {
                NodeOp::Other(_) => false,
                NodeOp::Pointwise(p) => state.saved.is_empty() || p.saves_only_its_number(),
                NodeOp::Accumulate(_) => state.saved.is_empty(),
            };
            if nothing {
                return;
            }
            state.freed = true;
            std::mem::take(&mut state.saved)
        };
        // Outside the lock: the last handle of a tensor may own foreign objects.
        drop(saved);
        if let NodeOp::Other(o) = &self.op {
            o.release();
        }
    }

    /// Visits hooks and metadata, saved tensors and their nodes, unless another thread holds the lock.
    pub(crate) fn try_parts(&self, hook: &mut dyn FnMut(&dyn Any), saved: &mut dyn FnMut(&Tensor), edge: &mut dyn FnMut(&Arc<Node>)) {
        let Some(state) = self.state.try_lock() else { return };
        if let Some(h) = &state.hooks {
            h.tensor.iter().for_each(|(_, _, h)| hook(h.as_any()));
            h.pre.iter().chain(&h.post).for_each(|(_, h)| hook(h.as_any()));
        }
        if let Some(m) = state.metadata.as_ref().filter(|m| Arc::strong_count(m) == 1) {
            hook(&**m);
        }
        for s in &state.saved {
            match s {
                Saved::Copy(c) => {
                    if let Some(e) = &c.1 {
                        edge(&e.node);
                    }
                }
                Saved::Input { tensor, .. } => saved(tensor),
                Saved::Alias(a) => saved(a.separate()),
                Saved::Packed(p) if Arc::strong_count(p) == 1 && Arc::strong_count(p.packed()) == 1 => hook(p.packed().as_any()),
                _ => {}
            }
        }
    }

    /// Frees everything that the node holds, hooks included.
    pub fn release_for_good(&self) {
        let (saved, hooks, metadata) = {
            let mut state = self.state.lock();
            state.freed = true;
            (std::mem::take(&mut state.saved), state.hooks.take(), state.metadata.take())
        };
        drop(saved);
        drop(hooks);
        drop(metadata);
        if let NodeOp::Other(o) = &self.op {
            o.release();
        }
    }

    #[cold]
    pub fn freed_error(&self) -> Error {
        Error::graph(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). \
             Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if \
             you need to backward through the graph a second time or if you need to access saved tensors after calling backward.",
        )
        .note(format!("{} was recorded by the forward call at {}", self.name(), self.site.text()))
    }

    /// The data of the embedding language; made by `make` when first asked for.
    pub fn metadata(&self, make: impl FnOnce() -> Arc<dyn Any + Send + Sync>) -> Arc<dyn Any + Send + Sync> {
        if let Some(m) = &self.state.lock().metadata {
            return m.clone();
        }
        let made = make();
        // Another thread may have been faster; then `made` is dropped here, after the lock.
        self.state.lock().metadata.get_or_insert_with(|| made.clone()).clone()
    }

    // ---- hooks -------------------------------------------------------------------------------------------------------

    pub fn with_hooks<R>(&self, f: impl FnOnce(&mut NodeHooks) -> R) -> R {
        f(self.state.lock().hooks.get_or_insert_default())
    }

    /// A copy of the hooks as they are now, or None.
    pub(crate) fn hooks(&self) -> Option<NodeHooks> {
        let state = self.state.lock();
        let h = state.hooks.as_ref().filter(|h| !h.is_empty())?;
        Some(NodeHooks {
            tensor: h.tensor.clone(),
            retain: h.retain.clone(),
            pre: h.pre.clone(),
            post: h.post.clone(),
            path_ends: Vec::new(),
        })
    }

    /// The ends of the paths of those inputs that the node has no edge to.
    pub(in crate::autograd) fn path_ends(&self) -> Vec<Arc<PathEnds>> {
        self.state.lock().hooks.as_ref().map_or_else(Vec::new, |h| h.path_ends.clone())
    }

    pub(crate) fn remove_hook(&self, id: u64) {
        let removed = {
            let mut state = self.state.lock();
            let before = state.hooks.as_ref().map(|h| NodeHooks {
                tensor: h.tensor.clone(),
                retain: Vec::new(),
                pre: h.pre.clone(),
                post: h.post.clone(),
                path_ends: Vec::new(),
            });
            if let Some(h) = state.hooks.as_mut() {
                h.remove(id);
            }
            before
        };
        drop(removed);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} seq {}>", self.name(), self.seq)
    }
}

// ---- dropping a graph without recursion ------------------------------------------------------------------------------

thread_local! {
    /// Nodes to be dropped while a drop is in progress on this thread; None when none is.
    static DOOMED: RefCell<Option<Vec<Arc<Node>>>> = const { RefCell::new(None) };
}

/// Drops a node; inside the drop of another one it is queued until that is done.
#[inline]
pub(crate) fn defer_drop(node: Arc<Node>) {
    let node = if Arc::strong_count(&node) > 1 {
        // Probably not the last handle. If it is, `Drop for Node` defers what the node holds.
        node
    } else {
        // Thread-local storage is gone while a thread ends. Then the plain drop below has to do.
        match DOOMED.try_with(|d| match &mut *d.borrow_mut() {
            Some(queue) => {
                queue.push(node.clone());
                true
            }
            None => false,
        }) {
            Ok(true) | Ok(false) | Err(_) => node,
        }
    };
    drop(node);
}

impl Drop for Node {
    fn drop(&mut self) {
        growing_graph::dropped(self);
        unused_total::dropped(self);
        if self.edges.is_empty() && self.state.get_mut().saved.is_empty() {
            return;
        }
        let outermost = DOOMED
            .try_with(|d| {
                let mut d = d.borrow_mut();
                let first = d.is_none();
                let queue = d.get_or_insert_default();
                for e in self.edges.drain(..).flatten() {
                    queue.push(e.node);
                }
                first
            })
            .unwrap_or(false);
        // Saved tensors hold nodes too, which `defer_drop` queues.
        drop(std::mem::take(&mut self.state.get_mut().saved));
        if outermost {
            while let Ok(Some(node)) = DOOMED.try_with(|d| d.borrow_mut().as_mut().and_then(Vec::pop)) {
                drop(node);
            }
            let _ = DOOMED.try_with(|d| *d.borrow_mut() = None);
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Every recorded operation holds one until backward has run, so a larger node costs memory and time in each. Three numbers that may be complex
    /// take 72 bytes of it.
    #[test]
    fn a_node_is_no_larger_than_it_was() {
        assert_eq!((size_of::<Node>(), size_of::<Saved>(), size_of::<Edge>(), size_of::<OutMeta>()), (296, 16, 16, 48));
    }
}
