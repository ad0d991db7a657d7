//! Which of autograd's work is an event of the profiler: operations, nodes of a backward pass, and the nodes that operations record.
//!
//! `Watch::Profile` is set on threads that record. All functions here are called behind it, so they cost nothing while no profiler is on. The
//! events lie in `array::profile`.

use crate::array::Numbers;
use crate::array::profile::{self, EventStart, Moment, OpenEvent, ProfileKind, ProfileOption, ProfileSession};
use crate::autograd::dispatch::call_site;
use crate::autograd::dispatch::mode::{self, Watch, set_watch};
use crate::autograd::dispatch::op::Op;
use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::tensor::Tensor;
use crate::layout::Dims;
use std::borrow::Cow;
use std::sync::Arc;

/// Begins to record on this thread. Returns the number of events so far.
pub fn start(options: u8) -> usize {
    set_watch(Watch::Profile, true);
    profile::start(options)
}

/// Ends one profiler of this thread.
pub fn stop() {
    let goes_on = profile::stop();
    set_watch(Watch::Profile, goes_on);
}

/// Whether this thread records.
#[inline]
pub fn is_on() -> bool {
    mode::current().watches(Watch::Profile)
}

fn site() -> u32 {
    if profile::has(ProfileOption::Stack) { call_site::with_stack().0 } else { 0 }
}

/// A function or method that the user calls with these arguments; None for those that are no tensors.
#[cold]
pub fn function(name: &'static str, given: &[Option<&Tensor>]) -> Option<OpenEvent> {
    let shape = |t: &Option<&Tensor>| t.map_or((Dims::new(), None), |t| (t.shape(), Some(t.dtype())));
    let inputs = profile::has(ProfileOption::Shapes).then(|| given.iter().map(shape).collect());
    profile::open(ProfileKind::Function, Cow::Borrowed(name), EventStart { site: site(), inputs, ..EventStart::default() })
}

/// A range that the user has named.
#[cold]
pub fn range(name: String) -> Option<OpenEvent> {
    profile::open(ProfileKind::User, Cow::Owned(name), EventStart { site: site(), ..EventStart::default() })
}

/// An operation on these inputs; None if no profiler is on.
#[inline]
pub(in crate::autograd) fn operation(op: &dyn Op, inputs: &[&Tensor]) -> Option<OpenEvent> {
    if is_on() { begin(ProfileKind::Operation, Cow::Borrowed(op.name()), inputs, op.flops()) } else { None }
}

/// A write to the first of these inputs, or a view of it under the name of its node; None if no profiler is on.
#[inline]
pub(in crate::autograd) fn named(label: &'static str, inputs: &[&Tensor]) -> Option<OpenEvent> {
    if is_on() { begin(ProfileKind::Operation, Cow::Borrowed(label), inputs, 0) } else { None }
}

/// The forward of a custom Function.
#[cold]
pub fn custom(name: String, inputs: &[Tensor]) -> Option<OpenEvent> {
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    begin(ProfileKind::Custom, Cow::Owned(name), &inputs, 0)
}

/// The results of an operation's event.
#[cold]
pub(in crate::autograd) fn made(event: &OpenEvent, outputs: &[Tensor]) {
    event.made(outputs.iter().map(Tensor::shape));
}

#[cold]
fn begin(kind: ProfileKind, name: Cow<'static, str>, inputs: &[&Tensor], flops: u64) -> Option<OpenEvent> {
    let shapes = || inputs.iter().map(|t| (t.shape(), Some(t.dtype()))).collect();
    let inputs = profile::has(ProfileOption::Shapes).then(shapes);
    profile::open(kind, name, EventStart { site: site(), inputs, flops, ..EventStart::default() })
}

/// The present, for `ran` and `ran_backward`; None if no profiler is on.
#[inline]
pub(in crate::autograd) fn moment() -> Option<Moment> {
    is_on().then(profile::moment)
}

/// An operation on few elements that has taken the fast path. `inputs` with a number's position stand for that number.
#[cold]
pub(in crate::autograd) fn ran(name: &'static str, inputs: &[&Tensor], numbers: &Numbers, from: Moment, out: Option<&Tensor>) {
    let shape = |(i, t): (usize, &&Tensor)| if numbers.has(i) { (Dims::new(), None) } else { (t.shape(), Some(t.dtype())) };
    let shapes = profile::has(ProfileOption::Shapes);
    let inputs = shapes.then(|| inputs.iter().enumerate().map(shape).collect());
    let outputs = out.filter(|_| shapes).map(|t| std::iter::once(t.shape()).collect());
    let sequence = out.and_then(|t| t.read().grad_fn.as_ref().map(|e| e.node.seq())).unwrap_or(0);
    let known = EventStart { sequence, site: site(), inputs, ..EventStart::default() };
    profile::ran(ProfileKind::Operation, Cow::Borrowed(name), from, known, outputs);
}

/// A node's backward that has run on arrays.
#[inline]
pub(in crate::autograd) fn ran_backward(node: &Node, from: Option<Moment>) {
    if let Some(from) = from {
        let known = EventStart { sequence: sequence(node), ..EventStart::default() };
        profile::ran(ProfileKind::Backward, Cow::Owned(title(node)), from, known, None);
    }
}

fn title(node: &Node) -> String {
    let own = node.name();
    if matches!(node.op(), NodeOp::Accumulate(_)) { format!("torch::autograd::{own}") } else { own }
}

/// Nodes of leaves have no number of their own.
fn sequence(node: &Node) -> u64 {
    if node.seq() == u64::MAX { 0 } else { node.seq() }
}

/// The engine's work for a node; None if no profiler is on.
#[inline]
pub(in crate::autograd) fn evaluation(node: &Node) -> Option<OpenEvent> {
    if is_on() { begin_node(ProfileKind::Evaluation, node) } else { None }
}

/// A node's backward; None if no profiler is on.
#[inline]
pub(in crate::autograd) fn backward(node: &Node) -> Option<OpenEvent> {
    if is_on() { begin_node(ProfileKind::Backward, node) } else { None }
}

#[cold]
fn begin_node(kind: ProfileKind, node: &Node) -> Option<OpenEvent> {
    let name = title(node);
    let name = if kind == ProfileKind::Evaluation { format!("autograd::engine::evaluate_function: {name}") } else { name };
    profile::open(kind, Cow::Owned(name), EventStart { sequence: sequence(node), ..EventStart::default() })
}

/// A node was made: the operation that runs has its number.
#[inline]
pub(in crate::autograd) fn recorded(node: &Node) {
    if is_on() {
        profile::recorded(node.seq());
    }
}

/// The session of a thread whose backward pass goes on on another one.
pub(in crate::autograd) struct HandedProfile(Option<Arc<ProfileSession>>);

impl HandedProfile {
    pub fn of_this_thread() -> HandedProfile {
        HandedProfile(if is_on() { profile::session() } else { None })
    }

    /// Makes the session the one of this thread, which ends with its part of the work.
    pub fn install(self) {
        if let Some(s) = self.0 {
            profile::join(s);
        }
    }
}
