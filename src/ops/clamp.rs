//! Clamping: three of PyTorch's nodes for one and two bounds, numbers and tensors.

use super::pointwise::{Arg, StepAttributes, StepNode, call, call_as, call_inplace, cannot_cast, inplace_as, maximum, minimum, promote};
use super::refused;
use crate::array::Numbers;
use crate::autograd::{Tensor, apply_direct, primitives, write_direct};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::rows::RowId;
use smallvec::SmallVec;

/// A clamp of which one bound is missing.
const fn one_sided(missing: &'static str) -> StepNode {
    StepNode { name: "ClampBackward1", attributes: StepAttributes::AllAndNone(missing) }
}

/// Clamps to the given bounds, at least one.
pub fn clamp(x: &Tensor, min: Option<Scalar>, max: Option<Scalar>) -> Result<Tensor> {
    let direct = match (min, max) {
        (Some(Scalar::Bool(_) | Scalar::Complex(_)), _) | (_, Some(Scalar::Bool(_) | Scalar::Complex(_))) => None,
        (Some(lo), Some(hi)) => apply_direct(RowId::Clamp, [x], &Numbers::NONE, &[lo, hi])?,
        (Some(lo), None) => bound_direct(x, RowId::ClampMin, lo)?,
        (None, Some(hi)) => bound_direct(x, RowId::ClampMax, hi)?,
        (None, None) => None,
    };
    if let Some(t) = direct {
        return Ok(t);
    }
    let mut args: SmallVec<[Arg<'_>; 3]> = SmallVec::from_slice(&[x.into()]);
    args.extend([min, max].into_iter().flatten().map(Arg::Scalar));
    let common = promote(&args);
    if common.is_complex() && !x.dtype().is_complex() {
        return Err(Error::runtime("value cannot be converted to type double without overflow"));
    }
    let x = primitives::cast(x, common)?;
    match (min, max) {
        (Some(lo), Some(hi)) => call(RowId::Clamp, &[(&x).into()], &[lo, hi]),
        (Some(lo), None) => one_bound(&x, RowId::ClampMin, lo, one_sided("max")),
        (None, Some(hi)) => one_bound(&x, RowId::ClampMax, hi, one_sided("min")),
        (None, None) => Err(no_bound()),
    }
}

/// The fast path for one bound. Not if a node is recorded, whose name would not be the row's.
fn bound_direct(x: &Tensor, row: RowId, bound: Scalar) -> Result<Option<Tensor>> {
    if x.requires_grad() { Ok(None) } else { apply_direct(row, [x], &Numbers::NONE, &[bound]) }
}

fn one_bound(x: &Tensor, row: RowId, bound: Scalar, node: StepNode) -> Result<Tensor> {
    call_as(row, node, &[x.into()], &[bound])
}

/// Clamps from below (above with `max`) to a number or a tensor.
pub fn clamp_one(x: &Tensor, max: bool, bound: Arg<'_>) -> Result<Tensor> {
    let row = if max { RowId::ClampMax } else { RowId::ClampMin };
    match bound {
        Arg::Scalar(s) => one_bound(&primitives::cast(x, promote(&[x.into(), bound]))?, row, s, one_number(row)),
        _ if !promote(&[x.into(), bound]).is_float() => clamp_tensor(x, (!max).then_some(bound), max.then_some(bound)),
        _ => {
            let (node, [lo, hi]) = one_tensor(max, bound);
            call_as(RowId::ClampTensor, node, &[x.into(), lo, hi], &[])
        }
    }
}

/// Clamps to tensors (or numbers); at least one bound. At a bound the gradient is the input's.
pub fn clamp_tensor(x: &Tensor, min: Option<Arg<'_>>, max: Option<Arg<'_>>) -> Result<Tensor> {
    let common = promote_bounds(x, min, max);
    if common.is_complex() {
        return Err(refused::complex(RowId::Clamp, common));
    }
    if common.is_float() {
        let [lo, hi] = both_bounds(min, max);
        return call(RowId::ClampTensor, &[x.into(), lo, hi], &[]);
    }
    let mut r = x.clone();
    if let Some(lo) = min {
        r = maximum(&r, lo)?;
    }
    if let Some(hi) = max {
        r = minimum(&r, hi)?;
    }
    Ok(r)
}

/// As `clamp_tensor`, written over `target`.
pub fn clamp_tensor_inplace(target: &Tensor, min: Option<Arg<'_>>, max: Option<Arg<'_>>) -> Result<()> {
    let common = promote_bounds(target, min, max);
    if common.is_float() {
        return call_inplace(RowId::ClampTensor, "clamp_", target, &both_bounds(min, max), &[]);
    }
    if !common.can_cast(target.dtype()) {
        return Err(cannot_cast(common, target.dtype()));
    }
    primitives::copy_(target, &clamp_tensor(target, min, max)?)
}

fn promote_bounds(x: &Tensor, min: Option<Arg<'_>>, max: Option<Arg<'_>>) -> DType {
    let mut all: SmallVec<[Arg<'_>; 3]> = SmallVec::from_slice(&[x.into()]);
    all.extend([min, max].into_iter().flatten());
    promote(&all)
}

fn both_bounds<'a>(min: Option<Arg<'a>>, max: Option<Arg<'a>>) -> [Arg<'a>; 2] {
    [min.unwrap_or(f64::NEG_INFINITY.into()), max.unwrap_or(f64::INFINITY.into())]
}

/// Clamps in place to the given bounds, at least one.
pub fn clamp_inplace(target: &Tensor, min: Option<Scalar>, max: Option<Scalar>) -> Result<()> {
    let common = promote_bounds(target, min.map(Arg::Scalar), max.map(Arg::Scalar));
    if !common.can_cast(target.dtype()) {
        return Err(cannot_cast(common, target.dtype()));
    }
    if common.is_complex() {
        return Err(refused::complex(RowId::Clamp, common));
    }
    let one = |row, bound: Scalar, missing| {
        if !matches!(bound, Scalar::Bool(_)) && write_direct(row, "clamp_", [target], &Numbers::NONE, &[bound]) {
            return Ok(());
        }
        inplace_as(row, Some(one_sided(missing)), "clamp_", target, &[], &[bound])
    };
    match (min, max) {
        (Some(lo), Some(hi)) => call_inplace(RowId::Clamp, "clamp_", target, &[], &[lo, hi]),
        (Some(lo), None) => one(RowId::ClampMin, lo, "max"),
        (None, Some(hi)) => one(RowId::ClampMax, hi, "min"),
        (None, None) => Err(no_bound()),
    }
}

/// As `clamp_one`, written over `target`.
pub fn clamp_one_inplace(target: &Tensor, max: bool, bound: Arg<'_>) -> Result<()> {
    let row = if max { RowId::ClampMax } else { RowId::ClampMin };
    let label = if max { "clamp_max_" } else { "clamp_min_" };
    let common = promote(&[target.into(), bound]);
    if !common.can_cast(target.dtype()) {
        return Err(cannot_cast(common, target.dtype()));
    }
    match bound {
        Arg::Scalar(s) => {
            if !matches!(s, Scalar::Bool(_)) && write_direct(row, label, [target], &Numbers::NONE, &[s]) {
                return Ok(());
            }
            inplace_as(row, Some(one_number(row)), label, target, &[], &[s])
        }
        _ if !common.is_float() => primitives::copy_(target, &clamp_tensor(target, (!max).then_some(bound), max.then_some(bound))?),
        _ => {
            let (node, [lo, hi]) = one_tensor(max, bound);
            inplace_as(RowId::ClampTensor, Some(node), label, target, &[lo, hi], &[])
        }
    }
}

fn one_number(row: RowId) -> StepNode {
    StepNode { name: row.info().node_names[0], attributes: StepAttributes::All }
}

/// The node of a clamp by one tensor, and both bounds.
fn one_tensor(max: bool, bound: Arg<'_>) -> (StepNode, [Arg<'_>; 2]) {
    if max {
        (StepNode { name: "ClampMaxBackward1", attributes: StepAttributes::AllBut("min") }, [f64::NEG_INFINITY.into(), bound])
    } else {
        (StepNode { name: "ClampMinBackward1", attributes: StepAttributes::AllBut("max") }, [bound, f64::INFINITY.into()])
    }
}

fn no_bound() -> Error {
    Error::runtime("torch.clamp: At least one of 'min' or 'max' must not be None")
}
