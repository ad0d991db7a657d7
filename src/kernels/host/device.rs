//! Devices: numbers with a name. What a device can do is its backend's (`backend/registry.rs`).

use crate::error::{Error, Result};
use std::fmt;
use std::sync::OnceLock;

/// A device: a number of the registry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device(u8);

/// The names of the devices of this crate. The host comes first; storages on it hold no `Arc`, because small values are stored inline.
const OWN: [&str; 3] = ["cpu", "wgpu", "meta"];

/// The most devices from outside of this crate.
pub const OTHERS: usize = 4;

/// Their names.
static OTHER_NAMES: [OnceLock<&'static str>; OTHERS] = [const { OnceLock::new() }; OTHERS];

impl Device {
    /// The host.
    pub const CPU: Device = Device(0);
    pub const WGPU: Device = Device(1);
    pub const META: Device = Device(2);

    pub fn name(self) -> &'static str {
        let other = || *OTHER_NAMES[usize::from(self.0) - OWN.len()].get().expect("a device comes from the registry");
        OWN.get(usize::from(self.0)).copied().unwrap_or_else(other)
    }

    /// The device of this name, if there is one.
    pub fn named(name: &str) -> Option<Device> {
        Device::all().find(|d| d.name() == name)
    }

    /// All devices, whether or not this machine has them.
    pub fn all() -> impl Iterator<Item = Device> {
        let others = OTHER_NAMES.iter().take_while(|e| e.get().is_some()).count();
        (0..OWN.len() + others).map(|k| Device(k as u8))
    }

    /// Whether memory of the device is host memory.
    #[inline]
    pub fn is_host(self) -> bool {
        self == Device::CPU
    }

    /// Its place among the devices from outside of this crate.
    pub fn other(self) -> Option<usize> {
        usize::from(self.0).checked_sub(OWN.len())
    }

    /// A number for a new device. `prepare` is given its place among the others, before anybody can find the device by its name.
    ///
    /// # Errors
    /// The name is taken, or there are too many devices.
    pub(crate) fn add(name: &'static str, prepare: impl Fn(usize) -> bool) -> Result<Device> {
        if Device::named(name).is_some() {
            return Err(Error::runtime(format!("a device named {name} is registered already")));
        }
        for (k, slot) in OTHER_NAMES.iter().enumerate() {
            if prepare(k) && slot.set(name).is_ok() {
                return Ok(Device((OWN.len() + k) as u8));
            }
        }
        Err(Error::runtime(format!("no room for a device named {name}: {OTHERS} have been registered")))
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
