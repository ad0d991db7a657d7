//! Arguments and outputs of custom Functions under transforms: tensors of levels that have ended, and tangents of outputs.
//!
//! A call of a Function is in `apply`, its node in `node`.

use crate::autograd::{Tensor, view_tangents};
use crate::python::args::as_tensor;
use crate::python::errors::type_error;
use crate::python::tensor::identity::wrap;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// The arguments, with each tensor of an ended transform level replaced by the tensor that it wraps; None if there is no such argument.
pub(crate) fn through_ended<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let lower: SmallVec<[Option<Tensor>; 4]> = args.iter().map(|a| as_tensor(&a).and_then(Tensor::unwrap_ended)).collect();
    if lower.iter().all(Option::is_none) {
        return Ok(None);
    }
    let py = args.py();
    let mut seen: Vec<Py<PyAny>> = Vec::with_capacity(lower.len());
    for (a, l) in args.iter().zip(lower) {
        seen.push(match l {
            Some(t) => wrap(py, t)?,
            None => a.unbind(),
        });
    }
    Ok(Some(PyTuple::new(py, seen)?))
}

/// Sets the tangent of a tensor.
#[pyfunction]
fn _set_tangent(t: &Bound<'_, PyAny>, tangent: &Bound<'_, PyAny>) -> PyResult<()> {
    match (as_tensor(t), as_tensor(tangent)) {
        (Some(t), Some(tangent)) => {
            t.set_tangent(Some(tangent.clone()));
            Ok(())
        }
        _ => Err(type_error("_set_tangent: expected two tensors")),
    }
}

/// Gives a tensor without a tangent one as a write in place would: its base has it too.
#[pyfunction]
fn _write_tangent(t: &Bound<'_, PyAny>, tangent: &Bound<'_, PyAny>) -> PyResult<()> {
    match (as_tensor(t), as_tensor(tangent)) {
        (Some(t), Some(tangent)) => Ok(view_tangents::write_tangent(t, Some(tangent.clone()))?),
        _ => Err(type_error("_write_tangent: expected two tensors")),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_write_tangent, m)?)?;
    m.add_function(wrap_pyfunction!(_set_tangent, m)?)
}
