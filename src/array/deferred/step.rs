//! A step: one pending result, what it computes and what it reads.

use super::memory::DeferredMemory;
use super::queue;
use crate::array::Array;
use crate::array::storage::Storage;
use crate::call::Request;
use crate::layout::{DType, ElementBytes, Layout};
use crate::program::StepKind;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most steps of one program.
pub(in crate::array) const MOST_STEPS: usize = 48;
/// A program with more inputs would read too many streams of memory at once.
pub(in crate::array) const MOST_INPUTS: usize = 12;

/// An operand of a step.
pub(in crate::array) enum DeferredInput {
    Nothing,
    /// One value, read when the step was made.
    Value(ElementBytes, DType),
    /// An array with the result's layout.
    Aligned(Array),
    /// An array expanded to the result's shape.
    Strided(Array),
    /// The old contents of the storage that the step overwrites: the result of a step, or memory.
    Old(Option<Arc<DeferredStep>>, DType),
}

impl DeferredInput {
    pub fn array(&self) -> Option<&Array> {
        match self {
            DeferredInput::Aligned(a) | DeferredInput::Strided(a) => Some(a),
            _ => None,
        }
    }

    pub fn dtype(&self) -> DType {
        match self {
            DeferredInput::Nothing => DType::Bool,
            DeferredInput::Value(_, d) | DeferredInput::Old(_, d) => *d,
            DeferredInput::Aligned(a) | DeferredInput::Strided(a) => a.dtype(),
        }
    }
}

/// A bound on the size of the program that ends in a step.
#[derive(Clone, Copy, Default)]
pub(in crate::array) struct ProgramWeight {
    pub steps: usize,
    pub inputs: usize,
    /// Its steps that are sources. A program has at most one.
    pub sources: usize,
}

/// What a step computes.
pub(in crate::array) enum DeferredKind {
    Point(StepKind),
    /// One output of a request, from the first input, which lies in any dense order; others are in memory.
    Request {
        request: Arc<DeferredRequest>,
        output: usize,
    },
    /// A request with one output, whose operands are all in memory. The other steps of its program are its epilogue.
    Source(Request),
}

/// A deferred request. Each of its outputs is a step of its own; the first that runs writes the others, too.
pub(in crate::array) struct DeferredRequest {
    pub request: Request,
    /// For each output, the number under which its storage is registered as pending; 0 before it is.
    numbers: SmallVec<[AtomicU64; 2]>,
}

impl DeferredRequest {
    pub fn new(request: Request) -> Arc<DeferredRequest> {
        let numbers = (0..request.outputs()).map(|_| AtomicU64::new(0)).collect();
        Arc::new(DeferredRequest { request, numbers })
    }

    /// Stores where `output` is found.
    pub fn register(&self, output: usize, made: &Array) {
        if let Some(deferred) = made.storage().deferred() {
            self.numbers[output].store(deferred.number(), Ordering::Release);
        }
    }

    /// The storages and steps of the other outputs that still have a handle, are not computed, and were not written since.
    pub fn others(self: &Arc<DeferredRequest>, output: usize) -> SmallVec<[Sibling; 1]> {
        let mut others = SmallVec::new();
        for (k, number) in self.numbers.iter().enumerate().filter(|(k, _)| *k != output) {
            let Some(storage) = queue::find(number.load(Ordering::Acquire)) else { continue };
            let step = storage.deferred().filter(|l| !l.is_allocated()).and_then(DeferredMemory::step);
            let is_output = |s: &Arc<DeferredStep>| match &s.kind {
                DeferredKind::Request { request, output } => Arc::ptr_eq(request, self) && *output == k,
                DeferredKind::Point(_) | DeferredKind::Source(_) => false,
            };
            if let Some(step) = step.filter(is_output) {
                others.push(Sibling { output: k, step, storage });
            }
        }
        others
    }
}

/// Another output of the request in a program.
pub(in crate::array) struct Sibling {
    pub output: usize,
    pub step: Arc<DeferredStep>,
    pub storage: Storage,
}

/// One pending result. It belongs to the storage whose contents it will make, and holds the arrays that it reads; those that are pending
/// themselves are steps of the same program.
pub(in crate::array) struct DeferredStep {
    pub kind: DeferredKind,
    pub out: DType,
    /// The layout of the result: dense, from the start of the storage.
    pub layout: Layout,
    pub ins: SmallVec<[DeferredInput; 3]>,
    pub site: u32,
    pub weight: ProgramWeight,
    /// Whether a step of the program reads a strided array. Then all steps of the program have this layout.
    pub strided: bool,
    /// Whether it is a request, or works in place on the result of one. Other programs do not contain such steps.
    pub follows_request: bool,
    /// Whether its request reads the result of another request.
    pub follows_two_requests: bool,
}

impl DeferredStep {
    /// `site` is the caller's line. It is not looked up here, because `RUN` may be held.
    pub fn new(
        kind: DeferredKind,
        out: DType,
        layout: Layout,
        ins: SmallVec<[DeferredInput; 3]>,
        weight: ProgramWeight,
        strided: bool,
        site: u32,
    ) -> Arc<DeferredStep> {
        for a in ins.iter().filter_map(DeferredInput::array) {
            if let Some(deferred) = a.storage().deferred() {
                deferred.add_reader();
            }
        }
        let follows_request = matches!(kind, DeferredKind::Request { .. })
            || ins.iter().any(|i| matches!(i, DeferredInput::Old(Some(s), _) if s.follows_request));
        let follows_one = |i: &DeferredInput| match i {
            DeferredInput::Aligned(a) => a.storage().deferred().and_then(DeferredMemory::step).is_some_and(|s| s.follows_request),
            DeferredInput::Old(Some(s), _) => s.follows_two_requests,
            _ => false,
        };
        let follows_two_requests = follows_request && ins.iter().any(follows_one);
        Arc::new(DeferredStep { follows_request, follows_two_requests, kind, out, layout, ins, site, weight, strided })
    }

    /// Whether the step reads an array expanded to its own layout, which differs from `layout`: a program has only one such layout.
    pub fn keeps_other_order(&self, layout: &Layout) -> bool {
        self.strided && self.layout != *layout
    }

    /// The first operand of this step's request.
    pub fn request_input(&self) -> Option<&Array> {
        let mut step = self;
        while let DeferredKind::Point(_) = step.kind {
            step = step
                .ins
                .iter()
                .find_map(|i| if let DeferredInput::Old(Some(s), _) = i { Some(s).filter(|s| s.follows_request) } else { None })?;
        }
        step.ins[0].array()
    }

    pub fn name(&self) -> &'static str {
        match &self.kind {
            DeferredKind::Point(StepKind::Row { func, .. }) => func.row.info().name,
            DeferredKind::Point(StepKind::Cast) => "to",
            DeferredKind::Request { request, .. } => request.request.name(),
            DeferredKind::Source(request) => request.name(),
        }
    }
}

impl Drop for DeferredStep {
    fn drop(&mut self) {
        for a in self.ins.iter().filter_map(DeferredInput::array) {
            if let Some(deferred) = a.storage().deferred() {
                deferred.remove_reader();
            }
        }
    }
}
