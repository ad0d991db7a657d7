//! The graph of one program: the steps that a pending storage depends on, their order, and which of their results have other holders.

use super::execute::compute;
use super::memory::DeferredMemory;
use super::policy;
use super::queue::Interrupts;
use super::step::{DeferredInput, DeferredKind, DeferredStep, Sibling};
use crate::array::storage::Storage;
use crate::error::{Error, ErrorKind};
use crate::layout::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// Values that may be dropped only when no lock is held.
#[derive(Default)]
pub(in crate::array) struct DropLater {
    pub graphs: Vec<StepGraph>,
    pub steps: Vec<Arc<DeferredStep>>,
    pub storages: Vec<Storage>,
}

/// A storage that steps of a program make.
pub(in crate::array) struct MadeStorage {
    pub storage: Storage,
    /// The number of handles held by the program's own steps.
    refs: usize,
    /// The node of the storage's pending step.
    pub node: usize,
}

impl MadeStorage {
    /// Whether it has no memory yet.
    pub fn is_new(&self) -> bool {
        self.storage.deferred().is_some_and(|l| !l.is_allocated())
    }
}

/// A storage that a program reads.
pub(in crate::array) struct ReadStorage {
    pub storage: Storage,
    pub refs: usize,
    /// The last node that reads it, and the type in which it does.
    pub last: usize,
    pub dtype: DType,
    /// Whether a step reads it in another order than that of the results.
    pub across: bool,
}

pub(in crate::array) struct GraphNode {
    pub step: Arc<DeferredStep>,
    pub owner: usize,
}

/// A program: steps in an order in which they can run.
#[derive(Default)]
pub(in crate::array) struct StepGraph {
    /// The other outputs of the program's request: they are computed in the same pass.
    pub siblings: SmallVec<[Sibling; 1]>,
    pub nodes: Vec<GraphNode>,
    pub owners: Vec<MadeStorage>,
    pub externals: Vec<ReadStorage>,
}

impl StepGraph {
    /// Collects the steps that a pending storage depends on; false if nothing is pending in it.
    pub fn gather(&mut self, storage: &Storage) -> bool {
        let Some(step) = storage.deferred().and_then(|l| l.step()) else { return false };
        self.visit(storage, step);
        let requested = self
            .nodes
            .iter()
            .find_map(|n| if let DeferredKind::Request { request, output } = &n.step.kind { Some((request, *output)) } else { None });
        if let Some((request, output)) = requested.filter(|(r, _)| r.request.outputs() > 1) {
            self.siblings = request.others(output);
            // Handles of sibling steps count as the program's own.
            for a in self.siblings.iter().flat_map(|s| s.step.ins.iter().filter_map(DeferredInput::array)) {
                let (owners, externals) = (&mut self.owners, &mut self.externals);
                if let Some(o) = owners.iter_mut().find(|o| o.storage.same(a.storage())) {
                    o.refs += 1;
                } else if let Some(e) = externals.iter_mut().find(|e| e.storage.same(a.storage())) {
                    e.refs += 1;
                }
            }
        }
        true
    }

    fn owner(&mut self, storage: &Storage) -> usize {
        if let Some(i) = self.owners.iter().position(|o| o.storage.same(storage)) {
            return i;
        }
        self.owners.push(MadeStorage { storage: storage.clone(), refs: 0, node: usize::MAX });
        self.owners.len() - 1
    }

    fn external(&mut self, storage: &Storage) -> usize {
        if let Some(i) = self.externals.iter().position(|e| e.storage.same(storage)) {
            return i;
        }
        self.externals.push(ReadStorage { storage: storage.clone(), refs: 0, last: 0, dtype: DType::Bool, across: false });
        self.externals.len() - 1
    }

    /// The step that is a source, if there is one.
    pub fn source(&self) -> Option<usize> {
        self.nodes.iter().position(|n| matches!(n.step.kind, DeferredKind::Source(_)))
    }

    /// Moves the source to the start: it reads no other step.
    fn put_source_first(&mut self) {
        let Some(at) = self.source() else { return };
        self.nodes[..=at].rotate_right(1);
        let moved = |i: &mut usize| match (*i).cmp(&at) {
            std::cmp::Ordering::Less => *i += 1,
            std::cmp::Ordering::Equal => *i = 0,
            std::cmp::Ordering::Greater => {}
        };
        self.owners.iter_mut().for_each(|o| moved(&mut o.node));
        self.externals.iter_mut().for_each(|e| moved(&mut e.last));
    }

