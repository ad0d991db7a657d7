//! Dispatch of operations, in place and out of place. Every operation goes through here, except where `fast_path` applies. Grad mode, transform
//! levels, tangents, call sites and recording are handled here and nowhere else.

use crate::array::{Access, Array, Change, Device, Version, fusion};
use crate::autograd::diagnostics::{missing_gradient, profiler};
use crate::autograd::dispatch::call_site::{self, Inherit};
use crate::autograd::dispatch::mode::{self, Watch};
use crate::autograd::dispatch::op::{Arrays, Devices, Op, Outputs, Saves};
use crate::autograd::dispatch::operation_watcher::{self, CallKind};
use crate::autograd::dispatch::record::{self, History, NodeRecord};
use crate::autograd::dispatch::write_callback;
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Edge, Node, NodeOp, OutMeta};
use crate::autograd::graph::saved::Saved;
use crate::autograd::graph::vjp::{AfterRun, Vjp, VjpCx};
use crate::autograd::graph::{saved_hooks, view};
use crate::autograd::primitives;
use crate::autograd::tensor::lock::ReadGuard;
use crate::autograd::tensor::{Core, Tensor, Value};
use crate::autograd::transforms::mutation_guard::{self, TrustedWrites};
use crate::autograd::transforms::{dual_levels, forward_mode, level, view_tangents};
use crate::error::{Error, ErrorKind, Result, within};
use crate::host::{interrupt, language};
use crate::layout::fmt_shape;
use smallvec::SmallVec;

#[cold]
pub fn inplace_shape(have: &[usize], broadcast: &[usize]) -> Error {
    Error::shape(format!("output with shape {} doesn't match the broadcast shape {}", fmt_shape(have), fmt_shape(broadcast)))
}

/// Applies an operation and returns its first result.
#[inline]
pub fn apply1(op: &dyn Op, inputs: &[&Tensor]) -> Result<Tensor> {
    let mut out = apply(op, inputs)?;
    Ok(out.swap_remove(0))
}

