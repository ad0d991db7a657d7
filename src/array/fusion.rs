//! Which pointwise results stay pending, and what has become of them.

use super::lazy::Lazy;
use super::pending::{self, Folding, In, MOST_INPUTS, MOST_STEPS, Make, Step, Weight};
use super::storage::{Access, Device, Storage};
use super::value::Array;
use crate::backend::cpu::alloc::fits;
use crate::backend::cpu::walk::collapse;
use crate::backend::host::LARGE;
use crate::backend::program::{MAX_PARAMS, What};
use crate::backend::wgpu::program::most_buffers;
use crate::backend::wgpu::{Context, element_size};
use crate::error::Result;
use crate::layout::{DType, Layout, Scalar};
use crate::pointwise::Func;
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Results with fewer elements are computed at once: keeping them would cost as much as computing them.
static LEAST: AtomicUsize = AtomicUsize::new(1 << 16);

static ENABLED: AtomicBool = AtomicBool::new(true);
static PROGRAMS: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static SAVED: AtomicU64 = AtomicU64::new(0);

/// What has been run since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub programs: u64,
    /// Steps of all programs.
    pub steps: u64,
    /// Bytes of results that nobody held when their program ran, so that they were never written.
    pub bytes_not_written: u64,
}

pub fn counts() -> Counts {
    Counts {
        programs: PROGRAMS.load(Ordering::Relaxed),
        steps: STEPS.load(Ordering::Relaxed),
        bytes_not_written: SAVED.load(Ordering::Relaxed),
    }
}

pub(super) fn count(steps: usize, unwritten: usize) {
    PROGRAMS.fetch_add(1, Ordering::Relaxed);
    STEPS.fetch_add(steps as u64, Ordering::Relaxed);
    SAVED.fetch_add(unwritten as u64, Ordering::Relaxed);
}

/// Whether results may stay pending.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Lets results stay pending, or not, in the whole process; gives what was set before. What is pending already stays so.
pub fn set_enabled(on: bool) -> bool {
    ENABLED.swap(on, Ordering::Relaxed)
}

/// Whether results of this shape are large enough to stay pending.
#[inline]
pub(super) fn is_worth(shape: &[usize]) -> bool {
    shape.iter().product::<usize>() >= least()
}

fn least() -> usize {
    LEAST.load(Ordering::Relaxed)
}

/// Sets from how many elements on results stay pending, and gives what was set before. For tests of small programs.
pub fn set_least(elements: usize) -> usize {
    LEAST.swap(elements.max(1), Ordering::Relaxed)
}

/// Computes everything that is pending on a device, so that who waits for the device waits for it too.
///
/// # Errors
/// As for whoever looks at a result.
pub fn settle_all(device: Device) -> Result<()> {
    pending::settle_all(device != Device::Cpu)
}

/// Whether the host, or a device, has the type and may have memory for so many elements of it: what cannot be had is refused at once.
fn has_room(context: Option<&Arc<Context>>, numel: usize, dtype: DType) -> bool {
    let Some(context) = context else { return fits(numel * dtype.size()) };
    context.supports(dtype).is_ok() && numel.checked_mul(element_size(dtype)).is_some_and(|n| n <= context.limits().buffer_bytes())
}

/// Whether a program of this size may run as one.
fn fits_together(w: Weight, context: Option<&Arc<Context>>) -> bool {
    let most = context.map_or(usize::MAX, |c| most_buffers(c));
    // In the worst case every step's result is kept.
    w.steps <= MOST_STEPS && w.inputs <= MOST_INPUTS && w.steps + w.inputs <= most
}

/// Whether a result of so many elements may stay pending.
pub fn may_wait(elements: usize) -> bool {
    elements >= least() && is_enabled()
}

/// From how many elements on an operation is run while no guard is held: it is worth a release of the host's lock, or may stay pending.
#[inline]
pub fn large() -> usize {
    least().min(LARGE)
}

/// Whether there may be programs for `run_left`.
#[inline]
pub fn has_left() -> bool {
    pending::is_queued()
}

