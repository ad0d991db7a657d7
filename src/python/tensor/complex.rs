//! PyTorch's functions of complex numbers on real tensors, which are their own real parts and conjugates.
//!
//! There are no complex dtypes yet; derivatives conjugate already (`pointwise`).

use crate::autograd::primitives;
use crate::python::args::as_tensor;
use crate::python::errors::{runtime, type_error};
use crate::python::functions::pointwise::into_out;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::types::PyObj;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

type Same<'py> = Bound<'py, PyTensor>;

fn no_imaginary_part() -> PyErr {
    runtime("imag is not implemented for tensors with non-complex dtypes.")
}

/// The real part. A real tensor is returned as it is.
#[pyfunction]
fn real<'py>(input: Same<'py>) -> Same<'py> {
    input
}

/// The imaginary part.
///
/// Raises:
///     RuntimeError: The tensor is real, which all tensors of rgrad are.
#[pyfunction]
fn imag<'py>(input: Same<'py>) -> PyResult<Same<'py>> {
    let _ = input;
    Err(no_imaginary_part())
}

/// The complex conjugate, computed at once. A real tensor is returned as it is.
#[pyfunction]
#[pyo3(signature = (input, *, out=None))]
fn conj_physical<'py>(py: Python<'py>, input: Same<'py>, out: Option<PyObj<'py>>) -> PyResult<PyObj<'py>> {
    let Some(out) = out else { return Ok(input.into_any()) };
    let (from, to) = (PyTensor::of(&input), as_tensor(&out));
    if let Some(to) = to
        && to.dtype() != from.dtype()
    {
        return Err(runtime(format!("Found dtype {} but expected {}", to.dtype().type_name(), from.dtype().type_name())));
    }
    Ok(into_out(py, "conj_physical", from, &[from], &out)?.into_bound(py))
}

functions_and_methods! {
    /// The complex conjugate. A real tensor is returned as it is.
    fn conj(x) sig() {
        Ok(x.clone().into_any().unbind())
    }
    /// The tensor with a lazy conjugation computed. Conjugation is never lazy here: the tensor itself.
    fn resolve_conj(x) sig() {
        Ok(x.clone().into_any().unbind())
    }
    /// The tensor with a lazy negation computed. Negation is never lazy here: the tensor itself.
    fn resolve_neg(x) sig() {
        Ok(x.clone().into_any().unbind())
    }
    /// Whether the tensor has a lazy conjugation: always False.
    fn is_conj(x) sig() {
        false.into_py_any(x.py())
    }
    /// Whether the tensor has a lazy negation: always False.
    fn is_neg(x) sig() {
        false.into_py_any(x.py())
    }
}

#[pymethods]
impl PyTensor {
    /// The real part. A real tensor is returned as it is.
    #[getter]
    fn get_real<'py>(slf: Same<'py>) -> Same<'py> {
        slf
    }

    #[setter]
    fn set_real(slf: &Bound<'_, Self>, value: &PyObj<'_>) -> PyResult<()> {
        let Some(value) = as_tensor(value) else { return Err(type_error("real: a tensor is expected")) };
        Ok(primitives::copy_(Self::of(slf), value)?)
    }

    /// The imaginary part; RuntimeError, as all tensors are real.
    #[getter]
    fn get_imag<'py>(slf: Same<'py>) -> PyResult<Same<'py>> {
        imag(slf)
    }

    #[setter]
    fn set_imag(slf: &Bound<'_, Self>, value: &PyObj<'_>) -> PyResult<()> {
        let _ = (slf, value);
        Err(no_imaginary_part())
    }

    /// The complex conjugate, computed at once. A real tensor is returned as it is.
    #[pyo3(name = "conj_physical")]
    fn m_conj_physical<'py>(slf: Same<'py>) -> Same<'py> {
        slf
    }

    /// In-place form of `conj_physical`.
    fn conj_physical_<'py>(slf: Same<'py>) -> Same<'py> {
        slf
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(real, m)?)?;
    m.add_function(wrap_pyfunction!(imag, m)?)?;
    m.add_function(wrap_pyfunction!(conj_physical, m)?)?;
    register_functions(m)
}
