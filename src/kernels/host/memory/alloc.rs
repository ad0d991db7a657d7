//! The allocator of CPU tensors. It accounts for every byte, caches large buffers for reuse, and refuses requests that the machine cannot
//! hold.

use super::{pages, stats};
use crate::error::{Error, Result};
use crate::host::device::Device;
use crate::host::live_memory;
use crate::host::live_memory::BufferKey;
use crate::host::lock_order::{Table, assert_no_guard};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Buffers from this size on are kept when freed: their pages are mapped already, and page faults cost more than kernels.
const POOLED: usize = 256 << 10;
/// All buffers are aligned for the widest vectors and cache lines.
const ALIGN: usize = pages::ALIGN;
/// A request takes an idle buffer of less than so many times its capacity, if none of its own is idle. Its pages are mapped; those of a new one
/// would be more memory.
const LARGER: usize = 2;
/// Before new buffers from this size on, idle memory of the general allocator goes back to the system.
const GROWTH: usize = 16 << 20;
/// At most this share of the machine's memory is cached.
const IDLE_SHARE: usize = 8;

static LIMIT: AtomicUsize = AtomicUsize::new(0);
static FAIL_IN: AtomicI64 = AtomicI64::new(-1);
static PANICS: AtomicBool = AtomicBool::new(false);
static RELEASE: OnceLock<fn()> = OnceLock::new();
static POOL: Table<FreeList> = Table::new(FreeList { buffers: Vec::new(), bytes: 0, spare: 0 });

/// A buffer that is not in use, and the thread that freed it: its caches hold what the buffer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle {
    size: usize,
    address: usize,
    thread: usize,
}

/// What tells running threads apart.
#[inline]
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

struct FreeList {
    /// The latest freed last.
    buffers: Vec<Idle>,
    /// The sum of their sizes.
    bytes: usize,
    /// Bytes behind requests that have taken a larger buffer.
    spare: usize,
}

impl FreeList {
    /// Takes a buffer for this capacity out: of that size the latest that this thread has freed, so that the tasks of two threads do not
    /// exchange theirs, or else the latest freed; else the smallest one that is not much larger.
    fn take(&mut self, cap: usize, thread: usize) -> Option<Idle> {
        let fits = |idle: &Idle| idle.size == cap;
        let own = self.buffers.iter().rposition(|idle| fits(idle) && idle.thread == thread);
        let exact = || self.buffers.iter().rposition(fits);
        let larger = || {
            let fits = |size: usize| size > cap && size < cap.saturating_mul(LARGER);
            let all = self.buffers.iter().enumerate().filter(|(_, idle)| fits(idle.size));
            all.min_by_key(|(_, idle)| idle.size).map(|(i, _)| i)
        };
        let at = own.or_else(exact).or_else(larger)?;
        let idle = self.buffers.remove(at);
        self.bytes -= idle.size;
        self.spare += idle.size - cap;
        Some(idle)
    }
}

/// A buffer of this allocator. Its contents are uninitialised until written.
#[derive(Debug)]
pub struct Buffer {
    ptr: NonNull<u8>,
    /// What is accounted for.
    bytes: usize,
    /// What was allocated: more, if a larger buffer was idle.
    size: usize,
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

/// Bytes that are cached for reuse, and those that requests have left over of larger buffers.
pub fn memory_idle() -> usize {
    let pool = POOL.lock();
    pool.bytes + pool.spare
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
    for Idle { size, address, .. } in idle {
        // SAFETY: the pool owned this allocation of exactly this size.
        unsafe { pages::free(address as *mut u8, size) };
    }
}

/// Registers what gives idle memory of the process's general allocator back to the system. It runs before large new buffers are taken from there,
/// which is rare: most requests find an idle buffer. The first registration stays.
pub fn register_release(release: fn()) {
    let _ = RELEASE.set(release);
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
        if cap >= pages::HUGE {
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
            let found = POOL.lock().take(cap, this_thread());
            if let Some(Idle { size, address, .. }) = found
                && let Some(ptr) = NonNull::new(address as *mut u8)
            {
                return Ok(Buffer { ptr, bytes: cap, size });
            }
        }
        if cap >= GROWTH
            && let Some(release) = RELEASE.get()
        {
            release();
        }
        let mut ptr = pages::fresh(cap, bytes);
        if ptr.is_null() && cap >= POOLED {
            empty_cache();
            ptr = pages::fresh(cap, bytes);
        }
        match NonNull::new(ptr) {
            Some(ptr) => {
                if cap < POOLED {
                    stats::count(cap as isize);
                }
                Ok(Buffer { ptr, bytes: cap, size: cap })
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
            pool.spare -= self.size - self.bytes;
            if pool.bytes + self.size <= most && pool.buffers.len() < 1024 {
                pool.bytes += self.size;
                pool.buffers.push(Idle { size: self.size, address: self.ptr.as_ptr() as usize, thread: this_thread() });
                return;
            }
        }
        // SAFETY: allocated in `new` with this size.
        unsafe { pages::free(self.ptr.as_ptr(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(of: &[[usize; 3]]) -> FreeList {
        let buffers = of.iter().map(|[size, address, thread]| Idle { size: *size, address: *address, thread: *thread });
        FreeList { buffers: buffers.collect(), bytes: of.iter().map(|idle| idle[0]).sum(), spare: 0 }
    }

    #[test]
    fn a_larger_idle_buffer_serves_if_none_fits() {
        let mut idle = idle(&[[30, 1, 0], [20, 2, 0], [10, 3, 0], [20, 4, 0]]);
        let mut take = |cap| idle.take(cap, 0).map(|idle| (idle.size, idle.address));
        assert_eq!((take(20), take(15), take(5)), (Some((20, 4)), Some((20, 2)), None));
        assert_eq!(take(10), Some((10, 3)));
        assert_eq!((idle.bytes, idle.spare), (30, 5));
    }

    #[test]
    fn a_thread_gets_what_it_has_freed() {
        let mut idle = idle(&[[20, 1, 7], [20, 2, 8], [20, 3, 7], [20, 4, 8]]);
        let taken = [7, 8, 7, 7].map(|thread| idle.take(20, thread).map(|idle| idle.address));
        assert_eq!(taken, [Some(3), Some(4), Some(1), Some(2)]);
        assert_ne!(this_thread(), std::thread::spawn(this_thread).join().unwrap());
        assert_eq!(this_thread(), this_thread());
    }

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
