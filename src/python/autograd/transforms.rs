//! Transform levels and tangents: the functions from which `rgrad.func` and `forward_ad` are made.
//!
//! Levels, batching rules and tangents themselves are in the core's `autograd::transforms` and `ops::batch`.

use crate::autograd::transforms::level::{self, DerivativeLevel, Level};
use crate::autograd::transforms::slow_paths::{self, SlowPath};
use crate::autograd::{Tensor, check_recorded_write, dual_levels, forward_mode, mutation_guard, view_tangents};
use crate::error::Error;
use crate::layout::wrap_dim;
use crate::ops::batch::{BatchLevel, Randomness};
use crate::ops::shape;
use crate::python::args::tensor;
use crate::python::errors::runtime;
use crate::python::tensor::identity::wrap;
use crate::python::types::PyObj;
use pyo3::prelude::*;
use std::sync::Arc;

fn given<'a>(t: &'a PyObj<'_>, function: &str) -> PyResult<&'a Tensor> {
    tensor(t, &format!("{function}(): expected a tensor, got"))
}

fn open(number: u32) -> PyResult<Arc<dyn Level>> {
    level::open(number).ok_or_else(|| runtime(format!("level {number} of a transform is not open on this thread")))
}

/// Enters a transform level: of a derivative (kind "track"), or of a batch of `size` elements (kind "batch"). Returns its number.
#[pyfunction]
#[pyo3(signature = (kind, size=None, randomness="error"))]
fn _enter_level(kind: &str, size: Option<usize>, randomness: &str) -> PyResult<u32> {
    let how = match randomness {
        "error" => Randomness::Refuse,
        "unsupported" => Randomness::Unsupported,
        "same" => Randomness::Same,
        "different" => Randomness::Different,
        other => {
            return Err(
                Error::runtime(format!("Only allowed values for randomness are 'error', 'different', or 'same'. Got {other}")).into()
            );
        }
    };
    match (kind, size) {
        ("track", None) => {
            let number = level::enter(|n| Arc::new(DerivativeLevel::new(n)));
            dual_levels::enter(number);
            Ok(number)
        }
        ("batch", Some(size)) => Ok(level::enter(|n| Arc::new(BatchLevel::new(n, size, how)))),
        _ => Err(Error::value(format!("_enter_level: kind {kind:?} with size {size:?} is no level")).into()),
    }
}

/// Leaves a transform level, and all open levels inside it.
#[pyfunction]
fn _exit_level(number: u32) {
    for n in (number..=level::depth()).rev() {
        if level::open(n).is_some_and(|l| l.batch().is_none()) {
            dual_levels::exit(n);
        }
        level::exit(n);
    }
}

/// The number of open transform levels of this thread.
#[pyfunction]
fn _top_level() -> u32 {
    level::depth()
}

/// The transform level of a tensor; 0 for a plain tensor.
#[pyfunction]
fn _level_of(t: &PyObj<'_>) -> PyResult<u32> {
    Ok(given(t, "_level_of")?.level())
}

/// Wraps `t` in a tensor of an open level. For a level of a batch, `dim` is the batch dimension.
#[pyfunction]
#[pyo3(signature = (t, number, dim=None))]
fn _wrap(py: Python<'_>, t: &PyObj<'_>, number: u32, dim: Option<i64>) -> PyResult<Py<PyAny>> {
    let (t, level) = (given(t, "_wrap")?, open(number)?);
    let inner = match (dim, level.batch()) {
        (None, None) => t.clone(),
        (Some(d), Some(size)) => {
            let d = wrap_dim(d, t.rank()).map_err(crate::error::Error::from)?;
            let have = t.shape();
            if have.get(d) != Some(&size) {
                return Err(Error::value(format!("_wrap: dimension {d} of shape {:?} is not the batch's size {size}", &have[..])).into());
            }
            if d == 0 { t.clone() } else { shape::movedim(t, &[d as i64], &[0])? }
        }
        _ => return Err(Error::value("_wrap: dim goes with a batch").into()),
    };
    wrap(py, level::wrap(&level, inner))
}

/// The tensor that a tensor of a level wraps, with the batch dimension first, and True; the tensor itself and False if it is of another level.
#[pyfunction]
fn _unwrap(py: Python<'_>, t: &PyObj<'_>, number: u32) -> PyResult<(Py<PyAny>, bool)> {
    match given(t, "_unwrap")?.lower(number) {
        Some(inner) => Ok((wrap(py, inner)?, true)),
        None => Ok((t.clone().unbind(), false)),
    }
}

/// Makes the mutation guard check in-place writes only for levels below `number`, and returns the previous number.
#[pyfunction]
fn _ask_below(number: u32) -> u32 {
    mutation_guard::check_only_below(number)
}

/// As `Tensor.requires_grad_`, which is an error inside transforms.
#[pyfunction]
#[pyo3(signature = (t, on=true))]
fn _require_grad<'py>(t: &PyObj<'py>, on: bool) -> PyResult<PyObj<'py>> {
    given(t, "_require_grad")?.set_requires_grad(on)?;
    Ok(t.clone())
}

