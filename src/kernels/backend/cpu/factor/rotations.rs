//! Plane rotations of a matrix's rows. They are collected first, and applied to some columns at a time, which stay in the cache.

use super::number::LinearNumber;
use super::update::{Destination, WIDTH};
use crate::host::memory::reserve::filled;
use crate::host::threads::{SharedPointer, parallel_for};
use crate::simd::{Isa, instance_of};

/// Rotations that are collected before they are applied.
const MOST: usize = 1 << 13;
/// Multiplications below which all is done by the calling thread.
const PARALLEL: usize = 1 << 17;

/// Rows `first` and `second` become `cos * first + sin * second` and `cos * second - sin * first`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rotation<R> {
    pub first: u32,
    pub second: u32,
    pub cos: R,
    pub sin: R,
}

/// A matrix as panels of `WIDTH` columns (the last one may have fewer), each of which has its rows behind one another.
pub(super) struct Panels<T: LinearNumber> {
    rows: usize,
    columns: usize,
    memory: Vec<T>,
    waiting: Vec<Rotation<T::Real>>,
}

/// A panel and what is done to it.
pub(super) struct Turn<'a, T: LinearNumber> {
    panel: *mut T,
    width: usize,
    turns: &'a [Rotation<T::Real>],
}

impl<T: LinearNumber> Panels<T> {
    /// The rows of `from` (rows, columns).
    ///
    /// # Safety
    /// The elements exist, and nobody writes them.
    pub unsafe fn of(rows: usize, columns: usize, from: Destination<T>) -> Self {
        let mut made = Panels { rows, columns, memory: filled(T::ZERO, rows * columns), waiting: Vec::new() };
        for i in 0..rows {
            for j in 0..columns {
                let at = made.at(i, j);
                // SAFETY: the caller's.
                made.memory[at] = unsafe { from.get(i, j) };
            }
        }
        made
    }

    fn at(&self, i: usize, j: usize) -> usize {
        let first = j / WIDTH * WIDTH;
        first * self.rows + i * WIDTH.min(self.columns - first) + j - first
    }

    pub fn get(&self, i: usize, j: usize) -> T {
        self.memory[self.at(i, j)]
    }

    pub fn rotate(&mut self, first: usize, second: usize, cos: T::Real, sin: T::Real, parallel: bool) {
        self.waiting.push(Rotation { first: first as u32, second: second as u32, cos, sin });
        if self.waiting.len() >= MOST {
            self.apply(parallel);
        }
    }

    /// Applies what is waiting.
    pub fn apply(&mut self, parallel: bool) {
        let turns = std::mem::take(&mut self.waiting);
        assert!(turns.iter().all(|t| (t.first as usize) < self.rows && (t.second as usize) < self.rows && t.first != t.second));
        let (rows, columns) = (self.rows, self.columns);
        let memory = SharedPointer::new(self.memory.as_mut_ptr());
        let one = |k: usize| {
            let first = k * WIDTH;
            turn(&mut Turn { panel: memory.at(first * rows), width: WIDTH.min(columns - first), turns: &turns });
        };
        let count = columns.div_ceil(WIDTH);
        if parallel && turns.len() * columns >= PARALLEL {
            parallel_for(count, one)
        } else {
            (0..count).for_each(one)
        }
        self.waiting = turns;
        self.waiting.clear();
    }

    pub fn negate(&mut self, i: usize, parallel: bool) {
        self.apply(parallel);
        for j in 0..self.columns {
            let at = self.at(i, j);
            self.memory[at] = self.memory[at].negated();
        }
    }
}

#[inline(always)]
fn turn_in<T: LinearNumber, I: Isa>(t: &mut Turn<'_, T>) {
    let width = t.width;
    for r in t.turns {
        let (x, y) = (t.panel.wrapping_add(r.first as usize * width), t.panel.wrapping_add(r.second as usize * width));
        // SAFETY: `Panels::apply` has checked that both rows exist and differ.
        unsafe {
            if width == WIDTH {
                let (a, b) = (&mut *x.cast::<[T; WIDTH]>(), &mut *y.cast::<[T; WIDTH]>());
                for l in 0..WIDTH {
                    let (p, q) = (a[l], b[l]);
                    a[l] = p.scaled(r.cos).plus(q.scaled(r.sin));
                    b[l] = q.scaled(r.cos).minus(p.scaled(r.sin));
                }
                continue;
            }
            for l in 0..width {
                let (p, q) = (*x.add(l), *y.add(l));
                *x.add(l) = p.scaled(r.cos).plus(q.scaled(r.sin));
                *y.add(l) = q.scaled(r.cos).minus(p.scaled(r.sin));
            }
        }
    }
}

instance_of!(fn turn<T: LinearNumber> = turn_in(t: &mut Turn<'_, T>));

/// The length of (a, b), without overflow.
pub(super) fn length<T: LinearNumber<Real = T> + PartialOrd>(a: T, b: T) -> T {
    let (a, b) = (a.magnitude(), b.magnitude());
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    if most == T::ZERO {
        return most;
    }
    let ratio = least.over(most);
    most.times(T::ONE.plus(ratio.times(ratio)).sqrt())
}
