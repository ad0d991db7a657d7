//! Runs a row, or its derivative, over strided memory of the device.

use super::{Input, View};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::pointwise::Func;

/// Computes `func` in `compute` for every element of `out`; inputs are broadcast to its shape.
pub fn run(func: Func, _compute: DType, _out: View<'_>, _ins: &[Input<'_>], _params: &[Scalar]) -> Result<()> {
    Err(Error::not_implemented(format!("{}: not implemented on wgpu", func.row.info().name)))
}

/// Whether there is a kernel for `func` that computes in `dtype`.
pub fn has_kernel(_func: Func, dtype: DType) -> bool {
    dtype != DType::F64
}
