//! Memory that may not be allocated yet, and its pending contents.

use super::step::DeferredStep;
use crate::array::lock_order::{Ordered, Rank};
use crate::array::storage::{Access, Storage};
use crate::backend::contract::{DeviceMemory, Memory};
use crate::host::live_memory::BufferKey;
use crate::host::memory::alloc::Buffer;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The source of memory.
pub(in crate::array) enum MemorySource {
    Own(Buffer),
    /// Memory of a device.
    Device(Box<dyn DeviceMemory>),
    /// Taken over from an input that only the program held.
    Taken(Storage),
}

impl MemorySource {
    /// Where it begins.
    #[inline]
    pub fn memory(&self) -> Option<Memory<'_>> {
        match self {
            MemorySource::Own(b) => Some(Memory::Host(b.as_ptr())),
            MemorySource::Device(m) => Some(Memory::Device(&**m)),
            MemorySource::Taken(s) => s.deferred().and_then(DeferredMemory::memory),
        }
    }
}

/// A step is pending.
const PENDING: u32 = 1;
/// The address is known outside of the crate.
const EXPOSED: u32 = 2;
/// The rest of the word counts the pending steps that read this memory.
const READER: u32 = 4;

pub(in crate::array) struct DeferredMemory {
    memory: OnceLock<MemorySource>,
    state: AtomicU32,
    /// The number of holders outside that know the address.
    known: AtomicU32,
    /// The number of its entry in the list of pending storages.
    number: AtomicU64,
    step: Ordered<Option<Arc<DeferredStep>>, { Rank::Storage as u8 }>,
}

impl DeferredMemory {
    #[inline]
    pub fn of(source: MemorySource) -> DeferredMemory {
        DeferredMemory {
            memory: OnceLock::from(source),
            state: AtomicU32::new(0),
            known: AtomicU32::new(0),
            number: AtomicU64::new(0),
            step: Ordered::new(None),
        }
    }

    pub fn pending(step: Arc<DeferredStep>) -> DeferredMemory {
        DeferredMemory {
            memory: OnceLock::new(),
            state: AtomicU32::new(PENDING),
            known: AtomicU32::new(0),
            number: AtomicU64::new(0),
            step: Ordered::new(Some(step)),
        }
    }

    #[inline]
    pub fn is_pending(&self) -> bool {
        self.state.load(Ordering::Acquire) & PENDING != 0
    }

    pub fn is_exposed(&self) -> bool {
        self.state.load(Ordering::Acquire) & EXPOSED != 0
    }

    /// A holder outside gets the address.
    pub fn expose(&self) {
        self.known.fetch_add(1, Ordering::AcqRel);
        self.state.fetch_or(EXPOSED, Ordering::AcqRel);
    }

    /// Such a holder is gone.
    pub fn hide(&self) {
        if self.known.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.state.fetch_and(!EXPOSED, Ordering::AcqRel);
            // Another holder may have come in between.
            if self.known.load(Ordering::Acquire) > 0 {
                self.state.fetch_or(EXPOSED, Ordering::AcqRel);
            }
        }
    }

    /// How many pending steps read this memory.
    #[inline]
    pub fn readers(&self) -> u32 {
        self.state.load(Ordering::Acquire) / READER
    }

    pub fn add_reader(&self) {
        self.state.fetch_add(READER, Ordering::AcqRel);
    }

    pub fn remove_reader(&self) {
        self.state.fetch_sub(READER, Ordering::AcqRel);
    }

    /// Whether an access of this kind needs no settling: nothing is pending and, for a write, no pending step reads the memory.
    #[inline]
    pub fn is_settled_for(&self, access: Access) -> bool {
        let state = self.state.load(Ordering::Acquire);
        match access {
            Access::Read => state & PENDING == 0,
            Access::Write => state & !EXPOSED == 0,
        }
    }

    pub fn step(&self) -> Option<Arc<DeferredStep>> {
        self.step.lock().clone()
    }

    /// Makes `step` the pending contents; true if nothing was pending before.
    pub fn set_step(&self, step: Arc<DeferredStep>) -> bool {
        let old = self.step.lock().replace(step);
        self.state.fetch_or(PENDING, Ordering::AcqRel) & PENDING == 0 && old.is_none()
    }

    /// Called when `step` has run. Returns the step if none was appended after it.
    pub fn finish_step(&self, step: &Arc<DeferredStep>) -> Option<Arc<DeferredStep>> {
        let mut slot = self.step.lock();
        if slot.as_ref().is_some_and(|s| Arc::ptr_eq(s, step)) {
            self.state.fetch_and(!PENDING, Ordering::AcqRel);
            return slot.take();
        }
        None
    }

    pub fn set_number(&self, number: u64) {
        self.number.store(number, Ordering::Release);
    }

    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    pub fn is_allocated(&self) -> bool {
        self.memory.get().is_some()
    }

    /// Sets the memory, once.
    pub fn set_memory(&self, source: MemorySource) {
        let first = self.memory.set(source).is_ok();
        debug_assert!(first, "a result's memory was provided twice");
    }

    /// The storage whose memory this is, where it was taken over.
    pub fn taken(&self) -> Option<&Storage> {
        match self.memory.get() {
            Some(MemorySource::Taken(s)) => Some(s),
            _ => None,
        }
    }

    /// Where the memory begins, once it is there.
    #[inline]
    pub fn memory(&self) -> Option<Memory<'_>> {
        self.memory.get().and_then(MemorySource::memory)
    }

    /// What the allocator counts for it.
    pub fn held(&self) -> Option<(BufferKey, usize)> {
        match self.memory.get()? {
            MemorySource::Own(b) => Some((b.key(), b.capacity())),
            MemorySource::Device(m) => m.held(),
            MemorySource::Taken(s) => s.held(),
        }
    }

    /// The memory's address.
    ///
    /// # Panics
    /// If it is not there yet.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        match self.memory.get() {
            Some(MemorySource::Own(b)) => b.as_ptr(),
            Some(MemorySource::Taken(s)) => s.deferred().map_or(std::ptr::null_mut(), DeferredMemory::address),
            None | Some(MemorySource::Device(_)) => {
                unreachable!("memory of a pending result was reached before it was computed")
            }
        }
    }
}
