//! Dispatch: an operation is passed to the rule of the highest transform level among its inputs, runs on arrays at level 0, and is recorded.
//!
//! `op` says what an operation is. `apply` dispatches one. `fast_path` is a shortcut for pointwise rows on small arrays. `record` makes the
//! nodes. `flat` has derivatives of 0 that are recorded. `mode`, `autocast`, `call_site`, `operation_watcher` and `write_callback` are
//! thread-local settings. Not here: the rules of levels (`transforms`), what a node is (`graph`).

pub mod apply;
pub mod autocast;
pub mod call_site;
pub(super) mod expr;
pub(super) mod fast_path;
pub mod flat;
pub mod mode;
pub mod module_site;
pub mod op;
pub mod operation_watcher;
pub(super) mod pointwise;
pub mod record;
pub mod write_callback;
