//! The command recorder: one encoder and one pass stay open for many dispatches. A batch is submitted when a result is read, or when it is
//! full. The queue runs all work in the order of its recording.

use super::buffer::{Buffer, RawBuffer};
use super::context::Features;
use super::dispatch::Dispatch;
use super::errors;
use super::host;
use super::pipeline::{PipelineCache, QueueBuffers};
use super::timer::{TimedBatch, Timer};
use crate::backend::wgpu::native::api::{Api, Fault, Signal};
use crate::backend::wgpu::native::types::{
    self as native, COPY_DST, COPY_SRC, CommandEncoder, ComputePass, ErrorType, MAP_READ, STORAGE, UNIFORM,
};
use crate::error::{Error, Result};
use crate::host::device_times::Watcher;
use crate::host::memory::raw_slice::RawSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Dispatches of one batch.
pub(super) const BATCH: usize = 512;
/// Workgroups after which a batch is submitted: enough work for the device while the next batch is recorded.
const WORKGROUPS: usize = 1 << 17;
/// Bytes of writes after which a batch is submitted.
const WRITTEN: usize = 64 << 20;
/// Bytes of the ring of parameters; each batch starts at its beginning.
const RING: usize = 256 << 10;
/// Writes up to this size go through the ring where the buffer is in use by recorded work.
const SMALL_WRITE: usize = 4 << 10;
const STATUS_BYTES: usize = errors::WORDS * 4;
/// Staging buffers of each size that are kept.
const STAGING: usize = 4;

/// A read that was submitted: the data, then the status, wait in `staging`.
#[derive(Debug)]
pub(crate) struct PendingRead {
    pub(crate) staging: native::Buffer,
    pub(crate) capacity: usize,
    pub(crate) bytes: usize,
    /// The status follows the data.
    pub(crate) status: bool,
    pub(crate) signal: Arc<Signal>,
}

#[derive(Debug)]
struct OpenBatch {
    encoder: CommandEncoder,
    pass: Option<ComputePass>,
}

