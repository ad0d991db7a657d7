//! Gathering and scattering along one dimension, and filling by a mask.

use crate::array::{Array, Device, Write};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{
    Arrays, Devices, Grads, Name, OldValue, Op, Outputs, Saves, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply, apply_inplace, apply1,
    primitives, view,
};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, broadcast, fmt_shape, wrap_dim};
use crate::ops::index::{WriteTarget, first_of, on_dims};
use crate::ops::{pointwise, shape};
use crate::rows::RowId;
use crate::rows::{Func, Part};
use smallvec::smallvec;

// ---- gather ----------------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct Gather {
    dim: usize,
    shape: Dims,
}

impl Vjp for Gather {
    fn node_name(&self) -> Name {
        "GatherBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim)), ("index", SavedAttribute::Input(1)), ("sparse_grad", SavedAttribute::Bool(false))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let spread = GatherAdjoint { dim: self.dim, shape: self.shape.clone() };
        Ok(first_of(Some(apply1(&spread, &[g, &cx.input(1)?])?), 2))
    }
}

/// A 0-d tensor as a vector of one element.
fn wide(a: &Array) -> Result<Array> {
    if a.rank() == 0 { a.with_layout(a.layout().unsqueeze(0)) } else { Ok(a.clone()) }
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = wide(x[0])?.gather(self.dim, &wide(x[1])?)?;
        Ok(smallvec![if x[1].rank() == 0 { out.with_layout(out.layout().squeeze(|_| true))? } else { out }])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(1)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs.iter().all(|l| l.rank() == 0) {
            return Some(batch.rows_of_numbers(&Gather { dim: 1, shape: batch.with_batch(&[1]) }));
        }
        if self.shape.is_empty() || batch.inputs[1].rank() == 0 {
            return None;
        }
        Some(batch.shifted(&Gather { dim: self.dim + 1, shape: batch.with_batch(&self.shape) }))
    }
}

/// The adjoint of `Gather`: zeros to which the gradient is added at the index, in order.
#[derive(Debug, Clone)]
struct GatherAdjoint {
    dim: usize,
    shape: Dims,
}

impl Vjp for GatherAdjoint {
    fn node_name(&self) -> Name {
        "GatherBackwardBackward0".into()
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let gather = Gather { dim: self.dim, shape: self.shape.clone() };
        Ok(first_of(Some(apply1(&gather, &[g, &cx.input(1)?])?), 2))
    }
}

impl Op for GatherAdjoint {
    fn name(&self) -> &'static str {
        "gather_spread"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].full_beside(&self.shape, Scalar::Int(0), x[0].dtype())?;
        wide(&out)?.scatter_into(self.dim, &wide(x[1])?, &wide(x[0])?, Write::Add)?;
        Ok(smallvec![out])
    }
    fn grows(&self) -> bool {
        true
    }
    fn work(&self, x: &[&Array]) -> usize {
        self.shape.iter().product::<usize>() + x[0].numel()
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(1)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        if batch.inputs.iter().all(|l| l.rank() == 0) {
            return Some(batch.rows_of_numbers(&GatherAdjoint { dim: 1, shape: batch.with_batch(&[1]) }));
        }
        if self.shape.is_empty() || batch.inputs[1].rank() == 0 {
            return None;
        }
        Some(batch.shifted(&GatherAdjoint { dim: self.dim + 1, shape: batch.with_batch(&self.shape) }))
    }
}

/// Zeros of `shape` to which `g` is added where the index points along `dim`: the adjoint of choosing along a dimension.
pub(crate) fn scatter_gradient(g: &Tensor, dim: usize, index: &Tensor, shape: &[usize]) -> Result<Tensor> {
    apply1(&GatherAdjoint { dim, shape: Dims::from_slice(shape) }, &[g, index])
}

/// The index as kernels take it. As in PyTorch an empty one may have any dtype.
fn checked_index(name: &str, x: &Tensor, index: &Tensor) -> Result<Tensor> {
    if !matches!(index.dtype(), DType::I32 | DType::I64) && index.numel() > 0 {
        return Err(Error::runtime(format!("{name}(): Expected dtype int32/int64 for index, got {}", index.dtype())));
    }
    let other = if name == "gather" { "input" } else { "self" };
    if index.rank().max(1) != x.rank().max(1) && index.numel() > 0 {
        return Err(Error::runtime(format!(
            "Index tensor must have the same number of dimensions as {other} tensor (got {} and {})",
            index.rank(),
            x.rank()
        )));
    }
    primitives::cast(index, DType::I64)
}

