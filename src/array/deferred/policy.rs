//! Decides which results stay pending; the switch for it, and statistics.

use super::memory::DeferredMemory;
use super::queue;
use super::step::{DeferredInput, DeferredKind, DeferredStep, MOST_INPUTS, MOST_STEPS, ProgramWeight};
use crate::array::Array;
use crate::array::storage::{Access, Device, Storage};
use crate::backend::contract::Backend;
use crate::error::Result;
use crate::host::language::LARGE;
use crate::layout::{DType, ElementBytes, Layout, Scalar};
use crate::program::StepKind;
use crate::rows::{Func, MAX_PARAMS};
use crate::simd::{InstructionSet, instruction_set};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Results with fewer elements are computed at once, because a step costs as much as the computation.
static MIN_ELEMENTS: AtomicUsize = AtomicUsize::new(1 << 16);

static ENABLED: AtomicBool = AtomicBool::new(true);
static PROGRAMS: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static SAVED: AtomicU64 = AtomicU64::new(0);

/// Counts since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FusionCounts {
    pub programs: u64,
    /// Steps of all programs.
    pub steps: u64,
    /// Bytes of results without any handle when their program ran: these were never written.
    pub bytes_not_written: u64,
}

pub fn counts() -> FusionCounts {
    FusionCounts {
        programs: PROGRAMS.load(Ordering::Relaxed),
        steps: STEPS.load(Ordering::Relaxed),
        bytes_not_written: SAVED.load(Ordering::Relaxed),
    }
}

pub(in crate::array) fn count(steps: usize, unwritten: usize) {
    PROGRAMS.fetch_add(1, Ordering::Relaxed);
    STEPS.fetch_add(steps as u64, Ordering::Relaxed);
    SAVED.fetch_add(unwritten as u64, Ordering::Relaxed);
}

/// Whether results may stay pending.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Switches deferral on or off for the whole process and returns the old setting. Results that are pending stay pending.
pub fn set_enabled(on: bool) -> bool {
    ENABLED.swap(on, Ordering::Relaxed)
}

/// Whether results of this shape are large enough to stay pending.
#[inline]
pub(in crate::array) fn is_worth(shape: &[usize]) -> bool {
    shape.iter().product::<usize>() >= min_elements()
}

fn min_elements() -> usize {
    MIN_ELEMENTS.load(Ordering::Relaxed)
}

/// Sets the least number of elements of a deferred result and returns the old one. For tests of small programs.
pub fn set_min_elements(elements: usize) -> usize {
    MIN_ELEMENTS.swap(elements.max(1), Ordering::Relaxed)
}

/// Computes everything that is pending on a device. Called before waiting for the device.
///
/// # Errors
/// The errors of the programs, as for a read of a result.
pub fn settle_all(device: Device) -> Result<()> {
    queue::settle_all(device)
}

/// Whether the backend supports the dtype and may have memory for this many elements. Without this check a request for too much memory would fail
/// late.
pub(super) fn has_room(backend: &dyn Backend, numel: usize, dtype: DType) -> bool {
    backend.has_dtype(dtype).is_ok() && numel.checked_mul(backend.element_size(dtype)).is_some_and(|n| backend.has_room(n))
}

