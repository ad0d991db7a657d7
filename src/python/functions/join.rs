//! Operations that join, repeat and rearrange tensors, and diagonals and triangles.
//!
//! Operations that return views are in `shape`.

use crate::error::Error;
use crate::ops::diagonal;
use crate::ops::index::WriteTarget;
use crate::ops::join::{self, Repeats};
use crate::ops::rearrange;
use crate::ops::shape as views;
use crate::python::args::{self, as_tensor, ints, tensor_list, varargs};
use crate::python::autograd::backward::warn_once;
use crate::python::errors::type_error;
use crate::python::functions::shape::{sizes, tuple};
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::AtomicBool;

/// Dimensions that are given one by one, as a sequence, or as `dims=`.
fn dims_of(given: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>, function: &str) -> PyResult<smallvec::SmallVec<[i64; 4]>> {
    if let Some(kw) = kwargs
        && let Some(key) = kw.keys().iter().next()
    {
        if key.extract::<String>()? != "dims" || kw.len() > 1 || !given.is_empty() {
            return Err(type_error(format!("{function}() got an unexpected keyword argument {}", key.repr()?)));
        }
        return match kw.get_item("dims")? {
            Some(d) => ints(&d),
            None => Ok(smallvec::SmallVec::new()),
        };
    }
    if given.is_empty() {
        return Err(type_error(format!("{function}() missing 1 required positional arguments: \"dims\"")));
    }
    varargs(given)
}

/// The elements in reverse order along `dims`.
#[pyfunction]
#[pyo3(signature = (input, *dims, **kwargs))]
fn flip(input: &Bound<'_, PyTensor>, dims: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    wrap(input.py(), rearrange::flip(PyTensor::of(input), &dims_of(dims, kwargs, "flip")?)?)
}

/// The tensor repeated `dims` times along each dimension; missing numbers at the front count as 1.
#[pyfunction]
#[pyo3(signature = (input, *dims, **kwargs))]
fn tile(input: &Bound<'_, PyTensor>, dims: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
    wrap(input.py(), join::tile(PyTensor::of(input), &dims_of(dims, kwargs, "tile")?)?)
}

functions_and_methods! {
    /// The columns in reverse order.
    fn fliplr(x) sig() {
        wrap(x.py(), rearrange::fliplr(PyTensor::of(x))?)
    }
    /// The rows in reverse order.
    fn flipud(x) sig() {
        wrap(x.py(), rearrange::flipud(PyTensor::of(x))?)
    }
    /// The elements shifted along `dims` by `shifts`; elements beyond one end reappear at the other.
    fn roll(x, shifts: &PyObj<'_>, dims: Option<&PyObj<'_>>) sig(shifts, dims=None) {
        let dims = match dims {
            Some(d) if !d.is_none() => ints(d)?,
            _ => smallvec::SmallVec::new(),
        };
        wrap(x.py(), rearrange::roll(PyTensor::of(x), &ints(shifts)?, &dims)?)
    }
    /// The tensor rotated `k` times by 90 degrees in the plane of two dimensions.
    fn rot90(x, k: i64, dims: Option<&PyObj<'_>>) sig(k=1, dims=None) {
        let dims = match dims {
            Some(d) if !d.is_none() => ints(d)?,
            _ => smallvec::SmallVec::from_slice(&[0, 1]),
        };
        wrap(x.py(), rearrange::rot90(PyTensor::of(x), k, &dims)?)
    }
    /// The lower triangle of each matrix, up to `diagonal`, and zeros elsewhere.
    fn tril(x, diagonal: i64) sig(diagonal=0) {
        wrap(x.py(), diagonal::triangle(WriteTarget::New, PyTensor::of(x), diagonal, false)?)
    }
    /// The upper triangle of each matrix, from `diagonal` on, and zeros elsewhere.
    fn triu(x, diagonal: i64) sig(diagonal=0) {
        wrap(x.py(), diagonal::triangle(WriteTarget::New, PyTensor::of(x), diagonal, true)?)
    }
    /// A square matrix with a vector on its diagonal, or a copy of the diagonal of a matrix.
    fn diag(x, diagonal: i64) sig(diagonal=0) {
        wrap(x.py(), diagonal::diag(PyTensor::of(x), diagonal)?)
    }
    /// Matrices in dimensions `dim1` and `dim2` with the last dimension of the tensor on a diagonal, and zeros elsewhere.
    fn diag_embed(x, offset: i64, dim1: i64, dim2: i64) sig(offset=0, dim1=-2, dim2=-1) {
        wrap(x.py(), diagonal::diag_embed(PyTensor::of(x), offset, dim1, dim2)?)
    }
    /// A square matrix with all elements of the tensor on a diagonal.
    fn diagflat(x, offset: i64) sig(offset=0) {
        wrap(x.py(), diagonal::diag_embed(&views::ravel(PyTensor::of(x))?, offset, 0, 1)?)
    }
    /// The sum of the diagonal of a matrix.
    fn trace(x) sig() {
        wrap(x.py(), diagonal::trace(PyTensor::of(x))?)
    }
}

