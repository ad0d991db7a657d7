//! What custom Functions are given and give, above plain tensors: arguments whose level was left, tangents of outputs.

use crate::autograd::Tensor;
use crate::python::args::as_tensor;
use crate::python::errors::type_error;
use crate::python::tensor::identity::wrap;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// The arguments with those below in the place of tensors whose level was left; None if there are none.
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

/// Gives a tensor a tangent.
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

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_set_tangent, m)?)
}
