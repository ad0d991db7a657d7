//! Copies, conversions and fills.

use super::View;
use crate::error::{Error, Result};
use crate::layout::Scalar;

/// Writes one value everywhere.
pub fn fill(_dst: View<'_>, _value: Scalar) -> Result<()> {
    Err(Error::not_implemented("fill: not implemented on wgpu"))
}

/// Copies and converts; the shapes are equal and the memory does not overlap.
pub fn copy(_dst: View<'_>, _src: View<'_>) -> Result<()> {
    Err(Error::not_implemented("copy: not implemented on wgpu"))
}
