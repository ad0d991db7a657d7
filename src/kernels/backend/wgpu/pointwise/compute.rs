//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::Operand;
use crate::backend::wgpu::common::operands::{foreign, view};
use crate::backend::wgpu::{BufferView, PointwiseInput, pointwise};
use crate::call::Pointwise;
use crate::error::Result;
use smallvec::SmallVec;

pub(in crate::backend::wgpu) fn compute(p: &Pointwise, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let mut operands: SmallVec<[PointwiseInput<'_>; 5]> = SmallVec::new();
    for i in ins {
        operands.push(match i {
            Operand::View(v) => PointwiseInput::View(view(v)?),
            Operand::Number(value) => PointwiseInput::Number(*value),
            Operand::Unread => PointwiseInput::Unread,
            Operand::Made { .. } => return Err(foreign("a program")),
        });
    }
    pointwise::run(p.func, p.compute, out, &operands, &p.params)
}
