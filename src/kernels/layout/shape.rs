//! Shapes: sizes that cannot overflow, broadcasting, and dimension numbers that may be negative.

use crate::error::{Error, Result};
use smallvec::SmallVec;

/// Sizes, outermost first. Up to four dimensions need no allocation.
pub type Dims = SmallVec<[usize; 4]>;
/// Distances between neighbours of each dimension, in elements.
pub type Strides = SmallVec<[isize; 4]>;

/// The most dimensions of a tensor, as in NumPy and in PyTorch's operations.
pub const MAX_DIMS: usize = 64;

/// Refuses more than `MAX_DIMS` dimensions, with PyTorch's message.
pub fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_DIMS {
        return Ok(());
    }
    Err(Error::runtime(format!("only tensors with up to {MAX_DIMS} dims are supported, got {rank}")))
}

/// A copy of sizes or strides. Few numbers, which are stored inline, are copied as a block.
#[inline]
pub fn copied<T: Copy>(dims: &SmallVec<[T; 4]>) -> SmallVec<[T; 4]> {
    if dims.spilled() {
        return SmallVec::from_slice(dims);
    }
    // SAFETY: plain numbers that lie inside: the bits own nothing.
    unsafe { std::ptr::read(dims) }
}

/// `[2, 3]`, as error messages and PyTorch write a shape.
pub fn fmt_shape(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// The number of elements of `shape`, an error if it or its size in bytes does not fit an `isize`, or if there are too many dimensions.
pub fn checked_numel(shape: &[usize], element_size: usize) -> Result<usize> {
    if shape.len() > MAX_DIMS {
        check_rank(shape.len())?;
    }
    let mut n: usize = 1;
    let mut empty = false;
    let mut overflow = false;
    for &s in shape {
        if s == 0 {
            empty = true;
        }
        match n.checked_mul(s.max(1)) {
            Some(m) => n = m,
            None => overflow = true,
        }
    }
    if empty {
        return Ok(0);
    }
    if overflow || n.checked_mul(element_size).is_none_or(|b| b > isize::MAX as usize) {
        return Err(Error::runtime(format!(
            "Storage size calculation overflowed with sizes={}: a tensor has at most 2^63 - 1 bytes",
            fmt_shape(shape)
        )));
    }
    Ok(n)
}

/// The broadcast shape of two shapes, with PyTorch's message when they do not fit.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Dims> {
    if a == b {
        return Ok(Dims::from_slice(a));
    }
    let rank = a.len().max(b.len());
    let mut out = Dims::from_elem(1, rank);
    for i in 0..rank {
        // Counted from the last dimension.
        let x = if i < a.len() { a[a.len() - 1 - i] } else { 1 };
        let y = if i < b.len() { b[b.len() - 1 - i] } else { 1 };
        out[rank - 1 - i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                return Err(Error::shape(format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {} \
                     (shapes {} and {})",
                    rank - 1 - i,
                    fmt_shape(a),
                    fmt_shape(b)
                )));
            }
        };
    }
    Ok(out)
}

/// The broadcast shape of any number of shapes.
pub fn broadcast_many<'a>(shapes: impl IntoIterator<Item = &'a [usize]>) -> Result<Dims> {
    let mut out = Dims::new();
    let mut first = true;
    for s in shapes {
        if first {
            out = Dims::from_slice(s);
            first = false;
        } else if out[..] != *s {
            out = broadcast(&out, s)?;
        }
    }
    Ok(out)
}

/// A dimension number in `-rank..rank` as an index. A 0-d tensor takes -1 and 0, as in PyTorch.
#[inline]
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize> {
    let r = rank.max(1) as i64;
    if dim < -r || dim >= r {
        return Err(Error::index(format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -r, r - 1)));
    }
    Ok(if dim < 0 { dim + r } else { dim } as usize)
}

/// Several dimension numbers, each at most once.
pub fn wrap_dims(dims: &[i64], rank: usize) -> Result<SmallVec<[usize; 4]>> {
    let mut out = SmallVec::new();
    for &d in dims {
        let w = wrap_dim(d, rank)?;
        if out.contains(&w) {
            return Err(Error::runtime(format!("dim {w} appears multiple times in the list of dims")));
        }
        out.push(w);
    }
    Ok(out)
}

/// An element index in `-size..size` along dimension `dim`.
#[inline]
pub fn wrap_index(index: i64, size: usize, dim: usize) -> Result<usize> {
    let s = size as i64;
    if index < -s || index >= s {
        return Err(Error::index(format!("index {index} is out of bounds for dimension {dim} with size {size}")));
    }
    Ok(if index < 0 { index + s } else { index } as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_the_last_dimension() {
        assert_eq!(broadcast(&[2, 1, 3], &[4, 1]).unwrap()[..], [2, 4, 3]);
        assert_eq!(broadcast(&[], &[0]).unwrap()[..], [0]);
        assert!(broadcast(&[2, 3], &[2]).unwrap_err().message().contains("non-singleton dimension 1"));
    }

    #[test]
    fn sizes_that_overflow_are_refused_unless_empty() {
        assert!(checked_numel(&[1 << 40, 1 << 40], 4).is_err());
        assert_eq!(checked_numel(&[1 << 40, 0, 1 << 40], 4).unwrap(), 0);
        assert_eq!(checked_numel(&[], 8).unwrap(), 1);
    }

    #[test]
    fn dims_wrap_and_are_checked() {
        assert_eq!(wrap_dim(-1, 3).unwrap(), 2);
        assert_eq!(wrap_dim(-1, 0).unwrap(), 0);
        assert!(wrap_dim(1, 0).is_err());
        assert!(wrap_dims(&[0, -3], 3).is_err());
        assert!(wrap_index(3, 3, 0).is_err());
        assert_eq!(wrap_index(-3, 3, 0).unwrap(), 0);
    }
}
