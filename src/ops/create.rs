//! New tensors from sizes and numbers.

use crate::array::{Array, Device, Element, fusion};
use crate::autograd::{Tensor, primitives};
use crate::error::{Error, Result};
use crate::host::threads::parallel_for;
use crate::host::{interrupt, language};
use crate::layout::{Complex64, DType, Dims, Scalar, by_element};
use crate::ops::pointwise::{call, default_dtype};
use crate::rows::RowId;
use std::mem::MaybeUninit;

/// Sizes as a caller gives them: none may be negative.
pub fn sizes(given: &[i64]) -> Result<Dims> {
    given
        .iter()
        .map(|&s| usize::try_from(s).map_err(|_| Error::runtime(format!("Trying to create tensor with negative dimension {s}: {given:?}"))))
        .collect()
}

/// A safe point before memory for this many elements is allocated: deferred programs that keep more memory alive than their results take run
/// first.
pub(crate) fn make_room(elements: usize) {
    // Smaller arrays take hardly any memory.
    if elements > 16 {
        fusion::run_abandoned();
    }
}

/// Uninitialised memory.
pub fn empty(shape: &[usize], dtype: DType) -> Result<Tensor> {
    empty_on(Device::CPU, shape, dtype)
}

pub fn empty_on(device: Device, shape: &[usize], dtype: DType) -> Result<Tensor> {
    make_room(shape.iter().fold(1, |n, d| n.saturating_mul(*d)));
    Ok(Tensor::new(Array::empty_on(device, shape, dtype)?))
}

/// Uninitialised memory with the given strides; the elements it can reach must not overlap.
pub fn empty_strided(shape: &[usize], strides: &[isize], dtype: DType) -> Result<Tensor> {
    use crate::layout::Layout;
    let layout = Layout::as_strided(shape, strides, 0, isize::MAX as usize / dtype.size())?;
    make_room(layout.numel());
    let all = Array::empty(&[layout.extent().1], dtype)?;
    Ok(Tensor::new(all.with_layout(layout)?))
}

/// As `full_on`, on the CPU.
pub fn full(shape: &[usize], value: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    full_on(Device::CPU, shape, value, dtype)
}

/// One number everywhere. Without dtype: bool for bool, int64 for int, the default dtype for float.
pub fn full_on(device: Device, shape: &[usize], value: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| match value {
        // As in PyTorch, only who names uint64 gets it.
        Scalar::Unsigned(_) => DType::I64,
        value => value.dtype(default_dtype()),
    });
    // Refuses a value that does not fit.
    primitives::check_fits(value, dtype)?;
    let n: usize = shape.iter().fold(1, |n, d| n.saturating_mul(*d));
    make_room(n);
    Ok(Tensor::new(language::unlocked_if_large(n, || Array::full_on(device, shape, value, dtype))?))
}

/// A new tensor of this one's shape and order of dimensions.
pub fn full_like(t: &Tensor, value: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    full_like_on(t, value, dtype, None)
}

/// As `full_like`, on a device if one is given.
pub fn full_like_on(t: &Tensor, value: Scalar, dtype: Option<DType>, device: Option<Device>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| t.dtype());
    primitives::check_fits(value, dtype)?;
    make_room(t.numel());
    let a = t.memory().empty_like_on(device.unwrap_or_else(|| t.device()), dtype)?;
    language::unlocked_if_large(a.numel(), || a.fill(value))?;
    t.beside(Tensor::new(a))
}

/// Uninitialised, of this tensor's shape and order of dimensions, on a device if one is given.
pub fn empty_like_on(t: &Tensor, dtype: Option<DType>, device: Option<Device>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| t.dtype());
    make_room(t.numel());
    t.beside(Tensor::new(t.memory().empty_like_on(device.unwrap_or_else(|| t.device()), dtype)?))
}

/// Ones on the main diagonal, zero elsewhere.
pub fn eye(n: i64, m: Option<i64>, dtype: DType) -> Result<Tensor> {
    let m = m.unwrap_or(n);
    for (name, v) in [("n", n), ("m", m)] {
        if v < 0 {
            return Err(Error::runtime(format!("{name} must be greater or equal to 0, got {v}")));
        }
    }
    make_room((n as usize).saturating_mul(m as usize));
    let a = Array::zeros(&[n as usize, m as usize], dtype)?;
    a.with_layout(a.layout().diagonal(0, 0, 1)?)?.fill(Scalar::Int(1))?;
    Ok(Tensor::new(a))
}

