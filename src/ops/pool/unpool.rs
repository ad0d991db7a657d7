//! The partial inverse of max pooling: elements at their positions, among zeros.

use super::max::chosen;
use super::{is_host, no_kernel};
use crate::array::{Array, Write};
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Name, Op, Saves, Tangent, Tensor, Vjp, VjpCx, apply1_growing};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar, fmt_shape};
use crate::ops::index::first_of;
use smallvec::smallvec;

/// Of elements and their positions in a flattened plane: planes of this size.
#[derive(Debug, Clone)]
struct MaxUnpool {
    size: Dims,
}

impl Vjp for MaxUnpool {
    fn node_name(&self) -> Name {
        if self.size.len() == 3 { "MaxUnpool3DBackward0" } else { "MaxUnpool2DBackward0" }.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("indices", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(first_of(Some(chosen(g, &cx.input(1)?, self.size.len())?), 2))
    }
}

impl Op for MaxUnpool {
    fn name(&self) -> &'static str {
        if self.size.len() == 3 { "max_unpool3d" } else { "max_unpool2d" }
    }
    fn forward(&self, ins: &[&Array]) -> Result<Arrays> {
        let (x, at) = (ins[0].contiguous()?, ins[1].contiguous()?);
        let (lead, own) = x.shape().split_at(x.rank() - self.size.len());
        let (planes, plane): (usize, usize) = (lead.iter().product(), self.size.iter().product());
        let shape: Dims = lead.iter().chain(&self.size).copied().collect();
        let to = x.full_beside(&shape, Scalar::Int(0), x.dtype())?;
        let flat = |a: &Array, n: usize| a.with_layout(Layout::contiguous(&[planes, n]));
        let n = own.iter().product();
        if planes * n > 0
            && let Err(e) = flat(&to, plane)?.scatter_into(1, &flat(&at, n)?, &flat(&x, n)?, Write::Set)
        {
            let is_bad = |i: &i64| *i as u64 >= plane as u64;
            let bad = if is_host(&at) { at.elements::<i64>()?.iter().find(is_bad) } else { None };
            let size = self.size.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
            return Err(bad.map_or(e, |i| Error::runtime(format!("Found an invalid max index: {i} (output volumes are of size {size})"))));
        }
        Ok(smallvec![to])
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        let x = inputs[0].shape();
        x[..x.len() - self.size.len()].iter().chain(&self.size).fold(1usize, |n, s| n.saturating_mul(*s))
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(1)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
}

/// Zeros of size `output` over the last `n` dimensions, with the elements of `x` at their positions. PyTorch takes (and only checks) stride
/// and padding of volumes.
pub fn max_unpool(n: usize, x: &Tensor, indices: &Tensor, output: &[i64], volume: Option<[&[i64]; 2]>) -> Result<Tensor> {
    let cast = autocast::widen([x])?;
    let [x] = cast.of([x]);
    let words = if n == 3 { ("three", "depth, height, width") } else { ("two", "height, width") };
    if output.len() != n {
        return Err(Error::runtime(format!(
            "There should be exactly {} elements ({}) in output_size, but got {} elements.",
            words.0,
            words.1,
            output.len()
        )));
    }
    if indices.dtype() != DType::I64 {
        return Err(Error::runtime(format!("elements in indices should be type int64 but got: {}", indices.dtype().type_name())));
    }
    let shape = x.shape();
    let rank = shape.len();
    if rank != n + 1 && rank != n + 2 {
        return Err(Error::runtime(format!(
            "Input to max_unpooling{n}d should be a {}d or {}d Tensor, but got a tensor with {rank} dimensions.",
            n + 1,
            n + 2
        )));
    }
    if shape != indices.shape() {
        return Err(Error::runtime(format!(
            "Expected shape of indices to be same as that of the input tensor ({}) but got indices tensor with shape: {}",
            fmt_shape(&shape),
            fmt_shape(&indices.shape())
        )));
    }
    if let Some(given) = volume {
        for (name, of) in ["stride", "padding"].into_iter().zip(given) {
            if of.len() != 3 {
                return Err(Error::runtime(format!(
                    "There should be exactly three elements (depth, height, width) in {name}, but got: {} elements.",
                    of.len()
                )));
            }
        }
        if given[0].iter().any(|s| *s <= 0) {
            return Err(Error::runtime(format!("strides should be greater than zero, but got stride: {:?}", given[0])));
        }
    }
    if let Some(at) = (1..rank).find(|d| shape[*d] == 0) {
        return Err(Error::runtime(format!(
            "max_unpooling{n}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got {} with dimension \
             {at} being empty.",
            fmt_shape(&shape)
        )));
    }
    if !x.dtype().is_float() {
        return Err(no_kernel(if n == 3 { "max_unpool3d" } else { "max_unpool2d" }, x.dtype()));
    }
    let size = crate::ops::create::sizes(output)?;
    apply1_growing(&MaxUnpool { size }, &[x, indices])
}
