//! Which shared tensors and nodes nothing holds but objects that the garbage collector of the embedding language sees, and what they hold.
//!
//! A value with several handles is reported by none of its holders alone (`ownership`), since the others may be in use. A census counts the handles
//! of all values that are reachable from all objects. Where it has found every handle of a shared value, and foreign objects can be reached from
//! there, the value gets a proxy: an object that counts one reference for each handle. During the collection each holder reports the proxy, and the
//! proxy reports what the value holds. So reference counts are exact for cycles of any form, and a value that has one more handle anywhere is alive.

use crate::autograd::graph::node::Node;
use crate::autograd::tensor::ownership::{Foreign, PartVisitor, Reachable, drop_parts, parts_of, parts_of_node};
use crate::autograd::tensor::{Tensor, WeakTensor};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// A tensor or a node, held weakly: its address is not used again as long as this lives.
#[derive(Clone)]
pub enum SharedValue {
    Tensor(WeakTensor),
    Node(Weak<Node>),
}

impl SharedValue {
    /// How many handles there are.
    fn handles(&self) -> usize {
        match self {
            SharedValue::Tensor(t) => t.upgrade().map_or(0, |t| t.holders() - 1),
            SharedValue::Node(n) => n.strong_count(),
        }
    }

    /// Drops what the value holds, if it still has as many handles as the census found.
    pub fn clear(&self, found: usize) {
        if self.handles() != found {
            return;
        }
        match self {
            SharedValue::Tensor(t) => {
                if let Some(t) = t.upgrade() {
                    drop_parts(&t);
                }
            }
            SharedValue::Node(n) => {
                if let Some(n) = n.upgrade() {
                    n.release_for_good();
                }
            }
        }
    }
}

struct Counted {
    value: SharedValue,
    found: usize,
    /// It keeps its object, whose handle does not count then.
    keeps_object: bool,
    /// It holds foreign objects, or something that it holds does.
    foreign: bool,
}

/// Counts handles: first `tensor_of` and `node_of` for each object, then `finish`.
#[derive(Default)]
pub struct Census {
    counted: Vec<Counted>,
    index: FxHashMap<usize, usize>,
    /// Which value holds which.
    held: Vec<(usize, usize)>,
    work: Vec<(usize, Reachable)>,
    /// The value whose parts are looked at; None while an object's are.
    current: Option<usize>,
}

impl PartVisitor for Census {
    fn tensor(&mut self, t: &Tensor) {
        let at = self.entry_of_tensor(t);
        self.handle_of(at);
    }

    fn node(&mut self, n: &Arc<Node>) {
        let at = match self.index.get(&Arc::as_ptr(n).addr()) {
            Some(&at) => at,
            None => self.add(Arc::as_ptr(n).addr(), SharedValue::Node(Arc::downgrade(n)), Reachable::Node(n.clone())),
        };
        self.handle_of(at);
    }

    fn foreign(&mut self, _: Foreign<'_>) {
        if let Some(at) = self.current {
            self.counted[at].foreign = true;
        }
    }
}

impl Census {
    fn add(&mut self, address: usize, value: SharedValue, next: Reachable) -> usize {
        let at = self.counted.len();
        self.counted.push(Counted { value, found: 0, keeps_object: false, foreign: false });
        self.index.insert(address, at);
        self.work.push((at, next));
        at
    }

    fn entry_of_tensor(&mut self, t: &Tensor) -> usize {
        match self.index.get(&t.id()) {
            Some(&at) => at,
            None => self.add(t.id(), SharedValue::Tensor(t.downgrade()), Reachable::Tensor(t.clone())),
        }
    }

    fn handle_of(&mut self, at: usize) {
        self.counted[at].found += 1;
        if let Some(holder) = self.current {
            self.held.push((holder, at));
        }
    }

    /// An object holds this tensor; `keeps`: the tensor keeps that object, whose handle does not count then.
    pub fn tensor_of(&mut self, t: &Tensor, keeps: bool) {
        if keeps {
            let at = self.entry_of_tensor(t);
            self.counted[at].keeps_object = true;
            self.counted[at].foreign = true;
        } else {
            self.tensor(t);
        }
        self.run();
    }

    /// An object holds this node.
    pub fn node_of(&mut self, n: &Arc<Node>) {
        self.node(n);
        self.run();
    }

