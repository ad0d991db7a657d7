//! Array: a storage with a layout and a dtype. The value of every tensor of level 0.

use super::deferred::policy;
use super::run::run_on_backend;
use super::storage::{Access, Device, DeviceHandle, Storage};
use crate::backend::contract::{Operand, View};
use crate::call::{self, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Element, Layout, MAX_DIMS, MemoryFormat, Scalar, Strides, check_rank, checked_numel};
use crate::rows::Func;

/// A strided view of a storage. The layout fits the storage: `from_parts` checks that, and all other constructors guarantee it.
#[derive(Clone, Debug)]
pub struct Array {
    pub(super) storage: Storage,
    pub(super) layout: Layout,
    pub(super) dtype: DType,
}

/// Whether all elements of the layout are inside the storage, and their number fits a size. All accesses to an array's memory rely on it. No
/// array has more than `MAX_DIMS` dimensions: recursion over them ends soon.
#[inline]
fn fits(storage: &Storage, layout: &Layout, dtype: DType) -> bool {
    layout.rank() <= MAX_DIMS
        && layout.end().and_then(|end| end.checked_mul(storage.element_size(dtype))).is_some_and(|end| end <= storage.bytes())
}

#[cold]
fn misfit(storage: &Storage, layout: &Layout, dtype: DType) -> Error {
    if let Err(e) = check_rank(layout.rank()) {
        return e.into();
    }
    Error::runtime(format!(
        "a view of shape {:?} with strides {:?} from element {} on reaches out of a storage of {} bytes of {dtype}",
        layout.shape(),
        layout.strides(),
        layout.offset(),
        storage.bytes()
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
    pub(super) fn on_device(device_handle: DeviceHandle, layout: Layout, dtype: DType) -> Result<Array> {
        device_handle.backend.has_dtype(dtype)?;
        let n = checked_numel(layout.shape(), device_handle.backend.element_size(dtype))?;
        let bytes = n * device_handle.backend.element_size(dtype);
        Array::from_parts(Storage::on_device(device_handle, bytes, dtype)?, layout, dtype)
    }

    /// As `empty`, on a device.
    #[inline]
    pub fn empty_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        if device.is_host() {
            Array::empty(shape, dtype)
        } else {
            Array::on_device(DeviceHandle::of(device)?, Layout::contiguous(shape), dtype)
        }
    }

    /// As `empty`, on this array's device.
    #[inline]
    pub fn empty_beside(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        match self.storage.device_handle() {
            None => Array::empty(shape, dtype),
            Some(device_handle) => Array::on_device(device_handle.clone(), Layout::contiguous(shape), dtype),
        }
    }

    /// Uninitialised on this array's device, dense, dimensions ordered as by the strides `like`.
    fn empty_ordered(&self, shape: &[usize], like: &[isize], dtype: DType) -> Result<Array> {
        self.empty_laid_out(Layout::dense_like(shape, like), dtype)
    }

    /// Uninitialised on this array's device, with a dense layout.
    pub(super) fn empty_laid_out(&self, layout: Layout, dtype: DType) -> Result<Array> {
        match self.storage.device_handle() {
            None => {
                let n = checked_numel(layout.shape(), dtype.size())?;
                Ok(Array { storage: Storage::alloc(n * dtype.size())?, layout, dtype })
            }
            Some(device_handle) => Array::on_device(device_handle.clone(), layout, dtype),
        }
    }

    /// Uninitialised, with its elements in the order of a memory format.
    pub(super) fn empty_in(&self, shape: &[usize], dtype: DType, format: MemoryFormat) -> Result<Array> {
        let Some(order) = format.order(shape.len()) else { return self.empty_beside(shape, dtype) };
        // The places in the order are strides enough for `dense_like`, which sorts them.
        let mut strides = Strides::from_elem(0, shape.len());
        order.iter().rev().enumerate().for_each(|(place, d)| strides[*d] = place as isize + 1);
        self.empty_ordered(shape, &strides, dtype)
    }

    /// The array itself, or, if another one's strides say that channels come last, a copy in that order.
    pub fn in_format_of(self, like: &Array) -> Result<Array> {
        let format = like.layout.suggested_format();
        if format == MemoryFormat::Contiguous || self.rank() != like.rank() { Ok(self) } else { self.copy_in(format) }
    }

    /// Uninitialised with this array's shape and order of dimensions.
    pub fn empty_like(&self, dtype: DType) -> Result<Array> {
        if self.layout.is_contiguous() {
            self.empty_beside(self.shape(), dtype)
        } else {
            self.empty_ordered(self.shape(), self.strides(), dtype)
        }
    }

    /// As `empty_like`, on a device.
    pub fn empty_like_on(&self, device: Device, dtype: DType) -> Result<Array> {
        if device == self.device() {
            return self.empty_like(dtype);
        }
        let layout = if self.is_contiguous() { Layout::contiguous(self.shape()) } else { Layout::dense_like(self.shape(), self.strides()) };
        if device.is_host() {
            let n = checked_numel(self.shape(), dtype.size())?;
            return Ok(Array { storage: Storage::alloc(n * dtype.size())?, layout, dtype });
        }
        Array::on_device(DeviceHandle::of(device)?, layout, dtype)
    }

    /// As `full`, on a device.
    pub fn full_on(device: Device, shape: &[usize], value: Scalar, dtype: DType) -> Result<Array> {
        let a = Array::empty_on(device, shape, dtype)?;
        a.fill(value)?;
        Ok(a)
    }

    /// As `full`, on this array's device.
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

    /// The same storage as elements of another dtype, through another layout.
    ///
    /// # Errors
    /// As for `from_parts`.
    pub fn with_parts(&self, layout: Layout, dtype: DType) -> Result<Array> {
        Array::from_parts(self.storage.clone(), layout, dtype)
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
    /// Memory for the results cannot be allocated.
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
    /// As for `Storage::settle`; or the memory is external and read-only.
    #[inline]
    pub(super) fn writable(&self) -> Result<()> {
        if self.storage.is_lent_for_reading() {
            return Err(Error::runtime("the memory of this array was lent for reading only; write to a copy of it"));
        }
        self.storage.settle(Access::Write)
    }

    /// Whether a write to one may be visible through the other.
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
        self.writable()?;
        run_on_backend(&Request::Fill(call::Fill(value)), &[], &[self])
    }

    /// Copies `src`, broadcast to this shape and converted to this dtype and device. Overlapping memory is copied through a temporary.
    pub fn copy_from(&self, src: &Array) -> Result<()> {
        if !self.storage.is_beside(&src.storage) {
            return self.copy_from(&src.brought_to(self)?);
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
        run_on_backend(&Request::Copy(call::Copying), &[Operand::View(from)], &[self])
    }

    /// The values on the device of `to`, converted to its dtype before they go if the device does not have theirs.
    pub fn brought_to(&self, to: &Array) -> Result<Array> {
        match to.storage.backend().has_dtype(self.dtype) {
            Ok(()) => self.to_device_of(to),
            Err(_) => self.converted(to.dtype)?.to_device_of(to),
        }
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

    /// A copy with its elements in the order of a memory format, whose rank the array has, or more with dimensions that lead.
    pub fn copy_in(&self, format: MemoryFormat) -> Result<Array> {
        match (format, format.order(self.rank())) {
            (MemoryFormat::Preserve, _) => self.clone_dense(),
            (_, None) => self.contiguous_copy(),
            (_, Some(order)) => {
                let copy = self.with_layout(self.layout.permute(&order))?.contiguous_copy()?;
                let mut back = order.clone();
                order.iter().enumerate().for_each(|(i, d)| back[*d] = i);
                copy.with_layout(copy.layout.permute(&back))
            }
        }
    }

    /// The array itself, computed, if row-major; else a row-major copy.
    pub fn contiguous(&self) -> Result<Array> {
        self.ready()?;
        if self.is_contiguous() { Ok(self.clone()) } else { self.contiguous_copy() }
    }

    /// The array itself if of this dtype, else a converted copy, which may be pending.
    pub fn converted(&self, dtype: DType) -> Result<Array> {
        if dtype != self.dtype && policy::is_worth(self.shape()) {
            if let Some(made) = self.pending_cast(dtype)? {
                return Ok(made);
            }
            policy::run_abandoned();
        }
        self.cast(dtype)
    }

    /// The array itself if of this dtype, else a converted copy.
    pub fn cast(&self, dtype: DType) -> Result<Array> {
        if dtype == self.dtype {
            return Ok(self.clone());
        }
        let out = self.empty_like(dtype)?;
        out.copy_from(self)?;
        Ok(out)
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
