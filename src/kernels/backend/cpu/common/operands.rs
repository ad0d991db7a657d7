//! Operands of requests in the form that the CPU loops take: row-major memory, or blocks of elements that a program computes.

use crate::backend::contract::{Operand, Program, ProgramRun, ProgramRuns, View};
use crate::backend::cpu::copy;
use crate::backend::cpu::pointwise::fused::{FusedInput, Placement, Runner};
use crate::backend::cpu::reduce::{BlockProducer, ReduceInput};
use crate::call::Family;
use crate::error::{Error, Result};
use crate::host::memory::alloc::Buffer;
use crate::layout::{DType, Layout};
use smallvec::smallvec;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

#[cold]
pub(in crate::backend::cpu) fn not_floating(d: DType) -> Error {
    Error::dtype(format!("expected a floating point tensor, got {d}"))
}

/// The error for operands or outputs whose number or kind does not match the family of the request.
#[cold]
pub(in crate::backend::cpu) fn malformed(op: &str) -> Error {
    Error::internal(op, "a request with operands that its family does not describe")
}

/// Operand `k`, which must be a view.
#[inline]
pub(in crate::backend::cpu) fn view<'a>(op: &str, ins: &[Operand<'a>], k: usize) -> Result<View<'a>> {
    match ins.get(k) {
        Some(Operand::View(v)) => Ok(*v),
        _ => Err(malformed(op)),
    }
}

/// Output `k`, which must be present.
#[inline]
pub(in crate::backend::cpu) fn output<'a>(op: &str, outs: &[Option<View<'a>>], k: usize) -> Result<View<'a>> {
    outs.get(k).copied().flatten().ok_or_else(|| malformed(op))
}

/// As `output`, of a request whose name is looked up for an error alone.
#[inline]
pub(in crate::backend::cpu) fn result<'a>(of: &impl Family, outs: &[Option<View<'a>>], k: usize) -> Result<View<'a>> {
    outs.get(k).copied().flatten().ok_or_else(|| malformed(of.name()))
}

/// Row-major elements: the operand itself, or a copy.
pub(in crate::backend::cpu) struct DenseOperand<'a> {
    start: *const u8,
    _own: Option<Buffer>,
    _from: PhantomData<View<'a>>,
}