    /// How many values were found.
    pub fn len(&self) -> usize {
        self.counted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    fn run(&mut self) {
        while let Some((at, next)) = self.work.pop() {
            self.current = Some(at);
            match next {
                Reachable::Tensor(t) => parts_of(&t, self),
                Reachable::Node(n) => parts_of_node(&n, true, self),
            }
        }
        self.current = None;
    }

    /// Spreads `foreign` from values to what holds them.
    fn spread(&mut self) {
        self.held.sort_unstable_by_key(|(_, held)| *held);
        let mut work: Vec<usize> = (0..self.counted.len()).filter(|&at| self.counted[at].foreign).collect();
        while let Some(at) = work.pop() {
            let first = self.held.partition_point(|(_, held)| *held < at);
            for &(holder, _) in self.held[first..].iter().take_while(|(_, held)| *held == at) {
                if !self.counted[holder].foreign {
                    self.counted[holder].foreign = true;
                    work.push(holder);
                }
            }
        }
    }

    /// The result. `proxy` makes the proxy of a value, given the number of its handles. None if no value needs one.
    pub fn finish<E>(mut self, mut proxy: impl FnMut(SharedValue, usize) -> Result<*mut (), E>) -> Result<Option<Snapshot>, E> {
        self.spread();
        let (mut reporters, mut proxies) = (FxHashMap::default(), 0);
        for (&address, &at) in &self.index {
            let c = &self.counted[at];
            if !c.foreign || c.found != c.value.handles() {
                continue;
            }
            let by = if c.found > 1 || c.keeps_object && c.found > 0 {
                proxies += 1;
                ReportedBy::Proxy(proxy(c.value.clone(), c.found)?)
            } else {
                ReportedBy::Holder
            };
            reporters.insert(address, by);
        }
        let values = self.counted.into_iter().map(|c| c.value).collect();
        Ok((proxies > 0).then_some(Snapshot { reporters, _values: values }))
    }
}

enum ReportedBy {
    /// It has one handle, and whoever has that reports what it holds.
    Holder,
    Proxy(*mut ()),
}

/// What a census found. Values that it does not name are alive, or hold nothing foreign.
pub struct Snapshot {
    reporters: FxHashMap<usize, ReportedBy>,
    /// So that no address is used again.
    _values: Vec<SharedValue>,
}

/// What one object or proxy reports.
struct SnapshotWalk<'a> {
    snapshot: &'a Snapshot,
    work: Vec<Reachable>,
    f: &'a mut dyn FnMut(Foreign<'_>),
}

impl PartVisitor for SnapshotWalk<'_> {
    fn tensor(&mut self, t: &Tensor) {
        match self.snapshot.reporters.get(&t.id()) {
            Some(ReportedBy::Holder) => self.work.push(Reachable::Tensor(t.clone())),
            Some(ReportedBy::Proxy(p)) => (self.f)(Foreign::Slot(*p)),
            None => {}
        }
    }

    fn node(&mut self, n: &Arc<Node>) {
        match self.snapshot.reporters.get(&Arc::as_ptr(n).addr()) {
            Some(ReportedBy::Holder) => self.work.push(Reachable::Node(n.clone())),
            Some(ReportedBy::Proxy(p)) => (self.f)(Foreign::Slot(*p)),
            None => {}
        }
    }

    fn foreign(&mut self, f: Foreign<'_>) {
        (self.f)(f);
    }
}

impl SnapshotWalk<'_> {
    fn tensor_parts(&mut self, t: &Tensor) {
        if let Some((p, true)) = t.object() {
            (self.f)(Foreign::Slot(p));
        }
        parts_of(t, self);
    }

    fn run(mut self) {
        while let Some(next) = self.work.pop() {
            match next {
                Reachable::Tensor(t) => self.tensor_parts(&t),
                Reachable::Node(n) => parts_of_node(&n, true, &mut self),
            }
        }
    }
}

impl Snapshot {
    fn walk<'a>(&'a self, f: &'a mut dyn FnMut(Foreign<'_>)) -> SnapshotWalk<'a> {
        SnapshotWalk { snapshot: self, work: Vec::new(), f }
    }

    /// Calls `f` with what an object reports that holds this tensor.
    pub fn visit_tensor_of(&self, t: &Tensor, f: &mut dyn FnMut(Foreign<'_>)) {
        let mut walk = self.walk(f);
        walk.tensor(t);
        walk.run();
    }

    /// Calls `f` with what an object reports that holds this node.
    pub fn visit_node_of(&self, n: &Arc<Node>, f: &mut dyn FnMut(Foreign<'_>)) {
        let mut walk = self.walk(f);
        walk.node(n);
        walk.run();
    }

    /// Calls `f` with what a value's proxy reports.
    pub fn visit_parts(&self, value: &SharedValue, f: &mut dyn FnMut(Foreign<'_>)) {
        let mut walk = self.walk(f);
        match value {
            SharedValue::Tensor(t) => {
                let Some(t) = t.upgrade() else { return };
                walk.tensor_parts(&t);
            }
            SharedValue::Node(n) => {
                let Some(n) = n.upgrade() else { return };
                parts_of_node(&n, true, &mut walk);
            }
        }
        walk.run();
    }
}
