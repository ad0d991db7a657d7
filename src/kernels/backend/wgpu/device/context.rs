//! A device in use: its limits, and access to its buffers, pipelines and queue.

use super::buffer::{Buffer, BufferPool, RawBuffer};
use super::dispatch::Dispatch;
use super::errors::{Cause, Tickets, WORDS};
use super::host;
use super::pipeline::PIPELINES;
use super::recorder::{PendingRead, Recorder};
use super::timer;
use crate::backend::wgpu::elem::on_device;
use crate::backend::wgpu::native::api::{Api, Signal};
use crate::backend::wgpu::native::types::ErrorType;
use crate::error::{Error, Result};
use crate::host::device_times;
use crate::host::lock_order::{LockMode, Rank, Table, assert_no_guard, enter};
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The limits of the device that matter here.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_buffer_size: u64,
    pub max_storage_buffer_binding_size: u64,
    pub max_storage_buffers_per_shader_stage: u32,
    pub max_compute_workgroups_per_dimension: u32,
    pub min_uniform_buffer_offset_alignment: u32,
}

impl Limits {
    /// The bytes of the longest buffer that can be bound.
    pub fn buffer_bytes(&self) -> usize {
        let most = self.max_buffer_size.min(self.max_storage_buffer_binding_size);
        usize::try_from(most).unwrap_or(usize::MAX) & !3
    }
}

/// What shaders may use beyond the base language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    pub int64: bool,
    pub float64: bool,
    pub float16: bool,
    pub subgroups: bool,
    pub timestamps: bool,
}

/// What is behind a device.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The adapter's name.
    pub name: String,
    /// The library drives it by OpenGL.
    pub opengl: bool,
}

/// An object of the embedding language that holds the device.
pub type DeviceOwner = Box<dyn Any + Send + Sync>;

static CURRENT: Table<Option<Arc<Context>>> = Table::new(None);
/// A wait polls for this long before it sleeps between polls: the shortest sleep takes some 70 us.
const SPIN: Duration = Duration::from_micros(150);

/// Every context that may still have tensors: one for each device.
static KNOWN: Table<Vec<Weak<Context>>> = Table::new(Vec::new());
/// The number of forks between the process that used the first device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Starts to count forks in `FORKS`.
fn watch_forks() {
    #[cfg(unix)]
    {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        // SAFETY: the handler only counts.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        });
    }
}

/// A device, its queue, and everything cached for it.
#[derive(Debug)]
pub struct Context {
    api: Api,
    limits: Limits,
    features: Features,
    identity: Identity,
    owner: Option<DeviceOwner>,
    pool: BufferPool,
    tickets: Tickets,
    /// Reentrant only to detect that this thread holds it already: the library logs through Python, which can run any code. No thread waits
    /// for it while it holds the GIL.
    recorder: ReentrantMutex<RefCell<Recorder>>,
}

impl Context {
    /// Makes a device the current one: a new device, or one that still has tensors. Tensors of the previous device can still be used with
    /// each other.
    ///
    /// `owner` lives as long as the context, because it owns the callbacks of the library for this device.
    ///
    /// # Errors
    /// The library's error when the first buffers are created; use in a forked child.
    pub fn install(api: Api, limits: Limits, features: Features, identity: Identity, owner: DeviceOwner) -> Result<Arc<Context>> {
        Self::check_process()?;
        watch_forks();
        let known = {
            let mut known = KNOWN.lock();
            known.retain(|c| c.strong_count() > 0);
            let alive: Vec<Arc<Context>> = known.iter().filter_map(Weak::upgrade).collect();
            alive
        };
        let same = known.into_iter().find(|c| c.api.device_handle() == api.device_handle());
        let context = match same {
            Some(context) => {
                api.release();
                context
            }
            None => {
                let align = limits.min_uniform_buffer_offset_alignment as usize;
                let recorder = Recorder::new(&api, align, features)?;
                let context = Arc::new(Context {
                    api,
                    limits,
                    features,
                    identity,
                    owner: Some(owner),
                    pool: BufferPool::new(),
                    tickets: Tickets::default(),
                    recorder: ReentrantMutex::new(RefCell::new(recorder)),
                });
                KNOWN.lock().push(Arc::downgrade(&context));
                context
            }
        };
        let before = CURRENT.lock().replace(context.clone());
        drop(before);
        Ok(context)
    }

