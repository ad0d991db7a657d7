//! Array: a storage seen through a layout, with an element type. The values under every tensor.

use super::elements::Element;
use super::fusion;
use super::run::{ask, elsewhere, run_into};
use super::storage::{Access, Device, Home, INLINE, Storage};
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::direct::Direct;
pub use crate::backend::cpu::direct::Numbers;
use crate::backend::cpu::kernels;
use crate::backend::cpu::raw_slice::RawSlice;
use crate::backend::requests::{Pointwise, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar, broadcast, checked_numel};
use crate::pointwise::Func;
use smallvec::SmallVec;

/// The most elements that go the short way; beyond it the long one costs nothing beside the work.
const DIRECT: usize = 1 << 10;

/// Operands of one shape, as a kernel wants them.
struct Alike {
    n: usize,
    padded: bool,
    ptrs: [*const u8; kernels::MAX_INPUTS],
}

/// What a short way has computed.
pub(crate) struct Values {
    storage: Storage,
    dtype: DType,
}

impl Values {
    /// The values in the order of `like`.
    ///
    /// # Safety
    /// `like` was the first operand: a row-major array with as many elements.
    #[inline(always)]
    pub unsafe fn laid_out_as(self, like: &Array) -> Array {
        debug_assert!(like.numel() * self.dtype.size() <= self.storage.bytes() && like.is_contiguous());
        Array { storage: self.storage, layout: like.layout.rewound(), dtype: self.dtype }
    }
}

/// A strided view of a storage.
#[derive(Clone, Debug)]
pub struct Array {
    storage: Storage,
    layout: Layout,
    dtype: DType,
}

/// Whether every element that the layout names lies inside the storage, and there are no more elements than a size can count. Everything
/// that reads or writes an array's memory relies on it.
#[inline]
fn fits(storage: &Storage, layout: &Layout, dtype: DType) -> bool {
    layout.end().and_then(|end| end.checked_mul(storage.element_size(dtype))).is_some_and(|end| end <= storage.bytes())
}

#[cold]
fn misfit(storage: &Storage, layout: &Layout, dtype: DType) -> Error {
    Error::runtime(format!(
        "a view of shape {:?} with strides {:?} from element {} on reaches out of a storage of {} bytes of {dtype}",
        layout.shape(),
        layout.strides(),
        layout.offset(),
        storage.bytes()
    ))
}

/// Refuses what a kernel would take for something else: another number of operands, or memory of another type for the result.
#[inline]
fn check_call(func: Func, compute: DType, out: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
    if ins.len() == func.inputs() && func.out_dtype(compute) == out && params.len() <= kernels::MAX_PARAMS {
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
        kernels::MAX_PARAMS,
        func.out_dtype(compute),
        ins.len(),
        params.len()
    ))
}

impl Array {
    // ---- making ------------------------------------------------------------------------------------------------------

    /// Uninitialised, row-major.
    #[inline]
    pub fn empty(shape: &[usize], dtype: DType) -> Result<Array> {
        let n = checked_numel(shape, dtype.size())?;
        Ok(Array { storage: Storage::alloc(n * dtype.size())?, layout: Layout::contiguous(shape), dtype })
    }

    /// Uninitialised memory of a device for a dense layout that starts at 0.
    fn on_device(home: Home, layout: Layout, dtype: DType) -> Result<Array> {
        home.backend.has_dtype(dtype)?;
        let n = checked_numel(layout.shape(), home.backend.element_size(dtype))?;
        let bytes = n * home.backend.element_size(dtype);
        Array::from_parts(Storage::on_device(home, bytes)?, layout, dtype)
    }

