//! Reductions by sums and products: sum, mean, prod, var, std; and all, any, count_nonzero, which have no derivative.

use super::declared::declare;
use super::pointwise as pw;
use super::{join, scan};
use crate::array::{Array, Device, reduced_shape};
use crate::autograd::dispatch::autocast;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Name, Op, Outputs, Saves, Tangent, Tensor, ViewOp, Vjp, VjpCx, apply, apply1, primitives, view};
use crate::call::{Reducer, summed};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar, wrap_dim, wrap_dims};
use crate::rows::RowId;
use crate::rows::{Func, Part};
use smallvec::{SmallVec, smallvec};

/// The input shape of a reduction, which dimensions are reduced, and whether they stay with size 1.
#[derive(Debug, Clone)]
pub struct ReducedDims {
    pub mask: SmallVec<[bool; 8]>,
    pub shape: Dims,
    pub keepdim: bool,
}

impl ReducedDims {
    /// All dimensions if `dims` is None or empty.
    pub fn new(x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<ReducedDims> {
        let shape = x.shape();
        let rank = shape.len();
        let mut mask: SmallVec<[bool; 8]> = SmallVec::from_elem(true, rank);
        if let Some(dims) = dims.filter(|d| !d.is_empty()) {
            mask.fill(false);
            for d in wrap_dims(dims, rank)? {
                if rank > 0 {
                    mask[d] = true;
                }
            }
        }
        Ok(ReducedDims { mask, shape, keepdim })
    }

    /// The same dimensions after a leading batch dimension.
    pub(crate) fn shifted(&self, size: usize) -> ReducedDims {
        let mut mask: SmallVec<[bool; 8]> = smallvec![false];
        mask.extend_from_slice(&self.mask);
        let mut shape = Dims::from_slice(&[size]);
        shape.extend_from_slice(&self.shape);
        ReducedDims { mask, shape, keepdim: self.keepdim }
    }

    /// The input's shape with sizes of 1 where it is reduced.
    pub(crate) fn keepdim_shape(&self) -> Dims {
        reduced_shape(&self.shape, &self.mask, true)
    }

    /// The saved attributes of a node.
    pub(crate) fn saved_attributes(&self) -> SavedAttributes {
        let dims = self.mask.iter().enumerate().filter(|(_, m)| **m).map(|(d, _)| d as i64);
        smallvec![("dim", SavedAttribute::Ints(dims.collect())), ("keepdim", SavedAttribute::Bool(self.keepdim))]
    }

    /// How many elements go into each result.
    pub fn count(&self) -> usize {
        self.shape.iter().zip(&self.mask).filter(|(_, m)| **m).map(|(s, _)| *s).product()
    }

    /// How many results there are.
    pub fn results(&self) -> usize {
        self.shape.iter().zip(&self.mask).filter(|(_, m)| !**m).map(|(s, _)| *s).product()
    }

    /// A tensor of the result's shape with the reduced dimensions as sizes of 1, so that it broadcasts against the input.
    pub fn restore(&self, t: &Tensor) -> Result<Tensor> {
        if self.keepdim || t.rank() == 0 || self.mask.iter().all(|m| !m) {
            return Ok(t.clone());
        }
        primitives::reshape(t, &reduced_shape(&self.shape, &self.mask, true))
    }

    /// A tensor of the result's shape expanded to the input's.
    pub fn expand(&self, t: &Tensor) -> Result<Tensor> {
        view(&self.restore(t)?, ViewOp::Expand(self.shape.clone()))
    }
}

pub(crate) fn one(g: Tensor) -> Grads {
    smallvec![Some(g)]
}

/// Runs a row on arrays with a number as second operand, in place.
pub(crate) fn with_number(out: &Array, row: RowId, value: f64) -> Result<()> {
    let number = Array::scalar(Scalar::Float(value), out.dtype())?;
    out.pointwise_into(Func { row, part: Part::Forward }, out.dtype(), &[out, &number], &[])
}

// ---- sum and mean ----------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct Sum {
    over: ReducedDims,
    dtype: Option<DType>,
    mean: bool,
    node: &'static str,
    /// Whether the dimensions are saved attributes.
    shows_dims: bool,
}

