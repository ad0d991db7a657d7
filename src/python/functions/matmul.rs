//! Matrix products, `linear`, `einsum` and `tensordot`.
//!
//! Norms and other functions of matrices are in `reduce`.

use crate::autograd::Tensor;
use crate::layout::Scalar;
use crate::ops::{einsum as es, matmul as mm_};
use crate::python::args::{as_tensor, scalar, tensor, tensor_list, type_name};
use crate::python::errors::type_error;
use crate::python::functions::pointwise::into_out;
use crate::python::macros::functions_and_methods;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

fn arg<'a>(obj: &'a PyObj<'_>, function: &str, name: &str) -> PyResult<&'a Tensor> {
    tensor(obj, &format!("{function}(): argument '{name}' (position 2)"))
}

fn factor(obj: Option<&PyObj<'_>>, function: &str, name: &str) -> PyResult<Scalar> {
    match obj {
        None => Ok(Scalar::Int(1)),
        Some(o) => scalar(o)?.ok_or_else(|| type_error(format!("{function}(): argument '{name}' must be Number, not {}", type_name(o)))),
    }
}

fn finish(py: Python<'_>, function: &str, r: Tensor, inputs: &[&Tensor], out: Option<&PyObj<'_>>) -> PyObjResult {
    match out.filter(|o| !o.is_none()) {
        None => wrap(py, r),
        Some(o) => into_out(py, function, &r, inputs, o),
    }
}

macro_rules! products {
    ($($(#[doc = $doc:literal])+ $name:ident($other:ident) = $f:path;)+) => {
        functions_and_methods! {
            $(
                $(#[doc = $doc])+
                fn $name(x, $other: &PyObj<'_>, out: Option<&PyObj<'_>>) sig($other, *, out=None) {
                    let (a, b) = (PyTensor::of(x), arg($other, stringify!($name), stringify!($other))?);
                    finish(x.py(), stringify!($name), $f(a, b)?, &[a, b], out)
                }
            )+
            /// `beta * input + alpha * (mat1 @ mat2)`, with the input broadcast to the shape of the product.
            fn addmm(x, mat1: &PyObj<'_>, mat2: &PyObj<'_>, beta: Option<&PyObj<'_>>, alpha: Option<&PyObj<'_>>)
                sig(mat1, mat2, *, beta=None, alpha=None) {
                let (b, a) = (factor(beta, "addmm", "beta")?, factor(alpha, "addmm", "alpha")?);
                wrap(x.py(), mm_::addmm(PyTensor::of(x), arg(mat1, "addmm", "mat1")?, arg(mat2, "addmm", "mat2")?, b, a)?)
            }
            /// `beta * input + alpha * (batch1 @ batch2)` for each matrix of a batch, with the input broadcast to the shape of the product.
            fn baddbmm(x, batch1: &PyObj<'_>, batch2: &PyObj<'_>, beta: Option<&PyObj<'_>>, alpha: Option<&PyObj<'_>>)
                sig(batch1, batch2, *, beta=None, alpha=None) {
                let (b, a) = (factor(beta, "baddbmm", "beta")?, factor(alpha, "baddbmm", "alpha")?);
                let (p, q) = (arg(batch1, "baddbmm", "batch1")?, arg(batch2, "baddbmm", "batch2")?);
                wrap(x.py(), mm_::baddbmm(PyTensor::of(x), p, q, b, a)?)
            }
        }
    };
}

products! {
    /// The product of two tensors by the rules of `@`: of vectors, matrices, or batches of matrices, which are broadcast.
    matmul(other) = mm_::matmul;
    /// The product of two matrices.
    mm(mat2) = mm_::mm;
    /// The products of two batches of matrices.
    bmm(mat2) = mm_::bmm;
    /// The product of a matrix and a vector.
    mv(vec) = mm_::mv;
    /// The dot product of two vectors.
    dot(tensor) = mm_::dot;
    /// The sums of products over the last dimension of both tensors.
    inner(other) = mm_::inner;
    /// The outer product of two vectors: a matrix of the products of their elements.
    outer(vec2) = mm_::outer;
    /// The same as `outer`.
    ger(vec2) = mm_::outer;
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
    register_functions(m)?;
    m.add_function(wrap_pyfunction!(linear, m)?)?;
    m.add_function(wrap_pyfunction!(einsum, m)?)?;
    m.add_function(wrap_pyfunction!(tensordot, m)?)
}
