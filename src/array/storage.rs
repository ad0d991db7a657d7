//! Storage: memory on a device, shared by all views of it.

use super::counted::{Counted, Findable};
use super::deferred::memory::{DeferredMemory, MemorySource};
use super::deferred::queue;
use super::deferred::step::DeferredStep;
use super::version::Counter;
use crate::array::lock_order::assert_no_guard;
use crate::backend::contract::{self, Backend, DeviceMemory};
use crate::backend::cpu::backend::CPU;
use crate::error::Result;
use crate::host::live_memory::BufferKey;
use crate::host::memory::alloc::{self, Buffer};
use crate::layout::DType;
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use crate::backend::registry::Device;

/// The kind of an access to a storage's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Small values are stored inline, in the storage's own allocation. 64 bytes hold a 4x4 matrix of f32.
pub(super) const INLINE: usize = 64;

#[repr(align(16))]
struct Inline(UnsafeCell<[MaybeUninit<u8>; INLINE]>);

enum StorageMemory {
    Inline(Inline),
    /// Memory of the allocator, perhaps not allocated before a pending result is computed.
    Host(DeferredMemory),
    /// External memory, kept alive by `owner`. Deferred steps do not read it, and it is not resized.
    External {
        ptr: *mut u8,
        writable: bool,
        _owner: Box<dyn Any + Send + Sync>,
    },
    /// Memory of a device that the host cannot address, perhaps not allocated yet.
    Device(DeferredMemory, DeviceHandle, DeviceAddress),
}

/// Where a device's memory would begin if the host could address it: a number that programs compare, given when the first asks, 0 before.
/// Ranges of two storages do not overlap, also after one is gone, and no host memory is there.
#[derive(Default)]
struct DeviceAddress(AtomicUsize);

impl DeviceAddress {
    fn get(&self, bytes: usize) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 56);
        let known = self.0.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let new = NEXT.fetch_add(bytes.max(1).next_multiple_of(256), Ordering::Relaxed);
        self.0.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|other| other, |_| new)
    }
}

/// A device, and the backend that drives it.
#[derive(Clone, Debug)]
pub(super) struct DeviceHandle {
    pub device: Device,
    pub backend: Arc<dyn Backend>,
}

impl DeviceHandle {
    /// # Errors
    /// As for `Device::backend`.
    pub fn of(device: Device) -> Result<DeviceHandle> {
        Ok(DeviceHandle { device, backend: device.backend()? })
    }

    fn same(&self, other: &DeviceHandle) -> bool {
        self.device == other.device && self.backend.unit() == other.backend.unit()
    }
}

pub(super) struct StorageInner {
    memory: StorageMemory,
    bytes: usize,
    pub(super) version: Counter,
}

// SAFETY: the raw memory is reached only through `Storage::memory`. Two threads that write one tensor at once get torn values, as in PyTorch. The
// counters are atomic, the owner is Send + Sync, and address and size never change.
unsafe impl Send for StorageInner {}
// SAFETY: as above.
unsafe impl Sync for StorageInner {}

impl Findable for StorageInner {
    #[inline]
    fn is_findable(&self) -> bool {
        matches!(&self.memory, StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) if deferred.is_pending())
    }
}

impl Drop for StorageInner {
    fn drop(&mut self) {
        match &self.memory {
            StorageMemory::Inline(a) => alloc::end_inline(a.0.get() as usize, INLINE),
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) if deferred.is_pending() => queue::forget(deferred),
            StorageMemory::External { .. } => assert_no_guard("dropping memory of somebody else"),
            _ => {}
        }
    }
}

#[cold]
fn no_address() -> ! {
    panic!("memory of a device was asked for its address")
}

/// A shared handle of memory.
#[derive(Clone)]
pub struct Storage(pub(super) Counted<StorageInner>);

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if let StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) = &self.0.memory
            && deferred.readers() > 0
        {
            queue::handle_dropped(self.0.count() - 1, deferred.readers() as usize, deferred.is_allocated());
        }
    }
}

