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
use std::cell::{Cell, OnceCell};
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

    /// Whether zeros of its gradients are those of elements that do not reach the result, as far as zeros of the gradient that it was given are
    /// (`is_cut`): then they stay zeros behind it, whatever the slopes there.
    fn cuts(&self, _is_cut: bool) -> bool {
        false
    }

    /// The node's saved attributes, under PyTorch's names.
    fn saved_attributes(&self) -> SavedAttributes {
        SavedAttributes::new()
    }

    /// What the saved attribute of output `j` shows: the saved tensor, unless it is kept in another form.
    fn shown_output(&self, _j: usize, saved: Tensor) -> Result<Tensor> {
        Ok(saved)
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
    /// What nobody looks at after this run.
    after: AfterRun,
    has_forgotten: Cell<bool>,
}

/// What nobody looks at after a node's run. The default is that somebody may.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::autograd) struct AfterRun {
    /// The gradients that the node was given, apart from other holders of them.
    pub gradients_unread: bool,
    /// What the node saved.
    pub saved_unread: bool,
}

impl AfterRun {
    /// Of a run in a pass: `is_shown` if the gradients are shown to hooks afterwards, `is_kept` if the node may run again.
    pub fn in_pass(is_shown: bool, is_kept: bool) -> AfterRun {
        AfterRun { gradients_unread: !is_shown, saved_unread: !is_shown && !is_kept }
    }
}

/// What hooks have unpacked of a node, by position.
pub(super) type Unpacked = SmallVec<[Option<Tensor>; 2]>;

impl<'a> VjpCx<'a> {
    #[inline]
    pub fn new(node: &'a Arc<Node>, needs: &'a [bool]) -> VjpCx<'a> {
        VjpCx { node, needs, unpacked: OnceCell::new(), after: AfterRun::default(), has_forgotten: Cell::new(false) }
    }

    pub(in crate::autograd) fn with_after(self, after: AfterRun) -> VjpCx<'a> {
        VjpCx { after, ..self }
    }

    /// Whether the rule may write over a gradient that it was given: nothing but the pass holds it or its memory, and the pass does not look at it
    /// again. What is pending in it is computed. Weak handles find a Python object, which would be a holder.
    ///
    /// # Errors
    /// Memory for pending results cannot be allocated.
    pub fn may_write_over(&self, g: &Tensor) -> Result<bool> {
        if !self.after.gradients_unread || g.holders() != 1 || !g.is_bare() || g.requires_grad() {
            return Ok(false);
        }
        g.array()?.ready()?;
        Ok(g.holders() == 1 && g.with_array(|a| a.storage().may_be_given_away()))
    }

    /// Drops saved input `i`, which the rule does not read again, if the pass frees the graph after this run anyway. What is large and dead is then
    /// free while the rule goes on.
    pub fn forget_input(&self, i: usize) {
        if self.after.saved_unread && self.node.saves.has(i) {
            self.has_forgotten.set(true);
            self.node.forget(self.node.saves.position(i));
        }
    }

    /// Whether the node cannot run again.
    pub(in crate::autograd) fn has_forgotten(&self) -> bool {
        self.has_forgotten.get()
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
