//! The CPU as a backend. Its memory is the host's: tensors hold it themselves (`alloc`), and it is read and written where it lies.

use super::{
    arg_reduce, attention, conv, copy, cumulative_extreme, fill, gather, grid_sample, index, matmul, mode, nll, nonzero, norm, pointwise,
    pool, random, recurrent, reduce, resample, scan, softmax, sort, triangle,
};
use crate::backend::contract::{
    Backend, CountedResult, DeviceMemory, Operand, Program, ProgramRuns, Support, View, defined, not_implemented,
};
use crate::backend::cpu::common::strided::collapse;
use crate::backend::cpu::common::{operands, widened};
use crate::call::{NormPass, Request};
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
        match (defined(self, request, dtype), request) {
            (Support::No(why), _) => Support::No(why),
            (_, request) if dtype.is_half() && widened::is_needed(request) => Support::Converted("converted to float32 first"),
            (_, Request::Pointwise(_)) if dtype.is_half() => Support::Converted("computed in float32, a tile at a time"),
            (_, Request::Scan(_)) if dtype.computed() != dtype => Support::Converted("converted to int64 first"),
            (_, Request::Pointwise(_)) if dtype.computed() != dtype => Support::Converted("computed in int32, a tile at a time"),
            (yes, _) => yes,
        }
    }

    fn has_row(&self, func: Func, dtype: DType) -> bool {
        pointwise::has_kernel(func, dtype)
    }

    fn may_write_over(&self, request: &Request) -> bool {
        matches!(request, Request::Norm(n) if matches!(n.pass, NormPass::Backward { .. }))
    }

    fn adds_bias(&self, factors: [View<'_>; 2]) -> bool {
        matmul::compute::adds_bias(factors)
    }

    fn takes_epilogue(&self, request: &Request, ins: &[View<'_>]) -> bool {
        match (request, ins) {
            (Request::Gemm, [a, b, ..]) => matmul::compute::is_packed([*a, *b]),
            (Request::Conv(c), [x, ..]) => x.dtype.is_float() && conv::takes_epilogue(c.pass, &c.shape),
            _ => false,
        }
    }

    fn reads_programs(&self, request: &Request, dtype: DType) -> bool {
        match request {
            // Elements are made where the scan writes, so both are of one type.
            _ if dtype.is_half() => !widened::is_needed(request),
            Request::Scan(_) => dtype.is_float() || dtype == DType::I64,
            Request::Softmax(_) | Request::Nll(_) => dtype.is_float(),
            _ => true,
        }
    }

    fn reads_strided(&self, shape: &[usize], out_strides: &[isize], strides: &[isize], dtype: DType) -> bool {
        let dims = collapse::<2>(shape, [out_strides, strides], [1, dtype.size()]);
        dims.last().is_none_or(|d| d.strides[1] == 0 || d.strides[1] == dtype.size() as isize)
    }

    unsafe fn check(&self, request: &Request, ins: &[Operand<'_>]) -> Result<()> {
        match request {
            // SAFETY: the caller's.
            Request::Nll(n) => unsafe { nll::check(n, ins) },
            _ => Ok(()),
        }
    }

    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        // SAFETY: the caller's, all of them.
        unsafe {
            if let Request::ArgReduce(r) = request {
                return arg_reduce::compute::compute(r, ins, outs);
            }
            let Some(Some(out)) = outs.first() else { return Err(operands::malformed(request.name())) };
            let out = *out;
            if out.dtype.is_half() && widened::is_needed(request) {
                return widened::run(request, ins, outs);
            }
            match request {
                Request::Fill(value) => fill::compute(*value, out),
                Request::CumulativeExtreme(c) => cumulative_extreme::compute(c, ins, outs)?,
                Request::Sort(s) => sort::compute(s, ins, outs)?,
                Request::Mode(m) => mode::compute(m, ins, outs)?,
                Request::Copy => copy::compute(ins, out)?,
                Request::Pointwise(p) => pointwise::compute::compute(p, ins, out)?,
                Request::Triangle(t) => triangle::compute(t, ins, out)?,
                Request::Reduce(r) => reduce::compute::compute(r, ins, out)?,
                Request::Scan(s) => scan::compute(s, ins, out)?,
                Request::Softmax(s) => softmax::compute::compute(s, ins, out)?,
                Request::Nll(n) => nll::compute(n, ins, out)?,
                Request::Norm(n) => norm::compute::compute(n, ins, outs)?,
                Request::Conv(c) => conv::compute::compute(request, c, ins, out, None)?,
                Request::Attention(a) => attention::compute::compute(a, ins, outs)?,
                Request::Pool(p) => pool::compute::compute(p, ins, outs)?,
                Request::Resample(r) => resample::compute::compute(r, ins, out)?,
                Request::GridSample(g) => grid_sample::compute(g, ins, out)?,
                Request::Recurrent(r) => recurrent::compute::compute(r, ins, outs)?,
                Request::Gemm => matmul::compute::compute(ins, out, None)?,
                Request::IndexRead(i) => index::compute::compute_read(i, ins, out)?,
                Request::IndexWrite(w) => index::compute::compute_write(w, ins, out)?,
                Request::Gather(a) => gather::compute_gather(a, ins, out)?,
                Request::Scatter(s) => gather::compute_scatter(s, ins, outs)?,
                Request::Random(r) => random::compute::compute(r, ins, out)?,
                Request::Custom(c) => {
                    let views = (0..ins.len()).map(|k| operands::view(c.name(), ins, k)).collect::<Result<Vec<_>>>()?;
                    let outs = (0..outs.len()).map(|k| operands::output(c.name(), outs, k)).collect::<Result<Vec<_>>>()?;
                    c.run(&views, &outs)?;
                }
                Request::Nonzero | Request::ArgReduce(_) => return Err(not_implemented(request, "cpu")),
            }
        }
        Ok(())
    }

    unsafe fn run_with_epilogue(&self, request: &Request, ins: &[Operand<'_>], out: View<'_>, program: &Program<'_>) -> Result<()> {
        // SAFETY: the caller's, both.
        unsafe {
            match request {
                Request::Gemm => matmul::compute::compute(ins, out, Some(program)),
                Request::Conv(c) => conv::compute::compute_with_epilogue(request, c, ins, out, program),
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
            Request::Nonzero => Ok(Box::new(unsafe { nonzero::count_true(x)? })),
            _ => Err(not_implemented(request, "cpu")),
        }
    }
}
