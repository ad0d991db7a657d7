//! A tensor cut into parts along a dimension: `unbind`, `split`, `chunk` and `tensor_split`. The parts of one call are outputs of one node.

use super::join;
use super::room;
use super::shape::Views;
use crate::array::{Array, JoinOrder};
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Grads, Name, NodeOp, Tensor, ViewOp, Vjp, VjpCx, view as make_view, views};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

fn wrap_some(dim: i64, shape: &[usize], name: &str) -> Result<usize> {
    if shape.is_empty() {
        return Err(Error::runtime(format!("{name} expects at least a 1-dimensional tensor")));
    }
    Ok(wrap_dim(dim, shape.len())?)
}

/// The parts of a tensor along a dimension, as one node.
#[derive(Debug, Clone)]
struct Parts {
    dim: usize,
    /// The shape of each part.
    shapes: SmallVec<[Dims; 4]>,
    dtype: DType,
    node: &'static PartsNode,
}

/// The node of an operation that cuts a tensor into parts.
#[derive(Debug)]
struct PartsNode {
    name: &'static str,
    /// The parts do not have the dimension.
    unbound: bool,
    /// All parts but the last have one size, which is the saved attribute.
    even: bool,
}

static UNBIND: PartsNode = PartsNode { name: "UnbindBackward0", unbound: true, even: true };
static SPLIT: PartsNode = PartsNode { name: "SplitBackward0", unbound: false, even: true };
static UNSAFE_SPLIT: PartsNode = PartsNode { name: "UnsafeSplitBackward0", unbound: false, even: true };
static UNSAFE_SPLIT_SIZES: PartsNode = PartsNode { name: "UnsafeSplitWithSizesBackward0", unbound: false, even: false };
static SPLIT_SIZES: PartsNode = PartsNode { name: "SplitWithSizesBackward0", unbound: false, even: false };

impl Vjp for Parts {
    fn node_name(&self) -> Name {
        self.node.name.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes: SavedAttributes = smallvec![("dim", SavedAttribute::at(self.dim))];
        if !self.node.unbound {
            let sizes: Dims = self.shapes.iter().map(|s| s[self.dim]).collect();
            let mut whole = self.shapes[0].clone();
            whole[self.dim] = sizes.iter().sum();
            attributes.push(if self.node.even {
                ("split_size", SavedAttribute::at(sizes[0]))
            } else {
                ("split_sizes", SavedAttribute::sizes(&sizes))
            });
            attributes.push(("self_sym_sizes", SavedAttribute::sizes(&whole)));
        }
        attributes
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let Some(device) = grads.iter().flatten().next().map(Tensor::device) else { return Ok(smallvec![None]) };
        let mut all = Views::new();
        for (g, shape) in grads.iter().zip(&self.shapes) {
            all.push(match g {
                Some(g) => g.clone(),
                None => Tensor::new(Array::full_on(device, shape, Scalar::Int(0), self.dtype)?),
            });
        }
        let dim = self.dim as i64;
        Ok(smallvec![Some(if self.node.unbound { join::stack(&all, dim)? } else { join::cat_in(&all, dim, JoinOrder::Parts)? })])
    }
}

fn several(t: &Tensor, ops: &[ViewOp], dim: usize, node: &'static PartsNode) -> Result<Views> {
    views(t, ops, || {
        let part = |op: &ViewOp| {
            let mut s = t.shape();
            match op {
                ViewOp::Slice { start, end, .. } => s[dim] = end - start,
                _ => {
                    s.remove(dim);
                }
            }
            s
        };
        NodeOp::Other(Arc::new(Parts { dim, shapes: ops.iter().map(part).collect(), dtype: t.dtype(), node }))
    })
}

