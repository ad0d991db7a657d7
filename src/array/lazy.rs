//! Memory of the host's allocator that may be there, or be there once somebody looks.

use super::pending::Step;
use super::storage::{Access, Storage};
use crate::backend::contract::{DeviceMemory, Memory};
use crate::backend::cpu::memory::alloc::Buffer;
use crate::backend::lock_order::{Ordered, Rank};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Whose memory it is.
pub(super) enum Source {
    Own(Buffer),
    /// A device's.
    Device(Box<dyn DeviceMemory>),
    /// Taken over from a storage that only the program held which wrote the result.
    Taken(Storage),
}

impl Source {
    /// Where it begins.
    #[inline]
    pub fn memory(&self) -> Option<Memory<'_>> {
        match self {
            Source::Own(b) => Some(Memory::Host(b.as_ptr())),
            Source::Device(m) => Some(Memory::Device(&**m)),
            Source::Taken(s) => s.lazy().and_then(Lazy::memory),
        }
    }
}

/// A step waits to be computed.
const PENDING: u32 = 1;
/// The address is known outside.
const EXPOSED: u32 = 2;
/// The rest of the word counts the pending steps that read this memory.
const READER: u32 = 4;

pub(super) struct Lazy {
    memory: OnceLock<Source>,
    state: AtomicU32,
    /// How many outside know the address.
    known: AtomicU32,
    /// When it last became pending, by count.
    number: AtomicU64,
    step: Ordered<Option<Arc<Step>>, { Rank::Storage as u8 }>,
}

impl Lazy {
    #[inline]
    pub fn of(source: Source) -> Lazy {
        Lazy {
            memory: OnceLock::from(source),
            state: AtomicU32::new(0),
            known: AtomicU32::new(0),
            number: AtomicU64::new(0),
            step: Ordered::new(None),
        }
    }

    pub fn pending(step: Arc<Step>) -> Lazy {
        Lazy {
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

    /// From now on somebody outside knows the address.
    pub fn expose(&self) {
        self.known.fetch_add(1, Ordering::AcqRel);
        self.state.fetch_or(EXPOSED, Ordering::AcqRel);
    }

    /// Somebody who knew it is gone.
    pub fn hide(&self) {
        if self.known.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.state.fetch_and(!EXPOSED, Ordering::AcqRel);
            // Another one may have come in between.
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

    /// Whether an access of this kind finds what it should: nothing pending, and for a write nobody who still wants to read.
    #[inline]
    pub fn is_settled_for(&self, access: Access) -> bool {
        let state = self.state.load(Ordering::Acquire);
        match access {
            Access::Read => state & PENDING == 0,
            Access::Write => state & !EXPOSED == 0,
        }
    }

    pub fn step(&self) -> Option<Arc<Step>> {
        self.step.lock().clone()
    }

    /// Lets `step` say what is in the memory; true if nothing was pending before.
    pub fn set_step(&self, step: Arc<Step>) -> bool {
        let old = self.step.lock().replace(step);
        self.state.fetch_or(PENDING, Ordering::AcqRel) & PENDING == 0 && old.is_none()
    }

    /// The end of a run of `step`, if nothing was added to it meanwhile.
    pub fn done(&self, step: &Arc<Step>) -> Option<Arc<Step>> {
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

    pub fn is_there(&self) -> bool {
        self.memory.get().is_some()
    }

    /// Gives the memory, once.
    pub fn provide(&self, source: Source) {
        let first = self.memory.set(source).is_ok();
        debug_assert!(first, "a result's memory was provided twice");
    }

    /// The storage whose memory this is, where it was taken over.
    pub fn taken(&self) -> Option<&Storage> {
        match self.memory.get() {
            Some(Source::Taken(s)) => Some(s),
            _ => None,
        }
    }

    /// Where the memory begins, once it is there.
    #[inline]
    pub fn memory(&self) -> Option<Memory<'_>> {
        self.memory.get().and_then(Source::memory)
    }

    /// The memory's address.
    ///
    /// # Panics
    /// If it is not there yet.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        match self.memory.get() {
            Some(Source::Own(b)) => b.as_ptr(),
            Some(Source::Taken(s)) => s.lazy().map_or(std::ptr::null_mut(), Lazy::address),
            None | Some(Source::Device(_)) => {
                unreachable!("memory of a pending result was reached before it was computed")
            }
        }
    }
}
