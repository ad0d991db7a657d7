//! Convolutions with PyTorch's arguments: what they accept, and which shape comes out. Not here: the operation (`convolve`).

use super::convolve::Convolve;
use crate::autograd::Creation;
use crate::autograd::dispatch::autocast;
use crate::autograd::{Tensor, ViewOp, apply1, view, view_as};
use crate::call::{ConvPass, ConvShape};
use crate::error::{Error, Result};
use crate::layout::{Category, DType, MemoryFormat, fmt_shape};
use smallvec::{SmallVec, smallvec};

type Sizes = SmallVec<[usize; 3]>;

/// How much zero padding there is around the input.
#[derive(Debug, Clone, Copy)]
pub enum Padding<'a> {
    Sizes(&'a [i64]),
    /// "valid": none. "same": as much as makes the output as large as the input.
    Named(&'a str),
}

/// The parameters of a convolution. Each list has a number for each spatial dimension, or one for all of them.
#[derive(Debug, Clone, Copy)]
pub struct ConvParameters<'a> {
    pub stride: &'a [i64],
    pub padding: Padding<'a>,
    pub dilation: &'a [i64],
    pub transposed: bool,
    pub output_padding: &'a [i64],
    pub groups: i64,
}

fn list(of: &[i64]) -> String {
    of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Sizes as "5 x 5".
fn by(of: impl IntoIterator<Item = i128>) -> String {
    of.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" x ")
}

/// A number for each of `dims` dimensions, not below `least`.
fn expanded(name: &str, given: &[i64], dims: usize, least: i64, refusal: &str) -> Result<Sizes> {
    if given.len() != dims && given.len() != 1 {
        return Err(Error::runtime(format!(
            "expected {name} to be a single integer value or a list of {dims} values to match the convolution dimensions, but got {name}=[{}]",
            list(given)
        )));
    }
    if given.iter().any(|n| *n < least) {
        return Err(Error::runtime(refusal));
    }
    Ok((0..dims).map(|d| usize::try_from(given[if given.len() == 1 { 0 } else { d }]).unwrap_or(0)).collect())
}

/// The name of a dtype in messages, such as `torch.FloatTensor`.
fn tensor_type(d: DType) -> String {
    format!("torch.{}Tensor", d.type_name())
}

pub(super) fn check_dtypes(x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    for (t, name) in [Some((w, "weight")), bias.map(|b| (b, "bias"))].into_iter().flatten() {
        if t.dtype() != x.dtype() {
            return Err(Error::dtype(format!(
                "Input type ({}) and {name} type ({}) should be the same (expected scalar type {} but found {})",
                tensor_type(x.dtype()),
                tensor_type(t.dtype()),
                x.dtype().type_name(),
                t.dtype().type_name()
            )));
        }
    }
    Ok(())
}

/// PyTorch computes int64 everywhere, and the other integers in plain convolutions only.
fn check_supported(dtype: DType, dims: usize, transposed: bool, dilated: bool) -> Result<()> {
    let kernel = match (transposed, dilated) {
        (true, _) if dims == 3 => "slow_conv_transpose3d_out_cpu",
        (true, _) => "slow_conv_transpose2d_out_cpu",
        (_, true) => "slow_conv_dilated<>",
        _ if dims == 3 => "compute_columns3d",
        _ => "slow_conv2d_cpu",
    };
    if dtype.is_float() || dtype == DType::I64 || dtype.category() == Category::Integer && !transposed && !dilated {
        return Ok(());
    }
    Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{}': convert the tensors to a float type", dtype.type_name())))
}

/// Three numbers, of which the last are given.
fn three(of: &[usize], or: usize) -> [usize; 3] {
    let mut all = [or; 3];
    all[3 - of.len()..].copy_from_slice(of);
    all
}