/// Numbers per piece of parallel work.
const PIECE: usize = 32 << 10;

struct Out<T>(*mut T);

impl<T> Out<T> {
    #[inline(always)]
    fn get(&self) -> *mut T {
        self.0
    }
}
// SAFETY: pieces write disjoint parts.
unsafe impl<T> Send for Out<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Out<T> {}

/// A vector of `n` elements, in pieces: `write` is given the position of a piece and its memory.
fn pieces<T: Element>(n: usize, write: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync) -> Result<Tensor> {
    make_room(n);
    let a = Array::empty(&[n], T::DTYPE)?;
    let out = Out(a.ptr_mut().cast::<MaybeUninit<T>>());
    let piece = |p: usize| {
        let from = p * PIECE;
        // SAFETY: below n; pieces are disjoint.
        write(from, unsafe { std::slice::from_raw_parts_mut(out.get().add(from), PIECE.min(n - from)) });
    };
    if n > PIECE {
        language::unlocked_if_large(n, || {
            parallel_for(n.div_ceil(PIECE), piece);
            Ok::<_, Error>(())
        })?;
    } else if n > 0 {
        piece(0);
    }
    Ok(Tensor::new(a))
}

/// A vector of `f(0.0), f(1.0), ...` as elements of T.
fn sequence<T: Element>(n: usize, f: impl Fn(f64) -> f64 + Sync) -> Result<Tensor> {
    exact_sequence(n, |i| T::of_f64(f(i)))
}

/// A vector of `f(0.0), f(1.0), ...`.
fn exact_sequence<T: Element>(n: usize, f: impl Fn(f64) -> T + Sync) -> Result<Tensor> {
    pieces(n, |from, to: &mut [MaybeUninit<T>]| {
        let from = from as f64;
        // A piece is short, and numbers of 32 bits are converted several at a time.
        for (i, to) in to.iter_mut().enumerate() {
            to.write(f(from + f64::from(i as i32)));
        }
    })
}

/// A vector of `start`, `start + step`, ... as elements of T.
fn count<T: Element>(n: usize, (start, step): (i64, i64)) -> Result<Tensor> {
    pieces(n, |from, to: &mut [MaybeUninit<T>]| {
        let mut value = start.wrapping_add(step.wrapping_mul(from as i64));
        for to in to {
            to.write(if T::DTYPE.is_float() { T::of_f64(value as f64) } else { T::of_i64(value) });
            value = value.wrapping_add(step);
        }
    })
}

/// Evenly spaced integers, of the dtype.
fn integers(dtype: DType, n: usize, from: (i64, i64)) -> Result<Tensor> {
    by_element!(dtype, T => count::<T>(n, from))
}

/// Numbers cut to integers of the dtype, or floats of it.
fn numbers(dtype: DType, n: usize, f: impl Fn(f64) -> f64 + Sync) -> Result<Tensor> {
    by_element!(dtype, T => sequence::<T>(n, f))
}

