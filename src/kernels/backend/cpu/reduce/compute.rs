//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::cast::convert_fn;
use crate::backend::cpu::common::operands::{OrderedOperand, not_floating, result};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::reduce::kernels as reduce_kernels;
use crate::backend::cpu::reduce::run as run_reduce;
use crate::call::Reduce;
use crate::error::Result;
use crate::host::memory::alloc::Buffer;
use crate::layout::DType;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Reduce {
    const NARROW: NarrowElements = NarrowElements::Taken;

    fn reads_programs(&self, _dtype: DType) -> bool {
        true
    }

    unsafe fn compute(r: &Reduce, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(r, outs, 0)?;
        // SAFETY: see above.
        let x = unsafe { OrderedOperand::strided(r.reducer.name(), ins)? };
        let d = x.dtype();
        let kernel = reduce_kernels::kernel_of(r.reducer, d).ok_or_else(|| not_floating(d))?;
        if d.is_half() && out.dtype == d {
            let n = out.numel();
            let (size, wide) = (d.computed().size(), Buffer::new(n * d.computed().size())?);
            // SAFETY: see above; the kernel's results are of the wider type, and there is room for them.
            unsafe {
                run_reduce(&kernel, x.shape(), x.strides(), &r.reduced, x.source(), wide.as_ptr());
                convert_fn(d.computed(), d)(1, n, wide.as_ptr(), (0, size as isize), out.ptr(), (0, d.size() as isize));
            }
            return Ok(());
        }
        // SAFETY: see above.
        unsafe { run_reduce(&kernel, x.shape(), x.strides(), &r.reduced, x.source(), out.ptr()) };
        Ok(())
    }
}
