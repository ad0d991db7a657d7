//! Caches of objects of the library: layouts by the kinds of their bindings, pipelines by their keys, bind groups by their buffers.

use super::cache::GenerationCache;
use super::dispatch::{Dispatch, Key};
use super::host;
use crate::backend::wgpu::native::api::{Api, Fault};
use crate::backend::wgpu::native::types::{
    BindGroup, BindGroupLayout, Buffer, BufferBindingType, ComputePipeline, ErrorType, PipelineLayout,
};
use crate::backend::wgpu::wgsl::packed;
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// After this many new bind groups the unused ones are released.
const GROUPS: usize = 4096;
/// The same for pipelines: more than any training loop has, fewer than a process creates in many days.
pub(crate) const PIPELINES: usize = 2048;

/// The kinds of a shader's bindings: how many buffers, which of them written, how many vec4 of parameters, whether with status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BindingKinds {
    buffers: u32,
    writes: u128,
    params: u32,
    checked: bool,
}

impl BindingKinds {
    pub(crate) fn of(work: &Dispatch<'_>) -> BindingKinds {
        BindingKinds {
            buffers: work.bindings.len() as u32,
            writes: work.bindings.written(),
            params: work.params.len().div_ceil(4) as u32,
            checked: work.checked,
        }
    }

    /// Bytes of the parameters.
    pub(crate) fn param_bytes(self) -> usize {
        self.params as usize * 16
    }
}

#[derive(Debug, Clone, Copy)]
struct CachedLayout {
    number: u32,
    group: BindGroupLayout,
    pipeline: PipelineLayout,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipeline {
    pub(crate) handle: ComputePipeline,
    /// Unique in this cache, unlike the handle, which the library may reuse after its release.
    pub(crate) number: u64,
    pub(crate) shape: BindingKinds,
    layout: CachedLayout,
}

/// A layout's number and the ids of the buffers.
type BindGroupKey = (u32, SmallVec<[u32; 8]>);

#[derive(Debug)]
pub(crate) struct PipelineCache {
    layouts: FxHashMap<BindingKinds, CachedLayout>,
    pipelines: GenerationCache<Key, Pipeline>,
    groups: GenerationCache<BindGroupKey, BindGroup>,
    /// Pipelines made so far.
    made: u64,
    /// The device has the type `f16`.
    float16: bool,
}

impl PipelineCache {
    pub(crate) fn new(float16: bool) -> Self {
        PipelineCache {
            layouts: FxHashMap::default(),
            pipelines: GenerationCache::new(PIPELINES),
            groups: GenerationCache::new(GROUPS),
            made: 0,
            float16,
        }
    }
}

/// The buffers that belong to the queue: the ring of parameters and the status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueBuffers {
    pub(crate) ring: Buffer,
    pub(crate) status: Buffer,
    pub(crate) status_bytes: usize,
}

fn refused(op: &str, what: &str, fault: &Fault) -> Error {
    let e = match fault.kind {
        ErrorType::OutOfMemory => Error::memory(format!("{op}: the wgpu device says: {}. Free tensors", fault.cause())),
        _ => Error::internal(op, &format!("wgpu refused the {what}: {}", fault.message.trim())),
    };
    match host::called_at(host::site()) {
        Some(line) => e.note(line),
        None => e,
    }
}

impl PipelineCache {
    /// The pipeline of a dispatch.
    pub(crate) fn pipeline(&mut self, api: &Api, work: &Dispatch<'_>) -> Result<Pipeline> {
        if let Some(p) = self.pipelines.get(&work.key) {
            if p.shape != BindingKinds::of(work) {
                let what = format!("the key {:?} has bindings {:?}, expected {:?}", work.key, BindingKinds::of(work), p.shape);
                return Err(Error::internal(work.op, &what));
            }
            return Ok(p);
        }
        let shape = BindingKinds::of(work);
        let layout = self.layout(api, work.op, shape)?;
        let source = (work.source)();
        let packing = work.key.packing;
        let source = if packing.is_none() { source } else { packed::lower(&source, packing, self.float16) };
        let (handle, fault) = api.scoped(|| api.create_pipeline(work.key.kind, &source, layout.pipeline));
        if let Some(fault) = fault {
            return Err(refused(work.op, "shader", &fault));
        }
        let p = Pipeline { handle, number: self.made, shape, layout };
        self.made += 1;
        self.pipelines.insert(work.key.clone(), p, |old| api.release_pipeline(old.handle));
        Ok(p)
    }

