//! Forward mode: the tangents of tensors, and how an operation computes those of its results.
//!
//! At every level a tensor can have a tangent, as it can have a history ("Note: levels" in `level.rs`). Rules for tangents get primals: tensors
//! with the same values and history, without tangents. So tangents are ordinary tensors, and backward can go through them.

use crate::array::Array;
use crate::autograd::dispatch::apply::{apply, out_meta, run_recorded, run_vjp};
use crate::autograd::dispatch::call_site;
use crate::autograd::dispatch::mode::{self, ModeGuard, Watch};
use crate::autograd::dispatch::op::{Op, Outputs, Saves};
use crate::autograd::dispatch::pointwise::PointwiseOp;
use crate::autograd::dispatch::record::{self, NodeRecord};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Edges, Node, OutMeta};
use crate::autograd::graph::saved::Saved;
use crate::autograd::graph::view::{ViewOp, view};
use crate::autograd::graph::vjp::VjpCx;
use crate::autograd::tensor::{Core, Tensor, Value};
use crate::autograd::transforms::dual_levels::{self, HasTangent, dual_level, is_shown, register};
use crate::autograd::transforms::slow_paths::{self, SlowPath};
use crate::autograd::transforms::view_tangents;
use crate::autograd::{engine, primitives};
use crate::error::{Error, Result};
use crate::layout::{Complex, Dims, Scalar, fmt_shape};
use crate::rows::Kind;
use smallvec::SmallVec;
use std::sync::Arc;

/// One tangent (or None for zero) of each output.
pub type Tangents = Grads;

impl Tensor {
    #[inline]
    pub(crate) fn has_tangent(&self) -> bool {
        let core = self.read();
        core.has_tangent() || core.meta.is_some() && mode::current().watches(Watch::ViewTangents) && view_tangents::is_inherited(&core)
    }

    /// The tangent, unless tangents of this level are hidden on this thread.
    pub fn tangent(&self) -> Option<Tensor> {
        let core = self.read();
        if core.has_tangent() && is_shown(core.value.level()) { core.stored_tangent() } else { None }
    }

    pub fn set_tangent(&self, tangent: Option<Tensor>) {
        if tangent.is_some() {
            register(self.level(), HasTangent::Tensor(self.downgrade()));
        }
        let old = {
            let mut core = self.write();
            if tangent.is_none() && core.meta.is_none() {
                return;
            }
            let old = std::mem::replace(&mut core.meta.get_or_insert_default().tangent, tangent);
            core.update_special();
            old
        };
        drop(old);
    }

    /// The same value with the same history, without a tangent.
    pub fn primal(&self) -> Result<Tensor> {
        if !self.has_tangent() {
            return Ok(self.clone());
        }
        self.alias()
    }

    fn alias(&self) -> Result<Tensor> {
        let edge = self.gradient_edge()?;
        let (value, version, inference) = {
            let core = self.read();
            (core.value.clone(), core.version.clone(), core.inference)
        };
        let out = Tensor::with_history(value, version, edge);
        if inference {
            out.write().inference = true;
        }
        Ok(out)
    }

    /// Whether the value is an array without a tangent, so that its memory can be used without dispatch.
    pub fn is_bare(&self) -> bool {
        matches!(self.read().value, Value::Array(_)) && !self.has_tangent()
    }
}

impl Core {
    #[inline]
    pub fn has_tangent(&self) -> bool {
        self.is_special && self.meta.as_ref().is_some_and(|m| m.tangent.is_some())
    }

    /// The tangent, whether or not it is visible on this thread.
    pub(in crate::autograd) fn stored_tangent(&self) -> Option<Tensor> {
        if self.has_tangent() { self.meta.as_ref().and_then(|m| m.tangent.clone()) } else { None }
    }
}

