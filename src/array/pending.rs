//! Pending results: pointwise results on large arrays stay steps over their inputs until somebody looks at the memory.
//!
//! A step belongs to the storage whose contents it will make, and holds the arrays that it reads. Those that are pending themselves
//! are steps of the same program. Invariants: a storage that a pending step reads is not written before that step has run (a write
//! settles its readers first), and its address is not known outside. A step reads memory only in `run`, under the lock `RUN`, which
//! is also held while a step is put behind another one on the same storage. Its place among the locks: `lock_order`.

use super::counted::Place;
use super::lazy::Lazy;
use super::program::{Failure, Garbage, Graph, Owner, run};
use super::storage::{Access, Device, Inner, Storage};
use super::value::Array;
use crate::backend::host;
use crate::backend::lock_order::{self, HeldLock, Rank, Table, Way, assert_no_guard, suspend};
use crate::backend::program::StepKind;
use crate::backend::requests::Request;
use crate::error::{Result, throw};
use crate::layout::{DType, Layout};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// More steps than this are not kept waiting together.
pub(super) const MOST_STEPS: usize = 48;
/// A program with more inputs would read too many streams of memory at once.
pub(super) const MOST_INPUTS: usize = 12;

/// What a step reads.
pub(super) enum In {
    Nothing,
    /// One value, taken when the step was made.
    Value([u8; 8], DType),
    /// An array that lies as the result does, element for element.
    Aligned(Array),
    /// An array expanded to the result's shape.
    Strided(Array),
    /// What stood before in the storage that the step's result goes to: a step's result, or what is in its memory.
    Old(Option<Arc<Step>>, DType),
}

impl In {
    pub fn array(&self) -> Option<&Array> {
        match self {
            In::Aligned(a) | In::Strided(a) => Some(a),
            _ => None,
        }
    }

    pub fn dtype(&self) -> DType {
        match self {
            In::Nothing => DType::Bool,
            In::Value(_, d) | In::Old(_, d) => *d,
            In::Aligned(a) | In::Strided(a) => a.dtype(),
        }
    }
}

/// A bound on the size of the program that ends in a step.
#[derive(Clone, Copy, Default)]
pub(super) struct Weight {
    pub steps: usize,
    pub inputs: usize,
}

pub(super) enum Make {
    Point(StepKind),
    /// One output of a request, from the first input, which lies in any dense order; others are in memory.
    Request {
        request: Arc<Requested>,
        output: usize,
    },
}

/// A deferred request. Each of its outputs is a step of its own; the first that runs writes the others, too.
pub(super) struct Requested {
    pub request: Request,
    /// For each output, the number under which its storage is registered as pending; 0 before it is.
    numbers: SmallVec<[AtomicU64; 2]>,
}

impl Requested {
    pub fn new(request: Request) -> Arc<Requested> {
        let numbers = (0..request.outputs()).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Requested { request, numbers })
    }

    /// Says where `output` is found from now on.
    pub fn register(&self, output: usize, made: &Array) {
        if let Some(lazy) = made.storage().lazy() {
            self.numbers[output].store(lazy.number(), Ordering::Release);
        }
    }

    /// The storages and steps of the other outputs that somebody holds, that have not been computed, and that nothing was written to since.
    pub fn others(self: &Arc<Requested>, output: usize) -> SmallVec<[Sibling; 1]> {
        let mut others = SmallVec::new();
        for (k, number) in self.numbers.iter().enumerate().filter(|(k, _)| *k != output) {
            let found = LIVE.lock().get(&number.load(Ordering::Acquire)).and_then(|place| {
                // SAFETY: a storage leaves the map, under this lock, before its memory goes.
                unsafe { place.revive() }
            });
            let Some(storage) = found.map(Storage) else { continue };
            let step = storage.lazy().filter(|l| !l.is_there()).and_then(Lazy::step);
            let is_output =
                |s: &Arc<Step>| matches!(&s.make, Make::Request { request, output } if Arc::ptr_eq(request, self) && *output == k);
            if let Some(step) = step.filter(is_output) {
                others.push(Sibling { output: k, step, storage });
            }
        }
        others
    }
}

/// Another output of the request in a program.
pub(super) struct Sibling {
    pub output: usize,
    pub step: Arc<Step>,
    pub storage: Storage,
}

pub(super) struct Step {
    pub make: Make,
    pub out: DType,
    /// Where the result's elements lie: densely, from the storage's start on.
    pub layout: Layout,
    pub ins: SmallVec<[In; 3]>,
    pub site: u32,
    pub weight: Weight,
    /// Whether a step of the program reads an array of another layout: then all of these have this one's.
    pub strided: bool,
    /// Whether it is a fold, or works in place on what one gave. Such results are no part of another program.
    pub folded: bool,
    /// Whether it is folded, and of what a fold gave.
    pub refolded: bool,
}

