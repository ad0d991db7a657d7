//! Triangles of matrices and diagonals: `tril`, `triu`, `diag`, `diag_embed` and `trace`.

use crate::array::Array;
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::{BatchedInputs, with_batch};
use crate::autograd::{
    Arrays, Grads, Name, OldValue, Op, Outputs, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply_inplace, apply1, apply1_growing, primitives,
    view,
};
use crate::error::{Error, Result};
use crate::layout::{Dims, wrap_dim};
use crate::ops::index::WriteTarget;
use crate::ops::shape;
use smallvec::smallvec;

#[derive(Debug, Clone)]
struct Triangle {
    diagonal: i64,
    upper: bool,
}

impl Vjp for Triangle {
    fn node_name(&self) -> Name {
        if self.upper { "TriuBackward0".into() } else { "TrilBackward0".into() }
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("diagonal", SavedAttribute::Int(self.diagonal))]
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![grads[0].as_ref().map(|g| apply1(self, &[g])).transpose()?])
    }
}

impl Op for Triangle {
    fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].empty_beside(x[0].shape(), x[0].dtype())?;
        out.triangle_from(x[0], self.diagonal, self.upper)?;
        Ok(smallvec![out])
    }
    fn forward_into(&self, out: &Array, x: &[&Array]) -> Result<()> {
        out.triangle_from(x[0], self.diagonal, self.upper)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(self.clone())
    }
}

/// The upper (or lower) triangle of each matrix, zero elsewhere.
pub fn triangle(place: WriteTarget, t: &Tensor, diagonal: i64, upper: bool) -> Result<Tensor> {
    let op = Triangle { diagonal, upper };
    if t.rank() < 2 {
        return Err(Error::runtime(format!("{}: input tensor must have at least 2 dimensions", op.name())));
    }
    match place {
        WriteTarget::New => apply1(&op, &[t]),
        WriteTarget::Same => {
            apply_inplace(&op, if upper { "triu_" } else { "tril_" }, &[t], OldValue::Read)?;
            Ok(t.clone())
        }
    }
}

#[derive(Debug, Clone)]
struct DiagEmbed {
    shape: Dims,
    offset: i64,
    dim1: usize,
    dim2: usize,
}

impl Vjp for DiagEmbed {
    fn node_name(&self) -> Name {
        "DiagEmbedBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("offset", SavedAttribute::Int(self.offset)),
            ("dim1", SavedAttribute::at(self.dim1)),
            ("dim2", SavedAttribute::at(self.dim2))
        ]
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let op = ViewOp::Diagonal { offset: self.offset, dim1: self.dim1, dim2: self.dim2 };
        Ok(smallvec![grads[0].as_ref().map(|g| view(g, op)).transpose()?])
    }
}

impl Op for DiagEmbed {
    fn name(&self) -> &'static str {
        "diag_embed"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![Array::diag_embed(x[0], &self.shape, self.offset, self.dim1, self.dim2)?])
    }
    fn work(&self, _x: &[&Array]) -> usize {
        self.shape.iter().fold(1, |n, d| n.saturating_mul(*d))
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(DiagEmbed { shape: with_batch(batch, &self.shape), offset: self.offset, dim1: self.dim1 + 1, dim2: self.dim2 + 1 })
    }
}

/// Matrices with the last dimension of `t` on a diagonal, zero elsewhere.
pub fn diag_embed(t: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let from = t.shape();
    let rank = from.len() + 1;
    let (dim1, dim2) = (wrap_dim(dim1, rank)?, wrap_dim(dim2, rank)?);
    if dim1 == dim2 {
        return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    let Some(&last) = from.last() else {
        return Err(Error::index("Dimension out of range (expected to be in range of [-1, 0], but got -1): diag_embed needs a dimension"));
    };
    let n = usize::try_from(offset.unsigned_abs())
        .ok()
        .and_then(|o| o.checked_add(last))
        .ok_or_else(|| Error::runtime("diag_embed: the sizes overflow"))?;
    let mut rest = from[..from.len() - 1].iter();
    let shape: Dims = (0..rank).map(|d| if d == dim1 || d == dim2 { n } else { *rest.next().unwrap_or(&1) }).collect();
    apply1_growing(&DiagEmbed { shape, offset, dim1, dim2 }, &[t])
}

/// A square matrix from a vector, or a copy of a matrix's diagonal.
pub fn diag(t: &Tensor, offset: i64) -> Result<Tensor> {
    match t.rank() {
        1 => diag_embed(t, offset, 0, 1),
        2 => primitives::clone_as(&shape::diagonal(t, offset, 0, 1)?, "DiagonalBackward0_copy"),
        n => Err(Error::runtime(format!("diag(): Supports 1D or 2D tensors. Got {n}D"))),
    }
}

#[derive(Debug, Clone)]
struct Trace {
    shape: Dims,
}

const MAIN_DIAGONAL: ViewOp = ViewOp::Diagonal { offset: 0, dim1: 0, dim2: 1 };

impl Vjp for Trace {
    fn node_name(&self) -> Name {
        "TraceBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self_sym_sizes", SavedAttribute::sizes(&self.shape))]
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let n = self.shape[0].min(self.shape[1]);
        Ok(smallvec![Some(primitives::unview(&shape::expand_to(g, &[n])?, &MAIN_DIAGONAL, &self.shape, None)?)])
    }
}

impl Op for Trace {
    fn name(&self) -> &'static str {
        "trace"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![MAIN_DIAGONAL.apply_to(x[0])?.sum(&[true], false)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let one = || {
            let along = view(&batch.batched(0)?, ViewOp::Diagonal { offset: 0, dim1: 1, dim2: 2 })?;
            Ok(smallvec![super::reduce::sum(&along, Some(&[1]), false, None)?])
        };
        Some(one())
    }
}

/// The sum of a matrix's diagonal.
pub fn trace(t: &Tensor) -> Result<Tensor> {
    let cast = autocast::widen([t])?;
    let [t] = cast.of([t]);
    if t.rank() != 2 {
        return Err(Error::runtime(format!("trace: expected a matrix, but got tensor with dim {}", t.rank())));
    }
    apply1(&Trace { shape: t.shape() }, &[t])
}
