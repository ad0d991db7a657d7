//! What is refused, in PyTorch's words.

use crate::array::Array;
use crate::array::Device;
use crate::autograd::Tensor;
use crate::autograd::dispatch::autocast;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::DType;

/// The kernels that PyTorch names when it refuses a dtype. Functions that are not listed refuse it before; `true`: integers, too.
const KERNELS: &[(&str, &str, bool)] = &[
    ("linalg.det", "lu_cpu", false),
    ("linalg.solve", "lu_cpu", false),
    ("linalg.solve_ex", "lu_cpu", false),
    ("linalg.lu", "lu_cpu", true),
    ("linalg.lu_factor", "lu_cpu", true),
    ("linalg.eigh", "linalg_eigh_cpu", true),
    ("linalg.eigvalsh", "linalg_eigh_cpu", true),
    ("linalg.svd", "linalg_svd_cpu", false),
    ("linalg.svdvals", "linalg_svd_cpu", false),
    ("linalg.cond", "linalg_svd_cpu", false),
    ("linalg.matrix_norm", "linalg_svd_cpu", false),
    ("linalg.qr", "geqrf_cpu", false),
    ("linalg.cholesky", "cholesky_cpu", false),
    ("cholesky_inverse", "cholesky_inverse_out_cpu", true),
    ("cholesky_solve", "cholesky_solve_cpu", true),
    ("linalg.solve_triangular", "triangular_solve_cpu", true),
    ("linalg.eig", "linalg_eig_out_cpu", false),
    ("torch.linalg.ldl_factor", "ldl_factor_kernel_cpu", false),
    ("torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu", false),
    ("torch.linalg.ldl_solve", "ldl_solve_kernel_cpu", false),
    ("torch.ormqr", "ormqr_cpu", true),
];

/// The tensor, in float32 if autocast is on. Refuses other dtypes than float32, float64, complex64 and complex128.
///
/// # Errors
/// Floats and complex numbers of 16 bits, integers and truth values.
pub fn floats(name: &str, a: &Tensor) -> Result<Tensor> {
    let a = widened(a)?;
    let dtype = a.dtype();
    if matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Ok(a);
    }
    let (kernel, text) = (KERNELS.iter().find(|k| k.0 == name), dtype.type_name());
    match kernel {
        Some((_, kernel, integers)) if dtype.is_differentiable() || *integers => {
            Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{text}'")))
        }
        _ if dtype.is_differentiable() => Err(Error::runtime(format!("{name}: Low precision dtypes not supported. Got {text}"))),
        _ => Err(Error::runtime(format!("{name}: Expected a floating point or complex tensor as input. Got {text}"))),
    }
}

/// The tensor as a function takes it that autocast runs in float32.
pub(super) fn widened(a: &Tensor) -> Result<Tensor> {
    Ok(autocast::widen([a])?.of([a])[0].clone())
}

/// As `floats`, of batches of matrices.
///
/// # Errors
/// As for `floats`; fewer than two dimensions, or other matrices than square ones where those are asked for.
pub fn matrices(name: &str, a: &Tensor, which: &str, square: bool) -> Result<Tensor> {
    let shape = a.shape();
    let [.., m, n] = shape[..] else {
        return Err(Error::runtime(format!("{name}: The input tensor {which} must have at least 2 dimensions.")));
    };
    if square && m != n {
        return Err(Error::runtime(format!("{name}: {which} must be batches of square matrices, but they are {m} by {n} matrices")));
    }
    floats(name, a)
}

/// Refuses two tensors that are no system of linear equations.
pub(super) fn system(name: &str, a: &Tensor, b: &Tensor, left: bool) -> Result<()> {
    if a.dtype() != b.dtype() {
        let (x, y) = (a.dtype(), b.dtype());
        return Err(Error::runtime(format!(
            "{name}: Expected A and B to have the same dtype, but found A of type {x} and B of type {y} instead"
        )));
    }
    let (sa, sb) = (a.shape(), b.shape());
    let [.., m, n] = sb[..] else { return Err(Error::runtime(format!("{name}: The input tensor B must have at least 2 dimensions."))) };
    let (p, q) = (sa[sa.len() - 2], sa[sa.len() - 1]);
    if q != if left { m } else { n } {
        let equation = if left { "AX = B" } else { "XA = B" };
        return Err(Error::runtime(format!("{name}: Incompatible shapes of A and B for the equation {equation} ({p}x{q} and {m}x{n})")));
    }
    Ok(())
}

/// The `info` of a matrix that is not finite, where eigenvalues of general matrices are computed.
const NOT_FINITE: i32 = 2;

/// What `info` says of a matrix, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) enum Failure {
    Cholesky,
    Inverse,
    Solve,
    Lu,
    Eigen,
    Svd,
    Spectrum,
    Ldl,
}

/// Refuses the first matrix of a batch whose `info` is not 0.
pub(super) fn all_succeeded(info: &Array, what: Failure) -> Result<()> {
    if info.device() == Device::META {
        return Ok(());
    }
    let all = info.to_vec::<i32>()?;
    let Some((at, k)) = all.iter().enumerate().find(|(_, k)| **k != 0) else { return Ok(()) };
    let place = if info.rank() == 0 { String::new() } else { format!("(Batch element {at}): ") };
    Err(match what {
        Failure::Cholesky => Error::new(
            ErrorKind::LinearAlgebra,
            format!(
                "linalg.cholesky: {place}The factorization could not be completed because the input is not positive-definite (the leading minor of \
                 order {k} is not positive-definite)."
            ),
        ),
        Failure::Inverse => Error::new(
            ErrorKind::LinearAlgebra,
            format!(
                "linalg.inv: {place}The diagonal element {k} is zero, the inversion could not be completed because the input matrix is singular."
            ),
        ),
        Failure::Solve => Error::new(
            ErrorKind::LinearAlgebra,
            format!("torch.linalg.solve: {place}The solver failed because the input matrix is singular."),
        ),
        Failure::Spectrum if *k == NOT_FINITE => Error::runtime("torch.linalg.eig: input tensor should not contain infs or NaNs."),
        Failure::Spectrum => Error::new(
            ErrorKind::LinearAlgebra,
            format!(
                "torch.linalg.eig: {place}The algorithm failed to converge; scale the matrix, or look for entries of very different sizes."
            ),
        ),
        Failure::Ldl => Error::new(
            ErrorKind::LinearAlgebra,
            format!(
                "torch.linalg.ldl_factor: {place}D[{k},{k}] is zero and using it on ldl_solve would result in a division by zero. If you still want \
                 the factorization, call linalg.ldl_factor_ex(A)"
            ),
        ),
        Failure::Eigen | Failure::Svd => {
            let (name, values) = if matches!(what, Failure::Eigen) { ("eigh", "eigenvalues") } else { ("svd", "singular values") };
            let text = "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated";
            Error::new(ErrorKind::LinearAlgebra, format!("linalg.{name}: {place}{text} {values} (error code: {k})."))
        }
        Failure::Lu => Error::runtime(format!(
            "torch.linalg.lu_factor: {place}U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. If you still want to \
             perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )),
    })
}
