//! The storages that are pending: which there are, when their programs run, and the lock under which they do.
//!
//! Invariants: a storage that a pending step reads is not written before that step has run (a write settles its readers first), and its
//! address is not known outside. A step reads memory only in `run`, under the lock `RUN`, which is also held while a step is put behind
//! another one on the same storage. Its rank among the locks: `lock_order`.

use super::graph::{DropLater, MadeStorage, ProgramFailure, StepGraph, run};
use super::memory::DeferredMemory;
use super::step::{DeferredInput, DeferredStep, ProgramWeight};
use crate::array::Array;
use crate::array::counted::CountedPlace;
use crate::array::storage::{Access, Device, Storage, StorageInner};
use crate::backend::host;
use crate::backend::lock_order::{self, HeldLock, LockMode, Rank, Table, assert_no_guard, suspend};
use crate::error::{Result, throw};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Whether the thread that waits for a program can be told that the host wants it to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::array) enum Interrupts {
    Checked,
    Ignored,
}

/// Held while programs run or grow in place.
static RUN: ReentrantMutex<()> = ReentrantMutex::new(());
/// The storages that are pending, in the order in which they became so. No thread drops a handle, or waits for another lock, while it holds this one.
static LIVE: Table<BTreeMap<u64, CountedPlace<StorageInner>>> = Table::new(BTreeMap::new());
static ENTERED: AtomicU64 = AtomicU64::new(1);
/// Why to look for programs that keep more alive than they give: `STALE` and `LEFT`. Nothing runs where a handle ends, nor where memory
/// is allocated: programs run at the next safe point, where no guard is held.
static QUEUED: AtomicU8 = AtomicU8::new(0);
/// Memory is held by pending steps alone since the last sweep.
const STALE: u8 = 1;
/// A pending result that other steps read has lost its last other holder since the last sweep: what its program keeps alive may now be
/// more than what it gives.
const LEFT: u8 = 2;
/// Sweeps that are left out because the last one looked at many programs in vain.
static SKIPPED: AtomicUsize = AtomicUsize::new(0);
/// More programs than this are not looked at for every piece of memory that becomes theirs alone.
const MANY_PROGRAMS: usize = 256;

/// Enters a storage that has just become pending.
fn enter(storage: &Storage) {
    if let Some(lazy) = storage.deferred() {
        let number = ENTERED.fetch_add(1, Ordering::Relaxed);
        lazy.set_number(number);
        LIVE.lock().insert(number, storage.0.place());
    }
}

/// The storage that is pending under this number, unless its last handle is gone.
pub(in crate::array) fn find(number: u64) -> Option<Storage> {
    // SAFETY: a storage leaves the map, under this lock, before its memory goes.
    LIVE.lock().get(&number).and_then(|place| unsafe { place.revive() }).map(Storage)
}

/// A storage is pending no longer, or ends.
#[cold]
pub(in crate::array) fn forget(lazy: &DeferredMemory) {
    LIVE.lock().remove(&lazy.number());
}

/// The lock `RUN`, and its entry in the order of locks.
struct ProgramLock {
    _run: ReentrantMutexGuard<'static, ()>,
    _held: HeldLock,
}

/// Takes the lock `RUN`. A program on a device may need the host's lock to go on, so a thread that holds that releases it to wait here.
#[cfg_attr(debug_assertions, track_caller)]
fn lock_programs() -> ProgramLock {
    let _held = lock_order::enter(Rank::Program, LockMode::Shared);
    ProgramLock { _run: run_lock(), _held }
}

fn run_lock() -> ReentrantMutexGuard<'static, ()> {
    RUN.try_lock().unwrap_or_else(|| host::unlocked(|| RUN.lock()))
}

/// Runs `f`, which may run foreign code, in the middle of a program that may be interrupted, while other threads may run programs. They may
/// run this very one, or write what it reads after they have run it: everything that it writes is new memory, and `compute` leaves alone
/// what is there already.
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
    // SAFETY: the caller's; `Back` takes it again, also for a panic.
    unsafe { RUN.force_unlock() };
    let _back = Relock;
    let _suspended = suspend(Rank::Program);
    f()
}

/// Holds the locks of this file across a fork, so that the child does not find them taken by a thread that it does not have.
pub(in crate::array) fn before_fork() {
    std::mem::forget(run_lock());
    LIVE.lock_for_fork();
}

/// The end of `before_fork`, in parent and child.
///
/// # Safety
/// This thread has called `before_fork`, and not this since.
pub(in crate::array) unsafe fn after_fork() {
    // SAFETY: the forking thread took the locks in `before_fork`; in the child it is that thread's copy.
    unsafe {
        LIVE.unlock_after_fork();
        RUN.force_unlock();
    }
}

/// Called when a handle of a storage that pending steps read goes away and leaves `handles`; its memory is there, or pending too.
#[cold]
pub(in crate::array) fn left(handles: usize, readers: usize, there: bool) {
    let flag = if there { STALE } else { LEFT };
    if handles <= readers && QUEUED.load(Ordering::Relaxed) & flag == 0 {
        QUEUED.fetch_or(flag, Ordering::Release);
    }
}