    /// The device that is in use, if one is.
    pub fn installed() -> Option<Arc<Context>> {
        CURRENT.lock().clone()
    }

    /// The device that new tensors go to; the default device if none is in use yet.
    ///
    /// # Errors
    /// There is no device (the message says what was tried and what to do); use in a forked child.
    pub fn current() -> Result<Arc<Context>> {
        Self::check_process()?;
        if let Some(c) = Self::installed() {
            c.check()?;
            return Ok(c);
        }
        let hooks = host::hooks().ok_or_else(|| Error::runtime("no wgpu device is in use: install one with Context::install"))?;
        (hooks.install)()?;
        Self::installed().ok_or_else(|| Error::runtime("no wgpu device is in use: the host language installed none"))
    }

    /// The error for element types for which the adapter has no arithmetic.
    pub fn supports(&self, dtype: DType) -> Result<()> {
        if !on_device().any(|d| d == dtype) {
            let other =
                if dtype.is_complex() { "Convert with .to(rgrad.complex64), or use .cpu()" } else { "Use .cpu(), or convert them before" };
            return Err(Error::not_implemented(format!("tensors of {dtype} are not on wgpu. {other}")));
        }
        // Elementary functions of float64 read the bits as 64-bit integers.
        if dtype == DType::F64 && !(self.features.float64 && self.features.int64) {
            return Err(Error::not_implemented(format!(
                "the wgpu adapter {} has no float64 (the features shader-f64 and shader-int64). Convert with .to(rgrad.float32), or use .cpu()",
                self.name()
            )));
        }
        Ok(())
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn name(&self) -> &str {
        &self.identity.name
    }

    pub(crate) fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// Whether this is the copy of a forked child, whose handles and locks must not be used.
    pub(crate) fn forked(&self) -> bool {
        FORKS.load(Ordering::Relaxed) != 0
    }

    /// The error for use of a device in a forked child of a process that has used one: neither the threads of the library nor the state of
    /// the driver survive a fork.
    pub fn check_process() -> Result<()> {
        if FORKS.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        Err(Error::runtime(
            "wgpu: this process was forked from one that uses a wgpu device, and a device cannot be used on both sides of a fork. \
             Start processes with the method \"spawn\" or \"forkserver\", or use the CPU here",
        ))
    }

    /// Whether the device can be used at all.
    pub(crate) fn check(&self) -> Result<()> {
        Self::check_process()?;
        if self.api.is_lost() {
            return Err(self.lost_error("an earlier call found it so"));
        }
        Ok(())
    }

    #[cold]
    fn lost_error(&self, why: &str) -> Error {
        Error::runtime(format!(
            "the wgpu device {} is lost (destroyed, reset, or its driver failed), and its tensors with it. Choose a device with \
             rgrad.wgpu.set_device(...) and make the tensors again",
            self.name()
        ))
        .note(format!("found by: {}", why.split_whitespace().collect::<Vec<_>>().join(" ")))
    }

    /// Exclusive access to the recorder.
    fn with<R>(&self, f: impl FnOnce(&mut Recorder) -> Result<R>) -> Result<R> {
        let alone = |guard: ReentrantMutexGuard<'_, RefCell<Recorder>>| {
            let mut recorder = guard.try_borrow_mut().map_err(|_| {
                Error::runtime("wgpu: an operation was started from within another one on the same thread (from a log handler, perhaps)")
            })?;
            f(&mut recorder).map_err(|e| if self.api.is_lost() { self.lost_error(e.message()) } else { e })
        };
        let _held = enter(Rank::Recorder, LockMode::Shared);
        match self.recorder.try_lock() {
            Some(guard) => alone(guard),
            // The thread that holds the recorder may need the GIL to continue. This thread takes the GIL again only after it has released
            // the recorder. Otherwise there could be a cycle: a thread with the GIL waits for a tensor, and the reader of that tensor waits
            // for the recorder.
            None => host::unlocked(|| alone(self.recorder.lock())),
        }
    }

