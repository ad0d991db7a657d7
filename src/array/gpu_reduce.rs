//! Reductions, scans, softmax and matrix products of arrays in a device's memory.

use super::pending::{DeviceFold, DeviceFrom, Folding};
use super::reduce::{Over, reduced_shape};
use super::{Array, Scan, SoftmaxPass};
use crate::backend::wgpu::program;
use crate::backend::wgpu::reduce::{Reducer, reduce, reduce_made};
use crate::backend::wgpu::{Buffer, View, element_size, matmul, scan, softmax};
use crate::error::Result;
use crate::layout::{DType, Dims, Layout, Strides};
use smallvec::SmallVec;
use std::sync::Arc;

impl Array {
    /// `shift`, where the reducer reads one, has one element for each result, in row-major order.
    pub(super) fn gpu_reduced(&self, op: &'static str, r: Reducer, over: Over<'_>, shift: Option<&Array>, to: DType) -> Result<Array> {
        let shape = reduced_shape(self.shape(), over.reduced, over.keepdim);
        if shift.is_none()
            && let Some(made) = self.pending_reduction(op, Gives::One(r), over, to)?
        {
            return Ok(made);
        }
        let out = self.empty_beside(&shape, to)?;
        let shift = shift.map(Array::contiguous).transpose()?;
        let shift = shift.as_ref().map(|s| s.gpu_view(op)).transpose()?;
        reduce(op, r, &[self.gpu_view(op)?], shift, over.reduced, 0.0, &[out.gpu_view(op)?])?;
        Ok(out)
    }

    /// The reduction as a step behind what is pending in this array; None where there is nothing to gain.
    fn pending_reduction(&self, op: &'static str, gives: Gives, over: Over<'_>, to: DType) -> Result<Option<Array>> {
        if !self.storage().is_pending() {
            return Ok(None);
        }
        let (of, layout, reduced) = (self.dtype(), self.layout().clone(), over.reduced.into());
        let fold = || Folding::Device(Arc::new(Reduction { op, gives, of, to, layout, reduced }));
        self.pending_fold(fold, &[], &reduced_shape(self.shape(), over.reduced, over.keepdim), to)
    }

    /// The vector norm of order `p` of floats.
    pub(super) fn gpu_norm(&self, p: f64, over: Over<'_>) -> Result<Array> {
        let d = self.dtype();
        let r = match p {
            2.0 => Reducer::Root,
            1.0 => Reducer::SumAbs,
            f64::INFINITY => Reducer::ExtremeAbs { max: true },
            f64::NEG_INFINITY => Reducer::ExtremeAbs { max: false },
            0.0 => Reducer::CountNonzero,
            _ => {
                if let Some(made) = self.pending_reduction("norm", Gives::Power(p), over, d)? {
                    return Ok(made);
                }
                let out = self.empty_beside(&reduced_shape(self.shape(), over.reduced, over.keepdim), d)?;
                power_norm(p, d, &Elements::Memory(self.gpu_view("norm")?), over.reduced, &out.gpu_view("norm")?)?;
                return Ok(out);
            }
        };
        self.gpu_reduced("norm", r, over, None, d)
    }

    pub(super) fn gpu_extreme_along(&self, max: bool, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        let op = if max { "max" } else { "min" };
        let reduced: SmallVec<[bool; 8]> = (0..self.rank()).map(|d| d == dim).collect();
        let shape = reduced_shape(self.shape(), &reduced, keepdim);
        // Two steps, of which nobody may want one.
        let over = Over { reduced: &reduced, keepdim };
        let step = |values, to| self.pending_reduction(op, Gives::Place { max, values }, over, to);
        if let Some(values) = step(true, self.dtype())?
            && let Some(places) = step(false, DType::I64)?
        {
            return Ok((values, places));
        }
        let values = self.empty_beside(&shape, self.dtype())?;
        let places = self.empty_beside(&shape, DType::I64)?;
        let outs = [values.gpu_view(op)?, places.gpu_view(op)?];
        reduce(op, Reducer::Place { max }, &[self.gpu_view(op)?], None, &reduced, 0.0, &outs)?;
        Ok((values, places))
    }

