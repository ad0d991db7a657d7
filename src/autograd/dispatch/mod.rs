//! Dispatch: an operation is passed to the rule of the highest level among its inputs, run on arrays at level 0, and recorded.
//!
//! `op` says what an operation is, `apply` runs one, `fast_path` runs small pointwise rows, `record` makes the nodes, and `mode`,
//! `call_site` and `write_callback` are what a thread has switched on. Not here: rules of levels (`transforms`), what a node is (`graph`).

pub mod apply;
pub mod call_site;
pub(super) mod fast_path;
pub mod mode;
pub mod op;
pub(super) mod pointwise;
pub mod record;
pub mod write_callback;
