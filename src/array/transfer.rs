//! Copies of arrays between devices.

use super::storage::{Access, Device, DeviceHandle, Storage};
use super::value::Array;
use crate::error::Result;
use crate::host::memory::raw_slice::RawSlice;

impl Array {
    /// A copy on another device, with the same order of dimensions if it is dense; the array itself if it is there already.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        if self.device() == device {
            return Ok(self.clone());
        }
        if device.is_host() { self.download() } else { self.upload(DeviceHandle::of(device)?) }
    }

    /// A copy on the device of `other`; the array itself if it is there already.
    pub fn to_device_of(&self, other: &Array) -> Result<Array> {
        match other.storage.device_handle() {
            _ if self.storage.is_beside(&other.storage) => Ok(self.clone()),
            None => self.download(),
            Some(device_handle) => self.upload(device_handle.clone()),
        }
    }

    fn upload(&self, device_handle: DeviceHandle) -> Result<Array> {
        if !self.device().is_host() {
            return self.download()?.upload(device_handle);
        }
        device_handle.backend.has_dtype(self.dtype)?;
        let dense = if self.layout.is_dense() && self.layout.offset() == 0 { self.clone() } else { self.clone_dense()? };
        let out = Array::on_device(device_handle, dense.layout.clone(), self.dtype)?;
        let n = self.numel();
        if n > 0
            && let Some(to) = out.storage.device_memory()
        {
            dense.ready()?;
            // SAFETY: the layout is dense and starts at 0, so the storage begins with n initialised elements of this dtype.
            let bytes = unsafe { RawSlice::new(dense.storage.memory(Access::Read), n * self.dtype.size()) };
            out.storage.backend().upload(bytes, self.dtype, to)?;
        }
        Ok(out)
    }

    fn download(&self) -> Result<Array> {
        self.ready()?;
        let dense = if self.layout.is_dense() { self.clone() } else { self.contiguous_copy()? };
        let (start, n) = (dense.layout.offset(), self.numel());
        let out = Array::from_parts(Storage::alloc(n * self.dtype.size())?, dense.layout.rewound(), self.dtype)?;
        dense.ready()?;
        if n > 0
            && let Some(from) = dense.storage.device_memory()
        {
            // SAFETY: the layout is dense, so n elements lie behind one another there; the new storage has room for them.
            unsafe { dense.storage.backend().download(from, start, n, self.dtype, out.storage.memory(Access::Write))? };
        }
        Ok(out)
    }
}