#[pymethods]
impl PyTensor {
    /// The elements in reverse order along `dims`.
    #[pyo3(name = "flip", signature = (*dims, **kwargs))]
    fn m_flip(slf: &Bound<'_, Self>, dims: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        flip(slf, dims, kwargs)
    }

    /// The tensor repeated `dims` times along each dimension; missing numbers at the front count as 1.
    #[pyo3(name = "tile", signature = (*dims, **kwargs))]
    fn m_tile(slf: &Bound<'_, Self>, dims: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        tile(slf, dims, kwargs)
    }

    /// The tensor repeated along each dimension; more numbers than dimensions add dimensions at the front.
    #[pyo3(signature = (*repeats, **kwargs))]
    fn repeat(slf: &Bound<'_, Self>, repeats: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let none = repeats.is_empty() && kwargs.is_none();
        let times = if none { Default::default() } else { sizes("repeat", repeats, kwargs, "repeats")? };
        wrap(slf.py(), join::repeat(Self::of(slf), &times)?)
    }

    /// Each slice along `dim` repeated next to itself; without `dim` the tensor is flattened.
    #[pyo3(name = "repeat_interleave", signature = (repeats, dim=None, *, output_size=None))]
    fn m_repeat_interleave(slf: &Bound<'_, Self>, repeats: &PyObj<'_>, dim: Option<i64>, output_size: Option<i64>) -> PyObjResult {
        repeat_interleave(slf, Some(repeats), dim, output_size)
    }

    /// Writes zeros above `diagonal` of each matrix.
    #[pyo3(signature = (diagonal=0))]
    fn tril_<'py>(slf: &Bound<'py, Self>, diagonal: i64) -> PyResult<Bound<'py, Self>> {
        diagonal::triangle(WriteTarget::Same, Self::of(slf), diagonal, false)?;
        Ok(slf.clone())
    }

    /// Writes zeros below `diagonal` of each matrix.
    #[pyo3(signature = (diagonal=0))]
    fn triu_<'py>(slf: &Bound<'py, Self>, diagonal: i64) -> PyResult<Bound<'py, Self>> {
        diagonal::triangle(WriteTarget::Same, Self::of(slf), diagonal, true)?;
        Ok(slf.clone())
    }
}

/// Each slice along `dim` repeated next to itself; without `dim` the tensor is flattened. With one argument, each index of that tensor repeated
/// as often as its element.
#[pyfunction]
#[pyo3(signature = (input, repeats=None, dim=None, *, output_size=None))]
fn repeat_interleave(input: &Bound<'_, PyTensor>, repeats: Option<&PyObj<'_>>, dim: Option<i64>, output_size: Option<i64>) -> PyObjResult {
    let (py, t) = (input.py(), PyTensor::of(input));
    let Some(repeats) = repeats.filter(|r| !r.is_none()) else { return wrap(py, join::repeat_positions(t)?) };
    let r = match as_tensor(repeats) {
        Some(r) => Repeats::Tensor(r),
        None => Repeats::Each(args::int(repeats)?),
    };
    wrap(py, join::repeat_interleave(t, r, dim, output_size)?)
}

fn out_or(
    py: Python<'_>,
    function: &str,
    result: crate::autograd::Tensor,
    inputs: &[crate::autograd::Tensor],
    out: Option<&PyObj<'_>>,
) -> PyObjResult {
    match out {
        Some(o) if !o.is_none() => {
            let refs: Vec<&crate::autograd::Tensor> = inputs.iter().collect();
            crate::python::functions::pointwise::into_out(py, function, &result, &refs, o)
        }
        _ => wrap(py, result),
    }
}

/// The tensors concatenated along dimension `dim`.
#[pyfunction]
#[pyo3(signature = (tensors, dim=0, *, out=None))]
fn cat(py: Python<'_>, tensors: &PyObj<'_>, dim: i64, out: Option<&PyObj<'_>>) -> PyObjResult {
    let ts = tensor_list(tensors, "cat", "tensors")?;
    out_or(py, "cat", join::cat(&ts, dim)?, &ts, out)
}

