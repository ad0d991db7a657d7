//! Programs: which steps a pending storage needs, in which order, whose results are kept, and where.

use super::fusion;
use super::lazy::{Lazy, Source};
use super::pending::{self, From, In, Make, Step};
use super::storage::Storage;
use super::value::Array;
use crate::backend::cpu::alloc::Buffer;
use crate::backend::cpu::program::{Input, Runner};
use crate::backend::cpu::reduce::Blocks;
use crate::backend::program::{self, Code};
use crate::backend::wgpu;
use crate::error::{Error, Result};
use crate::layout::{DType, Layout};
use smallvec::SmallVec;
use std::ops::Range;
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
    node: usize,
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
    last: usize,
    /// Some step reads it out of the results' order.
    across: bool,
}

pub(super) struct Node {
    step: Arc<Step>,
    owner: usize,
}

/// A program: steps in an order in which they can run.
#[derive(Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    pub owners: Vec<Owner>,
    pub externals: Vec<External>,
}

impl Graph {
    /// Collects the steps that a pending storage needs; false if nothing is pending in it.
    pub fn gather(&mut self, storage: &Storage) -> bool {
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
        let node = self.chain(owner, step);
        self.owners[owner].node = node;
        node
    }

    fn chain(&mut self, owner: usize, step: Arc<Step>) -> usize {
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
                    self.chain(owner, s.clone());
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
pub(super) fn run(root: &Storage, garbage: &mut Garbage) -> std::result::Result<(), Failure> {
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
pub(super) struct Failure {
    error: Error,
    lines: Vec<(&'static str, u32)>,
}

impl Failure {
    /// The error with the operations' lines. Asks the host, so no lock of ours may be held.
    #[cold]
    pub fn tell(self) -> Error {
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
            places[o.node] = o.storage.start().unwrap_or(std::ptr::null_mut());
            continue;
        }
        if let Some(context) = o.storage.context() {
            provided.push((i, Source::Device(wgpu::Buffer::new(context, o.storage.bytes())?)));
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
            Source::Taken(s) => s.start().unwrap_or(std::ptr::null_mut()),
            Source::Device(_) => continue,
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
        None if root.context().is_some() => on_device(g, root, &written, &provided)?,
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
            pending::forget(lazy);
            garbage.steps.extend(lazy.done(&g.nodes[o.node].step));
        }
    }
    fusion::count(g.nodes.len(), unwritten);
    Ok(())
}

/// Runs a program on a device: one dispatch.
fn on_device(g: &Graph, root: &Storage, written: &[bool], provided: &[(usize, Source)]) -> Result<()> {
    let Some(context) = root.context() else { return Ok(()) };
    let (code, arrays, layout) = translate(g, &(0..g.nodes.len()), &[]);
    let flat = [g.nodes.last().map_or(0, |n| n.step.layout.numel())];
    let (shape, strides): (&[usize], &[isize]) = layout.as_ref().map_or((&flat, &[1]), |l| (l.shape(), l.strides()));
    let mut inputs = Vec::with_capacity(arrays.len());
    for a in &arrays {
        let Place::In(storage, offset) = &a.place else { continue };
        let buffer =
            storage.lazy().and_then(Lazy::buffer).ok_or_else(|| Error::runtime("an input of a program has no memory on the device"))?;
        inputs.push((buffer, *offset, a.dtype, a.strides.as_deref()));
    }
    let mut outputs = Vec::new();
    for (i, o) in g.owners.iter().enumerate().filter(|(i, _)| written[*i]) {
        let new = provided.iter().find_map(|(k, s)| match s {
            Source::Device(b) if *k == i => Some(b),
            _ => None,
        });
        if let Some(b) = new.or_else(|| o.storage.lazy().and_then(Lazy::buffer)) {
            outputs.push((o.node, b));
        }
    }
    wgpu::program::run(context, &code, shape, strides, &inputs, &outputs)
}

/// The pointwise steps of a range of nodes, ready to run.
fn points(g: &Graph, range: Range<usize>, places: &[*mut u8]) -> Result<Runner> {
    let (code, arrays, layout) = translate(g, &range, places);
    let flat = [range.end.checked_sub(1).map_or(0, |i| g.nodes[i].step.layout.numel())];
    let (shape, strides): (&[usize], &[isize]) = layout.as_ref().map_or((&flat, &[1]), |l| (l.shape(), l.strides()));
    let inputs: Vec<Input<'_>> =
        arrays.iter().map(|a| Input { ptr: a.place.address(a.dtype), dtype: a.dtype, strides: a.strides.as_deref() }).collect();
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

/// Where an input lies.
enum Place {
    /// In a storage, from this element on.
    In(Storage, usize),
    /// Where an earlier part of the program left it.
    At(*const u8),
}

impl Place {
    fn same(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::In(a, i), Place::In(b, j)) => a.same(b) && i == j,
            (Place::At(a), Place::At(b)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }

    fn address(&self, dtype: DType) -> *const u8 {
        match self {
            Place::In(storage, offset) => storage.start().map_or(std::ptr::null(), |p| p.wrapping_add(offset * dtype.size()).cast_const()),
            Place::At(p) => *p,
        }
    }
}

/// An input in memory.
struct Loaded {
    place: Place,
    dtype: DType,
    strides: Option<SmallVec<[isize; 6]>>,
}

/// Some of the graph's nodes as the backend takes them, their inputs, and the layout to which strided ones are expanded. What an earlier
/// node made lies in its place.
fn translate(g: &Graph, range: &Range<usize>, places: &[*mut u8]) -> (Code, Vec<Loaded>, Option<Layout>) {
    let lies = |a: &Array| Place::In(a.storage().clone(), a.layout().offset());
    let mut code = Code::default();
    let mut arrays: Vec<Loaded> = Vec::new();
    let mut layout = None;
    let mut load = |place: Place, dtype: DType, strides: Option<&[isize]>| {
        let same = |l: &Loaded| l.place.same(&place) && l.dtype == dtype && l.strides.as_deref() == strides;
        program::From::Input(arrays.iter().position(same).unwrap_or_else(|| {
            arrays.push(Loaded { place, dtype, strides: strides.map(SmallVec::from_slice) });
            arrays.len() - 1
        }))
    };
    for node in &g.nodes[range.clone()] {
        let step = &node.step;
        let Make::Point(what) = step.make else { continue };
        let ins = step.ins.iter().map(|input| {
            let mut made = |s: &Arc<Step>| match g.find(s) {
                Some(j) if j >= range.start => program::From::Step(j - range.start),
                Some(j) => load(Place::At(places[j]), s.out, None),
                None => program::From::Nothing,
            };
            let from = match input {
                In::Nothing => program::From::Nothing,
                In::Value(bytes, _) => program::From::Value(*bytes),
                In::Aligned(a) => match a.storage().lazy().and_then(|l| l.step()).filter(|s| g.find(s).is_some()) {
                    Some(s) => made(&s),
                    None => load(lies(a), a.dtype(), None),
                },
                In::Strided(a) => {
                    layout = Some(step.layout.clone());
                    load(lies(a), a.dtype(), Some(a.strides()))
                }
                In::Old(Some(s), _) => made(s),
                In::Old(None, dtype) => load(Place::In(g.owners[node.owner].storage.clone(), 0), *dtype, None),
            };
            (from, input.dtype())
        });
        let ins = ins.collect();
        code.steps.push(program::Step { what, ins, out: step.out });
    }
    (code, arrays, layout)
}
