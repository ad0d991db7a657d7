//! Maxima and minima, their positions, sorting and medians.

use super::declared::declare;
use super::gather::{gather, scatter_gradient};
use super::order::{lower_median, refuse_bool, refuse_complex};
use super::pointwise as pw;
use super::reduce::{ReducedDims, one, one_dim, pair, sum};
use super::shape::squeeze_dim;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{
    Arrays, Grads, Jvp, Name, Op, Outputs, Saves, Tangent, Tangents, Tensor, ViewOp, Vjp, VjpCx, apply, apply1, primitives, view,
};
use crate::call::{ArgReduce, CumulativeExtreme, Mode, Request, Sort};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar};
use crate::rows::{Func, RowId};
use smallvec::{SmallVec, smallvec};

// ---- over any dims: ties share the gradient --------------------------------------------------------------------------

/// Reductions for which all elements equal to the result share its gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TiedKind {
    /// `amax` and `amin`.
    Extreme { max: bool },
    /// `max()` and `min()` of everything.
    Whole { max: bool },
    /// The median of everything, or of all but nan.
    Median { skip_nan: bool },
}

#[derive(Debug, Clone)]
struct TiedExtreme {
    kind: TiedKind,
    over: ReducedDims,
}

/// The dimensions that are reduced.
fn reduced(over: &ReducedDims) -> SmallVec<[i64; 8]> {
    (0..over.mask.len()).filter(|i| over.mask[*i]).map(|i| i as i64).collect()
}

/// How many elements of `mask` are true for each result of `over`.
fn ties(mask: &Tensor, over: &ReducedDims) -> Result<Tensor> {
    let dims = reduced(over);
    if dims.is_empty() { primitives::cast(mask, DType::I64) } else { sum(mask, Some(&dims), true, None) }
}

/// `t / count`. A count may be larger than any number of a 16-bit float, so those are divided in float32.
fn by_count(t: &Tensor, count: &Tensor) -> Result<Tensor> {
    if !t.dtype().is_half() {
        return pw::div(t, count);
    }
    primitives::cast(&pw::div(&primitives::cast(t, DType::F32)?, count)?, t.dtype())
}

/// `g` divided evenly among the elements for which `mask` is true; `over` says which elements belong to one result.
pub(super) fn share_gradient(g: &Tensor, mask: &Tensor, over: &ReducedDims) -> Result<Tensor> {
    pw::where_(mask, &by_count(&over.restore(g)?, &ties(mask, over)?)?, 0.0)
}

/// As `share_gradient`, but nan where no element of a result is masked: then the result is nan.
fn spread_gradient(g: &Tensor, mask: &Tensor, over: &ReducedDims) -> Result<Tensor> {
    pw::mul(&by_count(&over.restore(g)?, &ties(mask, over)?)?, &primitives::cast(mask, g.dtype())?)
}

