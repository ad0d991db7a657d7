//! Reading and writing arrays at positions that are data.

use super::storage::Device;
use super::value::Array;
pub use crate::backend::cpu::index::Write;
use crate::backend::cpu::index::{self, Along, Block, Rows};
use crate::backend::cpu::nonzero;
use crate::backend::wgpu;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar, Strides, broadcast_many, fmt_shape};
use smallvec::SmallVec;

/// Which positions an operation accepts, and what it says of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// `x[i]`: negative positions count from the end.
    Wrap,
    /// `index_select`.
    Select,
    /// `index_add`, `gather`, `scatter`: the reader is told position, dimension and size.
    Exact,
    /// `index_copy`.
    Copy,
    /// `take`: as `Wrap`, over all elements.
    Take,
}

impl Bounds {
    #[inline]
    pub(super) fn wraps(self) -> bool {
        matches!(self, Bounds::Wrap | Bounds::Take)
    }

    #[cold]
    pub fn error(self, index: i64, dim: usize, size: usize) -> Error {
        match self {
            Bounds::Wrap => Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}")),
            Bounds::Select => Error::index(format!("index out of range in self: got index {index} for dimension {dim} with size {size}")),
            Bounds::Exact => Error::runtime(format!("index {index} is out of bounds for dimension {dim} with size {size}")),
            Bounds::Copy => Error::index(format!("index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}")),
            Bounds::Take => Error::index(format!("out of range: tried to access index {index} on a tensor of {size} elements.")),
        }
    }
}

/// Which dimensions of an array are indexed, and where the index's own dimensions stand in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// One dimension for each index array, ascending.
    pub dims: SmallVec<[usize; 4]>,
    /// How many of the other dimensions stand before those of the index.
    pub at: usize,
    pub bounds: Bounds,
}

impl Plan {
    pub fn one(dim: usize, bounds: Bounds) -> Plan {
        Plan { dims: SmallVec::from_elem(dim, 1), at: dim, bounds }
    }

    /// Indexed dimensions side by side keep their place; others go to the front, as in NumPy.
    pub fn of(dims: SmallVec<[usize; 4]>) -> Plan {
        let adjacent = dims.windows(2).all(|w| w[1] == w[0] + 1);
        let at = if adjacent { dims.first().copied().unwrap_or(0) } else { 0 };
        Plan { dims, at, bounds: Bounds::Wrap }
    }

    /// The dimensions that are not indexed: those before and those behind the index's in the result.
    pub(super) fn rest(&self, rank: usize) -> (SmallVec<[usize; 6]>, SmallVec<[usize; 6]>) {
        let mut before: SmallVec<[usize; 6]> = (0..rank).filter(|d| !self.dims.contains(d)).collect();
        let after = SmallVec::from_slice(&before[self.at..]);
        before.truncate(self.at);
        (before, after)
    }

    /// Whether the plan and the index arrays belong together, and to `x`.
    pub(super) fn check(&self, x: &Array, index: &[&Array]) -> Result<()> {
        let ascending = self.dims.windows(2).all(|w| w[0] < w[1]);
        let inside = self.dims.last().is_some_and(|d| *d < x.rank()) && self.at <= x.rank() - self.dims.len();
        if ascending && inside && index.len() == self.dims.len() {
            return Ok(());
        }
        Err(Error::index(format!(
            "indexing: a plan for the dimensions {:?} with {} index arrays does not fit an array of shape {}",
            &self.dims[..],
            index.len(),
            fmt_shape(x.shape())
        )))
    }

    /// The shape of the result.
    pub fn shape(&self, of: &[usize], index: &[usize]) -> Dims {
        let (before, after) = self.rest(of.len());
        let mut out = Dims::new();
        out.extend(before.iter().map(|d| of[*d]));
        out.extend_from_slice(index);
        out.extend(after.iter().map(|d| of[*d]));
        out
    }

