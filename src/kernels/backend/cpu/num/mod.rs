//! The numbers of the CPU backend: instances of the scalar language that the compiler vectorises, one for each element type and
//! instruction set.

mod float;
mod int;
mod isa;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod vector;

// Numbers of an instruction set may only be computed with where the machine has it: kernels see to that, nobody else gets at them.
pub(crate) use float::{F32, F64};
pub(crate) use int::{B8, I32, I64, U8};
pub(crate) use isa::{Avx2, Avx512, Base, FullRange, Isa, dispatch};
pub use isa::{InstructionSet, best, instruction_set};
#[cfg(target_arch = "x86_64")]
pub(crate) use vector::{Bits16, F32x16, LookupTable, Mask16};

use crate::layout::Scalar;
use crate::pointwise::Num;

/// A number that lies in memory as `Raw`.
pub(crate) trait KernelNumber: Num<Cond = bool> + Copy {
    type Stored: Copy;
    /// Whether kernels compute it one element at a time.
    const SCALAR: bool = false;
    /// The same number with periodic functions for arguments, and remainders for quotients, of any size.
    type FullRangeNumber: KernelNumber<Stored = Self::Stored>;

    fn new(raw: Self::Stored) -> Self;
    fn raw(self) -> Self::Stored;
    fn from_scalar(s: &Scalar) -> Self;
    /// From a byte of a bool tensor.
    fn from_bool(byte: u8) -> Self;
    /// Whether the periodic functions of this instance are accurate here.
    fn in_range(self) -> bool;
    /// Whether the remainder of a division by `divisor` is right here.
    fn divides_in_range(self, _divisor: Self) -> bool {
        true
    }
}
