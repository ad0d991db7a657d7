//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{Context, sort};
use crate::call::Sort;
use crate::error::Result;
use std::sync::Arc;

impl WgpuFamily for Sort {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn compute(s: &Sort, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let values = output(outs, 0)?;
        let positions = output(outs, 1)?;
        sort::sort("sort", values, positions, operand(ins, 0)?, s.dim, *s)
    }
}
