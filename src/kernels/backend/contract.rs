//! What the layers above know of a backend: how it holds memory, how it is asked, and what it says it can do.

use super::cpu::memory::raw_slice::RawSlice;
use super::program::Code;
use super::requests::Request;
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::pointwise::Func;
use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// Memory that the host cannot address. Its end gives it back to the device, on any thread and in the order of the device's queue.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    fn bytes(&self) -> usize;

    fn as_any(&self) -> &dyn Any;
}

/// Where the memory of an operand begins.
#[derive(Debug, Clone, Copy)]
pub enum Memory<'a> {
    /// An address of the host.
    Host(*mut u8),
    Device(&'a dyn DeviceMemory),
}

impl Memory<'_> {
    /// The address, of memory of the host.
    ///
    /// # Panics
    /// The memory is a device's: whoever picks the backend has mixed them up.
    #[inline]
    pub fn address(self) -> *mut u8 {
        match self {
            Memory::Host(p) => p,
            Memory::Device(m) => panic!("memory of a device was asked for its address: {m:?}"),
        }
    }
}

/// Strided elements in memory.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub memory: Memory<'a>,
    /// The first element's place.
    pub offset: usize,
    pub shape: &'a [usize],
    /// One for each dimension, in elements; 0 where a dimension is broadcast.
    pub strides: &'a [isize],
    pub dtype: DType,
}

impl View<'_> {
    /// The first element, of memory of the host.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.memory.address().wrapping_add(self.offset * self.dtype.size())
    }

    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }
}

/// What a request reads.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    View(View<'a>),
    /// One value for all elements, known to the host.
    Number(Scalar),
    /// An operand that this part of a row does not read.
    Unread,
    /// The elements that a program's last step makes: in the program's memory order they lie over `shape` with `strides`.
    Made {
        program: &'a Program<'a>,
        shape: &'a [usize],
        strides: &'a [isize],
    },
}

/// An input of a program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInput<'a> {
    pub memory: Memory<'a>,
    pub offset: usize,
    pub dtype: DType,
    /// None: it lies as the results do, element for element. Else strides over the program's shape.
    pub strides: Option<&'a [isize]>,
}

/// Pointwise steps over one shape, with their memory. Results lie densely, from the start of their memory on, with `strides`.
pub struct Program<'a> {
    pub code: &'a Code,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
    pub inputs: &'a [ProgramInput<'a>],
    /// The steps whose results somebody holds, and where they go. A result may go to the memory of an input without strides of its own
    /// that no later step reads.
    pub outputs: &'a [(usize, Memory<'a>)],
    /// Asked now and then by the thread that runs the program: if not, nothing is computed any more and the results do not matter.
    pub should_continue: &'a (dyn Fn() -> bool + Sync),
    /// Set once the outputs have been written, or recorded, even if a request that reads the last step fails after that.
    pub is_written: &'a AtomicBool,
}

impl fmt::Debug for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("code", self.code).field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Program<'_> {
    /// The dtype of the last step's result.
    pub fn dtype(&self) -> DType {
        self.code.steps.last().map_or(DType::Bool, |s| s.out)
    }
}

