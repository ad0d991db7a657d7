//! Discrete Fourier transforms: complex to complex, real to complex, complex to real. Each is linear over the real numbers, and the adjoint of
//! each is one of them, so that derivatives of every order are transforms. PyTorch's functions of one, two and more dimensions are in
//! `spectral`.

use super::declared::declare;
use super::reduce::one;
use crate::array::Array;
use crate::autograd::graph::saved_attributes::{SavedAttribute, SavedAttributes};
use crate::autograd::{Arrays, Grads, Name, Op, Tangent, Tensor, Vjp, VjpCx, apply1, primitives};
use crate::call::{self, FftKind, Request};
use crate::error::{Error, Result};
use crate::layout::{DType, wrap_dims};
use smallvec::{SmallVec, smallvec};

/// What a transform is multiplied by: 1, or 1 by the square root of the number of points or by their number. The numbers are PyTorch's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Normalization {
    None = 0,
    ByRoot = 1,
    ByNumber = 2,
}

impl Normalization {
    fn of(number: i64) -> Result<Normalization> {
        [Normalization::None, Normalization::ByRoot, Normalization::ByNumber]
            .into_iter()
            .find(|n| *n as i64 == number)
            .ok_or_else(|| Error::runtime(format!("Unsupported normalization type {number}: expected 0 (none), 1 (by root n) or 2 (by n)")))
    }

    fn factor(self, points: usize) -> f64 {
        match self {
            Normalization::None => 1.0,
            Normalization::ByRoot => 1.0 / (points as f64).sqrt(),
            Normalization::ByNumber => 1.0 / points as f64,
        }
    }
}

#[derive(Debug, Clone)]
struct Transform {
    kind: FftKind,
    /// Whether the exponents' sign is positive.
    inverse: bool,
    /// Not empty; no dimension twice.
    dims: SmallVec<[usize; 4]>,
    normalization: Normalization,
    /// The operand's size along the last of the dimensions, and the result's.
    sizes: [usize; 2],
    /// See `call::Fft`.
    inner: f64,
}

impl Transform {
    /// The transform of gradients. With half of a spectrum, an inner frequency `k` is read or written for `n - k`, too, and so counts twice.
    fn adjoint(&self) -> Transform {
        let [from, to] = self.sizes;
        let (kind, inner) = match self.kind {
            FftKind::Complex => (FftKind::Complex, 1.0),
            FftKind::FromReal => (FftKind::ToReal, self.inner / 2.0),
            FftKind::ToReal => (FftKind::FromReal, self.inner * 2.0),
        };
        Transform { kind, inverse: !self.inverse, sizes: [to, from], inner, ..self.clone() }
    }

    fn result(&self, from: DType) -> DType {
        match self.kind {
            FftKind::Complex => from,
            FftKind::FromReal => from.to_complex(from),
            FftKind::ToReal => from.row().real,
        }
    }

    /// The number of points of one transform of an operand of this shape.
    fn points(&self, shape: &[usize]) -> usize {
        let [from, to] = self.sizes;
        let Some((_, before)) = self.dims.split_last() else { return 1 };
        before.iter().map(|d| shape[*d]).product::<usize>() * from.max(to)
    }
}

impl Vjp for Transform {
    fn node_name(&self) -> Name {
        match self.kind {
            FftKind::Complex => "FftC2CBackward0",
            FftKind::FromReal => "FftR2CBackward0",
            FftKind::ToReal => "FftC2RBackward0",
        }
        .into()
    }
    fn saved_attributes(&self) -> SavedAttributes {
        let dims = ("dim", SavedAttribute::sizes(&self.dims));
        let normalization = ("normalization", SavedAttribute::Int(self.normalization as i64));
        let [from, to] = self.sizes;
        match self.kind {
            FftKind::Complex => smallvec![dims, ("forward", SavedAttribute::Bool(!self.inverse)), normalization],
            FftKind::FromReal => smallvec![dims, normalization, ("onesided", SavedAttribute::Bool(from != to))],
            FftKind::ToReal => smallvec![dims, normalization],
        }
    }
    fn pull(&self, _cx: &VjpCx<'_>, g: &Tensor) -> Result<Grads> {
        Ok(one(apply1(&self.adjoint(), &[g])?))
    }
}

impl Op for Transform {
    fn name(&self) -> &'static str {
        match self.kind {
            FftKind::Complex => "_fft_c2c",
            FftKind::FromReal => "_fft_r2c",
            FftKind::ToReal => "_fft_c2r",
        }
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let x = x[0];
        let mut shape: SmallVec<[usize; 8]> = SmallVec::from_slice(x.shape());
        if let Some(last) = self.dims.last() {
            shape[*last] = self.sizes[1];
        }
        let scale = self.normalization.factor(self.points(x.shape()));
        let request = Request::Fft(call::Fft { kind: self.kind, inverse: self.inverse, dims: self.dims.clone(), scale, inner: self.inner });
        Ok(smallvec![Array::request1(request, &[x], &shape, self.result(x.dtype()))?])
    }
    fn work(&self, inputs: &[&Array]) -> usize {
        inputs[0].numel().saturating_mul(self.points(inputs[0].shape()).max(2).ilog2() as usize)
    }
    fn grows(&self) -> bool {
        self.kind == FftKind::ToReal
    }
    fn tangent(&self) -> Tangent {
        Tangent::Linear
    }
    fn shifted(&self, _batch: usize) -> Option<Self> {
        Some(Transform { dims: self.dims.iter().map(|d| d + 1).collect(), ..self.clone() })
    }
}

