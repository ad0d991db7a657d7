//! `.grad` of a tensor: what may be assigned to it, and the dtype that gradients of a leaf have (`grad_dtype`).

use crate::autograd::graph::node::{Edge, Node, NodeOp, OutMeta};
use crate::autograd::primitives;
use crate::autograd::tensor::Tensor;
use crate::error::{Error, Result};
use crate::layout::DType;
use std::sync::atomic::{AtomicBool, Ordering};

/// The dtype of a leaf's gradients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GradDtype {
    /// The dtype of the leaf.
    #[default]
    Own,
    /// Whatever arrives.
    Any,
    Fixed(DType),
}

/// Whether a leaf has had a `grad_dtype` other than its own. Until then nothing asks leaves for theirs.
static USED: AtomicBool = AtomicBool::new(false);

#[inline]
pub(in crate::autograd) fn is_grad_dtype_used() -> bool {
    USED.load(Ordering::Relaxed)
}

/// The dtype of gradients at output `nr` of a node; None where any is taken.
pub(in crate::autograd) fn dtype_at(node: &Node, nr: usize) -> Option<DType> {
    let own = node.outs()[nr].dtype;
    match node.op() {
        NodeOp::Accumulate(leaf) if is_grad_dtype_used() => match leaf.meta(|m| m.map(|m| m.grad_dtype)) {
            Some(GradDtype::Any) => None,
            Some(GradDtype::Fixed(d)) => Some(d),
            _ => Some(own),
        },
        _ => Some(own),
    }
}

/// `primitives::fit` for the gradient along an edge.
#[inline]
pub(in crate::autograd) fn fit_edge(g: Tensor, e: &Edge) -> Result<Tensor> {
    let meta = &e.node.outs()[e.nr as usize];
    if !is_grad_dtype_used() {
        return primitives::fit(g, meta);
    }
    let dtype = dtype_at(&e.node, e.nr as usize).unwrap_or_else(|| g.dtype());
    primitives::fit(g, &OutMeta { dtype, ..meta.clone() })
}

/// `fit_edge` for a complex gradient that a custom Function has given: of a real input it would drop the imaginary part.
pub(in crate::autograd) fn fit_complex(g: Tensor, e: &Edge) -> Result<Tensor> {
    if e.node.outs()[e.nr as usize].dtype.is_complex() {
        return fit_edge(g, e);
    }
    Err(Error::runtime(
        "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false: a real input has a real \
         gradient; return its .real",
    ))
}

impl Tensor {
    pub fn grad(&self) -> Option<Tensor> {
        self.meta(|m| m.and_then(|m| m.grad.clone()))
    }

    /// Sets or clears `.grad`. Shape and device must be those of this tensor, the dtype its `grad_dtype`.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(g) = &grad {
            self.check_grad(g)?;
        }
        let old = {
            if grad.is_none() && self.read().meta.is_none() {
                return Ok(());
            }
            self.meta_mut(|m| std::mem::replace(&mut m.grad, grad))
        };
        // Outside the lock: it may own foreign objects.
        drop(old);
        Ok(())
    }

    fn check_grad(&self, g: &Tensor) -> Result<()> {
        if g.same(self) {
            return Err(Error::runtime("can't assign Variable as its own grad"));
        }
        let expected = match self.meta(|m| m.map(|m| m.grad_dtype).unwrap_or_default()) {
            GradDtype::Own => Some(self.dtype()),
            GradDtype::Any => None,
            GradDtype::Fixed(d) => Some(d),
        };
        if let Some(expected) = expected
            && g.dtype() != expected
        {
            return Err(Error::runtime(format!(
                "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the tensor's \
                 grad_dtype, which is the tensor's dtype by default: convert it with .to({}), or set grad_dtype first",
                g.dtype().row().c_name,
                expected.type_name(),
                expected.name()
            )));
        }
        if g.device() != self.device() {
            return Err(Error::runtime(format!(
                "attempting to assign a gradient with device type '{}' to a tensor with device type '{}'. Please ensure that the gradient and \
                 the tensor are on the same device",
                g.device(),
                self.device()
            )));
        }
        if g.shape() != self.shape() {
            return Err(Error::runtime(format!(
                "attempting to assign a gradient of size '{:?}' to a tensor of size '{:?}'. Please ensure that the gradient and the tensor \
                 are the same size",
                g.shape(),
                self.shape()
            )));
        }
        Ok(())
    }

    /// The dtype that gradients of this leaf have; None if they keep theirs.
    pub fn grad_dtype(&self) -> Result<Option<DType>> {
        if !self.is_leaf() {
            return Err(Error::runtime("grad_dtype can only be accessed on leaf tensors."));
        }
        Ok(match self.meta(|m| m.map(|m| m.grad_dtype).unwrap_or_default()) {
            GradDtype::Own => Some(self.dtype()),
            GradDtype::Any => None,
            GradDtype::Fixed(d) => Some(d),
        })
    }

    /// Sets the dtype to which gradients of this leaf are converted before hooks and `.grad` see them; None leaves them as they arrive.
    pub fn set_grad_dtype(&self, dtype: Option<DType>) -> Result<()> {
        if !self.is_leaf() {
            return Err(Error::runtime("grad_dtype can only be set on leaf tensors."));
        }
        if let (Some(d), Some(g)) = (dtype, self.grad())
            && g.dtype() != d
        {
            return Err(Error::runtime(format!(
                "Cannot set grad_dtype to '{}' because there is already a gradient with dtype '{}'. Set .grad to None first, or choose the \
                 dtype of the gradient",
                d.type_name(),
                g.dtype().row().c_name
            )));
        }
        let new = match dtype {
            None => GradDtype::Any,
            Some(d) if d == self.dtype() => GradDtype::Own,
            Some(d) => GradDtype::Fixed(d),
        };
        if new != GradDtype::Own {
            USED.store(true, Ordering::Relaxed);
        }
        self.meta_mut(|m| m.grad_dtype = new);
        Ok(())
    }
}
