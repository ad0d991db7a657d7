//! The profiler's recorder: what a thread ran, when, and inside of what.
//!
//! A session belongs to the thread that began it, and to the threads that run parts of its backward passes. Events lie in the order in which they
//! began. While no session is on, nothing here is called, except by programs, which look once whether there is one. Which operations are events is
//! decided in `autograd::diagnostics::profiler`.

use crate::array::lock_order::TableLock;
use crate::host::device_times::{self, DeviceRun, DeviceTimes};
use crate::host::kernel_names;
use crate::host::memory::alloc::memory_allocated;
use crate::layout::{DType, Dims};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What an event stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ProfileKind {
    /// A function or method as the user calls it.
    Function,
    /// An operation that was dispatched.
    Operation,
    /// The whole work of the engine for one node.
    Evaluation,
    /// A node's backward.
    Backward,
    /// A range that the user has named.
    User,
    /// A deferred program.
    Program,
    /// The forward of a custom Function.
    Custom,
}

/// What a session records beside names and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ProfileOption {
    Shapes = 1,
    Memory = 2,
    Stack = 4,
    /// When devices ran what is recorded.
    Device = 8,
}

/// No event, no sequence number.
pub const NO_EVENT: u32 = u32::MAX;

/// Bytes that tensors hold on the CPU and on devices.
pub type HeldBytes = [usize; 2];

/// Shapes and dtypes of what an operation gets; no dtype for a number or another object.
pub type ProfileInputs = Box<[(Dims, Option<DType>)]>;

