//! The registry of backends. A backend is one folder and one line here, and its name in `host/device.rs`.

pub use crate::host::device::Device;

use super::contract::Backend;
use super::{cpu, meta, wgpu};
use crate::error::Result;
use crate::host::device::OTHERS;
use std::sync::{Arc, OnceLock};

/// Finds the backend of a device on first use.
type Find = fn() -> Result<Arc<dyn Backend>>;

/// Those of devices from outside of this crate.
static FOUND_BY: [OnceLock<Find>; OTHERS] = [const { OnceLock::new() }; OTHERS];

fn host() -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(cpu::backend::Cpu))
}

impl Device {
    /// The device's backend.
    ///
    /// # Errors
    /// This machine has no such device, or its driver is missing.
    pub fn backend(self) -> Result<Arc<dyn Backend>> {
        match (self, self.other()) {
            (Device::WGPU, _) => wgpu::backend::current(),
            (Device::META, _) => meta::current(),
            (_, Some(k)) => FOUND_BY[k].get().expect("a device comes from the registry")(),
            (_, None) => host(),
        }
    }

    /// Adds a device.
    ///
    /// # Errors
    /// The name is taken, or there are too many devices.
    pub fn register(name: &'static str, find: fn() -> Result<Arc<dyn Backend>>) -> Result<Device> {
        Device::add(name, |k| FOUND_BY[k].set(find).is_ok())
    }
}
