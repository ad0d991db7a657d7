//! Saved tensors: values that a node keeps for backward, with the version they had, so that a later in-place write is detected and reported.

use crate::array::{Array, Change, Storage, Version};
use crate::autograd::dispatch::call_site::Site;
use crate::autograd::dispatch::op::Saves;
use crate::autograd::graph::node::{Edge, Node, NodeOp};
use crate::autograd::graph::saved_hooks::PackedSavedTensor;
use crate::autograd::tensor::{Core, Tensor, Value, WeakTensor};
use crate::error::{Error, Result};
use crate::layout::Scalar;
use std::sync::Arc;

/// A value that a node keeps for backward.
#[derive(Clone)]
pub enum Saved {
    Nothing,
    /// An input, held as the tensor itself.
    Input {
        tensor: Tensor,
        version: Option<u32>,
    },
    /// An output of the node itself, held without its `grad_fn` (else node and tensor would keep each other alive), which it gets back when it is
    /// unpacked.
    Output(Box<SavedOutput>),
    /// An input that shares memory with a result or target of the node's operation.
    Alias(Box<SavedAlias>),
    /// Any of the others, packed by hooks.
    Packed(Arc<PackedSavedTensor>),
    /// A Python number that the fast path took as an input of a pointwise operation, in the dtype computed in.
    Number(f64),
    /// A copy of an input that an in-place operation then overwrote, with the history that the input had.
    Copy(Box<(Value, Option<Edge>)>),
}

/// An output of a node. Boxed: nodes that save only inputs are the common case and stay small.
#[derive(Clone)]
pub struct SavedOutput {
    value: Value,
    follows: Version,
    version: Option<u32>,
    nr: u32,
    /// The output's tangent, while its dual level is open.
    tangent: Option<Tensor>,
    /// The output itself, if it is a view whose own node is not this one but regenerated from the base's. It is what is unpacked while it lives.
    view: Option<WeakTensor>,
}

impl SavedOutput {
    /// Which of the node's outputs it is.
    pub(in crate::autograd) fn nr(&self) -> u32 {
        self.nr
    }

    pub(in crate::autograd) fn tangent_mut(&mut self) -> &mut Option<Tensor> {
        &mut self.tangent
    }

    pub(in crate::autograd) fn value(&self) -> &Value {
        &self.value
    }

    /// The array, if it still has the version it was saved with, is of level 0, and has no tangent.
    #[inline]
    pub(in crate::autograd) fn unchanged(&self) -> Option<&Array> {
        match &self.value {
            Value::Array(a) if self.tangent.is_none() && self.follows.current(a.storage()) == self.version => Some(a),
            _ => None,
        }
    }
}

/// An input that shares memory with a tensor whose history the node becomes: that tensor itself, its base, or a view of either. Held as that
/// tensor it would lead to the node, and the two would keep each other alive. So a separate tensor is held, with the same value and version and
/// the history from before, which later writes do not change.
#[derive(Clone)]
pub struct SavedAlias {
    separate: Tensor,
    version: Option<u32>,
    original: WeakTensor,
    /// Whether the original is unpacked while it lives. Not if the operation overwrote it: then its history is no longer that of this value.
    as_original: bool,
}

impl SavedAlias {
    /// The input itself while it lives, else its separate copy.
    pub fn tensor(&self) -> Tensor {
        self.original.upgrade().unwrap_or_else(|| self.separate.clone())
    }

    /// The separate tensor.
    pub(in crate::autograd) fn separate(&self) -> &Tensor {
        &self.separate
    }
}

/// The version of a tensor that is about to be saved.
#[inline]
fn version_to_save(core: &Core) -> Result<Option<u32>> {
    let version = core.with_storage(|s| core.version.current(s));
    if version.is_none() && core.inference {
        return Err(Error::runtime(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by \
             autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `rgrad.no_grad()` instead of \
             `rgrad.inference_mode()`.",
        ));
    }
    Ok(version)
}

impl Saved {
    pub fn input(tensor: &Tensor) -> Result<Saved> {
        Self::input_of(tensor, &tensor.read())
    }

    /// As `input`, for a node that runs at once, or of a transform level, whose constants may be tensors of inference mode.
    pub(in crate::autograd) fn input_for_now(tensor: &Tensor) -> Saved {
        Saved::Input { tensor: tensor.clone(), version: tensor.version() }
    }

    /// As `input`, for a tensor that is locked for reading already.
    #[inline]
    pub(crate) fn input_of(tensor: &Tensor, core: &Core) -> Result<Saved> {
        let version = version_to_save(core)?;
        Ok(Saved::Input { tensor: tensor.clone(), version })
    }

