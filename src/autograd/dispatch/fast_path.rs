//! A fast path for pointwise rows on a few floats of one layout. The forward functions do what `apply::apply` and `apply::apply_inplace` do for
//! them, `vjp_direct` what `Vjp::vjp` does, and each locks every tensor once. All other cases, and all errors, are left to dispatch.

use crate::array::profile::Moment;
use crate::array::{Array, Change, Numbers, Version, fusion};
use crate::autograd::diagnostics::{missing_gradient, profiler};
use crate::autograd::dispatch::call_site;
use crate::autograd::dispatch::mode;
use crate::autograd::dispatch::op::{Op, Saves};
use crate::autograd::dispatch::pointwise::{MAX_PARAMS, Number, Passthrough, PointwiseOp};
use crate::autograd::dispatch::record;
use crate::autograd::graph::node::{Edge, Edges, Node, NodeOp, NodeState, OutMeta};
use crate::autograd::graph::saved::Saved;
use crate::autograd::primitives::{NEG, is_beyond_f32};
use crate::autograd::tensor::lock::ReadGuard;
use crate::autograd::tensor::{Core, Tensor, Value};
use crate::backend::cpu::pointwise::Func;
use crate::error::Result;
use crate::layout::{DType, Scalar};
use crate::rows::RowId;
use smallvec::SmallVec;

/// Applies a row to inputs of one floating dtype, some of which may be Python numbers (any of the tensors stands in their positions). Returns
/// None, and has done nothing, where dispatch has to run: levels, tensors that stand for numbers, other dtypes, promotion, broadcasting, large
/// arrays, watchers, records of inputs whose path has ended.
#[inline]
pub fn apply_direct<const N: usize>(row: RowId, inputs: [&Tensor; N], numbers: &Numbers, params: &[Scalar]) -> Result<Option<Tensor>> {
    direct(row, None, inputs, numbers, params)
}

/// As `apply_direct`, for a step of a derivative's formula. Numbers there are literals: they do not name the node.
#[inline]
pub(in crate::autograd) fn apply_step(op: &PointwiseOp, inputs: &[&Tensor], numbers: &Numbers) -> Result<Option<Tensor>> {
    let params = &op.params[..op.row.info().params.len()];
    match *inputs {
        [x] => direct(op.row, Some(op.compute), [x], numbers, params),
        [x, y] => direct(op.row, Some(op.compute), [x, y], numbers, params),
        [x, y, z] => direct(op.row, Some(op.compute), [x, y, z], numbers, params),
        _ => Ok(None),
    }
}

