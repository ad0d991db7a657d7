//! The CPU as a backend. Its memory is the host's: tensors hold it themselves (`alloc`), and it is read and written where it lies.

use super::family::{CpuFamily, NarrowElements};
use super::{conv, matmul, nonzero, pointwise};
use crate::backend::contract::{
    Backend, CountedResult, DeviceMemory, Operand, Program, ProgramRuns, Support, View, defined, not_implemented,
};
use crate::backend::cpu::common::strided::collapse;
use crate::backend::cpu::common::{operands, widened};
use crate::backend::cpu::elem::is_widened;
use crate::call::{Flags, Provenance, Request, of_family};
use crate::error::{Error, Result};
use crate::host::memory::alloc;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;
use crate::rows::Func;

/// The one backend of the host's memory.
#[derive(Debug)]
pub struct Cpu;

pub static CPU: Cpu = Cpu;

#[cold]
fn lies_here() -> Error {
    Error::internal("cpu", "memory of the host was handled as a device's")
}

/// Whether elements without loops are converted for the family's kernels. Those that only move are moved as they lie.
fn widens<F: CpuFamily>(family: &F) -> bool {
    F::NARROW == NarrowElements::Widened && family.provenance() != Provenance::Moved
}

impl Backend for Cpu {
    #[inline]
    fn element_size(&self, dtype: DType) -> usize {
        dtype.size()
    }

    fn has_dtype(&self, _dtype: DType) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, _bytes: usize, _dtype: DType) -> Result<Box<dyn DeviceMemory>> {
        Err(lies_here())
    }

    fn has_room(&self, bytes: usize) -> bool {
        alloc::fits(bytes)
    }

    fn upload(&self, _from: RawSlice<'_, u8>, _dtype: DType, _to: &dyn DeviceMemory) -> Result<()> {
        Err(lies_here())
    }

    unsafe fn download(&self, _from: &dyn DeviceMemory, _start: usize, _n: usize, _dtype: DType, _to: *mut u8) -> Result<()> {
        Err(lies_here())
    }

    fn support(&self, request: &Request, dtype: DType) -> Support {
        fn of<F: CpuFamily>(family: &F, dtype: DType) -> Support {
            if is_widened(dtype) && widens(family) { Support::Converted("converted to float32 first") } else { family.support(dtype) }
        }
        match defined(self, request, dtype) {
            Support::Yes => of_family!(request, f => of(f, dtype)),
            no => no,
        }
    }

    fn has_row(&self, func: Func, dtype: DType) -> bool {
        pointwise::has_kernel(func, dtype)
    }

    fn may_write_over(&self, request: &Request) -> bool {
        of_family!(request, f => f.may_write_over())
    }

    fn adds_bias(&self, factors: [View<'_>; 2]) -> bool {
        matmul::compute::adds_bias(factors)
    }

    fn takes_epilogue(&self, request: &Request, ins: &[View<'_>]) -> bool {
        request.flags().has(Flags::EPILOGUE) && of_family!(request, f => f.takes_epilogue(ins))
    }

    fn reads_programs(&self, request: &Request, dtype: DType) -> bool {
        of_family!(request, f => f.reads_programs(dtype))
    }

    fn reads_strided(&self, shape: &[usize], out_strides: &[isize], strides: &[isize], dtype: DType) -> bool {
        let dims = collapse::<2>(shape, [out_strides, strides], [1, dtype.size()]);
        dims.last().is_none_or(|d| d.strides[1] == 0 || d.strides[1] == dtype.size() as isize)
    }

    unsafe fn check(&self, request: &Request, ins: &[Operand<'_>]) -> Result<()> {
        // SAFETY: the caller's.
        of_family!(request, f => unsafe { CpuFamily::check(f, ins) })
    }

    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        // SAFETY: of both, the caller's.
        if outs.iter().flatten().any(|o| is_widened(o.dtype)) && of_family!(request, f => widens(f)) {
            // SAFETY: see above.
            return unsafe { widened::run(request, ins, outs) };
        }
        // SAFETY: see above.
        of_family!(request, f => unsafe { CpuFamily::compute(f, ins, outs) })
    }

    unsafe fn run_with_epilogue(&self, request: &Request, ins: &[Operand<'_>], out: View<'_>, program: &Program<'_>) -> Result<()> {
        // SAFETY: the caller's, both.
        unsafe {
            match request {
                Request::Matmul(_) => matmul::compute::compute(ins, out, Some(program)),
                Request::Conv(c) => conv::compute::compute_with_epilogue(c, ins, out, program),
                _ => Err(operands::malformed(request.name())),
            }
        }
    }

    unsafe fn run_program(&self, program: &Program<'_>) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { operands::run_program(program) }
    }

    unsafe fn run_program_each(&self, program: &ProgramRuns<'_, '_>) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { operands::run_program_each(program) }
    }

    unsafe fn count<'a>(&'a self, request: &Request, x: View<'a>) -> Result<Box<dyn CountedResult + 'a>> {
        match request {
            // SAFETY: the caller's.
            Request::Nonzero(_) => Ok(Box::new(unsafe { nonzero::count_true(x)? })),
            _ => Err(not_implemented(request, "cpu")),
        }
    }
}
