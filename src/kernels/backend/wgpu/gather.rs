//! Reads and writes along one dimension, at positions that the index gives for each element.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{operand, output};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::index::compute::source;
use crate::backend::wgpu::index::gather as dispatch_gather;
use crate::backend::wgpu::index::scatter as dispatch_scatter;
use crate::backend::wgpu::index::scatter::{IN_ORDER, ScatterSource};
use crate::backend::wgpu::{BufferView, Context};
use crate::call::{Along, ScatterAlong, Write};
use crate::error::Result;
use crate::layout::Strides;
use std::sync::Arc;

/// The view over the dimensions of an index; 0-d counts as 1-d.
fn over<'a>(x: BufferView<'a>, rank: usize, one: &'a ([usize; 1], [isize; 1])) -> BufferView<'a> {
    if x.shape.is_empty() && rank == 1 { BufferView { shape: &one.0, strides: &one.1, ..x } } else { x }
}

impl WgpuFamily for Along {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(a: &Along, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        let (x, index) = (operand(ins, 0)?, operand(ins, 1)?);
        let size = x.shape.get(a.dim).copied().unwrap_or(1);
        let one = ([1], [1]);
        dispatch_gather("gather", out, over(x, index.shape.len(), &one), index, a.dim, size)
    }
}

impl WgpuFamily for ScatterAlong {
    fn halves(&self, ins: &[Operand<'_>]) -> Halves {
        // As for `IndexWrite`.
        let positions = if let Some(Operand::View(v)) = ins.get(1) { v.shape } else { &[] };
        let accumulates = self.how != Write::Set && positions.get(self.dim).is_none_or(|n| *n <= IN_ORDER);
        if accumulates { Halves::Accumulated } else { Halves::InFloat32 }
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(s: &ScatterAlong, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = output(outs, 0)?;
        let index = operand(ins, 1)?;
        if index.shape.contains(&0) {
            return Ok(());
        }
        let size = x.shape.get(s.dim).copied().unwrap_or(1);
        let zero = Strides::from_elem(0, index.shape.len());
        let values = match source(&ins[0])? {
            ScatterSource::View(v) if v.shape.is_empty() && !index.shape.is_empty() => {
                ScatterSource::View(BufferView { shape: index.shape, strides: &zero, ..v })
            }
            values => values,
        };
        let one = ([1], [1]);
        dispatch_scatter("scatter", over(x, index.shape.len(), &one), index, values, s.how, s.dim, size)
    }
}
