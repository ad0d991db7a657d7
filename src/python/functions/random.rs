//! Random numbers: `Generator`, functions that sample new tensors, and methods that fill tensors.
//!
//! Dropout is in `loss`. The streams of numbers are in `ops::random`.

use crate::array::Device;
use crate::autograd::Tensor;
use crate::error::Error;
use crate::layout::{DType, Dims};
use crate::ops::create;
use crate::ops::pointwise::default_dtype;
use crate::ops::random::{self, Dist, Generator, default_generator};
use crate::ops::rejection;
use crate::python::args::{self, as_tensor, int, scalar, sizes_arg, type_name};
use crate::python::dtype::{PyDevice, device_object, device_of};
use crate::python::errors::type_error;
use crate::python::functions::create::{Options, into, size_of};
use crate::python::functions::reduce::finish;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A generator of random numbers.
///
/// The same seed gives the same numbers on every device and for any number of threads.
#[pyclass(name = "Generator", module = "rgrad", frozen)]
pub(crate) struct PyGenerator(Generator);

fn seed_of(obj: &PyObj<'_>) -> PyResult<u64> {
    // As `int()`: floats are truncated and strings parsed.
    let seed = obj.py().get_type::<pyo3::types::PyInt>().call1((obj,))?;
    if let Ok(s) = seed.extract::<u64>() {
        return Ok(s);
    }
    match seed.extract::<i64>() {
        Ok(s) => Ok(s as u64),
        Err(_) => Err(PyValueError::new_err(format!("Overflow when unpacking long long: a seed is in [-2^63, 2^64 - 1], got {seed}"))),
    }
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<&PyObj<'_>>) -> PyResult<Self> {
        // A generator serves every device: a number depends only on the seed and its index.
        device_of(device)?;
        Ok(PyGenerator(Generator::default()))
    }

    /// Sets the seed and returns this generator.
    fn manual_seed<'py>(slf: Bound<'py, Self>, seed: &PyObj<'py>) -> PyResult<Bound<'py, Self>> {
        slf.get().0.manual_seed(seed_of(seed)?);
        Ok(slf)
    }

    /// The seed that was set last.
    fn initial_seed(&self) -> u64 {
        self.0.initial_seed()
    }

    /// Sets a seed from the system's source of randomness and returns it.
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// The state as a uint8 tensor.
    fn get_state(&self, py: Python<'_>) -> PyObjResult {
        wrap(py, random::state_tensor(&self.0)?)
    }

    /// Sets the state to one that `get_state` returned, and returns this generator.
    ///
    /// Raises:
    ///     TypeError: The tensor is not such a state.
    fn set_state<'py>(slf: Bound<'py, Self>, new_state: &Bound<'_, PyTensor>) -> PyResult<Bound<'py, Self>> {
        random::set_state_tensor(&slf.get().0, PyTensor::of(new_state))?;
        Ok(slf)
    }

    /// A new generator with the same state.
    fn clone_state(&self) -> PyResult<PyGenerator> {
        let g = Generator::default();
        g.set_state(&self.0.state())?;
        Ok(PyGenerator(g))
    }

    /// The device of the state: the CPU.
    #[getter]
    fn device(&self) -> PyDevice {
        device_object(Device::CPU)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let py = slf.py();
        let rebuild = py.import("rgrad._tensor.construct")?.getattr("generator")?;
        Ok((rebuild, (slf.call_method0("get_state")?,)))
    }
}

/// A generator argument; None means the default one.
pub(crate) fn generator(obj: Option<&PyObj<'_>>) -> PyResult<Option<Generator>> {
    match obj {
        Some(o) if !o.is_none() => match o.cast::<PyGenerator>() {
            Ok(g) => Ok(Some(g.get().0.clone())),
            Err(_) => Err(type_error(format!("argument 'generator' must be rgrad.Generator, not {}", type_name(o)))),
        },
        _ => Ok(None),
    }
}

fn take_generator(py: Python<'_>, o: &mut Options) -> PyResult<Option<Generator>> {
    generator(o.take(py, "generator").as_ref())
}

fn uniform() -> Dist {
    Dist::Uniform { from: 0.0, to: 1.0 }
}

fn standard() -> Dist {
    Dist::Normal { mean: 0.0, std: 1.0 }
}

