//! Runs programs: gives results their places, and hands the steps to the backends.

use super::fusion;
use super::lazy::{Lazy, Source};
use super::pending::{self, DeviceFold, DeviceFrom, Fold, Folding, From, In, Interrupts, Make, Step};
use super::program::{Garbage, Graph};
use super::storage::Storage;
use super::value::Array;
use crate::backend::cpu::alloc::Buffer;
use crate::backend::cpu::program::{Input, Runner};
use crate::backend::cpu::reduce::Blocks;
use crate::backend::host;
use crate::backend::lock_order::Table;
use crate::backend::program::{self, Code};
use crate::backend::wgpu;
use crate::error::{Error, Result};
use crate::layout::{DType, Layout};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Computes what `root` is to hold, and whatever else of the program is held by somebody. A failure leaves everything as it was.
pub(super) fn compute(g: &Graph, root: &Storage, garbage: &mut Garbage, interrupts: Interrupts) -> Result<()> {
    let mut written: Vec<bool> = g.owners.iter().map(|o| o.storage.same(root) || g.is_held(o)).collect();
    if let Some((at, fold)) = fold_of(g)
        && at > 0
        && fold.picks()
        && g.nodes[..at].iter().any(|n| written[n.owner])
    {
        // Elements that are made in any order must not be made again.
        written[g.nodes[at - 1].owner] = true;
    }
    // Memory first: a failure here leaves everything as it is.
    let mut places = vec![std::ptr::null_mut::<u8>(); g.nodes.len()];
    let provided = provide(g, &written, &mut places)?;
    let mut through = g.nodes.len();
    let mut result = Ok(());
    if root.context().is_some() {
        (through, result) = on_device(g, root, &written, &provided);
    } else {
        // What writes over its own inputs cannot be begun anew.
        let fresh = provided.iter().filter(|(_, s)| matches!(s, Source::Own(_))).count();
        let watch = Watch::new(interrupts == Interrupts::Told && fresh == written.iter().filter(|w| **w).count());
        on_host(g, &mut places, &watch)?;
        watch.end()?;
    }

    let mut unwritten = 0;
    for (i, source) in provided.into_iter().filter(|(i, _)| g.owners[*i].node < through) {
        // Who was asked whether to go on may have looked at the same results.
        if let Some(lazy) = g.owners[i].storage.lazy().filter(|l| !l.is_there()) {
            lazy.provide(source);
        }
    }
    for (i, o) in g.owners.iter().enumerate().filter(|(_, o)| o.node < through) {
        if !written[i] {
            unwritten += o.storage.bytes();
        } else if let Some(lazy) = o.storage.lazy()
            && let Some(step) = lazy.done(&g.nodes[o.node].step)
        {
            pending::forget(lazy);
            garbage.steps.push(step);
        }
    }
    if through > 0 {
        fusion::count(through, unwritten);
    }
    result
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
        let out = g.nodes[o.node].step.out;
        // A fold writes elsewhere than where it reads. A shader knows each of its buffers by one type.
        let donor = g.externals.iter().enumerate().position(|(k, e)| {
            !folded
                && !donated[k]
                && !e.across
                && e.last <= o.node
                && e.storage.bytes() == o.storage.bytes()
                && (o.storage.context().is_none() || e.dtype == out)
                && e.storage.0.count() <= 1 + e.refs
                && e.storage.lazy().is_some_and(|l| !l.is_exposed())
        });
        let source = match (donor, o.storage.context()) {
            (Some(k), _) => {
                donated[k] = true;
                let from = &g.externals[k].storage;
                Source::Taken(from.lazy().and_then(|l| l.taken()).unwrap_or(from).clone())
            }
            (None, Some(context)) => Source::Device(wgpu::Buffer::new(context, o.storage.bytes())?),
            (None, None) => Source::Own(Buffer::new(o.storage.bytes())?),
        };
        if let Some(place) = match &source {
            Source::Own(b) => Some(b.as_ptr()),
            Source::Taken(s) => s.start(),
            Source::Device(_) => None,
        } {
            places[o.node] = place;
        }
        provided.push((i, source));
    }
    Ok(provided)
}

