//! The contract of a backend: memory, and kernels over strided memory. A backend knows no derivative and no history.

pub mod cpu;
pub mod host;
pub mod lock_order;
pub mod program;
pub mod wgpu;
