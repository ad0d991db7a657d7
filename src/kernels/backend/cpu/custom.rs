//! Kernels from outside of the crate.

use super::common::operands::{output, view};
use super::family::{CpuFamily, NarrowElements};
use crate::backend::contract::{Operand, View};
use crate::call::Custom;
use crate::error::Result;
use std::sync::Arc;

impl CpuFamily for Arc<dyn Custom> {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(custom: &Arc<dyn Custom>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let name = (**custom).name();
        let views = (0..ins.len()).map(|k| view(name, ins, k)).collect::<Result<Vec<_>>>()?;
        let outs = (0..outs.len()).map(|k| output(name, outs, k)).collect::<Result<Vec<_>>>()?;
        // SAFETY: the caller's; the kernel's own promises are those of `Custom`.
        unsafe { custom.run(&views, &outs) }
    }
}
