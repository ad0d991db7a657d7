//! Operands of products as they lie in memory.

use crate::backend::cpu::common::blocks::scratch;
use crate::backend::cpu::common::cast::ConvertFn;
use crate::backend::cpu::matmul::Mat;
use crate::error::throw;
use crate::host::memory::alloc::Buffer;

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) enum Factor<T> {
    Numbers(Mat<T>),
    /// Elements of two bytes, and the conversion to numbers. They are converted while they are packed.
    Halves(Mat<u16>, ConvertFn),
}

impl<T> Factor<T> {
    /// The matrix that begins so many elements further on.
    pub fn moved(&self, by: isize) -> Factor<T> {
        match self {
            Factor::Numbers(m) => Factor::Numbers(m.moved(by)),
            Factor::Halves(m, convert) => Factor::Halves(m.moved(by), *convert),
        }
    }

    /// The numbers from this row and column on, of so many rows and columns, and their memory if it is not the operand's.
    ///
    /// # Panics
    /// With a memory error, if there is no room for numbers that are converted.
    ///
    /// # Safety
    /// They are readable; `T` is what the conversion makes.
    pub unsafe fn part(&self, (row, column): (usize, usize), (rows, columns): (usize, usize)) -> (Option<Buffer>, Mat<T>) {
        match self {
            Factor::Numbers(m) => (None, Mat { ptr: m.at(row, column), ..*m }),
            Factor::Halves(m, convert) => {
                let room = scratch::<T>(rows * columns).unwrap_or_else(|e| throw(e));
                let (from, to) = (m.at(row, column).cast::<u8>(), room.as_ptr());
                let [rs, cs] = [m.rs, m.cs].map(|s| s * size_of::<u16>() as isize);
                let size = size_of::<T>() as isize;
                // The copy has the order of the operand.
                let is_column_major = m.rs == 1;
                let (outer, inner, strides) = if is_column_major { (columns, rows, (cs, rs)) } else { (rows, columns, (rs, cs)) };
                // SAFETY: the caller's; there is room.
                unsafe { convert(outer, inner, from, strides, to, (inner as isize * size, size)) };
                let (rs, cs) = if is_column_major { (1, rows as isize) } else { (columns as isize, 1) };
                (Some(room), Mat { ptr: to.cast_const().cast(), rs, cs })
            }
        }
    }
}
