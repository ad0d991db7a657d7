//! `==` and `!=` with what is neither a tensor nor a real number but compares element by element: NumPy's arrays and complex numbers.

use crate::autograd::Tensor;
use crate::autograd::primitives::{cast, to_device};
use crate::error::Error;
use crate::layout::{DType, Scalar};
use crate::ops::create;
use crate::ops::pointwise::{self as pw, Arg};
use crate::python::args::is_numpy_scalar;
use crate::python::convert::from_python::tensor_from;
use crate::python::convert::numpy_memory::{NdArray, is_number_array};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::PyObj;
use crate::rows::RowId;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyComplexMethods};

/// The result of a comparison; None if Python has to ask the other operand.
pub(super) fn elementwise(row: RowId, slf: &Bound<'_, PyTensor>, other: &PyObj<'_>) -> PyResult<Option<Py<PyAny>>> {
    let (py, t) = (slf.py(), PyTensor::of(slf));
    let number = if is_numpy_scalar(other) { other.call_method0("item")? } else { other.clone() };
    if let Ok(z) = number.cast::<PyComplex>() {
        return Ok(Some(wrap(py, with_complex(row, t, z.real(), z.imag())?)?));
    }
    if !matches!(row, RowId::Eq | RowId::Ne) {
        return Ok(None);
    }
    let Some(array) = NdArray::of(other)? else { return Ok(None) };
    if array.dtype().is_ok() {
        let other = to_device(&tensor_from(other, None)?, t.device())?;
        return Ok(Some(wrap(py, pw::call(row, &[Arg::Tensor(t), Arg::Tensor(&other)], &[])?)?));
    }
    if !is_number_array(other)? {
        return Ok(None);
    }
    // NumPy has dtypes that rgrad does not have.
    let shape: Vec<usize> = other.getattr("shape")?.extract()?;
    crate::layout::broadcast(&t.shape(), &shape).map_err(Error::from)?;
    let name = if row == RowId::Eq { "equal" } else { "not_equal" };
    let mine = slf.call_method0("detach")?.call_method0("cpu")?.call_method0("numpy")?;
    let made =
        tensor_from(&py.import("numpy")?.getattr("asarray")?.call1((py.import("numpy")?.getattr(name)?.call1((mine, other))?,))?, None)?;
    Ok(Some(wrap(py, to_device(&made, t.device())?)?))
}

/// Compares with a complex number as if the tensor were complex: of complex64, or complex128 for float64.
fn with_complex(row: RowId, t: &Tensor, re: f64, im: f64) -> crate::error::Result<Tensor> {
    let dtype = pw::promote(&[Arg::Tensor(t), Arg::Scalar(Scalar::Float(0.0))]);
    if !matches!(row, RowId::Eq | RowId::Ne) {
        let word = if dtype == DType::F64 { "ComplexDouble" } else { "ComplexFloat" };
        return Err(Error::not_implemented(format!("\"{}_cpu\" not implemented for '{word}'", row.info().name)));
    }
    let im = if dtype == DType::F32 { f64::from(im as f32) } else { im };
    if im != 0.0 {
        return create::full_like_on(&t.detach(), Scalar::Bool(row == RowId::Ne), Some(DType::Bool), None);
    }
    let t = cast(t, dtype)?;
    pw::call(row, &[Arg::Tensor(&t), Arg::Scalar(Scalar::Float(re))], &[])
}