    fn layout(&mut self, api: &Api, op: &str, shape: BindingKinds) -> Result<CachedLayout> {
        if let Some(l) = self.layouts.get(&shape) {
            return Ok(*l);
        }
        let mut entries: SmallVec<[(BufferBindingType, u64); 8]> = (0..shape.buffers)
            .map(|i| match shape.writes >> i & 1 {
                0 => (BufferBindingType::ReadOnlyStorage, 0),
                _ => (BufferBindingType::Storage, 0),
            })
            .collect();
        if shape.params > 0 {
            entries.push((BufferBindingType::Uniform, shape.param_bytes() as u64));
        }
        if shape.checked {
            entries.push((BufferBindingType::Storage, 0));
        }
        let ((group, pipeline), fault) = api.scoped(|| api.create_layout(&entries));
        if let Some(fault) = fault {
            return Err(refused(op, "bindings", &fault));
        }
        let l = CachedLayout { number: self.layouts.len() as u32, group, pipeline };
        self.layouts.insert(shape, l);
        Ok(l)
    }

    /// The bind group of a dispatch.
    pub(crate) fn group(&mut self, api: &Api, own: &QueueBuffers, pipeline: &Pipeline, work: &Dispatch<'_>) -> Result<BindGroup> {
        let key: BindGroupKey = (pipeline.layout.number, work.bindings.slots.iter().map(|(b, _)| b.raw().id).collect());
        if let Some(group) = self.groups.get(&key) {
            return Ok(group);
        }
        let shape = pipeline.shape;
        let mut buffers: SmallVec<[(Buffer, usize); 8]> =
            work.bindings.slots.iter().map(|(b, _)| (b.raw().handle, b.raw().capacity)).collect();
        if shape.params > 0 {
            buffers.push((own.ring, shape.param_bytes()));
        }
        if shape.checked {
            buffers.push((own.status, own.status_bytes));
        }
        let (group, fault) = api.scoped(|| api.create_bind_group(pipeline.layout.group, &buffers));
        if let Some(fault) = fault {
            return Err(refused(work.op, "buffers", &fault));
        }
        self.groups.insert(key, group, |old| api.release_bind_group(old));
        Ok(group)
    }

    /// Releases the bind groups that hold one of these buffers, because they would keep the buffers in memory.
    pub(crate) fn forget_buffers(&mut self, api: &Api, ids: &rustc_hash::FxHashSet<u32>) {
        self.groups.forget(|(_, buffers)| buffers.iter().any(|id| ids.contains(id)), |group| api.release_bind_group(group));
    }

    /// Releases everything.
    pub(crate) fn clear(&mut self, api: &Api) {
        self.groups.forget(|_| true, |group| api.release_bind_group(group));
        self.pipelines.forget(|_| true, |p| api.release_pipeline(p.handle));
        for (_, l) in self.layouts.drain() {
            api.release_layout(l.group, l.pipeline);
        }
    }

    /// Pipelines created so far, including released ones.
    pub(crate) fn pipelines_made(&self) -> u64 {
        self.made
    }

    /// Sets after how many new pipelines the unused ones are released; for tests.
    pub(crate) fn keep_pipelines(&mut self, many: usize) {
        self.pipelines.set_many(many);
    }

    /// Pipelines in the cache.
    pub(crate) fn pipelines(&self) -> usize {
        self.pipelines.len()
    }
}