/// The sizes of input and output on which the sizes of a transposed convolution depend.
fn transposed_output(sx: &[usize], sw: &[usize], [stride, padding, dilation, more]: [&Sizes; 4]) -> Result<Sizes> {
    let dims = sw.len() - 2;
    let least = if dims == 3 { ["depth", "height", "width"].as_slice() } else { &["height", "width"] };
    // Vectors are images of height 1 in PyTorch's messages.
    let lead = least.len() - dims;
    if (0..dims).any(|d| more[d] >= stride[d] && more[d] >= dilation[d]) {
        let named = |name: &str, of: &Sizes, or: usize| {
            let all = std::iter::repeat_n(or, lead).chain(of.iter().copied());
            least.iter().zip(all).map(|(side, n)| format!("{name}_{side}: {n}")).collect::<Vec<_>>().join(" ")
        };
        return Err(Error::runtime(format!(
            "output padding must be smaller than either stride or dilation, but got {} {} {}",
            named("output_padding", more, 0),
            named("stride", stride, 1),
            named("dilation", dilation, 1)
        )));
    }
    let sizes: SmallVec<[i128; 3]> = (0..dims)
        .map(|d| {
            let wide = |n: usize| n as i128;
            (wide(sx[d + 2]) - 1) * wide(stride[d]) - 2 * wide(padding[d]) + wide(dilation[d]) * (wide(sw[d + 2]) - 1) + wide(more[d]) + 1
        })
        .collect();
    if sizes.iter().any(|n| *n < 1) {
        let one = || std::iter::repeat_n(1i128, lead);
        return Err(Error::runtime(format!(
            "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small",
            by(one().chain(sx[2..].iter().map(|n| *n as i128))),
            by(one().chain(sizes.iter().copied()))
        )));
    }
    sizes.iter().map(|n| usize::try_from(*n).map_err(|_| too_large())).collect()
}

#[cold]
fn too_large() -> Error {
    Error::memory("convolution: the output has too many elements: use smaller sizes")
}

/// The sizes of the output, and the padding before the input.
fn plain_output(sx: &[usize], sw: &[usize], stride: &Sizes, padding: Option<&Sizes>, dilation: &Sizes) -> Result<(Sizes, Sizes)> {
    let dims = sw.len() - 2;
    let reach = |d: usize| dilation[d] as i128 * (sw[d + 2] as i128 - 1) + 1;
    let Some(padding) = padding else {
        // Uneven padding has its larger half behind, where the kernel meets nothing but zeros anyway.
        let before = (0..dims).map(|d| usize::try_from((reach(d) - 1) / 2).map_err(|_| too_large())).collect::<Result<_>>()?;
        return Ok((sx[2..].iter().copied().collect(), before));
    };
    let padded = |d: usize| sx[d + 2] as i128 + 2 * padding[d] as i128;
    if (0..dims).any(|d| padded(d) < reach(d)) {
        return Err(Error::runtime(format!(
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size",
            by((0..dims).map(padded)),
            by((0..dims).map(reach))
        )));
    }
    let output = (0..dims).map(|d| usize::try_from((padded(d) - reach(d)) / stride[d] as i128 + 1).map_err(|_| too_large()));
    Ok((output.collect::<Result<_>>()?, padding.clone()))
}

/// Groups, channels and the bias, checked.
fn check_channels(sx: &[usize], sw: &[usize], bias: Option<&Tensor>, groups: usize, transposed: bool) -> Result<()> {
    let (weight, input) = (fmt_shape(sw), fmt_shape(sx));
    if sw[0] < groups {
        return Err(Error::runtime(format!(
            "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {weight} instead"
        )));
    }
    if !sw[0].is_multiple_of(groups) {
        return Err(Error::runtime(format!(
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{weight}] instead"
        )));
    }
    let given = if transposed { "transposed=1".to_string() } else { format!("groups={groups}") };
    let (wanted, channels) = if transposed { (Some(sw[0]), sw[1].checked_mul(groups)) } else { (sw[1].checked_mul(groups), Some(sw[0])) };
    if wanted != Some(sx[1]) {
        return Err(Error::runtime(format!(
            "Given {given}, weight of size {weight}, expected input{input} to have {} channels, but got {} channels instead",
            wanted.unwrap_or(usize::MAX),
            sx[1]
        )));
    }
    let Some(channels) = channels else { return Err(too_large()) };
    if let Some(b) = bias.filter(|b| b.shape()[..] != [channels]) {
        let given = if transposed { "Given transposed=1, weight" } else { "Given weight" };
        return Err(Error::runtime(format!(
            "{given} of size {weight}, expected bias to be 1-dimensional with {channels} elements, but got bias of size {} instead",
            fmt_shape(&b.shape())
        )));
    }
    if sw[2..].contains(&0) {
        return Err(Error::runtime(format!("kernel size should be greater than zero, but got weight of size {weight}")));
    }
    Ok(())
}

