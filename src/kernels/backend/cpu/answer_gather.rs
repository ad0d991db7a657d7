//! Runs requests on the CPU that read or write at positions. All positions are checked first and then read once, so concurrent writes to the
//! index arrays cannot cause accesses out of bounds.

use super::index::{self, IndexedRows, StridedBlock, add_offsets};
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, output, view};
use crate::backend::cpu::gather;
use crate::backend::cpu::gather::AlongOperand;
use crate::call::{Along, Bounds, IndexPlan, IndexWrite, ScatterAlong};
use crate::error::{Error, Result};
use crate::host::memory::alloc::Buffer;
use crate::host::memory::raw_slice::RawSlice;
use crate::host::threads::parallel_for;
use crate::layout::{DType, Strides};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Positions that one task checks.
const CHECKED: usize = 1 << 16;

// SAFETY, of every function here: as in `answer.rs`.

/// The distance of each position from the array's first element, in elements.
struct Offsets {
    memory: Buffer,
    n: usize,
}

impl Offsets {
    fn get(&self) -> &[i64] {
        // SAFETY: `offsets` has written all of them.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.n) }
    }
}

unsafe fn offsets(i: &IndexPlan, x: &View<'_>, positions: &[Operand<'_>]) -> Result<Offsets> {
    let op = i.bounds.name();
    let n = view(op, positions, 0)?.numel();
    let memory = Buffer::new(n * size_of::<i64>())?;
    // SAFETY: room for n numbers, of which the first index writes all.
    let to = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().cast::<i64>(), n) };
    for (k, &dim) in i.dims.iter().enumerate() {
        let at = view(op, positions, k)?;
        let (size, stride) = (x.shape[dim], x.strides[dim] as i64);
        let low = if i.bounds.wraps() { -(size as i64) } else { 0 };
        if n > 0 && size == 0 && i.bounds == Bounds::Wrap {
            return Err(Error::index("index is out of bounds for dimension with size 0"));
        }
        // SAFETY: see above; all positions have one shape.
        unsafe {
            let at = DenseOperand::cast(&at, DType::I64)?;
            add_offsets(to, k == 0, RawSlice::new(at.ptr().cast(), n), (low, size as i64), stride)
                .map_err(|bad| i.bounds.error(bad, dim, size))?;
        }
    }
    Ok(Offsets { memory, n })
}

fn rows<'a>(i: &IndexPlan, x: &View<'_>, offsets: &'a [i64]) -> IndexedRows<'a> {
    let (before, after) = i.rest(x.shape.len());
    let block = |dims: &[usize]| {
        let shape: SmallVec<[usize; 6]> = dims.iter().map(|d| x.shape[*d]).collect();
        let strides: SmallVec<[isize; 6]> = dims.iter().map(|d| x.strides[*d]).collect();
        StridedBlock::new(&shape, &strides)
    };
    IndexedRows { outer: block(&before), offsets, inner: block(&after) }
}

pub(super) unsafe fn read(i: &IndexPlan, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    let x = view(i.bounds.name(), ins, 0)?;
    // SAFETY: see above; the offsets were checked against the array's sizes.
    unsafe {
        let offsets = offsets(i, &x, &ins[1..])?;
        index::take(out.ptr(), x.ptr(), x.dtype, &rows(i, &x, offsets.get()));
    }
    Ok(())
}

pub(super) unsafe fn write(w: &IndexWrite, ins: &[Operand<'_>], x: View<'_>) -> Result<()> {
    let values = view(w.index.bounds.name(), ins, 0)?;
    let single = values.strides.iter().zip(values.shape).all(|(s, n)| *s == 0 || *n == 1);
    // SAFETY: see above; the offsets were checked against the array's sizes.
    unsafe {
        let offsets = offsets(&w.index, &x, &ins[1..])?;
        if values.shape.contains(&0) {
            return Ok(());
        }
        if single {
            index::put(x.ptr(), values.ptr(), true, x.dtype, w.how, &rows(&w.index, &x, offsets.get()));
        } else {
            let values = DenseOperand::of(&values)?;
            index::put(x.ptr(), values.ptr(), false, x.dtype, w.how, &rows(&w.index, &x, offsets.get()));
        }
    }
    Ok(())
}

/// Whether all positions are inside. Without a branch for each, so that it is vectorised.
fn are_inside(index: RawSlice<'_, i64>, size: usize) -> bool {
    let last = size as i64 - 1;
    let is_outside = AtomicBool::new(false);
    parallel_for(index.len().div_ceil(CHECKED), |i| {
        let some = index.part(i * CHECKED, index.len().min((i + 1) * CHECKED));
        if some.iter().fold(0, |sign, i| sign | i | last.wrapping_sub(i)) < 0 {
            is_outside.store(true, Ordering::Relaxed);
        }
    });
    !is_outside.into_inner()
}

/// The error for the first position that is outside. Another thread may have corrected it in the meantime.
fn outside(index: RawSlice<'_, i64>, dim: usize, size: usize) -> Error {
    Bounds::Exact.error(index.iter().find(|i| *i as u64 >= size as u64).unwrap_or(size as i64), dim, size)
}

/// Strides over the dimensions of an index; 0-d counts as 1-d.
fn over(x: &View<'_>, rank: usize) -> Strides {
    if x.shape.len() == rank { Strides::from_slice(x.strides) } else { Strides::from_elem(1, rank) }
}

fn row_major(shape: &[usize]) -> Strides {
    crate::layout::Layout::contiguous_strides(shape)
}

pub(super) unsafe fn gather(a: &Along, ins: &[Operand<'_>], out: View<'_>) -> Result<()> {
    let (x, at) = (view("gather", ins, 0)?, view("gather", ins, 1)?);
    let size = x.shape.get(a.dim).copied().unwrap_or(1);
    // SAFETY: see above; the index is no larger than the array apart from `dim`, where each position is checked as it is used.
    unsafe {
        let flat = DenseOperand::cast(&at, DType::I64)?;
        let all_inside = gather::gather(
            AlongOperand { ptr: out.ptr(), strides: out.strides },
            AlongOperand { ptr: x.ptr(), strides: &over(&x, at.shape.len()) },
            AlongOperand { ptr: flat.ptr().cast(), strides: &row_major(at.shape) },
            x.dtype,
            at.shape,
            (a.dim, size),
        );
        if all_inside { Ok(()) } else { Err(outside(RawSlice::new(flat.ptr().cast(), at.numel()), a.dim, size)) }
    }
}

pub(super) unsafe fn scatter(s: &ScatterAlong, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
    let (values, at) = (view("scatter", ins, 0)?, view("scatter", ins, 1)?);
    let x = output("scatter", outs, 0)?;
    let size = x.shape.get(s.dim).copied().unwrap_or(1);
    let rank = at.shape.len();
    let strides = if values.shape.is_empty() && rank > 0 { Strides::from_elem(0, rank) } else { over(&values, rank) };
    // SAFETY: as for `gather`; the values reach over the index, or are one value.
    unsafe {
        let flat = DenseOperand::cast(&at, DType::I64)?;
        // Before anything is written.
        let index = RawSlice::new(flat.ptr().cast(), at.numel());
        if !are_inside(index, size) {
            return Err(outside(index, s.dim, size));
        }
        gather::scatter(
            AlongOperand { ptr: x.ptr(), strides: &over(&x, rank) },
            AlongOperand { ptr: values.ptr(), strides: &strides },
            AlongOperand { ptr: flat.ptr().cast(), strides: &row_major(at.shape) },
            (x.dtype, s.how),
            at.shape,
            (s.dim, size),
        );
    }
    Ok(())
}
