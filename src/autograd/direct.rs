//! The short way of pointwise rows on a few floats that lie alike: through the door what `door::apply` does for them, and in backward what
//! `Vjp::vjp` does, with each tensor looked at once. Everything else, and every refusal, is theirs.

use super::door::{Op, Saves};
use super::linear::NEG;
use super::lock::ReadGuard;
use super::mode;
use super::node::{Edge, Edges, Node, NodeOp, OutMeta, State};
use super::pointwise::{Number, Passes, PointwiseOp};
use super::record;
use super::saved::Saved;
use super::site;
use super::tensor::{Core, Tensor, Value};
use crate::array::{Array, Numbers, Version, fusion};
use crate::backend::cpu::pointwise::Func;
use crate::error::Result;
use crate::layout::Scalar;
use crate::pointwise::RowId;
use smallvec::SmallVec;

/// Applies a row to inputs of one floating type, of which some may be Python's numbers (in their places stands any of the tensors). None, and
/// nothing done, where dispatch itself must be asked: levels, tensors that stand for numbers, other types, promotion, broadcasting, sizes that
/// are worth a thread, somebody who watches.
#[inline]
pub fn apply_direct<const N: usize>(row: RowId, inputs: [&Tensor; N], numbers: &Numbers, params: &[Scalar]) -> Result<Option<Tensor>> {
    let mode = mode::current();
    if !mode.short_way() {
        return Ok(None);
    }
    let cores = inputs.map(Tensor::read);
    let Some(first) = cores[0].plain() else { return Ok(None) };
    if fusion::has_left() && first.numel() > 16 {
        // Memory is asked for: programs that nobody waits for run first, at the door.
        return Ok(None);
    }
    let mut arrays = [first; N];
    for i in 1..N {
        let Some(a) = cores[i].plain() else { return Ok(None) };
        arrays[i] = a;
    }
    let dtype = first.dtype();
    let mut op = PointwiseOp::simple(row, dtype);
    op.params[..params.len()].copy_from_slice(params);
    let mut needs = [false; N];
    for i in 0..N {
        if numbers.has(i) {
            op.number = if i == 0 { Number::First } else { Number::Later };
        } else {
            needs[i] = cores[i].needs_grad();
        }
    }
    let any = needs.contains(&true);
    if any && (!record::records(mode) || !op.differentiable(0)) {
        // Dispatch says on the result why it has no history.
        return Ok(None);
    }
    let Some(made) = Array::values_direct(Func::forward(row), dtype, &arrays, numbers, &op.params) else { return Ok(None) };
    if !any {
        // SAFETY: the first operand.
        return Ok(Some(Tensor::in_mode(mode, Value::Array(unsafe { made.laid_out_as(first) }))));
    }
    // SAFETY: the first operand.
    let out = unsafe { made.laid_out_as(first) };

    let saves = op.saves(&needs);
    let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
    let mut edges = Edges::new();
    let mut late = false;
    for i in 0..N {
        if saves.has(i) {
            saved.push(match numbers.get(i) {
                Some(value) => Saved::Number(value),
                None => Saved::input_of(inputs[i], &cores[i])?,
            });
        }
        let edge = if needs[i] { cores[i].known_edge() } else { Some(None) };
        late |= edge.is_none();
        edges.push(edge.flatten());
    }
    // What follows may have to write to an input (a leaf's first node) or run foreign code (the call site).
    drop(cores);
    if late {
        for i in (0..N).filter(|&i| needs[i]) {
            edges[i] = inputs[i].gradient_edge()?;
        }
    }
    if saves.has(Saves::FIRST_OUTPUT) {
        saved.push(Saved::output_value(Value::Array(out.clone()), Version::Shared, 0));
    }
    let mut outs: SmallVec<[OutMeta; 1]> = SmallVec::new();
    outs.push(OutMeta::of(&out));
    let node = record::node(NodeOp::Pointwise(op), edges, outs, saves, saved, site::current());
    Ok(Some(Tensor::with_history(Value::Array(out), Version::Shared, Some(Edge { node, nr: 0 }))))
}

/// The gradients of a row's operands, for a pass that records nothing; then what the node has saved is freed, unless it is to `keep` it.
/// None, and nothing done, where the node itself must be asked: hooks, freed or changed values, rows without a kernel of their own.
#[inline]
pub(super) fn vjp_direct(node: &Node, op: &PointwiseOp, needs: &[bool], g: &Array, keep: bool) -> Option<SmallVec<[Option<Array>; 2]>> {
    let mut state = node.state();
    if state.freed || state.hooks.as_ref().is_some_and(|h| !h.is_empty()) {
        return None;
    }
    let made = gradients(node, op, needs, g, &state)?;
    if !keep && !state.saved.is_empty() {
        let saved = std::mem::take(&mut state.saved);
        state.freed = true;
        drop(state);
        // Outside the lock: the last holder of a tensor may own foreign objects.
        drop(saved);
    }
    Some(made)
}

#[inline]
fn gradients(node: &Node, op: &PointwiseOp, needs: &[bool], g: &Array, state: &State) -> Option<SmallVec<[Option<Array>; 2]>> {
    let n = needs.len();
    debug_assert_eq!(n, op.row.info().arity());
    let mut cores: [Option<ReadGuard<'_, Core>>; 3] = [None, None, None];
    let mut output = g;
    let mut numbers = Numbers::NONE;
    for (i, core) in cores.iter_mut().enumerate().take(n) {
        if node.saves.has(i) {
            let (tensor, version) = match state.saved.get(node.saves.place(i)) {
                Some(Saved::Input { tensor, version }) => (tensor, version),
                Some(Saved::Number(value)) => {
                    numbers.set(i, *value);
                    continue;
                }
                _ => return None,
            };
            let read = tensor.read();
            if read.has_tangent() || read.with_storage(|s| read.version.current(s)) != *version {
                return None;
            }
            *core = Some(read);
        }
    }
    if node.saves.has(Saves::FIRST_OUTPUT) {
        let Some(Saved::Output(saved)) = state.saved.get(node.saves.place(Saves::FIRST_OUTPUT)) else { return None };
        output = saved.unchanged()?;
    }
    // Places that a derivative does not read are filled with `g`.
    let mut ins = [g; 5];
    for (at, core) in ins[1..].iter_mut().zip(&cores) {
        match core.as_ref().map(|c| &c.value) {
            None => {}
            Some(Value::Array(a)) => *at = a,
            Some(Value::Leveled(_)) => return None,
        }
    }
    ins[1 + n] = output;
    let mut made = SmallVec::new();
    for (i, need) in needs.iter().enumerate() {
        if !*need {
            made.push(None);
            continue;
        }
        // An array is large: it goes to its place as it is.
        made.push(Array::pointwise_direct(Func::vjp(op.row, i), op.compute, &ins[..n + 2], &numbers, &op.params));
        if matches!(made.last(), Some(None)) {
            made.pop();
            made.push(Some(passed_on(op, i, g)?));
        }
    }
    Some(made)
}

/// The gradient of an operand that is the cotangent itself, but for its sign: no kernel computes it.
#[inline]
fn passed_on(op: &PointwiseOp, operand: usize, g: &Array) -> Option<Array> {
    match op.passes(operand) {
        Passes::On => Some(g.clone()),
        Passes::Negated => Array::pointwise_direct(NEG, op.compute, &[g], &Numbers::NONE, &op.params),
        Passes::No => None,
    }
}