/// The state of recording; it is used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Recorder {
    open: Option<OpenBatch>,
    /// The number of the batch that is being recorded; from 1 on.
    batch: u64,
    /// Dispatches in it, and their workgroups.
    count: usize,
    workgroups: usize,
    /// Bytes of writes that were passed to the library since the last batch.
    written: usize,
    /// The first and the last operation of the batch, with their sites.
    span: Option<[(&'static str, u32); 2]>,
    /// The parameters of the batch; they are written to the ring before it is submitted.
    params: Vec<u8>,
    /// Offset in the ring and length in bytes of the latest parameters.
    last: Option<(usize, usize)>,
    /// The number of the pipeline that the open pass has set.
    set: Option<u64>,
    align: usize,
    /// Checked shaders have run since the status was last read.
    pub(crate) unchecked: bool,
    pub(crate) submits: u64,
    pub(crate) dispatches: u64,
    pub(crate) cache: PipelineCache,
    own: QueueBuffers,
    staging: Vec<(usize, native::Buffer)>,
    timer: Timer,
}

/// The error of a batch.
fn failed(what: &str, span: Option<[(&'static str, u32); 2]>, fault: &Fault) -> Error {
    let text = fault.message.trim();
    let during = match span {
        Some([(a, _), (b, _)]) if a == b => format!("{what} of {a}"),
        Some([(a, _), (b, _)]) => format!("{what} of the operations from {a} to {b}"),
        None => what.to_string(),
    };
    let e = match fault.kind {
        ErrorType::OutOfMemory => {
            Error::memory(format!("{during}: the wgpu device says: {}. Free tensors or use smaller batches", fault.cause()))
        }
        _ => Error::runtime(format!("{during}: wgpu says: {text}")),
    };
    match span.and_then(|[(_, first), (_, last)]| Some((host::called_at(first)?, host::called_at(last)?))) {
        Some((first, last)) if first == last => e.note(first),
        Some((first, last)) => e.note(format!("the first {first}")).note(format!("the last {last}")),
        None => e,
    }
}

impl Recorder {
    /// For a device with these features; `align`: that of parameters in a uniform buffer.
    pub(crate) fn new(api: &Api, align: usize, features: Features) -> Result<Recorder> {
        let (own, fault) = api.scoped(|| QueueBuffers {
            ring: api.create_buffer("rgrad parameters", RING, UNIFORM | COPY_DST | COPY_SRC),
            status: api.create_buffer("rgrad status", STATUS_BYTES.next_multiple_of(16), STORAGE | COPY_DST | COPY_SRC),
            status_bytes: STATUS_BYTES.next_multiple_of(16),
        });
        if let Some(fault) = fault {
            return Err(failed("opening the device", None, &fault));
        }
        Ok(Recorder {
            open: None,
            batch: 1,
            count: 0,
            workgroups: 0,
            written: 0,
            span: None,
            params: Vec::with_capacity(RING),
            last: None,
            set: None,
            align: align.max(16),
            unchecked: false,
            submits: 0,
            dispatches: 0,
            cache: PipelineCache::new(features.float16),
            own,
            staging: Vec::new(),
            timer: Timer::new(features.timestamps),
        })
    }

    fn encoder(&mut self, api: &Api) -> &mut OpenBatch {
        self.open.get_or_insert_with(|| OpenBatch { encoder: api.create_encoder(), pass: None })
    }

    fn end_pass(&mut self, api: &Api) -> CommandEncoder {
        let open = self.encoder(api);
        if let Some(pass) = open.pass.take() {
            api.end_pass(pass);
        }
        open.encoder
    }

    /// Writes data into the ring, in a slot of `room` bytes, and returns its offset. May submit the batch.
    fn put_in_ring(&mut self, api: &Api, data: &[u8], room: usize) -> Result<usize> {
        if self.params.len().next_multiple_of(self.align) + room > RING {
            self.submit(api)?;
        }
        let at = self.params.len().next_multiple_of(self.align);
        self.params.resize(at, 0);
        self.params.extend_from_slice(data);
        self.params.resize(at + room, 0);
        Ok(at)
    }

    /// The offset of a dispatch's parameters in the ring; equal parameters of the previous dispatch are reused.
    fn place(&mut self, api: &Api, params: &[u32], room: usize) -> Result<u32> {
        // SAFETY: words are plain bytes.
        let data = unsafe { std::slice::from_raw_parts(params.as_ptr().cast::<u8>(), params.len() * 4) };
        if let Some((at, bytes)) = self.last
            && bytes == data.len()
            && self.params.get(at..at + bytes) == Some(data)
        {
            return Ok(at as u32);
        }
        let at = self.put_in_ring(api, data, room)?;
        self.last = Some((at, data.len()));
        Ok(at as u32)
    }

    /// Records a dispatch of `x` times `y` workgroups for the call site `site`. One that is watched has a pass of its own.
    pub(crate) fn record(&mut self, api: &Api, work: &Dispatch<'_>, (x, y): (u32, u32), site: u32, watcher: Option<Watcher>) -> Result<()> {
        let pipeline = self.cache.pipeline(api, work)?;
        let group = self.cache.group(api, &self.own, &pipeline, work)?;
        let offset = match work.params {
            [] => None,
            params => Some(self.place(api, params, pipeline.shape.param_bytes())?),
        };
        let alone = match watcher {
            None => None,
            Some(watcher) => {
                let places = self.timer.watch(api, watcher, work.op, work.key.kind);
                places.map_err(|fault| failed("taking times", None, &fault))?
            }
        };
        if alone.is_some() {
            self.end_pass(api);
        }
        let open = self.encoder(api);
        let pass = match open.pass {
            Some(pass) => pass,
            None => {
                let pass = api.begin_pass(open.encoder, alone);
                open.pass = Some(pass);
                self.set = None;
                pass
            }
        };
        if self.set != Some(pipeline.number) {
            api.set_pipeline(pass, pipeline.handle);
            self.set = Some(pipeline.number);
        }
        api.set_bind_group(pass, group, offset);
        api.dispatch(pass, x, y);
        if alone.is_some() {
            self.end_pass(api);
        }
        self.dispatches += 1;
        for (b, _) in &work.bindings.slots {
            b.raw().batch.store(self.batch, Ordering::Relaxed);
        }
        self.unchecked |= work.checked;
        let here = (work.op, site);
        match &mut self.span {
            Some([_, last]) => *last = here,
            None => self.span = Some([here, here]),
        }
        self.count += 1;
        self.workgroups += work.groups;
        if self.count >= BATCH || self.workgroups >= WORKGROUPS { self.submit(api) } else { Ok(()) }
    }

    /// Submits the batch if it is not empty.
    pub(crate) fn submit(&mut self, api: &Api) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        // If a write fails, the device is lost; this must be known before anything is submitted.
        self.params.resize(self.params.len().max(4), 0);
        let mut times = None;
        let (commands, fault) = api.scoped(|| {
            if let Some(pass) = open.pass.take() {
                api.end_pass(pass);
            }
            if self.timer.is_watching() {
                times = self.timer.resolve(api, open.encoder);
            }
            api.write_buffer(self.own.ring, 0, (&self.params[..]).into());
            api.finish(open.encoder)
        });
        let now = Instant::now();
        let fault = match fault {
            None => api.scoped(|| api.submit(commands)).1,
            Some(fault) => {
                api.release_commands(commands);
                Some(fault)
            }
        };
        let fault = match fault {
            None if self.timer.is_watching() => self.timer.submitted(api, now, times),
            None => None,
            Some(fault) => {
                self.timer.dropped(api, times);
                Some(fault)
            }
        };
        self.params.clear();
        self.last = None;
        self.batch += 1;
        self.count = 0;
        self.workgroups = 0;
        self.written = 0;
        self.submits += 1;
        let span = self.span.take();
        match fault {
            None => Ok(()),
            Some(fault) => Err(failed("the run", span, &fault)),
        }
    }

    /// Whether recorded work that is not yet submitted uses a buffer.
    fn pending(&self, raw: &RawBuffer) -> bool {
        self.open.is_some() && raw.batch.load(Ordering::Relaxed) == self.batch
    }

    /// Writes after all recorded work. A write of the queue itself would happen before the work that is not yet submitted.
    pub(crate) fn write(&mut self, api: &Api, buffer: &Buffer, offset: usize, data: RawSlice<'_, u8>) -> Result<()> {
        let raw = buffer.raw();
        if self.pending(raw) {
            if data.len() <= SMALL_WRITE {
                let at = self.put_in_ring(api, &data.to_vec(), data.len())?;
                if self.pending(raw) {
                    let encoder = self.end_pass(api);
                    api.copy(encoder, (self.own.ring, at), (raw.handle, offset), data.len());
                    return Ok(());
                }
            } else {
                self.submit(api)?;
            }
        }
        let ((), fault) = api.scoped(|| api.write_buffer(raw.handle, offset, data));
        if let Some(fault) = fault {
            return Err(failed("a transfer to the device", None, &fault));
        }
        self.written += data.len();
        if self.written >= WRITTEN {
            // Even without recorded work, because the library keeps a copy of the data until the next submission.
            self.encoder(api);
            self.submit(api)?;
        }
        Ok(())
    }

    /// A buffer for the host to read `total` bytes from, and its own size.
    fn staging(&mut self, api: &Api, total: usize) -> Result<(usize, native::Buffer)> {
        let capacity = total.next_power_of_two().max(256);
        let kept = self.staging.iter().position(|(c, _)| *c == capacity);
        let (staging, fault) = match kept {
            Some(i) => (self.staging.swap_remove(i).1, None),
            None => api.scoped(|| api.create_buffer("rgrad staging", capacity, MAP_READ | COPY_DST)),
        };
        fault.map_or(Ok((capacity, staging)), |fault| Err(failed("a transfer from the device", None, &fault)))
    }

    /// Submits a write of `mark` into a new buffer and a copy of it from there, beside the batch, and starts to map the copy.
    pub(crate) fn try_memory(&mut self, api: &Api, buffer: native::Buffer, mark: [u8; 4]) -> Result<PendingRead> {
        let bytes = mark.len();
        let (capacity, staging) = self.staging(api, bytes)?;
        let (commands, fault) = api.scoped(|| {
            api.write_buffer(buffer, 0, (&mark[..]).into());
            let encoder = api.create_encoder();
            api.copy(encoder, (buffer, 0), (staging, 0), bytes);
            api.finish(encoder)
        });
        let (signal, fault) = match fault {
            None => api.scoped(|| {
                api.submit(commands);
                api.map_for_read(staging, bytes)
            }),
            Some(fault) => {
                api.release_commands(commands);
                (Arc::default(), Some(fault))
            }
        };
        match fault {
            None => Ok(PendingRead { staging, capacity, bytes, status: false, signal }),
            Some(fault) => {
                api.release_buffer(staging);
                Err(failed("allocation", None, &fault))
            }
        }
    }

    /// Submits a copy of `bytes` bytes (0: nothing) and of the status after all recorded work, and starts to map them.
    pub(crate) fn read(&mut self, api: &Api, from: Option<(&Buffer, usize)>, bytes: usize) -> Result<PendingRead> {
        let status = self.unchecked;
        let total = bytes + if status { STATUS_BYTES } else { 0 };
        let (capacity, staging) = self.staging(api, total)?;
        let own = self.own;
        let encoder = self.end_pass(api);
        if let Some((buffer, offset)) = from {
            api.copy(encoder, (buffer.raw().handle, offset), (staging, 0), bytes);
        }
        if status {
            api.copy(encoder, (own.status, 0), (staging, bytes), STATUS_BYTES);
        }
        if let Err(e) = self.submit(api) {
            api.release_buffer(staging);
            return Err(e);
        }
        let (signal, fault) = api.scoped(|| api.map_for_read(staging, total));
        if let Some(fault) = fault {
            api.release_buffer(staging);
            return Err(failed("a transfer from the device", None, &fault));
        }
        self.unchecked = false;
        Ok(PendingRead { staging, capacity, bytes, status, signal })
    }

    /// Clears the fault in the status buffer.
    pub(crate) fn clear_status(&mut self, api: &Api) -> Result<()> {
        self.submit(api)?;
        let ((), fault) = api.scoped(|| api.write_buffer(self.own.status, 0, (&[0; STATUS_BYTES][..]).into()));
        fault.map_or(Ok(()), |fault| Err(failed("a transfer to the device", None, &fault)))
    }

    /// Submits the batch and requests a signal for its end.
    pub(crate) fn finish(&mut self, api: &Api) -> Result<Arc<Signal>> {
        self.submit(api)?;
        let (signal, fault) = api.scoped(|| api.when_done());
        fault.map_or(Ok(signal), |fault| Err(failed("synchronize", None, &fault)))
    }

    /// Submits the batch, and returns the watched batches with the nanoseconds of a tick of their times.
    pub(crate) fn take_timed(&mut self, api: &Api) -> Result<(Vec<TimedBatch>, f64)> {
        if self.timer.is_watching() {
            self.submit(api)?;
        }
        Ok((self.timer.take(), self.timer.period()))
    }

    /// Checks with a write whether the device is lost. On a lost device all work counts as done.
    pub(crate) fn probe(&mut self, api: &Api) -> Result<()> {
        let ((), fault) = api.scoped(|| api.write_buffer(self.own.ring, 0, (&[0; 4][..]).into()));
        fault.map_or(Ok(()), |fault| Err(failed("looking at the device", None, &fault)))
    }

    /// Keeps a staging buffer for the next read, or releases it.
    pub(crate) fn keep_staging(&mut self, api: &Api, capacity: usize, staging: native::Buffer) {
        if capacity <= 64 << 20 && self.staging.iter().filter(|(c, _)| *c == capacity).count() < STAGING {
            self.staging.push((capacity, staging));
        } else {
            api.release_buffer(staging);
        }
    }

    pub(crate) fn drop_staging(&mut self, api: &Api) {
        for (_, staging) in self.staging.drain(..) {
            api.release_buffer(staging);
        }
    }

    /// Releases everything without submitting the batch.
    pub(crate) fn close(&mut self, api: &Api) {
        if let Some(mut open) = self.open.take() {
            let ((), _) = api.scoped(|| {
                if let Some(pass) = open.pass.take() {
                    api.end_pass(pass);
                }
                api.release_encoder(open.encoder);
            });
        }
        self.cache.clear(api);
        self.timer.close(api);
        self.drop_staging(api);
        api.release_buffer(self.own.ring);
        api.release_buffer(self.own.status);
    }
}
