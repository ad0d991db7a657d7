//! Joining, repeating and rearranging tensors with a copy.

use crate::array::{Array, Bounds, IndexPlan, JoinOrder};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInput, BatchedInputs};
use crate::autograd::{Arrays, Grads, Name, Op, Outputs, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply1, apply1_growing, primitives, view};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, checked_numel, fmt_shape, result_type, wrap_dim};
use crate::ops::index;
use crate::ops::shape::{self, Views};
use smallvec::{SmallVec, smallvec};

// ---- cat and stack ---------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct Cat {
    dim: usize,
    dtype: DType,
    /// The size of each input along `dim`; None for an input that was skipped.
    sizes: SmallVec<[Option<usize>; 4]>,
    order: JoinOrder,
}

impl Vjp for Cat {
    fn node_name(&self) -> Name {
        "CatBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let mut out = Grads::from_elem(None, self.sizes.len());
        let mut start = 0;
        for (i, n) in self.sizes.iter().enumerate() {
            let Some(n) = *n else { continue };
            if cx.needs(i) {
                out[i] = Some(view(g, ViewOp::Slice { dim: self.dim, start, end: start + n, step: 1 })?);
            }
            start += n;
        }
        Ok(out)
    }
}

impl Op for Cat {
    fn name(&self) -> &'static str {
        "cat"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let parts: SmallVec<[&Array; 4]> = x.iter().zip(&self.sizes).filter(|(_, n)| n.is_some()).map(|(a, _)| *a).collect();
        if parts.is_empty() {
            return Ok(smallvec![x[0].empty_beside(&[0], self.dtype)?]);
        }
        Ok(smallvec![Array::concat(&parts, self.dim, self.dtype, self.order)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let all = Cat { dim: self.dim + 1, ..self.clone() };
        if !self.sizes.contains(&None) || self.sizes.iter().all(Option::is_none) {
            return Some(batch.shifted(&all));
        }
        // An input that is skipped has one dimension, whatever the others have, and no element.
        let inputs: SmallVec<[BatchedInput; 4]> =
            batch.inputs.iter().zip(&self.sizes).filter(|(_, n)| n.is_some()).map(|(l, _)| l.clone()).collect();
        let sizes = self.sizes.iter().copied().filter(Option::is_some).collect();
        Some(BatchedInputs { size: batch.size, inputs: &inputs }.shifted(&Cat { sizes, ..all }))
    }
}

pub(crate) fn common_dtype(ts: &[Tensor]) -> DType {
    if ts.iter().all(|t| t.dtype() == ts[0].dtype()) {
        return ts[0].dtype();
    }
    result_type(ts.iter().map(|t| (t.dtype(), t.promotion_rank()))).unwrap_or(DType::F32)
}

/// The tensors concatenated along `dim`. The other sizes must agree; empty 1-d tensors are skipped.
pub fn cat(ts: &[Tensor], dim: i64) -> Result<Tensor> {
    cat_in(ts, dim, JoinOrder::Suggested)
}

/// As `cat`, in a memory order of choice.
pub(super) fn cat_in(ts: &[Tensor], dim: i64, order: JoinOrder) -> Result<Tensor> {
    if ts.is_empty() {
        return Err(Error::value("cat(): expected a non-empty list of Tensors"));
    }
    let shapes: SmallVec<[Dims; 4]> = ts.iter().map(Tensor::shape).collect();
    if let Some(i) = shapes.iter().position(|s| s.is_empty()) {
        return Err(Error::runtime(format!("zero-dimensional tensor (at position {i}) cannot be concatenated")));
    }
    let legacy = |s: &Dims| s[..] == [0];
    let first = shapes.iter().position(|s| !legacy(s)).unwrap_or(0);
    let rank = shapes[first].len();
    let d = wrap_dim(dim, rank)?;
    let mut sizes = SmallVec::new();
    for (i, s) in shapes.iter().enumerate() {
        if legacy(s) && rank != 1 {
            sizes.push(None);
            continue;
        }
        if s.len() != rank {
            return Err(Error::runtime(format!(
                "Tensors must have same number of dimensions: got {rank} and {} (tensor number {i} in the list)",
                s.len()
            )));
        }
        for k in 0..rank {
            if k != d && s[k] != shapes[first][k] {
                return Err(Error::runtime(format!(
                    "Sizes of tensors must match except in dimension {d}. Expected size {} but got size {} for tensor number {i} in the list.",
                    shapes[first][k], s[k]
                )));
            }
        }
        sizes.push(Some(s[d]));
    }
    let inputs: SmallVec<[&Tensor; 4]> = ts.iter().collect();
    apply1(&Cat { dim: d, dtype: common_dtype(ts), sizes, order }, &inputs)
}

#[derive(Debug, Clone)]
struct Stack {
    dim: usize,
    n: usize,
    dtype: DType,
}

impl Vjp for Stack {
    fn node_name(&self) -> Name {
        "StackBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dim", SavedAttribute::at(self.dim))]
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let mut out = Grads::from_elem(None, self.n);
        if let Some(g) = &grads[0] {
            for (i, o) in out.iter_mut().enumerate() {
                if cx.needs(i) {
                    *o = Some(view(g, ViewOp::Select(self.dim, i))?);
                }
            }
        }
        Ok(out)
    }
}

