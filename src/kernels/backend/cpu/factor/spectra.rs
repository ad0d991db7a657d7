//! Requests for eigenvalues and singular values.

use super::general::general;
use super::number::LinearNumber;
use super::singular::{Vectors, singular};
use super::symmetric::eigen;
use super::update::Destination;
use super::{Job, copy};
use crate::call::SvdParts;
use crate::host::memory::reserve::filled;

impl<T: LinearNumber> Job<'_, T> {
    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn eigen(&self, upper: bool, vectors: bool) {
        let n = self.sizes.1;
        let (a, values) = (&self.ins[0], self.dense::<T::Real>(0, 1));
        let made = vectors.then(|| self.dense::<T>(1, 2));
        let info = self.dense::<i32>(1 + usize::from(vectors), 0);
        self.each(4 * n * n * n, |b, parallel| {
            let source = a.get(b);
            let mut whole = filled(T::ZERO, n * n);
            for i in 0..n {
                for j in 0..=i {
                    // SAFETY: the caller's.
                    let v = unsafe { if upper { source.get(j, i) } else { source.get(i, j) } };
                    // Of the other triangle it is the conjugate, which the diagonal's own real part is.
                    let v = if i == j { T::of_real(v.real()) } else { v };
                    (whole[i * n + j], whole[j * n + i]) = if upper { (v.conj(), v) } else { (v, v.conj()) };
                }
            }
            let mut rows = filled(T::ZERO, if vectors { n * n } else { 0 });
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let found = eigen(n, &mut whole, values.slice(b), vectors.then_some(&mut rows[..]), parallel);
                *info.get(b) = i32::from(!found);
                if let Some(made) = made {
                    let from = Destination { ptr: rows.as_mut_ptr(), ld: n };
                    copy((n, n), from.source().t(), Destination { ptr: made.get(b), ld: n }, |i| i);
                }
            }
        });
    }

    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn spectrum(&self, vectors: bool) {
        let n = self.sizes.1;
        let (a, values) = (&self.ins[0], self.dense::<T::Complex>(0, 1));
        let made = vectors.then(|| self.dense::<T::Complex>(1, 2));
        let info = self.dense::<i32>(1 + usize::from(vectors), 0);
        self.each(10 * n * n * n, |b, parallel| {
            let source = a.get(b);
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let mut whole: Vec<T::Wide> = (0..n * n).map(|k| source.get(k / n, k % n).wide()).collect();
                let (found, columns) = general(n, &mut whole, vectors, parallel);
                values.slice(b).iter_mut().zip(&found.values).for_each(|(to, z)| *to = T::rounded(*z));
                *info.get(b) = found.info;
                if let Some(made) = made {
                    made.slice(b).iter_mut().enumerate().for_each(|(k, to)| *to = T::rounded(columns[k % n * n + k / n]));
                }
            }
        });
    }

    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn svd(&self, parts: SvdParts) {
        let (m, n, _) = self.sizes;
        let (most, least) = (m.max(n), m.min(n));
        let vectors = parts != SvdParts::Values;
        let (a, values) = (&self.ins[0], self.dense::<T::Real>(usize::from(vectors), 1));
        let made = vectors.then(|| (self.dense::<T>(0, 2), self.dense::<T>(2, 2)));
        let info = self.dense::<i32>(if vectors { 3 } else { 1 }, 0);
        // Of a matrix with more columns than rows the transposed one is decomposed.
        let is_wide = n > m;
        let count = if parts == SvdParts::Full { most } else { least };
        self.each(8 * most * least * least, |b, parallel| {
            let source = if is_wide { a.get(b).t() } else { a.get(b) };
            let mut work = filled(T::ZERO, most * least);
            let (mut left, mut right) =
                (filled(T::ZERO, if vectors { count * most } else { 0 }), filled(T::ZERO, if vectors { least * least } else { 0 }));
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                copy((most, least), source, Destination { ptr: work.as_mut_ptr(), ld: least }, |i| i);
                let both = vectors.then_some(Vectors { left: &mut left, right: &mut right });
                let found = singular((most, least), &mut work, values.slice(b), both, parallel);
                *info.get(b) = i32::from(!found);
                let Some((u, vh)) = made else { return };
                let (columns, rows) = if is_wide { (&mut right, &left) } else { (&mut left, &right) };
                let height = if is_wide { least } else { most };
                let from = Destination { ptr: columns.as_mut_ptr(), ld: height };
                let width = columns.len() / height;
                copy((height, width), from.source().t(), Destination { ptr: u.get(b), ld: width }, |i| i);
                vh.slice(b).copy_from_slice(rows);
            }
        });
    }
}
