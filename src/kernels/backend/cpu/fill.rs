//! One value everywhere.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::output;
use crate::backend::cpu::copy;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::Fill;
use crate::error::Result;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Fill {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(&Fill(value): &Fill, _ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output("fill", outs, 0)?;
        // SAFETY: see above.
        unsafe { copy::fill(out.dtype, out.shape, out.ptr(), out.strides, value) };
        Ok(())
    }
}
