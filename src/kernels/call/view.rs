//! Memory as requests and programs see it: the host's or a device's, and strided elements of it.

use crate::host::live_memory::BufferKey;
use crate::layout::DType;
use std::any::Any;
use std::fmt;

/// Memory that the host cannot address. Dropping it returns it to the device, on any thread and in the order of the device's queue.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    fn bytes(&self) -> usize;

    /// The key under which the device's allocator has registered it (`live_memory`), and the bytes that it counts. None if it counts nothing.
    fn held(&self) -> Option<(BufferKey, usize)> {
        None
    }

    fn as_any(&self) -> &dyn Any;
}

/// The start of an operand's memory.
#[derive(Debug, Clone, Copy)]
pub enum Memory<'a> {
    /// An address of the host.
    Host(*mut u8),
    Device(&'a dyn DeviceMemory),
}

impl Memory<'_> {
    /// The address, of memory of the host.
    ///
    /// # Panics
    /// The memory is a device's: the caller has chosen the wrong backend.
    #[inline]
    pub fn address(self) -> *mut u8 {
        match self {
            Memory::Host(p) => p,
            Memory::Device(m) => panic!("memory of a device was asked for its address: {m:?}"),
        }
    }
}

/// Strided elements in memory.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub memory: Memory<'a>,
    /// The first element's place.
    pub offset: usize,
    pub shape: &'a [usize],
    /// One for each dimension, in elements; 0 where a dimension is broadcast.
    pub strides: &'a [isize],
    pub dtype: DType,
}

impl View<'_> {
    /// The first element, of memory of the host.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.memory.address().wrapping_add(self.offset * self.dtype.size())
    }

    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }
}
