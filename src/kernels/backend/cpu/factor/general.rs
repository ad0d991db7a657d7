//! Eigenvalues and eigenvectors of general matrices: balancing, Householder's Hessenberg form, a triangular form (`schur`), and substitution.

use super::balance::Balance;
use super::number::LinearNumber;
use super::qr::{self, Workspace, reflection};
use super::schur::{Hessenberg, SchurNumber};
use super::symmetric::scaled;
use super::update::{Destination, Update, add_scaled, plain_dot};
use crate::host::interrupt;
use crate::host::memory::reserve::filled;
use num_complex::Complex;

type C = Complex<f64>;

/// Elements of vectors beyond this are scaled down.
const LARGE: f64 = (1u64 << 40) as f64;
/// What stands for 0 where it would divide a vector.
const SMALLEST: f64 = 1e-280;

/// The eigenvalues, and the request's `info`.
pub(super) struct Found {
    pub values: Vec<C>,
    pub info: i32,
}

/// The eigenvalues of `a` (n, n), n not 0, which is overwritten, and its eigenvectors as rows if they are wanted.
pub(super) fn general<T: SchurNumber>(n: usize, a: &mut [T], vectors: bool, parallel: bool) -> (Found, Vec<C>) {
    let mut found = Found { values: filled(C::ZERO, n), info: 2 };
    let mut made = filled(C::ZERO, if vectors { n * n } else { 0 });
    let Some(scale) = scaled(a) else { return (found, made) };
    let balance = Balance::of(n, a);
    let (low, high) = (balance.low, balance.high);
    let (mut reflections, mut tau) = (filled(T::ZERO, if vectors { n * n } else { 0 }), filled(T::ZERO, n));
    hessenberg(n, (low, high), a, &mut reflections, &mut tau);
    let mut z = filled(T::ZERO, if vectors { n * n } else { 0 });
    if vectors {
        z[0] = T::ONE;
    }
    if vectors && n > 1 {
        let from = Destination { ptr: reflections.as_mut_ptr(), ld: n }.from(0, 1);
        let target = Destination { ptr: z.as_mut_ptr(), ld: n }.from(1, 1);
        // SAFETY: the rows 0..n-1 of `reflections` from column 1 on, and the part of `z` behind its first row and column.
        unsafe { qr::form(n - 1, n - 1, from, &tau[..n - 1], target, &mut Workspace::new(n - 1, n - 1), parallel) };
    }
    for i in (0..low).chain(high + 1..n) {
        found.values[i] = a[i * n + i].complex();
    }
    let mut at = Hessenberg { n, low, high, h: a, z: vectors.then_some(&mut z[..]) };
    found.info = i32::from(!T::triangular(&mut at, &mut found.values));
    if found.info == 0 && vectors {
        triangular_vectors(n, a, &found.values, &mut made);
        made = product(n, &mut made, &z, parallel);
        balance.undo(n, &mut made);
        pairs(n, &found.values, &mut made, T::IS_REAL);
        made.chunks_exact_mut(n).for_each(normalise);
    }
    found.values.iter_mut().for_each(|v| *v = v.unscale(scale));
    (found, made)
}

/// Leaves the Hessenberg form between the rows `low` and `high` in `a`, the vectors of the reflections in the rows of `vectors` if it is not empty:
/// that of reflection k, which maps what column k has below row k, begins at column k + 1.
fn hessenberg<T: SchurNumber>(n: usize, (low, high): (usize, usize), a: &mut [T], vectors: &mut [T], tau: &mut [T]) {
    let (mut v, mut sums, mut conj) = (filled(T::ZERO, n), filled(T::ZERO, n), filled(T::ZERO, n));
    for k in low..high.saturating_sub(1) {
        interrupt::check();
        let v = &mut v[..high - k];
        v.iter_mut().enumerate().for_each(|(i, v)| *v = a[(k + 1 + i) * n + k]);
        tau[k] = reflection(v);
        a[(k + 1) * n + k] = v[0];
        v[0] = T::ONE;
        (k + 2..=high).for_each(|i| a[i * n + k] = T::ZERO);
        if let Some(row) = vectors.get_mut(k * n + k + 1..k * n + k + 1 + v.len()) {
            row.copy_from_slice(v);
        }
        if tau[k] == T::ZERO {
            continue;
        }
        // A -= conj(tau) v (v^H A), and then A -= tau (A v) v^H.
        let sums = &mut sums[..n - k - 1];
        sums.fill(T::ZERO);
        for (i, by) in v.iter().enumerate() {
            add_scaled(sums, by.conj(), &a[(k + 1 + i) * n + k + 1..(k + 2 + i) * n]);
        }
        let by = tau[k].conj().negated();
        for (i, v) in v.iter().enumerate() {
            add_scaled(&mut a[(k + 1 + i) * n + k + 1..(k + 2 + i) * n], by.times(*v), sums);
        }
        let conj = &mut conj[..v.len()];
        conj.iter_mut().zip(&*v).for_each(|(to, v)| *to = v.conj());
        for row in a.chunks_exact_mut(n).take(high + 1) {
            let part = &mut row[k + 1..=high];
            let by = tau[k].times(plain_dot(part, v)).negated();
            add_scaled(part, by, conj);
        }
    }
}

