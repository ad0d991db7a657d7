//! One device and its queue behind calls with Rust types. Handles are plain addresses that are valid until they are released here; the code
//! that stores one must release it once and not use it afterwards.

use super::functions::Functions;
use super::types::*;
use crate::host::memory::raw_slice::RawSlice;
use std::ffi::c_void;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// An error of the library.
#[derive(Debug)]
pub struct Fault {
    pub kind: ErrorType,
    pub message: String,
}

impl Fault {
    /// The innermost cause, on one line.
    pub fn cause(&self) -> &str {
        self.message.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or("no reason given").trim_end_matches('.')
    }
}

/// A completion signal, set by a callback on the thread that polls the device.
#[derive(Debug, Default)]
pub struct Signal {
    state: AtomicU32,
    at: OnceLock<Instant>,
}

impl Signal {
    const PENDING: u32 = 0;
    const DONE: u32 = 1;
    const FAILED: u32 = 2;

    fn set(&self, ok: bool) {
        let _ = self.at.set(Instant::now());
        self.state.store(if ok { Self::DONE } else { Self::FAILED }, Ordering::Release);
    }

    /// `None` until the signal is set, then whether the operation succeeded.
    pub fn get(&self) -> Option<bool> {
        match self.state.load(Ordering::Acquire) {
            Self::PENDING => None,
            s => Some(s == Self::DONE),
        }
    }

    /// When a poll saw the end; `None` until then.
    pub fn at(&self) -> Option<Instant> {
        self.at.get().copied()
    }

    /// A reference for a callback, which must be called once.
    fn lend(self: &Arc<Signal>) -> *mut c_void {
        Arc::into_raw(self.clone()).cast_mut().cast()
    }

    /// # Safety
    /// `lent` comes from `lend`, and this is the callback's only call.
    unsafe fn redeem(lent: *mut c_void, ok: bool) {
        // SAFETY: by the caller's promise.
        unsafe { Arc::from_raw(lent.cast::<Signal>().cast_const()) }.set(ok);
    }
}

unsafe extern "C" fn mapped(status: MapAsyncStatus, _message: StringView, signal: *mut c_void, _: *mut c_void) {
    // SAFETY: the library calls back once, with what `map_for_read` handed over.
    unsafe { Signal::redeem(signal, status == MapAsyncStatus::Success) };
}

unsafe extern "C" fn worked(status: QueueWorkDoneStatus, _message: StringView, signal: *mut c_void, _: *mut c_void) {
    // SAFETY: the library calls back once, with what `when_done` handed over.
    unsafe { Signal::redeem(signal, status == QueueWorkDoneStatus::Success) };
}

unsafe extern "C" fn popped(status: PopErrorScopeStatus, kind: ErrorType, message: StringView, fault: *mut c_void, _: *mut c_void) {
    // SAFETY: `pop` hands over a place that outlives its call, and scopes are popped within the call.
    let fault = unsafe { &mut *fault.cast::<Option<Fault>>() };
    if status == PopErrorScopeStatus::Success && kind != ErrorType::NoError {
        // SAFETY: the view is the library's.
        *fault = Some(Fault { kind, message: unsafe { message.text() } });
    }
}

/// A device, its queue, and the functions to drive them by. Holds a reference of both.
#[derive(Debug)]
pub struct Api {
    f: Functions,
    device: Device,
    queue: Queue,
    lost: AtomicBool,
}

impl Api {
    /// Takes references of its own.
    ///
    /// # Safety
    /// The handles are a live device of the library that the functions belong to, and its queue.
    pub unsafe fn new(f: Functions, device: usize, queue: usize) -> Api {
        let (device, queue) = (Device(device as *mut c_void), Queue(queue as *mut c_void));
        // SAFETY: by the caller's promise.
        unsafe {
            (f.device_add_ref)(device);
            (f.queue_add_ref)(queue);
        }
        Api { f, device, queue, lost: AtomicBool::new(false) }
    }

    /// Releases the references. Not a destructor, because a forked child must not call it.
    pub fn release(&self) {
        // SAFETY: the references are this object's own, and its owner calls this once, last.
        unsafe {
            (self.f.queue_release)(self.queue);
            (self.f.device_release)(self.device);
        }
    }

    pub fn device_handle(&self) -> usize {
        self.device.0 as usize
    }