impl Vjp for TiedExtreme {
    fn node_name(&self) -> Name {
        match self.kind {
            TiedKind::Extreme { max: true } => "AmaxBackward0",
            TiedKind::Extreme { max: false } => "AminBackward0",
            TiedKind::Whole { max: true } => "MaxBackward1",
            TiedKind::Whole { max: false } => "MinBackward1",
            TiedKind::Median { skip_nan: false } => "MedianBackward0",
            TiedKind::Median { skip_nan: true } => "NanmedianBackward0",
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes =
            if matches!(self.kind, TiedKind::Extreme { .. }) { self.over.saved_attributes() } else { SavedAttributes::new() };
        attributes.push(("self", SavedAttribute::Input(0)));
        attributes.push(("result", SavedAttribute::Output(0)));
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (x, y) = (cx.input(0)?.detach(), cx.output(0)?.detach());
        let y = self.over.restore(&y)?;
        let mut mask = pw::eq(&x, &y)?;
        if !matches!(self.kind, TiedKind::Extreme { .. }) {
            mask = pw::logical_or(&mask, &pw::logical_and(&pw::isnan(&x)?, &pw::isnan(&y)?)?)?;
        }
        if matches!(self.kind, TiedKind::Extreme { .. }) {
            return Ok(one(spread_gradient(g, &mask, &self.over)?));
        }
        Ok(one(share_gradient(g, &mask, &self.over)?))
    }
}

impl Op for TiedExtreme {
    fn name(&self) -> &'static str {
        match self.kind {
            TiedKind::Extreme { max: true } => "amax",
            TiedKind::Extreme { max: false } => "amin",
            TiedKind::Whole { max: true } => "max",
            TiedKind::Whole { max: false } => "min",
            TiedKind::Median { skip_nan: false } => "median",
            TiedKind::Median { skip_nan: true } => "nanmedian",
        }
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![match self.kind {
            TiedKind::Extreme { max } | TiedKind::Whole { max } => x[0].extreme(max, &self.over.mask, self.over.keepdim)?,
            TiedKind::Median { skip_nan } => {
                // All dimensions after the leading batch dimensions form one group.
                let lead = self.over.mask.iter().take_while(|m| !**m).count();
                let (kept, rest) = x[0].shape().split_at(lead);
                let rows = primitives::reshape(&Tensor::new(x[0].clone()), &[kept.iter().product(), rest.iter().product()])?;
                primitives::reshape(&lower_median(&rows, 1, false, skip_nan)?.0, kept)?.array()?
            }
        }])
    }
    fn is_composed(&self) -> bool {
        matches!(self.kind, TiedKind::Median { .. })
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    /// The mean of the tangents of the elements that are the result; nan where the result is nan.
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let (x, Some(t)) = (cx.primal(0), cx.tangent(0)) else { return Ok(Tangents::from_elem(None, 1)) };
        let mask = pw::eq(&x.detach(), &self.over.restore(&cx.output(0).detach())?)?;
        // Of 16-bit floats neither the weights nor their products with the tangents are rounded before they are added.
        let wide = if t.dtype().is_half() { DType::F32 } else { t.dtype() };
        let each = pw::div(&primitives::cast(&mask, wide)?, &ties(&mask, &self.over)?)?;
        let parts = pw::mul(&primitives::cast(t, wide)?, &each)?;
        let dims = reduced(&self.over);
        let total = if dims.is_empty() { parts } else { sum(&parts, Some(&dims), self.over.keepdim, None)? };
        Ok(smallvec![Some(primitives::cast(&total, t.dtype())?)])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        match self.kind {
            TiedKind::Median { .. } | TiedKind::Extreme { .. } => {
                Some(batch.shifted(&TiedExtreme { over: self.over.shifted(batch.size), ..self.clone() }))
            }
            TiedKind::Whole { max } => {
                Some(batch.shifted(&TiedExtreme { kind: TiedKind::Extreme { max }, over: self.over.shifted(batch.size) }))
            }
        }
    }
}

/// Refuses to reduce nothing, for which there is no largest element.
pub(super) fn check_not_empty(name: &str, over: &ReducedDims, named: bool) -> Result<()> {
    if named {
        for (d, (s, m)) in over.shape.iter().zip(&over.mask).enumerate() {
            if *m && *s == 0 {
                return Err(Error::index(format!(
                    "{name}(): Expected reduction dim {d} to have non-zero size. The input has shape {:?}.",
                    &over.shape[..]
                )));
            }
        }
    } else if over.shape.contains(&0) {
        return Err(Error::runtime(format!(
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )));
    }
    Ok(())
}

/// The largest elements over `dims` (all without or empty), the smallest with `max` false. Ties share the gradient evenly.
pub fn amax(x: &Tensor, max: bool, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    refuse_complex(x, if max { "max_values_cpu" } else { "min_values_cpu" })?;
    let over = ReducedDims::new(x, dims, keepdim)?;
    check_not_empty(if max { "amax" } else { "amin" }, &over, dims.is_some_and(|d| !d.is_empty()))?;
    apply1(&TiedExtreme { kind: TiedKind::Extreme { max }, over }, &[x])
}

/// The smallest and the largest elements along one dimension or of all, in one node.
#[derive(Debug, Clone)]
struct Aminmax {
    over: ReducedDims,
}

