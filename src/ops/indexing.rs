//! `x[...]`, read and write: views first, then at most one read or write at positions given by tensors.

use crate::array::{Array, Device, IndexPlan};
use crate::autograd::{Tensor, ViewOp, primitives, view};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::ops::index::{self, WriteTarget};
use crate::ops::mask;
use crate::ops::pointwise::{self, Arg};
use smallvec::SmallVec;

/// One entry of an index expression.
#[derive(Debug, Clone)]
pub enum Index {
    Int(i64),
    /// Bounds and step as Python has them; the step is at least 1.
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
    None,
    Ellipsis,
    Bool(bool),
    /// Positions (any integer dtype) or a mask (bool or uint8).
    Tensor(Tensor),
}

/// The result of applying the views of an index expression, and the index tensors that are left.
struct Prepared {
    x: Tensor,
    plan: Option<IndexPlan>,
    index: SmallVec<[Tensor; 4]>,
    /// Whether any view was taken.
    viewed: bool,
}

fn is_mask(t: &Tensor) -> bool {
    matches!(t.dtype(), DType::Bool | DType::U8)
}

/// How many dimensions of the indexed tensor an entry consumes.
fn covers(i: &Index) -> usize {
    match i {
        Index::Int(_) | Index::Slice { .. } => 1,
        Index::None | Index::Ellipsis | Index::Bool(_) => 0,
        Index::Tensor(t) if is_mask(t) => t.rank(),
        Index::Tensor(_) => 1,
    }
}

#[inline]
fn clip(i: i64, n: i64) -> i64 {
    (if i < 0 { i.saturating_add(n) } else { i }).clamp(0, n)
}

