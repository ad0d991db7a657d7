//! The windows of pooling: PyTorch's rules for sizes, and its errors.

use crate::autograd::Tensor;
use crate::call::WindowAxis;
use crate::error::{Error, Result};
use crate::layout::fmt_shape;
use smallvec::SmallVec;

pub(super) type Sizes = SmallVec<[i64; 4]>;

/// What a caller says about windows. `stride` may be empty: the kernel's.
#[derive(Debug, Clone)]
pub(super) struct WindowArgs {
    pub kernel: Sizes,
    pub stride: Sizes,
    pub padding: Sizes,
    pub dilation: Sizes,
    pub ceil: bool,
}

const COUNTS: [&str; 4] = ["zero", "one", "two", "three"];

fn expanded(given: &[i64], n: usize, error: impl FnOnce() -> String) -> Result<Sizes> {
    match given.len() {
        1 => Ok(SmallVec::from_elem(given[0], n)),
        m if m == n => Ok(SmallVec::from_slice(given)),
        _ => Err(Error::runtime(error())),
    }
}

impl WindowArgs {
    /// For `n` axes. Only max pooling has a dilation.
    pub fn new(name: &str, n: usize, [kernel, stride, padding]: [&[i64]; 3], dilation: Option<&[i64]>, ceil: bool) -> Result<WindowArgs> {
        // avg_pool3d words it in its own way.
        let must = if name == "avg_pool3d" { "must" } else { "must either" };
        let tuple = format!("a single int, or a tuple of {} ints", COUNTS[n.min(3)]);
        let kernel = expanded(kernel, n, || format!("{name}: kernel_size {must} be {tuple}"))?;
        let own = if stride.is_empty() {
            Sizes::new()
        } else {
            let omitted = if name == "avg_pool3d" { "must be omitted" } else { "must either be omitted" };
            expanded(stride, n, || format!("{name}: stride {omitted}, {tuple}"))?
        };
        let padding = expanded(padding, n, || format!("{name}: padding {must} be {tuple}"))?;
        let dilation = expanded(dilation.unwrap_or(&[1]), n, || format!("{name}: dilation must be either {tuple}"))?;
        Ok(WindowArgs { kernel, stride: own, padding, dilation, ceil })
    }

    /// The strides of all axes.
    pub fn strides(&self) -> &Sizes {
        if self.stride.is_empty() { &self.kernel } else { &self.stride }
    }

    /// How many windows there are along an axis of `input` elements.
    pub fn output(&self, axis: usize, input: usize) -> Result<i128> {
        let (kernel, stride) = (i128::from(self.kernel[axis]), i128::from(self.strides()[axis]));
        let (pad, dilation) = (i128::from(self.padding[axis]), i128::from(self.dilation[axis]));
        if stride == 0 {
            return Err(Error::runtime("stride should not be zero"));
        }
        if pad < 0 {
            return Err(Error::runtime(format!("pad must be non-negative, but got pad: {pad}")));
        }
        if pad > ((kernel - 1) * dilation + 1) / 2 {
            return Err(Error::runtime(format!(
                "pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={kernel} and dilation={dilation}"
            )));
        }
        let room = input as i128 + 2 * pad - dilation * (kernel - 1) - 1 + if self.ceil { stride - 1 } else { 0 };
        // Negative strides are refused later.
        let mut output = if stride < 0 { 0 } else { room.div_euclid(stride) + 1 };
        // The last window begins inside the input or the padding before it.
        if self.ceil && (output - 1) * stride >= input as i128 + pad {
            output -= 1;
        }
        Ok(output)
    }
}

/// The sizes of pooled dimensions with names, as in "kH: 2 kW: 2".
fn named(sizes: &[i64], prefix: &str) -> String {
    let names: &[&str] = if sizes.len() == 3 { &["T", "H", "W"] } else { &["H", "W"] };
    names.iter().zip(sizes).map(|(n, s)| format!("{prefix}{n}: {s}")).collect::<Vec<_>>().join(" ")
}