/// A view of `t` that carries `tangent`.
pub fn make_dual(t: &Tensor, tangent: &Tensor) -> Result<Tensor> {
    let refuse = |what: &str, have: String, got: String| {
        Err(Error::runtime(format!("Expected tangent to have the same {what} as the primal (make_dual): expected {have}, got {got}")))
    };
    if !t.dtype().is_differentiable() {
        return Err(Error::value(format!("Expected primal to be floating point or complex, but got: {}", t.dtype().name())));
    }
    if !tangent.dtype().is_differentiable() {
        return Err(Error::value(format!("Expected tangent to be floating point or complex, but got: {}", tangent.dtype().name())));
    }
    if t.shape() != tangent.shape() {
        return refuse("shape", fmt_shape(&t.shape()), fmt_shape(&tangent.shape()));
    }
    if t.dtype() != tangent.dtype() {
        return refuse("dtype", t.dtype().name().into(), tangent.dtype().name().into());
    }
    if t.device() != tangent.device() {
        return refuse("device", t.device().to_string(), tangent.device().to_string());
    }
    if tangent.has_tangent() {
        return Err(Error::runtime(
            "Setting a forward grad that itself has a forward gradient at the same level is not supported (make_dual: unpack the tangent first)",
        ));
    }
    let out = view(&t.primal()?, ViewOp::Alias)?;
    out.set_tangent(Some(wrapped_as(view_tangents::in_layout_of(tangent, t)?, t)));
    Ok(out)
}

/// How the tangents of an operation's results are computed from those of its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tangent {
    /// The operation is linear in all of its floating inputs together: it is its own rule.
    Linear,
    /// The operation has one output and is linear in each single input.
    Multilinear,
    /// The operation has one input, and its Jacobian is symmetric: the rule is its vjp.
    Symmetric,
    /// Each element of an input goes into one element of each result at most; the shape is that of a result with the inputs' rank.
    Reduced(Dims),
    /// The results do not depend on the inputs smoothly.
    Zero,
    /// Any operation: its vjp is transposed, at the cost of about two vjps.
    General,
}

/// What a rule for tangents reads.
pub struct Jvp<'a> {
    op: &'a dyn Op,
    primals: &'a [Tensor],
    tangents: &'a [Option<Tensor>],
    outputs: &'a [Tensor],
}

