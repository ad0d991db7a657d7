//! Random numbers: a generator is a seed and a position in its stream. Each call takes the counters that it needs.

use super::batch;
use super::create::make_room;
use crate::array::lock_order::TableLock;
use crate::array::{Array, Device, Distribution, Element, Random, below};
use crate::autograd::{Arrays, Grads, Name, OldValue, Op, Tangent, Tensor, Vjp, VjpCx, apply_inplace, level, primitives};
use crate::error::{Error, Result};
use crate::host::language;
use crate::layout::{DType, Dims, Scalar, fmt_shape};
use crate::rows::{Func, RowId};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GeneratorState {
    seed: u64,
    offset: u64,
}

/// A stream of random numbers. Clones are the same stream.
#[derive(Debug, Clone)]
pub struct Generator(Arc<TableLock<GeneratorState>>);

/// The seed that PyTorch's generators start with.
pub const DEFAULT_SEED: u64 = 67280421310721;

impl Default for Generator {
    fn default() -> Self {
        Generator::new(DEFAULT_SEED)
    }
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator(Arc::new(TableLock::new(GeneratorState { seed, offset: 0 })))
    }

    pub fn manual_seed(&self, seed: u64) {
        *self.0.lock() = GeneratorState { seed, offset: 0 };
    }

    pub fn initial_seed(&self) -> u64 {
        self.0.lock().seed
    }

    /// Seeds from the system's own randomness and gives the seed.
    pub fn seed(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let mut h = std::collections::hash_map::RandomState::new().build_hasher();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        h.write_u128(now.map_or(0, |d| d.as_nanos()));
        h.write_u32(std::process::id());
        let seed = h.finish();
        self.manual_seed(seed);
        seed
    }

    /// Seed and position: 16 bytes, little-endian.
    pub fn state(&self) -> [u8; 16] {
        let s = *self.0.lock();
        let mut out = [0; 16];
        out[..8].copy_from_slice(&s.seed.to_le_bytes());
        out[8..].copy_from_slice(&s.offset.to_le_bytes());
        out
    }

    pub fn set_state(&self, bytes: &[u8]) -> Result<()> {
        let Ok(all) = <[u8; 16]>::try_from(bytes) else {
            return Err(Error::type_(format!("RNG state is wrong size: got {} bytes, expected 16", bytes.len())));
        };
        let half = |i: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&all[i..i + 8]);
            u64::from_le_bytes(b)
        };
        *self.0.lock() = GeneratorState { seed: half(0), offset: half(8) };
        Ok(())
    }

    /// Takes counters for `n` numbers.
    pub(super) fn take(&self, blocks: u64) -> (u64, u64) {
        let mut s = self.0.lock();
        let at = s.offset;
        s.offset = at.wrapping_add(blocks);
        (s.seed, at)
    }

    pub fn same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The default generator.
pub fn default_generator() -> &'static Generator {
    static DEFAULT: OnceLock<Generator> = OnceLock::new();
    DEFAULT.get_or_init(Generator::default)
}

/// A distribution that a tensor is filled from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dist {
    /// Uniform in [from, to).
    Uniform {
        from: f64,
        to: f64,
    },
    Normal {
        mean: f64,
        std: f64,
    },
    /// Rate lambda.
    Exponential {
        rate: f64,
    },
    /// 1 with probability p, else 0.
    Bernoulli {
        p: f64,
    },
    /// Integers in from..to, as wide as i64 allows.
    Integers {
        from: i64,
        to: i64,
    },
    /// All integers that the dtype holds exactly, from 0 on.
    Any,
}

