//! New tensors from sizes and numbers.

use crate::array::{Array, Device, Element, fusion};
use crate::autograd::{Tensor, primitives};
use crate::backend::cpu::threads::parallel_for;
use crate::backend::host;
use crate::error::{Error, Result};
use crate::layout::{DType, Dims, Scalar};
use crate::ops::pointwise::default_dtype;

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
    let dtype = dtype.unwrap_or_else(|| value.dtype(default_dtype()));
    // Refuses a value that does not fit.
    primitives::check_fits(value, dtype)?;
    let n: usize = shape.iter().fold(1, |n, d| n.saturating_mul(*d));
    make_room(n);
    Ok(Tensor::new(host::unlocked_if_large(n, || Array::full_on(device, shape, value, dtype))?))
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
    let a = t.array().empty_like_on(device.unwrap_or_else(|| t.device()), dtype)?;
    host::unlocked_if_large(a.numel(), || a.fill(value))?;
    t.beside(Tensor::new(a))
}

/// Uninitialised, of this tensor's shape and order of dimensions, on a device if one is given.
pub fn empty_like_on(t: &Tensor, dtype: Option<DType>, device: Option<Device>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| t.dtype());
    make_room(t.numel());
    t.beside(Tensor::new(t.array().empty_like_on(device.unwrap_or_else(|| t.device()), dtype)?))
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

/// A vector of `f(0), f(1), ...`.
fn sequence<T: Element>(n: usize, f: impl Fn(usize) -> T + Sync) -> Result<Tensor> {
    make_room(n);
    let a = Array::empty(&[n], T::DTYPE)?;
    let out = Out(a.ptr_mut().cast::<T>());
    let some = |from: usize, to: usize| {
        for i in from..to {
            // SAFETY: below n; pieces are disjoint.
            unsafe { out.get().add(i).write(f(i)) };
        }
    };
    if n <= PIECE {
        some(0, n);
    } else {
        host::unlocked_if_large(n, || parallel_for(n.div_ceil(PIECE), |p| some(p * PIECE, ((p + 1) * PIECE).min(n))));
    }
    Ok(Tensor::new(a))
}

/// Calls `$f` for the dtype with how a float and an integer become it.
macro_rules! sequence_as {
    ($dtype:expr, $n:expr, |$i:ident| float $float:expr, int $int:expr) => {
        match $dtype {
            DType::F64 => sequence::<f64>($n, |$i| $float),
            DType::F32 => sequence::<f32>($n, |$i| $float as f32),
            DType::I64 => sequence::<i64>($n, |$i| $int),
            DType::I32 => sequence::<i32>($n, |$i| $int as i32),
            DType::I16 => sequence::<i16>($n, |$i| $int as i16),
            DType::I8 => sequence::<i8>($n, |$i| $int as i8),
            DType::U8 => sequence::<u8>($n, |$i| $int as u8),
            DType::Bool => sequence::<bool>($n, |$i| $int != 0),
        }
    };
}

/// `start`, `start + step`, ... below `end`. Without dtype: int64 if all three are ints, else the default dtype.
pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let ints = [start, end, step].iter().all(|s| !matches!(s, Scalar::Float(_)));
    let dtype = dtype.unwrap_or_else(|| if ints { DType::I64 } else { default_dtype() });
    let (s, e, d) = (start.to_f64(), end.to_f64(), step.to_f64());
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
    let (si, di) = (start.to_i64(), step.to_i64());
    if ints {
        return sequence_as!(dtype, n, |i| float si.wrapping_add(di.wrapping_mul(i as i64)) as f64, int si.wrapping_add(di.wrapping_mul(i as i64)));
    }
    sequence_as!(dtype, n, |i| float s + d * i as f64, int si.wrapping_add(di.wrapping_mul(i as i64)))
}

fn steps(n: i64, name: &str) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::runtime(format!("number of steps must be non-negative: {name} got {n}")))
}

/// The i-th of n points from `s` to `e`, computed from the nearer end so that both ends are exact.
#[inline]
fn point(s: f64, e: f64, n: usize, i: usize) -> f64 {
    if n == 1 {
        return s;
    }
    let step = (e - s) / (n - 1) as f64;
    if i < n / 2 { s + step * i as f64 } else { e - step * (n - 1 - i) as f64 }
}

/// `n` evenly spaced numbers from `start` to `end`, both included.
pub fn linspace(start: f64, end: f64, n: i64, dtype: Option<DType>) -> Result<Tensor> {
    let (n, dtype) = (steps(n, "linspace")?, dtype.unwrap_or_else(default_dtype));
    if dtype == DType::F32 {
        // In the precision of the result, as PyTorch: the last bits show it.
        let (s, e) = (start as f32, end as f32);
        let step = (e - s) / (n.max(2) - 1) as f32;
        return sequence::<f32>(n, |i| if i < n / 2 || n == 1 { s + step * i as f32 } else { e - step * (n - 1 - i) as f32 });
    }
    sequence_as!(dtype, n, |i| float point(start, end, n, i), int point(start, end, n, i) as i64)
}

/// `base` to the power of `n` evenly spaced numbers.
pub fn logspace(start: f64, end: f64, n: i64, base: f64, dtype: Option<DType>) -> Result<Tensor> {
    let (n, dtype) = (steps(n, "logspace")?, dtype.unwrap_or_else(default_dtype));
    sequence_as!(dtype, n, |i| float base.powf(point(start, end, n, i)), int base.powf(point(start, end, n, i)) as i64)
}

/// Positions of the lower (or upper) triangle of a matrix, one row of row numbers and one of column numbers.
pub fn triangle_indices(rows: i64, cols: i64, offset: i64, upper: bool) -> Result<Tensor> {
    let shape = sizes(&[rows, cols])?;
    let keep = |i: i64, j: i64| if upper { j - i >= offset } else { j - i <= offset };
    let mut at: Vec<(i64, i64)> = Vec::new();
    for i in 0..shape[0] as i64 {
        at.extend((0..shape[1] as i64).filter(|j| keep(i, *j)).map(|j| (i, j)));
    }
    let flat: Vec<i64> = at.iter().map(|p| p.0).chain(at.iter().map(|p| p.1)).collect();
    Ok(Tensor::new(Array::from_slice(&flat, &[2, at.len()])?))
}