/// The storage on whose device a step runs: that of the first array that is not on the host.
fn backend_of<'a>(own: Option<&'a Array>, ins: &[&'a Array]) -> &'a Storage {
    let first = own.or(ins.first().copied()).expect("a step has an operand");
    own.into_iter().chain(ins.iter().copied()).find(|a| !a.device().is_host()).unwrap_or(first).storage()
}

/// Whether a program of this size may run as one.
fn fits_together(w: ProgramWeight, backend: &dyn Backend) -> bool {
    let most = backend.most_buffers();
    // In the worst case every step's result is kept.
    w.sources <= 1 && w.steps <= MOST_STEPS && w.inputs <= MOST_INPUTS && w.steps + w.inputs <= most
}

/// Whether a result of so many elements may stay pending.
pub fn may_wait(elements: usize) -> bool {
    elements >= min_elements() && is_enabled()
}

/// Operations on at least this many elements run while no guard is held: they release the host's lock, or their result may stay pending.
#[inline]
pub fn large() -> usize {
    min_elements().min(LARGE)
}

/// Whether there may be programs for `run_abandoned`.
#[inline]
pub fn has_abandoned() -> bool {
    queue::is_queued()
}

/// Runs programs that keep more memory alive than their results will take. Call it before an operation that allocates at once, when no guard is
/// held.
#[inline]
pub fn run_abandoned() {
    queue::sweep_abandoned();
}

/// As `run_abandoned`, but only for programs whose inputs are in memory: the next operation may extend the others.
#[inline]
pub fn run_stale() {
    queue::sweep();
}

/// Call it before a fork, on the thread that forks.
pub fn before_fork() {
    queue::before_fork();
}

/// The end of `before_fork`, in parent and child.
///
/// # Safety
/// This thread has called `before_fork`, and not this since.
pub unsafe fn after_fork() {
    // SAFETY: the caller's.
    unsafe { queue::after_fork() };
}

/// Call it when the system is about to fork, on the thread that forks.
pub fn hold_in_fork() {
    queue::hold_in_fork();
}

/// The end of `hold_in_fork`, in parent and child.
///
/// # Safety
/// This thread has called `hold_in_fork`, and not this since.
pub unsafe fn release_in_fork() {
    // SAFETY: the caller's.
    unsafe { queue::release_in_fork() };
}

/// How the user's lines are found and described.
#[derive(Debug, Clone, Copy)]
pub struct CallSites {
    pub current: fn() -> u32,
    pub describe: fn(u32) -> String,
}

static SITES: OnceLock<CallSites> = OnceLock::new();

/// Registers the source of call sites; the first registration stays.
pub fn register(sites: CallSites) {
    let _ = SITES.set(sites);
}

pub(in crate::array) fn site() -> u32 {
    SITES.get().map_or(0, |s| (s.current)())
}

pub(in crate::array) fn describe(site: u32) -> String {
    SITES.get().map_or_else(|| "an unknown line".into(), |s| (s.describe)(site))
}

/// The operands of a step, and a bound on the size of its program.
struct StepPlan {
    ins: SmallVec<[DeferredInput; 3]>,
    weight: ProgramWeight,
    strided: bool,
}

/// The most elements, counted once for each step, that a program on the host computes in memory which it also reads. Such a program cannot be
/// interrupted, so it must take a fraction of a second only. Kernels without vectors take ten times as long.
fn uninterrupted() -> usize {
    let is_scalar = cfg!(target_arch = "x86_64") && instruction_set() == InstructionSet::Base;
    if is_scalar { 1 << 26 } else { 1 << 29 }
}

impl Array {
    /// The pending result of a row over `layout` (dense, from 0 on), or None if it must be computed at once.
    pub(in crate::array) fn pending(
        func: Func,
        compute: DType,
        out: DType,
        layout: &Layout,
        ins: &[&Array],
        params: &[Scalar],
    ) -> Result<Option<Array>> {
        if layout.numel() < min_elements() || !is_enabled() {
            return Ok(None);
        }
        queue::sweep();
        let backend = backend_of(None, ins).backend();
        if !backend.defers() || !has_room(backend, layout.numel(), out) {
            return Ok(None);
        }
        let Some(kind) = row(func, compute, out, params, backend) else { return Ok(None) };
        let Some(plan) = plan(func.reads(), layout, ins, None)? else { return Ok(None) };
        Ok(Some(queue::make(plan.step(kind, out, layout, site()))))
    }

    /// The pending conversion of this array, or None if it must be computed at once.
    pub(in crate::array) fn pending_cast(&self, to: DType) -> Result<Option<Array>> {
        if self.numel() < min_elements() || !is_enabled() {
            return Ok(None);
        }
        queue::sweep();
        let backend = self.storage().backend();
        if !backend.defers() || !has_room(backend, self.numel(), to) {
            return Ok(None);
        }
        let layout = if self.is_contiguous() { Layout::contiguous(self.shape()) } else { Layout::dense_like(self.shape(), self.strides()) };
        let Some(plan) = plan(1, &layout, &[self], None)? else { return Ok(None) };
        Ok(Some(queue::make(plan.step(StepKind::Cast, to, &layout, site()))))
    }

    /// The memory of this array, if a write to all of it may be deferred.
    fn accepts_steps(&self) -> Option<&DeferredMemory> {
        // A small array that is pending may get one more step.
        if self.numel() < min_elements() && self.storage().is_plain()
            || !is_enabled()
            || !self.is_whole()
            || !self.storage().backend().defers()
        {
            return None;
        }
        self.storage().deferred().filter(|l| !l.is_exposed())
    }

    /// Defers a row whose result overwrites this array; false if it must be computed at once.
    pub(in crate::array) fn pending_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<bool> {
        let Some(deferred) = self.accepts_steps() else { return Ok(false) };
        queue::sweep();
        let on_host = self.device().is_host();
        if on_host && self.numel() > uninterrupted() {
            return Ok(false);
        }
        let Some(kind) = row(func, compute, self.dtype(), params, self.storage().backend()) else { return Ok(false) };
        self.storage().settle_readers()?;
        let more = |w: ProgramWeight| ProgramWeight { steps: w.steps + 1, inputs: w.inputs + ins.len(), ..w };
        let site = site();
        if deferred.step().is_some_and(|s| {
            s.keeps_other_order(self.layout())
                || !fits_together(more(s.weight), self.storage().backend())
                || on_host && (s.weight.steps + 1).saturating_mul(self.numel()) > uninterrupted()
        }) {
            self.ready()?;
        }
        let Some(mut plan) = plan(func.reads(), self.layout(), ins, Some(self))? else { return Ok(false) };
        queue::extend(self.storage(), |old| {
            if let Some(old) = &old {
                if old.keeps_other_order(self.layout()) {
                    return None;
                }
                plan.weight.steps += old.weight.steps;
                plan.weight.inputs += old.weight.inputs;
                plan.weight.sources += old.weight.sources;
                plan.strided |= old.strided;
            }
            for i in &mut plan.ins {
                if let DeferredInput::Old(step, _) = i {
                    step.clone_from(&old);
                }
            }
            Some(plan.step(kind, self.dtype(), self.layout(), site))
        })
    }
}

impl Array {
    /// This array, or a copy of one that is so small that writes to its memory are not tracked: what steps may read later.
    ///
    /// # Errors
    /// There is no memory for the copy.
    pub(in crate::array) fn tracked(&self) -> Result<Array> {
        if self.storage().deferred().is_some() { Ok(self.clone()) } else { self.contiguous_copy() }
    }

    /// Whether the array is its storage's every element, in the order of memory.
    pub(in crate::array) fn is_whole(&self) -> bool {
        self.layout().offset() == 0
            && self.layout().is_dense()
            && self.numel() * self.storage().element_size(self.dtype()) == self.storage().bytes()
    }
}

/// The row as a step, if it has a kernel and cannot fail on values.
fn row(func: Func, compute: DType, out: DType, params: &[Scalar], backend: &dyn Backend) -> Option<StepKind> {
    if func.divides() && !compute.is_float() || func.out_dtype(compute) != out || !backend.has_row(func, compute) {
        return None;
    }
    let mut all = [Scalar::Int(0); MAX_PARAMS];
    all.get_mut(..params.len())?.copy_from_slice(params);
    Some(StepKind::Row { func, compute, params: all })
}

/// The operands of a step with this layout; `own` is the array that it overwrites, if any. None if an input cannot be read later.
fn plan(reads: u32, layout: &Layout, ins: &[&Array], own: Option<&Array>) -> Result<Option<StepPlan>> {
    let on = backend_of(own, ins);
    // A write to the result of a request starts a new program, so inputs of the previous one are settled. After a source no other one can follow.
    let pending_in = |a: &Array| a.storage().deferred().and_then(DeferredMemory::step);
    let old = own.and_then(pending_in);
    let (held_alone, has_source) = old.map_or((false, false), |s| (s.follows_request, s.weight.sources > 0));
    let mut all: SmallVec<[DeferredInput; 3]> = SmallVec::new();
    for (k, a) in ins.iter().enumerate() {
        if reads >> k & 1 == 0 {
            all.push(DeferredInput::Nothing);
            continue;
        }
        let Some(input) = operand_of(layout, a, own, on)? else { return Ok(None) };
        if let DeferredInput::Aligned(a) = &input
            && (held_alone || has_source && pending_in(a).is_some_and(|s| s.weight.sources > 0))
        {
            a.ready()?;
        }
        all.push(input);
    }
    StepPlan::within_limits(all, layout, on.backend()).map(Some)
}

fn operand_of(layout: &Layout, a: &Array, own: Option<&Array>, on: &Storage) -> Result<Option<DeferredInput>> {
    if let Some(own) = own
        && a.storage().same(own.storage())
    {
        return Ok((a.layout() == own.layout() && a.dtype() == own.dtype()).then(|| DeferredInput::Old(None, a.dtype())));
    }
    if a.device().is_host()
        && (a.numel() == 1 || !a.shape().is_empty() && a.strides().iter().zip(a.shape()).all(|(s, n)| *s == 0 || *n == 1))
    {
        a.ready()?;
        let mut bytes = ElementBytes::default();
        // SAFETY: one element is there, and none is longer than these bytes.
        unsafe { std::ptr::copy_nonoverlapping(a.ptr(), bytes.as_mut_ptr(), a.dtype().size()) };
        return Ok(Some(DeferredInput::Value(bytes, a.dtype())));
    }
    // The operation itself refuses operands of other devices, except numbers.
    if a.storage().is_external() || !a.storage().is_beside(on) || a.storage().deferred().is_some_and(DeferredMemory::is_exposed) {
        return Ok(None);
    }
    let same = a.shape() == layout.shape() && a.strides().iter().zip(layout.strides()).zip(a.shape()).all(|((x, y), n)| x == y || *n == 1);
    if same || a.is_contiguous() && layout.is_contiguous() && a.numel() == layout.numel() {
        if a.storage().deferred().is_none() {
            return Ok(Some(DeferredInput::Aligned(a.clone_dense()?)));
        }
        let whole = a.is_whole() && a.storage().deferred().and_then(|l| l.step()).is_none_or(|s| s.out == a.dtype());
        if !whole {
            a.ready()?;
        }
        return Ok(Some(DeferredInput::Aligned(a.clone())));
    }
    a.ready()?;
    let expanded = a.layout().expand(layout.shape())?;
    if !on.backend().reads_strided(layout.shape(), layout.strides(), expanded.strides(), a.dtype()) {
        return Ok(None);
    }
    let a = a.tracked()?;
    let expanded = a.layout().expand(layout.shape())?;
    Ok(Some(DeferredInput::Strided(a.with_layout(expanded)?)))
}

impl StepPlan {
    /// Settles inputs that would make the program too large, or that are expanded to another shape than the result.
    fn within_limits(ins: SmallVec<[DeferredInput; 3]>, layout: &Layout, backend: &dyn Backend) -> Result<StepPlan> {
        let across = ins.iter().filter(|i| matches!(i, DeferredInput::Strided(_))).count();
        let mut plan = StepPlan { weight: ProgramWeight { steps: 1, inputs: across, sources: 0 }, strided: across > 0, ins };
        let mut waiting: SmallVec<[&Storage; 3]> = SmallVec::new();
        for i in &plan.ins {
            let DeferredInput::Aligned(a) = i else { continue };
            match a.storage().deferred().and_then(DeferredMemory::step) {
                Some(s) if s.follows_request || s.keeps_other_order(layout) => a.ready()?,
                Some(s) => {
                    plan.weight.steps += s.weight.steps;
                    plan.weight.inputs += s.weight.inputs;
                    plan.weight.sources += s.weight.sources;
                    plan.strided |= s.strided;
                    waiting.push(a.storage());
                }
                None => plan.weight.inputs += 1,
            }
        }
        if !fits_together(plan.weight, backend) {
            let mut exact = queue::exact_weight(&waiting);
            if exact.sources > 1 {
                // All but the last are computed.
                let has_source = |s: &&Storage| s.deferred().and_then(DeferredMemory::step).is_some_and(|s| s.weight.sources > 0);
                let sources: SmallVec<[&Storage; 3]> = waiting.iter().copied().filter(has_source).collect();
                if let Some((last, others)) = sources.split_last() {
                    others.iter().filter(|s| !s.same(last)).try_for_each(|s| s.settle(Access::Read))?;
                }
                exact = queue::exact_weight(&waiting);
            }
            plan.weight = ProgramWeight { steps: exact.steps + 1, inputs: exact.inputs + plan.ins.len(), ..exact };
            if !fits_together(plan.weight, backend) {
                waiting.iter().try_for_each(|s| s.settle(Access::Read))?;
                plan.weight = ProgramWeight { steps: 1, inputs: plan.ins.len(), sources: 0 };
                plan.strided = across > 0;
            }
        }
        drop(waiting);
        Ok(plan)
    }

    fn step(self, kind: StepKind, out: DType, layout: &Layout, site: u32) -> Arc<DeferredStep> {
        DeferredStep::new(DeferredKind::Point(kind), out, layout.clone(), self.ins, self.weight, self.strided, site)
    }
}
