//! Views and other changes of shape: `reshape`, `permute`, `split`, `expand`.
//!
//! `x[...]` is in `indexing`. Operations that rearrange or repeat elements in new memory are in `join`.

use crate::autograd::{Tensor, primitives};
use crate::layout::{DType, MemoryFormat};
use crate::ops::memory_format;
use crate::ops::parts;
use crate::ops::shape::{self, Views};
use crate::python::args::{self, as_tensor, ints, varargs};
use crate::python::dtype::{PyDType, dtype_of};
use crate::python::errors::{runtime, type_error};
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::tensor::memory_format::format_of;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// How many objects are made between two checks for signals.
pub(crate) const MANY: usize = 1 << 15;

/// Several tensors as a tuple.
pub(crate) fn tuple(py: Python<'_>, ts: Views) -> PyObjResult {
    let mut items: Vec<Py<PyAny>> = Vec::with_capacity(ts.len());
    for (i, t) in ts.into_iter().enumerate() {
        if i % MANY == MANY - 1 {
            py.check_signals()?;
        }
        items.push(wrap(py, t)?);
    }
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// The result of an operation that may return its argument itself.
pub(crate) fn give(x: &Bound<'_, PyTensor>, out: Tensor) -> PyObjResult {
    if out.same(PyTensor::of(x)) { Ok(x.clone().into_any().unbind()) } else { wrap(x.py(), out) }
}

fn missing(function: &str, name: &str) -> PyErr {
    type_error(format!("{function}() missing 1 required positional arguments: \"{name}\""))
}

/// Sizes that are given one by one, as one sequence, or by keyword.
pub(crate) fn sizes(
    function: &str,
    given: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    name: &str,
) -> PyResult<smallvec::SmallVec<[i64; 4]>> {
    if let Some(kw) = kwargs
        && !kw.is_empty()
    {
        if let Some(v) = kw.get_item(name)?
            && kw.len() == 1
            && given.is_empty()
        {
            return args::sizes_arg(&v, function, name);
        }
        return Err(type_error(format!("{function}() got an unexpected keyword argument: {}", kw.keys().repr()?)));
    }
    if given.is_empty() {
        return Err(missing(function, name));
    }
    if given.len() == 1 {
        return args::sizes_arg(&given.get_item(0)?, function, name);
    }
    varargs(given)
}

/// The same elements in another shape: a view if possible, else a copy. One size may be -1.
///
/// Raises:
///     RuntimeError: The shape has another number of elements.
#[pyfunction]
#[pyo3(signature = (input, *shape, **kwargs))]
fn reshape(input: &Bound<'_, PyTensor>, shape: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    wrap(input.py(), shape::reshape(PyTensor::of(input), &sizes("reshape", shape, kwargs, "shape")?)?)
}

/// The dimensions in another order.
#[pyfunction]
#[pyo3(signature = (input, *dims, **kwargs))]
fn permute(input: &Bound<'_, PyTensor>, dims: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    wrap(input.py(), shape::permute(PyTensor::of(input), &sizes("permute", dims, kwargs, "dims")?)?)
}

/// What the parameter of a method has, whose integers may be given one by one: `x.squeeze(0, 1)`.
pub(crate) fn with_more<'py>(first: Option<&PyObj<'py>>, more: &Bound<'py, PyTuple>) -> PyResult<Option<PyObj<'py>>> {
    if more.is_empty() {
        return Ok(first.cloned());
    }
    let all: Vec<PyObj<'py>> = first.into_iter().cloned().chain(more.iter()).collect();
    for (i, d) in all.iter().enumerate() {
        // Several arguments are integers, each of them.
        let is_integer = d.is_instance_of::<pyo3::types::PyInt>() && !d.is_exact_instance_of::<pyo3::types::PyBool>();
        if !is_integer && args::as_tensor(d).is_none() {
            return Err(type_error(format!("expected integers, but argument {i} is of type {}", args::type_name(d))));
        }
    }
    Ok(Some(PyTuple::new(more.py(), all)?.into_any()))
}

/// The tensor without dimensions of size 1: all of them, or those of `dim`.
#[pyfunction]
#[pyo3(signature = (input, dim=None))]
fn squeeze(input: &Bound<'_, PyTensor>, dim: Option<&PyObj<'_>>) -> PyObjResult {
    let t = PyTensor::of(input);
    let out = match dim {
        None => shape::squeeze(t)?,
        Some(d) if d.is_none() => shape::squeeze(t)?,
        Some(d) if d.is_instance_of::<PyTuple>() || d.is_instance_of::<pyo3::types::PyList>() => shape::squeeze_dims(t, &ints(d)?)?,
        Some(d) => shape::squeeze_dim(t, args::int(d)?)?,
    };
    wrap(input.py(), out)
}

functions_and_methods! {
    /// A new dimension of size 1 at `dim`.
    fn unsqueeze(x, dim: i64) sig(dim) {
        wrap(x.py(), shape::unsqueeze(PyTensor::of(x), dim)?)
    }
    /// Two dimensions exchanged.
    fn transpose(x, dim0: i64, dim1: i64) sig(dim0, dim1) {
        wrap(x.py(), shape::transpose(PyTensor::of(x), dim0, dim1)?)
    }
    /// Two dimensions exchanged.
    fn swapaxes(x, axis0: i64, axis1: i64) sig(axis0, axis1) {
        wrap(x.py(), shape::transpose(PyTensor::of(x), axis0, axis1)?)
    }
    /// Two dimensions exchanged.
    fn swapdims(x, dim0: i64, dim1: i64) sig(dim0, dim1) {
        wrap(x.py(), shape::transpose(PyTensor::of(x), dim0, dim1)?)
    }
    /// The transpose of a matrix. Vectors and 0-d tensors are unchanged.
    fn t(x) sig() {
        wrap(x.py(), shape::t(PyTensor::of(x))?)
    }
    /// The last two dimensions exchanged, conjugated.
    fn adjoint(x) sig() {
        let t = PyTensor::of(x);
        if t.rank() == 1 {
            return Err(runtime("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."));
        }
        wrap(x.py(), primitives::conj_view(&if t.rank() == 0 { t.clone() } else { shape::matrix_transpose(t)? })?)
    }
    /// The dimensions `source` moved to `destination`; the others keep their order.
    fn movedim(x, source: &PyObj<'_>, destination: &PyObj<'_>) sig(source, destination) {
        wrap(x.py(), shape::movedim(PyTensor::of(x), &ints(source)?, &ints(destination)?)?)
    }
    /// The dimensions `source` moved to `destination`; the others keep their order.
    fn moveaxis(x, source: &PyObj<'_>, destination: &PyObj<'_>) sig(source, destination) {
        wrap(x.py(), shape::movedim(PyTensor::of(x), &ints(source)?, &ints(destination)?)?)
    }
    /// The `length` slices along `dim` that begin at `start`.
    fn narrow(x, dim: i64, start: i64, length: i64) sig(dim, start, length) {
        wrap(x.py(), shape::narrow(PyTensor::of(x), dim, start, length)?)
    }
    /// The slice at `index` along `dim`, without that dimension.
    fn select(x, dim: i64, index: i64) sig(dim, index) {
        wrap(x.py(), shape::select(PyTensor::of(x), dim, index)?)
    }
    /// All slices along `dim`, without that dimension, as a tuple.
    fn unbind(x, dim: i64) sig(dim=0) {
        tuple(x.py(), parts::unbind(PyTensor::of(x), dim)?)
    }
    /// Splits along `dim` into parts of one size, of which the last may be smaller, or of the sizes in a list.
    fn split(x, split_size_or_sections: &PyObj<'_>, dim: i64) sig(split_size_or_sections, dim=0) {
        let (t, s) = (PyTensor::of(x), split_size_or_sections);
        let many = s.is_instance_of::<PyTuple>() || s.is_instance_of::<pyo3::types::PyList>();
        tuple(x.py(), if many { parts::split_sizes(t, &ints(s)?, dim)? } else { parts::split(t, args::int(s)?, dim)? })
    }
    /// Splits along `dim` into parts of the given sizes.
    fn split_with_sizes(x, split_sizes: &PyObj<'_>, dim: i64) sig(split_sizes, dim=0) {
        tuple(x.py(), parts::split_sizes(PyTensor::of(x), &ints(split_sizes)?, dim)?)
    }
    /// Splits along `dim` into at most `chunks` parts of equal size, of which the last may be smaller.
    fn chunk(x, chunks: i64, dim: i64) sig(chunks, dim=0) {
        tuple(x.py(), parts::chunk(PyTensor::of(x), chunks, dim)?)
    }
    /// As `split` with one size, but the parts are no views: writing to one in place leaves the history of the others as it is.
    fn unsafe_split(x, split_size: i64, dim: i64) sig(split_size, dim=0) {
        tuple(x.py(), parts::unsafe_split(PyTensor::of(x), split_size, dim)?)
    }
    /// As `split_with_sizes`, but the parts are no views: writing to one in place leaves the history of the others as it is.
    fn unsafe_split_with_sizes(x, split_sizes: &PyObj<'_>, dim: i64) sig(split_sizes, dim=0) {
        tuple(x.py(), parts::unsafe_split_sizes(PyTensor::of(x), &ints(split_sizes)?, dim)?)
    }
    /// As `chunk`, but the parts are no views: writing to one in place leaves the history of the others as it is.
    fn unsafe_chunk(x, chunks: i64, dim: i64) sig(chunks, dim=0) {
        tuple(x.py(), parts::unsafe_chunk(PyTensor::of(x), chunks, dim)?)
    }
    /// Splits along `dim` into a number of parts whose sizes differ by at most one, or at a list of positions.
    fn tensor_split(x, indices_or_sections: &PyObj<'_>, dim: i64) sig(indices_or_sections, dim=0) {
        let (t, s) = (PyTensor::of(x), indices_or_sections);
        if let Some(i) = as_tensor(s) {
            if i.rank() > 1 {
                return Err(runtime(format!(
                    "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with {} dims",
                    i.rank()
                )));
            }
            if i.rank() == 1 {
                return tuple(x.py(), parts::tensor_split_at(t, &i.array()?.to_vec::<i64>()?, dim)?);
            }
        }
        let many = s.is_instance_of::<PyTuple>() || s.is_instance_of::<pyo3::types::PyList>();
        tuple(x.py(), if many { parts::tensor_split_at(t, &ints(s)?, dim)? } else { parts::tensor_split(t, args::int(s)?, dim)? })
    }
    /// A diagonal of dimensions `dim1` and `dim2`, as a new last dimension.
    fn diagonal(x, offset: i64, dim1: i64, dim2: i64) sig(offset=0, dim1=0, dim2=1) {
        wrap(x.py(), shape::diagonal(PyTensor::of(x), offset, dim1, dim2)?)
    }
    /// A view of the tensor's storage with the given sizes, and strides and offset in elements.
    ///
    /// Raises:
    ///     RuntimeError: The view reaches beyond the storage.
    fn as_strided(x, size: &PyObj<'_>, stride: &PyObj<'_>, storage_offset: Option<i64>) sig(size, stride, storage_offset=None) {
        wrap(x.py(), shape::as_strided(PyTensor::of(x), &ints(size)?, &ints(stride)?, storage_offset)?)
    }
    /// The dimensions from `start_dim` to `end_dim` merged into one.
    fn flatten(x, start_dim: i64, end_dim: i64) sig(start_dim=0, end_dim=-1) {
        give(x, shape::flatten(PyTensor::of(x), start_dim, end_dim)?)
    }
    /// One dimension split into several; one size may be -1.
    fn unflatten(x, dim: i64, sizes: &PyObj<'_>) sig(dim, sizes) {
        wrap(x.py(), shape::unflatten(PyTensor::of(x), dim, &ints(sizes)?)?)
    }
    /// All elements in one dimension.
    fn ravel(x) sig() {
        give(x, shape::ravel(PyTensor::of(x))?)
    }
    /// A copy with a history: gradients go to the original.
    fn clone(x, memory_format: Option<&PyObj<'_>>) sig(*, memory_format=None) {
        let format = format_of(memory_format, "clone")?.unwrap_or(MemoryFormat::Preserve);
        wrap(x.py(), memory_format::clone(PyTensor::of(x), format)?)
    }
}

#[pymethods]
impl PyTensor {
    /// The same elements in another shape: a view if possible, else a copy. One size may be -1.
    ///
    /// Raises:
    ///     RuntimeError: The shape has another number of elements.
    #[pyo3(name = "reshape", signature = (*shape, **kwargs))]
    fn m_reshape(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        reshape(slf, shape, kwargs)
    }

    /// The dimensions in another order.
    #[pyo3(name = "permute", signature = (*dims, **kwargs))]
    fn m_permute(slf: &Bound<'_, Self>, dims: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        permute(slf, dims, kwargs)
    }

    /// A view that is broadcast to the given shape.
    #[pyo3(name = "broadcast_to", signature = (*size, **kwargs))]
    fn m_broadcast_to(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        wrap(slf.py(), shape::expand(Self::of(slf), &sizes("broadcast_to", size, kwargs, "size")?)?)
    }

    /// A view of the same elements in another shape, of which one size may be -1.
    ///
    /// With a dtype: the same bytes as elements of that dtype, without a history. If these have another size, the last dimension gets longer or
    /// shorter.
    ///
    /// Raises:
    ///     RuntimeError: The shape has another number of elements, or the strides do not allow a view. With a dtype of another size: the tensor
    ///         has no dimension, the stride of the last one is not 1, or sizes, strides and offset are no multiples of the ratio.
    #[pyo3(signature = (*shape, **kwargs))]
    fn view(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        if let Some(dtype) = dtype_of_view(shape, kwargs)? {
            return wrap(slf.py(), Self::of(slf).with_bytes_as(dtype)?);
        }
        wrap(slf.py(), shape::view(Self::of(slf), &sizes("view", shape, kwargs, "size")?)?)
    }

    /// This tensor as a view in the shape of `other`.
    fn view_as(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> PyObjResult {
        let sizes: Vec<i64> = Self::of(other).shape().iter().map(|n| *n as i64).collect();
        wrap(slf.py(), shape::view(Self::of(slf), &sizes)?)
    }

    /// This tensor in the shape of `other`: a view if possible, else a copy.
    fn reshape_as(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> PyObjResult {
        let sizes: Vec<i64> = Self::of(other).shape().iter().map(|n| *n as i64).collect();
        wrap(slf.py(), shape::reshape(Self::of(slf), &sizes)?)
    }

    /// A view with dimensions of size 1 expanded to the given sizes; -1 leaves a size unchanged.
    #[pyo3(signature = (*size, implicit=false, **kwargs))]
    fn expand(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>, implicit: bool, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let _ = implicit;
        // Without sizes a number is expanded to a number.
        let given = if size.is_empty() && kwargs.is_none() { Default::default() } else { sizes("expand", size, kwargs, "size")? };
        wrap(slf.py(), shape::expand(Self::of(slf), &given)?)
    }

    /// A view of this tensor expanded to the shape of `other`.
    fn expand_as(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> PyObjResult {
        let sizes: Vec<i64> = Self::of(other).shape().iter().map(|n| *n as i64).collect();
        wrap(slf.py(), shape::expand(Self::of(slf), &sizes)?)
    }

    /// Exchanges two dimensions of this tensor in place.
    fn transpose_<'py>(slf: &Bound<'py, Self>, dim0: i64, dim1: i64) -> PyResult<Bound<'py, Self>> {
        shape::transpose_(Self::of(slf), dim0, dim1)?;
        Ok(slf.clone())
    }

    /// Exchanges two dimensions of this tensor in place.
    fn swapaxes_<'py>(slf: &Bound<'py, Self>, axis0: i64, axis1: i64) -> PyResult<Bound<'py, Self>> {
        Self::transpose_(slf, axis0, axis1)
    }

    /// Exchanges two dimensions of this tensor in place.
    fn swapdims_<'py>(slf: &Bound<'py, Self>, dim0: i64, dim1: i64) -> PyResult<Bound<'py, Self>> {
        Self::transpose_(slf, dim0, dim1)
    }

    /// Transposes this matrix in place.
    fn t_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        shape::t_(Self::of(slf))?;
        Ok(slf.clone())
    }

    /// Adds a dimension of size 1 to this tensor in place.
    fn unsqueeze_<'py>(slf: &Bound<'py, Self>, dim: i64) -> PyResult<Bound<'py, Self>> {
        shape::unsqueeze_(Self::of(slf), dim)?;
        Ok(slf.clone())
    }

    /// The tensor without dimensions of size 1: all of them, or those of `dim`, which may be given one by one.
    #[pyo3(signature = (dim=None, *more))]
    fn squeeze<'py>(slf: &Bound<'py, Self>, dim: Option<&PyObj<'py>>, more: &Bound<'py, PyTuple>) -> PyObjResult {
        squeeze(slf, with_more(dim, more)?.as_ref())
    }

    /// Removes dimensions of size 1 from this tensor in place.
    #[pyo3(signature = (dim=None, *more))]
    fn squeeze_<'py>(slf: &Bound<'py, Self>, dim: Option<&PyObj<'py>>, more: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        match with_more(dim, more)? {
            Some(d) if !d.is_none() => shape::squeeze_(Self::of(slf), Some(&ints(&d)?))?,
            _ => shape::squeeze_(Self::of(slf), None)?,
        }
        Ok(slf.clone())
    }

    /// A view of the windows of `size` elements along a dimension, `step` apart, as a new last dimension.
    fn unfold(slf: &Bound<'_, Self>, dimension: i64, size: i64, step: i64) -> PyObjResult {
        wrap(slf.py(), shape::unfold(Self::of(slf), dimension, size, step)?)
    }

    /// A view with all dimensions in reverse order.
    #[getter(T)]
    fn reversed(slf: &Bound<'_, Self>) -> PyObjResult {
        let py = slf.py();
        if !matches!(Self::of(slf).rank(), 0 | 2) {
            let message = c"The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated. Consider `x.mT` to \
                            transpose batches of matrices or `x.permute(*range(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.";
            PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), message, 1)?;
        }
        wrap(py, shape::reversed(Self::of(slf))?)
    }

    /// A view with the last two dimensions exchanged.
    #[getter(mT)]
    fn matrix_transposed(slf: &Bound<'_, Self>) -> PyObjResult {
        of_matrices(slf, "mT")
    }

    /// The conjugate transpose of a matrix.
    #[getter(H)]
    fn adjoint_matrix(slf: &Bound<'_, Self>) -> PyObjResult {
        wrap(slf.py(), shape::adjoint_matrix(Self::of(slf))?)
    }

    /// A view with the last two dimensions exchanged, conjugated.
    #[getter(mH)]
    fn adjoint_matrices(slf: &Bound<'_, Self>) -> PyObjResult {
        of_matrices(slf, "mH")
    }
}

