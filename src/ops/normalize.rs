//! Layer, group, instance, batch and root-mean-square norm. Not here: the operation (`standardize`), norms of vectors (`norm`).

use super::join::repeat;
use super::pointwise as pw;
use super::reduce::mean;
use super::standardize::{NormKind, Normalize, channels_behind};
use crate::autograd::dispatch::mode::ModeGuard;
use crate::autograd::{Outputs, Tensor, apply, mode, primitives};
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, fmt_shape};
use crate::rows::RowId;
use smallvec::SmallVec;

/// Refuses dtypes that kernels do not have, and parameters of other dtypes. Returns whether parameters and statistics are float32 beside
/// 16-bit elements.
fn check_dtypes(x: &Tensor, others: &[Option<&Tensor>], kernel: &str) -> Result<bool> {
    let dtype = x.dtype();
    if !dtype.is_float() {
        return Err(Error::not_implemented(format!(
            "\"{kernel}\" not implemented for '{}': convert it to a float type",
            dtype.type_name()
        )));
    }
    let found = || others.iter().flatten().map(|t| t.dtype());
    let mixed = dtype.is_half() && found().any(|d| d == DType::F32);
    let wanted = if mixed { DType::F32 } else { dtype };
    match found().find(|d| *d != wanted) {
        None => Ok(mixed),
        Some(d) if mixed => Err(Error::runtime(format!(
            "mixed dtype (CPU): expect parameter to have scalar type of Float, got {}: beside {} elements all are float32 or none",
            d.type_name(),
            dtype.type_name()
        ))),
        Some(d) => Err(Error::runtime(format!(
            "mixed dtype (CPU): expect parameter to have scalar type of {}, got {}",
            dtype.type_name(),
            d.type_name()
        ))),
    }
}

fn run(op: &Normalize, x: &Tensor, rest: &[Option<&Tensor>]) -> Result<Outputs> {
    let ins: SmallVec<[&Tensor; 5]> = std::iter::once(x).chain(rest.iter().copied().flatten()).collect();
    apply(op, &ins)
}

fn first(mut outputs: Outputs) -> Tensor {
    outputs.swap_remove(0)
}

/// The shape of what is normalised, checked against x and the parameters. `comma` is how the message of the function writes the shape.
fn normalized(x: &Tensor, shape: &[i64], params: [(&str, Option<&Tensor>); 2], comma: &str) -> Result<Dims> {
    if shape.is_empty() {
        return Err(Error::runtime(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []",
        ));
    }
    let have = x.shape();
    let wanted: Dims = shape.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
    let text = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for (name, p) in params {
        let Some(p) = p else { continue };
        if p.shape() != wanted {
            return Err(Error::runtime(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} and normalized_shape = [{text}]",
                fmt_shape(&p.shape())
            )));
        }
    }
    if have.len() < wanted.len() || have[have.len() - wanted.len()..] != wanted[..] {
        return Err(Error::runtime(format!(
            "Given normalized_shape=[{text}], expected input with shape [*{comma}{text}], but got input of size{}",
            fmt_shape(&have)
        )));
    }
    Ok(wanted)
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions, which have the shape `shape`.
pub fn layer_norm(x: &Tensor, shape: &[i64], weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
    let wanted = normalized(x, shape, [("weight", weight), ("bias", bias)], ", ")?;
    let mixed = check_dtypes(x, &[weight, bias], "LayerNormKernelImpl")?;
    let op = Normalize { kind: NormKind::Layer(wanted), shape: x.shape(), weight: weight.is_some(), bias: bias.is_some(), mixed, eps };
    Ok(first(run(&op, x, &[weight, bias])?))
}

/// As `layer_norm`, over the channels of each of `groups` groups and all dimensions behind them; weight and bias belong to channels.
pub fn group_norm(x: &Tensor, groups: i64, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
    let shape = x.shape();
    if shape.len() < 2 {
        return Err(Error::runtime(format!("Expected at least 2 dimensions for input tensor but received {}", shape.len())));
    }
    let Some(count) = usize::try_from(groups).ok().filter(|n| *n > 0) else {
        return Err(Error::runtime(format!("Expected num groups to be greater than 0, got {groups}")));
    };
    if !shape[1].is_multiple_of(count) {
        return Err(Error::runtime(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={groups}",
            fmt_shape(&shape)
        )));
    }
    for (name, p) in [("weight", weight), ("bias", bias)] {
        if let Some(p) = p.filter(|p| p.shape()[..] != shape[1..2]) {
            return Err(Error::runtime(format!(
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {} and input of \
                 shape {}",
                fmt_shape(&p.shape()),
                fmt_shape(&shape)
            )));
        }
    }
    let mixed = check_dtypes(x, &[weight, bias], "GroupNormKernelImpl")?;
    let op = Normalize { kind: NormKind::Group(count), shape, weight: weight.is_some(), bias: bias.is_some(), mixed, eps };
    Ok(first(run(&op, x, &[weight, bias])?))
}

/// Statistics that are kept from call to call.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    pub mean: Option<&'a Tensor>,
    pub var: Option<&'a Tensor>,
    /// How much new statistics count.
    pub momentum: f64,
}

impl Running<'_> {
    /// Takes new statistics of `count` elements into account.
    fn update(&self, mean: &Tensor, var: &Tensor, count: usize) -> Result<()> {
        let _off = ModeGuard::grad(false);
        let unbiased = count as f64 / (count as f64 - 1.0);
        for (running, new, scale) in [(self.mean, mean, 1.0), (self.var, var, unbiased)] {
            if let Some(running) = running {
                let kept = pw::mul(running, 1.0 - self.momentum)?;
                primitives::copy_(running, &pw::add(&kept, &pw::mul(new, scale * self.momentum)?)?)?;
            }
        }
        Ok(())
    }
}

