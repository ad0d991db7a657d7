//! The arguments of the passes, from the operands of a request.

use super::pass::{Pass, Step};
use super::plan::{FftNumber, plan};
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{malformed, result, view};
use crate::backend::cpu::common::strided::collapse;
use crate::backend::cpu::elem::float;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::call::{Family, Fft, FftKind};
use crate::error::Result;
use crate::host::memory::alloc::Buffer;
use crate::host::threads::SharedPointer;
use crate::layout::Layout;
use smallvec::SmallVec;

/// Elements with any strides, in numbers of elements.
#[derive(Clone, Copy)]
struct Lines<'a> {
    at: *mut u8,
    shape: &'a [usize],
    strides: &'a [isize],
    /// Bytes of an element.
    size: usize,
}

fn lines<'a>(v: &View<'a>) -> Lines<'a> {
    Lines { at: v.ptr(), shape: v.shape, strides: v.strides, size: v.dtype.size() }
}

/// One dimension of a request.
struct OneDimension {
    step: Step,
    inverse: bool,
    dim: usize,
    conjugates: bool,
    scale: f64,
    inner: f64,
}

impl OneDimension {
    fn complex(inverse: bool, dim: usize, scale: f64) -> OneDimension {
        OneDimension { step: Step::Complex, inverse, conjugates: false, dim, scale, inner: 1.0 }
    }

    /// Transforms.
    ///
    /// # Safety
    /// As for `Pass::run`.
    unsafe fn run<T: FftNumber>(&self, from: Lines<'_>, to: Lines<'_>) -> Result<()> {
        let n = from.shape[self.dim].max(to.shape[self.dim]);
        let mut shape: SmallVec<[usize; 8]> = SmallVec::from_slice(to.shape);
        shape[self.dim] = 1;
        let is_half = matches!(self.step, Step::FromReal { .. } | Step::ToReal { all: false });
        let pass = Pass {
            step: self.step,
            plan: &*plan::<T>(is_half, n, self.inverse)?,
            n,
            along: [to.strides[self.dim] * to.size as isize, from.strides[self.dim] * from.size as isize],
            others: collapse::<2>(&shape, [to.strides, from.strides], [to.size, from.size]),
            scale: T::of(self.scale),
            conjugates: self.conjugates,
            inner: T::of(self.inner),
            to: SharedPointer::new(to.at),
            from: SharedPointer::new(from.at.cast_const()),
        };
        // SAFETY: the caller's.
        unsafe { pass.run() };
        Ok(())
    }
}

/// All dimensions. Real numbers come first or last.
///
/// # Safety
/// The views have the shapes and dtypes that the family describes, with parts of type `T`.
unsafe fn transform<T: FftNumber>(f: &Fft, x: &View<'_>, out: &View<'_>) -> Result<()> {
    let Some((&last, before)) = f.dims.split_last() else { return Err(malformed(f.name())) };
    let all = out.shape[last] == x.shape[last];
    let (from, to) = (lines(x), lines(out));
    // Between real numbers and half a spectrum each way has one sign; the other one's elements are the conjugates.
    let ends = |step, inverse| OneDimension { step, inverse, conjugates: inverse != f.inverse, dim: last, scale: f.scale, inner: f.inner };
    let complex = |dim: &usize, scale: f64| OneDimension::complex(f.inverse, *dim, scale);
    // SAFETY: of all, the caller's.
    unsafe {
        match f.kind {
            FftKind::Complex => {
                complex(&last, f.scale).run::<T>(from, to)?;
                before.iter().try_for_each(|d| complex(d, 1.0).run::<T>(to, to))
            }
            FftKind::FromReal => {
                ends(Step::FromReal { all }, false).run::<T>(from, to)?;
                before.iter().try_for_each(|d| complex(d, 1.0).run::<T>(to, to))
            }
            FftKind::ToReal => {
                let step = ends(Step::ToReal { all }, true);
                let Some((first, others)) = before.split_first() else { return step.run::<T>(from, to) };
                let memory = Buffer::new(x.numel() * x.dtype.size())?;
                let strides = Layout::contiguous_strides(x.shape);
                let between = Lines { at: memory.as_ptr(), shape: x.shape, strides: &strides, size: x.dtype.size() };
                complex(first, 1.0).run::<T>(from, between)?;
                others.iter().try_for_each(|d| complex(d, 1.0).run::<T>(between, between))?;
                step.run::<T>(between, to)
            }
        }
    }
}

impl CpuFamily for Fft {
    const NARROW: NarrowElements = NarrowElements::Taken;

    unsafe fn compute(f: &Fft, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let (x, out) = (view(f.name(), ins, 0)?, result(f, outs, 0)?);
        // SAFETY: the promises of `Backend::run` are the caller's; the family's description holds for both views.
        float!(x.dtype.row().real, T => unsafe { transform::<T>(f, &x, &out) })
    }
}
