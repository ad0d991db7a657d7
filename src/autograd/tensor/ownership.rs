//! What a tensor alone keeps alive, for the garbage collector of the embedding language.
//!
//! Only what the tensor owns is followed: a shared value is passed through when all of its handles have been found on the way, since one that is
//! held from elsewhere may be in use there, and freeing it would be too early. No lock is waited for.
//!
//! Not here: values whose handles lie in several objects (`census`).

use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::tensor::{Tensor, WeakTensor};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// A foreign object that a tensor's history keeps alive.
pub enum Foreign<'a> {
    /// Held by a tensor's slot.
    Slot(*mut ()),
    /// A hook, or the data of a node.
    Hook(&'a dyn Any),
    /// The backward of a custom Function.
    Function(&'a dyn Any),
}

/// What is found in a tensor or a node: handles of others, and foreign objects.
pub(super) trait PartVisitor {
    fn tensor(&mut self, t: &Tensor);
    fn node(&mut self, n: &Arc<Node>);
    fn foreign(&mut self, f: Foreign<'_>);
}

/// Shows what a tensor holds itself. Nothing if another thread writes it.
pub(super) fn parts_of(t: &Tensor, v: &mut impl PartVisitor) {
    let Some(core) = t.try_read() else { return };
    if let Some(m) = &core.meta {
        for (_, h) in &m.hooks.tensor {
            v.foreign(Foreign::Hook(h.as_any()));
        }
        for (_, h) in &m.hooks.post_accumulate {
            v.foreign(Foreign::Hook(h.as_any()));
        }
        for held in [&m.grad, &m.tangent].into_iter().flatten() {
            v.tensor(held);
        }
        if let Some(view) = &m.view {
            v.tensor(&view.base);
        }
    }
    if let Some(e) = &core.grad_fn {
        v.node(&e.node);
    }
}

/// Shows what a node holds itself; `function`: with the object of its Function.
pub(super) fn parts_of_node(n: &Arc<Node>, function: bool, v: &mut impl PartVisitor) {
    match n.op() {
        NodeOp::Other(o) if Arc::strong_count(o) == 1 => {
            if function && let Some(a) = o.as_any() {
                v.foreign(Foreign::Function(a));
            }
            if let Some(inner) = o.inner() {
                v.node(inner);
            }
        }
        NodeOp::Accumulate(leaf) => v.tensor(leaf),
        _ => {}
    }
    let shared = RefCell::new(&mut *v);
    n.try_parts(&mut |h| shared.borrow_mut().foreign(Foreign::Hook(h)), &mut |s| shared.borrow_mut().tensor(s), &mut |e| {
        shared.borrow_mut().node(e)
    });
    for e in n.edges().iter().flatten() {
        v.node(&e.node);
    }
}

pub(super) enum Reachable {
    Tensor(Tensor),
    Node(Arc<Node>),
}

/// A walk through what one tensor or node owns. Iterative, because graphs are deep.
struct OwnedWalk<'a> {
    start: Option<&'a Tensor>,
    /// The handles of `start` that were found.
    of_start: usize,
    /// How many handles of shared values were found, by address.
    found: HashMap<usize, usize>,
    work: Vec<Reachable>,
    f: &'a mut dyn FnMut(Foreign<'_>),
}

impl PartVisitor for OwnedWalk<'_> {
    fn tensor(&mut self, t: &Tensor) {
        if self.start.is_some_and(|s| t.same(s)) {
            self.of_start += 1;
        } else if self.is_last(t.id(), t.holders()) {
            self.work.push(Reachable::Tensor(t.clone()));
        }
    }

    /// Follows an edge. A node that its own object holds, too, is that object's matter: only that is shown.
    fn node(&mut self, n: &Arc<Node>) {
        match n.op() {
            NodeOp::Other(o) if o.owned_by_object() => {
                if self.is_last(Arc::as_ptr(n).addr(), Arc::strong_count(n) - 1)
                    && let Some(a) = o.as_any()
                {
                    (self.f)(Foreign::Function(a));
                }
            }
            _ => {
                if self.is_last(Arc::as_ptr(n).addr(), Arc::strong_count(n)) {
                    self.work.push(Reachable::Node(n.clone()));
                }
            }
        }
    }

    fn foreign(&mut self, f: Foreign<'_>) {
        (self.f)(f);
    }
}

