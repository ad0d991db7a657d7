//! The list of pending storages, when their programs run, and the lock under which they run. See "Note: pending memory" in `deferred/mod.rs`; the
//! lock's rank is in `lock_order`.

use super::graph::{DropLater, MadeStorage, ProgramFailure, StepGraph, run};
use super::memory::DeferredMemory;
use super::step::{DeferredInput, DeferredKind, DeferredStep, ProgramWeight};
use crate::array::Array;
use crate::array::counted::CountedPlace;
use crate::array::lock_order::{self, HeldLock, LockMode, Rank, ReentrantMutex, ReentrantMutexGuard, TableLock, assert_no_guard, suspend};
use crate::array::storage::{Access, Device, Storage, StorageInner};
use crate::error::{Result, throw};
use crate::host::interrupt::{Paused, paused};
use crate::host::language;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Whether a program checks for interrupts by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::array) enum Interrupts {
    Checked,
    Ignored,
}

/// Held while programs run or grow in place.
static RUN: ReentrantMutex<()> = ReentrantMutex::new(());
/// The pending storages, in the order in which they became pending. While it is locked, no handle is dropped and no other lock is waited for.
static LIVE: TableLock<BTreeMap<u64, CountedPlace<StorageInner>>> = TableLock::new(BTreeMap::new());
static ENTERED: AtomicU64 = AtomicU64::new(1);
/// Why there may be programs that keep more memory alive than their results take: `STALE` and `ABANDONED`. Programs never run where a handle is
/// dropped or memory is allocated, but at the next safe point, where no guard is held.
static QUEUED: AtomicU8 = AtomicU8::new(0);
/// Since the last sweep, some memory has come to be held by pending steps alone.
const STALE: u8 = 1;
/// Since the last sweep, a pending result that other steps read has lost its last other holder. Its program may now keep more memory alive than
/// its results take.
const ABANDONED: u8 = 2;
/// The number of sweeps to skip, because the last one looked at many programs in vain.
static SKIPPED: AtomicUsize = AtomicUsize::new(0);
/// With more programs than this, not every sweep looks at them.
const MANY_PROGRAMS: usize = 256;

/// Adds a storage that has just become pending.
fn enter(storage: &Storage) {
    if let Some(deferred) = storage.deferred() {
        let number = ENTERED.fetch_add(1, Ordering::Relaxed);
        deferred.set_number(number);
        LIVE.lock().insert(number, storage.0.place());
    }
}

/// The pending storage with this number, unless its last handle is gone.
pub(in crate::array) fn find(number: u64) -> Option<Storage> {
    // SAFETY: a storage leaves the map, under this lock, before its memory goes.
    LIVE.lock().get(&number).and_then(|place| unsafe { place.revive() }).map(Storage)
}

/// Removes a storage that is computed or dropped.
#[cold]
pub(in crate::array) fn forget(deferred: &DeferredMemory) {
    LIVE.lock().remove(&deferred.number());
}

/// The lock `RUN`, and its entry in the order of locks.
struct ProgramLock {
    _run: ReentrantMutexGuard<'static, ()>,
    _held: HeldLock,
    // Programs ask the host themselves, without the lock.
    _paused: Paused,
}

/// Takes the lock `RUN`. A program on a device may need the host's lock to proceed, so a thread that waits here releases that.
#[cfg_attr(debug_assertions, track_caller)]
fn lock_programs() -> ProgramLock {
    let _held = lock_order::enter(Rank::Program, LockMode::Shared);
    ProgramLock { _run: run_lock(), _held, _paused: paused() }
}

fn run_lock() -> ReentrantMutexGuard<'static, ()> {
    RUN.try_lock().unwrap_or_else(|| language::unlocked(|| RUN.lock()))
}

/// Releases `RUN` while `f` runs, which may call foreign code. Other threads may run programs meanwhile, even this one, or write its inputs after
/// they have run it. That is safe because the interrupted program writes new memory only, and `compute` keeps memory that another thread has
/// provided.
///
/// # Safety
/// This thread holds `RUN`.
pub(in crate::array) unsafe fn outside<R>(f: impl FnOnce() -> R) -> R {
    struct Relock;
    impl Drop for Relock {
        fn drop(&mut self) {
            std::mem::forget(run_lock());
        }
    }
    // SAFETY: the caller's; `Relock` takes it again, also after a panic.
    unsafe { RUN.force_unlock() };
    let _back = Relock;
    let _suspended = suspend(Rank::Program);
    f()
}

/// Holds `RUN` from before a fork on, so that the child does not find it taken by a thread that it does not have. It is reentrant: until
/// `after_fork` any code may run on this thread.
pub(in crate::array) fn before_fork() {
    std::mem::forget(run_lock());
}

