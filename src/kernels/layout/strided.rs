//! Layout: the positions of the elements of a tensor in its storage (sizes, strides, offset), and the layouts of zero-copy views.

use super::shape::{Dims, Strides, checked_numel, copied, fmt_shape, wrap_dim, wrap_index};
use crate::error::{Error, Result};
use smallvec::SmallVec;

/// Sizes, strides and offset, all in elements.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Dims,
    strides: Strides,
    offset: usize,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        if self.shape.spilled() || self.strides.spilled() {
            return Layout { shape: copied(&self.shape), strides: copied(&self.strides), offset: self.offset };
        }
        // As one block: two lists of numbers and one number. SAFETY: where nothing has spilled, a layout is its own bytes: integers and the
        // lengths of their inline arrays.
        unsafe { std::ptr::read(self) }
    }
}

impl Layout {
    /// Row-major, without gaps, from the start of the storage. The sizes must have passed `checked_numel`.
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Self {
        Layout { shape: Dims::from_slice(shape), strides: Self::contiguous_strides(shape), offset: 0 }
    }

    #[inline]
    pub fn contiguous_strides(shape: &[usize]) -> Strides {
        let mut strides = Strides::from_elem(1, shape.len());
        let mut step: isize = 1;
        for i in (0..shape.len()).rev() {
            strides[i] = step;
            // As PyTorch: empty dimensions count as one. Wrapping: an empty shape may have sizes whose product overflows.
            step = step.wrapping_mul(shape[i].max(1) as isize);
        }
        strides
    }

    /// Dense, with the dimensions in the order of `like`'s strides: the layout of a pointwise result.
    pub fn dense_like(shape: &[usize], like: &[isize]) -> Self {
        let rank = shape.len();
        // From the fastest dimension on. If strides do not decide (a stride of 0), the search continues past the other dimension.
        let mut order: SmallVec<[usize; 8]> = (0..rank).rev().collect();
        for i in 1..rank {
            let mut at = i;
            for j in (0..i).rev() {
                let (p, q) = (order[j], order[at]);
                let (fast, slow) = (like[p], like[q]);
                if fast == 0 || slow == 0 || (fast == slow && shape[p] <= shape[q]) {
                    continue;
                }
                if fast < slow {
                    break;
                }
                order.swap(j, at);
                at = j;
            }
        }
        let mut strides = Strides::from_elem(1, rank);
        let mut step: isize = 1;
        for &d in &order {
            strides[d] = step;
            step = step.wrapping_mul(shape[d].max(1) as isize);
        }
        Layout { shape: Dims::from_slice(shape), strides, offset: 0 }
    }

    /// This layout from the start of a storage.
    #[inline]
    pub fn rewound(&self) -> Self {
        let mut layout = self.clone();
        layout.offset = 0;
        layout
    }

