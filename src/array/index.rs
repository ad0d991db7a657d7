//! Reads and writes of arrays at positions given by data.

use super::run::{accepted, count, run_into, run1};
use super::value::Array;
use crate::backend::contract::{Operand, View};
use crate::call::{self, Along, IndexPlan, IndexWrite, Random, Request, ScatterAlong, Triangle, Write};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, MemoryFormat, Scalar, Strides, broadcast_many, fmt_shape};
use smallvec::SmallVec;

/// Parts of at most so many bytes are copied at once, without a request.
const SMALL_PART: usize = 1 << 14;

/// The memory order of arrays that are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinOrder {
    /// The memory format that all parts suggest, or else row-major.
    Suggested,
    /// That of the parts, if they have one.
    Parts,
}

/// Refuses a plan that does not fit its index arrays, or `x`.
fn check_plan(plan: &IndexPlan, x: &Array, index: &[&Array]) -> Result<()> {
    if plan.fits(x.rank(), index.len()) {
        return Ok(());
    }
    Err(Error::index(format!(
        "indexing: a plan for the dimensions {:?} with {} index arrays does not fit an array of shape {}",
        &plan.dims[..],
        index.len(),
        fmt_shape(x.shape())
    )))
}

/// The common shape of index arrays.
pub fn index_shape(index: &[&Array]) -> Result<Dims> {
    if let [one] = index {
        return Ok(Dims::from_slice(one.shape()));
    }
    broadcast_many(index.iter().map(|a| a.shape())).map_err(|_| {
        let shapes: Vec<String> = index.iter().map(|a| fmt_shape(a.shape())).collect();
        Error::index(format!("shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes.join(", ")))
    })
}

/// The index arrays on the device of `x`, expanded to their common shape, after `first`. Copied only if necessary.
fn with_positions<'a>(
    first: &'a Array,
    x: &Array,
    index: &[&'a Array],
    shape: &[usize],
    made: &'a mut SmallVec<[Array; 2]>,
) -> Result<SmallVec<[&'a Array; 4]>> {
    let fits = |a: &Array| a.storage().is_beside(x.storage()) && a.shape() == shape;
    for a in index.iter().filter(|a| !fits(a)) {
        let a = a.to_device_of(x)?;
        made.push(if a.shape() == shape { a } else { a.with_layout(a.layout().expand(shape)?)? });
    }
    let mut made = made.iter();
    let all = index.iter().filter_map(|a| if fits(a) { Some(*a) } else { made.next() });
    Ok(std::iter::once(first).chain(all).collect())
}

/// The error of values that do not fit where they are written.
#[cold]
pub fn value_mismatch(src: &[usize], full: &[usize]) -> Error {
    Error::shape(format!(
        "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
        fmt_shape(src),
        fmt_shape(full)
    ))
}

impl Array {
    /// The elements at the positions that the index arrays name (`x[i, j]`), row-major.
    pub fn take_rows(&self, plan: &IndexPlan, index: &[&Array]) -> Result<Array> {
        check_plan(plan, self, index)?;
        let shape = index_shape(index)?;
        let mut made = SmallVec::new();
        let ins = with_positions(self, self, index, &shape, &mut made)?;
        run1(Request::IndexRead(plan.clone()), &ins, &plan.shape(self.shape(), &shape), self.dtype())
    }

    /// Writes `src`, broadcast to the shape that `take_rows` gives, to the positions. Nothing is written if a position is out of range.
    pub fn put_rows(&self, plan: &IndexPlan, index: &[&Array], src: &Array, how: Write) -> Result<()> {
        check_plan(plan, self, index)?;
        self.writable()?;
        let shape = index_shape(index)?;
        let full = plan.shape(self.shape(), &shape);
        if src.layout().expand(&full).is_err() {
            return Err(value_mismatch(src.shape(), &full));
        }
        let src = src.cast(self.dtype())?;
        let src = if src.overlaps(self) { src.contiguous_copy()? } else { src };
        let is_number = src.numel() == 1 && !src.storage().is_beside(self.storage());
        let wide = if is_number { src } else { src.with_layout(src.layout().expand(&full)?)? };
        let mut made = SmallVec::new();
        let ins = with_positions(&wide, self, index, &shape, &mut made)?;
        run_into(&Request::IndexWrite(IndexWrite { index: plan.clone(), how }), &ins, &[self])
    }

    /// `out[.., j, ..] = self[.., index[.., j, ..], ..]`. The index is no larger than this array, `dim` apart.
    pub fn gather(&self, dim: usize, index: &Array) -> Result<Array> {
        Array::request1(Request::Gather(Along { dim }), &[self, index], index.shape(), self.dtype())
    }

    /// `self[.., index[.., j, ..], ..] = src[.., j, ..]`. A 0-d `src` is one value for all; otherwise it is at least as large as the index.
    pub fn scatter_into(&self, dim: usize, index: &Array, src: &Array, how: Write) -> Result<()> {
        let request = Request::Scatter(ScatterAlong { dim, how });
        accepted(&request, &[src, index], &[(self.shape(), self.dtype())])?;
        self.writable()?;
        let src = src.cast(self.dtype())?;
        let src = if src.overlaps(self) { src.contiguous_copy()? } else { src };
        run_into(&request, &[&src, index], &[self])
    }

    /// The positions of elements that are not zero, in row-major order: one i64 array for each dimension, side by side in memory.
    pub fn nonzero(&self) -> Result<SmallVec<[Array; 4]>> {
        let rank = self.rank();
        let all = count(&Request::Nonzero(call::Nonzero), self, |n| SmallVec::from_buf([rank, n]), DType::I64)?;
        (0..rank).map(|d| all.with_layout(all.layout().select(0, d as i64)?)).collect()
    }

    /// Fills this dense array with random numbers, in its order of memory; `chances` are the probabilities of `Distribution::BernoulliOf`.
    pub fn draw(&self, random: Random, chances: Option<&Array>) -> Result<()> {
        if !self.layout().is_dense() || chances.is_some_and(|p| p.shape() != self.shape() || !self.is_contiguous()) {
            return Err(Error::shape(format!(
                "{}: expected a dense array and probabilities of its shape, got {:?}",
                random.op,
                self.shape()
            )));
        }
        run_into(&Request::Random(random), chances.as_slice(), &[self])
    }

    /// The elements in reverse order along `dims`; dimensions keep their order in memory.
    pub fn flip(&self, dims: &[usize]) -> Result<Array> {
        let out = self.empty_like(self.dtype())?;
        if out.numel() == 0 {
            return Ok(out);
        }
        // Written backwards: strides of an output may be negative inside of its own memory.
        let mut strides = Strides::from_slice(out.strides());
        let mut start = 0isize;
        for &d in dims {
            start += (self.shape()[d] as isize - 1) * strides[d];
            strides[d] = -strides[d];
        }
        self.ready()?;
        let to = out.view();
        let to = View { offset: to.offset.wrapping_add_signed(start), strides: &strides, ..to };
        // SAFETY: every element of `out` is named once; `out` is new.
        unsafe { out.storage().backend().run(&Request::Copy(call::Copying), &[Operand::View(self.view())], &[Some(to)])? };
        Ok(out)
    }

    /// Writes the upper or lower triangle of each matrix in the last two dimensions of `src` into this array, zero elsewhere.
    /// `src` may be this array.
    pub fn triangle_from(&self, src: &Array, diagonal: i64, upper: bool) -> Result<()> {
        let r = self.rank();
        let shape = self.shape();
        if r < 2 || src.shape() != shape || src.dtype() != self.dtype() {
            return Err(Error::shape(format!(
                "triangle: expected matrices of one shape and dtype, got {} of {} and {} of {}",
                fmt_shape(shape),
                self.dtype(),
                fmt_shape(src.shape()),
                src.dtype()
            )));
        }
        self.writable()?;
        let clash = src.overlaps(self) && src.layout() != self.layout();
        let src = if clash { src.contiguous_copy()? } else { src.clone() };
        run_into(&Request::Triangle(Triangle { diagonal, upper }), &[&src], &[self])
    }

    /// The arrays behind one another along `dim`, which exists in all of them; all other sizes agree. Converted to `dtype`.
    pub fn concat(parts: &[&Array], dim: usize, dtype: DType, order: JoinOrder) -> Result<Array> {
        let mut shape = Dims::from_slice(parts[0].shape());
        shape[dim] = 0;
        for p in parts {
            shape[dim] = shape[dim].checked_add(p.shape()[dim]).ok_or_else(|| Error::runtime("cat: the sizes overflow"))?;
        }
        let dense = |p: &Array| Layout::dense_like(&shape, p.strides());
        let common = (order == JoinOrder::Parts).then(|| dense(parts[0])).filter(|like| parts.iter().all(|p| dense(p) == *like));
        let out = if let Some(like) = common {
            parts[0].empty_laid_out(like, dtype)?
        } else {
            let format = parts[0].layout().suggested_format();
            let is_common = parts.iter().all(|p| p.layout().suggested_format() == format);
            parts[0].empty_in(&shape, dtype, if is_common { format } else { MemoryFormat::Contiguous })?
        };
        // Each part is one block of the result, in its order.
        let blocks = out.device().is_host() && out.numel() > 0 && out.is_contiguous() && shape[..dim].iter().all(|n| *n == 1);
        let row = if blocks { out.numel() / shape[dim] * dtype.size() } else { 0 };
        let mut at = 0;
        for p in parts {
            let n = p.shape()[dim];
            if blocks && n * row <= SMALL_PART && p.dtype() == dtype && p.device().is_host() && p.is_contiguous() {
                p.ready()?;
                // SAFETY: the part has these bytes, and so has the new result from there on: its size is the sum.
                unsafe { std::ptr::copy_nonoverlapping(p.ptr(), out.ptr_mut().add(at * row), n * row) };
            } else {
                out.with_layout(out.layout().narrow(dim, at, n)?)?.copy_from(p)?;
            }
            at += n;
        }
        Ok(out)
    }

    /// The array repeated `times[d]` times along each dimension; `times` has this array's rank.
    pub fn repeat(&self, times: &[usize]) -> Result<Array> {
        // (t0, s0, t1, s1, ...): the repeats are dimensions of stride 0 over the source.
        let (mut shape, mut strides, mut sizes) = (Dims::new(), Strides::new(), Dims::new());
        for (d, &t) in times.iter().enumerate() {
            shape.extend([t, self.shape()[d]]);
            strides.extend([0, self.strides()[d]]);
            let n = t.checked_mul(self.shape()[d]).ok_or_else(|| Error::runtime("repeat: the sizes overflow"))?;
            sizes.push(n);
        }
        let out = self.empty_beside(&sizes, self.dtype())?;
        let wide = Layout::from_parts(shape.clone(), strides, self.layout().offset())?;
        out.with_layout(Layout::contiguous(&shape))?.copy_from(&self.with_layout(wide)?)?;
        Ok(out)
    }

    /// The elements moved along `dims` by `shifts` places; what leaves at one end comes back at the other.
    pub fn roll(&self, shifts: &[i64], dims: &[usize]) -> Result<Array> {
        let mut from = self.clone();
        for (&s, &d) in shifts.iter().zip(dims) {
            let n = from.shape()[d];
            let k = if n == 0 { 0 } else { s.rem_euclid(n as i64) as usize };
            let out = from.empty_beside(from.shape(), from.dtype())?;
            let part = |a: &Array, start: usize, len: usize| a.with_layout(a.layout().narrow(d, start, len)?);
            part(&out, k, n - k)?.copy_from(&part(&from, 0, n - k)?)?;
            part(&out, 0, k)?.copy_from(&part(&from, n - k, k)?)?;
            from = out;
        }
        if dims.is_empty() { from.contiguous_copy() } else { Ok(from) }
    }

    /// Zeros with `src` on a diagonal of the dimensions `dim1` and `dim2`.
    pub fn diag_embed(src: &Array, shape: &[usize], offset: i64, dim1: usize, dim2: usize) -> Result<Array> {
        let out = src.full_beside(shape, Scalar::Int(0), src.dtype())?;
        out.with_layout(out.layout().diagonal(offset, dim1, dim2)?)?.copy_from(src)?;
        Ok(out)
    }
}
