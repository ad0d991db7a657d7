//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::Operand;
use crate::backend::wgpu::common::operands::operand;
use crate::backend::wgpu::{BufferView, conv};
use crate::call::Conv;
use crate::error::Result;
use smallvec::SmallVec;

pub(in crate::backend::wgpu) fn compute(c: &Conv, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 3]>>>()?;
    conv::conv(c, &from, out)
}
