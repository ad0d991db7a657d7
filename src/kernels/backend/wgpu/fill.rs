//! One value everywhere.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::output;
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::{Context, copy};
use crate::call::Fill;
use crate::error::Result;
use std::sync::Arc;

impl WgpuFamily for Fill {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(&Fill(value): &Fill, _context: &Arc<Context>, _ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        copy::fill(out, value)
    }
}
