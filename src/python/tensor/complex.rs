//! PyTorch's functions of complex numbers. Of real tensors these are their own real parts and conjugates.

use crate::autograd::primitives;
use crate::layout::DType;
use crate::ops::{complex as ops, pointwise as pw};
use crate::python::args::{as_tensor, scalar, type_name};
use crate::python::autograd::backward::warn_once;
use crate::python::errors::{runtime, type_error};
use crate::python::functions::pointwise::into_out;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use crate::rows::RowId;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;

type Same<'py> = Bound<'py, PyTensor>;

fn is_complex(t: &Same<'_>) -> bool {
    PyTensor::of(t).dtype().is_complex()
}

/// Warns once that a conversion from a complex dtype to a real one discards imaginary parts.
pub(crate) fn warn_of_lost_parts(py: Python<'_>, from: DType, to: DType) -> PyResult<()> {
    static SHOWN: AtomicBool = AtomicBool::new(false);
    // A number is true if one of its parts is not zero: bool discards nothing.
    if !from.is_complex() || to.is_complex() || to == DType::Bool {
        return Ok(());
    }
    warn_once(py, &SHOWN, c"Casting complex values to real discards the imaginary part")
}

/// The real part of a complex tensor, a view of the same memory. A real tensor is returned as it is.
#[pyfunction]
fn real(input: &Same<'_>) -> PyObjResult {
    if is_complex(input) { wrap(input.py(), ops::real(PyTensor::of(input))?) } else { Ok(input.clone().into_any().unbind()) }
}

/// The imaginary part of a complex tensor, a view of the same memory.
///
/// Raises:
///     RuntimeError: The tensor is real.
#[pyfunction]
fn imag(input: &Same<'_>) -> PyObjResult {
    wrap(input.py(), ops::imag(PyTensor::of(input))?)
}

/// Complex numbers as pairs of real ones in a last dimension of 2: a view of the same memory.
///
/// Raises:
///     RuntimeError: The tensor is real, or a lazy conjugate.
#[pyfunction]
fn view_as_real(input: &Same<'_>) -> PyObjResult {
    wrap(input.py(), ops::view_as_real(PyTensor::of(input))?)
}

/// Pairs of real numbers in a last dimension of 2 as complex ones: a view of the same memory.
///
/// Raises:
///     RuntimeError: The tensor is none of float16, float32 and float64, has no last dimension of 2, or the parts do not lie side by side.
#[pyfunction]
fn view_as_complex(input: &Same<'_>) -> PyObjResult {
    wrap(input.py(), ops::view_as_complex(PyTensor::of(input))?)
}

/// Complex numbers with these real and imaginary parts.
///
/// Args:
///     real: The real parts: float16, float32 or float64.
///     imag: The imaginary parts, of the same dtype; the shapes broadcast.
///     out: The tensor that is written.
///
/// Raises:
///     RuntimeError: The parts are of two dtypes, or of another one.
#[pyfunction]
#[pyo3(signature = (real, imag, *, out=None))]
fn complex<'py>(real: &Same<'py>, imag: &Same<'py>, out: Option<PyObj<'py>>) -> PyObjResult {
    let (re, im) = (PyTensor::of(real), PyTensor::of(imag));
    let made = ops::complex(re, im)?;
    match out {
        None => wrap(real.py(), made),
        Some(out) => Ok(into_out(real.py(), "complex", &made, &[re, im], &out)?),
    }
}

/// Complex numbers with these absolute values and angles in radians.
///
/// Args:
///     abs: The absolute values: float16, float32 or float64.
///     angle: The angles, of the same dtype; the shapes broadcast.
///     out: The tensor that is written.
///
/// Raises:
///     RuntimeError: Both are of two dtypes, or of another one.
#[pyfunction]
#[pyo3(signature = (abs, angle, *, out=None))]
fn polar<'py>(abs: &Same<'py>, angle: &Same<'py>, out: Option<PyObj<'py>>) -> PyObjResult {
    let (size, turn) = (PyTensor::of(abs), PyTensor::of(angle));
    let made = ops::polar(size, turn)?;
    match out {
        None => wrap(abs.py(), made),
        Some(out) => Ok(into_out(abs.py(), "polar", &made, &[size, turn], &out)?),
    }
}

