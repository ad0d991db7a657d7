//! Thread-local watchers that see every operation, below the recording of history, and may answer with results of their own.

use crate::autograd::dispatch::mode::{Mode, ModeGuard, Watch, set_watch};
use crate::autograd::dispatch::op::{Arrays, Op};
use crate::autograd::graph::vjp::Name;
use crate::autograd::tensor::{Tensor, Value};
use crate::error::{Error, Result};
use std::cell::RefCell;
use std::sync::Arc;

/// What an operation does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// Makes new values.
    Computes,
    /// Overwrites its first input.
    Writes,
    /// Makes a view of its input.
    Views,
}

/// A call of an operation, as a watcher sees it.
#[derive(Clone, Copy)]
pub struct OperationCall<'a> {
    pub name: &'a str,
    /// PyTorch's name of the node, also where nothing is recorded.
    pub node_name: &'a str,
    pub kind: CallKind,
    pub inputs: &'a [&'a Tensor],
}

/// Sees the operations that its thread calls. Its methods are called while recording is off, and the operations that they call are seen by nobody.
pub trait OperationWatcher: Send + Sync {
    /// Before an operation that makes new values: the results to take instead of computing them, or None.
    fn before(&self, call: &OperationCall<'_>) -> Result<Option<Vec<Tensor>>>;

    /// After an operation that has run.
    fn after(&self, call: &OperationCall<'_>, outputs: &[Tensor]) -> Result<()>;
}

type Watchers = Vec<Arc<dyn OperationWatcher>>;

thread_local! {
    /// Innermost last.
    static WATCHERS: RefCell<Watchers> = const { RefCell::new(Vec::new()) };
}

/// Adds a watcher for this thread. The innermost is asked first.
pub fn push(watcher: Arc<dyn OperationWatcher>) {
    WATCHERS.with(|w| w.borrow_mut().push(watcher));
    set_watch(Watch::Operations, true);
}

/// Removes the innermost watcher.
pub fn pop() {
    let (gone, empty) = WATCHERS.with(|w| {
        let mut w = w.borrow_mut();
        (w.pop(), w.is_empty())
    });
    if empty {
        set_watch(Watch::Operations, false);
    }
    // Outside the borrow: it may own foreign objects.
    drop(gone);
}

/// Nothing is watched while it lives.
struct Unwatched;

impl Unwatched {
    fn new() -> Unwatched {
        set_watch(Watch::Operations, false);
        Unwatched
    }
}

impl Drop for Unwatched {
    fn drop(&mut self) {
        set_watch(Watch::Operations, true);
    }
}

fn watchers() -> Watchers {
    WATCHERS.with(|w| w.borrow().clone())
}

fn array_of(t: &Tensor) -> Result<crate::array::Array> {
    if t.level() > 0 {
        return Err(Error::runtime("a watcher of operations answered with a tensor of a function transform"));
    }
    t.array()
}

/// Runs an operation between the calls of this thread's watchers. The operations that it calls itself are not seen.
#[cold]
pub(in crate::autograd) fn around(op: &dyn Op, inputs: &[&Tensor], forward: impl FnOnce() -> Result<Arrays>) -> Result<Arrays> {
    let _off = Unwatched::new();
    let name = op.node_name();
    let call = OperationCall { name: op.name(), node_name: &name, kind: CallKind::Computes, inputs };
    let all = watchers();
    let mut answer = None;
    let mut passed: &[Arc<dyn OperationWatcher>] = &[];
    for (i, watcher) in all.iter().enumerate().rev() {
        let _mode = ModeGuard::grad(false);
        answer = watcher.before(&call)?;
        if answer.is_some() {
            break;
        }
        passed = &all[i..];
    }
    let made = match answer {
        Some(given) => given.iter().map(array_of).collect::<Result<Arrays>>()?,
        None => forward()?,
    };
    let outputs: Vec<Tensor> = made.iter().map(|a| Tensor::from_value(Value::Array(a.clone()))).collect();
    let _mode = ModeGuard::grad(false);
    passed.iter().try_for_each(|watcher| watcher.after(&call, &outputs))?;
    Ok(made)
}

/// Tells this thread's watchers of a write or a view that has been made.
#[cold]
pub(in crate::autograd) fn tell(name: &str, node_name: Name, kind: CallKind, inputs: &[&Tensor], output: &Tensor) -> Result<()> {
    let _off = Unwatched::new();
    let _mode = ModeGuard::grad(false);
    let call = OperationCall { name, node_name: &node_name, kind, inputs };
    let outputs = [output.detach()];
    watchers().iter().try_for_each(|watcher| watcher.after(&call, &outputs))
}

/// Whether this thread's watchers see an operation on these inputs: at transform levels, they see what it comes down to.
#[inline]
pub(in crate::autograd) fn sees(mode: Mode, wrapped: bool) -> bool {
    mode.watches(Watch::Operations) && !wrapped
}
