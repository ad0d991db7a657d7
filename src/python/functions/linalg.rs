//! Linear algebra, for `rgrad.linalg`, whose functions have PyTorch's signatures.

use crate::autograd::Tensor;
use crate::ops::linalg as la;
use crate::python::args::tensor;
use crate::python::tensor::PyTensor;
use crate::python::tensor::identity::wrap;
use crate::python::types::{PyObj, PyObjResult};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

/// Several results, as the class of `rgrad.return_types` of this name.
fn named<const N: usize>(py: Python<'_>, name: &str, made: [Tensor; N]) -> PyObjResult {
    static TYPES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let types = TYPES.get_or_try_init(py, || py.import("rgrad.return_types").map(|m| m.into_any().unbind()))?;
    let mut fields = Vec::with_capacity(N);
    for t in made {
        fields.push(wrap(py, t)?);
    }
    Ok(types.bind(py).getattr(name)?.call1(PyTuple::new(py, fields)?)?.unbind())
}

fn second<'a>(obj: &'a PyObj<'_>, function: &str, name: &str) -> PyResult<&'a Tensor> {
    tensor(obj, &format!("{function}(): argument '{name}' (position 2)"))
}

/// Cholesky factors; an error where there are none.
#[pyfunction]
#[pyo3(signature = (A, upper=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_cholesky(A: &Bound<'_, PyTensor>, upper: bool) -> PyObjResult {
    wrap(A.py(), la::cholesky(PyTensor::of(A), upper, true)?.0)
}

/// Cholesky factors, and the orders of the first leading minors that are not positive.
#[pyfunction]
#[pyo3(signature = (A, upper=false, check_errors=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_cholesky_ex(A: &Bound<'_, PyTensor>, upper: bool, check_errors: bool) -> PyObjResult {
    let (l, info) = la::cholesky(PyTensor::of(A), upper, check_errors)?;
    named(A.py(), "linalg_cholesky_ex", [l, info])
}

/// Solutions from Cholesky factors.
#[pyfunction]
#[pyo3(signature = (input, input2, upper=false))]
fn _cholesky_solve(input: &Bound<'_, PyTensor>, input2: &PyObj<'_>, upper: bool) -> PyObjResult {
    wrap(input.py(), la::cholesky_solve(PyTensor::of(input), second(input2, "cholesky_solve", "input2")?, upper)?)
}

/// Inverses from Cholesky factors.
#[pyfunction]
#[pyo3(signature = (input, upper=false))]
fn _cholesky_inverse(input: &Bound<'_, PyTensor>, upper: bool) -> PyObjResult {
    wrap(input.py(), la::cholesky_inverse(PyTensor::of(input), upper)?)
}

/// LU factors and pivots; an error where a pivot is 0.
#[pyfunction]
#[pyo3(signature = (A, pivot=true))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_lu_factor(A: &Bound<'_, PyTensor>, pivot: bool) -> PyObjResult {
    let [lu, pivots, _] = la::lu_factor(PyTensor::of(A), pivot, true)?;
    named(A.py(), "linalg_lu_factor", [lu, pivots])
}

/// LU factors, pivots, and the first pivots that are 0.
#[pyfunction]
#[pyo3(signature = (A, pivot=true, check_errors=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_lu_factor_ex(A: &Bound<'_, PyTensor>, pivot: bool, check_errors: bool) -> PyObjResult {
    named(A.py(), "linalg_lu_factor_ex", la::lu_factor(PyTensor::of(A), pivot, check_errors)?)
}

/// Permutations and both factors.
#[pyfunction]
#[pyo3(signature = (A, pivot=true))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_lu(A: &Bound<'_, PyTensor>, pivot: bool) -> PyObjResult {
    named(A.py(), "linalg_lu", la::lu(PyTensor::of(A), pivot)?)
}

/// Permutations and both factors from those in one matrix.
#[pyfunction]
#[pyo3(signature = (LU_data, LU_pivots, unpack_data=true, unpack_pivots=true))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _lu_unpack(LU_data: &Bound<'_, PyTensor>, LU_pivots: &PyObj<'_>, unpack_data: bool, unpack_pivots: bool) -> PyObjResult {
    let pivots = second(LU_pivots, "lu_unpack", "LU_pivots")?;
    named(LU_data.py(), "lu_unpack", la::lu_unpack(PyTensor::of(LU_data), pivots, unpack_data, unpack_pivots)?)
}

/// Solutions from LU factors.
#[pyfunction]
#[pyo3(signature = (LU, pivots, B, left=true, adjoint=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_lu_solve(LU: &Bound<'_, PyTensor>, pivots: &PyObj<'_>, B: &PyObj<'_>, left: bool, adjoint: bool) -> PyObjResult {
    let (pivots, b) = (second(pivots, "linalg_lu_solve", "pivots")?, tensor(B, "linalg_lu_solve(): argument 'B' (position 3)")?);
    wrap(LU.py(), la::lu_solve(PyTensor::of(LU), pivots, b, left, adjoint)?)
}

