//! Matrix products of arrays, over batches that broadcast.

use super::Array;
use super::run::{device_mismatch, run_on_backend};
use crate::backend::contract::{Operand, View};
use crate::backend::requests::Request;
use crate::error::{Error, Result};
use crate::layout::{DType, Strides, broadcast};

impl Array {
    /// `op(self) @ op(other)` of (..., m, k) and (..., k, n), where `op` swaps the last two dimensions if asked to. Leading dimensions
    /// broadcast. Both must have rank 2 or more, one dtype and matching inner sizes.
    pub fn matmul(&self, other: &Array, transpose: (bool, bool)) -> Result<Array> {
        let (ra, rb) = (self.rank(), other.rank());
        if ra < 2 || rb < 2 {
            return Err(Error::shape(format!("matmul: expected two or more dimensions, got {ra} and {rb}")));
        }
        if self.dtype() != other.dtype() {
            return Err(Error::dtype(format!(
                "expected m1 and m2 to have the same dtype, but got: {} != {}",
                self.dtype().row().c_name,
                other.dtype().row().c_name
            )));
        }
        if self.dtype() == DType::Bool {
            let name = if ra == 2 && rb == 2 { "addmm_impl_cpu_" } else { "baddbmm" };
            return Err(Error::not_implemented(format!("\"{name}\" not implemented for 'Bool'")));
        }
        let last = |a: &Array, swap: bool| {
            let (r, s, t) = (a.rank(), a.shape(), a.strides());
            let (rows, cols) = ((s[r - 2], t[r - 2]), (s[r - 1], t[r - 1]));
            if swap { (cols, rows) } else { (rows, cols) }
        };
        let ((m, a_rs), (k, a_cs)) = last(self, transpose.0);
        let ((k2, b_rs), (n, b_cs)) = last(other, transpose.1);
        let (ba, bb) = (&self.shape()[..ra - 2], &other.shape()[..rb - 2]);
        let batch = broadcast(ba, bb)?;
        let count: usize = batch.iter().product();
        if k != k2 {
            return Err(Error::shape(if batch.is_empty() {
                format!("mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})")
            } else {
                format!("Expected size for first two dimensions of batch2 tensor to be: [{count}, {k}] but got: [{count}, {k2}].")
            }));
        }
        let mut shape = batch.clone();
        shape.extend([m, n]);
        let mut sa = spread(ba, self.strides(), &batch);
        let mut sb = spread(bb, other.strides(), &batch);
        sa.extend([a_rs, a_cs]);
        sb.extend([b_rs, b_cs]);
        let (mut of_a, mut of_b) = (shape.clone(), shape.clone());
        of_a[batch.len() + 1] = k;
        of_b[batch.len()] = k;
        let out = self.empty_beside(&shape, self.dtype())?;
        self.ready()?;
        other.ready()?;
        if !other.storage().is_beside(self.storage()) {
            return Err(device_mismatch("matmul", other, self.device()));
        }
        let a = View { shape: &of_a, strides: &sa, ..self.view() };
        let b = View { shape: &of_b, strides: &sb, ..other.view() };
        run_on_backend(&Request::Gemm, &[Operand::View(a), Operand::View(b)], &[&out])?;
        Ok(out)
    }
}

/// Strides over the broadcast batch dimensions: 0 where `shape` has size 1 or lacks the dimension.
fn spread(shape: &[usize], strides: &[isize], batch: &[usize]) -> Strides {
    let extra = batch.len() - shape.len();
    (0..batch.len()).map(|i| if i < extra || shape[i - extra] == 1 { 0 } else { strides[i - extra] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_broadcast_and_transposed_operands_need_no_copy() {
        let a = Array::from_slice(&(0..12).map(f64::from).collect::<Vec<_>>(), &[2, 1, 2, 3]).unwrap();
        let b = Array::from_slice(&(0..18).map(f64::from).collect::<Vec<_>>(), &[3, 2, 3]).unwrap();
        let c = a.matmul(&b, (false, true)).unwrap();
        assert_eq!(c.shape(), [2, 3, 2, 2]);
        let v = c.to_vec::<f64>().unwrap();
        assert_eq!(v[..4], [5.0, 14.0, 14.0, 50.0]);
        assert_eq!(v[20..], [275.0, 338.0, 392.0, 482.0]);
    }

    #[test]
    fn sizes_and_dtypes_are_checked() {
        let a = Array::zeros(&[2, 3], DType::F32).unwrap();
        let e = a.matmul(&Array::zeros(&[4, 5], DType::F32).unwrap(), (false, false)).unwrap_err();
        assert_eq!(e.message(), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
        let e = a.matmul(&Array::zeros(&[3, 5], DType::F64).unwrap(), (false, false)).unwrap_err();
        assert_eq!(e.message(), "expected m1 and m2 to have the same dtype, but got: float != double");
        let c = a.matmul(&Array::zeros(&[0, 3], DType::F32).unwrap(), (false, true)).unwrap();
        assert_eq!(c.shape(), [2, 0]);
        let z = Array::zeros(&[2, 0], DType::F32).unwrap().matmul(&Array::zeros(&[0, 2], DType::F32).unwrap(), (false, false)).unwrap();
        assert_eq!(z.to_vec::<f32>().unwrap(), [0.0; 4]);
    }
}