/// The end of `before_fork`, in parent and child.
///
/// # Safety
/// This thread has called `before_fork`, and not this since.
pub(in crate::array) unsafe fn after_fork() {
    // SAFETY: the forking thread took the lock in `before_fork`; in the child it is that thread's copy.
    unsafe { RUN.force_unlock() };
}

/// Holds the other lock of this file while the system forks, and nothing else runs.
pub(in crate::array) fn hold_in_fork() {
    LIVE.lock_for_fork();
}

/// The end of `hold_in_fork`, in parent and child.
///
/// # Safety
/// This thread has called `hold_in_fork`, and not this since.
pub(in crate::array) unsafe fn release_in_fork() {
    // SAFETY: as for `after_fork`.
    unsafe { LIVE.unlock_after_fork() };
}

/// Called when a handle of a storage that pending steps read is dropped, and `handles` are left. `there`: its memory is allocated; otherwise it
/// is pending too.
#[cold]
pub(in crate::array) fn handle_dropped(handles: usize, readers: usize, there: bool) {
    let flag = if there { STALE } else { ABANDONED };
    if handles <= readers && QUEUED.load(Ordering::Relaxed) & flag == 0 {
        QUEUED.fetch_or(flag, Ordering::Release);
    }
}

/// The pending storages, newest first: their programs contain the steps of older ones.
fn live() -> Vec<Storage> {
    let live = LIVE.lock();
    // SAFETY: a storage leaves the map, under this lock, before its memory goes.
    live.values().rev().filter_map(|p| unsafe { p.revive() }).map(Storage).collect()
}

/// A new array with pending contents: the result of `step`.
pub(in crate::array) fn make(step: Arc<DeferredStep>) -> Array {
    let (layout, dtype) = (step.layout.clone(), step.out);
    let device_handle = step.ins.iter().filter_map(DeferredInput::array).find_map(|a| a.storage().device_handle()).cloned();
    let size = device_handle.as_ref().map_or(dtype.size(), |h| h.backend.element_size(dtype));
    let storage = Storage::pending(layout.numel() * size, step, device_handle);
    enter(&storage);
    // SAFETY: the storage is as large as the layout, which is dense.
    let made = unsafe { Array::from_parts_unchecked(storage, layout, dtype) };
    if holds_excess_memory(made.storage()) {
        // A failure is not reported here: the program runs again when its result is read.
        let _ = language::unlocked(|| settle_here(made.storage(), Access::Read, Interrupts::Ignored));
    }
    made
}

/// Appends the step that `f` makes to the pending contents of `storage`, under `RUN`. If pending steps read the storage, they run first. Returns
/// false, and has done nothing, if `f` gives no step.
pub(in crate::array) fn extend(storage: &Storage, f: impl FnOnce(Option<Arc<DeferredStep>>) -> Option<Arc<DeferredStep>>) -> Result<bool> {
    let run = lock_programs();
    let Some(deferred) = storage.deferred() else { return Ok(false) };
    if deferred.readers() > 0 {
        drop(run);
        settle_readers(storage)?;
        return Ok(false);
    }
    if deferred.is_exposed() {
        return Ok(false);
    }
    let Some(step) = f(deferred.step()) else { return Ok(false) };
    if deferred.set_step(step) {
        enter(storage);
    }
    Ok(true)
}

/// Computes what is pending and must be done before an access of this kind.
#[cold]
pub(in crate::array) fn settle(storage: &Storage, access: Access) -> Result<()> {
    language::unlocked(|| settle_here(storage, access, Interrupts::Checked))
}

/// As `settle`, for callers that return no error: a failure panics with the error. Callers that can fail settle before.
#[cold]
#[inline(never)]
pub(in crate::array) fn must_settle(storage: &Storage, access: Access) {
    if let Err(e) = settle_here(storage, access, Interrupts::Ignored) {
        throw(e)
    }
}

fn settle_here(storage: &Storage, access: Access, interrupts: Interrupts) -> Result<()> {
    if access == Access::Write {
        run_readers(storage, interrupts)?;
    }
    let mut garbage = DropLater::default();
    let result = {
        let _alone = lock_programs();
        if storage.deferred().is_some_and(|l| l.is_pending()) { run(storage, &mut garbage, interrupts) } else { Ok(()) }
    };
    result.map_err(ProgramFailure::into_error)
}

/// Runs the programs that read `storage`.
pub(in crate::array) fn settle_readers(storage: &Storage) -> Result<()> {
    run_readers(storage, Interrupts::Checked)
}

