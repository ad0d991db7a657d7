//! Anomaly mode: nodes record the whole stack of the forward call, and backward checks the gradients of each node for nan.
//!
//! One switch for all threads, as in PyTorch. While it is off it costs nothing: it selects the function that finds call sites
//! (`call_site::record_stacks`), and each pass reads it once.

use crate::array::Array;
use crate::autograd::dispatch::call_site;
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::Node;
use crate::autograd::primitives;
use crate::autograd::tensor::Tensor;
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU8, Ordering};

const ON: u8 = 1;
const CHECK_NAN: u8 = 2;
static MODE: AtomicU8 = AtomicU8::new(CHECK_NAN);

pub fn set(on: bool, check_nan: bool) {
    MODE.store(if on { ON } else { 0 } | if check_nan { CHECK_NAN } else { 0 }, Ordering::Relaxed);
    call_site::record_stacks(on);
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
    let a = t.array();
    if !a.dtype().is_float() || a.numel() == 0 {
        return Ok(false);
    }
    // A sum over a nan is nan, and cheap. A sum over infinities may be nan too, so each element is checked then.
    if !total(&a)?.is_nan() {
        return Ok(false);
    }
    Ok(total(&primitives::is_nan(&a)?)? > 0.0)
}

fn total(a: &Array) -> Result<f64> {
    let all: SmallVec<[bool; 8]> = SmallVec::from_elem(true, a.rank());
    Ok(a.sum(&all, false)?.first()?.to_f64())
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