#[cold]
fn other_rank(sx: &[usize], sw: &[usize], space: &str) -> Error {
    let (rank, weight, input) = (sw.len(), fmt_shape(sw), fmt_shape(sx));
    Error::runtime(format!(
        "Expected {rank}-dimensional input for {rank}-dimensional weight{space}{weight}, but got {}-dimensional input of size {input} instead",
        sx.len()
    ))
}

/// Parameters that fit the tensors.
struct Checked {
    dims: usize,
    groups: usize,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    output_padding: Sizes,
    /// The spatial sizes of the result.
    output: Sizes,
    transposed: bool,
}

/// Checks the parameters against the shapes of input, weight and bias.
fn check(sx: &[usize], sw: &[usize], bias: Option<&Tensor>, given: ConvParameters<'_>) -> Result<Checked> {
    let ConvParameters { transposed, .. } = given;
    if sw.len() < 3 {
        return Err(Error::runtime("weight should have at least three dimensions"));
    }
    let dims = sw.len() - 2;
    if dims > 3 {
        let got = fmt_shape(sw);
        return Err(Error::not_implemented(format!("convolution: expected a weight of three to five dimensions, got one of size {got}")));
    }
    let Some(groups) = usize::try_from(given.groups).ok().filter(|g| *g > 0) else {
        return Err(Error::runtime("non-positive groups is not supported"));
    };
    if matches!(given.padding, Padding::Named("same")) && sx.len() != sw.len() {
        // PyTorch leaves out a space here.
        return Err(other_rank(sx, sw, ""));
    }
    let stride = expanded("stride", given.stride, dims, 1, "non-positive stride is not supported")?;
    let padding = match given.padding {
        Padding::Sizes(sizes) => Some(expanded("padding", sizes, dims, 0, "negative padding is not supported")?),
        Padding::Named("valid") => Some(SmallVec::from_elem(0, dims)),
        Padding::Named("same") => None,
        Padding::Named(other) => return Err(Error::runtime(format!("Invalid padding string: '{other}'"))),
    };
    let no_dilation = "dilation should be greater than zero: non-positive dilation is not supported";
    let dilation = expanded("dilation", given.dilation, dims, 1, no_dilation)?;
    let output_padding = expanded("output_padding", given.output_padding, dims, 0, "negative output_padding is not supported")?;
    if sx.len() != sw.len() {
        return Err(other_rank(sx, sw, " "));
    }
    if padding.is_none() && stride.iter().any(|s| *s != 1) {
        return Err(Error::runtime("padding='same' is not supported for strided convolutions"));
    }
    check_channels(sx, sw, bias, groups, transposed)?;
    let (output, padding) = match (&padding, transposed) {
        (Some(p), true) => (transposed_output(sx, sw, [&stride, p, &dilation, &output_padding])?, p.clone()),
        (p, _) => plain_output(sx, sw, &stride, p.as_ref(), &dilation)?,
    };
    if sx[2..].contains(&0) {
        let got = fmt_shape(sx);
        return Err(Error::runtime(format!("Only zero batch or zero channel inputs are supported, but got input shape: {got}")));
    }
    Ok(Checked { dims, groups, stride, padding, dilation, output_padding, output, transposed })
}

impl Checked {
    /// The operation on tensors of these shapes.
    fn operation(self, sx: &[usize], sw: &[usize], bias: bool, format: MemoryFormat) -> Convolve {
        let (given, made) = (three(&sx[2..], 1), three(&self.output, 1));
        let (input, output) = if self.transposed { (made, given) } else { (given, made) };
        let shape = ConvShape {
            batch: sx[0],
            groups: self.groups,
            in_channels: sw[1],
            out_channels: sw[0] / self.groups,
            input,
            output,
            kernel: three(&sw[2..], 1),
            stride: three(&self.stride, 1),
            dilation: three(&self.dilation, 1),
            padding: three(&self.padding, 0),
        };
        let pass = if self.transposed { ConvPass::Input { bias } } else { ConvPass::Forward { bias } };
        let Checked { dims, transposed, output_padding, .. } = self;
        Convolve { pass, shape, dims, transposed, output_padding, is_gradient: false, format }
    }
}

/// The order in memory of results and gradients: channels come last if they do in input or weight. (PyTorch's kernels have no such order for
/// volumes of float64.)
fn result_format(x: &Tensor, w: &Tensor) -> MemoryFormat {
    let rank = x.rank();
    let suggested = |t: &Tensor| t.with_array(|a| if a.rank() == rank { a.layout().suggested_format() } else { MemoryFormat::Contiguous });
    if rank == 5 && x.dtype() == DType::F64 {
        return MemoryFormat::Contiguous;
    }
    let [a, b] = [suggested(x), suggested(w)];
    if a == MemoryFormat::Contiguous { b } else { a }
}

