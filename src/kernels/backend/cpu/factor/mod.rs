//! Factorisations of matrices (`cholesky`, `lu`, `qr`), and solutions and cofactors made of them (`triangular`, `cofactor`), one matrix at a time
//! with its large parts as products (`update`), or many small ones together (`lanes`). Eigenvalues (`symmetric`) and singular values (`singular`)
//! come from rotations (`rotations`); eigenvalues of general matrices from `schur`'s triangular form (`general`). `indefinite` has `L D L^H`.
//! `reflections` and `spectra` are the requests for them. `number` says what numbers all need. Not here: derivatives and errors (`ops`).

// A pivot that is not above a bound may be nan; loops over lanes and reflections index several arrays alike.
#![allow(clippy::neg_cmp_op_on_partial_ord, clippy::needless_range_loop)]

mod balance;
mod cholesky;
mod cofactor;
mod general;
mod indefinite;
mod lanes;
mod lu;
mod number;
mod qr;
mod reflections;
mod rotations;
mod schur;
mod singular;
mod spectra;
mod symmetric;
mod triangular;
mod update;

use self::lanes::{FEWEST, Group, LANES, LARGEST, store};
use self::number::LinearNumber;
use self::triangular::Triangular;
use self::update::{Destination, Source};
use super::matmul::{Mat, in_batches};
use crate::backend::contract::{Operand, View};
use crate::backend::cpu::common::operands::{malformed, output, view};
use crate::backend::cpu::elem::float_or_complex;
use crate::backend::cpu::family::{CpuFamily, NarrowElements};
use crate::backend::cpu::index::StridedBlock;
use crate::call::{Factor, FactorKind, Seen};
use crate::error::Result;
use crate::host::memory::reserve::filled;
use crate::host::threads::{SharedPointer, parallel_for};
use smallvec::SmallVec;
use std::slice::from_raw_parts_mut;

/// Multiply-adds of small matrices that one task does at least.
const TASK: usize = 1 << 16;

/// The matrices (or vectors) of an operand.
struct Matrices<T> {
    start: SharedPointer<*const T>,
    at: StridedBlock,
    rs: isize,
    cs: isize,
}

impl<T: LinearNumber> Matrices<T> {
    /// With the last `last` dimensions as those of each matrix; a vector is a column.
    fn of(v: &View<'_>, last: usize) -> Self {
        let r = v.shape.len() - last;
        let stride = |d: usize| v.strides.get(r + d).copied().unwrap_or(0);
        Matrices {
            start: SharedPointer::new(v.ptr().cast_const().cast()),
            at: StridedBlock::new(&v.shape[..r], &v.strides[..r]),
            rs: stride(0),
            cs: stride(1),
        }
    }

    fn get(&self, b: usize) -> Source<T> {
        Source { mat: Mat { ptr: self.start.get().wrapping_offset(self.at.offset(b)), rs: self.rs, cs: self.cs }, conj: false }
    }
}

/// Elements that a task writes: `each` for each matrix.
#[derive(Clone, Copy)]
struct Dense<T> {
    start: SharedPointer<*mut T>,
    each: usize,
}

impl<T> Dense<T> {
    fn of(v: &View<'_>, last: usize) -> Self {
        let r = v.shape.len() - last;
        Dense { start: SharedPointer::new(v.ptr().cast()), each: v.shape[r..].iter().product() }
    }

    fn get(&self, b: usize) -> *mut T {
        self.start.at(b * self.each)
    }

    /// # Safety
    /// There is such a matrix, and nobody else reads or writes it.
    #[allow(clippy::mut_from_ref, reason = "each task has its own part")]
    unsafe fn slice(&self, b: usize) -> &mut [T] {
        // SAFETY: the caller's.
        unsafe { from_raw_parts_mut(self.get(b), self.each) }
    }
}

/// Copies a matrix (m, n), whose rows may come in another order.
///
/// # Safety
/// Both matrices have these sizes and are disjoint.
unsafe fn copy<T: LinearNumber>((m, n): (usize, usize), from: Source<T>, to: Destination<T>, row: impl Fn(usize) -> usize) {
    for i in 0..m {
        // SAFETY: the caller's.
        unsafe {
            let at = from.from(row(i), 0);
            if from.mat.cs == 1 && !from.conj {
                std::ptr::copy_nonoverlapping(at.mat.ptr, to.at(i, 0), n);
                continue;
            }
            for j in 0..n {
                *to.at(i, j) = at.get(0, j);
            }
        }
    }
}