/// Normalises each channel (dimension 1) over all other dimensions: in training by the statistics of x, which the running ones then take
/// into account, else by the running ones.
pub fn batch_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running: Running<'_>,
    training: bool,
    eps: f64,
) -> Result<Tensor> {
    let shape = x.shape();
    if shape.len() < 2 {
        return Err(Error::index(format!(
            "Dimension out of range (expected to be in range of [-{0}, {1}], but got 1): batch_norm takes channels in dimension 1",
            shape.len().max(1),
            shape.len().max(1) - 1
        )));
    }
    let named = [("running_mean", running.mean), ("running_var", running.var), ("weight", weight), ("bias", bias)];
    for (k, (name, p)) in named.iter().enumerate() {
        match p {
            None if k < 2 && !training => return Err(Error::runtime(format!("{name} must be defined in evaluation mode"))),
            None => {}
            Some(p) if p.numel() != shape[1] => {
                return Err(Error::runtime(format!("{name} should contain {} elements not {}", shape[1], p.numel())));
            }
            Some(p) if p.rank() != 1 => {
                return Err(Error::runtime(format!("batch_norm: {name}: expected 1 dims but tensor has {}", p.rank())));
            }
            Some(p) if k < 2 && p.requires_grad() && mode::is_grad_enabled() => {
                return Err(Error::runtime(format!(
                    "The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. This input cannot have \
                     requires_grad True."
                )));
            }
            Some(_) => {}
        }
    }
    let mixed = check_dtypes(x, &[weight, bias, running.mean, running.var], "batch_norm")?;
    let op = Normalize { kind: NormKind::Batch { training }, shape, weight: weight.is_some(), bias: bias.is_some(), mixed, eps };
    if !training {
        return Ok(first(run(&op, x, &[weight, bias, running.mean, running.var])?));
    }
    let made = run(&op, x, &[weight, bias])?;
    if (running.mean.is_some() || running.var.is_some()) && x.numel() > 0 {
        running.update(&made[1], &made[3], x.numel() / x.shape()[1])?;
    }
    Ok(first(made))
}

/// As `batch_norm`, with statistics of each element of the batch alone; the running ones take their means over the batch into account.
pub fn instance_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running: Running<'_>,
    use_input_stats: bool,
    eps: f64,
) -> Result<Tensor> {
    if !use_input_stats && (running.mean.is_none() || running.var.is_none()) {
        return Err(Error::runtime("Expected running_mean and running_var to be defined when use_input_stats is false"));
    }
    let shape = x.shape();
    if shape.len() < 2 {
        return Err(Error::index(format!(
            "Dimension out of range: instance_norm takes channels in dimension 1, got an input with {} dimensions",
            shape.len()
        )));
    }
    let (n, c) = (shape[0], shape[1]);
    let times = [n as i64];
    let repeated = |p: Option<&Tensor>| p.map(|p| repeat(p, &times)).transpose();
    let (weight, bias) = (repeated(weight)?, repeated(bias)?);
    let (mean_, var_) = (repeated(running.mean)?, repeated(running.var)?);
    let flat: Dims = [1, n * c].into_iter().chain(shape[2..].iter().copied()).collect();
    let each = Running { mean: mean_.as_ref(), var: var_.as_ref(), momentum: running.momentum };
    let y = batch_norm(&primitives::reshape(x, &flat)?, weight.as_ref(), bias.as_ref(), each, use_input_stats, eps)?;
    let off = ModeGuard::grad(false);
    for (running, each) in [(running.mean, &mean_), (running.var, &var_)] {
        if let (Some(running), Some(each), true) = (running, each, n > 0 && use_input_stats) {
            primitives::copy_(running, &mean(&primitives::reshape(each, &[n, c])?, Some(&[0]), false, None)?)?;
        }
    }
    drop(off);
    primitives::reshape(&y, &shape)
}

/// `x / sqrt(mean(x^2) + eps) * weight` over the last dimensions, which have the shape `shape`. Without `eps` it is the dtype's epsilon.
pub fn rms_norm(x: &Tensor, shape: &[i64], weight: Option<&Tensor>, eps: Option<f64>) -> Result<Tensor> {
    let wanted = normalized(x, shape, [("weight", weight), ("bias", None)], "")?;
    if !x.dtype().is_complex() {
        check_dtypes(x, &[], "rms_norm")?;
    }
    let eps = eps.unwrap_or(if x.dtype().row().real == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) });
    let over: SmallVec<[i64; 4]> = (1..=wanted.len() as i64).map(|d| -d).collect();
    // As in PyTorch, 16-bit floats are rounded at the end alone.
    let half = x.dtype().is_half();
    let wide = if half { primitives::cast(x, DType::F32)? } else { x.clone() };
    let squares = mean(&pw::square(&wide)?, Some(&over), true, None)?;
    let shifted = pw::call_as(RowId::Add, "AddBackward1", &[(&squares).into(), eps.into()], &[])?;
    let y = pw::mul(&wide, &pw::rsqrt(&shifted)?)?;
    let y = match weight {
        Some(w) => pw::mul(&y, w)?,
        None => y,
    };
    let y = if half { primitives::cast(&y, x.dtype())? } else { y };
    // As in PyTorch, the result is row-major, unless channels come last in memory.
    let ordered = y.with_array(|a| a.is_contiguous() || a.rank() > 3 && a.layout().permute(&channels_behind(a.rank())).is_contiguous());
    if ordered { Ok(y) } else { primitives::contiguous_copy(&y) }
}