impl Op for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let wide: SmallVec<[Array; 4]> = x.iter().map(|a| a.with_layout(a.layout().unsqueeze(self.dim))).collect::<Result<_>>()?;
        let refs: SmallVec<[&Array; 4]> = wide.iter().collect();
        Ok(smallvec![Array::concat(&refs, self.dim, self.dtype, JoinOrder::Suggested)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(Stack { dim: self.dim + 1, ..self.clone() })
    }
}

/// The tensors stacked along a new dimension `dim`; all have one shape.
pub fn stack(ts: &[Tensor], dim: i64) -> Result<Tensor> {
    let Some(first) = ts.first() else {
        return Err(Error::runtime("stack expects a non-empty TensorList"));
    };
    let shape = first.shape();
    let d = wrap_dim(dim, shape.len() + 1)?;
    for (i, t) in ts.iter().enumerate() {
        if t.shape() != shape {
            return Err(Error::runtime(format!(
                "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {i}",
                fmt_shape(&shape),
                fmt_shape(&t.shape())
            )));
        }
    }
    let inputs: SmallVec<[&Tensor; 4]> = ts.iter().collect();
    apply1(&Stack { dim: d, n: ts.len(), dtype: common_dtype(ts) }, &inputs)
}

/// At least 1, 2 or 3 dimensions, added where NumPy adds them.
pub fn atleast(t: &Tensor, dims: usize) -> Result<Tensor> {
    match (dims, t.rank()) {
        (1, 0) => shape::view(t, &[1]),
        (2, 0) => shape::view(t, &[1, 1]),
        (2, 1) => shape::unsqueeze(t, 0),
        (3, 0) => shape::view(t, &[1, 1, 1]),
        (3, 1) => shape::unsqueeze(&shape::unsqueeze(t, 0)?, -1),
        (3, 2) => shape::unsqueeze(t, -1),
        _ => Ok(t.clone()),
    }
}

fn all_atleast(ts: &[Tensor], dims: usize, name: &str) -> Result<Views> {
    if ts.is_empty() {
        return Err(Error::runtime(format!("{name} expects a non-empty TensorList")));
    }
    ts.iter().map(|t| atleast(t, dims)).collect()
}

/// Concatenated along dimension 1, or 0 for vectors.
pub fn hstack(ts: &[Tensor]) -> Result<Tensor> {
    let ts = all_atleast(ts, 1, "hstack")?;
    cat(&ts, i64::from(ts[0].rank() > 1))
}

/// Concatenated along dimension 0, vectors as rows.
pub fn vstack(ts: &[Tensor]) -> Result<Tensor> {
    cat(&all_atleast(ts, 2, "vstack")?, 0)
}

/// Concatenated along dimension 2.
pub fn dstack(ts: &[Tensor]) -> Result<Tensor> {
    cat(&all_atleast(ts, 3, "dstack")?, 2)
}

/// As `hstack`, vectors as columns.
pub fn column_stack(ts: &[Tensor]) -> Result<Tensor> {
    let columns: Views =
        ts.iter().map(|t| if t.rank() <= 1 { shape::view(t, &[t.numel() as i64, 1]) } else { Ok(t.clone()) }).collect::<Result<_>>()?;
    hstack(&columns)
}