impl Jvp<'_> {
    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.primals.len()
    }

    /// Input `i` without its tangent.
    pub fn primal(&self, i: usize) -> &Tensor {
        &self.primals[i]
    }

    /// Output `j`, which has no tangent yet.
    pub fn output(&self, j: usize) -> &Tensor {
        &self.outputs[j]
    }

    /// The tangent of input `i`; None for zero.
    pub fn tangent(&self, i: usize) -> Option<&Tensor> {
        self.tangents[i].as_ref()
    }

    /// The tangent of input `i`, or zeros.
    pub fn tangent_or_zeros(&self, i: usize) -> Result<Tensor> {
        match &self.tangents[i] {
            Some(t) => Ok(t.clone()),
            None => zeros_like(&self.primals[i]),
        }
    }

    /// The tangents by the rule of a kind.
    pub fn of_kind(&self, kind: Tangent) -> Result<Tangents> {
        match kind {
            Tangent::Linear => self.linear(),
            Tangent::Multilinear => self.multilinear(),
            Tangent::Symmetric => self.symmetric(),
            Tangent::Reduced(kept) => self.reduced(&kept),
            Tangent::Zero => Ok(Tangents::from_elem(None, self.outputs.len())),
            Tangent::General => self.transposed(),
        }
    }

    /// For an operation that is linear in all of its floating inputs together: the operation itself.
    pub fn linear(&self) -> Result<Tangents> {
        let ins: SmallVec<[Tensor; 3]> = (0..self.primals.len())
            .map(|i| if self.primals[i].dtype().is_differentiable() { self.tangent_or_zeros(i) } else { Ok(self.primals[i].clone()) })
            .collect::<Result<_>>()?;
        let refs: SmallVec<[&Tensor; 3]> = ins.iter().collect();
        Ok(apply(self.op, &refs)?.into_iter().map(Some).collect())
    }

    /// For an operation with one output that is linear in each single input: the sum over the inputs.
    pub fn multilinear(&self) -> Result<Tangents> {
        let mut sum: Option<Tensor> = None;
        for (i, t) in self.tangents.iter().enumerate() {
            let Some(t) = t else { continue };
            let mut refs: SmallVec<[&Tensor; 3]> = self.primals.iter().collect();
            refs[i] = t;
            sum = add_to_sum(sum, crate::autograd::dispatch::apply::apply1(self.op, &refs)?)?;
        }
        Ok(Grads::from_elem(sum, 1))
    }

    /// For an operation with one input and a symmetric Jacobian: its vjp. That multiplies by the conjugate.
    pub fn symmetric(&self) -> Result<Tangents> {
        let conj = |t: Option<&Tensor>| t.map(primitives::conj).transpose();
        let made = self.vjp(&Grads::from_elem(conj(self.tangents[0].as_ref())?, 1))?;
        made.iter().map(|t| conj(t.as_ref())).collect()
    }

    /// For an operation of whose inputs each element affects at most one element of each result. `kept` is the shape of a result with the inputs'
    /// common rank, with size 1 for reduced dimensions.
    pub fn reduced(&self, kept: &[usize]) -> Result<Tangents> {
        let mut made = Tangents::new();
        for (j, out) in self.outputs.iter().enumerate() {
            let mut seeds = Grads::from_elem(None, self.outputs.len());
            seeds[j] = Some(full_like(out, 1)?);
            let mut sum = None;
            for (g, t) in self.vjp(&seeds)?.into_iter().zip(self.tangents) {
                let (Some(g), Some(t)) = (g, t) else { continue };
                let weighted = weighted(&g, t, out)?;
                sum = add_to_sum(sum, primitives::reshape(&primitives::sum_to(&weighted, kept)?, &out.shape())?)?;
            }
            made.push(sum);
        }
        Ok(made)
    }

    /// For any operation: its vjp, which is linear in the cotangents, is transposed. Costs about two vjps.
    pub fn transposed(&self) -> Result<Tangents> {
        slow_paths::record(SlowPath::Transposed, self.op.name());
        let outside = mode::is_grad_enabled();
        let mut seeds: SmallVec<[Option<Tensor>; 2]> = SmallVec::new();
        let (mut roots, mut seed_edges) = (Vec::new(), Vec::new());
        {
            let _on = ModeGuard::grad(true);
            for (j, out) in self.outputs.iter().enumerate() {
                seeds.push(if out.dtype().is_differentiable() && self.op.differentiable(j) {
                    let seed = full_like(out, 0)?;
                    seed.set_requires_grad(true)?;
                    seed_edges.push(seed.gradient_edge()?.ok_or_else(lost_history)?);
                    Some(seed)
                } else {
                    None
                });
            }
            let grads: Grads = seeds.iter().cloned().collect();
            for (i, g) in self.vjp(&grads)?.into_iter().enumerate() {
                let (Some(g), Some(t)) = (g, &self.tangents[i]) else { continue };
                let g = primitives::fit(g, &out_meta(&self.primals[i].read().value))?;
                let Some(edge) = g.gradient_edge()? else { continue };
                roots.push((edge, t.clone()));
            }
        }
        let mut found = if roots.is_empty() {
            Vec::new()
        } else {
            engine::run(roots, &engine::Options { inputs: seed_edges, create_graph: outside, retain_graph: outside, ..Default::default() })?
        }
        .into_iter();
        Ok(seeds.iter().map(|s| s.as_ref().and_then(|_| found.next().flatten())).collect())
    }

    /// The gradients of the inputs, given those of the outputs.
    pub fn vjp(&self, grads: &Grads) -> Result<Grads> {
        let needs: SmallVec<[bool; 4]> = self.tangents.iter().map(Option::is_some).collect();
        let node = self.node(&needs)?;
        run_vjp(&node, &needs, grads)
    }

    /// A node that no tensor refers to, for running the vjp.
    pub(in crate::autograd) fn node(&self, needs: &[bool]) -> Result<Arc<Node>> {
        let saves = self.op.saves(needs);
        let mut saved: SmallVec<[Saved; 2]> = SmallVec::new();
        for (i, t) in self.primals.iter().enumerate() {
            if saves.has(i) {
                saved.push(Saved::input_for_now(t));
            }
        }
        for (j, t) in self.outputs.iter().enumerate() {
            if saves.has(Saves::FIRST_OUTPUT + j) {
                saved.push(Saved::input_for_now(t));
            }
        }
        let outs: SmallVec<[OutMeta; 1]> = self.outputs.iter().map(|t| out_meta(&t.read().value)).collect();
        let edges = Edges::from_elem(None, self.primals.len());
        Ok(record::begin(NodeRecord { op: self.op.node_op(), edges, outs, saves, saved }, call_site::current()))
    }
}