/// The dtype of `view(dtype)`; None if the arguments are sizes.
fn dtype_of_view(given: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Option<DType>> {
    let named = match kwargs {
        Some(kw) if kw.len() == 1 && given.is_empty() => kw.get_item("dtype")?,
        _ => None,
    };
    let positional = if given.len() == 1 && kwargs.is_none_or(|kw| kw.is_empty()) { Some(given.get_item(0)?) } else { None };
    match (named, positional) {
        (Some(d), _) => Ok(Some(dtype_of(&d, "view()")?)),
        (None, Some(d)) if d.is_instance_of::<PyDType>() || d.is_instance_of::<pyo3::types::PyType>() => Ok(Some(dtype_of(&d, "view()")?)),
        _ => Ok(None),
    }
}

/// The last two dimensions exchanged. A 0-d tensor is returned as it is, with PyTorch's warning.
fn of_matrices(x: &Bound<'_, PyTensor>, name: &str) -> PyObjResult {
    let (py, t) = (x.py(), PyTensor::of(x));
    if t.rank() > 0 {
        let turned = shape::matrix_transpose(t)?;
        return wrap(py, if name == "mH" { primitives::conj_view(&turned)? } else { turned });
    }
    let message = std::ffi::CString::new(format!("Tensor.{name} is deprecated on 0-D tensors: it is the tensor itself."))?;
    PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &message, 1)?;
    wrap(py, t.clone())
}

