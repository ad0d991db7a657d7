//! `==` and `!=` with what is neither a tensor nor a number but compares element by element: NumPy's arrays.

use crate::autograd::primitives::to_device;
use crate::error::Error;
use crate::ops::pointwise::{self as pw, Arg};
use crate::python::convert::from_python::tensor_from;
use crate::python::convert::numpy_memory::{NdArray, is_number_array};
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::PyObj;
use crate::rows::RowId;
use pyo3::prelude::*;

/// The result of a comparison; None if Python has to ask the other operand.
pub(super) fn elementwise(row: RowId, slf: &Bound<'_, PyTensor>, other: &PyObj<'_>) -> PyResult<Option<Py<PyAny>>> {
    let (py, t) = (slf.py(), PyTensor::of(slf));
    if !matches!(row, RowId::Eq | RowId::Ne) {
        return Ok(None);
    }
    let Some(array) = NdArray::of(other)? else { return Ok(None) };
    let backend = t.device().backend().map_err(Error::from)?;
    if array.dtype().is_ok_and(|dtype| backend.has_dtype(dtype).is_ok()) {
        let other = to_device(&tensor_from(other, None)?, t.device())?;
        return Ok(Some(wrap(py, pw::call(row, &[Arg::Tensor(t), Arg::Tensor(&other)], &[])?)?));
    }
    if !is_number_array(other)? {
        return Ok(None);
    }
    // NumPy has dtypes that rgrad, or the device, does not have.
    let shape: Vec<usize> = other.getattr("shape")?.extract()?;
    crate::layout::broadcast(&t.shape(), &shape).map_err(Error::from)?;
    let name = if row == RowId::Eq { "equal" } else { "not_equal" };
    let mine = slf
        .call_method0("detach")?
        .call_method0("resolve_conj")?
        .call_method0("resolve_neg")?
        .call_method0("cpu")?
        .call_method0("numpy")?;
    let made =
        tensor_from(&py.import("numpy")?.getattr("asarray")?.call1((py.import("numpy")?.getattr(name)?.call1((mine, other))?,))?, None)?;
    Ok(Some(wrap(py, to_device(&made, t.device())?)?))
}