/// Asks the host now and then whether to go on, on the thread that the program was started on: no other touches the host.
struct Watch {
    thread: Option<ThreadId>,
    next: Table<Instant>,
    stopped: AtomicBool,
    error: Table<Option<Error>>,
}

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);

impl Watch {
    /// One that never asks, unless `told`.
    fn new(told: bool) -> Watch {
        Watch {
            thread: told.then(|| thread::current().id()),
            next: Table::new(Instant::now() + PAUSE),
            stopped: AtomicBool::new(false),
            error: Table::new(None),
        }
    }

    fn goes_on(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        if self.thread.is_none_or(|t| t != thread::current().id()) || Instant::now() < *self.next.lock() {
            return true;
        }
        // SAFETY: the program runs under that lock, on this thread.
        let asked = unsafe { pending::outside(host::interrupted) };
        *self.next.lock() = Instant::now() + PAUSE;
        asked.map_or_else(
            |e| {
                *self.error.lock() = Some(e);
                self.stopped.store(true, Ordering::Relaxed);
                false
            },
            |()| true,
        )
    }

    fn end(self) -> Result<()> {
        self.error.into_inner().map_or(Ok(()), Err)
    }
}

fn on_host(g: &Graph, places: &mut [*mut u8], watch: &Watch) -> Result<()> {
    let all = g.nodes.len();
    let Some((at, fold)) = fold_of(g) else {
        points(&Part::new(g, 0..all), places, 0..all)?.run(&|| watch.goes_on());
        return Ok(());
    };
    // The steps behind a fold work in place on its result.
    let to = places[all - 1];
    places[at] = to;
    let step = &g.nodes[at].step;
    let others: SmallVec<[*const u8; 2]> = step.ins[1..].iter().filter_map(In::array).map(Array::ptr).collect();
    if at > 0 {
        let (kept, size) = (places[at - 1], g.nodes[at - 1].step.out.size());
        let made = Made { runner: points(&Part::new(g, 0..at), places, 0..at)?, kept, size, watch };
        // SAFETY: the program gives every element of the fold's input, in its order of memory; the other inputs are in memory.
        unsafe { fold.run(From::Made(&made), &others, to) };
    } else {
        let from = step.ins[0].array().map_or(std::ptr::null(), Array::ptr);
        // SAFETY: what the fold reads has been computed meanwhile.
        unsafe { fold.run(From::Memory(from), &others, to) };
    }
    if at + 1 < all {
        points(&Part::new(g, at + 1..all), places, at + 1..all)?.run(&|| true);
    }
    Ok(())
}

/// The fold among a program's steps, if there is one of the host.
fn fold_of(g: &Graph) -> Option<(usize, &Arc<dyn Fold>)> {
    g.nodes.iter().enumerate().find_map(|(i, n)| if let Make::Fold(Folding::Host(fold)) = &n.step.make { Some((i, fold)) } else { None })
}

/// As `fold_of`, of a device.
fn device_fold_of(g: &Graph) -> Option<(usize, &Arc<dyn DeviceFold>)> {
    g.nodes.iter().enumerate().find_map(|(i, n)| if let Make::Fold(Folding::Device(fold)) = &n.step.make { Some((i, fold)) } else { None })
}

/// The steps of a part, ready to run.
fn points(part: &Part, places: &[*mut u8], range: Range<usize>) -> Result<Runner> {
    let inputs: Vec<Input<'_>> = part
        .inputs
        .iter()
        .map(|a| Input { ptr: a.place.address(a.dtype, places), dtype: a.dtype, strides: a.strides.as_deref() })
        .collect();
    // SAFETY: inputs are settled, and their storages are held by the graph; places are storages of the graph with this many elements,
    // new, or taken over from an input that nobody reads later, or the result's own.
    unsafe { Runner::new(&part.code, part.shape(), part.strides(), &inputs, &places[range]) }
}