fn joined<T: ToString>(sizes: &[T]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// The axes of windows over the last 2 or 3 dimensions of `shape`, three always: missing ones lead.
pub(super) fn window_axes(name: &str, shape: &[usize], args: &WindowArgs) -> Result<[WindowAxis; 3]> {
    let n = args.kernel.len();
    let is_average = name.starts_with("avg");
    let ranks = format!("{}D or {}D (batch mode) tensor", n + 1, n + 2);
    if shape.len() != n + 1 && shape.len() != n + 2 {
        return Err(Error::runtime(if n == 3 || !is_average {
            format!("non-empty {ranks} expected for input")
        } else {
            format!("Expected {ranks} with optional 0 dim batch size for input, but got:{}", fmt_shape(shape))
        }));
    }
    let (lead, spatial) = shape.split_at(shape.len() - n);
    let outputs = (0..n).map(|a| args.output(a, spatial[a])).collect::<Result<SmallVec<[i128; 3]>>>()?;
    let positive = |of: &[i64], what: &str, prefix: &str| {
        if of.iter().all(|k| *k > 0) {
            return Ok(());
        }
        Err(Error::runtime(format!("{what} should be greater than zero, but got {}", named(of, prefix))))
    };
    positive(&args.kernel, "kernel size", "k")?;
    positive(args.strides(), "stride", "d")?;
    positive(&args.dilation, "dilation", "dilation")?;
    if let Some(at) = shape[shape.len() - n - 1..].iter().position(|s| *s == 0) {
        return Err(Error::runtime(if n == 3 {
            let kernel = if is_average { name } else { "max_pool3d_with_indices_out_cpu_template" };
            format!(
                "{kernel}(): Expected input's non-batch dimensions to have positive length, but input has a shape of {} and non-batch \
                 dimension {at} has length zero!",
                fmt_shape(shape)
            )
        } else {
            format!("Expected {ranks} with optional 0 dim batch size for input, but got:{}", fmt_shape(shape))
        }));
    }
    // Without the padding, as in PyTorch.
    if n == 3 && is_average && spatial.iter().zip(&args.kernel).any(|(s, k)| (*s as i128) < i128::from(*k)) {
        let sizes: Sizes = spatial.iter().map(|s| *s as i64).collect();
        return Err(Error::runtime(format!("input image ({}) smaller than kernel size ({})", named(&sizes, ""), named(&args.kernel, "k"))));
    }
    if outputs.iter().any(|o| *o < 1) {
        let channels = lead[lead.len() - 1];
        return Err(Error::runtime(format!(
            "Given input size: ({channels}x{}). Calculated output size: ({channels}x{}). Output size is too small",
            joined(spatial),
            joined(&outputs)
        )));
    }
    let mut axes = [WindowAxis::ONE; 3];
    for a in 0..n {
        let size = |of: &Sizes| of[a] as usize;
        let axis = WindowAxis {
            input: spatial[a],
            output: usize::try_from(outputs[a]).map_err(|_| too_large(name))?,
            kernel: size(&args.kernel),
            stride: size(args.strides()),
            pad: size(&args.padding),
            dilation: size(&args.dilation),
            adaptive: false,
        };
        let reach = axis.output.checked_mul(axis.stride).and_then(|n| n.checked_add(axis.kernel.checked_mul(axis.dilation)?));
        if reach.is_none_or(|n| n >= 1 << 62) {
            return Err(too_large(name));
        }
        axes[3 - n + a] = axis;
    }
    Ok(axes)
}

#[cold]
fn too_large(name: &str) -> Error {
    Error::runtime(format!("{name}: the windows are too large"))
}

/// The one axis of a function over the last dimension.
pub(super) fn one_size(name: &str, argument: &str, given: &[i64]) -> Result<i64> {
    match given {
        [one] => Ok(*one),
        _ => Err(Error::runtime(format!("{name}() argument '{argument}' should contain one int (got {})", given.len()))),
    }
}

/// Refuses ranks that a function over the last dimension does not take.
pub(super) fn check_rank_1d(name: &str, x: &Tensor) -> Result<()> {
    if matches!(x.rank(), 2 | 3) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
        x.rank()
    )))
}

/// The axes of windows that divide the last `n` dimensions, three always.
pub(super) fn adaptive_axes(name: &str, shape: &[usize], n: usize, output: &[i64]) -> Result<[WindowAxis; 3]> {
    let is_max = name.contains("max");
    if output.len() != n {
        return Err(Error::runtime(if is_max {
            format!("{name}(): internal error: output_size.size() must be {n}")
        } else {
            format!("{name}: output_size must be {n}")
        }));
    }
    if !is_max && output.iter().any(|o| *o < 0) {
        let sizes = output.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(Error::runtime(format!("{name}: elements of output_size must be greater than or equal to 0 but received {{{sizes}}}")));
    }
    if shape.len() != n + 1 && shape.len() != n + 2 {
        let colon = if is_max { ":" } else { "" };
        return Err(Error::runtime(format!("{name}(): Expected {}D or {}D tensor, but got{colon} {}", n + 1, n + 2, fmt_shape(shape))));
    }
    // Channels, too, must be there, but for averages of images.
    let from = if is_max || n == 3 { shape.len() - n - 1 } else { shape.len() - n };
    if let Some(at) = (from..shape.len()).find(|d| shape[*d] == 0) {
        return Err(Error::runtime(format!(
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {at} being empty",
            fmt_shape(shape)
        )));
    }
    if let Some(bad) = output.iter().find(|o| **o < 0) {
        let sizes: Vec<i64> = shape[..shape.len() - n].iter().map(|s| *s as i64).chain(output.iter().copied()).collect();
        return Err(Error::runtime(format!("Trying to create tensor with negative dimension {bad}: {sizes:?}")));
    }
    let mut axes = [WindowAxis::ONE; 3];
    for a in 0..n {
        axes[3 - n + a] = WindowAxis::adaptive(shape[shape.len() - n + a], output[a] as usize);
    }
    Ok(axes)
}
