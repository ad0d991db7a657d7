//! Pending results: pointwise results on large arrays stay steps over their inputs until somebody looks at the memory.
//!
//! A step belongs to the storage whose contents it will make, and holds the arrays that it reads. Those that are pending themselves
//! are steps of the same program. Invariants: a storage that a pending step reads is not written before that step has run (a write
//! settles its readers first), and its address is not known outside. A step reads memory only in `run`, under the lock `RUN`, which
//! is also held while a step is put behind another one on the same storage. Nobody waits for the host's lock while he holds it.

use super::counted::Place;
use super::fusion;
use super::lazy::Source;
use super::storage::{Access, Inner, Storage};
use super::value::Array;
use crate::backend::cpu::alloc::Buffer;
use crate::backend::cpu::program::{Input, Runner};
use crate::backend::cpu::reduce::Blocks;
use crate::backend::host;
use crate::backend::program::{self, Code, What};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout};
use parking_lot::{Mutex, ReentrantMutex};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    fn array(&self) -> Option<&Array> {
        match self {
            In::Aligned(a) | In::Strided(a) => Some(a),
            _ => None,
        }
    }

    fn dtype(&self) -> DType {
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

/// Makes a smaller result from all elements of an array.
pub(super) trait Fold: Send + Sync {
    fn name(&self) -> &'static str;

    /// Reads the elements from `from` and leaves the result in `to`.
    ///
    /// # Safety
    /// `from` gives every element of the array that the fold was made for, and `to` has room for the result.
    unsafe fn run(&self, from: From<'_>, to: *mut u8);
}

/// Where a fold's elements come from.
pub(super) enum From<'a> {
    Memory(*const u8),
    Made(&'a dyn Blocks),
}

pub(super) enum Make {
    Point(What),
    /// From the one input, which lies in any dense order.
    Fold(Arc<dyn Fold>),
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
}

impl Step {
    pub fn new(make: Make, out: DType, layout: Layout, ins: SmallVec<[In; 3]>, weight: Weight, strided: bool) -> Arc<Step> {
        for a in ins.iter().filter_map(In::array) {
            if let Some(lazy) = a.storage().lazy() {
                lazy.add_reader();
            }
        }
        let folded = matches!(make, Make::Fold(_)) || ins.iter().any(|i| matches!(i, In::Old(Some(s), _) if s.folded));
        Arc::new(Step { folded, make, out, layout, ins, site: fusion::site(), weight, strided })
    }

    pub fn is_fold(&self) -> bool {
        matches!(self.make, Make::Fold(_))
    }

    fn name(&self) -> &'static str {
        match &self.make {
            Make::Point(What::Row { func, .. }) => func.row.info().name,
            Make::Point(What::Cast) => "to",
            Make::Fold(fold) => fold.name(),
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

/// Held while programs run or grow in place.
static RUN: ReentrantMutex<()> = ReentrantMutex::new(());
/// The storages that are pending, by address. Nobody drops a handle, or waits for another lock, while he holds this one.
static LIVE: Mutex<BTreeMap<usize, Place<Inner>>> = Mutex::new(BTreeMap::new());
/// Whether memory is held by pending steps alone since the last sweep.
static STALE: AtomicBool = AtomicBool::new(false);

fn key(inner: &Inner) -> usize {
    std::ptr::from_ref(inner) as usize
}

/// Enters a storage that has just become pending.
fn enter(storage: &Storage) {
    LIVE.lock().insert(key(&storage.0), storage.0.place());
}

/// The end of a pending storage, or of its pendency.
#[cold]
pub(super) fn forget(inner: &Inner) {
    LIVE.lock().remove(&key(inner));
}

/// Holds the locks of this file across a fork, so that the child does not find them taken by a thread that it does not have.
pub(super) fn before_fork() {
    std::mem::forget(RUN.lock());
    std::mem::forget(LIVE.lock());
}

/// The end of `before_fork`, in parent and child.
pub(super) fn after_fork() {
    // SAFETY: the forking thread took the locks in `before_fork`; in the child it is that thread's copy.
    unsafe {
        LIVE.force_unlock();
        RUN.force_unlock();
    }
}

/// Called when a handle of a storage that pending steps read goes away and leaves `handles`.
#[cold]
pub(super) fn left(handles: usize, readers: usize) {
    if handles <= readers {
        STALE.store(true, Ordering::Release);
    }
}

fn live() -> Vec<Storage> {
    let live = LIVE.lock();
    // SAFETY: a storage leaves the map, under this lock, before its memory goes.
    live.values().filter_map(|p| unsafe { p.revive() }).map(Storage).collect()
}

/// A new array whose values `step` makes.
pub(super) fn make(step: Arc<Step>) -> Array {
    let (layout, dtype) = (step.layout.clone(), step.out);
    let storage = Storage::pending(layout.numel() * dtype.size(), step);
    enter(&storage);
    let made = Array::from_parts(storage, layout, dtype);
    if hoards(made.storage()) {
        // What cannot be had now may be had when somebody looks.
        let _ = settle(made.storage(), Access::Read);
    }
    made
}

/// Holds off runs by other threads while `f` puts a step behind what is in `storage`, after everybody who reads it has been served.
pub(super) fn extend(storage: &Storage, f: impl FnOnce(Option<Arc<Step>>) -> Arc<Step>) -> Result<bool> {
    let run = RUN.lock();
    let Some(lazy) = storage.lazy() else { return Ok(false) };
    if lazy.readers() > 0 {
        drop(run);
        serve_readers(storage)?;
        return Ok(false);
    }
    if lazy.is_exposed() {
        return Ok(false);
    }
    if lazy.set_step(f(lazy.step())) {
        enter(storage);
    }
    Ok(true)
}

/// Computes what is pending, as far as an access of this kind has to see it done.
#[cold]
pub(super) fn settle(storage: &Storage, access: Access) -> Result<()> {
    host::unlocked(|| settle_here(storage, access))
}

/// As `settle`, where nobody can be told of a failure.
#[cold]
#[inline(never)]
pub(super) fn must_settle(storage: &Storage, access: Access) {
    if let Err(e) = settle_here(storage, access) {
        panic!("{e}")
    }
}

fn settle_here(storage: &Storage, access: Access) -> Result<()> {
    if access == Access::Write {
        serve_readers(storage)?;
    }
    let mut garbage = Garbage::default();
    let result = {
        let _run = RUN.lock();
        if storage.lazy().is_some_and(|l| l.is_pending()) { run(storage, &mut garbage) } else { Ok(()) }
    };
    result.map_err(Failure::tell)
}

/// Runs the programs that read `storage`.
pub(super) fn serve_readers(storage: &Storage) -> Result<()> {
    let Some(lazy) = storage.lazy() else { return Ok(()) };
    if lazy.readers() == 0 {
        return Ok(());
    }
    let mut garbage = Garbage::default();
    let all = live();
    let result = {
        let _run = RUN.lock();
        all.iter().try_for_each(|s| {
            let mut g = Graph::default();
            if !s.same(storage) && s.lazy().is_some_and(|l| l.is_pending()) && g.gather(s) && g.reads(storage) {
                run(s, &mut garbage)?;
            }
            garbage.graphs.push(g);
            Ok(())
        })
    };
    garbage.storages.extend(all);
    result.map_err(Failure::tell)
}

/// Runs what keeps more memory alive than its results will take. To be called before memory is asked for.
#[inline]
pub(super) fn sweep() {
    if STALE.load(Ordering::Relaxed) {
        sweep_now();
    }
}

#[cold]
fn sweep_now() {
    if !STALE.swap(false, Ordering::AcqRel) {
        return;
    }
    for s in live() {
        if s.lazy().is_some_and(|l| l.is_pending()) && hoards(&s) {
            // What cannot be had now may be had when somebody looks.
            let _ = settle_here(&s, Access::Read);
        }
    }
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

/// What may only be dropped when no lock is held.
#[derive(Default)]
struct Garbage {
    graphs: Vec<Graph>,
    steps: Vec<Arc<Step>>,
    storages: Vec<Storage>,
}

/// A storage that steps of a program make.
struct Owner {
    storage: Storage,
    /// Handles that the program's own steps have.
    refs: usize,
    /// The node of the step that is in the storage now.
    node: usize,
}

impl Owner {
    /// Whether its memory has yet to be asked for.
    fn is_new(&self) -> bool {
        self.storage.lazy().is_some_and(|l| !l.is_there())
    }
}

/// A storage that a program reads.
struct External {
    storage: Storage,
    refs: usize,
    last: usize,
    /// Some step reads it out of the results' order.
    across: bool,
}

struct Node {
    step: Arc<Step>,
    owner: usize,
}

/// A program: steps in an order in which they can run.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    owners: Vec<Owner>,
    externals: Vec<External>,
}

impl Graph {
    /// Collects the steps that a pending storage needs; false if nothing is pending in it.
    fn gather(&mut self, storage: &Storage) -> bool {
        let Some(step) = storage.lazy().and_then(|l| l.step()) else { return false };
        self.visit(storage, step);
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
        self.externals.push(External { storage: storage.clone(), refs: 0, last: 0, across: false });
        self.externals.len() - 1
    }

    fn find(&self, step: &Arc<Step>) -> Option<usize> {
        self.nodes.iter().position(|n| Arc::ptr_eq(&n.step, step))
    }

    /// The node of the step that is in `storage` now. Recursion ends after `MOST_STEPS`.
    fn visit(&mut self, storage: &Storage, step: Arc<Step>) -> usize {
        if let Some(i) = self.find(&step) {
            return i;
        }
        let owner = self.owner(storage);
        let node = self.chain(owner, storage, step);
        self.owners[owner].node = node;
        node
    }

    fn chain(&mut self, owner: usize, storage: &Storage, step: Arc<Step>) -> usize {
        if let Some(i) = self.find(&step) {
            return i;
        }
        let mut read: SmallVec<[(usize, bool); 3]> = SmallVec::new();
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
                        read.push((at, false));
                    }
                }
                In::Strided(a) => {
                    let at = self.external(a.storage());
                    self.externals[at].refs += 1;
                    read.push((at, true));
                }
                In::Old(Some(s), _) => {
                    self.chain(owner, storage, s.clone());
                }
                In::Old(None, _) | In::Nothing | In::Value(..) => {}
            }
        }
        self.nodes.push(Node { step, owner });
        let i = self.nodes.len() - 1;
        for (e, across) in read {
            self.externals[e].last = i;
            self.externals[e].across |= across;
        }
        i
    }

    fn reads(&self, storage: &Storage) -> bool {
        self.nodes.iter().any(|n| n.step.ins.iter().filter_map(In::array).any(|a| a.storage().same(storage)))
    }

    /// Whether somebody else than the program's steps holds what an owner's step makes.
    fn is_held(&self, o: &Owner) -> bool {
        // One handle is this list's.
        o.storage.0.count() > 1 + o.refs
    }
}

