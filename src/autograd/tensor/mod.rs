//! Tensor: a value together with its history, and what its handles are made of.
//!
//! `tensor` is the type, `sharing` tensors that share memory, `handle` and `lock` what makes small tensors cheap, `slot` the place of the
//! embedding language's object, `ownership` what the garbage collector sees. Not here: values without history (`array`).

pub(super) mod handle;
pub(super) mod lock;
pub mod ownership;
mod sharing;
pub mod slot;
#[allow(clippy::module_inception)]
mod tensor;

pub(super) use tensor::{Core, Meta};
pub use tensor::{Tensor, Value, WeakTensor};
