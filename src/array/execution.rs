//! Runs programs: gives results their places, and hands the steps to the backend.

use super::fusion;
use super::lazy::{Lazy, Source};
use super::pending::{self, In, Interrupts, Make, Requested, Sibling, Step};
use super::program::{Garbage, Graph};
use super::storage::Storage;
use super::value::Array;
use crate::backend::contract::{Memory, Operand, Program, ProgramInput, View};
use crate::backend::cpu::memory::alloc::Buffer;
use crate::backend::host;
use crate::backend::lock_order::Table;
use crate::backend::program::{self, Code};
use crate::backend::requests::Reads;
use crate::error::{Error, Result};
use crate::layout::{DType, Layout};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Computes what `root` is to hold, and whatever else of the program is held by somebody. A failure leaves everything as it was.
pub(super) fn compute(g: &Graph, root: &Storage, garbage: &mut Garbage, interrupts: Interrupts) -> Result<()> {
    let mut written: Vec<bool> = g.owners.iter().map(|o| o.storage.same(root) || g.is_held(o)).collect();
    if let Some((at, request, _)) = request_of(g)
        && at > 0
        && request.request.reads(0) == Reads::AtRandom
        && g.nodes[..at].iter().any(|n| written[n.owner])
    {
        // Elements that are made in any order must not be made again.
        written[g.nodes[at - 1].owner] = true;
    }
    // Memory first: a failure here leaves everything as it is.
    let provided = provide(g, root, &written)?;
    let sibling = |s: &Sibling| new_memory(&s.storage);
    let beside: SmallVec<[Source; 1]> = g.siblings.iter().map(sibling).collect::<Result<_>>()?;
    // What writes over its own inputs cannot be begun anew.
    let fresh = provided.iter().filter(|(_, s)| matches!(s, Source::Own(_))).count();
    let watch = Watch::new(interrupts == Interrupts::Told && fresh == written.iter().filter(|w| **w).count());
    let mut through = 0;
    let memory = Provided { written: &written, owners: &provided, siblings: &beside };
    let result = run(g, root, &memory, &watch, &mut through);
    match result {
        Ok(()) => {
            watch.end()?;
            through = g.nodes.len();
        }
        // Nothing of the host's is written before everything is known to run.
        Err(_) if root.device().is_host() => return result,
        Err(_) => {}
    }

    if through == g.nodes.len() {
        for (s, source) in g.siblings.iter().zip(beside) {
            if let Some(lazy) = s.storage.lazy().filter(|l| !l.is_there()) {
                lazy.provide(source);
                if let Some(step) = lazy.done(&s.step) {
                    pending::forget(lazy);
                    garbage.steps.push(step);
                }
            }
        }
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

/// Where results go that have no memory yet: memory that nobody needs any more, or that is new.
fn provide(g: &Graph, root: &Storage, written: &[bool]) -> Result<Vec<(usize, Source)>> {
    let mut provided: Vec<(usize, Source)> = Vec::new();
    let mut donated = vec![false; g.externals.len()];
    let reduces = g.nodes.last().is_some_and(|n| n.step.folded);
    for (i, o) in g.owners.iter().enumerate().filter(|(i, _)| written[*i]) {
        if o.storage.lazy().is_none_or(Lazy::is_there) {
            continue;
        }
        let out = g.nodes[o.node].step.out;
        // A request writes elsewhere than where it reads.
        let donor = g.externals.iter().enumerate().position(|(k, e)| {
            !reduces
                && !donated[k]
                && !e.across
                && e.last <= o.node
                && e.storage.bytes() == o.storage.bytes()
                && root.backend().may_take_over(e.dtype, out)
                && e.storage.0.count() <= 1 + e.refs
                && e.storage.lazy().is_some_and(|l| !l.is_exposed())
        });
        let source = match donor {
            Some(k) => {
                donated[k] = true;
                let from = &g.externals[k].storage;
                Source::Taken(from.lazy().and_then(|l| l.taken()).unwrap_or(from).clone())
            }
            None => new_memory(&o.storage)?,
        };
        provided.push((i, source));
    }
    Ok(provided)
}

fn new_memory(storage: &Storage) -> Result<Source> {
    Ok(match storage.home() {
        Some(home) => Source::Device(home.backend.allocate(storage.bytes())?),
        None => Source::Own(Buffer::new(storage.bytes())?),
    })
}

/// Where results go.
struct Provided<'a> {
    /// The owners whose results are kept.
    written: &'a [bool],
    /// Owners that had no memory.
    owners: &'a [(usize, Source)],
    /// For each of the graph's siblings.
    siblings: &'a [Source],
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
                *self.error.lock() = Some(e.into());
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

/// The step of a program that is a request, if there is one: its place, and which output it makes.
fn request_of(g: &Graph) -> Option<(usize, &Arc<Requested>, usize)> {
    g.nodes.iter().enumerate().find_map(|(i, n)| match &n.step.make {
        Make::Request { request, output } => Some((i, request, *output)),
        Make::Point(_) => None,
    })
}

#[cold]
fn missing(what: &str) -> Error {
    Error::internal("a deferred program", &format!("{what} has no memory"))
}

/// Runs the steps: those before a request as its first operand, unless somebody holds them, and those behind it in place on its result.
/// `through` becomes the number of steps that have run for good, which after a failure are none or those before the request: they may have
/// written over what they read.
fn run(g: &Graph, root: &Storage, to: &Provided<'_>, watch: &Watch, through: &mut usize) -> Result<()> {
    let backend = root.backend();
    let all = g.nodes.len();
    let memory_of = |owner: usize| {
        let new = to.owners.iter().find(|(k, _)| *k == owner).and_then(|(_, s)| s.memory());
        new.or_else(|| g.owners[owner].storage.start()).ok_or_else(|| missing("a result"))
    };
    // The results of a range of steps that are kept.
    let kept = |range: Range<usize>| -> Result<Vec<(usize, Memory<'_>)>> {
        let owners = g.owners.iter().enumerate().filter(|(i, o)| to.written[*i] && range.contains(&o.node));
        owners.map(|(i, o)| Ok((o.node - range.start, memory_of(i)?))).collect()
    };
    let goes_on = || watch.goes_on();
    let Some((at, request, output)) = request_of(g) else {
        let part = Part::new(g, 0..all);
        let (inputs, outputs, is_written) = (part.inputs(None)?, kept(0..all)?, AtomicBool::new(false));
        // SAFETY: inputs are settled, and their storages are held by the graph; outputs are storages of the graph with this many elements, new,
        // or taken over from an input that nobody reads later, or the result's own.
        return unsafe { Ok(backend.run_program(&part.program(&inputs, &outputs, &goes_on, &is_written))?) };
    };
    let (step, request) = (&g.nodes[at].step, &request.request);
    let result_memory = memory_of(g.nodes[at].owner)?;
    let mut outs: SmallVec<[Option<View<'_>>; 2]> = smallvec![None; request.outputs()];
    outs[output] = Some(whole(step, result_memory));
    for (s, source) in g.siblings.iter().zip(to.siblings) {
        outs[s.output] = Some(whole(&s.step, source.memory().ok_or_else(|| missing("a result"))?));
    }
    let others = step.ins[1..].iter().filter_map(In::array).map(|a| in_memory(a).map(Operand::View));
    let others = others.collect::<Result<SmallVec<[Operand<'_>; 4]>>>()?;
    let x = step.ins[0].array().ok_or_else(|| missing("an input"))?;
    let is_written = AtomicBool::new(false);
    let ask = |first: Operand<'_>| {
        let operands: SmallVec<[Operand<'_>; 4]> = std::iter::once(first).chain(others.iter().copied()).collect();
        // SAFETY: as above; the request's output is new or its own, and overlaps no operand.
        unsafe { backend.run(request, &operands, &outs) }
    };
    let result = if at > 0 {
        let part = Part::new(g, 0..at);
        let (inputs, outputs) = (part.inputs(None)?, kept(0..at)?);
        let program = part.program(&inputs, &outputs, &goes_on, &is_written);
        ask(Operand::Made { program: &program, shape: x.shape(), strides: x.strides() })
    } else {
        ask(Operand::View(in_memory(x)?))
    };
    if is_written.load(Ordering::Relaxed) {
        *through = at;
    }
    result?;
    if at + 1 < all {
        // The steps behind a request work in place on its result.
        let part = Part::new(g, at + 1..all);
        let (inputs, outputs) = (part.inputs(Some(result_memory))?, [(all - at - 2, result_memory)]);
        // SAFETY: as above; the last step writes where the first one reads, element for element.
        unsafe { backend.run_program(&part.program(&inputs, &outputs, &|| true, &is_written))? };
    }
    Ok(())
}

/// The result of a step, from the start of its memory on.
fn whole<'a>(step: &'a Step, memory: Memory<'a>) -> View<'a> {
    View { memory, offset: 0, shape: step.layout.shape(), strides: step.layout.strides(), dtype: step.out }
}

/// An array whose memory is there.
fn in_memory(a: &Array) -> Result<View<'_>> {
    let memory = a.storage().start().ok_or_else(|| missing("an input"))?;
    let l = a.layout();
    Ok(View { memory, offset: l.offset(), shape: l.shape(), strides: l.strides(), dtype: a.dtype() })
}

/// Where an input lies.
enum Place {
    /// In a storage, from this element on.
    In(Storage, usize),
    /// Where an earlier part of the program left its result.
    Left,
}

impl Place {
    fn same(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::In(a, i), Place::In(b, j)) => a.same(b) && i == j,
            (Place::Left, Place::Left) => true,
            _ => false,
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
            program::StepInput::Input(inputs.iter().position(same).unwrap_or_else(|| {
                inputs.push(Loaded { place, dtype, strides: strides.map(SmallVec::from_slice) });
                inputs.len() - 1
            }))
        };
        for node in &g.nodes[range.clone()] {
            let step = &node.step;
            let Make::Point(what) = step.make else { continue };
            let ins = step.ins.iter().map(|input| {
                let mut made = |s: &Arc<Step>| match g.find(s) {
                    Some(j) if j >= range.start => program::StepInput::Step(j - range.start),
                    Some(_) => load(Place::Left, s.out, None),
                    None => program::StepInput::Nothing,
                };
                let from = match input {
                    In::Nothing => program::StepInput::Nothing,
                    In::Value(bytes, _) => program::StepInput::Value(*bytes),
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
            part.code.steps.push(program::ProgramStep { kind: what, ins, out: step.out });
        }
        part
    }

    /// The inputs with their memory; what an earlier part left lies in `left`.
    fn inputs<'a>(&'a self, left: Option<Memory<'a>>) -> Result<Vec<ProgramInput<'a>>> {
        let input = |i: &'a Loaded| {
            let (memory, offset) = match &i.place {
                Place::In(storage, offset) => (storage.start(), *offset),
                Place::Left => (left, 0),
            };
            let memory = memory.ok_or_else(|| missing("an input"))?;
            Ok(ProgramInput { memory, offset, dtype: i.dtype, strides: i.strides.as_deref() })
        };
        self.inputs.iter().map(input).collect()
    }

    fn program<'a>(
        &'a self,
        inputs: &'a [ProgramInput<'a>],
        outputs: &'a [(usize, Memory<'a>)],
        goes_on: &'a (dyn Fn() -> bool + Sync),
        is_written: &'a AtomicBool,
    ) -> Program<'a> {
        Program { code: &self.code, shape: self.layout.shape(), strides: self.layout.strides(), inputs, outputs, goes_on, is_written }
    }
}