impl Dist {
    fn check(self, dtype: DType) -> Result<()> {
        let refuse = |op: &str| Err(Error::not_implemented(format!("\"{op}\" not implemented for '{}'", dtype.type_name())));
        // Both parts are drawn.
        let dtype = match self {
            Dist::Uniform { .. } | Dist::Normal { .. } => dtype.row().real,
            _ => dtype,
        };
        match self {
            Dist::Exponential { .. } if dtype.is_complex() => Err(Error::runtime(format!(
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {}",
                dtype.type_name()
            ))),
            Dist::Bernoulli { .. } if dtype.is_complex() => refuse("bernoulli_scalar_cpu_"),
            Dist::Any if dtype.is_complex() => refuse("random_kernel_cpu"),
            Dist::Integers { .. } if dtype.is_complex() => {
                Err(Error::runtime("check_random_bounds handles only integral, floating-point and boolean types"))
            }
            Dist::Uniform { .. } if !dtype.is_float() => refuse("check_uniform_bounds"),
            Dist::Normal { .. } if !dtype.is_float() => refuse("normal_kernel_cpu"),
            Dist::Exponential { .. } if !dtype.is_float() => refuse("exponential_cpu"),
            Dist::Uniform { from, to } => {
                let most = dtype.largest();
                if !(from.abs() <= most && to.abs() <= most && (to - from) <= most) {
                    return Err(Error::runtime(format!("uniform_: bounds [{from}, {to}) are out of range for {dtype}")));
                }
                if from > to {
                    return Err(Error::runtime(format!("uniform_ expects to return a [from, to) range, but found from={from} > to={to}")));
                }
                Ok(())
            }
            Dist::Normal { std, .. } if std < 0.0 || std.is_nan() => {
                Err(Error::runtime(format!("normal expects std >= 0.0, but found std {std}")))
            }
            Dist::Exponential { rate } if rate.is_nan() || rate <= 0.0 => {
                Err(Error::runtime(format!("exponential_ expects lambda > 0.0, but found lambda={rate}")))
            }
            Dist::Bernoulli { p } if !(0.0..=1.0).contains(&p) => {
                Err(Error::runtime(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")))
            }
            Dist::Integers { from, to } if from >= to => {
                Err(Error::runtime(format!("random_ expects 'from' to be less than 'to', but got from={from} >= to={to}")))
            }
            Dist::Integers { from, to } => {
                let (low, high) = if dtype == DType::Bool { (0, 1) } else { dtype.integers().unwrap_or((i64::MIN, i64::MAX)) };
                if from < low || from > high {
                    return Err(Error::runtime(format!("from is out of bounds for {dtype}: got {from}")));
                }
                if to - 1 < low || to - 1 > high {
                    return Err(Error::runtime(format!("to - 1 is out of bounds for {dtype}: got {}", to - 1)));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The distribution of the request.
    fn distribution(self, dtype: DType) -> Distribution {
        match self {
            Dist::Uniform { from, to } => Distribution::Uniform { from, to },
            Dist::Normal { mean, std } => Distribution::Normal { mean, std },
            Dist::Exponential { rate } => Distribution::Exponential { rate },
            Dist::Bernoulli { p } => Distribution::Bernoulli { p },
            Dist::Integers { from, to } => Distribution::Integers { from, range: to.wrapping_sub(from) as u64 },
            Dist::Any => Distribution::Integers { from: 0, range: any_range(dtype) },
        }
    }

    fn node(self) -> &'static str {
        match self {
            Dist::Uniform { .. } => "UniformBackward0",
            Dist::Normal { .. } => "NormalBackward0",
            Dist::Exponential { .. } => "ExponentialBackward0",
            Dist::Bernoulli { .. } => "BernoulliBackward2",
            Dist::Integers { .. } => "RandomBackward0",
            Dist::Any => "RandomBackward2",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Dist::Uniform { .. } => "uniform_",
            Dist::Normal { .. } => "normal_",
            Dist::Exponential { .. } => "exponential_",
            Dist::Bernoulli { .. } => "bernoulli_",
            Dist::Integers { .. } | Dist::Any => "random_",
        }
    }
}

/// How many integers there are that the dtype holds exactly, from 0 on.
fn any_range(dtype: DType) -> u64 {
    (1 << dtype.digits()) + u64::from(dtype.is_float())
}

/// Fills the memory of a dense array from its first element on. Complex numbers get their parts one by one; those of normal ones have half of the
/// variance, and the mean is real.
fn draw(out: &Array, dist: Dist, g: &Generator) -> Result<()> {
    if !out.dtype().is_complex() {
        return draw_real(out, dist, g);
    }
    let (parts, real) = (out.layout().as_pairs()?, out.dtype().row().real);
    let parts = out.with_parts(parts, real)?;
    match dist {
        Dist::Normal { mean, std } => {
            draw_real(&parts, Dist::Normal { mean: 0.0, std: std * std::f64::consts::FRAC_1_SQRT_2 }, g)?;
            if mean == 0.0 {
                return Ok(());
            }
            let last = parts.rank() - 1;
            let real_parts = parts.with_layout(parts.layout().select(last, 0)?)?;
            let mean = out.full_beside(&[], mean.into(), real)?;
            real_parts.pointwise_into(Func::forward(RowId::Add), real, &[&real_parts, &mean], &[])
        }
        _ => draw_real(&parts, dist, g),
    }
}

fn draw_real(out: &Array, dist: Dist, g: &Generator) -> Result<()> {
    let (n, distribution) = (out.numel(), dist.distribution(out.dtype()));
    let (seed, start) = g.take(distribution.blocks(n, out.dtype()));
    language::unlocked_if_large(n, || out.draw(Random { op: dist.label(), distribution, seed, start }, None))
}

/// A new tensor of random numbers.
pub fn sample(shape: &[usize], dtype: DType, dist: Dist, g: Option<&Generator>) -> Result<Tensor> {
    sample_on(Device::CPU, shape, dtype, dist, g)
}

/// As `sample`, on a device; the numbers are the same on every device (normal and exponential ones but for their last digits).
pub fn sample_on(device: Device, shape: &[usize], dtype: DType, dist: Dist, g: Option<&Generator>) -> Result<Tensor> {
    dist.check(dtype)?;
    let plain = |shape: &[usize]| {
        make_room(shape.iter().fold(1, |n, d| n.saturating_mul(*d)));
        let a = Array::empty_on(device, shape, dtype)?;
        draw(&a, dist, g.unwrap_or_else(|| default_generator()))?;
        Ok(Tensor::new(a))
    };
    if level::depth() > 0 { batch::random(shape, plain) } else { plain(shape) }
}

/// Random numbers in a tensor's shape and order of dimensions.
pub fn sample_like(t: &Tensor, dtype: DType, dist: Dist, g: Option<&Generator>) -> Result<Tensor> {
    dist.check(dtype)?;
    if level::depth() > 0 {
        return sample_on(t.device(), &t.shape(), dtype, dist, g);
    }
    make_room(t.numel());
    let a = t.memory().empty_like(dtype)?;
    // Dense memory is filled in its own order.
    draw(&a, dist, g.unwrap_or_else(|| default_generator()))?;
    Ok(Tensor::new(a))
}

/// Overwrites a tensor in place; its old value has gradient zero.
#[derive(Debug, Clone)]
struct Fill {
    dist: Dist,
    generator: Generator,
}

impl Vjp for Fill {
    fn node_name(&self) -> Name {
        self.dist.node().into()
    }
    fn vjp(&self, _cx: &VjpCx<'_>, grads: &Grads) -> Result<Grads> {
        Ok(smallvec![primitives::zeros_like(grads[0].as_ref())?])
    }
}

impl Op for Fill {
    fn name(&self) -> &'static str {
        self.dist.label()
    }
    fn forward(&self, x: &[&Array]) -> Result<Arrays> {
        let out = x[0].empty_beside(x[0].shape(), x[0].dtype())?;
        draw(&out, self.dist, &self.generator)?;
        Ok(smallvec![out])
    }
    fn forward_into(&self, out: &Array, _x: &[&Array]) -> Result<()> {
        if out.is_contiguous() {
            return draw(out, self.dist, &self.generator);
        }
        let made = out.empty_beside(out.shape(), out.dtype())?;
        draw(&made, self.dist, &self.generator)?;
        out.copy_from(&made)
    }
    fn is_elementwise(&self) -> bool {
        true
    }
    fn tangent(&self) -> Tangent {
        Tangent::Zero
    }
}

/// Fills `t` with random numbers (`normal_` and its kin).
pub fn fill(t: &Tensor, dist: Dist, g: Option<&Generator>) -> Result<()> {
    dist.check(t.dtype())?;
    batch::check_random_beside(t, true)?;
    if t.level() > 0 && t.is_batched() {
        // Each slice gets its own numbers, or all get the same.
        return primitives::copy_(t, &sample_on(t.device(), &t.shape(), t.dtype(), dist, g)?);
    }
    let op = Fill { dist, generator: g.unwrap_or_else(|| default_generator()).clone() };
    apply_inplace(&op, dist.label(), &[t], OldValue::Overwritten)
}

/// 1 with the probability that each element of `p` says, else 0, in p's dtype. No gradient.
pub fn bernoulli(p: &Tensor, g: Option<&Generator>) -> Result<Tensor> {
    if p.dtype().is_complex() {
        return Err(Error::not_implemented(format!("\"bernoulli_tensor_cpu_self_\" not implemented for '{}'", p.dtype().type_name())));
    }
    if !p.dtype().is_float() {
        return Err(Error::not_implemented(format!("\"bernoulli_tensor_cpu_p_\" not implemented for '{}'", p.dtype().type_name())));
    }
    if level::depth() > 0 {
        batch::check_random_beside(p, false)?;
        let u = sample_on(p.device(), &p.shape(), p.dtype(), Dist::Uniform { from: 0.0, to: 1.0 }, g)?;
        return primitives::cast(&super::pointwise::lt(&u, &p.detach())?, p.dtype());
    }
    let a = p.array()?;
    language::unlocked_if_large(a.numel(), || tossed(&a, g.unwrap_or_else(|| default_generator()))).map(Tensor::new)
}

fn tossed(p: &Array, g: &Generator) -> Result<Array> {
    let refuse = |bad: f64| Err(Error::runtime(format!("Expected p_in >= 0 && p_in <= 1 to be true: bernoulli got the probability {bad}")));
    let all: SmallVec<[bool; 8]> = SmallVec::from_elem(true, p.rank());
    for max in [false, true] {
        let end = if p.numel() == 0 { 0.0 } else { p.extreme(max, &all, false)?.first()?.to_f64() };
        if !(0.0..=1.0).contains(&end) {
            return refuse(end);
        }
    }
    // The host draws numbers of double precision.
    let chances = if p.dtype() == DType::F32 { p.clone() } else { p.to_device(Device::CPU)? };
    let out = chances.empty_beside(p.shape(), p.dtype())?;
    let distribution = Distribution::BernoulliOf;
    let (seed, start) = g.take(distribution.blocks(p.numel(), p.dtype()));
    out.draw(Random { op: "bernoulli", distribution, seed, start }, Some(&chances))?;
    out.to_device_of(p)
}

/// Normal numbers with mean and standard deviation element by element; both broadcast.
pub fn normal(mean: &Tensor, std: &Tensor, g: Option<&Generator>) -> Result<Tensor> {
    if std.dtype().is_complex() {
        return Err(Error::runtime("normal expects standard deviation to be non-complex"));
    }
    if !mean.dtype().is_differentiable() || !std.dtype().is_float() {
        return Err(Error::runtime(format!("normal expects floating point tensors, got {} and {}", mean.dtype(), std.dtype())));
    }
    let deviations = std.array()?.to_vec::<f64>()?;
    if let Some(bad) = deviations.iter().find(|s| **s < 0.0) {
        return Err(Error::runtime(format!("normal expects all elements of std >= 0.0, got {bad}")));
    }
    let (mean, std) = (mean.detach(), std.detach());
    let shape = crate::layout::broadcast(&mean.shape(), &std.shape())?;
    let z = sample_on(mean.device(), &shape, mean.dtype(), Dist::Normal { mean: 0.0, std: 1.0 }, g)?;
    use crate::ops::pointwise::{add, mul};
    add(&mul(&z, &std)?, &mean)
}

/// The integers 0..n in random order.
pub fn randperm(n: i64, dtype: DType, g: Option<&Generator>) -> Result<Tensor> {
    let count = usize::try_from(n).map_err(|_| Error::runtime(format!("n must be non-negative, got {n}")))?;
    if dtype.is_complex() {
        return Err(Error::not_implemented(format!("\"randperm\" not implemented for '{}'", dtype.type_name())));
    }
    let most = if dtype == DType::Bool { 1 } else { any_range(dtype).min(i64::MAX as u64) as i64 };
    if n > most {
        return Err(Error::runtime(format!("n is too large for result tensor type {dtype}: got {n}")));
    }
    let g = g.unwrap_or_else(|| default_generator());
    let one = || -> Result<Tensor> {
        let stream = g.take(Distribution::Integers { from: 0, range: 0 }.blocks(count, DType::I64));
        Ok(Tensor::new(language::unlocked_if_large(count, || shuffled(count, dtype, stream))?))
    };
    if level::depth() == 0 {
        return one();
    }
    batch::random(&[count], |shape| {
        let batch: usize = shape[..shape.len() - 1].iter().product();
        if batch == 0 {
            return Ok(Tensor::new(Array::empty(shape, dtype)?));
        }
        let orders = (0..batch).map(|_| one()).collect::<Result<Vec<_>>>()?;
        primitives::reshape(&super::join::stack(&orders, 0)?, shape)
    })
}

fn shuffled(count: usize, dtype: DType, (seed, at): (u64, u64)) -> Result<Array> {
    let (a, bits) = (Array::empty(&[count], DType::I64)?, Array::empty(&[count], DType::I64)?);
    bits.draw(Random { op: "randperm", distribution: Distribution::Integers { from: 0, range: 0 }, seed, start: at }, None)?;
    // SAFETY: made just now; all of it is written.
    let order = unsafe { a.new_elements::<i64>() };
    order.iter_mut().enumerate().for_each(|(i, o)| *o = i as i64);
    let words = bits.elements::<i64>()?;
    // Fisher and Yates, from the end.
    for i in (1..count).rev() {
        order.swap(i, below(words.get(i).unwrap_or(0) as u64, i as u64 + 1) as usize);
    }
    a.cast(dtype)
}

/// Draws `count` positions of each row of weights, with or without replacement. The host draws them, so a device is waited for.
pub fn multinomial(weights: &Tensor, count: i64, replacement: bool, g: Option<&Generator>) -> Result<Tensor> {
    let shape = weights.shape();
    if shape.is_empty() || shape.len() > 2 {
        return Err(Error::runtime(format!("prob_dist must be 1 or 2 dim, got {} dims", shape.len())));
    }
    if !weights.dtype().is_float() {
        return Err(Error::runtime(format!(
            "multinomial only supports floating-point dtypes for input, got: {}",
            weights.dtype().type_name()
        )));
    }
    let k = shape[shape.len() - 1];
    if count <= 0 {
        return Err(Error::runtime(format!("cannot sample n_sample <= 0 samples, got {count}")));
    }
    let count = count as usize;
    if !replacement && count > k {
        return Err(Error::runtime(format!("cannot sample n_sample > prob_dist.size(-1) samples without replacement: got {count} > {k}")));
    }
    let g = g.unwrap_or_else(|| default_generator());
    let plain = |a: &Array| {
        language::unlocked_if_large(a.numel().saturating_mul(count), || draw_positions(a, count, replacement, g)).map(Tensor::new)
    };
    if level::depth() == 0 {
        return plain(&weights.array()?);
    }
    batch::check_random_beside(weights, false)?;
    // The rows of the batch are rows of one table: those of each level that draws for itself, whether or not the weights have its batch
    // dimension.
    let noise = batch::random(&[], |shape| Ok(Tensor::new(Array::full(shape, Scalar::Int(0), weights.dtype())?)))?;
    let all = super::pointwise::add(&weights.detach(), &noise)?;
    let mut levels = Vec::new();
    let mut below = all;
    while let Some(l) = below.wrapped() {
        if l.level.batch().is_some() {
            levels.push(l.level.clone());
        }
        below = l.inner;
    }
    let table = below.array()?;
    let (lead, own) = table.shape().split_at(levels.len());
    let rows: usize = lead.iter().chain(&own[..own.len() - 1]).product();
    let drawn = plain(&primitives::reshape(&Tensor::new(table.clone()), &[rows, k])?.array()?)?;
    let shape: Dims = lead.iter().chain(&own[..own.len() - 1]).copied().chain([count]).collect();
    let drawn = primitives::reshape(&drawn, &shape)?;
    Ok(levels.iter().rev().fold(drawn, |t, l| level::wrap(l, t)))
}

fn draw_positions(weights: &Array, count: usize, replacement: bool, g: &Generator) -> Result<Array> {
    let shape = weights.shape();
    let (k, rows) = (shape[shape.len() - 1], if shape.len() == 2 { shape[0] } else { 1 });
    let w = weights.to_vec::<f64>()?;
    if w.iter().any(|p| !p.is_finite() || *p < 0.0) {
        return Err(Error::runtime("probability tensor contains either `inf`, `nan` or element < 0"));
    }
    let units = Array::empty(&[rows * count], DType::F64)?;
    draw(&units, Dist::Uniform { from: 0.0, to: 1.0 }, g)?;
    let units = units.elements::<f64>()?;
    let mut positions: Vec<i64> = Vec::with_capacity(rows * count);
    for r in 0..rows {
        let mut row = w[r * k..(r + 1) * k].to_vec();
        let total = row.iter().sum::<f64>();
        if total.is_nan() || total <= 0.0 {
            return Err(Error::runtime("invalid multinomial distribution (sum of probabilities <= 0)"));
        }
        for c in 0..count {
            let total: f64 = row.iter().sum();
            if total <= 0.0 {
                return Err(Error::runtime(
                    "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)",
                ));
            }
            let mut left = units.get(r * count + c).unwrap_or(0.0) * total;
            let mut at = row.iter().rposition(|p| *p > 0.0).unwrap_or(0);
            for (i, p) in row.iter().enumerate() {
                if left < *p {
                    at = i;
                    break;
                }
                left -= p;
            }
            positions.push(at as i64);
            if !replacement {
                row[at] = 0.0;
            }
        }
    }
    let out = if shape.len() == 2 { vec![rows, count] } else { vec![count] };
    Array::from_slice(&positions, &out)?.to_device_of(weights)
}

/// A generator's state as a uint8 tensor, and back.
pub fn state_tensor(g: &Generator) -> Result<Tensor> {
    Ok(Tensor::new(Array::from_slice(&g.state(), &[16])?))
}

pub fn set_state_tensor(g: &Generator, t: &Tensor) -> Result<()> {
    if t.dtype() != u8::DTYPE || t.rank() != 1 {
        return Err(Error::type_(format!(
            "RNG state must be a rgrad.ByteTensor of one dimension, got {} of shape {}",
            t.dtype(),
            fmt_shape(&t.shape())
        )));
    }
    g.set_state(&t.array()?.to_vec::<u8>()?)
}
