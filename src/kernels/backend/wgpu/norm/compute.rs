//! The arguments of the shaders, from the operands of a request.

use super::norm;
use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{BufferView, Context};
use crate::call::{Family, Norm};
use crate::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

impl WgpuFamily for Norm {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(n: &Norm, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let from = (0..ins.len()).map(|k| operand(ins, k)).collect::<Result<SmallVec<[BufferView<'_>; 5]>>>()?;
        let to = (0..n.outputs()).map(|k| output(outs, k)).collect::<Result<SmallVec<[BufferView<'_>; 4]>>>()?;
        norm(n, &from, &to)
    }
}
