//! Call sites: an interned number for the user's line that runs now; in anomaly mode for the whole stack of calls.
//!
//! The core is independent of Python: the embedding language registers a source that finds the current site and describes it.

use crate::array::fusion;
use crate::array::lock_order::TableLock;
use crate::autograd::dispatch::module_site;
use crate::error::Result;
use crate::host::live_memory;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An interned call site; `UNKNOWN` if no source is registered or no user frame is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Site(pub u32);

/// Set in numbers that index `DERIVED`; the others belong to the source.
pub(super) const IS_DERIVED: u32 = 1 << 31;

impl Site {
    pub const UNKNOWN: Site = Site(0);

    /// "file.py:12 in f", if it is known.
    pub fn describe(self) -> Option<String> {
        let own = self.forward();
        if own == Site::UNKNOWN {
            return None;
        }
        SOURCE.get().and_then(|s| (s.describe)(own))
    }

    /// The file, line and function.
    pub fn place(self) -> Option<(String, u32, String)> {
        let own = self.forward();
        if own == Site::UNKNOWN {
            return None;
        }
        SOURCE.get().and_then(|s| (s.place)(own))
    }

    /// The module whose forward made the call, if that was recorded.
    pub fn module(self) -> Option<String> {
        let mut at = self;
        while let Some(d) = at.derivation() {
            at = if d.called { d.here } else { d.parent };
        }
        module_site::name_of(at)
    }

    /// The description, or a phrase that says that it is unknown.
    pub fn text(self) -> String {
        self.describe().unwrap_or_else(|| "an unknown line".into())
    }

    /// The whole stack of calls, one entry a line, outermost first; None if only the line is known.
    pub fn stack(self) -> Option<String> {
        let here = self.derivation().map_or(self, |d| d.here);
        SOURCE.get().and_then(|s| (s.stack)(module_site::without_module(here)))
    }

    /// For an operation recorded in backward: the nodes whose backward recorded it, innermost first, each with its stack if that is known.
    pub fn induced_by(self) -> Vec<(String, Option<String>)> {
        let mut found = Vec::new();
        let mut at = self;
        while let Some(d) = at.derivation() {
            at = d.parent;
            found.push((d.by, at.stack()));
        }
        found
    }

    /// The site of the operation's call; for an operation that a node recorded by itself, of the first forward call.
    fn forward(self) -> Site {
        let mut at = self;
        while let Some(d) = at.derivation() {
            at = if d.called { d.here } else { d.parent };
        }
        module_site::without_module(at)
    }

    fn derivation(self) -> Option<Derivation> {
        let own = module_site::without_module(self);
        if own.0 & IS_DERIVED == 0 {
            return None;
        }
        DERIVED.lock().all.get((own.0 & !IS_DERIVED) as usize).cloned()
    }
}

/// The site of an operation that a node records in its backward, in anomaly mode.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Derivation {
    /// Where backward was called; of an operation that a hook or a Function's backward has called, where that was.
    here: Site,
    called: bool,
    /// The node's own site, and its name.
    parent: Site,
    by: String,
}

#[derive(Default)]
struct Derivations {
    all: Vec<Derivation>,
    ids: FxHashMap<Derivation, u32>,
}

static DERIVED: TableLock<Derivations> =
    TableLock::new(Derivations { all: Vec::new(), ids: FxHashMap::with_hasher(rustc_hash::FxBuildHasher) });

/// The site of what the node called `by`, itself recorded at `parent`, records in a pass that was called at `here`.
pub fn derive(here: Site, parent: Site, by: String) -> Site {
    derived(Derivation { here, called: false, parent, by })
}

fn derived(key: Derivation) -> Site {
    let mut table = DERIVED.lock();
    if let Some(id) = table.ids.get(&key) {
        return Site(*id);
    }
    let id = table.all.len() as u32 | IS_DERIVED;
    table.all.push(key.clone());
    table.ids.insert(key, id);
    Site(id)
}

/// How the embedding language finds and describes call sites, and how it warns.
#[derive(Debug)]
pub struct CallSiteSource {
    /// The site of the innermost user line: alone, and with the whole stack.
    pub current: [fn() -> Site; 2],
    pub describe: fn(Site) -> Option<String>,
    /// File, line and function.
    pub place: fn(Site) -> Option<(String, u32, String)>,
    pub stack: fn(Site) -> Option<String>,
    /// Shows a warning to the user.
    pub warn: fn(&str),
    /// Shows a warning that belongs to the line of a site. An error if the user makes warnings errors.
    pub warn_at: fn(Site, &str) -> Result<()>,
    /// Has `growing_graph::report` called between two of the user's instructions. Nothing runs at once, so locks may be held.
    pub soon: fn(),
}

