//! Memory of a device: buffers in size classes, cached for reuse when dropped. One queue runs all work in order, so a buffer can be reused
//! as soon as the last work that uses it is recorded.

use super::context::Context;
use crate::backend::registry::Device;
use crate::backend::wgpu::native::api::Api;
use crate::backend::wgpu::native::types::{self as native, COPY_DST, COPY_SRC, STORAGE};
use crate::error::{Error, ErrorKind, Result};
use crate::host::live_memory;
use crate::host::live_memory::BufferKey;
use crate::host::lock_order::{Table, assert_no_guard};
use crate::layout::DType;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// The smallest buffer.
const MIN_ELEMENTS: usize = 256;
/// Cached bytes that are always allowed.
const IDLE: usize = 256 << 20;
/// So many requests are a window, see `BufferPool::overfull`: many more than a training step makes.
const WINDOW: usize = 1 << 13;

/// The bytes allocated for a request. There are few sizes, so that a freed buffer fits the next request of similar size.
fn capacity(bytes: usize, most: usize) -> usize {
    if bytes <= MIN_ELEMENTS {
        return MIN_ELEMENTS;
    }
    let step = (bytes.next_power_of_two() >> 4).max(MIN_ELEMENTS);
    let rounded = bytes.next_multiple_of(step);
    if rounded <= most { rounded } else { bytes.next_multiple_of(4) }
}

/// A buffer of the library.
#[derive(Debug)]
pub(crate) struct RawBuffer {
    pub(crate) handle: native::Buffer,
    /// Unique: no other buffer ever has this id.
    pub(crate) id: u32,
    pub(crate) capacity: usize,
    /// The last batch of commands that uses it.
    pub(crate) batch: AtomicU64,
}

#[derive(Debug, Default)]
struct IdleBuffers {
    by_capacity: FxHashMap<usize, Vec<RawBuffer>>,
    bytes: usize,
}

/// The unused buffers of a device, and the statistics of all. Its lock is never held during a call of the library.
#[derive(Debug)]
pub(crate) struct BufferPool {
    idle: Table<IdleBuffers>,
    allocated: AtomicUsize,
    peak: AtomicUsize,
    requests: AtomicUsize,
    /// The most bytes in use in this window of requests, and in the last one.
    recent: [AtomicUsize; 2],
    next_id: AtomicU64,
    fail_in: AtomicI64,
}

impl BufferPool {
    pub(crate) fn new() -> BufferPool {
        BufferPool {
            idle: Table::new(IdleBuffers::default()),
            allocated: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            recent: [const { AtomicUsize::new(0) }; 2],
            next_id: AtomicU64::new(1),
            fail_in: AtomicI64::new(-1),
        }
    }