/// `start`, `start + step`, ... below `end`. Without dtype: int64 if all three are ints, else the default dtype.
pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let ints = [start, end, step].iter().all(|s| !matches!(s, Scalar::Float(_)));
    let dtype = dtype.unwrap_or_else(|| if ints { DType::I64 } else { default_dtype() });
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(Error::not_implemented(format!("\"arange_cpu\" not implemented for '{}'", dtype.type_name())));
    }
    for s in [start, end, step] {
        if matches!(s, Scalar::Complex(z) if z.im != 0.0) {
            return Err(Error::runtime(format!("value cannot be converted to type double without overflow: got {s}")));
        }
    }
    // As given: their order is checked before they are cut to whole parts.
    let (s, e, d) = (start.to_f64(), end.to_f64(), step.to_f64());
    let mut whole_step = true;
    let (mut start, mut end, mut step, mut ints) = (start, end, step, ints);
    if !ints && dtype == DType::I64 {
        // int64 counts with whole parts; other integers are made from whole parts.
        for s in [start, end, step] {
            primitives::check_fits(s, DType::I64)?;
        }
        whole_step = step.to_i64() != 0;
        [start, end, step] = [start, end, step].map(|s| Scalar::Int(s.to_i64()));
        ints = true;
    } else if !ints && !dtype.is_float() {
        for s in [start, step] {
            primitives::check_fits(s, DType::I64)?;
        }
    }
    if d == 0.0 || d.is_nan() {
        return Err(Error::runtime("step must be nonzero"));
    }
    if !s.is_finite() || !e.is_finite() {
        return Err(Error::runtime(format!("unsupported range: {s} -> {e}")));
    }
    if (d > 0.0 && e < s) || (d < 0.0 && e > s) {
        return Err(Error::runtime(format!(
            "upper bound and lower bound inconsistent with step sign: start {start}, end {end}, step {step}"
        )));
    }
    if !whole_step {
        return Err(Error::value("step must be nonzero"));
    }
    let n = if ints {
        let (s, e, d) = (i128::from(start.to_i64()), i128::from(end.to_i64()), i128::from(step.to_i64()));
        usize::try_from((e - s + d - d.signum()) / d).unwrap_or(usize::MAX)
    } else {
        let n = ((e - s) / d).ceil();
        if n >= 9.2e18 {
            return Err(Error::runtime(format!("invalid size, possible overflow: arange from {s} to {e} by {d}")));
        }
        n as usize
    };
    let (first, by) = (start.to_i64(), step.to_i64());
    // Below 2^53 floats count exactly.
    let are_exact = (first as f64).abs() + (by as f64).abs() * n as f64 <= 9.0e15;
    match (ints, dtype.is_float()) {
        (true, true) if are_exact => numbers(dtype, n, |i| first as f64 + by as f64 * i),
        (false, true) => numbers(dtype, n, |i| s + d * i),
        _ => integers(dtype, n, (first, by)),
    }
}

fn steps(n: i64, name: &str) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::runtime(format!("number of steps must be non-negative: {name} got {n}")))
}

/// The i-th of n points from `s` to `e`, computed from the nearer end so that both ends are exact.
#[inline]
fn point(s: f64, e: f64, n: usize, i: f64) -> f64 {
    if n == 1 {
        return s;
    }
    let last = (n - 1) as f64;
    let step = (e - s) / last;
    if i < (n / 2) as f64 { s + step * i } else { e - step * (last - i) }
}

/// Both ends as numbers of the dtype.
fn ends(name: &str, start: f64, end: f64, dtype: DType) -> Result<(f64, f64)> {
    if dtype == DType::Bool {
        return Err(Error::not_implemented(format!("\"{name}_cpu\" not implemented for 'Bool'")));
    }
    for s in [start, end] {
        let whole = s.fract() == 0.0 && s.abs() < 9.0e18;
        primitives::check_fits(if whole { Scalar::Int(s as i64) } else { Scalar::Float(s) }, dtype)?;
    }
    let within = |s: f64| match dtype.integers() {
        None => s,
        // The low bits: a negative number wraps around.
        Some((0, high)) => (s as i64 & high) as f64,
        Some(_) => s.trunc(),
    };
    Ok((within(start), within(end)))
}

/// The complex dtype of numbers between two ends of which one is complex.
///
/// # Errors
/// The wanted dtype is real.
fn between_complex(name: &str, dtype: Option<DType>) -> Result<DType> {
    let inferred = default_dtype().to_complex(DType::F32);
    match dtype {
        Some(d) if !d.is_complex() => Err(Error::runtime(format!(
            "torch.{name}(): inferred dtype {} can't be safely cast to passed dtype {}",
            inferred.row().c_name,
            d.type_name()
        ))),
        d => Ok(d.unwrap_or(inferred)),
    }
}

/// `n` evenly spaced complex numbers from `start` to `end`, both included.
///
/// # Errors
/// As for `linspace`; the wanted dtype is real.
pub fn complex_linspace(start: Complex64, end: Complex64, n: i64, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = between_complex("linspace", dtype)?;
    let part = |s: f64, e: f64| linspace(s, e, n, Some(dtype.row().real));
    super::complex::complex(&part(start.re, end.re)?, &part(start.im, end.im)?)
}