impl Sum {
    /// PyTorch's node names depend on whether dims were given.
    fn new(over: ReducedDims, dtype: Option<DType>, mean: bool, named: bool) -> Sum {
        let node = match (mean, named) {
            (false, false) => "SumBackward0",
            (false, true) => "SumBackward1",
            (true, false) => "MeanBackward0",
            (true, true) => "MeanBackward1",
        };
        Sum { over, dtype, mean, node, shows_dims: named }
    }
}

impl Vjp for Sum {
    fn node_name(&self) -> Name {
        self.node.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = if self.shows_dims { self.over.saved_attributes() } else { SavedAttributes::new() };
        attributes.push(("self_sym_sizes", SavedAttribute::sizes(&self.over.shape)));
        if self.mean {
            attributes.push(("self_sym_numel", SavedAttribute::at(self.over.shape.iter().product())));
        }
        attributes
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        if self.mean {
            return Ok(one(self.over.expand(&pw::div(g, self.over.count() as f64)?)?));
        }
        Ok(one(self.over.expand(g)?))
    }
}

impl Op for Sum {
    fn name(&self) -> &'static str {
        if self.mean { "mean" } else { "sum" }
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let cast;
        let x = match self.dtype {
            Some(d) if d != x[0].dtype() => {
                cast = x[0].converted(d)?;
                &cast
            }
            _ => x[0],
        };
        let own = summed(x.dtype());
        let out = x.reduce_unrounded(Reducer::Sum, &self.over.mask, self.over.keepdim)?;
        if self.mean {
            with_number(&out, RowId::Div, self.over.count() as f64)?;
        }
        Ok(smallvec![out.cast(self.dtype.unwrap_or(own))?])
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(Sum { over: self.over.shifted(batch), ..self.clone() })
    }
}

/// The sum over `dims` (all without). Integers and bool give int64 unless `dtype` says otherwise.
pub fn sum(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let over = ReducedDims::new(x, dims, keepdim)?;
    apply1(&Sum::new(over, dtype, false, dims.is_some()), &[x])
}

/// The arithmetic mean over `dims` (all without); nan of nothing.
pub fn mean(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let to = dtype.unwrap_or(x.dtype());
    if !to.is_differentiable() {
        let what = if dtype.is_some() { "Optional" } else { "Input" };
        return Err(Error::dtype(format!(
            "mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: {}",
            to.type_name()
        )));
    }
    let over = ReducedDims::new(x, dims, keepdim)?;
    apply1(&Sum::new(over, dtype, true, dims.is_some()), &[x])
}

/// The mean or sum of all elements, as the last step of an operation that names the node.
pub(crate) fn mean_as(x: &Tensor, mean: bool, node: Option<&'static str>) -> Result<Tensor> {
    let over = ReducedDims::new(x, None, false)?;
    let sum = Sum::new(over, None, mean, false);
    apply1(&Sum { node: node.unwrap_or(sum.node), ..sum }, &[x])
}

/// The sum with nan counted as 0.
pub fn nansum(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return Err(Error::runtime("nansum on CPU does not support complex inputs"));
    }
    if !x.dtype().is_float() {
        return sum(x, dims, keepdim, dtype);
    }
    let real = pw::where_(&pw::isnan(x)?, 0.0, x)?;
    apply1(
        &Sum { node: "NansumBackward0", shows_dims: false, ..Sum::new(ReducedDims::new(x, dims, keepdim)?, dtype, false, false) },
        &[&real],
    )
}

// ---- prod ------------------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct Prod {
    over: ReducedDims,
    dtype: Option<DType>,
    named: bool,
}