// ---- repeating -------------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct Repeat {
    times: Dims,
    /// The input's shape with leading sizes of 1.
    wide: Dims,
    from: Dims,
}

impl Vjp for Repeat {
    fn node_name(&self) -> Name {
        "RepeatBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("repeats", SavedAttribute::sizes(&self.times)), ("self_sym_sizes", SavedAttribute::sizes(&self.from))]
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let (mut pairs, mut sum) = (Dims::new(), Dims::new());
        for (t, n) in self.times.iter().zip(&self.wide) {
            pairs.extend([*t, *n]);
            sum.extend([1, *n]);
        }
        let summed = primitives::sum_to(&primitives::reshape(g, &pairs)?, &sum)?;
        Ok(smallvec![Some(primitives::reshape(&summed, &self.from)?)])
    }
}

impl Op for Repeat {
    fn name(&self) -> &'static str {
        "repeat"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let extra = self.times.len() - x[0].rank();
        let mut layout = x[0].layout().clone();
        for _ in 0..extra {
            layout = layout.unsqueeze(0);
        }
        Ok(smallvec![x[0].with_layout(layout)?.repeat(&self.times)?])
    }
    fn work(&self, x: &[&Array]) -> usize {
        self.times.iter().fold(x[0].numel(), |n, t| n.saturating_mul(*t))
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let x = batch.inputs[0].aligned(self.times.len())?;
            let mut times = Dims::from_slice(&[1]);
            times.extend_from_slice(&self.times);
            let from = x.shape();
            Ok(smallvec![apply1_growing(&Repeat { times, wide: from.clone(), from }, &[&x])?])
        };
        Some(one())
    }
}

/// The tensor `times[d]` times along each dimension; more numbers than dimensions add dimensions in front.
pub fn repeat(t: &Tensor, times: &[i64]) -> Result<Tensor> {
    let from = t.shape();
    let Some(extra) = times.len().checked_sub(from.len()) else {
        return Err(Error::runtime("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"));
    };
    let mut wide = Dims::from_elem(1, extra);
    wide.extend_from_slice(&from);
    if times.iter().any(|t| *t < 0) {
        let sizes: Vec<i64> = times.iter().zip(&wide).map(|(t, n)| t.saturating_mul(*n as i64)).collect();
        return Err(Error::runtime(format!("Trying to create tensor with negative dimension: {sizes:?}")));
    }
    let times: Dims = times.iter().map(|t| *t as usize).collect();
    let mut pairs = Dims::from_slice(&times);
    pairs.extend_from_slice(&wide);
    checked_numel(&pairs, t.dtype().size())?;
    apply1_growing(&Repeat { times, wide, from }, &[t])
}

/// As `repeat`, with missing numbers in front taken as 1.
pub fn tile(t: &Tensor, times: &[i64]) -> Result<Tensor> {
    let mut all: SmallVec<[i64; 4]> = smallvec![1; t.rank().saturating_sub(times.len())];
    all.extend_from_slice(times);
    repeat(t, &all)
}

/// Positions 0, 1, 2, ... each as often as `repeats` says.
pub fn repeat_positions(repeats: &Tensor) -> Result<Tensor> {
    if !matches!(repeats.dtype(), DType::I32 | DType::I64) {
        return Err(Error::not_implemented(format!("\"repeat_interleave_cpu\" not implemented for '{}'", repeats.dtype().type_name())));
    }
    if repeats.rank() != 1 {
        return Err(Error::runtime("repeat_interleave only accept 1D vector as repeat"));
    }
    // The size of the result depends on values, so a device is waited for.
    let counts = repeats.values_for_shape("repeat_interleave")?.to_vec::<i64>()?;
    if counts.iter().any(|c| *c < 0) {
        return Err(Error::runtime("repeats can not be negative"));
    }
    let total = counts.iter().try_fold(0i64, |a, c| a.checked_add(*c));
    let total = total.and_then(|t| usize::try_from(t).ok()).unwrap_or(usize::MAX);
    let out = Array::empty(&[total], DType::I64)?;
    // SAFETY: made just now; all of it is filled below before anybody reads.
    let to = unsafe { out.new_elements::<i64>() };
    let mut at = 0;
    for (i, c) in counts.iter().enumerate() {
        to[at..at + *c as usize].fill(i as i64);
        at += *c as usize;
    }
    Ok(Tensor::new(out.to_device_of(&repeats.memory())?))
}