impl Storage {
    /// Uninitialised memory of `bytes` bytes.
    #[inline]
    pub fn alloc(bytes: usize) -> Result<Storage> {
        if bytes <= INLINE {
            let room = || StorageMemory::Inline(Inline(UnsafeCell::new([MaybeUninit::uninit(); INLINE])));
            let made = Storage(Counted::with(|| StorageInner { memory: room(), bytes, version: Counter::default() }));
            if let StorageMemory::Inline(a) = &made.0.memory {
                alloc::begin_inline(a.0.get() as usize, INLINE);
                // Initialised in place: kernels may read whole blocks of it (see `is_padded`).
                // SAFETY: no other handle of the new storage exists.
                unsafe { a.0.get().cast::<[u8; INLINE]>().write([0; INLINE]) };
            }
            return Ok(made);
        }
        let memory = StorageMemory::Host(DeferredMemory::of(MemorySource::Own(Buffer::new(bytes)?)));
        Ok(Storage(Counted::with(|| StorageInner { memory, bytes, version: Counter::default() })))
    }

    /// Memory of `bytes` bytes that is not allocated yet, for the result of `step`.
    pub(super) fn pending(bytes: usize, step: Arc<DeferredStep>, device_handle: Option<DeviceHandle>) -> Storage {
        let memory = match device_handle {
            None => StorageMemory::Host(DeferredMemory::pending(step)),
            Some(device_handle) => StorageMemory::Device(DeferredMemory::pending(step), device_handle, DeviceAddress::default()),
        };
        Storage(Counted::with(|| StorageInner { memory, bytes, version: Counter::default() }))
    }

    /// New memory of a device, for elements of this dtype.
    pub(super) fn on_device(device_handle: DeviceHandle, bytes: usize, dtype: DType) -> Result<Storage> {
        let made = device_handle.backend.allocate(bytes, dtype)?;
        let bytes = made.bytes();
        let memory = StorageMemory::Device(DeferredMemory::of(MemorySource::Device(made)), device_handle, DeviceAddress::default());
        Ok(Storage(Counted::with(|| StorageInner { memory, bytes, version: Counter::default() })))
    }

    /// External memory.
    ///
    /// # Safety
    /// `ptr` must stay valid for `bytes` bytes (and for writing, if `writable`) as long as `owner` lives.
    pub unsafe fn external(ptr: *mut u8, bytes: usize, writable: bool, owner: Box<dyn Any + Send + Sync>) -> Storage {
        let memory = StorageMemory::External { ptr, writable, _owner: owner };
        Storage(Counted::with(|| StorageInner { memory, bytes, version: Counter::default() }))
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The memory that the allocator counts for this storage, under its key; None where it counts nothing: memory of somebody else, and pending
    /// results. A storage that took over another one's memory has the same key.
    pub fn held(&self) -> Option<(BufferKey, usize)> {
        match &self.0.memory {
            StorageMemory::Inline(a) => Some(((Device::CPU, a.0.get() as usize), INLINE)),
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) => deferred.held(),
            StorageMemory::External { .. } => None,
        }
    }

    #[inline]
    pub fn device(&self) -> Device {
        match &self.0.memory {
            StorageMemory::Device(_, device_handle, _) => device_handle.device,
            _ => Device::CPU,
        }
    }

    /// The backend whose memory it is.
    #[inline(always)]
    pub(super) fn backend(&self) -> &dyn Backend {
        match &self.0.memory {
            StorageMemory::Device(_, device_handle, _) => &*device_handle.backend,
            _ => &CPU,
        }
    }

    /// The device, unless it is the host.
    #[inline(always)]
    pub(super) fn device_handle(&self) -> Option<&DeviceHandle> {
        match &self.0.memory {
            StorageMemory::Device(_, device_handle, _) => Some(device_handle),
            _ => None,
        }
    }

    /// Whether both belong to one backend.
    #[inline(always)]
    pub(super) fn is_beside(&self, other: &Storage) -> bool {
        match (self.device_handle(), other.device_handle()) {
            (None, None) => true,
            (Some(a), Some(b)) => a.same(b),
            _ => false,
        }
    }

    /// Bytes of one element as this storage's device lays it out.
    #[inline]
    pub fn element_size(&self, dtype: DType) -> usize {
        match &self.0.memory {
            StorageMemory::Device(_, device_handle, _) => device_handle.backend.element_size(dtype),
            _ => dtype.size(),
        }
    }