/// Runs a program on a device: one dispatch, with a fold the fold's own, which reads the steps before it as they are made unless somebody
/// holds one of them. Gives how many steps have been run for good, which after a failure are all or those before a fold: they may have
/// written over what they read.
fn on_device(g: &Graph, root: &Storage, written: &[bool], provided: &[(usize, Source)]) -> (usize, Result<()>) {
    let mut through = 0;
    let result = dispatch(g, root, written, provided, &mut through);
    if result.is_ok() { (g.nodes.len(), result) } else { (through, result) }
}

fn dispatch(g: &Graph, root: &Storage, written: &[bool], provided: &[(usize, Source)], through: &mut usize) -> Result<()> {
    let Some(context) = root.context() else { return Ok(()) };
    let all = g.nodes.len();
    let buffer_of = |owner: usize| {
        let new = provided.iter().find(|(k, _)| *k == owner).and_then(|(_, s)| s.buffer());
        new.or_else(|| g.owners[owner].storage.lazy().and_then(Lazy::buffer)).ok_or_else(|| missing("a result"))
    };
    // The results of a range of steps that are kept.
    let kept = |range: Range<usize>| -> Result<Vec<(usize, &wgpu::Buffer)>> {
        let owners = g.owners.iter().enumerate().filter(|(i, o)| written[*i] && range.contains(&o.node));
        owners.map(|(i, o)| Ok((o.node - range.start, buffer_of(i)?))).collect()
    };
    let Some((at, fold)) = device_fold_of(g) else {
        let part = Part::new(g, 0..all);
        let inputs = part.reads(None)?;
        return wgpu::program::run(context, &part.code, part.shape(), part.strides(), &inputs, &kept(0..all)?);
    };
    let step = &g.nodes[at].step;
    let to = buffer_of(g.nodes[at].owner)?;
    let others = step.ins[1..].iter().filter_map(In::array).map(in_memory).collect::<Result<SmallVec<[&wgpu::Buffer; 2]>>>()?;
    if at > 0 {
        let part = Part::new(g, 0..at);
        let inputs = part.reads(None)?;
        let mut outputs = kept(0..at)?;
        let program = wgpu::program::Program { code: &part.code, shape: part.shape(), strides: part.strides(), inputs: &inputs };
        if outputs.is_empty() {
            fold.run(DeviceFrom::Made(program), &others, to)?;
        } else {
            let own;
            let last = match outputs.iter().find(|o| o.0 == at - 1) {
                Some((_, b)) => *b,
                None => {
                    own = wgpu::Buffer::new(context, g.owners[g.nodes[at - 1].owner].storage.bytes())?;
                    outputs.push((at - 1, &own));
                    &own
                }
            };
            wgpu::program::run(context, program.code, program.shape, program.strides, program.inputs, &outputs)?;
            *through = at;
            fold.run(DeviceFrom::Memory(last), &others, to)?;
        }
    } else {
        let from = step.ins[0].array().ok_or_else(|| missing("an input")).and_then(in_memory)?;
        fold.run(DeviceFrom::Memory(from), &others, to)?;
    }
    if at + 1 < all {
        // The steps behind a fold work in place on its result.
        let part = Part::new(g, at + 1..all);
        let inputs = part.reads(Some(to))?;
        wgpu::program::run(context, &part.code, part.shape(), part.strides(), &inputs, &[(all - at - 2, to)])?;
    }
    Ok(())
}

fn in_memory(a: &Array) -> Result<&wgpu::Buffer> {
    a.storage().lazy().and_then(Lazy::buffer).ok_or_else(|| missing("an input"))
}

#[cold]
fn missing(what: &str) -> Error {
    Error::runtime(format!("{what} of a program has no memory on the device. This is a bug in rgrad, please report it"))
}

/// A program whose last result a fold reads as it is made.
struct Made<'a> {
    runner: Runner,
    /// Where that result is kept, if it is.
    kept: *mut u8,
    size: usize,
    watch: &'a Watch,
}

// SAFETY: each range of elements is made, and written, by one thread.
unsafe impl Sync for Made<'_> {}

