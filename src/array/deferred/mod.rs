//! Note: pending memory. The result of a large operation may stay pending: a step of a deferred program over its inputs, which runs when the
//! memory is read. Then its result may be fused into other steps and never be written. The invariants:
//! - Memory that a pending step reads is not written before that step has run: a write first settles the readers (`Storage::settle`), and the
//!   memory's address is not known outside (`Storage::expose`).
//! - Steps read memory only in `graph::run`, under the lock `RUN` of `queue`, which is also held while a step is appended to another one on the
//!   same storage.
//! - Nothing runs in destructors or allocations. A program that keeps more memory alive than its results take is flagged, and runs at the next
//!   safe point, where no guard is held (`queue::sweep`).
//! - A program that fails or is interrupted leaves everything as it was, apart from results that are complete.
//!
//! `policy` decides which results stay pending, `step` is one pending result, `memory` the memory that it will have, `queue` lists the pending
//! storages and settles them, `source` is a request with later steps as its epilogue, `graph` collects the steps of one program, and `execute` passes it to the
//! backend. Not here: computing a step (`backend`), and requesting results (`array/run.rs`, `Storage::settle`).

pub(super) mod execute;
pub(super) mod graph;
pub(super) mod memory;
pub mod policy;
pub(super) mod queue;
pub(super) mod source;
pub(super) mod step;
