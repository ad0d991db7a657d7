//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{foreign, output, view};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{Context, PointwiseInput, pointwise};
use crate::call::Pointwise;
use crate::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

impl WgpuFamily for Pointwise {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(p: &Pointwise, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
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
}