impl Step {
    /// `site` is the caller's line, which is not asked for here: `RUN` may be held.
    pub fn new(make: Make, out: DType, layout: Layout, ins: SmallVec<[In; 3]>, weight: Weight, strided: bool, site: u32) -> Arc<Step> {
        for a in ins.iter().filter_map(In::array) {
            if let Some(lazy) = a.storage().lazy() {
                lazy.add_reader();
            }
        }
        let folded = matches!(make, Make::Request { .. }) || ins.iter().any(|i| matches!(i, In::Old(Some(s), _) if s.folded));
        let refolds = |i: &In| match i {
            In::Aligned(a) => a.storage().lazy().and_then(Lazy::step).is_some_and(|s| s.folded),
            In::Old(Some(s), _) => s.refolded,
            _ => false,
        };
        let refolded = folded && ins.iter().any(refolds);
        Arc::new(Step { folded, refolded, make, out, layout, ins, site, weight, strided })
    }

    /// Whether something is read expanded to this step's layout, which is not `layout`: a program goes through one only.
    pub fn keeps_other_order(&self, layout: &Layout) -> bool {
        self.strided && self.layout != *layout
    }

    /// What the fold of a folded step reads as its elements are made.
    pub fn fold_input(&self) -> Option<&Array> {
        let mut step = self;
        while let Make::Point(_) = step.make {
            step = step.ins.iter().find_map(|i| if let In::Old(Some(s), _) = i { Some(s).filter(|s| s.folded) } else { None })?;
        }
        step.ins[0].array()
    }

    pub fn name(&self) -> &'static str {
        match &self.make {
            Make::Point(StepKind::Row { func, .. }) => func.row.info().name,
            Make::Point(StepKind::Cast) => "to",
            Make::Request { request, .. } => request.request.name(),
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        for a in self.ins.iter().filter_map(In::array) {
            if let Some(lazy) = a.storage().lazy() {
                lazy.remove_reader();
            }
        }
    }
}

/// Whether who waits for a program can be told that the host wants it to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupts {
    Told,
    Unheard,
}

/// Held while programs run or grow in place.
static RUN: ReentrantMutex<()> = ReentrantMutex::new(());
/// The storages that are pending, in the order in which they became so. No thread drops a handle, or waits for another lock, while it holds this one.
static LIVE: Table<BTreeMap<u64, Place<Inner>>> = Table::new(BTreeMap::new());
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
const MANY: usize = 256;

/// Enters a storage that has just become pending.
fn enter(storage: &Storage) {
    if let Some(lazy) = storage.lazy() {
        let number = ENTERED.fetch_add(1, Ordering::Relaxed);
        lazy.set_number(number);
        LIVE.lock().insert(number, storage.0.place());
    }
}

/// The end of a pending storage, or of its pendency.
#[cold]
pub(super) fn forget(lazy: &Lazy) {
    LIVE.lock().remove(&lazy.number());
}

/// The lock `RUN`, and its entry in the order of locks.
struct Alone {
    _run: ReentrantMutexGuard<'static, ()>,
    _held: HeldLock,
}

/// Takes the lock `RUN`. A program on a device may need the host's lock to go on, so a thread that holds that releases it to wait here.
#[cfg_attr(debug_assertions, track_caller)]
fn alone() -> Alone {
    let _held = lock_order::enter(Rank::Program, Way::Beside);
    Alone { _run: run_lock(), _held }
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
pub(super) unsafe fn outside<R>(f: impl FnOnce() -> R) -> R {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            std::mem::forget(run_lock());
        }
    }
    // SAFETY: the caller's; `Back` takes it again, also for a panic.
    unsafe { RUN.force_unlock() };
    let _back = Back;
    let _suspended = suspend(Rank::Program);
    f()
}

/// Holds the locks of this file across a fork, so that the child does not find them taken by a thread that it does not have.
pub(super) fn before_fork() {
    std::mem::forget(run_lock());
    LIVE.lock_for_fork();
}

/// The end of `before_fork`, in parent and child.
///
/// # Safety
/// This thread has called `before_fork`, and not this since.
pub(super) unsafe fn after_fork() {
    // SAFETY: the forking thread took the locks in `before_fork`; in the child it is that thread's copy.
    unsafe {
        LIVE.unlock_after_fork();
        RUN.force_unlock();
    }
}

