//! Reductions, scans, softmax and sorting of arrays.

use super::pending::{Fold, Folding, From};
use super::{Array, Device};
use crate::backend::cpu::places::extreme;
use crate::backend::cpu::reduce::{ReduceKernel, Source, run};
use crate::backend::cpu::reductions;
use crate::backend::cpu::running::{mode, running_extreme};
use crate::backend::cpu::scan::scan;
use crate::backend::cpu::select::sort;
use crate::backend::cpu::softmax::{Shape, Soft};
use crate::backend::wgpu::reduce::Reducer as Gpu;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::Arc;

pub use crate::backend::cpu::nll::{Classes, Reduction};
pub use crate::backend::cpu::scan::Scan;
pub use crate::backend::cpu::select::Part as SortPart;
pub use crate::backend::cpu::softmax::Pass as SoftmaxPass;

/// Runs `$body` with `$T` as the type in which elements of the dtype lie in memory.
macro_rules! typed {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::Bool | DType::U8 => {
                type $T = u8;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

/// As `typed`, for floats alone; the caller has refused other dtypes.
macro_rules! float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            d => return Err(not_floating(d)),
        }
    };
}

fn not_floating(d: DType) -> Error {
    Error::dtype(format!("expected a floating point tensor, got {d}"))
}

/// Which dimensions are reduced, and whether they stay as dimensions of size 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Over<'a> {
    pub(super) reduced: &'a [bool],
    pub(super) keepdim: bool,
}

impl Over<'_> {
    /// Whether there is a flag for each dimension.
    pub(super) fn check(&self, of: &Array) -> Result<()> {
        if self.reduced.len() == of.rank() {
            return Ok(());
        }
        Err(Error::shape(format!(
            "a reduction needs {} flags for an array of shape {:?}, got {}",
            of.rank(),
            of.shape(),
            self.reduced.len()
        )))
    }

    /// Refuses to look for the best of nothing.
    fn check_best(&self, of: &Array) -> Result<()> {
        self.check(of)?;
        if of.numel() > 0 || !reduced_shape(of.shape(), self.reduced, self.keepdim).iter().all(|n| *n > 0) {
            return Ok(());
        }
        Err(Error::index(format!("expected something to look through, got shape {:?}", of.shape())))
    }
}

/// Refuses a dimension that is not there; a 0-d array has one.
fn check_dim(of: &Array, dim: usize) -> Result<()> {
    if dim < of.rank().max(1) {
        return Ok(());
    }
    Err(Error::index(format!("dimension {dim} does not exist in an array of shape {:?}", of.shape())))
}

impl Array {
    /// The dtype of sums and products of this array.
    fn summed(&self) -> DType {
        if self.dtype().is_float() { self.dtype() } else { DType::I64 }
    }

    /// The sum over the dimensions marked in `reduced` (one flag each). Floats keep their dtype, integers and bool give int64.
    pub fn sum(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        if self.device() == Device::Wgpu {
            return self.gpu_reduced("sum", Gpu::Sum, over, None, self.summed());
        }
        // SAFETY: the reduction reads this array's dtype and writes `summed`.
        unsafe { self.reduced(reductions::sum(self.dtype()), over, self.summed()) }
    }

    /// The product, with dtypes as for `sum`.
    pub fn prod(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        if self.device() == Device::Wgpu {
            return self.gpu_reduced("prod", Gpu::Prod, over, None, self.summed());
        }
        // SAFETY: the reduction reads this array's dtype and writes `summed`.
        unsafe { self.reduced(reductions::prod(self.dtype()), over, self.summed()) }
    }

    /// The largest elements, or the smallest with `max` false; nan wins. Something must be there to reduce.
    pub fn extreme(&self, max: bool, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        over.check_best(self)?;
        if self.device() == Device::Wgpu {
            return self.gpu_reduced(if max { "amax" } else { "amin" }, Gpu::Extreme { max }, over, None, self.dtype());
        }
        // SAFETY: the reduction reads and writes this array's dtype.
        unsafe { self.reduced(reductions::extreme(max, self.dtype()), over, self.dtype()) }
    }

    /// Whether all elements (or any, with `all` false) are true, as bool.
    pub fn truth(&self, all: bool, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        if self.device() == Device::Wgpu {
            return self.gpu_reduced(if all { "all" } else { "any" }, Gpu::Truth { all }, over, None, DType::Bool);
        }
        // SAFETY: the reduction reads this array's dtype and writes bytes that are 0 or 1.
        unsafe { self.reduced(reductions::truth(all, self.dtype()), over, DType::Bool) }
    }