/// What a backend says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    Yes,
    /// By way of another dtype, or of another device: how, in a few words.
    Converted(&'static str),
    /// Why not, as the end of a sentence.
    No(&'static str),
}

/// What holds on every device: for which dtypes a request is defined, and a row has a kernel.
pub fn defined(backend: &dyn Backend, request: &Request, dtype: DType) -> Support {
    let floats = match request {
        Request::Reduce(r) => r.reducer.is_float_only(),
        Request::Scan(s) => s.kind.is_float_only(),
        Request::Random(r) => r.distribution.is_float_only(),
        Request::Softmax(_) | Request::Nll(_) => true,
        Request::Pointwise(p) if !backend.has_row(p.func, p.compute) => return Support::No("the row has no kernel for this dtype"),
        Request::Gemm if dtype == DType::Bool => return Support::No("PyTorch has no product of matrices of bool"),
        _ => false,
    };
    if floats && !dtype.is_float() { Support::No("defined for floating point") } else { Support::Yes }
}

/// A result whose size was found by looking at values, to be written into memory of that size.
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

/// A kind of memory, and kernels for it. A backend knows no derivative, no tensor and no history.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Which of several units of this device it is: requests take memory of one unit only.
    fn unit(&self) -> usize {
        0
    }

    /// Bytes of one element in this backend's memory.
    fn element_size(&self, dtype: DType) -> usize;

    /// Whether the backend has the type at all.
    ///
    /// # Errors
    /// It has not, and why.
    fn has_dtype(&self, dtype: DType) -> Result<()>;

    /// New memory.
    ///
    /// # Errors
    /// `ErrorKind::Memory` if there is none.
    fn allocate(&self, bytes: usize) -> Result<Box<dyn DeviceMemory>>;

    /// Whether so much memory may be had: what cannot be had is refused before work is deferred.
    fn has_room(&self, bytes: usize) -> bool;

    /// Copies elements of the host, which lie densely, to the start of the memory.
    ///
    /// # Errors
    /// The device refuses.
    fn upload(&self, from: RawSlice<'_, u8>, dtype: DType, to: &dyn DeviceMemory) -> Result<()>;

    /// Copies `n` elements from element `start` on to the host, after all that was asked before.
    ///
    /// # Errors
    /// The device refuses, or reports that an earlier request failed; the host wants to stop.
    ///
    /// # Safety
    /// There are so many elements, and there is room for them at `to`, as the host lays them out.
    unsafe fn download(&self, from: &dyn DeviceMemory, start: usize, n: usize, dtype: DType, to: *mut u8) -> Result<()>;

    /// Whether and how a request runs on elements of this dtype (of the first operand; of the output where there is none).
    fn support(&self, request: &Request, dtype: DType) -> Support;

    /// Whether there is a kernel for a row of the table of pointwise operations, or a part of it, that computes in this dtype.
    fn has_row(&self, func: Func, dtype: DType) -> bool;

    /// Whether results may stay deferred at all.
    fn defers(&self) -> bool {
        true
    }

    /// Whether this request takes a program's elements of this dtype as its first operand.
    fn reads_programs(&self, _request: &Request, _dtype: DType) -> bool {
        true
    }

    /// Whether the kernels of programs read an operand with these strides without a copy. Sizes of one do not count.
    fn reads_strided(&self, shape: &[usize], out_strides: &[isize], strides: &[isize], dtype: DType) -> bool;

    /// The most steps and inputs of one program together.
    fn most_buffers(&self) -> usize {
        usize::MAX
    }

    /// Whether a result may take over memory that an input of this dtype had, for a result of that dtype.
    fn may_take_over(&self, _from: DType, _to: DType) -> bool {
        true
    }

    /// Refuses operands with values that the request does not take, now. A device looks when the request runs, and reports under the ticket.
    ///
    /// # Errors
    /// The first such value.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn check(&self, _request: &Request, _ins: &[Operand<'_>]) -> Result<()> {
        Ok(())
    }

    /// A number under which the device reports what it finds wrong: it stands for the operation and the user's line. 0 where `check` finds it.
    fn ticket(&self, _op: &'static str) -> u32 {
        0
    }

    /// Runs a request, or records it for the device. Outputs that nobody wants are None.
    ///
    /// # Errors
    /// What the request does not take; no memory for intermediate results.
    ///
    /// # Safety
    /// All memory is this backend's, views and programs lie inside it, and shapes, dtypes and strides are as the request's family describes. No
    /// output overlaps another or an operand, unless the family allows it. `check` has been passed.
    unsafe fn run(&self, request: &Request, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()>;

    /// Runs a program and writes its outputs.
    ///
    /// # Errors
    /// As for `run`.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn run_program(&self, program: &Program<'_>) -> Result<()>;

    /// Looks how large the result of a request is whose size depends on values. Waits for the device.
    ///
    /// # Errors
    /// As for `run`; the request's size does not depend on values.
    ///
    /// # Safety
    /// As for `run`, as long as the answer is used.
    unsafe fn count<'a>(&'a self, request: &Request, x: View<'a>) -> Result<Box<dyn CountedResult + 'a>>;

    /// Waits until everything that was asked has been computed.
    ///
    /// # Errors
    /// As for `download`.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// The error of a request that a backend has no answer to.
#[cold]
pub fn unanswered(request: &Request, device: &str) -> Error {
    Error::not_implemented(format!("{} is not implemented on {device}; move the tensor to another device with .to()", request.name()))
}