/// One event. Times are nanoseconds since `origin`.
#[derive(Debug, Clone)]
pub struct ProfileEvent {
    pub kind: ProfileKind,
    pub name: Cow<'static, str>,
    pub start: u64,
    /// 0 while it is open.
    pub end: u64,
    /// A small number of the thread.
    pub thread: u32,
    /// The event on the same thread inside of which it began, or `NO_EVENT`.
    pub parent: u32,
    /// The number of the last node that it recorded, or of the node that it runs; 0 for none.
    pub sequence: u64,
    /// The user's line, or 0.
    pub site: u32,
    pub inputs: Option<ProfileInputs>,
    /// The shapes of the results, for an operation that is not a view.
    pub outputs: Option<Box<[Dims]>>,
    /// Floating point operations, where the shapes do not tell them; else 0.
    pub flops: u64,
    /// Bytes held at the start and at the end.
    pub memory: [HeldBytes; 2],
    /// The operations of a program, with their lines.
    pub steps: Option<Box<[(&'static str, u32)]>>,
    /// The kernels that ran inside of it and of no other event, of families that have several.
    pub kernels: Vec<&'static str>,
}

/// What one or several profilers of a thread record.
#[derive(Debug)]
pub struct ProfileSession {
    events: TableLock<Vec<ProfileEvent>>,
    /// What devices ran, in the order in which they told.
    device_runs: TableLock<Vec<DeviceRun>>,
    options: AtomicU8,
}

impl DeviceTimes for ProfileSession {
    fn ran(&self, run: DeviceRun) {
        self.device_runs.lock().push(run);
    }
}

/// Who wants to know when devices run what this thread records, and the event that records it.
pub fn device_watcher() -> Option<device_times::Watcher> {
    let watcher = |a: &ActiveProfile| (a.session.clone() as Arc<dyn DeviceTimes>, a.open.last().copied().unwrap_or(NO_EVENT));
    let of = |active: &Option<ActiveProfile>| active.as_ref().filter(|a| a.session.has(ProfileOption::Device)).map(watcher);
    ACTIVE.try_with(|active| active.try_borrow().ok().and_then(|a| of(&a))).ok().flatten()
}

struct ActiveProfile {
    session: Arc<ProfileSession>,
    /// How many profilers use the session on this thread.
    users: u32,
    /// The events of this thread that are open, outermost first.
    open: Vec<u32>,
}

thread_local! {
    static ACTIVE: RefCell<Option<ActiveProfile>> = const { RefCell::new(None) };
    static THREAD: u32 = {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// The moment from which times are counted, and its nanoseconds since 1970.
pub fn origin() -> (Instant, u64) {
    static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();
    *ORIGIN.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        (Instant::now(), u64::try_from(since).unwrap_or(0))
    })
}

/// Nanoseconds since `origin`.
pub fn now() -> u64 {
    u64::try_from(origin().0.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

static DEVICE_BYTES: OnceLock<fn() -> usize> = OnceLock::new();

/// Registers the function that tells how many bytes tensors hold on devices.
pub fn register_device_bytes(held: fn() -> usize) {
    let _ = DEVICE_BYTES.set(held);
}

fn held() -> HeldBytes {
    [memory_allocated(), DEVICE_BYTES.get().map_or(0, |f| f())]
}

/// Begins a session on this thread, or joins the one that is on. Returns the number of events so far.
pub fn start(options: u8) -> usize {
    origin();
    ACTIVE.with_borrow_mut(|active| {
        let active = active.get_or_insert_with(|| {
            kernel_names::watch(Some(kernel_ran));
            let events = TableLock::new(Vec::with_capacity(1024));
            let session = ProfileSession { events, device_runs: TableLock::new(Vec::new()), options: AtomicU8::new(0) };
            ActiveProfile { session: Arc::new(session), users: 0, open: Vec::new() }
        });
        active.users += 1;
        active.session.options.fetch_or(options, Ordering::Relaxed);
        active.session.events.lock().len()
    })
}

/// One profiler of this thread's session is done. Returns whether the session goes on.
pub fn stop() -> bool {
    let ended = ACTIVE.with_borrow_mut(|active| match active {
        Some(a) if a.users > 1 => {
            a.users -= 1;
            None
        }
        _ => {
            kernel_names::watch(None);
            active.take()
        }
    });
    ended.is_none() && is_on()
}

/// Whether this thread records.
pub fn is_on() -> bool {
    ACTIVE.with_borrow(Option::is_some)
}

/// This thread's session, for a thread that does a part of its work.
pub fn session() -> Option<Arc<ProfileSession>> {
    ACTIVE.with_borrow(|a| a.as_ref().map(|a| a.session.clone()))
}

/// Makes `session` the one of this thread, until `stop`.
pub fn join(session: Arc<ProfileSession>) {
    kernel_names::watch(Some(kernel_ran));
    ACTIVE.set(Some(ActiveProfile { session, users: 1, open: Vec::new() }));
}

/// A copy of this thread's events from number `from` on, and the time until which they go.
pub fn events(from: usize) -> (Vec<ProfileEvent>, u64) {
    let copy = |s: &ProfileSession| s.events.lock().get(from..).map(<[ProfileEvent]>::to_vec);
    (session().and_then(|s| copy(&s)).unwrap_or_default(), now())
}

/// What devices have told about the events of this thread from number `from` on: the event, the name, start and end in nanoseconds since `origin`,
/// and whether the times are the host's. Later calls do not return it again.
pub fn take_device_runs() -> Vec<(u32, String, u64, u64, bool)> {
    let taken = session().map(|s| std::mem::take(&mut *s.device_runs.lock())).unwrap_or_default();
    let since = |t: Instant| u64::try_from(t.saturating_duration_since(origin().0).as_nanos()).unwrap_or(u64::MAX);
    taken.into_iter().map(|r| (r.event, r.name, since(r.start), since(r.end), r.by_host)).collect()
}

/// Whether this thread's session has an option.
pub fn has(option: ProfileOption) -> bool {
    ACTIVE.with_borrow(|a| a.as_ref().is_some_and(|a| a.session.has(option)))
}

impl ProfileSession {
    fn has(&self, option: ProfileOption) -> bool {
        self.options.load(Ordering::Relaxed) & option as u8 != 0
    }
}

/// An event that ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct OpenEvent {
    session: Arc<ProfileSession>,
    at: u32,
}

/// What is known of an event when it begins.
#[derive(Debug, Default)]
pub struct EventStart {
    pub sequence: u64,
    pub site: u32,
    pub inputs: Option<ProfileInputs>,
    pub steps: Option<Box<[(&'static str, u32)]>>,
    pub flops: u64,
}

/// When something began, and the bytes held then.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    time: u64,
    held: HeldBytes,
}

/// The present, for `ran`.
pub fn moment() -> Moment {
    let held = if has(ProfileOption::Memory) { held() } else { [0; 2] };
    Moment { time: now(), held }
}

impl ActiveProfile {
    /// Adds an event, and returns its number.
    fn add(&self, kind: ProfileKind, name: Cow<'static, str>, from: Moment, known: EventStart) -> Option<u32> {
        let mut events = self.session.events.lock();
        let at = u32::try_from(events.len()).ok().filter(|n| *n != NO_EVENT)?;
        events.push(ProfileEvent {
            kind,
            name,
            start: from.time,
            end: 0,
            thread: THREAD.with(|t| *t),
            parent: self.open.last().copied().unwrap_or(NO_EVENT),
            sequence: known.sequence,
            site: known.site,
            inputs: known.inputs,
            outputs: None,
            flops: known.flops,
            memory: [from.held; 2],
            steps: known.steps,
            kernels: Vec::new(),
        });
        Some(at)
    }
}

/// Begins an event; None if this thread does not record.
pub fn open(kind: ProfileKind, name: Cow<'static, str>, known: EventStart) -> Option<OpenEvent> {
    let from = moment();
    ACTIVE.with_borrow_mut(|active| {
        let active = active.as_mut()?;
        let at = active.add(kind, name, from, known)?;
        active.open.push(at);
        Some(OpenEvent { session: active.session.clone(), at })
    })
}

/// Adds an event that has ended now, and inside of which no other began.
pub fn ran(kind: ProfileKind, name: Cow<'static, str>, from: Moment, known: EventStart, outputs: Option<Box<[Dims]>>) {
    let to = moment();
    ACTIVE.with_borrow(|active| {
        let Some(active) = active else { return };
        let Some(at) = active.add(kind, name, from, known) else { return };
        if let Some(e) = active.session.events.lock().get_mut(at as usize) {
            e.end = to.time;
            e.memory[1] = to.held;
            e.outputs = outputs;
        }
    });
}

/// A kernel runs inside of the innermost open event of this thread.
fn kernel_ran(name: &'static str) {
    let add = |a: &ActiveProfile| {
        let mut events = a.session.events.lock();
        if let Some(e) = a.open.last().and_then(|at| events.get_mut(*at as usize)) {
            e.kernels.push(name);
        }
    };
    let _ = ACTIVE.try_with(|active| {
        if let Ok(active) = active.try_borrow()
            && let Some(a) = &*active
        {
            add(a);
        }
    });
}

impl OpenEvent {
    /// Adds the shapes of the results, if the session records shapes.
    pub fn made(&self, shapes: impl Iterator<Item = Dims>) {
        if self.session.has(ProfileOption::Shapes) {
            let shapes: Box<[Dims]> = shapes.collect();
            if let Some(e) = self.session.events.lock().get_mut(self.at as usize) {
                e.outputs = Some(shapes);
            }
        }
    }
}

/// The innermost open event of this thread has recorded the node with this number.
pub fn recorded(sequence: u64) {
    ACTIVE.with_borrow(|active| {
        let Some(a) = active else { return };
        let Some(at) = a.open.last() else { return };
        if let Some(e) =
            a.session.events.lock().get_mut(*at as usize).filter(|e| !matches!(e.kind, ProfileKind::Evaluation | ProfileKind::Backward))
        {
            e.sequence = sequence;
        }
    });
}

impl Drop for OpenEvent {
    fn drop(&mut self) {
        let memory = self.session.has(ProfileOption::Memory).then(held);
        if let Some(e) = self.session.events.lock().get_mut(self.at as usize) {
            e.end = now();
            if let Some(m) = memory {
                e.memory[1] = m;
            }
        }
        // A thread that ends has no list any more. Ranges of the user may end in another order than they began.
        let _ = ACTIVE.try_with(|active| {
            if let Ok(mut active) = active.try_borrow_mut()
                && let Some(a) = active.as_mut().filter(|a| Arc::ptr_eq(&a.session, &self.session))
                && let Some(p) = a.open.iter().rposition(|at| *at == self.at)
            {
                a.open.remove(p);
            }
        });
    }
}
