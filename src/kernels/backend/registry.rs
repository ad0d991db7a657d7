//! The registry of devices. A backend is one folder and one line here.

use super::contract::Backend;
use super::{meta, wgpu};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A device: a number of the registry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device(u8);

/// The name of a device, and the function that finds its backend on first use.
#[derive(Debug, Clone, Copy)]
struct BackendEntry {
    name: &'static str,
    find: fn() -> Result<Arc<dyn Backend>>,
}

/// The names of the devices of this crate. The host comes first; storages on it hold no `Arc`, because small values are stored inline.
const OWN: [&str; 3] = ["cpu", "wgpu", "meta"];

/// Their backends. Apart from the names: a test of this crate that prints a device would otherwise compile every kernel again.
fn own(k: usize) -> Result<Arc<dyn Backend>> {
    [host, wgpu::backend::current, meta::current][k]()
}

/// Devices registered from outside of this crate.
static OTHERS: [OnceLock<BackendEntry>; 4] = [const { OnceLock::new() }; 4];

fn host() -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(super::cpu::backend::Cpu))
}

impl Device {
    /// The host.
    pub const CPU: Device = Device(0);
    pub const WGPU: Device = Device(1);
    pub const META: Device = Device(2);

    fn other(self) -> &'static BackendEntry {
        OTHERS[usize::from(self.0) - OWN.len()].get().expect("a device comes from the registry")
    }

    pub fn name(self) -> &'static str {
        OWN.get(usize::from(self.0)).copied().unwrap_or_else(|| self.other().name)
    }

    /// The device of this name, if there is one.
    pub fn named(name: &str) -> Option<Device> {
        Device::all().find(|d| d.name() == name)
    }

    /// All devices, whether or not this machine has them.
    pub fn all() -> impl Iterator<Item = Device> {
        let others = OTHERS.iter().take_while(|e| e.get().is_some()).count();
        (0..OWN.len() + others).map(|k| Device(k as u8))
    }

    /// Whether memory of the device is host memory.
    #[inline]
    pub fn is_host(self) -> bool {
        self == Device::CPU
    }

    /// The device's backend.
    ///
    /// # Errors
    /// This machine has no such device, or its driver is missing.
    pub fn backend(self) -> Result<Arc<dyn Backend>> {
        let k = usize::from(self.0);
        if k < OWN.len() { own(k) } else { (self.other().find)() }
    }

    /// Adds a device.
    ///
    /// # Errors
    /// The name is taken, or there are too many devices.
    pub fn register(name: &'static str, find: fn() -> Result<Arc<dyn Backend>>) -> Result<Device> {
        if Device::named(name).is_some() {
            return Err(Error::runtime(format!("a device named {name} is registered already")));
        }
        for (k, slot) in OTHERS.iter().enumerate() {
            if slot.set(BackendEntry { name, find }).is_ok() {
                return Ok(Device((OWN.len() + k) as u8));
            }
        }
        Err(Error::runtime(format!("no room for a device named {name}: {} have been registered", OTHERS.len())))
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::CPU
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
