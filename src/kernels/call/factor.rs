//! Factorisations of matrices, and solutions of linear equations that are made of them.

use super::family::{Elems, Family, Flags, Provenance, Reads, Seen};
use crate::layout::DType;

/// Which parts of a QR factorisation are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QrParts {
    /// `Q` of (m, k) and `R` of (k, n), for `k` the smaller of both sizes.
    Reduced,
    /// `Q` of (m, m) and `R` of (m, n).
    Complete,
    /// `R` of (k, n) alone.
    Upper,
    /// Reflectors below the diagonal of `R`, (m, n), and their factors, (k).
    Reflectors,
}

/// Which parts of a decomposition into singular values are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SvdParts {
    /// The values, (k), for `k` the smaller of both sizes.
    Values,
    /// `U` of (m, k), the values, and `V^H` of (k, n).
    Reduced,
    /// `U` of (m, m), the values, and `V^H` of (n, n).
    Full,
}

/// What is computed of a batch of matrices. All operands and outputs have the same leading dimensions; `info` and the pivots are int32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FactorKind {
    /// Of (n, n), of which one triangle is read: the lower factor, or the upper one, and `info`: 0, or the order of the first leading minor that
    /// is not positive.
    Cholesky {
        upper: bool,
    },
    /// Of (m, n): both factors in one matrix, the rows that were swapped, counted from 1, and `info`: 0, or the first pivot that is 0.
    Lu {
        pivot: bool,
    },
    /// Of (n, n): the determinant, or its sign and the logarithm of its magnitude, then the factors and the pivots.
    Determinant {
        logarithm: bool,
    },
    /// Of (n, n): the cofactors, (n, n), which singular matrices have, too.
    Cofactors,
    /// Of triangular (n, n) and of (n, k): the solution of `A X = B`.
    Triangular {
        upper: bool,
        unit: bool,
    },
    /// Of factors (n, n), pivots (n) and (n, k): the solution of `A X = B`, or of `A^H X = B`.
    LuSolve {
        adjoint: bool,
    },
    /// Of (n, n) and (n, k): the solution of `A X = B`, the factors, the pivots and `info`.
    Solve,
    /// Of (n, n): the inverse and `info`.
    Inverse,
    Qr(QrParts),
    /// Of symmetric or Hermitian (n, n), of which one triangle is read: the eigenvalues, which are real and rise, the eigenvectors as columns if
    /// they are wanted, and `info`: 1 if a value was not found.
    Eigen {
        upper: bool,
        vectors: bool,
    },
    /// Of any (n, n): the eigenvalues, the eigenvectors as columns of length 1 if they are wanted, both complex, and `info`: 1 if a value was not
    /// found, 2 if the matrix is not finite. Those of a real matrix come in conjugate pairs, the one with the positive imaginary part first.
    Spectrum {
        vectors: bool,
    },
    /// Of (m, n): the parts; the values are real and fall. Then `info`: 1 if a value was not found.
    Svd(SvdParts),
    /// Of reflectors (m, n) and their factors (k): the first n columns of their product.
    Householder,
    /// Of reflectors (m, k), their factors (k) and (m, n): the product of the reflections with the last one, or that of their adjoint.
    Reflect {
        adjoint: bool,
    },
    /// Of symmetric or Hermitian (n, n), of which the lower triangle is read: `L` and `D` of `L D L^T` (or `L D L^H`) in one matrix, the pivots and
    /// `info`, as LAPACK's `sytrf` (or `hetrf`) has them.
    Ldl {
        hermitian: bool,
    },
    /// Of what `Ldl` makes, (n, n) and (n), and of (n, k): the solution of `A X = B`.
    LdlSolve {
        hermitian: bool,
    },
}

/// Outputs are row-major. Of a matrix whose `info` is not 0, inverse and solution are infinite, the Cholesky factor is its triangle, and LU factors
/// are as far as they exist.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Factor {
    pub op: &'static str,
    pub kind: FactorKind,
}

/// Leading dimensions and the last `N` sizes.
fn split<const N: usize>(shape: &[usize]) -> Option<(&[usize], [usize; N])> {
    let at = shape.len().checked_sub(N)?;
    Some((&shape[..at], shape[at..].try_into().ok()?))
}

