//! Runs a program: allocates its results and passes the steps to the backend.

use super::graph::{DropLater, StepGraph};
use super::memory::{DeferredMemory, MemorySource};
use super::policy;
use super::queue::{self, Interrupts};
use super::source;
use super::step::{DeferredInput, DeferredKind, DeferredRequest, DeferredStep, Sibling};
use crate::array::Array;
use crate::array::lock_order::TableLock;
use crate::array::profile::{self, EventStart, OpenEvent, ProfileKind};
use crate::array::storage::Storage;
use crate::backend::contract::{Memory, Operand, Program, ProgramInput, View};
use crate::call::Reads;
use crate::error::{Error, Result};
use crate::host::language;
use crate::host::live_memory::{self, AllocatingStep};
use crate::host::memory::alloc::Buffer;
use crate::layout::{DType, Layout};
use crate::program::{self, Code};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Computes `root` and every other storage of the program that has a handle outside. If it fails, nothing has changed.
pub(in crate::array) fn compute(g: &StepGraph, root: &Storage, garbage: &mut DropLater, interrupts: Interrupts) -> Result<()> {
    let _event = program_event(g);
    let mut written: Vec<bool> = g.owners.iter().map(|o| o.storage.same(root) || g.is_held(o)).collect();
    if let Some((at, request, _)) = request_of(g)
        && at > 0
        && request.request.reads(0) == Reads::AtRandom
        && g.nodes[..at].iter().any(|n| written[n.owner])
    {
        // A request that reads at random would compute elements twice, so they are written once.
        written[g.nodes[at - 1].owner] = true;
    }
    let source_owner = g.source().map(|_| source::owner_of_result(g, &mut written));
    // Memory first: if the allocation fails, nothing has changed.
    let provided = provide(g, root, &written)?;
    let sibling = |s: &Sibling| new_memory(&s.storage, &s.step);
    let sibling_memory: SmallVec<[MemorySource; 1]> = g.siblings.iter().map(sibling).collect::<Result<_>>()?;
    // A program that overwrites its own inputs cannot be restarted, so it is not interrupted.
    let fresh = provided.iter().filter(|(_, s)| matches!(s, MemorySource::Own(_))).count();
    let watch = InterruptWatch::new(interrupts == Interrupts::Checked && fresh == written.iter().filter(|w| **w).count());
    let mut finished = 0;
    let memory = Provided { written: &written, owners: &provided, siblings: &sibling_memory, source_owner };
    let result = run(g, root, &memory, &watch, &mut finished);
    match result {
        Ok(()) => {
            watch.end()?;
            finished = g.nodes.len();
        }
        // Memory of the host is written only after every step is known to run.
        Err(_) if root.device().is_host() => return result,
        Err(_) => {}
    }

    if finished == g.nodes.len() {
        for (s, source) in g.siblings.iter().zip(sibling_memory) {
            if let Some(deferred) = s.storage.deferred().filter(|l| !l.is_allocated()) {
                deferred.set_memory(source);
                if let Some(step) = deferred.finish_step(&s.step) {
                    queue::forget(deferred);
                    garbage.steps.push(step);
                }
            }
        }
    }
    let mut unwritten = 0;
    for (i, source) in provided.into_iter().filter(|(i, _)| g.owners[*i].node < finished) {
        // A signal handler may have computed the same results meanwhile.
        if let Some(deferred) = g.owners[i].storage.deferred().filter(|l| !l.is_allocated()) {
            deferred.set_memory(source);
        }
    }
    for (i, o) in g.owners.iter().enumerate().filter(|(_, o)| o.node < finished) {
        if !written[i] {
            unwritten += o.storage.bytes();
        } else if let Some(deferred) = o.storage.deferred()
            && let Some(step) = deferred.finish_step(&g.nodes[o.node].step)
        {
            queue::forget(deferred);
            garbage.steps.push(step);
        }
    }
    if finished > 0 {
        policy::count(finished, unwritten);
    }
    result
}

