//! Deferred results: what a large operation gives may stay a step of a program over its inputs until somebody reads the memory.
//!
//! `policy` says which results wait, `step` is one of them, `memory` is where its result will be, `queue` knows all that wait and settles
//! them, `graph` collects the steps of one program, and `execute` hands it to the backend. Not here: what a step computes (`backend`), and
//! who asks for results (`array/run.rs`, `Storage::settle`).

pub(super) mod execute;
pub(super) mod graph;
pub(super) mod memory;
pub mod policy;
pub(super) mod queue;
pub(super) mod step;
