//! Tensor: a value with its history, and the parts of its handle.
//!
//! `tensor` is the type, `grad` its gradient, `sharing` has tensors that share memory, `handle` and `lock` keep small tensors cheap, `slot` holds the embedding
//! language's object, `ownership` is the view of the garbage collector. Not here: values without history (`array`).

pub(super) mod grad;
pub(super) mod handle;
pub(super) mod lock;
pub mod ownership;
mod sharing;
pub mod slot;
#[allow(clippy::module_inception)]
mod tensor;

pub(super) use tensor::{Core, Meta};
pub use tensor::{Tensor, Value, WeakTensor};