    pub(super) fn gpu_scan(&self, kind: Scan, dim: usize) -> Result<Array> {
        let op = if kind == Scan::Sum { "cumsum" } else { "cumprod" };
        let to = if self.dtype().is_float() { self.dtype() } else { DType::I64 };
        if self.storage().is_pending() {
            let fold = || Folding::Device(Arc::new(Running { kind, dim, of: self.dtype(), to, layout: self.layout().clone() }));
            if let Some(made) = self.pending_fold(fold, &[], self.shape(), to)? {
                return Ok(made);
            }
        }
        let out = self.empty_beside(self.shape(), to)?;
        scan::scan(op, kind == Scan::Sum, self.gpu_view(op)?, dim, out.gpu_view(op)?)?;
        Ok(out)
    }

    pub(super) fn gpu_softmax(&self, pass: SoftmaxPass, dim: usize, g: Option<&Array>) -> Result<Array> {
        let op = if pass.log { "log_softmax" } else { "softmax" };
        // What may be read as it is made: the input, backward the gradient.
        let source = g.unwrap_or(self);
        if source.storage().is_pending() && source.is_contiguous() && source.dtype() == self.dtype() {
            let y = if g.is_some() { Some(self.contiguous()?) } else { None };
            let fold = || Folding::Device(Arc::new(Rows { pass, dim, of: self.dtype(), shape: Dims::from_slice(self.shape()) }));
            if let Some(made) = source.pending_fold(fold, y.as_slice(), self.shape(), self.dtype())? {
                return Ok(made);
            }
        }
        let out = self.empty_beside(self.shape(), self.dtype())?;
        softmax::softmax(pass, self.gpu_view(op)?, dim, g.map(|g| g.gpu_view(op)).transpose()?, out.gpu_view(op)?)?;
        Ok(out)
    }

    /// The product (..., m, n) of matrices (..., m, k) and (..., k, n), each given by its strides over the shapes' leading dimensions, rows
    /// and columns.
    pub(super) fn gpu_matmul(&self, sa: Strides, other: &Array, sb: Strides, shape: &[usize], k: usize) -> Result<Array> {
        let op = "matmul";
        let out = self.empty_beside(shape, self.dtype())?;
        let lead = shape.len() - 2;
        let (mut a, mut b) = (SmallVec::<[usize; 6]>::from_slice(shape), SmallVec::<[usize; 6]>::from_slice(shape));
        a[lead + 1] = k;
        b[lead] = k;
        let strides = Layout::contiguous_strides(shape);
        let a = View { shape: &a, strides: &sa, ..self.gpu_view(op)? };
        let b = View { shape: &b, strides: &sb, ..other.gpu_view(op)? };
        matmul::matmul(op, a, b, View { shape, strides: &strides, ..out.gpu_view(op)? })?;
        Ok(out)
    }
}

/// What a program makes, in memory of its own.
pub(super) fn written(made: &program::Program<'_>, of: DType, beside: &Buffer) -> Result<Buffer> {
    let numel: usize = made.shape.iter().product();
    let buffer = Buffer::new(beside.context(), numel * element_size(of))?;
    program::run(beside.context(), made.code, made.shape, made.strides, made.inputs, &[(made.code.steps.len() - 1, &buffer)])?;
    Ok(buffer)
}

/// What is reduced: an array, or what a program makes, with its shape and strides.
enum Elements<'a> {
    Memory(View<'a>),
    Made(&'a program::Program<'a>, &'a [usize], &'a [isize]),
}

impl Elements<'_> {
    fn reduce(&self, op: &'static str, r: Reducer, shift: Option<View<'_>>, reduced: &[bool], power: f64, outs: &[View<'_>]) -> Result<()> {
        match self {
            Elements::Memory(x) => Ok(reduce(op, r, &[*x], shift, reduced, power, outs)?),
            Elements::Made(p, shape, strides) => Ok(reduce_made(op, r, p, (shape, strides), shift, reduced, power, outs)?),
        }
    }
}

/// The norm of any order. Powers of ratios to the size that counts most neither overflow nor vanish; the elements are read (made) twice.
fn power_norm(p: f64, of: DType, x: &Elements<'_>, reduced: &[bool], out: &View<'_>) -> Result<()> {
    let numel: usize = out.shape.iter().product();
    let scale = Buffer::new(out.buffer.context(), numel * element_size(of))?;
    let dense = Layout::contiguous_strides(out.shape);
    let scale = View { buffer: &scale, offset: 0, strides: &dense, ..*out };
    x.reduce("norm", Reducer::ExtremeAbs { max: p > 0.0 }, None, reduced, 0.0, &[scale])?;
    x.reduce("norm", Reducer::Power, Some(scale), reduced, p, &[*out])
}