/// As `apply`, for an operation whose results may be larger than its inputs.
pub fn apply_growing(op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs> {
    run(op, inputs, true, true)
}

/// As `apply1`, for an operation whose result may have more elements than the product of its inputs' sizes.
pub fn apply1_growing(op: &dyn Op, inputs: &[&Tensor]) -> Result<Tensor> {
    let mut out = run(op, inputs, true, true)?;
    Ok(out.swap_remove(0))
}

/// Applies an operation. See "Note: levels" in `transforms/level.rs`.
#[inline]
pub fn apply(op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs> {
    run(op, inputs, false, true)
}

/// As `apply`, but ignores tangents.
pub(in crate::autograd) fn run_recorded(op: &dyn Op, inputs: &[&Tensor], grows: bool) -> Result<Outputs> {
    run(op, inputs, grows, false)
}

#[inline]
fn run(op: &dyn Op, inputs: &[&Tensor], grows: bool, tangents: bool) -> Result<Outputs> {
    let event = profiler::operation(op, inputs);
    let made = run_unseen(op, inputs, grows, tangents);
    if let (Some(event), Ok(outs)) = (&event, &made) {
        profiler::made(event, outs);
    }
    made
}

/// `run` without an event of its own.
fn run_unseen(op: &dyn Op, inputs: &[&Tensor], grows: bool, tangents: bool) -> Result<Outputs> {
    if fusion::has_abandoned() {
        run_abandoned_programs(op, inputs);
    }
    let mode = mode::current();
    if mode.watches(Watch::ViewTangents) {
        view_tangents::inherit(inputs)?;
    }
    // Loops that push: collecting into small vectors costs more than some operations.
    let (outs, history) = {
        let mut cores: SmallVec<[ReadGuard<'_, Core>; 3]> = SmallVec::new();
        for t in inputs {
            cores.push(t.read());
        }
        let mut arrays: SmallVec<[&Array; 3]> = SmallVec::new();
        let (mut history, mut lazy) = (History::new(mode), false);
        for c in &cores {
            history.input(c);
            match &c.value {
                Value::Array(a) => arrays.push(a),
                Value::Lazy(_) => lazy = true,
                Value::Wrapped(_) => {}
            }
        }
        if !history.normal && !op.copies() {
            history.needs.fill(false);
        }
        let History { wrapped, dual, .. } = history;
        let outs: SmallVec<[Value; 1]> = if wrapped || dual && tangents {
            drop(arrays);
            drop(cores);
            // Before tangents are handled: an input of a level that has ended stands for the tensor below it, and has that tensor's tangent.
            if wrapped && let Some(now) = level::without_ended(inputs) {
                let refs: SmallVec<[&Tensor; 3]> = now.iter().collect();
                return run_unseen(op, &refs, grows, tangents);
            }
            if dual && tangents {
                return forward_mode::apply_with_tangents(op, inputs, grows);
            }
            let (outs, number) = apply_level(op, inputs)?;
            history.at_level(number);
            outs
        } else {
            let watched = operation_watcher::sees(history.mode, false);
            let made =
                if lazy || watched || op.is_composed() || is_large(op, &arrays, grows) || arrays.iter().any(|a| !a.storage().is_plain()) {
                    // No tensor stays locked here: another thread may hold the host's lock while it waits for one of these tensors.
                    let mut handles: SmallVec<[Array; 3]> = arrays.iter().map(|a| (*a).clone()).collect();
                    drop(arrays);
                    drop(cores);
                    if lazy {
                        handles = inputs.iter().map(|t| t.array()).collect::<Result<_>>()?;
                    }
                    if watched {
                        operation_watcher::around(op, inputs, || forward_unlocked(op, &handles))
                    } else {
                        forward_unlocked(op, &handles)
                    }
                } else {
                    within(|| op.name().into(), || op.forward(&arrays))
                };
            let made = made?;
            history.at_level(0);
            if !history.is_recorded() && !history.ends {
                return Ok(plain_outputs(made));
            }
            let mut outs = SmallVec::new();
            for a in made {
                outs.push(Value::Array(a));
            }
            outs
        };
        (outs, history)
    };
    if !history.is_recorded() {
        return Ok(without_history(op, inputs, &history, outs));
    }
    record_outputs(op, inputs, &history, outs)
}

/// The results of an operation without history and without ended paths.
#[inline]
fn plain_outputs(mut made: Arrays) -> Outputs {
    let mut outs = Outputs::new();
    if made.len() > 1 {
        outs.extend(made.into_iter().map(|a| Tensor::from_value(Value::Array(a))));
    } else if let Some(one) = made.pop() {
        outs.push(Tensor::from_value(Value::Array(one)));
    }
    outs
}

/// A safe point: runs deferred programs that keep more memory alive than their results take, before an operation allocates memory. It is skipped
/// for an operation that becomes a step of a program, because the next step usually takes over what this one releases.
#[cold]
fn run_abandoned_programs(op: &dyn Op, inputs: &[&Tensor]) {
    let looks = |f: fn(&Array) -> bool| inputs.iter().any(|t| f(&t.memory()));
    let is_step =
        op.accepts_pending() && { op.is_elementwise() && looks(|a| fusion::may_wait(a.numel())) || looks(|a| a.storage().is_pending()) };
    // Smaller arrays take hardly any memory.
    if !is_step && looks(|a| a.numel() > 16) {
        fusion::run_abandoned();
    }
}

/// Whether the arrays are on several devices.
#[inline]
fn is_mixed(arrays: &[&Array]) -> bool {
    arrays.iter().any(|a| a.device() != arrays[0].device())
}

fn with_replaced<'a>(arrays: &[&'a Array], moved: &'a [(usize, Array)]) -> SmallVec<[&'a Array; 3]> {
    let mut out: SmallVec<[&Array; 3]> = SmallVec::from_slice(arrays);
    for (at, a) in moved {
        out[*at] = a;
    }
    out
}

/// The inputs that have to be copied to the device of the others. An error if one of them is not 0-d: transfers of arrays are explicit.
#[cold]
fn inputs_to_move(op: &dyn Op, arrays: &[&Array]) -> Result<Vec<(usize, Array)>> {
    let mut out = Vec::new();
    let Some(there) = arrays.iter().find(|a| a.device() != Device::CPU) else { return Ok(out) };
    if op.devices() == Devices::Any {
        return Ok(out);
    }
    for (i, a) in arrays.iter().enumerate().filter(|(_, a)| a.device() == Device::CPU) {
        if a.rank() > 0 {
            return Err(Error::runtime(format!(
                "Expected all tensors to be on the same device, but found at least two devices, {} and cpu! ({}: input {i} of shape {} is on \
                 cpu; move it with .to(\"{}\"))",
                there.device(),
                op.name(),
                fmt_shape(a.shape()),
                there.device()
            )));
        }
        if op.devices() == Devices::Same {
            out.push((i, a.to_device_of(there)?));
        }
    }
    Ok(out)
}

/// Whether the operation is large enough to release the host's lock. The work of an operation that does not grow is at most the product of its
/// inputs' sizes, so small operations pay for this product only.
#[inline]
fn is_large(op: &dyn Op, arrays: &[&Array], grows: bool) -> bool {
    let mut most = 1usize;
    for a in arrays {
        let n = a.numel();
        if n == 0 {
            return is_large_from_nothing(arrays) || ((grows || op.grows()) && op.work(arrays) >= fusion::large());
        }
        most = most.saturating_mul(n);
    }
    let large = fusion::large();
    (most >= large || grows || op.grows()) && op.work(arrays) >= large
}

/// Whether the result of an empty input may be large: the other sizes remain in sums and products.
#[cold]
fn is_large_from_nothing(arrays: &[&Array]) -> bool {
    let sizes = arrays.iter().flat_map(|a| a.shape()).filter(|n| **n > 0);
    sizes.fold(1usize, |n, size| n.saturating_mul(*size)) >= fusion::large()
}

/// Runs an operation that is large, or that runs on a device, while none of our locks is held. A wait for a device releases the host's lock by
/// itself.
#[cold]
fn forward_unlocked(op: &dyn Op, arrays: &[Array]) -> Result<Arrays> {
    let refs: SmallVec<[&Array; 3]> = arrays.iter().collect();
    let moved = if is_mixed(&refs) { inputs_to_move(op, &refs)? } else { Vec::new() };
    let refs = with_replaced(&refs, &moved);
    if runs_under_locks(&refs) {
        return within(|| op.name().into(), || op.forward(&refs));
    }
    // A pending result records its call site, which cannot be looked up without the host's lock.
    let _line = Inherit::new(call_site::current());
    language::long_work(|| {
        if !op.accepts_pending() {
            refs.iter().try_for_each(|a| a.ready())?;
        }
        // Its small operations run under guards; the large ones are watched by themselves.
        let _still = op.is_composed().then(interrupt::paused);
        within(|| op.name().into(), || op.forward(&refs))
    })
}

/// Whether a device operation can be recorded at once, without releasing the host's lock: its inputs are small, and nothing is pending.
fn runs_under_locks(arrays: &[&Array]) -> bool {
    arrays.iter().any(|a| a.device() != Device::CPU) && arrays.iter().all(|a| a.numel() < language::LARGE && !a.storage().is_pending())
}

/// Lets the highest level among the inputs apply its rule. The results are values of that level.
#[cold]
fn apply_level(op: &dyn Op, inputs: &[&Tensor]) -> Result<(SmallVec<[Value; 1]>, u32)> {
    let Some(level) = level::highest(inputs) else {
        return Err(Error::runtime(format!("{}: no level among the inputs", op.name())));
    };
    // The caller records the history at this level, from the same inputs. The rule's own calls record the levels below.
    let outs = level.apply(&level, op, inputs)?;
    Ok((outs.into_iter().map(|t| t.read().value.clone()).collect(), level.number()))
}

/// The results of an operation that recorded nothing, with the reason if an input had a history.
fn without_history(op: &dyn Op, inputs: &[&Tensor], history: &History, outs: SmallVec<[Value; 1]>) -> Outputs {
    let reason = missing_gradient::end_reason(history.mode, op.is_cast());
    let ends = if history.ends || history.is_recorded() { missing_gradient::ends_of(op.name(), reason, inputs) } else { None };
    let mode = mode::current();
    outs.into_iter().map(|v| Tensor::ended_in_mode(mode, v, ends.clone())).collect()
}

/// Records an operation that has run, and returns its results with their common history.
fn record_outputs(op: &dyn Op, inputs: &[&Tensor], history: &History, outs: SmallVec<[Value; 1]>) -> Result<Outputs> {
    let mut metas: SmallVec<[OutMeta; 1]> = SmallVec::new();
    let mut with_grad: SmallVec<[bool; 2]> = SmallVec::new();
    for (j, v) in outs.iter().enumerate() {
        let meta = out_meta(v);
        with_grad.push(meta.dtype.is_differentiable() && op.differentiable(j));
        metas.push(meta);
    }
    if !with_grad.contains(&true) {
        return Ok(without_history(op, inputs, history, outs));
    }
    // What comes behind the last output with a gradient, such as positions, is no output of the node.
    metas.truncate(with_grad.iter().rposition(|g| *g).map_or(0, |last| last + 1));
    let edges = history.edges(inputs.iter().copied())?;
    let needs: SmallVec<[bool; 4]> = edges.iter().map(Option::is_some).collect();
    let saves = op.saves(&needs);
    let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
    for (i, t) in inputs.iter().enumerate() {
        if saves.has(i) {
            saved.push(if history.wrapped { Saved::input_for_now(t) } else { Saved::input(t)? });
        }
    }
    for (j, v) in outs.iter().enumerate() {
        if saves.has(Saves::FIRST_OUTPUT + j) {
            saved.push(Saved::output_value(v.clone(), Version::Shared, j as u32));
        }
    }
    let node = record::begin(NodeRecord { op: op.node_op(), edges, outs: metas, saves, saved }, call_site::current());
    let mut made = Outputs::new();
    for (j, v) in outs.into_iter().enumerate() {
        let edge = with_grad[j].then(|| Edge { node: node.clone(), nr: j as u32 });
        made.push(Tensor::with_history(v, Version::Shared, edge));
    }
    let outs = made;
    for (t, _) in outs.iter().zip(&with_grad).filter(|(_, g)| !**g) {
        missing_gradient::mark_results(
            op.name(),
            missing_gradient::end_reason(history.mode, op.is_cast()),
            inputs,
            std::slice::from_ref(t),
        );
    }
    record::finish(&node, history.ends.then_some(inputs), &outs)?;
    Ok(outs)
}

pub(crate) fn out_meta(v: &Value) -> OutMeta {
    match v {
        Value::Array(a) => OutMeta::of(a),
        Value::Lazy(l) => OutMeta::of(&l.array),
        Value::Wrapped(l) => l.with_array(OutMeta::of),
    }
}

/// What an in-place operation does with the old value of its target. In both cases the old value's history continues: an overwritten value gets a
/// zero gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldValue {
    /// `add_`: the old value is the first input.
    Read,
    /// `copy_`, `fill_`: the old value is lost.
    Overwritten,
}

