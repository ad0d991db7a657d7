//! Reads and writes at positions. The device detects a position out of range: it then skips the access, and the next wait for the device raises
//! the error.

use crate::backend::contract::{Operand, View};
use crate::backend::wgpu::common::operands::{foreign, operand, output, view};
use crate::backend::wgpu::family::{Halves, WgpuFamily};
use crate::backend::wgpu::index::scatter::{IN_ORDER, ScatterSource};
use crate::backend::wgpu::index::{Indexed, IndexedArray};
use crate::backend::wgpu::{BufferView, Context};
use crate::call::{IndexPlan, IndexWrite, Write};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

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
pub(in crate::backend::wgpu) fn source<'a>(values: &Operand<'a>) -> Result<ScatterSource<'a>> {
    match values {
        Operand::View(v) => Ok(ScatterSource::View(view(v)?)),
        Operand::Number(value) => Ok(ScatterSource::Number(*value)),
        _ => Err(foreign("values that are no array")),
    }
}

impl WgpuFamily for IndexPlan {
    fn halves(&self, _ins: &[Operand<'_>]) -> Halves {
        Halves::InFloat32
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(i: &IndexPlan, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = output(outs, 0)?;
        rows(i, operand(ins, 0)?, &ins[1..], |rows| if out.shape.contains(&0) { Ok(()) } else { rows.take(out) })
    }
}

impl WgpuFamily for IndexWrite {
    fn halves(&self, ins: &[Operand<'_>]) -> Halves {
        // Few positions are processed in order; of many, each element is written once.
        let positions = if let Some(Operand::View(v)) = ins.get(1) { v.shape } else { &[] };
        let accumulates = self.how != Write::Set && positions.iter().product::<usize>() <= IN_ORDER;
        if accumulates { Halves::Accumulated } else { Halves::InFloat32 }
    }

    fn takes_complex(&self) -> bool {
        true
    }

    fn compute(w: &IndexWrite, _context: &Arc<Context>, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = output(outs, 0)?;
        let values = source(&ins[0])?;
        let empty = x.shape.iter().enumerate().any(|(d, n)| *n == 0 && !w.index.dims.contains(&d));
        rows(&w.index, x, &ins[1..], |rows| if empty { Ok(()) } else { rows.put(values, w.how) })
    }
}
