//! Factorisations on the CPU and on the reference backend; decompositions, whose vectors are not unique, by what they must satisfy.

use super::contract::{array, both};
use rgrad::array::Array;
use rgrad::call::{Factor, FactorKind, QrParts, Request, SvdParts};
use rgrad::layout::DType;

fn run(kind: FactorKind, ins: &[&Array], outs: &[(&[usize], DType)]) -> rgrad::error::Result<Vec<Array>> {
    Ok(Array::request(Request::Factor(Factor { op: "factor", kind }), ins, outs)?.into_vec())
}

/// A batch of matrices with a large diagonal, of one or of many.
fn matrices(batch: usize, m: usize, n: usize, dtype: DType) -> Array {
    let x = array(&[batch, m, n], DType::F64, batch + m + n).to_vec::<f64>().unwrap();
    let v: Vec<f64> = x.iter().enumerate().map(|(k, v)| v + if k % (m * n) / n == k % n { 2.0 + (k % n) as f64 } else { 0.0 }).collect();
    Array::from_slice(&v, &[batch, m, n]).unwrap().cast(dtype).unwrap()
}

#[test]
pub fn factorisations() {
    for dtype in [DType::F32, DType::F64] {
        // One matrix, some, and so many that they are handled side by side.
        for (batch, n) in [(1, 3), (1, 40), (5, 2), (18, 4)] {
            let a = matrices(batch, n, n, dtype);
            let b = array(&[batch, n, 3], dtype, 7);
            let (square, right, rows, one): (&[usize], &[usize], &[usize], &[usize]) =
                (&[batch, n, n], &[batch, n, 3], &[batch, n], &[batch]);
            let definite = a.matmul(&a, (false, true)).unwrap();
            for upper in [false, true] {
                let kind = FactorKind::Cholesky { upper };
                both("cholesky", &[&definite], |i| run(kind, i, &[(square, dtype), (one, DType::I32)]));
                both("cholesky fails", &[&b_like(&a)], |i| run(kind, i, &[(square, dtype), (one, DType::I32)]));
                for unit in [false, true] {
                    both("triangular", &[&a, &b], |i| run(FactorKind::Triangular { upper, unit }, i, &[(right, dtype)]));
                }
                let kind = FactorKind::Eigen { upper, vectors: false };
                // Of large ones in float32 the small eigenvalues have the errors of the large.
                if dtype == DType::F64 || n < 10 {
                    both("eigenvalues", &[&definite], |i| run(kind, i, &[(rows, dtype), (one, DType::I32)]));
                }
            }
            for hermitian in [false, true] {
                let outs = [(square, dtype), (rows, DType::I32), (one, DType::I32)];
                let large = matrices(batch, n, n, dtype).matmul(&matrices(batch, n, n, dtype), (false, true)).unwrap();
                let large = dominant(&large);
                both("ldl", &[&large], |i| run(FactorKind::Ldl { hermitian }, i, &outs));
                let ld = run(FactorKind::Ldl { hermitian }, &[&large], &outs).unwrap();
                both("ldl_solve", &[&ld[0], &ld[1], &b], |i| run(FactorKind::LdlSolve { hermitian }, i, &[(right, dtype)]));
            }
            for pivot in [false, true] {
                both("lu", &[&a], |i| run(FactorKind::Lu { pivot }, i, &[(square, dtype), (rows, DType::I32), (one, DType::I32)]));
            }
            let wanted = [(one, dtype), (square, dtype), (rows, DType::I32)];
            both("det", &[&a], |i| run(FactorKind::Determinant { logarithm: false }, i, &wanted));
            let wanted = [(one, dtype), (one, dtype), (square, dtype), (rows, DType::I32)];
            both("slogdet", &[&a], |i| run(FactorKind::Determinant { logarithm: true }, i, &wanted));
            if n < 10 {
                both("cofactors", &[&a], |i| run(FactorKind::Cofactors, i, &[(square, dtype)]));
            }
            let wanted = [(right, dtype), (square, dtype), (rows, DType::I32), (one, DType::I32)];
            both("solve", &[&a, &b], |i| run(FactorKind::Solve, i, &wanted));
            both("inverse", &[&a], |i| run(FactorKind::Inverse, i, &[(square, dtype), (one, DType::I32)]));
            let factors = run(FactorKind::Lu { pivot: true }, &[&a], &[(square, dtype), (rows, DType::I32), (one, DType::I32)]).unwrap();
            for adjoint in [false, true] {
                both("lu_solve", &[&factors[0], &factors[1], &b], |i| run(FactorKind::LuSolve { adjoint }, i, &[(right, dtype)]));
            }
        }
        for (m, n) in [(4, 4), (6, 3), (3, 6), (70, 68)] {
            let (a, k) = (matrices(2, m, n, dtype), m.min(n));
            let wanted: [(&[usize], DType); 2] = [(&[2, m, k], dtype), (&[2, k, n], dtype)];
            both("qr", &[&a], |i| run(FactorKind::Qr(QrParts::Reduced), i, &wanted));
            both("qr r", &[&a], |i| run(FactorKind::Qr(QrParts::Upper), i, &wanted[1..]));
            let complete: [(&[usize], DType); 2] = [(&[2, m, m], dtype), (&[2, m, n], dtype)];
            both("qr complete", &[&a], |i| run(FactorKind::Qr(QrParts::Complete), i, &complete));
            both("reflectors", &[&a], |i| run(FactorKind::Qr(QrParts::Reflectors), i, &[(&[2, m, n], dtype), (&[2, k], dtype)]));
            let kind = FactorKind::Svd(SvdParts::Values);
            if m < 10 {
                both("singular values", &[&a], |i| run(kind, i, &[(&[2, k], dtype), (&[2], DType::I32)]));
            }
            if m >= n {
                let v = run(FactorKind::Qr(QrParts::Reflectors), &[&a], &[(&[2, m, n], dtype), (&[2, k], dtype)]).unwrap();
                both("householder", &[&v[0], &v[1]], |i| run(FactorKind::Householder, i, &[(&[2, m, n], dtype)]));
                let c = array(&[2, m, 5], dtype, 3);
                for adjoint in [false, true] {
                    both("ormqr", &[&v[0], &v[1], &c], |i| run(FactorKind::Reflect { adjoint }, i, &[(&[2, m, 5], dtype)]));
                }
            }
        }
    }
}

/// With so large a diagonal that no rows are exchanged.
fn dominant(a: &Array) -> Array {
    let n = a.shape()[2];
    let v = a.to_vec::<f64>().unwrap().into_iter().enumerate();
    let v: Vec<f64> = v.map(|(k, v)| if k % (n * n) / n == k % n { v + 100.0 * n as f64 } else { v }).collect();
    Array::from_slice(&v, a.shape()).unwrap().cast(a.dtype()).unwrap()
}

/// Matrices that are not positive-definite.
fn b_like(a: &Array) -> Array {
    let v: Vec<f64> = a.to_vec::<f64>().unwrap().into_iter().enumerate().map(|(k, v)| if k % 5 == 4 { -v } else { v - 3.0 }).collect();
    Array::from_slice(&v, a.shape()).unwrap().cast(a.dtype()).unwrap()
}
