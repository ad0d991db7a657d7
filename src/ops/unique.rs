//! Unique elements: of a whole tensor, of its slices along a dimension, or of neighbours only.

use super::index::{WriteTarget, index_select};
use super::mask::nonzero;
use super::order::{refuse_complex, sort};
use super::pointwise as pw;
use super::{gather, join, scan, shape};
use crate::array::Array;
use crate::autograd::{Arrays, Grads, Name, Op, Tensor, Vjp, VjpCx, apply1, primitives};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, wrap_dim};
use smallvec::smallvec;

/// The results of `unique`.
#[derive(Debug)]
pub struct Unique {
    pub values: Tensor,
    /// For each input element (or slice) its index among the values.
    pub inverse: Tensor,
    /// The number of occurrences of each value.
    pub counts: Tensor,
}

/// The node of a selection of the input's elements. Its backward raises: as in PyTorch there is no derivative.
#[derive(Debug, Clone)]
struct Chosen {
    values: Array,
    name: &'static str,
    node: &'static str,
}

impl Vjp for Chosen {
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, _grads: &Grads) -> Result<Grads> {
        Err(Error::not_implemented(format!("the derivative for '{}' is not implemented.", self.name)))
    }
}

impl Op for Chosen {
    fn name(&self) -> &'static str {
        self.name
    }
    fn forward(&self, _x: &[&Array]) -> Result<Arrays> {
        Ok(smallvec![self.values.clone()])
    }
}

/// Groups of neighbours in a row of `n`, given where each element but the first differs from the one before it.
struct Groups {
    /// Where a group starts.
    first: Tensor,
    /// For each element the number of its group.
    number: Tensor,
    counts: Tensor,
}

fn groups(n: usize, differs: &Tensor) -> Result<Groups> {
    let one = super::create::full_on(differs.device(), &[n.min(1)], Scalar::Bool(true), Some(DType::Bool))?;
    let starts = join::cat(&[one, differs.clone()], 0)?;
    let number = pw::sub(&scan::cumsum(&starts, 0, None)?, Scalar::Int(1))?;
    let first = shape::select(&nonzero(&starts)?, 1, 0)?;
    let end = super::create::full_on(differs.device(), &[1], Scalar::Int(n as i64), Some(DType::I64))?;
    let bounds = join::cat(&[first.clone(), end], 0)?;
    let k = first.numel() as i64;
    let counts = pw::sub(&shape::narrow(&bounds, 0, 1, k)?, &shape::narrow(&bounds, 0, 0, k)?)?;
    Ok(Groups { first, number, counts })
}

/// Where each element of a vector (or slice along dimension 0) differs from the one before.
fn differs(rows: &Tensor) -> Result<Tensor> {
    let n = rows.shape()[0] as i64;
    let (a, b) = (shape::narrow(rows, 0, n.min(1), (n - 1).max(0))?, shape::narrow(rows, 0, 0, (n - 1).max(0))?);
    pw::ne(&a, &b)
}

/// The inverse of sorting: `number[i]` to where the i-th sorted element came from.
fn unsort(number: &Tensor, order: &Tensor) -> Result<Tensor> {
    let zeros = super::create::full_on(number.device(), &number.shape(), Scalar::Int(0), Some(DType::I64))?;
    gather::scatter(WriteTarget::New, &zeros, 0, order, number.into(), gather::Reduce::Set)
}

/// The unique elements of all of `x` in ascending order; every nan is one of its own.
pub fn unique(x: &Tensor) -> Result<Unique> {
    refuse_complex(x, "unique")?;
    x.values_for_shape("unique")?;
    let flat = primitives::reshape(&x.detach(), &[x.numel()])?;
    let (sorted, order) = sort(&flat, 0, false)?;
    let g = groups(x.numel(), &differs(&sorted)?)?;
    let values = index_select(&sorted, 0, &g.first)?;
    let inverse = primitives::reshape(&unsort(&g.number, &order)?, &x.shape())?;
    let values = chosen(x, &values, "_unique2", "Unique2Backward0")?;
    Ok(Unique { values, inverse, counts: g.counts })
}

