//! Values of special functions, of which `rgrad.special` makes differentiable ones.

use crate::ops::special;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::PyObjResult;
use pyo3::prelude::*;

/// The values of the special function of this name, of float32 or float64 on the CPU. They have no history.
#[pyfunction]
#[pyo3(signature = (name, input))]
fn _special_value(name: &str, input: &Bound<'_, PyTensor>) -> PyObjResult {
    wrap(input.py(), special::special_values(name, PyTensor::of(input))?)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_special_value, m)?)
}