/// The profiler's event of a program: its name and its steps, each with its line.
fn program_event(g: &StepGraph) -> Option<OpenEvent> {
    if !profile::is_on() {
        return None;
    }
    let steps: Box<[(&'static str, u32)]> = g.nodes.iter().map(|n| (n.step.name(), n.step.site)).collect();
    let names: Vec<&str> = steps.iter().map(|s| s.0).collect();
    let name = format!("rgrad::program({})", names.join(", "));
    profile::open(ProfileKind::Program, name.into(), EventStart { steps: Some(steps), ..EventStart::default() })
}

/// Memory for results without memory: taken over from an input that is not needed any more, or allocated.
fn provide(g: &StepGraph, root: &Storage, written: &[bool]) -> Result<Vec<(usize, MemorySource)>> {
    let mut provided: Vec<(usize, MemorySource)> = Vec::new();
    let mut donated = vec![false; g.externals.len()];
    let has_request = g.nodes.last().is_some_and(|n| n.step.follows_request) || g.source().is_some();
    for (i, o) in g.owners.iter().enumerate().filter(|(i, _)| written[*i]) {
        if o.storage.deferred().is_none_or(DeferredMemory::is_allocated) {
            continue;
        }
        let out = g.nodes[o.node].step.out;
        // A request never writes where it reads.
        let donor = g.externals.iter().enumerate().position(|(k, e)| {
            !has_request
                && !donated[k]
                && !e.across
                && e.last <= o.node
                && e.storage.bytes() == o.storage.bytes()
                && root.backend().may_take_over(e.dtype, out)
                && e.storage.0.count() <= 1 + e.refs
                && e.storage.deferred().is_some_and(|l| !l.is_exposed())
        });
        let source = match donor {
            Some(k) => {
                donated[k] = true;
                let from = &g.externals[k].storage;
                if let Some((key, bytes)) = from.held()
                    && live_memory::may_be_registered(bytes)
                {
                    live_memory::take_over(key, g.nodes[o.node].step.site);
                }
                MemorySource::Taken(from.deferred().and_then(|l| l.taken()).unwrap_or(from).clone())
            }
            None => new_memory(&o.storage, &g.nodes[o.node].step)?,
        };
        provided.push((i, source));
    }
    Ok(provided)
}

fn new_memory(storage: &Storage, step: &DeferredStep) -> Result<MemorySource> {
    let _line = AllocatingStep::new(step.site);
    Ok(match storage.device_handle() {
        Some(device_handle) => MemorySource::Device(device_handle.backend.allocate(storage.bytes(), step.out)?),
        None => MemorySource::Own(Buffer::new(storage.bytes())?),
    })
}

/// The memory of a program's results.
struct Provided<'a> {
    /// For each owner, whether its result is written.
    written: &'a [bool],
    /// Memory for owners that had none.
    owners: &'a [(usize, MemorySource)],
    /// For each of the graph's siblings.
    siblings: &'a [MemorySource],
    /// The owner in whose memory the result of the source lies, if there is one.
    source_owner: Option<usize>,
}

/// Checks from time to time whether the host interrupts the program, on the thread that started it.
struct InterruptWatch {
    thread: Option<ThreadId>,
    next: TableLock<Instant>,
    stopped: AtomicBool,
    error: TableLock<Option<Error>>,
}

/// The time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl InterruptWatch {
    /// Never checks unless `checked` is set.
    fn new(checked: bool) -> InterruptWatch {
        InterruptWatch {
            thread: checked.then(|| thread::current().id()),
            next: TableLock::new(Instant::now() + CHECK_INTERVAL),
            stopped: AtomicBool::new(false),
            error: TableLock::new(None),
        }
    }

    fn should_continue(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        if self.thread.is_none_or(|t| t != thread::current().id()) || Instant::now() < *self.next.lock() {
            return true;
        }
        // SAFETY: the program runs under that lock, on this thread.
        let asked = unsafe { queue::outside(language::interrupted) };
        *self.next.lock() = Instant::now() + CHECK_INTERVAL;
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

/// The step of a program that is a request, if there is one: its index, and which output it makes.
fn request_of(g: &StepGraph) -> Option<(usize, &Arc<DeferredRequest>, usize)> {
    g.nodes.iter().enumerate().find_map(|(i, n)| match &n.step.kind {
        DeferredKind::Request { request, output } => Some((i, request, *output)),
        DeferredKind::Point(_) | DeferredKind::Source(_) => None,
    })
}

#[cold]
fn missing(what: &str) -> Error {
    Error::internal("a deferred program", &format!("{what} has no memory"))
}

/// Runs the steps. Those after a source are its epilogue. Those before another request become its first operand; those after that one work in place on its
/// result. `finished` becomes the number of steps whose results are final. After a failure that is 0, or the number of steps before the request, which
/// may have overwritten their inputs.
fn run(g: &StepGraph, root: &Storage, to: &Provided<'_>, watch: &InterruptWatch, finished: &mut usize) -> Result<()> {
    let backend = root.backend();
    let all = g.nodes.len();
    let memory_of = |owner: usize| {
        let new = to.owners.iter().find(|(k, _)| *k == owner).and_then(|(_, s)| s.memory());
        new.or_else(|| g.owners[owner].storage.start()).ok_or_else(|| missing("a result"))
    };
    // The results of a range of steps that are written.
    let written_results = |range: Range<usize>| -> Result<Vec<(usize, Memory<'_>)>> {
        let owners = g.owners.iter().enumerate().filter(|(i, o)| to.written[*i] && range.contains(&o.node));
        owners.map(|(i, o)| Ok((o.node - range.start, memory_of(i)?))).collect()
    };
    let should_continue = || watch.should_continue();
    if let (Some(owner), DeferredKind::Source(request)) = (to.source_owner, &g.nodes[0].step.kind) {
        let step = &g.nodes[0].step;
        let operands = operands_in_memory(&step.ins)?;
        let result_memory = memory_of(owner)?;
        let out = whole(step, result_memory);
        if all == 1 {
            // SAFETY: as below.
            return unsafe { Ok(backend.run(request, &operands, &[Some(out)])?) };
        }
        let part = ProgramPart::new(g, 1..all);
        let (inputs, outputs, is_written) = (part.inputs(Some(result_memory))?, written_results(1..all)?, AtomicBool::new(false));
        // SAFETY: as below; the source's memory is new, and no step reads it after another result is written there.
        return unsafe {
            Ok(backend.run_with_epilogue(request, &operands, out, &part.program(&inputs, &outputs, &should_continue, &is_written))?)
        };
    }
    let Some((at, request, output)) = request_of(g) else {
        let part = ProgramPart::new(g, 0..all);
        let (inputs, outputs, is_written) = (part.inputs(None)?, written_results(0..all)?, AtomicBool::new(false));
        // SAFETY: inputs are settled, and their storages are held by the graph; outputs are storages of the graph with this many elements, new,
        // or taken over from an input that nobody reads later, or the result's own.
        return unsafe { Ok(backend.run_program(&part.program(&inputs, &outputs, &should_continue, &is_written))?) };
    };
    let (step, request) = (&g.nodes[at].step, &request.request);
    let result_memory = memory_of(g.nodes[at].owner)?;
    let mut outs: SmallVec<[Option<View<'_>>; 2]> = smallvec![None; request.outputs()];
    outs[output] = Some(whole(step, result_memory));
    for (s, source) in g.siblings.iter().zip(to.siblings) {
        outs[s.output] = Some(whole(&s.step, source.memory().ok_or_else(|| missing("a result"))?));
    }
    let others = operands_in_memory(&step.ins[1..])?;
    let x = step.ins[0].array().ok_or_else(|| missing("an input"))?;
    let is_written = AtomicBool::new(false);
    let run_on_backend = |first: Operand<'_>| {
        let operands: SmallVec<[Operand<'_>; 4]> = std::iter::once(first).chain(others.iter().copied()).collect();
        // SAFETY: as above; the request's output is new or its own, and overlaps no operand.
        unsafe { backend.run(request, &operands, &outs) }
    };
    let result = if at > 0 {
        let part = ProgramPart::new(g, 0..at);
        let (inputs, outputs) = (part.inputs(None)?, written_results(0..at)?);
        let program = part.program(&inputs, &outputs, &should_continue, &is_written);
        run_on_backend(Operand::Made { program: &program, shape: x.shape(), strides: x.strides() })
    } else {
        run_on_backend(Operand::View(in_memory(x)?))
    };
    if is_written.load(Ordering::Relaxed) {
        *finished = at;
    }
    result?;
    if at + 1 < all {
        // Steps after a request work in place on its result.
        let part = ProgramPart::new(g, at + 1..all);
        let (inputs, outputs) = (part.inputs(Some(result_memory))?, [(all - at - 2, result_memory)]);
        // SAFETY: as above; the last step writes where the first one reads, element for element.
        unsafe { backend.run_program(&part.program(&inputs, &outputs, &|| true, &is_written))? };
    }
    Ok(())
}

/// The result of a step, from the start of its memory on.
fn whole<'a>(step: &'a DeferredStep, memory: Memory<'a>) -> View<'a> {
    View { memory, offset: 0, shape: step.layout.shape(), strides: step.layout.strides(), dtype: step.out }
}

/// An array whose memory is there.
fn in_memory(a: &Array) -> Result<View<'_>> {
    let memory = a.storage().start().ok_or_else(|| missing("an input"))?;
    let l = a.layout();
    Ok(View { memory, offset: l.offset(), shape: l.shape(), strides: l.strides(), dtype: a.dtype() })
}

fn operands_in_memory(ins: &[DeferredInput]) -> Result<SmallVec<[Operand<'_>; 4]>> {
    ins.iter().filter_map(DeferredInput::array).map(|a| in_memory(a).map(Operand::View)).collect()
}

/// The memory of an input.
enum InputLocation {
    /// In a storage, from this element on.
    In(Storage, usize),
    /// The result of the previous part of the program.
    Previous,
}

impl InputLocation {
    fn same(&self, other: &InputLocation) -> bool {
        match (self, other) {
            (InputLocation::In(a, i), InputLocation::In(b, j)) => a.same(b) && i == j,
            (InputLocation::Previous, InputLocation::Previous) => true,
            _ => false,
        }
    }
}

/// An input in memory.
struct LoadedInput {
    place: InputLocation,
    dtype: DType,
    strides: Option<SmallVec<[isize; 6]>>,
}

/// A range of the graph's nodes in the form that backends take.
struct ProgramPart {
    code: Code,
    inputs: Vec<LoadedInput>,
    /// The shape and order of strided inputs. Without any, the results are one row.
    layout: Layout,
}

impl ProgramPart {
    fn new(g: &StepGraph, range: Range<usize>) -> ProgramPart {
        let location = |a: &Array| InputLocation::In(a.storage().clone(), a.layout().offset());
        let last = &g.nodes[range.end - 1].step.layout;
        let mut part = ProgramPart { code: Code::default(), inputs: Vec::new(), layout: Layout::contiguous(&[last.numel()]) };
        let (inputs, layout) = (&mut part.inputs, &mut part.layout);
        let mut load = |place: InputLocation, dtype: DType, strides: Option<&[isize]>| {
            let same = |l: &LoadedInput| l.place.same(&place) && l.dtype == dtype && l.strides.as_deref() == strides;
            program::StepInput::Input(inputs.iter().position(same).unwrap_or_else(|| {
                inputs.push(LoadedInput { place, dtype, strides: strides.map(SmallVec::from_slice) });
                inputs.len() - 1
            }))
        };
        for node in &g.nodes[range.clone()] {
            let step = &node.step;
            let DeferredKind::Point(kind) = step.kind else { continue };
            let ins = step.ins.iter().map(|input| {
                let mut made = |s: &Arc<DeferredStep>| match g.find(s) {
                    Some(j) if j >= range.start => program::StepInput::Step(j - range.start),
                    Some(_) => load(InputLocation::Previous, s.out, None),
                    None => program::StepInput::Nothing,
                };
                let from = match input {
                    DeferredInput::Nothing => program::StepInput::Nothing,
                    DeferredInput::Value(bytes, _) => program::StepInput::Value(*bytes),
                    DeferredInput::Aligned(a) => match a.storage().deferred().and_then(|l| l.step()).filter(|s| g.find(s).is_some()) {
                        Some(s) => made(&s),
                        None => load(location(a), a.dtype(), None),
                    },
                    DeferredInput::Strided(a) => {
                        debug_assert!(layout.rank() < 2 || *layout == step.layout, "strides over two shapes");
                        *layout = step.layout.clone();
                        load(location(a), a.dtype(), Some(a.strides()))
                    }
                    DeferredInput::Old(Some(s), _) => made(s),
                    DeferredInput::Old(None, dtype) => load(InputLocation::In(g.owners[node.owner].storage.clone(), 0), *dtype, None),
                };
                (from, input.dtype())
            });
            let ins = ins.collect();
            part.code.steps.push(program::ProgramStep { kind, ins, out: step.out });
        }
        part
    }

    /// The inputs with their memory; `left` is the result of the previous part.
    fn inputs<'a>(&'a self, left: Option<Memory<'a>>) -> Result<Vec<ProgramInput<'a>>> {
        let input = |i: &'a LoadedInput| {
            let (memory, offset) = match &i.place {
                InputLocation::In(storage, offset) => (storage.start(), *offset),
                InputLocation::Previous => (left, 0),
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
        should_continue: &'a (dyn Fn() -> bool + Sync),
        is_written: &'a AtomicBool,
    ) -> Program<'a> {
        Program {
            code: &self.code,
            shape: self.layout.shape(),
            strides: self.layout.strides(),
            inputs,
            outputs,
            should_continue,
            is_written,
        }
    }
}
