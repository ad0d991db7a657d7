//! Operands as they come with a request: views of buffers, and programs that are fused or run first.

use crate::backend::contract;
use crate::backend::contract::{Memory, Operand};
use crate::backend::wgpu::pointwise::fused::run as run_code;
use crate::backend::wgpu::pointwise::fused::{DeviceProgram, ProgramRead};
use crate::backend::wgpu::pointwise::many::{ProgramGroup, run_each};
use crate::backend::wgpu::{Buffer, BufferView, Context, scratch_size};
use crate::error::{Error, Result};
use crate::layout::DType;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The buffer behind a `Memory` of the contract.
#[inline]
pub(in crate::backend::wgpu) fn buffer(m: Memory<'_>) -> Result<&Buffer> {
    match m {
        Memory::Device(d) => d.as_any().downcast_ref().ok_or_else(|| foreign("memory of another device")),
        Memory::Host(_) => Err(foreign("memory of the host")),
    }
}

#[cold]
pub(in crate::backend::wgpu) fn foreign(what: &str) -> Error {
    Error::internal("wgpu", &format!("a request came with {what}"))
}

#[inline]
pub(in crate::backend::wgpu) fn view<'a>(v: &contract::View<'a>) -> Result<BufferView<'a>> {
    Ok(BufferView { buffer: buffer(v.memory)?, offset: v.offset, shape: v.shape, strides: v.strides, dtype: v.dtype })
}

/// The view that operand `k` is.
#[inline]
pub(in crate::backend::wgpu) fn operand<'a>(ins: &[Operand<'a>], k: usize) -> Result<BufferView<'a>> {
    match ins.get(k) {
        Some(Operand::View(v)) => view(v),
        _ => Err(foreign("operands that its family does not describe")),
    }
}

/// The output `k`, which must be needed.
#[inline]
pub(in crate::backend::wgpu) fn output<'a>(outs: &[Option<contract::View<'a>>], k: usize) -> Result<BufferView<'a>> {
    outs.get(k).and_then(Option::as_ref).map_or_else(|| Err(foreign("an output missing")), view)
}

/// The first operand: an array, or the results of a program with shape and strides.
pub(in crate::backend::wgpu) enum Elements<'a> {
    Memory(BufferView<'a>),
    Made(&'a DeviceProgram<'a>, &'a [usize], &'a [isize]),
}

impl Elements<'_> {
    pub(in crate::backend::wgpu) fn shape(&self) -> &[usize] {
        match self {
            Elements::Memory(v) => v.shape,
            Elements::Made(_, shape, _) => shape,
        }
    }

    pub(in crate::backend::wgpu) fn dtype(&self) -> DType {
        match self {
            Elements::Memory(v) => v.dtype,
            Elements::Made(p, ..) => p.dtype(),
        }
    }
}

fn inputs<'a>(program: &contract::Program<'a>) -> Result<SmallVec<[ProgramRead<'a>; 8]>> {
    program.inputs.iter().map(|i| Ok((buffer(i.memory)?, i.offset, i.dtype, i.strides))).collect()
}

fn outputs<'a>(program: &contract::Program<'a>) -> Result<SmallVec<[(usize, &'a Buffer); 4]>> {
    program.outputs.iter().map(|(step, m)| Ok((*step, buffer(*m)?))).collect()
}

/// Runs a whole program.
pub(in crate::backend::wgpu) fn run_program(context: &Context, program: &contract::Program<'_>) -> Result<()> {
    run_code(context, program.code, program.shape, program.strides, &inputs(program)?, &outputs(program)?)?;
    program.is_written.store(true, Ordering::Relaxed);
    Ok(())
}

fn group<'a>(run: &contract::ProgramRun<'a>) -> Result<ProgramGroup<'a>> {
    let inputs = run.inputs.iter().map(|(m, first)| Ok((buffer(*m)?, *first))).collect::<Result<_>>()?;
    let outputs = run.outputs.iter().map(|m| buffer(*m)).collect::<Result<_>>()?;
    Ok(ProgramGroup { elements: run.elements, inputs, outputs })
}

/// Runs a program on each group of operands.
pub(in crate::backend::wgpu) fn run_program_each(context: &Context, program: &contract::ProgramRuns<'_, '_>) -> Result<()> {
    let groups: Vec<ProgramGroup<'_>> = program.runs.iter().filter(|run| run.elements > 0).map(group).collect::<Result<_>>()?;
    run_each(context, program.code, program.dtype, program.outputs, &groups)
}

/// Calls `f` with the first operand. A program is fused into the kernel that reads it, if the results of its steps are not needed otherwise and
/// `can` allows it. Otherwise it runs first.
pub(in crate::backend::wgpu) fn first<R>(
    context: &Arc<Context>,
    ins: &[Operand<'_>],
    can: impl FnOnce(&DeviceProgram<'_>) -> bool,
    f: impl FnOnce(Elements<'_>) -> Result<R>,
) -> Result<R> {
    let (program, shape, strides) = match ins.first() {
        Some(Operand::View(v)) => return f(Elements::Memory(view(v)?)),
        Some(Operand::Made { program, shape, strides }) => (*program, *shape, *strides),
        _ => return Err(foreign("operands that its family does not describe")),
    };
    let own;
    let (reads, mut outs) = (inputs(program)?, outputs(program)?);
    let made = DeviceProgram { code: program.code, shape: program.shape, strides: program.strides, inputs: &reads };
    if outs.is_empty() && can(&made) {
        return f(Elements::Made(&made, shape, strides));
    }
    let (last, dtype) = (program.code.steps.len() - 1, program.dtype());
    let from = match outs.iter().find(|o| o.0 == last) {
        Some((_, b)) => *b,
        None => {
            own = Buffer::new(context, shape.iter().product::<usize>() * scratch_size(dtype))?;
            outs.push((last, &own));
            &own
        }
    };
    run_code(context, made.code, made.shape, made.strides, made.inputs, &outs)?;
    program.is_written.store(true, Ordering::Relaxed);
    f(Elements::Memory(BufferView { buffer: from, offset: 0, shape, strides, dtype }))
}