    /// Runs calls with error scopes open; no other thread does at the same time.
    pub(crate) fn exclusive<R>(&self, what: &str, calls: impl FnOnce(&Api) -> R) -> Result<R> {
        self.with(|_| match self.api.scoped(|| calls(&self.api)) {
            (r, None) => Ok(r),
            (_, Some(fault)) if fault.kind == ErrorType::OutOfMemory => Err(Error::memory(fault.cause())),
            (_, Some(fault)) => Err(Error::runtime(format!("{what}: {}", fault.message.trim()))),
        })
    }

    /// Whether a new buffer has memory. By OpenGL the library reports none that is missing: writes are lost, and reads leave what was there.
    ///
    /// # Errors
    /// As for `synchronize`; faults of earlier work are not looked for.
    pub(crate) fn has_memory(&self, buffer: &RawBuffer) -> Result<bool> {
        if !self.identity.opengl {
            return Ok(true);
        }
        let op = "allocation";
        let mark = buffer.id.to_ne_bytes();
        let reading = self.with(|r| r.try_memory(&self.api, buffer.handle, mark))?;
        Ok(self.arrived(op, &reading)? == mark)
    }

    /// Records a dispatch after all earlier ones. A dispatch without workgroups is ignored.
    ///
    /// # Errors
    /// Buffers of another device; more buffers or workgroups than the device allows; errors of the library about the shader.
    pub fn dispatch(&self, mut work: Dispatch<'_>) -> Result<()> {
        self.check()?;
        if work.groups == 0 {
            return Ok(());
        }
        work.key.packing = work.bindings.packing();
        let op = work.op;
        for (b, _) in &work.bindings.slots {
            if !std::ptr::eq(&**b.context(), self) {
                return Err(Error::runtime(format!(
                    "{op}: tensors of two wgpu devices: {} and {}. Move one with .cpu().to(\"wgpu\")",
                    self.name(),
                    b.context().name()
                )));
            }
        }
        let buffers = work.bindings.len() + usize::from(work.checked);
        if buffers > self.limits.max_storage_buffers_per_shader_stage as usize {
            return Err(Error::runtime(format!(
                "{op}: {buffers} buffers in one shader, but {} binds at most {}. Use fewer operands at once, or move them to .cpu()",
                self.name(),
                self.limits.max_storage_buffers_per_shader_stage
            )));
        }
        let (x, y) = spread(work.groups, self.limits.max_compute_workgroups_per_dimension as usize).ok_or_else(|| {
            Error::runtime(format!("{op}: {} workgroups are more than {} can run at once; split the tensor", work.groups, self.name()))
        })?;
        // Not under the recorder: it may run foreign code.
        let site = host::site();
        let watcher = device_times::watcher();
        self.with(|r| r.record(&self.api, &work, (x, y), site, watcher))
    }