static SOURCE: OnceLock<CallSiteSource> = OnceLock::new();
/// Which of `CallSiteSource::current` is called; with `WITH_MODULE`, whether the module is added.
static SOURCE_INDEX: AtomicUsize = AtomicUsize::new(0);

const WITH_STACK: usize = 1;
const WITH_MODULE: usize = 2;

thread_local! {
    /// While a node runs in backward, what it records inherits the node's own forward site.
    static INHERITED: Cell<Option<Site>> = const { Cell::new(None) };
    /// In anomaly mode the site and name of the node that runs in backward.
    static RUNNING: RefCell<Option<(Site, String)>> = const { RefCell::new(None) };
}

/// The source's function that finds a site with its stack.
static STACKS: OnceLock<fn() -> Site> = OnceLock::new();

/// Registers the source; the first registration stays.
pub fn register(mut source: CallSiteSource) {
    let _ = STACKS.set(std::mem::replace(&mut source.current[1], with_running_node));
    let _ = SOURCE.set(source);
    live_memory::register_sites(|| current().0);
    fusion::register(fusion::CallSites { current: || current().0, describe: |site| Site(site).text() });
}

/// The site with its stack; of what a Function's backward or a hook calls, derived from the node that runs.
fn with_running_node() -> Site {
    let here = STACKS.get().map_or(Site::UNKNOWN, |f| f());
    match RUNNING.with_borrow(Clone::clone) {
        Some((parent, by)) => derived(Derivation { here, called: true, parent, by }),
        None => here,
    }
}

/// In anomaly mode, names the node that runs on this thread, until dropped.
pub struct RunningNode(Option<(Site, String)>);

impl RunningNode {
    pub fn new(site: Site, name: String) -> RunningNode {
        RunningNode(RUNNING.replace(Some((site, name))))
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        RUNNING.set(self.0.take());
    }
}

/// Whether sites remember the whole stack from now on.
pub fn record_stacks(on: bool) {
    switch(WITH_STACK, on);
}

/// Whether sites remember the module from now on.
pub fn record_modules(on: bool) {
    switch(WITH_MODULE, on);
}

fn switch(bit: usize, on: bool) {
    if on {
        SOURCE_INDEX.fetch_or(bit, Ordering::Relaxed);
    } else {
        SOURCE_INDEX.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Warns through the embedding language. No lock may be held.
pub fn warn(text: &str) {
    if let Some(s) = SOURCE.get() {
        (s.warn)(text);
    }
}

/// As `warn`, of a line that is not the one that runs.
///
/// # Errors
/// The user's filters make the warning an exception.
pub fn warn_at(site: Site, text: &str) -> Result<()> {
    SOURCE.get().map_or(Ok(()), |s| (s.warn_at)(site, text))
}

/// Asks the embedding language to show, between two of the user's instructions, what diagnostics have found.
pub fn soon() {
    if let Some(s) = SOURCE.get() {
        (s.soon)();
    }
}

/// The site of the operation that is being called now.
#[inline]
pub fn current() -> Site {
    if let Some(s) = INHERITED.with(Cell::get) {
        return s;
    }
    match SOURCE.get() {
        Some(s) => {
            let index = SOURCE_INDEX.load(Ordering::Relaxed);
            let site = (s.current[index & WITH_STACK])();
            if index & WITH_MODULE == 0 { site } else { module_site::here(site) }
        }
        None => Site::UNKNOWN,
    }
}

/// Whether a node's own backward runs on this thread, outside of user code that it calls.
#[inline]
pub fn is_inherited() -> bool {
    INHERITED.with(Cell::get).is_some()
}

/// The site with its whole stack, whether anomaly mode is on or not; of what a node computes, the node's own.
pub fn with_stack() -> Site {
    INHERITED.with(Cell::get).or_else(|| STACKS.get().map(|f| f())).unwrap_or(Site::UNKNOWN)
}

/// Makes `site` the current one until dropped.
#[derive(Debug)]
pub struct Inherit(Option<Site>);

impl Inherit {
    #[inline]
    pub fn new(site: Site) -> Inherit {
        Inherit(INHERITED.with(|c| c.replace(Some(site))))
    }

    /// Makes the user's own lines visible again, around hooks and Functions that run user code.
    #[inline]
    pub fn suspend() -> Inherit {
        Inherit(INHERITED.with(|c| c.replace(None)))
    }
}

impl Drop for Inherit {
    fn drop(&mut self) {
        INHERITED.with(|c| c.set(self.0));
    }
}