    /// The common shape of the index arrays.
    pub fn index_shape(&self, index: &[&Array]) -> Result<Dims> {
        if let [one] = index {
            return Ok(Dims::from_slice(one.shape()));
        }
        broadcast_many(index.iter().map(|a| a.shape())).map_err(|_| {
            let shapes: Vec<String> = index.iter().map(|a| fmt_shape(a.shape())).collect();
            Error::index(format!("shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes.join(", ")))
        })
    }
}

/// The error of values that do not fit where they are written.
#[cold]
pub(super) fn value_mismatch(src: &Array, full: &[usize]) -> Error {
    Error::shape(format!(
        "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
        fmt_shape(src.shape()),
        fmt_shape(full)
    ))
}

impl Array {
    /// For each position, its distance from the array's first element in elements. Every position is checked, and read once: what others write
    /// to the index arrays meanwhile changes nothing that was checked.
    fn offsets(&self, plan: &Plan, index: &[&Array], shape: &[usize]) -> Result<Array> {
        let out = Array::empty(shape, DType::I64)?;
        let n = out.numel();
        // SAFETY: made just now; the first index writes all of it.
        let to = unsafe { out.new_elements::<i64>() };
        for (k, (idx, &dim)) in index.iter().zip(&plan.dims).enumerate() {
            let idx = idx.cast(DType::I64)?;
            let idx = if idx.shape() == shape { idx } else { idx.with_layout(idx.layout().expand(shape)?)? };
            let idx = idx.contiguous()?;
            let (size, stride) = (self.shape()[dim], self.strides()[dim] as i64);
            let low = if plan.bounds.wraps() { -(size as i64) } else { 0 };
            if n > 0 && size == 0 && plan.bounds == Bounds::Wrap {
                return Err(Error::index("index is out of bounds for dimension with size 0"));
            }
            index::add_offsets(to, k == 0, idx.elements::<i64>()?, (low, size as i64), stride)
                .map_err(|i| plan.bounds.error(i, dim, size))?;
        }
        Ok(out)
    }

    /// # Safety
    /// `offsets` is what `offsets` gave for this plan.
    unsafe fn rows<'a>(&self, plan: &Plan, offsets: &'a Array) -> Rows<'a> {
        let (before, after) = plan.rest(self.rank());
        let block = |dims: &[usize]| {
            let shape: SmallVec<[usize; 6]> = dims.iter().map(|d| self.shape()[*d]).collect();
            let strides: SmallVec<[isize; 6]> = dims.iter().map(|d| self.strides()[*d]).collect();
            Block::new(&shape, &strides)
        };
        // SAFETY: what `offsets` gave, of which there is one handle: nobody writes it any more.
        Rows { outer: block(&before), offsets: unsafe { offsets.new_elements::<i64>() }, inner: block(&after) }
    }

    /// The elements at the positions that the index arrays name (`x[i, j]`), row-major.
    pub fn take_rows(&self, plan: &Plan, index: &[&Array]) -> Result<Array> {
        plan.check(self, index)?;
        if self.device() == Device::Wgpu {
            return self.gpu_take_rows(plan, index);
        }
        let shape = plan.index_shape(index)?;
        let out = Array::empty(&plan.shape(self.shape(), &shape), self.dtype())?;
        if out.numel() == 0 && shape.contains(&0) {
            return Ok(out);
        }
        let offsets = self.offsets(plan, index, &shape)?;
        self.ready()?;
        // SAFETY: offsets were checked against this array's sizes; `out` is fresh.
        unsafe { index::take(out.ptr_mut(), self.ptr(), self.dtype(), &self.rows(plan, &offsets)) };
        Ok(out)
    }

