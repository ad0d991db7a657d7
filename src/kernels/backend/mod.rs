//! Backends: what they implement (`contract`), which devices exist (`registry`), and the backends themselves, one folder each. Not here:
//! derivatives, history, tensors.

pub mod contract;
pub mod cpu;
pub mod meta;
pub mod registry;
/// Handles and views of a device are plain numbers: safe to use only as the core does.
pub mod wgpu;