/// An error for unknown keywords, before a number is drawn.
fn refuse_others(o: &Options) -> PyResult<()> {
    if o.rest.iter().all(|(name, _)| name == "out") { Ok(()) } else { o.done() }
}

macro_rules! samples {
    ($($(#[doc = $doc:literal])+ $name:ident $like:ident = $dist:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[pyfunction]
            #[pyo3(signature = (*size, **kwargs))]
            fn $name(py: Python<'_>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
                let mut o = Options::parse(stringify!($name), kwargs)?;
                let g = take_generator(py, &mut o)?;
                let shape = size_of(py, stringify!($name), size, &mut o)?;
                refuse_others(&o)?;
                let t = random::sample_on(o.place(), &shape, o.float(), $dist, g.as_ref())?;
                into(py, &mut o, t)
            }

            /// As the function without `_like`, with the shape, dtype and device of `input`.
            #[pyfunction]
            #[pyo3(signature = (input, **kwargs))]
            fn $like(py: Python<'_>, input: &Bound<'_, PyTensor>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
                let mut o = Options::parse_like(stringify!($like), kwargs)?;
                let g = take_generator(py, &mut o)?;
                let t = PyTensor::of(input);
                let dtype = o.dtype.unwrap_or_else(|| t.dtype());
                o.done()?;
                o.wrap(py, random::sample_like(t, dtype, $dist, g.as_ref())?)
            }
        )+
        fn register_samples(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(
                m.add_function(wrap_pyfunction!($name, m)?)?;
                m.add_function(wrap_pyfunction!($like, m)?)?;
            )+
            Ok(())
        }
    };
}

samples! {
    /// A tensor of numbers with the uniform distribution on [0, 1).
    rand rand_like = uniform();
    /// A tensor of numbers with the standard normal distribution.
    randn randn_like = standard();
}

/// `low`, `high` and `size` from positional and keyword arguments. `low` may be missing.
fn bounds<'py>(py: Python<'py>, args: &Bound<'py, PyTuple>, o: &mut Options, with_size: bool) -> PyResult<(i64, i64, Option<Dims>)> {
    let mut given: Vec<Bound<'py, PyAny>> = args.iter().collect();
    let (low, high, size) = (o.take(py, "low"), o.take(py, "high"), if with_size { o.take(py, "size") } else { None });
    let size = match size {
        None if with_size => Some(given.pop().ok_or_else(|| type_error("randint() missing 1 required positional arguments: \"size\""))?),
        s => s,
    };
    let mut numbers = given.into_iter();
    let (first, second) = (numbers.next(), numbers.next());
    if numbers.next().is_some() {
        return Err(type_error("randint() takes (high, size) or (low, high, size)"));
    }
    let (low, high) = match (low, high, first, second) {
        (l, None, Some(a), Some(b)) if l.is_none() => (Some(a), b),
        (l, Some(h), None, None) => (l, h),
        (None, Some(h), Some(a), None) => (Some(a), h),
        (Some(l), None, Some(h), None) => (Some(l), h),
        (None, None, Some(h), None) => (None, h),
        _ => return Err(type_error("randint() missing 1 required positional arguments: \"high\"")),
    };
    let shape = match size {
        Some(s) if s.is_instance_of::<pyo3::types::PyInt>() => {
            return Err(type_error("randint(): argument 'size' must be tuple of ints, not int"));
        }
        Some(s) => Some(create::sizes(&sizes_arg(&s, "randint", "size")?)?),
        None => None,
    };
    Ok((low.map_or(Ok(0), |l| int(&l))?, int(&high)?, shape))
}

/// A tensor of integers with the uniform distribution on [low, high): `randint(high, size)` or `randint(low, high, size)`. The default dtype
/// is int64.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn randint(py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("randint", kwargs)?;
    let g = take_generator(py, &mut o)?;
    let (low, high, shape) = bounds(py, args, &mut o, true)?;
    refuse_others(&o)?;
    let dist = Dist::Integers { from: low, to: high };
    let t = random::sample_on(o.place(), &shape.unwrap_or_default(), o.dtype.unwrap_or(DType::I64), dist, g.as_ref())?;
    into(py, &mut o, t)
}

