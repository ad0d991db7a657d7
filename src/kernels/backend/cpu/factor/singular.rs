//! Singular values and vectors: Householder's bidiagonal form, then implicit QR steps (Golub and Reinsch 1970; the steps are those of LINPACK's
//! `dsvdc`).

use super::number::LinearNumber;
use super::qr::{self, Workspace, reflection};
use super::rotations::{Panels, length};
use super::symmetric::scaled;
use super::update::{Destination, add_scaled, plain_dot};
use crate::host::interrupt;
use crate::host::memory::reserve::filled;
use crate::host::threads::{SharedPointer, parallel_for};
use std::slice::from_raw_parts_mut;

/// Steps for one value before it counts as not found, and those after which precision beside the largest one is enough.
const STEPS: usize = 75;
const MANY_STEPS: usize = 12;
/// Rows from which on several threads help, and how many one task has.
const PARALLEL: usize = 192;
const TASK: usize = 64;

/// The vectors of a decomposition, as rows: of `left` as many as it has rows of m, of `right`, whose vectors are conjugated, n rows of n.
pub(super) struct Vectors<'a, T> {
    pub left: &'a mut [T],
    pub right: &'a mut [T],
}

/// The singular values of `a` (m, n), m not below n, which fall, and the vectors if they are wanted. `a` is overwritten. False if a value was not
/// found, or the matrix is not finite.
pub(super) fn singular<T: LinearNumber>(
    (m, n): (usize, usize),
    a: &mut [T],
    values: &mut [T::Real],
    vectors: Option<Vectors<'_, T>>,
    parallel: bool,
) -> bool {
    let Some(scale) = scaled(a) else { return false };
    let (mut e, mut left_tau, mut right_tau) = (filled(T::ZERO.real(), n), filled(T::ZERO, n), filled(T::ZERO, n));
    // The vectors of the reflections: on the left as rows of m.
    let mut reflections = filled(T::ZERO, if vectors.is_some() { n * m } else { 0 });
    bidiagonal((m, n), a, values, &mut e, (&mut left_tau, &mut right_tau), &mut reflections, parallel);
    let mut panels = vectors.as_ref().map(|v| {
        let columns = v.left.len() / m;
        let mut q = filled(T::ZERO, columns * m);
        let target = Destination { ptr: q.as_mut_ptr(), ld: m };
        // SAFETY: the reflections have n rows of m, and q has rows of m.
        let left = unsafe {
            let from = Destination { ptr: reflections.as_mut_ptr(), ld: m };
            qr::form(m, columns, from, &left_tau, target, &mut Workspace::new(m, columns), parallel);
            Panels::of(columns, m, target)
        };
        let mut q = filled(T::ZERO, n * n);
        let target = Destination { ptr: q.as_mut_ptr(), ld: n };
        q[0] = T::ONE;
        // SAFETY: the rows of `a` from column 1 on hold the vectors of the right.
        let right = unsafe {
            if n > 1 {
                let from = Destination { ptr: a.as_mut_ptr(), ld: n }.from(0, 1);
                qr::form(n - 1, n - 1, from, &right_tau[..n - 1], target.from(1, 1), &mut Workspace::new(n - 1, n - 1), parallel);
            }
            Panels::of(n, n, target)
        };
        (left, right)
    });
    let found = steps(values, &mut e, panels.as_mut().map(|(l, r)| (l, r)), parallel);
    if let Some((left, right)) = &mut panels {
        left.apply(parallel);
        right.apply(parallel);
        for (i, s) in values.iter_mut().enumerate() {
            if *s < T::ZERO.real() {
                *s = s.negated();
                right.negate(i, parallel);
            }
        }
    } else {
        values.iter_mut().for_each(|s| *s = s.magnitude());
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| values[*j].partial_cmp(&values[*i]).unwrap_or(std::cmp::Ordering::Equal));
    let sorted: Vec<T::Real> = order.iter().map(|i| values[*i].over(scale)).collect();
    values.copy_from_slice(&sorted);
    if let (Some((left, right)), Some(v)) = (&panels, vectors) {
        for (k, row) in v.left.chunks_exact_mut(m).enumerate() {
            let i = order.get(k).copied().unwrap_or(k);
            row.iter_mut().enumerate().for_each(|(j, v)| *v = left.get(i, j));
        }
        for (row, i) in v.right.chunks_exact_mut(n).zip(&order) {
            row.iter_mut().enumerate().for_each(|(j, v)| *v = right.get(*i, j).conj());
        }
    }
    found
}

