//! Copies in a memory format. Not here: the formats themselves (`layout/memory_format.rs`).

use crate::autograd::{Tensor, primitives};
use crate::error::{Error, Result};
use crate::layout::MemoryFormat;

/// Whether the elements lie in this order without gaps.
pub fn is_contiguous(t: &Tensor, format: MemoryFormat) -> bool {
    format.check(t.rank()).is_ok() && t.with_array(|a| a.layout().is_contiguous_as(format))
}

/// The tensor itself if its elements lie in this order, else a copy whose elements do.
pub fn contiguous(t: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    format.check(t.rank())?;
    if is_contiguous(t, format) {
        return Ok(t.clone());
    }
    if format == MemoryFormat::Preserve {
        return Err(Error::runtime("preserve memory format is unsupported by the contiguous operator"));
    }
    primitives::clone_in(t, format, "CloneBackward0")
}

/// A copy.
pub fn clone(t: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    format.check(t.rank())?;
    primitives::clone_in(t, format, "CloneBackward0")
}

/// The tensor itself if its strides are those of the format already, else a copy: what `to` does.
pub fn to(t: &Tensor, format: MemoryFormat, copy: bool) -> Result<Tensor> {
    let fits = format == MemoryFormat::Preserve || t.with_array(|a| a.layout().suggested_format()) == format;
    if fits && !copy {
        return Ok(t.clone());
    }
    format.check(t.rank())?;
    primitives::clone_in(t, format, "ToCopyBackward0")
}
