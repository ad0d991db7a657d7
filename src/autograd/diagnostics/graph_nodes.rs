//! The operations behind some roots in the order of recording, with their edges and what they have saved: what a drawing reads of a graph.

use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::graph::saved::Saved;
use crate::autograd::tensor::Value;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Operations, each after those that it takes results from, and the leaves that they take, in the order of their first use.
#[derive(Default)]
pub struct GraphNodes {
    pub nodes: Vec<Arc<Node>>,
    /// For each operation the operations that it takes, without repetition.
    pub inputs: Vec<Vec<usize>>,
    /// For each operation the leaves that it takes, without repetition.
    pub leaf_inputs: Vec<Vec<usize>>,
    /// For each operation whether an operand has no gradient.
    pub cut: Vec<bool>,
    /// The nodes of the leaves.
    pub leaves: Vec<Arc<Node>>,
    /// For each root its operation, or the leaf that it is.
    pub outputs: Vec<Result<usize, usize>>,
}

/// What a node has saved, as far as it can be read without the host language.
pub enum SavedMemory {
    /// Pairs of a storage's number and the bytes of the tensor; tensors without dimensions are left out.
    Known(Vec<(usize, usize)>),
    /// Hooks, a custom Function, or a pass that has freed it decide.
    Elsewhere,
}

type Index = FxHashMap<*const Node, usize>;

/// The graph behind these edges; None if it has more than `most` operations.
pub fn of(roots: &[Edge], most: usize) -> Option<GraphNodes> {
    let mut found: Vec<Arc<Node>> = Vec::new();
    let mut index = Index::default();
    let visit = |node: &Arc<Node>, found: &mut Vec<Arc<Node>>, index: &mut Index| {
        if node.variable().is_none() && !index.contains_key(&Arc::as_ptr(node)) {
            index.insert(Arc::as_ptr(node), found.len());
            found.push(node.clone());
        }
    };
    for r in roots {
        visit(&r.node, &mut found, &mut index);
    }
    let mut at = 0;
    while at < found.len() {
        if found.len() > most {
            return None;
        }
        let node = found[at].clone();
        for e in node.edges().iter().flatten() {
            visit(&e.node, &mut found, &mut index);
        }
        at += 1;
    }
    let nodes = in_order(found);
    Some(numbered(roots, nodes))
}

/// By the numbers of recording; where these are no order of the edges, by edges first.
fn in_order(mut nodes: Vec<Arc<Node>>) -> Vec<Arc<Node>> {
    nodes.sort_by_key(|n| n.seq());
    let operations = |n: &Arc<Node>| n.edges().iter().flatten().filter(|e| e.node.variable().is_none()).map(|e| e.node.clone()).collect();
    if nodes.iter().all(|n| n.edges().iter().flatten().all(|e| e.node.variable().is_some() || e.node.seq() < n.seq())) {
        return nodes;
    }
    let place: Index = nodes.iter().enumerate().map(|(i, n)| (Arc::as_ptr(n), i)).collect();
    let behind: Vec<Vec<Arc<Node>>> = nodes.iter().map(operations).collect();
    let mut waiting: Vec<usize> = behind.iter().map(Vec::len).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, taken) in behind.iter().enumerate() {
        for n in taken {
            users[place[&Arc::as_ptr(n)]].push(i);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..nodes.len()).filter(|i| waiting[*i] == 0).map(Reverse).collect();
    let mut result = Vec::with_capacity(nodes.len());
    while let Some(Reverse(i)) = ready.pop() {
        result.push(nodes[i].clone());
        for user in &users[i] {
            waiting[*user] -= 1;
            if waiting[*user] == 0 {
                ready.push(Reverse(*user));
            }
        }
    }
    result
}

fn numbered(roots: &[Edge], nodes: Vec<Arc<Node>>) -> GraphNodes {
    let place: Index = nodes.iter().enumerate().map(|(i, n)| (Arc::as_ptr(n), i)).collect();
    let mut leaf_place = Index::default();
    let mut made = GraphNodes::default();
    let mut leaf = |node: &Arc<Node>, leaves: &mut Vec<Arc<Node>>| {
        *leaf_place.entry(Arc::as_ptr(node)).or_insert_with(|| {
            leaves.push(node.clone());
            leaves.len() - 1
        })
    };
    for node in &nodes {
        let (mut inputs, mut own) = (Vec::new(), Vec::new());
        for e in node.edges().iter().flatten() {
            let (list, number) = match place.get(&Arc::as_ptr(&e.node)) {
                Some(at) => (&mut inputs, *at),
                None => (&mut own, leaf(&e.node, &mut made.leaves)),
            };
            if !list.contains(&number) {
                list.push(number);
            }
        }
        made.inputs.push(inputs);
        made.leaf_inputs.push(own);
        made.cut.push(node.edges().iter().any(Option::is_none));
    }
    made.outputs = roots.iter().map(|r| place.get(&Arc::as_ptr(&r.node)).copied().ok_or_else(|| leaf(&r.node, &mut made.leaves))).collect();
    made.nodes = nodes;
    made
}

/// What a node has saved. Nothing is unpacked or computed.
pub fn saved(node: &Node) -> SavedMemory {
    let foreign = |op: &NodeOp| matches!(op, NodeOp::Other(o) if o.as_any().is_some() || o.inner().is_some());
    if node.was_run() || foreign(node.op()) {
        return SavedMemory::Elsewhere;
    }
    let mut found = Vec::new();
    let mut add = |value: &Value| {
        let mut of = |a: &crate::array::Array| {
            if !a.shape().is_empty() {
                found.push((a.storage().id(), a.numel() * a.storage().element_size(a.dtype())));
            }
        };
        match value {
            Value::Array(a) => of(a),
            Value::Lazy(l) => of(&l.array),
            Value::Wrapped(w) => w.inner.with_array(of),
        }
    };
    for saved in &node.state().saved {
        match saved {
            Saved::Input { tensor, .. } => add(&tensor.read().value),
            Saved::Alias(a) => add(&a.separate().read().value),
            Saved::Output(o) => add(o.value()),
            Saved::Copy(c) => add(&c.0),
            Saved::Packed(_) => return SavedMemory::Elsewhere,
            Saved::Number(_) | Saved::Nothing => {}
        }
    }
    SavedMemory::Known(found)
}
