//! The dual levels of a thread: where forward mode is on, which tensors have got tangents, and at which levels tangents are hidden.

use crate::autograd::dispatch::mode::{self, Watch};
use crate::autograd::graph::node::Node;
use crate::autograd::tensor::WeakTensor;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Weak;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
    /// The open dual levels: the lowest level of the tensors that each applies to, and what has got tangents in it.
    static DUAL_LEVELS: RefCell<Vec<(u32, Vec<HasTangent>)>> = const { RefCell::new(Vec::new()) };
    /// The dual levels whose tangents are hidden, as ranges of places in `DUAL_LEVELS`.
    static HIDDEN: RefCell<Vec<Range<usize>>> = const { RefCell::new(Vec::new()) };
}

/// Whether operations compute tangents. Not in inference mode either.
pub fn is_enabled() -> bool {
    ENABLED.with(Cell::get) && !mode::current().inference
}

/// Whether operations of `level` compute tangents.
pub fn is_enabled_at(level: u32) -> bool {
    is_enabled() && is_shown(level)
}

/// Switches tangents on or off, and returns the previous setting.
pub fn set_enabled(on: bool) -> bool {
    ENABLED.with(|e| e.replace(on))
}

/// Hides the tangents of tensors of `level`: operations there compute none. With `below`, those of all lower levels instead. Returns what
/// `unhide` takes to undo it.
pub fn hide(level: u32, below: bool) -> usize {
    let at = dual_level(level);
    HIDDEN.with(|h| {
        let mut h = h.borrow_mut();
        let before = h.len();
        h.extend(at.map(|at| if below { 0..at } else { at..at + 1 }));
        before
    })
}

/// Undoes `hide`, and every later one.
pub fn unhide(before: usize) {
    HIDDEN.with(|h| h.borrow_mut().truncate(before));
}

/// Whether tangents of tensors of a level are visible on this thread.
pub(in crate::autograd) fn is_shown(level: u32) -> bool {
    ENABLED.with(Cell::get)
        && HIDDEN.with(|h| {
            let h = h.borrow();
            h.is_empty() || dual_level(level).is_none_or(|at| !h.iter().any(|r| r.contains(&at)))
        })
}

/// Something that has got a tangent inside a dual level, which is removed when the level ends.
pub(in crate::autograd) enum HasTangent {
    Tensor(WeakTensor),
    /// A saved output of a node; the tangent's own history may lead back to that node.
    Node(Weak<Node>),
}

/// Opens a dual level for tensors of `level` and above, and returns the number of open dual levels.
pub fn enter(level: u32) -> usize {
    DUAL_LEVELS.with(|m| {
        let mut m = m.borrow_mut();
        m.push((level, Vec::new()));
        m.len()
    })
}

/// Closes the innermost dual level that was opened for `level`, and those left open inside it. Removes their tangents.
pub fn exit(level: u32) {
    let made = DUAL_LEVELS.with(|m| {
        let mut m = m.borrow_mut();
        let from = m.iter().rposition(|(of, _)| *of == level).unwrap_or(m.len());
        let made = m.split_off(from);
        if m.is_empty() {
            mode::set_watch(Watch::ViewTangents, false);
        }
        made
    });
    for g in made.into_iter().flat_map(|(_, made)| made) {
        match g {
            HasTangent::Tensor(t) => {
                if let Some(t) = t.upgrade() {
                    t.set_tangent(None);
                }
            }
            HasTangent::Node(n) => {
                if let Some(n) = n.upgrade() {
                    n.drop_tangents();
                }
            }
        }
    }
}

/// Adds an entry to the dual level that `level` belongs to.
pub(in crate::autograd) fn register(level: u32, given: HasTangent) {
    DUAL_LEVELS.with(|m| {
        let mut m = m.borrow_mut();
        let at = m.iter().rposition(|(of, _)| *of <= level).or(m.len().checked_sub(1));
        if let Some((_, made)) = at.and_then(|i| m.get_mut(i)) {
            made.push(given);
        }
    });
}

/// How many dual levels are open on this thread.
pub fn depth() -> usize {
    DUAL_LEVELS.with(|m| m.borrow().len())
}

/// The dual level of tangents of tensors of a level.
pub(in crate::autograd) fn dual_level(level: u32) -> Option<usize> {
    DUAL_LEVELS.with(|m| m.borrow().iter().rposition(|(of, _)| *of <= level))
}