impl Vjp for Prod {
    fn node_name(&self) -> Name {
        if self.named { "ProdBackward1" } else { "ProdBackward0" }.into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes: SavedAttributes = smallvec![("self", SavedAttribute::Input(0)), ("result", SavedAttribute::Output(0))];
        if self.named {
            attributes.push(("dim", SavedAttribute::at(self.over.mask.iter().position(|m| *m).unwrap_or(0))));
            attributes.push(("keepdim", SavedAttribute::Bool(self.over.keepdim)));
        }
        attributes
    }
    fn pull(&self, cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        let x = primitives::conj(&primitives::cast(&cx.input(0)?, g.dtype())?)?;
        if x.rank() == 0 {
            return Ok(one(g.clone()));
        }
        if !scan::has_zero(&x)? {
            let of_all = pw::mul(g, &primitives::conj(&cx.output(0)?)?)?;
            return Ok(one(pw::div(&self.over.restore(&of_all)?, &x)?));
        }
        // The product of all other factors, without a division: those before times those after.
        let (flat, dim) = match self.over.mask.iter().position(|m| *m) {
            Some(d) if self.named => (x.clone(), d),
            _ => (primitives::reshape(&x, &[x.numel()])?, 0),
        };
        let others = pw::mul(&scan::products_before(&flat, dim)?, &scan::products_after(&flat, dim)?)?;
        let others = primitives::reshape(&others, &x.shape())?;
        Ok(one(pw::mul(&self.over.restore(g)?, &others)?))
    }
}

impl Op for Prod {
    fn name(&self) -> &'static str {
        "prod"
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let x = match self.dtype {
            Some(d) => x[0].converted(d)?,
            None => x[0].clone(),
        };
        let out = x.prod(&self.over.mask, self.over.keepdim)?;
        Ok(smallvec![match self.dtype {
            Some(d) => out.cast(d)?,
            None => out,
        }])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        Saves::NOTHING.input(0).output(0)
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(Prod { over: self.over.shifted(batch), ..self.clone() })
    }
    fn tangent(&self) -> Tangent {
        Tangent::Reduced(self.over.keepdim_shape())
    }
}

/// The product over one dimension (all without). Integers and bool give int64 unless `dtype` says otherwise.
pub fn prod(x: &Tensor, dim: Option<i64>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let cast = autocast::widen([x])?;
    let [x] = cast.of([x]);
    let dims = dim.map(|d| [d]);
    let over = ReducedDims::new(x, dims.as_ref().map(|d| &d[..]), keepdim)?;
    apply1(&Prod { over, dtype, named: dim.is_some() }, &[x])
}

// ---- var and std -----------------------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
struct Var {
    over: ReducedDims,
    correction: f64,
    root: bool,
    /// The mean is a second result.
    mean: bool,
}

impl Var {
    /// The divisor. It is never negative: as in PyTorch, too few elements give nan or inf.
    fn freedom(&self) -> f64 {
        (self.over.count() as f64 - self.correction).max(0.0)
    }
}

