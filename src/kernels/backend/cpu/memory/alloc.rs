//! The allocator of CPU tensors. It accounts for every byte, caches large buffers for reuse, and refuses requests that the machine cannot
//! hold.

use super::stats;
use crate::backend::live_memory::{self, BufferKey};
use crate::backend::lock_order::{Table, assert_no_guard};
use crate::backend::registry::Device;
use crate::error::{Error, Result};
use std::alloc::Layout as Raw;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Buffers from this size on are kept when freed: their pages are mapped already, and page faults cost more than kernels.
const POOLED: usize = 256 << 10;
/// All buffers are aligned for the widest vectors and cache lines.
const ALIGN: usize = 64;
/// Buffers from this size on start at a huge page's border and ask for huge pages: access to large memory is 5 to 9 percent faster, and the
/// first touch costs one fault for 2 MiB rather than for 4 KiB.
const HUGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// At most this share of the machine's memory is cached.
const IDLE_SHARE: usize = 8;

static LIMIT: AtomicUsize = AtomicUsize::new(0);
static FAIL_IN: AtomicI64 = AtomicI64::new(-1);
static PANICS: AtomicBool = AtomicBool::new(false);
static POOL: Table<FreeList> = Table::new(FreeList { buffers: Vec::new(), bytes: 0 });

struct FreeList {
    /// (capacity, address), the latest freed last.
    buffers: Vec<(usize, usize)>,
    bytes: usize,
}

/// A buffer of this allocator. Its contents are uninitialised until written.
#[derive(Debug)]
pub struct Buffer {
    ptr: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the buffer owns its memory; synchronisation of reads and writes is up to its owner.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// Bytes that live tensors hold.
pub fn memory_allocated() -> usize {
    stats::held()
}

/// The most that `memory_allocated` has been since the last reset.
pub fn max_memory_allocated() -> usize {
    stats::peak()
}

pub fn reset_peak_memory_stats() {
    stats::reset_peak();
}

/// Accounts for a value that is stored inline in its storage, at this address.
#[inline]
pub fn begin_inline(address: usize, bytes: usize) {
    stats::count(bytes as isize);
    if live_memory::is_registered(bytes) {
        live_memory::add((Device::CPU, address), bytes);
    }
}

/// The end of such a value.
#[inline]
pub fn end_inline(address: usize, bytes: usize) {
    if live_memory::may_be_registered(bytes) {
        live_memory::remove((Device::CPU, address), bytes);
    }
    stats::count(-(bytes as isize));
}

/// Bytes that are cached for reuse.
pub fn memory_idle() -> usize {
    POOL.lock().bytes
}

/// Whether a request for this many bytes would succeed now, as far as the limit is concerned.
pub fn fits(bytes: usize) -> bool {
    bytes <= isize::MAX as usize / 2 && memory_allocated().saturating_add(capacity(bytes)) <= limit()
}

/// Returns cached buffers to the system.
pub fn empty_cache() {
    let idle = {
        let mut pool = POOL.lock();
        pool.bytes = 0;
        std::mem::take(&mut pool.buffers)
    };
    for (capacity, address) in idle {
        // SAFETY: the pool owned this allocation of exactly this capacity.
        unsafe { std::alloc::dealloc(address as *mut u8, raw(capacity)) };
    }
}

/// Holds the cache's lock across a fork; otherwise the child could find it locked by a thread that it does not have.
pub fn before_fork() {
    POOL.lock_for_fork();
    live_memory::before_fork();
}

/// The end of `before_fork`, in parent and child.
///
/// # Safety
/// This thread has called `before_fork`, and not this since.
pub unsafe fn after_fork() {
    // SAFETY: the forking thread took the lock in `before_fork`; in the child it is that thread's copy.
    unsafe {
        live_memory::after_fork();
        POOL.unlock_after_fork();
    }
}

/// Limits the bytes of all tensors together; 0 stands for the memory of the machine and its cgroup.
pub fn set_memory_limit(bytes: usize) {
    LIMIT.store(if bytes == 0 { machine_limit() } else { bytes }, Ordering::Relaxed);
}

/// Makes the n-th request from now on fail (0: the next one); negative switches this off. For tests of what happens then.
pub fn fail_in(n: i64) {
    PANICS.store(false, Ordering::Relaxed);
    FAIL_IN.store(n, Ordering::Relaxed);
}

/// As `fail_in`, but the request panics. For tests of how bugs are reported.
pub fn panic_in(n: i64) {
    PANICS.store(true, Ordering::Relaxed);
    FAIL_IN.store(n, Ordering::Relaxed);
}

/// What the machine, or the cgroup that the process lives in, can hold.
pub fn machine_limit() -> usize {
    let number = |s: String| s.trim().parse::<usize>().ok();
    let total = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|s| s.lines().find_map(|l| l.strip_prefix("MemTotal:").map(|v| v.trim_end_matches("kB").to_string())))
        .and_then(number)
        .map_or(usize::MAX / 2, |kib| kib << 10);
    let cgroup = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|p| std::fs::read_to_string(p).ok().and_then(number))
        .min()
        .unwrap_or(usize::MAX);
    total.min(cgroup)
}