/// Inverses; an error where there are none.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_inv(A: &Bound<'_, PyTensor>) -> PyObjResult {
    wrap(A.py(), la::inv("linalg.inv", PyTensor::of(A), true)?.0)
}

/// Inverses, and the first pivots that are 0.
#[pyfunction]
#[pyo3(signature = (A, check_errors=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_inv_ex(A: &Bound<'_, PyTensor>, check_errors: bool) -> PyObjResult {
    let (x, info) = la::inv("linalg.inv_ex", PyTensor::of(A), check_errors)?;
    named(A.py(), "linalg_inv_ex", [x, info])
}

/// Solutions; an error where there are none.
#[pyfunction]
#[pyo3(signature = (A, B, left=true))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_solve(A: &Bound<'_, PyTensor>, B: &PyObj<'_>, left: bool) -> PyObjResult {
    wrap(A.py(), la::solve("linalg.solve", PyTensor::of(A), second(B, "linalg_solve", "B")?, left, true)?.0)
}

/// Solutions, and the first pivots that are 0.
#[pyfunction]
#[pyo3(signature = (A, B, left=true, check_errors=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_solve_ex(A: &Bound<'_, PyTensor>, B: &PyObj<'_>, left: bool, check_errors: bool) -> PyObjResult {
    let (x, info) = la::solve("linalg.solve_ex", PyTensor::of(A), second(B, "linalg_solve_ex", "B")?, left, check_errors)?;
    named(A.py(), "linalg_solve_ex", [x, info])
}

/// Solutions of triangular systems.
#[pyfunction]
#[pyo3(signature = (A, B, upper, left=true, unitriangular=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_solve_triangular(A: &Bound<'_, PyTensor>, B: &PyObj<'_>, upper: bool, left: bool, unitriangular: bool) -> PyObjResult {
    let b = second(B, "linalg_solve_triangular", "B")?;
    wrap(A.py(), la::solve_triangular(PyTensor::of(A), b, upper, left, unitriangular)?)
}

/// Determinants.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_det(A: &Bound<'_, PyTensor>) -> PyObjResult {
    wrap(A.py(), la::det(PyTensor::of(A))?)
}

/// Signs of determinants and logarithms of their magnitudes.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_slogdet(A: &Bound<'_, PyTensor>) -> PyObjResult {
    let (sign, size) = la::slogdet(PyTensor::of(A))?;
    named(A.py(), "linalg_slogdet", [sign, size])
}

/// QR factors.
#[pyfunction]
#[pyo3(signature = (A, mode="reduced"))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_qr(A: &Bound<'_, PyTensor>, mode: &str) -> PyObjResult {
    let (q, r) = la::qr(PyTensor::of(A), mode)?;
    named(A.py(), "linalg_qr", [q, r])
}

/// Eigenvalues and eigenvectors of symmetric matrices.
#[pyfunction]
#[pyo3(signature = (A, UPLO="L"))]
#[allow(non_snake_case, reason = "PyTorch's names")]
fn _linalg_eigh(A: &Bound<'_, PyTensor>, UPLO: &str) -> PyObjResult {
    let (values, vectors) = la::eigh(PyTensor::of(A), UPLO)?;
    named(A.py(), "linalg_eigh", [values, vectors])
}

/// Eigenvalues of symmetric matrices.
#[pyfunction]
#[pyo3(signature = (A, UPLO="L"))]
#[allow(non_snake_case, reason = "PyTorch's names")]
fn _linalg_eigvalsh(A: &Bound<'_, PyTensor>, UPLO: &str) -> PyObjResult {
    wrap(A.py(), la::eigvalsh(PyTensor::of(A), UPLO)?)
}

/// Eigenvalues and eigenvectors of general matrices.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_eig(A: &Bound<'_, PyTensor>) -> PyObjResult {
    let (values, vectors) = la::eig(PyTensor::of(A))?;
    named(A.py(), "linalg_eig", [values, vectors])
}

/// Eigenvalues of general matrices.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_eigvals(A: &Bound<'_, PyTensor>) -> PyObjResult {
    wrap(A.py(), la::eigvals(PyTensor::of(A))?)
}

/// Factors of symmetric or Hermitian matrices, and pivots; an error where a block is 0.
#[pyfunction]
#[pyo3(signature = (A, hermitian=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_ldl_factor(A: &Bound<'_, PyTensor>, hermitian: bool) -> PyObjResult {
    let [ld, pivots, _] = la::ldl_factor("torch.linalg.ldl_factor", PyTensor::of(A), hermitian, true)?;
    named(A.py(), "linalg_ldl_factor", [ld, pivots])
}

/// Factors of symmetric or Hermitian matrices, pivots, and the first blocks that are 0.
#[pyfunction]
#[pyo3(signature = (A, hermitian=false, check_errors=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_ldl_factor_ex(A: &Bound<'_, PyTensor>, hermitian: bool, check_errors: bool) -> PyObjResult {
    let made = la::ldl_factor("torch.linalg.ldl_factor_ex", PyTensor::of(A), hermitian, check_errors)?;
    named(A.py(), "linalg_ldl_factor_ex", made)
}