fn run_readers(storage: &Storage, interrupts: Interrupts) -> Result<()> {
    let Some(deferred) = storage.deferred() else { return Ok(()) };
    if deferred.readers() == 0 {
        return Ok(());
    }
    let mut garbage = DropLater::default();
    let all = final_storages();
    let result = {
        let _run = lock_programs();
        all.iter().try_for_each(|s| {
            let reads = || {
                // The graph is dropped at once, because its handles count as other holders.
                let mut g = StepGraph::default();
                g.gather(s) && g.reads(storage)
            };
            if !s.same(storage) && s.deferred().is_some_and(|l| l.is_pending()) && reads() {
                run(s, &mut garbage, interrupts)
            } else {
                Ok(())
            }
        })
    };
    garbage.storages.extend(all);
    result.map_err(ProgramFailure::into_error)
}

/// Runs programs that keep more memory alive than their results will take. A safe point: no guard is held.
#[inline]
pub(in crate::array) fn sweep() {
    if QUEUED.load(Ordering::Relaxed) & STALE != 0 {
        sweep_now(STALE);
    }
}

/// Whether `sweep_abandoned` may find a program.
#[inline]
pub(in crate::array) fn is_queued() -> bool {
    QUEUED.load(Ordering::Relaxed) != 0
}

/// As `sweep`, before an operation that allocates at once. It also looks at results that have lost their last other holder. Before a step is
/// made that would be premature, because the step often takes them over.
#[inline]
pub(in crate::array) fn sweep_abandoned() {
    if is_queued() {
        sweep_now(STALE | ABANDONED);
    }
}

#[cold]
fn sweep_now(flags: u8) {
    assert_no_guard("running deferred programs");
    if QUEUED.fetch_and(!flags, Ordering::AcqRel) & flags == 0 {
        return;
    }
    // A program on a device may need the host's lock, which this thread may hold, so it does not wait here.
    let Some(_run) = RUN.try_lock() else {
        QUEUED.fetch_or(STALE, Ordering::Release);
        return;
    };
    let _held = lock_order::enter(Rank::Program, LockMode::Tried);
    if SKIPPED.load(Ordering::Relaxed) > 0 {
        SKIPPED.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let all = final_storages();
    let mut found = false;
    for s in &all {
        if s.deferred().is_some_and(|l| l.is_pending()) && holds_excess_memory(s) {
            found = true;
            // A failure is not reported here: the program runs again when its result is read.
            let _ = language::unlocked(|| settle_here(s, Access::Read, Interrupts::Ignored));
        }
    }
    if !found && all.len() > MANY_PROGRAMS {
        SKIPPED.store(all.len() / 64, Ordering::Relaxed);
    }
}

/// Computes everything that is pending on a device.
pub(in crate::array) fn settle_all(device: Device) -> Result<()> {
    final_storages().iter().filter(|s| s.device() == device).try_for_each(|s| s.settle(Access::Read))
}

/// The pending storages that no step reads; their programs contain all pending steps. These handles must be dropped before programs run, since
/// they count as other holders.
fn final_storages() -> Vec<Storage> {
    live().into_iter().filter(|s| s.deferred().is_some_and(|l| l.is_pending() && l.readers() == 0)).collect()
}

/// Whether the program of a pending storage keeps more bytes alive, which nothing else holds, than its results will take.
fn holds_excess_memory(storage: &Storage) -> bool {
    let mut g = StepGraph::default();
    if !g.gather(storage) {
        return false;
    }
    let mut held_alone = 0;
    for e in &g.externals {
        // One handle is this list's.
        if e.storage.deferred().is_some() && e.storage.0.count() <= 1 + e.refs {
            held_alone += e.storage.bytes();
        }
    }
    // Storages that the program overwrites in place exist already.
    let others = |o: &&MadeStorage| !o.is_new() && !g.is_held(o);
    held_alone += g.owners.iter().filter(others).map(|o| o.storage.bytes()).sum::<usize>();
    if held_alone == 0 {
        return false;
    }
    let held: usize = g.owners.iter().map(|o| if g.is_held(o) && o.is_new() { o.storage.bytes() } else { 0 }).sum();
    held_alone > held
}

/// The exact number of steps and inputs of the programs of these storages together.
pub(in crate::array) fn exact_weight(storages: &[&Storage]) -> ProgramWeight {
    let mut g = StepGraph::default();
    for s in storages {
        g.gather(s);
    }
    let sources = g.nodes.iter().filter(|n| matches!(n.step.kind, DeferredKind::Source(_))).count();
    ProgramWeight { steps: g.nodes.len(), inputs: g.externals.len(), sources }
}