/// `step` is the dtype of a step of a formula; None for an operation of the user.
#[inline(always)]
fn direct<const N: usize>(
    row: RowId,
    step: Option<DType>,
    inputs: [&Tensor; N],
    numbers: &Numbers,
    params: &[Scalar],
) -> Result<Option<Tensor>> {
    let mode = mode::current();
    let mut from = None;
    if !mode.allows_fast_path() {
        from = seen_from(mode.allows_seen_path());
        if from.is_none() {
            return Ok(None);
        }
    }
    let cores = inputs.map(Tensor::read);
    let Some(first) = cores[0].plain_or_ended() else { return Ok(None) };
    if fusion::has_abandoned() && first.numel() > 16 {
        // This allocates memory, so dispatch first runs the programs that nobody will extend.
        return Ok(None);
    }
    let mut arrays = [first; N];
    let mut ended = cores[0].is_special;
    for i in 1..N {
        let Some(a) = cores[i].plain_or_ended() else { return Ok(None) };
        arrays[i] = a;
        ended |= cores[i].is_special;
    }
    let dtype = first.dtype();
    if step.is_some_and(|compute| compute != dtype) {
        return Ok(None);
    }
    let mut op = PointwiseOp::of(row, dtype);
    op.params[..params.len()].copy_from_slice(params);
    if dtype == DType::F32 && params.iter().any(|p| is_beyond_f32(*p)) {
        return Ok(None);
    }
    let mut needs = [false; N];
    for i in 0..N {
        if numbers.has(i) {
            if step.is_some() {
                continue;
            }
            op.number = if i == 0 { Number::First } else { Number::Later };
        } else {
            needs[i] = cores[i].needs_grad();
        }
    }
    let any = needs.contains(&true);
    if any && cores.iter().zip(&needs).any(|(c, needs)| *needs && c.inference) {
        // Whether that is recorded depends on the other inputs: dispatch decides.
        return Ok(None);
    }
    let records = any && record::records(mode) && op.differentiable(0);
    if records && ended {
        // Dispatch records on the node which paths have ended.
        return Ok(None);
    }
    let Some(made) = Array::values_direct(Func::forward(row), dtype, &arrays, numbers, &op.params) else { return Ok(None) };
    if !records {
        // SAFETY: the first operand.
        let value = Value::Array(unsafe { made.into_array_like(first) });
        drop(cores);
        let mut ends = None;
        if any || ended {
            let mut tensors: SmallVec<[&Tensor; N]> = SmallVec::new();
            for i in (0..N).filter(|&i| !numbers.has(i)) {
                tensors.push(inputs[i]);
            }
            ends = missing_gradient::ends_of(row.info().name, missing_gradient::end_reason(mode, false), &tensors);
        }
        let out = Tensor::ended_in_mode(mode, value, ends);
        if let Some(from) = from {
            profiler::ran(row.info().name, &inputs, numbers, from, Some(&out));
        }
        return Ok(Some(out));
    }
    // SAFETY: the first operand.
    let out = unsafe { made.into_array_like(first) };

    let saves = op.saves(&needs);
    let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
    let mut edges = Edges::new();
    let mut unknown_edge = false;
    for i in 0..N {
        if saves.has(i) {
            saved.push(match numbers.get(i) {
                Some(value) => Saved::Number(value),
                None => Saved::input_of(inputs[i], &cores[i])?,
            });
        }
        let edge = if needs[i] { cores[i].known_edge() } else { Some(None) };
        unknown_edge |= edge.is_none();
        edges.push(edge.flatten());
    }
    // The rest may write to an input (a leaf's first node) or run foreign code (the call site), so no tensor is locked.
    drop(cores);
    if unknown_edge {
        for i in (0..N).filter(|&i| needs[i]) {
            edges[i] = inputs[i].gradient_edge()?;
        }
    }
    if saves.has(Saves::FIRST_OUTPUT) {
        saved.push(Saved::output_value(Value::Array(out.clone()), Version::Shared, 0));
    }
    let mut outs: SmallVec<[OutMeta; 1]> = SmallVec::new();
    outs.push(OutMeta::of(&out));
    let node = record::node(NodeOp::Pointwise(op), edges, outs, saves, saved, call_site::current());
    let out = Tensor::with_history(Value::Array(out), Version::Shared, Some(Edge { node, nr: 0 }));
    if let Some(from) = from {
        profiler::ran(row.info().name, &inputs, numbers, from, Some(&out));
    }
    Ok(Some(out))
}

/// When an operation began that a profiler, and no other watcher, sees; None if there is another one.
#[cold]
#[inline(never)]
fn seen_from(allowed: bool) -> Option<Moment> {
    if allowed { profiler::moment() } else { None }
}

/// As `apply_direct`, but writes over the first input, which is a tensor. Also returns false where history is recorded or the path of an operand
/// ends.
#[inline]
pub fn write_direct<const N: usize>(row: RowId, label: &'static str, inputs: [&Tensor; N], numbers: &Numbers, params: &[Scalar]) -> bool {
    let mode = mode::current();
    let mut from = None;
    if !mode.allows_fast_writes() {
        from = seen_from(mode.allows_seen_writes());
        if from.is_none() {
            return false;
        }
    }
    let cores = inputs.map(Tensor::read);
    let Some(target) = cores[0].plain() else { return false };
    let records = record::records(mode);
    if records && cores[0].needs_grad() || cores[0].inference && !mode.inference || fusion::has_abandoned() && target.numel() > 16 {
        return false;
    }
    let mut arrays = [target; N];
    for i in (1..N).filter(|&i| !numbers.has(i)) {
        let Some(a) = cores[i].plain() else { return false };
        if cores[i].needs_grad() {
            return false;
        }
        arrays[i] = a;
    }
    let mut all = [Scalar::Int(0); MAX_PARAMS];
    all[..params.len()].copy_from_slice(params);
    if target.dtype() == DType::F32 && params.iter().any(|p| is_beyond_f32(*p)) {
        return false;
    }
    if !target.storage().is_writable() || !target.pointwise_direct_into(Func::forward(row), &arrays, numbers, &all) {
        return false;
    }
    // The rest may run foreign code (the call site), so no tensor is locked.
    drop(cores);
    inputs[0].bump_version(Change { site: call_site::current().0, op: label });
    if let Some(from) = from {
        profiler::ran(label, &inputs, numbers, from, None);
    }
    true
}

