//! A wgpu device as a backend.

use super::common::operands::{self, buffer};
use super::family::{Halves, WgpuFamily};
use super::pointwise::fused::most_buffers;
use super::{Buffer, Context, copy, element_size, factor, nonzero, pointwise};
use crate::backend::contract::{
    Backend, CountedResult, DeviceMemory, Memory, Operand, Program, ProgramRuns, Support, View, defined, not_implemented,
};
use crate::backend::wgpu::elem;
use crate::call::{Factor, Request, Seen, of_family};
use crate::error::{Error, Result};
use crate::host::live_memory::BufferKey;
use crate::host::lock_order::Table;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{DType, Layout, Strides};
use crate::rows::{Func, Kind};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, Weak};

/// A device.
#[derive(Debug)]
pub struct Wgpu(Arc<Context>);

/// The backend of the device in use, while tensors hold it: a device lives as long as they do.
static CURRENT: Table<Weak<Wgpu>> = Table::new(Weak::new());

/// The device that is in use, asked for if there is none yet.
///
/// # Errors
/// There is no device, or wgpu-py is missing.
pub fn current() -> Result<Arc<dyn Backend>> {
    let context = Context::current()?;
    let mut current = CURRENT.lock();
    let there = current.upgrade();
    match &there {
        Some(w) if Arc::ptr_eq(&w.0, &context) => {}
        _ => {
            let made = Arc::new(Wgpu(context));
            *current = Arc::downgrade(&made);
            drop(current);
            return Ok(made);
        }
    }
    drop(current);
    there.map(|w| -> Arc<dyn Backend> { w }).ok_or_else(|| operands::foreign("no device"))
}

