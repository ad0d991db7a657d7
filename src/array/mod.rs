//! Values without history: storages, and arrays that view them.
//!
//! `storage` is memory, `version` counts its writes, `value` an array (storage, layout, dtype), `run` passes requests to backends, `deferred` keeps pending
//! results, `profile` the events of the profiler; the other files are the operations of arrays by family. Not here: kernels (`backend`), derivatives (`autograd`).

mod bits;
mod counted;
mod deferred;
mod elements;
mod index;
pub(crate) mod lock_order;
mod matmul;
mod pointwise;
pub mod profile;
mod reduce;
mod result_layout;
mod run;
mod storage;
mod together;
mod transfer;
mod value;
mod version;

pub use crate::backend::cpu::random::rejection::{Rejected, RejectionSampler};
pub use crate::backend::cpu::resample::bytes::ResampleBytes;
pub use crate::call::{Bounds, Distribution, IndexPlan, Random, Write, below};
pub use crate::layout::Element;
pub use deferred::policy as fusion;
pub use index::{JoinOrder, index_shape, value_mismatch};
pub use pointwise::Numbers;
pub use reduce::reduced_shape;
pub use run::support_table;
pub use storage::{Access, Device, Storage};
pub use together::{ArrayGroup, OverwritingProgram};
pub use value::Array;
pub use version::{Change, Version, new_age};
