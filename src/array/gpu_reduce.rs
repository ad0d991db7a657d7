//! Reductions, scans, softmax and matrix products of arrays in a device's memory.

use super::reduce::{Over, reduced_shape};
use super::{Array, Scan, SoftmaxPass};
use crate::backend::wgpu::reduce::{Reducer, reduce};
use crate::backend::wgpu::{View, matmul, scan, softmax};
use crate::error::Result;
use crate::layout::{DType, Layout, Strides};
use smallvec::SmallVec;

impl Array {
    /// `shift`, where the reducer reads one, has one element for each result, in row-major order.
    pub(super) fn gpu_reduced(&self, op: &'static str, r: Reducer, over: Over<'_>, shift: Option<&Array>, to: DType) -> Result<Array> {
        self.gpu_reduced_by(op, r, over, shift, to, 0.0)
    }

    fn gpu_reduced_by(&self, op: &'static str, r: Reducer, over: Over<'_>, shift: Option<&Array>, to: DType, power: f64) -> Result<Array> {
        let out = self.empty_beside(&reduced_shape(self.shape(), over.reduced, over.keepdim), to)?;
        let shift = shift.map(Array::contiguous).transpose()?;
        let shift = shift.as_ref().map(|s| s.gpu_view(op)).transpose()?;
        reduce(op, r, &[self.gpu_view(op)?], shift, over.reduced, power, &[out.gpu_view(op)?])?;
        Ok(out)
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
            // Powers of ratios to the size that counts most neither overflow nor vanish.
            _ => {
                let scale = self.gpu_reduced("norm", Reducer::ExtremeAbs { max: p > 0.0 }, over, None, d)?;
                return self.gpu_reduced_by("norm", Reducer::Power, over, Some(&scale), d, p);
            }
        };
        self.gpu_reduced("norm", r, over, None, d)
    }

    pub(super) fn gpu_extreme_along(&self, max: bool, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        let op = if max { "max" } else { "min" };
        let reduced: SmallVec<[bool; 8]> = (0..self.rank()).map(|d| d == dim).collect();
        let shape = reduced_shape(self.shape(), &reduced, keepdim);
        let values = self.empty_beside(&shape, self.dtype())?;
        let places = self.empty_beside(&shape, DType::I64)?;
        let outs = [values.gpu_view(op)?, places.gpu_view(op)?];
        reduce(op, Reducer::Place { max }, &[self.gpu_view(op)?], None, &reduced, 0.0, &outs)?;
        Ok((values, places))
    }

    pub(super) fn gpu_scan(&self, kind: Scan, dim: usize) -> Result<Array> {
        let op = if kind == Scan::Sum { "cumsum" } else { "cumprod" };
        let out = self.empty_beside(self.shape(), if self.dtype().is_float() { self.dtype() } else { DType::I64 })?;
        scan::scan(op, kind == Scan::Sum, self.gpu_view(op)?, dim, out.gpu_view(op)?)?;
        Ok(out)
    }

    pub(super) fn gpu_softmax(&self, pass: SoftmaxPass, dim: usize, g: Option<&Array>) -> Result<Array> {
        let op = if pass.log { "log_softmax" } else { "softmax" };
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
