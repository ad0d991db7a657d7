//! Quantiles, interpolated between neighbours in sorted order; `nanmean` and `bincount`.

use super::extreme::amax;
use super::gather::gather;
use super::order::sort;
use super::pointwise as pw;
use super::{index, reduce, shape};
use crate::array::Device;
use crate::autograd::dispatch::autocast;
use crate::autograd::{Creation, Tensor, ViewOp, primitives, unrelated, view_as};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar};
use crate::rows::RowId;

/// What to take between two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpolation {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

impl Interpolation {
    pub fn parse(name: &str, word: &str) -> Result<Interpolation> {
        Ok(match word {
            "linear" => Interpolation::Linear,
            "lower" => Interpolation::Lower,
            "higher" => Interpolation::Higher,
            "midpoint" => Interpolation::Midpoint,
            "nearest" => Interpolation::Nearest,
            other => {
                return Err(Error::runtime(format!(
                    "{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {other}"
                )));
            }
        })
    }
}

/// Which quantiles: one number, or a tensor of no or one dimension.
#[derive(Debug, Clone, Copy)]
pub enum Q<'a> {
    Number(f64),
    Tensor(&'a Tensor),
}

fn check(name: &str, x: &Tensor, q: Q<'_>) -> Result<()> {
    let refuse = |what: String| Err(Error::runtime(format!("{name}() {what}")));
    if !x.dtype().is_float() {
        return refuse(format!("input tensor must be either float or double dtype, got {}", x.dtype()));
    }
    if x.numel() == 0 {
        return refuse(format!("input tensor must be non-empty, got shape {:?}", &x.shape()[..]));
    }
    match q {
        Q::Number(v) if !(0.0..=1.0).contains(&v) => refuse(format!("q must be in the range [0, 1] but got {v}")),
        Q::Tensor(t) if t.rank() > 1 => refuse(format!("q must be a scalar or 1D tensor, got {} dimensions", t.rank())),
        Q::Tensor(t) if t.dtype() != x.dtype() => {
            refuse(format!("q tensor must be same dtype as the input tensor, got {} and {}", t.dtype(), x.dtype()))
        }
        Q::Tensor(t)
            // The host looks at them, and it has float64.
            if primitives::cast(&primitives::to_device(&t.detach(), Device::CPU)?, DType::F64)?
                .values("quantile()")?
                .to_vec::<f64>()?
                .iter()
                .any(|v| !(0.0..=1.0).contains(v)) =>
        {
            refuse("q values must be in the range [0, 1]".into())
        }
        _ => Ok(()),
    }
}

/// The `q`-quantiles along `dim` (of all elements without). Several of them form a new first dimension. A nan makes a row's quantiles nan,
/// or with `skip_nan` is passed over.
pub fn quantile(x: &Tensor, q: Q<'_>, dim: Option<i64>, keepdim: bool, how: Interpolation, skip_nan: bool) -> Result<Tensor> {
    let cast = autocast::widen([x])?;
    let [x] = cast.of([x]);
    let name = if skip_nan { "nanquantile" } else { "quantile" };
    check(name, x, q)?;
    let several = matches!(q, Q::Tensor(t) if t.rank() == 1);
    let rank = x.rank();
    // Rows to the last dimension.
    let rows = match dim {
        None => primitives::reshape(x, &[x.numel()])?,
        Some(d) if rank > 0 => shape::movedim(x, &[d], &[-1])?,
        Some(d) => shape::unsqueeze(x, d)?,
    };
    let (sorted, _) = sort(&rows, -1, false)?;
    let n = sorted.shape()[sorted.rank() - 1];
    let q = match q {
        Q::Number(v) => primitives::to_device(&pw::number(Scalar::Float(v), x.dtype())?, x.device())?,
        Q::Tensor(t) => t.clone(),
    };
    let q = primitives::reshape(&q, &[q.numel()])?;
    let nan = pw::isnan(&sorted.detach())?;
    let ranks = if skip_nan {
        let last = pw::sub(&reduce::sum(&pw::logical_not(&nan)?, Some(&[-1]), true, None)?, Scalar::Int(1))?;
        pw::maximum(&pw::mul(&q, &primitives::cast(&last, x.dtype())?)?, 0.0)?
    } else {
        // nan sorts last, so for a row that has one the last element is taken.
        let last = (n - 1) as f64;
        pw::where_(&reduce::truth(&nan, false, Some(&[-1]), true)?, last, &pw::mul(&q, last)?)?
    };
    let row = |f: RowId, t: &Tensor| pw::call(f, &[t.into()], &[]);
    let ranks = match how {
        Interpolation::Lower => row(RowId::Floor, &ranks)?,
        Interpolation::Higher => row(RowId::Ceil, &ranks)?,
        Interpolation::Nearest => row(RowId::Round, &ranks)?,
        _ => ranks,
    };
    let pick = |ranks: &Tensor| gather(&sorted, -1, &primitives::cast(&ranks.detach(), DType::I64)?);
    let below = row(RowId::Floor, &ranks)?;
    let mut out = pick(&below)?;
    if matches!(how, Interpolation::Linear | Interpolation::Midpoint) {
        let weight = if how == Interpolation::Midpoint {
            super::create::full_like(&ranks, Scalar::Float(0.5), None)?
        } else {
            pw::sub(&ranks, &below)?
        };
        out = pw::call(RowId::Lerp, &[(&out).into(), (&pick(&row(RowId::Ceil, &ranks)?)?).into(), (&weight).into()], &[])?;
    }
    finish(&out, several, dim, keepdim, rank)
}

