//! Reads and writes at positions. All of them are checked first and then read once, so that concurrent writes to the index arrays cannot
//! cause accesses out of bounds.

use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{DenseOperand, result, view};
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::index;
use crate::backend::cpu::index::{IndexedRows, StridedBlock, add_offsets};
use crate::call::{Bounds, IndexPlan, IndexWrite};
use crate::error::{Error, Result};
use crate::host::memory::alloc::Buffer;
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::DType;
use smallvec::SmallVec;

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

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

impl CpuFamily for IndexPlan {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(i: &IndexPlan, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let out = result(i, outs, 0)?;
        let x = view(i.bounds.name(), ins, 0)?;
        // SAFETY: see above; the offsets were checked against the array's sizes.
        unsafe {
            let offsets = offsets(i, &x, &ins[1..])?;
            index::take(out.ptr(), x.ptr(), x.dtype, &rows(i, &x, offsets.get()));
        }
        Ok(())
    }
}

impl CpuFamily for IndexWrite {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(w: &IndexWrite, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let x = result(w, outs, 0)?;
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
}