/// The tensors, which have the same shape, stacked in a new dimension `dim`.
#[pyfunction]
#[pyo3(signature = (tensors, dim=0, *, out=None))]
fn stack(py: Python<'_>, tensors: &PyObj<'_>, dim: i64, out: Option<&PyObj<'_>>) -> PyObjResult {
    let ts = tensor_list(tensors, "stack", "tensors")?;
    out_or(py, "stack", join::stack(&ts, dim)?, &ts, out)
}

macro_rules! joins {
    ($($(#[doc = $doc:literal])+ $name:ident)+) => {
        $(
            $(#[doc = $doc])+
            #[pyfunction]
            #[pyo3(signature = (tensors))]
            fn $name(py: Python<'_>, tensors: &PyObj<'_>) -> PyObjResult {
                wrap(py, join::$name(&tensor_list(tensors, stringify!($name), "tensors")?)?)
            }
        )+
        fn register_joins(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(m.add_function(wrap_pyfunction!($name, m)?)?;)+
            Ok(())
        }
    };
}

joins! {
    /// The tensors concatenated along dimension 1, or 0 for vectors.
    hstack
    /// The tensors concatenated along dimension 0, with vectors as rows.
    vstack
    /// The tensors concatenated along dimension 2.
    dstack
    /// The tensors concatenated along dimension 1, with vectors as columns.
    column_stack
}

/// Tensors that are given one by one or as one list.
fn several(tensors: &Bound<'_, PyTuple>, function: &str) -> PyResult<smallvec::SmallVec<[crate::autograd::Tensor; 4]>> {
    if tensors.len() == 1 && as_tensor(&tensors.get_item(0)?).is_none() {
        return tensor_list(&tensors.get_item(0)?, function, "tensors");
    }
    tensor_list(tensors.as_any(), function, "tensors")
}

/// The coordinates of a grid, from one vector for each dimension; `indexing` is 'ij' or 'xy'.
///
/// Raises:
///     RuntimeError: `indexing` is something else.
#[pyfunction]
#[pyo3(signature = (*tensors, indexing=None))]
fn meshgrid(py: Python<'_>, tensors: &Bound<'_, PyTuple>, indexing: Option<&str>) -> PyObjResult {
    static SHOWN: AtomicBool = AtomicBool::new(false);
    let xy = match indexing {
        None => {
            let text = c"rgrad.meshgrid: in an upcoming release, it will be required to pass the indexing argument.";
            warn_once(py, &SHOWN, text)?;
            false
        }
        Some("ij") => false,
        Some("xy") => true,
        Some(other) => {
            return Err(Error::runtime(format!("meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}")).into());
        }
    };
    tuple(py, join::meshgrid(&several(tensors, "meshgrid")?, xy)?)
}

macro_rules! atleasts {
    ($($name:ident $n:literal)+) => {
        $(
            /// The tensor with dimensions of size 1 added to this number of dimensions; a tuple for several tensors.
            #[pyfunction]
            #[pyo3(signature = (*tensors))]
            fn $name(py: Python<'_>, tensors: &Bound<'_, PyTuple>) -> PyObjResult {
                let ts = several(tensors, stringify!($name))?;
                let out: views::Views = ts.iter().map(|t| join::atleast(t, $n)).collect::<Result<_, _>>()?;
                if tensors.len() == 1 && as_tensor(&tensors.get_item(0)?).is_some() {
                    return wrap(py, out[0].clone());
                }
                tuple(py, out)
            }
        )+
        fn register_atleasts(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(m.add_function(wrap_pyfunction!($name, m)?)?;)+
            Ok(())
        }
    };
}
atleasts! { atleast_1d 1 atleast_2d 2 atleast_3d 3 }

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    register_joins(m)?;
    register_atleasts(m)?;
    m.add_function(wrap_pyfunction!(flip, m)?)?;
    m.add_function(wrap_pyfunction!(tile, m)?)?;
    m.add_function(wrap_pyfunction!(cat, m)?)?;
    m.add_function(wrap_pyfunction!(stack, m)?)?;
    m.add_function(wrap_pyfunction!(meshgrid, m)?)?;
    m.add_function(wrap_pyfunction!(repeat_interleave, m)?)?;
    for (alias, name) in [("concat", "cat"), ("concatenate", "cat"), ("row_stack", "vstack")] {
        m.add(alias, m.getattr(name)?)?;
    }
    Ok(())
}
