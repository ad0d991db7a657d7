//! Results that depend on a tensor with a derivative of 0: what is recorded for derivatives of piecewise linear operations.

use crate::array::Array;
use crate::autograd::dispatch::apply::apply1;
use crate::autograd::dispatch::mode;
use crate::autograd::dispatch::op::{Arrays, Op};
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::vjp::{Name, Vjp, VjpCx};
use crate::autograd::primitives::spread;
use crate::autograd::tensor::Tensor;
use crate::autograd::transforms::forward_mode::Tangent;
use crate::error::Result;
use crate::layout::{Scalar, broadcast};
use smallvec::smallvec;

/// The first input. Its derivative by the second one is 0.
#[derive(Debug, Clone)]
struct Flat(Name);

impl Vjp for Flat {
    fn node_name(&self) -> Name {
        self.0.clone()
    }

    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let mut grads: Grads = smallvec![cx.needs(0).then(|| g.clone()), None];
        if cx.needs(1) {
            grads[1] = Some(spread(&Tensor::new(Array::scalar(Scalar::Float(0.0), g.dtype())?), g)?);
        }
        Ok(grads)
    }
}

impl Op for Flat {
    fn name(&self) -> &'static str {
        "flat"
    }

    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let shape = broadcast(x[0].shape(), x[1].shape())?;
        Ok(smallvec![if shape[..] == *x[0].shape() { x[0].clone() } else { x[0].with_layout(x[0].layout().expand(&shape)?)? }])
    }

    fn accepts_pending(&self) -> bool {
        true
    }

    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }

    fn is_elementwise(&self) -> bool {
        true
    }
}

/// The derivative `made`, which nobody else holds, of an operation whose second derivative is 0 wherever it has one: if it has no history
/// although it depends on the saved tensor `read`, it gets a node, so that differentiating it again gives zeros and no error. `read` is
/// unpacked only if that may be.
pub fn with_zero_second(made: Tensor, read: impl FnOnce() -> Result<Tensor>, name: impl FnOnce() -> Name) -> Result<Tensor> {
    if !mode::is_grad_enabled() || made.requires_grad() {
        return Ok(made);
    }
    let read = read()?;
    if !read.requires_grad() || made.shape() != read.shape() {
        return Ok(made);
    }
    apply1(&Flat(name()), &[&made, &read])
}