/// Applies an operation whose result overwrites its first input. If it fails, nothing has changed.
pub fn apply_inplace(op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue) -> Result<()> {
    let _event = profiler::named(label, inputs);
    write_inplace(op, label, inputs, old, true)
}

/// As `apply_inplace`, for inputs of which some have tangents.
#[cold]
fn apply_inplace_with_tangents(op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue) -> Result<()> {
    if let Some(now) = level::without_ended(inputs) {
        let refs: SmallVec<[&Tensor; 3]> = now.iter().collect();
        return apply_inplace(op, label, &refs, old);
    }
    let Some(seen_inputs) = forward_mode::SeenInputs::of(inputs)? else { return write_inplace(op, label, inputs, old, false) };
    let primals = seen_inputs.primals(inputs)?;
    let refs: SmallVec<[&Tensor; 3]> = primals.iter().collect();
    // If the tangents have a history, here or at a lower level, it saves the old value.
    let record_outputs = || inputs.iter().any(|t| t.level() > 0 || t.requires_grad() || t.tangent().is_some_and(|x| x.requires_grad()));
    let target = forward_mode::copy_before_write(inputs[0], old == OldValue::Read && mode::is_grad_enabled() && record_outputs())?;
    let rest = inputs[1..].iter().map(|t| forward_mode::input_before_write(t, inputs[0]));
    let ins: SmallVec<[Tensor; 3]> = std::iter::once(Ok(target)).chain(rest).collect::<Result<_>>()?;
    let ins: SmallVec<[&Tensor; 3]> = ins.iter().collect();
    let made = forward_mode::result_tangents(op, &ins, &seen_inputs, &apply(op, &refs)?)?.swap_remove(0);
    let mut written: SmallVec<[&Tensor; 3]> = seen_inputs.below.iter().collect();
    written[0] = inputs[0];
    write_inplace(op, label, &written, old, false)?;
    // The tangent belongs to the target, whichever memory it uses.
    let _trusted = TrustedWrites::new();
    view_tangents::write_tangent(inputs[0], made)
}

