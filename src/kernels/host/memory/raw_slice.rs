//! Slices of memory that other threads may be writing.

use crate::layout::Plain;
use std::fmt;
use std::marker::PhantomData;

/// A pointer and a length over shared memory. Unlike a slice it promises nothing about the contents: each call reads the element again and
/// returns a copy. Code that uses an element as an index must check and use the same copy, because the next read may return another value.
pub struct RawSlice<'a, T> {
    ptr: *const T,
    len: usize,
    memory: PhantomData<&'a [T]>,
}

// SAFETY: elements are copied out; concurrent writes by other threads are allowed for.
unsafe impl<T: Plain> Send for RawSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for RawSlice<'_, T> {}

impl<T> Clone for RawSlice<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RawSlice<'_, T> {}

impl<T> fmt::Debug for RawSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawSlice({} elements)", self.len)
    }
}

impl<'a, T: Plain> From<&'a [T]> for RawSlice<'a, T> {
    fn from(slice: &'a [T]) -> Self {
        RawSlice { ptr: slice.as_ptr(), len: slice.len(), memory: PhantomData }
    }
}

impl<'a, T: Plain> RawSlice<'a, T> {
    /// # Safety
    /// As long as 'a lasts, `len` elements from `ptr` on stay allocated, aligned and initialised; any thread may write them.
    #[inline]
    pub unsafe fn new(ptr: *const T, len: usize) -> Self {
        RawSlice { ptr, len, memory: PhantomData }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.ptr
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element `i`, as it is now.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<T> {
        // SAFETY: below the length.
        if i < self.len { Some(unsafe { self.ptr.add(i).read() }) } else { None }
    }

    /// The elements `from..to`; fewer where there are fewer.
    #[inline]
    pub fn part(&self, from: usize, to: usize) -> Self {
        let to = to.min(self.len);
        let from = from.min(to);
        RawSlice { ptr: self.ptr.wrapping_add(from), len: to - from, memory: PhantomData }
    }

    /// Each element once, as it is when it is reached.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let ptr = self.ptr;
        // SAFETY: below the length.
        (0..self.len).map(move |i| unsafe { ptr.add(i).read() })
    }

    /// A copy.
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_inside() {
        let all = RawSlice::from(&[1i64, 2, 3][..]);
        assert_eq!((all.len(), all.get(2), all.get(3)), (3, Some(3), None));
        assert_eq!(all.part(1, 9).to_vec(), [2, 3]);
        assert!(all.part(5, 9).is_empty() && all.part(2, 1).is_empty());
    }
}
