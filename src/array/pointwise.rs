//! Pointwise rows on arrays: run at once, deferred, or through the fast path for few elements.

use super::deferred::policy;
use super::result_layout;
use super::run::{device_mismatch, run_on_backend};
use super::storage::{Access, Device, INLINE, Storage};
use super::value::Array;
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::pointwise::kernels;
pub use crate::backend::cpu::pointwise::small::Numbers;
use crate::backend::cpu::pointwise::small::SmallKernel;
use crate::call::{Pointwise, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar, broadcast};
use crate::rows::{Func, Kind, MAX_PARAMS};
use smallvec::SmallVec;

/// The most elements for the fast path. For more, the overhead of the general path is negligible.
const MAX_SMALL: usize = 1 << 10;

/// Operands of one shape, in the form that small kernels take.
struct SmallOperands {
    n: usize,
    padded: bool,
    ptrs: [*const u8; kernels::MAX_INPUTS],
}

/// The result of the fast path.
pub(crate) struct SmallResult {
    storage: Storage,
    dtype: DType,
}

impl SmallResult {
    /// The result as an array of `like`'s shape.
    ///
    /// # Safety
    /// `like` was the first operand: a row-major array with as many elements.
    #[inline(always)]
    pub unsafe fn into_array_like(self, like: &Array) -> Array {
        debug_assert!(like.numel() * self.dtype.size() <= self.storage.bytes() && like.is_contiguous());
        Array { storage: self.storage, layout: like.layout.rewound(), dtype: self.dtype }
    }
}

/// Refuses what a kernel would misread: another number of operands, or another dtype of the result.
#[inline]
fn check_call(func: Func, compute: DType, out: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
    if ins.len() == func.inputs() && func.out_dtype(compute) == out && params.len() <= MAX_PARAMS {
        return Ok(());
    }
    Err(bad_call(func, compute, out, ins, params))
}

#[cold]
fn bad_call(func: Func, compute: DType, out: DType, ins: &[&Array], params: &[Scalar]) -> Error {
    Error::runtime(format!(
        "{}: expected {} operands, at most {} parameters and a result of {}, got {}, {} and {out}",
        func.row.info().name,
        func.inputs(),
        MAX_PARAMS,
        func.out_dtype(compute),
        ins.len(),
        params.len()
    ))
}

impl Array {
    /// Runs a row on operands that broadcast, computing in `compute`, with a result of `out_dtype`. Operands of other dtypes than the row expects
    /// are converted first.
    pub fn pointwise(func: Func, compute: DType, out_dtype: DType, ins: &[&Array], params: &[Scalar]) -> Result<Array> {
        let shape = Self::common_shape(ins)?;
        check_call(func, compute, out_dtype, ins, params)?;
        if policy::is_worth(&shape) {
            let layout = result_layout::of_result(&shape, ins).unwrap_or_else(|| Layout::contiguous(&shape));
            if let Some(made) = Self::pending(func, compute, out_dtype, &layout, ins, params)? {
                return Ok(made);
            }
            policy::run_abandoned();
        }
        let layout = result_layout::of_result(&shape, ins);
        let out = match (ins.iter().find(|a| !a.device().is_host()).or_else(|| ins.first()), layout) {
            (Some(on), Some(layout)) => on.empty_laid_out(layout, out_dtype)?,
            (Some(on), None) => on.empty_beside(&shape, out_dtype)?,
            (None, _) => Array::empty(&shape, out_dtype)?,
        };
        out.pointwise_now(func, compute, ins, params)?;
        Ok(out)
    }

    /// The fast path of `pointwise`, for a few floats of one layout: on the CPU, row-major, of one shape and of the dtype computed in. None for
    /// other operands. At the positions of `numbers` any of the arrays can stand.
    #[inline]
    pub fn pointwise_direct(func: Func, compute: DType, ins: &[&Array], numbers: &Numbers, params: &[Scalar; MAX_PARAMS]) -> Option<Array> {
        let first = *ins.first()?;
        // SAFETY: the first operand.
        Some(unsafe { Self::values_direct(func, compute, ins, numbers, params)?.into_array_like(first) })
    }

