//! A device in use: its limits, buffers, pipelines, the recording of commands, and the errors that shaders report.
//!
//! Not here: the C interface of the library (`native`), and shaders (`wgsl`, and a module for each family of kernels).

pub mod buffer;
mod cache;
pub mod context;
pub mod dispatch;
pub mod errors;
pub mod host;
mod pipeline;
mod recorder;
mod timer;
