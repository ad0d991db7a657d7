//! Activations that are more than a row: their operands have other shapes.

use super::declared::declare;
use super::pointwise as pw;
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, primitives};
use crate::error::{Error, Result};
use crate::layout::Dims;
use crate::rows::RowId;
use smallvec::smallvec;

/// `x` where it is positive, else `weight * x`: with one weight for all, or one for each channel, which is dimension 1.
pub fn prelu(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let cast = autocast::lower([x, weight])?;
    let [x, weight] = cast.of([x, weight]);
    if x.dtype() != weight.dtype() {
        return Err(Error::runtime(format!(
            "prelu: Type promoting not supported. Got {} and {}: convert one of them",
            x.dtype().type_name(),
            weight.dtype().type_name()
        )));
    }
    if weight.rank() > 1 {
        return Err(Error::runtime(format!("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}", weight.rank())));
    }
    let n = weight.numel();
    if n == 1 {
        let one = primitives::reshape(weight, &vec![1; x.rank()])?;
        return pw::call(RowId::Prelu, &[x.into(), (&one).into()], &[]);
    }
    let rank = x.rank();
    if rank == 0 {
        return Err(Error::runtime("Not allow zero-dim input tensor: prelu with several weights takes an input with channels"));
    }
    let channels = if rank > 1 { x.shape()[1] } else { 1 };
    if channels != n {
        return Err(Error::runtime(format!(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = {n} and channel size = {channels}."
        )));
    }
    let mut shape: Dims = smallvec![1; rank];
    shape[1] = n;
    let along = primitives::reshape(weight, &shape)?;
    pw::call(RowId::Prelu, &[x.into(), (&along).into()], &[])
}

declare! {
    /// The input where it is positive, else the input times a weight: one for all, or one for each channel.
    fn [no_out] prelu(input: &Tensor, weight: &Tensor) -> Tensor = prelu;
}
