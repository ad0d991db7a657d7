//! Note: levels. Every function transform that is running (`vmap`, `grad`, `vjp`, `jvp`) is a level with a number; plain tensors have level 0. A
//! tensor of level n wraps a tensor of the next lower level (`WrappedTensor`). Only level 0 has arrays.
//!
//! Dispatch takes the highest level among an operation's inputs and calls its rule, which applies the operation to tensors of lower levels.
//! History and tangents exist at every level and are handled by the same code. There are two kinds of levels:
//! - `DerivativeLevel` (`grad`, `vjp`, `jvp`): the rule unwraps the inputs, applies the operation, and wraps the results. Its tensors have a
//!   history and tangents of their own. A backward pass at the level records nothing there unless asked to (`UnrecordedLevel`), while lower
//!   levels record as before.
//! - `BatchLevel` (`vmap`, `ops/batch.rs`): the wrapped tensor has the batch as its first dimension, which shape and strides hide from above.
//!
//! Tangents are per level: a higher level treats the tensor as a constant, and its own tangent is propagated after unwrapping. When a transform
//! ends, its tensors stand for the tensors that they wrapped (`Tensor::unwrap_ended`).

use crate::array::{Array, Version, new_age};
use crate::autograd::dispatch::apply::{OldValue, apply, apply_inplace};
use crate::autograd::dispatch::mode::{self, ModeGuard, Watch, set_watch};
use crate::autograd::dispatch::op::{Op, Outputs};
use crate::autograd::graph::view::{Creation, view_as};
use crate::autograd::tensor::{Tensor, Value};
use crate::autograd::transforms::mutation_guard::{self, TrustedWrites};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, Strides};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One level of a transform.
pub trait Level: Send + Sync + fmt::Debug {
    /// 1 for a level directly above plain tensors. A level entered inside it has a higher number.
    fn number(&self) -> u32;

    /// Applies `op` to inputs of which at least one is of this level and none is of a higher one. The results are of this level or lower.
    fn apply(&self, this: &Arc<dyn Level>, op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs>;

    /// Writes the result of `op` over its first input. The conditions are those of `apply`.
    fn apply_inplace(&self, this: &Arc<dyn Level>, op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue) -> Result<()>;

    /// The size of the hidden first dimension of this level's tensors; None for a level without a batch.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Turns a tensor made beside one of this level (`zeros_like`, `new_zeros`) into one of this level.
    fn beside(&self, this: &Arc<dyn Level>, made: Tensor) -> Result<Tensor>;

    /// Whether the transform is still running.
    fn is_alive(&self) -> bool {
        true
    }

    fn end(&self) {}

    /// For downcasts to the kind of level.
    fn as_any(&self) -> &dyn Any;
}

/// A tensor of the next lower level together with the level that wrapped it.
#[derive(Clone)]
pub struct WrappedTensor {
    pub level: Arc<dyn Level>,
    pub inner: Tensor,
}

impl WrappedTensor {
    /// Runs `f` on the array as it appears at this level: of a batch, the first element stands for all.
    pub(in crate::autograd) fn with_array<R>(&self, f: impl FnOnce(&Array) -> R) -> R {
        // Not a closure in a closure: the type of `f` would grow with every level.
        let a = self.bottom();
        f(&a)
    }

    pub(in crate::autograd) fn bottom(&self) -> Array {
        // For an empty batch an array is allocated here, so nothing may be locked.
        let below = self.inner.read().value.clone();
        let below = below.bottom();
        match self.level.batch() {
            None => below,
            Some(_) => {
                let l = below.layout();
                let (shape, strides) = (Dims::from_slice(&l.shape()[1..]), Strides::from_slice(&l.strides()[1..]));
                // An empty batch has no first element. Memory that nothing reads carries its shape.
                let first = Layout::from_parts(shape, strides, l.offset()).and_then(|l| Ok(below.with_layout(l)?));
                first.or_else(|_| below.empty_beside(&below.shape()[1..], below.dtype())).unwrap_or(below)
            }
        }
    }