    /// Row-major without gaps, with the strides that `contiguous` gives, sizes of 1 included. No dimension is empty.
    #[inline]
    pub fn is_plain(&self) -> bool {
        let mut step: isize = 1;
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *stride != step {
                return false;
            }
            step = step.wrapping_mul(*size as isize);
        }
        step != 0
    }

    /// Whether both have the same sizes. Few numbers, for which a call of `memcmp` costs more than the comparison.
    #[inline]
    pub fn same_shape(&self, other: &Layout) -> bool {
        self.shape.len() == other.shape.len() && self.shape.iter().zip(&other.shape).all(|(a, b)| a == b)
    }

    /// Any sizes and strides. The caller checks that the storage is large enough.
    ///
    /// # Errors
    /// The number of sizes differs from the number of strides.
    pub fn from_parts(shape: Dims, strides: Strides, offset: usize) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::runtime(format!("a layout needs a stride for each size, got sizes {shape:?} and strides {strides:?}")));
        }
        Ok(Layout { shape, strides, offset })
    }

    /// The end of the storage that the layout needs, in elements: 0 if it is empty. None if it would exceed every storage, if elements lie
    /// before the storage, or if there are too many elements to count.
    #[inline]
    pub fn end(&self) -> Option<usize> {
        let (mut count, mut last) = (1usize, self.offset);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            // The stride of a dimension of size 1 does not count.
            if size == 1 {
                continue;
            }
            let (all, step) = (count.checked_mul(size), (size.wrapping_sub(1)).checked_mul(stride as usize));
            match (all, step.and_then(|s| last.checked_add(s))) {
                (Some(all), Some(end)) if size > 0 && stride >= 0 => (count, last) = (all, end),
                _ => return self.end_of_empty(),
            }
        }
        (count <= isize::MAX as usize && last < isize::MAX as usize).then(|| last + 1)
    }

    #[cold]
    fn end_of_empty(&self) -> Option<usize> {
        // Nothing is read, but offsets in bytes are still computed.
        (self.shape.contains(&0) && self.offset <= isize::MAX as usize / 16).then_some(0)
    }

    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The sizes, to keep.
    #[inline]
    pub fn dims(&self) -> Dims {
        copied(&self.shape)
    }

    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    #[inline]
    pub fn numel(&self) -> usize {
        // Wrapping: sizes beside an empty dimension may be any.
        self.shape.iter().fold(1, |n, s| n.wrapping_mul(*s))
    }

    /// The size of dimension `dim`; 1 for a 0-d tensor, which PyTorch reduces as if it had one dimension.
    #[inline]
    pub fn size_or_one(&self, dim: usize) -> usize {
        self.shape.get(dim).copied().unwrap_or(1)
    }

    /// Row-major without gaps (sizes 0 and 1 leave their stride free).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut step: isize = 1;
        for i in (0..self.shape.len()).rev() {
            let s = self.shape[i];
            if s == 0 {
                return true;
            }
            if s != 1 {
                if self.strides[i] != step {
                    return self.numel() == 0;
                }
                // Wrapping, as in `contiguous_strides`.
                step = step.wrapping_mul(s as isize);
            }
        }
        true
    }

    /// Elements do not overlap and leave no gaps, in any order of dimensions.
    pub fn is_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        let mut dims: SmallVec<[(isize, usize); 8]> =
            self.shape.iter().zip(&self.strides).filter(|(s, _)| **s != 1).map(|(s, t)| (*t, *s)).collect();
        dims.sort_unstable();
        let mut step = 1isize;
        for (stride, size) in dims {
            if stride != step {
                return false;
            }
            step = step.wrapping_mul(size as isize);
        }
        true
    }

    /// Whether two indices may name the same element (a stride of 0, or strides that interleave). May be true for a layout without overlap,
    /// but is never false for one with overlap.
    pub fn may_overlap(&self) -> bool {
        if self.is_contiguous() {
            return false;
        }
        let mut dims: SmallVec<[(isize, usize); 8]> =
            self.shape.iter().zip(&self.strides).filter(|(s, _)| **s > 1).map(|(s, t)| (*t, *s)).collect();
        dims.sort_unstable();
        let mut reach = 0isize;
        for (stride, size) in dims {
            if stride <= reach {
                return true;
            }
            reach = reach.saturating_add(stride.saturating_mul(size as isize - 1));
        }
        false
    }

    /// Whether some dimension repeats its elements by a stride of 0; PyTorch refuses to write to such tensors.
    pub fn has_zero_stride(&self) -> bool {
        self.shape.iter().zip(&self.strides).any(|(s, t)| *s > 1 && *t == 0) && self.numel() > 0
    }

    /// First and one past the last element of the storage that the layout can reach; (offset, offset) if it is empty.
    pub fn extent(&self) -> (usize, usize) {
        if self.numel() == 0 {
            return (self.offset, self.offset);
        }
        let last: isize = self.shape.iter().zip(&self.strides).map(|(s, t)| (*s as isize - 1) * t).sum();
        (self.offset, self.offset + last as usize + 1)
    }

    // ---- views -------------------------------------------------------------------------------------------------------

    pub fn expand(&self, shape: &[usize]) -> Result<Layout> {
        let extra = shape.len().checked_sub(self.rank()).ok_or_else(|| {
            Error::shape(format!(
                "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the \
                 tensor ({}); got sizes {} for a tensor of shape {}",
                shape.len(),
                self.rank(),
                fmt_shape(shape),
                fmt_shape(&self.shape)
            ))
        })?;
        let mut strides = Strides::from_elem(0, shape.len());
        for i in 0..self.rank() {
            let (have, want) = (self.shape[i], shape[extra + i]);
            if have == want {
                strides[extra + i] = self.strides[i];
            } else if have != 1 {
                return Err(Error::shape(format!(
                    "The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton \
                     dimension {}.  Target sizes: {}.  Tensor sizes: {}",
                    extra + i,
                    fmt_shape(shape),
                    fmt_shape(&self.shape)
                )));
            }
        }
        // New leading dimensions of size 1 get PyTorch's stride: that of a dimension around all others.
        for i in (0..extra).rev() {
            if shape[i] == 1 {
                strides[i] = shape.get(i + 1).map_or(1, |s| (*s as isize).max(1) * strides[i + 1]);
            }
        }
        Ok(Layout { shape: Dims::from_slice(shape), strides, offset: self.offset })
    }

    pub fn transpose(&self, a: usize, b: usize) -> Layout {
        let mut l = self.clone();
        if a != b {
            l.shape.swap(a, b);
            l.strides.swap(a, b);
        }
        l
    }

    pub fn permute(&self, dims: &[usize]) -> Layout {
        Layout {
            shape: dims.iter().map(|&d| self.shape[d]).collect(),
            strides: dims.iter().map(|&d| self.strides[d]).collect(),
            offset: self.offset,
        }
    }

    pub fn unsqueeze(&self, dim: usize) -> Layout {
        let mut l = self.clone();
        let stride = if dim < self.rank() { self.shape[dim] as isize * self.strides[dim] } else { 1 };
        l.shape.insert(dim, 1);
        l.strides.insert(dim, stride);
        l
    }

    /// Without those of `dims` that have size 1.
    pub fn squeeze(&self, dims: impl Fn(usize) -> bool) -> Layout {
        let keep = |i: &usize| !(self.shape[*i] == 1 && dims(*i));
        Layout {
            shape: (0..self.rank()).filter(keep).map(|i| self.shape[i]).collect(),
            strides: (0..self.rank()).filter(keep).map(|i| self.strides[i]).collect(),
            offset: self.offset,
        }
    }

    /// Fixes dimension `dim` at `index` (negative counts from the end) and drops it.
    #[inline]
    pub fn select(&self, dim: usize, index: i64) -> Result<Layout> {
        let i = wrap_index(index, self.shape[dim], dim)?;
        let mut l = self.clone();
        l.offset = (self.offset as isize + i as isize * self.strides[dim]) as usize;
        l.shape.remove(dim);
        l.strides.remove(dim);
        Ok(l)
    }

    pub fn narrow(&self, dim: usize, start: usize, length: usize) -> Result<Layout> {
        if start.checked_add(length).is_none_or(|end| end > self.shape[dim]) {
            return Err(Error::runtime(format!(
                "narrow: start ({start}) + length ({length}) exceeds dimension size ({}).",
                self.shape[dim]
            )));
        }
        let mut l = self.clone();
        l.offset = (self.offset as isize + start as isize * self.strides[dim]) as usize;
        l.shape[dim] = length;
        Ok(l)
    }

    /// `start..end` in steps; bounds must be in range already and `step` at least 1.
    pub fn slice(&self, dim: usize, start: usize, end: usize, step: usize) -> Layout {
        let mut l = self.clone();
        let start = start.min(self.shape[dim]);
        l.offset = (self.offset as isize + start as isize * self.strides[dim]) as usize;
        l.shape[dim] = end.saturating_sub(start).div_ceil(step);
        l.strides[dim] = self.strides[dim].saturating_mul(step as isize);
        if l.shape[dim] == 0 {
            l.offset = self.offset;
        }
        l
    }

    pub fn diagonal(&self, offset: i64, dim1: usize, dim2: usize) -> Result<Layout> {
        if dim1 == dim2 {
            return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
        }
        let (rows, cols) = (self.shape[dim1] as i64, self.shape[dim2] as i64);
        let len = if offset >= 0 { rows.min(cols - offset) } else { (rows + offset).min(cols) }.max(0);
        let mut l = self.clone();
        if len > 0 {
            let step = if offset >= 0 { offset as isize * self.strides[dim2] } else { -offset as isize * self.strides[dim1] };
            l.offset = (self.offset as isize + step) as usize;
        }
        let stride = self.strides[dim1] + self.strides[dim2];
        let (hi, lo) = (dim1.max(dim2), dim1.min(dim2));
        for d in [hi, lo] {
            l.shape.remove(d);
            l.strides.remove(d);
        }
        l.shape.push(len as usize);
        l.strides.push(stride);
        Ok(l)
    }

    /// Windows of `size` along `dim`, every `step`, as a new last dimension.
    pub fn unfold(&self, dim: usize, size: usize, step: usize) -> Result<Layout> {
        let have = self.size_or_one(dim);
        if size > have {
            return Err(Error::runtime(format!("maximum size for tensor at dimension {dim} is {have} but size is {size}")));
        }
        if step == 0 {
            return Err(Error::runtime("step is 0 but must be > 0"));
        }
        let mut l = self.clone();
        let stride = self.strides.get(dim).copied().unwrap_or(1);
        if self.rank() > 0 {
            l.shape[dim] = (have - size) / step + 1;
            l.strides[dim] = stride.wrapping_mul(step as isize);
        }
        l.shape.push(size);
        l.strides.push(stride);
        Ok(l)
    }

    /// A view of the same elements with another shape, or None if there is none. `shape` has as many elements.
    pub fn view(&self, shape: &[usize]) -> Option<Layout> {
        if self.is_contiguous() || self.numel() == 0 {
            return Some(Layout { shape: Dims::from_slice(shape), strides: Self::contiguous_strides(shape), offset: self.offset });
        }
        // Walk both shapes from the inside; each run of old dimensions that is contiguous in itself becomes a run of new ones.
        let mut strides = Strides::from_elem(1, shape.len());
        let mut new = shape.len();
        let mut old = self.rank();
        while old > 0 {
            let inner = self.strides[old - 1];
            let mut have = 1usize;
            loop {
                old -= 1;
                have *= self.shape[old];
                let joined = old > 0 && (self.shape[old - 1] == 1 || self.strides[old - 1] == self.shape[old] as isize * self.strides[old]);
                if !joined {
                    break;
                }
                if old > 0 && self.shape[old - 1] == 1 {
                    // A size of 1 fits any run; it gets the stride of the run.
                    let mut l = self.clone();
                    l.strides[old - 1] = self.shape[old] as isize * self.strides[old];
                    if l.strides != self.strides {
                        return l.view(shape);
                    }
                }
            }
            let mut made = 1usize;
            let mut step = inner;
            while new > 0 && (made < have || shape[new - 1] == 1) {
                new -= 1;
                strides[new] = step;
                step *= shape[new] as isize;
                made *= shape[new];
            }
            if made != have {
                return None;
            }
        }
        while new > 0 {
            new -= 1;
            if shape[new] != 1 {
                return None;
            }
            strides[new] = 1;
        }
        Some(Layout { shape: Dims::from_slice(shape), strides, offset: self.offset })
    }

    /// Fills in one `-1` of a requested shape and checks that the number of elements fits.
    pub fn infer_shape(sizes: &[i64], numel: usize) -> Result<Dims> {
        let mut known: usize = 1;
        let mut hole = None;
        for (i, &s) in sizes.iter().enumerate() {
            match s {
                -1 if hole.is_some() => return Err(Error::runtime("only one dimension can be inferred")),
                -1 => hole = Some(i),
                s if s < 0 => return Err(Error::runtime(format!("invalid shape dimension {s}"))),
                s => known = known.saturating_mul(s as usize),
            }
        }
        let mismatch = || Error::shape(format!("shape '{sizes:?}' is invalid for input of size {numel}"));
        let mut out: Dims = sizes.iter().map(|&s| s.max(0) as usize).collect();
        match hole {
            Some(_) if known == 0 && numel == 0 => {
                return Err(Error::runtime(format!(
                    "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension size -1 \
                     can be any value and is ambiguous"
                )));
            }
            Some(i) if known != 0 && numel.is_multiple_of(known) => out[i] = numel / known,
            None if known == numel => {}
            _ => return Err(mismatch()),
        }
        Ok(out)
    }

    /// Any sizes, strides and offset that stay inside a storage of `capacity` elements.
    pub fn as_strided(shape: &[usize], strides: &[isize], offset: usize, capacity: usize) -> Result<Layout> {
        if shape.len() != strides.len() {
            return Err(Error::runtime(format!(
                "mismatch in length of strides and shape: got {} sizes and {} strides",
                shape.len(),
                strides.len()
            )));
        }
        if let Some(s) = strides.iter().find(|s| **s < 0) {
            return Err(Error::runtime(format!("as_strided: Negative strides are not supported, got {s}")));
        }
        checked_numel(shape, 1)?;
        let mut end = offset as i128 + 1;
        if shape.contains(&0) {
            end = 0;
        } else {
            for (s, t) in shape.iter().zip(strides) {
                end += (*s as i128 - 1) * *t as i128;
            }
        }
        if end > capacity as i128 {
            return Err(Error::runtime(format!(
                "setStorage: sizes {shape:?}, strides {strides:?}, storage offset {offset} need {end} elements and are out \
                 of bounds for storage of {capacity} elements"
            )));
        }
        Ok(Layout { shape: Dims::from_slice(shape), strides: Strides::from_slice(strides), offset })
    }

    /// `wrap_dim` with this layout's rank.
    #[inline]
    pub fn dim(&self, dim: i64) -> Result<usize> {
        wrap_dim(dim, self.rank())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(l: &Layout) -> Vec<usize> {
        let mut out = Vec::new();
        let n = l.numel();
        for mut i in 0..n {
            let mut at = l.offset() as isize;
            for d in (0..l.rank()).rev() {
                at += (i % l.shape()[d]) as isize * l.strides()[d];
                i /= l.shape()[d];
            }
            out.push(at as usize);
        }
        out
    }

    #[test]
    fn a_view_names_the_same_elements_in_the_same_order() {
        let base = Layout::contiguous(&[2, 3, 4]);
        let cases: [(Layout, Vec<usize>, bool); 7] = [
            (base.transpose(0, 1), vec![3, 8], true),
            (base.transpose(0, 1), vec![6, 4], false),
            (base.transpose(1, 2), vec![2, 12], false),
            (base.slice(0, 0, 2, 2), vec![3, 4], true),
            (base.slice(2, 0, 4, 2), vec![6, 2], true),
            (base.slice(2, 0, 4, 2), vec![12], true),
            (base.narrow(1, 1, 1).unwrap(), vec![8], false),
        ];
        for (l, shape, possible) in cases {
            let v = l.view(&shape);
            // (3, 2, 4) with strides (4, 12, 1) as (3, 8): 2 and 4 do not join.
            if let Some(v) = &v {
                assert_eq!(offsets(v), offsets(&l), "{l:?} as {shape:?}");
            }
            let joins = l.is_contiguous() || v.is_some();
            assert!(possible || !joins, "{l:?} as {shape:?}");
        }
    }

    #[test]
    fn views_through_sizes_of_one_are_found() {
        let l = Layout::from_parts(Dims::from_slice(&[2, 1, 3]), Strides::from_slice(&[6, 77, 2]), 0).unwrap();
        assert_eq!(l.view(&[6]).map(|v| offsets(&v)), Some(offsets(&l)));
    }

    #[test]
    fn overlap_and_density() {
        let l = Layout::contiguous(&[3, 4]);
        assert!(!l.may_overlap() && l.transpose(0, 1).is_dense() && !l.transpose(0, 1).may_overlap());
        assert!(l.unfold(1, 2, 1).unwrap().may_overlap());
        assert!(Layout::contiguous(&[1, 3]).expand(&[2, 3]).unwrap().has_zero_stride());
        assert_eq!(l.transpose(0, 1).extent(), (0, 12));
    }

    #[test]
    fn dense_like_keeps_the_order_of_dimensions() {
        let l = Layout::contiguous(&[2, 3, 4]).permute(&[2, 0, 1]);
        let d = Layout::dense_like(l.shape(), l.strides());
        assert_eq!(d.strides(), l.strides());
    }

    #[test]
    fn as_strided_stays_inside() {
        assert!(Layout::as_strided(&[2, 2], &[4, 1], 0, 6).is_ok());
        assert!(Layout::as_strided(&[2, 2], &[4, 1], 1, 6).is_err());
        assert!(Layout::as_strided(&[2], &[-1], 1, 6).is_err());
    }
}