    /// As `empty`, on a device.
    #[inline]
    pub fn empty_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        if device.is_host() { Array::empty(shape, dtype) } else { Array::on_device(Home::of(device)?, Layout::contiguous(shape), dtype) }
    }

    /// As `empty`, on the device where this array lies.
    #[inline]
    pub fn empty_beside(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        match self.storage.home() {
            None => Array::empty(shape, dtype),
            Some(home) => Array::on_device(home.clone(), Layout::contiguous(shape), dtype),
        }
    }

    /// Uninitialised on this array's device, dense, dimensions ordered as by the strides `like`.
    fn empty_ordered(&self, shape: &[usize], like: &[isize], dtype: DType) -> Result<Array> {
        let layout = Layout::dense_like(shape, like);
        match self.storage.home() {
            None => {
                let n = checked_numel(shape, dtype.size())?;
                Ok(Array { storage: Storage::alloc(n * dtype.size())?, layout, dtype })
            }
            Some(home) => Array::on_device(home.clone(), layout, dtype),
        }
    }

    /// Uninitialised with this array's shape and order of dimensions.
    pub fn empty_like(&self, dtype: DType) -> Result<Array> {
        if self.layout.is_contiguous() {
            self.empty_beside(self.shape(), dtype)
        } else {
            self.empty_ordered(self.shape(), self.strides(), dtype)
        }
    }

    /// As `full`, on a device.
    pub fn full_on(device: Device, shape: &[usize], value: Scalar, dtype: DType) -> Result<Array> {
        let a = Array::empty_on(device, shape, dtype)?;
        a.fill(value)?;
        Ok(a)
    }

    /// As `full`, on the device where this array lies.
    pub fn full_beside(&self, shape: &[usize], value: Scalar, dtype: DType) -> Result<Array> {
        let a = self.empty_beside(shape, dtype)?;
        a.fill(value)?;
        Ok(a)
    }

    pub fn full(shape: &[usize], value: Scalar, dtype: DType) -> Result<Array> {
        let a = Array::empty(shape, dtype)?;
        a.fill(value)?;
        Ok(a)
    }

    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::full(shape, Scalar::Int(0), dtype)
    }

    /// A 0-d array.
    #[inline]
    pub fn scalar(value: Scalar, dtype: DType) -> Result<Array> {
        let a = Array::empty(&[], dtype)?;
        a.fill(value)?;
        Ok(a)
    }

    /// A copy of a slice, row-major.
    pub fn from_slice<T: Element>(data: &[T], shape: &[usize]) -> Result<Array> {
        let a = Array::empty(shape, T::DTYPE)?;
        if a.numel() != data.len() {
            return Err(Error::shape(format!("{} values do not fill shape {shape:?}", data.len())));
        }
        // SAFETY: `a` is fresh, contiguous and as long as `data`.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), a.ptr_mut().cast(), data.len()) };
        Ok(a)
    }

    /// A view of a storage.
    ///
    /// # Errors
    /// The layout reaches out of the storage, or has sizes or strides that none can have.
    #[inline]
    pub fn from_parts(storage: Storage, layout: Layout, dtype: DType) -> Result<Array> {
        if fits(&storage, &layout, dtype) { Ok(Array { storage, layout, dtype }) } else { Err(misfit(&storage, &layout, dtype)) }
    }

    /// As `from_parts`, where the layout is known to fit.
    ///
    /// # Safety
    /// `from_parts` would not fail.
    #[inline]
    pub(super) unsafe fn from_parts_unchecked(storage: Storage, layout: Layout, dtype: DType) -> Array {
        debug_assert!(fits(&storage, &layout, dtype), "{}", misfit(&storage, &layout, dtype));
        Array { storage, layout, dtype }
    }

    /// The same storage through another layout (a zero-copy view).
    ///
    /// # Errors
    /// As for `from_parts`.
    #[inline]
    pub fn with_layout(&self, layout: Layout) -> Result<Array> {
        if fits(&self.storage, &layout, self.dtype) {
            Ok(Array { storage: self.storage.clone(), layout, dtype: self.dtype })
        } else {
            Err(misfit(&self.storage, &layout, self.dtype))
        }
    }

    // ---- asking ------------------------------------------------------------------------------------------------------

    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    #[inline]
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    #[inline]
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    #[inline]
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// Whether this array's backend has a kernel for a row, or a part of it, that computes in `dtype`.
    pub fn has_row(&self, func: Func, dtype: DType) -> bool {
        self.storage.backend().has_row(func, dtype)
    }

    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Computes what is pending in this array's memory.
    ///
    /// # Errors
    /// Memory for the results is not to be had.
    #[inline]
    pub fn ready(&self) -> Result<()> {
        self.storage.settle(Access::Read)
    }

    /// The first element, for reading.
    #[inline]
    pub fn ptr(&self) -> *const u8 {
        // The offset lies inside the storage by construction (or the array is empty).
        self.storage.memory(Access::Read).wrapping_add(self.layout.offset() * self.dtype.size())
    }

    /// The first element, for writing.
    #[inline]
    pub fn ptr_mut(&self) -> *mut u8 {
        self.storage.memory(Access::Write).wrapping_add(self.layout.offset() * self.dtype.size())
    }

    /// Settles the memory for a write.
    ///
    /// # Errors
    /// As for `Storage::settle`; the memory is somebody else's, who lent it for reading only.
    #[inline]
    pub(super) fn writable(&self) -> Result<()> {
        if self.storage.is_lent_for_reading() {
            return Err(Error::runtime("the memory of this array was lent for reading only; write to a copy of it"));
        }
        self.storage.settle(Access::Write)
    }

    /// Whether writes to one may be seen through the other.
    pub fn overlaps(&self, other: &Array) -> bool {
        if !self.storage.same(&other.storage) {
            return false;
        }
        let bytes = |a: &Array| {
            let ((lo, hi), size) = (a.layout.extent(), a.storage.element_size(a.dtype));
            (lo * size, hi * size)
        };
        let ((a, b), (c, d)) = (bytes(self), bytes(other));
        a < d && c < b
    }

    /// Whether both are dense, share memory, and are not the same element for element.
    pub fn overlaps_partly(&self, other: &Array) -> bool {
        self.storage.same(&other.storage)
            && (self.layout != other.layout || self.dtype != other.dtype)
            && self.overlaps(other)
            && self.layout.is_dense()
            && other.layout.is_dense()
    }

    // ---- copying -----------------------------------------------------------------------------------------------------

    /// Writes one value everywhere.
    #[inline]
    pub fn fill(&self, value: Scalar) -> Result<()> {
        run_into(&Request::Fill(value), &[], &[self])
    }

    /// Copies `src`, broadcast to this shape, converted to this dtype and brought to this device. Overlapping memory is copied through a
    /// temporary.
    pub fn copy_from(&self, src: &Array) -> Result<()> {
        if !self.storage.is_beside(&src.storage) {
            return self.copy_from(&src.to_device_of(self)?);
        }
        let layout = if src.shape() == self.shape() { src.layout.clone() } else { src.layout.expand(self.shape())? };
        if self.overlaps(src) {
            if self.layout == layout && self.dtype == src.dtype {
                return Ok(());
            }
            let copied = src.contiguous_copy()?;
            return self.copy_from(&copied);
        }
        src.ready()?;
        self.writable()?;
        let from = View { shape: layout.shape(), strides: layout.strides(), offset: layout.offset(), ..src.view() };
        ask(&Request::Copy, &[Operand::View(from)], &[self])
    }

    /// A copy on another device, with the same order of dimensions where it is dense; itself if it is there already.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        if self.device() == device {
            return Ok(self.clone());
        }
        if device.is_host() { self.download() } else { self.upload(Home::of(device)?) }
    }

    /// A copy beside `other`; itself if it lies on the same device.
    pub fn to_device_of(&self, other: &Array) -> Result<Array> {
        match other.storage.home() {
            _ if self.storage.is_beside(&other.storage) => Ok(self.clone()),
            None => self.download(),
            Some(home) => self.upload(home.clone()),
        }
    }

    fn upload(&self, home: Home) -> Result<Array> {
        if !self.device().is_host() {
            return self.download()?.upload(home);
        }
        home.backend.has_dtype(self.dtype)?;
        let dense = if self.layout.is_dense() && self.layout.offset() == 0 { self.clone() } else { self.clone_dense()? };
        let out = Array::on_device(home, dense.layout.clone(), self.dtype)?;
        let n = self.numel();
        if n > 0
            && let Some(to) = out.storage.device_memory()
        {
            dense.ready()?;
            // SAFETY: the layout is dense and starts at 0, so the storage begins with n initialised elements of this dtype.
            let bytes = unsafe { RawSlice::new(dense.storage.memory(Access::Read), n * self.dtype.size()) };
            out.storage.backend().upload(bytes, self.dtype, to)?;
        }
        Ok(out)
    }

    fn download(&self) -> Result<Array> {
        self.ready()?;
        let dense = if self.layout.is_dense() { self.clone() } else { self.contiguous_copy()? };
        let (start, n) = (dense.layout.offset(), self.numel());
        let out = Array::from_parts(Storage::alloc(n * self.dtype.size())?, dense.layout.rewound(), self.dtype)?;
        dense.ready()?;
        if n > 0
            && let Some(from) = dense.storage.device_memory()
        {
            // SAFETY: the layout is dense, so n elements lie behind one another there; the new storage has room for them.
            unsafe { dense.storage.backend().download(from, start, n, self.dtype, out.storage.memory(Access::Write))? };
        }
        Ok(out)
    }

    /// A new row-major array with the same values.
    pub fn contiguous_copy(&self) -> Result<Array> {
        let out = self.empty_beside(self.shape(), self.dtype)?;
        out.copy_from(self)?;
        Ok(out)
    }

    /// A new array with the same values and order of dimensions.
    pub fn clone_dense(&self) -> Result<Array> {
        let out = self.empty_like(self.dtype)?;
        out.copy_from(self)?;
        Ok(out)
    }

    /// Itself, nothing of it pending, if row-major, else a row-major copy.
    pub fn contiguous(&self) -> Result<Array> {
        self.ready()?;
        if self.is_contiguous() { Ok(self.clone()) } else { self.contiguous_copy() }
    }

    /// Itself if of this dtype, else a converted copy, which may be pending.
    pub fn converted(&self, dtype: DType) -> Result<Array> {
        if dtype != self.dtype && fusion::is_worth(self.shape()) {
            if let Some(made) = self.pending_cast(dtype)? {
                return Ok(made);
            }
            fusion::run_left();
        }
        self.cast(dtype)
    }

    /// Itself if of this dtype, else a converted copy.
    pub fn cast(&self, dtype: DType) -> Result<Array> {
        if dtype == self.dtype {
            return Ok(self.clone());
        }
        let out = self.empty_like(dtype)?;
        out.copy_from(self)?;
        Ok(out)
    }

    // ---- pointwise ---------------------------------------------------------------------------------------------------

    /// Runs a row on operands that are broadcast together, computing in `compute` and giving `out_dtype`. Operands of another dtype
    /// than the row reads at their place are converted first.
    pub fn pointwise(func: Func, compute: DType, out_dtype: DType, ins: &[&Array], params: &[Scalar]) -> Result<Array> {
        let shape = Self::common_shape(ins)?;
        check_call(func, compute, out_dtype, ins, params)?;
        let like = ins.iter().find(|a| a.shape() == &shape[..]);
        if fusion::is_worth(&shape) {
            let layout = match like {
                Some(a) if !a.is_contiguous() => Layout::dense_like(&shape, a.strides()),
                _ => Layout::contiguous(&shape),
            };
            if let Some(made) = Self::pending(func, compute, out_dtype, &layout, ins, params)? {
                return Ok(made);
            }
            fusion::run_left();
        }
        let out = if let Some(on) = ins.iter().find(|a| !a.device().is_host()) {
            match like {
                Some(a) if a.device() == on.device() => a.empty_like(out_dtype)?,
                _ => on.empty_beside(&shape, out_dtype)?,
            }
        } else {
            match like {
                Some(a) if !a.is_contiguous() => a.empty_like(out_dtype)?,
                _ => Array::empty(&shape, out_dtype)?,
            }
        };
        out.pointwise_now(func, compute, ins, params)?;
        Ok(out)
    }

    /// `pointwise` the short way, for a few floats that lie alike: on the CPU, row-major, of one shape and of the type computed in, which
    /// is also the result's. None where the operands are not so.
    /// In the places of `numbers` any of the arrays can stand.
    #[inline]
    pub fn pointwise_direct(
        func: Func,
        compute: DType,
        ins: &[&Array],
        numbers: &Numbers,
        params: &[Scalar; kernels::MAX_PARAMS],
    ) -> Option<Array> {
        let first = *ins.first()?;
        // SAFETY: the first operand.
        Some(unsafe { Self::values_direct(func, compute, ins, numbers, params)?.laid_out_as(first) })
    }

    /// `pointwise_direct`, but for the layout, which is that of the first operand (read or not, it is row-major and has the results' shape): an
    /// array is large, and should be moved little.
    #[inline]
    pub(crate) fn values_direct(
        func: Func,
        compute: DType,
        ins: &[&Array],
        numbers: &Numbers,
        params: &[Scalar; kernels::MAX_PARAMS],
    ) -> Option<Values> {
        let direct = Direct::of(func, compute, params)?;
        let alike = ins.first()?.alike(&direct, compute, ins)?;
        let storage = Storage::alloc(alike.n * compute.size()).ok()?;
        // SAFETY: every operand that is read is row-major with `n` elements of this type inside its storage, none shares the new one, and
        // padded storages have a whole block from their start on.
        unsafe {
            let (padded, out) = (alike.padded && storage.is_padded(), storage.memory(Access::Write));
            if numbers.is_empty() {
                direct.run(alike.n, padded, out, &alike.ptrs, params);
            } else {
                direct.run_with(alike.n, padded, out, &alike.ptrs, numbers, params);
            }
        }
        Some(Values { storage, dtype: compute })
    }

    /// `pointwise_into` the short way; false, and nothing done, where the operands do not lie as this array does.
    #[inline]
    pub fn pointwise_direct_into(&self, func: Func, ins: &[&Array], params: &[Scalar; kernels::MAX_PARAMS]) -> bool {
        let Some(direct) = Direct::of(func, self.dtype, params) else { return false };
        let Some(alike) = self.alike(&direct, self.dtype, ins) else { return false };
        if !self.is_direct(self.dtype)
            || self.storage.is_lent_for_reading()
            || ins.iter().any(|a| a.storage.same(&self.storage) && a.layout.offset() != self.layout.offset())
        {
            return false;
        }
        // SAFETY: as in `pointwise_direct`; an operand that shares this array's storage begins where it does.
        unsafe { direct.run(alike.n, alike.padded && self.is_padded(), self.ptr_mut(), &alike.ptrs, params) };
        true
    }

    /// The operands, if all that are read can go the short way and have this array's shape.
    #[inline]
    fn alike(&self, direct: &Direct, compute: DType, ins: &[&Array]) -> Option<Alike> {
        // Kernels read as many operands as their row has.
        if ins.len() != direct.inputs() {
            return None;
        }
        let n = self.numel();
        let mut padded = kernels::LANES * compute.size() <= INLINE && n < kernels::LANES;
        let mut ptrs = [std::ptr::null(); kernels::MAX_INPUTS];
        for (k, a) in ins.iter().enumerate() {
            if direct.reads(k) {
                if !a.layout.same_shape(&self.layout) || !a.is_direct(compute) {
                    return None;
                }
                padded = padded && a.is_padded();
                ptrs[direct.place(k)] = a.ptr();
            }
        }
        (n.wrapping_sub(1) < DIRECT).then_some(Alike { n, padded, ptrs })
    }

    #[inline]
    fn is_direct(&self, dtype: DType) -> bool {
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

    /// As `pointwise`, into this array, whose shape the operands must broadcast to. An operand may be this very array; one that
    /// overlaps it otherwise is copied first.
    pub fn pointwise_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        check_call(func, compute, self.dtype, ins, params)?;
        if (fusion::is_worth(self.shape()) || !self.storage.is_plain()) && self.pending_into(func, compute, ins, params)? {
            return Ok(());
        }
        self.pointwise_now(func, compute, ins, params)
    }

    /// As `pointwise_into`, at once.
    fn pointwise_now(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        check_call(func, compute, self.dtype, ins, params)?;
        ins.iter().try_for_each(|a| a.ready())?;
        self.writable()?;
        let request = Request::Pointwise(Pointwise::new(func, compute, params));
        let reads = func.reads();
        let beside = |a: &Array| a.shape() == self.shape() && !a.storage.same(&self.storage) && a.storage.is_beside(&self.storage);
        if ins.iter().enumerate().all(|(k, a)| reads & (1 << k) == 0 || beside(a)) {
            let read = |k: usize| reads & (1 << k) != 0;
            let operands: SmallVec<[Operand<'_>; 5]> =
                (0..ins.len()).map(|k| if read(k) { Operand::View(ins[k].view()) } else { Operand::Unread }).collect();
            return ask(&request, &operands, &[self]);
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
                return Err(elsewhere(func.row.info().name, a, self.device()));
            });
        }
        ask(&request, &operands, &[self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_convert_and_broadcast() {
        let a = Array::from_slice(&[1.5f32, -2.0, 0.0], &[3]).unwrap();
        let b = Array::empty(&[2, 3], DType::I64).unwrap();
        b.copy_from(&a).unwrap();
        assert_eq!(b.to_vec::<i64>().unwrap(), [1, -2, 0, 1, -2, 0]);
        assert_eq!(a.cast(DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true, true, false]);
    }

    #[test]
    fn overlapping_copies_see_the_old_values() {
        let a = Array::from_slice(&[1i64, 2, 3, 4], &[4]).unwrap();
        let to = a.with_layout(a.layout().narrow(0, 1, 3).unwrap()).unwrap();
        let from = a.with_layout(a.layout().narrow(0, 0, 3).unwrap()).unwrap();
        to.copy_from(&from).unwrap();
        assert_eq!(a.to_vec::<i64>().unwrap(), [1, 1, 2, 3]);
    }
}
