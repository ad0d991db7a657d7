//! The functions of `webgpu.h` and `wgpu.h` that are used.

use super::describe::{CType, functions};
use super::types::*;
use std::ffi::c_void;

functions! {
    device_add_ref = "wgpuDeviceAddRef": fn(Device) -> ();
    device_release = "wgpuDeviceRelease": fn(Device) -> ();
    device_poll = "wgpuDevicePoll": fn(Device, Bool, *const u64) -> Bool;
    device_push_error_scope = "wgpuDevicePushErrorScope": fn(Device, ErrorFilter) -> ();
    device_pop_error_scope = "wgpuDevicePopErrorScope": fn(Device, PopErrorScopeCallbackInfo) -> Future;
    device_create_buffer = "wgpuDeviceCreateBuffer": fn(Device, *const BufferDescriptor) -> Buffer;
    device_create_bind_group = "wgpuDeviceCreateBindGroup": fn(Device, *const BindGroupDescriptor) -> BindGroup;
    device_create_bind_group_layout = "wgpuDeviceCreateBindGroupLayout": fn(Device, *const BindGroupLayoutDescriptor) -> BindGroupLayout;
    device_create_pipeline_layout = "wgpuDeviceCreatePipelineLayout": fn(Device, *const PipelineLayoutDescriptor) -> PipelineLayout;
    device_create_compute_pipeline = "wgpuDeviceCreateComputePipeline": fn(Device, *const ComputePipelineDescriptor) -> ComputePipeline;
    device_create_shader_module_trusted = "wgpuDeviceCreateShaderModuleTrusted":
        fn(Device, *const ShaderModuleDescriptor, Flags) -> ShaderModule;
    device_create_command_encoder = "wgpuDeviceCreateCommandEncoder": fn(Device, *const CommandEncoderDescriptor) -> CommandEncoder;
    device_create_query_set = "wgpuDeviceCreateQuerySet": fn(Device, *const QuerySetDescriptor) -> QuerySet;
    query_set_release = "wgpuQuerySetRelease": fn(QuerySet) -> ();
    queue_add_ref = "wgpuQueueAddRef": fn(Queue) -> ();
    queue_release = "wgpuQueueRelease": fn(Queue) -> ();
    queue_submit = "wgpuQueueSubmit": fn(Queue, usize, *const CommandBuffer) -> ();
    queue_write_buffer = "wgpuQueueWriteBuffer": fn(Queue, Buffer, u64, *const c_void, usize) -> ();
    queue_get_timestamp_period = "wgpuQueueGetTimestampPeriod": fn(Queue) -> f32;
    queue_on_submitted_work_done = "wgpuQueueOnSubmittedWorkDone": fn(Queue, QueueWorkDoneCallbackInfo) -> Future;
    buffer_map_async = "wgpuBufferMapAsync": fn(Buffer, Flags, usize, usize, BufferMapCallbackInfo) -> Future;
    buffer_get_const_mapped_range = "wgpuBufferGetConstMappedRange": fn(Buffer, usize, usize) -> *const c_void;
    buffer_unmap = "wgpuBufferUnmap": fn(Buffer) -> ();
    buffer_release = "wgpuBufferRelease": fn(Buffer) -> ();
    bind_group_release = "wgpuBindGroupRelease": fn(BindGroup) -> ();
    bind_group_layout_release = "wgpuBindGroupLayoutRelease": fn(BindGroupLayout) -> ();
    pipeline_layout_release = "wgpuPipelineLayoutRelease": fn(PipelineLayout) -> ();
    compute_pipeline_release = "wgpuComputePipelineRelease": fn(ComputePipeline) -> ();
    shader_module_release = "wgpuShaderModuleRelease": fn(ShaderModule) -> ();
    command_encoder_begin_compute_pass = "wgpuCommandEncoderBeginComputePass":
        fn(CommandEncoder, *const ComputePassDescriptor) -> ComputePass;
    command_encoder_copy_buffer = "wgpuCommandEncoderCopyBufferToBuffer": fn(CommandEncoder, Buffer, u64, Buffer, u64, u64) -> ();
    command_encoder_resolve_query_set = "wgpuCommandEncoderResolveQuerySet": fn(CommandEncoder, QuerySet, u32, u32, Buffer, u64) -> ();
    command_encoder_finish = "wgpuCommandEncoderFinish": fn(CommandEncoder, *const CommandBufferDescriptor) -> CommandBuffer;
    command_encoder_release = "wgpuCommandEncoderRelease": fn(CommandEncoder) -> ();
    command_buffer_release = "wgpuCommandBufferRelease": fn(CommandBuffer) -> ();
    compute_pass_set_pipeline = "wgpuComputePassEncoderSetPipeline": fn(ComputePass, ComputePipeline) -> ();
    compute_pass_set_bind_group = "wgpuComputePassEncoderSetBindGroup": fn(ComputePass, u32, BindGroup, usize, *const u32) -> ();
    compute_pass_dispatch = "wgpuComputePassEncoderDispatchWorkgroups": fn(ComputePass, u32, u32, u32) -> ();
    compute_pass_end = "wgpuComputePassEncoderEnd": fn(ComputePass) -> ();
    compute_pass_release = "wgpuComputePassEncoderRelease": fn(ComputePass) -> ();
}