fn write_inplace(op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue, tangents: bool) -> Result<()> {
    let target = inputs[0];
    if fusion::has_abandoned() {
        run_abandoned_programs(op, inputs);
    }
    let mode = mode::current();
    if mode.watches(Watch::ViewTangents) {
        view_tangents::inherit(inputs)?;
    }
    debug_assert!(old == OldValue::Read || !op.saves(&[true]).has(0), "{label} reads what it overwrites");
    let mut history = History::new(mode);
    for (i, t) in inputs.iter().enumerate() {
        let core = t.read();
        if i == 0 {
            history.target(&core);
        } else {
            history.input(&core);
        }
    }
    let History { wrapped, dual, .. } = history;
    let level = if wrapped { level::highest(inputs) } else { None };
    if let Some(level) = &level
        && mutation_guard::wrap_target(target, level)
    {
        return write_inplace(op, label, inputs, old, tangents);
    }
    if dual && tangents && dual_levels::is_enabled() {
        return apply_inplace_with_tangents(op, label, inputs, old);
    }
    if wrapped && let Some(now) = level::without_ended(inputs) {
        let refs: SmallVec<[&Tensor; 3]> = now.iter().collect();
        return apply_inplace(op, label, &refs, old);
    }
    if !history.normal {
        history.needs.fill(false);
    }
    history.at_level(level.as_ref().map_or(0, |l| l.number()));
    let any = history.is_recorded() && target.dtype().is_differentiable();
    view::check_inplace(target, any, label)?;

    let memory = target.memory();
    if !memory.storage().is_writable()
        && let Some(e) = target.refuses_write(label)
    {
        return Err(e);
    }
    if memory.layout().has_zero_stride() && !op.writes_one_value() {
        return Err(Error::runtime(format!(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the \
             tensor before performing the operation ({label})."
        )));
    }
    let node = if any {
        let saves = op.saves(&history.needs);
        let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
        let edges = history.edges(inputs.iter().copied())?;
        for (i, t) in inputs.iter().enumerate().filter(|(i, _)| saves.has(*i)) {
            // The target's old value is saved as a copy. If the target is also another input, that input is saved as it is, and its version tells
            // later that it was modified, as in PyTorch.
            saved.push(if i == 0 {
                let copy = match &level {
                    None => Value::Array(t.array()?.clone_dense()?),
                    Some(_) => primitives::clone(&t.detach_here())?.read().value.clone(),
                };
                Saved::Copy(Box::new((copy, t.gradient_edge()?)))
            } else {
                Saved::input_of_write(t, memory.storage())?
            });
        }
        let outs = SmallVec::from_elem(target.with_array(OutMeta::of), 1);
        let node = record::begin(NodeRecord { op: op.node_op(), edges, outs, saves, saved }, call_site::current());
        if let Some(hooks) = saved_hooks::current() {
            // Hooks see the inputs while these still have the values and the history that are saved.
            saved_hooks::pack_node(&node, &*hooks, &[])?;
            if mode.watches(Watch::Writing) {
                // The write also overwrites what was packed just now.
                write_callback::announce(target)?;
            }
        }
        Some(node)
    } else {
        None
    };
    let mut counted = false;
    if let Some(level) = &level {
        let before = target.version();
        level.apply_inplace(level, op, label, inputs, old)?;
        // The write one level below has counted already where both share the counter.
        counted = target.version() != before;
    } else {
        let mut arrays: SmallVec<[Array; 3]> = inputs.iter().map(|t| t.array()).collect::<Result<_>>()?;
        // A lazy conjugate or negative is written as a copy of its elements, which is then brought back to its memory.
        let bits = target.math_bits();
        let out = if bits.any() {
            arrays[0] = memory.empty_like(memory.dtype())?;
            arrays[0].copy_from(&target.array()?)?;
            arrays[0].clone()
        } else {
            memory.clone()
        };
        let refs: SmallVec<[&Array; 3]> = arrays.iter().collect();
        let mut moved = Vec::new();
        if is_mixed(&refs) {
            if out.device() == Device::CPU && op.devices() != Devices::Any {
                return Err(Error::runtime(format!(
                    "Expected all tensors to be on the same device: {label} writes to a tensor on cpu, but another input is on a device; move \
                     one of them with .to() first"
                )));
            }
            moved = inputs_to_move(op, &refs)?;
        }
        let refs = with_replaced(&refs, &moved);
        let large = out.numel() >= language::LARGE || is_large(op, &refs, false) || refs.iter().any(|a| a.storage().is_pending());
        if large && !runs_under_locks(&refs) {
            let _line = Inherit::new(call_site::current());
            let mut begun = false;
            let done = language::long_work(|| {
                if !op.accepts_pending() {
                    refs.iter().try_for_each(|a| a.ready())?;
                    out.storage().settle(Access::Write)?;
                }
                begun = true;
                within(|| op.name().into(), || op.forward_into(&out, &refs))
            });
            if let Err(e) = done {
                if begun && e.kind() == ErrorKind::Foreign {
                    // An interrupt may come when a part is written already: what was saved of the target is not valid any more.
                    target.bump_version(Change { site: call_site::current().0, op: label });
                }
                return Err(e);
            }
        } else {
            within(|| op.name().into(), || op.forward_into(&out, &refs))?;
        }
        if bits.any() {
            memory.copy_from(&bits.apply(out)?)?;
        }
    }
    let site = node.as_ref().map_or_else(call_site::current, |n| n.site());
    if !counted {
        target.bump_version(Change { site: site.0, op: label });
    }
    if operation_watcher::sees(mode, level.is_some()) {
        operation_watcher::tell(op.name(), op.node_name(), CallKind::Writes, inputs, target)?;
    }
    let Some(node) = node else {
        // The path of what was written ends here, unless the target has a history of its own.
        if history.ends && !target.requires_grad() {
            missing_gradient::mark_results(label, missing_gradient::end_reason(mode, op.is_cast()), inputs, std::slice::from_ref(target));
        }
        return Ok(());
    };
    if node.saves.has(Saves::FIRST_OUTPUT) {
        node.save_more(Saved::output(target, 0));
    }
    view::rebase(target, Edge { node: node.clone(), nr: 0 }, 0)?;
    record::finish(&node, history.ends.then_some(inputs), std::slice::from_ref(target))
}

/// Runs a node's vjp and returns the gradients for its edges, which the caller fits to the edges.
pub(crate) fn run_vjp(node: &std::sync::Arc<Node>, needs: &[bool], grads: &Grads) -> Result<Grads> {
    run_vjp_with(node, needs, grads, AfterRun::default())
}

/// As `run_vjp`, for a caller that knows what nobody looks at afterwards.
pub(in crate::autograd) fn run_vjp_with(node: &std::sync::Arc<Node>, needs: &[bool], grads: &Grads, after: AfterRun) -> Result<Grads> {
    let cx = VjpCx::new(node, needs).with_after(after);
    let made = match node.op() {
        NodeOp::Pointwise(p) => p.vjp(&cx, grads),
        NodeOp::Other(o) => o.vjp(&cx, grads),
        NodeOp::Accumulate(_) => Ok(Grads::new()),
    };
    if made.is_err() && cx.has_forgotten() {
        // The next run says that the graph is freed, rather than that something is missing.
        node.release();
    }
    made
}
