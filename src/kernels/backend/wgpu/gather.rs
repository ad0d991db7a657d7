//! Reads and writes along one dimension, at positions that the index gives for each element.

use crate::backend::contract::Operand;
use crate::backend::wgpu::BufferView;
use crate::backend::wgpu::common::operands::operand;
use crate::backend::wgpu::index::compute::source;
use crate::backend::wgpu::index::gather as dispatch_gather;
use crate::backend::wgpu::index::scatter as dispatch_scatter;
use crate::backend::wgpu::index::scatter::ScatterSource;
use crate::call::{Along, ScatterAlong};
use crate::error::Result;
use crate::layout::Strides;

/// The view over the dimensions of an index; 0-d counts as 1-d.
fn over<'a>(x: BufferView<'a>, rank: usize, one: &'a ([usize; 1], [isize; 1])) -> BufferView<'a> {
    if x.shape.is_empty() && rank == 1 { BufferView { shape: &one.0, strides: &one.1, ..x } } else { x }
}

pub(super) fn compute_gather(a: &Along, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let (x, index) = (operand(ins, 0)?, operand(ins, 1)?);
    let size = x.shape.get(a.dim).copied().unwrap_or(1);
    let one = ([1], [1]);
    dispatch_gather("gather", out, over(x, index.shape.len(), &one), index, a.dim, size)
}

pub(super) fn compute_scatter(s: &ScatterAlong, ins: &[Operand<'_>], x: BufferView<'_>) -> Result<()> {
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
