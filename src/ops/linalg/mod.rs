//! Linear algebra: factorisations of matrices, solutions of linear equations and determinants, with derivatives of every order in both modes,
//! over batches. `checks` has PyTorch's errors, `common` what all have in common. Not here: the algorithms (`backend/cpu/factor`), and what the Python
//! package makes of these operations (least squares, ranks, powers, factors of low rank).

pub mod checks;
mod cholesky;
mod common;
mod determinant;
mod exponential;
mod general;
mod indefinite;
mod lu;
mod qr;
mod reflect;
mod singular;
mod solve;
mod symmetric;
mod triangular;

pub use cholesky::{cholesky, cholesky_inverse, cholesky_solve};
pub use determinant::{det, slogdet};
pub use exponential::matrix_exp;
pub use general::{eig, eigvals};
pub use indefinite::{ldl_factor, ldl_solve};
pub use lu::{lu, lu_factor, lu_solve, lu_unpack};
pub use qr::{householder_product, qr, reflectors};
pub use reflect::ormqr;
pub use singular::{pinv, svd, svdvals};
pub use solve::{inv, solve};
pub use symmetric::{eigh, eigvalsh};
pub use triangular::solve_triangular;