    /// Runs calls with error scopes open, so that errors are returned instead of passed to the callback of wgpu-py, which runs Python.
    /// Scopes belong to the device, so calls of this must not run concurrently. (wgpu-native 29 panics when asked for a scope of internal
    /// errors, so these go to the callback; what they spoil is found invalid by the next call that uses it.)
    pub fn scoped<R>(&self, calls: impl FnOnce() -> R) -> (R, Option<Fault>) {
        // SAFETY: the device is live; every push is popped.
        unsafe {
            (self.f.device_push_error_scope)(self.device, ErrorFilter::OutOfMemory);
            (self.f.device_push_error_scope)(self.device, ErrorFilter::Validation);
        }
        let result = calls();
        let validation = self.pop();
        let memory = self.pop();
        let mut fault = memory.or(validation);
        // wgpu-native 29 reports both by the scope of validation errors.
        if let Some(f) = fault.as_mut().filter(|f| f.message.contains("Not enough memory left")) {
            f.kind = ErrorType::OutOfMemory;
        }
        if fault.as_ref().is_some_and(|f| f.message.contains("device is lost")) {
            self.lost.store(true, Ordering::Relaxed);
        }
        (result, fault)
    }

    /// Whether a call has shown that the device is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn pop(&self) -> Option<Fault> {
        let mut fault: Option<Fault> = None;
        let info = PopErrorScopeCallbackInfo {
            mode: CallbackMode::AllowSpontaneous,
            callback: Some(popped),
            userdata1: (&raw mut fault).cast(),
            ..Default::default()
        };
        // SAFETY: the callback runs within the call, while `fault` lives.
        unsafe { (self.f.device_pop_error_scope)(self.device, info) };
        fault
    }

    /// Runs callbacks that are due; does not wait. May run Python (callbacks of wgpu-py's own).
    pub fn poll(&self) {
        // SAFETY: the device is live.
        unsafe { (self.f.device_poll)(self.device, 0, null()) };
    }

    pub fn create_buffer(&self, label: &str, bytes: usize, usage: Flags) -> Buffer {
        let d = BufferDescriptor { label: StringView::of(label), usage, size: bytes as u64, ..Default::default() };
        // SAFETY: the descriptor is valid during the call.
        unsafe { (self.f.device_create_buffer)(self.device, &d) }
    }

    pub fn release_buffer(&self, buffer: Buffer) {
        // SAFETY: the caller's reference.
        unsafe { (self.f.buffer_release)(buffer) };
    }

    /// Copies `data` at once; the write happens before anything that is submitted later, and after what was submitted before.
    pub fn write_buffer(&self, buffer: Buffer, offset: usize, data: RawSlice<'_, u8>) {
        // SAFETY: the data is valid during the call, which copies it.
        unsafe { (self.f.queue_write_buffer)(self.queue, buffer, offset as u64, data.as_ptr().cast(), data.len()) };
    }

    /// A layout of `entries`: their kinds in order, a uniform with the size of its binding.
    pub fn create_layout(&self, entries: &[(BufferBindingType, u64)]) -> (BindGroupLayout, PipelineLayout) {
        let entries: Vec<BindGroupLayoutEntry> = entries
            .iter()
            .enumerate()
            .map(|(i, (kind, size))| BindGroupLayoutEntry {
                binding: i as u32,
                visibility: STAGE_COMPUTE,
                buffer: BufferBindingLayout {
                    kind: *kind,
                    has_dynamic_offset: (*kind == BufferBindingType::Uniform).into(),
                    min_binding_size: *size,
                    ..Default::default()
                },
                ..Default::default()
            })
            .collect();
        let d = BindGroupLayoutDescriptor {
            label: StringView::of("rgrad"),
            entry_count: entries.len(),
            entries: entries.as_ptr(),
            ..Default::default()
        };
        // SAFETY: the descriptors are valid during the calls.
        unsafe {
            let group = (self.f.device_create_bind_group_layout)(self.device, &d);
            let d = PipelineLayoutDescriptor {
                label: StringView::of("rgrad"),
                bind_group_layout_count: 1,
                bind_group_layouts: &group,
                ..Default::default()
            };
            (group, (self.f.device_create_pipeline_layout)(self.device, &d))
        }
    }

    pub fn release_layout(&self, group: BindGroupLayout, pipeline: PipelineLayout) {
        // SAFETY: the caller's references.
        unsafe {
            (self.f.pipeline_layout_release)(pipeline);
            (self.f.bind_group_layout_release)(group);
        }
    }

    /// A pipeline of WGSL whose entry point is `main`. Every access is kept within its buffer, but the library does not add a counter to
    /// each loop, its guard against endless loops.
    pub fn create_pipeline(&self, label: &str, source: &str, layout: PipelineLayout) -> ComputePipeline {
        let code =
            ShaderSourceWgsl { chain: ChainedStruct { next: null(), s_type: SType::ShaderSourceWGSL }, code: StringView::of(source) };
        let module = ShaderModuleDescriptor { next: from_ref(&code).cast(), label: StringView::of(label) };
        // SAFETY: the descriptors and what they point to are valid during the calls; the module is released once.
        unsafe {
            let module = (self.f.device_create_shader_module_trusted)(self.device, &module, BOUNDS_CHECKS);
            let d = ComputePipelineDescriptor {
                label: StringView::of(label),
                layout,
                compute: ComputeState { module, entry_point: StringView::of("main"), ..Default::default() },
                ..Default::default()
            };
            let pipeline = (self.f.device_create_compute_pipeline)(self.device, &d);
            (self.f.shader_module_release)(module);
            pipeline
        }
    }

    pub fn release_pipeline(&self, pipeline: ComputePipeline) {
        // SAFETY: the caller's reference.
        unsafe { (self.f.compute_pipeline_release)(pipeline) };
    }

    /// A group of `buffers`, each with the number of its bytes that are bound.
    pub fn create_bind_group(&self, layout: BindGroupLayout, buffers: &[(Buffer, usize)]) -> BindGroup {
        let entries: Vec<BindGroupEntry> = buffers
            .iter()
            .enumerate()
            .map(|(i, (buffer, bytes))| BindGroupEntry { binding: i as u32, buffer: *buffer, size: *bytes as u64, ..Default::default() })
            .collect();
        let d = BindGroupDescriptor {
            label: StringView::of("rgrad"),
            layout,
            entry_count: entries.len(),
            entries: entries.as_ptr(),
            ..Default::default()
        };
        // SAFETY: the descriptor and its entries are valid during the call.
        unsafe { (self.f.device_create_bind_group)(self.device, &d) }
    }

    pub fn release_bind_group(&self, group: BindGroup) {
        // SAFETY: the caller's reference.
        unsafe { (self.f.bind_group_release)(group) };
    }

    pub fn create_encoder(&self) -> CommandEncoder {
        let d = CommandEncoderDescriptor { label: StringView::of("rgrad"), ..Default::default() };
        // SAFETY: the descriptor is valid during the call.
        unsafe { (self.f.device_create_command_encoder)(self.device, &d) }
    }

    /// Begins a pass, which writes the device's times into two places of a query set if that is given.
    pub fn begin_pass(&self, encoder: CommandEncoder, times: Option<(QuerySet, u32, u32)>) -> ComputePass {
        let times = times.map(|(query_set, beginning, end)| PassTimestampWrites { query_set, beginning, end, ..Default::default() });
        let timestamp_writes = times.as_ref().map_or(null(), from_ref);
        let d = ComputePassDescriptor { label: StringView::of("rgrad"), timestamp_writes, ..Default::default() };
        // SAFETY: the encoder is live and has no open pass.
        unsafe { (self.f.command_encoder_begin_compute_pass)(encoder, &d) }
    }

    pub fn set_pipeline(&self, pass: ComputePass, pipeline: ComputePipeline) {
        // SAFETY: the pass is open, the pipeline live.
        unsafe { (self.f.compute_pass_set_pipeline)(pass, pipeline) };
    }

    pub fn set_bind_group(&self, pass: ComputePass, group: BindGroup, offset: Option<u32>) {
        let offsets = offset.as_slice();
        // SAFETY: the pass is open, the group live, the offsets valid during the call.
        unsafe { (self.f.compute_pass_set_bind_group)(pass, 0, group, offsets.len(), offsets.as_ptr()) };
    }

    pub fn dispatch(&self, pass: ComputePass, x: u32, y: u32) {
        // SAFETY: the pass is open.
        unsafe { (self.f.compute_pass_dispatch)(pass, x, y, 1) };
    }

    pub fn end_pass(&self, pass: ComputePass) {
        // SAFETY: the pass is open, and the caller forgets it.
        unsafe {
            (self.f.compute_pass_end)(pass);
            (self.f.compute_pass_release)(pass);
        }
    }

    pub fn copy(&self, encoder: CommandEncoder, from: (Buffer, usize), to: (Buffer, usize), bytes: usize) {
        // SAFETY: the encoder has no open pass, the buffers are live.
        unsafe { (self.f.command_encoder_copy_buffer)(encoder, from.0, from.1 as u64, to.0, to.1 as u64, bytes as u64) };
    }

    /// A set of `count` times of the device.
    pub fn create_query_set(&self, count: u32) -> QuerySet {
        let d = QuerySetDescriptor { label: StringView::of("rgrad times"), kind: QueryType::Timestamp, count, ..Default::default() };
        // SAFETY: the descriptor is valid during the call.
        unsafe { (self.f.device_create_query_set)(self.device, &d) }
    }

    pub fn release_query_set(&self, set: QuerySet) {
        // SAFETY: the caller's reference.
        unsafe { (self.f.query_set_release)(set) };
    }

    /// Writes the first `count` times of a set into a buffer, as 64-bit ticks.
    pub fn resolve(&self, encoder: CommandEncoder, set: QuerySet, count: u32, to: Buffer) {
        // SAFETY: the encoder has no open pass, the set and the buffer are live.
        unsafe { (self.f.command_encoder_resolve_query_set)(encoder, set, 0, count, to, 0) };
    }

    /// The nanoseconds of a tick of the device's clock.
    pub fn timestamp_period(&self) -> f32 {
        // SAFETY: the queue is live.
        unsafe { (self.f.queue_get_timestamp_period)(self.queue) }
    }

    /// The commands that the encoder has recorded.
    pub fn finish(&self, encoder: CommandEncoder) -> CommandBuffer {
        let d = CommandBufferDescriptor { label: StringView::of("rgrad"), ..Default::default() };
        // SAFETY: the encoder has no open pass, and the caller forgets it.
        unsafe {
            let commands = (self.f.command_encoder_finish)(encoder, &d);
            (self.f.command_encoder_release)(encoder);
            commands
        }
    }

    /// Submits commands. The library ends the process if they are not valid or the device is lost: error scopes must have shown before that
    /// there was no error.
    pub fn submit(&self, commands: CommandBuffer) {
        // SAFETY: the caller forgets the commands.
        unsafe {
            (self.f.queue_submit)(self.queue, 1, &commands);
            (self.f.command_buffer_release)(commands);
        }
    }

    /// Releases commands that will not be submitted.
    pub fn release_commands(&self, commands: CommandBuffer) {
        // SAFETY: the caller forgets the commands.
        unsafe { (self.f.command_buffer_release)(commands) };
    }

    /// Releases an encoder that will not be submitted.
    pub fn release_encoder(&self, encoder: CommandEncoder) {
        // SAFETY: the caller forgets it.
        unsafe { (self.f.command_encoder_release)(encoder) };
    }

    /// A signal that is set when all submitted work has run.
    pub fn when_done(&self) -> Arc<Signal> {
        let signal = Arc::new(Signal::default());
        let info = QueueWorkDoneCallbackInfo {
            mode: CallbackMode::AllowSpontaneous,
            callback: Some(worked),
            userdata1: signal.lend(),
            ..Default::default()
        };
        // SAFETY: the callback owns the reference that it was lent.
        unsafe { (self.f.queue_on_submitted_work_done)(self.queue, info) };
        signal
    }

    /// A signal that is set when the first `bytes` bytes of `buffer` can be read.
    pub fn map_for_read(&self, buffer: Buffer, bytes: usize) -> Arc<Signal> {
        let signal = Arc::new(Signal::default());
        let info = BufferMapCallbackInfo {
            mode: CallbackMode::AllowSpontaneous,
            callback: Some(mapped),
            userdata1: signal.lend(),
            userdata2: null_mut(),
            next: null(),
        };
        // SAFETY: the buffer is live and not mapped; the callback owns the reference that it was lent.
        unsafe { (self.f.buffer_map_async)(buffer, MODE_READ, 0, bytes, info) };
        signal
    }

    /// Copies out of a buffer that is mapped, and unmaps it. `None` if it is not mapped after all.
    pub fn take_mapped(&self, buffer: Buffer, bytes: usize) -> Option<Vec<u8>> {
        // SAFETY: the buffer is mapped for this range; the memory is valid until it is unmapped.
        unsafe {
            let at = (self.f.buffer_get_const_mapped_range)(buffer, 0, bytes);
            let data = (!at.is_null()).then(|| std::slice::from_raw_parts(at.cast::<u8>(), bytes).to_vec());
            (self.f.buffer_unmap)(buffer);
            data
        }
    }
}
