//! The node of a custom Function in the graph: it keeps the context alive and calls the class's `backward`.

use super::context::FunctionCtx;
use super::vectorcall::Arguments;
use crate::array::Array;
use crate::autograd::dispatch::call_site::Inherit;
use crate::autograd::{Grads, Name, Node, Tensor, Vjp, VjpCx};
use crate::error::Result;
use crate::layout::Scalar;
use crate::python::args::{as_tensor, type_name};
use crate::python::autograd::context_owner::ContextRef;
use crate::python::autograd::hooks;
use crate::python::errors::{foreign, runtime};
use crate::python::host::{EndsUnlocked, attach};
use crate::python::tensor::identity::wrap_option;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// For each argument of `forward`, its edge; None for arguments that are no tensors.
pub(super) type ArgumentEdges = SmallVec<[Option<u32>; 4]>;

/// The node's side.
pub(super) struct Backward {
    pub ctx: ContextRef,
    pub name: Arc<str>,
    pub args: ArgumentEdges,
    pub edges: usize,
    /// Which outputs are tensors; the others have no gradient.
    pub tensors: SmallVec<[bool; 2]>,
    pub _ends: EndsUnlocked,
}

pub(crate) fn traverse(f: &dyn Any, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
    match f.downcast_ref::<Backward>() {
        Some(b) => b.ctx.traverse(visit),
        None => hooks::traverse(f, visit),
    }
}

/// A Function's node's reference to its context; None for other nodes.
pub(crate) fn context_ref(node: &Node) -> Option<&ContextRef> {
    node.foreign()?.downcast_ref::<Backward>().map(|b| &b.ctx)
}

impl Vjp for Backward {
    fn node_name(&self) -> Name {
        self.name.to_string().into()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn owned_by_object(&self) -> bool {
        self.ctx.is_pinned()
    }

    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let _lines = Inherit::suspend();
        attach(|py| {
            let made = self.call(py, cx, grads);
            // `backward` may have stored the context.
            self.ctx.settle(py, cx.node, 1);
            made
        })
        .map_err(foreign)
    }
}

impl Backward {
    fn call(&self, py: Python<'_>, cx: &VjpCx<'_>, grads: &Grads) -> PyResult<Grads> {
        let ctx = self.ctx.get(py).ok_or_else(|| runtime(format!("{}: the context of this Function is gone", self.name)))?;
        let cell = ctx.cast::<FunctionCtx>()?.get();
        let Some(class) = &cell.class else { return Err(runtime(format!("{}: this context belongs to no Function", self.name))) };
        let materialize = cell.materialize.load(Ordering::Relaxed);
        let (backward, boxed) = class.get().backward(py)?;
        let mut args = Arguments::new(py);
        args.push(ctx.clone());
        let mut list: SmallVec<[Bound<'_, PyAny>; 4]> = SmallVec::new();
        for ((g, meta), tensor) in grads.iter().zip(cx.node.outs()).zip(&self.tensors) {
            let g = match g {
                None if materialize && *tensor => Some(Tensor::new(Array::full_on(meta.device, &meta.shape, Scalar::Int(0), meta.dtype)?)),
                g => g.clone(),
            };
            let g = wrap_option(py, g)?.into_bound(py);
            if boxed {
                list.push(g);
            } else {
                args.push(g);
            }
        }
        if boxed {
            args.push(PyList::new(py, list)?.into_any());
        }
        let result = args.call(&backward)?;
        let mut out = Grads::from_elem(None, self.edges);
        if let Ok(results) = result.cast::<PyTuple>() {
            let n = self.args.len();
            if results.len() < n || results.iter().skip(n).any(|r| !r.is_none()) {
                return Err(self.wrong_number(results.len()));
            }
            for (i, r) in results.iter().take(n).enumerate() {
                self.gradient(i, &r, &mut out)?;
            }
        } else if self.args.len() > 1 || self.args.is_empty() && !result.is_none() {
            return Err(self.wrong_number(1));
        } else if !self.args.is_empty() {
            self.gradient(0, &result, &mut out)?;
        }
        Ok(out)
    }

    /// Takes the gradient of argument `i`.
    #[inline]
    fn gradient(&self, i: usize, r: &Bound<'_, PyAny>, out: &mut Grads) -> PyResult<()> {
        match (self.args[i], as_tensor(r)) {
            (_, None) if r.is_none() => Ok(()),
            (Some(e), Some(t)) => {
                out[e as usize] = Some(t.clone());
                Ok(())
            }
            (None, _) => Err(runtime(format!(
                "function {} returned a gradient different than None at position {}, but the corresponding forward input was not a Variable",
                self.name,
                i + 1
            ))),
            (Some(_), None) => {
                Err(runtime(format!("expected Variable or None (got {}) as gradient {} of {}", type_name(r), i + 1, self.name)))
            }
        }
    }

    #[cold]
    fn wrong_number(&self, got: usize) -> PyErr {
        let n = self.args.len();
        runtime(format!("function {} returned an incorrect number of gradients (expected {n}, got {got})", self.name))
    }
}
