//! The contract of a backend: memory, and kernels over strided memory. A backend knows no derivative and no history.

pub mod cpu;
pub mod host;
pub mod program;
// Handles and views of a device are plain numbers: safe to use only as the crate itself does.
#[cfg_attr(not(feature = "python"), allow(dead_code, unused_imports))]
pub(crate) mod wgpu;
