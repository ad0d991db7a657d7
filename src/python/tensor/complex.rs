//! PyTorch's functions of complex numbers on real tensors, which are their own real parts and conjugates.
//!
//! There are no complex dtypes yet; derivatives conjugate already (`pointwise`).

use crate::autograd::primitives;
use crate::python::args::as_tensor;
use crate::python::errors::{runtime, type_error};
use crate::python::functions::pointwise::into_out;
use crate::python::tensor::PyTensor;
use crate::python::types::PyObj;
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

/// The complex conjugate. A real tensor is returned as it is.
#[pyfunction]
fn conj<'py>(input: Same<'py>) -> Same<'py> {
    input
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

/// The tensor with a lazy conjugation computed. Conjugation is never lazy here: the input itself.
#[pyfunction]
fn resolve_conj<'py>(input: Same<'py>) -> Same<'py> {
    input
}

/// The tensor with a lazy negation computed. Negation is never lazy here: the input itself.
#[pyfunction]
fn resolve_neg<'py>(input: Same<'py>) -> Same<'py> {
    input
}

/// Whether the tensor has a lazy conjugation: always False.
#[pyfunction]
fn is_conj(input: &Bound<'_, PyTensor>) -> bool {
    let _ = input;
    false
}

/// Whether the tensor has a lazy negation: always False.
#[pyfunction]
fn is_neg(input: &Bound<'_, PyTensor>) -> bool {
    let _ = input;
    false
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

    /// The complex conjugate. A real tensor is returned as it is.
    #[pyo3(name = "conj")]
    fn m_conj<'py>(slf: Same<'py>) -> Same<'py> {
        slf
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

    /// The tensor with a lazy conjugation computed. Conjugation is never lazy here: the tensor itself.
    #[pyo3(name = "resolve_conj")]
    fn m_resolve_conj<'py>(slf: Same<'py>) -> Same<'py> {
        slf
    }

    /// The tensor with a lazy negation computed. Negation is never lazy here: the tensor itself.
    #[pyo3(name = "resolve_neg")]
    fn m_resolve_neg<'py>(slf: Same<'py>) -> Same<'py> {
        slf
    }

    /// Whether the tensor has a lazy conjugation: always False.
    #[pyo3(name = "is_conj")]
    fn m_is_conj(slf: &Bound<'_, Self>) -> bool {
        is_conj(slf)
    }

    /// Whether the tensor has a lazy negation: always False.
    #[pyo3(name = "is_neg")]
    fn m_is_neg(slf: &Bound<'_, Self>) -> bool {
        is_neg(slf)
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(real, m)?)?;
    m.add_function(wrap_pyfunction!(imag, m)?)?;
    m.add_function(wrap_pyfunction!(conj, m)?)?;
    m.add_function(wrap_pyfunction!(conj_physical, m)?)?;
    m.add_function(wrap_pyfunction!(resolve_conj, m)?)?;
    m.add_function(wrap_pyfunction!(resolve_neg, m)?)?;
    m.add_function(wrap_pyfunction!(is_conj, m)?)?;
    m.add_function(wrap_pyfunction!(is_neg, m)?)
}
