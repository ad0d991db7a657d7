//! What a graph keeps in memory: the nodes behind some roots, what each of them has saved, and whether anything else holds it.

use crate::array::{Array, Device, Storage};
use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::graph::saved::Saved;
use crate::autograd::tensor::{Tensor, Value};
use crate::host::live_memory::BufferKey;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How a node holds memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldKind {
    Input,
    Output,
    /// A copy of a value that was overwritten.
    Copy,
    /// The leaf whose gradient the node accumulates.
    Leaf,
}

impl HoldKind {
    pub fn name(self) -> &'static str {
        match self {
            HoldKind::Input => "input",
            HoldKind::Output => "output",
            HoldKind::Copy => "copy",
            HoldKind::Leaf => "leaf",
        }
    }
}

/// A node of the graph, and the positions in `GraphMemory::storages` of what it holds.
pub struct NodeMemory {
    pub node: Arc<Node>,
    pub holds: Vec<(HoldKind, usize)>,
    /// The nodes that it has edges to.
    pub next: Vec<usize>,
}

/// Memory that the graph holds. Storages that share one buffer are one.
#[derive(Debug)]
pub struct HeldStorage {
    pub device: Device,
    /// The number under which the storage is known to Python.
    pub id: usize,
    pub key: Option<BufferKey>,
    /// What the allocator counts: 0 for memory of somebody else, and for results that are not computed yet.
    pub bytes: usize,
    /// What tensors see of it.
    pub size: usize,
    /// Whether it is a result that is not computed yet and has no memory.
    pub pending: bool,
    /// Whether something outside of the graph holds it, too: a variable, another graph, a pending result.
    pub outside: bool,
}

/// The nodes behind some roots, roots first, and the memory that they hold.
#[derive(Default)]
pub struct GraphMemory {
    pub nodes: Vec<NodeMemory>,
    pub storages: Vec<HeldStorage>,
}

/// A tensor that the graph holds: how often, and how many handles there are.
struct SeenTensor {
    by_graph: usize,
    handles: usize,
    storage: usize,
}

#[derive(Default)]
struct MemoryWalk {
    made: GraphMemory,
    by_id: FxHashMap<usize, usize>,
    by_key: FxHashMap<BufferKey, usize>,
    tensors: FxHashMap<usize, SeenTensor>,
    /// For each storage: the handles that there are, by the storage's id, and how many of them are values that nodes hold.
    handles: FxHashMap<usize, (usize, usize, usize)>,
}

impl MemoryWalk {
    fn storage(&mut self, s: &Storage) -> usize {
        let id = s.id();
        if let Some(at) = self.by_id.get(&id) {
            return *at;
        }
        let held = s.held();
        let next = self.made.storages.len();
        let at = held.map_or(next, |(key, _)| *self.by_key.entry(key).or_insert(next));
        if at == next {
            let (key, bytes) = held.map_or((None, 0), |(key, bytes)| (Some(key), bytes));
            self.made.storages.push(HeldStorage {
                device: s.device(),
                id,
                key,
                bytes,
                size: s.bytes(),
                pending: held.is_none() && !s.is_external(),
                outside: false,
            });
        }
        self.by_id.insert(id, at);
        self.handles.insert(id, (at, s.handles(), 0));
        at
    }

    fn value(&mut self, array: &Array, own: usize) -> usize {
        let at = self.storage(array.storage());
        if let Some((_, _, values)) = self.handles.get_mut(&array.storage().id()) {
            *values += own;
        }
        at
    }

    /// A tensor that the graph holds once more. `extra` handles are this walk's own.
    fn tensor(&mut self, t: &Tensor, extra: usize) -> usize {
        if let Some(seen) = self.tensors.get_mut(&t.id()) {
            seen.by_graph += 1;
            return seen.storage;
        }
        let handles = t.holders() - extra;
        let (at, base) = {
            let core = t.read();
            let at = match &core.value {
                Value::Array(a) => self.value(a, 1),
                Value::Lazy(l) => self.value(&l.array, 1),
                Value::Wrapped(w) => w.inner.with_array(|a| self.value(a, 1)),
            };
            (at, core.meta.as_ref().and_then(|m| m.view.as_ref()).map(|v| v.base.clone()))
        };
        self.tensors.insert(t.id(), SeenTensor { by_graph: 1, handles, storage: at });
        if let Some(base) = base {
            // A view holds its base.
            self.tensor(&base, 1);
        }
        at
    }

    fn visit(&mut self, node: &Arc<Node>) -> Vec<(HoldKind, usize)> {
        let mut holds = Vec::new();
        if let Some(leaf) = node.variable() {
            holds.push((HoldKind::Leaf, self.tensor(leaf, 0)));
        }
        let state = node.state();
        for saved in &state.saved {
            holds.push(match saved {
                Saved::Input { tensor, .. } => (HoldKind::Input, self.tensor(tensor, 0)),
                Saved::Alias(a) => (HoldKind::Input, self.tensor(a.separate(), 0)),
                Saved::Output(o) => (HoldKind::Output, self.in_value(o.value())),
                Saved::Copy(c) => (HoldKind::Copy, self.in_value(&c.0)),
                Saved::Packed(_) | Saved::Number(_) | Saved::Nothing => continue,
            });
        }
        drop(state);
        if let NodeOp::Other(op) = node.op()
            && let Some(inner) = op.inner()
        {
            holds.extend(self.visit(inner));
        }
        holds
    }

    fn in_value(&mut self, value: &Value) -> usize {
        match value {
            Value::Array(a) => self.value(a, 1),
            Value::Lazy(l) => self.value(&l.array, 1),
            Value::Wrapped(w) => w.inner.with_array(|a| self.value(a, 1)),
        }
    }

    fn finish(mut self) -> GraphMemory {
        for t in self.tensors.values() {
            self.made.storages[t.storage].outside |= t.handles > t.by_graph;
        }
        for (at, handles, values) in self.handles.values() {
            self.made.storages[*at].outside |= handles > values;
        }
        self.made
    }
}

/// Walks the graph behind these edges. Nothing is unpacked, computed or changed.
pub fn of(roots: &[Edge]) -> GraphMemory {
    let mut walk = MemoryWalk::default();
    let mut index: FxHashMap<*const Node, usize> = FxHashMap::default();
    let mut order: Vec<Arc<Node>> = Vec::new();
    let mut position = |node: &Arc<Node>, order: &mut Vec<Arc<Node>>| {
        *index.entry(Arc::as_ptr(node)).or_insert_with(|| {
            order.push(node.clone());
            order.len() - 1
        })
    };
    for r in roots {
        position(&r.node, &mut order);
    }
    let mut at = 0;
    while at < order.len() {
        let node = order[at].clone();
        let mut next = Vec::new();
        for e in node.edges().iter().flatten() {
            next.push(position(&e.node, &mut order));
        }
        let holds = walk.visit(&node);
        walk.made.nodes.push(NodeMemory { node, holds, next });
        at += 1;
    }
    walk.finish()
}
