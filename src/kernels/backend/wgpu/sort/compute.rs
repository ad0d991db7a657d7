//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::Operand;
use crate::backend::wgpu::common::operands::operand;
use crate::backend::wgpu::{BufferView, sort};
use crate::call::Sort;
use crate::error::Result;

pub(in crate::backend::wgpu) fn compute(s: &Sort, ins: &[Operand<'_>], values: BufferView<'_>, positions: BufferView<'_>) -> Result<()> {
    sort::sort("sort", values, positions, operand(ins, 0)?, s.dim, *s)
}
