//! Host memory of CPU tensors: the allocator, its pages and its statistics, and slices of memory that several threads may write.
//!
//! Not here: the versions of storages and their sharing between tensors (`array/storage.rs`).

pub mod alloc;
pub(crate) mod cache_line;
mod pages;
pub mod raw_slice;
pub(crate) mod reserve;
mod stats;