impl Blocks for Made<'_> {
    fn make(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
        if self.kept.is_null() {
            self.runner.range(start, len, Some(buffer));
            return buffer;
        }
        self.runner.range(start, len, None);
        self.kept.wrapping_add(start * self.size)
    }

    fn all(&self) -> Option<*const u8> {
        if self.kept.is_null() {
            return None;
        }
        self.runner.run(&|| self.watch.goes_on());
        Some(self.kept)
    }

    fn goes_on(&self) -> bool {
        self.watch.goes_on()
    }
}

/// Where an input lies.
enum Place {
    /// In a storage, from this element on.
    In(Storage, usize),
    /// Where an earlier part of the program left the result of this node.
    Of(usize),
}

impl Place {
    fn same(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::In(a, i), Place::In(b, j)) => a.same(b) && i == j,
            (Place::Of(a), Place::Of(b)) => a == b,
            _ => false,
        }
    }

    fn address(&self, dtype: DType, places: &[*mut u8]) -> *const u8 {
        match self {
            Place::In(storage, offset) => storage.start().map_or(std::ptr::null(), |p| p.wrapping_add(offset * dtype.size()).cast_const()),
            Place::Of(node) => places[*node],
        }
    }
}

/// An input in memory.
struct Loaded {
    place: Place,
    dtype: DType,
    strides: Option<SmallVec<[isize; 6]>>,
}

/// Some of the graph's nodes as the backends take them.
struct Part {
    code: Code,
    inputs: Vec<Loaded>,
    /// What strided inputs are expanded to; without any, the results are one row.
    layout: Layout,
}

impl Part {
    fn new(g: &Graph, range: Range<usize>) -> Part {
        let lies = |a: &Array| Place::In(a.storage().clone(), a.layout().offset());
        let last = &g.nodes[range.end - 1].step.layout;
        let mut part = Part { code: Code::default(), inputs: Vec::new(), layout: Layout::contiguous(&[last.numel()]) };
        let (inputs, layout) = (&mut part.inputs, &mut part.layout);
        let mut load = |place: Place, dtype: DType, strides: Option<&[isize]>| {
            let same = |l: &Loaded| l.place.same(&place) && l.dtype == dtype && l.strides.as_deref() == strides;
            program::From::Input(inputs.iter().position(same).unwrap_or_else(|| {
                inputs.push(Loaded { place, dtype, strides: strides.map(SmallVec::from_slice) });
                inputs.len() - 1
            }))
        };
        for node in &g.nodes[range.clone()] {
            let step = &node.step;
            let Make::Point(what) = step.make else { continue };
            let ins = step.ins.iter().map(|input| {
                let mut made = |s: &Arc<Step>| match g.find(s) {
                    Some(j) if j >= range.start => program::From::Step(j - range.start),
                    Some(j) => load(Place::Of(j), s.out, None),
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
                        debug_assert!(layout.rank() < 2 || *layout == step.layout, "strides over two shapes");
                        *layout = step.layout.clone();
                        load(lies(a), a.dtype(), Some(a.strides()))
                    }
                    In::Old(Some(s), _) => made(s),
                    In::Old(None, dtype) => load(Place::In(g.owners[node.owner].storage.clone(), 0), *dtype, None),
                };
                (from, input.dtype())
            });
            let ins = ins.collect();
            part.code.steps.push(program::Step { what, ins, out: step.out });
        }
        part
    }

    /// The inputs in a device's memory; what an earlier part left lies in `left`.
    fn reads<'a>(&'a self, left: Option<&'a wgpu::Buffer>) -> Result<Vec<wgpu::program::Read<'a>>> {
        let buffer = |a: &'a Loaded| match &a.place {
            Place::In(storage, offset) => Some((storage.lazy()?.buffer()?, *offset)),
            Place::Of(_) => Some((left?, 0)),
        };
        let read = |a| {
            let (b, offset) = buffer(a).ok_or_else(|| missing("an input"))?;
            Ok((b, offset, a.dtype, a.strides.as_deref()))
        };
        self.inputs.iter().map(read).collect()
    }

    fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    fn strides(&self) -> &[isize] {
        self.layout.strides()
    }
}