fn as_1d(t: &Tensor) -> Result<Tensor> {
    if t.rank() == 0 { primitives::reshape(t, &[1]) } else { Ok(t.clone()) }
}

/// `out[i][j] = x[index[i][j]][j]` for dim 0, and so on: the index chooses along `dim`, its shape is the result's.
pub fn gather(x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let d = wrap_dim(dim, x.rank())?;
    let index = &checked_index("gather", x, index)?;
    if index.numel() == 0 {
        if !x.requires_grad() {
            return Ok(Tensor::new(x.memory().empty_beside(&index.shape(), x.dtype())?));
        }
        if index.rank() != x.rank() {
            // PyTorch allows that of an index without elements. The result has a history.
            let none = view(&primitives::reshape(x, &[x.numel()])?, ViewOp::Slice { dim: 0, start: 0, end: 0, step: 1 })?;
            return primitives::clone_as(&view(&none, ViewOp::View(index.shape()))?, "GatherBackward0");
        }
    }
    let (xs, is) = (x.shape(), index.shape());
    if xs.is_empty() || is.is_empty() {
        return gather_checked(x, d, index);
    }
    for k in 0..xs.len() {
        if k != d && is[k] > xs[k] {
            return Err(Error::runtime(format!(
                "Size does not match at dimension {k} expected index {} to be no larger than self {} apart from dimension {d}",
                fmt_shape(&is),
                fmt_shape(&xs)
            )));
        }
    }
    gather_checked(x, d, index)
}

fn gather_checked(x: &Tensor, dim: usize, index: &Tensor) -> Result<Tensor> {
    apply1(&Gather { dim, shape: x.shape() }, &[x, index])
}

/// As `gather`, with both broadcast to each other apart from `dim`; without `dim` both are flattened. Negative positions count from
/// the end.
pub fn take_along_dim(x: &Tensor, index: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let Some(dim) = dim else {
        let (x, i) = (shape::ravel(x)?, shape::ravel(index)?);
        return take_along_dim(&x, &checked_index("gather", &x, &i)?, Some(0));
    };
    let (xs, is) = (x.shape(), index.shape());
    if xs.len() != is.len() {
        return Err(Error::runtime(format!(
            "take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} \
             dimensions for indices",
            xs.len(),
            is.len()
        )));
    }
    if index.dtype() != DType::I64 {
        return Err(Error::runtime(format!("take_along_dim(): dtype of indices should be Long but got {}", index.dtype().type_name())));
    }
    let d = wrap_dim(dim, xs.len())?;
    if xs.is_empty() {
        return gather(x, 0, index);
    }
    let with = |of: &[usize], n: usize| {
        let mut s = Dims::from_slice(of);
        s[d] = n;
        s
    };
    let common = broadcast(&with(&xs, 1), &with(&is, 1))?;
    let x = shape::expand_to(x, &with(&common, xs[d]))?;
    let index = shape::expand_to(index, &with(&common, is[d]))?;
    gather(&x, d as i64, &wrapped(&index, xs[d], d)?)
}

/// Positions with the negative ones counted from the end.
fn wrapped(index: &Tensor, size: usize, dim: usize) -> Result<Tensor> {
    if index.device() != Device::CPU || index.is_batched() {
        // Positions that are still negative are reported when they are used.
        let back = pointwise::add(index, Scalar::Int(size as i64))?;
        return pointwise::where_(&pointwise::lt(index, Scalar::Int(0))?, &back, index);
    }
    let a = index.array()?.contiguous()?;
    let values = a.elements::<i64>()?;
    if values.iter().all(|i| i >= 0) {
        return Ok(index.clone());
    }
    let out = Array::empty(a.shape(), DType::I64)?;
    // SAFETY: made just now; as many elements as there are values, which are all written.
    let to = unsafe { out.new_elements::<i64>() };
    for (o, i) in to.iter_mut().zip(values.iter()) {
        if i < -(size as i64) {
            return Err(crate::array::Bounds::Wrap.error(i, dim, size).into());
        }
        *o = if i < 0 { i + size as i64 } else { i };
    }
    Ok(Tensor::new(out))
}

