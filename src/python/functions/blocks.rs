//! Splitting by NumPy's names, block matrices and differences in Python.

use crate::ops::blocks::{self, Cuts};
use crate::ops::create;
use crate::ops::shape::Views;
use crate::python::args::{int, ints, tensor, tensor_list, varargs};
use crate::python::functions::shape::tuple;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

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

functions_and_methods! {
    /// Parts side by side (along dimension 1, or 0 of a vector): so many of equal size, or between positions.
    fn hsplit(x, indices_or_sections: &PyObj<'_>) sig(indices_or_sections) {
        split(x, indices_or_sections, blocks::hsplit)
    }
    /// Parts on top of one another (along dimension 0): so many of equal size, or between positions.
    fn vsplit(x, indices_or_sections: &PyObj<'_>) sig(indices_or_sections) {
        split(x, indices_or_sections, blocks::vsplit)
    }
    /// Parts behind one another (along dimension 2): so many of equal size, or between positions.
    fn dsplit(x, indices_or_sections: &PyObj<'_>) sig(indices_or_sections) {
        split(x, indices_or_sections, blocks::dsplit)
    }
    /// The Kronecker product: each element times all of `other`, as blocks.
    fn kron(x, other: &PyObj<'_>) sig(other) {
        wrap(x.py(), blocks::kron(PyTensor::of(x), tensor(other, "kron(): argument 'other' (position 2)")?)?)
    }
    /// Differences of neighbours along `dim`, `n` times, of the tensor with `prepend` and `append` at its ends.
    fn diff(x, n: i64, dim: i64, prepend: Option<&PyObj<'_>>, append: Option<&PyObj<'_>>) sig(n=1, dim=-1, prepend=None, append=None) {
        let given = |o: Option<&'_ PyObj<'_>>, what: &str| -> PyResult<Option<crate::autograd::Tensor>> {
            o.filter(|o| !o.is_none()).map(|o| Ok(tensor(o, what)?.clone())).transpose()
        };
        let before = given(prepend, "diff(): argument 'prepend' (position 4)")?;
        let after = given(append, "diff(): argument 'append' (position 5)")?;
        wrap(x.py(), blocks::diff(PyTensor::of(x), n, dim, before.as_ref(), after.as_ref())?)
    }
}

/// A matrix with the given matrices on its diagonal, zero elsewhere; vectors count as rows, numbers as 1 x 1.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn block_diag(py: Python<'_>, tensors: &Bound<'_, PyTuple>) -> PyObjResult {
    wrap(py, blocks::block_diag(&tensor_list(tensors.as_any(), "block_diag", "tensors")?)?)
}

#[pymethods]
impl PyTensor {
    /// This tensor summed over the dimensions by which it could have been broadcast from `size`.
    #[pyo3(signature = (*size))]
    fn sum_to_size(slf: &Bound<'_, Self>, size: &Bound<'_, PyTuple>) -> PyObjResult {
        let sizes = create::sizes(&varargs(size)?)?;
        let out = blocks::sum_to_size(Self::of(slf), &sizes)?;
        if out.same(Self::of(slf)) { Ok(slf.clone().into_any().unbind()) } else { wrap(slf.py(), out) }
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(block_diag, m)?)
}
