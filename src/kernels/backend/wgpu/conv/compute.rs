//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{BufferView, Context, conv};
use crate::call::Conv;
use crate::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

impl WgpuFamily for Conv {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(c: &Conv, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 3]>>>()?;
        conv::conv(c, &from, out)
    }
}
