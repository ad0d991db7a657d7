//! Anomaly mode: nodes record the whole stack of the forward call, and backward checks the gradients of each node for nan.
//!
//! One switch for all threads, as in PyTorch. While it is off it costs nothing: it selects the function that finds call sites
//! (`call_site::record_stacks`), and each pass reads it once.

use crate::array::Array;
use crate::autograd::diagnostics::growing_graph;
use crate::autograd::dispatch::call_site;
use crate::autograd::dispatch::mode::{self, Watch};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::graph::view::ViewOp;
use crate::autograd::primitives;
use crate::autograd::tensor::Tensor;
use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU8, Ordering};

const ON: u8 = 1;
const CHECK_NAN: u8 = 2;
static MODE: AtomicU8 = AtomicU8::new(CHECK_NAN);

pub fn set(on: bool, check_nan: bool) {
    MODE.store(if on { ON } else { 0 } | if check_nan { CHECK_NAN } else { 0 }, Ordering::Relaxed);
    call_site::record_stacks(on);
    // This thread's operations all go through dispatch, which looks at their outputs.
    mode::set_watch(Watch::Anomaly, on);
}

pub fn is_on() -> bool {
    MODE.load(Ordering::Relaxed) & ON != 0
}

/// Whether a pass in anomaly mode checks for nan. The setting is kept while the mode is off.
pub fn checks_nan() -> bool {
    MODE.load(Ordering::Relaxed) & CHECK_NAN != 0
}

/// None if the mode is off, else whether to check for nan.
pub(in crate::autograd) fn mode() -> Option<bool> {
    let mode = MODE.load(Ordering::Relaxed);
    (mode & ON != 0).then_some(mode & CHECK_NAN != 0)
}

/// The first gradient with a nan.
pub(in crate::autograd) fn first_nan(grads: &Grads) -> Result<Option<usize>> {
    for (k, g) in grads.iter().enumerate() {
        if let Some(g) = g
            && has_nan(g)?
        {
            return Ok(Some(k));
        }
    }
    Ok(None)
}

fn has_nan(t: &Tensor) -> Result<bool> {
    let a = parts(t)?;
    if !a.dtype().is_float() || a.numel() == 0 {
        return Ok(false);
    }
    // A sum over a nan is nan, and cheap. A sum over infinities may be nan too, so each element is checked then.
    if !total(&a)?.is_nan() {
        return Ok(false);
    }
    Ok(total(&primitives::is_nan(&a)?)? > 0.0)
}

/// The values, of complex numbers their parts: either may be nan.
fn parts(t: &Tensor) -> Result<Array> {
    let a = t.array()?;
    if a.dtype().is_complex() { ViewOp::AsReal.apply_to(&a) } else { Ok(a) }
}

fn total(a: &Array) -> Result<f64> {
    let all: SmallVec<[bool; 8]> = SmallVec::from_elem(true, a.rank());
    Ok(a.sum(&all, false)?.first()?.to_f64())
}

/// Whether this thread looks at the outputs of nodes that it records.
#[inline]
pub fn is_looking() -> bool {
    mode::current().watches(Watch::Anomaly) && MODE.load(Ordering::Relaxed) == ON | CHECK_NAN
}

/// Where `is_looking`, remembers of a node that was just recorded whether its outputs are finite.
///
/// # Errors
/// Pending outputs cannot be computed.
#[inline]
pub fn look_at(node: &Node, outs: &[Tensor]) -> Result<()> {
    if is_looking() { note_outputs(node, outs) } else { Ok(()) }
}

#[cold]
fn note_outputs(node: &Node, outs: &[Tensor]) -> Result<()> {
    let mut bits = growing_graph::CHECKED;
    for t in outs.iter().filter(|t| t.level() == 0) {
        let a = parts(t)?;
        if !a.dtype().is_float() || a.numel() == 0 {
            continue;
        }
        match total(&a) {
            // A tensor without values.
            Err(e) if e.kind() == ErrorKind::NotImplemented => continue,
            Err(e) => return Err(e),
            Ok(sum) if sum.is_finite() => continue,
            Ok(_) => {}
        }
        // Finite numbers may have an infinite sum, and infinities one that is nan.
        if total(&primitives::is_nan(&a)?)? > 0.0 {
            bits |= growing_graph::HAS_NAN;
        } else if total(&primitives::is_inf(&a)?)? > 0.0 {
            bits |= growing_graph::HAS_INF;
        }
    }
    growing_graph::see(node, bits);
    Ok(())
}

/// Which of the nodes was the first whose forward gave a nan, and which the first that gave an infinity. None if nothing is known.
#[cold]
pub(in crate::autograd) fn first_forward<'a>(nodes: impl Iterator<Item = &'a Node>) -> Option<String> {
    let (mut nan, mut inf): (Option<&Node>, Option<&Node>) = (None, None);
    let (mut checked, mut all) = (false, true);
    let earlier = |at: &mut Option<&'a Node>, node: &'a Node| {
        if at.is_none_or(|old| node.seq() < old.seq()) {
            *at = Some(node);
        }
    };
    for node in nodes.filter(|n| n.variable().is_none()) {
        // Of a write through a view, the node that writes has been looked at.
        let inner = if let NodeOp::Other(op) = node.op() { op.inner() } else { None };
        let seen = growing_graph::seen(node) | inner.map_or(0, |n| growing_graph::seen(n));
        (checked, all) = (checked | (seen != 0), all & (seen != 0));
        if seen & growing_graph::HAS_NAN != 0 {
            earlier(&mut nan, node);
        }
        if seen & growing_graph::HAS_INF != 0 {
            earlier(&mut inf, node);
        }
    }
    let mut first: Vec<(&Node, &str)> =
        [(nan, "a nan"), (inf, "an infinity")].into_iter().filter_map(|(n, what)| Some((n?, what))).collect();
    first.sort_by_key(|(n, _)| n.seq());
    let lines: Vec<String> = first
        .iter()
        .map(|(n, what)| format!("the first output with {what} is that of {}, recorded at {}", n.name(), n.site().text()))
        .collect();
    match (&lines[..], checked && all) {
        ([], true) => Some("Forward: every output of this graph was finite, so the nan was made in backward".into()),
        ([], false) => None,
        _ => Some(format!("Forward: {}", lines.join("; "))),
    }
}

/// Warns about an error that a node raised, and adds the node's forward stack to the error; also the stacks of the nodes whose backward recorded it.
#[cold]
pub(in crate::autograd) fn report(mut e: Error, node: &Node) -> Error {
    let own = (node.name(), node.site().stack());
    for (i, (name, stack)) in std::iter::once(own).chain(node.site().induced_by()).enumerate() {
        let Some(stack) = stack else {
            call_site::warn(&format!(
                "Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass for more \
                 information."
            ));
            continue;
        };
        let text = if i == 0 {
            format!("Error detected in {name}. Traceback of forward call that caused the error:\n{stack}")
        } else {
            format!(
                "\n\nPrevious calculation was induced by {name}. Traceback of forward call that induced the previous calculation:\n{stack}"
            )
        };
        call_site::warn(&text);
        e = e.note(text);
    }
    e
}