    /// As `input`, for an operation that is about to write to `memory`. The input's `grad_fn` belongs to its current version.
    pub(in crate::autograd) fn input_of_write(tensor: &Tensor, memory: &Storage) -> Result<Saved> {
        {
            let core = tensor.read();
            if !core.with_storage(|s| s.same(memory)) {
                return Self::input_of(tensor, &core);
            }
        }
        Self::alias(tensor, false)
    }

    /// An input of a custom Function, given the outputs whose history the Function's node becomes.
    pub fn input_beside(tensor: &Tensor, outputs: &[Option<Tensor>]) -> Result<Saved> {
        if outputs.iter().flatten().any(|o| o.shares_memory_with(tensor)) { Self::alias(tensor, true) } else { Self::input(tensor) }
    }

    /// As `input_beside`, for one output.
    #[inline]
    pub fn input_of_function(tensor: &Tensor, output: &Tensor) -> Result<Saved> {
        if output.shares_memory_with(tensor) { Self::alias(tensor, true) } else { Self::input(tensor) }
    }

    #[cold]
    fn alias(tensor: &Tensor, as_original: bool) -> Result<Saved> {
        let version = {
            let core = tensor.read();
            if core.requires_grad && core.grad_fn.is_none() {
                // A leaf has no history that leads to the node, and no recorded write gives it one.
                return Self::input_of(tensor, &core);
            }
            version_to_save(&core)?
        };
        Ok(Saved::Alias(Box::new(SavedAlias { separate: tensor.snapshot(), version, original: tensor.downgrade(), as_original })))
    }

    pub fn output(tensor: &Tensor, nr: u32) -> Saved {
        let core = tensor.read();
        Self::output_value(core.value.clone(), core.version.clone(), nr)
    }

    /// As `output`, for a view that a custom Function has written.
    pub fn output_as_view(tensor: &Tensor, nr: u32) -> Saved {
        let mut saved = Self::output(tensor, nr);
        if let Saved::Output(o) = &mut saved {
            o.view = Some(tensor.downgrade());
        }
        saved
    }

    pub(crate) fn output_value(value: Value, follows: Version, nr: u32) -> Saved {
        let version = match &value {
            Value::Array(a) => follows.current(a.storage()),
            Value::Lazy(_) | Value::Wrapped(_) => follows.current(value.bottom().storage()),
        };
        Saved::Output(Box::new(SavedOutput { value, follows, version, nr, tangent: None, view: None }))
    }

    /// The tensor, if it still has the version it was saved with.
    pub(crate) fn unpack(self, node: &Arc<Node>) -> Result<Tensor> {
        self.unpack_input(node, usize::MAX)
    }

    /// As `unpack`, for input `i` of the node's operation: an error if the input had a node when it was saved, and `detach_` has taken its history
    /// since.
    #[inline]
    pub(in crate::autograd) fn unpack_input(self, node: &Arc<Node>, i: usize) -> Result<Tensor> {
        match self {
            Saved::Nothing => Err(Error::runtime(format!("{}: nothing was saved in this place", node.name()))),
            Saved::Input { tensor, version } => {
                let (now, detached) = {
                    let core = tensor.read();
                    (core.with_storage(|s| core.version.current(s)), core.is_detached())
                };
                if detached {
                    node.check_was_leaf(i)?;
                }
                if now != version {
                    return Err(modified(&tensor, None, node, version, now, last_change(&tensor)));
                }
                Ok(tensor)
            }
            Saved::Alias(saved) => {
                let now = saved.separate.version();
                if now != saved.version {
                    return Err(modified(&saved.tensor(), None, node, saved.version, now, last_change(&saved.separate)));
                }
                Ok(if saved.as_original { saved.tensor() } else { saved.separate })
            }
            Saved::Output(saved) => {
                let SavedOutput { value, follows, version, nr, tangent, view } = *saved;
                let array = value.bottom();
                let now = follows.current(array.storage());
                let edge = Edge { node: node.clone(), nr };
                let tensor = Tensor::with_history(value, follows.clone(), Some(edge));
                if now != version {
                    return Err(modified(&tensor, Some(nr), node, version, now, follows.last_change(array.storage())));
                }
                if let Some(view) = view.and_then(|v| v.upgrade()) {
                    return Ok(view);
                }
                if tangent.is_some() {
                    tensor.set_tangent(tangent);
                }
                Ok(tensor)
            }
            Saved::Packed(saved) => {
                if saved.was_detached() {
                    node.check_was_leaf(i)?;
                }
                saved.unpack(node)
            }
            Saved::Number(value) => {
                let NodeOp::Pointwise(op) = node.op() else {
                    return Err(Error::runtime(format!("{}: a number was saved by something that is no row", node.name())));
                };
                Ok(Tensor::number(Array::scalar(Scalar::Float(value), op.compute)?))
            }
            Saved::Copy(saved) => Ok(Tensor::with_history(saved.0, Version::fresh(), saved.1)),
        }
    }
}