impl Factor {
    /// The sizes (rows, columns, columns of the right side) if operands and outputs are what the kind describes.
    pub fn sizes(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> Option<(usize, usize, usize)> {
        let (shape, dtype) = ins.first().copied().flatten()?;
        let (batch, [m, n]) = split::<2>(shape)?;
        let least = m.min(n);
        let is = |seen: Option<&Seen<'_>>, last: &[usize], d: DType| {
            seen.copied()
                .flatten()
                .is_some_and(|(s, of)| of == d && s.len() == batch.len() + last.len() && s.starts_with(batch) && s.ends_with(last))
        };
        let square = m == n;
        let (real, complex) = (dtype.row().real, dtype.row().complex?);
        let right = |k: usize| -> Option<usize> {
            let (b, [rows, columns]) = split::<2>(ins.get(k).copied().flatten()?.0)?;
            (b == batch && rows == n && ins[k].is_some_and(|s| s.1 == dtype)).then_some(columns)
        };
        let info = DType::I32;
        let all =
            |wanted: &[(&[usize], DType)]| outs.len() == wanted.len() && wanted.iter().zip(outs).all(|((s, d), o)| is(Some(o), s, *d));
        let mut columns = 0;
        let fits = match self.kind {
            FactorKind::Cholesky { .. } | FactorKind::Inverse => ins.len() == 1 && square && all(&[(&[n, n], dtype), (&[], info)]),
            FactorKind::Lu { .. } => ins.len() == 1 && all(&[(&[m, n], dtype), (&[least], info), (&[], info)]),
            FactorKind::Determinant { logarithm } => {
                let wanted: [(&[usize], DType); 4] = [(&[], dtype), (&[], real), (&[n, n], dtype), (&[n], info)];
                ins.len() == 1 && square && if logarithm { all(&wanted) } else { all(&[wanted[0], wanted[2], wanted[3]]) }
            }
            FactorKind::Cofactors => ins.len() == 1 && square && all(&[(&[n, n], dtype)]),
            FactorKind::Triangular { .. } => {
                columns = right(1)?;
                ins.len() == 2 && square && all(&[(&[n, columns], dtype)])
            }
            FactorKind::LuSolve { .. } | FactorKind::LdlSolve { .. } => {
                columns = right(2)?;
                ins.len() == 3 && square && is(ins.get(1), &[n], info) && all(&[(&[n, columns], dtype)])
            }
            FactorKind::Solve => {
                columns = right(1)?;
                ins.len() == 2 && square && all(&[(&[n, columns], dtype), (&[n, n], dtype), (&[n], info), (&[], info)])
            }
            FactorKind::Qr(parts) => {
                ins.len() == 1
                    && match parts {
                        QrParts::Reduced => all(&[(&[m, least], dtype), (&[least, n], dtype)]),
                        QrParts::Complete => all(&[(&[m, m], dtype), (&[m, n], dtype)]),
                        QrParts::Upper => all(&[(&[least, n], dtype)]),
                        QrParts::Reflectors => all(&[(&[m, n], dtype), (&[least], dtype)]),
                    }
            }
            FactorKind::Eigen { vectors, .. } => {
                let wanted: [(&[usize], DType); 3] = [(&[n], real), (&[n, n], dtype), (&[], info)];
                ins.len() == 1 && square && if vectors { all(&wanted) } else { all(&[wanted[0], wanted[2]]) }
            }
            FactorKind::Spectrum { vectors } => {
                let wanted: [(&[usize], DType); 3] = [(&[n], complex), (&[n, n], complex), (&[], info)];
                ins.len() == 1 && square && if vectors { all(&wanted) } else { all(&[wanted[0], wanted[2]]) }
            }
            FactorKind::Ldl { .. } => ins.len() == 1 && square && all(&[(&[n, n], dtype), (&[n], info), (&[], info)]),
            FactorKind::Svd(parts) => {
                let values = (&[least][..], real);
                ins.len() == 1
                    && match parts {
                        SvdParts::Values => all(&[values, (&[], info)]),
                        SvdParts::Reduced => all(&[(&[m, least], dtype), values, (&[least, n], dtype), (&[], info)]),
                        SvdParts::Full => all(&[(&[m, m], dtype), values, (&[n, n], dtype), (&[], info)]),
                    }
            }
            FactorKind::Householder => {
                let (b, [k]) = split::<1>(ins.get(1).copied().flatten()?.0)?;
                columns = k;
                ins.len() == 2 && b == batch && k <= n && n <= m && is(ins.get(1), &[k], dtype) && all(&[(&[m, n], dtype)])
            }
            FactorKind::Reflect { .. } => {
                let (_, [_, k]) = split::<2>(ins.get(2).copied().flatten()?.0)?;
                columns = k;
                ins.len() == 3 && n <= m && is(ins.get(1), &[n], dtype) && is(ins.get(2), &[m, k], dtype) && all(&[(&[m, k], dtype)])
            }
        };
        fits.then_some((m, n, columns))
    }
}

