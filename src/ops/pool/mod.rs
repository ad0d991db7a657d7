//! Pooling: the largest element or the mean of windows; windows as columns. Not here: sums of weighted windows (convolution), and changes
//! of size (`resample`).

mod average;
mod columns;
mod fractional;
mod max;
mod shape;
mod unpool;

use crate::array::{Array, Device};
use crate::call::{Pool, PoolPass, Request, WindowAxis};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, fmt_shape};

pub use average::{adaptive_avg_pool, avg_pool};
pub use columns::{fold, unfold};
pub use fractional::fractional_max_pool;
pub use max::{adaptive_max_pool, max_pool, max_pool1d};
pub use unpool::max_unpool;

use crate::autograd::Tensor;
use crate::ops::declared::declare;

/// Windows over the last dimensions.
#[derive(Debug, Clone, Copy)]
struct Windows {
    op: &'static str,
    axes: [WindowAxis; 3],
    /// How many of the axes are dimensions of the input: the last ones.
    spatial: usize,
}

impl Windows {
    fn of_axes(&self, shape: &[usize], size: impl Fn(&WindowAxis) -> usize) -> Dims {
        let lead = &shape[..shape.len() - self.spatial];
        lead.iter().copied().chain(self.axes[3 - self.spatial..].iter().map(size)).collect()
    }

    /// The shape of what has an element for each window, from the shape of what has one for each element of the input, or for each window.
    fn output_shape(&self, shape: &[usize]) -> Dims {
        self.of_axes(shape, |a| a.output)
    }

    fn input_shape(&self, shape: &[usize]) -> Dims {
        self.of_axes(shape, |a| a.input)
    }

    /// About how many elements are read or written.
    fn work(&self, shape: &[usize]) -> usize {
        let of = |size: &dyn Fn(&WindowAxis) -> usize| self.axes.iter().map(size).fold(1usize, usize::saturating_mul);
        let planes = shape[..shape.len() - self.spatial].iter().product::<usize>();
        let windows = of(&|a| a.output).saturating_mul(of(&|a| a.kernel));
        planes.saturating_mul(windows.max(of(&|a| a.input)))
    }

    fn request(&self, pass: PoolPass, shape: &[usize]) -> Request {
        let planes = shape[..shape.len() - self.spatial].iter().product();
        Request::Pool(Pool { op: self.op, planes, axes: self.axes, pass })
    }

    /// Runs a pass with one operand that has the shape of the windows (with `back`) or of the elements, and one result of the other one.
    fn linear(&self, pass: PoolPass, x: &Array, back: bool) -> Result<Array> {
        let shape = if back { self.input_shape(x.shape()) } else { self.output_shape(x.shape()) };
        Array::request1(self.request(pass, x.shape()), &[&x.contiguous()?], &shape, x.dtype())
    }
}

/// Refuses results that no memory holds.
fn check_size(shape: &[usize]) -> Result<()> {
    let elements = shape.iter().try_fold(8usize, |n, s| n.checked_mul(*s));
    if elements.is_some_and(|n| n <= isize::MAX as usize) {
        return Ok(());
    }
    Err(Error::runtime(format!("Storage size calculation overflowed with sizes={}", fmt_shape(shape))))
}

/// The error for a dtype that PyTorch's kernel does not have.
#[cold]
pub(super) fn no_kernel(kernel: &str, dtype: DType) -> Error {
    Error::not_implemented(format!("\"{kernel}\" not implemented for '{}': convert the input to a float type", dtype.type_name()))
}

fn is_host(a: &Array) -> bool {
    a.device() == Device::CPU
}

type Ints<'a> = &'a [i64];

fn values_1d(input: &Tensor, kernel: Ints<'_>, stride: Ints<'_>, padding: Ints<'_>, dilation: Ints<'_>, ceil: bool) -> Result<Tensor> {
    Ok(max_pool1d(input, [kernel, stride, padding, dilation], ceil, false)?.0)
}

fn pair_1d(
    input: &Tensor,
    kernel: Ints<'_>,
    stride: Ints<'_>,
    padding: Ints<'_>,
    dilation: Ints<'_>,
    ceil: bool,
) -> Result<(Tensor, Tensor)> {
    both(max_pool1d(input, [kernel, stride, padding, dilation], ceil, true)?)
}

fn both((values, indices): (Tensor, Option<Tensor>)) -> Result<(Tensor, Tensor)> {
    Ok((values, indices.ok_or_else(|| Error::internal("max_pool", "the positions are missing"))?))
}

fn values<const N: usize>(
    input: &Tensor,
    kernel: Ints<'_>,
    stride: Ints<'_>,
    padding: Ints<'_>,
    dilation: Ints<'_>,
    ceil: bool,
) -> Result<Tensor> {
    Ok(max_pool(N, input, [kernel, stride, padding, dilation], ceil, false)?.0)
}

fn pair<const N: usize>(
    input: &Tensor,
    kernel: Ints<'_>,
    stride: Ints<'_>,
    padding: Ints<'_>,
    dilation: Ints<'_>,
    ceil: bool,
) -> Result<(Tensor, Tensor)> {
    both(max_pool(N, input, [kernel, stride, padding, dilation], ceil, true)?)
}

fn mean_1d(input: &Tensor, kernel: Ints<'_>, stride: Ints<'_>, padding: Ints<'_>, ceil: bool, include: bool) -> Result<Tensor> {
    average::avg_pool1d(input, [kernel, stride, padding], ceil, include)
}

fn mean_of<const N: usize>(
    input: &Tensor,
    kernel: Ints<'_>,
    stride: Ints<'_>,
    padding: Ints<'_>,
    ceil: bool,
    include: bool,
    divisor: Option<i64>,
) -> Result<Tensor> {
    avg_pool(N, input, [kernel, stride, padding], ceil, include, divisor)
}

