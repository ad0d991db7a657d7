//! The same elements in another order: flipped, turned, rolled.

use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::transforms::batching::BatchedInputs;
use crate::autograd::{Arrays, Grads, Name, Op, Outputs, Tangent, Tensor, Vjp, VjpCx, apply1, primitives};
use crate::error::{Error, Result};
use crate::layout::{Layout, wrap_dim, wrap_dims};
use smallvec::{SmallVec, smallvec};

#[derive(Debug, Clone)]
struct Flip(SmallVec<[usize; 4]>);

impl Vjp for Flip {
    fn node_name(&self) -> Name {
        "FlipBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("dims", SavedAttribute::sizes(&self.0))]
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![grads[0].as_ref().map(|g| apply1(self, &[g])).transpose()?])
    }
}

impl Op for Flip {
    fn name(&self) -> &'static str {
        "flip"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![x[0].flip(&self.0)?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(Flip(self.0.iter().map(|d| d + 1).collect()))
    }
}

/// The elements in reverse order along `dims`.
pub fn flip(t: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let mut dims = wrap_dims(dims, t.rank())?;
    if t.rank() == 0 {
        dims.clear();
    }
    apply1(&Flip(dims), &[t])
}

pub fn fliplr(t: &Tensor) -> Result<Tensor> {
    if t.rank() < 2 {
        return Err(Error::runtime("Input must be >= 2-d."));
    }
    flip(t, &[1])
}

pub fn flipud(t: &Tensor) -> Result<Tensor> {
    if t.rank() < 1 {
        return Err(Error::runtime("Input must be >= 1-d."));
    }
    flip(t, &[0])
}

/// Quarter turns in the plane of two dimensions.
#[derive(Debug, Clone)]
struct Rot90 {
    /// 0 to 3, from dimension `a` towards `b`.
    turns: i64,
    a: usize,
    b: usize,
}

impl Vjp for Rot90 {
    fn node_name(&self) -> Name {
        "Rot90Backward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![("k", SavedAttribute::Int(self.turns)), ("dims", SavedAttribute::sizes(&[self.a, self.b]))]
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let back = Rot90 { turns: (4 - self.turns) % 4, ..*self };
        Ok(smallvec![grads[0].as_ref().map(|g| apply1(&back, &[g])).transpose()?])
    }
}

impl Op for Rot90 {
    fn name(&self) -> &'static str {
        "rot90"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let (a, b) = (self.a, self.b);
        let turned = |flipped: Array| flipped.with_layout(flipped.layout().transpose(a, b));
        Ok(smallvec![match self.turns {
            0 => x[0].contiguous_copy()?,
            1 => turned(x[0].flip(&[b])?)?,
            2 => x[0].flip(&[a, b])?,
            _ => turned(x[0].flip(&[a])?)?,
        }])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(Rot90 { turns: self.turns, a: self.a + 1, b: self.b + 1 })
    }
}

/// A quarter turn in the plane of two dimensions, `k` times, from the first towards the second.
pub fn rot90(t: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
    if dims.len() != 2 {
        return Err(Error::runtime(format!("expected total rotation dims == 2, but got dims = {}", dims.len())));
    }
    if t.rank() < 2 {
        return Err(Error::runtime(format!("expected total dims >= 2, but got total dims = {}", t.rank())));
    }
    let (a, b) = (wrap_dim(dims[0], t.rank())?, wrap_dim(dims[1], t.rank())?);
    if a == b {
        return Err(Error::runtime(format!("expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")));
    }
    apply1(&Rot90 { turns: k.rem_euclid(4), a, b }, &[t])
}

#[derive(Debug, Clone)]
struct Roll {
    shifts: SmallVec<[i64; 4]>,
    /// None: through the flattened tensor.
    dims: Option<SmallVec<[usize; 4]>>,
}

impl Vjp for Roll {
    fn node_name(&self) -> Name {
        "RollBackward0".into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        smallvec![
            ("shifts", SavedAttribute::Ints(self.shifts.clone())),
            ("dims", SavedAttribute::sizes(self.dims.as_deref().unwrap_or_default()))
        ]
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let back = Roll { shifts: self.shifts.iter().map(|s| s.wrapping_neg()).collect(), dims: self.dims.clone() };
        Ok(smallvec![grads[0].as_ref().map(|g| apply1(&back, &[g])).transpose()?])
    }
}

impl Op for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![match &self.dims {
            Some(dims) => x[0].roll(&self.shifts, dims)?,
            None => {
                let x = x[0].contiguous()?;
                let flat = x.with_layout(Layout::from_parts(smallvec![x.numel()], smallvec![1], x.layout().offset())?)?;
                flat.roll(&self.shifts, &[0])?.with_layout(Layout::contiguous(x.shape()))?
            }
        }])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn batch(&self, batch: &BatchedInputs<'_>) -> Option<Result<Outputs>> {
        let Some(dims) = &self.dims else {
            let one = || {
                let x = &batch.inputs[0];
                let flat = primitives::reshape(&x.tensor, &[batch.size, x.shape().iter().product()])?;
                let rolled = apply1(&Roll { shifts: self.shifts.clone(), dims: Some(smallvec![1]) }, &[&flat])?;
                Ok(smallvec![primitives::reshape(&rolled, &x.tensor.shape())?])
            };
            return Some(one());
        };
        let dims = dims.iter().map(|d| d + 1).collect();
        Some(batch.shifted(&Roll { shifts: self.shifts.clone(), dims: Some(dims) }))
    }
}

/// The elements moved along `dims` by `shifts`; without dims, through the flattened tensor.
pub fn roll(t: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
    if shifts.is_empty() {
        return Err(Error::runtime("`shifts` required"));
    }
    if dims.is_empty() && shifts.len() == 1 {
        return apply1(&Roll { shifts: SmallVec::from_slice(shifts), dims: None }, &[t]);
    }
    if shifts.len() != dims.len() {
        return Err(Error::runtime(format!("shifts and dimensions must align. shifts: {}, dims:{}", shifts.len(), dims.len())));
    }
    if t.rank() == 0 {
        return Err(Error::index(format!("Dimension specified as {} but tensor has no dimensions", dims[0])));
    }
    let dims = dims.iter().map(|d| Ok(wrap_dim(*d, t.rank())?)).collect::<Result<_>>()?;
    apply1(&Roll { shifts: SmallVec::from_slice(shifts), dims: Some(dims) }, &[t])
}
