//! PyTorch's functions of `torch.fft`: lengths, dimensions, promotion and normalisation by name, above the transforms of `fft`.

use super::declared::declare;
use super::fft::{Normalization, c2c, c2r, distinct, no_points, r2c};
use super::{create, join, pointwise as pw};
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, ViewOp, primitives, view};
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar, fmt_shape, wrap_dim};
use smallvec::SmallVec;

type Lengths = SmallVec<[usize; 4]>;
type Axes = SmallVec<[usize; 4]>;

/// The dtype that is transformed: a complex one stays, others become float32 or float64, and complex if that is wanted.
fn promoted(x: &Tensor, complex: bool) -> Result<Tensor> {
    let cast = autocast::widen([x])?;
    let [x] = cast.of([x]);
    let have = x.dtype();
    if have.is_complex() {
        return Ok(x.clone());
    }
    let float = if have.is_float() { have } else { pw::default_dtype() };
    if !matches!(float, DType::F32 | DType::F64) {
        return Err(Error::runtime(format!("Unsupported dtype {}: expected float32, float64 or a complex dtype", float.type_name())));
    }
    let to = if complex { float.to_complex(float) } else { float };
    if to == have { Ok(x.clone()) } else { primitives::cast(x, to) }
}

/// What a transform is multiplied by. "backward" and "forward" say which direction is.
fn normalization(name: Option<&str>, forward: bool) -> Result<Normalization> {
    match name {
        None | Some("backward") => Ok(if forward { Normalization::None } else { Normalization::ByNumber }),
        Some("forward") => Ok(if forward { Normalization::ByNumber } else { Normalization::None }),
        Some("ortho") => Ok(Normalization::ByRoot),
        Some(other) => {
            Err(Error::runtime(format!("Invalid normalization mode: \"{other}\": expected \"backward\", \"forward\" or \"ortho\"")))
        }
    }
}

/// A tensor cut, or continued with zeros, to these lengths along `dims`.
fn resized(x: &Tensor, dims: &[usize], lengths: &[usize]) -> Result<Tensor> {
    let mut x = x.clone();
    for (&dim, &n) in dims.iter().zip(lengths) {
        let have = x.shape()[dim];
        if have > n {
            x = view(&x, ViewOp::Slice { dim, start: 0, end: n, step: 1 })?;
        } else if have < n {
            let mut shape = x.shape();
            shape[dim] = n - have;
            let zeros = create::full_on(x.device(), &shape, Scalar::Bool(false), Some(x.dtype()))?;
            x = join::cat(&[x, zeros], dim as i64)?;
        }
    }
    Ok(x)
}

/// A length that was given for dimension `dim`, or the tensor's.
fn length(n: Option<i64>, have: usize) -> Result<usize> {
    let n = n.unwrap_or(have as i64);
    usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| no_points(n))
}

/// The length of a real result, if none was given.
fn twice(have: usize) -> i64 {
    2 * (have as i64 - 1)
}

#[cold]
fn not_real(function: &str, x: &Tensor) -> Error {
    Error::runtime(format!("{function} expects a real input tensor, but got {}", x.dtype().type_name()))
}

fn one_axis(x: &Tensor, dim: i64) -> Result<usize> {
    Ok(distinct(x, &[dim])?[0])
}

/// The transform of a real tensor along one dimension.
fn from_real(function: &str, x: &Tensor, n: Option<i64>, dim: i64, norm: Option<&str>, forward: bool, onesided: bool) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return Err(not_real(function, x));
    }
    let x = promoted(x, false)?;
    let dim = one_axis(&x, dim)?;
    let n = length(n, x.shape()[dim])?;
    r2c(&resized(&x, &[dim], &[n])?, &[dim], normalization(norm, forward)?, forward, onesided)
}