    /// Whether the derivative transform of this level has ended. From then on its tensors stand for the tensors that they wrapped.
    pub(in crate::autograd) fn has_ended(&self) -> bool {
        self.level.batch().is_none() && !self.level.is_alive()
    }

    /// The rank as it appears at this level.
    pub(in crate::autograd) fn rank(&self) -> usize {
        self.inner.read().value_rank() - usize::from(self.level.batch().is_some())
    }
}

impl fmt::Debug for WrappedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WrappedTensor({}, {:?})", self.level.number(), self.inner)
    }
}

/// Wraps a tensor of the next lower level. The two share a counter of writes, also where it is not that of the memory (`.data`).
pub fn wrap(level: &Arc<dyn Level>, inner: Tensor) -> Tensor {
    let own = match &inner.read().version {
        version @ Version::Own(_) => Some(version.clone()),
        _ => None,
    };
    let made = Tensor::from_value(Value::Wrapped(Box::new(WrappedTensor { level: level.clone(), inner })));
    if let Some(version) = own
        && !made.is_inference()
    {
        made.write().version = version;
    }
    made
}

/// The highest level among some tensors.
pub(in crate::autograd) fn highest(inputs: &[&Tensor]) -> Option<Arc<dyn Level>> {
    let mut top: Option<Arc<dyn Level>> = None;
    for t in inputs {
        if let Value::Wrapped(l) = &t.read().value
            && top.as_ref().is_none_or(|have| have.number() < l.level.number())
        {
            top = Some(l.level.clone());
        }
    }
    top
}

impl Tensor {
    /// The wrapped tensor, if this tensor is of that very level (numbers are reused).
    pub fn below<L: Level + ?Sized>(&self, level: &L) -> Option<Tensor> {
        match &self.read().value {
            Value::Wrapped(l) if std::ptr::addr_eq(Arc::as_ptr(&l.level), level) => Some(l.inner.clone()),
            _ => None,
        }
    }

    /// The wrapped tensor, if this tensor is of a level with that number.
    pub fn lower(&self, number: u32) -> Option<Tensor> {
        match &self.read().value {
            Value::Wrapped(l) if l.level.number() == number => Some(l.inner.clone()),
            _ => None,
        }
    }

    /// The tensor that this one stands for, if its transform has ended; None otherwise.
    pub fn unwrap_ended(&self) -> Option<Tensor> {
        let mut at = match &self.read().value {
            Value::Wrapped(l) if l.has_ended() => l.inner.clone(),
            _ => return None,
        };
        while let Some(lower) = at.wrapped().filter(WrappedTensor::has_ended) {
            at = lower.inner;
        }
        Some(at)
    }

    /// The level of this tensor, and the tensor it wraps.
    pub fn wrapped(&self) -> Option<WrappedTensor> {
        match &self.read().value {
            Value::Wrapped(l) => Some((**l).clone()),
            Value::Array(_) | Value::Lazy(_) => None,
        }
    }

    /// Wraps `made` in the levels of this tensor.
    pub fn beside(&self, made: Tensor) -> Result<Tensor> {
        match self.wrapped() {
            None => Ok(made),
            Some(l) => {
                let lower = l.inner.beside(made)?;
                l.level.beside(&l.level, lower)
            }
        }
    }

    /// Whether `asked` is true for one of the levels of this tensor.
    fn any_level(&self, asked: impl Fn(&Arc<dyn Level>) -> bool) -> bool {
        let mut at = self.wrapped();
        while let Some(l) = at {
            if asked(&l.level) {
                return true;
            }
            at = l.inner.wrapped();
        }
        false
    }

    /// Whether `level` is one of the levels of this tensor.
    pub fn is_of(&self, level: &Arc<dyn Level>) -> bool {
        self.any_level(|l| std::ptr::addr_eq(Arc::as_ptr(l), Arc::as_ptr(level)))
    }

    /// Whether one of the levels is a batch, so that the tensor has no single values to look at.
    pub fn is_batched(&self) -> bool {
        self.any_level(|l| l.batch().is_some())
    }