/// The positions that are written with `value`. A position that is named twice gives a value with a gradient that once.
pub(crate) fn named_once(index: &Tensor, value: &Tensor) -> Result<Tensor> {
    if value.requires_grad() && index.numel() > 1 && !index.is_batched() { Ok(unique(index)?.values) } else { Ok(index.clone()) }
}

fn chosen(x: &Tensor, values: &Tensor, name: &'static str, node: &'static str) -> Result<Tensor> {
    apply1(&Chosen { values: values.values("unique()")?, name, node }, &[x])
}

/// The elements of each slice along `dim` as one row of a matrix.
fn rows_of(x: &Tensor, dim: i64) -> Result<Tensor> {
    let d = wrap_dim(dim, x.rank())?;
    if x.rank() == 0 {
        return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    let s = x.shape();
    if s.iter().enumerate().any(|(i, n)| *n == 0 && i != d) {
        return Err(Error::runtime(format!(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: got shape {:?} and dim {dim}",
            &s[..]
        )));
    }
    let n = s[d];
    primitives::reshape(&shape::movedim(&x.detach(), &[dim], &[0])?, &[n, x.numel().checked_div(n).unwrap_or(0)])
}

/// Whether some element of a row differs from the row before.
fn rows_differ(rows: &Tensor) -> Result<Tensor> {
    super::reduce::truth(&differs(rows)?, false, Some(&[1]), false)
}

/// The unique slices along `dim`, in lexicographic order.
pub fn unique_along(x: &Tensor, dim: i64) -> Result<Unique> {
    refuse_complex(x, "unique_dim")?;
    let rows = rows_of(x, dim)?;
    let n = rows.shape()[0];
    let order = super::create::arange(Scalar::Int(0), Scalar::Int(n as i64), Scalar::Int(1), None)?;
    let mut order = primitives::to_device(&order, x.device())?;
    // Sorts by the columns from the least significant one on: a stable sort keeps the order of equal elements.
    for c in (0..rows.shape()[1] as i64).rev() {
        let key = index_select(&shape::select(&rows, 1, c)?, 0, &order)?;
        order = index_select(&order, 0, &sort(&key, 0, false)?.1)?;
    }
    let sorted = index_select(&rows, 0, &order)?;
    let g = groups(n, &rows_differ(&sorted)?)?;
    let first = index_select(&order, 0, &g.first)?;
    let inverse = unsort(&g.number, &order)?;
    let values = chosen(x, &slices(x, dim, &first)?, "unique_dim", "UniqueDimBackward0")?;
    Ok(Unique { values, inverse, counts: g.counts })
}

/// Slices of `x` along `dim`, contiguous in memory.
fn slices(x: &Tensor, dim: i64, which: &Tensor) -> Result<Tensor> {
    let chosen = index_select(&shape::movedim(&x.detach(), &[dim], &[0])?, 0, which)?;
    shape::movedim(&chosen, &[0], &[dim])
}

/// The elements (slices along `dim`) that differ from their predecessor.
pub fn unique_consecutive(x: &Tensor, dim: Option<i64>) -> Result<Unique> {
    refuse_complex(x, if dim.is_some() { "unique_dim" } else { "unique" })?;
    let name = if dim.is_some() { "unique_dim_consecutive" } else { "unique_consecutive" };
    let (g, values, shape) = match dim {
        None => {
            let flat = primitives::reshape(&x.detach(), &[x.numel()])?;
            let g = groups(x.numel(), &differs(&flat)?)?;
            let values = index_select(&flat, 0, &g.first)?;
            (g, values, x.shape())
        }
        Some(d) => {
            let rows = rows_of(x, d)?;
            let n = rows.shape()[0];
            let g = groups(n, &rows_differ(&rows)?)?;
            let values = slices(x, d, &g.first)?;
            (g, values, Dims::from_slice(&[n]))
        }
    };
    Ok(Unique {
        values: chosen(x, &values, name, "UniqueConsecutiveBackward0")?,
        inverse: primitives::reshape(&g.number, &shape)?,
        counts: g.counts,
    })
}