/// Runs programs that keep more memory alive than their results will take, since nobody else holds what they read. To be called where no
/// guard is held, before an operation that asks for memory at once.
#[inline]
pub fn run_left() {
    pending::sweep_left();
}

/// As `run_left`, but only for what holds memory already: an operation that follows may go on with results that are pending.
#[inline]
pub fn run_stale() {
    pending::sweep();
}

/// To be called before a fork, on the thread that forks.
pub fn before_fork() {
    pending::before_fork();
}

/// The end of `before_fork`, in parent and child.
pub fn after_fork() {
    pending::after_fork();
}

/// How lines of the user's program are found and described.
#[derive(Debug, Clone, Copy)]
pub struct Sites {
    pub current: fn() -> u32,
    pub describe: fn(u32) -> String,
}

static SITES: OnceLock<Sites> = OnceLock::new();

/// Registers the source of call sites; the first registration stays.
pub fn register(sites: Sites) {
    let _ = SITES.set(sites);
}

pub(super) fn site() -> u32 {
    SITES.get().map_or(0, |s| (s.current)())
}

pub(super) fn describe(site: u32) -> String {
    SITES.get().map_or_else(|| "an unknown line".into(), |s| (s.describe)(site))
}

/// What a step will read, and how large its program is then.
struct Plan {
    ins: SmallVec<[In; 3]>,
    weight: Weight,
    strided: bool,
}

impl Array {
    /// The pending result of a row over `layout` (dense, from 0 on), or None where it has to be computed at once.
    pub(super) fn pending(
        func: Func,
        compute: DType,
        out: DType,
        layout: &Layout,
        ins: &[&Array],
        params: &[Scalar],
    ) -> Result<Option<Array>> {
        if layout.numel() < least() || !is_enabled() {
            return Ok(None);
        }
        pending::sweep();
        let context = ins.iter().find_map(|a| a.storage().context());
        if !has_room(context, layout.numel(), out) {
            return Ok(None);
        }
        let Some(what) = row(func, compute, out, params, if context.is_some() { Device::Wgpu } else { Device::Cpu }) else {
            return Ok(None);
        };
        let Some(plan) = plan(func.reads(), layout, ins, None)? else { return Ok(None) };
        Ok(Some(pending::make(plan.step(what, out, layout, site()))))
    }

    /// The pending conversion of this array, or None where it has to be computed at once.
    pub(super) fn pending_cast(&self, to: DType) -> Result<Option<Array>> {
        if self.numel() < least() || !is_enabled() {
            return Ok(None);
        }
        pending::sweep();
        if !has_room(self.storage().context(), self.numel(), to) {
            return Ok(None);
        }
        let layout = if self.is_contiguous() { Layout::contiguous(self.shape()) } else { Layout::dense_like(self.shape(), self.strides()) };
        let Some(plan) = plan(1, &layout, &[self], None)? else { return Ok(None) };
        Ok(Some(pending::make(plan.step(What::Cast, to, &layout, site()))))
    }

    /// Whether a write to all of this array may wait.
    fn takes_steps(&self) -> Option<&Lazy> {
        // What is pending already may wait for one step more, however small it is.
        if self.numel() < least() && self.storage().is_plain() || !is_enabled() || !covers(self) {
            return None;
        }
        self.storage().lazy().filter(|l| !l.is_exposed())
    }

    /// Lets a row's result, which is to overwrite this array, stay pending; false where it has to be computed at once.
    pub(super) fn pending_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<bool> {
        let Some(lazy) = self.takes_steps() else { return Ok(false) };
        pending::sweep();
        let Some(what) = row(func, compute, self.dtype(), params, self.device()) else { return Ok(false) };
        self.storage().settle_readers()?;
        let more = |w: Weight| Weight { steps: w.steps + 1, inputs: w.inputs + ins.len() };
        let site = site();
        if lazy.step().is_some_and(|s| s.keeps_other_order(self.layout()) || !fits_together(more(s.weight), self.storage().context())) {
            self.ready()?;
        }
        let Some(mut plan) = plan(func.reads(), self.layout(), ins, Some(self))? else { return Ok(false) };
        pending::extend(self.storage(), |old| {
            if let Some(old) = &old {
                if old.keeps_other_order(self.layout()) {
                    return None;
                }
                plan.weight.steps += old.weight.steps;
                plan.weight.inputs += old.weight.inputs;
                plan.strided |= old.strided;
            }
            for i in &mut plan.ins {
                if let In::Old(step, _) = i {
                    step.clone_from(&old);
                }
            }
            Some(plan.step(what, self.dtype(), self.layout(), site))
        })
    }
}