// ---- scatter ---------------------------------------------------------------------------------------------------------

/// How `scatter` combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    Set,
    Add,
    Multiply,
}

/// Inputs are self, index, source; the source has the index's shape or is 0-d.
#[derive(Debug, Clone)]
struct Scatter {
    dim: usize,
    how: Write,
    node: &'static str,
    label: &'static str,
}

impl Vjp for Scatter {
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim)), ("index", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let mut out = Grads::from_elem(None, 3);
        if self.how == Write::Multiply {
            return Err(Error::not_implemented(
                "derivative for scatter with reduce='multiply' is not implemented; use gather, a product and scatter",
            ));
        }
        if cx.needs(0) {
            out[0] = Some(if self.how == Write::Add {
                g.clone()
            } else {
                let zero = Tensor::new(Array::scalar(Scalar::Int(0), g.dtype())?);
                apply1(self, &[g, &cx.input(1)?, &zero])?
            });
        }
        if cx.needs(2) {
            out[2] = Some(gather_checked(g, self.dim, &cx.input(1)?)?);
        }
        Ok(out)
    }
}

impl Op for Scatter {
    fn name(&self) -> &'static str {
        self.label
    }
    fn devices(&self) -> Devices {
        Devices::Numbers
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].contiguous_copy()?;
        self.forward_into(&out, x)?;
        Ok(smallvec![out])
    }
    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        out.scatter_into(self.dim, x[1], x[2], self.how)
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        if needs[2] || (needs[0] && self.how == Write::Set) { Saves::NOTHING.input(1) } else { Saves::NOTHING }
    }
    fn tangent(&self) -> Tangent {
        if self.how == Write::Multiply { Tangent::General } else { Tangent::Linear }
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let [x, index, src] = batch.inputs else { return None };
        if x.rank() == 0 || index.rank() == 0 {
            return None;
        }
        let op = Scatter { dim: self.dim + 1, ..self.clone() };
        if src.rank() > 0 {
            return Some(batch.shifted(&op));
        }
        let one = || {
            let index = batch.batched(1)?;
            // One number for all, or one for each element of the batch.
            let src = if src.batched { shape::expand_to(&src.aligned(index.rank() - 1)?, &index.shape())? } else { src.tensor.clone() };
            apply(&op, &[&batch.batched(0)?, &index, &src])
        };
        Some(one())
    }
}

/// Writes `src` (a tensor at least as large as the index, or a number) where the index points along `dim`.
pub fn scatter(place: WriteTarget, x: &Tensor, dim: i64, index: &Tensor, src: pointwise::Arg<'_>, how: Reduce) -> Result<Tensor> {
    let label = if how == Reduce::Add { "scatter_add_" } else { "scatter_" };
    let d = wrap_dim(dim, x.rank())?;
    let index = &checked_index("scatter", x, index)?;
    let number = matches!(src, pointwise::Arg::Scalar(_));
    let (src, node) = match src {
        pointwise::Arg::Scalar(s) => (pointwise::number(s, x.dtype())?, "ScatterBackward1"),
        pointwise::Arg::Tensor(t) => {
            if t.dtype() != x.dtype() {
                return Err(Error::runtime(format!(
                    "scatter(): Expected self.dtype to be equal to src.dtype, got {} and {}",
                    x.dtype(),
                    t.dtype()
                )));
            }
            (t.clone(), if how == Reduce::Add { "ScatterAddBackward0" } else { "ScatterBackward0" })
        }
    };
    if index.numel() == 0 && (place == WriteTarget::Same || index.rank() != x.rank() || index.rank() != src.rank()) {
        return if place == WriteTarget::Same { Ok(x.clone()) } else { primitives::clone_as(x, node) };
    }
    if !number && src.rank().max(1) != index.rank().max(1) {
        return Err(Error::runtime(format!(
            "Index tensor must have the same number of dimensions as src tensor (got {} and {})",
            index.rank(),
            src.rank()
        )));
    }
    let index = as_1d(index)?;
    let src = if number { src } else { as_1d(&src)? };
    let is = index.shape();
    let (xs, ss) = (if x.rank() == 0 { smallvec![1] } else { x.shape() }, src.shape());
    let fits = (0..is.len()).all(|k| (k == d || is[k] <= xs[k]) && (number || is[k] <= ss[k]));
    if !fits {
        let and = if number { String::new() } else { format!(" and to be no larger size than src {}", fmt_shape(&ss)) };
        return Err(Error::runtime(format!(
            "Expected index {} to be no larger than self {} apart from dimension {d}{and}",
            fmt_shape(&is),
            fmt_shape(&xs)
        )));
    }
    if xs[d] == 0 && index.numel() > 0 {
        // No kernel runs for an empty target.
        return Err(Error::runtime(format!("index {} is out of bounds for dimension {d} with size 0", index.array()?.first()?)));
    }
    // Only the part of the source that the index covers is used.
    let mut part = src;
    if !number {
        for k in 0..is.len() {
            if is[k] < ss[k] {
                part = shape::narrow(&part, k as i64, 0, is[k] as i64)?;
            }
        }
    }
    let how = match how {
        Reduce::Set => Write::Set,
        Reduce::Add => Write::Add,
        Reduce::Multiply => Write::Multiply,
    };
    let op = Scatter { dim: d, how, node, label };
    on_dims(place, x, |x, place| match place {
        WriteTarget::New => apply1(&op, &[x, &index, &part]),
        WriteTarget::Same => {
            apply_inplace(&op, label, &[x, &index, &part], OldValue::Read)?;
            Ok(x.clone())
        }
    })
}

