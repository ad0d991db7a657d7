//! Fractional max pooling (Graham 2014): windows of one size whose places are drawn.

use super::max::{MaxKind, MaxPool, run};
use super::shape::Sizes;
use super::{Windows, both, no_kernel};
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, primitives};
use crate::call::WindowAxis;
use crate::error::{Error, Result};
use crate::layout::{DType, Scalar, fmt_shape};
use crate::ops::create::arange;
use crate::ops::join::cat;
use crate::ops::pointwise as pw;
use crate::ops::shape::{expand_to, narrow, select, unsqueeze};

/// Where the windows along an axis begin: `trunc((i + u) * step) - trunc(u * step)` for numbers `u` from 0 to 1, and the last at the end.
fn starts(u: &Tensor, axis: &WindowAxis) -> Result<Tensor> {
    let room = axis.input - axis.kernel;
    let u = unsqueeze(u, -1)?;
    let mut shape = u.shape();
    let last = shape.len() - 1;
    shape[last] = usize::from(axis.output > 0);
    let end = primitives::to_device(&pw::number(Scalar::Int(room as i64), DType::I64)?, u.device())?;
    let end = expand_to(&end, &shape)?;
    if axis.output < 2 {
        return Ok(end);
    }
    let many = axis.output - 1;
    let step = primitives::to_device(&pw::number(Scalar::Float(room as f64 / many as f64), u.dtype())?, u.device())?;
    let count = arange(Scalar::Int(0), Scalar::Int(many as i64), Scalar::Int(1), Some(u.dtype()))?;
    let count = primitives::to_device(&count, u.device())?;
    let whole = |t: &Tensor| primitives::cast(t, DType::I64);
    let before = pw::sub(&whole(&pw::mul(&pw::add(&count, &u)?, &step)?)?, &whole(&pw::mul(&u, &step)?)?)?;
    cat(&[before, end], -1)
}

fn sizes(name: &str, argument: &str, n: usize, given: &[i64]) -> Result<Sizes> {
    match given.len() {
        1 => Ok(Sizes::from_elem(given[0], n)),
        m if m == n => Ok(Sizes::from_slice(given)),
        _ => {
            let three = if n == 3 { "three " } else { "" };
            Err(Error::runtime(format!("{name}: {argument} must either be a single Int or tuple of {three}Ints")))
        }
    }
}

/// The largest elements of windows over the last `n` dimensions, and their positions. `samples` has a number for each plane and axis.
pub fn fractional_max_pool(n: usize, x: &Tensor, kernel: &[i64], output: &[i64], samples: &Tensor) -> Result<(Tensor, Tensor)> {
    let cast = autocast::widen([x, samples])?;
    let [x, samples] = cast.of([x, samples]);
    let name = if n == 3 { "fractional_max_pool3d" } else { "fractional_max_pool2d" };
    let (kernel, output) = (sizes(name, "kernel_size", n, kernel)?, sizes(name, "output_size", n, output)?);
    let shape = x.shape();
    let rank = shape.len();
    if rank != n + 1 && rank != n + 2 {
        return Err(Error::runtime(format!("{name}(): Expected {}D or {}D tensor, but got: {}", n + 1, n + 2, fmt_shape(&shape))));
    }
    let inner = if n == 3 { "fractional_max_pool3d_out" } else { name };
    if let Some(at) = (rank - n - 1..rank).find(|d| shape[*d] == 0) {
        return Err(Error::runtime(format!(
            "{inner}(): Expected input to have non-zero size for non-batch dimensions, but got{} with dimension {at} being empty.",
            fmt_shape(&shape)
        )));
    }
    let mut axes = [WindowAxis::ONE; 3];
    // The order of PyTorch's checks; volumes may not be full of windows there.
    for a in if n == 3 { &[0, 2, 1][..] } else { &[0, 1] }.iter().copied() {
        let input = shape[rank - n + a];
        if kernel[a] < 1 || output[a] < 0 {
            return Err(Error::runtime(format!(
                "{inner}(): expected windows of a positive size and not less than 0 of them, but got kernel_size {} and output_size {}",
                kernel[a], output[a]
            )));
        }
        if i128::from(output[a]) + i128::from(kernel[a]) - 1 > input as i128 - i128::from(n == 3) {
            let side = if n == 3 { ["time", "height", "width"][a] } else { ["height", "width"][a] };
            return Err(Error::runtime(format!("{inner}(): pool {side} {} too large relative to input {side} {input}", kernel[a])));
        }
        axes[3 - n + a] = WindowAxis { input, output: output[a] as usize, kernel: kernel[a] as usize, ..WindowAxis::ONE };
    }
    let (batch, channels) = (if rank == n + 2 { shape[0] } else { 1 }, shape[rank - n - 1]);
    let drawn = samples.shape();
    if samples.dtype() != x.dtype() {
        return Err(Error::runtime("Expect _random_samples to have the same dtype as input"));
    }
    if drawn.len() != 3 {
        return Err(Error::runtime(format!("Expect _random_samples to have 3 dimensions, got {}", drawn.len())));
    }
    if drawn[0] < batch {
        return Err(Error::runtime("Expect _random_samples.size(0) no less then input batch size."));
    }
    if drawn[1] != channels {
        return Err(Error::runtime("Expect _random_samples.size(1) equals to input channel size."));
    }
    if drawn[2] != n {
        return Err(Error::runtime(format!("Expect _random_samples.size(2) equals to {n}; got {}.", drawn[2])));
    }
    if !x.dtype().is_float() {
        return Err(no_kernel(name, x.dtype()));
    }
    let samples = narrow(&samples.detach(), 0, 0, batch as i64)?;
    let mut places = Vec::new();
    for (a, axis) in axes.iter().enumerate() {
        // PyTorch takes the numbers of an image in the order width, height; those of a volume in that of its dimensions.
        let number = match (n, a) {
            (2, 0) => 0,
            (2, a) => 2 - a,
            (_, a) => a,
        };
        let u = select(&samples, -1, number as i64)?;
        // The axis that is not there has one window at 0.
        places.push(starts(&u, axis)?);
    }
    let places = cat(&places, -1)?;
    let windows = Windows { op: name, axes, spatial: n };
    both(run(MaxPool { windows, kind: MaxKind::Fractional([kernel, output]), indices: true, taps: false }, x, Some(&places))?)
}