    fn range(&self, op: &str, buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= buffer.raw().capacity);
        if !offset.is_multiple_of(4) || !bytes.is_multiple_of(4) || !inside || !std::ptr::eq(&**buffer.context(), self) {
            return Err(Error::runtime(format!(
                "{op}: bytes {offset}..{} of a buffer of {} on {}: expected multiples of 4 within a buffer of this device",
                offset.saturating_add(bytes),
                buffer.bytes(),
                self.name()
            )));
        }
        Ok(())
    }

    /// Writes `data` into `buffer` from byte `offset` on (multiples of 4), after all earlier work.
    pub fn write(&self, buffer: &Buffer, offset: usize, data: RawSlice<'_, u8>) -> Result<()> {
        self.check()?;
        self.range("a transfer to wgpu", buffer, offset, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.with(|r| r.write(&self.api, buffer, offset, data))
    }

    /// Waits for all earlier work and returns the bytes of `buffer` from `offset` on (multiples of 4). Reports faults of earlier work.
    pub fn read(&self, buffer: &Buffer, offset: usize, bytes: usize) -> Result<Vec<u8>> {
        self.check()?;
        self.range("a transfer from wgpu", buffer, offset, bytes)?;
        if bytes == 0 {
            return self.synchronize().map(|()| Vec::new());
        }
        self.fetch("a transfer from wgpu", Some((buffer, offset)), bytes)
    }

    /// Submits what is recorded, waits for it, and reports faults.
    pub fn synchronize(&self) -> Result<()> {
        self.check()?;
        let op = "synchronize";
        if self.with(|r| Ok(r.unchecked))? {
            return self.fetch(op, None, 0).map(drop);
        }
        let signal = self.with(|r| r.finish(&self.api))?;
        self.wait(op, &signal)?;
        self.with(|r| r.probe(&self.api))
    }

    /// Waits for the work that profilers watch, and tells them when it ran.
    ///
    /// # Errors
    /// The device is lost or does not finish; the times are lost then.
    pub fn report_times(&self) -> Result<()> {
        self.check()?;
        let (batches, period) = self.with(|r| r.take_timed(&self.api))?;
        let mut ran = Vec::with_capacity(batches.len());
        let mut outcome = Ok(());
        for batch in batches {
            if outcome.is_ok() {
                outcome = self.wait("taking times", &batch.signal).and_then(|()| self.with(|r| r.probe(&self.api)));
            }
            let times = batch.staging.map(|staging| {
                let times = outcome.is_ok().then(|| self.with(|_| Ok(self.api.take_mapped(staging, batch.bytes()))).ok().flatten());
                self.api.release_buffer(staging);
                times.flatten()
            });
            ran.push((batch, times.flatten()));
        }
        timer::report(ran, period);
        outcome
    }

    fn fetch(&self, op: &'static str, from: Option<(&Buffer, usize)>, bytes: usize) -> Result<Vec<u8>> {
        let reading = self.with(|r| r.read(&self.api, from, bytes))?;
        let mut data = self.arrived(op, &reading)?;
        if reading.status {
            let words: Vec<u32> = data[reading.bytes..].chunks_exact(4).map(|c| u32::from_ne_bytes([c[0], c[1], c[2], c[3]])).collect();
            if let Err(e) = self.tickets.check(&words) {
                self.with(|r| r.clear_status(&self.api))?;
                return Err(e);
            }
        }
        data.truncate(reading.bytes);
        Ok(data)
    }

    /// Waits for a read, and gives its data and what follows them.
    fn arrived(&self, op: &str, reading: &PendingRead) -> Result<Vec<u8>> {
        let total = reading.bytes + if reading.status { WORDS * 4 } else { 0 };
        if let Err(e) = self.wait(op, &reading.signal) {
            // A pending mapping ends with the buffer. The status has still to be checked.
            self.api.release_buffer(reading.staging);
            if reading.status {
                self.with(|r| {
                    r.unchecked = true;
                    Ok(())
                })?;
            }
            return Err(e);
        }
        let (data, fault) = self.with(|r| {
            // The library ends the process if it is asked for memory of a device that has been lost.
            if let Err(e) = r.probe(&self.api) {
                self.api.release_buffer(reading.staging);
                return Err(e);
            }
            let (data, fault) = self.api.scoped(|| self.api.take_mapped(reading.staging, total));
            r.keep_staging(&self.api, reading.capacity, reading.staging);
            Ok((data, fault))
        })?;
        data.ok_or_else(|| {
            let why = fault.map_or_else(|| "the memory is not mapped".into(), |f| f.message);
            Error::runtime(format!("{op}: {}", why.trim()))
        })
    }

    /// Waits without the recorder and without the GIL.
    fn wait(&self, op: &str, signal: &Arc<Signal>) -> Result<()> {
        assert_no_guard("waiting for a device");
        host::unlocked(|| {
            let start = Instant::now();
            let limit = timeout();
            let mut looked = start;
            loop {
                match signal.get() {
                    Some(true) => return Ok(()),
                    Some(false) => {
                        self.with(|r| r.probe(&self.api))?;
                        return Err(Error::runtime(format!("{op}: the wgpu device {} gave the work up", self.name())));
                    }
                    None => self.api.poll(),
                }
                if signal.get().is_some() {
                    continue;
                }
                let now = Instant::now();
                let waited = now - start;
                if waited > limit {
                    return Err(Error::runtime(format!(
                        "{op}: the wgpu device {} has not finished within {} s. Its work goes on; wait longer with the environment \
                         variable RGRAD_WGPU_TIMEOUT (seconds)",
                        self.name(),
                        limit.as_secs_f64()
                    )));
                }
                if now - looked > Duration::from_millis(5) {
                    looked = now;
                    host::interrupted()?;
                }
                match waited {
                    w if w < SPIN => std::thread::yield_now(),
                    w => std::thread::sleep((w / 4).min(Duration::from_millis(1))),
                }
            }
        })
    }

    /// The number (ticket) with which a checked shader reports an index out of range; it stands for the operation and the call site. The
    /// shader calls `fault(ticket, index_low, index_high, dim, size)` of `dispatch::FAULT` (the first fault is kept) and touches no memory.
    pub fn ticket(&self, op: &'static str) -> u32 {
        self.ticket_for(op, Cause::Index)
    }

    /// As `ticket`, for any cause.
    pub(crate) fn ticket_for(&self, op: &'static str, cause: Cause) -> u32 {
        self.tickets.number(op, cause)
    }

    /// Bytes that live tensors hold on the device, as it allocates them.
    pub fn memory_allocated(&self) -> usize {
        self.pool.allocated()
    }

    /// The most that `memory_allocated` has been since the last reset.
    pub fn max_memory_allocated(&self) -> usize {
        self.pool.peak()
    }

    pub fn reset_peak_memory_stats(&self) {
        self.pool.reset_peak();
    }

    /// Bytes that are cached for reuse.
    pub fn memory_idle(&self) -> usize {
        if self.forked() { 0 } else { self.pool.idle() }
    }

    /// Releases cached buffers.
    pub fn empty_cache(&self) -> Result<()> {
        self.check()?;
        self.with(|r| {
            let idle = self.pool.take_idle();
            r.cache.forget_buffers(&self.api, &idle.iter().map(|b| b.id).collect());
            for raw in idle {
                self.api.release_buffer(raw.handle);
            }
            r.drop_staging(&self.api);
            Ok(())
        })
    }

    /// Makes the n-th request for memory from now on fail (0: the next one); negative switches this off. For tests.
    pub fn fail_in(&self, n: i64) {
        self.pool.fail_in(n);
    }

    /// Command buffers that were submitted so far.
    pub fn submits(&self) -> Result<u64> {
        self.check()?;
        self.with(|r| Ok(r.submits))
    }

    /// Dispatches so far, submitted or recorded.
    pub fn dispatches(&self) -> Result<u64> {
        self.with(|r| Ok(r.dispatches))
    }

    /// Shaders that were compiled so far.
    pub fn pipelines_made(&self) -> Result<u64> {
        self.with(|r| Ok(r.cache.pipelines_made()))
    }

    /// Sets after how many new shaders unused ones are dropped; None for the default. For tests.
    pub fn keep_pipelines(&self, many: Option<usize>) -> Result<()> {
        self.with(|r| {
            r.cache.keep_pipelines(many.unwrap_or(PIPELINES));
            Ok(())
        })
    }

    /// Compiled shaders in the cache.
    pub fn pipelines(&self) -> Result<usize> {
        self.with(|r| Ok(r.cache.pipelines()))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.forked() {
            std::mem::forget(self.owner.take());
            return;
        }
        self.recorder.get_mut().get_mut().close(&self.api);
        for raw in self.pool.take_idle() {
            self.api.release_buffer(raw.handle);
        }
        self.api.release();
    }
}

/// How long to wait for the device.
fn timeout() -> Duration {
    std::env::var("RGRAD_WGPU_TIMEOUT")
        .ok()
        .and_then(|v| v.trim().parse::<f64>().ok())
        .and_then(|s| Duration::try_from_secs_f64(s).ok())
        .unwrap_or(Duration::from_secs(120))
}

/// `groups` as a rectangle of at least as many whose sides are at most `most`.
fn spread(groups: usize, most: usize) -> Option<(u32, u32)> {
    let y = groups.div_ceil(most);
    if y > most {
        return None;
    }
    Some((groups.div_ceil(y) as u32, y as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workgroups_spread_over_two_dimensions() {
        assert_eq!(spread(1, 65_535), Some((1, 1)));
        assert_eq!(spread(65_535, 65_535), Some((65_535, 1)));
        for groups in [65_536, 1_000_000, 65_535 * 65_535] {
            let (x, y) = spread(groups, 65_535).unwrap();
            assert!(x as usize * y as usize >= groups && x <= 65_535 && y <= 65_535);
        }
        assert_eq!(spread(65_535 * 65_535 + 1, 65_535), None);
    }
}