/// As `randint`, with the shape, dtype and device of `input`.
#[pyfunction]
#[pyo3(signature = (input, *args, **kwargs))]
fn randint_like(py: Python<'_>, input: &Bound<'_, PyTensor>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse_like("randint_like", kwargs)?;
    let g = take_generator(py, &mut o)?;
    let (low, high, _) = bounds(py, args, &mut o, false)?;
    o.done()?;
    let t = PyTensor::of(input);
    let dist = Dist::Integers { from: low, to: high };
    o.wrap(py, random::sample_like(t, o.dtype.unwrap_or_else(|| t.dtype()), dist, g.as_ref())?)
}

/// A random permutation of the integers from 0 to `n - 1`.
#[pyfunction]
#[pyo3(signature = (n, **kwargs))]
fn randperm(py: Python<'_>, n: i64, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    let mut o = Options::parse("randperm", kwargs)?;
    let g = take_generator(py, &mut o)?;
    refuse_others(&o)?;
    if n < 0 {
        return Err(Error::runtime(format!("Trying to create tensor with negative dimension {n}: [{n}]")).into());
    }
    let t = random::randperm(n, o.dtype.unwrap_or(DType::I64), g.as_ref())?;
    into(py, &mut o, t)
}

/// A tensor of numbers with normal distributions.
///
/// Args:
///     mean: The mean: a number, or a tensor with one for each element.
///     std: The standard deviation: a number, or a tensor.
///     size: The shape, if both are numbers.
#[pyfunction]
#[pyo3(name = "normal", signature = (mean, std=None, size=None, **kwargs))]
fn normal(
    py: Python<'_>,
    mean: &PyObj<'_>,
    std: Option<&PyObj<'_>>,
    size: Option<&PyObj<'_>>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyObjResult {
    let mut o = Options::parse_like("normal", kwargs)?;
    let g = take_generator(py, &mut o)?;
    refuse_others(&o)?;
    let number = |obj: Option<&PyObj<'_>>, name: &str, default: f64| -> PyResult<f64> {
        match obj {
            None => Ok(default),
            Some(v) => {
                scalar(v)?.map(|s| s.to_f64()).ok_or_else(|| type_error(format!("normal(): argument '{name}' must be Number or Tensor")))
            }
        }
    };
    let (m, s) = (as_tensor(mean), std.and_then(as_tensor));
    if m.is_none() && s.is_none() {
        let Some(size) = size else { return Err(type_error("normal() missing 1 required positional arguments: \"size\"")) };
        let dist = Dist::Normal { mean: number(Some(mean), "mean", 0.0)?, std: number(std, "std", 1.0)? };
        let shape = create::sizes(&sizes_arg(size, "normal", "size")?)?;
        let t = random::sample_on(o.place(), &shape, o.float(), dist, g.as_ref())?;
        return into(py, &mut o, t);
    }
    let filled = |t: Option<&Tensor>, v: f64, like: Option<&Tensor>| -> PyResult<Tensor> {
        match t {
            Some(t) => Ok(t.clone()),
            None => Ok(create::full(&[], v.into(), Some(like.map_or_else(default_dtype, |t| t.dtype().row().real)))?),
        }
    };
    let m2 = filled(m, if m.is_none() { number(Some(mean), "mean", 0.0)? } else { 0.0 }, s)?;
    let s2 = filled(s, if s.is_none() { number(std, "std", 1.0)? } else { 1.0 }, m)?;
    let t = random::normal(&m2, &s2, g.as_ref())?;
    into(py, &mut o, t)
}

/// A tensor of ones and zeros; each element of `input`, or `p`, is the probability of a one.
#[pyfunction]
#[pyo3(signature = (input, p=None, *, generator=None, out=None))]
fn bernoulli(
    py: Python<'_>,
    input: &Bound<'_, PyTensor>,
    p: Option<f64>,
    generator: Option<&PyObj<'_>>,
    out: Option<&PyObj<'_>>,
) -> PyObjResult {
    let g = self::generator(generator)?;
    let t = PyTensor::of(input);
    let drawn = match p {
        Some(p) => random::sample_on(t.device(), &t.shape(), t.dtype(), Dist::Bernoulli { p }, g.as_ref())?,
        None => random::bernoulli(t, g.as_ref())?,
    };
    finish(py, "bernoulli", drawn, t, out)
}

