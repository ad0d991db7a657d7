//! The machine that the process runs on: threads, memory, locks, and what the language around the engine is asked for (release of its lock,
//! interrupts). Not here: tensors, requests, kernels.

pub mod device;
pub mod device_times;
pub mod interrupt;
pub mod kernel_names;
pub mod language;
pub mod live_memory;
pub mod lock_order;
pub mod memory;
pub mod raw_lock;
pub mod threads;