/// The slices along `dim`, without that dimension.
pub fn unbind(t: &Tensor, dim: i64) -> Result<Views> {
    let shape = t.shape();
    if shape.is_empty() {
        return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    let d = wrap_dim(dim, shape.len())?;
    room::check_views("unbind", shape[d])?;
    let ops: SmallVec<[ViewOp; 4]> = (0..shape[d]).map(|i| ViewOp::Select(d, i)).collect();
    several(t, &ops, d, &UNBIND)
}

fn parts(t: &Tensor, dim: usize, ends: impl Iterator<Item = (usize, usize)>, node: &'static PartsNode) -> Result<Views> {
    let ops: SmallVec<[ViewOp; 4]> = ends.map(|(start, end)| ViewOp::Slice { dim, start, end, step: 1 }).collect();
    several(t, &ops, dim, node)
}

/// Parts of `size` along `dim`, the last one smaller if need be.
pub fn split(t: &Tensor, size: i64, dim: i64) -> Result<Views> {
    split_as(t, size, dim, &SPLIT)
}

/// As `split`, with parts that are no views: each has a version counter of its own, and in-place writes to it are recorded for it alone.
pub fn unsafe_split(t: &Tensor, size: i64, dim: i64) -> Result<Views> {
    Ok(separate(&split_as(t, size, dim, &UNSAFE_SPLIT)?))
}

fn separate(views: &Views) -> Views {
    views.iter().map(Tensor::unsafe_part).collect()
}

fn split_as(t: &Tensor, size: i64, dim: i64, node: &'static PartsNode) -> Result<Views> {
    let shape = t.shape();
    let d = wrap_some(dim, &shape, "split")?;
    if size < 0 {
        return Err(Error::runtime(format!("split expects split_size be non-negative, but got split_size={size}")));
    }
    let (n, size) = (shape[d], size as usize);
    if size == 0 && n != 0 {
        return Err(Error::runtime(format!("split_size can only be 0 if dimension size is 0, but got dimension size of {n}")));
    }
    let count = if n == 0 { 1 } else { n.div_ceil(size) };
    room::check_views("split", count)?;
    parts(t, d, (0..count).map(|i| (i * size, (i * size).saturating_add(size).min(n))), node)
}

/// Parts of the given sizes along `dim`, which must add up to its size.
pub fn split_sizes(t: &Tensor, sizes: &[i64], dim: i64) -> Result<Views> {
    split_sizes_as(t, sizes, dim, &SPLIT_SIZES)
}

/// As `split_sizes`, with parts that are no views.
pub fn unsafe_split_sizes(t: &Tensor, sizes: &[i64], dim: i64) -> Result<Views> {
    Ok(separate(&split_sizes_as(t, sizes, dim, &UNSAFE_SPLIT_SIZES)?))
}

fn split_sizes_as(t: &Tensor, sizes: &[i64], dim: i64, node: &'static PartsNode) -> Result<Views> {
    let shape = t.shape();
    let d = wrap_some(dim, &shape, "split")?;
    if sizes.iter().any(|s| *s < 0) {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes:?}"
        )));
    }
    let total = sizes.iter().fold(0i64, |a, s| a.saturating_add(*s));
    if total != shape[d] as i64 {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {d}), but got \
             split_sizes={sizes:?}",
            shape[d]
        )));
    }
    room::check_views("split_with_sizes", sizes.len())?;
    let mut at = 0;
    let ends = sizes.iter().map(|s| {
        let start = at;
        at += *s as usize;
        (start, at)
    });
    parts(t, d, ends, node)
}

/// At most `chunks` parts along `dim`, as equal as PyTorch makes them.
pub fn chunk(t: &Tensor, chunks: i64, dim: i64) -> Result<Views> {
    chunk_as(t, chunks, dim, [&SPLIT, &SPLIT_SIZES])
}

/// As `chunk`, with parts that are no views.
pub fn unsafe_chunk(t: &Tensor, chunks: i64, dim: i64) -> Result<Views> {
    Ok(separate(&chunk_as(t, chunks, dim, [&UNSAFE_SPLIT, &UNSAFE_SPLIT_SIZES])?))
}

fn chunk_as(t: &Tensor, chunks: i64, dim: i64, [even, empty]: [&'static PartsNode; 2]) -> Result<Views> {
    let shape = t.shape();
    let d = wrap_some(dim, &shape, "chunk")?;
    if chunks <= 0 {
        return Err(Error::runtime(format!("chunk expects `chunks` to be greater than 0, got: {chunks}")));
    }
    let n = shape[d];
    if n == 0 {
        room::check_views("chunk", usize::try_from(chunks).unwrap_or(usize::MAX))?;
        return parts(t, d, (0..chunks).map(|_| (0, 0)), empty);
    }
    split_as(t, n.div_ceil(usize::try_from(chunks).unwrap_or(usize::MAX)) as i64, d as i64, even)
}

fn tensor_split_dim(t: &Tensor, dim: i64) -> Result<(usize, usize)> {
    let shape = t.shape();
    if shape.is_empty() {
        return Err(Error::runtime("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"));
    }
    let d = wrap_dim(dim, shape.len())?;
    Ok((d, shape[d]))
}

/// `sections` parts along `dim`, the first ones larger by one where the size does not divide.
pub fn tensor_split(t: &Tensor, sections: i64, dim: i64) -> Result<Views> {
    let (d, n) = tensor_split_dim(t, dim)?;
    if sections <= 0 {
        return Err(Error::runtime(format!("number of sections must be larger than 0, got {sections}")));
    }
    let k = sections as usize;
    room::check_views("tensor_split", k)?;
    let edge = |i: usize| i * (n / k) + i.min(n % k);
    (0..k).map(|i| make_view(t, ViewOp::Slice { dim: d, start: edge(i), end: edge(i + 1), step: 1 })).collect()
}

/// Parts between the given positions along `dim`, which are clipped as Python clips slices.
pub fn tensor_split_at(t: &Tensor, indices: &[i64], dim: i64) -> Result<Views> {
    let (d, n) = tensor_split_dim(t, dim)?;
    let clip = |i: i64| (if i < 0 { i.saturating_add(n as i64) } else { i }).clamp(0, n as i64) as usize;
    let mut start = 0;
    let mut out = Views::new();
    for end in indices.iter().map(|i| clip(*i)).chain(std::iter::once(n)) {
        out.push(make_view(t, ViewOp::Slice { dim: d, start, end: end.max(start), step: 1 })?);
        start = end;
    }
    Ok(out)
}