#[cold]
fn lost_history() -> Error {
    Error::runtime("forward mode: a seed lost its history")
}

pub(in crate::autograd) fn full_like(like: &Tensor, value: i64) -> Result<Tensor> {
    Ok(Tensor::new(like.memory().full_beside(&like.shape(), Scalar::Int(value), like.dtype())?))
}

pub(in crate::autograd) fn zeros_like(t: &Tensor) -> Result<Tensor> {
    t.beside(full_like(t, 0)?)
}

fn add_to_sum(sum: Option<Tensor>, more: Tensor) -> Result<Option<Tensor>> {
    Ok(Some(match sum {
        None => more,
        Some(s) => primitives::add(&s, &more)?,
    }))
}

/// The product of a tangent with the gradient that a cotangent of 1 gives: of that the real part, if the result `out` is real.
fn weighted(gradient: &Tensor, t: &Tensor, out: &Tensor) -> Result<Tensor> {
    let dtype = if gradient.dtype().is_complex() || t.dtype().is_complex() { out.dtype().to_complex(t.dtype()) } else { out.dtype() };
    let (g, t) = (primitives::cast(&primitives::conj(gradient)?, dtype)?, primitives::cast(t, dtype)?);
    primitives::cast(&primitives::mul(&g, &t)?, out.dtype())
}

/// The tangent by one operand of a row in complex numbers. A holomorphic row's vjp multiplies by the conjugate of the derivative; that of any
/// other is adjoint to its Jacobian over pairs of real numbers, and both parts of the result follow from the gradients for 1 and i.
fn complex_tangent(op: &PointwiseOp, i: usize, vjp: &VjpCx<'_>, t: &Tensor, out: &Tensor) -> Result<Option<Tensor>> {
    let seeded = |value: Scalar| -> Result<Option<Tensor>> {
        let seed = Tensor::new(out.memory().full_beside(&out.shape(), value, out.dtype())?);
        let Some(g) = op.grad(i, vjp, &out.beside(seed)?)? else { return Ok(None) };
        Ok(Some(primitives::part(&primitives::mul(&primitives::conj(&primitives::cast(&g, op.compute)?)?, t)?, false)?))
    };
    if !out.dtype().is_complex() {
        return seeded(Scalar::Int(1));
    }
    if op.row.info().holomorphic {
        return op.grad(i, vjp, &primitives::conj(t)?)?.map(|g| primitives::conj(&g)).transpose();
    }
    let [re, im] = [seeded(Scalar::Int(1))?, seeded(Scalar::Complex(Complex { re: 0.0, im: 1.0 }))?];
    let (Some(re), Some(im)) = (re, im) else { return Ok(None) };
    let parts: SmallVec<[Tensor; 2]> = [re, im].iter().map(|p| primitives::cast(p, out.dtype())).collect::<Result<_>>()?;
    let i = Tensor::number(Array::scalar(Scalar::Complex(Complex { re: 0.0, im: 1.0 }), out.dtype())?);
    primitives::add(&parts[0], &primitives::mul(&parts[1], &i)?).map(Some)
}