    /// As `pointwise_direct`, without the layout, which is that of the first operand (row-major, with the result's shape, whether or not it is
    /// read). An array is large and should not be moved needlessly.
    #[inline]
    pub(crate) fn values_direct(
        func: Func,
        compute: DType,
        ins: &[&Array],
        numbers: &Numbers,
        params: &[Scalar; MAX_PARAMS],
    ) -> Option<SmallResult> {
        let kernel = SmallKernel::of(func, compute, params)?;
        let small_operands = ins.first()?.small_operands(&kernel, compute, ins)?;
        let dtype = func.out_dtype(compute);
        let storage = Storage::alloc(small_operands.n * dtype.size()).ok()?;
        // SAFETY: every operand that is read is row-major with `n` elements of this type inside its storage, none shares the new one, and
        // padded storages have a whole block from their start on.
        unsafe {
            let (padded, out) = (small_operands.padded && storage.is_padded(), storage.memory(Access::Write));
            if numbers.is_empty() {
                kernel.run(small_operands.n, padded, out, &small_operands.ptrs, params);
            } else {
                kernel.run_with(small_operands.n, padded, out, &small_operands.ptrs, numbers, params);
            }
        }
        Some(SmallResult { storage, dtype })
    }

    /// The fast path of `pointwise_into`. Returns false, and has done nothing, if the operands' layouts differ from this array's, or pending
    /// steps still read the old values.
    #[inline]
    pub fn pointwise_direct_into(&self, func: Func, ins: &[&Array], numbers: &Numbers, params: &[Scalar; MAX_PARAMS]) -> bool {
        if func.out_dtype(self.dtype) != self.dtype {
            return false;
        }
        let Some(kernel) = SmallKernel::of(func, self.dtype, params) else { return false };
        let Some(small_operands) = self.small_operands(&kernel, self.dtype, ins) else { return false };
        if !self.fits_small_kernel(self.dtype)
            || !self.storage.is_settled_for(Access::Write)
            || self.storage.is_lent_for_reading()
            || ins.iter().any(|a| a.storage.same(&self.storage) && a.layout.offset() != self.layout.offset())
        {
            return false;
        }
        // Padding is overwritten, so all of it must belong to this array: the storage may be larger.
        let padded = small_operands.padded && self.is_padded() && self.storage.bytes() == small_operands.n * self.dtype.size();
        // SAFETY: as in `pointwise_direct`; an operand that shares this array's storage begins where it does.
        unsafe {
            if numbers.is_empty() {
                kernel.run(small_operands.n, padded, self.ptr_mut(), &small_operands.ptrs, params);
            } else {
                kernel.run_with(small_operands.n, padded, self.ptr_mut(), &small_operands.ptrs, numbers, params);
            }
        }
        true
    }

    /// The operands, if all that are read have this array's shape and can take the fast path.
    #[inline(always)]
    fn small_operands(&self, kernel: &SmallKernel, compute: DType, ins: &[&Array]) -> Option<SmallOperands> {
        // A kernel reads as many operands as its row has.
        if ins.len() != kernel.inputs() {
            return None;
        }
        let n = self.numel();
        let mut padded = kernel.pads() && kernels::LANES * compute.size() <= INLINE && n < kernels::LANES;
        let mut ptrs = [std::ptr::null(); kernels::MAX_INPUTS];
        for (k, a) in ins.iter().enumerate() {
            if kernel.reads(k) {
                if !a.layout.same_shape(&self.layout) || !a.fits_small_kernel(compute) {
                    return None;
                }
                padded = padded && a.is_padded();
                ptrs[kernel.place(k)] = a.ptr();
            }
        }
        (n.wrapping_sub(1) < MAX_SMALL).then_some(SmallOperands { n, padded, ptrs })
    }

    #[inline]
    fn fits_small_kernel(&self, dtype: DType) -> bool {
        self.dtype == dtype && self.storage.is_plain() && self.layout.is_plain()
    }

