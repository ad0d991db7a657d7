//! `hsplit`, `vsplit` and `dsplit`, block matrices, Kronecker products and differences.
//!
//! The other ways to split a tensor are in `shape`, the ways to join tensors in `join`.

use crate::ops::blocks::{self, Cuts};
use crate::ops::create;
use crate::ops::shape::Views;
use crate::python::args::{int, ints, tensor, tensor_list};
use crate::python::functions::shape::{self, tuple, with_more};
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

type Split = fn(&crate::autograd::Tensor, Cuts<'_>) -> crate::error::Result<Views>;

fn split(x: &Bound<'_, PyTensor>, cuts: &PyObj<'_>, f: Split) -> PyObjResult {
    let t = PyTensor::of(x);
    let parts = if cuts.is_instance_of::<PyTuple>() || cuts.is_instance_of::<PyList>() {
        f(t, Cuts::At(&ints(cuts)?))?
    } else {
        f(t, Cuts::Equal(int(cuts)?))?
    };
    tuple(x.py(), parts)
}

fn split_at<'py>(x: &Bound<'py, PyTensor>, first: &PyObj<'py>, more: &Bound<'py, PyTuple>, f: Split) -> PyObjResult {
    match with_more(Some(first), more)? {
        Some(cuts) => split(x, &cuts, f),
        None => split(x, first, f),
    }
}

/// Splits along dimension 1, or 0 of a vector: into a number of equal parts, or at a list of positions.
#[pyfunction]
#[pyo3(signature = (input, indices_or_sections))]
fn hsplit(input: &Bound<'_, PyTensor>, indices_or_sections: &PyObj<'_>) -> PyObjResult {
    split(input, indices_or_sections, blocks::hsplit)
}

/// Splits along dimension 0: into a number of equal parts, or at a list of positions.
#[pyfunction]
#[pyo3(signature = (input, indices_or_sections))]
fn vsplit(input: &Bound<'_, PyTensor>, indices_or_sections: &PyObj<'_>) -> PyObjResult {
    split(input, indices_or_sections, blocks::vsplit)
}

/// Splits along dimension 2: into a number of equal parts, or at a list of positions.
#[pyfunction]
#[pyo3(signature = (input, indices_or_sections))]
fn dsplit(input: &Bound<'_, PyTensor>, indices_or_sections: &PyObj<'_>) -> PyObjResult {
    split(input, indices_or_sections, blocks::dsplit)
}

#[pymethods]
impl PyTensor {
    /// Splits along dimension 1, or 0 of a vector: into a number of equal parts, or at a list of positions. Positions may be given one by one.
    #[pyo3(signature = (indices_or_sections, *more))]
    fn hsplit<'py>(slf: &Bound<'py, Self>, indices_or_sections: &PyObj<'py>, more: &Bound<'py, PyTuple>) -> PyObjResult {
        split_at(slf, indices_or_sections, more, blocks::hsplit)
    }

    /// Splits along dimension 0: into a number of equal parts, or at a list of positions. Positions may be given one by one.
    #[pyo3(signature = (indices_or_sections, *more))]
    fn vsplit<'py>(slf: &Bound<'py, Self>, indices_or_sections: &PyObj<'py>, more: &Bound<'py, PyTuple>) -> PyObjResult {
        split_at(slf, indices_or_sections, more, blocks::vsplit)
    }

    /// Splits along dimension 2: into a number of equal parts, or at a list of positions. Positions may be given one by one.
    #[pyo3(signature = (indices_or_sections, *more))]
    fn dsplit<'py>(slf: &Bound<'py, Self>, indices_or_sections: &PyObj<'py>, more: &Bound<'py, PyTuple>) -> PyObjResult {
        split_at(slf, indices_or_sections, more, blocks::dsplit)
    }
}

functions_and_methods! {
    /// The Kronecker product: a block matrix of the products of each element with `other`.
    fn kron(x, other: &PyObj<'_>) sig(other) {
        wrap(x.py(), blocks::kron(PyTensor::of(x), tensor(other, "kron(): argument 'other' (position 2)")?)?)
    }
    /// The differences of neighbors along `dim`, taken `n` times, after `prepend` and `append` are joined to the ends of the tensor.
    fn diff(x, n: i64, dim: i64, prepend: Option<&PyObj<'_>>, append: Option<&PyObj<'_>>) sig(n=1, dim=-1, prepend=None, append=None) {
        let given = |o: Option<&'_ PyObj<'_>>, what: &str| -> PyResult<Option<crate::autograd::Tensor>> {
            o.filter(|o| !o.is_none()).map(|o| Ok(tensor(o, what)?.clone())).transpose()
        };
        let before = given(prepend, "diff(): argument 'prepend' (position 4)")?;
        let after = given(append, "diff(): argument 'append' (position 5)")?;
        wrap(x.py(), blocks::diff(PyTensor::of(x), n, dim, before.as_ref(), after.as_ref())?)
    }
}

/// A matrix with the given matrices as blocks on its diagonal and zeros elsewhere. A vector is one row, a 0-d tensor a 1 x 1 matrix.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn block_diag(py: Python<'_>, tensors: &Bound<'_, PyTuple>) -> PyObjResult {
    wrap(py, blocks::block_diag(&tensor_list(tensors.as_any(), "block_diag", "tensors")?)?)
}

#[pymethods]
impl PyTensor {
    /// The sum over the dimensions that broadcasting from `size` to this tensor's shape adds or expands.
    #[pyo3(signature = (*size, **kwargs))]
    fn sum_to_size(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyObjResult {
        let none = size.is_empty() && kwargs.is_none();
        let sizes = create::sizes(&if none { Default::default() } else { shape::sizes("sum_to_size", size, kwargs, "size")? })?;
        let out = blocks::sum_to_size(Self::of(slf), &sizes)?;
        if out.same(Self::of(slf)) { Ok(slf.clone().into_any().unbind()) } else { wrap(slf.py(), out) }
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(hsplit, m)?)?;
    m.add_function(wrap_pyfunction!(vsplit, m)?)?;
    m.add_function(wrap_pyfunction!(dsplit, m)?)?;
    m.add_function(wrap_pyfunction!(block_diag, m)?)
}