/// A slice's view, with Python's clipping.
#[inline]
fn slice(dim: usize, size: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<ViewOp> {
    if step <= 0 {
        return Err(Error::value(if step == 0 { "slice step cannot be zero" } else { "step must be greater than zero" }));
    }
    let n = size as i64;
    let (s, e) = (clip(start.unwrap_or(0), n), clip(stop.unwrap_or(n), n));
    Ok(ViewOp::Slice { dim, start: s as usize, end: e.max(s) as usize, step: step as usize })
}

#[inline]
fn select(x: &Tensor, dim: usize, i: i64, named: usize) -> Result<Tensor> {
    let (rank, size) = x.with_array(|a| (a.rank(), a.shape().get(dim).copied().unwrap_or(0)));
    if rank == 0 {
        return Err(Error::index(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a \
             number",
        ));
    }
    // The caller's own dimension is named in the message: earlier entries may have taken some away.
    let at = crate::layout::wrap_index(i, size, named)?;
    view(x, ViewOp::Select(dim, at))
}

/// A 0-d truth value as an index: a new dimension of size 1 that is taken or not.
fn truth(on: bool) -> Result<Tensor> {
    let at: &[i64] = if on { &[0] } else { &[] };
    Ok(Tensor::new(Array::from_slice(at, &[at.len()])?))
}

fn prepare(x: &Tensor, items: &[Index]) -> Result<Prepared> {
    let rank = x.rank();
    let used: usize = items.iter().map(covers).sum();
    if used > rank {
        if rank == 0 {
            return select(x, 0, 0, 0).map(|_| unreachable!("a 0-d tensor takes no index"));
        }
        return Err(Error::index(format!("too many indices for tensor of dimension {rank}")));
    }
    let mut out = Prepared { x: x.clone(), plan: None, index: SmallVec::new(), viewed: false };
    let mut dims: SmallVec<[usize; 4]> = SmallVec::new();
    let mut dim = 0;
    let mut seen_ellipsis = false;
    // The dimension of `x` that the next entry indexes.
    let mut own = 0;
    for item in items {
        match item {
            Index::Int(i) => {
                out.x = select(&out.x, dim, *i, own)?;
                out.viewed = true;
            }
            Index::Slice { start: None, stop: None, step: 1 } => dim += 1,
            Index::Slice { start, stop, step } => {
                let size = out.x.with_array(|a| a.shape()[dim]);
                let op = slice(dim, size, *start, *stop, *step)?;
                if !matches!(op, ViewOp::Slice { start: 0, end, step: 1, .. } if end == size) {
                    out.x = view(&out.x, op)?;
                    out.viewed = true;
                }
                dim += 1;
            }
            Index::Ellipsis => {
                // A second ellipsis consumes no dimension.
                if !seen_ellipsis {
                    dim += rank - used;
                    own += rank - used;
                    seen_ellipsis = true;
                }
            }
            Index::None => {
                out.x = view(&out.x, ViewOp::Unsqueeze(dim))?;
                out.viewed = true;
                dim += 1;
            }
            Index::Bool(b) => {
                out.x = view(&out.x, ViewOp::Unsqueeze(dim))?;
                out.viewed = true;
                out.index.push(index::beside(&truth(*b)?, x)?);
                dims.push(dim);
                dim += 1;
            }
            Index::Tensor(t) if is_mask(t) && t.rank() == 0 => {
                out.x = view(&out.x, ViewOp::Unsqueeze(dim))?;
                out.viewed = true;
                out.index.push(index::beside(&truth(t.values("a mask as an index")?.first()?.to_bool())?, x)?);
                dims.push(dim);
                dim += 1;
            }
            Index::Tensor(t) if is_mask(t) && t.is_batched() => {
                return Err(Error::runtime(
                    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a \
                     boolean mask; use where(mask, ...) or masked_fill instead.",
                ));
            }
            Index::Tensor(t) if is_mask(t) => {
                check_mask(t, &out.x.shape(), dim)?;
                for positions in mask::nonzero_tuple(&index::beside(t, x)?)? {
                    out.index.push(positions);
                    dims.push(dim);
                    dim += 1;
                }
            }
            Index::Tensor(t) if !index::is_index_dtype(t.dtype()) => {
                return Err(Error::index(format!("tensors used as indices must be long, int, byte or bool tensors, got {}", t.dtype())));
            }
            Index::Tensor(t) if t.rank() == 0 && !t.is_batched() => {
                let at = match t.array()?.first()? {
                    Scalar::Int(i) => i,
                    s => s.to_i64(),
                };
                out.x = select(&out.x, dim, at, own)?;
                out.viewed = true;
            }
            Index::Tensor(t) => {
                out.index.push(index::beside(t, x)?);
                dims.push(dim);
                dim += 1;
            }
        }
        own += covers(item);
    }
    if !dims.is_empty() {
        out.plan = Some(IndexPlan::of(dims));
    }
    Ok(out)
}

/// The plan of `index_put`: for each dimension from the first on, None or the positions (or a mask over several dimensions).
pub fn positions(x: &Tensor, entries: &[Option<Tensor>]) -> Result<(IndexPlan, SmallVec<[Tensor; 4]>)> {
    let (mut dims, mut index, mut dim) = (SmallVec::<[usize; 4]>::new(), SmallVec::<[Tensor; 4]>::new(), 0);
    let shape = x.shape();
    for e in entries {
        let Some(t) = e else {
            dim += 1;
            continue;
        };
        if !is_mask(t) && !index::is_index_dtype(t.dtype()) {
            return Err(Error::index(format!("tensors used as indices must be long, int, byte or bool tensors, got {}", t.dtype())));
        }
        if !is_mask(t) {
            index.push(index::beside(t, x)?);
            dims.push(dim);
            dim += 1;
            continue;
        }
        check_mask(t, &shape, dim)?;
        for p in mask::nonzero_tuple(&index::beside(t, x)?)? {
            index.push(p);
            dims.push(dim);
            dim += 1;
        }
    }
    if dim > shape.len() {
        return Err(Error::index(format!("too many indices for tensor of dimension {} (got {dim})", shape.len())));
    }
    if index.is_empty() {
        return Err(Error::index("at least one index tensor must be provided"));
    }
    Ok((IndexPlan::of(dims), index))
}

/// Checks that a mask has the sizes of the dimensions that it indexes.
fn check_mask(mask: &Tensor, of: &[usize], dim: usize) -> Result<()> {
    let ms = mask.shape();
    for (k, n) in ms.iter().enumerate() {
        if of.get(dim + k) != Some(n) {
            return Err(Error::index(format!(
                "The shape of the mask {} at index {k} does not match the shape of the indexed tensor {} at index {}",
                fmt_shape(&ms),
                fmt_shape(of),
                dim + k
            )));
        }
    }
    Ok(())
}

/// `x[items]`.
pub fn get(x: &Tensor, items: &[Index]) -> Result<Tensor> {
    // The usual cases need no bookkeeping.
    match items {
        [Index::Int(i)] => return select(x, 0, *i, 0),
        [Index::Slice { start, stop, step }] if x.rank() > 0 => {
            let size = x.with_array(|a| a.shape()[0]);
            return view(x, slice(0, size, *start, *stop, *step)?);
        }
        [Index::Ellipsis] => return view(x, ViewOp::Alias),
        [Index::None] => return view(x, ViewOp::Unsqueeze(0)),
        [Index::Int(i), Index::Int(j)] if x.rank() >= 2 => return select(&select(x, 0, *i, 0)?, 0, *j, 1),
        _ => {}
    }
    let p = prepare(x, items)?;
    match p.plan {
        Some(plan) => index::take_rows(&p.x, plan, &p.index, &index::INDEX),
        None if p.viewed => Ok(p.x),
        None => view(x, ViewOp::Alias),
    }
}

/// `x[items] = value`.
pub fn set(x: &Tensor, items: &[Index], value: Arg<'_>) -> Result<()> {
    // A lone False selects nothing, a lone True everything.
    match items {
        [Index::Bool(false)] => return Ok(()),
        [Index::Bool(true)] | [Index::Ellipsis] => return assign(x, value),
        _ => {}
    }
    let p = prepare(x, items)?;
    // Without a view `p.x` is one more handle of `x`, and `mutation_guard::wrap_target` may need the target's only handle.
    let viewed = p.viewed.then_some(p.x);
    let target = viewed.as_ref().unwrap_or(x);
    let Some(plan) = p.plan else { return assign(target, value) };
    let values = match value {
        Arg::Scalar(s) => pointwise::number(pointwise::assigned(s, x.dtype())?, x.dtype())?,
        // One value where a mask says is converted, as a number is, and so is a tensor without dimensions.
        Arg::Tensor(t) if t.numel() == 1 && t.dtype() != x.dtype() && masks_only(items) => {
            primitives::cast(&primitives::reshape(t, &[])?, x.dtype())?
        }
        Arg::Tensor(t) if t.rank() == 0 && x.device() == Device::CPU => {
            primitives::to_device(&primitives::cast(t, x.dtype())?, Device::CPU)?
        }
        Arg::Tensor(t) if t.rank() == 0 => primitives::cast(t, x.dtype())?,
        Arg::Tensor(t) => t.clone(),
    };
    index::index_put(WriteTarget::Same, target, plan, &p.index, &values, false)?;
    Ok(())
}

/// Whether one mask of bools is the only tensor among the items. One of uint8, an old form, converts nothing.
fn masks_only(items: &[Index]) -> bool {
    let mut tensors = items.iter().filter(|i| matches!(i, Index::Tensor(_) | Index::Bool(_)));
    matches!((tensors.next(), tensors.next()), (Some(Index::Tensor(t)), None) if t.dtype() == DType::Bool)
}

/// Writes a number or a tensor, whose leading dimensions of size 1 may exceed the target's, over all of `x`.
fn assign(x: &Tensor, value: Arg<'_>) -> Result<()> {
    match value {
        Arg::Scalar(s) => primitives::fill_(x, pointwise::assigned(s, x.dtype())?),
        Arg::Tensor(t) => {
            let (to, mut from) = (x.shape(), t.shape());
            let ones = from.iter().take_while(|n| **n == 1).count().min(from.len().saturating_sub(to.len()));
            from = Dims::from_slice(&from[ones..]);
            if from.len() > to.len() {
                return Err(Error::shape(format!(
                    "expand(rgrad.{}Tensor{{{}}}, size={}): the number of sizes provided ({}) must be greater or equal to the number of \
                     dimensions in the tensor ({})",
                    t.dtype().type_name(),
                    fmt_shape(&from),
                    fmt_shape(&to),
                    to.len(),
                    from.len()
                )));
            }
            for (d, n) in from.iter().rev().enumerate() {
                let have = to[to.len() - 1 - d];
                if *n != have && *n != 1 {
                    return Err(Error::shape(format!(
                        "The expanded size of the tensor ({have}) must match the existing size ({n}) at non-singleton dimension {}.  Target \
                         sizes: {}.  Tensor sizes: {}",
                        to.len() - 1 - d,
                        fmt_shape(&to),
                        fmt_shape(&from)
                    )));
                }
            }
            if ones > 0 { primitives::copy_(x, &primitives::reshape(t, &from)?) } else { primitives::copy_(x, t) }
        }
    }
}
