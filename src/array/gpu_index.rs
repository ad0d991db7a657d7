//! Indexing, sorting, picking and random numbers of arrays in a device's memory. A position out of range is found by the device: it
//! touches nothing, and the next wait for the device raises the error.

use super::index::{Bounds, Plan, Write, value_mismatch};
use super::{Array, Classes, Device, SortPart, reduced_shape};
use crate::backend::wgpu::index::{self, Indexed, Rows, Source};
use crate::backend::wgpu::nll::{self, Nll};
use crate::backend::wgpu::random::{self, Draw};
use crate::backend::wgpu::{View, running, select, triangle};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Strides};
use smallvec::SmallVec;

impl Bounds {
    /// The operation that reads or writes under this rule, for errors of the device.
    fn op(self) -> &'static str {
        match self {
            Bounds::Wrap => "index",
            Bounds::Select => "index_select",
            Bounds::Exact => "index_add",
            Bounds::Copy => "index_copy",
            Bounds::Take => "take",
        }
    }
}

/// The index arrays of a plan, on the device and in their common shape.
struct Positions {
    arrays: SmallVec<[Array; 4]>,
    shape: Dims,
}

impl Positions {
    fn new(x: &Array, plan: &Plan, index: &[&Array]) -> Result<Positions> {
        let shape = plan.index_shape(index)?;
        let mut arrays: SmallVec<[Array; 4]> = SmallVec::new();
        for a in index {
            let a = a.to_device_of(x)?;
            let wide = if a.shape() == &shape[..] { a.clone() } else { a.with_layout(a.layout().expand(&shape)?)? };
            arrays.push(wide);
        }
        Ok(Positions { arrays, shape })
    }

    /// Calls `f` with what the kernels want to know.
    fn rows<R>(&self, x: &Array, plan: &Plan, f: impl FnOnce(Rows<'_>) -> Result<R>) -> Result<R> {
        let op = plan.bounds.op();
        let (before, after) = plan.rest(x.rank());
        let mut indexed: SmallVec<[Indexed<'_>; 4]> = SmallVec::new();
        for (a, &dim) in self.arrays.iter().zip(&plan.dims) {
            if x.shape()[dim] == 0 {
                return Err(Error::index("index is out of bounds for dimension with size 0"));
            }
            indexed.push(Indexed { index: a.gpu_view(op)?, dim, size: x.shape()[dim], stride: x.strides()[dim] });
        }
        f(Rows { op, x: x.gpu_view(op)?, indexed: &indexed, wraps: plan.bounds.wraps(), before: &before, after: &after })
    }
}

impl Array {
    /// What is written: a view of an array that lies on the device, or the value of a 0-d one on the CPU.
    fn gpu_source<'a>(&'a self, op: &str) -> Result<Source<'a>> {
        match self.on_gpu() {
            Some(v) => Ok(Source::View(v)),
            None if self.numel() == 1 => Ok(Source::Number(self.first()?)),
            None => Err(super::gpu::elsewhere(op, self, Device::Wgpu)),
        }
    }

    pub(super) fn gpu_take_rows(&self, plan: &Plan, index: &[&Array]) -> Result<Array> {
        let at = Positions::new(self, plan, index)?;
        let out = self.empty_beside(&plan.shape(self.shape(), &at.shape), self.dtype())?;
        if at.shape.contains(&0) {
            return Ok(out);
        }
        at.rows(self, plan, |rows| if out.numel() == 0 { Ok(()) } else { Ok(rows.take(out.gpu_view(rows.op)?)?) })?;
        Ok(out)
    }

    pub(super) fn gpu_put_rows(&self, plan: &Plan, index: &[&Array], src: &Array, how: Write) -> Result<()> {
        let at = Positions::new(self, plan, index)?;
        let full = plan.shape(self.shape(), &at.shape);
        if src.layout().expand(&full).is_err() {
            return Err(value_mismatch(src, &full));
        }
        if at.shape.contains(&0) {
            return Ok(());
        }
        let src = src.cast(self.dtype())?;
        let src = if src.overlaps(self) { src.contiguous_copy()? } else { src };
        let wide = if src.numel() == 1 && src.on_gpu().is_none() { src } else { src.with_layout(src.layout().expand(&full)?)? };
        at.rows(self, plan, |rows| if full.contains(&0) { Ok(()) } else { Ok(rows.put(wide.gpu_source(rows.op)?, how)?) })
    }

    /// This array seen over `rank` dimensions (0-d counts as 1-d).
    fn gpu_over<'a>(&'a self, op: &str, rank: usize, one: &'a ([usize; 1], [isize; 1])) -> Result<View<'a>> {
        let v = self.gpu_view(op)?;
        Ok(if self.rank() == 0 && rank == 1 { View { shape: &one.0, strides: &one.1, ..v } } else { v })
    }

    pub(super) fn gpu_gather(&self, dim: usize, index: &Array) -> Result<Array> {
        let out = self.empty_beside(index.shape(), self.dtype())?;
        if out.numel() > 0 {
            let one = ([1], [1]);
            let (x, idx) = (self.gpu_over("gather", index.rank(), &one)?, index.gpu_view("gather")?);
            index::gather("gather", out.gpu_view("gather")?, x, idx, dim, self.layout().size_or_one(dim))?;
        }
        Ok(out)
    }

