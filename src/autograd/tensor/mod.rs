//! Tensor: a value with its history, and the parts of its handle.
//!
//! `tensor` is the type, `core` what it holds, `grad` its gradient, `sharing` has tensors that share memory, `math_bits` lazy conjugates, `handle` and `lock` keep small tensors cheap, `slot` holds the embedding
//! language's object, `ownership` is the view of the garbage collector. Not here: values without history (`array`).

pub mod census;
mod core;
pub(super) mod grad;
pub(super) mod handle;
pub(super) mod lock;
mod math_bits;
pub mod ownership;
mod sharing;
pub mod slot;
#[allow(clippy::module_inception)]
mod tensor;

pub use self::core::Value;
pub(super) use self::core::{Core, Meta};
pub use math_bits::{LazyArray, MathBits};
pub use tensor::{Tensor, WeakTensor};
