//! Elements of arrays as Rust numbers.

use super::storage::Device;
use super::value::Array;
use crate::error::{Error, Result};
use crate::host::memory::raw_slice::RawSlice;
use crate::layout::{Dims, Element, Layout, Scalar, Strides, by_element};

impl Array {
    /// The elements in row-major order, read one by one from memory that other threads may write.
    ///
    /// # Errors
    /// The array is strided, of another dtype or on a device; what is pending in it cannot be computed.
    pub fn elements<T: Element>(&self) -> Result<RawSlice<'_, T::Raw>> {
        if self.dtype() != T::DTYPE || !self.is_contiguous() || !self.device().is_host() {
            return Err(Error::runtime(format!(
                "expected a row-major array of {} on the CPU, got one of {} with strides {:?} on {}; use to_vec()",
                T::DTYPE,
                self.dtype(),
                self.strides(),
                self.device()
            )));
        }
        self.ready()?;
        let n = self.numel();
        if n == 0 {
            return Ok(RawSlice::from(&[][..]));
        }
        // SAFETY: n initialised elements from here on, in memory that lives as long as this array.
        Ok(unsafe { RawSlice::new(self.ptr().cast(), n) })
    }

    /// The elements of a new array, to be written.
    ///
    /// # Safety
    /// This array is the only one with its storage, which is on the CPU and was made row-major for elements of T, which is not bool; nothing
    /// else reads or writes it while the slice is in use.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn new_elements<T: Element<Raw = T>>(&self) -> &mut [T] {
        debug_assert!(self.dtype() == T::DTYPE && self.is_contiguous() && self.device().is_host() && self.storage().is_sole_owner());
        let n = self.numel();
        if n == 0 {
            return &mut [];
        }
        // SAFETY: n elements of T lie here; the rest is the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.ptr_mut().cast(), n) }
    }

    /// All elements in row-major order, converted to T's dtype. Waits for a device.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let a = self.to_device(Device::CPU)?.cast(T::DTYPE)?.contiguous()?;
        let (all, mut out) = (a.elements::<T>()?, Vec::new());
        if out.try_reserve_exact(all.len()).is_err() {
            return Err(Error::memory(format!("no memory for a list of {} elements", all.len())));
        }
        out.extend(all.iter().map(T::of));
        Ok(out)
    }

    /// The element at the start of the layout. Waits for a device.
    ///
    /// # Errors
    /// There is none.
    pub fn first(&self) -> Result<Scalar> {
        if self.numel() == 0 {
            return Err(Error::runtime(format!("expected at least one element, got an array of shape {:?}", self.shape())));
        }
        if !self.device().is_host() {
            let one = Layout::from_parts(Dims::new(), Strides::new(), self.layout().offset())?;
            return self.with_layout(one)?.to_device(Device::CPU)?.first();
        }
        self.ready()?;
        let p = self.ptr();
        // SAFETY: at least one element of this dtype is there; alignment holds for every storage and offset.
        Ok(by_element!(self.dtype(), T => <T as Element>::of(unsafe { p.cast::<<T as Element>::Raw>().read() }).to_scalar()))
    }
}