    pub(super) fn gpu_scatter_into(&self, dim: usize, index: &Array, src: &Array, how: Write) -> Result<()> {
        if index.numel() == 0 {
            return Ok(());
        }
        let src = src.cast(self.dtype())?;
        let src = if src.overlaps(self) { src.contiguous_copy()? } else { src };
        let zero = Strides::from_elem(0, index.rank());
        let source = match src.gpu_source("scatter")? {
            Source::View(v) if src.rank() == 0 && index.rank() > 0 => Source::View(View { shape: index.shape(), strides: &zero, ..v }),
            s => s,
        };
        let one = ([1], [1]);
        let x = self.gpu_over("scatter", index.rank(), &one)?;
        Ok(index::scatter("scatter", x, index.gpu_view("scatter")?, source, how, dim, self.layout().size_or_one(dim))?)
    }

    pub(super) fn gpu_nonzero(&self) -> Result<SmallVec<[Array; 4]>> {
        let found = select::Nonzero::count("nonzero", self.gpu_view("nonzero")?)?;
        let all = self.empty_beside(&[self.rank(), found.count], DType::I64)?;
        found.positions(all.gpu_view("nonzero")?)?;
        (0..self.rank()).map(|d| all.with_layout(all.layout().select(0, d as i64)?)).collect()
    }

    /// `src` shares no memory with this array unless it is this very array.
    pub(super) fn gpu_triangle_from(&self, src: &Array, diagonal: i64, upper: bool) -> Result<()> {
        let op = if upper { "triu" } else { "tril" };
        if self.numel() == 0 {
            return Ok(());
        }
        Ok(triangle::triangle(op, self.gpu_view(op)?, src.gpu_view(op)?, diagonal, upper)?)
    }

    pub(super) fn gpu_sort_along(&self, dim: usize, part: SortPart) -> Result<(Array, Array)> {
        let mut shape = Dims::from_slice(self.shape());
        if let Some(n) = shape.get_mut(dim) {
            *n = part.keep;
        }
        let values = self.empty_beside(&shape, self.dtype())?;
        let places = self.empty_beside(&shape, DType::I64)?;
        if values.numel() > 0 {
            select::sort("sort", values.gpu_view("sort")?, places.gpu_view("sort")?, self.gpu_view("sort")?, dim, part)?;
        }
        Ok((values, places))
    }

    pub(super) fn gpu_running_extreme(&self, max: bool, dim: usize) -> Result<(Array, Array)> {
        let op = if max { "cummax" } else { "cummin" };
        let values = self.empty_beside(self.shape(), self.dtype())?;
        let places = self.empty_beside(self.shape(), DType::I64)?;
        if values.numel() > 0 {
            running::running_extreme(op, max, values.gpu_view(op)?, places.gpu_view(op)?, self.gpu_view(op)?, dim)?;
        }
        Ok((values, places))
    }

    pub(super) fn gpu_mode_along(&self, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        let keep = self.layout().size_or_one(dim);
        let (sorted, order) = self.gpu_sort_along(dim, SortPart { descending: false, keep })?;
        let reduced: SmallVec<[bool; 8]> = (0..self.rank()).map(|d| d == dim).collect();
        let shape = reduced_shape(self.shape(), &reduced, keepdim);
        let (values, places) = (self.empty_beside(&shape, self.dtype())?, self.empty_beside(&shape, DType::I64)?);
        if values.numel() > 0 {
            let sorted = (sorted.gpu_view("mode")?, order.gpu_view("mode")?);
            running::mode("mode", values.gpu_view("mode")?, places.gpu_view("mode")?, sorted.0, sorted.1, dim)?;
        }
        Ok((values, places))
    }

    /// As `nll`; all are row-major, and the first target that is no class is reported by the device.
    pub(super) fn gpu_nll(&self, classes: Classes, adjoint: bool, from: &Array, targets: &Array, weight: Option<&Array>) -> Result<()> {
        let op = "nll_loss";
        if self.numel() == 0 {
            return Ok(());
        }
        let dim = usize::from(if adjoint { self.rank() } else { from.rank() } > 1);
        let weight = weight.map(|w| w.gpu_view(op)).transpose()?;
        let (out, from) = (self.gpu_view(op)?, from.gpu_view(op)?);
        let ticket = out.buffer.context().ticket(op);
        let nll = Nll { op, classes, dim, targets: targets.gpu_view(op)?, weight, real: self.dtype(), ticket };
        if adjoint { Ok(nll.spread(out, from)?) } else { Ok(nll.pick(out, nll::From::Memory(from))?) }
    }

    /// Fills the memory of this dense array of a device with random numbers of the stream `seed` from counter `start` on.
    pub(crate) fn draw(&self, op: &'static str, draw: Draw<'_>, seed: u64, start: u64) -> Result<()> {
        if !self.layout().is_dense() {
            return Err(Error::runtime(format!("{op}: expected a dense array, got strides {:?}", self.strides())));
        }
        if self.numel() == 0 { Ok(()) } else { Ok(random::fill(op, self.gpu_view(op)?, draw, seed, start)?) }
    }

    /// As `draw`: 1 with the probability that each element of `chances`, of this shape, says.
    pub(crate) fn draw_where(&self, op: &'static str, chances: &Array, seed: u64, start: u64) -> Result<()> {
        if chances.shape() != self.shape() {
            return Err(Error::shape(format!("{op}: probabilities of shape {:?} for {:?}", chances.shape(), self.shape())));
        }
        self.draw(op, Draw::BernoulliOf(chances.gpu_view(op)?), seed, start)
    }
}