impl Node {
    /// What `f` makes of a saved input that is as it was saved. None for everything else, and where `f` gives None; then `unpack` says more.
    /// `f` runs under the node's lock and must do nothing but read.
    #[inline]
    pub fn unchanged_input<R>(&self, position: usize, f: impl FnOnce(&Tensor) -> Option<R>) -> Option<R> {
        let state = self.state();
        let Some(Saved::Input { tensor, version }) = state.saved.get(position) else { return None };
        let unchanged = {
            let core = tensor.read();
            !core.is_detached() && core.with_storage(|s| core.version.current(s)) == *version
        };
        if unchanged { f(tensor) } else { None }
    }

    /// An error if input `i`, whose history `detach_` has taken, had a node when it was saved.
    #[cold]
    fn check_was_leaf(&self, i: usize) -> Result<()> {
        if self.edges().get(i).is_some_and(|e| e.as_ref().is_some_and(|e| e.node.variable().is_none())) {
            return Err(detached());
        }
        Ok(())
    }

    /// Checks what is saved but not read by a run that needs some of the gradients only, as PyTorch does, whose nodes unpack everything. What hooks
    /// have packed is not unpacked.
    pub(in crate::autograd) fn check_unread(self: &Arc<Node>) -> Result<()> {
        let is_checked = |s: &Saved| matches!(s, Saved::Input { .. } | Saved::Alias(_));
        if !self.state().saved.iter().any(is_checked) {
            return Ok(());
        }
        for (position, saved) in self.saved().into_iter().enumerate().filter(|(_, s)| is_checked(s)) {
            let input = (0..Saves::INPUTS).find(|&i| self.position_of(i) == Some(position));
            drop(saved.unpack_input(self, input.unwrap_or(usize::MAX))?);
        }
        Ok(())
    }

    /// Unpacks everything that is saved, as a run of the node would: for a node that no gradient has reached.
    pub(in crate::autograd) fn check_saved(self: &Arc<Node>) -> Result<()> {
        if self.saves == Saves::NOTHING {
            return Ok(());
        }
        if self.is_freed() {
            return Err(self.freed_error());
        }
        let all = self.saved();
        for position in self.saved_order() {
            match all.get(position) {
                None | Some(Saved::Nothing | Saved::Number(_) | Saved::Copy(_)) => {}
                Some(saved) => {
                    let input = (0..Saves::INPUTS).find(|&i| self.position_of(i) == Some(position));
                    drop(saved.clone().unpack_input(self, input.unwrap_or(usize::MAX))?);
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn detached() -> Error {
    Error::runtime(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please use out-of-place \
         `.detach()` instead",
    )
}

#[cold]
fn last_change(tensor: &Tensor) -> Option<Change> {
    let core = tensor.read();
    core.with_storage(|s| core.version.last_change(s))
}

#[cold]
fn modified(tensor: &Tensor, output: Option<u32>, node: &Node, expected: Option<u32>, got: Option<u32>, last: Option<Change>) -> Error {
    let what = match output {
        Some(nr) => format!(", which is output {nr} of {},", node.name()),
        None => {
            let edge = tensor.read().grad_fn.clone();
            edge.map_or_else(String::new, |e| format!(", which is output {} of {},", e.nr, e.node.name()))
        }
    };
    let number = |v: Option<u32>| v.map_or_else(|| "untracked".into(), |v| v.to_string());
    let saved_at = node.site().text();
    let (op, changed_at) = last.map_or(("an in-place operation", "an unknown line".to_string()), |c| (c.op, Site(c.site).text()));
    Error::graph(format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [rgrad.{}Tensor {:?}]{what} is at \
         version {}; expected version {} instead. Saved for {} at {saved_at}; changed by {op} at {changed_at}. Hint: use the \
         out-of-place operation there, or write to a clone().",
        tensor.dtype().type_name(),
        &tensor.shape()[..],
        number(got),
        number(expected),
        node.name(),
    ))
}
