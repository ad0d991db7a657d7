//! Index expressions (`x[...]`), and the operations that read and write at indices and masks.
//!
//! Slices without indices (`narrow`, `select`) are in `shape`. Indices and their shapes are in `ops::indexing`.

use crate::array::{Array, IndexPlan};
use crate::autograd::Tensor;
use crate::error::Error;
use crate::layout::{DType, Scalar};
use crate::ops::gather::{self as along, Reduce};
use crate::ops::index::{self, WriteTarget};
use crate::ops::indexing::{self, Index};
use crate::ops::mask;
use crate::ops::pointwise::{self as pw, Arg};
use crate::python::args::{self, as_tensor, operand_of, scalar, tensor, type_name};
use crate::python::convert::from_python::tensor_from;
use crate::python::convert::numpy_memory::NdArray;
use crate::python::errors::type_error;
use crate::python::functions::shape::tuple;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::complex::warn_of_lost_parts;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyFloat, PyInt, PyList, PyRange, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

type Items = SmallVec<[Index; 4]>;

// ---- index expressions -----------------------------------------------------------------------------------------------

/// One bound of a slice.
#[inline]
fn bound(obj: &PyObj<'_>) -> PyResult<Option<i64>> {
    if obj.is_none() {
        return Ok(None);
    }
    match args::int(obj) {
        Ok(i) => Ok(Some(i)),
        Err(e) if e.is_instance_of::<PyTypeError>(obj.py()) => {
            Err(type_error("slice indices must be integers or None or have an __index__ method"))
        }
        // Bounds that do not fit into 64 bits are clipped, as in Python.
        Err(_) => Ok(Some(if obj.lt(0)? { i64::MIN } else { i64::MAX })),
    }
}

fn slice(s: &Bound<'_, PySlice>) -> PyResult<Index> {
    let py = s.py();
    let raw = s.as_ptr().cast::<ffi::PySliceObject>();
    // SAFETY: a live slice object has references to three objects.
    let (start, stop, step) = unsafe {
        let get = |p: *mut ffi::PyObject| Bound::from_borrowed_ptr(py, p);
        (get((*raw).start), get((*raw).stop), get((*raw).step))
    };
    let step = bound(&step)?.unwrap_or(1);
    if step == 0 {
        return Err(PyValueError::new_err("slice step cannot be zero"));
    }
    if step < 0 {
        return Err(PyValueError::new_err(format!("step must be greater than zero, got {step}")));
    }
    Ok(Index::Slice { start: bound(&start)?, stop: bound(&stop)?, step })
}

fn warn(py: Python<'_>, message: &std::ffi::CStr) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), message, 1)
}

fn one(obj: &PyObj<'_>) -> PyResult<Index> {
    let py = obj.py();
    if obj.is_exact_instance_of::<PyInt>() {
        let i = obj.extract().map_err(|_| PyIndexError::new_err(format!("index {obj} is out of bounds: it does not fit into 64 bits")))?;
        return Ok(Index::Int(i));
    }
    if let Ok(s) = obj.cast::<PySlice>() {
        return slice(s);
    }
    if obj.is_none() {
        return Ok(Index::None);
    }
    if obj.is(PyEllipsis::get(py)) {
        return Ok(Index::Ellipsis);
    }
    if obj.is_exact_instance_of::<PyBool>() {
        return Ok(Index::Bool(obj.extract()?));
    }
    if let Some(t) = as_tensor(obj) {
        if t.dtype() == DType::U8 {
            warn(py, c"indexing with dtype rgrad.uint8 is now deprecated, please use a dtype rgrad.bool instead.")?;
        }
        return Ok(Index::Tensor(t.clone()));
    }
    if obj.is_instance_of::<PyFloat>() {
        return Err(invalid(obj));
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() || obj.is_instance_of::<PyRange>() {
        return positions(obj);
    }
    if let Some(a) = NdArray::of(obj)? {
        return Ok(Index::Tensor(Tensor::new(a.read()?.contiguous_copy()?)));
    }
    if obj.is_instance_of::<PyString>() {
        return Err(type_error(format!("new(): invalid data type 'str': {} is no index", obj.repr()?)));
    }
    match args::int(obj) {
        Ok(i) => Ok(Index::Int(i)),
        Err(_) if obj.len().is_ok() && obj.hasattr("__getitem__")? => positions(obj),
        Err(_) => Err(invalid(obj)),
    }
}

#[cold]
fn invalid(obj: &PyObj<'_>) -> PyErr {
    PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
        type_name(obj)
    ))
}

