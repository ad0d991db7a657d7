//! Selection by a mask, and the positions of nonzero elements.

use super::index::{MASKED_SCATTER, MASKED_SELECT, WriteTarget, at_least_1d, on_dims, put_at, take_rows};
use crate::array::{Array, IndexPlan};
use crate::autograd::{Tensor, missing_gradient, primitives};
use crate::error::{Error, Result};
use crate::host::language;
use crate::layout::{DType, fmt_shape};
use smallvec::SmallVec;

/// The positions of the elements that are not zero: one int64 vector for each dimension.
pub fn nonzero_tuple(x: &Tensor) -> Result<SmallVec<[Tensor; 4]>> {
    let a = x.values_for_shape("nonzero")?;
    let a = if a.rank() == 0 { a.with_layout(a.layout().unsqueeze(0))? } else { a };
    let columns = language::unlocked_if_large(a.numel(), || a.nonzero())?;
    let out: SmallVec<[Tensor; 4]> = columns.into_iter().map(Tensor::new).collect();
    out.iter().for_each(|t| missing_gradient::mark_result("nonzero", x, t));
    Ok(out)
}

/// The positions of the elements that are not zero, one in each row of an int64 matrix.
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    let out = Tensor::new(positions(x.values_for_shape("nonzero")?)?);
    missing_gradient::mark_result("nonzero", x, &out);
    Ok(out)
}

fn positions(a: Array) -> Result<Array> {
    if a.rank() == 0 {
        let n = usize::from(a.first()?.to_bool());
        return a.empty_beside(&[n, 0], DType::I64);
    }
    let columns = language::unlocked_if_large(a.numel(), || a.nonzero())?;
    let out = a.empty_beside(&[columns[0].numel(), columns.len()], DType::I64)?;
    for (d, c) in columns.iter().enumerate() {
        out.with_layout(out.layout().select(1, d as i64)?)?.copy_from(c)?;
    }
    Ok(out)
}

fn broadcast_pair(x: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
    let shape = crate::layout::broadcast(&mask.shape(), &x.shape())?;
    let wide = |t: &Tensor| if t.shape() == shape { Ok(t.clone()) } else { crate::ops::shape::expand_to(t, &shape) };
    Ok((wide(x)?, wide(mask)?))
}

/// The elements where the mask holds, in one dimension; both are broadcast together.
pub fn masked_select(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return Err(Error::runtime(format!("masked_select: expected BoolTensor for mask, got {}", mask.dtype())));
    }
    if mask.level() > 0 && mask.is_batched() {
        return Err(Error::runtime(
            "vmap: Attempted to vmap over `mask` in masked_select(self, mask). We cannot support this because for each batch this would \
             return a differently shaped Tensor; use where(mask, ...) instead.",
        ));
    }
    let (x, mask) = broadcast_pair(x, mask)?;
    let x = at_least_1d(&x)?;
    let index = nonzero_tuple(&mask)?;
    take_rows(&x, IndexPlan::of((0..x.rank()).collect()), &index, &MASKED_SELECT)
}

/// `x` with consecutive elements of `source` where the mask holds.
pub fn masked_scatter(place: WriteTarget, x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    if x.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "masked_scatter: expected self and source to have same dtypes but got {} and {}",
            x.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    if mask.dtype() != DType::Bool {
        return Err(Error::runtime(format!("masked_scatter_ only supports boolean masks, but got mask with dtype {}", mask.dtype())));
    }
    let (wide, mask) = broadcast_pair(x, mask)?;
    if place == WriteTarget::Same && wide.shape() != x.shape() {
        return Err(Error::shape(format!(
            "output with shape {} doesn't match the broadcast shape {}",
            fmt_shape(&x.shape()),
            fmt_shape(&wide.shape())
        )));
    }
    let index = nonzero_tuple(&mask)?;
    let n = index[0].numel();
    if source.numel() < n {
        return Err(Error::runtime(format!(
            "masked_scatter: Number of elements of source < number of ones in mask (got {} and {n})",
            source.numel()
        )));
    }
    let flat = primitives::reshape(source, &[source.numel()])?;
    let values = crate::ops::shape::narrow(&flat, 0, 0, n as i64)?;
    // An in-place write must go to the given tensor itself.
    let target = if place == WriteTarget::Same { x } else { &wide };
    on_dims(place, target, |x, place| {
        let plan = IndexPlan::of((0..x.rank()).collect());
        put_at(place, x, plan, &index, &values, false, &MASKED_SCATTER, "masked_scatter_")
    })
}