/// Leaves the vectors of the right reflections in the rows of `a`, those of the left ones in `left`, if it is not empty, and the upper bidiagonal
/// matrix in `d` and `e`.
fn bidiagonal<T: LinearNumber>(
    (m, n): (usize, usize),
    a: &mut [T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    (left_tau, right_tau): (&mut [T], &mut [T]),
    left: &mut [T],
    parallel: bool,
) {
    let (mut v, mut w, mut conj_u) = (filled(T::ZERO, m), filled(T::ZERO, n), filled(T::ZERO, n));
    for k in 0..n {
        interrupt::check();
        let (rows, columns) = (m - k, n - k - 1);
        let many = parallel && rows >= PARALLEL;
        let v = &mut v[..rows];
        v.iter_mut().enumerate().for_each(|(i, v)| *v = a[(k + i) * n + k]);
        left_tau[k] = reflection(v);
        d[k] = v[0].real();
        v[0] = T::ONE;
        if !left.is_empty() {
            left[k * m + k..(k + 1) * m].copy_from_slice(v);
        }
        if columns == 0 {
            continue;
        }
        // A -= conj(tau) v (v^H A), and then A -= tau (A u) u^H, for which the row is conjugated.
        let w = &mut w[..columns];
        w.fill(T::ZERO);
        for (i, by) in v.iter().enumerate() {
            add_scaled(w, by.conj(), &a[(k + i) * n + k + 1..(k + i + 1) * n]);
        }
        let tau = left_tau[k].conj().negated();
        w.iter_mut().for_each(|w| *w = w.times(tau));
        let (top, rest) = a[k * n..].split_at_mut(n);
        let u = &mut top[k + 1..];
        add_scaled(u, T::ONE, w);
        u.iter_mut().for_each(|u| *u = u.conj());
        right_tau[k] = reflection(u);
        e[k] = u[0].real();
        u[0] = T::ONE;
        let conj_u = &mut conj_u[..columns];
        conj_u.iter_mut().zip(&*u).for_each(|(to, u)| *to = u.conj());
        let (u, w, conj_u, tau) = (&*u, &*w, &*conj_u, right_tau[k].negated());
        let shared = SharedPointer::new(rest.as_mut_ptr());
        let below = &v[1..];
        let update = |i: usize| {
            // SAFETY: each row is updated once.
            let row = unsafe { from_raw_parts_mut(shared.at(i * n + k + 1), columns) };
            add_scaled(row, below[i], w);
            let by = tau.times(plain_dot(row, u));
            add_scaled(row, by, conj_u);
        };
        let count = rows - 1;
        if many {
            parallel_for(count.div_ceil(TASK), |t| (t * TASK..count.min((t + 1) * TASK)).for_each(update));
        } else {
            (0..count).for_each(update);
        }
    }
}

/// A rotation that turns (a, b) to (length, 0).
fn turned<T: LinearNumber<Real = T> + PartialOrd>(a: T, b: T) -> (T, T, T) {
    let t = length(a, b);
    if t == T::ZERO { (T::ONE, T::ZERO, t) } else { (a.over(t), b.over(t), t) }
}

/// The singular values of the bidiagonal matrix, in `s`, of any sign and in any order.
fn steps<T: LinearNumber<Real = T> + PartialOrd, V: LinearNumber<Real = T>>(
    s: &mut [T],
    e: &mut [T],
    mut vectors: Option<(&mut Panels<V>, &mut Panels<V>)>,
    parallel: bool,
) -> bool {
    let norm = s.iter().chain(e.iter()).fold(T::ZERO, |m, v| if v.magnitude() > m { v.magnitude() } else { m });
    let tiny = norm.times(T::EPSILON).times(T::EPSILON);
    let left = |i: usize, j: usize, c: T, n: T, v: &mut Option<(&mut Panels<V>, &mut Panels<V>)>| {
        if let Some((l, _)) = v {
            l.rotate(i, j, c, n, parallel);
        }
    };
    let right = |i: usize, j: usize, c: T, n: T, v: &mut Option<(&mut Panels<V>, &mut Panels<V>)>| {
        if let Some((_, r)) = v {
            r.rotate(i, j, c, n, parallel);
        }
    };
    let (mut p, mut count) = (s.len(), 0);
    while p > 0 {
        interrupt::check();
        let least = if count > MANY_STEPS { norm.times(T::EPSILON) } else { tiny };
        let is_small = |e: T, beside: T| !(e.magnitude() > least.plus(T::EPSILON.times(beside)));
        // The last e that is negligible; what follows it up to p is one block.
        let k = (0..p - 1).rev().find(|k| is_small(e[*k], s[*k].magnitude().plus(s[*k + 1].magnitude())));
        if let Some(k) = k {
            e[k] = T::ZERO;
        }
        let first = k.map_or(0, |k| k + 1);
        if first == p - 1 {
            (p, count) = (p - 1, 0);
            continue;
        }
        if count == STEPS {
            return false;
        }
        count += 1;
        let zero = (first..p).rev().find(|q| {
            let after = if *q + 1 < p { e[*q].magnitude() } else { T::ZERO };
            let before = if *q > first { e[*q - 1].magnitude() } else { T::ZERO };
            is_small(s[*q], after.plus(before))
        });
        match zero {
            Some(q) if q == p - 1 => {
                s[q] = T::ZERO;
                let mut f = e[p - 2];
                e[p - 2] = T::ZERO;
                for j in (first..p - 1).rev() {
                    let (cos, sin, t) = turned(s[j], f);
                    s[j] = t;
                    if j != first {
                        f = sin.times(e[j - 1]).negated();
                        e[j - 1] = cos.times(e[j - 1]);
                    }
                    right(j, p - 1, cos, sin, &mut vectors);
                }
            }
            Some(q) => {
                s[q] = T::ZERO;
                let mut f = e[q];
                e[q] = T::ZERO;
                for j in q + 1..p {
                    let (cos, sin, t) = turned(s[j], f);
                    s[j] = t;
                    f = sin.times(e[j]).negated();
                    e[j] = cos.times(e[j]);
                    left(j, q, cos, sin, &mut vectors);
                }
            }
            None => {
                let around = [s[p - 1], s[p - 2], e[p - 2], s[first], e[first]];
                let scale = around.iter().fold(T::ZERO, |m, v| if v.magnitude() > m { v.magnitude() } else { m });
                let [sp, before, ep, sk, ek] = around.map(|v| v.over(scale));
                let two = T::ONE.plus(T::ONE);
                let b = before.plus(sp).times(before.minus(sp)).plus(ep.times(ep)).over(two);
                let c = sp.times(ep).times(sp.times(ep));
                let mut shift = T::ZERO;
                if b != T::ZERO || c != T::ZERO {
                    let root = b.times(b).plus(c).sqrt();
                    shift = c.over(b.plus(if b < T::ZERO { root.negated() } else { root }));
                }
                let (mut f, mut g) = (sk.plus(sp).times(sk.minus(sp)).plus(shift), sk.times(ek));
                for j in first..p - 1 {
                    let (cos, sin, t) = turned(f, g);
                    if j != first {
                        e[j - 1] = t;
                    }
                    f = cos.times(s[j]).plus(sin.times(e[j]));
                    e[j] = cos.times(e[j]).minus(sin.times(s[j]));
                    g = sin.times(s[j + 1]);
                    s[j + 1] = cos.times(s[j + 1]);
                    right(j, j + 1, cos, sin, &mut vectors);
                    let (cos, sin, t) = turned(f, g);
                    s[j] = t;
                    f = cos.times(e[j]).plus(sin.times(s[j + 1]));
                    s[j + 1] = cos.times(s[j + 1]).minus(sin.times(e[j]));
                    g = sin.times(e[j + 1]);
                    e[j + 1] = cos.times(e[j + 1]);
                    left(j, j + 1, cos, sin, &mut vectors);
                }
                e[p - 2] = f;
            }
        }
    }
    true
}