/// A sequence of indices or booleans.
fn positions(obj: &PyObj<'_>) -> PyResult<Index> {
    let t = tensor_from(obj, None)?;
    if t.numel() == 0 && t.dtype().is_float() {
        return Ok(Index::Tensor(Tensor::new(Array::empty(&t.shape(), DType::I64)?)));
    }
    Ok(Index::Tensor(t))
}

/// Whether a list is treated as a tuple, as in old versions of NumPy and still in PyTorch: it contains more than integers.
fn is_legacy_tuple(obj: &PyObj<'_>) -> PyResult<bool> {
    let Ok(list) = obj.cast::<PyList>() else { return Ok(false) };
    if list.len() >= 32 {
        return Ok(false);
    }
    for item in list {
        let special = item.is_none() || item.is(PyEllipsis::get(obj.py())) || item.is_instance_of::<PySlice>();
        let nested = item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>();
        if special || nested || as_tensor(&item).is_some_and(|t| t.rank() > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[inline]
fn items(key: &PyObj<'_>) -> PyResult<Items> {
    let mut out = Items::new();
    if let Ok(t) = key.cast::<PyTuple>() {
        for item in t {
            out.push(one(&item)?);
        }
    } else if key.is_instance_of::<PyList>() && is_legacy_tuple(key)? {
        warn(
            key.py(),
            c"Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed; use x[tuple(seq)] instead of x[seq], \
              or x[rgrad.tensor(seq)] for positions.",
        )?;
        for item in key.try_iter()? {
            out.push(one(&item?)?);
        }
    } else {
        out.push(one(key)?);
    }
    Ok(out)
}

#[pymethods]
impl PyTensor {
    fn __getitem__(slf: &Bound<'_, Self>, key: &PyObj<'_>) -> PyObjResult {
        wrap(slf.py(), indexing::get(Self::of(slf), &items(key)?)?)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &PyObj<'_>, value: &PyObj<'_>) -> PyResult<()> {
        let t = Self::of(slf);
        let Some(value) = args::operand(value)? else {
            return Err(type_error(format!("can't assign a {} to a rgrad.{}Tensor", type_name(value), t.dtype().type_name())));
        };
        if let pw::Arg::Tensor(from) = value {
            warn_of_lost_parts(slf.py(), from.dtype(), t.dtype())?;
        }
        Ok(indexing::set(t, &items(key)?, value)?)
    }

    fn __delitem__(_slf: &Bound<'_, Self>, _key: &PyObj<'_>) -> PyResult<()> {
        Err(type_error("Tensor does not support deleting items"))
    }
}

// ---- functions -------------------------------------------------------------------------------------------------------

fn same(x: &Bound<'_, PyTensor>) -> PyObjResult {
    Ok(x.clone().into_any().unbind())
}

fn alpha(obj: Option<&PyObj<'_>>) -> PyResult<Scalar> {
    match obj {
        None => Ok(Scalar::Int(1)),
        Some(o) => scalar(o)?.ok_or_else(|| type_error("argument 'alpha' must be Number")),
    }
}

/// The indices of `index_put`: a tensor or None for each dimension.
fn put_plan(x: &Tensor, indices: &PyObj<'_>) -> PyResult<(IndexPlan, SmallVec<[Tensor; 4]>)> {
    let is_list = indices.is_instance_of::<PyTuple>() || indices.is_instance_of::<PyList>();
    if !is_list {
        return Err(PyTypeError::new_err(format!(
            "index_put_(): argument 'indices' (position 1) must be tuple of Tensors, not {}",
            type_name(indices)
        )));
    }
    let mut entries: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for item in indices.try_iter()? {
        let item = item?;
        entries.push(if item.is_none() { None } else { Some(tensor(&item, "index_put_(): indices")?.clone()) });
    }
    Ok(indexing::positions(x, &entries)?)
}

fn put(
    x: &Bound<'_, PyTensor>,
    place: WriteTarget,
    indices: &PyObj<'_>,
    values: &Bound<'_, PyTensor>,
    accumulate: bool,
) -> PyResult<Tensor> {
    let x = PyTensor::of(x);
    let (plan, at) = put_plan(x, indices)?;
    Ok(index::index_put(place, x, plan, &at, PyTensor::of(values), accumulate)?)
}

fn scatter_any(
    x: &Bound<'_, PyTensor>,
    place: WriteTarget,
    dim: i64,
    index: &Bound<'_, PyTensor>,
    src: Option<&PyObj<'_>>,
    value: Option<&PyObj<'_>>,
    reduce: Option<&str>,
) -> PyResult<Tensor> {
    let how = match reduce {
        None => Reduce::Set,
        Some("add") => Reduce::Add,
        Some("multiply") => Reduce::Multiply,
        Some(r) => return Err(Error::runtime(format!("reduce argument must be either add or multiply, got {r}")).into()),
    };
    let Some(src) = src.or(value) else {
        return Err(type_error("scatter() missing 1 required positional arguments: \"src\""));
    };
    Ok(along::scatter(place, PyTensor::of(x), dim, PyTensor::of(index), operand_of(src, "scatter", 3, "src")?, how)?)
}

functions_and_methods! {
    /// The slices along `dim` at a vector of indices.
    fn index_select(x, dim: i64, index: &Bound<'_, PyTensor>) sig(dim, index) {
        wrap(x.py(), index::index_select(PyTensor::of(x), dim, PyTensor::of(index))?)
    }
    /// The elements at indices into the flattened tensor.
    fn take(x, index: &Bound<'_, PyTensor>) sig(index) {
        wrap(x.py(), index::take(PyTensor::of(x), PyTensor::of(index))?)
    }
    /// The elements along `dim` at `indices`. Both tensors are broadcast in the other dimensions; without `dim` the tensor is flattened.
    fn take_along_dim(x, indices: &Bound<'_, PyTensor>, dim: Option<i64>) sig(indices, dim=None) {
        wrap(x.py(), along::take_along_dim(PyTensor::of(x), PyTensor::of(indices), dim)?)
    }
    /// The elements along `dim` at `index`, which has the shape of the result.
    fn gather(x, dim: i64, index: &Bound<'_, PyTensor>, sparse_grad: bool) sig(dim, index, *, sparse_grad=false) {
        let _ = sparse_grad;
        wrap(x.py(), along::gather(PyTensor::of(x), dim, PyTensor::of(index))?)
    }
    /// A copy with `src`, a tensor or a number, written at `index` along `dim`; `reduce` is None, 'add' or 'multiply'.
    fn scatter(x, dim: i64, index: &Bound<'_, PyTensor>, src: Option<&PyObj<'_>>, value: Option<&PyObj<'_>>, reduce: Option<&str>) sig(dim, index, src=None, *, value=None, reduce=None) {
        wrap(x.py(), scatter_any(x, WriteTarget::New, dim, index, src, value, reduce)?)
    }
    /// A copy with `src` added at `index` along `dim`, in the order of the index.
    fn scatter_add(x, dim: i64, index: &Bound<'_, PyTensor>, src: &Bound<'_, PyTensor>) sig(dim, index, src) {
        wrap(x.py(), scatter_any(x, WriteTarget::New, dim, index, Some(src.as_any()), None, Some("add"))?)
    }
    /// A copy with `alpha * source` added to the slices along `dim` at `index`.
    fn index_add(x, dim: i64, index: &Bound<'_, PyTensor>, source: &Bound<'_, PyTensor>, alpha: Option<&PyObj<'_>>) sig(dim, index, source, *, alpha=None) {
        wrap(x.py(), index::index_add(WriteTarget::New, PyTensor::of(x), dim, PyTensor::of(index), PyTensor::of(source), self::alpha(alpha)?)?)
    }
    /// A copy with the slices along `dim` at `index` replaced by those of `source`.
    fn index_copy(x, dim: i64, index: &Bound<'_, PyTensor>, source: &Bound<'_, PyTensor>) sig(dim, index, source) {
        wrap(x.py(), index::index_copy(WriteTarget::New, PyTensor::of(x), dim, PyTensor::of(index), PyTensor::of(source))?)
    }
    /// A copy with the slices along `dim` at `index` filled with a value.
    fn index_fill(x, dim: i64, index: &Bound<'_, PyTensor>, value: &PyObj<'_>) sig(dim, index, value) {
        let v = operand_of(value, "index_fill", 4, "value")?;
        wrap(x.py(), index::index_fill(WriteTarget::New, PyTensor::of(x), dim, PyTensor::of(index), v)?)
    }
    /// A copy with `values` written at the index tensors, or added with `accumulate`.
    fn index_put(x, indices: &PyObj<'_>, values: &Bound<'_, PyTensor>, accumulate: bool) sig(indices, values, accumulate=false) {
        let out = put(x, WriteTarget::New, indices, values, accumulate)?;
        wrap(x.py(), out)
    }
    /// A copy with a value where the mask is true.
    fn masked_fill(x, mask: &Bound<'_, PyTensor>, value: &PyObj<'_>) sig(mask, value) {
        let v = operand_of(value, "masked_fill", 3, "value")?;
        wrap(x.py(), along::masked_fill(WriteTarget::New, PyTensor::of(x), PyTensor::of(mask), v)?)
    }
    /// The elements where the mask is true, in one dimension.
    fn masked_select(x, mask: &Bound<'_, PyTensor>) sig(mask) {
        wrap(x.py(), mask::masked_select(PyTensor::of(x), PyTensor::of(mask))?)
    }
    /// A copy with consecutive elements of `source` where the mask is true.
    fn masked_scatter(x, mask: &Bound<'_, PyTensor>, source: &Bound<'_, PyTensor>) sig(mask, source) {
        wrap(x.py(), mask::masked_scatter(WriteTarget::New, PyTensor::of(x), PyTensor::of(mask), PyTensor::of(source))?)
    }
    /// The indices of the elements that are not zero: one row for each, or with `as_tuple` one vector for each dimension.
    fn nonzero(x, as_tuple: bool) sig(*, as_tuple=false) {
        if as_tuple {
            return tuple(x.py(), mask::nonzero_tuple(PyTensor::of(x))?);
        }
        wrap(x.py(), mask::nonzero(PyTensor::of(x))?)
    }
    /// The indices of the elements that are not zero, one row for each.
    fn argwhere(x) sig() {
        wrap(x.py(), mask::nonzero(PyTensor::of(x))?)
    }
}

#[pymethods]
impl PyTensor {
    /// Writes `src`, a tensor or a number, at `index` along `dim`; `reduce` is None, 'add' or 'multiply'.
    #[pyo3(signature = (dim, index, src=None, *, value=None, reduce=None))]
    fn scatter_(
        slf: &Bound<'_, Self>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        src: Option<&PyObj<'_>>,
        value: Option<&PyObj<'_>>,
        reduce: Option<&str>,
    ) -> PyObjResult {
        scatter_any(slf, WriteTarget::Same, dim, index, src, value, reduce)?;
        same(slf)
    }

    /// Adds `src` at `index` along `dim`.
    fn scatter_add_(slf: &Bound<'_, Self>, dim: i64, index: &Bound<'_, PyTensor>, src: &Bound<'_, PyTensor>) -> PyObjResult {
        scatter_any(slf, WriteTarget::Same, dim, index, Some(src.as_any()), None, Some("add"))?;
        same(slf)
    }

    /// Adds `alpha * source` to the slices along `dim` at `index`.
    #[pyo3(signature = (dim, index, source, *, alpha=None))]
    fn index_add_(
        slf: &Bound<'_, Self>,
        dim: i64,
        index: &Bound<'_, PyTensor>,
        source: &Bound<'_, PyTensor>,
        alpha: Option<&PyObj<'_>>,
    ) -> PyObjResult {
        index::index_add(WriteTarget::Same, Self::of(slf), dim, Self::of(index), Self::of(source), self::alpha(alpha)?)?;
        same(slf)
    }

    /// Replaces the slices along `dim` at `index` by those of `source`.
    fn index_copy_(slf: &Bound<'_, Self>, dim: i64, index: &Bound<'_, PyTensor>, source: &Bound<'_, PyTensor>) -> PyObjResult {
        index::index_copy(WriteTarget::Same, Self::of(slf), dim, Self::of(index), Self::of(source))?;
        same(slf)
    }

    /// Fills the slices along `dim` at `index` with a value.
    fn index_fill_(slf: &Bound<'_, Self>, dim: i64, index: &Bound<'_, PyTensor>, value: &PyObj<'_>) -> PyObjResult {
        index::index_fill(WriteTarget::Same, Self::of(slf), dim, Self::of(index), operand_of(value, "index_fill_", 3, "value")?)?;
        same(slf)
    }

    /// Writes `values` at the index tensors, or adds them with `accumulate`.
    #[pyo3(signature = (indices, values, accumulate=false))]
    fn index_put_(slf: &Bound<'_, Self>, indices: &PyObj<'_>, values: &Bound<'_, PyTensor>, accumulate: bool) -> PyObjResult {
        put(slf, WriteTarget::Same, indices, values, accumulate)?;
        same(slf)
    }

    /// Writes a value where the mask is true.
    fn masked_fill_(slf: &Bound<'_, Self>, mask: &Bound<'_, PyTensor>, value: &PyObj<'_>) -> PyObjResult {
        along::masked_fill(WriteTarget::Same, Self::of(slf), Self::of(mask), operand_of(value, "masked_fill_", 2, "value")?)?;
        same(slf)
    }

    /// Writes consecutive elements of `source` where the mask is true.
    fn masked_scatter_(slf: &Bound<'_, Self>, mask: &Bound<'_, PyTensor>, source: &Bound<'_, PyTensor>) -> PyObjResult {
        mask::masked_scatter(WriteTarget::Same, Self::of(slf), Self::of(mask), Self::of(source))?;
        same(slf)
    }

    /// The elements of this tensor where `condition` is true, and of `other` elsewhere.
    #[pyo3(name = "where")]
    fn where_(slf: &Bound<'_, Self>, condition: &Bound<'_, PyTensor>, other: &PyObj<'_>) -> PyObjResult {
        choose(slf.py(), condition, Arg::Tensor(Self::of(slf)), operand_of(other, "where", 2, "other")?)
    }
}

fn choose(py: Python<'_>, condition: &Bound<'_, PyTensor>, a: Arg<'_>, b: Arg<'_>) -> PyObjResult {
    let c = PyTensor::of(condition);
    if c.dtype() == DType::U8 {
        warn(py, c"where received a uint8 condition tensor. This behavior is deprecated. Use a boolean condition instead.")?;
        let truth = crate::autograd::primitives::cast(c, DType::Bool)?;
        return wrap(py, pw::where_(&truth, a, b)?);
    }
    wrap(py, pw::where_(c, a, b)?)
}

/// The elements of `input` where `condition` is true, and of `other` elsewhere. With `condition` alone, the indices where it is true.
#[pyfunction]
#[pyo3(name = "where", signature = (condition, input=None, other=None))]
fn where_(py: Python<'_>, condition: &Bound<'_, PyTensor>, input: Option<&PyObj<'_>>, other: Option<&PyObj<'_>>) -> PyObjResult {
    match (input, other) {
        (None, None) => tuple(py, mask::nonzero_tuple(PyTensor::of(condition))?),
        (Some(a), Some(b)) => choose(py, condition, operand_of(a, "where", 2, "input")?, operand_of(b, "where", 3, "other")?),
        _ => Err(type_error("where(): needs a condition alone, or a condition and both values")),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(where_, m)?)?;
    Ok(())
}
