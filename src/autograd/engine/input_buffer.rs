//! Input buffers: the sums of the gradients that have arrived at nodes during a pass.

use crate::array::{Array, Numbers};
use crate::autograd::primitives::{self, ADD};
use crate::autograd::tensor::{Tensor, Value};
use crate::error::Result;
use crate::layout::Scalar;

/// A gradient: a plain array as long as no hook, history or tensor operation needs a tensor.
pub(in crate::autograd) enum Gradient {
    Array(Array),
    Tensor(Tensor),
}

impl Gradient {
    /// Runs `f` on the array; None for a tensor of a transform level or with a tangent.
    #[inline]
    pub fn with_array<R>(&self, f: impl FnOnce(&Array) -> Option<R>) -> Option<R> {
        match self {
            Gradient::Array(a) => f(a),
            Gradient::Tensor(t) => {
                // `f` locks nodes, so the tensor must not stay locked.
                let array = {
                    let core = t.read();
                    match &core.value {
                        Value::Array(a) if !core.has_tangent() => a.clone(),
                        _ => return None,
                    }
                };
                f(&array)
            }
        }
    }

    #[inline]
    pub fn into_tensor(self) -> Tensor {
        match self {
            Gradient::Array(a) => Tensor::new(a),
            Gradient::Tensor(t) => t,
        }
    }
}

const NO_PARAMS: [Scalar; 3] = [Scalar::Int(0); 3];

/// The sum at one output of a node, and whether this pass allocated it (then it may be added to in place).
pub(in crate::autograd) struct InputBuffer {
    pub grad: Gradient,
    pub own: bool,
}

impl InputBuffer {
    /// Adds a gradient. The second one is added out of place, later ones in place if nothing else holds the sum; out of place if `recorded`,
    /// since then sums have a history.
    fn accumulate(self, grad: Gradient, recorded: bool) -> Result<InputBuffer> {
        let (sum, grad) = match (self.grad, grad) {
            (Gradient::Array(sum), Gradient::Array(grad)) => {
                if let Some(sum) = Array::pointwise_direct(ADD, sum.dtype(), &[&sum, &grad], &Numbers::NONE, &NO_PARAMS) {
                    return Ok(InputBuffer { grad: Gradient::Array(sum), own: true });
                }
                (Tensor::new(sum), Tensor::new(grad))
            }
            (sum, grad) => (sum.into_tensor(), grad.into_tensor()),
        };
        if self.own && !recorded && sum.holders() == 1 && sum.is_bare() && grad.is_bare() {
            primitives::add_into(&sum, &grad)?;
            return Ok(InputBuffer { grad: Gradient::Tensor(sum), own: true });
        }
        Ok(InputBuffer { grad: Gradient::Tensor(primitives::add(&sum, &grad)?), own: true })
    }
}

/// The input buffers of a pass. Few are in use at a time, so their indices are reused.
#[derive(Default)]
pub(in crate::autograd) struct InputBuffers {
    buffers: Vec<Option<InputBuffer>>,
    free: Vec<u32>,
}

/// The index of no buffer: no gradient has arrived.
pub(in crate::autograd) const NO_INDEX: u32 = u32::MAX;

impl InputBuffers {
    /// Adds a gradient to the buffer at `index`, and allocates one if there is none yet.
    #[inline]
    pub fn add(&mut self, index: &mut u32, grad: Gradient, own: bool, recorded: bool) -> Result<()> {
        if *index == NO_INDEX {
            *index = self.free.pop().unwrap_or_else(|| {
                self.buffers.push(None);
                self.buffers.len() as u32 - 1
            });
            self.buffers[*index as usize] = Some(InputBuffer { grad, own });
            return Ok(());
        }
        let at = &mut self.buffers[*index as usize];
        if let (Some(InputBuffer { grad: Gradient::Array(sum), own }), Gradient::Array(grad)) = (&mut *at, &grad)
            && sum.storage().is_sole_owner()
            && sum.pointwise_direct_into(ADD, &[sum, grad], &Numbers::NONE, &NO_PARAMS)
        {
            *own = true;
            return Ok(());
        }
        let sum = match at.take() {
            None => InputBuffer { grad, own },
            Some(sum) => sum.accumulate(grad, recorded)?,
        };
        *at = Some(sum);
        Ok(())
    }

    /// The sum at `index`; None where nothing has arrived.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&Gradient> {
        self.buffers.get(index as usize)?.as_ref().map(|s| &s.grad)
    }

    /// Takes the sum at `index` out; None where nothing has arrived.
    #[inline]
    pub fn take(&mut self, index: u32) -> Option<Gradient> {
        if index == NO_INDEX {
            return None;
        }
        self.free.push(index);
        self.buffers[index as usize].take().map(|s| s.grad)
    }
}
