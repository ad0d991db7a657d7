//! The recorded graph: nodes and edges, the tensors that a node saves with their hooks, and views.
//!
//! Not here: who makes nodes (`dispatch/record.rs`) and who runs them (`engine`).

pub(super) mod node;
pub(super) mod saved;
pub mod saved_attributes;
pub mod saved_hooks;
pub(super) mod view;
mod view_op;