impl Array {
    /// The pending result of `fold` over this array if that is pending itself, so that it may never have to be written; None where there is
    /// nothing to gain.
    ///
    /// `others` are what else the fold reads: row-major, and computed here if they are not.
    pub(super) fn pending_fold(
        &self,
        fold: impl FnOnce() -> Folding,
        others: &[Array],
        shape: &[usize],
        out: DType,
    ) -> Result<Option<Array>> {
        if !is_enabled() || !covers(self) {
            return Ok(None);
        }
        let Some(step) = self.storage().lazy().and_then(|l| l.step()) else { return Ok(None) };
        if step.refolded || step.out != self.dtype() {
            return Ok(None);
        }
        let mut ins: SmallVec<[In; 3]> = smallvec![In::Aligned(self.clone())];
        for a in others {
            if a.storage().is_external() || a.storage().lazy().is_some_and(Lazy::is_exposed) {
                return Ok(None);
            }
            a.ready()?;
            ins.push(In::Aligned(if a.storage().lazy().is_none() { a.clone_dense()? } else { a.clone() }));
        }
        pending::sweep();
        let weight = Weight { steps: step.weight.steps + 1, inputs: step.weight.inputs + others.len() };
        Ok(Some(pending::make(Step::new(Make::Fold(fold()), out, Layout::contiguous(shape), ins, weight, false, site()))))
    }
}

/// Whether the array is its storage's every element, in the order of memory.
fn covers(a: &Array) -> bool {
    a.layout().offset() == 0 && a.layout().is_dense() && a.numel() * a.storage().element_size(a.dtype()) == a.storage().bytes()
}

/// The row as a step, if its kernel exists and cannot fail on values.
fn row(func: Func, compute: DType, out: DType, params: &[Scalar], device: Device) -> Option<What> {
    if func.divides() && !compute.is_float() || func.out_dtype(compute) != out || !device.has_kernel(func, compute) {
        return None;
    }
    let mut all = [Scalar::Int(0); MAX_PARAMS];
    all.get_mut(..params.len())?.copy_from_slice(params);
    Some(What::Row { func, compute, params: all })
}

/// How each input is read by a result of this layout, which is to overwrite `own` if that is given; None where one cannot be read late.
fn plan(reads: u32, layout: &Layout, ins: &[&Array], own: Option<&Array>) -> Result<Option<Plan>> {
    let context = own.into_iter().chain(ins.iter().copied()).find_map(|a| a.storage().context());
    // What follows a fold is a program of its own: the one before it is over.
    let alone = own.and_then(|a| a.storage().lazy()?.step()).is_some_and(|s| s.folded);
    let mut all: SmallVec<[In; 3]> = SmallVec::new();
    for (k, a) in ins.iter().enumerate() {
        if reads >> k & 1 == 0 {
            all.push(In::Nothing);
            continue;
        }
        let Some(input) = look(layout, a, own, context)? else { return Ok(None) };
        if let (true, In::Aligned(a)) = (alone, &input) {
            a.ready()?;
        }
        all.push(input);
    }
    Plan::fitting(all, layout, context).map(Some)
}

