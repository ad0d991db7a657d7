//! Programs: which steps a pending storage needs, in which order, and who holds what they make.

use super::execution::compute;
use super::fusion;
use super::lazy::Lazy;
use super::pending::{In, Interrupts, Make, Sibling, Step};
use super::storage::Storage;
use crate::error::{Error, ErrorKind};
use crate::layout::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// What may only be dropped when no lock is held.
#[derive(Default)]
pub(super) struct Garbage {
    pub graphs: Vec<Graph>,
    pub steps: Vec<Arc<Step>>,
    pub storages: Vec<Storage>,
}

/// A storage that steps of a program make.
pub(super) struct Owner {
    pub storage: Storage,
    /// Handles that the program's own steps have.
    refs: usize,
    /// The node of the step that is in the storage now.
    pub node: usize,
}

impl Owner {
    /// Whether its memory has yet to be asked for.
    pub fn is_new(&self) -> bool {
        self.storage.lazy().is_some_and(|l| !l.is_there())
    }
}

/// A storage that a program reads.
pub(super) struct External {
    pub storage: Storage,
    pub refs: usize,
    /// The last node that reads it, and the type in which it does.
    pub last: usize,
    pub dtype: DType,
    /// Some step reads it out of the results' order.
    pub across: bool,
}

pub(super) struct Node {
    pub step: Arc<Step>,
    pub owner: usize,
}

/// A program: steps in an order in which they can run.
#[derive(Default)]
pub(super) struct Graph {
    /// The other outputs of the program's request: they are computed in the same pass.
    pub siblings: SmallVec<[Sibling; 1]>,
    pub nodes: Vec<Node>,
    pub owners: Vec<Owner>,
    pub externals: Vec<External>,
}

impl Graph {
    /// Collects the steps that a pending storage needs; false if nothing is pending in it.
    pub fn gather(&mut self, storage: &Storage) -> bool {
        let Some(step) = storage.lazy().and_then(|l| l.step()) else { return false };
        self.visit(storage, step);
        let requested = self
            .nodes
            .iter()
            .find_map(|n| if let Make::Request { request, output } = &n.step.make { Some((request, *output)) } else { None });
        if let Some((request, output)) = requested.filter(|(r, _)| r.request.outputs() > 1) {
            self.siblings = request.others(output);
            // What they hold, the program's own steps hold.
            for a in self.siblings.iter().flat_map(|s| s.step.ins.iter().filter_map(In::array)) {
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
        self.owners.push(Owner { storage: storage.clone(), refs: 0, node: usize::MAX });
        self.owners.len() - 1
    }

    fn external(&mut self, storage: &Storage) -> usize {
        if let Some(i) = self.externals.iter().position(|e| e.storage.same(storage)) {
            return i;
        }
        self.externals.push(External { storage: storage.clone(), refs: 0, last: 0, dtype: DType::Bool, across: false });
        self.externals.len() - 1
    }

    pub fn find(&self, step: &Arc<Step>) -> Option<usize> {
        self.nodes.iter().position(|n| Arc::ptr_eq(&n.step, step))
    }

    /// The node of the step that is in `storage` now. Recursion ends after `MOST_STEPS`.
    fn visit(&mut self, storage: &Storage, step: Arc<Step>) -> usize {
        if let Some(i) = self.find(&step) {
            return i;
        }
        let owner = self.owner(storage);
        let node = self.chain(owner, step);
        self.owners[owner].node = node;
        node
    }

    fn chain(&mut self, owner: usize, step: Arc<Step>) -> usize {
        if let Some(i) = self.find(&step) {
            return i;
        }
        let mut read: SmallVec<[(usize, DType, bool); 3]> = SmallVec::new();
        for input in &step.ins {
            match input {
                In::Aligned(a) => {
                    if let Some(s) = a.storage().lazy().and_then(|l| l.step()) {
                        self.visit(a.storage(), s);
                        let at = self.owner(a.storage());
                        self.owners[at].refs += 1;
                    } else {
                        let at = self.external(a.storage());
                        self.externals[at].refs += 1;
                        read.push((at, a.dtype(), false));
                    }
                }
                In::Strided(a) => {
                    let at = self.external(a.storage());
                    self.externals[at].refs += 1;
                    read.push((at, a.dtype(), true));
                }
                In::Old(Some(s), _) => {
                    self.chain(owner, s.clone());
                }
                In::Old(None, _) | In::Nothing | In::Value(..) => {}
            }
        }
        self.nodes.push(Node { step, owner });
        let i = self.nodes.len() - 1;
        for (e, dtype, across) in read {
            self.externals[e].last = i;
            self.externals[e].dtype = dtype;
            self.externals[e].across |= across;
        }
        i
    }

    pub fn reads(&self, storage: &Storage) -> bool {
        self.nodes.iter().any(|n| n.step.ins.iter().filter_map(In::array).any(|a| a.storage().same(storage)))
    }

    /// Whether somebody else than the program's steps holds what an owner's step makes.
    pub fn is_held(&self, o: &Owner) -> bool {
        // One handle is this list's.
        o.storage.0.count() > 1 + o.refs
    }
}

/// Computes a pending storage, and in the same pass whatever else of its program is held by somebody. Under the lock `RUN`.
pub(super) fn run(root: &Storage, garbage: &mut Garbage, interrupts: Interrupts) -> std::result::Result<(), Failure> {
    // What one fold leaves to another goes through memory: a program of its own, now that nobody but the second may want it.
    if let Some(step) = root.lazy().and_then(Lazy::step) {
        let before = step.fold_input().and_then(|a| Some((a.storage().clone(), a.storage().lazy()?.step().filter(|s| s.folded)?)));
        garbage.steps.push(step);
        if let Some((storage, step)) = before {
            garbage.steps.push(step);
            let result = run(&storage, garbage, interrupts);
            garbage.storages.push(storage);
            result?;
        }
    }
    let mut g = Graph::default();
    if !g.gather(root) {
        return Ok(());
    }
    let result = compute(&g, root, garbage, interrupts).map_err(|error| {
        let lines = g.nodes.iter().rev().take(8).map(|n| (n.step.name(), n.step.site)).collect();
        Failure { error, lines }
    });
    garbage.graphs.push(g);
    result
}

/// Why a program did not run, and the operations in it.
pub(super) struct Failure {
    error: Error,
    lines: Vec<(&'static str, u32)>,
}

impl Failure {
    /// The error with the operations' lines. Asks the host, so no lock of ours may be held.
    #[cold]
    pub fn tell(self) -> Error {
        if self.error.kind() == ErrorKind::Foreign {
            return self.error;
        }
        self.lines
            .into_iter()
            .fold(self.error, |e, (name, site)| e.note(format!("{name} at {} was still to be computed", fusion::describe(site))))
    }
}