/// The sum of two numbers, which may be real parts.
fn add<R: LinearNumber>(a: R, b: R) -> R {
    a.plus(b)
}

/// One request, of elements `T`. The sizes are those of `Factor::sizes`.
struct Job<'a, T> {
    kind: FactorKind,
    sizes: (usize, usize, usize),
    count: usize,
    ins: &'a [Matrices<T>],
    pivots_in: Option<Matrices32>,
    outs: &'a [View<'a>],
}

/// Pivots that are read.
struct Matrices32 {
    start: SharedPointer<*const i32>,
    at: StridedBlock,
    step: isize,
}

impl Matrices32 {
    /// The `n` pivots of a matrix.
    ///
    /// # Safety
    /// They exist, and nobody writes them.
    unsafe fn get(&self, b: usize, n: usize) -> SmallVec<[i32; 16]> {
        let at = self.at.offset(b);
        // SAFETY: the caller's.
        (0..n as isize).map(|i| unsafe { *self.start.get().wrapping_offset(at + i * self.step) }).collect()
    }
}

impl<T: LinearNumber> Job<'_, T> {
    fn dense<E>(&self, k: usize, last: usize) -> Dense<E> {
        Dense::of(&self.outs[k], last)
    }

    /// Runs `one` for each matrix, or with several threads inside.
    fn each(&self, work: usize, one: impl Fn(usize, bool) + Sync) {
        in_batches(self.count, work, one);
    }

    /// Runs `some` for groups of small matrices: the first one, how many, and their room.
    fn groups(&self, columns: usize, some: impl Fn(usize, usize, &mut Group<T>) + Sync) {
        let n = self.sizes.1;
        let (count, groups) = (self.count, self.count.div_ceil(LANES));
        let together = (TASK / (n * n * n.max(columns) * LANES).max(1)).max(1);
        parallel_for(groups.div_ceil(together), |t| {
            let mut room = Group::new(n, columns);
            for g in t * together..groups.min((t + 1) * together) {
                some(g * LANES, LANES.min(count - g * LANES), &mut room);
            }
        });
    }

    /// Whether the matrices are small and many.
    fn are_small(&self, columns: usize) -> bool {
        self.count >= FEWEST && (1..=LARGEST).contains(&self.sizes.1) && columns <= LARGEST
    }

    /// # Safety
    /// Operands and outputs are what the request's family describes, and outputs overlap nothing else.
    unsafe fn run(&self) {
        // SAFETY: of all, the caller's.
        unsafe {
            match self.kind {
                FactorKind::Cholesky { upper } => self.cholesky(upper),
                FactorKind::Lu { pivot } => self.lu(pivot),
                FactorKind::Determinant { logarithm } => self.determinant(logarithm),
                FactorKind::Cofactors => self.cofactors(),
                FactorKind::Triangular { upper, unit } => self.triangular(upper, unit),
                FactorKind::LuSolve { adjoint } => self.lu_solve(adjoint),
                FactorKind::Solve => self.solve(),
                FactorKind::Inverse => self.inverse(),
                FactorKind::Qr(parts) => self.qr(parts),
                FactorKind::Eigen { upper, vectors } => self.eigen(upper, vectors),
                FactorKind::Svd(parts) => self.svd(parts),
                FactorKind::Spectrum { vectors } => self.spectrum(vectors),
                FactorKind::Householder => self.householder(),
                FactorKind::Reflect { adjoint } => self.reflect(adjoint),
                FactorKind::Ldl { hermitian } => self.ldl(hermitian),
                FactorKind::LdlSolve { hermitian } => self.ldl_solve(hermitian),
            }
        }
    }

    unsafe fn cholesky(&self, upper: bool) {
        let n = self.sizes.1;
        let (a, out, info) = (&self.ins[0], self.dense::<T>(0, 2), self.dense::<i32>(1, 0));
        let source = |b: usize| if upper { a.get(b) } else { a.get(b).t().conjugated() };
        if self.are_small(0) {
            return self.groups(0, |first, count, g| {
                // SAFETY: the caller's; each task has matrices of its own.
                unsafe {
                    g.load(|l| source(first + l), count);
                    g.cholesky();
                    for l in 0..count {
                        let to = Destination { ptr: out.get(first + l), ld: n };
                        store(&g.a, l, to.ptr);
                        if g.info[l] != 0 {
                            copy((n, n), source(first + l), to, |i| i);
                        }
                        finish(n, to, upper);
                        *info.get(first + l) = g.info[l];
                    }
                }
            });
        }
        self.each(n * n * n / 3, |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let to = Destination { ptr: out.get(b), ld: n };
                copy((n, n), source(b), to, |i| i);
                let failed = cholesky::factor(n, to, parallel) as i32;
                *info.get(b) = failed;
                if failed != 0 {
                    copy((n, n), source(b), to, |i| i);
                }
                finish(n, to, upper);
            }
        });
    }

    unsafe fn lu(&self, pivot: bool) {
        let (m, n, _) = self.sizes;
        let (a, out) = (&self.ins[0], self.dense::<T>(0, 2));
        let (pivots, info) = (self.dense::<i32>(1, 1), self.dense::<i32>(2, 0));
        if pivot && m == n && self.are_small(0) {
            return self.groups(0, |first, count, g| {
                // SAFETY: the caller's; each task has matrices of its own.
                unsafe {
                    g.load(|l| a.get(first + l), count);
                    g.lu();
                    for l in 0..count {
                        store(&g.a, l, out.get(first + l));
                        store(&g.pivots, l, pivots.get(first + l));
                        pivots.slice(first + l).iter_mut().for_each(|p| *p += 1);
                        *info.get(first + l) = g.info[l];
                    }
                }
            });
        }
        self.each(m * n * m.min(n), |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let to = Destination { ptr: out.get(b), ld: n };
                copy((m, n), a.get(b), to, |i| i);
                *info.get(b) = lu::factor((m, n), to, pivots.slice(b), pivot, parallel) as i32;
            }
        });
    }

    unsafe fn determinant(&self, logarithm: bool) {
        let n = self.sizes.1;
        let at = 1 + usize::from(logarithm);
        let (a, sign, out, pivots) = (&self.ins[0], self.dense::<T>(0, 0), self.dense::<T>(at, 2), self.dense::<i32>(at + 1, 1));
        let size = logarithm.then(|| self.dense::<T::Real>(1, 0));
        let product = |b: usize| {
            // SAFETY: the factors and pivots of this matrix are complete; its results are written here alone.
            unsafe {
                let swaps = pivots.slice(b).iter().enumerate().filter(|(i, p)| **p != *i as i32 + 1).count();
                let one = if swaps % 2 == 1 { T::ONE.negated() } else { T::ONE };
                let diagonal = (0..n).map(|i| *out.get(b).add(i * n + i));
                let Some(size) = size else {
                    *sign.get(b) = diagonal.fold(one, T::times);
                    return;
                };
                let (mut s, mut sum) = (one, T::ZERO.real());
                for d in diagonal {
                    let m = d.magnitude();
                    s = if d == T::ZERO { T::ZERO } else { s.times(d.over(T::of_real(m))) };
                    sum = add(sum, m.ln());
                    if d == T::ZERO {
                        break;
                    }
                }
                (*sign.get(b), *size.get(b)) = (s, sum);
            }
        };
        if self.are_small(0) {
            return self.groups(0, |first, count, g| {
                // SAFETY: the caller's; each task has matrices of its own.
                unsafe {
                    g.load(|l| a.get(first + l), count);
                    g.lu();
                    for l in 0..count {
                        store(&g.a, l, out.get(first + l));
                        store(&g.pivots, l, pivots.get(first + l));
                        pivots.slice(first + l).iter_mut().for_each(|p| *p += 1);
                        product(first + l);
                    }
                }
            });
        }
        self.each(n * n * n, |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let to = Destination { ptr: out.get(b), ld: n };
                copy((n, n), a.get(b), to, |i| i);
                lu::factor((n, n), to, pivots.slice(b), true, parallel);
                product(b);
            }
        });
    }

    unsafe fn cofactors(&self) {
        let n = self.sizes.1;
        let (a, out) = (&self.ins[0], self.dense::<T>(0, 2));
        self.each(2 * n * n * n, |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe { cofactor::cofactors(n, a.get(b), Destination { ptr: out.get(b), ld: n }, parallel) };
        });
    }

    unsafe fn triangular(&self, upper: bool, unit: bool) {
        let (_, n, columns) = self.sizes;
        let (a, from, out) = (&self.ins[0], &self.ins[1], self.dense::<T>(0, 2));
        self.each(n * n * columns, |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let to = Destination { ptr: out.get(b), ld: columns };
                copy((n, columns), from.get(b), to, |i| i);
                Triangular { n, columns, a: a.get(b), upper, unit, b: to }.solve(parallel);
            }
        });
    }

    unsafe fn lu_solve(&self, adjoint: bool) {
        let (_, n, columns) = self.sizes;
        let (factors, from, out) = (&self.ins[0], &self.ins[1], self.dense::<T>(0, 2));
        let Some(pivots) = &self.pivots_in else { return };
        self.each(n * n * columns, |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            let swaps = unsafe { pivots.get(b, n) };
            let order = lu::order(n, &swaps);
            let (a, to) = (factors.get(b), Destination { ptr: out.get(b), ld: columns });
            let part = |a: Source<T>, upper: bool, unit: bool, b: Destination<T>| Triangular { n, columns, a, upper, unit, b };
            // SAFETY: as above.
            unsafe {
                if !adjoint {
                    copy((n, columns), from.get(b), to, |i| order[i] as usize);
                    part(a, false, true, to).solve(parallel);
                    part(a, true, false, to).solve(parallel);
                    return;
                }
                let mut room = filled(T::ZERO, n * columns);
                let middle = Destination { ptr: room.as_mut_ptr(), ld: columns };
                copy((n, columns), from.get(b), middle, |i| i);
                part(a.t().conjugated(), false, false, middle).solve(parallel);
                part(a.t().conjugated(), true, true, middle).solve(parallel);
                for (i, row) in order.iter().enumerate() {
                    std::ptr::copy_nonoverlapping(middle.at(i, 0), to.at(*row as usize, 0), columns);
                }
            }
        });
    }

    unsafe fn solve(&self) {
        let (_, n, columns) = self.sizes;
        let (a, from, out) = (&self.ins[0], &self.ins[1], self.dense::<T>(0, 2));
        let (factors, pivots, info) = (self.dense::<T>(1, 2), self.dense::<i32>(2, 1), self.dense::<i32>(3, 0));
        if self.are_small(columns) && columns > 0 {
            return self.groups(columns, |first, count, g| {
                // SAFETY: the caller's; each task has matrices of its own.
                unsafe {
                    g.load(|l| a.get(first + l), count);
                    g.lu();
                    g.load_right(|l| from.get(first + l), count);
                    g.substitute();
                    for l in 0..count {
                        store(&g.b, l, out.get(first + l));
                        store(&g.a, l, factors.get(first + l));
                        store(&g.pivots, l, pivots.get(first + l));
                        pivots.slice(first + l).iter_mut().for_each(|p| *p += 1);
                        *info.get(first + l) = g.info[l];
                        if g.info[l] != 0 {
                            out.slice(first + l).fill(T::INFINITE);
                        }
                    }
                }
            });
        }
        self.each(n * n * (n + columns), |b, parallel| {
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                let lu = Destination { ptr: factors.get(b), ld: n };
                copy((n, n), a.get(b), lu, |i| i);
                *info.get(b) = lu::factor((n, n), lu, pivots.slice(b), true, parallel) as i32;
                let order = lu::order(n, pivots.slice(b));
                let to = Destination { ptr: out.get(b), ld: columns };
                copy((n, columns), from.get(b), to, |i| order[i] as usize);
                substitute(n, columns, lu, to, parallel);
                if *info.get(b) != 0 {
                    out.slice(b).fill(T::INFINITE);
                }
            }
        });
    }

    unsafe fn inverse(&self) {
        let n = self.sizes.1;
        let (a, out, info) = (&self.ins[0], self.dense::<T>(0, 2), self.dense::<i32>(1, 0));
        if self.are_small(n) {
            return self.groups(n, |first, count, g| {
                // SAFETY: the caller's; each task has matrices of its own.
                unsafe {
                    g.load(|l| a.get(first + l), count);
                    g.lu();
                    g.identity();
                    g.substitute();
                    for l in 0..count {
                        store(&g.b, l, out.get(first + l));
                        *info.get(first + l) = g.info[l];
                        if g.info[l] != 0 {
                            out.slice(first + l).fill(T::INFINITE);
                        }
                    }
                }
            });
        }
        self.each(2 * n * n * n, |b, parallel| {
            let (mut room, mut pivots) = (filled(T::ZERO, n * n), filled(0, n));
            let lu = Destination { ptr: room.as_mut_ptr(), ld: n };
            // SAFETY: the caller's; each task has matrices of its own.
            unsafe {
                copy((n, n), a.get(b), lu, |i| i);
                *info.get(b) = lu::factor((n, n), lu, &mut pivots, true, parallel) as i32;
                let to = Destination { ptr: out.get(b), ld: n };
                out.slice(b).fill(T::ZERO);
                for (i, row) in lu::order(n, &pivots).into_iter().enumerate() {
                    *to.at(i, row as usize) = T::ONE;
                }
                substitute(n, n, lu, to, parallel);
                if *info.get(b) != 0 {
                    out.slice(b).fill(T::INFINITE);
                }
            }
        });
    }
}

