//! Gradients on their way through a pass.

use crate::array::{Array, Numbers};
use crate::autograd::primitives::{self, ADD};
use crate::autograd::tensor::{Tensor, Value};
use crate::error::Result;
use crate::layout::Scalar;

/// A gradient. Bare as long as nobody looks at it: no hook, no history, no operation that wants tensors.
pub(in crate::autograd) enum Gradient {
    Array(Array),
    Tensor(Tensor),
}

impl Gradient {
    /// Runs `f` on the array; None if a level lies above it or a tangent goes with it.
    #[inline]
    pub fn with_array<R>(&self, f: impl FnOnce(&Array) -> Option<R>) -> Option<R> {
        match self {
            Gradient::Array(a) => f(a),
            Gradient::Tensor(t) => {
                // A copy of the handle: `f` locks nodes.
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

/// What has arrived at one output of a node, and whether this pass made it itself (then it may be added to in place).
pub(in crate::autograd) struct InputBuffer {
    pub grad: Gradient,
    pub own: bool,
}

impl InputBuffer {
    /// Adds a gradient. The second is added out of place, later ones in place if nobody else has seen the sum; `recorded` sums have a
    /// history themselves. A bare gradient was seen by nobody.
    pub fn accumulate(self, grad: Gradient, recorded: bool) -> Result<InputBuffer> {
        const NONE: [Scalar; 3] = [Scalar::Int(0); 3];
        let (sum, grad) = match (self.grad, grad) {
            (Gradient::Array(sum), Gradient::Array(grad)) => {
                if sum.storage().is_sole_owner() && sum.pointwise_direct_into(ADD, &[&sum, &grad], &Numbers::NONE, &NONE) {
                    return Ok(InputBuffer { grad: Gradient::Array(sum), own: true });
                }
                if let Some(sum) = Array::pointwise_direct(ADD, sum.dtype(), &[&sum, &grad], &Numbers::NONE, &NONE) {
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

/// The sums of a pass. Few are alive at once, so that their places are used again and again.
#[derive(Default)]
pub(in crate::autograd) struct InputBuffers {
    buffers: Vec<Option<InputBuffer>>,
    free: Vec<u32>,
}

/// No place: nothing has arrived.
pub(in crate::autograd) const NO_INDEX: u32 = u32::MAX;

impl InputBuffers {
    /// Adds a gradient to the sum at `place`, which is given one if it has none.
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
        let sum = match at.take() {
            None => InputBuffer { grad, own },
            Some(sum) => sum.accumulate(grad, recorded)?,
        };
        *at = Some(sum);
        Ok(())
    }

    /// The sum at `place`; None where nothing has arrived.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&Gradient> {
        self.buffers.get(index as usize)?.as_ref().map(|s| &s.grad)
    }

    /// Takes the sum at `place` out; None where nothing has arrived.
    #[inline]
    pub fn take(&mut self, index: u32) -> Option<Gradient> {
        if index == NO_INDEX {
            return None;
        }
        self.free.push(index);
        self.buffers[index as usize].take().map(|s| s.grad)
    }
}