    pub(crate) fn allocated(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.allocated(), Ordering::Relaxed);
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.lock().bytes
    }

    pub(crate) fn fail_in(&self, n: i64) {
        self.fail_in.store(n, Ordering::Relaxed);
    }

    fn fails_now(&self) -> bool {
        self.fail_in.load(Ordering::Relaxed) >= 0 && self.fail_in.fetch_sub(1, Ordering::Relaxed) == 0
    }

    fn count(&self, bytes: usize) {
        let now = self.allocated.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if now > self.peak() {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
        let [this, last] = &self.recent;
        if self.requests.fetch_add(1, Ordering::Relaxed) % WINDOW == WINDOW - 1 {
            last.store(this.swap(now, Ordering::Relaxed), Ordering::Relaxed);
        } else if now > this.load(Ordering::Relaxed) {
            this.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn reuse(&self, capacity: usize) -> Option<RawBuffer> {
        let mut idle = self.idle.lock();
        let raw = idle.by_capacity.get_mut(&capacity)?.pop()?;
        idle.bytes -= capacity;
        Some(raw)
    }

    fn keep(&self, raw: RawBuffer) {
        self.allocated.fetch_sub(raw.capacity, Ordering::Relaxed);
        let mut idle = self.idle.lock();
        idle.bytes += raw.capacity;
        idle.by_capacity.entry(raw.capacity).or_default().push(raw);
    }

    /// Whether so many bytes are cached that some should be released. Between its steps a training loop has little in use, and it needs the same
    /// memory again: new memory is slow to get, and filled with zeros. So all may hold twice what was in use at once lately (twice, because
    /// sizes differ).
    pub(crate) fn overfull(&self) -> bool {
        let idle = self.idle();
        let recent = self.recent.iter().map(|r| r.load(Ordering::Relaxed)).max().unwrap_or(0);
        idle > IDLE && idle + self.allocated() > 2 * recent
    }

    /// Removes all cached buffers; the caller releases them.
    pub(crate) fn take_idle(&self) -> Vec<RawBuffer> {
        let mut idle = self.idle.lock();
        idle.bytes = 0;
        idle.by_capacity.drain().flat_map(|(_, raws)| raws).collect()
    }
}

/// Memory of a device. Returns to the device's cache when dropped, in stream order, on any thread.
///
/// The memory may be longer than requested, so shaders must not use `arrayLength`.
#[derive(Debug)]
pub struct Buffer {
    context: Arc<Context>,
    /// None only while the buffer is being dropped.
    raw: Option<RawBuffer>,
    bytes: usize,
    /// How its elements lie: those of 16-bit floats take two bytes. Without a dtype it holds whole words.
    dtype: Option<DType>,
}

impl Buffer {
    /// Uninitialised memory of `bytes` bytes for elements of a tensor.
    ///
    /// # Errors
    /// As for `new`.
    pub fn of(context: &Arc<Context>, bytes: usize, dtype: DType) -> Result<Buffer> {
        let mut made = Buffer::new(context, bytes)?;
        made.dtype = Some(dtype);
        Ok(made)
    }

    /// Uninitialised memory on the device of `context`, of whole words: a float of 16 bits takes one.
    ///
    /// # Errors
    /// `ErrorKind::Memory` beyond what the device can bind at once, or when it has no memory left; the device stays usable.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Buffer> {
        assert_no_guard("allocating on a device");
        context.check()?;
        let most = context.limits().buffer_bytes();
        if bytes > most {
            return Err(refuse(context, bytes, &format!("a buffer of this device holds at most {most} bytes; split the tensor")));
        }
        let pool = context.pool();
        if pool.fails_now() {
            return Err(refuse(context, bytes, "a test asked this request to fail"));
        }
        let capacity = capacity(bytes, most);
        let raw = match pool.reuse(capacity) {
            Some(raw) => raw,
            None => Self::create(context, bytes, capacity)?,
        };
        pool.count(raw.capacity);
        let made = Buffer { context: context.clone(), raw: Some(raw), bytes, dtype: None };
        if live_memory::is_registered(made.raw().capacity) {
            live_memory::add(made.key(), made.raw().capacity);
        }
        Ok(made)
    }

    #[cold]
    fn create(context: &Arc<Context>, bytes: usize, capacity: usize) -> Result<RawBuffer> {
        let pool = context.pool();
        if pool.overfull() {
            context.empty_cache()?;
        }
        let make = || {
            let create = |api: &Api| api.create_buffer("rgrad", capacity, STORAGE | COPY_SRC | COPY_DST);
            let handle = context.exclusive("allocation", create)?;
            let id = pool.next_id.fetch_add(1, Ordering::Relaxed) as u32;
            let raw = RawBuffer { handle, id, capacity, batch: AtomicU64::new(0) };
            match context.has_memory(&raw) {
                Ok(true) => Ok(raw),
                found => {
                    context.exclusive("allocation", |api: &Api| api.release_buffer(handle))?;
                    found.and_then(|_| Err(Error::memory("the OpenGL driver has no memory left")))
                }
            }
        };
        match make() {
            // Cached buffers may be the memory that is missing. Their memory is free only after the work that uses them has run.
            Err(e) if e.kind() == ErrorKind::Memory => {
                context.synchronize()?;
                context.empty_cache()?;
                make().map_err(|e| if e.kind() == ErrorKind::Memory { refuse(context, bytes, e.message()) } else { e })
            }
            made => made,
        }
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The dtype of its elements, if they are a tensor's.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// Bytes between two numbers that shaders count: those of a word, or of a packed element.
    pub(crate) fn unit(&self) -> usize {
        if self.is_packed() { 2 } else { 4 }
    }

    /// Whether two elements share a word.
    pub(crate) fn is_packed(&self) -> bool {
        self.dtype.is_some_and(DType::is_half)
    }

    pub fn same(&self, other: &Buffer) -> bool {
        std::ptr::eq(self, other)
    }

    /// Its key among the memory that is alive. The address of the Rust object behind the library's handle is unique while it lives.
    pub(crate) fn key(&self) -> BufferKey {
        (Device::WGPU, self.raw().handle.0.addr())
    }

    pub(crate) fn raw(&self) -> &RawBuffer {
        self.raw.as_ref().expect("a buffer that is not being dropped has memory")
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(capacity) = self.raw.as_ref().map(|raw| raw.capacity) else { return };
        if !self.context.forked() && live_memory::may_be_registered(capacity) {
            live_memory::remove(self.key(), capacity);
        }
        let Some(raw) = self.raw.take() else { return };
        if self.context.forked() {
            // The memory belongs to the parent, and threads of the parent may hold the locks.
            return;
        }
        self.context.pool().keep(raw);
    }
}

#[cold]
fn refuse(context: &Context, bytes: usize, why: &str) -> Error {
    Error::memory(format!(
        "cannot allocate {bytes} bytes on wgpu ({}): {why} (tensors hold {} bytes there now). Free tensors, use smaller batches, run under \
         no_grad where no gradient is needed, or move to .cpu()",
        context.name(),
        context.pool().allocated()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_few_and_never_too_small() {
        let most = 1 << 27;
        for bytes in [0, 1, 4, 255, 256, 257, 1000, 4096, 5000, 1 << 20, (1 << 20) + 1, most - 4, most] {
            let c = capacity(bytes, most);
            assert!(c >= bytes && c.is_multiple_of(4) && c <= most, "{bytes}: {c}");
            assert!(c <= bytes.max(MIN_ELEMENTS) + bytes / 8 + MIN_ELEMENTS, "{bytes}: {c}");
        }
        assert_eq!(capacity(most - 3, most - 1), most);
        assert_eq!(capacity(1_000_001, most), capacity(1_000_101, most));
    }
}