/// Both substitutions with LU factors.
///
/// # Safety
/// As for `Triangular::solve`.
unsafe fn substitute<T: LinearNumber>(n: usize, columns: usize, lu: Destination<T>, b: Destination<T>, parallel: bool) {
    let part = |upper: bool| Triangular { n, columns, a: lu.source(), upper, unit: !upper, b };
    // SAFETY: the caller's.
    unsafe {
        part(false).solve(parallel);
        part(true).solve(parallel);
    }
}

/// Leaves the upper factor alone, or transposes it.
///
/// # Safety
/// The matrix (n, n) is read and written by nobody else.
unsafe fn finish<T: LinearNumber>(n: usize, a: Destination<T>, upper: bool) {
    for i in 0..n {
        for j in 0..i {
            // SAFETY: the caller's.
            unsafe {
                if !upper {
                    *a.at(i, j) = a.get(j, i).conj();
                    *a.at(j, i) = T::ZERO;
                } else {
                    *a.at(i, j) = T::ZERO;
                }
            }
        }
    }
}

// SAFETY, of every `compute` here: the promises of `Backend::run` are the caller's; views lie inside their memory, have the shapes and dtypes
// that the request's family describes, and outputs overlap nothing else.

impl CpuFamily for Factor {
    const NARROW: NarrowElements = NarrowElements::Widened;

