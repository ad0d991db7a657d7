//! Fused programs: their steps (`code`), and a program with its memory, as a backend runs it. Not here: which steps become a program, and
//! when it runs (`array/deferred`).

mod code;

pub use code::{Code, ProgramStep, StepInput, StepKind};

use crate::call::Memory;
use crate::layout::DType;
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// An input of a program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInput<'a> {
    pub memory: Memory<'a>,
    pub offset: usize,
    pub dtype: DType,
    /// None: the same layout as the results'. Otherwise strides over the program's shape.
    pub strides: Option<&'a [isize]>,
}

/// Pointwise steps over one shape, with their memory. Results are dense, from the start of their memory on, with `strides`.
pub struct Program<'a> {
    pub code: &'a Code,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
    pub inputs: &'a [ProgramInput<'a>],
    /// The steps whose results have to be stored, and their memory. A result may be stored in the memory of an input without strides of its own
    /// that no later step reads.
    pub outputs: &'a [(usize, Memory<'a>)],
    /// Called from time to time by the thread that runs the program. If it returns false, the program stops, and its results are not used.
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

/// The operands of one run of a program that runs several times: dense elements of one layout, without strides of their own.
#[derive(Debug)]
pub struct ProgramRun<'a> {
    pub elements: usize,
    /// The memory of each input, and its first element.
    pub inputs: SmallVec<[(Memory<'a>, usize); 6]>,
    /// The memory of each output, which begins with its first element.
    pub outputs: SmallVec<[Memory<'a>; 4]>,
}

/// A program that runs once for each of several groups of operands.
#[derive(Debug)]
pub struct ProgramRuns<'a, 'm> {
    pub code: &'a Code,
    /// The dtype of all inputs.
    pub dtype: DType,
    /// The steps whose results are stored.
    pub outputs: &'a [usize],
    pub runs: &'a [ProgramRun<'m>],
}
