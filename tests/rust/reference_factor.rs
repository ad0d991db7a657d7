//! Factorisations on the reference backend, from their definitions.

use rgrad_kernels::call::{Factor, FactorKind, QrParts, SvdParts};

/// A matrix, row after row.
#[derive(Clone)]
struct M {
    rows: usize,
    columns: usize,
    v: Vec<f64>,
}

impl M {
    fn new(rows: usize, columns: usize, v: &[f64]) -> M {
        M { rows, columns, v: v.to_vec() }
    }

    fn eye(n: usize) -> M {
        M { rows: n, columns: n, v: (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect() }
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        self.v[i * self.columns + j]
    }

    fn set(&mut self, i: usize, j: usize, v: f64) {
        self.v[i * self.columns + j] = v;
    }

    fn t(&self) -> M {
        let v = (0..self.columns).flat_map(|j| (0..self.rows).map(move |i| (i, j))).map(|(i, j)| self.get(i, j)).collect();
        M { rows: self.columns, columns: self.rows, v }
    }

    fn times(&self, b: &M) -> M {
        let mut made = M { rows: self.rows, columns: b.columns, v: vec![0.0; self.rows * b.columns] };
        for i in 0..self.rows {
            for j in 0..b.columns {
                made.set(i, j, (0..self.columns).map(|k| self.get(i, k) * b.get(k, j)).sum());
            }
        }
        made
    }
}

/// The lower factor by rows, and the order of the first minor that is not positive.
fn cholesky(a: &M) -> (M, usize) {
    let n = a.rows;
    let mut l = M { rows: n, columns: n, v: vec![0.0; n * n] };
    for i in 0..n {
        for j in 0..=i {
            let rest = a.get(i, j) - (0..j).map(|k| l.get(i, k) * l.get(j, k)).sum::<f64>();
            if i == j && rest <= 0.0 {
                let kept = (0..n * n).map(|k| if k % n <= k / n { a.v[k] } else { 0.0 }).collect();
                return (M { v: kept, ..*a }, i + 1);
            }
            l.set(i, j, if i == j { rest.sqrt() } else { rest / l.get(j, j) });
        }
    }
    (l, 0)
}

/// Both factors in one, the swapped rows from 1, the first pivot that is 0, and the order of the rows.
fn lu(a: &M, pivot: bool) -> (M, Vec<f64>, usize, Vec<usize>) {
    let (mut m, mut swaps, mut info, mut order) = (a.clone(), vec![], 0, (0..a.rows).collect::<Vec<_>>());
    for j in 0..a.rows.min(a.columns) {
        let mut best = j;
        for i in j + 1..a.rows {
            if pivot && m.get(i, j).abs() > m.get(best, j).abs() {
                best = i;
            }
        }
        (0..a.columns).for_each(|c| m.v.swap(j * a.columns + c, best * a.columns + c));
        order.swap(j, best);
        swaps.push(best as f64 + 1.0);
        if m.get(j, j) == 0.0 {
            info = if info == 0 { j + 1 } else { info };
            continue;
        }
        for i in j + 1..a.rows {
            let by = m.get(i, j) / m.get(j, j);
            m.set(i, j, by);
            (j + 1..a.columns).for_each(|c| m.set(i, c, m.get(i, c) - by * m.get(j, c)));
        }
    }
    (m, swaps, info, order)
}

fn triangular(a: &M, b: &M, upper: bool, unit: bool) -> M {
    let mut x = b.clone();
    for step in 0..a.rows {
        let i = if upper { a.rows - 1 - step } else { step };
        for c in 0..b.columns {
            let known = if upper { i + 1..a.rows } else { 0..i };
            let rest = x.get(i, c) - known.map(|k| a.get(i, k) * x.get(k, c)).sum::<f64>();
            x.set(i, c, if unit { rest } else { rest / a.get(i, i) });
        }
    }
    x
}

fn rows_of(b: &M, order: &[usize]) -> M {
    M { v: order.iter().flat_map(|r| b.v[r * b.columns..(r + 1) * b.columns].to_vec()).collect(), ..*b }
}

fn solved(a: &M, b: &M) -> (M, M, Vec<f64>, usize) {
    let (m, swaps, info, order) = lu(a, true);
    let x = triangular(&m, &triangular(&m, &rows_of(b, &order), false, true), true, false);
    let x = if info == 0 { x } else { M { v: vec![f64::INFINITY; b.v.len()], ..*b } };
    (x, m, swaps, info)
}

fn determinant(a: &M) -> (f64, M, Vec<f64>) {
    let (m, swaps, _, _) = lu(a, true);
    let sign = if swaps.iter().enumerate().filter(|(i, s)| **s != *i as f64 + 1.0).count() % 2 == 1 { -1.0 } else { 1.0 };
    ((0..a.rows).fold(sign, |d, i| d * m.get(i, i)), m, swaps)
}

fn cofactor(a: &M, i: usize, j: usize) -> f64 {
    let n = a.rows;
    let kept: Vec<f64> = (0..n * n).filter(|k| k / n != i && k % n != j).map(|k| a.v[k]).collect();
    let sign = if (i + j) % 2 == 1 { -1.0 } else { 1.0 };
    sign * determinant(&M { rows: n - 1, columns: n - 1, v: kept }).0
}

/// Reflections in place of the columns below the diagonal of `R`, and their factors.
fn reflections(a: &M) -> (M, Vec<f64>) {
    let (mut m, mut tau) = (a.clone(), vec![]);
    for j in 0..a.rows.min(a.columns) {
        let (x, rest) = (m.get(j, j), (j + 1..a.rows).map(|i| m.get(i, j).powi(2)).sum::<f64>());
        if rest == 0.0 {
            tau.push(0.0);
            continue;
        }
        let beta = -x.signum() * (x * x + rest).sqrt();
        let by = (beta - x) / beta;
        (j + 1..a.rows).for_each(|i| m.set(i, j, m.get(i, j) / (x - beta)));
        m.set(j, j, beta);
        for c in j + 1..a.columns {
            let w = by * (m.get(j, c) + (j + 1..a.rows).map(|i| m.get(i, j) * m.get(i, c)).sum::<f64>());
            m.set(j, c, m.get(j, c) - w);
            (j + 1..a.rows).for_each(|i| m.set(i, c, m.get(i, c) - w * m.get(i, j)));
        }
        tau.push(by);
    }
    (m, tau)
}

fn product(v: &M, tau: &[f64], columns: usize) -> M {
    let m = v.rows;
    let mut q = M::eye(m);
    for (j, t) in tau.iter().enumerate() {
        let one: Vec<f64> = (0..m)
            .map(|i| {
                if i < j {
                    0.0
                } else if i == j {
                    1.0
                } else {
                    v.get(i, j)
                }
            })
            .collect();
        let h = M { v: (0..m * m).map(|k| f64::from(u8::from(k % (m + 1) == 0)) - t * one[k / m] * one[k % m]).collect(), ..q };
        q = q.times(&h);
    }
    M { rows: m, columns, v: (0..m * columns).map(|k| q.get(k / columns, k % columns)).collect() }
}

/// The eigenvalues by Jacobi's rotations, which fall.
fn eigenvalues(a: &M) -> Vec<f64> {
    let (n, mut m) = (a.rows, a.clone());
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                if m.get(p, q) == 0.0 {
                    continue;
                }
                let angle = 0.5 * (2.0 * m.get(p, q)).atan2(m.get(q, q) - m.get(p, p));
                let mut turn = M::eye(n);
                turn.set(p, p, angle.cos());
                turn.set(q, q, angle.cos());
                turn.set(p, q, angle.sin());
                turn.set(q, p, -angle.sin());
                m = turn.t().times(&m).times(&turn);
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| m.get(i, i)).collect();
    values.sort_by(|x, y| y.total_cmp(x));
    values
}