    /// Writes `src`, broadcast to the shape that `take_rows` gives, to the positions. Nothing is written if a position is out of range.
    pub fn put_rows(&self, plan: &Plan, index: &[&Array], src: &Array, how: Write) -> Result<()> {
        plan.check(self, index)?;
        self.writable()?;
        if self.device() == Device::Wgpu {
            return self.gpu_put_rows(plan, index, src, how);
        }
        let shape = plan.index_shape(index)?;
        let full = plan.shape(self.shape(), &shape);
        let wide = src.layout().expand(&full).map_err(|_| value_mismatch(src, &full))?;
        if full.contains(&0) && shape.contains(&0) {
            return Ok(());
        }
        let offsets = self.offsets(plan, index, &shape)?;
        let single = src.numel() == 1;
        let src = src.cast(self.dtype())?;
        let wide = if src.layout().strides() == wide.strides() { wide } else { src.layout().expand(&full)? };
        let src = if single { src.clone() } else { src.with_layout(wide)?.contiguous()? };
        let src = if src.overlaps(self) { src.contiguous_copy()? } else { src };
        src.ready()?;
        // SAFETY: offsets were checked; `src` has as many elements as the result, or is one value; it does not overlap this array.
        unsafe {
            index::put(self.ptr_mut(), src.ptr(), single, self.dtype(), how, &self.rows(plan, &offsets));
        }
        Ok(())
    }

    /// Checks an index of `gather` or `scatter` and brings it to i64.
    fn along(&self, dim: usize, index: &Array) -> Result<Array> {
        let index = index.cast(DType::I64)?;
        let size = self.layout().size_or_one(dim);
        let flat = index.contiguous()?;
        let bad = flat.elements::<i64>()?.iter().find(|i| *i as u64 >= size as u64);
        bad.map_or(Ok(flat), |i| Err(Bounds::Exact.error(i, dim, size)))
    }

    /// This array's strides over the dimensions of an index (0-d counts as 1-d).
    fn strides_over(&self, rank: usize) -> Strides {
        if self.rank() == rank { Strides::from_slice(self.strides()) } else { Strides::from_elem(1, rank) }
    }

    /// Refuses an index that is larger than an array that it reads or writes, `dim` apart; 0-d counts as 1-d.
    fn covers_index(&self, index: &Array, dim: Option<usize>) -> Result<()> {
        let ranks = self.rank() == index.rank() || self.rank() == 0 && index.rank() == 1;
        let inside = (0..index.rank()).all(|d| Some(d) == dim || index.shape()[d] <= self.layout().size_or_one(d));
        if ranks && inside && dim.is_none_or(|d| d < index.rank().max(1)) {
            return Ok(());
        }
        Err(Error::shape(format!(
            "an index of shape {} along {dim:?} does not fit an array of shape {}",
            fmt_shape(index.shape()),
            fmt_shape(self.shape())
        )))
    }

    /// `out[.., j, ..] = self[.., index[.., j, ..], ..]`. The index is no larger than this array, `dim` apart.
    pub fn gather(&self, dim: usize, index: &Array) -> Result<Array> {
        self.covers_index(index, Some(dim))?;
        if self.device() == Device::Wgpu {
            return self.gpu_gather(dim, index);
        }
        let flat = self.along(dim, index)?;
        self.ready()?;
        let out = Array::empty(index.shape(), self.dtype())?;
        // SAFETY: the index is no larger than this array apart from `dim`, where each position is checked as it is used.
        unsafe {
            index::gather(
                Along { ptr: out.ptr_mut(), strides: out.strides() },
                Along { ptr: self.ptr(), strides: &self.strides_over(index.rank()) },
                Along { ptr: flat.ptr().cast(), strides: flat.strides() },
                self.dtype(),
                index.shape(),
                dim,
                self.layout().size_or_one(dim),
            );
        }
        Ok(out)
    }

    /// `self[.., index[.., j, ..], ..] = src[.., j, ..]`. A 0-d `src` is one value for all; otherwise it is at least as large as the index.
    pub fn scatter_into(&self, dim: usize, index: &Array, src: &Array, how: Write) -> Result<()> {
        self.covers_index(index, Some(dim))?;
        if src.rank() > 0 {
            src.covers_index(index, None)?;
        }
        self.writable()?;
        if self.device() == Device::Wgpu {
            return self.gpu_scatter_into(dim, index, src, how);
        }
        let flat = self.along(dim, index)?;
        let src = src.cast(self.dtype())?;
        let src = if src.overlaps(self) { src.contiguous_copy()? } else { src };
        src.ready()?;
        let zero = Strides::from_elem(0, index.rank());
        let own = src.strides_over(index.rank());
        let strides = if src.rank() == 0 && index.rank() > 0 { &zero } else { &own };
        // SAFETY: as for `gather`; `src` reaches over the index, or is one value.
        unsafe {
            index::scatter(
                Along { ptr: self.ptr_mut(), strides: &self.strides_over(index.rank()) },
                Along { ptr: src.ptr(), strides },
                Along { ptr: flat.ptr().cast(), strides: flat.strides() },
                self.dtype(),
                how,
                index.shape(),
                dim,
                self.layout().size_or_one(dim),
            );
        }
        Ok(())
    }