/// The complex conjugate, computed at once. A real tensor is returned as it is.
#[pyfunction]
#[pyo3(signature = (input, *, out=None))]
fn conj_physical<'py>(py: Python<'py>, input: Same<'py>, out: Option<PyObj<'py>>) -> PyObjResult {
    let from = PyTensor::of(&input);
    let Some(out) = out else {
        return if is_complex(&input) { wrap(py, primitives::conj(from)?) } else { Ok(input.into_any().unbind()) };
    };
    if let Some(to) = as_tensor(&out)
        && to.dtype() != from.dtype()
    {
        return Err(runtime(format!("Found dtype {} but expected {}", to.dtype().type_name(), from.dtype().type_name())));
    }
    into_out(py, "conj_physical", &primitives::conj(from)?, &[from], &out)
}

functions_and_methods! {
    /// The complex conjugate: a view of the same memory, whose elements are conjugated when they are read. A real tensor is returned as it is.
    fn conj(x) sig() {
        if is_complex(x) { wrap(x.py(), ops::conj(PyTensor::of(x))?) } else { Ok(x.clone().into_any().unbind()) }
    }
    /// The tensor itself, or, of a lazy conjugate, a copy whose elements are computed.
    fn resolve_conj(x) sig() {
        let t = PyTensor::of(x);
        if t.is_conj() { wrap(x.py(), ops::resolve_conj(t)?) } else { Ok(x.clone().into_any().unbind()) }
    }
    /// The tensor itself, or, of a lazy negative, a copy whose elements are computed.
    fn resolve_neg(x) sig() {
        let t = PyTensor::of(x);
        if t.is_neg() { wrap(x.py(), ops::resolve_neg(t)?) } else { Ok(x.clone().into_any().unbind()) }
    }
    /// Whether the tensor is a lazy conjugate: a view whose elements are conjugated when they are read.
    fn is_conj(x) sig() {
        PyTensor::of(x).is_conj().into_py_any(x.py())
    }
    /// Whether the tensor is a lazy negative: a view whose elements are negated when they are read.
    fn is_neg(x) sig() {
        PyTensor::of(x).is_neg().into_py_any(x.py())
    }
    /// The negative: a view of the same memory, whose elements are negated when they are read.
    fn _neg_view(x) sig() {
        wrap(x.py(), ops::neg_view(PyTensor::of(x))?)
    }
}

#[pymethods]
impl PyTensor {
    /// The real part of a complex tensor, a view of the same memory. A real tensor is returned as it is.
    #[getter]
    fn get_real(slf: &Bound<'_, Self>) -> PyObjResult {
        real(slf)
    }

    #[setter]
    fn set_real(slf: &Bound<'_, Self>, value: &PyObj<'_>) -> PyResult<()> {
        write_part(&ops::real(Self::of(slf))?, value)
    }

    /// The imaginary part of a complex tensor, a view of the same memory; RuntimeError for a real one.
    #[getter]
    fn get_imag(slf: &Bound<'_, Self>) -> PyObjResult {
        imag(slf)
    }

    #[setter]
    fn set_imag(slf: &Bound<'_, Self>, value: &PyObj<'_>) -> PyResult<()> {
        write_part(&ops::imag(Self::of(slf))?, value)
    }

    /// The complex conjugate, computed at once. A real tensor is returned as it is.
    #[pyo3(name = "conj_physical")]
    fn m_conj_physical(slf: Same<'_>) -> PyObjResult {
        conj_physical(slf.py(), slf.clone(), None)
    }

    /// In-place form of `conj_physical`.
    fn conj_physical_<'py>(slf: Same<'py>) -> PyResult<Same<'py>> {
        if is_complex(&slf) {
            pw::call_inplace(RowId::ConjPhysical, "conj_physical_", Self::of(&slf), &[], &[])?;
        }
        Ok(slf)
    }
}

/// Writes a tensor or a number over a part.
fn write_part(part: &crate::autograd::Tensor, value: &PyObj<'_>) -> PyResult<()> {
    if let Some(from) = as_tensor(value) {
        warn_of_lost_parts(value.py(), from.dtype(), part.dtype())?;
        return Ok(primitives::copy_(part, from)?);
    }
    match scalar(value)? {
        Some(number) => Ok(primitives::fill_(part, number)?),
        None => Err(type_error(format!("can't assign a {} to a rgrad.{}Tensor", type_name(value), part.dtype().type_name()))),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(real, m)?)?;
    m.add_function(wrap_pyfunction!(imag, m)?)?;
    m.add_function(wrap_pyfunction!(conj_physical, m)?)?;
    m.add_function(wrap_pyfunction!(view_as_real, m)?)?;
    m.add_function(wrap_pyfunction!(view_as_complex, m)?)?;
    m.add_function(wrap_pyfunction!(complex, m)?)?;
    m.add_function(wrap_pyfunction!(polar, m)?)?;
    register_functions(m)
}
