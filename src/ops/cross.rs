//! Cross products of vectors of three elements.

use super::declared::declare;
use super::matmul::product_saves;
use super::shape::{broadcast_tensors, select};
use super::{join, pointwise as pw};
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::primitives::conj;
use crate::autograd::{Arrays, Grads, Name, Op, Saves, Tangent, Tensor, Vjp, VjpCx, apply1};
use crate::error::{Error, Result};
use crate::layout::{DType, wrap_dim};
use smallvec::smallvec;

/// Of two tensors of one shape.
#[derive(Debug, Clone, Copy)]
struct Cross {
    /// From the end, so that dimensions in front do not change it.
    dim: i64,
}

impl Vjp for Cross {
    fn node_name(&self) -> Name {
        "LinalgCrossBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("self", SavedAttribute::Input(0)), ("other", SavedAttribute::Input(1))]
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let a = if cx.needs(0) { Some(apply1(self, &[&conj(&cx.input(1)?)?, g])?) } else { None };
        let b = if cx.needs(1) { Some(apply1(self, &[g, &conj(&cx.input(0)?)?])?) } else { None };
        Ok(smallvec![a, b])
    }
}

impl Op for Cross {
    fn name(&self) -> &'static str {
        "linalg_cross"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let [a, b] = [x[0], x[1]].map(|t| Tensor::new(t.clone()));
        let part = |t: &Tensor, i: i64| select(t, self.dim, i % 3);
        let one = |i: i64| {
            let (left, right) = (pw::mul(&part(&a, i + 1)?, &part(&b, i + 2)?)?, pw::mul(&part(&a, i + 2)?, &part(&b, i + 1)?)?);
            pw::sub(&left, &right)
        };
        Ok(smallvec![join::stack(&[one(0)?, one(1)?, one(2)?], self.dim)?.array()?])
    }
    fn is_composed(&self) -> bool {
        true
    }
    fn saves(&self, needs: &[bool]) -> Saves {
        product_saves(needs, 0)
    }
    fn tangent(&self) -> Tangent {
        Tangent::Multilinear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(*self)
    }
}

/// The cross products of vectors along `dim`, over tensors that are broadcast.
pub fn cross(a: &Tensor, b: &Tensor, dim: i64) -> Result<Tensor> {
    let (s, t) = (a.shape(), b.shape());
    if s.len() != t.len() {
        return Err(Error::runtime(format!(
            "linalg.cross: inputs must have the same number of dimensions, got {} and {}",
            s.len(),
            t.len()
        )));
    }
    let (d, e) = (wrap_dim(dim, s.len())?, wrap_dim(dim, t.len())?);
    let sizes = [s.get(d), t.get(e)].map(|n| n.copied().unwrap_or(1));
    if sizes != [3, 3] {
        return Err(Error::runtime(format!("linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}", sizes[0], sizes[1])));
    }
    if a.dtype() != b.dtype() {
        return Err(Error::runtime(format!("expected scalar type {} but found {}", a.dtype().type_name(), b.dtype().type_name())));
    }
    if a.dtype() == DType::Bool {
        return Err(Error::not_implemented("\"cross\" not implemented for 'Bool'"));
    }
    let cross = Cross { dim: d as i64 - s.len() as i64 };
    if s == t {
        return apply1(&cross, &[a, b]);
    }
    let both = broadcast_tensors(&[a.clone(), b.clone()])?;
    apply1(&cross, &[&both[0], &both[1]])
}

declare! {
    /// The cross products of vectors of three elements along `dim`; the tensors are broadcast.
    fn [elsewhere] linalg_cross(input: &Tensor, other: &Tensor; dim: i64 = -1) -> Tensor = cross;
}
