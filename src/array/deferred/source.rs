//! Sources: requests at the start of a program, whose later steps are their epilogue.

use super::graph::StepGraph;
use super::memory::DeferredMemory;
use super::policy;
use super::queue;
use super::step::{DeferredInput, DeferredKind, DeferredStep, ProgramWeight};
use crate::array::Array;
use crate::backend::contract::View;
use crate::call::{Flags, Request, Seen};
use crate::error::Result;
use crate::layout::{DType, Layout};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most multiply-adds of a source. It runs under a lock of all threads and is not interrupted, so it must take a fraction of a second only.
const MOST_WORK: u64 = 1 << 32;

/// How many times as many elements as a pointwise result the result of a source must have to wait. Steps find a smaller one in the caches anyhow:
/// 2 MB of float32 were as fast in two passes as in one, 8 MB slower by up to a fifth.
const LARGER: usize = 4;

/// Whether a request for a result of this shape may be a source.
pub(in crate::array) fn is_worth(request: &Request, ins: &[Seen<'_>], out: (&[usize], DType)) -> bool {
    request.flags().has(Flags::EPILOGUE)
        && policy::may_wait(out.0.iter().product::<usize>() / LARGER)
        && request.work(ins, &[Some(out)]) <= MOST_WORK
}

/// The pending result, row-major, of a request over these arrays. None if it must run at once.
///
/// # Errors
/// Operands that were pending cannot be computed.
pub(in crate::array) fn pending(request: &Request, ins: &[&Array], shape: &[usize], dtype: DType) -> Result<Option<Array>> {
    if !request.flags().has(Flags::EPILOGUE) {
        return Ok(None);
    }
    let Some(first) = ins.first().filter(|a| is_worth(request, &[Some((a.shape(), a.dtype()))], (shape, dtype))) else { return Ok(None) };
    let backend = first.storage().backend();
    let can_be_read_later = |a: &Array| {
        let exposed = a.storage().deferred().is_some_and(DeferredMemory::is_exposed);
        !exposed && !a.storage().is_external() && a.storage().is_beside(first.storage())
    };
    if !backend.defers() || !policy::has_room(backend, shape.iter().product(), dtype) || !ins.iter().all(|a| can_be_read_later(a)) {
        return Ok(None);
    }
    let mut operands: SmallVec<[Array; 3]> = SmallVec::new();
    for a in ins {
        a.ready()?;
        operands.push(a.tracked()?);
    }
    let views: SmallVec<[View<'_>; 3]> = operands.iter().map(Array::view).collect();
    if !backend.takes_epilogue(request, &views) {
        return Ok(None);
    }
    drop(views);
    queue::sweep();
    let weight = ProgramWeight { steps: 1, inputs: ins.len(), sources: 1 };
    let operands = operands.into_iter().map(DeferredInput::Strided).collect();
    let kind = DeferredKind::Source(request.clone());
    Ok(Some(queue::make(DeferredStep::new(kind, dtype, Layout::contiguous(shape), operands, weight, false, policy::site()))))
}

impl Array {
    /// Computes the array if a source in its program waits for more steps.
    ///
    /// # Errors
    /// As for `Storage::settle`.
    pub fn settle_source(&self) -> Result<()> {
        let step = self.storage().deferred().filter(|l| l.is_pending()).and_then(DeferredMemory::step);
        if step.is_some_and(|s| s.weight.sources > 0) { self.ready() } else { Ok(()) }
    }
}

/// The owner in whose memory the result of the source, node 0, lies while the steps after it read it. It is marked as written.
pub(super) fn owner_of_result(g: &StepGraph, written: &mut [bool]) -> usize {
    let node = &g.nodes[0];
    let is_result = |s: &Arc<DeferredStep>| Arc::ptr_eq(s, &node.step);
    let reads = |i: &DeferredInput| match i {
        DeferredInput::Aligned(a) => a.storage().deferred().and_then(DeferredMemory::step).is_some_and(|s| is_result(&s)),
        DeferredInput::Old(Some(s), _) => is_result(s),
        _ => false,
    };
    let last = g.nodes.iter().rposition(|n| n.step.ins.iter().any(reads)).unwrap_or(0);
    let bytes = g.owners[node.owner].storage.bytes();
    // Memory of a result that is written after the last step that reads the source's, so that no other memory is needed.
    let fits = |i: &usize| written[*i] && g.owners[*i].is_new() && g.owners[*i].node >= last && g.owners[*i].storage.bytes() == bytes;
    let found = if written[node.owner] { node.owner } else { (0..g.owners.len()).find(fits).unwrap_or(node.owner) };
    written[found] = true;
    found
}
