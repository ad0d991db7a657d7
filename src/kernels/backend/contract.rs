//! The contract of backends: how a backend holds memory, how requests are run, and what it reports about its support.

pub use crate::call::{DeviceMemory, Memory, View};
pub use crate::program::{Program, ProgramInput, ProgramRun, ProgramRuns};

use crate::call::{Factor, Request, Seen};
use crate::error::{Error, Result};
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{DType, Scalar};
use crate::rows::Func;
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// What a request reads.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    View(View<'a>),
    /// One value for all elements, which the host has.
    Number(Scalar),
    /// An operand that this part of a row does not read.
    Unread,
    /// The results of a program's last step, computed as they are read: in the program's memory order they are the elements of `shape` with
    /// `strides`.
    Made {
        program: &'a Program<'a>,
        shape: &'a [usize],
        strides: &'a [isize],
    },
}

/// Whether a backend supports a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    Yes,
    /// Through another dtype or device: how, in a few words.
    Converted(&'static str),
    /// Why not, as the end of a sentence.
    No(&'static str),
}

/// The support that is the same on every device: for which dtypes a request is defined, and whether a row has a kernel.
pub fn defined(backend: &dyn Backend, request: &Request, dtype: DType) -> Support {
    let elems = request.elems();
    match request {
        Request::Pointwise(p) if !backend.has_row(p.func, p.compute) => Support::No("the row has no kernel for this dtype"),
        _ if !elems.has(dtype) => Support::No(elems.why_not),
        _ => Support::Yes,
    }
}

/// A result whose size depends on values and has been determined, to be written into memory of that size.
pub trait CountedResult {
    fn count(&self) -> usize;

    /// Writes the result.
    ///
    /// # Errors
    /// As for `Backend::run`.
    ///
    /// # Safety
    /// As for `Backend::run`; the output has the shape that the request says for this count.
    unsafe fn fill(&self, out: View<'_>) -> Result<()>;
}

/// A kind of memory, and kernels for it. A backend does not depend on tensors, history or derivatives.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Which of several units of this device it is. All memory of a request belongs to one unit.
    fn unit(&self) -> usize {
        0
    }

    /// Bytes of one element in this backend's memory.
    fn element_size(&self, dtype: DType) -> usize;

    /// Whether the backend has the type at all.
    ///
    /// # Errors
    /// Why it does not.
    fn has_dtype(&self, dtype: DType) -> Result<()>;

    /// New memory, for elements of this dtype.
    ///
    /// # Errors
    /// `ErrorKind::Memory` if there is none.
    fn allocate(&self, bytes: usize, dtype: DType) -> Result<Box<dyn DeviceMemory>>;

    /// Whether this much memory may be available. Checked before work is deferred, so that a request for too much fails at once.
    fn has_room(&self, bytes: usize) -> bool;

    /// Copies dense elements of the host to the start of the memory.
    ///
    /// # Errors
    /// The device refuses.
    fn upload(&self, from: RawSlice<'_, u8>, dtype: DType, to: &dyn DeviceMemory) -> Result<()>;

    /// Copies `n` elements, from element `start` on, to the host, after all earlier requests.
    ///
    /// # Errors
    /// The device refuses, or reports that an earlier request failed; or the host interrupts.
    ///
    /// # Safety
    /// The memory has these elements, and there is room for them at `to`, in the host's layout.
    unsafe fn download(&self, from: &dyn DeviceMemory, start: usize, n: usize, dtype: DType, to: *mut u8) -> Result<()>;

    /// Whether and how a request runs on this dtype (of the first operand, or of the output if there is none).
    fn support(&self, request: &Request, dtype: DType) -> Support;

    /// Whether there are kernels for a request of linear algebra on such operands. Where there are none, the host is to compute it.
    fn factors(&self, _request: &Factor, _ins: &[Seen<'_>]) -> bool {
        true
    }

    /// Whether there is a kernel for a row, or a part of it, that computes in this dtype.
    fn has_row(&self, func: Func, dtype: DType) -> bool;

    /// Whether this backend defers results.
    fn defers(&self) -> bool {
        true
    }

    /// Whether this request accepts a program with elements of this dtype as its first operand.
    fn reads_programs(&self, _request: &Request, _dtype: DType) -> bool {
        true
    }

    /// Whether the product of these two matrices adds a bias to its columns while it writes them; `Matmul` then takes one as a third operand.
    fn adds_bias(&self, _factors: [View<'_>; 2]) -> bool {
        false
    }

    /// Whether this request runs with an epilogue on these operands, so that it gains something if it waits for pointwise steps.
    fn takes_epilogue(&self, _request: &Request, _ins: &[View<'_>]) -> bool {
        false
    }

    /// Whether program kernels read an operand with these strides without a copy. Dimensions of size 1 are ignored.
    fn reads_strided(&self, shape: &[usize], out_strides: &[isize], strides: &[isize], dtype: DType) -> bool;

    /// The largest number of steps and inputs of one program together.
    fn most_buffers(&self) -> usize {
        usize::MAX
    }

    /// Whether a result of one dtype may use the memory of an input of another.
    fn may_take_over(&self, _from: DType, _to: DType) -> bool {
        true
    }

    /// Whether the first output of a request may be the first operand: dense memory of the same elements, which nobody reads later.
    fn may_write_over(&self, _request: &Request) -> bool {
        false
    }

    /// Refuses operands with invalid values, at once. A device checks when the request runs, and reports under the ticket.
    ///
    /// # Errors
    /// The first invalid value.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn check(&self, _request: &Request, _ins: &[Operand<'_>]) -> Result<()> {
        Ok(())
    }

    /// A number that stands for the operation and the user's line, under which the device reports errors. 0 if `check` finds them.
    fn ticket(&self, _op: &'static str) -> u32 {
        0
    }

    /// Runs a request, or records it for the device. Outputs that are not needed are None.
    ///
    /// # Errors
    /// Invalid operands, or no memory for intermediate results.
    ///
    /// # Safety
    /// All memory belongs to this backend, views and programs stay inside it, and shapes, dtypes and strides are as the request's family
    /// describes. No output overlaps another one or an operand, unless the family allows it. `check` has passed.
    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()>;

    /// Runs a request and an epilogue: a program over the elements of its only output, which is row-major, and one of the program's inputs. Each
    /// part of the output is read as soon as it is final. An output of the program may lie in the memory of that input, as in `Program`.
    ///
    /// # Errors
    /// As for `run`; then the program has overwritten none of its other inputs. The request takes no epilogue.
    ///
    /// # Safety
    /// As for `run` and `run_program`.
    unsafe fn run_with_epilogue(&self, request: &Request, _ins: &[Operand<'_>], _out: View<'_>, _program: &Program<'_>) -> Result<()> {
        Err(Error::internal(request.name(), "a request that takes no epilogue"))
    }

    /// Runs a program and writes its outputs.
    ///
    /// # Errors
    /// As for `run`.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn run_program(&self, program: &Program<'_>) -> Result<()>;

    /// Runs a program on each group of operands. Groups may run in any order, and at the same time.
    ///
    /// # Errors
    /// As for `run`, before anything is written on the CPU.
    ///
    /// # Safety
    /// As for `run_program`, of every group. What one group writes, no other group reads or writes.
    unsafe fn run_program_each(&self, program: &ProgramRuns<'_, '_>) -> Result<()> {
        for run in program.runs.iter().filter(|r| r.elements > 0) {
            let inputs = run.inputs.iter().map(|(memory, offset)| ProgramInput {
                memory: *memory,
                offset: *offset,
                dtype: program.dtype,
                strides: None,
            });
            let inputs: SmallVec<[ProgramInput<'_>; 6]> = inputs.collect();
            let outputs: SmallVec<[(usize, Memory<'_>); 4]> = program.outputs.iter().copied().zip(run.outputs.iter().copied()).collect();
            let one = Program {
                code: program.code,
                shape: &[run.elements],
                strides: &[1],
                inputs: &inputs,
                outputs: &outputs,
                should_continue: &|| true,
                is_written: &AtomicBool::new(false),
            };
            // SAFETY: the caller's.
            unsafe { self.run_program(&one)? };
        }
        Ok(())
    }

    /// Determines the size of a result that depends on values. Waits for the device.
    ///
    /// # Errors
    /// As for `run`; the request's size does not depend on values.
    ///
    /// # Safety
    /// As for `run`, as long as the result is used.
    unsafe fn count<'a>(&'a self, request: &Request, x: View<'a>) -> Result<Box<dyn CountedResult + 'a>>;

    /// Waits until all earlier requests are done.
    ///
    /// # Errors
    /// As for `download`.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// The error for a request that a backend does not implement.
#[cold]
pub fn not_implemented(request: &Request, device: &str) -> Error {
    Error::not_implemented(format!("{} is not implemented on {device}; move the tensor to another device with .to()", request.name()))
}
