//! What a tensor holds: its value, its history, and fields that few tensors have.

use crate::array::{Array, Version};
use crate::autograd::diagnostics::missing_gradient::PathEnds;
use crate::autograd::engine::hooks::LeafHooks;
use crate::autograd::graph::node::{Edge, Node};
use crate::autograd::graph::view::ViewInfo;
use crate::autograd::tensor::grad::GradDtype;
use crate::autograd::tensor::{LazyArray, Tensor};
use crate::autograd::transforms::level::WrappedTensor;
use crate::layout::DType;
use std::sync::{Arc, Weak};

/// An array, one whose elements are read conjugated or negated, or above level 0 a tensor of the next lower level (see "Note: levels" in `transforms/level.rs`).
#[derive(Clone, Debug)]
pub enum Value {
    Array(Array),
    Lazy(Box<LazyArray>),
    Wrapped(Box<WrappedTensor>),
}

impl Value {
    /// The array at the bottom of all levels, as it lies in memory.
    #[inline]
    pub fn bottom(&self) -> Array {
        if let Value::Array(a) = self { a.clone() } else { self.beneath() }
    }

    /// As `bottom`, where an array of its own is the rare case.
    #[cold]
    pub(crate) fn beneath(&self) -> Array {
        match self {
            Value::Array(a) => a.clone(),
            Value::Lazy(l) => l.array.clone(),
            Value::Wrapped(l) => l.bottom(),
        }
    }

    #[cold]
    pub(crate) fn dtype_beneath(&self) -> DType {
        match self {
            Value::Array(a) => a.dtype(),
            Value::Lazy(l) => l.array.dtype(),
            Value::Wrapped(l) => l.inner.dtype(),
        }
    }

    #[inline]
    pub fn level(&self) -> u32 {
        match self {
            Value::Array(_) | Value::Lazy(_) => 0,
            Value::Wrapped(l) => l.level.number(),
        }
    }
}

pub(crate) struct Core {
    pub value: Value,
    pub version: Version,
    /// Set by the user on a leaf; a non-leaf has a `grad_fn` instead.
    pub requires_grad: bool,
    /// Made from a Python number, which has the lowest rank in promotion.
    pub number: bool,
    /// The tensor stands for a number, or has a tangent or path ends. Such tensors do not take the fast path.
    pub is_special: bool,
    pub inference: bool,
    pub grad_fn: Option<Edge>,
    /// Why there is no history, for a result of an operation on inputs with history.
    pub path_ends: Option<Arc<PathEnds>>,
    /// Fields that few tensors have.
    pub meta: Option<Box<Meta>>,
}

#[derive(Default)]
pub(crate) struct Meta {
    pub grad: Option<Tensor>,
    /// The leaf's accumulate node, alive while some graph points to it.
    pub accumulate: Weak<Node>,
    pub hooks: LeafHooks,
    pub retains_grad: bool,
    pub grad_dtype: GradDtype,
    pub view: Option<ViewInfo>,
    /// The tangent of forward mode.
    pub tangent: Option<Tensor>,
    /// How often an in-place view or `.data = ` has changed this tensor's layout. The operations that views recorded before start from another
    /// layout.
    pub layout_changes: u32,
    /// `detach_` has taken a history away.
    pub detached: bool,
}

impl Core {
    /// A leaf that needs no gradient.
    #[inline(always)]
    pub fn without_history(value: Value, version: Version, inference: bool, path_ends: Option<Arc<PathEnds>>) -> Core {
        let is_special = path_ends.is_some();
        Core { value, version, requires_grad: false, number: false, is_special, inference, grad_fn: None, path_ends, meta: None }
    }

    #[inline]
    pub fn with_storage<R>(&self, f: impl FnOnce(&crate::array::Storage) -> R) -> R {
        if let Value::Array(a) = &self.value {
            return f(a.storage());
        }
        match &self.value {
            Value::Array(a) => f(a.storage()),
            Value::Lazy(l) => f(l.array.storage()),
            // Not the first element of a batch, for which memory may be allocated: the tensor is locked.
            Value::Wrapped(l) => l.inner.with_array(|a| f(a.storage())),
        }
    }

    /// Sets or clears the record of why there is no history.
    pub fn set_path_ends(&mut self, path_ends: Option<Arc<PathEnds>>) {
        self.path_ends = path_ends;
        self.update_special();
    }

    /// Whether there is a record of why there is no history.
    #[inline]
    pub fn has_path_ends(&self) -> bool {
        self.is_special && self.path_ends.is_some()
    }

    /// Recomputes `is_special` from the other fields.
    pub fn update_special(&mut self) {
        let dual = self.meta.as_ref().is_some_and(|m| m.tangent.is_some());
        self.is_special = self.number || dual || self.path_ends.is_some() && !self.requires_grad && self.grad_fn.is_none();
    }

    /// Whether `detach_` has taken a history away and no write has given it another one.
    #[inline]
    pub fn is_detached(&self) -> bool {
        self.meta.as_ref().is_some_and(|m| m.detached) && self.grad_fn.is_none()
    }

    /// The array, if the tensor is of level 0 and not special.
    #[inline]
    pub fn plain(&self) -> Option<&Array> {
        match &self.value {
            Value::Array(a) if !self.is_special => Some(a),
            _ => None,
        }
    }

    /// As `plain`, also for a tensor with path ends.
    #[inline]
    pub fn plain_or_ended(&self) -> Option<&Array> {
        match &self.value {
            Value::Array(a) if !self.is_special || !self.number && !self.has_tangent() => Some(a),
            _ => None,
        }
    }

    /// `Tensor::gradient_edge` if nothing has to be changed for it; None otherwise.
    #[inline]
    pub fn known_edge(&self) -> Option<Option<Edge>> {
        let accumulate = match &self.meta {
            None => None,
            Some(m) if m.view.is_some() => return None,
            Some(m) => Some(&m.accumulate),
        };
        if self.grad_fn.is_some() || !self.requires_grad {
            return Some(self.grad_fn.clone());
        }
        accumulate?.upgrade().map(|node| Some(Edge { node, nr: 0 }))
    }

    #[inline]
    pub fn value_rank(&self) -> usize {
        match &self.value {
            Value::Array(a) => a.rank(),
            Value::Wrapped(l) => l.rank(),
            Value::Lazy(l) => l.array.rank(),
        }
    }

    /// Whether the tensor needs a gradient, itself or as a view of a base that does.
    #[inline]
    pub fn needs_grad(&self) -> bool {
        self.requires_grad
            || self.grad_fn.is_some()
            || match &self.meta {
                None => false,
                Some(m) => m.view.as_ref().is_some_and(|v| v.base.requires_grad()),
            }
    }
}