fn spread<const N: usize>(input: &Tensor, output: Ints<'_>) -> Result<Tensor> {
    adaptive_avg_pool(N, input, output)
}

fn largest<const N: usize>(input: &Tensor, output: Ints<'_>) -> Result<(Tensor, Tensor)> {
    adaptive_max_pool(N, input, output)
}

fn fractional<const N: usize>(input: &Tensor, kernel: Ints<'_>, output: Ints<'_>, samples: &Tensor) -> Result<(Tensor, Tensor)> {
    fractional_max_pool(N, input, kernel, output, samples)
}

fn unpooled_2d(input: &Tensor, indices: &Tensor, output: Ints<'_>) -> Result<Tensor> {
    max_unpool(2, input, indices, output, None)
}

fn unpooled_3d(input: &Tensor, indices: &Tensor, output: Ints<'_>, stride: Ints<'_>, padding: Ints<'_>) -> Result<Tensor> {
    max_unpool(3, input, indices, output, Some([stride, padding]))
}

declare! {
    /// The largest element of each window of the last dimension.
    fn [function] max_pool1d(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, dilation: &[i64] = 1, ceil_mode: bool = false) -> Tensor = values_1d;
    /// The largest element of each window of the last dimension, and its position.
    fn [function] max_pool1d_with_indices(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, dilation: &[i64] = 1, ceil_mode: bool = false) -> (Tensor, Tensor) = pair_1d;
    /// The largest element of each window of the last two dimensions.
    fn [function] max_pool2d(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, dilation: &[i64] = 1, ceil_mode: bool = false) -> Tensor = values::<2>;
    /// The largest element of each window of the last two dimensions, and its position in the flattened plane.
    fn [function] max_pool2d_with_indices(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, dilation: &[i64] = 1, ceil_mode: bool = false) -> (Tensor, Tensor) = pair::<2>;
    /// The largest element of each window of the last three dimensions.
    fn [function] max_pool3d(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, dilation: &[i64] = 1, ceil_mode: bool = false) -> Tensor = values::<3>;
    /// The largest element of each window of the last three dimensions, and its position in the flattened volume.
    fn [function] max_pool3d_with_indices(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, dilation: &[i64] = 1, ceil_mode: bool = false) -> (Tensor, Tensor) = pair::<3>;
    /// The mean of each window of the last dimension.
    fn [function] avg_pool1d(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, ceil_mode: bool = false, count_include_pad: bool = true) -> Tensor = mean_1d;
    /// The mean of each window of the last two dimensions.
    fn [function] avg_pool2d(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, ceil_mode: bool = false, count_include_pad: bool = true, divisor_override: Option<i64> = None) -> Tensor = mean_of::<2>;
    /// The mean of each window of the last three dimensions.
    fn [function] avg_pool3d(input: &Tensor, kernel_size: &[i64], stride: &[i64] = (), padding: &[i64] = 0, ceil_mode: bool = false, count_include_pad: bool = true, divisor_override: Option<i64> = None) -> Tensor = mean_of::<3>;
    /// The means of windows that divide the last dimension into so many parts.
    fn [function] adaptive_avg_pool1d(input: &Tensor, output_size: &[i64]) -> Tensor = average::adaptive_avg_pool1d;
    /// The means of windows that divide the last two dimensions.
    fn [function] adaptive_avg_pool2d(input: &Tensor, output_size: &[i64]) -> Tensor = spread::<2>;
    /// The means of windows that divide the last three dimensions.
    fn [function] adaptive_avg_pool3d(input: &Tensor, output_size: &[i64]) -> Tensor = spread::<3>;
    /// The largest elements of windows that divide the last dimension into so many parts, and their positions.
    fn [function] adaptive_max_pool1d(input: &Tensor, output_size: &[i64]) -> (Tensor, Tensor) = max::adaptive_max_pool1d;
    /// The largest elements of windows that divide the last two dimensions, and their positions in the flattened plane.
    fn [function] adaptive_max_pool2d(input: &Tensor, output_size: &[i64]) -> (Tensor, Tensor) = largest::<2>;
    /// The largest elements of windows that divide the last three dimensions, and their positions in the flattened volume.
    fn [function] adaptive_max_pool3d(input: &Tensor, output_size: &[i64]) -> (Tensor, Tensor) = largest::<3>;
    /// The largest elements of windows whose places are drawn (Graham 2014), and their positions: `random_samples` has a number from 0 to 1 for each plane and axis.
    fn [function] fractional_max_pool2d(input: &Tensor, kernel_size: &[i64], output_size: &[i64], random_samples: &Tensor) -> (Tensor, Tensor) = fractional::<2>;
    /// As `fractional_max_pool2d`, over the last three dimensions.
    fn [function] fractional_max_pool3d(input: &Tensor, kernel_size: &[i64], output_size: &[i64], random_samples: &Tensor) -> (Tensor, Tensor) = fractional::<3>;
    /// Zeros, with the elements of the input at their positions in the flattened plane.
    fn [function] max_unpool2d(input: &Tensor, indices: &Tensor, output_size: &[i64]) -> Tensor = unpooled_2d;
    /// Zeros, with the elements of the input at their positions in the flattened volume.
    fn [function] max_unpool3d(input: &Tensor, indices: &Tensor, output_size: &[i64], stride: &[i64], padding: &[i64]) -> Tensor = unpooled_3d;
    /// The windows of the last two dimensions as columns.
    fn [function] im2col(input: &Tensor, kernel_size: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Tensor = unfold;
    /// The adjoint of `im2col`: an image that is the sum of its windows.
    fn [function] col2im(input: &Tensor, output_size: &[i64], kernel_size: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Tensor = fold;
}