    /// How many elements are not 0, as int64.
    pub fn count_nonzero(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        if self.device() == Device::Wgpu {
            return self.gpu_reduced("count_nonzero", Gpu::CountNonzero, over, None, DType::I64);
        }
        // SAFETY: the reduction reads this array's dtype and writes int64.
        unsafe { self.reduced(reductions::count_nonzero(self.dtype()), over, DType::I64) }
    }

    /// The sum of squared distances from the mean. Floats only.
    pub fn squares(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        if self.device() == Device::Wgpu {
            return self.gpu_reduced("var", Gpu::Squares, over, None, self.dtype());
        }
        let r = reductions::squares(self.dtype()).ok_or_else(|| not_floating(self.dtype()))?;
        // SAFETY: the reduction reads and writes this array's dtype.
        unsafe { self.reduced(r, over, self.dtype()) }
    }

    /// `log(sum(exp(x)))`, without overflow. Floats only.
    pub fn logsumexp(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        if self.device() == Device::Wgpu {
            return self.gpu_reduced("logsumexp", Gpu::LogSumExp, over, None, self.dtype());
        }
        let r = reductions::logsumexp(self.dtype()).ok_or_else(|| not_floating(self.dtype()))?;
        // SAFETY: the reduction reads and writes this array's dtype.
        unsafe { self.reduced(r, over, self.dtype()) }
    }

    /// The vector norm of order `p`. Floats only.
    pub fn norm(&self, p: f64, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let over = Over { reduced, keepdim };
        let d = self.dtype();
        if self.device() == Device::Wgpu && d.is_float() {
            return self.gpu_norm(p, over);
        }
        let r = reductions::norm(p, d).ok_or_else(|| not_floating(d))?;
        // SAFETY: the reduction reads and writes this array's dtype.
        unsafe { self.reduced(r, over, d) }
    }

    /// # Safety
    /// The reduction reads this array's dtype and writes `to`.
    unsafe fn reduced(&self, r: ReduceKernel, over: Over<'_>, to: DType) -> Result<Array> {
        over.check(self)?;
        let shape = reduced_shape(self.shape(), over.reduced, over.keepdim);
        if !self.storage().is_plain() {
            let fold = || Folding::Host(Arc::new(Waiting { r, layout: self.layout().clone(), reduced: over.reduced.into() }));
            if let Some(made) = self.pending_fold(fold, &[], &shape, to)? {
                return Ok(made);
            }
        }
        let out = Array::empty(&shape, to)?;
        self.ready()?;
        // SAFETY: the layout stays inside the storage; the rest is the caller's promise.
        unsafe { run(&r, self.shape(), self.strides(), over.reduced, Source::Memory(self.ptr()), out.ptr_mut()) };
        Ok(out)
    }

    /// This array seen as (outer, n, inner) around dimension `dim`; a 0-d array is one element.
    pub(super) fn around(&self, dim: usize) -> (usize, usize, usize) {
        let s = self.shape();
        if s.is_empty() {
            return (1, 1, 1);
        }
        (s[..dim].iter().product(), s[dim], s[dim + 1..].iter().product())
    }

    /// Uninitialised values of this array's type and, beside them, the places where they were found.
    fn with_places(&self, shape: &[usize]) -> Result<(Array, Array)> {
        Ok((Array::empty(shape, self.dtype())?, Array::empty(shape, DType::I64)?))
    }

    /// The largest (or smallest) elements along `dim`, which is not empty, and where each stands first.
    pub fn extreme_along(&self, max: bool, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        check_dim(self, dim)?;
        let reduced: SmallVec<[bool; 8]> = (0..self.rank()).map(|d| d == dim).collect();
        Over { reduced: &reduced, keepdim }.check_best(self)?;
        if self.device() == Device::Wgpu {
            return self.gpu_extreme_along(max, dim, keepdim);
        }
        let shape = reduced_shape(self.shape(), &reduced, keepdim);
        if let Some(made) = self.pending_extreme(max, self.around(dim), &shape)? {
            return Ok(made);
        }
        let x = self.contiguous()?;
        let (values, places) = self.with_places(&shape)?;
        if values.numel() > 0 {
            // SAFETY: sizes come from the shape; both outputs are fresh.
            unsafe {
                let (from, values, places) = (Source::Memory(x.ptr()), values.ptr_mut(), places.ptr_mut().cast());
                extreme(max, self.dtype(), self.around(dim), from, values, places);
            }
        }
        Ok((values, places))
    }