/// The newest first: their programs contain the older ones' steps.
fn live() -> Vec<Storage> {
    let live = LIVE.lock();
    // SAFETY: a storage leaves the map, under this lock, before its memory goes.
    live.values().rev().filter_map(|p| unsafe { p.revive() }).map(Storage).collect()
}

/// A new array whose values `step` makes.
pub(in crate::array) fn make(step: Arc<DeferredStep>) -> Array {
    let (layout, dtype) = (step.layout.clone(), step.out);
    let home = step.ins.iter().filter_map(DeferredInput::array).find_map(|a| a.storage().home()).cloned();
    let size = home.as_ref().map_or(dtype.size(), |h| h.backend.element_size(dtype));
    let storage = Storage::pending(layout.numel() * size, step, home);
    enter(&storage);
    // SAFETY: the storage is as large as the layout, which is dense.
    let made = unsafe { Array::from_parts_unchecked(storage, layout, dtype) };
    if holds_excess_memory(made.storage()) {
        // What cannot be had now may be had when somebody looks.
        let _ = host::unlocked(|| settle_here(made.storage(), Access::Read, Interrupts::Ignored));
    }
    made
}

/// Holds off runs by other threads while `f` puts a step behind what is in `storage`, after everybody who reads it has been served. False,
/// and nothing done, where `f` gives none.
pub(in crate::array) fn extend(storage: &Storage, f: impl FnOnce(Option<Arc<DeferredStep>>) -> Option<Arc<DeferredStep>>) -> Result<bool> {
    let run = lock_programs();
    let Some(lazy) = storage.deferred() else { return Ok(false) };
    if lazy.readers() > 0 {
        drop(run);
        settle_readers(storage)?;
        return Ok(false);
    }
    if lazy.is_exposed() {
        return Ok(false);
    }
    let Some(step) = f(lazy.step()) else { return Ok(false) };
    if lazy.set_step(step) {
        enter(storage);
    }
    Ok(true)
}

/// Computes what is pending, as far as an access of this kind has to see it done.
#[cold]
pub(in crate::array) fn settle(storage: &Storage, access: Access) -> Result<()> {
    host::unlocked(|| settle_here(storage, access, Interrupts::Checked))
}

/// As `settle`, for callers that return no error: a failure is thrown. Callers that can fail settle before.
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
    let Some(lazy) = storage.deferred() else { return Ok(()) };
    if lazy.readers() == 0 {
        return Ok(());
    }
    let mut garbage = DropLater::default();
    let all = final_storages();
    let result = {
        let _run = lock_programs();
        all.iter().try_for_each(|s| {
            let reads = || {
                // Its handles count as somebody's; all of them are held by the end's steps as well.
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

/// Runs what keeps more memory alive than its results will take. A safe point: no guard is held.
#[inline]
pub(in crate::array) fn sweep() {
    if QUEUED.load(Ordering::Relaxed) & STALE != 0 {
        sweep_now(STALE);
    }
}

/// Whether `sweep_left` has something to look at.
#[inline]
pub(in crate::array) fn is_queued() -> bool {
    QUEUED.load(Ordering::Relaxed) != 0
}

/// As `sweep`, before an operation that asks for memory at once: not only where a step is made, of which many are left by the next one.
#[inline]
pub(in crate::array) fn sweep_left() {
    if is_queued() {
        sweep_now(STALE | LEFT);
    }
}

#[cold]
fn sweep_now(flags: u8) {
    assert_no_guard("running deferred programs");
    if QUEUED.fetch_and(!flags, Ordering::AcqRel) & flags == 0 {
        return;
    }
    // Whoever runs on a device may want the host's lock, which this thread may hold: nobody waits here.
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
            // What cannot be had now may be had when somebody looks.
            let _ = host::unlocked(|| settle_here(s, Access::Read, Interrupts::Ignored));
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

/// The pending storages that no step reads: their programs contain all pending steps. Handles of others must not be held while programs
/// run, since they count as somebody's.
fn final_storages() -> Vec<Storage> {
    live().into_iter().filter(|s| s.deferred().is_some_and(|l| l.is_pending() && l.readers() == 0)).collect()
}

/// Whether the steps of a pending storage's program hold more bytes that nobody else holds than their results will take.
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
    // What is written in place is there as well.
    let others = |o: &&MadeStorage| !o.is_new() && !g.is_held(o);
    held_alone += g.owners.iter().filter(others).map(|o| o.storage.bytes()).sum::<usize>();
    if held_alone == 0 {
        return false;
    }
    let held: usize = g.owners.iter().map(|o| if g.is_held(o) && o.is_new() { o.storage.bytes() } else { 0 }).sum();
    held_alone > held
}

/// How many steps and inputs the program has that ends in `storage`.
pub(in crate::array) fn exact_weight(storages: &[&Storage]) -> ProgramWeight {
    let mut g = StepGraph::default();
    for s in storages {
        g.gather(s);
    }
    ProgramWeight { steps: g.nodes.len(), inputs: g.externals.len() }
}