/// Solutions from factors of symmetric or Hermitian matrices.
#[pyfunction]
#[pyo3(signature = (LD, pivots, B, hermitian=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_ldl_solve(LD: &Bound<'_, PyTensor>, pivots: &PyObj<'_>, B: &PyObj<'_>, hermitian: bool) -> PyObjResult {
    let (pivots, b) = (second(pivots, "linalg_ldl_solve", "pivots")?, tensor(B, "linalg_ldl_solve(): argument 'B' (position 3)")?);
    wrap(LD.py(), la::ldl_solve(PyTensor::of(LD), pivots, b, hermitian)?)
}

/// Products of reflections with matrices.
#[pyfunction]
#[pyo3(signature = (input, tau, other, left=true, transpose=false))]
fn _ormqr(input: &Bound<'_, PyTensor>, tau: &PyObj<'_>, other: &PyObj<'_>, left: bool, transpose: bool) -> PyObjResult {
    let (tau, other) = (second(tau, "ormqr", "input2")?, tensor(other, "ormqr(): argument 'input3' (position 3)")?);
    wrap(input.py(), la::ormqr(PyTensor::of(input), tau, other, left, transpose)?)
}

/// Exponentials of square matrices.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_matrix_exp(A: &Bound<'_, PyTensor>) -> PyObjResult {
    wrap(A.py(), la::matrix_exp(PyTensor::of(A))?)
}

/// Singular values and vectors.
#[pyfunction]
#[pyo3(signature = (A, full_matrices=true))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_svd(A: &Bound<'_, PyTensor>, full_matrices: bool) -> PyObjResult {
    named(A.py(), "linalg_svd", la::svd("linalg.svd", PyTensor::of(A), full_matrices)?)
}

/// Singular values.
#[pyfunction]
#[pyo3(signature = (A, name="linalg.svdvals"))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_svdvals(A: &Bound<'_, PyTensor>, name: &str) -> PyObjResult {
    wrap(A.py(), la::svdvals(name, PyTensor::of(A))?)
}

/// Pseudo-inverses, with a limit for each matrix up to which singular values count as 0.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_pinv(A: &Bound<'_, PyTensor>, limits: &PyObj<'_>, hermitian: bool) -> PyObjResult {
    wrap(A.py(), la::pinv(PyTensor::of(A), second(limits, "linalg_pinv", "limits")?, hermitian)?)
}

/// The reflections of a QR factorisation, and their factors.
#[pyfunction]
fn _geqrf(input: &Bound<'_, PyTensor>) -> PyObjResult {
    let (a, tau) = la::reflectors(PyTensor::of(input))?;
    named(input.py(), "geqrf", [a, tau])
}

/// The first columns of a product of reflections.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_householder_product(A: &Bound<'_, PyTensor>, tau: &PyObj<'_>) -> PyObjResult {
    wrap(A.py(), la::householder_product(PyTensor::of(A), second(tau, "linalg_householder_product", "tau")?)?)
}

/// The tensor, in float32 if autocast is on; an error unless it is a batch of matrices of floats or complex numbers of 32 or 64 bits a part.
#[pyfunction]
#[pyo3(signature = (name, A, which="A", square=false))]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_matrices(name: &str, A: &Bound<'_, PyTensor>, which: &str, square: bool) -> PyObjResult {
    wrap(A.py(), la::checks::matrices(name, PyTensor::of(A), which, square)?)
}

/// As `_linalg_matrices`, of any shape.
#[pyfunction]
#[allow(non_snake_case, reason = "PyTorch's name")]
fn _linalg_floats(name: &str, A: &Bound<'_, PyTensor>) -> PyObjResult {
    wrap(A.py(), la::checks::floats(name, PyTensor::of(A))?)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_linalg_cholesky, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_cholesky_ex, m)?)?;
    m.add_function(wrap_pyfunction!(_cholesky_solve, m)?)?;
    m.add_function(wrap_pyfunction!(_cholesky_inverse, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_lu_factor, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_lu_factor_ex, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_lu, m)?)?;
    m.add_function(wrap_pyfunction!(_lu_unpack, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_lu_solve, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_inv, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_inv_ex, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_solve, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_solve_ex, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_solve_triangular, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_det, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_slogdet, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_qr, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_eigh, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_eigvalsh, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_eig, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_eigvals, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_ldl_factor, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_ldl_factor_ex, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_ldl_solve, m)?)?;
    m.add_function(wrap_pyfunction!(_ormqr, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_matrix_exp, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_svd, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_svdvals, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_pinv, m)?)?;
    m.add_function(wrap_pyfunction!(_geqrf, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_householder_product, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_matrices, m)?)?;
    m.add_function(wrap_pyfunction!(_linalg_floats, m)?)
}