/// `base` to the power of `n` evenly spaced complex numbers.
///
/// # Errors
/// As for `complex_linspace`.
pub fn complex_logspace(start: Complex64, end: Complex64, n: i64, base: f64, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = between_complex("logspace", dtype)?;
    let at = complex_linspace(start, end, n, Some(DType::C128))?;
    let base = Tensor::new(Array::scalar(Scalar::Float(base), DType::C128)?);
    primitives::cast(&call(RowId::Pow, &[(&base).into(), (&at).into()], &[])?, dtype)
}

/// `n` evenly spaced numbers from `start` to `end`, both included.
pub fn linspace(start: f64, end: f64, n: i64, dtype: Option<DType>) -> Result<Tensor> {
    let (n, dtype) = (steps(n, "linspace")?, dtype.unwrap_or_else(default_dtype));
    let (start, end) = ends("linspace", start, end, dtype)?;
    if dtype == DType::F32 {
        // In the precision of the result, as PyTorch: the last bits show it.
        let (s, e) = (start as f32, end as f32);
        let last = (n.max(2) - 1) as f64;
        let (step, half) = ((e - s) / last as f32, if n == 1 { 1.0 } else { (n / 2) as f64 });
        return exact_sequence::<f32>(n, |i| if i < half { s + step * i as f32 } else { e - step * (last - i) as f32 });
    }
    numbers(dtype, n, |i| point(start, end, n, i))
}

/// `base` to the power of `n` evenly spaced numbers.
pub fn logspace(start: f64, end: f64, n: i64, base: f64, dtype: Option<DType>) -> Result<Tensor> {
    let (n, dtype) = (steps(n, "logspace")?, dtype.unwrap_or_else(default_dtype));
    let (start, end) = ends("logspace", start, end, dtype)?;
    numbers(dtype, n, |i| base.powf(point(start, end, n, i)))
}

/// How many positions (i, j) with `j <= i + offset` there are, and the first row that has one.
fn lower_positions(rows: i64, cols: i64, offset: i64) -> (i128, i64) {
    let (rows, cols, offset) = (i128::from(rows), i128::from(cols), i128::from(offset));
    let first = (-offset).clamp(0, rows);
    let whole = (cols - offset - 1).clamp(first, rows);
    let part = (whole - first) * (first + whole + 1 + 2 * offset) / 2;
    (part + (rows - whole) * cols, first as i64)
}

/// Positions of the lower (or upper) triangle of a matrix, one row of row numbers and one of column numbers.
pub fn triangle_indices(rows: i64, cols: i64, offset: i64, upper: bool) -> Result<Tensor> {
    sizes(&[rows, cols])?;
    let (count, from, to) = if cols == 0 {
        (0, 0, 0)
    } else if upper {
        // What is not below the diagonal before.
        let below = lower_positions(rows, cols, offset.saturating_sub(1)).0;
        (i128::from(rows) * i128::from(cols) - below, 0, (i128::from(cols) - i128::from(offset)).clamp(0, i128::from(rows)) as i64)
    } else {
        let (count, first) = lower_positions(rows, cols, offset);
        (count, first, rows)
    };
    let n = usize::try_from(count).unwrap_or(usize::MAX);
    make_room(n.saturating_mul(2));
    let a = Array::empty(&[2, n], DType::I64)?;
    let out = Out(a.ptr_mut().cast::<i64>());
    language::unlocked_if_large(n, || {
        let (mut at, mut checked) = (0, 0);
        for i in from..to {
            let edge = i.saturating_add(offset);
            let (first, last) = if upper { (edge.clamp(0, cols), cols) } else { (0, edge.saturating_add(1).clamp(0, cols)) };
            for j in first..last {
                // SAFETY: there are `n` positions in all, and room for so many numbers of rows and of columns.
                unsafe {
                    out.get().add(at).write(i);
                    out.get().add(n + at).write(j);
                }
                at += 1;
            }
            if at - checked >= 1 << 20 || i % 1024 == 0 {
                checked = at;
                interrupt::check();
            }
        }
        debug_assert_eq!(at, n);
        Ok::<_, Error>(())
    })?;
    Ok(Tensor::new(a))
}
