//! Room for temporary numbers of kernels whose count the caller of an operation controls. Kernels return no errors; a refusal leaves them as a
//! panic that carries the error.

use super::alloc;
use super::cache_line::LINE;
use crate::error::{Error, throw};

/// From this many bytes on the limit of all tensors holds for temporary memory, too.
const LARGE: usize = 1 << 20;

/// An empty vector with room for `n` elements.
///
/// # Panics
/// With a memory error, if there is no room.
pub(crate) fn reserved<T>(n: usize) -> Vec<T> {
    let mut made = Vec::new();
    let bytes = n.saturating_mul(size_of::<T>());
    if (bytes >= LARGE && !alloc::fits(bytes)) || made.try_reserve_exact(n).is_err() {
        refuse(bytes)
    }
    made
}

/// A vector of `n` times `value`.
///
/// # Panics
/// As `reserved`.
pub(crate) fn filled<T: Copy>(value: T, n: usize) -> Vec<T> {
    let mut made = reserved(n);
    made.resize(n, value);
    made
}

/// Elements whose first one lies at the beginning of a cache line, so that no vector of them lies in two.
pub(crate) struct AlignedReserve<T> {
    memory: Vec<T>,
    first: usize,
    n: usize,
}

/// `n` times `value`, aligned for the widest vectors.
///
/// # Panics
/// As `reserved`.
pub(crate) fn aligned<T: Copy>(value: T, n: usize) -> AlignedReserve<T> {
    let memory = filled(value, n.saturating_add(LINE / size_of::<T>()));
    let first = memory.as_ptr().align_offset(LINE);
    AlignedReserve { memory, first, n }
}

impl<T> std::ops::Deref for AlignedReserve<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.memory[self.first..self.first + self.n]
    }
}

impl<T> std::ops::DerefMut for AlignedReserve<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.first..self.first + self.n]
    }
}

/// A type of which all bytes may be zero, which is the number zero.
pub(crate) trait ZeroBytes: Copy {}
impl ZeroBytes for u64 {}
impl ZeroBytes for i64 {}
impl ZeroBytes for usize {}

/// A vector of `n` zeros, whose pages are not touched.
///
/// # Panics
/// As `reserved`.
pub(crate) fn zeros<T: ZeroBytes>(n: usize) -> Vec<T> {
    let bytes = n.saturating_mul(size_of::<T>());
    let Ok(layout) = std::alloc::Layout::array::<T>(n) else { refuse(bytes) };
    if n == 0 {
        return Vec::new();
    }
    if bytes >= LARGE && !alloc::fits(bytes) {
        refuse(bytes)
    }
    // SAFETY: the layout has a size.
    let made = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>();
    if made.is_null() {
        refuse(bytes)
    }
    // SAFETY: allocated with this layout just now; zero bytes are valid elements.
    unsafe { Vec::from_raw_parts(made, n, n) }
}

#[cold]
fn refuse(bytes: usize) -> ! {
    throw(Error::memory(format!("cannot allocate {bytes} bytes of temporary memory: use a smaller tensor")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, caught};

    #[test]
    fn there_is_room_for_some_but_not_for_all() {
        assert_eq!(filled(7u8, 3), [7, 7, 7]);
        assert_eq!((zeros::<u64>(3), zeros::<i64>(0).len()), (vec![0; 3], 0));
        assert!(reserved::<u64>(100).is_empty());
        let mut lines = aligned(7f32, 3);
        lines[2] = 8.0;
        assert_eq!((&*lines, lines.as_ptr().addr() % 64), (&[7.0, 7.0, 8.0][..], 0));
        for n in [1 << 58, usize::MAX / 2] {
            for refused in [caught(|| Ok(filled(0u64, n).len())), caught(|| Ok(zeros::<u64>(n).len()))] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::Memory);
            }
        }
    }
}
