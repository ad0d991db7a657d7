//! Layouts of complex numbers seen as pairs of real ones, and of such pairs seen as complex numbers.

use super::{Dims, Layout, Strides};
use crate::error::{Error, Result};

impl Layout {
    /// The layout of the parts of complex numbers: a last dimension of 2, in elements of half the size.
    pub fn as_pairs(&self) -> Result<Layout> {
        let (mut shape, mut strides) = (Dims::from_slice(self.shape()), self.strides().iter().map(|s| 2 * s).collect::<Strides>());
        shape.push(2);
        strides.push(1);
        Layout::from_parts(shape, strides, 2 * self.offset())
    }

    /// The layout of complex numbers whose parts have this one.
    ///
    /// # Errors
    /// There is no last dimension of 2, the parts do not lie side by side, or pairs begin at odd places.
    pub fn from_pairs(&self) -> Result<Layout> {
        let refused = |what: &str| Err(Error::runtime(format!("Tensor must have a {what}")));
        let ([shape @ .., 2], [strides @ .., last]) = (self.shape(), self.strides()) else {
            return refused("last dimension of size 2");
        };
        if *last != 1 {
            return refused("last dimension with stride 1");
        }
        if strides.iter().any(|s| s % 2 != 0) {
            return refused("stride divisible by 2 for all but last dimension");
        }
        if !self.offset().is_multiple_of(2) {
            return refused("storage_offset divisible by 2");
        }
        Layout::from_parts(shape.into(), strides.iter().map(|s| s / 2).collect(), self.offset() / 2)
    }
}
