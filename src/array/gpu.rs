//! Arrays in a device's memory: making them, moving them between host and device, and calling the device's kernels.

use super::storage::{Access, Device, Storage};
use super::value::Array;
use crate::backend::cpu;
use crate::backend::wgpu::{self, Buffer, Context, Input, View, element_size};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout, Scalar, checked_numel};
use crate::pointwise::Func;
use smallvec::SmallVec;
use std::sync::Arc;

/// Uninitialised memory for a dense layout that starts at 0.
pub(super) fn empty(context: &Arc<Context>, layout: Layout, dtype: DType) -> Result<Array> {
    context.supports(dtype)?;
    let n = checked_numel(layout.shape(), element_size(dtype))?;
    let buffer = Buffer::new(context, n * element_size(dtype))?;
    Ok(Array::from_parts(Storage::on_device(buffer), layout, dtype))
}

impl Device {
    /// Whether this device has a kernel for `func` that computes in `dtype`.
    pub fn has_kernel(self, func: Func, dtype: DType) -> bool {
        match self {
            Device::Cpu => cpu::pointwise::has_kernel(func, dtype),
            Device::Wgpu => wgpu::pointwise::has_kernel(func, dtype),
        }
    }
}

/// Which array is on the wrong device, and how to go on.
#[cold]
pub(super) fn elsewhere(op: &str, a: &Array, wanted: Device) -> Error {
    Error::runtime(format!(
        "Expected all tensors to be on the same device, but found at least two devices, {wanted} and {}! ({op}: an argument of shape {:?} is on {}; \
         move it with .to(\"{wanted}\"))",
        a.device(),
        a.shape(),
        a.device()
    ))
}

impl Array {
    /// The elements as a kernel of the device sees them; None on the CPU.
    pub(super) fn on_gpu(&self) -> Option<View<'_>> {
        let buffer = self.storage().buffer()?;
        Some(View { buffer, offset: self.layout().offset(), shape: self.shape(), strides: self.strides(), dtype: self.dtype() })
    }

    /// As `on_gpu`, of an operand that must be there because the first one is; computed here if it is pending.
    pub(super) fn gpu_view(&self, op: &str) -> Result<View<'_>> {
        self.ready()?;
        self.on_gpu().ok_or_else(|| elsewhere(op, self, Device::Wgpu))
    }

    /// A copy on another device, with the same order of dimensions where it is dense; itself if it is there already.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        match (self.device(), device) {
            (Device::Cpu, Device::Cpu) | (Device::Wgpu, Device::Wgpu) => Ok(self.clone()),
            (Device::Cpu, Device::Wgpu) => self.upload(&Context::current()?),
            (Device::Wgpu, Device::Cpu) => self.download(),
        }
    }

    /// A copy beside `other`; itself if it lies on the same device.
    pub fn to_device_of(&self, other: &Array) -> Result<Array> {
        match (self.storage().context(), other.storage().context()) {
            (None, Some(c)) => self.upload(c),
            (Some(_), None) => self.download(),
            _ => Ok(self.clone()),
        }
    }

    fn upload(&self, context: &Arc<Context>) -> Result<Array> {
        context.supports(self.dtype())?;
        let dense = if self.layout().is_dense() && self.layout().offset() == 0 { self.clone() } else { self.clone_dense()? };
        let out = empty(context, dense.layout().clone(), self.dtype())?;
        let Some(v) = out.on_gpu() else { return Ok(out) };
        let n = self.numel();
        if n > 0 {
            dense.ready()?;
            let from = dense.storage().memory(Access::Read);
            // SAFETY: the layout is dense and starts at 0, so the storage begins with n initialised elements of this dtype.
            let bytes = unsafe { std::slice::from_raw_parts(from, n * self.dtype().size()) };
            match self.dtype() {
                DType::Bool | DType::U8 => {
                    let wide: Vec<u8> = bytes.iter().flat_map(|b| [*b, 0, 0, 0]).collect();
                    context.write(v.buffer, 0, &wide)?;
                }
                _ => context.write(v.buffer, 0, bytes)?,
            }
        }
        Ok(out)
    }

    fn download(&self) -> Result<Array> {
        self.ready()?;
        let dense = if self.layout().is_dense() { self.clone() } else { self.contiguous_copy()? };
        let (start, n) = (dense.layout().offset(), self.numel());
        let layout = Layout::from_parts(dense.shape().into(), dense.strides().into(), 0);
        let out = Array::from_parts(Storage::alloc(n * self.dtype().size())?, layout, self.dtype());
        let Some(v) = dense.on_gpu() else { return Ok(out) };
        if n > 0 {
            let size = element_size(self.dtype());
            let bytes = v.buffer.context().read(v.buffer, start * size, n * size)?;
            let to = out.storage().memory(Access::Write);
            match self.dtype() {
                DType::Bool | DType::U8 => {
                    for (i, word) in bytes.chunks_exact(4).enumerate() {
                        // SAFETY: i < n, and the new storage has n bytes.
                        unsafe { *to.add(i) = word[0] };
                    }
                }
                // SAFETY: both sides hold n elements of the same size; the new storage is nobody else's.
                _ => unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) },
            }
        }
        Ok(out)
    }

    /// As `pointwise_into`, where this array or an operand lies on the device.
    pub(super) fn gpu_pointwise_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        let name = func.row.info().name;
        let out = self.gpu_view(name)?;
        let reads = func.reads();
        let mut copies: SmallVec<[Option<Array>; 5]> = SmallVec::new();
        let mut layouts: SmallVec<[Option<Layout>; 5]> = SmallVec::new();
        for (k, a) in ins.iter().enumerate() {
            let read = reads & (1 << k) != 0 && a.on_gpu().is_some();
            let clashes = a.storage().same(self.storage()) && a.layout() != self.layout() && a.overlaps(self);
            copies.push(if read && clashes { Some(a.contiguous_copy()?) } else { None });
            let a = copies[k].as_ref().unwrap_or(a);
            layouts.push(if !read || a.shape() == self.shape() { None } else { Some(a.layout().expand(self.shape())?) });
        }
        let mut operands: SmallVec<[Input<'_>; 5]> = SmallVec::new();
        for k in 0..ins.len() {
            let a = copies[k].as_ref().unwrap_or(ins[k]);
            operands.push(if reads & (1 << k) == 0 {
                Input::Unread
            } else if let Some(v) = a.on_gpu() {
                Input::View(match &layouts[k] {
                    Some(l) => View { shape: out.shape, strides: l.strides(), ..v },
                    None => v,
                })
            } else if a.numel() == 1 {
                Input::Number(a.first()?)
            } else {
                return Err(elsewhere(name, a, Device::Wgpu));
            });
        }
        wgpu::pointwise::run(func, compute, out, &operands, params)
    }
}