    /// Sorts along `dim` and keeps the first `part.keep` values with the places they came from.
    pub fn sort_along(&self, dim: usize, part: SortPart) -> Result<(Array, Array)> {
        check_dim(self, dim)?;
        if part.keep > self.layout().size_or_one(dim) {
            return Err(Error::index(format!(
                "sort: {} elements are asked for along dimension {dim} of shape {:?}",
                part.keep,
                self.shape()
            )));
        }
        if self.device() == Device::Wgpu {
            return self.gpu_sort_along(dim, part);
        }
        let x = self.contiguous()?;
        let mut shape = Dims::from_slice(self.shape());
        if let Some(n) = shape.get_mut(dim) {
            *n = part.keep;
        }
        let (values, places) = self.with_places(&shape)?;
        if values.numel() > 0 {
            if self.around(dim).1 > u32::MAX as usize {
                return Err(Error::not_implemented(format!("sort: dimensions of more than {} elements are not supported", u32::MAX)));
            }
            // SAFETY: sizes come from the shapes; both outputs are fresh.
            typed!(self.dtype(), T => unsafe {
                sort::<T>(part, self.around(dim), x.ptr().cast(), values.ptr_mut().cast(), places.ptr_mut().cast());
            });
        }
        Ok((values, places))
    }

    /// The largest (or smallest) element so far along `dim` and where it stands, the last of equals.
    pub fn running_extreme(&self, max: bool, dim: usize) -> Result<(Array, Array)> {
        check_dim(self, dim)?;
        if self.device() == Device::Wgpu {
            return self.gpu_running_extreme(max, dim);
        }
        let x = self.contiguous()?;
        let (values, places) = self.with_places(self.shape())?;
        if values.numel() > 0 {
            // SAFETY: all three have this shape and are row-major; both outputs are fresh.
            typed!(self.dtype(), T => unsafe {
                running_extreme::<T>(max, self.around(dim), x.ptr().cast(), values.ptr_mut().cast(), places.ptr_mut().cast());
            });
        }
        Ok((values, places))
    }

    /// The most frequent element along `dim`, which is not empty, and where it stands last.
    pub fn mode_along(&self, dim: usize, keepdim: bool) -> Result<(Array, Array)> {
        check_dim(self, dim)?;
        let reduced: SmallVec<[bool; 8]> = (0..self.rank()).map(|d| d == dim).collect();
        Over { reduced: &reduced, keepdim }.check_best(self)?;
        if self.device() == Device::Wgpu {
            return self.gpu_mode_along(dim, keepdim);
        }
        let x = self.contiguous()?;
        let shape = reduced_shape(self.shape(), &reduced, keepdim);
        let (values, places) = self.with_places(&shape)?;
        if values.numel() > 0 {
            // SAFETY: sizes come from the shape; both outputs are fresh.
            typed!(self.dtype(), T => unsafe {
                mode::<T>(self.around(dim), x.ptr().cast(), values.ptr_mut().cast(), places.ptr_mut().cast());
            });
        }
        Ok((values, places))
    }

    /// Running sums or products along `dim`. Floats keep their dtype (on the CPU they are added up in double precision, on a device in their
    /// own), others give int64.
    pub fn scan(&self, kind: Scan, dim: usize) -> Result<Array> {
        check_dim(self, dim)?;
        if self.device() == Device::Wgpu {
            return self.gpu_scan(kind, dim);
        }
        if let Some(made) = self.pending_scan(kind, self.around(dim))? {
            return Ok(made);
        }
        let x = self.contiguous()?;
        let out = Array::empty(self.shape(), self.summed())?;
        if out.numel() == 0 {
            return Ok(out);
        }
        // SAFETY: both have this shape and are row-major; the output is of the type that a scan writes.
        unsafe { scan(kind, self.dtype(), self.around(dim), x.ptr(), out.ptr_mut()) };
        Ok(out)
    }

    /// Softmax or its logarithm along `dim`, or, with a gradient `g`, the backward pass, for which `self` is the forward output.
    pub fn softmax(&self, pass: SoftmaxPass, dim: usize, g: Option<&Array>) -> Result<Array> {
        check_dim(self, dim)?;
        if pass.backward != g.is_some() || g.is_some_and(|g| g.shape() != self.shape() || g.dtype() != self.dtype()) {
            return Err(Error::shape("softmax: backward, and only then, there is a gradient, of the output's shape and dtype"));
        }
        if self.device() == Device::Wgpu && self.dtype().is_float() {
            return self.gpu_softmax(pass, dim, g);
        }
        let (outer, n, inner) = self.around(dim);
        let shape = Shape { outer, n, inner };
        // What may be read as it is made: the input, backward the gradient.
        let source = g.unwrap_or(self);
        if !source.storage().is_plain() && source.is_contiguous() && source.dtype() == self.dtype() {
            let y = if g.is_some() { Some(self.contiguous()?) } else { None };
            let fold: Arc<dyn Fold> = float!(self.dtype(), T => Arc::new(Rows::<T> { pass, shape, of: PhantomData }));
            if let Some(made) = source.pending_fold(|| Folding::Host(fold), y.as_slice(), self.shape(), self.dtype())? {
                return Ok(made);
            }
        }
        let x = self.contiguous()?;
        let g = g.map(Array::contiguous).transpose()?;
        let out = Array::empty(self.shape(), self.dtype())?;
        if out.numel() == 0 {
            return Ok(out);
        }
        let g = g.as_ref().map_or(std::ptr::null(), Array::ptr);
        // SAFETY: all have this shape and dtype and are row-major; `out` is fresh.
        float!(self.dtype(), T => unsafe {
            <T as Soft>::softmax(pass, shape, x.ptr().cast(), g.cast(), None, out.ptr_mut().cast());
        });
        Ok(out)
    }
}