/// A view of floats of 16 bits as shaders see it: its buffer widens and rounds them.
fn as_float32(v: View<'_>) -> View<'_> {
    if v.dtype.is_half() { View { dtype: DType::F32, ..v } } else { v }
}

/// Why a family does not take complex numbers.
const NO_COMPLEX: &str = "there are no shaders for complex numbers";

/// The dtype of an operand in memory.
fn seen(operand: &Operand<'_>) -> Option<DType> {
    match operand {
        Operand::View(v) => Some(v.dtype),
        Operand::Made { program, .. } => Some(program.dtype()),
        Operand::Number(_) | Operand::Unread => None,
    }
}

impl Wgpu {
    /// Runs a request on floats of 16 bits in the shaders of float32: elements are widened when they are read, and results are rounded once,
    /// when they are written.
    ///
    /// # Safety
    /// As for `Backend::run`.
    unsafe fn in_float32(&self, request: &Request, halves: Halves, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let ins: SmallVec<[Operand<'_>; 4]> =
            ins.iter().map(|i| if let Operand::View(v) = i { Operand::View(as_float32(*v)) } else { *i }).collect();
        if halves == Halves::InFloat32 {
            let wide: SmallVec<[Option<View<'_>>; 2]> = outs.iter().map(|o| o.map(as_float32)).collect();
            // SAFETY: the caller's.
            return unsafe { self.run(request, &ins, &wide) };
        }
        let mut own: SmallVec<[Option<(Buffer, Strides)>; 2]> = SmallVec::new();
        for out in outs {
            own.push(match out.filter(|o| o.dtype.is_half()) {
                Some(o) => {
                    let bytes = o.shape.iter().product::<usize>() * element_size(DType::F32);
                    Some((Buffer::of(&self.0, bytes, DType::F32)?, Layout::contiguous_strides(o.shape)))
                }
                None => None,
            });
        }
        let wide: SmallVec<[Option<View<'_>>; 2]> = outs
            .iter()
            .zip(&own)
            .map(|(out, own)| match (out, own) {
                (Some(o), Some((b, strides))) => {
                    Some(View { memory: Memory::Device(b), offset: 0, shape: o.shape, strides, dtype: DType::F32 })
                }
                _ => *out,
            })
            .collect();
        let changed = || outs.iter().zip(&wide).filter_map(|(o, w)| Some((o.as_ref()?, w.as_ref()?))).filter(|(o, _)| o.dtype.is_half());
        for (out, wide) in changed() {
            copy::copy(operands::view(wide)?, operands::view(out)?)?;
        }
        // SAFETY: the caller's; the new memory has room for the results.
        unsafe { self.run(request, &ins, &wide)? };
        for (out, wide) in changed() {
            copy::copy(operands::view(out)?, operands::view(wide)?)?;
        }
        Ok(())
    }
}

impl DeviceMemory for Buffer {
    fn bytes(&self) -> usize {
        Buffer::bytes(self)
    }

    fn held(&self) -> Option<(BufferKey, usize)> {
        Some((self.key(), self.raw().capacity))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn upload(context: &Context, from: RawSlice<'_, u8>, dtype: DType, to: &Buffer) -> Result<()> {
    if let Some(wide) = elem::widened(from, dtype) {
        return context.write(to, 0, RawSlice::from(&wide[..]));
    }
    if !from.len().is_multiple_of(4) {
        // A transfer has whole words. The last one is the buffer's own.
        let mut padded = from.to_vec();
        padded.resize(from.len().next_multiple_of(4), 0);
        return context.write(to, 0, RawSlice::from(&padded[..]));
    }
    context.write(to, 0, from)
}

impl Backend for Wgpu {
    fn unit(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn element_size(&self, dtype: DType) -> usize {
        element_size(dtype)
    }

    fn has_dtype(&self, dtype: DType) -> Result<()> {
        self.0.supports(dtype)
    }

    fn allocate(&self, bytes: usize, dtype: DType) -> Result<Box<dyn DeviceMemory>> {
        Ok(Box::new(Buffer::of(&self.0, bytes, dtype)?))
    }

    fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.0.limits().buffer_bytes()
    }

    fn upload(&self, from: RawSlice<'_, u8>, dtype: DType, to: &dyn DeviceMemory) -> Result<()> {
        upload(&self.0, from, dtype, buffer(Memory::Device(to))?)
    }

    unsafe fn download(&self, from: &dyn DeviceMemory, start: usize, n: usize, dtype: DType, to: *mut u8) -> Result<()> {
        let size = element_size(dtype);
        // A transfer has whole words.
        let (first, end) = ((start * size) & !3, ((start + n) * size).next_multiple_of(4));
        let bytes = self.0.read(buffer(Memory::Device(from))?, first, if n == 0 { 0 } else { end - first })?;
        // SAFETY: the caller's: room for n elements; if they are widened on the device, there is a word for each.
        if !unsafe { elem::narrow_into(&bytes, dtype, to) } && n > 0 {
            let bytes = &bytes[start * size - first..][..n * size];
            // SAFETY: both sides hold n elements of the same size.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        Ok(())
    }

    fn support(&self, request: &Request, dtype: DType) -> Support {
        if self.0.supports(dtype).is_err() {
            return Support::No("the adapter has no such type");
        }
        if matches!(request, Request::Pointwise(p) if p.func.row.info().kind == Kind::Special) {
            return if dtype.is_float() {
                Support::Converted("computed by the host")
            } else {
                Support::No("the row has no kernel for this dtype")
            };
        }
        match defined(self, request, dtype) {
            Support::Yes if dtype.is_complex() && !of_family!(request, f => f.takes_complex()) => Support::No(NO_COMPLEX),
            Support::Yes => of_family!(request, f => f.support(dtype)),
            no => no,
        }
    }

    fn factors(&self, request: &Factor, ins: &[Seen<'_>]) -> bool {
        factor::is_computed_here(request, ins)
    }

    fn has_row(&self, func: Func, dtype: DType) -> bool {
        pointwise::has_kernel(func, dtype)
    }

    fn reads_strided(&self, _shape: &[usize], _out_strides: &[isize], _strides: &[isize], _dtype: DType) -> bool {
        true
    }

    fn most_buffers(&self) -> usize {
        most_buffers(&self.0)
    }

    fn may_take_over(&self, from: DType, to: DType) -> bool {
        // A shader knows each of its buffers by one type.
        from == to
    }

    fn ticket(&self, op: &'static str) -> u32 {
        self.0.ticket(op)
    }

    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let dtypes = ins.iter().filter_map(seen).chain(outs.iter().flatten().map(|o| o.dtype));
        if dtypes.into_iter().any(DType::is_complex) && !of_family!(request, f => f.takes_complex()) {
            let name = request.name();
            return Err(Error::not_implemented(format!("{name}: {NO_COMPLEX} on wgpu; move the tensor with .cpu()")));
        }
        if outs.iter().flatten().any(|o| o.dtype.is_half()) {
            let halves = of_family!(request, f => f.halves(ins));
            if halves != Halves::Taken {
                // SAFETY: the caller's.
                return unsafe { self.in_float32(request, halves, ins, outs) };
            }
        }
        of_family!(request, f => WgpuFamily::compute(f, &self.0, ins, outs))
    }

    unsafe fn run_program(&self, program: &Program<'_>) -> Result<()> {
        operands::run_program(&self.0, program)
    }

    unsafe fn run_program_each(&self, program: &ProgramRuns<'_, '_>) -> Result<()> {
        operands::run_program_each(&self.0, program)
    }

    unsafe fn count<'a>(&'a self, request: &Request, x: View<'a>) -> Result<Box<dyn CountedResult + 'a>> {
        match request {
            Request::Nonzero(_) => Ok(Box::new(nonzero::count_nonzero(&x)?)),
            _ => Err(not_implemented(request, "wgpu")),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
}
