//! Sorting, and selection by rank or frequency.

use super::declared::declare;
use super::extreme::{SelectionKind, check_not_empty, max_along, select_along};
use super::gather::gather;
use super::pointwise as pw;
use super::reduce::{ReducedDims, one_dim, sum};
use super::shape::squeeze_dim;
use crate::autograd::Tensor;
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar};
use crate::rows::RowId;
use smallvec::SmallVec;

/// Sorts along `dim`, always stably; nan is the largest.
pub fn sort(x: &Tensor, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
    if x.dtype().is_complex() {
        return Err(Error::runtime("Sort does not support complex dtypes on CPU"));
    }
    let d = one_dim(x, dim)?;
    let keep = x.shape().get(d).copied().unwrap_or(1);
    select_along(x, d, SelectionKind::Sort { descending, keep, node: "SortBackward0" })
}

/// The `k` largest (or smallest) elements along `dim`, in order.
pub fn topk(x: &Tensor, k: i64, dim: i64, largest: bool) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    let n = x.shape().get(d).copied().unwrap_or(1);
    let keep = match usize::try_from(k) {
        Ok(k) if k <= n => k,
        _ => return Err(Error::runtime(format!("selected index k out of range: topk got k = {k} for dimension {d} of size {n}"))),
    };
    if x.dtype().is_complex() {
        return Err(Error::runtime("topk does not support complex dtypes on CPU"));
    }
    if x.dtype() == DType::Bool {
        return Err(Error::runtime("topk does not support bool dtypes on CPU; convert the tensor first, as with .int()"));
    }
    select_along(x, d, SelectionKind::Sort { descending: largest, keep, node: "TopkBackward0" })
}

/// Refuses complex numbers, which have no order.
pub(super) fn refuse_complex(x: &Tensor, kernel: &str) -> Result<()> {
    if x.dtype().is_complex() {
        let dtype = x.dtype().type_name();
        return Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{dtype}': complex numbers have no order")));
    }
    Ok(())
}

pub(super) fn refuse_bool(x: &Tensor, kernel: &str) -> Result<()> {
    refuse_complex(x, kernel)?;
    if x.dtype() == DType::Bool {
        return Err(Error::not_implemented(format!("\"{kernel}\" not implemented for 'Bool': convert the tensor first, as with .int()")));
    }
    Ok(())
}

/// The `k`-th smallest element along `dim`, counted from 1.
pub fn kthvalue(x: &Tensor, k: i64, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    let n = x.shape().get(d).copied().unwrap_or(1);
    refuse_bool(x, "kthvalue_cpu")?;
    match usize::try_from(k) {
        Ok(k) if (1..=n).contains(&k) => select_along(x, d, SelectionKind::Nth { k: k - 1, keepdim }),
        _ => Err(Error::runtime(format!("kthvalue(): selected number k out of range for dimension {d}: got {k}, expected 1 to {n}"))),
    }
}

/// The most frequent element along `dim`, the smallest of equally frequent ones, and its last position.
pub fn mode(x: &Tensor, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    refuse_complex(x, "mode_cpu")?;
    check_not_empty("mode", &ReducedDims::new(x, Some(&[dim]), keepdim)?, true)?;
    select_along(x, d, SelectionKind::Mode { keepdim })
}

/// The lower median along `dim` and its position; of an even number of elements the smaller of the two in the middle. nan if there is one, or
/// with `skip_nan` if all are nan.
pub fn median(x: &Tensor, dim: i64, keepdim: bool, skip_nan: bool) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    refuse_complex(x, "median_out")?;
    refuse_bool(x, "median_cpu")?;
    check_not_empty("median", &ReducedDims::new(x, Some(&[dim]), keepdim)?, true)?;
    select_along(x, d, SelectionKind::Median { keepdim, skip_nan })
}

/// `median` of values without history.
pub(super) fn lower_median(x: &Tensor, dim: i64, keepdim: bool, skip_nan: bool) -> Result<(Tensor, Tensor)> {
    let d = one_dim(x, dim)?;
    let n = x.shape().get(d).copied().unwrap_or(1);
    let lowest = |x: &Tensor| select_along(x, d, SelectionKind::Nth { k: (n - 1) / 2, keepdim });
    let all: SmallVec<[bool; 8]> = SmallVec::from_elem(true, x.rank());
    if !x.dtype().is_float() || !pw::isnan(x)?.array()?.truth(false, &all, false)?.first()?.to_bool() {
        return lowest(x);
    }
    // nan sorts last.
    if !skip_nan {
        // Rows that have a nan return it.
        let ((low, low_at), (high, high_at)) = (lowest(x)?, max_along(x, true, dim, keepdim)?);
        let is_nan = pw::isnan(&high)?;
        return Ok((pw::where_(&is_nan, &high, &low)?, pw::where_(&is_nan, &high_at, &low_at)?));
    }
    if x.rank() == 0 {
        return lowest(x);
    }
    let (values, positions) = sort(x, dim, false)?;
    let real = pw::logical_not(&pw::isnan(&values)?)?;
    let last = pw::sub(&sum(&real, Some(&[dim]), true, None)?, Scalar::Int(1))?;
    let at = pw::call(RowId::FloorDivide, &[(&pw::maximum(&last, Scalar::Int(0))?).into(), Scalar::Int(2).into()], &[])?;
    let (v, p) = (gather(&values, dim, &at)?, gather(&positions, dim, &at)?);
    if keepdim { Ok((v, p)) } else { Ok((squeeze_dim(&v, dim)?, squeeze_dim(&p, dim)?)) }
}

declare! {
    /// Sorted values along `dim` and where they came from; always stable, nan counts as the largest.
    fn sort(input: &Tensor, dim: i64 = -1, descending: bool = false, stable: Option<bool> = None) -> (Tensor, Tensor) = |x, d, down, _| sort(x, d, down);
    /// The values sorted along dimension 0.
    fn msort(input: &Tensor) -> Tensor = |x| sort(x, 0, false).map(|r| r.0);
    /// The positions of elements in sorted order along `dim`; always stable, nan counts as the largest.
    fn argsort(input: &Tensor, dim: i64 = -1, descending: bool = false, stable: bool = false) -> Tensor =
        |x: &Tensor, d, down, _| sort(&x.detach(), d, down).map(|r| r.1);
    /// The `k` largest (or smallest) elements along `dim`, in order, and where they stand.
    fn topk(input: &Tensor, k: i64, dim: i64 = -1, largest: bool = true, sorted: bool = true) -> (Tensor, Tensor) =
        |x, k, d, largest, _| topk(x, k, d, largest);
    /// The `k`-th smallest element along `dim`, counted from 1, and where it stands.
    fn kthvalue(input: &Tensor, k: i64, dim: i64 = -1, keepdim: bool = false) -> (Tensor, Tensor) = kthvalue;
    /// The most frequent element along `dim` (the smallest of equally frequent ones) and where it stands last.
    fn mode(input: &Tensor, dim: i64 = -1, keepdim: bool = false) -> (Tensor, Tensor) = mode;
}
