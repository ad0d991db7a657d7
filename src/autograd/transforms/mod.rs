//! Function transforms: nested levels, the batching rules of `vmap`, tangents of forward mode, and the guard against writes to captured
//! tensors.
//!
//! Not here: the choice of a rule for an operation (`dispatch/apply.rs`), and the functions `vmap`, `jvp`, `grad` of Python.

pub mod batching;
pub mod forward_mode;
pub mod level;
pub mod mutation_guard;
pub mod slow_paths;
