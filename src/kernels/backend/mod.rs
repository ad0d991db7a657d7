//! The contract of a backend: memory, and kernels over strided memory. A backend knows no derivative and no history.

pub mod contract;
pub mod cpu;
pub mod host;
pub mod lock_order;
pub mod meta;
pub mod program;
pub mod registry;
pub mod requests;
/// Handles and views of a device are plain numbers: safe to use only as the core does.
pub mod wgpu;
