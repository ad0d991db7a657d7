//! A device in use: its buffers, pipelines and queue.

use super::dispatch::Dispatch;
use crate::error::{Error, Result};
use crate::layout::DType;
use std::sync::Arc;

/// Memory of a device. Given back to the context's pool when dropped, in stream order.
#[derive(Debug)]
pub struct Buffer {
    context: Arc<Context>,
    bytes: usize,
}

impl Buffer {
    /// Uninitialised memory on the current device.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Buffer> {
        Ok(Buffer { context: context.clone(), bytes })
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn same(&self, other: &Buffer) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A device, its queue, and everything cached for it.
#[derive(Debug)]
pub struct Context(());

impl Context {
    /// Refuses element types that the adapter has no arithmetic for.
    pub fn supports(&self, dtype: DType) -> Result<()> {
        match dtype {
            DType::F64 => Err(Error::not_implemented("float64 needs an adapter with the feature shader-f64")),
            _ => Ok(()),
        }
    }

    /// The device that new tensors go to; an error that says what to do if there is none.
    pub fn current() -> Result<Arc<Context>> {
        Err(Error::runtime("no wgpu device is in use"))
    }

    /// Records a dispatch behind all earlier ones.
    pub fn dispatch(&self, _work: Dispatch<'_>) -> Result<()> {
        Err(Error::runtime("no wgpu device is in use"))
    }

    /// Writes `data` into `buffer` from byte `offset` on (multiples of 4), behind all earlier work.
    pub fn write(&self, _buffer: &Buffer, _offset: usize, _data: &[u8]) -> Result<()> {
        Err(Error::runtime("no wgpu device is in use"))
    }

    /// Waits for all earlier work and gives the bytes of `buffer` from `offset` on (multiples of 4). Reports faults of earlier work.
    pub fn read(&self, _buffer: &Buffer, _offset: usize, _bytes: usize) -> Result<Vec<u8>> {
        Err(Error::runtime("no wgpu device is in use"))
    }

    /// Submits what is recorded, waits for it, and reports faults.
    pub fn synchronize(&self) -> Result<()> {
        Err(Error::runtime("no wgpu device is in use"))
    }

    /// A number by which a checked shader reports an index out of range: operation and call site are remembered under it. The shader
    /// calls `fault(ticket, index_low, index_high, dim, size)` of `dispatch::FAULT` (the first fault is kept) and touches no memory.
    pub fn ticket(&self, _op: &'static str) -> u32 {
        0
    }
}