/// The sums of the products of `w` with each patch of `x`, plus the bias; or, transposed, the gradient of such a convolution with respect to its
/// input. x is (N, C, *), of one to three spatial dimensions.
pub fn convolution(x: &Tensor, w: &Tensor, bias: Option<&Tensor>, given: ConvParameters<'_>) -> Result<Tensor> {
    let sx = x.shape();
    let checked = check(&sx, &w.shape(), bias, given)?;
    check_dtypes(x, w, bias)?;
    if x.dtype().is_complex() {
        return super::conv_complex::convolution(x, w, bias, given);
    }
    check_supported(x.dtype(), checked.dims, given.transposed, checked.dilation.iter().any(|d| *d != 1))?;
    let none = |t: &Tensor| view(t, ViewOp::Slice { dim: 0, start: 0, end: 0, step: 1 });
    // As in PyTorch there are no channels where there were none.
    let is_empty = sx[1] == 0 && !given.transposed;
    let (w, bias) = if is_empty { (none(w)?, bias.map(none).transpose()?) } else { (w.clone(), bias.cloned()) };
    let ins: SmallVec<[&Tensor; 3]> = [x, &w].into_iter().chain(&bias).collect();
    let format = result_format(x, &w);
    apply1(&checked.operation(&sx, &w.shape(), bias.is_some(), format), &ins)
}

/// The gradient of a plain convolution with respect to its operand `at` (0 is the input, 1 the weight), whose shape is given in its place.
fn gradient(at: usize, sizes: &[i64], other: &Tensor, g: &Tensor, given: ConvParameters<'_>) -> Result<Tensor> {
    let sizes = super::create::sizes(sizes)?;
    let so = other.shape();
    let (sx, sw): (&[usize], &[usize]) = if at == 0 { (&sizes, &so) } else { (&so, &sizes) };
    let op = check(sx, sw, None, given)?.operation(sx, sw, false, result_format(other, g));
    let (wanted, got) = (op.result_shape(), g.shape());
    if wanted != got {
        return Err(Error::runtime(format!(
            "Expected grad_output of size {} for an input of size {} and a weight of size {}, but got {}",
            fmt_shape(&wanted),
            fmt_shape(sx),
            fmt_shape(sw),
            fmt_shape(&got)
        )));
    }
    check_dtypes(g, other, None)?;
    check_supported(g.dtype(), op.dims, true, false)?;
    op.gradient(at, g, other)
}

/// The gradient of a convolution with respect to its input, of this shape.
pub fn input_gradient(sizes: &[i64], w: &Tensor, g: &Tensor, given: ConvParameters<'_>) -> Result<Tensor> {
    gradient(0, sizes, w, g, given)
}

/// The gradient of a convolution with respect to its weight, of this shape.
pub fn weight_gradient(x: &Tensor, sizes: &[i64], g: &Tensor, given: ConvParameters<'_>) -> Result<Tensor> {
    gradient(1, sizes, x, g, given)
}

/// A convolution over `dims` spatial dimensions, of a batch or of one input without a batch dimension. `name` is what the user called.
pub fn conv(name: &str, dims: usize, x: &Tensor, w: &Tensor, bias: Option<&Tensor>, given: ConvParameters<'_>) -> Result<Tensor> {
    let rank = x.rank();
    if rank != dims + 1 && rank != dims + 2 {
        return Err(Error::runtime(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {name}, but got input of size: {}",
            dims + 1,
            dims + 2,
            fmt_shape(&x.shape())
        )));
    }
    // As in PyTorch, `convolution` itself is not listed.
    let (cast, of_bias) = (autocast::lower([x, w])?, bias.map(|b| autocast::lower([b])).transpose()?);
    let [x, w] = cast.of([x, w]);
    let bias = bias.map(|b| of_bias.as_ref().map_or(b, |cast| cast.of([b])[0]));
    if rank == dims + 2 {
        return convolution(x, w, bias, given);
    }
    let y = convolution(&view(x, ViewOp::Unsqueeze(0))?, w, bias, given)?;
    view_as(&y, ViewOp::Squeeze(smallvec![0]), Some("SqueezeBackward1".into()), Creation::Normal)
}