/// A view of `t` with a tangent.
#[pyfunction]
fn _make_dual(py: Python<'_>, t: &PyObj<'_>, tangent: &PyObj<'_>) -> PyResult<Py<PyAny>> {
    // The tensor belongs to the open derivatives; without this the tangent would count for a derivative outside them.
    let t = level::created(given(t, "_make_dual")?.clone())?;
    wrap(py, forward_mode::make_dual(&t, given(tangent, "_make_dual")?)?)
}

/// The tangent, or None. With `level`, only a tangent that is visible at that level.
#[pyfunction]
#[pyo3(signature = (t, level=None))]
fn _tangent(py: Python<'_>, t: &PyObj<'_>, level: Option<u32>) -> PyResult<Option<Py<PyAny>>> {
    let t = given(t, "_tangent")?;
    view_tangents::inherit(&[t])?;
    if level.is_some_and(|l| !forward_mode::is_seen(t, l)) {
        return Ok(None);
    }
    t.tangent().map(|x| wrap(py, x)).transpose()
}

/// The same value and history without the tangent. With `level`, only a tangent that is visible at that level is removed.
#[pyfunction]
#[pyo3(signature = (t, level=None))]
fn _primal(py: Python<'_>, t: &PyObj<'_>, level: Option<u32>) -> PyResult<Py<PyAny>> {
    let t = given(t, "_primal")?;
    view_tangents::inherit(&[t])?;
    let snapshot = level.is_some_and(|l| !forward_mode::is_seen(t, l));
    wrap(py, if snapshot { t.clone() } else { t.primal()? })
}

/// The tensor, a view of a result that nobody else has, as no view of it.
#[pyfunction]
fn _unrelated<'py>(t: &PyObj<'py>) -> PyResult<PyObj<'py>> {
    drop(crate::autograd::unrelated(given(t, "_unrelated")?.clone()));
    Ok(t.clone())
}

/// Refuses a recorded write to a tensor whose history forbids it.
#[pyfunction]
fn _check_recorded_write(t: &PyObj<'_>) -> PyResult<()> {
    Ok(check_recorded_write(given(t, "_check_recorded_write")?, "copy_")?)
}

/// Opens a level of dual numbers, and returns the number of open ones.
#[pyfunction]
fn _enter_dual() -> usize {
    dual_levels::enter(level::depth())
}

/// Closes the innermost level of dual numbers and removes its tangents.
#[pyfunction]
fn _exit_dual(_number: usize) {
    dual_levels::exit(level::depth());
}

/// Sets whether operations compute tangents, and returns the previous setting.
#[pyfunction]
fn _set_tangents_enabled(on: bool) -> bool {
    dual_levels::set_enabled(on)
}

/// Whether operations of the innermost transform compute tangents; outside transforms, whether those of plain tensors do.
#[pyfunction]
fn _tangents_enabled() -> bool {
    dual_levels::is_enabled_at(level::depth())
}

/// Hides the tangents of tensors of `level`, or with `below` those of all lower levels. Returns what `_unhide_tangents` takes to undo it.
#[pyfunction]
#[pyo3(signature = (level, below=false))]
fn _hide_tangents(level: u32, below: bool) -> usize {
    dual_levels::hide(level, below)
}

/// Undoes `_hide_tangents`.
#[pyfunction]
fn _unhide_tangents(before: usize) {
    dual_levels::unhide(before);
}

/// The names of the operations whose tangents were computed by transposing their vjp, and of those that ran in a loop over a batch, since the
/// last call on this thread.
#[pyfunction]
fn _take_slow_rules() -> (Vec<&'static str>, Vec<&'static str>) {
    let all = slow_paths::take();
    let of = |way| all.iter().filter(|(w, _)| *w == way).map(|(_, op)| *op).collect();
    (of(SlowPath::Transposed), of(SlowPath::Loop))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    for f in [
        wrap_pyfunction!(_enter_level, m)?,
        wrap_pyfunction!(_exit_level, m)?,
        wrap_pyfunction!(_top_level, m)?,
        wrap_pyfunction!(_level_of, m)?,
        wrap_pyfunction!(_wrap, m)?,
        wrap_pyfunction!(_unwrap, m)?,
        wrap_pyfunction!(_ask_below, m)?,
        wrap_pyfunction!(_require_grad, m)?,
        wrap_pyfunction!(_unrelated, m)?,
        wrap_pyfunction!(_check_recorded_write, m)?,
        wrap_pyfunction!(_make_dual, m)?,
        wrap_pyfunction!(_tangent, m)?,
        wrap_pyfunction!(_primal, m)?,
        wrap_pyfunction!(_enter_dual, m)?,
        wrap_pyfunction!(_exit_dual, m)?,
        wrap_pyfunction!(_set_tangents_enabled, m)?,
        wrap_pyfunction!(_tangents_enabled, m)?,
        wrap_pyfunction!(_hide_tangents, m)?,
        wrap_pyfunction!(_unhide_tangents, m)?,
        wrap_pyfunction!(_take_slow_rules, m)?,
    ] {
        m.add_function(f)?;
    }
    Ok(())
}