    /// The memory of a device.
    pub(super) fn device_memory(&self) -> Option<&dyn DeviceMemory> {
        match self.start()? {
            contract::Memory::Device(m) => Some(m),
            contract::Memory::Host(_) => None,
        }
    }

    /// The memory, for a backend. The caller must have settled it for the backend's accesses.
    #[inline(always)]
    pub(super) fn backend_memory(&self) -> contract::Memory<'_> {
        match &self.0.memory {
            StorageMemory::Device(deferred, ..) => {
                if !deferred.is_settled_for(Access::Read) {
                    queue::must_settle(self, Access::Read);
                }
                deferred.memory().unwrap_or(contract::Memory::Host(std::ptr::null_mut()))
            }
            _ => contract::Memory::Host(self.memory(Access::Read)),
        }
    }

    /// The memory of a storage on the CPU. Every access of the crate uses this function (or `backend_memory`), so a pending result is computed
    /// here at the latest.
    ///
    /// # Panics
    /// For memory of a device, which has no address here: dispatch refuses such inputs to CPU operations. For a pending result that cannot be
    /// computed, with its error: callers that can return errors call `settle` first.
    #[inline]
    pub fn memory(&self, access: Access) -> *mut u8 {
        match &self.0.memory {
            StorageMemory::Inline(a) => a.0.get().cast(),
            StorageMemory::Host(deferred) => {
                if !deferred.is_settled_for(access) {
                    queue::must_settle(self, access);
                }
                deferred.address()
            }
            StorageMemory::External { ptr, writable, .. } => {
                debug_assert!(*writable || access == Access::Read, "write to read-only memory");
                *ptr
            }
            StorageMemory::Device(..) => no_address(),
        }
    }

    /// Whether the memory extends to 64 initialised bytes, which nothing else uses, whatever its size.
    #[inline]
    pub(crate) fn is_padded(&self) -> bool {
        matches!(self.0.memory, StorageMemory::Inline(_))
    }

    /// Whether the memory is external and read-only.
    #[inline]
    pub(super) fn is_lent_for_reading(&self) -> bool {
        matches!(self.0.memory, StorageMemory::External { writable: false, .. })
    }

    /// Whether the memory may be written: it is not read-only external memory, and not frozen.
    #[inline]
    pub fn is_writable(&self) -> bool {
        !self.is_lent_for_reading() && self.0.version.frozen().is_none()
    }

    /// Refuses writes from now on, and stores the call site of the first freeze.
    pub fn freeze(&self, site: u32) {
        self.0.version.freeze(site);
    }

    pub fn unfreeze(&self) {
        self.0.version.unfreeze();
    }

    /// The call site that froze the memory, if it is frozen.
    pub fn frozen(&self) -> Option<u32> {
        self.0.version.frozen()
    }

    /// Whether this is the only handle, so that the memory can be taken over. Pending steps hold handles of what they read.
    ///
    /// External memory is never taken over.
    #[inline]
    pub fn is_sole_owner(&self) -> bool {
        self.0.is_only() && !matches!(self.0.memory, StorageMemory::External { .. })
    }

    /// Whether the memory may become that of another value: it holds its values, this is its only handle, and nothing outside knows its address or
    /// has frozen it.
    pub fn may_be_given_away(&self) -> bool {
        self.is_sole_owner() && self.is_writable() && self.deferred().is_none_or(|l| !l.is_pending() && l.readers() == 0 && !l.is_exposed())
    }

    /// The number of handles: of tensors, views, pending steps and objects of the embedding language.
    pub fn handles(&self) -> usize {
        self.0.count()
    }

    /// Whether the memory is the allocator's, so that freeing it runs no foreign code.
    #[inline]
    pub fn is_own(&self) -> bool {
        matches!(self.0.memory, StorageMemory::Inline(_) | StorageMemory::Host(_))
    }

    /// Whether the memory is external.
    pub fn is_external(&self) -> bool {
        matches!(self.0.memory, StorageMemory::External { .. })
    }

    /// The start of the memory, whether or not something is pending in it. None if it is not allocated.
    pub(super) fn start(&self) -> Option<contract::Memory<'_>> {
        match &self.0.memory {
            StorageMemory::Inline(a) => Some(contract::Memory::Host(a.0.get().cast())),
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) => deferred.memory(),
            StorageMemory::External { ptr, .. } => Some(contract::Memory::Host(*ptr)),
        }
    }

    pub(super) fn deferred(&self) -> Option<&DeferredMemory> {
        match &self.0.memory {
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) => Some(deferred),
            _ => None,
        }
    }

    /// Whether a step is pending that writes the memory, or one that reads it.
    #[inline]
    pub fn is_pending(&self) -> bool {
        match &self.0.memory {
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) => {
                !deferred.is_settled_for(Access::Write) && (deferred.is_pending() || deferred.readers() > 0)
            }
            _ => false,
        }
    }

    /// Whether the memory is on the host and `settle` for this access would have nothing to do.
    #[inline]
    pub(super) fn is_settled_for(&self, access: Access) -> bool {
        match &self.0.memory {
            StorageMemory::Inline(_) | StorageMemory::External { .. } => true,
            StorageMemory::Host(deferred) => deferred.is_settled_for(access),
            StorageMemory::Device(..) => false,
        }
    }

    /// Whether the memory is on the host and holds its values.
    #[inline]
    pub fn is_plain(&self) -> bool {
        match &self.0.memory {
            StorageMemory::Inline(_) | StorageMemory::External { .. } => true,
            StorageMemory::Host(deferred) => !deferred.is_pending(),
            StorageMemory::Device(..) => false,
        }
    }

    /// Computes what is pending and must be done before an access of this kind. Releases the host's lock meanwhile.
    ///
    /// # Errors
    /// Memory for the results cannot be allocated; then nothing has changed.
    #[inline]
    pub fn settle(&self, access: Access) -> Result<()> {
        match &self.0.memory {
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) if !deferred.is_settled_for(access) => {
                queue::settle(self, access)
            }
            _ => Ok(()),
        }
    }

    /// Runs the pending steps that read this memory.
    ///
    /// # Errors
    /// As for `settle`.
    #[inline]
    pub(super) fn settle_readers(&self) -> Result<()> {
        match &self.0.memory {
            StorageMemory::Host(deferred) | StorageMemory::Device(deferred, ..) if deferred.readers() > 0 => queue::settle_readers(self),
            _ => Ok(()),
        }
    }

    /// Settles the memory before its address is passed to foreign code that may access it at any time. From then on, until `hide`, no pending
    /// step reads or writes it.
    ///
    /// # Errors
    /// As for `settle`.
    pub fn expose(&self) -> Result<()> {
        if let Some(deferred) = self.deferred() {
            deferred.expose();
        }
        self.settle(Access::Write)
    }

    /// Ends an `expose`: the holder of the address is gone.
    pub fn hide(&self) {
        if let Some(deferred) = self.deferred() {
            deferred.hide();
        }
    }

    #[inline]
    pub fn same(&self, other: &Storage) -> bool {
        self.0.same(&other.0)
    }

    /// Whether the memory was allocated in the given age or later. Ages wrap around: a very old storage counts as new.
    pub fn is_since(&self, age: u32) -> bool {
        self.0.version.is_since(age)
    }

    /// The number that stands for the address of a device's memory; None for memory of the host.
    pub fn device_address(&self) -> Option<usize> {
        match &self.0.memory {
            StorageMemory::Device(_, _, address) => Some(address.get(self.0.bytes)),
            _ => None,
        }
    }

    /// A number that identifies this storage while it lives.
    pub fn id(&self) -> usize {
        self.0.address()
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes on {})", self.0.bytes, self.device())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_memory_keeps_its_owner() {
        let owner = Arc::new(vec![1u8, 2, 3]);
        let ptr = owner.as_ptr() as *mut u8;
        // SAFETY: the Arc in the box keeps the vector alive, and nobody writes.
        let s = unsafe { Storage::external(ptr, 3, false, Box::new(owner.clone())) };
        assert_eq!(Arc::strong_count(&owner), 2);
        assert!(!s.is_writable());
        // SAFETY: three bytes, alive.
        assert_eq!(unsafe { *s.memory(Access::Read).add(2) }, 3);
        drop(s);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
