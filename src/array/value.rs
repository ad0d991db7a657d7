//! Array: a storage seen through a layout, with an element type. The values under every tensor.

use super::fusion;
use super::gpu;
use super::storage::{Access, Device, INLINE, Storage};
use crate::backend::cpu::direct::Direct;
use crate::backend::cpu::pointwise::Operand;
use crate::backend::cpu::{copy, kernels, pointwise};
use crate::backend::wgpu;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Scalar, Strides, broadcast, checked_numel};
use crate::pointwise::Func;
use smallvec::SmallVec;

/// A Rust type that is the element of some dtype.
pub trait Element: Copy + Default + PartialEq + PartialOrd + Send + Sync + std::fmt::Debug + 'static {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
elements!(bool => Bool, u8 => U8, i32 => I32, i64 => I64, f32 => F32, f64 => F64);

/// The most elements that go the short way; beyond it the long one costs nothing beside the work.
const DIRECT: usize = 1 << 10;

/// Operands of one shape, as a kernel wants them.
struct Alike {
    n: usize,
    padded: bool,
    ptrs: [*const u8; kernels::MAX_INPUTS],
}

/// What a short way has computed.
pub struct Values {
    storage: Storage,
    dtype: DType,
}

impl Values {
    /// The values in the order of `like`, a row-major array.
    #[inline(always)]
    pub fn laid_out_as(self, like: &Array) -> Array {
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

impl Array {
    // ---- making ------------------------------------------------------------------------------------------------------

    /// Uninitialised, row-major.
    #[inline]
    pub fn empty(shape: &[usize], dtype: DType) -> Result<Array> {
        let n = checked_numel(shape, dtype.size())?;
        Ok(Array { storage: Storage::alloc(n * dtype.size())?, layout: Layout::contiguous(shape), dtype })
    }

    /// As `empty`, on a device.
    #[inline]
    pub fn empty_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        match device {
            Device::Cpu => Array::empty(shape, dtype),
            Device::Wgpu => gpu::empty(&wgpu::Context::current()?, Layout::contiguous(shape), dtype),
        }
    }

    /// As `empty`, on the device where this array lies.
    #[inline]
    pub fn empty_beside(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        match self.storage.context() {
            None => Array::empty(shape, dtype),
            Some(c) => gpu::empty(c, Layout::contiguous(shape), dtype),
        }
    }

    /// Uninitialised on this array's device, dense, dimensions ordered as by the strides `like`.
    fn empty_ordered(&self, shape: &[usize], like: &[isize], dtype: DType) -> Result<Array> {
        let layout = Layout::dense_like(shape, like);
        match self.storage.context() {
            None => {
                let n = checked_numel(shape, dtype.size())?;
                Ok(Array { storage: Storage::alloc(n * dtype.size())?, layout, dtype })
            }
            Some(c) => gpu::empty(c, layout, dtype),
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

    /// A view of a storage. The layout must stay inside it.
    pub fn from_parts(storage: Storage, layout: Layout, dtype: DType) -> Array {
        debug_assert!(layout.extent().1 * storage.element_size(dtype) <= storage.bytes());
        Array { storage, layout, dtype }
    }

    /// The same storage through another layout (a zero-copy view).
    #[inline]
    pub fn with_layout(&self, layout: Layout) -> Array {
        Array::from_parts(self.storage.clone(), layout, self.dtype)
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

    /// The elements of a contiguous array, or None if it is strided, of another dtype or on a device.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if self.dtype != T::DTYPE || !self.is_contiguous() || self.device() != Device::Cpu {
            return None;
        }
        let n = self.numel();
        if n == 0 {
            return Some(&[]);
        }
        // SAFETY: n initialised elements of T from here on; nobody writes while a caller reads (the callers are kernels and tests
        // that hold the inputs of a running operation).
        Some(unsafe { std::slice::from_raw_parts(self.ptr().cast(), n) })
    }

    /// All elements in row-major order, converted to T's dtype. Waits for a device.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let a = self.to_device(Device::Cpu)?.cast(T::DTYPE)?.contiguous()?;
        a.ready()?;
        Ok(a.as_slice::<T>().map(<[T]>::to_vec).unwrap_or_default())
    }

    /// The element at the start of the layout. Waits for a device.
    pub fn first(&self) -> Result<Scalar> {
        debug_assert!(self.numel() > 0);
        if self.device() != Device::Cpu {
            let one = Layout::from_parts(Dims::new(), Strides::new(), self.layout.offset());
            return self.with_layout(one).to_device(Device::Cpu)?.first();
        }
        self.ready()?;
        let p = self.ptr();
        // SAFETY: at least one element of this dtype is there; alignment holds for every storage and offset.
        Ok(unsafe {
            match self.dtype {
                DType::Bool => Scalar::Bool(*p != 0),
                DType::U8 => Scalar::Int(i64::from(*p)),
                DType::I32 => Scalar::Int(i64::from(*p.cast::<i32>())),
                DType::I64 => Scalar::Int(*p.cast::<i64>()),
                DType::F32 => Scalar::Float(f64::from(*p.cast::<f32>())),
                DType::F64 => Scalar::Float(*p.cast::<f64>()),
            }
        })
    }

    /// Whether writes to one may be seen through the other.
    pub fn overlaps(&self, other: &Array) -> bool {
        if !self.storage.same(&other.storage) {
            return false;
        }
        let bytes = |a: &Array| {
            let (lo, hi) = a.layout.extent();
            (lo * a.dtype.size(), hi * a.dtype.size())
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
        self.storage.settle(Access::Write)?;
        if let Some(v) = self.on_gpu() {
            return wgpu::copy::fill(v, value);
        }
        // SAFETY: the layout stays inside the storage.
        unsafe { copy::fill(self.dtype, self.shape(), self.ptr_mut(), self.strides(), value) };
        Ok(())
    }

    /// Copies `src`, broadcast to this shape, converted to this dtype and brought to this device. Overlapping memory is copied through a
    /// temporary.
    pub fn copy_from(&self, src: &Array) -> Result<()> {
        if self.device() != src.device() {
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
        self.storage.settle(Access::Write)?;
        if let (Some(to), Some(from)) = (self.on_gpu(), src.on_gpu()) {
            return wgpu::copy::copy(to, wgpu::View { shape: to.shape, strides: layout.strides(), offset: layout.offset(), ..from });
        }
        // SAFETY: both layouts stay inside their storages, shapes agree, and the memory does not overlap.
        unsafe {
            copy::copy(
                src.dtype,
                self.dtype,
                self.shape(),
                src.storage.memory(Access::Read).wrapping_add(layout.offset() * src.dtype.size()),
                layout.strides(),
                self.ptr_mut(),
                self.strides(),
            );
        }
        Ok(())
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
        let out = if let Some(on) = ins.iter().find(|a| a.device() != Device::Cpu) {
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
        out.run_into(func, compute, ins, params)?;
        Ok(out)
    }

    /// `pointwise` the short way, for a few floats that lie alike: on the CPU, row-major, of one shape and of the type computed in, which
    /// is also the result's. None where the operands are not so.
    #[inline]
    pub fn pointwise_direct(func: Func, compute: DType, ins: &[&Array], params: &[Scalar; kernels::MAX_PARAMS]) -> Option<Array> {
        Some(Self::values_direct(func, compute, ins, params)?.laid_out_as(ins[0]))
    }

    /// `pointwise_direct`, but for the layout, which is that of the first operand: an array is large, and should be moved little.
    #[inline]
    pub fn values_direct(func: Func, compute: DType, ins: &[&Array], params: &[Scalar; kernels::MAX_PARAMS]) -> Option<Values> {
        let direct = Direct::of(func, compute)?;
        let alike = ins[0].alike(&direct, compute, ins)?;
        let storage = Storage::alloc(alike.n * compute.size()).ok()?;
        // SAFETY: every operand that is read is row-major with `n` elements of this type inside its storage, none shares the new one, and
        // padded storages have a whole block from their start on.
        unsafe { direct.run(alike.n, alike.padded && storage.is_padded(), storage.memory(Access::Write), &alike.ptrs, params) };
        Some(Values { storage, dtype: compute })
    }

    /// `pointwise_into` the short way; false, and nothing done, where the operands do not lie as this array does.
    #[inline]
    pub fn pointwise_direct_into(&self, func: Func, ins: &[&Array], params: &[Scalar; kernels::MAX_PARAMS]) -> bool {
        let Some(direct) = Direct::of(func, self.dtype) else { return false };
        let Some(alike) = self.alike(&direct, self.dtype, ins) else { return false };
        if !self.is_direct(self.dtype) || ins.iter().any(|a| a.storage.same(&self.storage) && a.layout.offset() != self.layout.offset()) {
            return false;
        }
        // SAFETY: as in `pointwise_direct`; an operand that shares this array's storage begins where it does.
        unsafe { direct.run(alike.n, alike.padded && self.is_padded(), self.ptr_mut(), &alike.ptrs, params) };
        true
    }

    /// The operands, if all that are read can go the short way and have this array's shape.
    #[inline]
    fn alike(&self, direct: &Direct, compute: DType, ins: &[&Array]) -> Option<Alike> {
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
        let mut shape = Dims::from_slice(ins[0].shape());
        for a in &ins[1..] {
            if a.shape() != &shape[..] {
                shape = broadcast(&shape, a.shape())?;
            }
        }
        Ok(shape)
    }

    /// As `pointwise`, into this array, whose shape the operands must broadcast to. An operand may be this very array; one that
    /// overlaps it otherwise is copied first.
    pub fn pointwise_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        if (fusion::is_worth(self.shape()) || !self.storage.is_plain()) && self.pending_into(func, compute, ins, params)? {
            return Ok(());
        }
        self.run_into(func, compute, ins, params)
    }

    /// As `pointwise_into`, at once.
    fn run_into(&self, func: Func, compute: DType, ins: &[&Array], params: &[Scalar]) -> Result<()> {
        ins.iter().try_for_each(|a| a.ready())?;
        self.storage.settle(Access::Write)?;
        if self.device() != Device::Cpu {
            return self.gpu_pointwise_into(func, compute, ins, params);
        }
        let reads = func.reads();
        let plain = |k: usize, a: &Array| reads & (1 << k) == 0 || (a.shape() == self.shape() && !a.storage.same(&self.storage));
        if ins.iter().enumerate().all(|(k, a)| plain(k, a)) {
            let operands: SmallVec<[Operand<'_>; 5]> = ins
                .iter()
                .enumerate()
                .map(|(k, a)| {
                    let ptr = if reads & (1 << k) != 0 { a.ptr() } else { std::ptr::null() };
                    Operand { ptr, strides: a.strides(), dtype: a.dtype }
                })
                .collect();
            // SAFETY: every operand that is read has this shape, stays inside its storage, and shares no memory with this array.
            return unsafe { pointwise::run(func, compute, self.shape(), self.ptr_mut(), self.strides(), &operands, params) };
        }
        let clashes = |a: &Array| a.storage.same(&self.storage) && (a.layout != self.layout || a.dtype != self.dtype) && a.overlaps(self);
        let mut copies: SmallVec<[Option<Array>; 5]> = SmallVec::new();
        let mut layouts: SmallVec<[Option<Layout>; 5]> = SmallVec::new();
        for (k, a) in ins.iter().enumerate() {
            let read = reads & (1 << k) != 0;
            copies.push(if read && clashes(a) { Some(a.contiguous_copy()?) } else { None });
            let a = copies[k].as_ref().unwrap_or(a);
            layouts.push(if !read || a.shape() == self.shape() || a.rank() == 0 { None } else { Some(a.layout.expand(self.shape())?) });
        }
        let operands: SmallVec<[Operand<'_>; 5]> = (0..ins.len())
            .map(|k| {
                let a = copies[k].as_ref().unwrap_or(ins[k]);
                // A single value needs no strides; what is not read needs nothing at all.
                let strides = layouts[k].as_ref().map_or(a.strides(), |l| l.strides());
                let ptr = if reads & (1 << k) != 0 { a.ptr() } else { std::ptr::null() };
                Operand { ptr, strides, dtype: a.dtype }
            })
            .collect();
        // SAFETY: every operand that is read has a layout that, expanded to this shape, stays inside its storage; partial overlap was
        // removed above.
        unsafe { pointwise::run(func, compute, self.shape(), self.ptr_mut(), self.strides(), &operands, params) }
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
        let to = a.with_layout(a.layout().narrow(0, 1, 3).unwrap());
        let from = a.with_layout(a.layout().narrow(0, 0, 3).unwrap());
        to.copy_from(&from).unwrap();
        assert_eq!(a.to_vec::<i64>().unwrap(), [1, 1, 2, 3]);
    }
}