impl Vjp for Aminmax {
    fn node_name(&self) -> Name {
        "AminmaxBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = self.over.saved_attributes();
        attributes.extend([("self", SavedAttribute::Input(0)), ("min", SavedAttribute::Output(0)), ("max", SavedAttribute::Output(1))]);
        attributes
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let mut out: Option<Tensor> = None;
        for (j, g) in grads.iter().enumerate() {
            let Some(g) = g else { continue };
            let y = self.over.restore(&cx.output(j)?.detach())?;
            let part = spread_gradient(g, &pw::eq(&cx.input(0)?.detach(), &y)?, &self.over)?;
            out = Some(match out {
                Some(sum) => pw::add(&sum, &part)?,
                None => part,
            });
        }
        Ok(smallvec![out])
    }
}

impl Op for Aminmax {
    fn name(&self) -> &'static str {
        "aminmax"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let of = |max| x[0].extreme(max, &self.over.mask, self.over.keepdim);
        Ok(smallvec![of(false)?, of(true)?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0).output(1)
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(Aminmax { over: self.over.shifted(batch) })
    }
    fn tangent(&self) -> Tangent {
        Tangent::Reduced(self.over.keepdim_shape())
    }
}

/// The smallest and the largest elements over `dims` (all without).
pub fn aminmax(x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<(Tensor, Tensor)> {
    refuse_complex(x, "aminmax_cpu")?;
    let over = ReducedDims::new(x, dims, keepdim)?;
    check_not_empty("aminmax", &over, dims.is_some())?;
    pair(apply(&Aminmax { over }, &[x])?)
}

/// The largest of all elements (`torch.max(x)`), the smallest with `max` false.
pub fn max_of_all(x: &Tensor, max: bool) -> Result<Tensor> {
    refuse_complex(x, if max { "max_all" } else { "min_all" })?;
    let over = ReducedDims::new(x, None, false)?;
    check_not_empty(if max { "max" } else { "min" }, &over, false)?;
    apply1(&TiedExtreme { kind: TiedKind::Whole { max }, over }, &[x])
}

// ---- along one dim: the chosen element gets the gradient -------------------------------------------------------------

/// How values are selected along a dimension.
#[derive(Debug, Clone, Copy)]
pub(super) enum SelectionKind {
    Extreme {
        max: bool,
        keepdim: bool,
    },
    Sort {
        descending: bool,
        keep: usize,
        node: &'static str,
    },
    /// The k-th smallest, counted from 0.
    Nth {
        k: usize,
        keepdim: bool,
    },
    /// The lower median; nan where there is one, or with `skip_nan` only where there is nothing else.
    Median {
        keepdim: bool,
        skip_nan: bool,
    },
    /// The cumulative maximum (or minimum).
    Cumulative {
        max: bool,
    },
    /// The most frequent.
    Mode {
        keepdim: bool,
    },
}

/// Values selected along `dim` and, as second output, their positions.
#[derive(Debug, Clone)]
struct Selection {
    kind: SelectionKind,
    dim: usize,
    shape: Dims,
}

impl Vjp for Selection {
    fn node_name(&self) -> Name {
        match self.kind {
            SelectionKind::Extreme { max: true, .. } => "MaxBackward0",
            SelectionKind::Extreme { max: false, .. } => "MinBackward0",
            SelectionKind::Cumulative { max: true } => "CummaxBackward0",
            SelectionKind::Cumulative { max: false } => "CumminBackward0",
            SelectionKind::Mode { .. } => "ModeBackward0",
            SelectionKind::Nth { .. } => "KthvalueBackward0",
            SelectionKind::Median { skip_nan: false, .. } => "MedianBackward1",
            SelectionKind::Median { skip_nan: true, .. } => "NanmedianBackward1",
            SelectionKind::Sort { node, .. } => node,
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes: SavedAttributes = smallvec![
            ("dim", SavedAttribute::at(self.dim)),
            ("indices", SavedAttribute::Output(1)),
            ("self_sym_sizes", SavedAttribute::sizes(&self.shape))
        ];
        if let SelectionKind::Extreme { keepdim, .. }
        | SelectionKind::Nth { keepdim, .. }
        | SelectionKind::Median { keepdim, .. }
        | SelectionKind::Mode { keepdim } = self.kind
        {
            attributes.push(("keepdim", SavedAttribute::Bool(keepdim)));
        }
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        if self.shape.is_empty() {
            return Ok(one(g.clone()));
        }
        let positions = cx.output(1)?.detach();
        let dropped = matches!(
            self.kind,
            SelectionKind::Extreme { keepdim: false, .. }
                | SelectionKind::Nth { keepdim: false, .. }
                | SelectionKind::Median { keepdim: false, .. }
                | SelectionKind::Mode { keepdim: false }
        );
        if !dropped {
            return Ok(one(scatter_gradient(g, self.dim, &positions, &self.shape)?));
        }
        let back = ViewOp::Unsqueeze(self.dim);
        Ok(one(scatter_gradient(&view(g, back.clone())?, self.dim, &view(&positions, back)?, &self.shape)?))
    }
}

impl Op for Selection {
    fn name(&self) -> &'static str {
        match self.kind {
            SelectionKind::Extreme { max: true, .. } => "max",
            SelectionKind::Extreme { max: false, .. } => "min",
            SelectionKind::Sort { .. } => "sort",
            SelectionKind::Nth { .. } => "kthvalue",
            SelectionKind::Median { skip_nan: false, .. } => "median",
            SelectionKind::Median { skip_nan: true, .. } => "nanmedian",
            SelectionKind::Cumulative { max: true } => "cummax",
            SelectionKind::Cumulative { max: false } => "cummin",
            SelectionKind::Mode { .. } => "mode",
        }
    }
    fn accepts_pending(&self) -> bool {
        matches!(self.kind, SelectionKind::Extreme { .. })
    }
    fn is_composed(&self) -> bool {
        matches!(self.kind, SelectionKind::Median { .. })
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let (values, positions) = match self.kind {
            SelectionKind::Extreme { max, keepdim } => extreme_along(x[0], max, self.dim, keepdim)?,
            SelectionKind::Sort { descending, keep, .. } => sort_along(x[0], Sort { dim: self.dim, descending, keep })?,
            SelectionKind::Cumulative { max } => {
                with_positions(Request::CumulativeExtreme(CumulativeExtreme { max, dim: self.dim }), x[0], x[0].shape())?
            }
            SelectionKind::Mode { keepdim } => {
                with_positions(Request::Mode(Mode { dim: self.dim }), x[0], &resized(x[0].shape(), self.dim, 1, keepdim))?
            }
            SelectionKind::Median { keepdim, skip_nan } => {
                let (v, p) = lower_median(&Tensor::new(x[0].clone()), self.dim as i64, keepdim, skip_nan)?;
                (v.array()?, p.array()?)
            }
            SelectionKind::Nth { k, keepdim } => {
                let sort = Sort { dim: self.dim, descending: false, keep: k + 1 };
                let (v, p) = sort_along(x[0], sort)?;
                let pick = |a: Array| -> Result<Array> {
                    if a.rank() == 0 {
                        return Ok(a);
                    }
                    let l = a.layout().narrow(self.dim, k, 1)?;
                    a.with_layout(if keepdim { l } else { l.squeeze(|d| d == self.dim) })?.contiguous_copy()
                };
                (pick(v)?, pick(p)?)
            }
        };
        Ok(smallvec![values, positions])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.output(1)
    }
    fn differentiable(&self, output: usize) -> bool {
        output == 0
    }
    fn jvp(&self, cx: &Jvp<'_>) -> Result<Tangents> {
        let Some(t) = cx.tangent(0) else { return Ok(Tangents::from_elem(None, 2)) };
        if self.shape.is_empty() {
            return Ok(smallvec![Some(t.clone()), None]);
        }
        let positions = cx.output(1);
        let selected = if positions.rank() == t.rank() {
            gather(t, self.dim as i64, positions)?
        } else {
            squeeze_dim(&gather(t, self.dim as i64, &view(positions, ViewOp::Unsqueeze(self.dim))?)?, self.dim as i64)?
        };
        Ok(smallvec![Some(selected), None])
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if self.shape.is_empty() {
            return Some(batch.rows_of_numbers(&Selection { dim: 1, shape: batch.with_batch(&[1]), ..self.clone() }));
        }
        Some(batch.shifted(&Selection { dim: self.dim + 1, shape: batch.with_batch(&self.shape), ..self.clone() }))
    }
}

/// `shape` with `n` elements along `dim`, or without this dimension. 0-d stays so.
fn resized(shape: &[usize], dim: usize, n: usize, keepdim: bool) -> Dims {
    let sizes = shape.iter().enumerate().map(|(d, s)| if d == dim { n } else { *s });
    sizes.enumerate().filter(|(d, _)| keepdim || *d != dim).map(|(_, s)| s).collect()
}

/// The values of a request and their positions.
fn with_positions(request: Request, x: &Array, shape: &[usize]) -> Result<(Array, Array)> {
    if x.dtype().is_wide_unsigned() {
        let (v, p) = with_positions(request, &in_int64(x)?, shape)?;
        return Ok((of_int64(&v, x.dtype())?, p));
    }
    let mut made = Array::request(request, &[x], &[(shape, x.dtype()), (shape, DType::I64)])?;
    match (made.pop(), made.pop()) {
        (Some(positions), Some(values)) => Ok((values, positions)),
        _ => Err(Error::internal("a request", "fewer outputs than two")),
    }
}

fn extreme_along(x: &Array, max: bool, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
    with_positions(Request::ArgReduce(ArgReduce { max, dim }), x, &resized(x.shape(), dim, 1, keepdim))
}

fn sort_along(x: &Array, sort: Sort) -> Result<(Array, Array)> {
    with_positions(Request::Sort(sort), x, &resized(x.shape(), sort.dim, sort.keep, true))
}

/// Unsigned integers as int64 in the same order: of uint64 with the highest bit turned over.
fn in_int64(x: &Array) -> Result<Array> {
    let wide = x.cast(DType::I64)?;
    if x.dtype() == DType::U64 { turned_over(&wide) } else { Ok(wide) }
}

/// The inverse of `in_int64`.
fn of_int64(x: &Array, dtype: DType) -> Result<Array> {
    if dtype == DType::U64 { turned_over(x)?.cast(dtype) } else { x.cast(dtype) }
}

fn turned_over(x: &Array) -> Result<Array> {
    let highest = Array::scalar(Scalar::Int(i64::MIN), DType::I64)?;
    Array::pointwise(Func::forward(RowId::BitwiseXor), DType::I64, DType::I64, &[x, &highest], &[])
}

pub(super) fn select_along(x: &Tensor, dim: usize, kind: SelectionKind) -> Result<(Tensor, Tensor)> {
    pair(apply(&Selection { kind, dim, shape: x.shape() }, &[x])?)
}

fn no_complex(x: &Tensor, name: &str) -> Result<()> {
    if x.dtype().is_complex() { Err(Error::runtime(format!("{name}(): does not support complex input"))) } else { Ok(()) }
}

/// The maxima along `dim` (minima with `max` false) and the first position of each.
pub fn max_along(x: &Tensor, max: bool, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    no_complex(x, if max { "max" } else { "min" })?;
    check_not_empty(if max { "max" } else { "min" }, &ReducedDims::new(x, Some(&[dim]), keepdim)?, true)?;
    select_along(x, d, SelectionKind::Extreme { max, keepdim })
}

/// The cumulative maximum (minimum with `max` false) along `dim` and its position, the last of equal elements; nan from the first nan on.
pub fn cumulative(x: &Tensor, max: bool, dim: i64) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    refuse_complex(x, if max { "cummax_cpu" } else { "cummin_cpu" })?;
    select_along(x, d, SelectionKind::Cumulative { max })
}