// ---- masks -----------------------------------------------------------------------------------------------------------

/// Inputs are self, mask, value (0-d, of self's dtype).
#[derive(Debug, Clone)]
struct MaskedFill {
    node: &'static str,
}

const WHERE: Func = Func { row: RowId::Where, part: Part::Forward };

impl Vjp for MaskedFill {
    fn cuts(&self, _is_cut: bool) -> bool {
        true
    }
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("mask", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let mut out = Grads::from_elem(None, 3);
        let (mask, zero) = (cx.input(1)?, Tensor::new(Array::scalar(Scalar::Int(0), g.dtype())?));
        if cx.needs(0) {
            out[0] = Some(apply1(self, &[g, &mask, &zero])?);
        }
        if cx.needs(2) {
            // Summed to the 0-d value by the engine.
            out[2] = Some(pointwise::where_(&mask, g, &zero)?);
        }
        Ok(out)
    }
}

impl Op for MaskedFill {
    fn name(&self) -> &'static str {
        "masked_fill"
    }
    fn devices(&self) -> Devices {
        Devices::Numbers
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let d = x[0].dtype();
        let made = Array::pointwise(WHERE, d, d, &[x[1], x[2], x[0]], &[])?;
        // Contiguous whatever the operands' strides, as in PyTorch.
        Ok(smallvec![made.contiguous()?])
    }
    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        out.pointwise_into(WHERE, out.dtype(), &[x[1], x[2], x[0]], &[])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(1)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

/// `x` with a number or 0-d tensor where the mask, broadcast to x, holds.
pub fn masked_fill(place: WriteTarget, x: &Tensor, mask: &Tensor, value: pointwise::Arg<'_>) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return Err(Error::runtime(format!("masked_fill_ only supports boolean masks, but got mask with dtype {}", mask.dtype())));
    }
    let (value, node) = match value {
        pointwise::Arg::Tensor(t) if t.rank() > 0 => {
            return Err(Error::runtime(format!(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                t.rank()
            )));
        }
        pointwise::Arg::Tensor(t) => (primitives::cast(t, x.dtype())?, "MaskedFillBackward1"),
        pointwise::Arg::Scalar(s) => (pointwise::number(s, x.dtype())?, "MaskedFillBackward0"),
    };
    let all = broadcast(&x.shape(), &mask.shape())?;
    let op = MaskedFill { node };
    match place {
        WriteTarget::New => apply1(&op, &[x, mask, &value]),
        WriteTarget::Same if all != x.shape() => {
            Err(Error::shape(format!("output with shape {} doesn't match the broadcast shape {}", fmt_shape(&x.shape()), fmt_shape(&all))))
        }
        WriteTarget::Same => {
            apply_inplace(&op, "masked_fill_", &[x, mask, &value], OldValue::Read)?;
            Ok(x.clone())
        }
    }
}