impl Vjp for Var {
    fn node_name(&self) -> Name {
        match (self.root, self.mean) {
            (true, false) => "StdBackward0",
            (false, false) => "VarBackward0",
            (true, true) => "StdMeanBackward0",
            (false, true) => "VarMeanBackward0",
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let mut attributes = self.over.saved_attributes();
        attributes.push(("self", SavedAttribute::Input(0)));
        attributes.push(("correction", SavedAttribute::Number(Scalar::Float(self.correction))));
        if self.root {
            attributes.push((if self.mean { "result0" } else { "result" }, SavedAttribute::Output(0)));
        }
        attributes
    }
    fn vjp(&self, cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        let of_mean = match grads.get(1) {
            Some(Some(g)) => Some(self.over.expand(&pw::div(g, self.over.count() as f64)?)?),
            _ => None,
        };
        let Some(g) = &grads[0] else { return Ok(smallvec![of_mean]) };
        let x = cx.input(0)?;
        let g = if self.root {
            // At a deviation of 0 the gradient is 0. The divisor is masked too, so that derivatives of the next order are finite.
            let y = cx.output(0)?;
            let flat = pw::eq(&y, 0.0)?;
            let safe = pw::where_(&flat, 1.0, &y)?;
            pw::where_(&flat, 0.0, &pw::div(g, &pw::mul(&safe, 2.0)?)?)?
        } else {
            g.clone()
        };
        let dims: SmallVec<[i64; 8]> = self.over.mask.iter().enumerate().filter(|(_, m)| **m).map(|(i, _)| i as i64).collect();
        let distance = pw::sub(&x, &mean(&x, Some(&dims), true, None)?)?;
        let scale = pw::mul(&self.over.restore(&g)?, 2.0 / self.freedom())?;
        let of_spread = pw::mul(&scale, &distance)?;
        Ok(one(match of_mean {
            Some(m) => pw::add(&of_spread, &m)?,
            None => of_spread,
        }))
    }
}

/// Whether float32 values that are there already, in memory of the host, hold an infinity.
fn has_infinity(a: &Array) -> Result<bool> {
    Ok(a.device() == Device::CPU && !a.storage().is_pending() && a.to_vec::<f32>()?.iter().any(|v| v.is_infinite()))
}

impl Op for Var {
    fn name(&self) -> &'static str {
        match (self.root, self.mean) {
            (true, false) => "std",
            (false, false) => "var",
            (true, true) => "std_mean",
            (false, true) => "var_mean",
        }
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let over = &self.over;
        let d = x[0].dtype();
        let mut out = x[0].squares_unrounded(&over.mask, over.keepdim)?;
        if self.root && out.dtype() == DType::F32 && has_infinity(&out)? {
            // The squares are beyond float32; their root need not be.
            let wide = x[0].converted(if d.is_complex() { DType::C128 } else { DType::F64 })?;
            out = wide.squares_unrounded(&over.mask, over.keepdim)?;
        }
        // Nothing has no variance, whatever the divisor.
        with_number(&out, RowId::Div, if over.count() == 0 { 0.0 } else { self.freedom() })?;
        if self.root {
            out.pointwise_into(Func { row: RowId::Sqrt, part: Part::Forward }, out.dtype(), &[&out], &[])?;
        }
        if !self.mean {
            return Ok(smallvec![out.cast(d.row().real)?]);
        }
        let centre = x[0].reduce_unrounded(Reducer::Sum, &over.mask, over.keepdim)?;
        with_number(&centre, RowId::Div, over.count() as f64)?;
        Ok(smallvec![out.cast(d.row().real)?, centre.cast(d)?])
    }
    fn saves(&self, _needs: &[bool]) -> Saves {
        if self.root { Saves::NOTHING.input(0).output(0) } else { Saves::NOTHING.input(0) }
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(Var { over: self.over.shifted(batch), ..self.clone() })
    }
    fn tangent(&self) -> Tangent {
        Tangent::Reduced(self.over.keepdim_shape())
    }
}

fn spread(x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool, (root, mean): (bool, bool)) -> Result<Outputs> {
    if !x.dtype().is_differentiable() {
        return Err(Error::dtype(format!("std and var only support floating point and complex dtypes, got {}", x.dtype().name())));
    }
    apply(&Var { over: ReducedDims::new(x, dims, keepdim)?, correction, root, mean }, &[x])
}

/// The variance over `dims` (all without), with a divisor of n - correction.
pub fn var(x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
    Ok(spread(x, dims, correction, keepdim, (false, false))?.swap_remove(0))
}

/// The standard deviation: the root of `var`. Its gradient is 0 where it is 0.
pub fn std(x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
    Ok(spread(x, dims, correction, keepdim, (true, false))?.swap_remove(0))
}

/// The variance and the mean.
pub fn var_mean(x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    pair(spread(x, dims, correction, keepdim, (false, true))?)
}

/// The standard deviation and the mean.
pub fn std_mean(x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    pair(spread(x, dims, correction, keepdim, (true, true))?)
}

/// The two results of an operation that has two.
pub(crate) fn pair(mut out: Outputs) -> Result<(Tensor, Tensor)> {
    match (out.pop(), out.pop()) {
        (Some(second), Some(first)) => Ok((first, second)),
        _ => Err(Error::runtime("an operation gave fewer than two results")),
    }
}

