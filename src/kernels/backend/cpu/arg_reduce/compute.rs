//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::arg_reduce;
use crate::backend::cpu::common::operands::{OrderedOperand, around, malformed};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{ArgReduce, Family};
use crate::error::Result;
use crate::host::memory::alloc::Buffer;
use crate::layout::DType;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for ArgReduce {
    const NARROW: NarrowElements = NarrowElements::Taken;

    fn reads_programs(&self, _dtype: DType) -> bool {
        true
    }

    unsafe fn compute(r: &ArgReduce, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        // SAFETY: see above.
        let x = unsafe { OrderedOperand::dense(r.name(), ins)? };
        let [values, positions] = outs else { return Err(malformed(r.name())) };
        let sizes = around(x.shape(), r.dim);
        let all = sizes.0 * sizes.2;
        if all == 0 {
            return Ok(());
        }
        let other;
        let (v, p) = match (values, positions) {
            (Some(v), Some(p)) => (v.ptr(), p.ptr()),
            (Some(v), None) => {
                // Memory for an output that is not needed.
                other = Buffer::new(all * size_of::<i64>())?;
                (v.ptr(), other.as_ptr())
            }
            (None, Some(p)) => {
                other = Buffer::new(all * x.dtype().size())?;
                (other.as_ptr(), p.ptr())
            }
            (None, None) => return Ok(()),
        };
        // SAFETY: see above; the spare memory has as many elements.
        unsafe { arg_reduce::extreme(r.max, x.dtype(), sizes, x.source(), v, p.cast()) };
        Ok(())
    }
}