/// The position of the maximum (or minimum) along `dim`, or in the flattened tensor without. The first of equal elements.
pub fn argmax(x: &Tensor, max: bool, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
    let name = if max { "argmax" } else { "argmin" };
    no_complex(x, name)?;
    if x.dtype() == DType::Bool {
        return Err(Error::runtime(format!("{name}(): does not support bool input; convert it first, as with .int()")));
    }
    let dim = match dim {
        Some(dim) => {
            let d = one_dim(x, dim)?;
            check_not_empty(name, &ReducedDims::new(x, Some(&[dim]), keepdim)?, true)?;
            Some(d)
        }
        None if x.numel() == 0 => {
            return Err(Error::index(format!("{name}(): Expected reduction dim to be specified for input.numel() == 0.")));
        }
        None => None,
    };
    apply1(&ArgExtreme { max, dim, keepdim }, &[x])
}

/// The position of the maximum or minimum, along a dimension or in the flattened input.
#[derive(Debug, Clone, Copy)]
struct ArgExtreme {
    max: bool,
    dim: Option<usize>,
    keepdim: bool,
}

impl Vjp for ArgExtreme {
    fn node_name(&self) -> Name {
        "NotDifferentiable".into()
    }
}

impl Op for ArgExtreme {
    fn name(&self) -> &'static str {
        if self.max { "argmax" } else { "argmin" }
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let a = x[0];
        if let Some(d) = self.dim {
            return Ok(smallvec![extreme_along(a, self.max, d, self.keepdim)?.1]);
        }
        let a = if a.is_contiguous() { a.clone() } else { a.contiguous()? };
        let flat = a.with_layout(crate::layout::Layout::from_parts(smallvec![a.numel()], smallvec![1], a.layout().offset())?)?;
        let position = extreme_along(&flat, self.max, 0, false)?.1;
        let shape: Dims = SmallVec::from_elem(1, if self.keepdim { a.rank() } else { 0 });
        Ok(smallvec![position.with_layout(position.layout().expand(&shape)?)?])
    }
    fn differentiable(&self, _output: usize) -> bool {
        false
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let rank = batch.inputs[0].rank();
        match self.dim {
            _ if rank == 0 => Some(batch.rows_of_numbers(&ArgExtreme { dim: Some(1), ..*self })),
            Some(d) => Some(batch.shifted(&ArgExtreme { dim: Some(d + 1), ..*self })),
            None => {
                let one = || {
                    let flat = primitives::reshape(&batch.batched(0)?, &[batch.size, batch.inputs[0].shape().iter().product()])?;
                    let at = apply1(&ArgExtreme { dim: Some(1), keepdim: false, ..*self }, &[&flat])?;
                    let shape = Dims::from_elem(1, if self.keepdim { rank } else { 0 });
                    Ok(smallvec![primitives::reshape(&at, &batch.with_batch(&shape))?])
                };
                Some(one())
            }
        }
    }
}