/// The gradients of a row's operands, for a pass that records nothing. Then frees the saved tensors, unless `keep` is set. Returns None, and has
/// done nothing, where the node itself has to run: hooks, freed or modified values, rows without a kernel for the derivative.
#[inline]
pub(in crate::autograd) fn vjp_direct(
    node: &Node,
    op: &PointwiseOp,
    needs: &[bool],
    g: &Array,
    keep: bool,
) -> Option<SmallVec<[Option<Array>; 2]>> {
    let mut state = node.state();
    if state.freed || state.hooks.as_ref().is_some_and(|h| !h.is_empty()) {
        return None;
    }
    let made = gradients(node, op, needs, g, &state)?;
    if !keep && !state.saved.is_empty() && !op.saves_only_its_number() {
        let saved = std::mem::take(&mut state.saved);
        state.freed = true;
        drop(state);
        // Outside the lock: the last holder of a tensor may own foreign objects.
        drop(saved);
    }
    Some(made)
}

#[inline]
fn gradients(node: &Node, op: &PointwiseOp, needs: &[bool], g: &Array, state: &NodeState) -> Option<SmallVec<[Option<Array>; 2]>> {
    let n = needs.len();
    debug_assert_eq!(n, op.row.info().arity());
    let mut cores: [Option<ReadGuard<'_, Core>>; 3] = [None, None, None];
    let mut output = g;
    let mut numbers = Numbers::NONE;
    for (i, core) in cores.iter_mut().enumerate().take(n) {
        if node.saves.has(i) {
            let (tensor, version) = match state.saved.get(node.saves.position(i)) {
                Some(Saved::Input { tensor, version }) => (tensor, version),
                Some(Saved::Number(value)) => {
                    numbers.set(i, *value);
                    continue;
                }
                _ => return None,
            };
            let read = tensor.read();
            if read.has_tangent() || read.is_detached() || read.with_storage(|s| read.version.current(s)) != *version {
                return None;
            }
            *core = Some(read);
        }
    }
    if node.saves.has(Saves::FIRST_OUTPUT) {
        let Some(Saved::Output(saved)) = state.saved.get(node.saves.position(Saves::FIRST_OUTPUT)) else { return None };
        output = saved.unchanged()?;
    }
    let mut read: [Option<&Array>; 3] = [None; 3];
    for (at, core) in read.iter_mut().zip(&cores) {
        match core.as_ref().map(|c| &c.value) {
            None => {}
            Some(Value::Array(a)) => *at = Some(a),
            Some(Value::Lazy(_) | Value::Wrapped(_)) => return None,
        }
    }
    let mut like = g;
    if let Some(value) = broadcast_value(g) {
        // As the gradient of a sum is: one number, broadcast.
        numbers.set(Numbers::COTANGENT, value);
        like = read.iter().flatten().copied().chain([output]).find(|a| a.shape() == g.shape())?;
    }
    // Positions that the derivative does not read hold any of the arrays.
    let mut ins = [like; 5];
    for (at, read) in ins[1..].iter_mut().zip(read) {
        *at = read.unwrap_or(like);
    }
    if node.saves.has(Saves::FIRST_OUTPUT) {
        ins[1 + n] = output;
    }
    let mut made = SmallVec::new();
    for (i, need) in needs.iter().enumerate() {
        if !*need {
            made.push(None);
            continue;
        }
        // Pushed as it is made: moving an array is not free.
        made.push(Array::pointwise_direct(Func::vjp(op.row, i), op.compute, &ins[..n + 2], &numbers, &op.params));
        if matches!(made.last(), Some(None)) {
            made.pop();
            made.push(Some(pass_through(op, i, g)?));
        }
    }
    Some(made)
}

/// The value of an array that is one element, broadcast.
#[inline]
fn broadcast_value(g: &Array) -> Option<f64> {
    if g.numel() < 2 || g.strides().iter().any(|s| *s != 0) || !g.storage().is_plain() {
        return None;
    }
    g.first().ok().map(Scalar::to_f64)
}

/// The gradient of an operand that equals the cotangent, or its negative. Such derivatives have no kernels.
#[inline]
fn pass_through(op: &PointwiseOp, operand: usize, g: &Array) -> Option<Array> {
    match op.passthrough(operand) {
        Passthrough::Identity => Some(g.clone()),
        Passthrough::Negated => Array::pointwise_direct(NEG, op.compute, &[g], &Numbers::NONE, &op.params),
        Passthrough::None => None,
    }
}