/// Factors of a symmetric matrix with a pivot of one row in each step, which a matrix with a large diagonal has, without exchanges.
fn ldl(a: &M) -> (M, Vec<f64>, usize) {
    let n = a.rows;
    let mut m = M { v: (0..n * n).map(|k| if k % n <= k / n { a.v[k] } else { 0.0 }).collect(), ..*a };
    for j in 0..n {
        let d = m.get(j, j);
        let column: Vec<f64> = (j + 1..n).map(|i| m.get(i, j)).collect();
        assert!(column.iter().all(|v| v.abs() <= d.abs()), "the reference backend has no exchanges");
        for i in j + 1..n {
            let by = m.get(i, j) / d;
            (j + 1..=i).for_each(|c| m.set(i, c, m.get(i, c) - by * column[c - j - 1]));
            m.set(i, j, by);
        }
    }
    (m, (1..=n).map(|i| i as f64).collect(), 0)
}

/// As `ldl`, the solution.
fn ldl_solved(ld: &M, swaps: &[f64], b: &M) -> M {
    assert!(swaps.iter().enumerate().all(|(i, s)| *s == i as f64 + 1.0), "the reference backend has no exchanges");
    let mut x = triangular(ld, b, false, true);
    for i in 0..b.rows {
        (0..b.columns).for_each(|c| x.set(i, c, x.get(i, c) / ld.get(i, i)));
    }
    triangular(&ld.t(), &x, true, true)
}

