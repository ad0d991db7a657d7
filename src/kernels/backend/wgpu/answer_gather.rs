//! Runs requests on a wgpu device that read or write at positions. The device detects a position out of range: it then skips the access, and the
//! next wait for the device raises the error.

use super::BufferView;
use super::answer::{foreign, operand, view};
use super::index::scatter::ScatterSource;
use super::index::{Indexed, IndexedArray, gather as dispatch_gather, scatter as dispatch_scatter};
use crate::backend::contract::Operand;
use crate::call::{Along, IndexPlan, IndexWrite, ScatterAlong};
use crate::error::{Error, Result};
use crate::layout::Strides;
use smallvec::SmallVec;

/// Calls `f` with the arguments of the kernels. Does nothing if there is no position.
fn rows(i: &IndexPlan, x: BufferView<'_>, positions: &[Operand<'_>], f: impl FnOnce(IndexedArray<'_>) -> Result<()>) -> Result<()> {
    let (before, after) = i.rest(x.shape.len());
    let mut indexed: SmallVec<[Indexed<'_>; 4]> = SmallVec::new();
    for (k, &dim) in i.dims.iter().enumerate() {
        let index = operand(positions, k)?;
        if index.shape.contains(&0) {
            return Ok(());
        }
        if x.shape[dim] == 0 {
            return Err(Error::index("index is out of bounds for dimension with size 0"));
        }
        indexed.push(Indexed { index, dim, size: x.shape[dim], stride: x.strides[dim] });
    }
    f(IndexedArray { op: i.bounds.name(), x, indexed: &indexed, wraps: i.bounds.wraps(), before: &before, after: &after })
}

/// The values to write: an array, or one value of the host.
fn source<'a>(values: &Operand<'a>) -> Result<ScatterSource<'a>> {
    match values {
        Operand::View(v) => Ok(ScatterSource::View(view(v)?)),
        Operand::Number(value) => Ok(ScatterSource::Number(*value)),
        _ => Err(foreign("values that are no array")),
    }
}

pub(super) fn read(i: &IndexPlan, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    rows(i, operand(ins, 0)?, &ins[1..], |rows| if out.shape.contains(&0) { Ok(()) } else { rows.take(out) })
}

pub(super) fn write(w: &IndexWrite, ins: &[Operand<'_>], x: BufferView<'_>) -> Result<()> {
    let values = source(&ins[0])?;
    let empty = x.shape.iter().enumerate().any(|(d, n)| *n == 0 && !w.index.dims.contains(&d));
    rows(&w.index, x, &ins[1..], |rows| if empty { Ok(()) } else { rows.put(values, w.how) })
}

/// The view over the dimensions of an index; 0-d counts as 1-d.
fn over<'a>(x: BufferView<'a>, rank: usize, one: &'a ([usize; 1], [isize; 1])) -> BufferView<'a> {
    if x.shape.is_empty() && rank == 1 { BufferView { shape: &one.0, strides: &one.1, ..x } } else { x }
}

pub(super) fn gather(a: &Along, ins: &[Operand<'_>], out: BufferView<'_>) -> Result<()> {
    let (x, index) = (operand(ins, 0)?, operand(ins, 1)?);
    let size = x.shape.get(a.dim).copied().unwrap_or(1);
    let one = ([1], [1]);
    dispatch_gather("gather", out, over(x, index.shape.len(), &one), index, a.dim, size)
}

pub(super) fn scatter(s: &ScatterAlong, ins: &[Operand<'_>], x: BufferView<'_>) -> Result<()> {
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