/// The tangent of a pointwise row: for each operand the vjp applied to its tangent instead of the cotangent, summed.
pub(in crate::autograd) fn pointwise(op: &PointwiseOp, cx: &Jvp<'_>) -> Result<Tangents> {
    // Truth values and integers have no tangents, nor have special functions without a derivative.
    let constant = op.row.info().kind == Kind::Special && !op.differentiable(0);
    if !cx.outputs[0].dtype().is_differentiable() || constant {
        return Ok(Grads::from_elem(None, 1));
    }
    let needs: SmallVec<[bool; 4]> = cx.tangents.iter().map(Option::is_some).collect();
    let node = cx.node(&needs)?;
    let vjp = VjpCx::new(&node, &needs);
    let mut sum = None;
    for (i, t) in cx.tangents.iter().enumerate() {
        let Some(t) = t else { continue };
        let t = primitives::to_device(&primitives::cast(t, op.compute)?, cx.outputs[0].device())?;
        let made = if op.compute.is_complex() { complex_tangent(op, i, &vjp, &t, &cx.outputs[0])? } else { op.grad(i, &vjp, &t)? };
        if let Some(made) = made {
            sum = add_to_sum(sum, made)?;
        }
    }
    Ok(Grads::from_elem(sum, 1))
}

/// Whether an operation at `level` uses the tangent of a tensor. A tensor of a lower level is a constant there, and its tangent is propagated
/// after unwrapping, unless the tangent itself is of this level.
pub fn is_seen(t: &Tensor, level: u32) -> bool {
    let Some(tangent) = t.tangent() else { return false };
    if !is_shown(level) {
        return false;
    }
    let own = t.level();
    own >= level || tangent.level() >= level && dual_level(own) == dual_level(level)
}

/// The inputs of an operation, and which of their tangents its level uses.
pub(in crate::autograd) struct SeenInputs {
    seen: SmallVec<[bool; 3]>,
    /// The inputs without tangents of this level on tensors of lower levels, which the lower levels would take for their own.
    pub below: SmallVec<[Tensor; 3]>,
}

impl SeenInputs {
    /// None if the level uses no tangent.
    pub fn of(inputs: &[&Tensor]) -> Result<Option<SeenInputs>> {
        let top = inputs.iter().map(|t| t.level()).max().unwrap_or(0);
        let seen: SmallVec<[bool; 3]> = inputs.iter().map(|t| is_seen(t, top)).collect();
        if !seen.contains(&true) {
            return Ok(None);
        }
        let below = inputs.iter().zip(&seen).map(|(t, s)| if *s && t.level() < top { t.primal() } else { Ok((*t).clone()) });
        Ok(Some(SeenInputs { below: below.collect::<Result<_>>()?, seen }))
    }

    /// The inputs without the tangents that the level uses.
    pub fn primals(&self, inputs: &[&Tensor]) -> Result<SmallVec<[Tensor; 3]>> {
        inputs.iter().zip(&self.seen).map(|(t, s)| if *s { t.primal() } else { Ok((*t).clone()) }).collect()
    }
}

/// Dispatch for inputs with tangents.
#[cold]
pub(in crate::autograd) fn apply_with_tangents(op: &dyn Op, inputs: &[&Tensor], grows: bool) -> Result<Outputs> {
    let seen_inputs = if dual_levels::is_enabled() { SeenInputs::of(inputs)? } else { None };
    let Some(seen_inputs) = seen_inputs else { return run_recorded(op, inputs, grows) };
    let refs: SmallVec<[&Tensor; 3]> = seen_inputs.below.iter().collect();
    let outs = run_recorded(op, &refs, grows)?;
    let made = result_tangents(op, inputs, &seen_inputs, &outs)?;
    set_tangents(&outs, made)?;
    Ok(outs)
}