fn complex(function: &str, x: &Tensor, n: Option<i64>, dim: i64, norm: Option<&str>, forward: bool) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return from_real(function, x, n, dim, norm, forward, false);
    }
    let dim = one_axis(x, dim)?;
    let n = length(n, x.shape()[dim])?;
    c2c(&resized(x, &[dim], &[n])?, &[dim], normalization(norm, forward)?, forward)
}

/// From half a spectrum along one dimension to real numbers.
fn to_real(x: &Tensor, n: Option<i64>, dim: i64, norm: Option<&str>, forward: bool) -> Result<Tensor> {
    let x = promoted(x, true)?;
    let dim = one_axis(&x, dim)?;
    let given = n.is_some();
    let n = length(Some(n.unwrap_or_else(|| twice(x.shape()[dim]))), 0)?;
    let x = if given { resized(&x, &[dim], &[n / 2 + 1])? } else { x };
    c2r(&x, &[dim], normalization(norm, forward)?, forward, n as i64)
}

/// The dimensions of a transform of several, and the lengths along them; -1 stands for the tensor's.
fn axes(x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<(Axes, Lengths)> {
    let rank = x.rank();
    let mut dims = dim.map(|d| distinct(x, d)).transpose()?;
    if let Some(s) = s {
        if dims.as_ref().is_some_and(|d| d.len() != s.len()) {
            return Err(Error::runtime("When given, dim and shape arguments must have the same length"));
        }
        if s.len() > rank {
            return Err(Error::runtime(format!("Got shape with {} values but input tensor only has {rank} dimensions.", s.len())));
        }
        dims.get_or_insert_with(|| (rank - s.len()..rank).collect());
    }
    let dims = dims.unwrap_or_else(|| (0..rank).collect());
    let shape = x.shape();
    let lengths = dims.iter().enumerate().map(|(k, d)| length(s.map(|s| s[k]).filter(|n| *n != -1), shape[*d])).collect::<Result<_>>()?;
    Ok((dims, lengths))
}

fn at_least_one(function: &str, dims: &Axes) -> Result<usize> {
    dims.last().copied().ok_or_else(|| Error::runtime(format!("{function} must transform at least one axis")))
}

fn complex_n(x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>, norm: Option<&str>, forward: bool) -> Result<Tensor> {
    let (dims, lengths) = axes(x, s, dim)?;
    let normalization = normalization(norm, forward)?;
    if x.dtype().is_complex() || dims.is_empty() {
        return c2c(&resized(&promoted(x, true)?, &dims, &lengths)?, &dims, normalization, forward);
    }
    r2c(&resized(&promoted(x, false)?, &dims, &lengths)?, &dims, normalization, forward, false)
}

fn from_real_n(function: &str, x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>, norm: Option<&str>, forward: bool) -> Result<Tensor> {
    // The inverse says so later.
    if x.dtype().is_complex() && forward {
        return Err(Error::runtime(format!("{function} expects a real-valued input tensor, but got {}", x.dtype().type_name())));
    }
    let (dims, lengths) = axes(x, s, dim)?;
    at_least_one(function, &dims)?;
    let x = resized(&promoted(x, false)?, &dims, &lengths)?;
    r2c(&x, &dims, normalization(norm, forward)?, forward, true)
}

fn to_real_n(function: &str, x: &Tensor, s: Option<&[i64]>, dim: Option<&[i64]>, norm: Option<&str>, forward: bool) -> Result<Tensor> {
    // Without a length, that along the last dimension may be too short to be one.
    let (dims, mut lengths) = axes(x, s, dim)?;
    let last = at_least_one(function, &dims)?;
    let given = s.and_then(|s| s.last().copied()).filter(|n| *n != -1);
    let n = length(Some(given.unwrap_or_else(|| twice(x.shape()[last]))), 0)?;
    if let Some(length) = lengths.last_mut() {
        *length = n / 2 + 1;
    }
    let x = resized(&promoted(x, true)?, &dims, &lengths)?;
    c2r(&x, &dims, normalization(norm, forward)?, forward, n as i64)
}

/// The sums of the windows (along `dim`, with their elements along a last dimension) that `unfold` makes of a tensor of this shape.
fn unfold_backward(g: &Tensor, shape: &[i64], dim: i64, size: i64, step: i64) -> Result<Tensor> {
    let shape = create::sizes(shape)?;
    let dim = wrap_dim(dim, shape.len())?;
    let have = g.shape();
    let windows = |n: usize, size: usize, step: usize| if n < size { 0 } else { (n - size) / step + 1 };
    let (Ok(size), Ok(step)) = (usize::try_from(size), usize::try_from(step)) else {
        return Err(Error::runtime(format!("unfold: size {size} and step {step} must be positive")));
    };
    let fits = step > 0
        && have.len() == shape.len() + 1
        && have.last() == Some(&size)
        && shape.iter().enumerate().all(|(d, n)| have[d] == if d == dim { windows(*n, size, step) } else { *n });
    if !fits {
        let (have, of) = (fmt_shape(&have), fmt_shape(&shape));
        return Err(Error::runtime(format!(
            "unfold: windows of {size} with step {step} of a tensor of shape {of} have another shape than {have}"
        )));
    }
    primitives::unview(g, &ViewOp::Unfold { dim, size, step }, &shape, None)
}

declare! {
    /// The discrete Fourier transform along one dimension: ``sum(input[j] * exp(-2j * pi * j * k / n))``.
    ///
    /// The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    /// numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    /// floats.
    fn [elsewhere] fft_fft(input: &Tensor, n: Option<i64> = None, dim: i64 = -1, norm: Option<&str> = None) -> Tensor =
        |x, n, d, norm| complex("fft", x, n, d, norm, true);
    /// The inverse of ``fft``.
    ///
    /// The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    /// numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    /// floats.
    fn [elsewhere] fft_ifft(input: &Tensor, n: Option<i64> = None, dim: i64 = -1, norm: Option<&str> = None) -> Tensor =
        |x, n, d, norm| complex("ifft", x, n, d, norm, false);
    /// The first ``n // 2 + 1`` frequencies of the transform of a real tensor; the others are their conjugates.
    ///
    /// The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    /// numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    /// floats.
    fn [elsewhere] fft_rfft(input: &Tensor, n: Option<i64> = None, dim: i64 = -1, norm: Option<&str> = None) -> Tensor =
        |x, n, d, norm| from_real("rfft", x, n, d, norm, true, true);
    /// The inverse of ``rfft``, with ``n`` real elements (None: ``2 * (size - 1)``).
    ///
    /// The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    /// numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    /// floats.
    fn [elsewhere] fft_irfft(input: &Tensor, n: Option<i64> = None, dim: i64 = -1, norm: Option<&str> = None) -> Tensor =
        |x, n, d, norm| to_real(x, n, d, norm, false);
    /// The transform of a signal that is its own mirrored conjugate, of which the first half is given: ``n``
    /// real frequencies (None: ``2 * (size - 1)``).
    ///
    /// The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    /// numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    /// floats.
    fn [elsewhere] fft_hfft(input: &Tensor, n: Option<i64> = None, dim: i64 = -1, norm: Option<&str> = None) -> Tensor =
        |x, n, d, norm| to_real(x, n, d, norm, true);
    /// The inverse of ``hfft``: of real frequencies the first half of the signal.
    ///
    /// The input is cut or continued with zeros to ``n`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the length: "backward" (the inverse one), "forward", or "ortho" (both by its root). Real
    /// numbers become float32 or float64 first. Raises RuntimeError for a length below 1 and for narrower
    /// floats.
    fn [elsewhere] fft_ihfft(input: &Tensor, n: Option<i64> = None, dim: i64 = -1, norm: Option<&str> = None) -> Tensor =
        |x, n, d, norm| from_real("ihfft", x, n, d, norm, false, true);
    /// The discrete Fourier transform along two dimensions.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_fft2(input: &Tensor, s: Option<&[i64]> = None, dim: &[i64] = (-2, -1), norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| complex_n(x, s, Some(d), norm, true);
    /// The discrete Fourier transform along several dimensions (without ``dim`` all, or as many of the last as
    /// there are lengths).
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_fftn(input: &Tensor, s: Option<&[i64]> = None, dim: Option<&[i64]> = None, norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| complex_n(x, s, d, norm, true);
    /// The inverse of ``fft2``.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_ifft2(input: &Tensor, s: Option<&[i64]> = None, dim: &[i64] = (-2, -1), norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| complex_n(x, s, Some(d), norm, false);
    /// The inverse of ``fftn``.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_ifftn(input: &Tensor, s: Option<&[i64]> = None, dim: Option<&[i64]> = None, norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| complex_n(x, s, d, norm, false);
    /// The transform of a real tensor along two dimensions; along the last of them the first ``n // 2 + 1``
    /// frequencies.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_rfft2(input: &Tensor, s: Option<&[i64]> = None, dim: &[i64] = (-2, -1), norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| from_real_n("rfftn", x, s, Some(d), norm, true);
    /// The transform of a real tensor along several dimensions (without ``dim`` all, or as many of the last as
    /// there are lengths); along the last of them the first ``n // 2 + 1`` frequencies.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_rfftn(input: &Tensor, s: Option<&[i64]> = None, dim: Option<&[i64]> = None, norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| from_real_n("rfftn", x, s, d, norm, true);
    /// The inverse of ``rfft2``, with ``s[-1]`` real elements along the last dimension (None: ``2 * (size -
    /// 1)``).
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_irfft2(input: &Tensor, s: Option<&[i64]> = None, dim: &[i64] = (-2, -1), norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| to_real_n("irfftn", x, s, Some(d), norm, false);
    /// The inverse of ``rfftn``, with ``s[-1]`` real elements along the last dimension (None: ``2 * (size -
    /// 1)``).
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_irfftn(input: &Tensor, s: Option<&[i64]> = None, dim: Option<&[i64]> = None, norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| to_real_n("irfftn", x, s, d, norm, false);
    /// The transform along two dimensions of a signal that is its own mirrored conjugate, of which the first
    /// half is given along the last: real frequencies.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_hfft2(input: &Tensor, s: Option<&[i64]> = None, dim: &[i64] = (-2, -1), norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| to_real_n("hfftn", x, s, Some(d), norm, true);
    /// The transform along several dimensions (without ``dim`` all, or as many of the last as there are
    /// lengths) of a signal that is its own mirrored conjugate, of which the first half is given along the
    /// last: real frequencies.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_hfftn(input: &Tensor, s: Option<&[i64]> = None, dim: Option<&[i64]> = None, norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| to_real_n("hfftn", x, s, d, norm, true);
    /// The inverse of ``hfft2``.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_ihfft2(input: &Tensor, s: Option<&[i64]> = None, dim: &[i64] = (-2, -1), norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| from_real_n("ihfftn", x, s, Some(d), norm, false);
    /// The inverse of ``hfftn``.
    ///
    /// The input is cut or continued with zeros to ``s`` elements along ``dim``. ``norm`` says which direction
    /// is divided by the number of points: "backward" (the inverse one), "forward", or "ortho" (both by its
    /// root). Raises RuntimeError for a length below 1, a dimension given twice, and narrower floats.
    fn [elsewhere] fft_ihfftn(input: &Tensor, s: Option<&[i64]> = None, dim: Option<&[i64]> = None, norm: Option<&str> = None) -> Tensor =
        |x, s, d, norm| from_real_n("ihfftn", x, s, d, norm, false);
    /// The adjoint of ``unfold``: a tensor of ``input_sizes`` to whose elements those of all windows that have
    /// them are added.
    fn [function] _unfold_backward(input: &Tensor, input_sizes: &[i64], dim: i64, size: i64, step: i64) -> Tensor = unfold_backward;
}
