//! The same bytes as elements of another dtype.

use super::{Access, Array};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Layout, Strides};

impl Array {
    /// A view of the same bytes as elements of `dtype`. If they have another size, the last dimension gets longer or shorter.
    ///
    /// # Errors
    /// There is no last dimension, or its stride is not 1; sizes, strides or offset are no multiples of the ratio of wider elements; the device stores
    /// elements in another form; the memory is not aligned to the new elements.
    pub fn with_bytes_as(&self, dtype: DType) -> Result<Array> {
        let from = self.dtype();
        if from == dtype {
            return Ok(self.clone());
        }
        if [from, dtype].iter().any(|d| self.storage().element_size(*d) != d.size()) {
            return Err(Error::not_implemented(format!(
                "view: {} stores {from} or {dtype} in another form, so that their bytes are not shared; move the tensor to the CPU first",
                self.device()
            )));
        }
        let layout = if from.size() == dtype.size() { self.layout().clone() } else { resized(self.layout(), from, dtype)? };
        let made = self.with_parts(layout, dtype)?;
        if dtype.size() > from.size() && self.device().is_host() && self.numel() > 0 {
            self.ready()?;
            // Memory of NumPy arrays may begin anywhere.
            if !(self.storage().memory(Access::Read) as usize).is_multiple_of(dtype.size().min(8)) {
                return Err(Error::runtime(format!(
                    "view: the memory is not aligned to elements of {dtype}; copy the tensor first, with clone()"
                )));
            }
        }
        Ok(made)
    }
}

/// The layout of the same bytes in elements of another size.
fn resized(layout: &Layout, from: DType, to: DType) -> Result<Layout> {
    let (old, new) = (from.size(), to.size());
    let refused = |what: String| {
        Err(Error::runtime(format!("self.{what} to view {} as {} (different element sizes)", from.type_name(), to.type_name())))
    };
    let ([shape @ .., n], [strides @ .., last]) = (layout.shape(), layout.strides()) else {
        return refused("dim() cannot be 0".into());
    };
    let but = |e: Error, got: &dyn std::fmt::Display| Error::runtime(format!("{e}, but got {got}"));
    let (mut sizes, mut steps) = (Dims::from_slice(shape), Strides::from_slice(strides));
    if old > new {
        let ratio = old / new;
        if *last != 1 {
            return refused("stride(-1) must be 1".into()).map_err(|e| but(e, last));
        }
        sizes.push(n.checked_mul(ratio).ok_or_else(|| Error::runtime("view: the sizes overflow"))?);
        for step in &mut steps {
            *step *= ratio as isize;
        }
        steps.push(1);
        return Layout::from_parts(sizes, steps, layout.offset() * ratio).map_err(Into::into);
    }
    let ratio = new / old;
    let multiple =
        |what: String, got: &dyn std::fmt::Display| refused(format!("{what} must be divisible by {ratio}")).map_err(|e| but(e, got));
    if !n.is_multiple_of(ratio) {
        return multiple("size(-1)".into(), n);
    }
    if !layout.offset().is_multiple_of(ratio) {
        return multiple("storage_offset()".into(), &layout.offset());
    }
    if *last != 1 {
        return refused("stride(-1) must be 1".into()).map_err(|e| but(e, last));
    }
    for (i, step) in steps.iter_mut().enumerate() {
        if *step % ratio as isize != 0 {
            return multiple(format!("stride({i})"), step);
        }
        *step /= ratio as isize;
    }
    sizes.push(n / ratio);
    steps.push(1);
    Layout::from_parts(sizes, steps, layout.offset() / ratio).map_err(Into::into)
}
