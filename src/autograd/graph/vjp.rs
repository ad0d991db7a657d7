//! Vjp: the derivative that a node runs, and what it can read.

use crate::autograd::dispatch::op::Saves;
use crate::autograd::engine::hooks::Grads;
use crate::autograd::graph::node::{Node, NodeOp};
use crate::autograd::graph::saved::Saved;
use crate::autograd::graph::saved_attributes::SavedAttributes;
use crate::autograd::tensor::Tensor;
use crate::error::Result;
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

/// The name of a node; static for all but custom Functions.
pub type Name = Cow<'static, str>;

/// The derivative that a node runs. `Op` extends it; custom Functions and writes through views have no forward.
pub trait Vjp: Send + Sync + 'static {
    /// PyTorch's name of the node ("MulBackward0").
    fn node_name(&self) -> Name;

    /// The gradients of the inputs (None: no gradient), given those of the outputs (None: zero). A gradient may have the broadcast shape; the
    /// engine fits it to its edge. Written in tensor operations, so that it is differentiable itself.
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        match &grads[0] {
            Some(g) => self.pull(cx, g),
            None => Ok(Grads::from_elem(None, cx.needs.len())),
        }
    }

    /// `vjp` of an operation with one differentiable output. By default no input has a gradient.
    fn pull(&self, cx: &VjpCx<'_>, _g: &Tensor) -> Result<Grads> {
        Ok(Grads::from_elem(None, cx.needs.len()))
    }

    /// The node's saved attributes, under PyTorch's names.
    fn saved_attributes(&self) -> SavedAttributes {
        SavedAttributes::new()
    }

    /// Frees what the operation itself holds, after its last run.
    fn release(&self) {}

    /// The foreign object that represents the node, if there is one.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Whether the foreign object that represents the node holds it, and the node holds the object. For the garbage collector.
    fn owned_by_object(&self) -> bool {
        false
    }

    /// The node of another operation that this one runs.
    fn inner(&self) -> Option<&Arc<Node>> {
        None
    }

    /// The form in which a node holds it.
    fn into_node(self) -> NodeOp
    where
        Self: Sized,
    {
        NodeOp::Other(Arc::new(self))
    }
}

/// What a node's vjp can read.
pub struct VjpCx<'a> {
    pub node: &'a Arc<Node>,
    /// Which edges need a gradient.
    pub needs: &'a [bool],
    /// What hooks have unpacked, by position. Each hook is called once.
    unpacked: OnceCell<Unpacked>,
}

/// What hooks have unpacked of a node, by position.
pub(super) type Unpacked = SmallVec<[Option<Tensor>; 2]>;

impl<'a> VjpCx<'a> {
    #[inline]
    pub fn new(node: &'a Arc<Node>, needs: &'a [bool]) -> VjpCx<'a> {
        VjpCx { node, needs, unpacked: OnceCell::new() }
    }

    #[inline]
    fn at(&self, position: usize, input: usize) -> Result<Tensor> {
        match self.node.saved_at(position)? {
            Saved::Packed(p) if !p.was_detached() => self.unpacked(position),
            saved => saved.unpack_input(self.node, input),
        }
    }

    #[cold]
    fn unpacked(&self, position: usize) -> Result<Tensor> {
        let all = match self.unpacked.get() {
            Some(all) => all,
            None => {
                let made = self.node.unpack_packed()?;
                self.unpacked.get_or_init(|| made)
            }
        };
        match all.get(position) {
            Some(Some(t)) => Ok(t.clone()),
            // Hooks registered while this node ran.
            _ => self.node.unpack(position),
        }
    }

    #[inline]
    pub fn needs(&self, input: usize) -> bool {
        self.needs.get(input).copied().unwrap_or(false)
    }

    /// The saved input `i` of the operation.
    #[inline]
    pub fn input(&self, i: usize) -> Result<Tensor> {
        self.at(self.node.saves.position(i), i)
    }

    /// The saved output `j` of the operation.
    #[inline]
    pub fn output(&self, j: usize) -> Result<Tensor> {
        self.at(self.node.saves.position(Saves::FIRST_OUTPUT + j), usize::MAX)
    }

    /// Whether input `i` was saved.
    #[inline]
    pub fn has_input(&self, i: usize) -> bool {
        self.node.saves.has(i)
    }

    /// Whether output `j` was saved.
    #[inline]
    pub fn has_output(&self, j: usize) -> bool {
        self.node.saves.has(Saves::FIRST_OUTPUT + j)
    }
}
