//! What a wgpu device says about a family of requests, beside the shaders of each.

use super::Context;
use crate::backend::contract::{Operand, Support, View};
use crate::call::Family;
use crate::error::Result;
use crate::layout::DType;
use std::sync::Arc;

/// How shaders compute floats of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halves {
    /// Shaders are made for them.
    Taken,
    /// In the shaders of float32: elements are widened when they are read, and rounded once when they are written.
    InFloat32,
    /// As `InFloat32`, into float32: results are written several times, each time made from what was written before, and rounded at the end alone.
    Accumulated,
}

/// A family as a device computes it.
pub(super) trait WgpuFamily: Family {
    fn halves(&self, ins: &[Operand<'_>]) -> Halves;

    /// Whether there are shaders for complex64.
    fn takes_complex(&self) -> bool {
        false
    }

    /// Where a request does not run on the device itself, for the table of what is supported.
    fn support(&self, _dtype: DType) -> Support {
        Support::Yes
    }

    /// Records the dispatches.
    ///
    /// # Errors
    /// As for `Backend::run`.
    fn compute(request: &Self, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()>;
}