/// From (rows, quantiles) to PyTorch's order: quantiles first if there may be several, the reduced dimension where it was if it stays.
fn finish(out: &Tensor, several: bool, dim: Option<i64>, keepdim: bool, rank: usize) -> Result<Tensor> {
    let mut out = match (dim, keepdim) {
        (None, false) => out.clone(),
        (None, true) => {
            let mut s: Dims = Dims::from_elem(1, rank);
            s.push(out.numel());
            primitives::reshape(out, &s)?
        }
        (Some(_), false) => out.clone(),
        (Some(d), true) if rank > 0 => shape::movedim(&shape::unsqueeze(out, -2)?, &[-2], &[if d < 0 { d - 1 } else { d }])?,
        (Some(_), true) => out.clone(),
    };
    // A single quantile leaves its dimension of size 1. Several quantiles move to the front and leave a dimension of size 1.
    let last = out.rank();
    let gone = if several {
        out = shape::unsqueeze(&shape::movedim(&out, &[last as i64 - 1], &[0])?, -1)?;
        last
    } else {
        last - 1
    };
    Ok(unrelated(view_as(&out, ViewOp::Squeeze(Dims::from_elem(gone, 1)), Some("SqueezeBackward4".into()), Creation::Normal)?))
}

/// The mean of the elements that are not nan; nan if there are none.
pub fn nanmean(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(Error::runtime(format!(
            "nanmean(): expected input to have floating point or complex dtype but got {}",
            x.dtype().type_name()
        )));
    }
    // Sums and counts may be larger than any number of a 16-bit float.
    let to = dtype.unwrap_or(x.dtype());
    let sum = reduce::nansum(x, dims, keepdim, if to.is_half() { Some(DType::F32) } else { dtype })?;
    let count = reduce::sum(&pw::logical_not(&pw::isnan(&x.detach())?)?, dims, keepdim, None)?;
    primitives::cast(&pw::div(&sum, &count)?, to)
}

/// The number of occurrences of 0, 1, 2, ... among non-negative integers, or the sum of their weights; at least `minlength` results.
pub fn bincount(x: &Tensor, weights: Option<&Tensor>, minlength: i64) -> Result<Tensor> {
    if x.dtype().is_float() || x.dtype() == DType::Bool {
        return Err(Error::not_implemented(format!("\"bincount_cpu\" not implemented for '{}'", x.dtype().type_name())));
    }
    if x.rank() != 1 {
        return Err(Error::runtime(format!("bincount only supports 1-d non-negative integral inputs, got shape {:?}", &x.shape()[..])));
    }
    if minlength < 0 {
        return Err(Error::runtime(format!("minlength should be >= 0, got {minlength}")));
    }
    let at = primitives::cast(x, DType::I64)?;
    let mut n = 0;
    if at.numel() > 0 {
        let extreme = |max: bool| -> Result<i64> { Ok(amax(&at, max, None, false)?.values_for_shape("bincount")?.first()?.to_i64()) };
        let least = extreme(false)?;
        if least < 0 {
            return Err(Error::runtime(format!("bincount only supports 1-d non-negative integral inputs, got an element {least}")));
        }
        n = extreme(true)?.saturating_add(1);
    }
    let size = usize::try_from(n.max(minlength)).unwrap_or(usize::MAX);
    let weights = match weights {
        None => super::create::full_on(x.device(), &[x.numel()], Scalar::Int(1), Some(DType::I64))?,
        Some(w) if w.rank() != 1 || w.numel() != x.numel() => {
            return Err(Error::runtime("weights should be 1-d and have the same length as input"));
        }
        Some(w) if w.dtype() == DType::F32 => w.detach(),
        Some(w) => primitives::cast(&w.detach(), DType::F64)?,
    };
    let zeros = super::create::full_on(x.device(), &[size], Scalar::Int(0), Some(weights.dtype()))?;
    index::index_add(index::WriteTarget::New, &zeros, 0, &at, &weights, Scalar::Int(1))
}