fn look(layout: &Layout, a: &Array, own: Option<&Array>, context: Option<&Arc<Context>>) -> Result<Option<In>> {
    if let Some(own) = own
        && a.storage().same(own.storage())
    {
        return Ok((a.layout() == own.layout() && a.dtype() == own.dtype()).then(|| In::Old(None, a.dtype())));
    }
    let device = a.device() != Device::Cpu;
    if !device && (a.numel() == 1 || !a.shape().is_empty() && a.strides().iter().zip(a.shape()).all(|(s, n)| *s == 0 || *n == 1)) {
        a.ready()?;
        let mut bytes = [0u8; 8];
        // SAFETY: one element of at most 8 bytes is there.
        unsafe { std::ptr::copy_nonoverlapping(a.ptr(), bytes.as_mut_ptr(), a.dtype().size()) };
        return Ok(Some(In::Value(bytes, a.dtype())));
    }
    // Numbers apart, operands of the other device are for the operation itself to refuse.
    let elsewhere = match (a.storage().context(), context) {
        (None, None) => false,
        (Some(x), Some(y)) => !Arc::ptr_eq(x, y),
        _ => true,
    };
    if a.storage().is_external() || elsewhere || a.storage().lazy().is_some_and(Lazy::is_exposed) {
        return Ok(None);
    }
    let same = a.shape() == layout.shape() && a.strides().iter().zip(layout.strides()).zip(a.shape()).all(|((x, y), n)| x == y || *n == 1);
    if same || a.is_contiguous() && layout.is_contiguous() && a.numel() == layout.numel() {
        if a.storage().lazy().is_none() {
            return Ok(Some(In::Aligned(a.clone_dense()?)));
        }
        let whole = covers(a) && a.storage().lazy().and_then(|l| l.step()).is_none_or(|s| s.out == a.dtype());
        if !whole {
            a.ready()?;
        }
        return Ok(Some(In::Aligned(a.clone())));
    }
    a.ready()?;
    let expanded = a.layout().expand(layout.shape())?;
    let dims = collapse::<2>(layout.shape(), [layout.strides(), expanded.strides()], [1, a.dtype().size()]);
    let along = dims.last().is_none_or(|d| d.strides[1] == 0 || d.strides[1] == a.dtype().size() as isize);
    if !along && !device {
        return Ok(None);
    }
    // Small arrays are copied: nobody keeps watch over who writes to them.
    let a = if a.storage().lazy().is_some() { a.clone() } else { a.contiguous_copy()? };
    let expanded = a.layout().expand(layout.shape())?;
    Ok(Some(In::Strided(a.with_layout(expanded))))
}

impl Plan {
    /// Settles inputs that would make the program too large, or that are expanded to another shape than the result.
    fn fitting(ins: SmallVec<[In; 3]>, layout: &Layout, context: Option<&Arc<Context>>) -> Result<Plan> {
        let across = ins.iter().filter(|i| matches!(i, In::Strided(_))).count();
        let mut plan = Plan { weight: Weight { steps: 1, inputs: across }, strided: across > 0, ins };
        let mut waiting: SmallVec<[&Storage; 3]> = SmallVec::new();
        for i in &plan.ins {
            let In::Aligned(a) = i else { continue };
            match a.storage().lazy().and_then(Lazy::step) {
                Some(s) if s.folded || s.keeps_other_order(layout) => a.ready()?,
                Some(s) => {
                    plan.weight.steps += s.weight.steps;
                    plan.weight.inputs += s.weight.inputs;
                    plan.strided |= s.strided;
                    waiting.push(a.storage());
                }
                None => plan.weight.inputs += 1,
            }
        }
        if !fits_together(plan.weight, context) {
            let exact = pending::exact_weight(&waiting);
            plan.weight = Weight { steps: exact.steps + 1, inputs: exact.inputs + plan.ins.len() };
            if !fits_together(plan.weight, context) {
                waiting.iter().try_for_each(|s| s.settle(Access::Read))?;
                plan.weight = Weight { steps: 1, inputs: plan.ins.len() };
                plan.strided = across > 0;
            }
        }
        drop(waiting);
        Ok(plan)
    }

    fn step(self, what: What, out: DType, layout: &Layout, site: u32) -> Arc<Step> {
        Step::new(Make::Point(what), out, layout.clone(), self.ins, self.weight, self.strided, site)
    }
}
