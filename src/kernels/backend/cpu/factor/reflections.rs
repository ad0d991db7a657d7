//! Requests for reflections and what is made of them.

use super::number::LinearNumber;
use super::qr::{self, Workspace};
use super::update::Destination;
use super::{Job, copy};
use crate::call::QrParts;
use crate::host::memory::reserve::filled;

impl<T: LinearNumber> Job<'_, T> {
    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn qr(&self, parts: QrParts) {
        let (m, n, _) = self.sizes;
        let least = m.min(n);
        let a = &self.ins[0];
        let factors = self.dense::<T>(usize::from(matches!(parts, QrParts::Reduced | QrParts::Complete)), 2);
        let orthogonal = self.dense::<T>(0, 2);
        let scales = (parts == QrParts::Reflectors).then(|| self.dense::<T>(1, 1));
        self.each(m * n * least, |b, parallel| {
            let (mut copied, mut tau) = (filled(T::ZERO, m * n), filled(T::ZERO, least));
            let mut room = Workspace::new(m, n);
            let t = Destination { ptr: copied.as_mut_ptr(), ld: m };
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                copy((n, m), a.get(b).t(), t, |i| i);
                qr::factor((m, n), t, &mut tau, &mut room, parallel);
                if let Some(scales) = scales {
                    copy((m, n), t.source().t(), Destination { ptr: factors.get(b), ld: n }, |i| i);
                    scales.slice(b).copy_from_slice(&tau);
                    return;
                }
                let r = factors.slice(b);
                for (i, row) in r.chunks_exact_mut(n.max(1)).enumerate() {
                    for (j, to) in row.iter_mut().enumerate() {
                        *to = if j < i { T::ZERO } else { t.get(j, i) };
                    }
                }
                if parts != QrParts::Upper {
                    let columns = if parts == QrParts::Complete { m } else { least };
                    form(m, columns, t, &tau, orthogonal.get(b), &mut room, parallel);
                }
            }
        });
    }

    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn householder(&self) {
        let (m, n, k) = self.sizes;
        let (a, factors, out) = (&self.ins[0], &self.ins[1], self.dense::<T>(0, 2));
        self.each(m * n * k, |b, parallel| {
            let (mut copied, mut tau) = (filled(T::ZERO, m * n), filled(T::ZERO, k));
            let mut room = Workspace::new(m, n);
            let t = Destination { ptr: copied.as_mut_ptr(), ld: m };
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                copy((n, m), a.get(b).t(), t, |i| i);
                let from = factors.get(b);
                tau.iter_mut().enumerate().for_each(|(i, to)| *to = from.get(i, 0));
                form(m, n, t, &tau, out.get(b), &mut room, parallel);
            }
        });
    }

    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn reflect(&self, adjoint: bool) {
        let (m, k, columns) = self.sizes;
        let (a, factors, from, out) = (&self.ins[0], &self.ins[1], &self.ins[2], self.dense::<T>(0, 2));
        self.each(m * k * columns, |b, _| {
            let (mut vectors, mut turned) = (filled(T::ZERO, m * k), filled(T::ZERO, m * columns));
            let v = Destination { ptr: vectors.as_mut_ptr(), ld: m };
            let c = Destination { ptr: turned.as_mut_ptr(), ld: m };
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                copy((k, m), a.get(b).t(), v, |i| i);
                copy((columns, m), from.get(b).t(), c, |i| i);
                let tau: Vec<T> = (0..k).map(|i| factors.get(b).get(i, 0)).collect();
                qr::reflect_all((m, columns), v, &tau, c, adjoint);
                copy((m, columns), c.source().t(), Destination { ptr: out.get(b), ld: columns }, |i| i);
            }
        });
    }
}

/// The first `columns` columns of the product of reflections, row-major.
///
/// # Safety
/// As for `qr::form`; `out` has room for (m, columns).
unsafe fn form<T: LinearNumber>(
    m: usize,
    columns: usize,
    t: Destination<T>,
    tau: &[T],
    out: *mut T,
    room: &mut Workspace<T>,
    parallel: bool,
) {
    let mut made = filled(T::ZERO, m * columns);
    let q = Destination { ptr: made.as_mut_ptr(), ld: m };
    // SAFETY: the caller's.
    unsafe {
        qr::form(m, columns, t, tau, q, room, parallel);
        copy((m, columns), q.source().t(), Destination { ptr: out, ld: columns }, |i| i);
    }
}