impl<'a> OwnedWalk<'a> {
    fn new(start: Option<&'a Tensor>, f: &'a mut dyn FnMut(Foreign<'_>)) -> OwnedWalk<'a> {
        OwnedWalk { start, of_start: 0, found: HashMap::new(), work: Vec::new(), f }
    }

    /// Whether the handle just found is the last of `count`.
    fn is_last(&mut self, address: usize, count: usize) -> bool {
        if count == 1 {
            return true;
        }
        let n = self.found.entry(address).or_default();
        *n += 1;
        *n == count
    }

    fn run(mut self) -> usize {
        if let Some(start) = self.start {
            parts_of(start, &mut self);
        }
        while let Some(w) = self.work.pop() {
            match w {
                Reachable::Tensor(t) => {
                    if let Some((p, true)) = t.object() {
                        (self.f)(Foreign::Slot(p));
                    }
                    parts_of(&t, &mut self);
                }
                Reachable::Node(n) => parts_of_node(&n, true, &mut self),
            }
        }
        self.of_start
    }
}

/// Calls `f` with every foreign object that a node keeps alive which has exactly one other handle (the caller's object). `function`: with the
/// object of its own Function.
pub fn visit_node(node: Arc<Node>, function: bool, f: &mut dyn FnMut(Foreign<'_>)) {
    let mut walk = OwnedWalk::new(None, f);
    parts_of_node(&node, function, &mut walk);
    walk.run();
}

/// Whether the caller's object and what the tensor itself keeps alive are its only holders.
fn is_owned_by_object(t: &Tensor) -> bool {
    if t.holders() == 1 {
        return true;
    }
    OwnedWalk::new(Some(t), &mut |_| {}).run() + 1 == t.holders()
}

/// Whether what the tensor itself keeps alive are its only holders: garbage, unless the embedding language refers to its object.
pub fn is_owned_by_itself(t: &Tensor) -> bool {
    OwnedWalk::new(Some(t), &mut |_| {}).run() == t.holders()
}

/// Calls `f` with every foreign object that a tensor keeps alive for which `is_owned_by_itself` is true.
pub fn visit_own_cycle(t: &Tensor, f: &mut dyn FnMut(Foreign<'_>)) {
    OwnedWalk::new(Some(t), f).run();
}

/// Whether a tensor may come to hold itself, so that only the garbage collector ends it: its gradient has a history, it was written in place, or
/// it is a leaf of a graph, through which a pass may give it a gradient with a history.
pub fn may_hold_itself(t: &Tensor) -> bool {
    let Some(core) = t.try_read() else { return false };
    if core.grad_fn.is_none() && core.meta.as_ref().is_some_and(|m| m.accumulate.strong_count() > 0) {
        return true;
    }
    let written = core.grad_fn.is_some() && core.with_storage(|s| core.version.current(s)).is_some_and(|n| n > 0);
    written || core.meta.as_ref().and_then(|m| m.grad.as_ref()).and_then(Tensor::try_read).is_some_and(|g| g.grad_fn.is_some())
}

/// Calls `f` with every foreign object that `t` keeps alive; with none if something else than the caller's object and those objects holds `t`.
pub fn visit_foreign(t: &Tensor, f: &mut dyn FnMut(Foreign<'_>)) {
    if is_owned_by_object(t) {
        OwnedWalk::new(Some(t), f).run();
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

/// Drops what `t` keeps alive if only its object and that hold it: hooks, gradient, tangent, base and history. Called when a cycle through it is
/// garbage.
pub fn clear(t: &Tensor) {
    if is_owned_by_object(t) {
        drop_parts(t);
    }
}

/// As `clear`, for a tensor that holds itself.
pub fn clear_own_cycle(t: &Tensor) {
    if is_owned_by_itself(t) {
        // The tensor must outlive what it drops.
        let t = t.clone();
        drop_parts(&t);
    }
}

/// Drops hooks, gradient, tangent, base and history of a tensor.
pub(super) fn drop_parts(t: &Tensor) {
    let (meta, edge) = {
        let mut core = t.write();
        let meta = core.meta.as_mut().map(|m| (std::mem::take(&mut m.hooks), m.grad.take(), m.tangent.take(), m.view.take()));
        core.update_special();
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