/// The lower median of all elements: nan if there is one, or with `skip_nan` if there is nothing else. Equal ones share the gradient evenly.
pub fn median_of_all(x: &Tensor, skip_nan: bool) -> Result<Tensor> {
    refuse_complex(x, "median_cpu")?;
    if x.numel() == 0 {
        return Ok(Tensor::new(x.memory().full_beside(&[], Scalar::Float(f64::NAN), x.dtype())?));
    }
    refuse_bool(x, "median_cpu")?;
    apply1(&TiedExtreme { kind: TiedKind::Median { skip_nan }, over: ReducedDims::new(x, None, false)? }, &[x])
}

declare! {
    /// The largest elements over `dim` (all without). Equal ones share the gradient evenly.
    fn amax(input: &Tensor, dim: Option<&[i64]> = (), keepdim: bool = false) -> Tensor = |x, d, k| amax(x, true, d, k);
    /// The smallest elements over `dim` (all without). Equal ones share the gradient evenly.
    fn amin(input: &Tensor, dim: Option<&[i64]> = (), keepdim: bool = false) -> Tensor = |x, d, k| amax(x, false, d, k);
    /// Where the largest element stands along `dim`, or in the flattened tensor; the first of equals.
    fn argmax(input: &Tensor, dim: Option<i64> = None, keepdim: bool = false) -> Tensor = |x, d, k| argmax(x, true, d, k);
    /// Where the smallest element stands along `dim`, or in the flattened tensor; the first of equals.
    fn argmin(input: &Tensor, dim: Option<i64> = None, keepdim: bool = false) -> Tensor = |x, d, k| argmax(x, false, d, k);
    /// The largest element so far along `dim` and where it stands (the last of equals).
    fn cummax(input: &Tensor, dim: i64) -> (Tensor, Tensor) = |x, d| cumulative(x, true, d);
    /// The smallest element so far along `dim` and where it stands (the last of equals).
    fn cummin(input: &Tensor, dim: i64) -> (Tensor, Tensor) = |x, d| cumulative(x, false, d);
}