    /// Whether a whole block can be read from the first element on.
    #[inline]
    fn is_padded(&self) -> bool {
        self.layout.offset() == 0 && self.storage.is_padded()
    }

    fn common_shape(ins: &[&Array]) -> Result<Dims> {
        let [first, others @ ..] = ins else { return Ok(Dims::new()) };
        let mut shape = Dims::from_slice(first.shape());
        for a in others {
            if a.shape() != &shape[..] {
                shape = broadcast(&shape, a.shape())?;
            }
        }
        Ok(shape)
    }

    /// As `pointwise`, into this array, to whose shape the operands must broadcast. An operand may be this very array. One that overlaps it
    /// otherwise is copied first.
    pub fn pointwise_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        check_call(func, compute, self.dtype, ins, params)?;
        if (policy::is_worth(self.shape()) || !self.storage.is_plain()) && self.pending_into(func, compute, ins, params)? {
            return Ok(());
        }
        self.pointwise_now(func, compute, ins, params)
    }

    /// As `pointwise_into`, for a row that the device leaves to the host.
    fn pointwise_on_host(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        let copies: SmallVec<[Array; 3]> = ins.iter().map(|a| a.to_device(Device::CPU)).collect::<Result<_>>()?;
        let made = Array::empty(self.shape(), self.dtype())?;
        made.pointwise_into(func, compute, &copies.iter().collect::<SmallVec<[&Array; 3]>>(), params)?;
        self.copy_from(&made.to_device_of(self)?)
    }

    /// As `pointwise_into`, at once.
    fn pointwise_now(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        check_call(func, compute, self.dtype, ins, params)?;
        if func.row.info().kind == Kind::Special && !self.device().is_host() && !self.has_row(func, compute) {
            return self.pointwise_on_host(func, compute, ins, params);
        }
        ins.iter().try_for_each(|a| a.ready())?;
        self.writable()?;
        let request = Request::Pointwise(Pointwise::new(func, compute, params));
        let reads = func.reads();
        let beside = |a: &Array| a.shape() == self.shape() && !a.storage.same(&self.storage) && a.storage.is_beside(&self.storage);
        if ins.iter().enumerate().all(|(k, a)| reads & (1 << k) == 0 || beside(a)) {
            let read = |k: usize| reads & (1 << k) != 0;
            let operands: SmallVec<[Operand<'_>; 5]> =
                (0..ins.len()).map(|k| if read(k) { Operand::View(ins[k].view()) } else { Operand::Unread }).collect();
            return run_on_backend(&request, &operands, &[self]);
        }
        let clashes = |a: &Array| a.storage.same(&self.storage) && (a.layout != self.layout || a.dtype != self.dtype) && a.overlaps(self);
        let mut copies: SmallVec<[Option<Array>; 5]> = SmallVec::new();
        let mut layouts: SmallVec<[Option<Layout>; 5]> = SmallVec::new();
        for (k, a) in ins.iter().enumerate() {
            let read = reads & (1 << k) != 0 && a.storage.is_beside(&self.storage);
            copies.push(if read && clashes(a) { Some(a.contiguous_copy()?) } else { None });
            let a = copies[k].as_ref().unwrap_or(a);
            layouts.push(if !read || a.shape() == self.shape() { None } else { Some(a.layout.expand(self.shape())?) });
        }
        let mut operands: SmallVec<[Operand<'_>; 5]> = SmallVec::new();
        for k in 0..ins.len() {
            let a = copies[k].as_ref().unwrap_or(ins[k]);
            operands.push(if reads & (1 << k) == 0 {
                Operand::Unread
            } else if a.storage.is_beside(&self.storage) {
                let view = a.view();
                Operand::View(layouts[k].as_ref().map_or(view, |l| View {
                    shape: l.shape(),
                    strides: l.strides(),
                    offset: l.offset(),
                    ..view
                }))
            } else if a.device().is_host() && a.numel() == 1 {
                Operand::Number(a.first()?)
            } else {
                return Err(device_mismatch(func.row.info().name, a, self.device()));
            });
        }
        run_on_backend(&request, &operands, &[self])
    }
}
