//! Fourier transforms of float32 and complex64, along one dimension after the other.
//!
//! A line of up to `pass::MOST` elements whose length has no prime factor above 7 is transformed in workgroup memory (`pass`). A longer one is
//! seen as a matrix: its columns are transformed and turned, then its rows, which may be long again (`long`). Other lengths become a convolution
//! with a chirp (`chirp`). Results do not depend on the device. Not here: PyTorch's functions, and derivatives (`ops`).

mod chirp;
mod line;
mod pass;

use self::line::{Ends, Line, LineDims, LineEnd, Stored};
use super::common::operands::{operand, output};
use super::common::word_kernels::countable;
use super::family::{Halves, WgpuFamily};
use super::{Buffer, BufferView, Context, element_size};
use crate::backend::contract::{Operand, Support, View};
use crate::call::{Family, Fft, FftKind};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout, Strides};
use std::sync::Arc;

/// The longest line: eight times a place in it is counted in 32 bits.
const LONGEST: usize = 1 << 27;

/// An array whose lines are read or written.
#[derive(Clone, Copy)]
struct Lines<'a> {
    view: BufferView<'a>,
    stored: Stored,
}

impl<'a> Lines<'a> {
    fn end(&self, dim: usize) -> LineEnd<'a> {
        LineEnd { buffer: self.view.buffer, offset: self.view.offset, step: self.view.strides[dim], stored: self.stored }
    }
}

/// The direction of a transform, the factor of all results, and that of all but the ends of a line.
#[derive(Clone, Copy)]
struct Turn {
    inverse: bool,
    scale: f64,
    inner: f64,
}

/// Transforms every line of `from` along `dim`; lines have `n` elements where all of them are there.
fn along(op: &'static str, dim: usize, n: usize, from: Lines<'_>, to: Lines<'_>, turn: Turn) -> Result<()> {
    let Turn { inverse, scale, inner } = turn;
    let mut dims = LineDims::new();
    for d in (0..from.view.shape.len()).filter(|d| *d != dim) {
        dims.push((from.view.shape[d], [from.view.strides[d], 0, to.view.strides[d], 0]));
    }
    let ends = Ends { from: from.end(dim), to: to.end(dim), conjugated: (inverse, inverse), scale, inner, all: n };
    let job = Line { op, dims, n, spread: 1, ends };
    if pass::is_smooth(n) { job.transform() } else { chirp::transform(&job) }
}

impl WgpuFamily for Fft {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::Taken
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn support(&self, dtype: DType) -> Support {
        if dtype.row().real == DType::F32 { Support::Yes } else { Support::No("Fourier transforms have shaders for float32 alone") }
    }

    fn compute(f: &Fft, context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (x, out) = (operand(ins, 0)?, output(outs, 0)?);
        let op = f.name();
        if x.dtype.row().real != DType::F32 {
            return Err(Error::not_implemented(format!(
                "{op}: only float32 and complex64 are transformed on wgpu; move the tensor with .cpu()"
            )));
        }
        countable(op, x.shape)?;
        countable(op, out.shape)?;
        let Some((last, others)) = f.dims.split_last() else { return Err(Error::internal(op, "a transform along no dimension")) };
        let n = x.shape[*last].max(out.shape[*last]);
        let longest = others.iter().map(|d| x.shape[*d]).max().unwrap_or(0).max(n);
        if longest > LONGEST {
            return Err(Error::not_implemented(format!(
                "{op}: got {longest} elements along a dimension; on wgpu at most {LONGEST} are supported: move the tensor with .cpu()"
            )));
        }
        let half = |size: usize| if size == n { Stored::Complex } else { Stored::Half };
        let from = Lines { view: x, stored: if f.kind == FftKind::FromReal { Stored::Real } else { half(x.shape[*last]) } };
        let to = Lines { view: out, stored: if f.kind == FftKind::ToReal { Stored::Real } else { half(out.shape[*last]) } };
        let whole = |view| Lines { view, stored: Stored::Complex };
        // What is real is transformed first, or last. The dimensions between are transformed in place.
        if f.kind != FftKind::ToReal {
            let scale = |at: usize| if at == others.len() { f.scale } else { 1.0 };
            along(op, *last, n, from, to, Turn { inverse: f.inverse, scale: scale(0), inner: f.inner })?;
            for (k, d) in others.iter().rev().enumerate() {
                along(op, *d, x.shape[*d], whole(out), whole(out), Turn { inverse: f.inverse, scale: scale(k + 1), inner: 1.0 })?;
            }
            return Ok(());
        }
        if others.is_empty() {
            return along(op, *last, n, from, to, Turn { inverse: f.inverse, scale: f.scale, inner: f.inner });
        }
        let numel: usize = x.shape.iter().product();
        let buffer = Buffer::new(context, numel * element_size(x.dtype))?;
        let strides: Strides = Layout::contiguous_strides(x.shape);
        let between = BufferView { buffer: &buffer, offset: 0, strides: &strides, ..x };
        for (k, d) in others.iter().enumerate() {
            along(
                op,
                *d,
                x.shape[*d],
                whole(if k == 0 { x } else { between }),
                whole(between),
                Turn { inverse: f.inverse, scale: 1.0, inner: 1.0 },
            )?;
        }
        along(op, *last, n, Lines { view: between, ..from }, to, Turn { inverse: f.inverse, scale: f.scale, inner: f.inner })
    }
}