/// Computes a pending storage, and in the same pass whatever else of its program is held by somebody. Under the lock `RUN`.
fn run(root: &Storage, garbage: &mut Garbage) -> std::result::Result<(), Failure> {
    let mut g = Graph::default();
    if !g.gather(root) {
        return Ok(());
    }
    let result = compute(&mut g, root, garbage).map_err(|error| {
        let lines = g.nodes.iter().rev().take(8).map(|n| (n.step.name(), n.step.site)).collect();
        Failure { error, lines }
    });
    garbage.graphs.push(g);
    result
}

/// Why a program did not run, and the operations in it.
struct Failure {
    error: Error,
    lines: Vec<(&'static str, u32)>,
}

impl Failure {
    /// The error with the operations' lines. Asks the host, so no lock of ours may be held.
    #[cold]
    fn tell(self) -> Error {
        self.lines
            .into_iter()
            .fold(self.error, |e, (name, site)| e.note(format!("{name} at {} was still to be computed", fusion::describe(site))))
    }
}

/// Where results go: memory that is there, that nobody needs any more, or that is new.
fn provide(g: &Graph, written: &[bool], places: &mut [*mut u8]) -> Result<Vec<(usize, Source)>> {
    let mut provided: Vec<(usize, Source)> = Vec::new();
    let mut donated = vec![false; g.externals.len()];
    let folded = g.nodes.last().is_some_and(|n| n.step.folded);
    for (i, o) in g.owners.iter().enumerate().filter(|(i, _)| written[*i]) {
        let Some(lazy) = o.storage.lazy() else { continue };
        if lazy.is_there() {
            places[o.node] = lazy.address();
            continue;
        }
        // A fold writes elsewhere than where it reads.
        let donor = g.externals.iter().enumerate().position(|(k, e)| {
            !folded
                && !donated[k]
                && !e.across
                && e.last <= o.node
                && e.storage.bytes() == o.storage.bytes()
                && e.storage.0.count() <= 1 + e.refs
                && e.storage.lazy().is_some_and(|l| !l.is_exposed())
        });
        let source = match donor {
            Some(k) => {
                donated[k] = true;
                let from = &g.externals[k].storage;
                Source::Taken(from.lazy().and_then(|l| l.taken()).unwrap_or(from).clone())
            }
            None => Source::Own(Buffer::new(o.storage.bytes())?),
        };
        places[o.node] = match &source {
            Source::Own(b) => b.as_ptr(),
            Source::Taken(s) => s.lazy().map_or(std::ptr::null_mut(), |l| l.address()),
        };
        provided.push((i, source));
    }
    Ok(provided)
}

fn compute(g: &mut Graph, root: &Storage, garbage: &mut Garbage) -> Result<()> {
    let written: Vec<bool> = g.owners.iter().map(|o| o.storage.same(root) || g.is_held(o)).collect();
    // Memory first: a failure here leaves everything as it is.
    let mut places = vec![std::ptr::null_mut::<u8>(); g.nodes.len()];
    let provided = provide(g, &written, &mut places)?;
    match g.nodes.iter().position(|n| n.step.is_fold()) {
        None => points(g, 0..g.nodes.len(), &places)?.run(),
        Some(at) => {
            // The steps behind a fold work in place on its result.
            let to = places[g.nodes.len() - 1];
            places[at] = to;
            let Make::Fold(fold) = &g.nodes[at].step.make else { return Ok(()) };
            if at > 0 {
                let (kept, size) = (places[at - 1], g.nodes[at - 1].step.out.size());
                let made = Made { runner: points(g, 0..at, &places)?, kept, size };
                // SAFETY: the program gives every element of the fold's input, in its order of memory.
                unsafe { fold.run(From::Made(&made), to) };
            } else {
                let from = g.nodes[at].step.ins[0].array().map_or(std::ptr::null(), Array::ptr);
                // SAFETY: what the fold reads has been computed meanwhile.
                unsafe { fold.run(From::Memory(from), to) };
            }
            if at + 1 < g.nodes.len() {
                points(g, at + 1..g.nodes.len(), &places)?.run();
            }
        }
    }

    let mut unwritten = 0;
    for (i, source) in provided {
        if let Some(lazy) = g.owners[i].storage.lazy() {
            lazy.provide(source);
        }
    }
    for (i, o) in g.owners.iter().enumerate() {
        if !written[i] {
            unwritten += o.storage.bytes();
        } else if let Some(lazy) = o.storage.lazy() {
            forget(&o.storage.0);
            garbage.steps.extend(lazy.done(&g.nodes[o.node].step));
        }
    }
    fusion::count(g.nodes.len(), unwritten);
    Ok(())
}

/// The pointwise steps of a range of nodes, ready to run.
fn points(g: &Graph, range: Range<usize>, places: &[*mut u8]) -> Result<Runner> {
    let (code, arrays, layout) = translate(g, &range, places);
    let flat = [range.end.checked_sub(1).map_or(0, |i| g.nodes[i].step.layout.numel())];
    let (shape, strides): (&[usize], &[isize]) = layout.as_ref().map_or((&flat, &[1]), |l| (l.shape(), l.strides()));
    let inputs: Vec<Input<'_>> = arrays.iter().map(|a| Input { ptr: a.ptr, dtype: a.dtype, strides: a.strides.as_deref() }).collect();
    // SAFETY: inputs are settled, and their storages are held by the graph; places are storages of the graph with this many elements,
    // new, or taken over from an input that nobody reads later, or the result's own.
    unsafe { Runner::new(&code, shape, strides, &inputs, &places[range]) }
}

/// A program whose last result a fold reads as it is made.
struct Made {
    runner: Runner,
    /// Where that result is kept, if it is.
    kept: *mut u8,
    size: usize,
}

// SAFETY: each range of elements is made, and written, by one thread.
unsafe impl Sync for Made {}

impl Blocks for Made {
    fn make(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
        if self.kept.is_null() {
            self.runner.range(start, len, Some(buffer));
            return buffer;
        }
        self.runner.range(start, len, None);
        self.kept.wrapping_add(start * self.size)
    }
}

/// An input in memory.
struct Loaded {
    ptr: *const u8,
    dtype: DType,
    strides: Option<SmallVec<[isize; 6]>>,
}

/// Some of the graph's nodes as the backend takes them, their inputs, and the layout to which strided ones are expanded. What an earlier
/// node made lies in its place.
fn translate(g: &Graph, range: &Range<usize>, places: &[*mut u8]) -> (Code, Vec<Loaded>, Option<Layout>) {
    let mut code = Code::default();
    let mut arrays: Vec<Loaded> = Vec::new();
    let mut layout = None;
    let mut load = |ptr: *const u8, dtype: DType, strides: Option<&[isize]>| {
        let same = |l: &Loaded| std::ptr::eq(l.ptr, ptr) && l.dtype == dtype && l.strides.as_deref() == strides;
        program::From::Input(arrays.iter().position(same).unwrap_or_else(|| {
            arrays.push(Loaded { ptr, dtype, strides: strides.map(SmallVec::from_slice) });
            arrays.len() - 1
        }))
    };
    for node in &g.nodes[range.clone()] {
        let step = &node.step;
        let Make::Point(what) = step.make else { continue };
        let ins = step.ins.iter().map(|input| {
            let mut made = |s: &Arc<Step>| match g.find(s) {
                Some(j) if j >= range.start => program::From::Step(j - range.start),
                Some(j) => load(places[j], s.out, None),
                None => program::From::Nothing,
            };
            let from = match input {
                In::Nothing => program::From::Nothing,
                In::Value(bytes, _) => program::From::Value(*bytes),
                In::Aligned(a) => match a.storage().lazy().and_then(|l| l.step()).filter(|s| g.find(s).is_some()) {
                    Some(s) => made(&s),
                    None => load(a.ptr(), a.dtype(), None),
                },
                In::Strided(a) => {
                    layout = Some(step.layout.clone());
                    load(a.ptr(), a.dtype(), Some(a.strides()))
                }
                In::Old(Some(s), _) => made(s),
                In::Old(None, dtype) => {
                    let old = g.owners[node.owner].storage.lazy().map_or(std::ptr::null_mut(), |l| l.address());
                    load(old, *dtype, None)
                }
            };
            (from, input.dtype())
        });
        let ins = ins.collect();
        code.steps.push(program::Step { what, ins, out: step.out });
    }
    (code, arrays, layout)
}
