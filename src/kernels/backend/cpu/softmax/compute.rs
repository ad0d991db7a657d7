//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, OrderedOperand, around, result, view};
use crate::backend::cpu::elem::{float, is_widened};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::reduce::ReduceInput;
use crate::backend::cpu::softmax::{SoftmaxElement, SoftmaxShape};
use crate::call::{Family, Softmax};
use crate::error::Result;
use crate::layout::DType;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Softmax {
    const NARROW: NarrowElements = NarrowElements::Widened;

    fn reads_programs(&self, dtype: DType) -> bool {
        dtype.is_float() && !is_widened(dtype)
    }

    unsafe fn compute(s: &Softmax, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(s, outs, 0)?;
        // SAFETY: see above.
        let first = unsafe { OrderedOperand::dense(s.name(), ins)? };
        let second = if s.pass.backward { Some(view(s.name(), ins, 1)?) } else { None };
        // SAFETY: see above.
        let second = second.as_ref().map(|y| unsafe { DenseOperand::of(y) }).transpose()?;
        let (outer, n, inner) = around(first.shape(), s.dim);
        if outer * n * inner == 0 {
            return Ok(());
        }
        let (from, made) = match first.source() {
            ReduceInput::Memory(p) => (p, None),
            ReduceInput::Made(blocks) => (std::ptr::null(), Some(blocks)),
        };
        let (x, g) = second.as_ref().map_or((from, std::ptr::null()), |y| (y.ptr(), from));
        // SAFETY: see above.
        float!(first.dtype(), T => unsafe {
            <T as SoftmaxElement>::softmax(s.pass, SoftmaxShape { outer, n, inner }, x.cast(), g.cast(), made, out.ptr().cast());
        });
        Ok(())
    }
}