impl Family for Factor {
    fn name(&self) -> &'static str {
        self.op
    }

    fn elems(&self) -> Elems {
        Elems::differentiable_if(true)
    }

    fn provenance(&self) -> Provenance {
        Provenance::Computed
    }

    fn accepts(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> bool {
        ins.first().copied().flatten().is_some_and(|(_, d)| d.is_differentiable()) && self.sizes(ins, outs).is_some()
    }

    /// The multiply-adds of one pass over the matrices for each row: between a third and three times what is computed.
    fn work(&self, ins: &[Seen<'_>], outs: &[Seen<'_>]) -> u64 {
        let Some((m, n, k)) = self.sizes(ins, outs) else { return 0 };
        let batch = ins.first().copied().flatten().map_or(0, |(s, _)| s[..s.len() - 2].iter().product::<usize>());
        [m, n.max(k), n].iter().fold(batch as u64, |w, s| w.saturating_mul(*s as u64))
    }

    fn outputs(&self) -> usize {
        match self.kind {
            FactorKind::Cofactors
            | FactorKind::Triangular { .. }
            | FactorKind::LuSolve { .. }
            | FactorKind::LdlSolve { .. }
            | FactorKind::Householder
            | FactorKind::Reflect { .. }
            | FactorKind::Qr(QrParts::Upper) => 1,
            FactorKind::Cholesky { .. }
            | FactorKind::Inverse
            | FactorKind::Qr(_)
            | FactorKind::Eigen { vectors: false, .. }
            | FactorKind::Spectrum { vectors: false }
            | FactorKind::Svd(SvdParts::Values) => 2,
            FactorKind::Lu { .. }
            | FactorKind::Ldl { .. }
            | FactorKind::Determinant { logarithm: false }
            | FactorKind::Eigen { vectors: true, .. }
            | FactorKind::Spectrum { vectors: true } => 3,
            FactorKind::Determinant { logarithm: true } | FactorKind::Solve | FactorKind::Svd(_) => 4,
        }
    }

    fn reads(&self, _k: usize) -> Reads {
        Reads::InMemory
    }

    fn flags(&self) -> Flags {
        Flags::NONE
    }

    fn samples() -> Vec<Self> {
        [
            ("cholesky", FactorKind::Cholesky { upper: false }),
            ("lu_factor", FactorKind::Lu { pivot: true }),
            ("det", FactorKind::Determinant { logarithm: false }),
            ("solve_triangular", FactorKind::Triangular { upper: true, unit: false }),
            ("lu_solve", FactorKind::LuSolve { adjoint: false }),
            ("solve", FactorKind::Solve),
            ("inv", FactorKind::Inverse),
            ("qr", FactorKind::Qr(QrParts::Reduced)),
            ("eigh", FactorKind::Eigen { upper: false, vectors: true }),
            ("eig", FactorKind::Spectrum { vectors: true }),
            ("svd", FactorKind::Svd(SvdParts::Reduced)),
            ("householder_product", FactorKind::Householder),
            ("ormqr", FactorKind::Reflect { adjoint: false }),
            ("ldl_factor", FactorKind::Ldl { hermitian: false }),
            ("ldl_solve", FactorKind::LdlSolve { hermitian: false }),
        ]
        .into_iter()
        .map(|(op, kind)| Factor { op, kind })
        .collect()
    }
}