/// What a reduction gives.
enum Gives {
    One(Reducer),
    /// The norm of this order.
    Power(f64),
    /// The largest (or smallest) elements, or where they are.
    Place {
        max: bool,
        values: bool,
    },
}

/// A reduction that waits for somebody to look at its result.
struct Reduction {
    op: &'static str,
    gives: Gives,
    of: DType,
    to: DType,
    layout: Layout,
    reduced: SmallVec<[bool; 6]>,
}

impl DeviceFold for Reduction {
    fn name(&self) -> &'static str {
        self.op
    }

    fn run(&self, from: DeviceFrom<'_>, _: &[&Buffer], to: &Buffer) -> Result<()> {
        let (shape, strides) = (self.layout.shape(), self.layout.strides());
        let kept = reduced_shape(shape, &self.reduced, false);
        let dense = Layout::contiguous_strides(&kept);
        let out = View { buffer: to, offset: 0, shape: &kept, strides: &dense, dtype: self.to };
        let memory = |buffer| Elements::Memory(View { buffer, offset: 0, shape, strides, dtype: self.of });
        let own;
        let x = match &from {
            DeviceFrom::Made(p) if p.can_be_read(to.context()) => Elements::Made(p, shape, strides),
            DeviceFrom::Made(p) => {
                own = written(p, self.of, to)?;
                memory(&own)
            }
            DeviceFrom::Memory(b) => memory(b),
        };
        match &self.gives {
            Gives::One(r) => x.reduce(self.op, *r, None, &self.reduced, 0.0, &[out]),
            Gives::Power(p) => power_norm(*p, self.of, &x, &self.reduced, &out),
            Gives::Place { max, values } => {
                let other = if *values { DType::I64 } else { self.of };
                let numel: usize = kept.iter().product();
                let buffer = &Buffer::new(to.context(), numel * element_size(other))?;
                let other = View { buffer, dtype: other, ..out };
                let outs = if *values { [out, other] } else { [other, out] };
                x.reduce(self.op, Reducer::Place { max: *max }, None, &self.reduced, 0.0, &outs)
            }
        }
    }
}

/// Running sums or products that wait for somebody to look at them.
struct Running {
    kind: Scan,
    dim: usize,
    of: DType,
    to: DType,
    layout: Layout,
}

impl DeviceFold for Running {
    fn name(&self) -> &'static str {
        if self.kind == Scan::Sum { "cumsum" } else { "cumprod" }
    }

    fn run(&self, from: DeviceFrom<'_>, _: &[&Buffer], to: &Buffer) -> Result<()> {
        let (shape, strides) = (self.layout.shape(), self.layout.strides());
        let dense = Layout::contiguous_strides(shape);
        let out = View { buffer: to, offset: 0, shape, strides: &dense, dtype: self.to };
        let (op, sum) = (self.name(), self.kind == Scan::Sum);
        let own;
        let buffer = match &from {
            DeviceFrom::Made(p) if p.can_be_read(to.context()) => return Ok(scan::scan_made(op, sum, p, (shape, strides), self.dim, out)?),
            DeviceFrom::Made(p) => {
                own = written(p, self.of, to)?;
                &own
            }
            DeviceFrom::Memory(b) => b,
        };
        Ok(scan::scan(op, sum, View { buffer, offset: 0, shape, strides, dtype: self.of }, self.dim, out)?)
    }
}

/// A softmax, or its backward pass, that waits for somebody to look at it.
struct Rows {
    pass: SoftmaxPass,
    dim: usize,
    of: DType,
    shape: Dims,
}

impl DeviceFold for Rows {
    fn name(&self) -> &'static str {
        if self.pass.log { "log_softmax" } else { "softmax" }
    }

    fn run(&self, from: DeviceFrom<'_>, others: &[&Buffer], to: &Buffer) -> Result<()> {
        let strides = Layout::contiguous_strides(&self.shape);
        let view = |buffer| View { buffer, offset: 0, shape: &self.shape, strides: &strides, dtype: self.of };
        let y = others.first().map(|b| view(*b));
        match from {
            DeviceFrom::Made(p) => Ok(softmax::softmax_made(self.pass, &p, y, self.dim, view(to))?),
            DeviceFrom::Memory(b) => match y {
                Some(y) => Ok(softmax::softmax(self.pass, y, self.dim, Some(view(b)), view(to))?),
                None => Ok(softmax::softmax(self.pass, view(b), self.dim, None, view(to))?),
            },
        }
    }
}