/// The error for a length below 1.
#[cold]
pub(super) fn no_points(n: i64) -> Error {
    Error::runtime(format!("Invalid number of data points ({n}) specified"))
}

/// Transforms along wrapped dimensions, to `last` elements along the last of them (None: as many as there are).
fn transform(
    x: &Tensor,
    kind: FftKind,
    inverse: bool,
    dims: SmallVec<[usize; 4]>,
    normalization: Normalization,
    last: Option<usize>,
) -> Result<Tensor> {
    let shape = x.shape();
    let Some(from) = dims.last().map(|d| shape[*d]) else { return primitives::clone(x) };
    if let Some(empty) = dims.iter().find(|d| shape[**d] == 0) {
        return Err(no_points(shape[*empty] as i64));
    }
    apply1(&Transform { kind, inverse, dims, normalization, sizes: [from, last.unwrap_or(from)], inner: 1.0 }, &[x])
}

/// The error for a tensor of another kind of numbers.
#[cold]
fn only_for(kind: &str, x: &Tensor) -> Error {
    Error::runtime(format!("Only supports {kind} dtypes, but found: {}", x.dtype().type_name()))
}

/// The complex transform along `dims`, with a negative sign of the exponents if `forward`.
///
/// # Errors
/// The tensor is real, or has no elements along a dimension.
pub(super) fn c2c(x: &Tensor, dims: &[usize], normalization: Normalization, forward: bool) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return Err(only_for("complex", x));
    }
    transform(x, FftKind::Complex, !forward, dims.into(), normalization, None)
}

/// The transform of a real tensor along `dims`, with a negative sign if `forward`; of the last one the first `n / 2 + 1` frequencies if
/// `onesided`.
///
/// # Errors
/// The tensor is no floating point one, or has no elements along a dimension.
pub(super) fn r2c(x: &Tensor, dims: &[usize], normalization: Normalization, forward: bool, onesided: bool) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(only_for("floating-point", x));
    }
    let last = dims.last().map(|d| if onesided { x.shape()[*d] / 2 + 1 } else { x.shape()[*d] });
    transform(x, FftKind::FromReal, !forward, dims.into(), normalization, last)
}

/// The transform of half of a spectrum to `n` real elements along the last of `dims`, with a negative sign if `forward`.
///
/// # Errors
/// The tensor is real, has no elements along a dimension, or along the last one other than `n / 2 + 1`.
pub(super) fn c2r(x: &Tensor, dims: &[usize], normalization: Normalization, forward: bool, n: i64) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return Err(only_for("complex", x));
    }
    let Some(&last) = dims.last() else { return Err(Error::runtime("_fft_c2r must transform at least one axis")) };
    let n = usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| no_points(n))?;
    let have = x.shape()[last];
    if have != n / 2 + 1 {
        return Err(Error::runtime(format!(
            "_fft_c2r: expected {} elements along dimension {last} for {n} of the result, but got {have}",
            n / 2 + 1
        )));
    }
    transform(x, FftKind::ToReal, !forward, dims.into(), normalization, Some(n))
}

/// Several dimensions, each once. Tensors without dimensions have none.
pub(super) fn distinct(x: &Tensor, dims: &[i64]) -> Result<SmallVec<[usize; 4]>> {
    if let Some(dim) = dims.first()
        && x.rank() == 0
    {
        return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    let each = dims.iter().map(|d| wrap_dims(&[*d], x.rank()).map(|d| d[0])).collect::<std::result::Result<SmallVec<[usize; 4]>, _>>()?;
    if each.iter().enumerate().any(|(k, d)| each[..k].contains(d)) {
        return Err(Error::runtime("FFT dims must be unique"));
    }
    Ok(each)
}

declare! {
    /// The discrete Fourier transform of a complex tensor along ``dim``, as PyTorch's function of this name:
    /// ``normalization`` is 0 (none), 1 (by the root of the number of points) or 2 (by their number);
    /// ``forward`` gives exponents a negative sign.
    fn [function] _fft_c2c(input: &Tensor, dim: &[i64], normalization: i64, forward: bool) -> Tensor =
        |x: &Tensor, d: &[i64], n, f| c2c(x, &distinct(x, d)?, Normalization::of(n)?, f);
    /// The discrete Fourier transform of a real tensor along ``dim``; of the last one the first ``n // 2 + 1``
    /// frequencies if ``onesided``.
    fn [function] _fft_r2c(input: &Tensor, dim: &[i64], normalization: i64, onesided: bool) -> Tensor =
        |x: &Tensor, d: &[i64], n, o| r2c(x, &distinct(x, d)?, Normalization::of(n)?, true, o);
    /// The inverse transform of half a spectrum, with ``last_dim_size`` elements along the last of the
    /// dimensions.
    fn [function] _fft_c2r(input: &Tensor, dim: &[i64], normalization: i64, last_dim_size: i64) -> Tensor =
        |x: &Tensor, d: &[i64], n, last| c2r(x, &distinct(x, d)?, Normalization::of(n)?, false, last);
}