// ---- without derivative ----------------------------------------------------------------------------------------------

#[derive(Debug, Clone, Copy)]
enum CountKind {
    All,
    Any,
    NonZero,
}

/// Reductions over which elements are 0.
#[derive(Debug, Clone)]
struct CountOp {
    what: CountKind,
    over: ReducedDims,
}

impl Vjp for CountOp {
    fn node_name(&self) -> Name {
        "NotDifferentiable".into()
    }
}

impl Op for CountOp {
    fn name(&self) -> &'static str {
        match self.what {
            CountKind::All => "all",
            CountKind::Any => "any",
            CountKind::NonZero => "count_nonzero",
        }
    }
    fn accepts_pending(&self) -> bool {
        true
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let (mask, keepdim) = (&self.over.mask, self.over.keepdim);
        let out = match self.what {
            CountKind::All => x[0].truth(true, mask, keepdim)?,
            CountKind::Any => x[0].truth(false, mask, keepdim)?,
            CountKind::NonZero => return Ok(smallvec![x[0].reduce(Reducer::CountNonzero, mask, keepdim)?]),
        };
        // As in PyTorch, uint8 stays uint8.
        Ok(smallvec![if x[0].dtype() == DType::U8 { out.cast(DType::U8)? } else { out }])
    }
    fn differentiable(&self, _output: usize) -> bool {
        false
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
    fn shifted(&self, batch: usize) -> Option<Self> {
        Some(CountOp { what: self.what, over: self.over.shifted(batch) })
    }
}

/// Whether all (or any) elements along `dims` (all without) are true. An empty list of dims reduces nothing.
pub fn truth(x: &Tensor, all: bool, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let mut over = ReducedDims::new(x, dims, keepdim)?;
    if dims.is_some_and(<[i64]>::is_empty) {
        over.mask.fill(false);
    }
    apply1(&CountOp { what: if all { CountKind::All } else { CountKind::Any }, over }, &[x])
}

/// How many elements along `dims` (all without) are not 0, as int64.
pub fn count_nonzero(x: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    apply1(&CountOp { what: CountKind::NonZero, over: ReducedDims::new(x, dims, false)? }, &[x])
}

/// Shifts by `by` towards the front along `dim` (towards the back with `back`), filling up with `fill`.
pub(crate) fn shifted(x: &Tensor, dim: usize, by: usize, back: bool, fill: f64) -> Result<Tensor> {
    let mut shape = x.shape();
    let n = shape[dim];
    let by = by.min(n);
    let (start, end) = if back { (0, n - by) } else { (by, n) };
    let rest = view(x, ViewOp::Slice { dim, start, end, step: 1 })?;
    shape[dim] = by;
    let filled = Tensor::new(x.memory().full_beside(&shape, Scalar::Float(fill), x.dtype())?);
    join::cat(&if back { [filled, rest] } else { [rest, filled] }, dim as i64)
}

/// `wrap_dim` for functions that reduce one dimension, as an index into a mask.
pub(crate) fn one_dim(x: &Tensor, dim: i64) -> Result<usize> {
    Ok(wrap_dim(dim, x.rank())?)
}

declare! {
    /// The sum over `dim` (all without), with nan counted as 0.
    fn nansum(input: &Tensor, dim: Option<&[i64]> = None, keepdim: bool = false; dtype: Option<DType> = None) -> Tensor = nansum;
    /// Whether all elements along `dim` (all without) are true.
    fn all(input: &Tensor, dim: Option<&[i64]> = None, keepdim: bool = false) -> Tensor = |x, d, k| truth(x, true, d, k);
    /// Whether any element along `dim` (all without) is true.
    fn any(input: &Tensor, dim: Option<&[i64]> = None, keepdim: bool = false) -> Tensor = |x, d, k| truth(x, false, d, k);
    /// How many elements along `dim` (all without) are not 0, as int64.
    fn [no_out] count_nonzero(input: &Tensor, dim: Option<&[i64]> = None) -> Tensor = count_nonzero;
}