/// Indices that are drawn with the probabilities in each row of `input`, which need not sum to 1.
#[pyfunction]
#[pyo3(signature = (input, num_samples, replacement=false, *, generator=None, out=None))]
fn multinomial(
    py: Python<'_>,
    input: &Bound<'_, PyTensor>,
    num_samples: i64,
    replacement: bool,
    generator: Option<&PyObj<'_>>,
    out: Option<&PyObj<'_>>,
) -> PyObjResult {
    let g = self::generator(generator)?;
    let t = PyTensor::of(input);
    finish(py, "multinomial", random::multinomial(t, num_samples, replacement, g.as_ref())?, t, out)
}

/// Random numbers of the gamma distribution with scale 1, whose order each element of `input` is. The gradient follows a number at a constant
/// probability.
#[pyfunction]
#[pyo3(signature = (input, generator=None))]
fn _standard_gamma(py: Python<'_>, input: &Bound<'_, PyTensor>, generator: Option<&PyObj<'_>>) -> PyObjResult {
    wrap(py, rejection::standard_gamma(PyTensor::of(input), self::generator(generator)?.as_ref())?)
}

/// Random points of Dirichlet's distribution, whose parameters lie along the last dimension of `input`.
#[pyfunction]
#[pyo3(signature = (input, generator=None))]
fn _sample_dirichlet(py: Python<'_>, input: &Bound<'_, PyTensor>, generator: Option<&PyObj<'_>>) -> PyObjResult {
    wrap(py, rejection::sample_dirichlet(PyTensor::of(input), self::generator(generator)?.as_ref())?)
}

/// Random numbers of Poisson's distribution, whose rate each element of `input` is. The gradient is 0.
#[pyfunction]
#[pyo3(signature = (input, generator=None))]
fn _poisson(py: Python<'_>, input: &Bound<'_, PyTensor>, generator: Option<&PyObj<'_>>) -> PyObjResult {
    wrap(py, rejection::poisson(PyTensor::of(input), self::generator(generator)?.as_ref())?)
}

/// Random numbers of successes among `count` trials, each with the probability `prob`. They have no history.
#[pyfunction]
#[pyo3(signature = (count, prob, generator=None))]
fn _binomial(py: Python<'_>, count: &Bound<'_, PyTensor>, prob: &Bound<'_, PyTensor>, generator: Option<&PyObj<'_>>) -> PyObjResult {
    wrap(py, rejection::binomial(PyTensor::of(count), PyTensor::of(prob), self::generator(generator)?.as_ref())?)
}

fn fill<'py>(slf: &Bound<'py, PyTensor>, dist: Dist, g: Option<&PyObj<'_>>) -> PyResult<Bound<'py, PyTensor>> {
    random::fill(PyTensor::of(slf), dist, generator(g)?.as_ref())?;
    Ok(slf.clone())
}

