//! Draws random numbers on a wgpu device, or on the host if the device does not support them.

use super::answer::operand;
use super::random::{Draw, fill};
use super::{Buffer, BufferView, Context, copy, element_size};
use crate::backend::contract::{Backend, Memory, Operand, View as HostView};
use crate::backend::cpu::backend::CPU;
use crate::call::{Distribution, Random, Request};
use crate::error::Result;
use crate::host::memory::alloc;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;
use std::sync::Arc;

fn draw<'a>(d: Distribution, ins: &[Operand<'a>]) -> Result<Draw<'a>> {
    Ok(match d {
        Distribution::Uniform { from, to } => {
            let a = from as f32;
            // Rounding may reach `to` itself, which is outside.
            let below = (to as f32).next_down().max(a);
            Draw::Uniform { from: a, width: (to - from) as f32, to: to as f32, below }
        }
        Distribution::Normal { mean, std } => Draw::Normal { mean: mean as f32, std: std as f32 },
        Distribution::Exponential { rate } => Draw::Exponential { rate: rate as f32 },
        Distribution::Bernoulli { p } => Draw::Bernoulli { threshold: Draw::threshold(p) },
        Distribution::BernoulliOf => Draw::BernoulliOf(operand(ins, 0)?),
        Distribution::Integers { from, range } => Draw::Integers { from, range },
    })
}

/// Whether a shader draws these numbers.
pub(super) fn is_drawn_here(d: Distribution, dtype: DType) -> bool {
    draw(if d == Distribution::BernoulliOf { Distribution::Bernoulli { p: 0.5 } } else { d }, &[]).is_ok_and(|d| d.writes(dtype))
}

pub(super) fn random(context: &Arc<Context>, r: &Random, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let draw = draw(r.distribution, ins)?;
    if draw.writes(out.dtype) {
        return fill(r.op, out, draw, r.seed, r.start);
    }
    let n: usize = out.shape.iter().product();
    let here = alloc::Buffer::new(n * out.dtype.size())?;
    let made = HostView { memory: Memory::Host(here.as_ptr()), offset: 0, shape: &[n], strides: &[1], dtype: out.dtype };
    // SAFETY: the buffer has room for all numbers; what draws from probabilities is written by the device itself.
    unsafe { CPU.run(&Request::Random(*r), &[], &[Some(made)])? };
    let there = Buffer::of(context, n * element_size(out.dtype), out.dtype)?;
    // SAFETY: all of it was written just now.
    super::backend::upload(context, unsafe { RawSlice::new(here.as_ptr(), n * out.dtype.size()) }, out.dtype, &there)?;
    let flat = BufferView { shape: &[n], strides: &[1], ..out };
    copy::copy(flat, BufferView { buffer: &there, offset: 0, ..flat })
}
