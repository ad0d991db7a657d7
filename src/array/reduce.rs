//! Reductions of arrays.

use super::Array;
use crate::backend::cpu::reduce::{Reducer, run};
use crate::backend::cpu::reducers::Sum;
use crate::error::Result;
use crate::layout::{DType, Dims};

impl Array {
    /// The sum over the dimensions marked in `reduced` (one flag each). Floats keep their dtype, integers and bool give int64.
    pub fn sum(&self, reduced: &[bool], keepdim: bool) -> Result<Array> {
        let to = if self.dtype().is_float() { self.dtype() } else { DType::I64 };
        let out = Array::empty(&reduced_shape(self.shape(), reduced, keepdim), to)?;
        // SAFETY: each reducer reads this array's dtype and writes `to`.
        unsafe {
            match self.dtype() {
                DType::Bool | DType::U8 => self.reduce(Sum::<u8, i64>::NEW, reduced, None, &out),
                DType::I32 => self.reduce(Sum::<i32, i64>::NEW, reduced, None, &out),
                DType::I64 => self.reduce(Sum::<i64, i64>::NEW, reduced, None, &out),
                DType::F32 => self.reduce(Sum::<f32, f32>::NEW, reduced, None, &out),
                DType::F64 => self.reduce(Sum::<f64, f64>::NEW, reduced, None, &out),
            }
        }
        Ok(out)
    }

    /// # Safety
    /// `R::In` is this array's (and `shift`'s) element type, `R::Out` that of `out`; `out` is row-major with one element for each
    /// index of the kept dimensions, and so is `shift`.
    pub(super) unsafe fn reduce<R: Reducer>(&self, r: R, reduced: &[bool], shift: Option<&Array>, out: &Array) {
        debug_assert_eq!(reduced.len(), self.rank());
        let shift = shift.map_or(std::ptr::null(), |s| s.ptr().cast());
        // SAFETY: the layout stays inside the storage; the rest is the caller's promise.
        unsafe { run(r, self.shape(), self.strides(), reduced, self.ptr().cast(), shift, out.ptr_mut().cast()) };
    }
}

/// The shape that a reduction leaves.
pub fn reduced_shape(shape: &[usize], reduced: &[bool], keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (s, r) in shape.iter().zip(reduced) {
        match (r, keepdim) {
            (false, _) => out.push(*s),
            (true, true) => out.push(1),
            (true, false) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_floats_and_widen_integers() {
        let a = Array::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let s = a.sum(&[true, false], true).unwrap();
        assert_eq!((s.shape(), s.dtype()), (&[1, 3][..], DType::F32));
        assert_eq!(s.to_vec::<f32>().unwrap(), [5.0, 7.0, 9.0]);
        let t = a.with_layout(a.layout().transpose(0, 1));
        assert_eq!(t.sum(&[true, false], false).unwrap().to_vec::<f32>().unwrap(), [6.0, 15.0]);
        let b = Array::from_slice(&[true, true, false], &[3]).unwrap();
        let s = b.sum(&[true], false).unwrap();
        assert_eq!((s.dtype(), s.to_vec::<i64>().unwrap()), (DType::I64, vec![2]));
    }
}
