//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, result, view};
use crate::backend::cpu::elem::float;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::resample;
use crate::call::Resample;
use crate::error::Result;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Resample {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(r: &Resample, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(r, outs, 0)?;
        let x = view(r.op, ins, 0)?;
        // SAFETY: see above; `Resample` describes operand and output.
        unsafe {
            let from = DenseOperand::of(&x)?;
            float!(out.dtype, T => resample::resample::<T>(r, from.ptr().cast(), out.ptr().cast()));
        }
        Ok(())
    }
}