/// All tensors expanded to their common broadcast shape, as a tuple.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn broadcast_tensors(py: Python<'_>, tensors: &Bound<'_, PyTuple>) -> PyObjResult {
    let list =
        if tensors.len() == 1 && as_tensor(&tensors.get_item(0)?).is_none() { tensors.get_item(0)? } else { tensors.clone().into_any() };
    let ts = args::tensor_list(&list, "broadcast_tensors", "tensors")?;
    tuple(py, shape::broadcast_tensors(&ts)?)
}

/// A view that is broadcast to the given shape.
#[pyfunction]
#[pyo3(signature = (input, size))]
fn broadcast_to(input: &Bound<'_, PyTensor>, size: &PyObj<'_>) -> PyObjResult {
    wrap(input.py(), shape::expand(PyTensor::of(input), &args::sizes_arg(size, "broadcast_to", "size")?)?)
}

/// The shape that several shapes broadcast to.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes(py: Python<'_>, shapes: &Bound<'_, PyTuple>) -> PyObjResult {
    let mut all: Vec<crate::layout::Dims> = Vec::new();
    for s in shapes {
        all.push(crate::ops::create::sizes(&ints(&s)?)?);
    }
    let common = crate::layout::broadcast_many(all.iter().map(|s| &s[..])).map_err(crate::error::Error::from)?;
    crate::python::dtype::size_object(py, &common)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(reshape, m)?)?;
    m.add_function(wrap_pyfunction!(permute, m)?)?;
    m.add_function(wrap_pyfunction!(squeeze, m)?)?;
    m.add_function(wrap_pyfunction!(broadcast_tensors, m)?)?;
    m.add_function(wrap_pyfunction!(broadcast_shapes, m)?)?;
    m.add_function(wrap_pyfunction!(broadcast_to, m)?)?;
    Ok(())
}
