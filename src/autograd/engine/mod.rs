//! The engine: runs the nodes of a graph in order, sums the gradients at each node, and accumulates them in the leaves.
//!
//! `backward` is one pass (a graph task), `call_node` runs a node alone. `input_buffer` sums gradients that arrive at nodes. `accumulate` writes
//! `.grad`. `cut` keeps zeros of elements that a choice left out, `edge_fit` fits gradients to edges. `hooks`, `node_hooks`, `graph_task` and `task_plan` are what foreign code sees of a pass, `thread_state` is what it cannot change,
//! `foreign_run` keeps its lock. `fork` and `node_index` handle several threads. Not here: what a node computes (`graph/node.rs`, `ops`).

pub(super) mod accumulate;
mod backward;
mod call_node;
mod cut;
mod edge_fit;
pub mod foreign_run;
pub(super) mod input_buffer;
pub mod fork;
pub mod graph_task;
pub mod hooks;
pub(super) mod node_hooks;
pub(super) mod node_index;
mod ready_queue;
pub mod task_plan;
mod thread_state;

pub use backward::{Options, run};
pub use call_node::call_node;