#[pymethods]
impl PyTensor {
    /// Fills this tensor with numbers of the uniform distribution on [from, to).
    #[pyo3(signature = (from=0.0, to=1.0, *, generator=None))]
    fn uniform_<'py>(slf: &Bound<'py, Self>, from: f64, to: f64, generator: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        fill(slf, Dist::Uniform { from, to }, generator)
    }

    /// Fills this tensor with numbers of a normal distribution.
    #[pyo3(signature = (mean=0.0, std=1.0, *, generator=None))]
    fn normal_<'py>(slf: &Bound<'py, Self>, mean: f64, std: f64, generator: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        fill(slf, Dist::Normal { mean, std }, generator)
    }

    /// Fills this tensor with numbers of the exponential distribution of rate `lambd`.
    #[pyo3(signature = (lambd=1.0, *, generator=None))]
    fn exponential_<'py>(slf: &Bound<'py, Self>, lambd: f64, generator: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        fill(slf, Dist::Exponential { rate: lambd }, generator)
    }

    /// Fills this tensor with ones and zeros; `p`, a number or a tensor, is the probability of a one.
    #[pyo3(signature = (p=None, *, generator=None))]
    fn bernoulli_<'py>(slf: &Bound<'py, Self>, p: Option<&PyObj<'py>>, generator: Option<&PyObj<'py>>) -> PyResult<Bound<'py, Self>> {
        match p {
            Some(p) if as_tensor(p).is_some() => {
                let t = args::tensor(p, "bernoulli_(): argument 'p'")?;
                let wide = crate::ops::shape::expand_to(t, &Self::of(slf).shape())?;
                let drawn = random::bernoulli(&wide, self::generator(generator)?.as_ref())?;
                crate::autograd::primitives::copy_(Self::of(slf), &drawn)?;
                Ok(slf.clone())
            }
            Some(p) => fill(slf, Dist::Bernoulli { p: p.extract()? }, generator),
            None => fill(slf, Dist::Bernoulli { p: 0.5 }, generator),
        }
    }

    /// Fills this tensor with integers of the uniform distribution on [from, to), on [0, from) with one bound, or on all that the dtype represents.
    #[pyo3(signature = (from=None, to=None, *, generator=None))]
    fn random_<'py>(
        slf: &Bound<'py, Self>,
        from: Option<i64>,
        to: Option<i64>,
        generator: Option<&PyObj<'py>>,
    ) -> PyResult<Bound<'py, Self>> {
        let dist = match (from, to) {
            (None, None) => Dist::Any,
            (Some(n), None) => Dist::Integers { from: 0, to: n },
            (from, Some(to)) => Dist::Integers { from: from.unwrap_or(0), to },
        };
        fill(slf, dist, generator)
    }

    /// A tensor of ones and zeros; each element of this tensor, or `p`, is the probability of a one.
    #[pyo3(name = "bernoulli", signature = (p=None, *, generator=None))]
    fn m_bernoulli(slf: &Bound<'_, Self>, p: Option<f64>, generator: Option<&PyObj<'_>>) -> PyObjResult {
        bernoulli(slf.py(), slf, p, generator, None)
    }

    /// Indices that are drawn with the probabilities in each row of this tensor, which need not sum to 1.
    #[pyo3(name = "multinomial", signature = (num_samples, replacement=false, *, generator=None))]
    fn m_multinomial(slf: &Bound<'_, Self>, num_samples: i64, replacement: bool, generator: Option<&PyObj<'_>>) -> PyObjResult {
        multinomial(slf.py(), slf, num_samples, replacement, generator, None)
    }
}

/// Sets the seed of the default generator, and returns the generator.
#[pyfunction]
fn manual_seed(py: Python<'_>, seed: &PyObj<'_>) -> PyObjResult {
    default_generator().manual_seed(seed_of(seed)?);
    Ok(py.import("rgrad._core")?.getattr("default_generator")?.unbind())
}

/// The seed of the default generator.
#[pyfunction]
fn initial_seed() -> u64 {
    default_generator().initial_seed()
}

/// Sets the seed of the default generator from the system's source of randomness, and returns the seed.
#[pyfunction]
fn seed() -> u64 {
    default_generator().seed()
}

/// The default generator's state as a uint8 tensor.
#[pyfunction]
fn get_rng_state(py: Python<'_>) -> PyObjResult {
    wrap(py, random::state_tensor(default_generator())?)
}

/// Sets the default generator's state to one that `get_rng_state` returned.
#[pyfunction]
fn set_rng_state(new_state: &Bound<'_, PyTensor>) -> PyResult<()> {
    Ok(random::set_state_tensor(default_generator(), PyTensor::of(new_state))?)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_samples(m)?;
    m.add_class::<PyGenerator>()?;
    m.add("default_generator", Py::new(m.py(), PyGenerator(default_generator().clone()))?)?;
    m.add_function(wrap_pyfunction!(randint, m)?)?;
    m.add_function(wrap_pyfunction!(randint_like, m)?)?;
    m.add_function(wrap_pyfunction!(randperm, m)?)?;
    m.add_function(wrap_pyfunction!(normal, m)?)?;
    m.add_function(wrap_pyfunction!(bernoulli, m)?)?;
    m.add_function(wrap_pyfunction!(multinomial, m)?)?;
    m.add_function(wrap_pyfunction!(_standard_gamma, m)?)?;
    m.add_function(wrap_pyfunction!(_sample_dirichlet, m)?)?;
    m.add_function(wrap_pyfunction!(_poisson, m)?)?;
    m.add_function(wrap_pyfunction!(_binomial, m)?)?;
    m.add_function(wrap_pyfunction!(manual_seed, m)?)?;
    m.add_function(wrap_pyfunction!(initial_seed, m)?)?;
    m.add_function(wrap_pyfunction!(seed, m)?)?;
    m.add_function(wrap_pyfunction!(get_rng_state, m)?)?;
    m.add_function(wrap_pyfunction!(set_rng_state, m)?)?;
    Ok(())
}
