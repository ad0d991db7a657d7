//! Backends: what they implement (`contract`), what they can be asked to compute (`requests`, plain data), which devices exist
//! (`registry`), and the backends themselves, one folder each. Not here: derivatives, history, tensors.

pub mod contract;
pub mod cpu;
pub mod device_times;
pub mod host;
pub mod interrupt;
pub mod live_memory;
pub mod lock_order;
pub mod meta;
pub mod program;
pub mod raw_lock;
pub mod registry;
pub mod requests;
/// Handles and views of a device are plain numbers: safe to use only as the core does.
pub mod wgpu;
