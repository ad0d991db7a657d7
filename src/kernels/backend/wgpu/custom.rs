//! Kernels from outside of the crate: there are none.

use super::Context;
use super::family::{Halves, WgpuFamily};
use crate::backend::contract::{Operand, Support, View};
use crate::call::{Custom, Family};
use crate::error::{Error, Result};
use crate::layout::DType;
use std::sync::Arc;

const WHY_NOT: &str = "custom kernels read memory of the host";

impl WgpuFamily for Arc<dyn Custom> {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn support(&self, _dtype: DType) -> Support {
        Support::No(WHY_NOT)
    }

    fn compute(custom: &Arc<dyn Custom>, _context: &Arc<Context>, _ins: &[Operand<'_>], _outs: &[Option<View<'_>>]) -> Result<()> {
        Err(Error::not_implemented(format!("{}: {WHY_NOT}; move the tensor to another device with .to()", Family::name(custom))))
    }
}