    /// The array, for an operation whose result shape depends on values. An error for batched tensors.
    pub fn values_for_shape(&self, op: &str) -> Result<Array> {
        if self.level() > 0 && self.is_batched() {
            return Err(Error::runtime(format!(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {op}, the shape of whose \
                 result depends on the values of each element of the batch; use operations of a fixed shape (`where` with a mask), or call it \
                 outside vmap."
            )));
        }
        self.array()
    }

    /// The array, for an operation whose result depends on values so that it cannot be batched. An error for batched tensors.
    pub fn values(&self, op: &str) -> Result<Array> {
        if self.level() > 0 && self.is_batched() {
            return Err(Error::runtime(format!(
                "vmap: It looks like you're calling {op} on a Tensor. We don't support vmap over calling {op} on a Tensor, please try to \
                 rewrite what you're doing with other operations (`where` instead of a branch), or call it outside vmap: its result depends \
                 on the values of each element of the batch."
            )));
        }
        self.array()
    }
}

/// The level of a derivative (`grad`, `vjp`, `jvp`): its tensors have a history and tangents of their own.
#[derive(Debug)]
pub struct DerivativeLevel {
    number: u32,
    /// The grad mode outside the transform, which applies to all lower levels.
    outside: bool,
    /// The age that began with this level (see `new_age`). Memory of this age or younger was made inside the function.
    since: u32,
    alive: AtomicBool,
}

impl DerivativeLevel {
    pub fn new(number: u32) -> DerivativeLevel {
        DerivativeLevel { number, outside: mode::is_grad_enabled(), since: new_age(), alive: AtomicBool::new(true) }
    }

    pub(in crate::autograd) fn since(&self) -> u32 {
        self.since
    }

    /// The inputs one level lower.
    fn below(&self, inputs: &[&Tensor]) -> SmallVec<[Tensor; 3]> {
        inputs.iter().map(|t| t.below(self).unwrap_or_else(|| (*t).clone())).collect()
    }
}

impl Level for DerivativeLevel {
    fn number(&self) -> u32 {
        self.number
    }

    fn apply(&self, this: &Arc<dyn Level>, op: &dyn Op, inputs: &[&Tensor]) -> Result<Outputs> {
        let lower = self.below(inputs);
        let refs: SmallVec<[&Tensor; 3]> = lower.iter().collect();
        let outs = {
            let _outside = ModeGuard::grad(self.outside && mode::is_grad_enabled());
            match op.view() {
                // A later write through the view must reach its base at every level.
                Some((op, name)) => Outputs::from_elem(view_as(refs[0], op.clone(), name, Creation::Normal)?, 1),
                None => apply(op, &refs)?,
            }
        };
        Ok(outs.into_iter().map(|t| wrap(this, t)).collect())
    }

    fn apply_inplace(&self, _this: &Arc<dyn Level>, op: &dyn Op, label: &'static str, inputs: &[&Tensor], old: OldValue) -> Result<()> {
        if inputs[0].below(self).is_none() {
            return Err(mutation_guard::refused(label));
        }
        let _trusted = TrustedWrites::new();
        let lower = self.below(inputs);
        let refs: SmallVec<[&Tensor; 3]> = lower.iter().collect();
        let _outside = ModeGuard::grad(self.outside && mode::is_grad_enabled());
        apply_inplace(op, label, &refs, old)
    }

    fn beside(&self, this: &Arc<dyn Level>, made: Tensor) -> Result<Tensor> {
        Ok(if self.is_alive() { wrap(this, made) } else { made })
    }

    fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The inputs with ended levels unwrapped; None if no level has ended.
#[cold]
pub(in crate::autograd) fn without_ended(inputs: &[&Tensor]) -> Option<SmallVec<[Tensor; 3]>> {
    let lower: SmallVec<[Option<Tensor>; 3]> = inputs.iter().map(|t| t.unwrap_ended()).collect();
    if lower.iter().all(Option::is_none) {
        return None;
    }
    Some(lower.into_iter().zip(inputs).map(|(l, t)| l.unwrap_or_else(|| (*t).clone())).collect())
}

thread_local! {
    /// The level at which the current pass records nothing; 0 for none.
    static UNRECORDED: Cell<u32> = const { Cell::new(0) };
    /// The highest derivative level that was entered while recording was off; 0 for none. Levels below it record nothing.
    static QUIET_BELOW: Cell<u32> = const { Cell::new(0) };
    /// The transforms that this thread is inside of, outermost first.
    static STACK: RefCell<Vec<Arc<dyn Level>>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, nothing is recorded at one level; lower levels record as before. Restores the old state when dropped.
pub(in crate::autograd) struct UnrecordedLevel(u32);

impl UnrecordedLevel {
    pub fn at(level: u32) -> UnrecordedLevel {
        UnrecordedLevel(UNRECORDED.with(|q| q.replace(level)))
    }
}

impl Drop for UnrecordedLevel {
    fn drop(&mut self) {
        UNRECORDED.with(|q| q.set(self.0));
    }
}

pub(in crate::autograd) fn is_unrecorded(level: u32) -> bool {
    UNRECORDED.with(|q| q.get() == level && level > 0)
}

/// Whether nothing is recorded at a level because recording was off where a transform above it was entered.
pub(in crate::autograd) fn is_quiet(level: u32) -> bool {
    level < QUIET_BELOW.get()
}

/// The transforms of a thread, for another thread that continues its work.
pub(in crate::autograd) struct LevelStack(Vec<Arc<dyn Level>>, u32);

pub(in crate::autograd) fn current_stack() -> LevelStack {
    LevelStack(STACK.with(|s| s.borrow().clone()), UNRECORDED.with(Cell::get))
}

pub(in crate::autograd) fn install(LevelStack(levels, quiet): LevelStack) {
    STACK.with(|s| *s.borrow_mut() = levels);
    UNRECORDED.with(|q| q.set(quiet));
    set_watches();
}

/// Sets the watchers that the derivative transforms need which this thread is inside of.
fn set_watches() {
    let (mut any, mut quiet) = (false, 0);
    STACK.with(|s| {
        for d in s.borrow().iter().filter_map(|l| l.as_any().downcast_ref::<DerivativeLevel>()) {
            any = true;
            if !d.outside {
                quiet = d.number;
            }
        }
    });
    QUIET_BELOW.set(quiet);
    set_watch(Watch::Captured, any);
    set_watch(Watch::QuietBelow, quiet > 0);
}

/// How many transforms this thread is inside of.
pub fn depth() -> u32 {
    STACK.with(|s| s.borrow().len() as u32)
}

/// Enters the level that `make` creates for its number, and returns the number.
pub fn enter(make: impl FnOnce(u32) -> Arc<dyn Level>) -> u32 {
    let number = depth() + 1;
    let level = make(number);
    STACK.with(|s| s.borrow_mut().push(level));
    set_watches();
    number
}

/// The open level with a number.
pub fn open(number: u32) -> Option<Arc<dyn Level>> {
    STACK.with(|s| s.borrow().get((number as usize).checked_sub(1)?).cloned())
}

/// Leaves level `number` and all levels that were left open inside it.
pub fn exit(number: u32) {
    let left = STACK.with(|s| {
        let mut s = s.borrow_mut();
        let from = s.len().min(number.saturating_sub(1) as usize);
        s.split_off(from)
    });
    left.iter().for_each(|l| l.end());
    set_watches();
}

/// Wraps a tensor made from no other (`zeros`, `rand`) in the derivative levels that this thread is inside of, so that tensors with gradients can
/// be written to it.
pub fn created(made: Tensor) -> Result<Tensor> {
    let levels: Vec<Arc<dyn Level>> = STACK.with(|s| s.borrow().iter().filter(|l| l.batch().is_none()).cloned().collect());
    levels.iter().try_fold(made, |made, level| if made.level() < level.number() { level.beside(level, made) } else { Ok(made) })
}
