//! Matrix products of arrays, over batches that broadcast.

use super::Array;
use super::deferred::source;
use super::run::{device_mismatch, run_on_backend};
use crate::backend::contract::{Operand, View};
use crate::call::{Matmul, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, Layout, Strides, broadcast};
use smallvec::{SmallVec, smallvec};

impl Array {
    /// `op(self) @ op(other)` of (..., m, k) and (..., k, n), where `op` swaps the last two dimensions if asked to. Leading dimensions
    /// broadcast. Both must have rank 2 or more, one dtype and matching inner sizes.
    pub fn matmul(&self, other: &Array, transpose: (bool, bool)) -> Result<Array> {
        Ok(self.matmul_with(other, transpose, None)?.0)
    }

    /// As `matmul`, plus `bias` (n) in each row, if that costs nothing; false if it is left to the caller.
    pub fn matmul_and_bias(&self, other: &Array, transpose: (bool, bool), bias: &Array) -> Result<(Array, bool)> {
        self.matmul_with(other, transpose, Some(bias))
    }

    fn matmul_with(&self, other: &Array, transpose: (bool, bool), bias: Option<&Array>) -> Result<(Array, bool)> {
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
        self.ready()?;
        other.ready()?;
        if !other.storage().is_beside(self.storage()) {
            return Err(device_mismatch("matmul", other, self.device()));
        }
        let a = View { shape: &of_a, strides: &sa, ..self.view() };
        let b = View { shape: &of_b, strides: &sb, ..other.view() };
        let bias = bias.filter(|c| c.shape() == [n] && c.dtype() == self.dtype() && c.storage().is_beside(self.storage()));
        let bias = bias.filter(|_| self.storage().backend().adds_bias([a, b])).map(Array::contiguous).transpose()?;
        let is_sum = bias.is_some();
        if source::is_worth(&Request::Matmul(Matmul), &[Some((&of_a, self.dtype()))], (&shape, self.dtype())) {
            let laid = |x: &Array, v: View<'_>| x.with_layout(Layout::from_parts(v.shape.into(), v.strides.into(), v.offset)?);
            let factors = [laid(self, a)?, laid(other, b)?];
            let operands: SmallVec<[&Array; 3]> = factors.iter().chain(&bias).collect();
            if let Some(made) = source::pending(&Request::Matmul(Matmul), &operands, &shape, self.dtype())? {
                return Ok((made, is_sum));
            }
        }
        let out = self.empty_beside(&shape, self.dtype())?;
        let mut operands: SmallVec<[Operand<'_>; 3]> = smallvec![Operand::View(a), Operand::View(b)];
        if let Some(bias) = &bias {
            bias.ready()?;
            operands.push(Operand::View(bias.view()));
        }
        run_on_backend(&Request::Matmul(Matmul), &operands, &[&out])?;
        Ok((out, is_sum))
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
    #[cfg(target_arch = "x86_64")]
    use crate::simd::instruction_set;

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
    fn a_bias_on_the_way_gives_the_same_bits_as_one_that_is_added() {
        let numbers = |n: usize, of: usize| -> Vec<f64> { (0..n).map(|i| ((i * 7919 + of) % 1013) as f64 / 1013.0 - 0.5).collect() };
        // Several parts of the sum, and tails of rows and columns.
        let mut added = 0;
        for (m, n, k) in [(140, 33, 300), (33, 41, 300), (64, 130, 1100), (4, 64, 64), (1, 300, 300), (2, 3, 4), (300, 5, 1100)] {
            let a = Array::from_slice(&numbers(m * k, 1), &[m, k]).unwrap();
            let w = Array::from_slice(&numbers(n * k, 2), &[n, k]).unwrap();
            let bias = Array::from_slice(&numbers(n, 3), &[n]).unwrap();
            let plain = a.matmul(&w, (false, true)).unwrap();
            let (sum, is_added) = a.matmul_and_bias(&w, (false, true), &bias).unwrap();
            added += usize::from(is_added);
            let bias = if is_added { bias.to_vec::<f64>().unwrap() } else { vec![0.0; n] };
            let want: Vec<f64> = plain.to_vec::<f64>().unwrap().iter().enumerate().map(|(i, v)| v + bias[i % n]).collect();
            assert!(want.iter().zip(sum.to_vec::<f64>().unwrap()).all(|(w, s)| w.to_bits() == s.to_bits()), "{m}x{n}x{k}");
        }
        // Those that are packed or, with AVX-512, have few rows or columns.
        #[cfg(target_arch = "x86_64")]
        assert_eq!(added, [0, 5, 5][instruction_set() as usize]);
        assert!(added <= 5);
        let (a, w) = (Array::zeros(&[2, 3], DType::F32).unwrap(), Array::zeros(&[4, 3], DType::F32).unwrap());
        for other in [Array::zeros(&[1], DType::F32), Array::zeros(&[4], DType::F64), Array::zeros(&[2, 4], DType::F32)] {
            assert!(!a.matmul_and_bias(&w, (false, true), &other.unwrap()).unwrap().1);
        }
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