/// Called when a handle of a storage that pending steps read goes away and leaves `handles`; its memory is there, or pending too.
#[cold]
pub(super) fn left(handles: usize, readers: usize, there: bool) {
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
pub(super) fn make(step: Arc<Step>) -> Array {
    let (layout, dtype) = (step.layout.clone(), step.out);
    let home = step.ins.iter().filter_map(In::array).find_map(|a| a.storage().home()).cloned();
    let size = home.as_ref().map_or(dtype.size(), |h| h.backend.element_size(dtype));
    let storage = Storage::pending(layout.numel() * size, step, home);
    enter(&storage);
    // SAFETY: the storage is as large as the layout, which is dense.
    let made = unsafe { Array::from_parts_unchecked(storage, layout, dtype) };
    if hoards(made.storage()) {
        // What cannot be had now may be had when somebody looks.
        let _ = host::unlocked(|| settle_here(made.storage(), Access::Read, Interrupts::Unheard));
    }
    made
}

/// Holds off runs by other threads while `f` puts a step behind what is in `storage`, after everybody who reads it has been served. False,
/// and nothing done, where `f` gives none.
pub(super) fn extend(storage: &Storage, f: impl FnOnce(Option<Arc<Step>>) -> Option<Arc<Step>>) -> Result<bool> {
    let run = alone();
    let Some(lazy) = storage.lazy() else { return Ok(false) };
    if lazy.readers() > 0 {
        drop(run);
        serve_readers(storage)?;
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
pub(super) fn settle(storage: &Storage, access: Access) -> Result<()> {
    host::unlocked(|| settle_here(storage, access, Interrupts::Told))
}

/// As `settle`, where nobody can be told of a failure: it is thrown. Whoever can fail settles before.
#[cold]
#[inline(never)]
pub(super) fn must_settle(storage: &Storage, access: Access) {
    if let Err(e) = settle_here(storage, access, Interrupts::Unheard) {
        throw(e)
    }
}

fn settle_here(storage: &Storage, access: Access, interrupts: Interrupts) -> Result<()> {
    if access == Access::Write {
        serve(storage, interrupts)?;
    }
    let mut garbage = Garbage::default();
    let result = {
        let _alone = alone();
        if storage.lazy().is_some_and(|l| l.is_pending()) { run(storage, &mut garbage, interrupts) } else { Ok(()) }
    };
    result.map_err(Failure::tell)
}

/// Runs the programs that read `storage`.
pub(super) fn serve_readers(storage: &Storage) -> Result<()> {
    serve(storage, Interrupts::Told)
}

fn serve(storage: &Storage, interrupts: Interrupts) -> Result<()> {
    let Some(lazy) = storage.lazy() else { return Ok(()) };
    if lazy.readers() == 0 {
        return Ok(());
    }
    let mut garbage = Garbage::default();
    let all = ends();
    let result = {
        let _run = alone();
        all.iter().try_for_each(|s| {
            let reads = || {
                // Its handles count as somebody's; all of them are held by the end's steps as well.
                let mut g = Graph::default();
                g.gather(s) && g.reads(storage)
            };
            if !s.same(storage) && s.lazy().is_some_and(|l| l.is_pending()) && reads() { run(s, &mut garbage, interrupts) } else { Ok(()) }
        })
    };
    garbage.storages.extend(all);
    result.map_err(Failure::tell)
}

/// Runs what keeps more memory alive than its results will take. A safe point: no guard is held.
#[inline]
pub(super) fn sweep() {
    if QUEUED.load(Ordering::Relaxed) & STALE != 0 {
        sweep_now(STALE);
    }
}

/// Whether `sweep_left` has something to look at.
#[inline]
pub(super) fn is_queued() -> bool {
    QUEUED.load(Ordering::Relaxed) != 0
}

/// As `sweep`, before an operation that asks for memory at once: not only where a step is made, of which many are left by the next one.
#[inline]
pub(super) fn sweep_left() {
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
    let _held = lock_order::enter(Rank::Program, Way::Tried);
    if SKIPPED.load(Ordering::Relaxed) > 0 {
        SKIPPED.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let all = ends();
    let mut found = false;
    for s in &all {
        if s.lazy().is_some_and(|l| l.is_pending()) && hoards(s) {
            found = true;
            // What cannot be had now may be had when somebody looks.
            let _ = host::unlocked(|| settle_here(s, Access::Read, Interrupts::Unheard));
        }
    }
    if !found && all.len() > MANY {
        SKIPPED.store(all.len() / 64, Ordering::Relaxed);
    }
}

/// Computes everything that is pending on a device.
pub(super) fn settle_all(device: Device) -> Result<()> {
    ends().iter().filter(|s| s.device() == device).try_for_each(|s| s.settle(Access::Read))
}

/// The pending storages that no step reads: their programs contain all pending steps. Handles of others must not be held while programs
/// run, since they count as somebody's.
fn ends() -> Vec<Storage> {
    live().into_iter().filter(|s| s.lazy().is_some_and(|l| l.is_pending() && l.readers() == 0)).collect()
}

/// Whether the steps of a pending storage's program hold more bytes that nobody else holds than their results will take.
fn hoards(storage: &Storage) -> bool {
    let mut g = Graph::default();
    if !g.gather(storage) {
        return false;
    }
    let mut alone = 0;
    for e in &g.externals {
        // One handle is this list's.
        if e.storage.lazy().is_some() && e.storage.0.count() <= 1 + e.refs {
            alone += e.storage.bytes();
        }
    }
    // What is written in place is there as well.
    let others = |o: &&Owner| !o.is_new() && !g.is_held(o);
    alone += g.owners.iter().filter(others).map(|o| o.storage.bytes()).sum::<usize>();
    if alone == 0 {
        return false;
    }
    let held: usize = g.owners.iter().map(|o| if g.is_held(o) && o.is_new() { o.storage.bytes() } else { 0 }).sum();
    alone > held
}

/// How many steps and inputs the program has that ends in `storage`.
pub(super) fn exact_weight(storages: &[&Storage]) -> Weight {
    let mut g = Graph::default();
    for s in storages {
        g.gather(s);
    }
    Weight { steps: g.nodes.len(), inputs: g.externals.len() }
}
