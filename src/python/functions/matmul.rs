//! The operator `@`, `linear`, `einsum` and `tensordot`.
//!
//! The other matrix products are declared in `ops::matmul`.

use crate::autograd::Tensor;
use crate::ops::{einsum as es, matmul as mm_};
use crate::python::args::{as_tensor, tensor, tensor_list, type_name};
use crate::python::errors::type_error;
use crate::python::functions::pointwise::into_out;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

fn arg<'a>(obj: &'a PyObj<'_>, function: &str, name: &str) -> PyResult<&'a Tensor> {
    tensor(obj, &format!("{function}(): argument '{name}' (position 2)"))
}

fn finish(py: Python<'_>, function: &str, r: Tensor, inputs: &[&Tensor], out: Option<&PyObj<'_>>) -> PyObjResult {
    match out.filter(|o| !o.is_none()) {
        None => wrap(py, r),
        Some(o) => into_out(py, function, &r, inputs, o),
    }
}

#[pymethods]
impl PyTensor {
    fn __matmul__(slf: &Bound<'_, Self>, other: &PyObj<'_>) -> PyObjResult {
        match as_tensor(other) {
            Some(o) => wrap(slf.py(), mm_::matmul(PyTensor::of(slf), o)?),
            None => Ok(slf.py().NotImplemented()),
        }
    }
}

/// `input @ weight.T + bias`, over the last dimension of the input.
#[pyfunction]
#[pyo3(signature = (input, weight, bias=None))]
fn linear(input: &Bound<'_, PyTensor>, weight: &PyObj<'_>, bias: Option<&PyObj<'_>>) -> PyObjResult {
    let bias = match bias.filter(|b| !b.is_none()) {
        None => None,
        Some(b) => Some(tensor(b, "linear(): argument 'bias' (position 3)")?),
    };
    wrap(input.py(), mm_::linear(PyTensor::of(input), arg(weight, "linear", "weight")?, bias)?)
}

/// The sum of products of operands whose dimensions an equation names, as in `einsum('ij,jk->ik', a, b)`.
#[pyfunction]
#[pyo3(signature = (*args))]
fn einsum(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyObjResult {
    let Some(first) = args.iter().next() else {
        return Err(type_error("einsum() missing 1 required positional arguments: \"equation\""));
    };
    let Ok(equation) = first.cast::<PyString>() else {
        return Err(type_error(format!("einsum(): argument 'equation' (position 1) must be str, not {}", type_name(&first))));
    };
    let mut operands: SmallVec<[Tensor; 4]> = SmallVec::new();
    if args.len() == 2 && as_tensor(&args.get_item(1)?).is_none() {
        operands = tensor_list(&args.get_item(1)?, "einsum", "operands")?;
    } else {
        for a in args.iter().skip(1) {
            operands.push(tensor(&a, "einsum(): argument 'operands'")?.clone());
        }
    }
    wrap(py, es::einsum(equation.to_str()?, &operands)?)
}

/// The sums of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of dimensions.
///
/// Raises:
///     RuntimeError: `dims` is negative or greater than the rank of `a` or `b`, or the sizes of the dimensions differ.
#[pyfunction]
#[pyo3(signature = (a, b, dims=None, out=None))]
fn tensordot(a: &Bound<'_, PyTensor>, b: &PyObj<'_>, dims: Option<&PyObj<'_>>, out: Option<&PyObj<'_>>) -> PyObjResult {
    let (x, y) = (PyTensor::of(a), arg(b, "tensordot", "b")?);
    let counted = |n: i64| -> (Vec<i64>, Vec<i64>) { ((0..n).map(|i| i - n).collect(), (0..n).collect()) };
    let (da, db) = match dims {
        None => counted(2),
        Some(d) => match d.extract::<i64>() {
            Ok(n) if n < 0 || n > x.rank().min(y.rank()) as i64 => {
                return Err(crate::error::Error::runtime(format!(
                    "tensordot expects dims >= 0 and not above either rank, but got dims={n} for ranks {} and {}",
                    x.rank(),
                    y.rank()
                ))
                .into());
            }
            Ok(n) => counted(n),
            Err(_) => d.extract::<(Vec<i64>, Vec<i64>)>()?,
        },
    };
    finish(a.py(), "tensordot", es::tensordot(x, y, &da, &db)?, &[x, y], out)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(linear, m)?)?;
    m.add_function(wrap_pyfunction!(einsum, m)?)?;
    m.add_function(wrap_pyfunction!(tensordot, m)?)
}