    pub fn find(&self, step: &Arc<DeferredStep>) -> Option<usize> {
        self.nodes.iter().position(|n| Arc::ptr_eq(&n.step, step))
    }

    /// The node of the pending step of `storage`. The recursion is limited by `MOST_STEPS`.
    fn visit(&mut self, storage: &Storage, step: Arc<DeferredStep>) -> usize {
        if let Some(i) = self.find(&step) {
            return i;
        }
        let owner = self.owner(storage);
        let node = self.chain(owner, step);
        self.owners[owner].node = node;
        node
    }

    fn chain(&mut self, owner: usize, step: Arc<DeferredStep>) -> usize {
        if let Some(i) = self.find(&step) {
            return i;
        }
        let mut read: SmallVec<[(usize, DType, bool); 3]> = SmallVec::new();
        for input in &step.ins {
            match input {
                DeferredInput::Aligned(a) => {
                    if let Some(s) = a.storage().deferred().and_then(|l| l.step()) {
                        self.visit(a.storage(), s);
                        let at = self.owner(a.storage());
                        self.owners[at].refs += 1;
                    } else {
                        let at = self.external(a.storage());
                        self.externals[at].refs += 1;
                        read.push((at, a.dtype(), false));
                    }
                }
                DeferredInput::Strided(a) => {
                    let at = self.external(a.storage());
                    self.externals[at].refs += 1;
                    read.push((at, a.dtype(), true));
                }
                DeferredInput::Old(Some(s), _) => {
                    self.chain(owner, s.clone());
                }
                DeferredInput::Old(None, _) | DeferredInput::Nothing | DeferredInput::Value(..) => {}
            }
        }
        self.nodes.push(GraphNode { step, owner });
        let i = self.nodes.len() - 1;
        for (e, dtype, across) in read {
            self.externals[e].last = i;
            self.externals[e].dtype = dtype;
            self.externals[e].across |= across;
        }
        i
    }

    pub fn reads(&self, storage: &Storage) -> bool {
        self.nodes.iter().any(|n| n.step.ins.iter().filter_map(DeferredInput::array).any(|a| a.storage().same(storage)))
    }

    /// Whether there are handles other than those of the program's steps.
    pub fn is_held(&self, o: &MadeStorage) -> bool {
        // This list holds one handle.
        o.storage.0.count() > 1 + o.refs
    }
}

/// Computes a pending storage and, in the same pass, every other result of its program that has a handle outside. `RUN` must be held.
pub(in crate::array) fn run(root: &Storage, garbage: &mut DropLater, interrupts: Interrupts) -> std::result::Result<(), ProgramFailure> {
    // A request reads the result of another request from memory, so that one runs first, as a program of its own.
    if let Some(step) = root.deferred().and_then(DeferredMemory::step) {
        let before =
            step.request_input().and_then(|a| Some((a.storage().clone(), a.storage().deferred()?.step().filter(|s| s.follows_request)?)));
        garbage.steps.push(step);
        if let Some((storage, step)) = before {
            garbage.steps.push(step);
            let result = run(&storage, garbage, interrupts);
            garbage.storages.push(storage);
            result?;
        }
    }
    let mut g = StepGraph::default();
    if !g.gather(root) {
        return Ok(());
    }
    g.put_source_first();
    let result = compute(&g, root, garbage, interrupts).map_err(|error| {
        let lines = g.nodes.iter().rev().take(8).map(|n| (n.step.name(), n.step.site)).collect();
        ProgramFailure { error, lines }
    });
    garbage.graphs.push(g);
    result
}

/// The error of a program, and the operations in it.
pub(in crate::array) struct ProgramFailure {
    error: Error,
    lines: Vec<(&'static str, u32)>,
}

impl ProgramFailure {
    /// The error, with the lines of the program's operations. It asks the host, so no lock may be held.
    #[cold]
    pub fn into_error(self) -> Error {
        if self.error.kind() == ErrorKind::Foreign {
            return self.error;
        }
        self.lines
            .into_iter()
            .fold(self.error, |e, (name, site)| e.note(format!("{name} at {} was still to be computed", policy::describe(site))))
    }
}
