//! What a tensor alone keeps alive, for the garbage collector of the embedding language.
//!
//! Only single owners are followed, and no lock is waited for: an object behind a shared handle may be reachable from elsewhere, and counting it
//! would free it too early.

use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::tensor::{Tensor, WeakTensor};
use std::any::Any;
use std::sync::Arc;

/// A foreign object that a tensor's history keeps alive.
pub enum Foreign<'a> {
    /// Held by a tensor's slot.
    Slot(*mut ()),
    /// A hook.
    Hook(&'a dyn Any),
    /// The backward of a custom Function.
    Function(&'a dyn Any),
}

enum Reachable {
    Tensor(Tensor),
    Node(Arc<Node>),
}

/// Calls `f` with every foreign object that is reachable from `t` through single owners. `t` itself must have exactly one other handle (the
/// caller's object). Iterative, because graphs are deep.
pub fn visit_foreign(t: &Tensor, f: &mut dyn FnMut(Foreign<'_>)) {
    // The clone in the work list is the second holder.
    visit(Reachable::Tensor(t.clone()), false, f);
}

/// As `visit_foreign`, for a node that has exactly one other handle (the caller's object). `function`: with the node's own Function.
pub fn visit_node(node: Arc<Node>, function: bool, f: &mut dyn FnMut(Foreign<'_>)) {
    visit(Reachable::Node(node), function, f);
}

/// Follows an edge that alone holds its node. A node that its own object holds, too, is that object's matter: only that is shown.
fn follow(edge: &Edge, work: &mut Vec<Reachable>, f: &mut dyn FnMut(Foreign<'_>)) {
    match (Arc::strong_count(&edge.node), edge.node.op()) {
        (1, _) => work.push(Reachable::Node(edge.node.clone())),
        (2, NodeOp::Other(o)) if o.owned_by_object() => {
            if let Some(a) = o.as_any() {
                f(Foreign::Function(a));
            }
        }
        _ => {}
    }
}

/// `own`: whether the object of the start is shown.
fn visit(start: Reachable, own: bool, f: &mut dyn FnMut(Foreign<'_>)) {
    let mut shown = own;
    let mut work = vec![start];
    while let Some(w) = work.pop() {
        match w {
            Reachable::Tensor(t) => {
                if shown && let Some((p, true)) = t.slot().get() {
                    f(Foreign::Slot(p));
                }
                shown = true;
                let Some(core) = t.try_read() else { continue };
                if let Some(m) = &core.meta {
                    for (_, h) in &m.hooks.tensor {
                        f(Foreign::Hook(h.as_any()));
                    }
                    for (_, h) in &m.hooks.post_accumulate {
                        f(Foreign::Hook(h.as_any()));
                    }
                    if let Some(g) = &m.grad
                        && g.holders() == 1
                    {
                        work.push(Reachable::Tensor(g.clone()));
                    }
                }
                if let Some(e) = &core.grad_fn {
                    follow(e, &mut work, f);
                }
            }
            Reachable::Node(n) => {
                if shown
                    && let NodeOp::Other(o) = n.op()
                    && Arc::strong_count(o) == 1
                    && let Some(a) = o.as_any()
                {
                    f(Foreign::Function(a));
                }
                shown = true;
                n.try_parts(&mut |h| f(Foreign::Hook(h)), &mut |s| {
                    if s.holders() == 1 {
                        work.push(Reachable::Tensor(s.clone()));
                    }
                });
                for e in n.edges().iter().flatten() {
                    follow(e, &mut work, f);
                }
            }
        }
    }
}

/// If only the histories of these tensors hold `node`, the number of places where they do. Each history must be held by one tensor alone.
pub fn sole_places(node: &Arc<Node>, tensors: &[WeakTensor]) -> Option<usize> {
    let mut references = 0;
    let mut work: Vec<Arc<Node>> = Vec::new();
    for t in tensors.iter().filter_map(WeakTensor::upgrade) {
        let mut reached = t.try_read().and_then(|core| core.grad_fn.as_ref().map(|e| e.node.clone()));
        while let Some(n) = reached.take().or_else(|| work.pop()) {
            if Arc::ptr_eq(&n, node) {
                references += 1;
            } else if Arc::strong_count(&n) == 2 {
                // Held by the edge that led here and by this walk: the node of an in-place write to the tensor.
                work.extend(n.edges().iter().flatten().map(|e| e.node.clone()));
            }
        }
    }
    // The caller holds one handle too.
    (Arc::strong_count(node) == references + 1).then_some(references)
}

/// Drops what `t` alone keeps alive: hooks, gradient and history. Called when a cycle through it is garbage.
pub fn clear(t: &Tensor) {
    let (meta, edge) = {
        let mut core = t.write();
        let meta = core.meta.as_mut().map(|m| (std::mem::take(&mut m.hooks), m.grad.take()));
        (meta, core.grad_fn.take())
    };
    if let Some(e) = &edge
        && Arc::strong_count(&e.node) == 1
    {
        e.node.release_for_good();
    }
    drop(meta);
    drop(edge);
}