/// A reduction that waits for somebody to look at its result.
struct Waiting {
    r: ReduceKernel,
    layout: Layout,
    reduced: SmallVec<[bool; 6]>,
}

impl Fold for Waiting {
    fn name(&self) -> &'static str {
        "a reduction"
    }

    unsafe fn run(&self, from: From<'_>, _: &[*const u8], to: *mut u8) {
        // SAFETY: the caller's; the array that is reduced is dense and begins with its storage.
        unsafe { run(&self.r, self.layout.shape(), self.layout.strides(), &self.reduced, from.elements(), to) }
    }
}

/// A softmax, or its backward pass, that waits for somebody to look at it.
struct Rows<T> {
    pass: SoftmaxPass,
    shape: Shape,
    of: PhantomData<fn(T)>,
}

impl<T: Soft> Fold for Rows<T> {
    fn name(&self) -> &'static str {
        if self.pass.log { "log_softmax" } else { "softmax" }
    }

    unsafe fn run(&self, from: From<'_>, others: &[*const u8], to: *mut u8) {
        let (from, made) = match from {
            From::Memory(p) => (p.cast(), None),
            From::Made(blocks) => (std::ptr::null(), Some(blocks)),
        };
        let (x, g) = match others {
            [y, ..] => (y.cast(), from),
            [] => (from, std::ptr::null()),
        };
        // SAFETY: the caller's.
        unsafe { T::softmax(self.pass, self.shape, x, g, made, to.cast()) }
    }
}

/// The shape that a reduction leaves.
pub fn reduced_shape(shape: &[usize], reduced: &[bool], keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (s, r) in shape.iter().zip(reduced) {
        match (r, keepdim) {
            (false, _) => out.push(*s),
            (true, true) => out.push(1),
            (true, false) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_floats_and_widen_integers() {
        let a = Array::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let s = a.sum(&[true, false], true).unwrap();
        assert_eq!((s.shape(), s.dtype()), (&[1, 3][..], DType::F32));
        assert_eq!(s.to_vec::<f32>().unwrap(), [5.0, 7.0, 9.0]);
        let t = a.with_layout(a.layout().transpose(0, 1)).unwrap();
        assert_eq!(t.sum(&[true, false], false).unwrap().to_vec::<f32>().unwrap(), [6.0, 15.0]);
        let b = Array::from_slice(&[true, true, false], &[3]).unwrap();
        let s = b.sum(&[true], false).unwrap();
        assert_eq!((s.dtype(), s.to_vec::<i64>().unwrap()), (DType::I64, vec![2]));
    }

    #[test]
    fn norms_do_not_overflow_single_precision() {
        let a = Array::from_slice(&[3e30f32, -4e30], &[2]).unwrap();
        let n = |p: f64| a.norm(p, &[true], false).unwrap().to_vec::<f32>().unwrap()[0];
        assert_eq!(n(2.0), 5e30);
        assert_eq!((n(f64::INFINITY), n(f64::NEG_INFINITY), n(0.0)), (4e30, 3e30, 2.0));
        assert!((n(1.0) / 7e30 - 1.0).abs() < 1e-6);
        assert!((n(3.0) / 4.497_941e30 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn nan_is_the_largest_and_the_smallest() {
        let a = Array::from_slice(&[1.0, f64::NAN, 3.0, 4.0], &[2, 2]).unwrap();
        for max in [true, false] {
            let v = a.extreme(max, &[false, true], false).unwrap().to_vec::<f64>().unwrap();
            assert!(v[0].is_nan() && !v[1].is_nan());
            let v = a.extreme(max, &[true, false], false).unwrap().to_vec::<f64>().unwrap();
            assert!(!v[0].is_nan() && v[1].is_nan());
        }
    }
}