/// The eigenvectors of a (quasi-)triangular matrix with these eigenvalues, as rows. Of a conjugate pair the second one's row is left alone.
fn triangular_vectors<T: SchurNumber>(n: usize, t: &[T], values: &[C], vectors: &mut [C]) {
    let t: Vec<C> = t.iter().map(|v| v.complex()).collect();
    let norm = t.iter().fold(0.0, |m: f64, v| m.max(v.size()));
    let is_block = |k: usize| k > 0 && t[k * n + k - 1] != C::ZERO;
    let mut e = n;
    while e > 0 {
        interrupt::check();
        e -= 1;
        let mut first = e;
        let (row, value) = if is_block(e) {
            first = e - 1;
            let (b, c) = (t[first * n + e], t[e * n + first]);
            let row = &mut vectors[first * n..e * n];
            let value = values[first];
            if b.size() >= c.size() {
                (row[first], row[e]) = (C::ONE, (value - t[first * n + first]).over(b));
            } else {
                (row[first], row[e]) = ((value - t[e * n + e]).over(c), C::ONE);
            }
            (row, value)
        } else {
            let row = &mut vectors[e * n..(e + 1) * n];
            row[e] = C::ONE;
            (row, values[e])
        };
        let last = e + 1;
        // Differences below the rounding errors of the matrix count as those.
        let least = (f64::EPSILON * value.size()).max(f64::EPSILON * f64::EPSILON * norm).max(SMALLEST);
        let mut j = first;
        while j > 0 {
            j -= 1;
            if is_block(j) {
                let i = j - 1;
                let sums = [i, j].map(|k| -plain_dot(&t[k * n + j + 1..k * n + last], &row[j + 1..last]));
                let (p, q, r, s) = (t[i * n + i] - value, t[i * n + j], t[j * n + i], t[j * n + j] - value);
                solve_pair(row, i, last, [p, q, r, s], sums, least);
                j = i;
                continue;
            }
            let sum = -plain_dot(&t[j * n + j + 1..j * n + last], &row[j + 1..last]);
            let d = t[j * n + j] - value;
            let d = if d.size() < least { C::new(least, 0.0) } else { d };
            let by = shrink(&mut row[j..last], sum.size(), d.size());
            row[j] = sum.scaled(by).over(d);
        }
        e = first;
    }
}

/// Scales a vector down if a quotient with this numerator and denominator would be large beside it. By what.
fn shrink(row: &mut [C], numerator: f64, denominator: f64) -> f64 {
    if numerator <= denominator * LARGE {
        return 1.0;
    }
    let by = denominator / numerator;
    row.iter_mut().for_each(|v| *v = v.scaled(by));
    by
}

/// The elements `i` and `i + 1` of a vector, which `[p, q; r, s]` maps to `sums`.
fn solve_pair(row: &mut [C], i: usize, last: usize, [p, q, r, s]: [C; 4], sums: [C; 2], least: f64) {
    let scale = [p, q, r, s].iter().fold(least, |m, v| m.max(v.size()));
    let [p, q, r, s] = [p, q, r, s].map(|v| v.unscale(scale));
    let det = p * s - q * r;
    let det = if det.size() < least / scale { C::new(least / scale, 0.0) } else { det };
    let (x, y) = (s * sums[0] - q * sums[1], p * sums[1] - r * sums[0]);
    let by = shrink(&mut row[i..last], x.size().max(y.size()), det.size() * scale);
    (row[i], row[i + 1]) = (x.scaled(by).over(det).unscale(scale), y.scaled(by).over(det).unscale(scale));
}

/// The vectors of the matrix from those of its triangular form, rows both, and the transposed transformation.
fn product<T: SchurNumber>(n: usize, vectors: &mut [C], z: &[T], parallel: bool) -> Vec<C> {
    let z: Vec<C> = z.iter().map(|v| -v.complex()).collect();
    let mut made = filled(C::ZERO, n * n);
    let (a, c) = (Destination { ptr: vectors.as_mut_ptr(), ld: n }, Destination { ptr: made.as_mut_ptr(), ld: n });
    let b = super::update::Source::plain(z.as_ptr(), n, 1);
    // SAFETY: three matrices (n, n) of this function or its caller.
    unsafe { Update { sizes: (n, n, n), a: a.source(), b, c }.run(parallel) };
    made
}

/// Fills the second vectors of conjugate pairs in.
fn pairs(n: usize, values: &[C], vectors: &mut [C], is_real: bool) {
    let mut k = 0;
    while is_real && k + 1 < n {
        if values[k].im > 0.0 {
            let (above, below) = vectors.split_at_mut((k + 1) * n);
            below[..n].iter_mut().zip(&above[k * n..]).for_each(|(to, v)| *to = v.conj());
            k += 1;
        }
        k += 1;
    }
}

/// Makes the length 1 and the largest element real, as LAPACK does; a vector of real numbers keeps its sign.
fn normalise(row: &mut [C]) {
    let most = row.iter().fold(0.0, |m: f64, v| m.max(v.size()));
    if most == 0.0 {
        return;
    }
    row.iter_mut().for_each(|v| *v = v.unscale(most));
    let length = row.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
    let largest = (0..row.len()).fold(0, |best, k| if row[k].norm_sqr() > row[best].norm_sqr() { k } else { best });
    if row.iter().all(|v| v.im == 0.0) {
        row.iter_mut().for_each(|v| *v = v.unscale(length));
        return;
    }
    let by = row[largest].conj().unscale(row[largest].magnitude() * length);
    row.iter_mut().for_each(|v| *v *= by);
    row[largest].im = 0.0;
}
