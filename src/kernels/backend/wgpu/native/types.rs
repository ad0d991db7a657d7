//! The structs, enums and constants of `webgpu.h` and `wgpu.h` that are used, as wgpu-native 29 lays them out.

use super::describe::{CType, StructLayout, enums, handles, structs};
use std::ffi::{c_char, c_void};

pub type Bool = u32;
/// Sets of bits.
pub type Flags = u64;

handles! {
    Device = "WGPUDeviceImpl",
    Queue = "WGPUQueueImpl",
    Buffer = "WGPUBufferImpl",
    BindGroup = "WGPUBindGroupImpl",
    BindGroupLayout = "WGPUBindGroupLayoutImpl",
    PipelineLayout = "WGPUPipelineLayoutImpl",
    ComputePipeline = "WGPUComputePipelineImpl",
    ShaderModule = "WGPUShaderModuleImpl",
    CommandEncoder = "WGPUCommandEncoderImpl",
    CommandBuffer = "WGPUCommandBufferImpl",
    ComputePass = "WGPUComputePassEncoderImpl",
    Sampler = "WGPUSamplerImpl",
    TextureView = "WGPUTextureViewImpl",
    QuerySet = "WGPUQuerySetImpl",
}

enums! {
    SType = "WGPUSType" { ShaderSourceWGSL = 0x02 }
    CallbackMode = "WGPUCallbackMode" { AllowSpontaneous = 3 }
    ErrorFilter = "WGPUErrorFilter" { Validation = 1, OutOfMemory = 2 }
    ErrorType = "WGPUErrorType" { NoError = 1, Validation = 2, OutOfMemory = 3, Internal = 4, Unknown = 5 }
    PopErrorScopeStatus = "WGPUPopErrorScopeStatus" { Success = 1 }
    MapAsyncStatus = "WGPUMapAsyncStatus" { Success = 1 }
    QueueWorkDoneStatus = "WGPUQueueWorkDoneStatus" { Success = 1 }
    QueryType = "WGPUQueryType" { Timestamp = 2 }
    BufferBindingType = "WGPUBufferBindingType" { BindingNotUsed = 0, Uniform = 2, Storage = 3, ReadOnlyStorage = 4 }
    SamplerBindingType = "WGPUSamplerBindingType" { BindingNotUsed = 0 }
    TextureSampleType = "WGPUTextureSampleType" { BindingNotUsed = 0 }
    TextureViewDimension = "WGPUTextureViewDimension" { Undefined = 0 }
    StorageTextureAccess = "WGPUStorageTextureAccess" { BindingNotUsed = 0 }
    TextureFormat = "WGPUTextureFormat" { Undefined = 0 }
}

macro_rules! flags {
    ($($name:ident = $c:literal: $value:literal),* $(,)?) => {
        $(pub const $name: Flags = $value;)*

        pub(super) fn flag_values() -> Vec<(String, u64)> {
            vec![$(($c.into(), $name)),*]
        }
    };
}
flags! {
    MAP_READ = "WGPUBufferUsage_MapRead": 0x01,
    COPY_SRC = "WGPUBufferUsage_CopySrc": 0x04,
    COPY_DST = "WGPUBufferUsage_CopyDst": 0x08,
    UNIFORM = "WGPUBufferUsage_Uniform": 0x40,
    STORAGE = "WGPUBufferUsage_Storage": 0x80,
    QUERY_RESOLVE = "WGPUBufferUsage_QueryResolve": 0x200,
    STAGE_COMPUTE = "WGPUShaderStage_Compute": 0x04,
    MODE_READ = "WGPUMapMode_Read": 0x01,
    BOUNDS_CHECKS = "WGPUShaderRuntimeChecks_BoundsChecks": 0x01,
}

type Callback<S> = Option<unsafe extern "C" fn(S, StringView, *mut c_void, *mut c_void)>;
type ErrorCallback = Option<unsafe extern "C" fn(PopErrorScopeStatus, ErrorType, StringView, *mut c_void, *mut c_void)>;
type Next = *const ChainedStruct;

