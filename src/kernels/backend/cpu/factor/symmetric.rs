//! Eigenvalues and eigenvectors of a symmetric (or Hermitian) matrix: Householder's tridiagonal form, then QL steps with implicit shifts (Golub and Van Loan,
//! "Matrix computations", 8.3; Bowdler, Martin, Reinsch and Wilkinson 1968, procedure `tql2`).

use super::number::LinearNumber;
use super::qr::{self, Workspace, reflection};
use super::rotations::{Panels, length};
use super::update::{Destination, add_scaled, dot, plain_dot};
use crate::host::interrupt;
use crate::host::memory::reserve::filled;
use crate::host::threads::{SharedPointer, parallel_for};
use std::slice::from_raw_parts_mut;

/// Steps for one eigenvalue before it counts as not found, and those after which precision beside the largest one is enough.
const STEPS: usize = 60;
const MANY_STEPS: usize = 10;
/// Rows from which on several threads help, and how many one task has.
const PARALLEL: usize = 192;
const TASK: usize = 64;

/// The eigenvalues of `a`, which rise, and its eigenvectors as the rows of `vectors` if they are wanted. `a` (n, n) is overwritten. False if a value
/// was not found, or the matrix is not finite.
pub(super) fn eigen<T: LinearNumber>(n: usize, a: &mut [T], values: &mut [T::Real], vectors: Option<&mut [T]>, parallel: bool) -> bool {
    let Some(scale) = scaled(a) else { return false };
    let (mut e, mut tau) = (filled(T::ZERO.real(), n), filled(T::ZERO, n));
    tridiagonal(n, a, values, &mut e, &mut tau, parallel);
    let mut panels = vectors.is_some().then(|| {
        let mut q = filled(T::ZERO, n * n);
        let target = Destination { ptr: q.as_mut_ptr(), ld: n };
        q[0] = T::ONE;
        if n > 1 {
            // Reflection k begins at row k + 1; row k holds its vector.
            let from = Destination { ptr: a.as_mut_ptr(), ld: n }.from(0, 1);
            let mut room = Workspace::new(n - 1, n - 1);
            // SAFETY: the rows 0..n-1 of `a` from column 1 on, and the part of `q` behind its first row and column.
            unsafe { qr::form(n - 1, n - 1, from, &tau[..n - 1], target.from(1, 1), &mut room, parallel) };
        }
        // SAFETY: all of `q`.
        unsafe { Panels::of(n, n, target) }
    });
    let found = ql(values, &mut e, panels.as_mut(), parallel);
    if let Some(p) = &mut panels {
        p.apply(parallel);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| values[*i].partial_cmp(&values[*j]).unwrap_or(std::cmp::Ordering::Equal));
    let sorted: Vec<T::Real> = order.iter().map(|i| values[*i].over(scale)).collect();
    values.copy_from_slice(&sorted);
    if let (Some(p), Some(to)) = (&panels, vectors) {
        for (row, i) in to.chunks_exact_mut(n).zip(&order) {
            row.iter_mut().enumerate().for_each(|(j, v)| *v = p.get(*i, j));
        }
    }
    found
}

/// Scales the elements by a power of two, so that the largest is near 1, and returns the power. None if one is not finite.
pub(super) fn scaled<T: LinearNumber>(a: &mut [T]) -> Option<T::Real> {
    let most = a.iter().fold(T::ZERO.real(), |m, v| if v.size() > m || v.is_nan() { v.size() } else { m });
    if most == T::ZERO.real() {
        return Some(T::ONE.real());
    }
    if !(most < T::INFINITE.real()) {
        return None;
    }
    let by = power(most);
    if by != T::ONE.real() {
        a.iter_mut().for_each(|v| *v = v.times(T::of_real(by)));
    }
    Some(by)
}

/// The power of two by which a positive number becomes one near 1.
fn power<T: LinearNumber<Real = T> + PartialOrd>(most: T) -> T {
    let two = T::ONE.plus(T::ONE);
    let (mut by, mut rest) = (T::ONE, most);
    while rest > two {
        (by, rest) = (by.over(two), rest.over(two));
    }
    while rest < T::ONE && by < T::LARGE {
        (by, rest) = (by.times(two), rest.times(two));
    }
    by
}

