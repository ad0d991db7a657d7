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

/// Refuses formats that a tensor of this rank cannot be resized to.
pub fn check_resize(format: MemoryFormat, rank: usize) -> Result<()> {
    if format == MemoryFormat::Preserve {
        return Err(Error::runtime("Unsupported memory format Preserve: give contiguous_format, channels_last or channels_last_3d"));
    }
    format.check(rank)?;
    Ok(())
}

/// The format that a tensor's strides say.
pub fn suggested(t: &Tensor) -> MemoryFormat {
    t.with_array(|a| a.layout().suggested_format())
}

/// Gives a tensor of dense memory the strides of a format in place; its elements stay where they are in memory.
pub fn restride(t: &Tensor, format: MemoryFormat) -> Result<()> {
    let shape = t.shape();
    let order = format.order(shape.len()).unwrap_or_else(|| (0..shape.len()).collect());
    let mut strides = vec![1; shape.len()];
    let mut step: i64 = 1;
    for d in order.iter().rev() {
        strides[*d] = step;
        step = step.saturating_mul(shape[*d].max(1) as i64);
    }
    let sizes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    t.set_data(&super::shape::as_strided(&t.detach(), &sizes, &strides, None)?)
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
