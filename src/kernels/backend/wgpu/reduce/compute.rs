//! The arguments of the kernels, from the operands of a request.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{Elements, first, foreign, output};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::reduce::reduce as dispatch_reduce;
use crate::backend::wgpu::reduce::{DeviceReducer, reduce_program};
use crate::backend::wgpu::{Buffer, BufferView, Context, scratch_size};
use crate::call;
use crate::call::Reduce;
use crate::error::Result;
use crate::layout::Layout;
use std::sync::Arc;

pub(in crate::backend::wgpu) fn reduce_elements(
    op: &'static str,
    r: DeviceReducer,
    x: &Elements<'_>,
    shift: Option<BufferView<'_>>,
    over: &[bool],
    power: f64,
    outs: &[BufferView<'_>],
) -> Result<()> {
    match x {
        Elements::Memory(x) => dispatch_reduce(op, r, &[*x], shift, over, power, outs),
        Elements::Made(p, shape, strides) => reduce_program(op, r, p, (shape, strides), shift, over, power, outs),
    }
}

impl WgpuFamily for Reduce {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        !self.reducer.is_float_only() && !matches!(self.reducer, call::Reducer::Extreme { .. })
    }

    fn compute(r: &Reduce, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let op = r.reducer.name();
        first(
            context,
            ins,
            |p| p.can_be_read(context),
            |x| {
                let Some(what) = DeviceReducer::of(r.reducer) else {
                    let call::Reducer::Norm(p) = r.reducer else { return Err(foreign("a reducer that this device does not know")) };
                    return power_norm(context, p, &x, &r.reduced, out);
                };
                reduce_elements(op, what, &x, None, &r.reduced, 0.0, &[out])
            },
        )
    }
}

/// The norm of any order. Elements are scaled by the one that dominates, so that powers neither overflow nor vanish. The elements are read (or
/// computed) twice.
fn power_norm(context: &Arc<Context>, p: f64, x: &Elements<'_>, over: &[bool], out: BufferView<'_>) -> Result<()> {
    let numel: usize = out.shape.iter().product();
    let scale = Buffer::new(context, numel * scratch_size(out.dtype))?;
    let dense = Layout::contiguous_strides(out.shape);
    let scale = BufferView { buffer: &scale, offset: 0, strides: &dense, ..out };
    reduce_elements("norm", DeviceReducer::ExtremeAbs { max: p > 0.0 }, x, None, over, 0.0, &[scale])?;
    reduce_elements("norm", DeviceReducer::Power, x, Some(scale), over, p, &[out])
}