/// The number of repeats of each slice.
#[derive(Debug, Clone, Copy)]
pub enum Repeats<'a> {
    Each(i64),
    Tensor(&'a Tensor),
}

/// Each slice along `dim` repeated in place of itself; without `dim`, each element of the flattened tensor.
pub fn repeat_interleave(t: &Tensor, repeats: Repeats<'_>, dim: Option<i64>, output_size: Option<i64>) -> Result<Tensor> {
    let Some(dim) = dim else {
        return repeat_interleave(&primitives::reshape(t, &[t.numel()])?, repeats, Some(0), output_size);
    };
    let t = &if t.rank() == 0 { shape::view(t, &[1])? } else { t.clone() };
    let d = wrap_dim(dim, t.rank())?;
    let n = t.shape()[d];
    let repeats = match repeats {
        Repeats::Each(k) if k < 0 => return Err(Error::runtime("Repeats must be non-negative")),
        Repeats::Each(k) => return repeat_each(t, d, k as usize, output_size),
        Repeats::Tensor(r) if r.rank() == 0 || (r.rank() == 1 && r.numel() == 1) => {
            shape::expand(&primitives::reshape(r, &[1])?, &[n as i64])?
        }
        Repeats::Tensor(r) if r.rank() == 1 && r.numel() != n => {
            return Err(Error::runtime(format!(
                "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({d}) = {n}",
                r.numel()
            )));
        }
        Repeats::Tensor(r) => r.clone(),
    };
    let at = primitives::to_device(&repeat_positions(&repeats)?, t.device())?;
    check_size(output_size, at.numel())?;
    index::take_rows(t, IndexPlan::one(d, Bounds::Select), &[at], &index::INDEX_SELECT)
}

fn check_size(told: Option<i64>, have: usize) -> Result<()> {
    match told {
        Some(n) if n != have as i64 => {
            Err(Error::runtime(format!("allocated size does not match required size: got {n}, expected {have}")))
        }
        _ => Ok(()),
    }
}

/// Each slice along `d` repeated `k` times: a copy of a view with a new dimension of stride 0.
fn repeat_each(t: &Tensor, d: usize, k: usize, output_size: Option<i64>) -> Result<Tensor> {
    let mut shape = t.shape();
    let n = shape[d].checked_mul(k).ok_or_else(|| Error::runtime("repeat_interleave: the sizes overflow"))?;
    check_size(output_size, n)?;
    shape.insert(d + 1, k);
    let wide = view(&view(t, ViewOp::Unsqueeze(d + 1))?, ViewOp::Expand(shape.clone()))?;
    shape.remove(d + 1);
    shape[d] = n;
    view(&primitives::contiguous_copy(&wide)?, ViewOp::View(shape))
}

/// Coordinates of a grid from one vector for each of its dimensions. `xy` exchanges the first two, as NumPy does by default.
pub fn meshgrid(ts: &[Tensor], xy: bool) -> Result<Views> {
    if ts.is_empty() {
        return Err(Error::runtime("meshgrid expects a non-empty TensorList"));
    }
    for t in ts {
        if t.rank() > 1 {
            return Err(Error::runtime(format!(
                "meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of shape {}",
                fmt_shape(&t.shape())
            )));
        }
        if t.dtype() != ts[0].dtype() {
            return Err(Error::runtime(format!(
                "meshgrid expects all tensors to have the same dtype, got {} and {}",
                ts[0].dtype(),
                t.dtype()
            )));
        }
    }
    let n = ts.len();
    let swap = xy && n > 1;
    // The dimension of the grid along which tensor i runs.
    let place = |i: usize| if swap && i < 2 { 1 - i } else { i };
    let mut grid = Dims::from_elem(1, n);
    for (i, t) in ts.iter().enumerate() {
        grid[place(i)] = t.numel();
    }
    ts.iter()
        .enumerate()
        .map(|(i, t)| {
            let mut s = Dims::from_elem(1, n);
            s[place(i)] = t.numel();
            shape::expand_to(&primitives::reshape(t, &s)?, &grid)
        })
        .collect()
}