/// All outputs, for all matrices of a batch. Vectors of decompositions are not unique, so the reference backend has values alone.
pub fn outputs(f: &Factor, (m, n, columns): (usize, usize, usize), count: usize, ins: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let mut all: Vec<Vec<f64>> = vec![];
    for b in 0..count {
        let part = |k: usize, size: usize| &ins[k][b * size..(b + 1) * size];
        let a = M::new(m, n, part(0, m * n));
        let right = |k: usize| M::new(n, columns, part(k, n * columns));
        let made = match f.kind {
            FactorKind::Cholesky { upper } => {
                let (l, info) = cholesky(&if upper { a.t() } else { a });
                vec![if upper { l.t().v } else { l.v }, vec![info as f64]]
            }
            FactorKind::Lu { pivot } => {
                let (x, swaps, info, _) = lu(&a, pivot);
                vec![x.v, swaps, vec![info as f64]]
            }
            FactorKind::Determinant { logarithm } => {
                let (d, x, swaps) = determinant(&a);
                let first = if logarithm { vec![vec![if d == 0.0 { 0.0 } else { d.signum() }], vec![d.abs().ln()]] } else { vec![vec![d]] };
                [first, vec![x.v, swaps]].concat()
            }
            FactorKind::Cofactors => vec![(0..n * n).map(|k| cofactor(&a, k / n, k % n)).collect()],
            FactorKind::Triangular { upper, unit } => vec![triangular(&a, &right(1), upper, unit).v],
            FactorKind::LuSolve { adjoint } => {
                let mut order: Vec<usize> = (0..n).collect();
                part(1, n).iter().enumerate().for_each(|(i, p)| order.swap(i, *p as usize - 1));
                let x = right(2);
                if adjoint {
                    let y = triangular(&a.t(), &triangular(&a.t(), &x, false, false), true, true);
                    let mut back = vec![0; n];
                    order.iter().enumerate().for_each(|(i, r)| back[*r] = i);
                    vec![rows_of(&y, &back).v]
                } else {
                    vec![triangular(&a, &triangular(&a, &rows_of(&x, &order), false, true), true, false).v]
                }
            }
            FactorKind::Solve => {
                let (x, factors, swaps, info) = solved(&a, &right(1));
                vec![x.v, factors.v, swaps, vec![info as f64]]
            }
            FactorKind::Inverse => {
                let (x, _, _, info) = solved(&a, &M::eye(n));
                vec![x.v, vec![info as f64]]
            }
            FactorKind::Qr(parts) => {
                let (v, tau) = reflections(&a);
                let least = m.min(n);
                let height = if parts == QrParts::Complete { m } else { least };
                let r = (0..height * n).map(|k| if k % n < k / n { 0.0 } else { v.get(k / n, k % n) }).collect();
                match parts {
                    QrParts::Upper => vec![r],
                    QrParts::Reflectors => vec![v.v, tau],
                    _ => vec![product(&v, &tau, height).v, r],
                }
            }
            FactorKind::Householder => {
                let v = part(1, columns).to_vec();
                vec![product(&a, &v, n).v]
            }
            FactorKind::Reflect { adjoint } => {
                let q = product(&a, part(1, n), m);
                vec![if adjoint { q.t() } else { q }.times(&M::new(m, columns, part(2, m * columns))).v]
            }
            FactorKind::Eigen { upper, vectors: false } => {
                let whole = M {
                    v: (0..n * n).map(|k| (k / n, k % n)).map(|(i, j)| if (i < j) == upper { a.get(i, j) } else { a.get(j, i) }).collect(),
                    ..a
                };
                vec![eigenvalues(&whole).into_iter().rev().collect(), vec![0.0]]
            }
            FactorKind::Svd(SvdParts::Values) => {
                let square = if m < n { a.times(&a.t()) } else { a.t().times(&a) };
                vec![eigenvalues(&square).into_iter().map(|v| v.max(0.0).sqrt()).collect(), vec![0.0]]
            }
            FactorKind::Ldl { .. } => {
                let (ld, swaps, info) = ldl(&a);
                vec![ld.v, swaps, vec![info as f64]]
            }
            FactorKind::LdlSolve { .. } => vec![ldl_solved(&a, part(1, n), &right(2)).v],
            FactorKind::Eigen { .. } | FactorKind::Svd(_) | FactorKind::Spectrum { .. } => return None,
        };
        if all.is_empty() {
            all = vec![vec![]; made.len()];
        }
        all.iter_mut().zip(made).for_each(|(to, v)| to.extend(v));
    }
    Some(all)
}
