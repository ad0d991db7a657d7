//! Hooks: foreign code that sees gradients during backward, and may replace them.

use crate::autograd::diagnostics::missing_gradient::PathEnds;
use crate::autograd::graph::node::Node;
use crate::autograd::tensor::Tensor;
use crate::error::Result;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub type Grads = smallvec::SmallVec<[Option<Tensor>; 2]>;

/// A hook on one gradient, which is None where none has arrived. Returning a tensor replaces the gradient.
pub trait TensorHook: Send + Sync {
    fn call(&self, grad: Option<&Tensor>) -> Result<Option<Tensor>>;
    /// Its name in errors.
    fn name(&self) -> String;
    fn as_any(&self) -> &dyn Any;
}

/// A hook before a node (`grads` go in) or after it (`outputs` came out).
pub trait NodeHook: Send + Sync {
    /// May replace the gradients that go in.
    fn before(&self, _grads: &Grads) -> Result<Option<Grads>> {
        Ok(None)
    }
    /// May replace the gradients that came out.
    fn after(&self, _outputs: &Grads, _grads: &Grads) -> Result<Option<Grads>> {
        Ok(None)
    }
    /// Its name in errors.
    fn name(&self) -> String;
    fn as_any(&self) -> &dyn Any;
}

/// A hook that runs once a leaf's `.grad` is complete.
pub trait LeafHook: Send + Sync {
    fn call(&self, leaf: &Tensor) -> Result<()>;
    fn as_any(&self) -> &dyn Any;
}

/// The number of a new registration; never reused.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Registered hooks with their numbers, in order of registration.
pub type List<H> = Vec<(u64, H)>;

/// The hooks of a node.
#[derive(Default)]
pub struct NodeHooks {
    /// Hooks of the tensors that are the node's outputs: (registration, output number, hook).
    pub tensor: Vec<(u64, u32, Arc<dyn TensorHook>)>,
    /// Outputs with `retain_grad`, which runs after all tensor hooks.
    pub retain: Vec<(u32, crate::autograd::tensor::WeakTensor)>,
    pub pre: List<Arc<dyn NodeHook>>,
    pub post: List<Arc<dyn NodeHook>>,
    /// Not hooks: where the paths of those inputs end that need no gradient.
    pub(in crate::autograd) path_ends: Vec<Arc<PathEnds>>,
}

impl NodeHooks {
    /// Whether there is no hook to call.
    pub fn is_empty(&self) -> bool {
        self.tensor.is_empty() && self.retain.is_empty() && self.pre.is_empty() && self.post.is_empty()
    }

    pub fn remove(&mut self, id: u64) {
        self.tensor.retain(|h| h.0 != id);
        self.pre.retain(|h| h.0 != id);
        self.post.retain(|h| h.0 != id);
    }
}

/// The hooks of a leaf.
#[derive(Default, Clone)]
pub struct LeafHooks {
    pub tensor: List<Arc<dyn TensorHook>>,
    pub post_accumulate: List<Arc<dyn LeafHook>>,
}

impl LeafHooks {
    pub fn remove(&mut self, id: u64) {
        self.tensor.retain(|h| h.0 != id);
        self.post_accumulate.retain(|h| h.0 != id);
    }
}

/// Where a hook was registered, so that its handle can remove it. Keeps nothing alive.
#[derive(Clone)]
pub enum Registration {
    Node(std::sync::Weak<Node>, u64),
    Leaf(crate::autograd::tensor::WeakTensor, u64),
}

impl Registration {
    pub fn id(&self) -> u64 {
        match self {
            Registration::Node(_, id) | Registration::Leaf(_, id) => *id,
        }
    }

    /// Removes the hook. A pass that has begun to call hooks finishes with those it started with.
    pub fn remove(&self) {
        match self {
            Registration::Node(n, id) => {
                if let Some(n) = n.upgrade() {
                    n.remove_hook(*id);
                }
            }
            Registration::Leaf(t, id) => {
                if let Some(t) = t.upgrade() {
                    t.remove_leaf_hook(*id);
                }
            }
        }
    }
}