fn limit() -> usize {
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            let l = machine_limit();
            LIMIT.store(l, Ordering::Relaxed);
            l
        }
        l => l,
    }
}

fn raw(bytes: usize) -> Raw {
    Raw::from_size_align(bytes, if bytes >= HUGE { HUGE_PAGE } else { ALIGN }).expect("sizes are checked against isize::MAX before")
}

/// Memory from the system; null where it has none.
fn fresh(bytes: usize) -> *mut u8 {
    // SAFETY: the size is at least ALIGN.
    let ptr = unsafe { std::alloc::alloc(raw(bytes)) };
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= HUGE && !ptr.is_null() {
        // SAFETY: these bytes were just allocated. It is advice: a refusal changes nothing.
        unsafe { libc::madvise(ptr.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    // New memory has unspecified contents, like reused memory. The compiler must not assume that reading it is undefined behaviour.
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) ptr, options(nostack, preserves_flags))
    };
    ptr
}

/// Large requests share capacities, so that a freed buffer fits the next request of about its size.
fn capacity(bytes: usize) -> usize {
    if bytes < POOLED {
        return bytes.next_multiple_of(ALIGN).max(ALIGN);
    }
    let step = (bytes.next_power_of_two() >> 4).max(64 << 10);
    bytes.next_multiple_of(step)
}

#[cold]
fn refuse(bytes: usize, why: &str) -> Error {
    Error::memory(format!(
        "cannot allocate {bytes} bytes for a tensor: {why} (tensors hold {} bytes now). Free tensors, use smaller batches, or run \
         under no_grad where no gradient is needed",
        memory_allocated()
    ))
}

impl Buffer {
    /// A buffer of at least `bytes` bytes, uninitialised.
    pub fn new(bytes: usize) -> Result<Buffer> {
        if FAIL_IN.load(Ordering::Relaxed) >= 0 && FAIL_IN.fetch_sub(1, Ordering::Relaxed) == 0 {
            assert!(!PANICS.load(Ordering::Relaxed), "a test asked this request to panic");
            return Err(refuse(bytes, "a test asked this request to fail"));
        }
        let cap = capacity(bytes);
        if cap >= HUGE {
            assert_no_guard("allocating a large buffer");
        }
        let made = Buffer::allocate(bytes, cap)?;
        if live_memory::is_registered(cap) {
            live_memory::add(made.key(), cap);
        }
        Ok(made)
    }

    #[inline]
    fn allocate(bytes: usize, cap: usize) -> Result<Buffer> {
        if cap >= POOLED {
            if !stats::reserve(cap, limit()) {
                return Err(refuse(bytes, &format!("the limit is {} bytes", limit())));
            }
            let found = {
                let mut pool = POOL.lock();
                let at = pool.buffers.iter().rposition(|(c, _)| *c == cap);
                at.map(|i| {
                    pool.bytes -= cap;
                    pool.buffers.remove(i).1
                })
            };
            if let Some(ptr) = found.and_then(|a| NonNull::new(a as *mut u8)) {
                return Ok(Buffer { ptr, bytes: cap });
            }
        }
        let mut ptr = fresh(cap);
        if ptr.is_null() && cap >= POOLED {
            empty_cache();
            ptr = fresh(cap);
        }
        match NonNull::new(ptr) {
            Some(ptr) => {
                if cap < POOLED {
                    stats::count(cap as isize);
                }
                Ok(Buffer { ptr, bytes: cap })
            }
            None => {
                if cap >= POOLED {
                    stats::free(cap);
                }
                Err(refuse(bytes, "the system has no memory left"))
            }
        }
    }

    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The bytes that the allocator counts for it.
    pub fn capacity(&self) -> usize {
        self.bytes
    }

    /// Its key among the memory that is alive.
    pub fn key(&self) -> BufferKey {
        (Device::CPU, self.ptr.as_ptr() as usize)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // First: once the memory is free, another thread may get this address.
        if live_memory::may_be_registered(self.bytes) {
            live_memory::remove(self.key(), self.bytes);
        }
        if self.bytes < POOLED {
            stats::count(-(self.bytes as isize));
        } else {
            stats::free(self.bytes);
            let most = limit() / IDLE_SHARE;
            let mut pool = POOL.lock();
            if pool.bytes + self.bytes <= most && pool.buffers.len() < 1024 {
                pool.bytes += self.bytes;
                pool.buffers.push((self.bytes, self.ptr.as_ptr() as usize));
                return;
            }
        }
        // SAFETY: allocated in `new` with this size and alignment.
        unsafe { std::alloc::dealloc(self.ptr.as_ptr(), raw(self.bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because the counters are global and tests run in parallel.
    #[test]
    fn bytes_are_counted_reused_and_refused() {
        let big = 64 << 20;
        let a = Buffer::new(big).unwrap();
        assert!(memory_allocated() >= big && max_memory_allocated() >= big);
        let address = a.as_ptr();
        drop(a);
        assert!(memory_idle() >= big);
        let b = Buffer::new(big).unwrap();
        assert_eq!(b.as_ptr(), address);
        drop(b);
        assert!(Buffer::new(1 << 60).unwrap_err().message().contains("limit"));
        empty_cache();
        assert!(capacity(1 << 20) >= 1 << 20 && capacity(0) == ALIGN);
    }
}
