//! One value everywhere.

use crate::backend::wgpu::{BufferView, copy};
use crate::error::Result;
use crate::layout::Scalar;

pub(super) fn compute(value: Scalar, out: BufferView<'_>) -> Result<()> {
    copy::fill(out, value)
}
