//! What the CPU says about a family of requests, beside the kernels of each.

use crate::backend::contract::{Operand, Support, View};
use crate::call::Family;
use crate::error::Result;
use crate::layout::DType;

/// How kernels compute dtypes without loops of their own, such as floats of 16 bits (see `elem::is_widened`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NarrowElements {
    /// They read and write them, or convert by themselves.
    Taken,
    /// There are no such kernels: operands are converted to the dtype that they are computed in before, and results are rounded once, unless elements are only moved.
    Widened,
}

/// A family as the CPU computes it. What has a default gains speed where it is overridden.
pub(super) trait CpuFamily: Family {
    const NARROW: NarrowElements;

    /// Which conversion the kernels make of elements of this dtype, for the table of what is supported.
    fn support(&self, _dtype: DType) -> Support {
        Support::Yes
    }

    /// Whether the first operand may be a program with elements of this dtype. Asked where `Family::reads` allows programs.
    fn reads_programs(&self, _dtype: DType) -> bool {
        false
    }

    /// See `Backend::may_write_over`.
    fn may_write_over(&self) -> bool {
        false
    }

    /// See `Backend::takes_epilogue`. Asked where `Family::flags` has `EPILOGUE`.
    fn takes_epilogue(&self, _ins: &[View<'_>]) -> bool {
        false
    }

    /// Refuses operands with invalid values. Asked where `Family::flags` has `CHECKS`.
    ///
    /// # Errors
    /// The first invalid value.
    ///
    /// # Safety
    /// As for `Backend::run`.
    unsafe fn check(_: &Self, _ins: &[Operand<'_>]) -> Result<()> {
        Ok(())
    }

    /// Prepares the kernels' arguments from the operands, and runs them.
    ///
    /// # Errors
    /// As for `Backend::run`.
    ///
    /// # Safety
    /// As for `Backend::run`.
    unsafe fn compute(request: &Self, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()>;
}