structs! {
    StringView = "WGPUStringView" { data: *const c_char = "data", length: usize = "length" }
    ChainedStruct = "WGPUChainedStruct" { next: Next = "next", s_type: SType = "sType" }
    Future = "WGPUFuture" { id: u64 = "id" }
    BufferDescriptor = "WGPUBufferDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", usage: Flags = "usage", size: u64 = "size",
        mapped_at_creation: Bool = "mappedAtCreation",
    }
    BufferBindingLayout = "WGPUBufferBindingLayout" {
        next: Next = "nextInChain", kind: BufferBindingType = "type", has_dynamic_offset: Bool = "hasDynamicOffset",
        min_binding_size: u64 = "minBindingSize",
    }
    SamplerBindingLayout = "WGPUSamplerBindingLayout" { next: Next = "nextInChain", kind: SamplerBindingType = "type" }
    TextureBindingLayout = "WGPUTextureBindingLayout" {
        next: Next = "nextInChain", sample_type: TextureSampleType = "sampleType",
        view_dimension: TextureViewDimension = "viewDimension", multisampled: Bool = "multisampled",
    }
    StorageTextureBindingLayout = "WGPUStorageTextureBindingLayout" {
        next: Next = "nextInChain", access: StorageTextureAccess = "access", format: TextureFormat = "format",
        view_dimension: TextureViewDimension = "viewDimension",
    }
    BindGroupLayoutEntry = "WGPUBindGroupLayoutEntry" {
        next: Next = "nextInChain", binding: u32 = "binding", visibility: Flags = "visibility",
        binding_array_size: u32 = "bindingArraySize", buffer: BufferBindingLayout = "buffer",
        sampler: SamplerBindingLayout = "sampler", texture: TextureBindingLayout = "texture",
        storage_texture: StorageTextureBindingLayout = "storageTexture",
    }
    BindGroupLayoutDescriptor = "WGPUBindGroupLayoutDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", entry_count: usize = "entryCount",
        entries: *const BindGroupLayoutEntry = "entries",
    }
    BindGroupEntry = "WGPUBindGroupEntry" {
        next: Next = "nextInChain", binding: u32 = "binding", buffer: Buffer = "buffer", offset: u64 = "offset", size: u64 = "size",
        sampler: Sampler = "sampler", texture_view: TextureView = "textureView",
    }
    BindGroupDescriptor = "WGPUBindGroupDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", layout: BindGroupLayout = "layout",
        entry_count: usize = "entryCount", entries: *const BindGroupEntry = "entries",
    }
    PipelineLayoutDescriptor = "WGPUPipelineLayoutDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", bind_group_layout_count: usize = "bindGroupLayoutCount",
        bind_group_layouts: *const BindGroupLayout = "bindGroupLayouts", immediate_size: u32 = "immediateSize",
    }
    ConstantEntry = "WGPUConstantEntry" { next: Next = "nextInChain", key: StringView = "key", value: f64 = "value" }
    ComputeState = "WGPUComputeState" {
        next: Next = "nextInChain", module: ShaderModule = "module", entry_point: StringView = "entryPoint",
        constant_count: usize = "constantCount", constants: *const ConstantEntry = "constants",
    }
    ComputePipelineDescriptor = "WGPUComputePipelineDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", layout: PipelineLayout = "layout", compute: ComputeState = "compute",
    }
    ShaderModuleDescriptor = "WGPUShaderModuleDescriptor" { next: Next = "nextInChain", label: StringView = "label" }
    ShaderSourceWgsl = "WGPUShaderSourceWGSL" { chain: ChainedStruct = "chain", code: StringView = "code" }
    CommandEncoderDescriptor = "WGPUCommandEncoderDescriptor" { next: Next = "nextInChain", label: StringView = "label" }
    CommandBufferDescriptor = "WGPUCommandBufferDescriptor" { next: Next = "nextInChain", label: StringView = "label" }
    QuerySetDescriptor = "WGPUQuerySetDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", kind: QueryType = "type", count: u32 = "count",
    }
    PassTimestampWrites = "WGPUPassTimestampWrites" {
        next: Next = "nextInChain", query_set: QuerySet = "querySet", beginning: u32 = "beginningOfPassWriteIndex",
        end: u32 = "endOfPassWriteIndex",
    }
    ComputePassDescriptor = "WGPUComputePassDescriptor" {
        next: Next = "nextInChain", label: StringView = "label", timestamp_writes: *const PassTimestampWrites = "timestampWrites",
    }
    BufferMapCallbackInfo = "WGPUBufferMapCallbackInfo" {
        next: Next = "nextInChain", mode: CallbackMode = "mode", callback: Callback<MapAsyncStatus> = "callback",
        userdata1: *mut c_void = "userdata1", userdata2: *mut c_void = "userdata2",
    }
    QueueWorkDoneCallbackInfo = "WGPUQueueWorkDoneCallbackInfo" {
        next: Next = "nextInChain", mode: CallbackMode = "mode", callback: Callback<QueueWorkDoneStatus> = "callback",
        userdata1: *mut c_void = "userdata1", userdata2: *mut c_void = "userdata2",
    }
    PopErrorScopeCallbackInfo = "WGPUPopErrorScopeCallbackInfo" {
        next: Next = "nextInChain", mode: CallbackMode = "mode", callback: ErrorCallback = "callback",
        userdata1: *mut c_void = "userdata1", userdata2: *mut c_void = "userdata2",
    }
}

impl StringView {
    /// A view of `s`, which must outlive the call that it is handed to.
    pub fn of(s: &str) -> StringView {
        StringView { data: s.as_ptr().cast(), length: s.len() }
    }

    /// What the library says.
    ///
    /// # Safety
    /// The view must be one that the library has just handed out.
    pub unsafe fn text(self) -> String {
        if self.data.is_null() {
            return String::new();
        }
        // SAFETY: a view that is not null is valid for `length` bytes, or ends with a zero where the length says so.
        let bytes = unsafe {
            match self.length {
                usize::MAX => std::ffi::CStr::from_ptr(self.data).to_bytes(),
                n => std::slice::from_raw_parts(self.data.cast(), n),
            }
        };
        String::from_utf8_lossy(bytes).into_owned()
    }
}
