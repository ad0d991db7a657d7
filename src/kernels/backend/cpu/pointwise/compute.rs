//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, Support, View};
use crate::backend::cpu::common::operands::{malformed, result};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::pointwise;
use crate::call::Pointwise;
use crate::error::Result;
use crate::layout::DType;
use smallvec::SmallVec;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Pointwise {
    const NARROW: NarrowElements = NarrowElements::Taken;

    fn support(&self, dtype: DType) -> Support {
        match dtype {
            _ if dtype.is_half() => Support::Converted("computed in float32, a tile at a time"),
            _ if dtype.computed() != dtype => Support::Converted("computed in int32, a tile at a time"),
            _ => Support::Yes,
        }
    }

    unsafe fn compute(p: &Pointwise, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(p, outs, 0)?;
        let mut operands: SmallVec<[pointwise::StridedOperand<'_>; 5]> = SmallVec::new();
        for i in ins {
            operands.push(match i {
                Operand::View(v) => pointwise::StridedOperand { ptr: v.ptr(), strides: v.strides, dtype: v.dtype },
                Operand::Unread => pointwise::StridedOperand { ptr: std::ptr::null(), strides: &[], dtype: DType::Bool },
                _ => return Err(malformed(p.func.row.info().name)),
            });
        }
        // SAFETY: see above.
        unsafe { pointwise::run(p.func, p.compute, out.shape, out.ptr(), out.strides, &operands, &p.params) }
    }
}