/// The tangents of results, which have none yet.
pub(in crate::autograd) fn result_tangents(op: &dyn Op, inputs: &[&Tensor], seen_inputs: &SeenInputs, outs: &[Tensor]) -> Result<Tangents> {
    let primals = seen_inputs.primals(inputs)?;
    let tangents: SmallVec<[Option<Tensor>; 3]> =
        inputs.iter().zip(&seen_inputs.seen).map(|(t, s)| if *s { t.tangent() } else { None }).collect();
    let outputs: SmallVec<[Tensor; 1]> = outs.iter().map(Tensor::alias).collect::<Result<_>>()?;
    let mut made = op.jvp(&Jvp { op, primals: &primals, tangents: &tangents, outputs: &outputs })?;
    for t in made.iter_mut().flatten() {
        // Each tangent has memory of its own, as its primal has, since an in-place operation writes to both.
        let shared = |given: &Tensor| given.with_array(|g| t.with_array(|t| g.storage().same(t.storage())));
        if tangents.iter().flatten().any(shared) {
            *t = primitives::clone(t)?;
        }
    }
    Ok(made)
}

/// Gives results their tangents, fitted. A node that saves a result stores its tangent with it.
fn set_tangents(outs: &[Tensor], made: Tangents) -> Result<()> {
    for (j, (out, t)) in outs.iter().zip(made).enumerate() {
        let Some(t) = t else { continue };
        if !out.dtype().is_differentiable() {
            continue;
        }
        let t = view_tangents::in_layout_of(&fitted(t, out)?, out)?;
        let node = out.read().grad_fn.as_ref().map(|e| e.node.clone());
        if let Some(node) = node
            && node.store_tangent(j, &t)
        {
            register(out.level(), HasTangent::Node(Arc::downgrade(&node)));
        }
        out.set_tangent(Some(t));
    }
    Ok(())
}

/// The tangent converted to the result's dtype, shape and device.
pub(in crate::autograd) fn fitted(t: Tensor, out: &Tensor) -> Result<Tensor> {
    let t = primitives::to_device(&primitives::cast(&t, out.dtype())?, out.device())?;
    let shape = out.shape();
    let t = if t.shape() == shape { t } else { primitives::contiguous_copy(&view(&t, ViewOp::Expand(shape))?)? };
    Ok(wrapped_as(t, out))
}

/// Wraps a tangent in its primal's derivative level, so that it can be written in place where the primal can.
fn wrapped_as(t: Tensor, primal: &Tensor) -> Tensor {
    match primal.wrapped() {
        Some(l) if l.level.batch().is_none() && t.level() < l.level.number() => crate::autograd::transforms::level::wrap(&l.level, t),
        _ => t,
    }
}

/// `target` with a copy of its tangent, for rules that run before both are written; with a copy of its value too if a history may save that.
pub(in crate::autograd) fn copy_before_write(target: &Tensor, value_too: bool) -> Result<Tensor> {
    let out = if value_too { primitives::clone(&target.primal()?)? } else { target.alias()? };
    if let Some(t) = target.tangent() {
        out.set_tangent(Some(primitives::clone(&t)?));
    }
    Ok(out)
}

/// An input other than `target`, for rules that run before the target's tangent is written. What they save of a tangent that shares memory with
/// that one must not lead to the node of the write.
pub(in crate::autograd) fn input_before_write(t: &Tensor, target: &Tensor) -> Result<Tensor> {
    match (t.tangent(), target.tangent()) {
        (Some(own), Some(written)) if own.shares_memory_with(&written) => {
            let out = t.alias()?;
            out.set_tangent(Some(own.before_write_to(&written)?));
            Ok(out)
        }
        _ => Ok(t.clone()),
    }
}