impl<'a> DenseOperand<'a> {
    /// # Safety
    /// The view lies inside memory of the host.
    pub unsafe fn of(v: &View<'a>) -> Result<DenseOperand<'a>> {
        if is_row_major(v) {
            return Ok(DenseOperand { start: v.ptr(), _own: None, _from: PhantomData });
        }
        // SAFETY: the caller's.
        unsafe { DenseOperand::converted(v, v.dtype) }
    }

    /// As `of`, of another dtype.
    ///
    /// # Safety
    /// As for `of`.
    pub unsafe fn cast(v: &View<'a>, to: DType) -> Result<DenseOperand<'a>> {
        // SAFETY: the caller's.
        unsafe { if v.dtype == to { DenseOperand::of(v) } else { DenseOperand::converted(v, to) } }
    }

    unsafe fn converted(v: &View<'a>, to: DType) -> Result<DenseOperand<'a>> {
        let own = Buffer::new(v.numel() * to.size())?;
        // SAFETY: the caller's; the buffer has room for all elements.
        unsafe { copy::copy(v.dtype, to, v.shape, v.ptr(), v.strides, own.as_ptr(), &Layout::contiguous_strides(v.shape)) };
        Ok(DenseOperand { start: own.as_ptr(), _own: Some(own), _from: PhantomData })
    }

    #[inline]
    pub fn ptr(&self) -> *const u8 {
        self.start
    }
}

/// Whether the view is contiguous in row-major order.
pub(in crate::backend::cpu) fn is_row_major(v: &View<'_>) -> bool {
    let mut step = 1isize;
    for (&n, &s) in v.shape.iter().zip(v.strides).rev() {
        if n != 1 && s != step {
            return v.shape.contains(&0);
        }
        step = step.wrapping_mul(n as isize);
    }
    true
}

/// The first operand of a request that reads it in memory order, with shape and strides for the loops that accept any layout.
pub(in crate::backend::cpu) enum OrderedOperand<'a> {
    Memory(View<'a>, DenseOperand<'a>),
    Made { blocks: ProgramElements<'a>, shape: &'a [usize], strides: &'a [isize] },
}

impl<'a> OrderedOperand<'a> {
    /// Any strides.
    ///
    /// # Safety
    /// As for `Backend::run`.
    pub unsafe fn strided(op: &str, ins: &[Operand<'a>]) -> Result<OrderedOperand<'a>> {
        // SAFETY: the caller's.
        unsafe { Self::of(op, ins, |v| Ok(DenseOperand { start: v.ptr(), _own: None, _from: PhantomData })) }
    }

    /// Row-major.
    ///
    /// # Safety
    /// As for `Backend::run`.
    pub unsafe fn dense(op: &str, ins: &[Operand<'a>]) -> Result<OrderedOperand<'a>> {
        // SAFETY: the caller's.
        unsafe { Self::of(op, ins, |v| DenseOperand::of(v)) }
    }

    unsafe fn of(op: &str, ins: &[Operand<'a>], find: impl FnOnce(&View<'a>) -> Result<DenseOperand<'a>>) -> Result<OrderedOperand<'a>> {
        match ins.first() {
            Some(Operand::View(v)) => Ok(OrderedOperand::Memory(*v, find(v)?)),
            Some(Operand::Made { program, shape, strides }) => {
                // SAFETY: the caller's.
                Ok(OrderedOperand::Made { blocks: unsafe { ProgramElements::new(program)? }, shape, strides })
            }
            _ => Err(malformed(op)),
        }
    }

    pub fn shape(&self) -> &'a [usize] {
        match self {
            OrderedOperand::Memory(v, _) => v.shape,
            OrderedOperand::Made { shape, .. } => shape,
        }
    }

    pub fn strides(&self) -> &'a [isize] {
        match self {
            OrderedOperand::Memory(v, _) => v.strides,
            OrderedOperand::Made { strides, .. } => strides,
        }
    }

    pub fn dtype(&self) -> DType {
        match self {
            OrderedOperand::Memory(v, _) => v.dtype,
            OrderedOperand::Made { blocks, .. } => blocks.program.dtype(),
        }
    }

    /// For the loops.
    pub fn source(&self) -> ReduceInput<'_> {
        match self {
            OrderedOperand::Memory(_, d) => ReduceInput::Memory(d.ptr()),
            OrderedOperand::Made { blocks, .. } => ReduceInput::Made(blocks),
        }
    }
}

/// The product of the sizes before a dimension, its size, and the product of those after it; a 0-d array is one element.
pub(in crate::backend::cpu) fn around(shape: &[usize], dim: usize) -> (usize, usize, usize) {
    if shape.is_empty() {
        return (1, 1, 1);
    }
    (shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product())
}

/// A program, ready to run.
///
/// # Errors
/// A row without a kernel.
///
/// # Safety
/// As for `Backend::run_program`, while the runner is used.
pub(in crate::backend::cpu) unsafe fn runner(program: &Program<'_>) -> Result<Runner> {
    let inputs: Vec<FusedInput<'_>> = program
        .inputs
        .iter()
        .map(|i| FusedInput { ptr: i.memory.address().wrapping_add(i.offset * i.dtype.size()), dtype: i.dtype, strides: i.strides })
        .collect();
    let mut places = vec![std::ptr::null_mut(); program.code.steps.len()];
    for (step, memory) in program.outputs {
        places[*step] = memory.address();
    }
    // SAFETY: the caller's.
    unsafe { Runner::new(program.code, program.shape, program.strides, &inputs, &places) }
}

/// Runs a whole program.
///
/// # Errors
/// As for `runner`.
///
/// # Safety
/// As for `Backend::run_program`.
pub(in crate::backend::cpu) unsafe fn run_program(program: &Program<'_>) -> Result<()> {
    // SAFETY: the caller's.
    unsafe { runner(program)? }.run(&|| (program.should_continue)());
    program.is_written.store(true, Ordering::Relaxed);
    Ok(())
}

/// Runs a program on each group of operands: the steps are prepared once.
///
/// # Errors
/// As for `runner`.
///
/// # Safety
/// As for `Backend::run_program_each`.
pub(in crate::backend::cpu) unsafe fn run_program_each(program: &ProgramRuns<'_, '_>) -> Result<()> {
    let size = program.dtype.size();
    let placed = |run: &ProgramRun<'_>| {
        let mut places = smallvec![std::ptr::null_mut(); program.code.steps.len()];
        for (step, memory) in program.outputs.iter().zip(&run.outputs) {
            places[*step] = memory.address();
        }
        let inputs = run.inputs.iter().map(|(m, offset)| m.address().wrapping_add(offset * size).cast_const()).collect();
        Placement { n: run.elements, inputs, places }
    };
    let all: Vec<Placement> = program.runs.iter().map(placed).collect();
    let Some(first) = all.first() else { return Ok(()) };
    let inputs: Vec<FusedInput<'_>> = first.inputs.iter().map(|p| FusedInput { ptr: *p, dtype: program.dtype, strides: None }).collect();
    // SAFETY: the caller's, for this group and all others.
    unsafe { Runner::new(program.code, &[first.n], &[1], &inputs, &first.places)?.run_each(&all) };
    Ok(())
}

/// A program whose last result is read while it is computed.
pub(in crate::backend::cpu) struct ProgramElements<'a> {
    program: &'a Program<'a>,
    runner: Runner,
    /// Where that result is stored as well; null if it is not.
    kept: *mut u8,
    size: usize,
}

// SAFETY: each range of elements is made, and written, by one thread.
unsafe impl Sync for ProgramElements<'_> {}

impl<'a> ProgramElements<'a> {
    unsafe fn new(program: &'a Program<'a>) -> Result<ProgramElements<'a>> {
        let last = program.code.steps.len() - 1;
        let kept = program.outputs.iter().find(|o| o.0 == last).map_or(std::ptr::null_mut(), |o| o.1.address());
        // SAFETY: the caller's.
        Ok(ProgramElements { program, runner: unsafe { runner(program)? }, kept, size: program.dtype().size() })
    }
}

impl BlockProducer for ProgramElements<'_> {
    unsafe fn produce(&self, start: usize, len: usize, buffer: *mut u8) -> *const u8 {
        // SAFETY: the caller's.
        unsafe {
            if self.kept.is_null() {
                self.runner.range(start, len, Some(buffer));
                return buffer;
            }
            self.runner.range(start, len, None);
        }
        self.kept.wrapping_add(start * self.size)
    }

    fn produce_all(&self) -> Option<*const u8> {
        if self.kept.is_null() {
            return None;
        }
        self.runner.run(&|| (self.program.should_continue)());
        Some(self.kept)
    }

    fn should_continue(&self) -> bool {
        (self.program.should_continue)()
    }
}

/// The elements of an operand as dense numbers. Those of bool become 0 and 1: foreign memory may hold other bytes.
///
/// # Safety
/// The view lies inside memory of the host.
pub(in crate::backend::cpu) unsafe fn numbers<'a>(x: &View<'a>) -> Result<DenseOperand<'a>> {
    // SAFETY: the caller's.
    unsafe { DenseOperand::cast(x, if x.dtype == DType::Bool { DType::U8 } else { x.dtype }) }
}
