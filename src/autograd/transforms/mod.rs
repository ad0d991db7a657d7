//! Function transforms: nested levels, batching rules of `vmap`, tangents of forward mode, and the guard against writes to captured tensors.
//!
//! Not here: choosing the rule for an operation (`dispatch/apply.rs`), and the Python functions `vmap`, `jvp`, `grad`.

pub mod batching;
pub mod dual_levels;
pub mod forward_mode;
pub mod level;
pub mod mutation_guard;
pub mod slow_paths;
pub mod view_tangents;
