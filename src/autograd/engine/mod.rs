//! The engine: runs the nodes of a graph in order, adds up the gradients at each, and brings them to the leaves.
//!
//! `backward` is one pass (a graph task), `input_buffer` the gradients waiting at nodes (input buffers), `accumulate` the end at `.grad`; `hooks`,
//! `node_hooks`, `graph_task` and `task_plan` are what foreign code sees of a pass, `fork` and `node_index` serve threads. Not here: what a
//! node computes (`graph/node.rs`, `ops`).

pub(super) mod accumulate;
mod backward;
pub(super) mod input_buffer;
pub mod fork;
pub mod graph_task;
pub mod hooks;
pub(super) mod node_hooks;
pub(super) mod node_index;
pub mod task_plan;

pub use backward::{Options, call_node, run};