    unsafe fn compute(f: &Factor, ins: &[Operand<'_>], outs: &[Option<View<'_>>]) -> Result<()> {
        let views = (0..ins.len()).map(|k| view(f.op, ins, k)).collect::<Result<SmallVec<[View<'_>; 3]>>>()?;
        let made = (0..outs.len()).map(|k| output(f.op, outs, k)).collect::<Result<SmallVec<[View<'_>; 4]>>>()?;
        fn seen<'a>(all: &[View<'a>]) -> SmallVec<[Seen<'a>; 4]> {
            all.iter().map(|v| Some((v.shape, v.dtype))).collect()
        }
        let Some(sizes) = f.sizes(&seen(&views), &seen(&made)) else { return Err(malformed(f.op)) };
        let first = views.first().ok_or_else(|| malformed(f.op))?;
        let count: usize = first.shape[..first.shape.len() - 2].iter().product();
        float_or_complex!(first.dtype, T => {
            let mut matrices: SmallVec<[Matrices<T>; 2]> = SmallVec::new();
            let mut pivots_in = None;
            for (k, v) in views.iter().enumerate() {
                let are_pivots = matches!((f.kind, k), (FactorKind::LuSolve { .. } | FactorKind::LdlSolve { .. }, 1));
                let is_vector = are_pivots || matches!((f.kind, k), (FactorKind::Householder | FactorKind::Reflect { .. }, 1));
                let r = v.shape.len() - if is_vector { 1 } else { 2 };
                if are_pivots {
                    pivots_in = Some(Matrices32 {
                        start: SharedPointer::new(v.ptr().cast_const().cast()),
                        at: StridedBlock::new(&v.shape[..r], &v.strides[..r]),
                        step: v.strides[r],
                    });
                    continue;
                }
                matrices.push(Matrices::of(v, v.shape.len() - r));
            }
            let job = Job { kind: f.kind, sizes, count, ins: &matrices, pivots_in, outs: &made };
            // SAFETY: see above.
            unsafe { job.run() };
        });
        Ok(())
    }
}