    /// The positions of elements that are not zero, in row-major order: one i64 array for each dimension, side by side in memory.
    pub fn nonzero(&self) -> Result<SmallVec<[Array; 4]>> {
        if self.device() == Device::Wgpu {
            return self.gpu_nonzero();
        }
        let truth = self.cast(DType::Bool)?.contiguous()?;
        let mask = truth.elements::<bool>()?;
        let rank = self.rank();
        let counts = nonzero::count(mask);
        let all = Array::empty(&[rank, counts.last().copied().unwrap_or(0)], DType::I64)?;
        // SAFETY: there is room for all that were counted, even if another thread changed the mask after that.
        unsafe { nonzero::positions(mask, self.shape(), &counts, all.ptr_mut().cast()) };
        (0..rank).map(|d| all.with_layout(all.layout().select(0, d as i64)?)).collect()
    }

    /// The elements in reverse order along `dims`, row-major.
    pub fn flip(&self, dims: &[usize]) -> Result<Array> {
        let out = self.empty_beside(self.shape(), self.dtype())?;
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
        if let (Some(to), Some(from)) = (out.on_gpu(), self.on_gpu()) {
            let offset = to.offset.wrapping_add_signed(start);
            wgpu::copy::copy(wgpu::View { offset, strides: &strides, ..to }, from)?;
            return Ok(out);
        }
        // SAFETY: every element of `out` is named once; `out` is fresh.
        unsafe {
            crate::backend::cpu::copy::copy(
                self.dtype(),
                self.dtype(),
                self.shape(),
                self.ptr(),
                self.strides(),
                out.ptr_mut().wrapping_offset(start * self.dtype().size() as isize),
                &strides,
            );
        }
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
        let (rows, cols) = (shape[r - 2], shape[r - 1]);
        let batch: usize = shape[..r - 2].iter().product();
        let clash = src.overlaps(self) && src.layout() != self.layout();
        let src = if clash { src.contiguous_copy()? } else { src.clone() };
        src.ready()?;
        if self.device() == Device::Wgpu {
            return self.gpu_triangle_from(&src, diagonal, upper);
        }
        let (to, from) = (Block::new(&shape[..r - 2], &self.strides()[..r - 2]), Block::new(&shape[..r - 2], &src.strides()[..r - 2]));
        let size = self.dtype().size();
        for b in 0..batch {
            let at = |block: &Block| block.offset(b) * size as isize;
            // SAFETY: each matrix lies inside its array; the arrays are equal or disjoint.
            unsafe {
                index::triangle(
                    (self.ptr_mut().offset(at(&to)), [self.strides()[r - 2], self.strides()[r - 1]]),
                    (src.ptr().offset(at(&from)), [src.strides()[r - 2], src.strides()[r - 1]]),
                    size,
                    (rows, cols),
                    diagonal,
                    upper,
                );
            }
        }
        Ok(())
    }

    /// The arrays behind one another along `dim`, which exists in all of them; all other sizes agree. Converted to `dtype`.
    pub fn concat(parts: &[&Array], dim: usize, dtype: DType) -> Result<Array> {
        let mut shape = Dims::from_slice(parts[0].shape());
        shape[dim] = 0;
        for p in parts {
            shape[dim] = shape[dim].checked_add(p.shape()[dim]).ok_or_else(|| Error::runtime("cat: the sizes overflow"))?;
        }
        let out = parts[0].empty_beside(&shape, dtype)?;
        let mut at = 0;
        for p in parts {
            let n = p.shape()[dim];
            out.with_layout(out.layout().narrow(dim, at, n)?)?.copy_from(p)?;
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
