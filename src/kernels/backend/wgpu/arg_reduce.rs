//! The positions of the largest and smallest elements along a dimension.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{first, foreign, view};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::reduce::DeviceReducer;
use crate::backend::wgpu::reduce::compute::reduce_elements;
use crate::backend::wgpu::{Buffer, BufferView, Context, scratch_size};
use crate::call::{ArgReduce, Family};
use crate::error::Result;
use crate::layout::{DType, Layout};
use smallvec::SmallVec;
use std::sync::Arc;

impl WgpuFamily for ArgReduce {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn compute(r: &ArgReduce, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        first(
            context,
            ins,
            |p| p.can_be_read(context),
            |x| {
                let over: SmallVec<[bool; 8]> = (0..x.shape().len()).map(|d| d == r.dim).collect();
                let [values, positions] = outs else { return Err(foreign("other outputs than two")) };
                let Some(like) = values.as_ref().or(positions.as_ref()) else { return Ok(()) };
                let like = view(like)?;
                let numel: usize = like.shape.iter().product();
                let (own, dense);
                let other = if values.is_some() && positions.is_some() {
                    None
                } else {
                    let dtype = if values.is_some() { DType::I64 } else { x.dtype() };
                    own = Buffer::new(context, numel * scratch_size(dtype))?;
                    dense = Layout::contiguous_strides(like.shape);
                    Some(BufferView { buffer: &own, offset: 0, shape: like.shape, strides: &dense, dtype })
                };
                match (values, positions, other) {
                    (Some(v), Some(p), _) => {
                        reduce_elements(r.name(), DeviceReducer::Place { max: r.max }, &x, None, &over, 0.0, &[view(v)?, view(p)?])
                    }
                    (Some(v), None, Some(p)) => {
                        reduce_elements(r.name(), DeviceReducer::Place { max: r.max }, &x, None, &over, 0.0, &[view(v)?, p])
                    }
                    (None, Some(p), Some(v)) => {
                        reduce_elements(r.name(), DeviceReducer::Place { max: r.max }, &x, None, &over, 0.0, &[v, view(p)?])
                    }
                    _ => Ok(()),
                }
            },
        )
    }
}
