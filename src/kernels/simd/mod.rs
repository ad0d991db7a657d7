//! The numbers of the CPU backend: instances of the scalar language that the compiler vectorises, one for each element type and
//! instruction set, and complex numbers of pairs of them. Not here: elementary functions (`math`), and the loops that run over memory (`pointwise`).

mod complex;
mod float;
mod int;
mod isa;
pub mod math;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod vector;

// Arithmetic on the numbers of an instruction set is only valid on a machine that has it. Kernels ensure that, and the types are private to
// the crate.
pub(crate) use complex::{C64, C128};
pub(crate) use float::{F32, F64};
pub(crate) use int::{B8, I32, I64, U8};
pub(crate) use isa::{Avx2, Avx512, Base, FullRange, Isa, dispatch, instance, instance_of};
pub use isa::{InstructionSet, best, choose, instruction_set};
#[cfg(target_arch = "x86_64")]
pub(crate) use vector::{Bits16, F32x16, LookupTable, Mask16};

use crate::layout::Scalar;
use crate::rows::Field;

/// A number of the kernels, which is `Stored` in memory.
pub(crate) trait KernelNumber: Field<Cond = bool> + Copy {
    type Stored: Copy;
    /// Whether kernels compute it one element at a time.
    const SCALAR: bool = false;
    /// The same number with an instance that is accurate for arguments and quotients of any size.
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