/// Row `k` of `a`, from column `k + 1` on, becomes the vector of reflection `k`, which maps what column `k` has there to `e[k]` in its first place.
/// `d` is the diagonal.
fn tridiagonal<T: LinearNumber>(n: usize, a: &mut [T], d: &mut [T::Real], e: &mut [T::Real], tau: &mut [T], parallel: bool) {
    let (mut w, mut conj) = (filled(T::ZERO, n), filled(T::ZERO, 2 * n));
    for k in 0..n {
        interrupt::check();
        let (top, rest) = a[k * n..].split_at_mut(n);
        d[k] = top[k].real();
        if k + 1 == n {
            break;
        }
        let v = &mut top[k + 1..];
        v.iter_mut().for_each(|v| *v = v.conj());
        tau[k] = reflection(v);
        e[k] = v[0].real();
        if tau[k] == T::ZERO {
            continue;
        }
        v[0] = T::ONE;
        let m = n - k - 1;
        let w = &mut w[..m];
        let many = parallel && m >= PARALLEL;
        each(m, many, w, |i, w| *w = tau[k].times(plain_dot(&rest[i * n + k + 1..(i + 1) * n], v)));
        let by = tau[k].times(dot(w, v)).over(T::ONE.plus(T::ONE)).negated();
        add_scaled(w, by, v);
        // A -= v w^H + w v^H.
        let (conj_v, conj_w) = conj.split_at_mut(n);
        let (conj_v, conj_w) = (&mut conj_v[..m], &mut conj_w[..m]);
        conj_v.iter_mut().zip(&*v).for_each(|(to, v)| *to = v.conj());
        conj_w.iter_mut().zip(&*w).for_each(|(to, w)| *to = w.conj());
        let shared = SharedPointer::new(rest.as_mut_ptr());
        let (v, w, conj_v, conj_w) = (&*v, &*w, &*conj_v, &*conj_w);
        let update = |i: usize| {
            // SAFETY: each row is updated once.
            let row = unsafe { from_raw_parts_mut(shared.at(i * n + k + 1), m) };
            add_scaled(row, v[i].negated(), conj_w);
            add_scaled(row, w[i].negated(), conj_v);
        };
        if many {
            parallel_for(m.div_ceil(TASK), |t| (t * TASK..m.min((t + 1) * TASK)).for_each(update));
        } else {
            (0..m).for_each(update);
        }
    }
}

/// Writes each element of `to`, with several threads if `many`.
fn each<T: LinearNumber>(m: usize, many: bool, to: &mut [T], one: impl Fn(usize, &mut T) + Sync) {
    if !many {
        return to.iter_mut().enumerate().for_each(|(i, to)| one(i, to));
    }
    let shared = SharedPointer::new(to.as_mut_ptr());
    parallel_for(m.div_ceil(TASK), |t| {
        for i in t * TASK..m.min((t + 1) * TASK) {
            // SAFETY: each element is written once.
            one(i, unsafe { &mut *shared.at(i) });
        }
    });
}

/// The eigenvalues of the tridiagonal matrix with the diagonal `d` and `e` beside it, in `d`, in any order.
fn ql<T: LinearNumber<Real = T> + PartialOrd, V: LinearNumber<Real = T>>(
    d: &mut [T],
    e: &mut [T],
    mut vectors: Option<&mut Panels<V>>,
    parallel: bool,
) -> bool {
    let (n, two) = (d.len(), T::ONE.plus(T::ONE));
    let norm = d.iter().chain(e.iter()).fold(T::ZERO, |m, v| if v.magnitude() > m { v.magnitude() } else { m });
    let (least, enough) = (norm.times(T::EPSILON).times(T::EPSILON), norm.times(T::EPSILON));
    for l in 0..n {
        let mut steps = 0;
        loop {
            let small = |i: usize| {
                let beside = d[i].magnitude().plus(d[i + 1].magnitude()).times(T::EPSILON);
                let least = if steps > MANY_STEPS { enough } else { least };
                !(e[i].magnitude() > if beside > least { beside } else { least })
            };
            let m = (l..n - 1).find(|i| small(*i)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if steps == STEPS {
                return false;
            }
            steps += 1;
            interrupt::check();
            // Wilkinson's shift.
            let mut g = d[l + 1].minus(d[l]).over(two.times(e[l]));
            let mut r = length(g, T::ONE);
            let signed = if g < T::ZERO { r.negated() } else { r };
            g = d[m].minus(d[l]).plus(e[l].over(g.plus(signed)));
            let (mut s, mut c, mut p) = (T::ONE, T::ONE, T::ZERO);
            let mut is_split = false;
            for i in (l..m).rev() {
                let (f, b) = (s.times(e[i]), c.times(e[i]));
                r = length(f, g);
                e[i + 1] = r;
                if r == T::ZERO {
                    d[i + 1] = d[i + 1].minus(p);
                    e[m] = T::ZERO;
                    is_split = true;
                    break;
                }
                (s, c) = (f.over(r), g.over(r));
                g = d[i + 1].minus(p);
                r = d[i].minus(g).times(s).plus(two.times(c).times(b));
                p = s.times(r);
                d[i + 1] = g.plus(p);
                g = c.times(r).minus(b);
                if let Some(v) = vectors.as_deref_mut() {
                    v.rotate(i, i + 1, c, s.negated(), parallel);
                }
            }
            if is_split {
                continue;
            }
            d[l] = d[l].minus(p);
            e[l] = g;
            e[m] = T::ZERO;
        }
    }
    true
}
