//! The recorded graph: nodes, edges, saved tensors with their hooks, and views.
//!
//! Not here: making nodes (`dispatch/record.rs`) and running them (`engine`).

pub(super) mod node;
pub(super) mod saved;
pub mod saved_attributes;
pub mod saved_hooks;
pub(super) mod view;
mod view_op;
mod view_writes;
pub(super) mod vjp;
